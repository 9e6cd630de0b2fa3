"""An edit or a patch whose place is still there is made, though another program has changed other lines of the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrt import MemoryDisk, Registry, Runtime, State, ToolCall, ToolResult, Workspace

_TEN = "".join(f"line {number}\n" for number in range(10))


def _run(workspace: Workspace, *calls: tuple[str, dict[str, Any]]) -> list[ToolResult]:
    asked = [ToolCall(str(number), name, input) for number, (name, input) in enumerate(calls)]

    async def run() -> list[ToolResult]:
        return list((await Runtime(Registry(workspace.tools())).run(asked, State())).results)

    return trio.run(run)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk({"a": _TEN})


@pytest.fixture
def workspace(disk: MemoryDisk) -> Workspace:
    workspace = Workspace(disk)
    assert _run(workspace, ("read_file", {"path": "a"}))[0].ok
    return workspace


def test_other_lines_that_changed_are_kept(disk: MemoryDisk, workspace: Workspace) -> None:
    """The answer says so, and the next edit has nothing to say of it."""
    disk.put("a", _TEN.replace("line 7", "theirs"))
    [one] = _run(workspace, ("edit_file", {"path": "a", "old": "line 2\n", "new": "mine\n"}))
    assert one.content == (
        "replaced 1 place in a (line 3). Another program had changed the file since it was last seen here: what it "
        "changed is kept"
    )
    assert disk.peek(("a",)) == _TEN.replace("line 7", "theirs").replace("line 2", "mine").encode()
    [one] = _run(workspace, ("edit_file", {"path": "a", "old": "line 3\n", "new": "mine\n"}))
    assert one.content == "replaced 1 place in a (line 4)"


def test_several_edits_are_made_together_or_not_at_all(disk: MemoryDisk, workspace: Workspace) -> None:
    """One place that is gone refuses all of them."""
    changed = _TEN.replace("line 7", "theirs")
    disk.put("a", changed)
    edits = [{"old": "line 2\n", "new": "two\n"}, {"old": "line 7\n", "new": "seven\n"}]
    [refused] = _run(workspace, ("multi_edit", {"path": "a", "edits": edits}))
    assert "another writer changed it since" in str(refused.error)
    assert disk.peek(("a",)) == changed.encode()
    [one] = _run(workspace, ("multi_edit", {"path": "a", "edits": [edits[0], {"old": "line 8", "new": "eight"}]}))
    assert one.ok
    assert disk.peek(("a",)) == changed.replace("line 2", "two").replace("line 8", "eight").encode()


@pytest.mark.parametrize(
    ("theirs", "edit"),
    [
        (_TEN.replace("line 2", "theirs"), {"old": "line 2\n", "new": "mine\n"}),
        (_TEN + "line 2\n", {"old": "line 2\n", "new": "mine\n"}),
        (_TEN.replace("line 2\n", "line  2\n"), {"old": "line 2\n", "new": "mine\n"}),
        (_TEN.replace("line 7", "theirs"), {"old": "line 2\n", "new": "mine\n", "all": True}),
    ],
    ids=["gone", "twice", "other white space", "all places"],
)
def test_what_is_not_clear_is_still_a_conflict(
    disk: MemoryDisk, workspace: Workspace, theirs: str, edit: dict[str, Any]
) -> None:
    """Nothing is changed, and the remedy is to read."""
    disk.put("a", theirs)
    [refused] = _run(workspace, ("edit_file", {"path": "a", **edit}))
    assert "another writer changed it since" in str(refused.error)
    assert "read it again" in str(refused.error)
    assert disk.peek(("a",)) == theirs.encode()


def _patch(*hunks: str, numbers: str = "") -> tuple[str, dict[str, Any]]:
    return "apply_patch", {"patch": "".join(["--- a/a\n+++ b/a\n", *(f"@@{numbers}\n{hunk}" for hunk in hunks)])}


_TWO = " line 1\n-line 2\n+mine\n line 3\n"


@pytest.mark.parametrize("numbers", ["", " -2,3 +2,3 @@"], ids=["no number", "its number"])
def test_a_patch_is_made_where_its_lines_stand_at_one_place(
    disk: MemoryDisk, workspace: Workspace, numbers: str
) -> None:
    """And at the line that it says, if it says one; the answer says that another program was there."""
    disk.put("a", _TEN.replace("line 7", "theirs"))
    [one] = _run(workspace, _patch(_TWO, numbers=numbers))
    assert str(one.content).startswith("patched 1 file: changed a. Another program had changed the file since it was")
    assert disk.peek(("a",)) == _TEN.replace("line 7", "theirs").replace("line 2", "mine").encode()


@pytest.mark.parametrize(
    ("theirs", "hunk", "numbers"),
    [
        (_TEN.replace("line 2", "theirs"), _TWO, ""),
        (_TEN + "line 1\nline 2\nline 3\n", _TWO, " -2,3 +2,3 @@"),
        ("theirs\n" + _TEN, _TWO, " -2,3 +2,3 @@"),
        (_TEN.replace("line 2\n", "line 2 \n"), _TWO, ""),
        (_TEN.replace("line 7", "theirs"), "+mine\n", " -2,0 +3 @@"),
    ],
    ids=["gone", "twice", "moved", "other white space", "no lines of its own"],
)
def test_a_patch_whose_place_is_not_clear_is_still_a_conflict(
    disk: MemoryDisk, workspace: Workspace, theirs: str, hunk: str, numbers: str
) -> None:
    """Nothing is changed, in no file of it."""
    disk.put("a", theirs)
    disk.put("b", "line 1\n")
    name, patch = _patch(hunk, numbers=numbers)
    more = "--- a/b\n+++ b/b\n@@\n-line 1\n+mine\n"
    [refused] = _run(workspace, (name, {"patch": patch["patch"] + more}))
    assert "another writer changed it since" in str(refused.error)
    assert disk.peek(("a",)) == theirs.encode()
    assert disk.peek(("b",)) == b"line 1\n"


@pytest.mark.seldom
@settings(max_examples=4 * settings().max_examples)
@given(st.data())
def test_a_patch_beside_any_change_of_another_program_lands_on_the_lines_it_was_made_for(data: st.DataObject) -> None:
    """Or it is refused: lines of the same text stand all over the file."""
    old = data.draw(st.lists(st.sampled_from("xyz"), min_size=4, max_size=10), "the file")
    lines = list(enumerate(old))
    first = data.draw(st.integers(0, len(old) - 1), "the first line of the hunk")
    shown = lines[first : first + data.draw(st.integers(1, 4), "lines of the hunk")]
    gone = data.draw(st.integers(0, len(shown) - 1), "the line that goes")
    theirs = list(lines)
    for _ in range(data.draw(st.integers(1, 2), "their changes")):
        at = data.draw(st.integers(0, len(theirs) - 1), "their line")
        new = [(-1, letter) for letter in data.draw(st.lists(st.sampled_from("xyz"), max_size=2), "their text")]
        theirs[at : at + data.draw(st.integers(0, 1), "how many of them go")] = new
    disk = MemoryDisk({"a": _text(lines)})
    workspace = Workspace(disk)
    assert _run(workspace, ("read_file", {"path": "a"}))[0].ok
    disk.put("a", _text(theirs))
    body = "".join(f"{'-' if number == gone else ' '}{text}\n" for number, (_, text) in enumerate(shown)) + "+mine\n"
    [made] = _run(workspace, _patch(body, numbers=f" -{first + 1},{len(shown)} +{first + 1},{len(shown)} @@"))
    if not made.ok:
        assert disk.peek(("a",)) == _text(theirs).encode()
        return
    places = [at for at in range(len(theirs)) if theirs[at : at + len(shown)] == shown]
    if _text(theirs) == _text(lines) or not places:
        # Where they left the file as it was, or the same text stands at that number, nothing tells the lines apart.
        places = [first]
        assert [text for _, text in theirs[first : first + len(shown)]] == [text for _, text in shown]
    (at,) = places
    wanted = theirs[: at + gone] + theirs[at + gone + 1 : at + len(shown)] + [(-1, "mine")] + theirs[at + len(shown) :]
    assert disk.peek(("a",)) == _text(wanted).encode()


def _text(lines: list[tuple[int, str]]) -> str:
    return "".join(f"{text}\n" for _, text in lines)


def test_a_whole_file_is_not_written_over_what_was_not_seen(disk: MemoryDisk, workspace: Workspace) -> None:
    """It does not say what it was made from."""
    disk.put("a", "theirs")
    [refused] = _run(workspace, ("write_file", {"path": "a", "content": "mine"}))
    assert "another writer changed it since" in str(refused.error)


def test_undo_takes_back_the_edit_and_keeps_what_the_other_wrote(disk: MemoryDisk, workspace: Workspace) -> None:
    """The file is as the other program left it."""
    theirs = _TEN.replace("line 7", "theirs")
    disk.put("a", theirs)

    async def run() -> None:
        call = ToolCall("e", "edit_file", {"path": "a", "old": "line 2\n", "new": "mine\n"})
        outcome = await Runtime(Registry(workspace.tools())).run([call])
        await workspace.history.undo(outcome.batch_id)

    trio.run(run)
    assert disk.peek(("a",)) == theirs.encode()


_EDITOR = """
import sys
import trio
from toolrt import Registry, Runtime, ToolCall, Workspace

root, tool, first, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

async def main():
    runtime = Runtime(Registry(Workspace(root).tools()))
    refused = 0
    for number in range(rounds):
        line = 2 * (number % 10) + first
        old, new = f"<{line}:{number // 10}>", f"<{line}:{number // 10 + 1}>"
        at = f"@@ -{line + 1} +{line + 1} @@"
        edit = {"path": "a", "old": old, "new": new}
        if tool == "apply_patch":
            edit = {"patch": f"--- a/a\\n+++ b/a\\n{at}\\n-{old}\\n+{new}\\n"}
        outcome = await runtime.run([ToolCall(str(number), tool, edit)])
        refused += not outcome.results[0].ok
    print(refused)

print("ready", flush=True)
sys.stdin.readline()
trio.run(main)
"""


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("tool", ["edit_file", "apply_patch"])
def test_two_processes_edit_different_lines_and_none_is_refused_or_lost(tmp_path: Path, tool: str) -> None:
    """Each of 120 edits stands in the file."""
    rounds = 60
    (tmp_path / "a").write_text("".join(f"<{line}:0>\n" for line in range(20)))
    command = [sys.executable, "-c", _EDITOR, str(tmp_path), tool]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, str(first), str(rounds)], **pipes) for first in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate(timeout=120)[0].strip() for process in processes] == ["0", "0"]
    assert (tmp_path / "a").read_text() == "".join(f"<{line}:{rounds // 10}>\n" for line in range(20))

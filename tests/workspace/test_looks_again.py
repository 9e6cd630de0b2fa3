"""An edit whose place is still there is made, though another program has changed other lines of the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

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

root, first, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

async def main():
    runtime = Runtime(Registry(Workspace(root).tools()))
    refused = 0
    for number in range(rounds):
        line = 2 * (number % 10) + first
        edit = {"path": "a", "old": f"<{line}:{number // 10}>", "new": f"<{line}:{number // 10 + 1}>"}
        outcome = await runtime.run([ToolCall(str(number), "edit_file", edit)])
        refused += not outcome.results[0].ok
    print(refused)

print("ready", flush=True)
sys.stdin.readline()
trio.run(main)
"""


@pytest.mark.process
def test_two_processes_edit_different_lines_and_none_is_refused_or_lost(tmp_path: Path) -> None:
    """Each of 120 edits stands in the file."""
    rounds = 60
    (tmp_path / "a").write_text("".join(f"<{line}:0>\n" for line in range(20)))
    command = [sys.executable, "-c", _EDITOR, str(tmp_path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, str(first), str(rounds)], **pipes) for first in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate(timeout=120)[0].strip() for process in processes] == ["0", "0"]
    assert (tmp_path / "a").read_text() == "".join(f"<{line}:{rounds // 10}>\n" for line in range(20))

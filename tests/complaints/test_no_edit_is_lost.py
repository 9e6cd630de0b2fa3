"""Complaints about files: rows 1 to 19 of the research on peers.

Each is run on a real directory with real threads, again and again, and on the twin under many schedules; see
`_everywhere`.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import trio

import toolrt
from tests.workspace._everywhere import everywhere
from toolrt import READ, Registry, Runtime, State, ToolCall, sim
from toolrt.workspace import Directory, HardLink, MemoryDisk, Symlink, Wanted, Workspace


def edit(path: str, old: str, new: str, **more: Any) -> Any:
    return "edit_file", {"path": path, "old": old, "new": new, **more}


def write(path: str, content: str) -> Any:
    return "write_file", {"path": path, "content": content}


def read(path: str) -> Any:
    return "read_file", {"path": path}


def lines(*names: str) -> str:
    return "".join(f"{name}\n" for name in names)


def test_no_second_edit_replaces_the_first() -> None:
    """1. earendil-works/pi #2327: of two parallel edits of one file only one survived."""
    ending = everywhere({"a.txt": lines("one", "two")}, edit("a.txt", "one", "1"), edit("a.txt", "two", "2"))
    assert ending.files["a.txt"] == b"1\n2\n"


def test_no_edit_writes_back_what_it_read_too_early() -> None:
    """2. google-gemini/gemini-cli #26731: an edit wrote back a file that it had read before its siblings changed it."""
    names = [f"line{number}" for number in range(5)]
    ending = everywhere({"a.txt": lines(*names)}, *[edit("a.txt", name, name.upper()) for name in names])
    assert ending.files["a.txt"] == lines(*names).upper().encode()


def test_no_garbage_is_left_at_the_end() -> None:
    """3. google-gemini/gemini-cli #8372: parallel replaces left the end of a longer version behind a shorter one."""
    long = "x" * 5_000
    ending = everywhere(
        {"a.txt": f"one {long} two {long} end"},
        edit("a.txt", long, "", all=True),
        edit("a.txt", "one", "1"),
        edit("a.txt", "two", long),
        edit("a.txt", long, "2"),
    )
    assert ending.files["a.txt"] == b"1  2  end"


def test_no_partial_content_can_be_seen_on_the_twin() -> None:
    """4. google-gemini/gemini-cli PR #29244: 129 sizes of half-written files could be seen; here, at any step, two."""
    versions = {letter * 3_000 for letter in "ab"}

    async def program() -> None:
        workspace = Workspace(MemoryDisk({"a.txt": "a" * 3_000}))
        done = trio.Event()

        async def look() -> None:
            while not done.is_set():
                assert workspace.disk.peek(("a.txt",)).decode() in versions
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            calls = [ToolCall(f"{n}", *write("a.txt", "ab"[n % 2] * 3_000)) for n in range(4)]
            await Runtime(Registry(workspace.tools())).run(calls, State())
            done.set()

    for seed in range(40):
        execution = sim.run(program, sim.RandomWalk(seed=seed))
        assert execution.error is None, execution.error


def test_no_partial_content_can_be_seen_on_a_real_disk(tmp_path: Path) -> None:
    """4. The same with a thread that reads all the time."""
    versions = [letter * 200_000 for letter in "ab"]
    (tmp_path / "a.txt").write_text(versions[0])
    workspace = Workspace(tmp_path)
    seen, stop, begun = set(), threading.Event(), threading.Event()

    def look() -> None:
        while not stop.is_set():
            with open(tmp_path / "a.txt", "rb") as file:
                seen.add(file.read())
            begun.set()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        begun.wait()
        calls = [ToolCall(f"{n}", *write("a.txt", versions[n % 2])) for n in range(60)]
        trio.run(Runtime(Registry(workspace.tools())).run, calls, State())
    finally:
        stop.set()
        thread.join()
    assert seen <= {version.encode() for version in versions}


def test_no_file_ends_in_the_middle_of_a_word() -> None:
    """5. vybestack/llxprt-code #3239: a file ended mid-word, and both edits reported success."""
    text = "".join(f"word{number} " for number in range(2_000)) + "the end\n"
    ending = everywhere(
        {"a.txt": text}, edit("a.txt", "word0 ", ""), edit("a.txt", "the end", "THE END"), edit("a.txt", "word999 ", "")
    )
    assert ending.outcomes == ["ok"] * 3
    assert ending.files["a.txt"] == (
        text.replace("word0 ", "").replace("the end", "THE END").replace("word999 ", "").encode()
    )


def test_no_approval_makes_overlapping_paths_parallel() -> None:
    """6. lijunzh/koda #437: whether calls could run in parallel depended on their approval, not on their paths."""
    ending = everywhere(
        {"a.txt": "<0>"},
        *[edit("a.txt", f"<{n}>", f"<{n + 1}>") for n in range(4)],
        options=lambda: {"approve": lambda request: True},
    )
    assert ending.files["a.txt"] == b"<4>"


def test_no_data_is_lost_between_edit_and_write() -> None:
    """7. letta-ai/letta-code PR #377: edits and writes of one message ran at once and lost data."""
    ending = everywhere(
        {"a.txt": "old"}, edit("a.txt", "old", "newer"), write("a.txt", "whole"), edit("a.txt", "whole", "newest")
    )
    assert ending.outcomes == ["ok"] * 3
    assert ending.files["a.txt"] == b"newest"


def test_no_success_is_reported_for_an_edit_that_is_not_there() -> None:
    """8. netease-lcap/wave-agent #1256: six parallel edits, six successes, one applied."""
    names = [f"item{number}" for number in range(6)]
    ending = everywhere({"a.txt": lines(*names)}, *[edit("a.txt", f"{name}\n", f"{name}: done\n") for name in names])
    assert ending.outcomes == ["ok"] * 6
    assert ending.files["a.txt"] == lines(*[f"{name}: done" for name in names]).encode()


def test_no_replacement_is_lost_silently() -> None:
    """9. kirodotdev/Kiro #7814: of concurrent replacements some were lost and nobody was told."""
    ending = everywhere(
        {"a.txt": "one two three"},
        edit("a.txt", "one", "1"),
        edit("a.txt", "absent", "?"),
        edit("./a.txt", "two", "2"),
        edit("a.txt", "three", "3"),
    )
    assert ending.outcomes == ["ok", "error", "ok", "ok"]
    assert ending.files["a.txt"] == b"1 2 3"


def test_no_last_writer_wins_by_luck() -> None:
    """10. netclaw-dev/netclaw #1057: which of several writers of a file won was decided by who came last."""
    ending = everywhere({}, *[write("a.txt", f"version {number}") for number in range(5)])
    assert ending.files["a.txt"] == b"version 4"


def test_no_key_of_a_document_is_dropped() -> None:
    """11. patchloom/patchloom #892: concurrent changes of one YAML file dropped keys, all of them "ok"."""
    keys = ["name", "version", "author", "license"]
    ending = everywhere(
        {"c.yaml": lines(*[f"{key}: ?" for key in keys]), "link.yaml": Symlink("c.yaml")},
        *[
            edit(["c.yaml", "link.yaml"][number % 2], f"{key}: ?", f"{key}: {number}")
            for number, key in enumerate(keys)
        ],
    )
    assert ending.files["c.yaml"] == lines(*[f"{key}: {number}" for number, key in enumerate(keys)]).encode()


@pytest.mark.parametrize("apart", [0.0, 0.001, 1.0])
def test_no_edit_shortly_after_another_is_lost(apart: float) -> None:
    """12. fabro-sh/fabro PR #787: two edits a millisecond apart, and an import was gone."""

    async def program() -> bytes | str:
        workspace = Workspace(MemoryDisk({"a.go": "import (\n)\nfunc f() {\n}\n"}))
        async with Runtime(Registry(workspace.tools())).open_batch(State()) as batch:
            batch.submit(ToolCall("0", *edit("a.go", "import (\n", 'import (\n\t"fmt"\n')))
            await trio.sleep(apart)
            batch.submit(ToolCall("1", *edit("a.go", "{\n}", "{\n\tfmt.Println()\n}")))
            batch.seal()
            async for _ in batch:
                pass
        return workspace.snapshot()["a.go"]

    for seed in range(40):
        execution = sim.run(program, sim.RandomWalk(seed=seed))
        assert execution.value == b'import (\n\t"fmt"\n)\nfunc f() {\n\tfmt.Println()\n}\n', execution.error


def test_no_two_mechanisms_corrupt_one_file() -> None:
    """13. oraios/serena #1013: three edits by two mechanisms, each with a guard of its own, corrupted a file."""

    def other(workspace: Workspace) -> list[toolrt.Tool]:
        edit_file = next(tool for tool in workspace.tools() if tool.name == "edit_file")

        @toolrt.tool(claims=lambda input, state: edit_file.claims_for(input, state), owner=workspace)
        async def rename_symbol(ctx: Any, path: str, old: str, new: str) -> Any:
            return await edit_file.function(ctx, path=path, old=old, new=new, all=True)

        return [rename_symbol]

    ending = everywhere(
        {"a.py": "f(f(1))\n"},
        edit("a.py", "f(f(1))", "f(f(f(2)))"),
        ("rename_symbol", {"path": "./a.py", "old": "f", "new": "gg"}),
        edit("a.py", "gg(2)", "2"),
        more=other,
    )
    assert ending.outcomes == ["ok"] * 3
    assert ending.files["a.py"] == b"gg(gg(2))\n"


def test_no_precondition_is_checked_before_its_turn() -> None:
    """14. earendil-works/pi #6989: conditions were checked before the queue of the file, so of an old version."""
    ending = everywhere(
        {"a.txt": "one"},
        edit("a.txt", "one", "two"),
        edit("a.txt", "one", "stale"),  # was there when the batch began
        edit("a.txt", "two", "three"),  # was not
        write("new.txt", "one"),
        edit("new.txt", "one", "two"),  # not even the file was
    )
    assert ending.outcomes == ["ok", "error", "ok", "ok", "ok"]
    assert ending.files == {"a.txt": b"three", "new.txt": b"two"}


def test_no_missing_file_has_another_key_through_a_link() -> None:
    """15. earendil-works/pi #7041 and #9389: a missing file had another key through a link, and one more once made."""
    ending = everywhere(
        {"d": Directory(), "way": Symlink("d"), "far": Symlink("way")},
        write("way/new.txt", "<0>"),
        edit("d/new.txt", "<0>", "<1>"),
        edit("far/new.txt", "<1>", "<2>"),
        edit("d/../way/new.txt", "<2>", "<3>"),
        read("{root}/d/new.txt"),
    )
    assert ending.outcomes == ["ok"] * 5
    assert ending.results[-1][1] == "<3>"


@pytest.mark.seldom
def test_no_order_but_that_of_the_calls() -> None:
    """16. Observal/Axl #18: one canonical path, the original order of the calls, and the file read again at their turn.

    Here the approvals are given in the reverse order.
    """

    def options() -> dict[str, Any]:
        answered = [trio.Event() for _ in range(5)]
        answered[4].set()

        async def approve(request: Any) -> bool:
            index = request.call_index
            if index < 4:
                await answered[index + 1].wait()
            answered[index].set()
            return True

        return {"approve": approve}

    content = {"a.txt": "<0>", "link": Symlink("a.txt"), "hard": HardLink("a.txt"), "d": Directory()}
    names = ["a.txt", "link", "hard", "d/../a.txt", "./a.txt"]
    ending = everywhere(content, *[edit(name, f"<{n}>", f"<{n + 1}>") for n, name in enumerate(names)], options=options)
    assert ending.outcomes == ["ok"] * 5
    assert ending.files["a.txt"] == b"<5>"


def test_no_guard_rejects_the_edits_of_siblings() -> None:
    """17. anomalyco/opencode PR #4088: a guard against stale reads rejected the session's own parallel edits."""
    ending = everywhere(
        {"a.txt": "one two three"},
        read("a.txt"),
        edit("a.txt", "one", "1"),
        edit("a.txt", "two", "2"),
        write("a.txt", "1 2 three four"),
        edit("a.txt", "four", "4"),
    )
    assert ending.outcomes == ["ok"] * 5


def test_no_call_is_left_without_its_result() -> None:
    """18. link-assistant/hive-mind PR #1189: parallel edits failed partly, calls without result ended the session."""
    calls = [edit("a.txt", "one", "1"), edit("a.txt", "one", "2"), edit("b.txt", "x", "y"), edit("a.txt", "two", "2")]

    async def program() -> list[tuple[Any, str]]:
        workspace = Workspace(MemoryDisk({"a.txt": "one two"}))
        twice = [ToolCall("same id", *call) for call in calls]
        done = await Runtime(Registry(workspace.tools())).run(twice, State())
        return [(result.call_id, result.outcome.value) for result in done.results]

    for seed in range(40):
        value = sim.run(program, sim.RandomWalk(seed=seed)).value
        assert value == [("same id", outcome) for outcome in ("ok", "error", "error", "ok")]


def test_no_review_misses_what_was_written_before_it() -> None:
    """19. earendil-works/pi #2692: a review of a directory missed a file written before it in one message."""

    def reviewing(workspace: Workspace) -> list[toolrt.Tool]:
        def claims(input: Any, state: State) -> Any:
            return workspace.claims(input["path"], state, READ, wanted=Wanted.DIRECTORY, subtree=True)

        @toolrt.tool(claims=claims, owner=workspace)
        async def review(ctx: Any, path: str) -> list[str]:
            entry = workspace.identify(path, ctx.state, Wanted.DIRECTORY).entry
            await trio.lowlevel.checkpoint()
            return workspace.disk.listdir("/".join((workspace.disk.root, *entry)))

        return [review]

    ending = everywhere(
        {"plans": Directory(), "way": Symlink("plans")},
        ("review", {"path": "plans"}),
        write("way/a.md", "plan"),
        ("review", {"path": "plans"}),
        write("plans/b.md", "plan"),
        ("review", {"path": "."}),
        ("review", {"path": "way"}),
        more=reviewing,
    )
    assert [content for _, content, _ in ending.results][::2] == [[], ["a.md"], ["plans", "way"]]
    assert ending.results[-1][1] == ["a.md", "b.md"]


@pytest.mark.skipif(
    "list_dir" not in [tool.name for tool in Workspace(MemoryDisk()).tools()], reason="the workspace has no list_dir"
)
def test_no_listing_misses_what_was_written_before_it() -> None:
    """19. The same with the workspace's own tools."""
    ending = everywhere(
        {"plans": Directory()},
        ("list_dir", {"path": "plans"}),
        write("plans/a.md", "plan"),
        ("list_dir", {"path": "plans"}),
        write("plans/b.md", "plan"),
        ("list_dir", {"path": "plans"}),
    )
    seen = [str(content) for _, content, _ in ending.results][::2]
    assert ["a.md" in text for text in seen] == [False, True, True]
    assert ["b.md" in text for text in seen] == [False, False, True]

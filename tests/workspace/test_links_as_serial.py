"""Batches that change what names mean end as one call at a time, whatever the schedule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrt import MemoryDisk, Registry, Runtime, ToolCall, Workspace, by_claims, serial, sim
from toolrt.workspace import HardLink, Symlink

FILES = {
    "a.txt": "a\n",
    "b.txt": "b\n",
    "d/x.txt": "x\n",
    "d/y.txt": "y\n",
    "e/x.txt": "ex\n",
    "d/in": Symlink("y.txt"),
    "link": Symlink("a.txt"),
    "dl": Symlink("d"),
    "chain": Symlink("link"),
    "loop": Symlink("loop"),
    "hard": HardLink("b.txt"),
}

Call = tuple[str, dict[str, Any]]


def ended(calls: list[Call], lanes: Any, policy: Any = None) -> Any:
    """What a batch of `calls` gives: outcomes, contents and errors, the files and the state."""

    async def program() -> Any:
        workspace = Workspace(MemoryDisk(dict(FILES)))
        runtime = Runtime(Registry(workspace.tools()), lanes)
        done = await runtime.run([ToolCall(str(at), name, dict(input)) for at, (name, input) in enumerate(calls)])
        results = [(result.outcome.value, result.content, result.error) for result in done.results]
        assert workspace.claim_table.statistics() == {"groups": 0, "waiting": 0, "ghosts": 0, "nodes": 0}
        return results, workspace.snapshot(), done.state.to_json()

    execution = sim.run(program, policy)
    if execution.error is not None:
        raise execution.error
    return execution.value


def differences(calls: list[Call], seeds: int = 8) -> list[Any]:
    """Where a schedule of `calls` ends otherwise than one call at a time."""
    expected = ended(calls, serial)
    policies = [None, *(sim.RandomWalk(seed=seed) for seed in range(seeds)), sim.PCT(3, seed=1)]
    return [(expected, got) for policy in policies if (got := ended(calls, by_claims, policy)) != expected]


def write(path: str, content: str = "new\n") -> Call:
    return "write_file", {"path": path, "content": content}


def read(path: str) -> Call:
    return "read_file", {"path": path}


def delete(path: str, recursive: bool = False) -> Call:
    return "delete_path", {"path": path, "recursive": recursive}


def move(source: str, target: str) -> Call:
    return "move_path", {"source": source, "target": target}


PATCH_REMOVES = "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
PATCH_RENAMES = "diff --git a/a.txt b/sub/a.txt\nsimilarity index 100%\nrename from a.txt\nrename to sub/a.txt\n"

BATCHES: dict[str, list[Call]] = {
    "a deleted link is written": [delete("link"), write("link")],
    "a deleted link is written, read, and its old target too": [
        delete("link"),
        write("link"),
        read("link"),
        read("a.txt"),
        write("a.txt", "other\n"),
        read("chain"),
    ],
    "a moved link leaves a place to write below": [
        move("dl", "old"),
        write("dl/x.txt"),
        read("old/x.txt"),
        read("d/x.txt"),
    ],
    "another directory takes a link's place": [delete("dl"), move("e", "dl"), write("dl/x.txt"), read("d/x.txt")],
    "a link takes a directory's place": [move("d", "f"), move("dl", "d"), read("d/x.txt"), write("f/x.txt")],
    "a link is retargeted to a file that is named too": [
        delete("link"),
        move("chain", "link2"),
        move("link2", "link"),
        write("b.txt", "one\n"),
        write("link", "two\n"),
        read("b.txt"),
    ],
    "a directory with a link in it moves": [move("d", "g"), write("g/in"), read("g/y.txt"), write("g/y.txt", "z\n")],
    "a file goes and a directory takes its place": [delete("a.txt"), write("a.txt/below.txt"), read("a.txt/below.txt")],
    "a patch removes a file and a directory takes its place": [
        ("apply_patch", {"patch": PATCH_REMOVES}),
        write("a.txt/below.txt"),
        read("link"),
    ],
    "a patch renames a file and a directory takes its place": [
        ("apply_patch", {"patch": PATCH_RENAMES}),
        write("a.txt/below.txt"),
        read("sub/a.txt"),
    ],
    "a link goes, is searched and listed": [
        move("dl", "sub/dl"),
        ("list_dir", {"path": "dl"}),
        ("search", {"pattern": "x", "path": "sub"}),
        ("glob", {"pattern": "**", "path": "sub/dl"}),
        write("sub/dl"),
    ],
    "a circle is broken": [delete("loop"), write("loop"), read("loop")],
    "a hard link moves": [move("hard", "h2"), write("h2", "h\n"), read("b.txt"), write("hard"), read("hard")],
    "a chain loses its middle": [delete("link"), write("chain"), read("link"), move("chain", "c2"), read("c2")],
    "a link is edited after it moved": [
        move("link", "d/l"),
        ("edit_file", {"path": "d/l", "old": "a", "new": "A"}),
        ("multi_edit", {"path": "dl/l", "edits": [{"old": "A", "new": "B"}]}),
        read("a.txt"),
    ],
    "a directory is made where a link was": [
        delete("dl"),
        ("make_dir", {"path": "dl/deep"}),
        write("dl/deep/n.txt"),
        read("d/x.txt"),
    ],
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("calls", BATCHES.values(), ids=BATCHES.keys())
def test_named_batches_end_as_one_call_at_a_time(calls: list[Call]) -> None:
    """A batch that removes, moves or replaces links gives the results and files of its serial run."""
    assert differences(calls) == []


_PLACES = [
    "a.txt",
    "b.txt",
    "d",
    "d/x.txt",
    "d/in",
    "e",
    "e/x.txt",
    "link",
    "dl",
    "dl/x.txt",
    "dl/in",
    "chain",
    "hard",
    "loop",
    "new",
    "new/x.txt",
]
_places = st.sampled_from(_PLACES)
_CALLS = st.one_of(
    st.builds(write, _places, st.sampled_from(["1\n", "2\n"])),
    st.builds(write, _places, st.sampled_from(["1\n", "2\n"])),
    st.builds(read, _places),
    st.builds(delete, _places, st.booleans()),
    st.builds(move, _places, _places),
    st.builds(lambda path: ("make_dir", {"path": path}), _places),
    st.builds(lambda path: ("list_dir", {"path": path}), _places),
    st.builds(
        lambda path, old: ("edit_file", {"path": path, "old": old, "new": "e"}),
        _places,
        st.sampled_from(["a", "b", "x", "1"]),
    ),
)


@pytest.mark.seldom
@settings(max_examples=100)
@given(st.lists(_CALLS, min_size=2, max_size=7))
def test_drawn_batches_end_as_one_call_at_a_time(calls: list[Call]) -> None:
    """Whatever links a batch deletes, moves and writes through, each schedule ends as the serial run."""
    assert differences(calls, seeds=3) == []

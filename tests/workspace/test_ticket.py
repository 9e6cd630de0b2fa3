"""The mutation ticket everywhere: on a real directory with real threads, again and again, and on the twin.

`tests/contract/test_seed_ticket.py` has a test for each of the ticket's sentences; here its batches run under many
schedules, each execution is held against the oracle and all laws, and real threads have to come to the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

import toolrt
from tests.workspace._everywhere import Content, Everywhere, everywhere
from toolrt import Registry, Runtime, State, ToolCall, sim
from toolrt.workspace import HardLink, MemoryDisk, RealDisk, Symlink, Workspace


def edit(path: str, old: str, new: str) -> Any:
    return "edit_file", {"path": path, "old": old, "new": new}


def write(path: str, content: str) -> Any:
    return "write_file", {"path": path, "content": content}


def read(path: str) -> Any:
    return "read_file", {"path": path}


#: Edits of which each finds its place only when those before it have been made.
CHAIN = [edit("a.txt", f"<{number}>", f"<{number + 1}>") for number in range(6)]

START = {"a.txt": "<0>"}


#: Batches by what the ticket calls them: what stands there, the calls, their outcomes, and `a.txt` after.
BATCHES: dict[str, tuple[Content, Sequence[Any], str, bytes]] = {
    "multiple edit order": (START, CHAIN, "ok " * 6, b"<6>"),
    "against the dependence": (START, CHAIN[::-1], "error " * 5 + "ok", b"<1>"),
    "write and edit order": (
        START,
        [CHAIN[0], write("a.txt", "<3>"), CHAIN[3], CHAIN[1], write("a.txt", "<5>"), CHAIN[5]],
        "ok ok ok error ok ok",
        b"<6>",
    ),
    "a failed mutation releases its file": (
        START,
        [edit("a.txt", "absent", "x"), CHAIN[0], edit("a.txt", "", "x"), CHAIN[1]],
        "error ok error ok",
        b"<2>",
    ),
    "a failure stays with its call": (
        START,
        [edit("a.txt", "absent", ""), write("b.txt", ""), CHAIN[0], edit("none.txt", "x", "y"), write("c.txt", "")],
        "error ok ok error ok",
        b"<1>",
    ),
    "before the file exists": (
        {"d/x": "", "way": Symlink("."), "dangling": Symlink("a.txt")},
        [write("way/a.txt", "<0>"), CHAIN[0], edit("dangling", "<1>", "<2>"), edit("d/../way/a.txt", "<2>", "<3>")],
        "ok ok ok ok",
        b"<3>",
    ),
    "by seven names": (
        {
            "a.txt": "<0>",
            "link": Symlink("a.txt"),
            "chain": Symlink("link"),
            "way": Symlink("."),
            "d/up": Symlink(".."),
            "hard": HardLink("a.txt"),
        },
        [
            edit(name, f"<{number}>", f"<{number + 1}>")
            for number, name in enumerate(
                ["./a.txt", "{root}/a.txt", "d/../a.txt", "chain", "way/a.txt", "d/up/a.txt", "hard"]
            )
        ],
        "ok " * 7,
        b"<7>",
    ),
}


@pytest.mark.seldom
@pytest.mark.parametrize("name", BATCHES)
def test_batch_has_one_ending_everywhere(name: str) -> None:
    """That of its calls in the order of their index, under every schedule and on real threads."""
    content, calls, outcomes, left = BATCHES[name]
    ending = everywhere(content, *calls)
    assert ending.outcomes == outcomes.split()
    assert ending.files["a.txt"] == left


@pytest.mark.parametrize("kind", ["write_file", "edit_file"])
def test_different_file_mutations_overlap_with_the_tools_themselves(kind: str) -> None:
    """Every mutation of the workspace's own is under way before any has ended, under some schedule."""
    names = [f"{name}.txt" for name in "abc"]
    calls = [
        ToolCall(n, *((edit if kind == "edit_file" else lambda n, *_: write(n, "x"))(n, "<0>", "x"))) for n in names
    ]

    async def program() -> None:
        workspace = Workspace(MemoryDisk(dict.fromkeys(names, "<0>")))
        await Runtime(Registry(workspace.tools())).run(calls, State())

    most = 0
    for seed in range(40):
        running = 0
        for event in sim.run(program, sim.RandomWalk(seed=seed)).trace.events:
            running += (event.kind == "file.mutation_began") - (event.kind == "file.mutation_ended")
            most = max(most, running)
    assert most == len(names)


# Requirements.


def test_requirement_different_batches_on_a_real_directory(tmp_path: Path) -> None:
    """The same with real threads."""
    (tmp_path / "a.txt").write_text("|")
    workspace = Workspace(RealDisk(tmp_path))

    async def batch(name: str) -> None:
        calls = [ToolCall(f"{name}{n}", *edit("a.txt", "|", f"{name}{n}|")) for n in range(5)]
        done = await Runtime(Registry(workspace.tools())).run(calls, State())
        assert [result.outcome.value for result in done.results] == ["ok"] * 5

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for name in "wxyz":
                nursery.start_soon(batch, name)

    trio.run(program)
    text = (tmp_path / "a.txt").read_text()
    parts = sorted(text[at : at + 10] for at in range(0, 40, 10))
    assert parts == ["".join(f"{name}{n}" for n in range(5)) for name in "wxyz"]


def test_everywhere_would_notice_a_batch_without_order() -> None:
    """What these tests stand on: tools that claim nothing lose edits, and that is found."""

    def careless(workspace: Workspace) -> list[toolrt.Tool]:
        edit_file = next(tool for tool in workspace.tools() if tool.name == "edit_file")

        @toolrt.tool(safe=True, owner=workspace)
        async def careless_edit(ctx: Any, path: str, old: str, new: str) -> None:
            content = await workspace.disk.read(("a.txt",), 100)
            text = getattr(content, "content", content).decode().replace(old, new)
            await trio.lowlevel.checkpoint()
            assert edit_file
            workspace.disk.put("a.txt", text)  # type: ignore[attr-defined]

        return [careless_edit]

    calls = tuple(("careless_edit", input) for _, input in CHAIN[:3])
    with pytest.raises(AssertionError):
        Everywhere(START, calls, careless).on_the_twin()

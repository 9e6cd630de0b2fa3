"""Whole batches through the real runtime, in every schedule: one trace each, for tickets leave nothing to choose."""

from __future__ import annotations

from math import factorial

import pytest
from trio.lowlevel import checkpoint

import toolrt
from toolrt import WRITE, Claim, Registry, Runtime, ToolCall, ToolContext, sim
from toolrt.workspace import MemoryDisk, Workspace

#: Calls, files.
SIZES = [(4, 2), (6, 3), (5, 5), (5, 1)]


def _cells(count: int, files: int, *, tickets: bool):
    """Calls that each change one of the files: three steps, the one in the middle writes."""
    contents: list[sim.Cell[int]] = []

    async def body(ctx: ToolContext, index: int) -> str:
        await checkpoint()
        contents[index % files].set(index)
        await checkpoint()
        return str(index)

    if tickets:
        tool = toolrt.tool(
            name="change", claims=lambda input, state: [Claim(("file", str(input["index"] % files)), WRITE)]
        )(body)
    else:
        tool = toolrt.tool(name="change", safe=True)(body)
    registry = Registry([tool])
    calls = [ToolCall(str(index), "change", {"index": index}) for index in range(count)]

    async def program() -> tuple[int, ...]:
        contents[:] = [sim.Cell(-1, f"file {index}") for index in range(files)]
        await Runtime(registry).run(calls)
        return tuple(content.get() for content in contents)

    return program


def _files(count: int, files: int):
    """The same with the real `write_file` on the disk's twin."""
    calls = [
        ToolCall(str(index), "write_file", {"path": f"{index % files}.txt", "content": str(index)})
        for index in range(count)
    ]

    async def program() -> tuple[str, ...]:
        workspace = Workspace(MemoryDisk({f"{index}.txt": "" for index in range(files)}))
        outcome = await Runtime(Registry(workspace.tools())).run(calls)
        return tuple(result.outcome.value for result in outcome.results)

    return program


@pytest.mark.seldom
@pytest.mark.parametrize(("count", "files"), SIZES)
def test_file_tools_leave_one_trace(count: int, files: int) -> None:
    """Real file tools on the twin: one trace, and every step says what it touches, so nobody has to vouch."""
    report = sim.explore(_files(count, files), sim.DPOR())
    assert (report.verdict, report.claim) == (sim.PASS, "exhaustive(traces=1)")
    assert report.outcomes == {("ok",) * count: 1}


@pytest.mark.parametrize(("count", "files"), SIZES)
def test_claimed_calls_leave_one_trace(count: int, files: int) -> None:
    """Calls with tickets: one trace, and the last call of each file has the last word."""
    report = sim.explore(_cells(count, files, tickets=True), sim.DPOR("declared", samples=20))
    assert report.claim == "exhaustive(traces=1, accesses=declared, sampled=20)"
    last = tuple(max(index for index in range(count) if index % files == file) for file in range(files))
    assert set(report.outcomes) == {last}


@pytest.mark.parametrize(("count", "files"), SIZES)
def test_unclaimed_calls_race(count: int, files: int) -> None:
    """Without tickets, each order in which the calls write a file is a trace of its own: 4, 8, 1 and 120."""
    report = sim.explore(_cells(count, files, tickets=False), sim.DPOR("declared", samples=0))
    assert report.executions == factorial(count // files) ** files

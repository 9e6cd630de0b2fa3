"""How many executions a second the explorer makes, beside one `trio.run` for each.

Run it as ``python tests/benchmarks/exploration.py``.  It prints one row for each program: executions a second
under `sim.explore` with clock, deadlock detection and recording on, and their ratio to one bare `trio.run` for
each in the same process.  Rounds of both alternate, and medians are taken, because the machine is never quiet.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.lowlevel import checkpoint

import toolrt
from toolrt import sim

Program = Callable[[], Awaitable[Any]]

ROUNDS = 9
EXECUTIONS = 1_500


def lost_update() -> Program:
    """Three tasks that each read, checkpoint and write a shared cell twice: 1,680 schedules."""

    async def program() -> int:
        cell = sim.Cell(0, name="x")

        async def add() -> None:
            for _ in range(2):
                seen = cell.get()
                await checkpoint()
                cell.set(seen + 1)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(add)
        return cell.get()

    return program


def checkpoints() -> Program:
    """One task that passes a hundred checkpoints: what a step costs."""

    async def program() -> None:
        for _ in range(100):
            await checkpoint()

    return program


def empty() -> Program:
    """A program that returns at once: what an execution costs."""

    async def program() -> None:
        pass

    return program


@toolrt.tool(safe=True)
async def look(ctx: toolrt.ToolContext) -> None:
    """Say something and pass two checkpoints."""
    ctx.progress("looking")
    await checkpoint()
    await checkpoint()


@toolrt.tool(claims=[toolrt.Claim("file", toolrt.WRITE)])
async def change(ctx: toolrt.ToolContext) -> toolrt.ToolOutput:
    """Hold the one file over a checkpoint, and leave a mark in the state."""
    await checkpoint()
    index = ctx.call_index
    return toolrt.ToolOutput(index, modifiers=[lambda state: state.set("last", index)])


def batch() -> Program:
    """A batch of six calls: three that look, three that change one file."""
    registry = toolrt.Registry([look, change])
    calls = [toolrt.ToolCall(str(index), name) for index, name in enumerate(["look", "change"] * 3)]

    async def program() -> toolrt.State:
        done = await toolrt.Runtime(registry).run(calls)
        return done.state

    return program


#: Each row: its name, and what makes its program.
PROGRAMS: list[tuple[str, Callable[[], Program]]] = [
    ("lost update, 3 tasks x 2 rounds", lost_update),
    ("100 checkpoints in one task", checkpoints),
    ("empty", empty),
    ("a batch of six calls", batch),
]


def explored(program: Program) -> float:
    """Give executions a second under the explorer."""
    begun = time.perf_counter()
    sim.explore(program, sim.Random(sim.RandomWalk(seed=1), EXECUTIONS))
    return EXECUTIONS / (time.perf_counter() - begun)


def bare(program: Program) -> float:
    """Give executions a second with one `trio.run` each."""
    runs = EXECUTIONS // 3
    begun = time.perf_counter()
    for _ in range(runs):
        trio.run(program)
    return runs / (time.perf_counter() - begun)


def main() -> None:
    """Print the table."""
    print(f"{'program':<34}{'explored/s':>12}{'trio.run/s':>12}{'ratio':>8}")
    for name, factory in PROGRAMS:
        program = factory()
        explored(program), bare(program)
        pairs = [(explored(program), bare(program)) for _ in range(ROUNDS)]
        fast, slow = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        print(f"{name:<34}{fast:>12,.0f}{slow:>12,.0f}{ratio:>8.2f}")


if __name__ == "__main__":
    main()

"""How many executions a second the explorer makes, beside one `trio.run` for each.

Run it as ``python tests/benchmarks/exploration.py``.  It prints one row for each program: executions a second
under `sim.explore` with clock, deadlock detection and recording on, and their ratio to one bare `trio.run` for
each in the same process.  Rounds of both alternate, and medians are taken, because the machine is never quiet.
Then it counts: the schedules of programs with known numbers of them, and how soon samplers find known bugs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import programs
import trio
from trio.lowlevel import checkpoint

import toolrt
from toolrt import sim

Program = Callable[[], Awaitable[Any]]

ROUNDS = 9
EXECUTIONS = 1_500


def lost_update() -> Program:
    """Three tasks that each read, checkpoint and write a shared cell twice: 1,680 schedules."""
    return programs.lost_update(3, 2)[0]


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


#: Each row: its name, and what makes its program and its check.
COUNTED: list[tuple[str, programs.Made]] = [
    ("lost update 2x1", programs.lost_update(2, 1)),
    ("lost update 3x1", programs.lost_update(3, 1)),
    ("lost update 3x2", programs.lost_update(3, 2)),
    ("reorder 3", programs.reorder(3)),
    ("reorder 4", programs.reorder(4)),
    ("dining 2", programs.dining(2)),
    ("dining 3", programs.dining(3)),
    ("bounded buffer 2p2c", programs.bounded_buffer(2, 2)),
]

HUNTED: list[tuple[str, programs.Made]] = [
    ("needle 5x3", programs.needle(5, 3)),
    ("uneven 25", programs.uneven(25)),
    ("reorder 10", programs.reorder(10)),
    ("two stages 6", programs.twostage(6)),
    ("bounded buffer 2p2c", programs.bounded_buffer(2, 2)),
    ("dining 5", programs.dining(5)),
]

SAMPLERS = [sim.RandomWalk(0), sim.PCT(1, 0), sim.PCT(3, 0), sim.POS(0), sim.URW(0)]

SEEDS = 100


class Hunt(sim.Search):
    """A portfolio's draws until one shows the bug; its first two executions are no draws and are left out."""

    def __init__(self, seed: int) -> None:
        self.search = sim.Portfolio(502, seed=seed).begin()
        self.search.policy(), self.search.policy()
        self.executions = 0
        self.found = False

    def begin(self) -> sim.Search:
        """Begin: each hunt is for one exploration."""
        return self

    def policy(self) -> sim.Policy | None:
        """The portfolio's, unless the bug was found."""
        return None if self.found else self.search.policy()

    def learn(self, execution: sim.Execution) -> None:
        """Count."""
        self.executions += 1


def hunted(made: programs.Made, seed: int) -> int | None:
    """Give the number of executions that the portfolio took, or None when 500 were not enough."""
    program, check = made
    hunt = Hunt(seed)

    def note(execution: sim.Execution) -> bool:
        hunt.found |= execution.error is not None if check is None else not check(execution)
        return True

    sim.explore(program, hunt, note)
    return hunt.executions if hunt.found else None


def main() -> None:
    """Print the tables."""
    print(f"{'program':<34}{'explored/s':>12}{'trio.run/s':>12}{'ratio':>8}")
    for name, factory in PROGRAMS:
        program = factory()
        explored(program), bare(program)
        pairs = [(explored(program), bare(program)) for _ in range(ROUNDS)]
        fast, slow = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        print(f"{name:<34}{fast:>12,.0f}{slow:>12,.0f}{ratio:>8.2f}")

    print(f"\n{'program':<22}{'estimate':>10}{'schedules':>11}{'failing':>9}   with at most 0, 1, 2 preemptions")
    for name, (program, check) in COUNTED:
        report = sim.explore(program, sim.Exhaustive(), check)
        assert report.complete
        bounded = [sim.explore(program, sim.Bounded(bound), check).executions for bound in range(3)]
        estimate = sim.estimate(program).schedules
        print(f"{name:<22}{estimate:>10,.0f}{report.executions:>11,}{report.failed:>9,}   {bounded}")

    print(f"\n{'share of 2,000 that fail':<22}", *(f"{sampler!r:>22}" for sampler in SAMPLERS))
    for name, made in HUNTED:
        program, check = made
        shares = [sim.explore(program, sim.Random(sampler, 2_000), check).failed / 2_000 for sampler in SAMPLERS]
        takes = [takes for seed in range(SEEDS) if (takes := hunted(made, seed)) is not None]
        print(f"{name:<22}", *(f"{share:>22.3f}" for share in shares))
        print(
            f"{'':<22} portfolio: {len(takes)} of {SEEDS} seeds, median {statistics.median(takes)}, most {max(takes)}"
        )


if __name__ == "__main__":
    main()

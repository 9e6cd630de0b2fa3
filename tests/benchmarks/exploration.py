"""How many executions a second the explorer makes, beside one `trio.run` for each.

Run it as ``python tests/benchmarks/exploration.py``.  It prints one row for each program: executions a second
under `sim.explore` with clock, deadlock detection and recording on, and their ratio to one bare `trio.run` for
each in the same process.  Rounds of both alternate, and medians are taken, because the machine is never quiet.
Then it shows what an execution of the lost update is made of, what a step costs beside many tasks, how fast the
reduction is beside a sampler, what it costs a step in long executions, and how long one failure takes to its
explanation.  Then it counts: the schedules and the classes of programs with known numbers of them, and how soon
samplers find known bugs.

``--speed`` stops before it counts.  ``--checked`` prints one table alone: walks, portfolio and reduction in
times one `trio.run` each.  ``--json`` prints each row as a JSON object.  ``--fast-check DIR`` names a
directory in which ``npm install fast-check`` was run; its scheduler is then measured on the lost update too, with node.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import programs
import trio
from _rows import Rows
from trio.lowlevel import checkpoint

import toolrt
from toolrt import sim
from toolrt.sim.exploring._repeats import Repeats

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


def explored(
    program: Program, policy: sim.Policy | None = None, check: Callable[[sim.Execution], bool] | None = None
) -> float:
    """Give executions a second under the explorer."""
    begun = time.perf_counter()
    sim.explore(program, sim.Random(policy or sim.RandomWalk(seed=1), EXECUTIONS), check)
    return EXECUTIONS / (time.perf_counter() - begun)


def drawn() -> float:
    """Give how often a second a random walk of the lost update's eleven steps is drawn, four of them being forced."""
    walk, info = sim.RandomWalk(seed=1), sim.RunInfo(0, 100)
    begun = time.perf_counter()
    for index in range(EXECUTIONS):
        policy = walk.derive(index)
        policy.start(info)
        for _ in range(7):
            policy.pick_any(3)
    return EXECUTIONS / (time.perf_counter() - begun)


def in_one_run(program: Program) -> float:
    """Give executions a second one after the other in one Trio run, scheduled by Trio itself."""

    async def main() -> None:
        for _ in range(EXECUTIONS):
            await program()

    begun = time.perf_counter()
    trio.run(main)
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

#: What the reduction runs one execution of each class of.
REDUCED: list[tuple[str, programs.Made]] = [
    ("lost update 2x1", programs.lost_update(2, 1)),
    ("lost update 3x1", programs.lost_update(3, 1)),
    ("lost update 3x2", programs.lost_update(3, 2)),
    ("reorder 3", programs.reorder(3)),
    ("reorder 4", programs.reorder(4)),
    ("dining 2", programs.dining(2)),
    ("dining 3", programs.dining(3)),
    ("dining 4", programs.dining(4)),
    ("dining 5", programs.dining(5)),
]

#: Calls and files.
TOOLS = [(4, 2), (6, 3), (5, 5), (5, 1)]

HUNTED: list[tuple[str, programs.Made]] = [
    ("needle 5x3", programs.needle(5, 3)),
    ("uneven 25", programs.uneven()),
    ("reorder 10", programs.reorder(10)),
    ("two stages 6", programs.twostage(6)),
    ("bounded buffer 2p2c", programs.bounded_buffer(2, 2)),
    ("dining 5", programs.dining(5)),
]

SAMPLERS: list[sim.Policy] = [sim.RandomWalk(0), sim.PCT(1, 0), sim.PCT(3, 0), sim.POS(0), sim.URW(0)]

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


def print_reduced(rows: Rows) -> None:
    """Print what the reduction runs, and how fast beside a sampler."""
    rows.begin(
        "reduced",
        {"program": "<22", "classes": ">9,", "deadlocks": ">10,", "a second": ">10,.0f", "of a sampler": ">13.2f"},
    )
    for name, (program, _) in REDUCED:
        begun = time.perf_counter()
        report = sim.explore(program, sim.DPOR())
        rate = report.executions / (time.perf_counter() - begun)
        assert report.complete
        beside = statistics.median(explored(program) for _ in range(3))
        rows.add(name, report.executions, report.failed, rate, rate / beside)
    columns = {"schedules": ">16,", "no tickets": ">12,", "file tools": ">12,", "orders of writes": ">18,"}
    rows.begin("tools", {"calls of 3 steps": "<22", **columns})
    for calls, files in TOOLS:
        loose = sim.explore(programs.unordered_tools(calls, files)[0], sim.DPOR("declared", samples=0))
        real = sim.explore(programs.file_tools(calls, files)[0], sim.DPOR())
        assert real.verdict is sim.PASS
        schedules = math.factorial(3 * calls) // math.factorial(3) ** calls
        orders = math.factorial(calls) // math.factorial(calls // files) ** files
        rows.add(f"{calls} on {files}", schedules, loose.executions, real.executions, orders)


def handed_over(steps: int) -> Program:
    """Two tasks that hand each other values: nearly every step is in a race."""

    async def program() -> None:
        send, receive = trio.open_memory_channel[int](1)

        async def fill() -> None:
            async with send:
                for number in range(2 * steps // 7):
                    await send.send(number)

        async def drain() -> None:
            async for _ in receive:
                pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fill)
            nursery.start_soon(drain)

    return program


def added(steps: int) -> Program:
    """Three tasks that add to one cell, step by step."""

    async def program() -> None:
        cell = sim.Cell(0)

        async def add() -> None:
            for _ in range(steps // 3):
                cell.set(cell.get() + 1)
                await checkpoint()

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(add)

    return program


def print_long(rows: Rows) -> None:
    """Print what the reduction costs a step, with the execution itself, in short executions and in long ones."""
    rows.begin("long", {"a step of the reduction": "<32", "steps": ">8,", "us": ">8.1f"})
    for name, make in (("values over a channel", handed_over), ("one cell", added)):
        for length in (100, 1_000, 10_000):
            spent = []
            for _ in range(3):
                steps = [0]

                def count(execution: sim.Execution, steps: list[int] = steps) -> bool:
                    steps[0] += len(execution.choices)
                    return True

                begun = time.process_time()
                sim.explore(make(length), sim.DPOR(samples=0), count, 20, step_limit=20_000)
                spent.append(1e6 * (time.process_time() - begun) / steps[0])
            rows.add(name, length, min(spent))


def print_explained(rows: Rows) -> None:
    """Print how long one failure takes to its shrunk explanation, in programs of about a hundred steps."""
    rows.begin("explained", {"one failure, explained": "<32", "steps": ">8,", "seconds": ">8.2f"})
    for name, (program, check) in (
        ("lost update 8x11", programs.lost_update(8, 11)),
        ("reorder 48", programs.reorder(48)),
        ("dining 24", programs.dining(24)),
    ):
        spent, steps = [], 0
        for _ in range(3):
            report = sim.explore(program, sim.Portfolio(300), check)
            if not report.failures:
                continue
            begun = time.perf_counter()
            report.failures[0].explain()
            spent.append(time.perf_counter() - begun)
            steps = len(report.failures[0].schedule)
        if spent:
            rows.add(name, steps, min(spent))


def locking() -> Program:
    """Three tasks that lock, wait and send: what Trio's primitives report."""

    async def program() -> None:
        lock, event = trio.Lock(), trio.Event()
        send, receive = trio.open_memory_channel[int](1)

        async def one(number: int) -> None:
            async with lock:
                pass
            event.set()
            await event.wait()
            if number:
                await send.send(number)
            else:
                await receive.receive()

        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(one, number)

    return program


def beside_many(tasks: int) -> Program:
    """So many tasks that each pass ten checkpoints."""

    async def one() -> None:
        for _ in range(10):
            await checkpoint()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(one)

    return program


def walked(program: Program, executions: int) -> float:
    """Give the seconds of processor time that so many random walks take."""
    begun = time.process_time()
    sim.explore(program, sim.Random(sim.RandomWalk(1), executions), step_limit=100_000)
    return time.process_time() - begun


def print_parts(rows: Rows) -> None:
    """Print what an execution is made of, and what a step costs beside many tasks."""
    program, nothing, locks = lost_update(), empty(), locking()
    ways: list[tuple[str, Callable[[], float]]] = [
        ("one trio.run for each", lambda: bare(program)),
        ("in one run, scheduled by Trio itself", lambda: in_one_run(program)),
        ("drawing alone, a generator and eleven choices", drawn),
        ("explored, random walk", lambda: explored(program)),
        ("the same, shown to a check", lambda: explored(program, check=lambda execution: True)),
        ("explored, POS", lambda: explored(program, sim.POS(1))),
        ("a program that returns at once", lambda: explored(nothing)),
        ("locks, events, channels", lambda: explored(locks)),
        ("the same, shown to a check", lambda: explored(locks, check=lambda execution: True)),
    ]
    for _, rate in ways:
        rate()
    rounds = [[1e6 / rate() for _, rate in ways] for _ in range(ROUNDS)]
    rows.begin("parts", {"an execution of the lost update": "<44", "us": ">8.1f", "of trio.run": ">12.2f"})
    for column, (name, _) in enumerate(ways):
        spent = statistics.median(times[column] for times in rounds)
        rows.add(name, spent, statistics.median(times[column] / times[0] for times in rounds))
    columns = {"a step beside so many tasks": "<44,", "us": ">8.2f", "in trio.run": ">12.2f", "ratio": ">8.2f"}
    rows.begin("steps", columns)
    for tasks in (1, 10, 100, 1_000):
        program, steps = beside_many(tasks), 11 * tasks + 2
        repeats = max(4, 20_000 // steps)
        # Some executions are run twice.
        runs = repeats + sum(Repeats.is_due(index, steps) for index in range(1, 1 + repeats))
        pairs = []
        for _ in range(3):
            # The first execution, and its second run at the end, are reported in full: they are not what is measured.
            spent = walked(program, 1 + repeats) - walked(program, 1)
            begun = time.process_time()
            for _ in range(repeats):
                trio.run(program)
            pairs.append((spent / runs, (time.process_time() - begun) / repeats))
        ours, theirs = (1e6 * statistics.median(column) / steps for column in zip(*pairs, strict=True))
        rows.add(tasks, ours, theirs, ours / theirs)


def counted_in_a_dict() -> Program:
    """Three tasks that add to one key of a plain dict, 150 steps each: what tracking costs."""

    async def program() -> None:
        counts = {"all": 0}

        async def add() -> None:
            for _ in range(150):
                counts["all"] += 1
                await checkpoint()

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(add)

    return program


#: What is explored with a check that looks at the outcome alone: its name, what makes it, how many executions, and
#: whether plain objects are tracked.
CHECKED: list[tuple[str, Callable[[], Program], int, bool]] = [
    ("lost update 3x2", lost_update, 600, False),
    ("a plain dict, 450 steps, tracked", counted_in_a_dict, 200, True),
    ("1,000 steps", lambda: added(1_000), 40, False),
    ("10,000 steps", lambda: added(10_000), 6, False),
    ("100 tasks", lambda: beside_many(100), 30, False),
]


def print_checked(rows: Rows) -> None:
    """Print how fast programs are explored, in times one `trio.run` each: medians, least and most."""
    columns = {"least": ">8.2f", "times trio.run": ">16.2f", "most": ">8.2f", "second runs": ">12"}
    rows.begin("checked", {"explored": "<56", **columns})

    def check(execution: sim.Execution) -> bool:
        return execution.error is None

    ways: list[tuple[str, Callable[[int], sim.Strategy], Any]] = [
        ("walk", lambda n: sim.Random(sim.RandomWalk(1), n), None),
        ("walk with check", lambda n: sim.Random(sim.RandomWalk(1), n), check),
        ("Portfolio with check", sim.Portfolio, check),
        ("DPOR", lambda n: sim.DPOR(samples=0), None),
    ]
    for name, make, executions, track in CHECKED:
        program = make()
        times: dict[str, list[float]] = {way: [] for way, *_ in ways}
        again = {}
        for _ in range(ROUNDS):
            begun = time.process_time()
            for _ in range(executions):
                trio.run(program)
            bare_seconds = (time.process_time() - begun) / executions
            for way, strategy, judge in ways:
                begun = time.process_time()
                options: dict[str, Any] = {"step_limit": 100_000, "track": track}
                report = sim.explore(program, strategy(executions), judge, executions, **options)
                spent = time.process_time() - begun
                times[way].append(bare_seconds * report.executions / spent)
                again[way] = f"{report.repeated} of {report.executions}"
        for way, found in times.items():
            rows.add(f"{name}: {way}", min(found), statistics.median(found), max(found), again[way])


def print_neighbour(rows: Rows, directory: Path) -> None:
    """Print how fast fast-check's scheduler is on the lost update, in turn with this one."""
    script = Path(__file__).with_name("fast_check.mjs")
    rows.begin(
        "neighbour", {"lost update": "<22", "explored/s": ">12,.0f", "fast-check/s": ">14,.0f", "ratio": ">8.2f"}
    )
    for tasks, rounds in ((3, 2), (5, 3)):
        pairs = []
        for _ in range(3):
            command = ["node", str(script), str(tasks), str(rounds), "20000"]
            printed = subprocess.run(command, cwd=directory, capture_output=True, check=True).stdout
            pairs.append((explored(programs.lost_update(tasks, rounds)[0]), json.loads(printed)["rate"]))
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        rows.add(f"{tasks}x{rounds}", ours, theirs, ours / theirs)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast-check", type=Path, help="where fast-check was installed")
    parser.add_argument("--speed", action="store_true", help="show speed alone")
    parser.add_argument("--checked", action="store_true", help="show the table of walks, portfolio and reduction alone")
    parser.add_argument("--json", action="store_true", help="print each row as a JSON object")
    options = parser.parse_args()
    rows = Rows(options.json)
    if options.checked:
        print_checked(rows)
        return
    rows.begin("speed", {"program": "<34", "explored/s": ">12,.0f", "trio.run/s": ">12,.0f", "ratio": ">8.2f"})
    for name, factory in PROGRAMS:
        program = factory()
        explored(program), bare(program)
        pairs = [(explored(program), bare(program)) for _ in range(ROUNDS)]
        fast, slow = (statistics.median(column) for column in zip(*pairs, strict=True))
        rows.add(name, fast, slow, statistics.median(one / other for one, other in pairs))

    if options.fast_check is not None:
        print_neighbour(rows, options.fast_check)
    print_parts(rows)
    print_checked(rows)
    print_reduced(rows)
    print_long(rows)
    print_explained(rows)
    if options.speed:
        return

    columns = {"estimate": ">10,.0f", "schedules": ">11,", "failing": ">9,", "with at most 0, 1, 2 preemptions": ">34"}
    rows.begin("counted", {"program": "<22", **columns})
    for name, (program, check) in COUNTED:
        report = sim.explore(program, sim.Exhaustive(), check)
        assert report.complete
        bounded = [sim.explore(program, sim.Bounded(bound), check).executions for bound in range(3)]
        rows.add(name, sim.estimate(program).schedules, report.executions, report.failed, bounded)

    columns = {repr(sampler): ">22.3f" for sampler in SAMPLERS}
    found = {f"seeds of {SEEDS}": ">14,", "median": ">8.0f", "most": ">6,"}
    rows.begin("share of 2,000 that fail, and what the portfolio takes", {"program": "<22", **columns, **found})
    for name, made in HUNTED:
        program, check = made
        shares = [sim.explore(program, sim.Random(sampler, 2_000), check).failed / 2_000 for sampler in SAMPLERS]
        takes = [takes for seed in range(SEEDS) if (takes := hunted(made, seed)) is not None]
        rows.add(name, *shares, len(takes), statistics.median(takes) if takes else None, max(takes, default=None))


if __name__ == "__main__":
    main()

"""Explorations by several processes show what one shows."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from tests.sim._divided import STRATEGIES, fine, pid, reduced, shown
from tests.sim._programs import withholding
from toolrt import probe, sim
from toolrt.errors import DefinitionRefused

# Test runners have threads of their own; a worker runs nothing but the simulator.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

# ---------------------------------------------------------------- the same as one job


@pytest.mark.drawn(8)
@pytest.mark.process
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize(("name", "arguments"), [("lost_update", (3, 2)), ("dining", (3,)), ("bounded_buffer", (2, 2))])
def test_jobs_show_what_one_job_shows(programs, name: str, arguments, strategy: sim.Strategy) -> None:
    """The same verdict, claim, counts, outcomes in their order, and failures in theirs."""
    program, check = getattr(programs, name)(*arguments)
    assert shown(sim.explore(program, strategy, check, jobs=3)) == shown(sim.explore(program, strategy, check))


@pytest.mark.seldom
@pytest.mark.process
@settings(max_examples=10)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.sampled_from([sim.Exhaustive(), sim.Bounded(1)]))
def test_jobs_run_every_schedule_once(lengths: list[int], strategy: sim.Strategy) -> None:
    """Whatever the tree, also when there is less to do than there are processes."""

    async def program() -> None:
        async def steps(count: int) -> None:
            for _ in range(count - 1):
                await checkpoint()

        async with trio.open_nursery() as nursery:
            for length in lengths:
                nursery.start_soon(steps, length)

    assert shown(sim.explore(program, strategy, jobs=2)) == shown(sim.explore(program, strategy))


@pytest.mark.drawn(3)
@pytest.mark.process
@pytest.mark.parametrize("strategy", [sim.DPOR(), sim.DPOR("declared")], ids=str)
@pytest.mark.parametrize(
    ("name", "arguments"), [("lost_update", (3, 1)), ("reorder", (4,)), ("dining", (3,)), ("bounded_buffer", (2, 2))]
)
def test_jobs_reduce_as_one_job_does(programs, name: str, arguments, strategy: sim.Strategy) -> None:
    """One execution of each trace whoever runs it: the same verdict, claim, counts and outcomes."""
    program, check = getattr(programs, name)(*arguments)
    assert reduced(sim.explore(program, strategy, check, jobs=3)) == reduced(sim.explore(program, strategy, check))


@pytest.mark.seldom
def test_jobs_reduce_with_a_cancel_and_a_clock() -> None:
    """What else can happen is divided like anything else."""

    async def program() -> tuple[int, bool]:
        cell = sim.Cell(0, "x")

        async def add() -> None:
            seen = cell.get()
            await checkpoint()
            cell.set(seen + 1 + sim.choose(2))

        with trio.move_on_after(1) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(add)
                nursery.start_soon(add)
        return cell.get(), scope.cancelled_caught

    for actors in ({"cancel_at": "any"}, {"clock": "explored", "clock_moves": 1}):
        one, two = (sim.explore(program, sim.DPOR(), fine, jobs=jobs, **actors) for jobs in (1, 2))  # type: ignore[arg-type]
        assert reduced(one) == reduced(two)
        assert one.complete


@pytest.mark.seldom
@pytest.mark.parametrize("jobs", [1, 2])
def test_reduction_is_gone_on_with(jobs: int, programs, tmp_path: Path) -> None:
    """Sittings of 100 executions show in the end what one sitting does; then the file is gone."""
    program, _ = programs.reorder(4)
    path = tmp_path / "search"
    sittings = 0
    while not sittings or path.exists():
        report = sim.explore(program, sim.DPOR(), fine, 100, jobs, checkpoint=path)
        sittings += 1
    assert sittings > 2
    assert reduced(report) == reduced(sim.explore(program, sim.DPOR(), fine))


@pytest.mark.process
def test_jobs_leave_out_no_outcome_where_a_step_withholds_what_decides() -> None:
    """Whether it is noticed depends on which process sees what; the outcomes do not."""
    report = sim.explore(withholding, sim.DPOR(), fine, jobs=2)
    assert report.complete
    assert report.claim.startswith("exhaustive(")
    assert report.outcomes.keys() == sim.explore(withholding, sim.DPOR(), fine).outcomes.keys()


@pytest.mark.seldom
@pytest.mark.process
def test_all_processes_work() -> None:
    """Each takes its share: the master runs the first schedule only."""
    report = sim.explore(pid, sim.Exhaustive(), fine, jobs=2)
    assert len(report.outcomes) == 3
    assert report.outcomes[os.getpid()] == 1
    assert report.executions == 2520


@pytest.mark.seldom
@pytest.mark.process
def test_processes_report_nothing_where_nobody_looks() -> None:
    """Where no check reads what steps touch, it is not reported by them either; what they show is the same."""

    async def program() -> tuple[bool, int]:
        reported = probe.sink is not None
        await pid()
        return reported, os.getpid()

    alone = sim.explore(program, sim.Exhaustive(), jobs=2)
    assert all(reported == (process == os.getpid()) for reported, process in alone.outcomes)
    read = sim.explore(program, sim.Exhaustive(), lambda execution: bool(execution.trace.steps), jobs=2)
    assert all(reported for reported, _ in read.outcomes)
    assert sum(alone.outcomes.values()) == sum(read.outcomes.values()) == 2520


@pytest.mark.process
def test_nothing_is_left_of_the_processes() -> None:
    """Also when the exploration was refused or broken off."""
    sim.explore(pid, sim.Portfolio(20), jobs=2)
    assert multiprocessing.active_children() == []


def test_outcomes_of_any_kind_are_counted() -> None:
    """A value that no other process could send is made again here; equal ones are one outcome."""

    class Odd:
        def __init__(self, value: int) -> None:
            self.value = value
            self.lock = threading.Lock()

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Odd) and other.value == self.value

        def __hash__(self) -> int:
            return self.value

        def __repr__(self) -> str:
            return f"Odd({self.value})"

    async def program() -> Odd:
        order: list[int] = []

        async def arrive(number: int) -> None:
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(arrive, number)
        return Odd(order[0])

    one, two = (sim.explore(program, sim.Exhaustive(), fine, jobs=jobs) for jobs in (1, 2))
    assert one.outcomes == two.outcomes == {Odd(number): 6 for number in range(4)}
    assert list(map(str, one.outcomes)) == list(map(str, two.outcomes))


@pytest.mark.process
def test_failures_of_jobs_can_be_explained(programs) -> None:
    """A failure is an execution of this process, whoever found it."""
    program, check = programs.lost_update(2, 1)
    (failure, *_) = sim.explore(program, sim.Exhaustive(), check, jobs=2).failures
    assert failure.minimal.switches == 1
    assert "sim.replay(program" in failure.explain()


@pytest.mark.seldom
def test_at_most_a_hundred_failures_the_first_of_all() -> None:
    """As of one job."""
    one, two = (sim.explore(pid, sim.Exhaustive(), lambda execution: False, jobs=jobs) for jobs in (1, 2))
    assert [each.schedule for each in one.failures] == [each.schedule for each in two.failures]
    assert (len(two.failures), two.failed) == (100, 2520)


# ---------------------------------------------------------------- what is refused, what breaks


class _Mine(sim.RandomWalk):
    def derive(self, index: int) -> sim.RandomWalk:
        return _Mine(index)


@pytest.mark.parametrize("more", [{"jobs": 2}, {"checkpoint": "never-made"}])
def test_strategy_that_cannot_be_divided_is_refused(more: dict[str, Any]) -> None:
    """Nobody knows what a stranger's policy depends on."""
    with pytest.raises(DefinitionRefused, match="cannot be divided"):
        sim.explore(pid, sim.Random(_Mine(1), 10), **more)


@pytest.mark.process
def test_program_that_cannot_be_sent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no fork a local function cannot reach a worker."""
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])

    async def local() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checkpoint)
            nursery.start_soon(checkpoint)

    with pytest.raises(DefinitionRefused, match="can be pickled"):
        sim.explore(local, sim.Exhaustive(), jobs=2)


@pytest.mark.seldom
@pytest.mark.process
def test_program_that_can_be_sent_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without fork the functions of a module do."""
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    strategy = sim.Random(sim.RandomWalk(1), 200)
    report = sim.explore(pid, strategy, fine, jobs=2)
    assert report.claim == sim.explore(pid, strategy).claim
    assert len(report.outcomes) == 3


@pytest.mark.process
def test_what_a_check_raises_in_a_worker_is_raised_here() -> None:
    """It is the caller's error, as with one job, and comes with its own traceback."""

    def broken(execution: sim.Execution) -> None:
        if execution.choices[1:3] == (2, 1):
            raise LookupError("broken check")

    with pytest.raises(LookupError, match="broken check") as raised:
        sim.explore(pid, sim.Exhaustive(), broken, jobs=2)
    assert raised.traceback[-1].name == "broken"
    assert multiprocessing.active_children() == []


@pytest.mark.process
@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.Portfolio(100)], ids=str)
def test_worker_that_dies_is_no_pass(strategy: sim.Strategy) -> None:
    """What it was to run was not run, and the report says so; the others go on."""
    master = os.getpid()

    async def program() -> None:
        order = []

        async def arrive(number: int) -> None:
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(arrive, number)
        if os.getpid() != master and order == [2, 0, 3, 1]:
            os.kill(os.getpid(), signal.SIGKILL)

    report = sim.explore(program, strategy, jobs=2)
    assert (report.verdict, report.complete) == (sim.INCONCLUSIVE, False)
    assert "a process came to its end (exit code -9)" in str(report)


@pytest.mark.process
def test_all_workers_dead_is_no_pass() -> None:
    """The report is of what was run before."""
    master = os.getpid()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(checkpoint)
        if os.getpid() != master:
            os.kill(os.getpid(), signal.SIGKILL)

    report = sim.explore(program, sim.Exhaustive(), jobs=2)
    assert (report.verdict, report.executions) == (sim.INCONCLUSIVE, 1)
    assert "exit code -9" in str(report.unfinished)


@pytest.mark.process
def test_program_that_depends_on_its_process_is_found_out() -> None:
    """An execution that fails there and not here decides nothing."""
    master = os.getpid()

    async def program() -> bool:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(checkpoint)
        return os.getpid() == master

    report = sim.explore(program, sim.Exhaustive(), lambda execution: execution.value, jobs=2)
    assert report.failures == []
    assert "not here" in str(report.unfinished)


@pytest.mark.process
def test_program_that_begins_otherwise_once_is_found_out_by_workers() -> None:
    """As with one job: what can run at the first choice is the same in every execution of a sample."""
    calls = itertools.count()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3 if next(calls) == 5 else 2):
                nursery.start_soon(checkpoint)

    report = sim.explore(program, sim.Random(sim.URW(1), 20), jobs=2)
    assert (report.verdict, report.executions) == (sim.INCONCLUSIVE, 20)
    assert "led to main.0, main.1 at step 1 once, to main.0, main.1, main.2 another time" in str(report)

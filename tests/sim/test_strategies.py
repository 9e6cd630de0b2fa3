"""Exhaustive, Bounded, Portfolio and estimate: what they run, and what they say they have shown."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import StepLimit


def _any(execution: sim.Execution) -> bool:
    return True


# ---------------------------------------------------------------- Exhaustive


@pytest.mark.parametrize(
    ("name", "arguments", "schedules", "failed"),
    [
        ("lost_update", (2, 1), 6, 4),
        ("lost_update", (3, 1), 90, 84),
        ("lost_update", (3, 2), 1680, 1674),
        ("reorder", (3,), 90, 28),
        ("reorder", (4,), 2520, 684),
        ("needle", (3, 2), 1680, 252),
        ("uneven", (), 26, 1),
        ("dining", (2,), 8, 4),
        ("dining", (3,), 285, 48),
        ("bounded_buffer", (2, 2), 480, 36),
    ],
)
def test_exhaustive_runs_every_schedule_once(programs, name: str, arguments, schedules: int, failed: int) -> None:
    """The number of schedules is known, each is run once, and so many of them fail."""
    program, check = getattr(programs, name)(*arguments)
    report = sim.explore(program, sim.Exhaustive(), check)
    assert (report.executions, report.distinct, report.failed) == (schedules, schedules, failed)
    assert report.complete
    assert report.claim == f"exhaustive(schedules={schedules})"


def test_exhaustive_goes_deepest_first(programs) -> None:
    """The first schedule has no preemption, and neighbours share the longest prefix."""
    program, _ = programs.lost_update(2, 1)
    found: list[tuple[int, ...]] = []

    def note(execution: sim.Execution) -> bool:
        found.append(execution.choices)
        return True

    sim.explore(program, sim.Exhaustive(), note)
    assert found == sorted(found)


def test_exhaustive_cut_short_is_inconclusive(programs) -> None:
    """A budget that ran out is no PASS, and the claim does not say exhaustive."""
    program, _ = programs.lost_update(3, 2)
    report = sim.explore(program, sim.Exhaustive(), _any, max_executions=1679)
    assert report.verdict is sim.INCONCLUSIVE
    assert not report.complete
    assert report.claim == "incomplete(schedules=1679)"
    assert "the budget ran out with 1 subtrees" in str(report)


def test_exhaustive_begins_anew_each_time(programs) -> None:
    """One strategy serves many explorations, also one inside another's check."""
    program, _ = programs.lost_update(2, 1)
    strategy = sim.Exhaustive()

    def check(execution: sim.Execution) -> bool:
        return sim.explore(program, strategy, _any).executions == 6

    assert sim.explore(program, strategy, check).verdict is sim.PASS


def test_tree_that_changes_once_is_found_out() -> None:
    """One visit that offers something else is enough, also when the first schedule is again what it was."""
    calls = itertools.count()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3 if next(calls) == 1 else 2):
                nursery.start_soon(checkpoint)

    report = sim.explore(program, sim.Exhaustive())
    assert (report.verdict, report.complete, report.executions) == (sim.INCONCLUSIVE, False, 2)
    assert report.claim == "incomplete(schedules=2)"
    assert "led to main.0, main.1 at step 1 once, to main.0, main.1, main.2 another time" in str(report)


@pytest.mark.parametrize("strategy", [None, sim.Random(sim.Fifo(), 20), sim.Random(sim.URW(1), 20)])
def test_sample_of_a_program_that_begins_otherwise_once_is_no_pass(strategy: sim.Strategy | None) -> None:
    """What can run at the first choice is the same in every execution, not only when the first is run again."""
    calls = itertools.count()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3 if next(calls) == 5 else 2):
                nursery.start_soon(checkpoint)

    report = sim.explore(program, strategy, max_executions=20)
    assert (report.verdict, report.complete, report.claim) == (sim.INCONCLUSIVE, False, "uncontrolled(n=20)")
    assert "led to main.0, main.1 at step 1 once, to main.0, main.1, main.2 another time" in str(report)


@pytest.mark.parametrize("jobs", [1, 2])
def test_reduction_of_an_uncontrolled_program_ends_undecided(jobs: int) -> None:
    """A task that could step after the same steps before, and cannot now, ends the search; what was seen is told."""
    calls = itertools.count()

    async def program() -> None:
        cell = sim.Cell(0, "x")

        async def touch() -> None:
            cell.set(1)

        async with trio.open_nursery() as nursery:
            for _ in range(4 if next(calls) < 2 else 0):
                nursery.start_soon(touch)

    report = sim.explore(program, sim.DPOR(), jobs=jobs)
    assert (report.verdict, report.complete) == (sim.INCONCLUSIVE, False)
    assert report.claim.startswith("incomplete(traces=")
    assert "something the simulator does not control" in str(report.unfinished)


@pytest.mark.seldom
@settings(max_examples=25)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.booleans())
def test_exhaustive_counts_the_interleavings(lengths: list[int], nested: bool) -> None:
    """Tasks of so many steps have as many schedules as a multinomial coefficient says, nested nurseries or not."""

    async def steps(count: int) -> None:
        for _ in range(count - 1):
            await checkpoint()

    async def program() -> None:
        async with trio.open_nursery() as outer:
            for length in lengths:
                outer.start_soon(steps, length)
            if nested:
                async with trio.open_nursery():
                    pass

    orders = set(itertools.permutations([task for task, length in enumerate(lengths) for _ in range(length)]))
    if nested:
        # The parent passes a checkpoint among its children: one step more, anywhere.
        orders = {(*order[:place], -1, *order[place:]) for order in orders for place in range(len(order) + 1)}
    report = sim.explore(program, sim.Exhaustive())
    assert (report.executions, report.distinct, report.complete) == (len(orders), len(orders), True)


# ---------------------------------------------------------------- Bounded


@pytest.mark.parametrize(("bound", "schedules"), list(enumerate([6, 42, 192, 552, 1062, 1506])))
def test_bounded_runs_every_schedule_within_the_bound(programs, bound: int, schedules: int) -> None:
    """It runs exactly the schedules that Exhaustive finds with at most so many preemptions."""
    program, _ = programs.lost_update(3, 2)
    found: list[str] = []

    def note(execution: sim.Execution) -> bool:
        assert execution.schedule.switches <= bound
        found.append(execution.schedule.short)
        return True

    report = sim.explore(program, sim.Bounded(preemptions=bound), note)
    assert (report.executions, len(set(found)), report.complete) == (schedules, schedules, True)
    assert report.claim == f"bounded(preemptions<={bound}, schedules={schedules})"
    assert report.verdict is sim.PASS


def test_bound_that_does_not_bind_is_exhaustive(programs) -> None:
    """Where no schedule has more preemptions, all were run, and the claim says so."""
    program, _ = programs.lost_update(3, 2)
    report = sim.explore(program, sim.Bounded(preemptions=6), _any)
    assert (report.claim, report.complete) == ("exhaustive(schedules=1680)", True)


def test_bounded_finds_the_fewest_preemptions_first(programs) -> None:
    """Schedules come in order of their preemptions, so the first failure needs no more than that."""
    program, check = programs.lost_update(3, 2)
    switches: list[int] = []
    report = sim.explore(
        program, sim.Bounded(preemptions=3), lambda e: switches.append(e.schedule.switches) or check(e)
    )
    assert switches == sorted(switches)
    assert report.failures[0].schedule.switches == 1


def test_bounded_cut_short_says_which_bound_was_done(programs) -> None:
    """What was run of the last round decides nothing; the rounds before it are done."""
    program, _ = programs.lost_update(3, 2)
    report = sim.explore(program, sim.Bounded(preemptions=3), _any, max_executions=100)
    assert report.claim == "incomplete(preemptions<=3, schedules=100, preemptions<=1 done)"
    assert (report.verdict, report.complete) == (sim.INCONCLUSIVE, False)
    report = sim.explore(program, sim.Bounded(preemptions=3), _any, max_executions=3)
    assert report.claim == "incomplete(preemptions<=3, schedules=3)"


# ---------------------------------------------------------------- Portfolio

BUGS = [
    ("needle", (5, 3)),
    ("uneven", ()),
    ("reorder", (10,)),
    ("twostage", (6,)),
    ("bounded_buffer", (2, 2)),
    ("dining", (5,)),
]


class UntilFound(sim.Search):
    """Another strategy's search, until its check has complained."""

    def __init__(self, strategy: sim.Strategy) -> None:
        self.strategy = strategy
        self.found = False

    def begin(self) -> sim.Search:
        self.search = self.strategy.begin()
        return self

    def policy(self) -> sim.Policy | None:
        return None if self.found else self.search.policy()

    def learn(self, execution: sim.Execution) -> None:
        self.search.learn(execution)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "arguments"), BUGS, ids=[name for name, _ in BUGS])
def test_portfolio_finds_every_bug(programs, name: str, arguments, seed: int) -> None:
    """What any single sampler misses now and then is found by the portfolio within 500 executions."""
    program, check = getattr(programs, name)(*arguments)
    search = UntilFound(sim.Portfolio(500, seed=seed))

    def note(execution: sim.Execution) -> bool:
        search.found |= execution.error is not None if check is None else not check(execution)
        return True

    sim.explore(program, search, note)
    assert search.found


def test_portfolio_is_reproducible(programs) -> None:
    """One seed is one sample, another seed another; what an earlier exploration learned changes nothing."""
    program, _ = programs.reorder(4)

    def schedules(strategy: sim.Strategy) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = []
        sim.explore(program, strategy, lambda execution: found.append(execution.choices) or True)
        return found

    strategy = sim.Portfolio(60, seed=1)
    assert schedules(strategy) == schedules(strategy) == schedules(sim.Portfolio(60, seed=1))
    assert schedules(strategy) != schedules(sim.Portfolio(60, seed=2))


def test_portfolio_is_the_default(programs) -> None:
    """An exploration without a strategy is a portfolio of 1,000, and says that it is a sample."""
    program, _ = programs.lost_update(2, 1)
    report = sim.explore(program, check=_any)
    assert (report.claim, report.complete) == ("sampled(n=1000, distinct=6)", False)
    assert report.outcomes == sim.explore(program, sim.Portfolio(1000), _any).outcomes


# ---------------------------------------------------------------- unfair schedules


async def _polls() -> bool:
    """One task polls for what another sets."""
    ready = sim.Cell(False, name="ready")

    async def poll() -> None:
        while not ready.get():
            await checkpoint()

    async def tell() -> None:
        ready.set(True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poll)
        nursery.start_soon(tell)
    return ready.get()


async def _counts_and_polls() -> bool:
    """One task polls for what another sets, and counts its rounds: none of its steps is a yield."""
    ready, rounds = sim.Cell(False, name="ready"), sim.Cell(0, name="rounds")

    async def poll() -> None:
        while not ready.get():
            rounds.set(rounds.get() + 1)
            await checkpoint()

    async def tell() -> None:
        ready.set(True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poll)
        nursery.start_soon(tell)
    return ready.get()


def test_starved_task_makes_a_livelock_undecided() -> None:
    """A schedule that never gives a task its turn shows no livelock: no scheduler of Trio's makes it."""
    execution = sim.run(_counts_and_polls, sim.Choices(), step_limit=100)
    assert isinstance(execution.error, StepLimit)
    assert execution.error.starved == ("main.1",)
    assert "main.1 never had a turn" in str(execution.error)
    report = sim.explore(_counts_and_polls, sim.Random(sim.Choices(), 1), step_limit=100)
    assert (report.verdict, report.undecided) == (sim.INCONCLUSIVE, 1)


def test_polling_task_gives_way_under_every_schedule() -> None:
    """A round of polling that finds nothing changed is a yield: the other task has its turn."""
    assert sim.run(_polls, sim.Choices(), step_limit=100).value is True


# ---------------------------------------------------------------- estimate


@pytest.mark.parametrize(
    ("name", "arguments", "schedules"),
    [("lost_update", (3, 2), 1680), ("reorder", (4,), 2520), ("lost_update", (5, 3), 305_540_235_000)],
)
def test_estimate_is_near_the_number_of_schedules(programs, name: str, arguments, schedules: int) -> None:
    """300 samples are within 15 percent on these, with this seed."""
    program, _ = getattr(programs, name)(*arguments)
    estimate = sim.estimate(program, samples=300)
    assert estimate.schedules == pytest.approx(schedules, rel=0.15)
    assert 0 < estimate.error < estimate.schedules / 5


def test_estimate_of_a_program_without_choices_is_one() -> None:
    """No choice, no error."""
    estimate = sim.estimate(checkpoint)
    assert (estimate.schedules, estimate.error) == (1.0, 0.0)
    assert str(estimate).startswith("one schedule, of up to 2 steps")


@pytest.mark.parametrize(
    ("actors", "schedules"),
    [
        ({"cancel_at": "any"}, 4),
        ({"cancel_at": "work"}, 2),
        ({"clock": "explored", "clock_moves": 1}, 2),
        ({"cancel_at": "work", "clock": "explored"}, 7),
    ],
)
def test_estimate_counts_what_else_may_happen(actors: dict[str, Any], schedules: int) -> None:
    """A cancel, a named scope and the clock are branches, as they are for the exploration; and it says so."""

    async def program() -> None:
        with trio.move_on_after(1), sim.scope("work"):
            await checkpoint()
        await checkpoint()

    assert sim.explore(program, sim.Exhaustive(), lambda execution: True, **actors).executions == schedules
    estimate = sim.estimate(program, 400, **actors)
    assert estimate.schedules == pytest.approx(schedules, rel=0.15)
    assert f" with {estimate.actors}, of up to" in str(estimate)


def test_estimate_counts_choices() -> None:
    """What a program chooses is a branch, too."""

    async def program() -> int:
        return sim.choose(3) + sim.choose(2)

    assert sim.estimate(program).schedules == 6


@pytest.mark.process
def test_estimate_shares_the_time_among_processes(programs) -> None:
    """Four take a quarter of it; how many schedules there are does not depend on it."""
    program, _ = programs.reorder(4)
    estimate = sim.estimate(program, jobs=4)
    assert estimate.seconds == pytest.approx(estimate.schedules / estimate.rate / 4)
    assert "executions/s in each of 4 processes" in str(estimate)
    assert estimate.schedules == sim.estimate(program).schedules


def test_estimate_is_reproducible(programs) -> None:
    """The number depends on the seed, the rate on the machine."""
    program, _ = programs.reorder(4)
    first, second, other = sim.estimate(program), sim.estimate(program), sim.estimate(program, seed=1)
    assert first.schedules == second.schedules != other.schedules


def test_estimate_of_more_schedules_than_a_float_holds_has_their_size() -> None:
    """A thousand tasks of one step have 1000! schedules, a number of 2,568 digits; so the text says, and how long."""

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(1_000):
                nursery.start_soon(_step)

    async def _step() -> None:
        pass

    estimate = sim.estimate(program, samples=2)
    assert estimate.schedules == math.inf
    # The thousand, and then nothing but the main task: each walk has the same number.
    assert estimate.log10 == pytest.approx(math.lgamma(1_001) / math.log(10))
    assert (estimate.error, estimate.error_log10) == (0.0, -math.inf)
    years = re.search(r"about 4\.0e\+2567 schedules .*; all of them would take (\d\.\de\+\d+) years", str(estimate))
    assert years is not None
    assert years[1].endswith(("e+2557", "e+2556", "e+2558", "e+2559"))
    assert "inf" not in str(estimate)


def test_estimate_has_the_logarithm_of_what_it_says(programs) -> None:
    """Also where a float holds the number."""
    estimate = sim.estimate(programs.lost_update(2, 1)[0])
    assert 10**estimate.log10 == pytest.approx(estimate.schedules)


def test_estimate_of_a_program_that_never_ends_says_so() -> None:
    """Where the step limit ended the samples the number is too low, and beyond a float it is infinite."""

    async def spin(rounds: sim.Cell[int]) -> None:
        while True:
            rounds.set(rounds.get() + 1)
            await checkpoint()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(spin, sim.Cell(0, name="a"))
            nursery.start_soon(spin, sim.Cell(0, name="b"))

    estimate = sim.estimate(program, samples=3, step_limit=5_000)
    assert estimate.schedules == float("inf")
    assert "the step limit ended 3 of the samples" in str(estimate)


@pytest.mark.parametrize("strategy", [None, sim.Exhaustive(), sim.Bounded(1), sim.Random(sim.Fifo(), 1)])
def test_pass_is_only_for_programs_that_schedules_decide(strategy: sim.Strategy | None) -> None:
    """A program that touches something else when the same schedule is run again is no PASS, whoever searched."""
    calls = itertools.count()

    async def program() -> None:
        sim.Cell(0, name=str(min(1, next(calls) % 7))).get()
        await checkpoint()

    report = sim.explore(program, strategy, max_executions=1)
    assert report.verdict is sim.INCONCLUSIVE
    assert (report.claim, report.complete) == ("uncontrolled(n=1)", False)
    assert "reads cell 0" in str(report)
    assert "reads cell 1" in str(report)

"""The same choices and another outcome: no schedule decides such a program, and no strategy passes it."""

from __future__ import annotations

import itertools
import random
import re

import pytest
import trio
from trio.lowlevel import checkpoint

from tests.sim._programs import lost_update
from toolrt import sim

STRATEGIES = [
    None,
    sim.Exhaustive(),
    sim.Bounded(2),
    sim.DPOR(),
    sim.Random(sim.RandomWalk(1), 60),
    sim.Random(sim.Fifo(), 2),
    sim.Portfolio(60),
]


def _draws(dice, tasks: int = 2):
    """A program whose value is drawn."""

    async def program() -> int:
        async with trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(checkpoint)
        return dice()

    return program


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_value_that_chance_decides_passes_nowhere(strategy) -> None:
    """A value that is another at each execution is uncontrolled, and both values are named."""
    report = sim.explore(_draws(itertools.count().__next__), strategy)
    assert report.verdict is sim.INCONCLUSIVE
    assert report.claim == f"uncontrolled(n={report.executions})"
    assert re.search(r"led to the outcome \d+ once, to \d+ another time", str(report.unfinished))
    assert not report.complete


@pytest.mark.process
@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR(), sim.Random(sim.RandomWalk(1), 60)], ids=str)
def test_neither_does_it_in_parts(strategy) -> None:
    """Two processes see it too."""
    assert sim.explore(_draws(random.Random(4).random), strategy, jobs=2).verdict is sim.INCONCLUSIVE


def test_value_of_two_is_seen_in_a_small_exploration() -> None:
    """A coin that falls is seen with six schedules, whatever the first two executions gave."""
    for seed in range(5):
        coin = random.Random(seed)
        report = sim.explore(_draws(lambda coin=coin: coin.randint(0, 1), 3), sim.Random(sim.RandomWalk(2), 40))
        assert report.verdict is sim.INCONCLUSIVE


def test_one_in_fifty_is_run_twice() -> None:
    """Of n executions the first and one in fifty are run again, and not many more; fewer of long ones or of many."""
    for n, steps, least, most in (1, 1, 1, 1), (50, 1, 8, 8), (200, 1, 11, 11), (1_400, 1, 21, 30), (40, 1_000, 4, 4):
        calls = itertools.count()

        async def program(calls=calls, steps=steps) -> None:
            next(calls)
            for _ in range(steps - 1):
                await checkpoint()

        report = sim.explore(program, sim.Random(sim.RandomWalk(0), n))
        assert report.executions == n
        assert least <= report.repeated <= most
        assert next(calls) == n + report.repeated


def test_late_change_is_seen() -> None:
    """A program whose value changes once, after a thousand executions, is uncontrolled."""
    calls = itertools.count()
    report = sim.explore(_draws(lambda: next(calls) > 1_000), sim.Random(sim.RandomWalk(0), 1_200))
    assert report.verdict is sim.INCONCLUSIVE


def test_objects_that_look_alike_are_one_outcome() -> None:
    """A new object each time, whose text is the same but for its address, is no difference."""
    assert sim.explore(_draws(object), sim.Exhaustive()).verdict is sim.PASS
    assert sim.explore(_draws(lambda: float("nan")), sim.Exhaustive()).verdict is sim.PASS


def test_failure_that_does_not_come_again_says_so() -> None:
    """Each kept failure is run again before it is shown."""
    calls = itertools.count()

    async def program() -> None:
        await checkpoint()
        if next(calls) == 0:
            raise RuntimeError("chance")

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 5))
    assert report.verdict is sim.FAIL
    assert "uncontrolled" in report.claim
    assert not report.failures[0].reproduced
    assert "Not reproduced" in report.failures[0].explain()
    assert report.failures[0].minimal == report.failures[0].schedule


def test_later_failure_is_run_again_too() -> None:
    """So is one that is not the first."""
    calls = itertools.count()

    async def program() -> int:
        await checkpoint()
        return next(calls)

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 6), lambda execution: execution.value > 6)
    assert len(report.failures) > 1
    assert not report.failures[-1].reproduced
    assert "Not reproduced" in report.failures[-1].explain()


def test_failure_that_comes_again_does_not() -> None:
    """One that a schedule decides is reproduced."""
    report = sim.explore(lost_update, sim.DPOR(), lambda execution: execution.value == 2)
    assert report.failures[0].reproduced
    assert "Not reproduced" not in report.failures[0].explain()

"""The exact set of outcomes as a check, and the outcome sets of two programs."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import Deadlock


def _counting(rounds: int = 1, guarded: bool = False, result: Any = int) -> Any:
    async def program() -> Any:
        cell, lock = sim.Cell(0, name="count"), trio.Lock()

        async def add() -> None:
            for _ in range(rounds):
                if guarded:
                    async with lock:
                        seen = cell.get()
                        await checkpoint()
                        cell.set(seen + 1)
                else:
                    seen = cell.get()
                    await checkpoint()
                    cell.set(seen + 1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add)
            nursery.start_soon(add)
        return result(cell.get())

    return program


async def _crossed_locks() -> str:
    one, other = trio.Lock(), trio.Lock()

    async def take(first: trio.Lock, second: trio.Lock) -> None:
        async with first, second:
            pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, one, other)
        nursery.start_soon(take, other, one)
    return "done"


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR()])
def test_exact_set_passes(strategy: sim.Strategy) -> None:
    """A program that makes all of the set, and nothing else, passes."""
    report = sim.explore(_counting(), strategy, outcomes={1, 2})
    assert report.verdict is sim.PASS
    assert report.complete
    assert report.missing == ()


def test_outcome_outside_the_set_fails_with_its_schedule() -> None:
    """The failure replays to the outcome that the set does not have."""
    program = _counting()
    report = sim.explore(program, sim.Exhaustive(), outcomes={2})
    assert report.verdict is sim.FAIL
    failure = report.failures[0]
    assert failure.violations == ("the outcome 1 is none of {2}",)
    assert sim.replay(program, failure.minimal).value == 1
    assert "outcomes=[2]" in failure.explain(verbose=True)


def test_outcome_never_made_fails_a_whole_search() -> None:
    """Every schedule was run, so the expected outcome cannot come."""
    report = sim.explore(_counting(), sim.Exhaustive(), outcomes={1, 2, 3})
    assert report.verdict is sim.FAIL
    assert report.failed == 0
    assert report.missing == (3,)
    assert "never  3, which is expected" in str(report)


def test_outcome_not_sampled_is_inconclusive() -> None:
    """A larger sample might make it."""
    report = sim.explore(_counting(), sim.Random(sim.Fifo(), 1), outcomes={1, 2})
    assert report.verdict is sim.INCONCLUSIVE
    assert report.missing == (2,)
    assert "expected outcomes were not seen" in str(report)


def test_sample_that_saw_all_passes() -> None:
    """A sample passes when it made every expected outcome."""
    report = sim.explore(_counting(), sim.Random(sim.RandomWalk(seed=1), 50), outcomes={1, 2})
    assert report.verdict is sim.PASS
    assert not report.complete


def test_outcomes_that_cannot_be_hashed_are_compared_by_their_text() -> None:
    """Lists are given as a list."""
    program = _counting(result=lambda value: [value])
    assert sim.explore(program, sim.Exhaustive(), outcomes=[[1], [2]]).verdict is sim.PASS
    report = sim.explore(program, sim.Exhaustive(), outcomes=[[1], [3]])
    assert report.verdict is sim.FAIL
    assert report.missing == ("[3]",)


@pytest.mark.parametrize("deadlock", [Deadlock, "Deadlock"])
def test_expected_error_is_no_failure(deadlock: Any) -> None:
    """A type of error, or its name, is an outcome like any other."""
    assert sim.explore(_crossed_locks, sim.Exhaustive(), outcomes={"done", deadlock}).verdict is sim.PASS
    report = sim.explore(_crossed_locks, sim.Exhaustive(), outcomes={"done"})
    assert report.verdict is sim.FAIL
    assert isinstance(report.failures[0].error, Deadlock)


def test_check_is_asked_too() -> None:
    """An expected outcome that the check complains of fails."""

    def check(execution: sim.Execution) -> bool:
        return bool(execution.value == 2)

    report = sim.explore(_counting(), sim.Exhaustive(), check, outcomes={1, 2})
    assert report.verdict is sim.FAIL
    assert report.failures[0].violations == ("the check returned False",)


def test_outcomes_are_counted_over_processes() -> None:
    """With two jobs the verdict is the same."""
    report = sim.explore(_counting(), sim.Exhaustive(), jobs=2, outcomes={1, 2, 3})
    assert report.verdict is sim.FAIL
    assert report.missing == (3,)


def test_repair_that_allows_no_more_passes() -> None:
    """The lock takes the bug away and adds nothing."""
    found = sim.compare(_counting(), _counting(guarded=True), sim.Exhaustive(), bug={1})
    assert found.verdict is sim.PASS
    assert set(found.lost) == {1}
    assert not found.gained
    assert not found.still
    assert sim.replay(_counting(), found.lost[1]).value == 1
    assert "lost 1 (the bug)" in str(found)


def test_check_names_the_bug() -> None:
    """What the check complains of in the original is the bug; a repair that is none still has it."""

    def check(execution: sim.Execution) -> bool:
        return bool(execution.value == 2)

    assert sim.compare(_counting(), _counting(guarded=True), sim.Exhaustive(), check).bug == (1,)
    same = sim.compare(_counting(), _counting(), sim.Exhaustive(), check)
    assert same.verdict is sim.FAIL
    assert sim.replay(_counting(), same.still[1]).value == 1


def test_repair_that_gains_an_outcome_fails() -> None:
    """Three is what no schedule of the original makes."""
    found = sim.compare(_counting(), _counting(rounds=2), sim.Exhaustive())
    assert found.verdict is sim.FAIL
    assert set(found.gained) == {3, 4}
    assert sim.replay(_counting(rounds=2), found.gained[3]).value == 3


def test_gain_over_a_sample_decides_nothing() -> None:
    """The original may make what its sample did not show."""
    found = sim.compare(_counting(guarded=True), _counting(), sim.Random(sim.RandomWalk(seed=1), 50))
    assert found.verdict is sim.INCONCLUSIVE
    assert set(found.gained) == {1}
    assert "may make what the repair seems to gain" in str(found)

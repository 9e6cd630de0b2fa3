"""Checks over executions: always, eventually, sometimes, reachable."""

from __future__ import annotations

import time

import pytest
import trio

from toolrt import sim

STATE: dict[str, int] = {}


async def swaps() -> int:
    """Two variables are both 1 for a moment, in one order of two."""
    STATE.update(a=0, b=1)

    async def first() -> None:
        STATE["a"] = 1
        await trio.lowlevel.checkpoint()
        STATE["a"] = 0

    async def second() -> None:
        STATE["b"] = 0
        await trio.lowlevel.checkpoint()
        STATE["b"] = 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        nursery.start_soon(second)
    return STATE["a"] + STATE["b"]


def both() -> bool:
    """Both are 1."""
    return STATE["a"] == STATE["b"] == 1


def neither() -> bool:
    """Both are 0."""
    return STATE["a"] == STATE["b"] == 0


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR()], ids=repr)
def test_states_between_steps_are_judged(strategy: sim.Strategy) -> None:
    """A state that no end shows breaks always, is reachable, and is no sometimes."""
    assert sim.explore(swaps, strategy, sim.always(lambda: not both())).verdict is sim.FAIL
    report = sim.explore(swaps, strategy, sim.reachable(both))
    assert report.verdict is sim.PASS
    assert "reachable(both) over" in report.claim
    report = sim.explore(swaps, strategy, sim.sometimes(both))
    assert (report.verdict, report.failed) == (sim.FAIL, 0)
    assert report.unfinished == "no execution met sometimes(both)"
    assert sim.explore(swaps, strategy, sim.eventually(neither)).verdict is sim.FAIL
    assert sim.explore(swaps, strategy, sim.always(lambda: STATE["a"] < 2)).verdict is sim.PASS
    assert sim.explore(swaps, strategy, sim.eventually(lambda: STATE["a"] == 1)).verdict is sim.PASS


def test_unmet_in_a_sample_is_inconclusive() -> None:
    """A larger sample might meet it."""
    report = sim.explore(swaps, sim.Random(sim.RandomWalk(1), 5), sim.reachable(lambda: STATE["a"] > 1))
    assert report.verdict is sim.INCONCLUSIVE


def test_predicates_of_executions_and_several() -> None:
    """A predicate with a parameter is asked at the end; checks are joined by a list or an ampersand."""
    fine = sim.always(lambda execution: execution.value == 1)
    assert sim.explore(swaps, sim.Exhaustive(), [fine, sim.reachable(both)]).verdict is sim.PASS
    joined = fine & sim.sometimes(lambda execution: execution.value == 2)
    assert sim.explore(swaps, sim.Exhaustive(), joined).verdict is sim.FAIL


def test_real_clock_in_a_circle_decides_nothing() -> None:
    """A loop over the decided clock waits for time, which stands still."""

    async def program() -> None:
        while time.monotonic() < 5:
            await trio.lowlevel.checkpoint()

    assert sim.explore(program, sim.Exhaustive(), step_limit=50).verdict is sim.INCONCLUSIVE


def test_what_a_predicate_reads_only_sometimes_is_found() -> None:
    """It looks at a second cell only while the first is 1: steps that wrote the second one before it did count too."""
    cells: list[sim.Cell[int]] = []

    async def program() -> None:
        cells[:] = [sim.Cell(0, name=name) for name in ("first", "second")]

        async def raise_and_lower(cell: sim.Cell[int], wait: int) -> None:
            own = sim.Cell(0)
            own.set(1)
            for _ in range(wait):
                await trio.lowlevel.checkpoint()
                own.set(2)
            cell.set(1)
            await trio.lowlevel.checkpoint()
            cell.set(0)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(raise_and_lower, cells[1], 0)
            nursery.start_soon(raise_and_lower, cells[0], 3)

    def both_are_up() -> bool:
        return cells[0].get() == 1 and cells[1].get() == 1

    def one_is_down() -> bool:
        return not both_are_up()

    for strategy in (sim.Exhaustive(), sim.DPOR()):
        assert sim.explore(program, strategy, sim.reachable(both_are_up)).verdict is sim.PASS
        assert sim.explore(program, strategy, sim.always(one_is_down)).verdict is sim.FAIL

"""Deadlines of one instant: together by default, and with ``clock="real"`` one by one, as on a real clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import permutations
from typing import Any

import pytest
import trio
import trio.testing

from toolrt import sim

Program = Callable[[], Awaitable[Any]]


def race(*late: float) -> Program:
    """Make a program of an answer, a timeout and a look at both, at one instant or so many seconds `late`."""
    answers, gives_up, looks = late or (0.0, 0.0, 0.0)

    async def program() -> tuple[bool, str]:
        answered, seen = trio.Event(), []

        async def answer() -> None:
            await trio.sleep(5 + answers)
            answered.set()

        async def look() -> None:
            await trio.sleep(5 + looks)
            seen.append("answered" if answered.is_set() else "not yet")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            nursery.start_soon(look)
            with trio.move_on_after(5 + gives_up) as timeout:
                await answered.wait()
        return timeout.cancelled_caught, seen[0]

    return program


ORDERS = ("any", "trio")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR()], ids=["exhaustive", "dpor"])
def test_a_race_of_two_deadlines_is_found_where_they_come_apart(strategy: sim.Strategy, order: str) -> None:
    """Together the timeout always wins; apart the answer may, and the schedule in which it does runs again."""
    together = sim.explore(race(), strategy, lambda execution: True, order=order)
    assert set(together.outcomes) == {(True, "answered"), (True, "not yet")}
    report = sim.explore(race(), strategy, lambda execution: execution.value[0], clock="real", order=order)
    assert set(report.outcomes) == {(True, "answered"), (True, "not yet"), (False, "answered"), (False, "not yet")}
    assert "with clock=real" in report.claim
    schedule = report.failures[0].schedule.short
    assert "deadline." in schedule
    assert sim.replay(race(), schedule, clock="real", order=order).value[0] is False


@pytest.mark.parametrize("order", ORDERS)
def test_what_microseconds_make_of_plain_trio_is_explored(order: str) -> None:
    """Law: each order in which a clock gets to the three deadlines ends as one that was explored."""
    explored = set(sim.explore(race(), sim.DPOR(), lambda execution: True, clock="real", order=order).outcomes)
    for late in permutations((0.0, 1e-6, 2e-6)):
        assert trio.run(race(*late), clock=trio.testing.MockClock(autojump_threshold=0)) in explored


def test_a_deadline_that_was_put_off_does_not_come_early() -> None:
    """The task that woke first gives the other more time: a scope that it changed in time is not cancelled."""

    async def program() -> tuple[bool, float]:
        with trio.CancelScope(deadline=1) as scope:
            async with trio.open_nursery() as nursery:

                async def put_off() -> None:
                    with trio.CancelScope(shield=True):
                        await trio.sleep_until(1)
                    scope.deadline = 3

                nursery.start_soon(put_off)
                await trio.sleep(2)
        return scope.cancelled_caught, trio.current_time()

    report = sim.explore(program, sim.DPOR(), lambda execution: True, clock="real")
    assert set(report.outcomes) == {(True, 1.0), (False, 2.0)}


def test_deadlines_of_other_instants_stay_as_they_are() -> None:
    """Where no two deadlines are of one instant there is nothing to choose."""
    report = sim.explore(race(0.0, 1.0, 2.0), sim.Exhaustive(), clock="real")
    assert report.claim == sim.explore(race(0.0, 1.0, 2.0), sim.Exhaustive()).claim + " with clock=real"


def test_statistics_do_not_count_deadlines_as_tasks() -> None:
    """A program sees its own tasks alone."""

    async def program() -> int:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
            nursery.start_soon(trio.sleep, 1)
            await trio.sleep(1)
            living = trio.lowlevel.current_statistics().tasks_living
        return living

    plain = trio.run(program, clock=trio.testing.MockClock(autojump_threshold=0))
    assert plain in set(sim.explore(program, sim.Exhaustive(), clock="real").outcomes)
    assert max(sim.explore(program, sim.Exhaustive(), clock="real").outcomes) <= max(
        sim.explore(program, sim.Exhaustive()).outcomes
    )

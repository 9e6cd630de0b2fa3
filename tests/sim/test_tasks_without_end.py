"""A program that starts tasks without end is ended like any other, and all of its tasks with it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.errors import RealTimeout, StepLimit, StuckStep
from toolrt.sim.engine._host import bounded

Program = Callable[[], Awaitable[Any]]


async def _starts_two(nursery: trio.Nursery) -> None:
    nursery.start_soon(_starts_two, nursery)
    nursery.start_soon(_starts_two, nursery)


async def starts_two() -> None:
    """Have each task start two more in one nursery."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_starts_two, nursery)


async def nests() -> None:
    """Have each task start two more in a nursery of its own, one in the other."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(nests)
        nursery.start_soon(nests)


async def _starts_two_as_it_ends(nursery: trio.Nursery) -> None:
    try:
        await trio.sleep(1)
    finally:
        await _starts_two(nursery)


async def starts_two_as_it_ends() -> None:
    """Have each task start two more as it is ended by force, too."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_starts_two_as_it_ends, nursery)


async def nests_as_it_ends() -> None:
    """The same in a nursery that is opened then."""
    try:
        await trio.sleep(1)
    finally:
        await nests()


_WITHOUT_END = [starts_two, nests, starts_two_as_it_ends, nests_as_it_ends]


@pytest.mark.parametrize("program", _WITHOUT_END)
def test_step_limit_ends_all_tasks_and_names_the_line_that_starts_them(program: Program) -> None:
    """The error counts the tasks in its text, and names a hundred; nothing is left for the next execution."""
    error = sim.run(program, sim.RandomWalk(seed=1), step_limit=2_500).error
    assert isinstance(error, StepLimit)
    assert Path(__file__).name in error.started
    assert re.search(
        rf"most of its {len(error.waiting):,} tasks were started at {re.escape(error.started)}", str(error)
    )
    assert len(str(error).splitlines()) == 102
    assert sim.run(trio.lowlevel.checkpoint).error is None


@pytest.mark.parametrize("program", _WITHOUT_END)
def test_time_limit_ends_what_has_only_short_steps(program: Program) -> None:
    """An execution is ended between two steps, too."""
    error = sim.run(program, sim.RandomWalk(seed=1), step_limit=10_000_000, seconds=0.1).error
    assert isinstance(error, StuckStep)
    assert Path(__file__).name in error.place
    assert sim.run(trio.lowlevel.checkpoint).error is None


def test_few_tasks_are_not_counted() -> None:
    """Of an ordinary program the text is what it was."""
    error = sim.run(starts_two, step_limit=5).error
    assert isinstance(error, StepLimit)
    assert error.started == ""
    assert "tasks were started" not in str(error)


def test_limit_around_another_ends_it() -> None:
    """A limit inside another one ends with that, and its error names the outer one."""

    async def spins() -> None:  # noqa: ASYNC124
        while True:
            pass

    with bounded(0.125):
        error = sim.run(spins, seconds=3600).error
    assert isinstance(error, StuckStep)
    assert error.seconds == 0.125


def test_story_of_a_failure_keeps_to_the_limit() -> None:
    """To make a schedule simpler is given up once the limit is over, not tried again and again."""

    async def fails() -> None:
        raise ValueError

    failure = sim.explore(fails, max_executions=1).failures[0]
    with bounded(1e-9), pytest.raises(RealTimeout):
        _ = failure.minimal
    assert len(failure.minimal) == 1

"""A program that starts tasks without end is ended like any other, and all of its tasks with it."""

from __future__ import annotations

import gc
import re
import sys
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from toolrt import sim
from toolrt.errors import Deadlock, RealTimeout, StepLimit, StuckStep
from toolrt.sim.engine._host import bounded, current_scheduler
from toolrt.sim.strategies._simplify import shrink

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


@pytest.mark.seldom
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


@pytest.mark.seldom
@pytest.mark.parametrize("program", _WITHOUT_END)
def test_time_limit_ends_what_has_only_short_steps(program: Program) -> None:
    """An execution is ended between two steps, too."""
    error = sim.run(program, sim.RandomWalk(seed=1), step_limit=10_000_000, seconds=0.1).error
    assert isinstance(error, StuckStep)
    assert Path(__file__).name in error.place
    assert sim.run(trio.lowlevel.checkpoint).error is None


def _tell_that_time_is_up() -> None:
    scheduler = current_scheduler()
    assert scheduler is not None
    scheduler.end_after_step(0.5)


def test_no_step_begins_once_time_is_up_between_two() -> None:
    """What is told between two steps ends the execution before the next."""
    passed = []

    async def tells() -> None:
        _tell_that_time_is_up()
        await trio.lowlevel.cancel_shielded_checkpoint()
        passed.append("a checkpoint")

    error = sim.run(tells).error
    assert isinstance(error, StuckStep)
    assert error.seconds == 0.5
    assert passed == []


def test_unwinding_is_over_once_time_is_up() -> None:
    """An execution that was given up takes no step more, either."""
    passed = []

    async def tells_as_it_ends() -> None:
        try:
            await trio.sleep_forever()
        finally:
            _tell_that_time_is_up()
            await trio.lowlevel.cancel_shielded_checkpoint()
            passed.append("a checkpoint")

    assert isinstance(sim.run(tells_as_it_ends).error, Deadlock)
    assert passed == []


def test_task_that_trio_counts_no_more_is_ended() -> None:
    """As one is where a forced end has met Trio between two lines of its own bookkeeping."""
    is_over = False

    async def is_half_gone() -> None:
        nursery: Any = trio.lowlevel.current_task().parent_nursery
        nursery._children.clear()
        while not is_over:
            with suppress(BaseException):
                await trio.sleep_forever()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(is_half_gone)
            await trio.sleep_forever()

    assert isinstance(sim.run(program).error, Deadlock)
    assert sim.run(trio.lowlevel.checkpoint).error is None
    # What is left of the coroutine ends with the test.
    is_over = True
    gc.collect()


def test_what_was_half_made_as_a_step_was_ended_does_not_complain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a coroutine that no task has yet, nor a nursery that Trio has begun to make: another test would fail."""
    nurseries = []

    def makes_half() -> None:
        coroutine = program()
        nurseries.append(object.__new__(trio.Nursery))
        while coroutine is not None:
            pass

    async def child() -> None:
        makes_half()

    async def program() -> None:
        # It keeps what its child raises, and the execution keeps its tasks.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)

    complaints: list[object] = []
    execution = sim.run(program, seconds=0.125)
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    with warnings.catch_warnings(record=True, action="always") as warned:
        nurseries.clear()
        del execution
        gc.collect()
    assert (complaints, warned) == ([], [])


def test_few_tasks_are_not_counted() -> None:
    """Of an ordinary program the text is what it was."""
    error = sim.run(starts_two, step_limit=5).error
    assert isinstance(error, StepLimit)
    assert error.started == ""
    assert "tasks were started" not in str(error)


def test_limit_around_another_ends_it() -> None:
    """A limit inside another one ends with that, and its error names the outer one."""

    async def spins() -> None:  # noqa: ASYNC124
        # Here the watching thread has no turn: the timer that this limit sets ends it.
        re.match(r"(a+)+$", "a" * 60 + "b")

    with bounded(0.125):
        error = sim.run(spins, seconds=5).error
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


def test_schedule_without_a_choice_is_not_copied_to_make_it_simpler() -> None:
    """Between two attempts nothing looks at the time, so what has nothing to be tried must cost nothing."""
    copies = 0

    class Choices(tuple[int, ...]):
        def __getitem__(self, place: Any) -> Any:
            nonlocal copies
            copies += isinstance(place, slice)
            return super().__getitem__(place)

    execution = sim.run(trio.lowlevel.checkpoint)
    execution = attrs.make_class("Long", ["choices", "schedule"])(Choices((0,) * 10_000), execution.schedule)
    search = shrink(execution, lambda choices: pytest.fail(f"tries {choices}"))
    with pytest.raises(StopIteration) as end:
        next(search)
    assert end.value.value is execution
    assert copies < 100

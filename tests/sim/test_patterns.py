"""Which pattern a failure is known by, and which have none."""

from __future__ import annotations

import re
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.teaching.litmus import LITMUS


def _failure(program: Any, check: Any = None, **settings: Any) -> sim.Failure:
    return sim.explore(program, sim.DPOR(), check, **settings).failures[0]


def _of(name: str) -> sim.Failure:
    one = LITMUS[name]
    return _failure(one.program, one.check, **one.settings)


def _pattern(failure: sim.Failure) -> str | None:
    return dict(failure.about_minimal).get("Pattern")


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        ("lost_update_2x1", "lost update of counter"),
        ("lost_update_3x1", "lost update of counter"),
        ("overdraw", "check-then-act of balance"),
        ("lazy_init", "check-then-act of instance"),
        ("lost_wakeup", "lost wake-up of changed"),
        ("cleanup", "leaked cancel of cleaned"),
        ("two_locks", "lock inversion"),
        ("dining_2", "lock inversion"),
        ("dining_3", "lock inversion"),
    ],
)
def test_failure_of_a_litmus_program_is_headed_by_its_pattern(name: str, headline: str) -> None:
    """The pattern that each program is known for heads its page, and stands in the page's rows."""
    failure = _of(name)
    assert failure.headline == headline
    assert (_pattern(failure) or "").startswith(headline.partition(" of ")[0])


@pytest.mark.parametrize(
    "name",
    [
        "account",
        "aba",
        "both_give_way",
        "look_before_you_enter",
        "peterson_swapped",
        "two_stages_apart",
        "upgrade",
        "stolen_wakeup",
        "taken_and_lost",
        "two_files",
    ],
)
def test_what_fits_no_pattern_is_headed_by_what_is_wrong(name: str) -> None:
    """Nothing is guessed: the heading is the first line of what the check or the error says."""
    failure = _of(name)
    assert _pattern(failure) is None
    assert dict(failure.about_minimal)["FAIL"].startswith(failure.headline)


def test_pattern_says_who_did_what_in_which_step() -> None:
    """The steps that the sentence names are those of the schedule."""
    failure = _of("lost_update_2x1")
    numbers = [int(number) for number in re.findall(r"in step (\d+)", _pattern(failure) or "")]
    steps = [failure.compared[0].steps[number] for number in numbers]
    assert [[access.write for access in step.accesses] for step in steps] == [[False], [True], [True]]
    assert steps[0].task == steps[2].task != steps[1].task


async def _leaking() -> None:
    free, scope = trio.Semaphore(1), trio.CancelScope()

    async def work() -> None:
        with scope:
            await free.acquire()
            await checkpoint()
            free.release()

    async def other() -> None:
        await free.acquire()
        free.release()

    async def cancel() -> None:
        scope.cancel()

    async with trio.open_nursery() as nursery:
        for each in (work, other, cancel):
            nursery.start_soon(each)


async def _waits_for_what_is_there() -> None:
    items, told = sim.Cell(0, name="items"), trio.Event()

    async def take() -> None:
        if not items.get():
            await checkpoint()
            waiting.append(told)
            await told.wait()

    async def put() -> None:
        items.set(1)
        for one in waiting:
            one.set()

    waiting: list[trio.Event] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        nursery.start_soon(put)


class _Counter:
    def __init__(self) -> None:
        self.total = 0


async def _tracked() -> int:
    counter = _Counter()

    async def add() -> None:
        seen = counter.total
        await checkpoint()
        counter.total = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    return counter.total


async def _looks_twice() -> int:
    made, lock = sim.Cell(0, name="made"), sim.Cell(0, name="there")

    async def make() -> None:
        if not lock.get():
            await checkpoint()
            if not lock.get():
                lock.set(1)
                made.set(made.get() + 1)

    async def stop() -> None:
        lock.set(2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(make)
        nursery.start_soon(stop)
    return made.get() + lock.get()


def test_cancel_that_leaves_a_permit_taken_has_a_name() -> None:
    """The task that was cancelled has ended with the permit, and another waits for it."""
    assert _failure(_leaking).headline == "leaked cancel of free"


def test_check_before_an_event_is_a_lost_wake_up() -> None:
    """A task looks, another puts something there and tells those who wait, and the first one waits after that."""
    assert _failure(_waits_for_what_is_there).headline == "lost wake-up of items"


def test_tracked_attribute_is_called_as_in_the_source() -> None:
    """A lost update of plain Python is headed by the program's own expression."""
    failure = _failure(_tracked, lambda execution: execution.value == 2, track=True)
    assert failure.headline == "lost update of counter.total"


def test_second_look_is_no_check_then_act() -> None:
    """Who looks again before acting has not acted on what was so before."""
    failure = _failure(_looks_twice, lambda execution: execution.value == 2)
    assert _pattern(failure) is None


def test_failure_that_always_fails_has_no_race_to_name() -> None:
    """Without a schedule that passes nothing decides; the heading is the complaint, cut where it is long."""
    failure = _failure(_tracked, lambda _: [f"{'x' * 500}\nand more"])
    assert failure.headline == f"{'x' * 119}…"
    assert _pattern(failure) is None


async def _keeps_its_slot(cells: int) -> None:
    """A user who is cancelled in its `finally` leaves its cells as they are while it works."""
    free = [sim.Cell(1, name=f"free {number}") for number in range(cells)]

    async def use() -> None:
        for cell in free:
            cell.set(0)
        try:
            await checkpoint()
        finally:
            await checkpoint()
            for cell in free:
                cell.set(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use)
        for _ in range(3):
            await checkpoint()
        nursery.cancel_scope.cancel()
    assert [cell.get() for cell in free] == [1] * cells


def test_slot_that_a_cancelled_task_keeps_is_a_leaked_cancel_without_a_deadlock() -> None:
    """The task that got Cancelled does not write what it writes where all is well, and another task reads it."""
    failure = _failure(lambda: _keeps_its_slot(1))
    assert failure.headline == "leaked cancel of free 0"
    found = re.search(
        r"use writes free 0 in step (\d+), gets Cancelled in step (\d+) at \S+:\d+,", _pattern(failure) or ""
    )
    assert found is not None
    assert "gets Cancelled" in failure.show().html
    step = failure.compared[0].steps[int(found[1])]
    assert [(access.resource[-1], access.write) for access in step.accesses if access.resource[0] == "cell"] == [
        ("free 0", True)
    ]
    assert int(found[2]) in failure.compared[0].notes["details"]["cancelled"]


def test_of_several_slots_that_a_cancelled_task_keeps_none_is_picked() -> None:
    """Which of two the failure is about is not known."""
    assert _pattern(_failure(lambda: _keeps_its_slot(2))) is None

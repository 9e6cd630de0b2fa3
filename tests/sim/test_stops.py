"""Deadlock, livelock, and what a report says of them."""

from __future__ import annotations

import contextlib
import re

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import probe, sim
from toolrt.errors import Deadlock, StepLimit


async def ab_ba() -> None:
    """Two locks taken in opposite order."""
    first, second = trio.Lock(), trio.Lock()

    async def take(one: trio.Lock, other: trio.Lock) -> None:
        async with one:
            await checkpoint()
            async with other:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, first, second)
        nursery.start_soon(take, second, first)


async def spin() -> None:
    """Never ends, and never waits; it counts, so no two of its rounds are alike."""
    turns = 0
    while True:
        turns += 1
        await checkpoint()


def test_deadlock_names_lock_and_holder() -> None:
    """Each task's waiting text names the primitive, its holder, and the line of the program."""
    error = sim.run(ab_ba).error
    assert isinstance(error, Deadlock)
    waiting = dict(error.waiting)
    assert list(waiting) == ["main", "main.0", "main.1"]
    assert re.fullmatch(r"its nursery's children main\.0, main\.1 at test_stops\.py:\d+", waiting["main"])
    assert re.fullmatch(r"a Lock held by main\.1 at test_stops\.py:\d+", waiting["main.0"])
    assert re.fullmatch(r"a Lock held by main\.0 at test_stops\.py:\d+", waiting["main.1"])


async def _parks_itself() -> None:
    await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.SUCCEEDED)


class Gate:
    async def pass_through(self) -> None:
        await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.SUCCEEDED)


async def _sends_to_a_full_channel() -> None:
    send, receive = trio.open_memory_channel[int](1)
    with receive:
        await send.send(1)
        await send.send(2)


async def _receives_from_who_is_silent() -> None:
    send, receive = trio.open_memory_channel[int](0)
    with send:
        await receive.receive()


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (lambda: trio.Event().wait(), "an Event that is not set"),
        (lambda: trio.Semaphore(0).acquire(), "a Semaphore at 0"),
        (trio.sleep_forever, "nothing (sleep_forever)"),
        (lambda: trio.lowlevel.ParkingLot().park(), "trio ParkingLot.park"),
        (_sends_to_a_full_channel, "a memory channel to send to (buffer full: 1 of 1)"),
        (_receives_from_who_is_silent, "a memory channel to receive from (1 senders open)"),
        # A primitive of another library parks its caller by itself; without one, what ends the wait is not known.
        (Gate().pass_through, "Gate.pass_through at test_stops.py:"),
        (_parks_itself, "a task or callback that reschedules it at "),
    ],
)
def test_deadlock_describes_what_is_waited_for(wait, words: str) -> None:
    """Each primitive has its words."""

    async def program() -> None:
        await wait()

    error = sim.run(program).error
    assert isinstance(error, Deadlock)
    assert error.waiting[0][1].startswith(words)


def test_deadlock_shows_no_path_of_the_machine() -> None:
    """A waiting text names a file by its last part."""
    assert "/" not in str(sim.run(ab_ba).error)


def test_deadlock_unwinds_the_program() -> None:
    """Clean-up code of a deadlocked program runs, after value and error are fixed."""
    cleaned = []

    async def program() -> None:
        try:
            await trio.sleep_forever()
        finally:
            cleaned.append(True)

    assert isinstance(sim.run(program).error, Deadlock)
    assert cleaned == [True]


def test_deadlock_freezes_the_value() -> None:
    """What a program returns while it unwinds is not its value."""

    async def program() -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return "unwound"
        return "never"

    execution = sim.run(program)
    assert isinstance(execution.error, Deadlock)
    assert execution.value is None


def test_deadlock_freezes_the_trace() -> None:
    """What a program does while it unwinds is in no trace and in no schedule."""
    cell = sim.Cell(0, name="x")

    async def program() -> None:
        try:
            await trio.sleep_forever()
        finally:
            cell.set(1)
            probe.event("too_late")
            with trio.CancelScope(shield=True):
                await checkpoint()

    execution = sim.run(program)
    assert execution.schedule.short == "main"
    assert [step.accesses for step in execution.trace.steps] == [()]
    assert execution.trace.events == ()


def test_livelock_ends_by_default() -> None:
    """The limit is 10,000 steps unless the caller says otherwise."""
    error = sim.run(spin).error
    assert isinstance(error, StepLimit)
    assert error.limit == 10_000


def test_step_limit_is_reached_exactly() -> None:
    """A program of as many steps as the limit allows ends by itself."""

    async def program() -> str:
        for _ in range(9):
            await checkpoint()
        return "done"

    assert sim.run(program, step_limit=10).value == "done"
    assert isinstance(sim.run(program, step_limit=9).error, StepLimit)


def test_step_limit_with_a_deadline_pending_is_inconclusive() -> None:
    """Time only moves when nothing can run, so a busy program with a timeout proves nothing."""

    async def program() -> None:
        with trio.move_on_after(1):
            await spin()

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 3), step_limit=200)
    assert report.verdict is sim.INCONCLUSIVE
    assert (report.failed, report.undecided) == (0, 3)


def test_step_limit_without_a_deadline_is_a_failure() -> None:
    """A livelock fails the exploration."""
    report = sim.explore(spin, sim.Random(sim.RandomWalk(0), 3), step_limit=200)
    assert report.verdict is sim.FAIL
    assert report.outcomes == {"StepLimit": 3}


def test_step_limit_names_who_can_run() -> None:
    """A task that could go on is said to wait for its turn."""
    error = sim.run(spin, step_limit=5).error
    assert isinstance(error, StepLimit)
    assert error.waiting[0][1].startswith("its turn (it can run) at test_stops.py:")


def test_unwinding_is_bounded() -> None:
    """A task that never stops cleaning up is ended by force, and the next execution is not touched by it."""

    async def program() -> None:
        with trio.CancelScope(shield=True):
            while True:
                with contextlib.suppress(trio.Cancelled):
                    await trio.sleep(1)

    assert isinstance(sim.run(program, step_limit=20).error, StepLimit)
    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 3), lambda execution: True, step_limit=20)
    assert report.outcomes == {"StepLimit": 3}


def test_explanation_shows_the_deadlock() -> None:
    """The explanation has who waits for what, once, the circle, and the line that runs it again."""
    failure = sim.explore(ab_ba, sim.Random(sim.RandomWalk(0), 50)).failures[0]
    text = failure.explain()
    assert "lock inversion: take (main.0) waits for Lock second, held by take (main.1); take (main.1) waits" in (
        " ".join(text.split())
    )
    assert "Deadlock: take (main.0) -> take (main.1) -> take (main.0)\n" in text
    assert f'sim.replay(ab_ba, "{failure.minimal.short}")' in text
    assert failure.minimal.switches == 1

"""Tasks that the simulator spawns and ends in a shorter way are as those that Trio spawns and ends."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import probe, sim
from toolrt.sim._trio_internals import _control, _slim, _step


@attrs.define
class _Tool:
    """Has a method that is spawned."""

    log: list[Any]

    async def work(self, number: int) -> None:
        await checkpoint()
        self.log.append(("method", number))


async def _spawned() -> list[Any]:
    """Spawn whatever can be spawned, and write down what Trio says of it."""
    log: list[Any] = []

    async def work(number: int = 0, *, task_status: Any = trio.TASK_STATUS_IGNORED) -> str:
        task = trio.lowlevel.current_task()
        task_status.started(task.name)
        log.append((task.name, number, len(task.child_nurseries), task.parent_nursery is not None))
        await checkpoint()
        return "unseen"

    async def stubborn() -> None:
        raise ValueError("a child fails")

    def no_coroutine() -> int:
        return 7

    async def generator() -> Any:
        yield 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        nursery.start_soon(work, 1, name="named")
        nursery.start_soon(work, name=log.append)
        nursery.start_soon(functools.partial(work, 2))
        nursery.start_soon(lambda: work(3))
        nursery.start_soon(_Tool(log).work, 4)
        log.append(await nursery.start(work))
        for wrong in (no_coroutine, generator, functools.partial(work, 1, 2, 3)):
            try:
                nursery.start_soon(wrong)
            except TypeError as error:
                log.append(str(error).partition(" at 0x")[0])
        try:
            nursery.start_soon(work, 1, 2)
        except TypeError as error:
            log.append(str(error))
        log.append(len(nursery.child_tasks))
    try:
        nursery.start_soon(work)
    except RuntimeError as error:
        log.append(str(error))
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stubborn)
            nursery.start_soon(trio.sleep_forever)
    except* ValueError as group:
        log.append(str(group.exceptions[0]))
    with trio.CancelScope() as scope:
        scope.cancel()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, 5)
    with trio.move_on_after(2) as scope:
        scope.deadline += 1
        await trio.sleep(10)
    log.append((scope.cancelled_caught, trio.current_time()))
    return log


async def _abandoned() -> str:
    """A task that ends with its nursery open."""
    manager = trio.open_nursery()

    async def forget() -> None:
        nursery = await manager.__aenter__()
        nursery.start_soon(checkpoint)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(forget)
    except BaseExceptionGroup as group:
        return repr([type(error).__name__ for error in group.exceptions])
    return "nothing"


@pytest.mark.parametrize("program", [_spawned, _abandoned])
def test_what_is_spawned_in_a_shorter_way_is_as_trios(
    monkeypatch: pytest.MonkeyPatch, program: Callable[[], Awaitable[Any]]
) -> None:
    """With the short way and without: the same names, errors, schedules and accesses."""

    def seen() -> tuple[Any, str, str]:
        execution = sim.run(program, sim.RandomWalk(seed=3))
        return execution.outcome, execution.schedule.to_json(), execution.trace.to_json()

    assert _slim.is_known()
    short = seen()
    monkeypatch.setattr(_control, "is_known", lambda: False)
    monkeypatch.setattr(_step, "is_known", lambda: False)
    assert seen() == short


def test_a_breaker_of_a_parking_lot_breaks_it_when_it_ends() -> None:
    """A task that breaks a parking lot does so also when it ends in the short way."""

    async def program() -> str:
        lot = trio.lowlevel.ParkingLot()

        async def breaks() -> None:
            trio.lowlevel.add_parking_lot_breaker(trio.lowlevel.current_task(), lot)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(breaks)
        try:
            await lot.park()
        except trio.BrokenResourceError:
            return "broken"
        return "whole"

    assert sim.explore(program, sim.Random(sim.RandomWalk(1), 3)).outcomes == {"broken": 3}


def test_instruments_of_a_program_see_its_tasks_and_not_those_of_the_next() -> None:
    """A program that adds an instrument has the long way, and the next execution has no instrument."""

    class Counting(trio.abc.Instrument):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def task_spawned(self, task: trio.lowlevel.Task) -> None:
            self.seen.append("spawned")

        def task_exited(self, task: trio.lowlevel.Task) -> None:
            self.seen.append("exited")

    kept: list[Counting] = []

    async def program() -> tuple[str, ...]:
        counting = Counting()
        kept.append(counting)
        trio.lowlevel.add_instrument(counting)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checkpoint)
        return tuple(counting.seen)

    assert sim.explore(program, sim.Random(sim.RandomWalk(1), 5)).outcomes == {("spawned", "exited"): 5}
    # The program's own task ends while its instrument is there, and nothing of the executions after it is seen.
    assert {tuple(counting.seen) for counting in kept} == {("spawned", "exited", "exited")}


class _Sink:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.accesses = 0

    def event(self, kind: str, fields: Any) -> None:
        """Nothing happens here."""

    def access(self, resource: Any, write: bool) -> None:
        """Count."""
        self.accesses += 1


def test_the_observer_before_a_simulation_sees_nothing_of_it() -> None:
    """One that observes meanwhile is told nothing by the executions, and has the probe in checks and at the end."""
    sink = _Sink()

    async def program() -> int:
        cell = sim.Cell(0, name="a")
        cell.set(cell.get() + 1)
        return cell.get()

    outside = sim.Cell(0, name="b")
    with probe.observed_by(sink):
        sim.explore(program, sim.Random(sim.RandomWalk(1), 30))
        sim.explore(program, sim.Exhaustive())
        assert sink.accesses == 0
        sim.explore(program, sim.Random(sim.RandomWalk(1), 30), lambda execution: outside.get() == 0)
        assert sink.accesses == 30
        outside.get()
        assert sink.accesses == 31


def test_the_second_run_of_a_walk_makes_the_choices_of_the_first() -> None:
    """A walk that no report shows has no names of tasks; its second run makes the same choices without them."""

    async def program() -> tuple[int, ...]:
        order: list[int] = []

        async def note(number: int) -> None:
            await checkpoint()
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(note, number)
        return tuple(order)

    report = sim.explore(program, sim.Random(sim.RandomWalk(1), 12))
    assert report.verdict is sim.PASS
    assert len(report.outcomes) > 5

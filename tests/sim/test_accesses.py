"""What Trio's own primitives say about the steps that use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import trio
import trio.testing
from trio.lowlevel import checkpoint

from toolrt import probe, sim


def touched(program: Callable[[], Awaitable[Any]], policy: sim.Policy | None = None) -> list[list[str]]:
    """Give what each step of one execution touched."""
    return [list(map(str, step.accesses)) for step in sim.run(program, policy).trace.steps]


def all_touched(program: Callable[[], Awaitable[Any]]) -> set[str]:
    """Give everything that was touched."""
    return {access for step in touched(program) for access in step}


async def _each(*tasks: Callable[[], Awaitable[Any]]) -> None:
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)


def test_event_is_written_once() -> None:
    """Waiting and asking read; setting writes, and a second time it only reads."""

    async def program() -> None:
        event = trio.Event()

        async def put() -> None:
            event.set()

        async def ask() -> None:
            event.is_set()

        await _each(event.wait, put, put, ask)

    read, written = ["reads Event main 0"], ["writes Event main 0"]
    assert touched(program)[1:5] == [read, written, read, read]


def test_lock_that_nobody_waits_for_is_written() -> None:
    """Taking a free lock writes it, and so does ending without giving it back, which breaks it."""

    async def program() -> None:
        await trio.Lock().acquire()

    assert touched(program) == [["writes Lock main 0"], ["writes Lock main 0"]]


def test_reparking_writes_both_queues() -> None:
    """A task that is moved leaves one and joins another."""

    async def program() -> None:
        one, two = trio.lowlevel.ParkingLot(), trio.lowlevel.ParkingLot()
        one.repark(two)

    assert touched(program) == [["writes ParkingLot main 0", "writes ParkingLot main 1"]]


def test_condition_touches_both_queues() -> None:
    """Notifying moves a task from the condition's queue to the lock's."""

    async def program() -> None:
        condition = trio.Condition()

        async def wait() -> None:
            async with condition:
                await condition.wait()

        async def notify() -> None:
            async with condition:
                condition.notify()

        await _each(wait, notify)

    steps = touched(program, sim.Choices([0, 0, 0, 1]))
    assert ["writes Condition main 0", "writes Lock main 0"] in steps


def test_infinite_limits_are_only_read() -> None:
    """Nobody waits for one of infinitely many tokens."""

    async def program() -> None:
        limit = trio.CapacityLimiter(inf)

        async def use() -> None:
            async with limit:
                pass

        await _each(use, use)

    assert sim.explore(program, sim.DPOR()).executions == 1


def test_parking_lot_is_written() -> None:
    """Parking and waking write; looking reads."""

    async def program() -> int:
        lot = trio.lowlevel.ParkingLot()

        async def wake() -> None:
            lot.unpark_all()

        async def look() -> None:
            len(lot)

        await _each(lot.park, wake, look)
        return 0

    assert touched(program)[1:4] == [
        ["writes ParkingLot main 0"],
        ["writes ParkingLot main 0"],
        ["reads ParkingLot main 0"],
    ]


def test_cancelling_writes_what_it_cancels() -> None:
    """The scope, those below it, and the queue out of which a task is taken; a shielded scope is read."""

    async def program() -> None:
        lock = trio.Lock()
        await lock.acquire()
        with trio.CancelScope() as scope:

            async def wait() -> None:
                with trio.CancelScope():
                    await lock.acquire()

            async def keep() -> None:
                with trio.CancelScope(shield=True):
                    await checkpoint()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                nursery.start_soon(keep)
                await checkpoint()
                scope.cancel()

    (cancelling,) = [step for step in touched(program) if "writes CancelScope main 0" in step]
    assert cancelling == [
        "writes CancelScope main 0",
        "writes CancelScope main 1",
        "writes CancelScope main.0 0",
        "reads CancelScope main.1 0",
        "writes Lock main 0",
    ]


def test_a_child_that_raises_writes_its_nursery_and_its_scope() -> None:
    """Its siblings are cancelled, and its exception has a place among the others."""

    async def program() -> None:
        async def fail() -> None:
            raise ValueError

        await _each(fail)

    assert touched(program)[1] == ["writes CancelScope main 0", "writes Nursery main 0"]


def test_a_child_that_is_cancelled_commutes_with_its_siblings() -> None:
    """Ending by being cancelled is no choice: five tasks that are cancelled while they wait end in one trace."""

    async def program() -> None:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()

    assert sim.explore(program, sim.DPOR("declared", samples=0)).executions == 1


def test_spawning_in_a_nursery_that_may_close_is_a_race() -> None:
    """Whoever is not inside a nursery spawns in it before it closes, or is refused."""

    async def program() -> str:
        opened = trio.Event()
        nurseries: list[trio.Nursery] = []
        seen = []

        async def keep() -> None:
            async with trio.open_nursery() as nursery:
                nurseries.append(nursery)
                opened.set()
                await checkpoint()

        async def spawn() -> None:
            await opened.wait()
            try:
                nurseries[0].start_soon(checkpoint)
            except RuntimeError:
                seen.append("refused")
            else:
                seen.append("spawned")

        await _each(keep, spawn)
        return seen[0]

    report = sim.explore(program, sim.DPOR("declared", samples=0))
    assert set(report.outcomes) == {"refused", "spawned"}


def test_somebody_elses_abort_function_may_do_anything() -> None:
    """Cancelling a task that is parked by a primitive Trio does not know conflicts with everything."""

    async def program() -> None:
        def abort(_: object) -> trio.lowlevel.Abort:
            return trio.lowlevel.Abort.SUCCEEDED

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.lowlevel.wait_task_rescheduled, abort)
            await checkpoint()
            nursery.cancel_scope.cancel()

    assert "writes anything" in all_touched(program)


def test_deadlines_are_read_and_written() -> None:
    """Moving a deadline is an access of its own; one in the past cancels."""

    async def program() -> None:
        scope = trio.CancelScope()

        async def move() -> None:
            scope.deadline = 5

        async def end() -> None:
            scope.deadline = 0

        await _each(move, end)

    _, moving, ending, _ = touched(program)
    assert moving == ["writes CancelScope main 0 deadline"]
    assert ending == ["writes CancelScope main 0", "writes CancelScope main 0 deadline"]


def test_run_variables_are_seen() -> None:
    """A RunVar is shared by all tasks of a run."""
    variable: trio.lowlevel.RunVar[int] = trio.lowlevel.RunVar("depth", default=0)

    async def program() -> None:
        variable.set(variable.get() + 1)

    assert touched(program) == [["reads RunVar depth", "writes RunVar depth"]]


def test_checkpoints_and_sleeps_report_nothing() -> None:
    """What follows from where code runs is no report: such a step may have done anything."""

    async def program() -> None:
        with trio.move_on_after(1):
            await checkpoint()
            await trio.sleep(2)

    assert touched(program) == [[], [], []]


def test_things_are_named_after_their_maker() -> None:
    """The same in every schedule, and counted for each kind."""

    async def program() -> None:
        async def work() -> None:
            trio.Lock()
            trio.Event()
            lock = trio.Lock()
            await lock.acquire()

        await _each(work, work)

    names = {
        access.resource
        for execution in (sim.run(program), sim.run(program, sim.RandomWalk(3)))
        for step in execution.trace.steps
        for access in step.accesses
    }
    assert names == {("Lock", "main.0", 1), ("Lock", "main.1", 1)}


def test_things_made_outside_keep_one_name() -> None:
    """A lock of the module's is one resource in all executions, and replays whatever else there is."""
    lock = trio.Lock()

    async def program() -> None:
        async def use() -> None:
            async with lock:
                pass

        await _each(use, use)

    report = sim.explore(program, sim.DPOR())
    assert report.complete
    schedule = sim.run(program).schedule
    assert {access.resource[:2] for step in schedule.steps for access in step.accesses} == {("cell", "outside")}
    assert sim.replay(program, schedule.to_json()).error is None


def test_nothing_is_reported_outside_a_simulation() -> None:
    """An observer of a production run hears nothing of Trio's primitives."""
    heard = []

    class Listener:
        def event(self, kind: str, fields: object) -> None:
            heard.append(kind)

        def access(self, resource: object, write: bool) -> None:
            heard.append(resource)

    async def program() -> None:
        async with trio.Lock():
            trio.Event().set()

    with probe.observed_by(Listener()):
        trio.run(program)
    assert heard == []


def test_primitives_outside_the_program_do_not_report() -> None:
    """What a check does in a Trio run of its own belongs to no step."""

    async def program() -> None:
        await checkpoint()

    async def other() -> None:
        async with trio.Lock():
            pass

    def check(execution: sim.Execution) -> bool:
        trio.run(other)
        return True

    report = sim.explore(program, sim.Random(sim.Fifo(), 3), check)
    assert report.executions == 3

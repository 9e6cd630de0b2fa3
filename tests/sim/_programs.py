"""Programs made of a few operations each, to hold the reduction against its oracle, and some that several tests share.

A program is a tuple of tasks, a task a tuple of operations, an operation a tuple of its name and numbers.  Each task
writes down what it saw; what they wrote is the outcome, also of an execution that ends in a deadlock.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.workspace import MemoryDisk

Operation = tuple[Any, ...]

#: How many there are of each thing that operations name by number.
THINGS = 2


async def lost_update(tasks: int = 2, rounds: int = 1, name: str = "x") -> int:
    """Tasks that each read a cell, pass a checkpoint and write one more, `rounds` times: some of it may get lost."""
    cell = sim.Cell(0, name=name)

    async def add() -> None:
        for _ in range(rounds):
            seen = cell.get()
            await checkpoint()
            cell.set(seen + 1)

    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(add)
    return cell.get()


async def withholding() -> None:
    """Whether a task waits follows from a list that no step reports; a third task writes a cell."""
    cell, queue, waiting = sim.Cell(0, "x"), list[int](), list[trio.Event]()

    async def take() -> None:
        while not queue:
            event = trio.Event()
            waiting.append(event)
            await event.wait()
        queue.pop()
        await checkpoint()

    async def put() -> None:
        queue.append(1)
        if waiting:
            waiting.pop().set()

    async def write() -> None:
        cell.set(1)

    async with trio.open_nursery() as nursery:
        for task in (take, put, write):
            nursery.start_soon(task)


async def two_scopes() -> tuple[bool, ...]:
    """Two scopes of one name, in two tasks."""
    cut: dict[int, bool] = {}

    async def work(number: int) -> None:
        with sim.scope("work") as scope:
            await checkpoint()
        cut[number] = scope.cancelled_caught

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, 0)
        nursery.start_soon(work, 1)
    return cut[0], cut[1]


async def faulty_change() -> tuple[str, str]:
    """A file of the disk in memory is changed, and any of its effects may fail: where it did, and what is there."""
    operations: list[str] = []

    def where(operation: str, *_: Any) -> bool:
        operations.append(operation)
        return True

    disk = MemoryDisk({"a.txt": "old"}, fault=sim.faults(OSError(errno.EIO, "broken"), where=where))
    try:
        await disk.revise(("a.txt",), 100, lambda _: b"new")
    except OSError:
        return f"failed at {operations[-1]}", disk.peek(("a.txt",)).decode()
    return "changed", disk.peek(("a.txt",)).decode()


async def faulty_work() -> tuple[bool, ...]:
    """A fault, a cancel and a timeout may come in any combination: which of them did."""
    fault = sim.faults(ValueError("broken"))
    failed = False
    with trio.move_on_after(1) as timeout, sim.scope("work") as scope:
        await checkpoint()
        try:
            fault()
        except ValueError:
            failed = True
        await checkpoint()
    return failed, scope.cancelled_caught, timeout.cancelled_caught


class World:
    """What the tasks of one execution share."""

    def __init__(self) -> None:
        self.cells = [sim.Cell(0) for _ in range(THINGS)]
        self.locks = [trio.Lock() for _ in range(THINGS)]
        self.events = [trio.Event() for _ in range(THINGS)]
        self.scopes = [trio.CancelScope() for _ in range(THINGS)]
        self.channels = [trio.open_memory_channel[int](size) for size in (0, 1)]
        self.semaphores = [trio.Semaphore(1), trio.Semaphore(2)]
        self.limiters = [trio.CapacityLimiter(1), trio.CapacityLimiter(2)]
        self.condition = trio.Condition()
        self.lot = trio.lowlevel.ParkingLot()


async def _set(world: World, log: list[Any], me: int, which: int) -> None:
    world.cells[which].set(me + 1)


async def _get(world: World, log: list[Any], me: int, which: int) -> None:
    log.append(world.cells[which].get())


async def _add(world: World, log: list[Any], me: int, which: int) -> None:
    seen = world.cells[which].get()
    await checkpoint()
    world.cells[which].set(seen + 1)


async def _choose(world: World, log: list[Any], me: int, which: int) -> None:
    """Touch one cell or another, as a third says."""
    if world.cells[which].get():
        world.cells[1 - which].set(7)
    else:
        log.append("no")


async def _checkpoint(world: World, log: list[Any], me: int, which: int) -> None:
    await checkpoint()


async def _lock(world: World, log: list[Any], me: int, which: int) -> None:
    async with world.locks[which]:
        seen = world.cells[0].get()
        world.cells[0].set(seen + 1)
        log.append(seen)


async def _nested_locks(world: World, log: list[Any], me: int, which: int) -> None:
    async with world.locks[which], world.locks[1 - which]:
        pass


async def _try_lock(world: World, log: list[Any], me: int, which: int) -> None:
    try:
        world.locks[which].acquire_nowait()
    except trio.WouldBlock:
        log.append("held")
    else:
        await checkpoint()
        world.locks[which].release()


async def _wait(world: World, log: list[Any], me: int, which: int) -> None:
    await world.events[which].wait()


async def _fire(world: World, log: list[Any], me: int, which: int) -> None:
    world.events[which].set()


async def _is_set(world: World, log: list[Any], me: int, which: int) -> None:
    log.append(world.events[which].is_set())


async def _send(world: World, log: list[Any], me: int, which: int) -> None:
    try:
        await world.channels[which][0].send(me)
    except (trio.ClosedResourceError, trio.BrokenResourceError) as error:
        log.append(type(error).__name__)


async def _receive(world: World, log: list[Any], me: int, which: int) -> None:
    try:
        log.append(await world.channels[which][1].receive())
    except (trio.ClosedResourceError, trio.EndOfChannel) as error:
        log.append(type(error).__name__)


async def _close(world: World, log: list[Any], me: int, which: int) -> None:
    world.channels[0][which].close()


async def _semaphore(world: World, log: list[Any], me: int, which: int) -> None:
    async with world.semaphores[which]:
        log.append(world.cells[0].get())


async def _limiter(world: World, log: list[Any], me: int, which: int) -> None:
    async with world.limiters[which]:
        world.cells[1].set(me)


async def _condition_wait(world: World, log: list[Any], me: int, which: int) -> None:
    async with world.condition:
        await world.condition.wait()


async def _notify(world: World, log: list[Any], me: int, which: int) -> None:
    async with world.condition:
        world.condition.notify(which + 1)


async def _park(world: World, log: list[Any], me: int, which: int) -> None:
    await world.lot.park()


async def _unpark(world: World, log: list[Any], me: int, which: int) -> None:
    log.append(len(world.lot.unpark(count=which + 1)))


async def _sleep(world: World, log: list[Any], me: int, which: int) -> None:
    await trio.sleep(1 + which)
    log.append(trio.current_time())


async def _timeout(world: World, log: list[Any], me: int, which: int) -> None:
    with trio.move_on_after(1 + which) as scope:
        await world.events[which].wait()
    log.append(scope.cancelled_caught)


async def _cancel(world: World, log: list[Any], me: int, which: int) -> None:
    world.scopes[which].cancel()


async def _deadline(world: World, log: list[Any], me: int, which: int) -> None:
    world.scopes[which].deadline = which


async def _is_cancelled(world: World, log: list[Any], me: int, which: int) -> None:
    log.append(world.scopes[which].cancel_called)


async def _shield(world: World, log: list[Any], me: int, which: int) -> None:
    with trio.CancelScope(shield=True):
        await _add(world, log, me, which)


async def _family(world: World, log: list[Any], me: int, which: int) -> None:
    """Two children: one fails, or both add."""

    async def child(number: int) -> None:
        if number and which:
            raise ValueError(number)
        await _add(world, log, me, 0)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child, 0)
            nursery.start_soon(child, 1)
    except* ValueError:
        log.append("failed")


async def _pick(world: World, log: list[Any], me: int, which: int) -> None:
    """Choose, and touch what was chosen."""
    chosen = sim.choose(2 + which)
    log.append(chosen)
    if chosen:
        world.cells[chosen - 1].set(me + 10)


async def _scoped(world: World, log: list[Any], me: int, which: int) -> None:
    with sim.scope("work") as scope:
        await _add(world, log, me, which)
    log.append(scope.cancelled_caught)


async def _now(world: World, log: list[Any], me: int, which: int) -> None:
    log.append(trio.current_time())


async def _hurry(world: World, log: list[Any], me: int, which: int) -> None:
    """Add to a cell, under a timeout."""
    with trio.move_on_after(1 + which) as scope:
        await _add(world, log, me, which)
    log.append(scope.cancelled_caught)


async def _idle(world: World, log: list[Any], me: int, which: int) -> None:
    await trio.testing.wait_all_tasks_blocked()
    log.append(world.cells[which].get())


def _called(world: World, me: int, which: int) -> None:
    world.cells[which].set(2 * world.cells[which].get() + me)


async def _soon(world: World, log: list[Any], me: int, which: int) -> None:
    """Give Trio's loop a callback."""
    trio.lowlevel.current_trio_token().run_sync_soon(_called, world, me, which)


async def _system(world: World, log: list[Any], me: int, which: int) -> None:
    """Spawn a task that the program does not wait for."""
    trio.lowlevel.spawn_system_task(_add, world, [], me, which)


OPERATIONS: dict[str, Callable[[World, list[Any], int, int], Awaitable[None]]] = {
    function.__name__[1:]: function
    for function in (
        _set,
        _get,
        _add,
        _choose,
        _checkpoint,
        _lock,
        _nested_locks,
        _try_lock,
        _wait,
        _fire,
        _is_set,
        _send,
        _receive,
        _close,
        _semaphore,
        _limiter,
        _condition_wait,
        _notify,
        _park,
        _unpark,
        _sleep,
        _timeout,
        _cancel,
        _deadline,
        _is_cancelled,
        _shield,
        _family,
        _pick,
        _scoped,
        _now,
        _hurry,
        _idle,
        _soon,
        _system,
    )
}


async def set_apart() -> list[sim.Cell[int]]:
    """Two tasks set a cell twice each, and share nothing."""
    cells = [sim.Cell(0), sim.Cell(0)]

    async def work(cell: sim.Cell[int]) -> None:
        cell.set(1)
        await checkpoint()
        cell.set(2)

    async with trio.open_nursery() as nursery:
        for cell in cells:
            nursery.start_soon(work, cell)
    return cells


def program_of(tasks: tuple[tuple[int | None, tuple[Operation, ...]], ...]) -> Callable[[], Awaitable[Any]]:
    """Make a program of tasks; each is the number of the scope it runs in, or None, and its operations.

    A scope is entered by the first task that is in it.
    """

    async def program() -> list[Any]:
        world = World()
        logs: list[list[Any]] = [[] for _ in tasks]
        entered: set[int] = set()

        async def run(me: int, scope: int | None, operations: tuple[Operation, ...]) -> None:
            if scope is not None:
                with world.scopes[scope]:
                    await run(me, None, operations)
                    return
                logs[me].append("cancelled")
                return
            for name, which in operations:
                await OPERATIONS[name](world, logs[me], me, which)

        async with trio.open_nursery() as nursery:
            for me, (scope, operations) in enumerate(tasks):
                own = scope if scope is not None and scope not in entered else None
                if own is not None:
                    entered.add(own)
                nursery.start_soon(run, me, own, operations)
        return logs

    return program


async def timed() -> tuple[int, bool, float]:
    """Three steps under a timeout."""
    done = 0
    with trio.move_on_after(1) as scope:
        for _ in range(3):
            await checkpoint()
            done += 1
    return done, scope.cancelled_caught, trio.current_time()

"""Programs that wait for each other: events, conditions, semaphores, barriers, limiters, and time."""

from __future__ import annotations

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Count, Litmus, Program, one_step, together

__all__ = ["WAITING"]

_DEADLOCK = "Deadlock"


async def _event_set_before_wait() -> str:
    ready = trio.Event()

    async def hear() -> None:
        await ready.wait()

    await together(one_step(ready.set), hear)
    return "heard"


def _event_with_data(data_first: bool) -> Program:
    async def program() -> int:
        ready, data = trio.Event(), Cell(0, name="data")
        seen: list[int] = []

        async def say() -> None:
            if data_first:
                data.set(1)
                await checkpoint()
                ready.set()
            else:
                ready.set()
                await checkpoint()
                data.set(1)

        async def hear() -> None:
            await ready.wait()
            seen.append(data.get())

        await together(say, hear)
        return seen[0]

    return program


async def _lost_wakeup() -> str:
    changed = trio.Condition()

    async def wait() -> None:
        async with changed:
            await changed.wait()

    async def wake() -> None:
        async with changed:
            changed.notify()

    await together(wait, wake)
    return "woken"


async def _wakeup_with_predicate() -> str:
    changed, ready = trio.Condition(), Cell(False, name="ready")

    async def wait() -> None:
        async with changed:
            while not ready.get():
                await changed.wait()

    async def wake() -> None:
        async with changed:
            ready.set(True)
            changed.notify()

    await together(wait, wake)
    return "woken"


async def _stolen_wakeup() -> str:
    changed, items = trio.Condition(), Cell(0, name="items")
    took: list[int] = []

    async def take() -> None:
        async with changed:
            if items.get() == 0:
                await changed.wait()
            items.set(items.get() - 1)
            took.append(items.get())

    async def put() -> None:
        async with changed:
            items.set(1)
            changed.notify_all()
        async with changed:
            items.set(items.get() + 1)
            changed.notify_all()

    await together(take, take, put)
    return "below zero" if min(took) < 0 else "all taken"


def _bounded_buffer(producers: int, consumers: int, items: int, wake_all: bool) -> Program:
    """One condition for "not full" and "not empty"; `items` for each consumer, room for one."""

    async def program() -> str:
        changed, held = trio.Condition(), Cell(0, name="held")

        def wake() -> None:
            if wake_all:
                changed.notify_all()
            else:
                changed.notify()

        async def put(count: int) -> None:
            for _ in range(count):
                async with changed:
                    while held.get() == 1:
                        await changed.wait()
                    held.set(1)
                    wake()

        async def take(count: int) -> None:
            for _ in range(count):
                async with changed:
                    while held.get() == 0:
                        await changed.wait()
                    held.set(0)
                    wake()

        async with trio.open_nursery() as nursery:
            for _ in range(producers):
                nursery.start_soon(put, items * consumers // producers)
            for _ in range(consumers):
                nursery.start_soon(take, items)
        return "empty"

    return program


def _rendezvous(release_first: bool) -> Program:
    async def program() -> str:
        gates = [trio.Semaphore(0), trio.Semaphore(0)]

        async def meet(own: int) -> None:
            if release_first:
                gates[own].release()
                await gates[1 - own].acquire()
            else:
                await gates[1 - own].acquire()
                gates[own].release()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(meet, 0)
            nursery.start_soon(meet, 1)
        return "met"

    return program


def _barrier(rounds: int, checked: bool) -> Program:
    """The last to arrive opens the gate for all; used again without a second gate, it lets one through twice."""

    async def program() -> str:
        arrived, gate = Cell(0, name="arrived"), trio.Semaphore(0)
        at = [0, 0]
        apart: list[int] = []

        async def walk(own: int) -> None:
            for _ in range(rounds):
                at[own] += 1
                arrived.set(arrived.get() + 1)
                if checked:
                    await checkpoint()
                if arrived.get() == 2:
                    arrived.set(0)
                    gate.release()
                    gate.release()
                await gate.acquire()
                apart.append(abs(at[0] - at[1]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(walk, 0)
            nursery.start_soon(walk, 1)
        return "together" if max(apart) <= 1 else "apart"

    return program


def _at_most(limit: int, tasks: int) -> Program:
    async def program() -> int:
        limiter, inside, most = trio.CapacityLimiter(limit), Cell(0, name="inside"), Cell(0, name="most")

        async def enter() -> None:
            async with limiter:
                inside.set(inside.get() + 1)
                most.set(max(most.get(), inside.get()))
                await checkpoint()
                inside.set(inside.get() - 1)

        await together(*[enter] * tasks)
        return most.get()

    return program


async def _sleep_order() -> str:
    log: list[str] = []

    async def after(seconds: float) -> None:
        await trio.sleep(seconds)
        log.append(str(seconds))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(after, 2)
        nursery.start_soon(after, 1)
    return " ".join(log)


async def _sleep_tie() -> str:
    log = Cell("", name="log")

    async def after(name: str) -> None:
        await trio.sleep(1)
        log.set(log.get() + name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(after, "a")
        nursery.start_soon(after, "b")
    return log.get()


_BUFFER = (
    'Producers and consumers share a buffer of one place and one condition for both "not full" and "not empty",'
    " and wake one waiter (Cargill's example)."
)

#: Programs that wait.
WAITING: tuple[Litmus, ...] = (
    Litmus(
        "event_set_before_wait",
        "One task sets an event, the other waits for it. An event remembers: the order does not matter.",
        _event_set_before_wait,
        right={"heard"},
        interleavings=Count(2),
        classes=Count(2),
    ),
    Litmus(
        "event_after_data",
        "Data is written, then an event is set; whoever waits for the event finds the data.",
        _event_with_data(data_first=True),
        right={1},
        interleavings=Count(3),
        classes=Count(2),
    ),
    Litmus(
        "event_before_data",
        "The event is set before the data is there, and a waiter may look too early.",
        _event_with_data(data_first=False),
        right={1},
        wrong={0},
        interleavings=Count(5),
        classes=Count(4),
    ),
    Litmus(
        "lost_wakeup",
        "One task waits for a condition, another notifies. A condition does not remember: a notification that nobody"
        " waits for is gone, and who comes later waits for ever.",
        _lost_wakeup,
        right={"woken"},
        wrong={_DEADLOCK},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "wakeup_with_predicate",
        "As lost_wakeup, with a fact that is written down under the lock and looked at before waiting.",
        _wakeup_with_predicate,
        right={"woken"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "stolen_wakeup",
        "Two consumers look once (if, not while) whether there is an item, and wait when there is none. Both are woken"
        " for the one item, and the second takes what is not there.",
        _stolen_wakeup,
        right={"all taken"},
        wrong={"below zero"},
        interleavings=Count(46),
        classes=Count(46),
    ),
    Litmus(
        "bounded_buffer_1p2c",
        f"{_BUFFER} With one producer and two consumers other systems deadlock; Trio hands the lock to the first in"
        " line, and no schedule of it does.",
        _bounded_buffer(1, 2, 1, wake_all=False),
        right={"empty"},
        interleavings=Count(50),
        classes=Count(50),
    ),
    Litmus(
        "bounded_buffer_2p2c",
        f"{_BUFFER} With two of each, a consumer's notification may wake the other consumer, and all sleep.",
        _bounded_buffer(2, 2, 1, wake_all=False),
        right={"empty"},
        wrong={_DEADLOCK},
        interleavings=Count(480),
        classes=Count(480),
    ),
    Litmus(
        "bounded_buffer_2p2c_all",
        "As bounded_buffer_2p2c, but everyone is woken and looks again: no schedule deadlocks.",
        _bounded_buffer(2, 2, 1, wake_all=True),
        right={"empty"},
        interleavings=Count(480),
        classes=Count(480),
    ),
    Litmus(
        "rendezvous",
        "Two tasks each open the other's gate, then wait at their own: they meet in every schedule.",
        _rendezvous(release_first=True),
        right={"met"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "rendezvous_backwards",
        "The same with the two lines swapped: each waits for what the other does after waiting. No schedule is right.",
        _rendezvous(release_first=False),
        right=(),
        wrong={_DEADLOCK},
        interleavings=Count(2),
        classes=Count(1),
    ),
    Litmus(
        "barrier",
        "Two tasks count themselves at a barrier of one semaphore; who comes last opens it for both. Used"
        " once it holds.",
        _barrier(1, checked=False),
        right={"together"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "barrier_used_again",
        "As barrier, three times over. A permit that is released goes to whoever waits, at once: on Trio nobody can"
        " snatch it.",
        _barrier(3, checked=False),
        right={"together"},
        interleavings=Count(16),
        classes=Count(16),
    ),
    Litmus(
        "barrier_used_again_apart",
        "As barrier_used_again, with a checkpoint between counting and waiting. A fast task comes round and takes the"
        " permit that was meant for the slow one, which does not wait yet.",
        _barrier(3, checked=True),
        right={"together"},
        wrong={"apart", _DEADLOCK},
        interleavings=Count(1168),
        classes=Count(1168),
    ),
    Litmus(
        "at_most_2",
        "Three tasks under a CapacityLimiter of two: never more than two inside, and some schedule has no more than"
        " one.",
        _at_most(2, 3),
        right={1, 2},
        interleavings=Count(852),
        classes=Count(366),
    ),
    Litmus(
        "sleep_order",
        "Two sleeps of different length end in order: virtual time moves only when nothing can run.",
        _sleep_order,
        right={"1 2"},
        interleavings=Count(2),
        classes=Count(2),
    ),
    Litmus(
        "sleep_tie",
        "Two sleeps that end at the same instant end in either order.",
        _sleep_tie,
        right={"ab", "ba"},
        interleavings=Count(4),
        classes=Count(4),
    ),
)

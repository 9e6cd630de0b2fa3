"""Programs that wait for each other: events, conditions, semaphores, barriers, limiters, and time."""

from __future__ import annotations

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Program, gallery, one_step, together


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

        await together((meet, 0), (meet, 1))
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

        await together((walk, 0), (walk, 1))
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


async def _poll() -> int:
    value = Cell(0, name="value")

    async def poll() -> None:
        while not value.get():  # noqa: ASYNC110  that is what it shows
            await checkpoint()

    async def put() -> None:
        await checkpoint()
        value.set(1)

    await together(poll, put)
    return value.get()


async def _sleep_order() -> str:
    log: list[str] = []

    async def after(seconds: float) -> None:
        await trio.sleep(seconds)
        log.append(str(seconds))

    await together((after, 2), (after, 1))
    return " ".join(log)


async def _sleep_tie() -> str:
    log = Cell("", name="log")

    async def after(name: str) -> None:
        await trio.sleep(1)
        log.set(log.get() + name)

    await together((after, "a"), (after, "b"))
    return log.get()


_BUFFER = (
    'Producers and consumers share a buffer of one place and one condition for both "not full" and "not empty",'
    " and wake one waiter (Cargill's example)."
)

#: Programs that wait.
WAITING = gallery(
    """
    program                  | right       | wrong               | schedules | classes
    event_set_before_wait    | "heard"     |                     | 2         | 2
    event_after_data         | 1           |                     | 3         | 2
    event_before_data        | 1           | 0                   | 5         | 4
    lost_wakeup              | "woken"     | "Deadlock"          | 4         | 4
    wakeup_with_predicate    | "woken"     |                     | 4         | 4
    stolen_wakeup            | "all taken" | "below zero"        | 46        | 46
    bounded_buffer_1p2c      | "empty"     |                     | 50        | 50
    bounded_buffer_2p2c      | "empty"     | "Deadlock"          | 480       | 480
    bounded_buffer_2p2c_all  | "empty"     |                     | 480       | 480
    rendezvous               | "met"       |                     | 4         | 4
    rendezvous_backwards     |             | "Deadlock"          | 2         | 1
    barrier                  | "together"  |                     | 4         | 4
    barrier_used_again       | "together"  |                     | 16        | 16
    barrier_used_again_apart | "together"  | "Deadlock", "apart" | 1,168     | 1,168
    at_most_2                | 1, 2        |                     | 852       | 366
    poll                     | 1           |                     | 7         | 7
    sleep_order              | "1 2"       |                     | 2         | 2
    sleep_tie                | "ab", "ba"  |                     | 4         | 4
    """,
    event_set_before_wait=(
        _event_set_before_wait,
        "One task sets an event, the other waits for it. An event remembers: the order does not matter.",
    ),
    event_after_data=(
        _event_with_data(data_first=True),
        "Data is written, then an event is set; a task that waits for the event finds the data.",
    ),
    event_before_data=(
        _event_with_data(data_first=False),
        "The event is set before the data is there, and a waiter may look too early.",
    ),
    lost_wakeup=(
        _lost_wakeup,
        "One task waits for a condition, another notifies. A condition does not remember: a notification that no task"
        " waits for is gone, and a task that comes later waits for ever.",
    ),
    wakeup_with_predicate=(
        _wakeup_with_predicate,
        "As lost_wakeup, with a fact that is written down under the lock and looked at before waiting.",
    ),
    stolen_wakeup=(
        _stolen_wakeup,
        "Two consumers look once (if, not while) whether there is an item, and wait when there is none. Both are woken"
        " for the one item, and the second takes what is not there.",
    ),
    bounded_buffer_1p2c=(
        _bounded_buffer(1, 2, 1, wake_all=False),
        f"{_BUFFER} With one producer and two consumers other systems deadlock; Trio hands the lock to the first in"
        " line, and no schedule of it does.",
    ),
    bounded_buffer_2p2c=(
        _bounded_buffer(2, 2, 1, wake_all=False),
        f"{_BUFFER} With two of each, a consumer's notification may wake the other consumer, and all sleep.",
    ),
    bounded_buffer_2p2c_all=(
        _bounded_buffer(2, 2, 1, wake_all=True),
        "As bounded_buffer_2p2c, but every task is woken and looks again: no schedule deadlocks.",
    ),
    rendezvous=(
        _rendezvous(release_first=True),
        "Two tasks each open the other's gate, then wait at their own: they meet in every schedule.",
    ),
    rendezvous_backwards=(
        _rendezvous(release_first=False),
        "The same with the two lines swapped: each waits for what the other does after waiting. No schedule is right.",
    ),
    barrier=(
        _barrier(1, checked=False),
        "Two tasks count themselves at a barrier of one semaphore; the last of them opens it for both."
        " Used once it holds.",
    ),
    barrier_used_again=(
        _barrier(3, checked=False),
        "As barrier, three times over. A permit that is released goes to a waiter at once: on Trio no other task can"
        " snatch it.",
    ),
    barrier_used_again_apart=(
        _barrier(3, checked=True),
        "As barrier_used_again, with a checkpoint between counting and waiting. A fast task comes round and takes the"
        " permit that was meant for the slow one, which does not wait yet.",
    ),
    at_most_2=(
        _at_most(2, 3),
        "Three tasks under a CapacityLimiter of two: never more than two inside, and some schedule has no more than"
        " one.",
    ),
    poll=(
        _poll,
        "One task polls for what another writes. One schedule would let it poll for ever; a round that wrote nothing is"
        " not repeated before something has been written, so every schedule ends.",
    ),
    sleep_order=(
        _sleep_order,
        "Two sleeps of different length end in order: virtual time moves only when nothing can run.",
    ),
    sleep_tie=(_sleep_tie, "Two sleeps that end at the same instant end in either order."),
)

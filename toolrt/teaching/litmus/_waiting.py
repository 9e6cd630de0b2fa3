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


#: Programs that wait.
WAITING = gallery(
    event_set_before_wait=_event_set_before_wait,
    event_after_data=_event_with_data(data_first=True),
    event_before_data=_event_with_data(data_first=False),
    lost_wakeup=_lost_wakeup,
    wakeup_with_predicate=_wakeup_with_predicate,
    stolen_wakeup=_stolen_wakeup,
    bounded_buffer_1p2c=_bounded_buffer(1, 2, 1, wake_all=False),
    bounded_buffer_2p2c=_bounded_buffer(2, 2, 1, wake_all=False),
    bounded_buffer_2p2c_all=_bounded_buffer(2, 2, 1, wake_all=True),
    rendezvous=_rendezvous(release_first=True),
    rendezvous_backwards=_rendezvous(release_first=False),
    barrier=_barrier(1, checked=False),
    barrier_used_again=_barrier(3, checked=False),
    barrier_used_again_apart=_barrier(3, checked=True),
    at_most_2=_at_most(2, 3),
    poll=_poll,
    sleep_order=_sleep_order,
    sleep_tie=_sleep_tie,
)

"""Programs whose outcome is a history: whether the calls of an object can have come one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.teaching.litmus._litmus import Count, Litmus


class TicketModel:
    """Hands out numbers, one call after the other."""

    last = 0

    def take(self) -> int:
        """Give the next number."""
        self.last += 1
        return self.last


class SlotModel:
    """A place for one item, one call after the other."""

    item: int | None = None

    def put(self, item: int) -> None:
        """Put an item into the empty place.

        Raises:
            Blocked: an item is there.
        """
        if self.item is not None:
            raise sim.Blocked
        self.item = item

    def get(self) -> int:
        """Take the item.

        Raises:
            Blocked: there is none.
        """
        if self.item is None:
            raise sim.Blocked
        item, self.item = self.item, None
        return item


def _read(model: Any) -> Callable[[sim.Execution], str]:
    def read(execution: sim.Execution) -> str:
        if execution.error is not None:
            return type(execution.error).__name__
        return "linearizable" if sim.linearizable(execution, model, cancelled="nothing") else "not linearizable"

    return read


def _tickets(locked: bool) -> Callable[[], Any]:
    async def program() -> sim.History:
        history, lock, last = sim.History(), trio.Lock(), sim.Cell(0, name="last")

        async def take() -> int:
            seen = last.get()
            await checkpoint()
            last.set(seen + 1)
            return seen + 1

        async def take_locked() -> int:
            async with lock:
                return await take()

        take_locked.__name__ = "take"
        method = take_locked if locked else take
        await history.run(*[lambda: history.call(method)] * 2)
        return history

    return program


def _slot(loses: bool) -> Callable[[], Any]:
    async def program() -> sim.History:
        history = sim.History()
        send, receive = trio.open_memory_channel[int](1)

        async def put(item: int) -> None:
            await send.send(item)

        async def get() -> int:
            item = await receive.receive()
            if loses:
                await checkpoint()
            return item

        with trio.CancelScope() as scope:

            async def cancel() -> None:  # noqa: ASYNC124  a task is one step
                scope.cancel()

            await history.call(put, 1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(history.call, get)
                nursery.start_soon(cancel)
        await history.run(lambda: history.call(get))
        return history

    return program


HISTORIES = (
    Litmus(
        "tickets_2",
        "Two tasks take a ticket; a checkpoint stands between the look at the last number and the new one. Both may get"
        " number 1, and no order of the two calls explains that.",
        _tickets(locked=False),
        right={"linearizable"},
        wrong={"not linearizable"},
        interleavings=Count(6),
        read=_read(TicketModel),
    ),
    Litmus(
        "tickets_2_locked",
        "The same behind a lock: in every schedule the two calls can have come one after the other.",
        _tickets(locked=True),
        right={"linearizable"},
        interleavings=Count(6),
        read=_read(TicketModel),
    ),
    Litmus(
        "cancelled_get",
        "A task that takes from a channel is cancelled, then another one takes. What Trio's channel promises holds: the"
        " item went to the first or is still there.",
        _slot(loses=False),
        right={"linearizable"},
        interleavings=Count(3),
        read=_read(SlotModel),
    ),
    Litmus(
        "cancelled_get_loses",
        "The same with a checkpoint behind the taking. Cancelled there, the item is gone: the second task waits for"
        " ever beside a place that is full in every order of the calls.",
        _slot(loses=True),
        right={"linearizable"},
        wrong={"not linearizable"},
        interleavings=Count(4),
        read=_read(SlotModel),
    ),
)

"""Programs whose outcome is a history: whether the calls of an object can have come one after the other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.teaching.litmus._litmus import Program, gallery, together


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


class OnCallModel:
    """Two doctors on call; one of them may leave, one call after the other."""

    def __init__(self) -> None:
        self.here = {"a", "b"}

    def leave(self, who: str) -> bool:
        """Let a doctor leave, unless the other one has left."""
        may = len(self.here) == 2
        if may:
            self.here.remove(who)
        return may


class RegisterModel:
    """A number that is written and read, one call after the other."""

    number = 0

    def write(self, number: int) -> None:
        """Keep another number."""
        self.number = number

    def read(self) -> int:
        """Give the number."""
        return self.number


def _judged(judge: Callable[[sim.Execution], str]) -> Callable[[sim.Execution], str]:
    """What `judge` says of the history of an execution, or the name of the error that it ended by."""
    return lambda execution: judge(execution) if execution.error is None else type(execution.error).__name__


def _linear(model: Any) -> Callable[[sim.Execution], str]:
    def judge(execution: sim.Execution) -> str:
        return "linearizable" if sim.linearizable(execution, model, cancelled="nothing") else "not linearizable"

    return _judged(judge)


@_judged
def _leaves_one(execution: sim.Execution) -> str:
    return "serializable" if sim.serializable(execution, OnCallModel) else "not serializable"


@_judged
def _how_strong(execution: sim.Execution) -> str:
    if sim.linearizable(execution, RegisterModel):
        return "linearizable"
    return "serializable only" if sim.serializable(execution, RegisterModel) else "neither"


def _tickets(locked: bool) -> Program:
    async def program() -> sim.History:
        history, lock, last = sim.History(), trio.Lock(), sim.Cell(0, name="last")

        async def take() -> int:
            async with lock if locked else nullcontext():
                seen = last.get()
                await checkpoint()
                last.set(seen + 1)
                return seen + 1

        await history.run(*[lambda: history.call(take)] * 2)
        return history

    return program


def _slot(loses: bool) -> Program:
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
            await together((history.call, get), cancel)
        await history.run(lambda: history.call(get))
        return history

    return program


def _on_call(locked: bool) -> Program:
    async def program() -> sim.History:
        history, lock = sim.History(), trio.Lock()
        here = {who: sim.Cell(True, name=who) for who in "ab"}

        async def leave(who: str) -> bool:
            async with lock if locked else nullcontext():
                may = all(cell.get() for cell in here.values())
                await checkpoint()
                if may:
                    here[who].set(False)
                return may

        await history.run(lambda: history.call(leave, "a"), lambda: history.call(leave, "b"))
        return history

    return program


async def _replica() -> sim.History:
    history = sim.History()
    source, copy = sim.Cell(0, name="source"), sim.Cell(0, name="copy")

    async def write(number: int) -> None:  # noqa: ASYNC124  a call is one step
        source.set(number)

    async def read() -> int:  # noqa: ASYNC124  a call is one step
        return copy.get()

    async def client() -> None:
        await history.call(write, 1)
        await checkpoint()
        await history.call(read)

    async def follow() -> None:  # noqa: ASYNC124  a task is one step
        copy.set(source.get())

    await together(client, follow)
    return history


#: Programs whose outcome is what a model says of their history.
HISTORIES = gallery(
    tickets_2=(_tickets(locked=False), {"read": _linear(TicketModel)}),
    tickets_2_locked=(_tickets(locked=True), {"read": _linear(TicketModel)}),
    cancelled_get=(_slot(loses=False), {"read": _linear(SlotModel)}),
    cancelled_get_loses=(_slot(loses=True), {"read": _linear(SlotModel)}),
    write_skew=(_on_call(locked=False), {"read": _leaves_one}),
    write_skew_locked=(_on_call(locked=True), {"read": _leaves_one}),
    stale_replica=(_replica, {"read": _how_strong}),
)

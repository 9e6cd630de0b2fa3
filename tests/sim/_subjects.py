"""Objects for histories under the explorer: sequential models of Trio's, and objects with a planted bug each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.sim import Operation


class SemaphoreModel:
    """`trio.Semaphore(1)`, one operation after the other."""

    value = 1

    def acquire(self) -> None:
        """Take one."""
        if not self.value:
            raise sim.Blocked
        self.value -= 1

    def acquire_nowait(self) -> None:
        """Take one, or raise."""
        if not self.value:
            raise trio.WouldBlock
        self.value -= 1

    def release(self) -> None:
        """Give one back."""
        self.value += 1


class LockModel:
    """`trio.Lock` and `trio.CapacityLimiter(1)`, which know who holds them."""

    owner: str | None = None

    def step(self, operation: Operation) -> None:
        """Do what the task of the operation asks for."""
        if operation.name == "release":
            if self.owner != operation.task:
                raise RuntimeError
            self.owner = None
        elif self.owner == operation.task:
            raise RuntimeError
        elif self.owner is None:
            self.owner = operation.task
        elif operation.name == "acquire":
            raise sim.Blocked
        else:
            raise trio.WouldBlock


class EventModel:
    """`trio.Event`."""

    flag = False

    def set(self) -> None:
        """Set it."""
        self.flag = True

    def is_set(self) -> bool:
        """Say whether it is set."""
        return self.flag

    def wait(self) -> None:
        """Wait until it is."""
        if not self.flag:
            raise sim.Blocked


class BufferModel:
    """A queue with one place, and a memory channel of size 1."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def put(self, item: int) -> None:
        """Add one."""
        if self.items:
            raise sim.Blocked
        self.items.append(item)

    def get(self) -> int:
        """Take one."""
        if not self.items:
            raise sim.Blocked
        return self.items.pop(0)

    send, receive = put, get


class ConditionBuffer:
    """A queue with one place, by `trio.Condition`."""

    def __init__(self) -> None:
        self.items: list[int] = []
        self.changed = trio.Condition()

    async def put(self, item: int) -> None:
        """Add one."""
        async with self.changed:
            while self.items:
                await self.changed.wait()
            self.items.append(item)
            self.changed.notify_all()

    async def get(self) -> int:
        """Take one."""
        async with self.changed:
            while not self.items:
                await self.changed.wait()
            self.changed.notify_all()
            return self.items.pop(0)


class LosingBuffer(ConditionBuffer):
    """Loses an item when `get` is cancelled: a checkpoint follows the taking."""

    async def get(self) -> int:
        """Take one."""
        item = await super().get()
        await checkpoint()
        return item


class ForgetfulBuffer(ConditionBuffer):
    """Wakes one task where several wait: a `put` may wake another `put`."""

    async def put(self, item: int) -> None:
        """Add one."""
        async with self.changed:
            while self.items:
                await self.changed.wait()
            self.items.append(item)
            self.changed.notify()

    async def get(self) -> int:
        """Take one."""
        async with self.changed:
            while not self.items:
                await self.changed.wait()
            self.changed.notify()
            return self.items.pop(0)


class CounterModel:
    """A counter."""

    value = 0

    def add(self) -> int:
        """Count."""
        self.value += 1
        return self.value


class Counter(CounterModel):
    """A counter behind a lock."""

    def __init__(self) -> None:
        self.lock = trio.Lock()

    async def add(self) -> int:  # type: ignore[override]
        """Count."""
        async with self.lock:
            seen = self.value
            await checkpoint()
            self.value = seen + 1
            return self.value


class RacingCounter(CounterModel):
    """A checkpoint stands between read and write."""

    async def add(self) -> int:  # type: ignore[override]
        """Count."""
        seen = self.value
        await checkpoint()
        self.value = seen + 1
        return self.value


class CacheModel:
    """Computes once: the first who asks makes version 1, and all get it."""

    version = 0

    def fetch(self) -> int:
        """Give the value."""
        self.version = self.version or 1
        return self.version


class Cache:
    """Computes behind a lock."""

    def __init__(self) -> None:
        self.version = 0
        self.lock = trio.Lock()

    async def fetch(self) -> int:
        """Give the value."""
        async with self.lock:
            if not self.version:
                await checkpoint()
                self.version += 1
        return self.version


class TwiceCache(Cache):
    """Two that miss at one time compute it twice."""

    async def fetch(self) -> int:
        """Give the value."""
        if not self.version:
            await checkpoint()
            self.version += 1
        return self.version


class _Channel:
    """A memory channel of size 1 as one object."""

    def __init__(self) -> None:
        ends = trio.open_memory_channel[int](1)
        self.send, self.receive = ends[0].send, ends[1].receive


#: The calls of each task, as names and arguments; a name with "?" is cancelled at any time.
Script = tuple[tuple[tuple[Any, ...], ...], ...]

_TAKE: Script = ((("acquire",), ("release",)), (("acquire_nowait",), ("release",)), (("acquire",),))
_LOCK: Script = ((("acquire",), ("release",)), (("acquire_nowait",), ("release",)), (("acquire",), ("release",)))
_LOCK_AND_CANCEL: Script = ((("acquire",), ("release",)), (("acquire?",), ("release",)), (("release",),))
_TAKE_AND_CANCEL: Script = ((("acquire",), ("release",)), (("acquire?",),), (("acquire_nowait",),))
_PASS: Script = ((("put", 1), ("put", 2)), (("get",), ("get",)))
_TWO_GET: Script = ((("put", 1), ("put", 2)), (("get?",),), (("get",), ("get",)))

#: By name: what makes the object, its model, and what is done with it.
RIGHT: dict[str, tuple[Callable[[], Any], Any, Script]] = {
    "semaphore": (lambda: trio.Semaphore(1), SemaphoreModel, ((("acquire",), ("release",)), (("acquire_nowait",),))),
    "semaphore cancelled": (lambda: trio.Semaphore(1), SemaphoreModel, _TAKE_AND_CANCEL),
    "limiter": (lambda: trio.CapacityLimiter(1), LockModel, _TAKE),
    "lock": (trio.Lock, LockModel, _LOCK),
    "lock cancelled": (trio.Lock, LockModel, _LOCK_AND_CANCEL),
    "event": (trio.Event, EventModel, ((("wait",),), (("set",),), (("is_set",), ("wait",)))),
    "channel": (_Channel, BufferModel, ((("send", 1), ("send", 2)), (("receive",), ("receive",)))),
    "channel cancelled": (_Channel, BufferModel, ((("send", 1),), (("receive?",),), (("receive",),))),
    "condition": (ConditionBuffer, BufferModel, _PASS),
    "condition cancelled": (ConditionBuffer, BufferModel, ((("put", 1),), (("get?",),), (("get",),))),
    "counter": (Counter, CounterModel, ((("add",),), (("add",),))),
    "cache": (Cache, CacheModel, ((("fetch",),), (("fetch",),))),
}
WRONG: dict[str, tuple[Callable[[], Any], Any, Script]] = {
    "loses an item on cancel": (LosingBuffer, BufferModel, _TWO_GET),
    "wakes the wrong task": (ForgetfulBuffer, BufferModel, ((("put", 1),), (("put", 2),), (("get",),), (("get",),))),
    "checkpoint between read and write": (RacingCounter, CounterModel, ((("add",),), (("add",),))),
    "computes twice": (TwiceCache, CacheModel, ((("fetch",),), (("fetch",),))),
}


def program_of(make: Callable[[], Any], script: Script) -> Callable[[], Awaitable[sim.History]]:
    """Give the program that does `script` with a new object, and returns its history."""

    async def program() -> sim.History:
        history = sim.History()
        subject = sim.recorded(make(), history)

        async def branch(calls: tuple[tuple[Any, ...], ...]) -> None:
            for name, *args in calls:
                method = getattr(subject, name.rstrip("?"))
                with trio.CancelScope() as scope:
                    if name.endswith("?"):
                        async with trio.open_nursery() as nursery:
                            nursery.start_soon(_cancel, scope)
                            await _called(method, args)
                    else:
                        await _called(method, args)

        await history.run(*(lambda calls=calls: branch(calls) for calls in script))  # type: ignore[misc]
        return history

    return program


async def _cancel(scope: trio.CancelScope) -> None:  # noqa: ASYNC124  a task is one step
    scope.cancel()


async def _called(method: Callable[..., Any], args: list[Any]) -> None:
    try:
        result = method(*args)
        if isinstance(result, Awaitable):
            await result
    except (trio.WouldBlock, RuntimeError):
        # A refusal is an answer.
        pass

"""What the programs ask of the library they run on: tasks, locks, events, conditions, a checkpoint and sleep.

The programs are written once, as async functions, and each tool runs them on the library that it controls: Trio,
asyncio, or threads.  In a thread nothing is awaited: what a program awaits blocks the thread, and `driven` runs the
coroutine to its end in one go.  This module imports no more than the library that is asked for.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

__all__ = ["InThreads", "Library", "OnAsyncio", "OnTrio", "OnTrioWithPauses", "Task", "driven"]

Task = Callable[[], Coroutine[Any, Any, None]]


class Library(Protocol):
    """What a program is written against.  Locks, events and conditions have the names that Trio and asyncio share."""

    def lock(self) -> Any:
        """A lock for ``async with``."""

    def event(self) -> Any:
        """An event with `set` and an awaited `wait`."""

    def condition(self) -> Any:
        """A condition with `notify`, `notify_all` and an awaited `wait`."""

    async def pause(self) -> None:
        """Let other tasks run: a checkpoint.  Threads can be interrupted anywhere, so there it does nothing."""

    async def sleep(self, seconds: float) -> None:
        """Sleep."""

    async def together(self, *tasks: Task) -> None:
        """Run each in a task of its own, and return when all have ended."""


class OnTrio:
    """Trio's own."""

    def __init__(self) -> None:
        import trio

        self._trio = trio
        self.lock, self.event, self.condition = trio.Lock, trio.Event, trio.Condition
        self.pause = trio.lowlevel.checkpoint
        self.sleep = trio.sleep

    async def together(self, *tasks: Task) -> None:
        async with self._trio.open_nursery() as nursery:
            for task in tasks:
                nursery.start_soon(task)


class OnTrioWithPauses(OnTrio):
    """Trio's, with a sleep of random length at every other checkpoint of the program: what a person tries first."""

    def __init__(self, drawn: random.Random) -> None:
        super().__init__()

        async def pause() -> None:
            if drawn.random() < 0.5:
                await self._trio.sleep(drawn.random())
            else:
                await self._trio.lowlevel.checkpoint()

        self.pause = pause


class OnAsyncio:
    """asyncio's.  A free lock is taken without a checkpoint there; Trio has one behind it.

    Classes are looked up when they are asked for, because frontrun replaces them while it explores.
    """

    def lock(self) -> Any:
        return asyncio.Lock()

    def event(self) -> Any:
        return asyncio.Event()

    def condition(self) -> Any:
        return asyncio.Condition()

    async def pause(self) -> None:
        await asyncio.sleep(0)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def together(self, *tasks: Task) -> None:
        await asyncio.gather(*(task() for task in tasks))


def driven(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that awaits nothing but what blocks the thread."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("a program in a thread awaited something that does not block")


class _ThreadLock:
    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class _ThreadEvent:
    def __init__(self) -> None:
        self._event = threading.Event()
        self.set = self._event.set

    async def wait(self) -> None:
        self._event.wait()


class _ThreadCondition:
    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.notify, self.notify_all = self._condition.notify, self._condition.notify_all

    async def __aenter__(self) -> None:
        self._condition.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._condition.release()

    async def wait(self) -> None:
        self._condition.wait()


class InThreads:
    """The standard library's, with a thread for each task."""

    lock, event, condition = _ThreadLock, _ThreadEvent, _ThreadCondition

    async def pause(self) -> None:
        pass

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251  there is no loop: the thread sleeps

    async def together(self, *tasks: Task) -> None:
        threads = [threading.Thread(target=driven, args=(task(),)) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

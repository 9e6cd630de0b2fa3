"""Tools of asyncio frameworks that wait until a test lets them go, in an order that it draws."""

from __future__ import annotations

import asyncio
import threading

import pytest


class PausedTools:
    """Where tools wait, and what they did."""

    def __init__(self) -> None:
        self.waiting: dict[str, asyncio.Event] = {}
        self.log: list[str] = []
        self.running: set[str] = set()

    async def reach(self, name: str) -> None:
        """Wait, as the tool `name`, until the test lets it go on."""
        self.log.append(f"{name} began")
        event = self.waiting[name] = asyncio.Event()
        self.running.add(name)
        try:
            await event.wait()
        finally:
            self.running.discard(name)
            self.waiting.pop(name, None)
        self.log.append(f"{name} ended")

    async def until(self, *names: str) -> None:
        """Wait until exactly these wait."""
        async with asyncio.timeout(10):
            while self.waiting.keys() != set(names):  # noqa: ASYNC110  that no more comes is seen by waiting alone
                await asyncio.sleep(0.001)

    async def let_go(self, order: list[str], task: asyncio.Future[object]) -> None:
        """Let tools go on, each time the one that waits and comes first in `order`, until the task has ended."""
        async with asyncio.timeout(10):
            while not task.done():
                if self.waiting:
                    self.waiting.pop(min(self.waiting, key=order.index)).set()
                await asyncio.sleep(0.001)


async def several_turns() -> None:
    """Let the event loop go round so often that all that waits for nothing else has gone on."""
    for _ in range(50):
        await asyncio.sleep(0)


class HeldThread:
    """A sync tool that holds its thread until the test lets it go."""

    def __init__(self) -> None:
        self._in_thread, self._go_on, self._ended = threading.Event(), threading.Event(), threading.Event()

    def block(self) -> str:
        """Hold a thread."""
        self._in_thread.set()
        assert self._go_on.wait(30)
        self._ended.set()
        return "done"

    async def outlasts(self, task: asyncio.Future[object]) -> None:
        """Cancel `task` while the tool holds its thread: the task ends cancelled, and only after the thread."""
        assert await asyncio.to_thread(self._in_thread.wait, 30)
        task.cancel()
        await several_turns()
        assert not task.done()
        self._go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert self._ended.is_set()

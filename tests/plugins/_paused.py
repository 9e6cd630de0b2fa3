"""Tools of asyncio frameworks that wait until a test lets them go, in an order that it draws."""

from __future__ import annotations

import asyncio


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

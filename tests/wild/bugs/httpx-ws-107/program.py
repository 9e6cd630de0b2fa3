"""A session of httpx-ws that is cancelled leaves its stream open: fixed since.  No toolrt is needed."""

from __future__ import annotations

from collections import deque

import httpcore
import trio
from httpx_ws import AsyncWebSocketSession


class Stream(httpcore.AsyncNetworkStream):
    """Gives what a server sent; a read ends when the stream is closed, as with httpcore's own."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = deque(pieces)
        self.used = False
        self.closed = trio.Event()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        await trio.lowlevel.checkpoint()
        if self._pieces:
            return self._pieces.popleft()
        await self.closed.wait()
        raise httpcore.ReadError

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self.used = True
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        self.closed.set()
        await trio.lowlevel.checkpoint()


async def leave(pause: int | float) -> None:
    """Cancel a task that is in a session; its stream has to be closed."""
    stream = Stream()

    async def talk() -> None:
        async with AsyncWebSocketSession(stream, keepalive_ping_interval_seconds=None) as session:
            await session.send_text("hello")
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk)
        if isinstance(pause, float):
            await trio.sleep(pause)
        else:
            for _ in range(pause):
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert stream.closed.is_set() or not stream.used, "the stream of a session that was left was not closed"


async def program(pause: int = 1) -> None:
    """At some moment."""
    await leave(pause)


async def on_plain_trio() -> None:
    """While the session is idle."""
    await leave(0.05)


if __name__ == "__main__":
    trio.run(on_plain_trio)

"""`receive()` of httpx-ws waits for ever after `close()`.  No toolrt is needed."""

from __future__ import annotations

import contextlib
from collections import deque

import httpcore
import trio
import wsproto.events
from httpx_ws import AsyncWebSocketSession, HTTPXWSException
from wsproto.connection import Connection, ConnectionType


class Stream(httpcore.AsyncNetworkStream):
    """Gives what a server sent; a read ends when the stream is closed, as with httpcore's own."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = deque(pieces)
        self._closed = trio.Event()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        await trio.lowlevel.checkpoint()
        if self._pieces:
            return self._pieces.popleft()
        await self._closed.wait()
        raise httpcore.ReadError

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        self._closed.set()
        await trio.lowlevel.checkpoint()


def hello() -> bytes:
    """A frame that a server sends."""
    return Connection(ConnectionType.SERVER).send(wsproto.events.TextMessage("hello"))


async def session(pause: int | float) -> None:
    """Receive until there is no more; meanwhile the session is closed."""
    ended = False

    async def receive(ws: AsyncWebSocketSession) -> None:
        nonlocal ended
        try:
            while True:
                await ws.receive()
        except HTTPXWSException:
            ended = True

    async with AsyncWebSocketSession(Stream(hello()), keepalive_ping_interval_seconds=None) as ws:
        with trio.move_on_after(2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(receive, ws)
                for _ in range(pause):  # type: ignore[arg-type]
                    await trio.lowlevel.checkpoint()
                await ws.close()
    assert ended, "receive() waits for ever on a session that is closed"


async def program(pause: int = 1) -> None:
    """Close at some moment."""
    await session(pause)


async def on_plain_trio() -> None:
    """The message waits for its receiver, which takes it, closes, and asks for the next one."""
    ended = False
    async with AsyncWebSocketSession(Stream(hello()), keepalive_ping_interval_seconds=None) as ws:
        await trio.sleep(0.05)
        await ws.receive()
        await ws.close()
        with trio.move_on_after(0.2):
            with contextlib.suppress(HTTPXWSException):
                await ws.receive()
            ended = True
    assert ended, "receive() waits for ever on a session that is closed"


if __name__ == "__main__":
    trio.run(on_plain_trio)

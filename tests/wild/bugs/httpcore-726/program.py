"""A cancelled request leaves httpcore's pool without a slot: fixed since.  No toolrt is needed."""

from __future__ import annotations

import httpcore
import trio

try:
    from httpcore import AsyncNetworkBackend, AsyncNetworkStream
except ImportError:
    from httpcore.backends.base import AsyncNetworkBackend, AsyncNetworkStream

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Stream(AsyncNetworkStream):
    """Gives the whole answer to each read, after `seconds`."""

    seconds = 0.0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        await trio.sleep(Stream.seconds)
        return ANSWER

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await trio.sleep(Stream.seconds)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    def get_extra_info(self, info: str) -> object:
        return None


class Network(AsyncNetworkBackend):
    """Connects after as long."""

    async def connect_tcp(self, *arguments: object, **named: object) -> Stream:
        await trio.sleep(Stream.seconds)
        return Stream()


async def twice(pause: int | float, seconds: float) -> None:
    """Cancel one request after `pause` checkpoints or seconds, then make another, which has to be answered."""
    Stream.seconds = seconds
    async with httpcore.AsyncConnectionPool(max_connections=1, network_backend=Network()) as pool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.request, "GET", "http://host/")
            if isinstance(pause, float):
                await trio.sleep(pause)
            else:
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        try:
            await pool.request("GET", "http://host/", extensions={"timeout": {"pool": 1.0}})
        except httpcore.PoolTimeout:
            raise AssertionError(f"the slot is lost: {pool.connections}") from None


async def program(pause: int = 1) -> None:
    """The request is cancelled at some moment."""
    await twice(pause, 0)


async def on_plain_trio() -> None:
    """The request is cancelled while it connects."""
    await twice(0.05, 0.1)


if __name__ == "__main__":
    trio.run(on_plain_trio)

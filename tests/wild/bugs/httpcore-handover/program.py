"""Two requests share one slot and are cancelled: the slot is handed to the one that is gone.  No toolrt is needed."""

from __future__ import annotations

import contextlib

import httpcore
import trio

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Stream(httpcore.AsyncNetworkStream):
    """Gives the whole answer to each read."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        await trio.lowlevel.checkpoint()
        return ANSWER

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    def get_extra_info(self, info: str) -> object:
        return None


class Network(httpcore.AsyncNetworkBackend):
    """Connects at once."""

    async def connect_tcp(self, *arguments: object, **named: object) -> Stream:
        await trio.lowlevel.checkpoint()
        return Stream()


async def is_served(pool: httpcore.AsyncConnectionPool) -> None:
    """Complain when no slot comes free within a second although nothing is under way."""
    try:
        await pool.request("GET", "http://host/", extensions={"timeout": {"pool": 1.0}})
    except httpcore.PoolTimeout:
        raise AssertionError(f"the slot is lost: {pool.connections}") from None


async def program(pause: int = 1) -> None:
    """Two requests begin, and the nursery of both is cancelled."""
    async with httpcore.AsyncConnectionPool(max_connections=1, network_backend=Network()) as pool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.request, "GET", "http://host/")
            nursery.start_soon(pool.request, "GET", "http://host/")
            for _ in range(pause):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        await is_served(pool)


async def on_plain_trio() -> None:
    """The first request's connect fails in the moment in which the second, queued request is cancelled."""
    queued = trio.CancelScope()

    class Refusing(Network):
        def __init__(self) -> None:
            self.first = True

        async def connect_tcp(self, *arguments: object, **named: object) -> Stream:
            if self.first:
                self.first = False
                await trio.sleep(0.05)
                queued.cancel()
                raise httpcore.ConnectError("refused")
            return Stream()

    async with httpcore.AsyncConnectionPool(max_connections=1, network_backend=Refusing()) as pool:

        async def first() -> None:
            with contextlib.suppress(httpcore.ConnectError):
                await pool.request("GET", "http://host/")

        async def second() -> None:
            with queued:
                await trio.sleep(0.01)
                await pool.request("GET", "http://host/")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            nursery.start_soon(second)
        await is_served(pool)


if __name__ == "__main__":
    trio.run(on_plain_trio)

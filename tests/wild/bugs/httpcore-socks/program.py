"""A cancelled request behind a SOCKS proxy takes a slot of the pool with it.  `python program.py` needs no toolrt."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import httpcore
import trio

ANSWERS = [
    b"\x05\x00",  # the proxy: no authentication is needed
    b"\x05\x00\x00\x01\xff\x00\x00\x01\x00\x50",  # the proxy: connected
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
]


class Stream(httpcore.AsyncNetworkStream):
    """Answers as a proxy does, then as the host behind it: one piece for each read."""

    def __init__(self) -> None:
        self._answers = list(ANSWERS)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        await trio.lowlevel.checkpoint()
        return self._answers.pop(0) if self._answers else ANSWERS[-1]

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


async def twice(network: httpcore.AsyncNetworkBackend, proxy: str, pause: int | float) -> None:
    """Cancel one request after `pause` checkpoints or seconds, then make another, which has to be answered."""
    async with httpcore.AsyncSOCKSProxy(proxy, max_connections=1, network_backend=network) as pool:
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
    """With a network in memory."""
    await twice(Network(), "socks5://proxy:1080", pause)


async def on_plain_trio() -> None:
    """With a real proxy on a real socket, which takes its time; the request is cancelled meanwhile."""

    async def slow_proxy(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            for answer in ANSWERS:
                await stream.receive_some()
                await trio.sleep(0.1)
                await stream.send_all(answer)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, slow_proxy, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        try:
            await twice(httpcore.TrioBackend(), f"socks5://127.0.0.1:{port}", 0.05)
        finally:
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(on_plain_trio)

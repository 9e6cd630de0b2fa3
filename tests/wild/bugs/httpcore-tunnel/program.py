"""A request cancelled during TLS through an HTTP proxy takes its slot with it.  `python program.py` needs no toolrt."""

from __future__ import annotations

import ssl
from contextlib import suppress
from functools import partial

import httpcore
import trio

CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"
TLS = ssl.create_default_context()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Stream(httpcore.AsyncNetworkStream):
    """Answers as a proxy does, then as the host behind it; its TLS handshake is one checkpoint."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        await trio.lowlevel.checkpoint()
        return self._answer

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def start_tls(self, *arguments: object, **named: object) -> Stream:
        await trio.lowlevel.checkpoint()
        return Stream(ANSWER)

    def get_extra_info(self, info: str) -> object:
        return None


class Network(httpcore.AsyncNetworkBackend):
    """Connects at once."""

    async def connect_tcp(self, *arguments: object, **named: object) -> Stream:
        await trio.lowlevel.checkpoint()
        return Stream(CONNECTED)


async def twice(network: httpcore.AsyncNetworkBackend, proxy: str, pause: int | trio.Event) -> None:
    """Cancel one request after `pause` checkpoints, or at that event, then make another one."""
    async with httpcore.AsyncHTTPProxy(proxy, ssl_context=TLS, max_connections=1, network_backend=network) as pool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.request, "GET", "https://host/")
            if isinstance(pause, trio.Event):
                await pause.wait()
            else:
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        with trio.move_on_after(2.0):
            try:
                await pool.request("GET", "https://host/", extensions={"timeout": {"pool": 1.0}})
            except httpcore.PoolTimeout:
                raise AssertionError(f"the slot is lost: {pool.connections}") from None


async def program(pause: int = 1) -> None:
    """With a network in memory."""
    await twice(Network(), "http://proxy:8080", pause)


async def on_plain_trio() -> None:
    """With a real proxy on a real socket; the host behind it never begins TLS, and the request is cancelled."""
    is_handshaking = trio.Event()

    async def proxy(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await stream.receive_some()
            await stream.send_all(CONNECTED)
            while await stream.receive_some():
                is_handshaking.set()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, proxy, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        try:
            await twice(httpcore.TrioBackend(), f"http://127.0.0.1:{port}", is_handshaking)
        finally:
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(on_plain_trio)

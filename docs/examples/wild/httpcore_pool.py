"""A cancelled request takes a slot of httpcore's connection pool with it, for ever.

    pip install toolrt 'httpcore[socks]==1.0.9'
    python docs/examples/wild/httpcore_pool.py

The pool has one connection and reaches its host through a SOCKS proxy.  A request begins and is cancelled; a second one
is made afterwards.  toolrt first searches with a network in memory, whose every read is a checkpoint, as with real
sockets.  Then plain Trio runs the program with real sockets and without toolrt.
"""

from __future__ import annotations

from contextlib import suppress

import httpcore
import trio

ANSWERS = [
    b"\x05\x00",  # the proxy: no authentication is needed
    b"\x05\x00\x00\x01\xff\x00\x00\x01\x00\x50",  # the proxy: connected
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
]


class Stream(httpcore.AsyncNetworkStream):
    """Answers as a proxy does, and then as the host behind it: one piece for each read."""

    def __init__(self) -> None:
        self._answers = list(ANSWERS)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's
        await trio.lowlevel.checkpoint()
        return self._answers.pop(0) if self._answers else ANSWERS[-1]

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's
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


async def lost_slot(network: httpcore.AsyncNetworkBackend, proxy: str, pause: float = 0) -> None:
    """Cancel one request, then make another; it has to be answered."""
    async with httpcore.AsyncSOCKSProxy(proxy, max_connections=1, network_backend=network) as pool:
        async with trio.open_nursery() as nursery:

            async def first() -> None:
                await pool.request("GET", "http://host/")

            async def cancel() -> None:
                await trio.sleep(pause)
                nursery.cancel_scope.cancel()

            nursery.start_soon(first)
            nursery.start_soon(cancel)
        try:
            await pool.request("GET", "http://host/", extensions={"timeout": {"pool": 1.0}})
        except httpcore.PoolTimeout:
            raise AssertionError(f"the slot is lost: {pool.connections}") from None


async def on_sockets() -> None:
    """The same on plain Trio: a real proxy that takes its time, and a request that is cancelled meanwhile."""

    async def slow_proxy(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            for answer in ANSWERS:
                await stream.receive_some()
                await trio.sleep(0.2)
                await stream.send_all(answer)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, slow_proxy, 0)
        port = listeners[0].socket.getsockname()[1]
        try:
            await lost_slot(httpcore.TrioBackend(), f"socks5://127.0.0.1:{port}", pause=0.1)
            print("plain Trio, real sockets: the second request was answered")
        except AssertionError as error:
            print("plain Trio, real sockets:", error)
        nursery.cancel_scope.cancel()


def main() -> None:
    from toolrt import sim

    async def in_memory() -> None:
        await lost_slot(Network(), "socks5://proxy:1080")

    report = sim.explore(in_memory, sim.Random(sim.RandomWalk(seed=1), 300))
    print(report)
    print(report.failures[0].explain())
    trio.run(on_sockets)


if __name__ == "__main__":
    main()

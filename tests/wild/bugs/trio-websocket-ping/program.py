"""`ping()` of trio-websocket waits for ever when the peer hangs up.  No toolrt is needed."""

from __future__ import annotations

import contextlib

import trio
from trio.testing import memory_stream_pair
from trio_websocket import ConnectionClosed, wrap_client_stream
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection


async def meet(pause: int | float) -> None:
    """The client pings, and the server hangs up: the ping has to end, with `ConnectionClosed`."""
    near, far = memory_stream_pair()
    ended = False

    async def server() -> None:
        protocol = WSConnection(ConnectionType.SERVER)
        protocol.receive_data(await far.receive_some())
        list(protocol.events())
        await far.send_all(protocol.send(AcceptConnection()))
        if isinstance(pause, float):
            await trio.sleep(pause)
        else:
            for _ in range(pause):
                await trio.lowlevel.checkpoint()
        await far.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server)
        client = await wrap_client_stream(nursery, near, "host", "/")
        with trio.move_on_after(0.3):
            with contextlib.suppress(ConnectionClosed):
                await client.ping()
            ended = True
        nursery.cancel_scope.cancel()
    assert ended, f"ping() waits for ever on a connection that is closed: {client.closed}"


async def program(pause: int = 1) -> None:
    """The server hangs up at some moment."""
    await meet(pause)


async def on_plain_trio() -> None:
    """The server hangs up while the ping is under way."""
    await meet(0.05)


if __name__ == "__main__":
    trio.run(on_plain_trio)

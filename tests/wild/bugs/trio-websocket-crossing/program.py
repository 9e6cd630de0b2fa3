"""A ping that crosses a close crashes the reader of trio-websocket.  No toolrt is needed."""

from __future__ import annotations

import contextlib

import trio
from trio.testing import memory_stream_pair
from trio_websocket import ConnectionClosed, wrap_client_stream, wrap_server_stream


async def meet(pause: int) -> None:
    """The server pings, the client closes."""
    near, far = memory_stream_pair()
    with trio.move_on_after(60):
        async with trio.open_nursery() as nursery:

            async def server() -> None:
                connection = await (await wrap_server_stream(nursery, far)).accept()
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
                with trio.move_on_after(1):  # a ping may go without an answer
                    with contextlib.suppress(ConnectionClosed):
                        await connection.ping()

            nursery.start_soon(server)
            client = await wrap_client_stream(nursery, near, "host", "/")
            await client.aclose()


async def program(pause: int = 0) -> None:
    """Both do so at some moment."""
    await meet(pause)


async def on_plain_trio() -> None:
    """The ping is sent, and arrives when the client has begun to close."""
    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        accepted = trio.Event()

        async def server() -> None:
            connection = await (await wrap_server_stream(nursery, far)).accept()
            await accepted.wait()
            with trio.move_on_after(0.3):
                with contextlib.suppress(ConnectionClosed):
                    await connection.ping()

        nursery.start_soon(server)
        client = await wrap_client_stream(nursery, near, "host", "/")

        async def slow(data: bytes) -> None:
            """Take a moment to send, as a socket does whose buffer is full."""
            accepted.set()
            await trio.sleep(0.1)
            await real(data)

        real = near.send_stream.send_all
        near.send_stream.send_all = slow  # type: ignore[method-assign]
        await client.aclose()


if __name__ == "__main__":
    trio.run(on_plain_trio)

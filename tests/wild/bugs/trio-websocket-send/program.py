"""`send_message()` raises wsproto's error while the peer closes: fixed since.  No toolrt is needed."""

from __future__ import annotations

import trio
from trio.testing import memory_stream_pair
from trio_websocket import ConnectionClosed, wrap_client_stream, wrap_server_stream


async def meet(pause: int, seconds: float = 0) -> None:
    """The client sends some messages, or until the connection is closed; the server closes it."""
    near, far = memory_stream_pair()
    if seconds:
        real = near.send_stream.send_all

        async def slow(data: bytes) -> None:
            """Take a moment, as a socket does whose buffer is full."""
            await real(data)
            await trio.sleep(seconds)

        near.send_stream.send_all = slow  # type: ignore[method-assign]

    with trio.move_on_after(60):
        async with trio.open_nursery() as nursery:

            async def server() -> None:
                connection = await (await wrap_server_stream(nursery, far)).accept()
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
                await connection.aclose()

            nursery.start_soon(server)
            client = await wrap_client_stream(nursery, near, "host", "/")
            try:
                for _ in range(8):
                    await trio.sleep(seconds / 4)
                    await client.send_message("hello")
            except ConnectionClosed:
                pass
            nursery.cancel_scope.cancel()


async def program(pause: int = 1) -> None:
    """At some moment."""
    await meet(pause)


async def on_plain_trio() -> None:
    """The answer to the server's close frame takes a moment to send, and a message is sent meanwhile."""
    await meet(0, 0.05)


if __name__ == "__main__":
    trio.run(on_plain_trio)

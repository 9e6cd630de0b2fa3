"""A cancelled send of a memory object stream delivers its item.  No toolrt is needed."""

from __future__ import annotations

import anyio
import trio


async def program(pause: int = 1) -> None:
    """A sender is cancelled while a receiver takes one item; what was not sent may not arrive."""
    send, receive = anyio.create_memory_object_stream[str](0)
    sent: list[str] = []
    received: list[str] = []
    scope = trio.CancelScope()

    async def sender() -> None:
        with scope:
            await send.send("item")
            sent.append("item")
        await send.aclose()

    async def receiver() -> None:
        async for item in receive:
            received.append(item)
        await receive.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender)
        nursery.start_soon(receiver)
        for _ in range(pause):
            await trio.lowlevel.checkpoint()
        scope.cancel()
    assert sent == received, f"sent {sent}, received {received}"


async def on_plain_trio() -> None:
    """The receiver looks in the moment in which the sender is cancelled."""
    send, receive = anyio.create_memory_object_stream[str](0)
    scope = trio.CancelScope()
    was_cancelled = False

    async def sender() -> None:
        nonlocal was_cancelled
        with scope:
            await send.send("item")
        was_cancelled = scope.cancelled_caught

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender)
        await trio.sleep(0.05)
        scope.cancel()
        try:
            got: str | None = receive.receive_nowait()
        except anyio.WouldBlock:
            got = None
    send.close()
    receive.close()
    assert not (was_cancelled and got), f"send() was cancelled; received {[got]}"


if __name__ == "__main__":
    trio.run(on_plain_trio)

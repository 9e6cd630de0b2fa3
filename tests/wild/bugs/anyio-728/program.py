"""An item is lost with its cancelled receiver: fixed since.  No toolrt is needed."""

from __future__ import annotations

import anyio
import trio


async def program(pause: int = 1) -> None:
    """A receiver is cancelled while an item is sent; it gets the item, or the next receiver does."""
    send, receive = anyio.create_memory_object_stream[str](1)
    received: list[str] = []
    scope = trio.CancelScope()

    async def receiver() -> None:
        with scope:
            received.append(await receive.receive())

    async def cancel() -> None:
        for _ in range(pause):
            await trio.lowlevel.checkpoint()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receiver)
        nursery.start_soon(cancel)
        nursery.start_soon(send.send, "item")
    if not received:
        try:
            received.append(receive.receive_nowait())
        except anyio.WouldBlock:
            raise AssertionError("an item that was sent is lost") from None


async def on_plain_trio() -> None:
    """The item is sent in the moment in which the receiver is cancelled."""
    send, receive = anyio.create_memory_object_stream[str](1)
    received: list[str] = []
    scope = trio.CancelScope()

    async def receiver() -> None:
        with scope:
            received.append(await receive.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receiver)
        await trio.sleep(0.05)
        scope.cancel()
        send.send_nowait("item")
    if not received:
        try:
            received.append(receive.receive_nowait())
        except anyio.WouldBlock:
            raise AssertionError("an item that was sent is lost") from None


if __name__ == "__main__":
    trio.run(on_plain_trio)

"""A cancelled wait for a coredis connection takes the next waiter's wake-up with it.  No toolrt is needed."""

from __future__ import annotations

import trio
from anyio.abc import TaskStatus
from coredis.connection import BaseConnection, TCPLocation
from coredis.pool import ConnectionPool


class Connection(BaseConnection):
    """Is connected at once, and for ever; no Redis is needed."""

    usable = True  # type: ignore[assignment]
    reusable = True  # type: ignore[assignment]

    async def _connect(self) -> None:  # type: ignore[override]
        raise NotImplementedError

    def describe(self) -> str:  # type: ignore[override]
        return "in memory"

    async def run(self, *, task_status: TaskStatus[None]) -> None:  # type: ignore[override]
        task_status.started()
        await trio.sleep_forever()


def pool() -> ConnectionPool[Connection]:
    """With room for one connection."""
    return ConnectionPool(connection_class=Connection, location=TCPLocation("host", 6379), max_connections=1)


async def program(pause: int = 1) -> None:
    """One task holds the connection, a second gives up, a third has to get it when the first gives it back."""
    scope = trio.CancelScope()

    async with pool() as connections:

        async def use(checkpoints: int) -> None:
            async with connections.acquire():
                for _ in range(checkpoints):
                    await trio.lowlevel.checkpoint()

        async def give_up() -> None:
            with scope:
                await use(1)

        with trio.move_on_after(60) as limit:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(use, 3)
                nursery.start_soon(give_up)
                nursery.start_soon(use, 1)
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        assert not limit.cancelled_caught, "a task waits for ever; the free connections: " + str(
            len(connections._available_connections)
        )


async def on_plain_trio() -> None:
    """The second waiter gives up after a moment, as with a timeout; then the first gives the connection back."""
    async with pool() as connections:

        async def hold() -> None:
            async with connections.acquire():
                await trio.sleep(0.2)

        async def give_up() -> None:
            await trio.sleep(0.01)
            with trio.move_on_after(0.05):
                async with connections.acquire():
                    pass

        async def wait() -> None:
            await trio.sleep(0.1)
            async with connections.acquire():
                pass

        with trio.move_on_after(1) as limit:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(hold)
                nursery.start_soon(give_up)
                nursery.start_soon(wait)
        assert not limit.cancelled_caught, "a task waits for ever; the free connections: " + str(
            len(connections._available_connections)
        )


if __name__ == "__main__":
    trio.run(on_plain_trio)

"""A task that is cancelled while coredis connects for it takes the slot with it.  No toolrt is needed."""

from __future__ import annotations

import trio
from anyio.abc import TaskStatus
from coredis.connection import BaseConnection, TCPLocation
from coredis.pool import ConnectionPool


class Connection(BaseConnection):
    """Takes two checkpoints, or `seconds`, to connect; no Redis is needed."""

    usable = True  # type: ignore[assignment]
    reusable = True  # type: ignore[assignment]
    seconds = 0.0

    async def _connect(self) -> None:  # type: ignore[override]
        raise NotImplementedError

    def describe(self) -> str:  # type: ignore[override]
        return "in memory"

    async def run(self, *, task_status: TaskStatus[None]) -> None:  # type: ignore[override]
        await trio.sleep(Connection.seconds)
        await trio.lowlevel.checkpoint()
        task_status.started()
        await trio.sleep_forever()


async def twice(pause: int | float, seconds: float) -> None:
    """Ask for a connection and give up; then ask again, with nothing else under way."""
    Connection.seconds = seconds
    async with ConnectionPool(
        connection_class=Connection, location=TCPLocation("host", 6379), max_connections=1
    ) as connections:

        async def use() -> None:
            async with connections.acquire():
                pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(use)
            if isinstance(pause, float):
                await trio.sleep(pause)
            else:
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        with trio.move_on_after(1) as limit:
            await use()
        assert not limit.cancelled_caught, "the slot is lost: no connection is open, and none is made"


async def program(pause: int = 1) -> None:
    """The task is cancelled at some moment."""
    await twice(pause, 0)


async def on_plain_trio() -> None:
    """The server takes longer to connect than the task waits."""
    await twice(0.05, 0.1)


if __name__ == "__main__":
    trio.run(on_plain_trio)

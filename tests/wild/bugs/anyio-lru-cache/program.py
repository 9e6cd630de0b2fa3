"""A waiter of `anyio.functools.lru_cache` raises KeyError when its entry is evicted.  No toolrt is needed."""

from __future__ import annotations

import trio
from anyio.functools import lru_cache


def square() -> object:
    """A cached function with room for one entry."""

    @lru_cache(maxsize=1)
    async def cached(number: int) -> int:
        await trio.lowlevel.checkpoint()
        return number * number

    return cached


async def program(pause: int = 1) -> None:
    """Two tasks ask for the square of 2, another one for that of 3."""
    cached = square()

    async def ask(number: int, wait: int = 0) -> None:
        for _ in range(wait):
            await trio.lowlevel.checkpoint()
        assert await cached(number) == number * number  # type: ignore[operator]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, 2)
        nursery.start_soon(ask, 2)
        nursery.start_soon(ask, 3, pause)


async def on_plain_trio() -> None:
    """The task that made the first entry makes the second one at once; the waiter of the first runs after both."""

    @lru_cache(maxsize=1)
    async def cached(number: int) -> int:
        await trio.sleep(0.05)
        return number * number

    async def first() -> None:
        await cached(2)
        await cached(3)

    async def second() -> None:
        await trio.sleep(0.01)
        assert await cached(2) == 4

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        nursery.start_soon(second)


if __name__ == "__main__":
    trio.run(on_plain_trio)

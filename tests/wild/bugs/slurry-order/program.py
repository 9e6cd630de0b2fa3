"""A slurry pipeline reorders the items of its source.  No toolrt is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import trio
from slurry import Pipeline


async def numbers(pause: int) -> AsyncIterator[int]:
    """Three items."""
    for number in range(3):
        yield number
        for _ in range(pause):
            await trio.lowlevel.checkpoint()


async def received(pause: int) -> list[int]:
    """What comes out of a pipeline without sections."""
    async with Pipeline.create(numbers(pause)) as pipeline, pipeline.tap() as tap:
        return [number async for number in tap]


async def program(pause: int = 1) -> None:
    """The source has a checkpoint between two items, or some."""
    got = await received(pause)
    assert got == [0, 1, 2], f"in another order: {got}"


async def on_plain_trio() -> None:
    """The source has all items ready.  Trio runs the tasks that it starts together in either order, so 30 pipelines."""
    for _ in range(30):
        got = await received(0)
        assert got == [0, 1, 2], f"in another order: {got}"


if __name__ == "__main__":
    trio.run(on_plain_trio)

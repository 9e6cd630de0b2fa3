"""A cancelled `Task.wait` of anyioutils raises trio.Cancelled in another task.  No toolrt is needed."""

from __future__ import annotations

import trio
from anyioutils import Task


async def waits(pause: int | float) -> None:
    """Two tasks wait for the same work; one of them gives up, which is no business of the other."""
    scope = trio.CancelScope()
    got: list[object] = []

    async def work() -> int:
        if isinstance(pause, float):
            await trio.sleep(4 * pause)
        for _ in range(4):
            await trio.lowlevel.checkpoint()
        return 1

    task = Task(work())

    async def give_up() -> None:
        with scope:
            await task.wait()

    async def wait() -> None:
        if isinstance(pause, float):
            await trio.sleep(pause / 2)
        got.append(await task.wait())

    with trio.move_on_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(give_up)
            nursery.start_soon(wait)
            if isinstance(pause, float):
                await trio.sleep(pause)
            else:
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
            scope.cancel()
    assert got == [1], "the second waiter was cancelled with the first"


async def program(pause: int = 1) -> None:
    """One gives up at some moment."""
    await waits(pause)


async def on_plain_trio() -> None:
    """One gives up while the work is under way."""
    await waits(0.05)


if __name__ == "__main__":
    trio.run(on_plain_trio)

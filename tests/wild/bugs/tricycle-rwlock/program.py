"""A writer that gives up leaves the readers behind it waiting in tricycle's RWLock.  No toolrt is needed."""

from __future__ import annotations

import trio
from tricycle import RWLock


async def readers(pause: int | float) -> None:
    """One reader holds the lock until another one has read; a writer between them gives up."""
    lock = RWLock()
    has_read = trio.Event()
    scope = trio.CancelScope()

    async def first() -> None:
        async with lock.read_locked():
            await has_read.wait()

    async def writer() -> None:
        with scope:
            async with lock.write_locked():
                pass

    async def second() -> None:
        async with lock.read_locked():
            has_read.set()

    with trio.move_on_after(0.5 if isinstance(pause, float) else 60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            if isinstance(pause, float):
                await trio.sleep(pause)
            nursery.start_soon(writer)
            if isinstance(pause, float):
                await trio.sleep(pause)
            nursery.start_soon(second)
            if isinstance(pause, float):
                await trio.sleep(pause)
            else:
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
            scope.cancel()
    assert has_read.is_set(), f"a reader waits although no task writes: {lock.statistics()}"


async def program(pause: int = 1) -> None:
    """The writer gives up at some moment."""
    await readers(pause)


async def on_plain_trio() -> None:
    """Reader, writer, reader; then the writer gives up."""
    await readers(0.02)


if __name__ == "__main__":
    trio.run(on_plain_trio)

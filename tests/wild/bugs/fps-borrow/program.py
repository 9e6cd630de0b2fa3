"""`Context.get` borrows from two contexts and gives one of the values away.  No toolrt is needed."""

from __future__ import annotations

import trio
from fps import Context


async def program(pause: int = 1) -> None:
    """An inner and an outer context have an int; what was borrowed is dropped, so both have to close."""
    with trio.move_on_after(60) as limit:
        async with Context() as outer:
            outer.put(1)
            async with Context() as inner:
                inner.put(2)
                for _ in range(pause):
                    await trio.lowlevel.checkpoint()
                value = await inner.get(int)
                got = value.unwrap()
                value.drop()
    assert not limit.cancelled_caught, f"a context waits for ever for a value that was given back; got {got}"
    assert got == 2, f"the outer context's value {got} hides the inner one"


async def on_plain_trio() -> None:
    """The same: it needs no special moment."""
    with trio.move_on_after(0.2) as limit:
        async with Context() as outer:
            outer.put(1)
            async with Context() as inner:
                inner.put(2)
                (await inner.get(int)).drop()
    assert not limit.cancelled_caught, "a context waits for ever for a value that was given back"


if __name__ == "__main__":
    trio.run(on_plain_trio)

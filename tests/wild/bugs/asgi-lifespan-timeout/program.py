"""`LifespanManager` hangs when a startup times out on Trio.  No toolrt is needed."""

from __future__ import annotations

import trio
from asgi_lifespan import LifespanManager


async def app(scope: object, receive: object, send: object) -> None:
    """Never says that it has started."""
    await receive()  # type: ignore[operator]
    await receive()  # type: ignore[operator]


async def program(pause: int = 1) -> None:
    """The manager waits for a second at most."""
    for _ in range(pause):
        await trio.lowlevel.checkpoint()
    timed_out = False
    with trio.move_on_after(60) as limit:
        try:
            async with LifespanManager(app, startup_timeout=1):
                pass
        except BaseException as error:
            timed_out = isinstance(error, (TimeoutError, trio.TooSlowError))
            if not timed_out:
                raise
    assert timed_out, f"the startup's timeout had no effect; waited for a minute: {limit.cancelled_caught}"


async def on_plain_trio() -> None:
    """The manager waits for a twentieth of a second at most."""
    with trio.move_on_after(0.5) as limit:
        try:
            async with LifespanManager(app, startup_timeout=0.05):
                pass
        except trio.TooSlowError:
            pass
    assert not limit.cancelled_caught, "the startup's timeout had no effect"


if __name__ == "__main__":
    trio.run(on_plain_trio)

"""A mix whose process crashes at an instant, and the process that goes on with its batch.

Rules.
    1. The crash is a task of its own.  In virtual time it may come at any step of its instant; which one is the
       schedule's choice.
    2. What outlives it is copied when it comes.  The process is cancelled, and what it still does as it unwinds is done
       to objects that are thrown away.  The laws do not look at that: it stands between `CRASHED` and `STARTED`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import attrs
import trio

from toolrt import probe
from toolrt.invariants.predicates._story import CRASHED, STARTED

T = TypeVar("T")
S = TypeVar("S")


@attrs.frozen
class Crash(Generic[S]):
    """A process has crashed."""

    #: What the next one finds.
    left: S


async def until_crash(process: Callable[[], Awaitable[T]], seconds: float, survives: Callable[[], S]) -> T | Crash[S]:
    """What `process` gives, or the crash that ended it after so many `seconds` with what `survives`.

    Checkpoint: always.
    """
    found: T | Crash[S] | None = None
    scope = trio.CancelScope()

    async def crash() -> None:
        nonlocal found
        await trio.sleep(seconds)
        probe.access(probe.ANYTHING, True)
        found = Crash(survives())
        probe.event(CRASHED)
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(crash)
        try:
            with scope:
                value = await process()
                found = value if found is None else found
        except Exception:
            if found is None:
                raise
        nursery.cancel_scope.cancel()
    assert found is not None
    if isinstance(found, Crash):
        probe.event(STARTED)
    return found

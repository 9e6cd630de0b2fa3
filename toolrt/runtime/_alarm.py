"""What lets calls start that wait for a rate."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable
from typing import Any

import trio

from toolrt.runtime._interrupts import protected


class Alarm:
    """Rings once, at the earliest instant that it was set to.

    Args:
        context: the context variables of what rings.
    """

    def __init__(self, context: contextvars.Context) -> None:
        self._context = context
        self._scope: trio.CancelScope | None = None
        self._at = math.inf

    def set(self, nursery: Any, instant: float, ring: Callable[[], None]) -> None:
        """Call `ring` at this `instant`, in a task of `nursery`, unless it rings before."""
        if instant >= self._at:
            return
        self.end()
        self._scope, self._at = trio.CancelScope(), instant
        self._context.run(nursery.start_soon, self._sleep, self._scope, instant, ring, name="rate")

    def end(self) -> None:
        """Ring no more."""
        if self._scope is not None:
            self._scope.cancel()
        self._scope, self._at = None, math.inf

    @protected
    async def _sleep(self, scope: trio.CancelScope, instant: float, ring: Callable[[], None]) -> None:
        with scope:
            await trio.sleep_until(instant)
        if self._scope is scope:
            self._scope, self._at = None, math.inf
            ring()

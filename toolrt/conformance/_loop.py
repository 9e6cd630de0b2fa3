"""An asyncio event loop on virtual time, where timers that end at one instant fire in a drawn order.

Rules.
    1. Time goes on only when nothing can run: then the loop jumps to its next timer.
    2. Timers of one instant fire in an order that the seed draws, in one turn of the loop or in several.  Callbacks of
       `call_soon` keep their order, as asyncio promises it.
    3. While a thread of a pool works, time stands still; one that waits, for example for a coroutine of this loop, does
       not work.  Where the program has threads of another kind, the loop gives them two real milliseconds before each
       jump, because nothing tells whether they are about to call back.
    4. A program that waits for what can never come is `Stuck`.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import selectors
import threading
import time
from collections.abc import Callable
from typing import Any

from toolrt.conformance._threads import unknown, works

#: The distance of two timers of one instant, in virtual seconds; instants of a plan are whole seconds apart.
_APART = 1e-6

#: Real seconds that other threads have before the clock jumps, and that a loop without timers waits for them.
_SETTLE, _PATIENCE = 0.002, 2.0

#: Real seconds between two looks at the threads, and after which one that still works is taken for one that hangs.
_LOOK, _HANGS = 0.001, 60.0

#: Jumps of the clock after which a program is taken for one that polls for ever.
_MOST_JUMPS = 20_000


class Stuck(Exception):
    """The program waits for something that nothing brings about."""


class _Selector(selectors.DefaultSelector):
    """Lets the loop's clock jump where a real one would wait."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        # A thread may have called back, and ended, since the look above.
        found = self._of_threads(timeout) if threading.active_count() > 1 else super().select(0)
        if found:
            return found
        self.loop.jump(timeout)
        return []

    def _of_threads(self, timeout: float | None) -> Any:
        """Wait until no thread works any more, or until one has called back."""
        gives_up = time.monotonic() + _HANGS
        looks = 0
        while looks < 2:  # twice, because one that has just taken its work may not show it yet
            if works():
                looks, found = 0, super().select(_LOOK)
            else:
                looks += 1
                time.sleep(_LOOK / 10)
                found = super().select(0)
            if found:
                return found
            if time.monotonic() > gives_up:
                raise Stuck(f"a worker thread neither ends nor waits for {_HANGS:g} real seconds")
        hurries = timeout is not None and not self.loop.is_closing
        return super().select((_SETTLE if hurries else _PATIENCE) if unknown() else 0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop.

    Args:
        seed: draws the order of timers that end at one instant.
    """

    def __init__(self, seed: int = 0) -> None:
        selector = _Selector()
        selector.loop = self
        #: Virtual seconds since the loop was made.
        self.now = 0.0
        self.is_closing = False
        self._jumps = 0
        self._draws = random.Random(seed)
        super().__init__(selector)
        self._clock_resolution = _APART / 10

    def time(self) -> float:
        """Give the virtual seconds since the loop was made."""
        return self.now

    def jump(self, seconds: float | None) -> None:
        """Let virtual time pass.

        Args:
            seconds: how much; None: there is no timer.

        Raises:
            Stuck: nothing can happen any more, or the program polls without end.
        """
        if seconds is None:
            raise Stuck("it waits for what never comes")
        self._jumps += 1
        if self._jumps > _MOST_JUMPS:
            raise Stuck(f"it still polls after {self.now:g} virtual seconds")
        self.now += seconds

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at an instant: see `asyncio.loop.call_at`."""
        return super().call_at(when + self._draws.randrange(4) * _APART, callback, *args, context=context)

    async def shutdown_default_executor(self, *args: Any, **named: Any) -> None:
        """Let the worker threads end, with more patience than before: see `asyncio.loop.shutdown_default_executor`."""
        self.is_closing = True
        await super().shutdown_default_executor(*args, **named)

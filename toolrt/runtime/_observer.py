"""What is kept of an observer for all that tell it something, and the time at which things are told.

Rules.  One observer is told one thing at a time, whatever threads its runtimes and tools run in.  What it raises is
counted, and said once.  Nothing here keeps an observer alive.
"""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
import weakref
from typing import Any

import trio

from toolrt import probe
from toolrt.errors import ObserverWarning

__all__ = ["Clock", "Desk", "desk_of"]


class Desk:
    """What is kept of one observer for all that tell it something."""

    def __init__(self) -> None:
        #: One thing is told at a time; a thread that is told may tell.
        self.lock = threading.RLock()
        #: How many batches were opened: each has its number, from 1.
        self.opened = 0
        #: How often the observer raised.
        self.failures = 0

    def failed(self, observer: object, kind: str, error: BaseException) -> None:
        """Count what `observer` raised; say it, the first time."""
        self.failures += 1
        if self.failures == 1:
            # Where warnings are errors, this one would fail the call.
            with contextlib.suppress(Warning):
                warnings.warn(ObserverWarning(type(observer).__name__, kind, type(error).__name__), stacklevel=2)


_desks: dict[int, tuple[weakref.ref[Any], Desk]] = {}


def desk_of(observer: object) -> Desk:
    """The desk of `observer`: the same one for all runtimes that it observes."""
    key = id(observer)
    known = _desks.get(key)
    if known is not None and known[0]() is observer:
        return known[1]
    desk = Desk()
    with contextlib.suppress(TypeError):  # nothing can refer to it weakly: then each runtime counts its batches alone
        _desks[key] = (weakref.ref(observer, lambda _: _desks.pop(key, None)), desk)
    return desk


class Clock:
    """Nanoseconds since the epoch, or virtual ones since the execution began; asked in any thread."""

    def __init__(self) -> None:
        self._clock = trio.lowlevel.current_clock() if trio.lowlevel.in_trio_run() else _Wall()
        self._epoch, self._zero = 0, 0.0
        if not probe.threads_inline:
            # Read between two looks at the other clock, and again if this thread was not running meanwhile.
            readings = [(self._clock.current_time(), time.time_ns(), self._clock.current_time()) for _ in range(3)]
            before, self._epoch, after = min(readings, key=lambda reading: reading[2] - reading[0])
            self._zero = (before + after) / 2

    def now(self) -> int:
        return self._epoch + round((self._clock.current_time() - self._zero) * 1e9)


class _Wall:
    """Stands for Trio's clock where Trio does not run."""

    def current_time(self) -> float:
        return time.perf_counter()

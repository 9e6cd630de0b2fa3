"""The state that all batches of one observer share (its lock and counts), and the clock that stamps its events.

Rules.  An observer handles one event at a time, whatever threads its runtimes and tools run in.  An exception that it
raises is counted, and warned about once.  Nothing here keeps an observer alive.
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


class ObserverState:
    """What all batches of one observer share: its lock, its number of batches, its failures."""

    def __init__(self) -> None:
        #: Held while the observer handles an event.  Reentrant: an observer may itself cause an event.
        self.lock = threading.RLock()
        #: How many batches were opened: each has its number, from 1.
        self.opened = 0
        #: How often the observer raised.
        self.failures = 0

    def failed(self, observer: object, kind: str, error: BaseException) -> None:
        """Count an exception that `observer` raised; warn the first time."""
        self.failures += 1
        if self.failures == 1:
            # Where warnings are errors, this one would fail the call.
            with contextlib.suppress(Warning):
                warnings.warn(ObserverWarning(type(observer).__name__, kind, type(error).__name__), stacklevel=2)


_states: dict[int, tuple[weakref.ref[Any], ObserverState]] = {}


def observer_state(observer: object) -> ObserverState:
    """The state of `observer`: the same one for all runtimes that it observes."""
    key = id(observer)
    known = _states.get(key)
    if known is not None and known[0]() is observer:
        return known[1]
    state = ObserverState()
    with contextlib.suppress(TypeError):  # without weak references each runtime counts its own batches
        _states[key] = (weakref.ref(observer, lambda _: _states.pop(key, None)), state)
    return state


class Clock:
    """Nanoseconds since the epoch, or virtual ones since the execution began; any thread may call it."""

    def __init__(self) -> None:
        self._clock = trio.lowlevel.current_clock() if trio.lowlevel.in_trio_run() else _WallClock()
        self._epoch, self._zero = 0, 0.0
        if not probe.threads_inline:
            # Read between two looks at the other clock, and again if this thread was not running meanwhile.
            readings = [(self._clock.current_time(), time.time_ns(), self._clock.current_time()) for _ in range(3)]
            before, self._epoch, after = min(readings, key=lambda reading: reading[2] - reading[0])
            self._zero = (before + after) / 2

    def now(self) -> int:
        return self._epoch + round((self._clock.current_time() - self._zero) * 1e9)


class _WallClock:
    """Replaces Trio's clock where Trio does not run."""

    def current_time(self) -> float:
        return time.perf_counter()

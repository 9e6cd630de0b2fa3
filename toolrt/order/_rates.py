"""Rates: when calls started that claim one, and when the next may.

Rules.
    1. Of a rate of n in w seconds (`Rate.slots`, `Rate.window`) the start of a call comes w seconds or more after the
       n-th start before it.  So n may start at once, and no stretch of w seconds has more than n starts.
    2. All that give one name share its starts.  Where they give it different numbers, each keeps its own.
    3. Time comes in with the question.  What a call waits for is an instant, which comes by itself: no rate can be part
       of a deadlock.

Theory.  It is a sliding window over a log: exact, where buckets and fixed windows let twice as many start.

Limits.  A number above 100 in a window that comes after smaller ones counts the last 100 starts before it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from toolrt.model import Rate

#: When so many names are known, those whose window is over are forgotten.
_NAMES_MOST = 1_000

#: So many starts are kept at least: a larger number may come for the same name.
_STARTS_LEAST = 100


class Rates:
    """The last starts of all that share these rates."""

    def __init__(self) -> None:
        #: By name: the widest window that was asked for, and the starts, oldest first.
        self._starts: dict[str, tuple[float, deque[float]]] = {}
        self._run: object = None

    def next_start(self, rates: Iterable[Rate]) -> float:
        """The instant from which on a call with these `rates` may start, in seconds; minus infinity: from ever."""
        found = -math.inf
        for rate in rates:
            _, starts = self._starts.get(rate.name, (0.0, ()))
            if rate.slots is not None and len(starts) >= rate.slots:
                found = max(found, starts[-rate.slots] + rate.window)
        return found

    def note(self, rates: Iterable[Rate], now: float) -> None:
        """Take note that a call with these `rates` starts `now`."""
        for rate in rates:
            slots, window = rate.slots or 1, rate.window
            known = self._starts.get(rate.name)
            if known is None:
                known = self._starts[rate.name] = window, deque(maxlen=max(slots, _STARTS_LEAST))
            elif window > known[0] or slots > (known[1].maxlen or 0):
                most = max(slots, known[1].maxlen or 0)
                known = self._starts[rate.name] = max(window, known[0]), deque(known[1], most)
            known[1].append(now)
        if len(self._starts) > _NAMES_MOST:
            self._starts = {
                name: (window, starts) for name, (window, starts) in self._starts.items() if starts[-1] + window > now
            }

    def tell_run(self, run: object) -> None:
        """The next starts are on the clock of `run`; those on another clock are forgotten."""
        if run is not self._run:
            self._starts.clear()
            self._run = run

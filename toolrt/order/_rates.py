"""Rates: when calls started that claim one, and when the next may.

Rules.
    1. Of a rate of n in w seconds (`Rate.slots`, `Rate.window`) the start of a call comes w seconds or more after the
       n-th start before it.  So n may start at once, and no stretch of w seconds has more than n starts.
    2. Time comes in with the question.  What a call waits for is an instant, which comes by itself: no rate can be part
       of a deadlock.

Theory.  It is a sliding window over a log: exact, where buckets and fixed windows let twice as many start.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from toolrt.model import Rate

__all__ = ["Rates"]

#: When so many names are known, those whose window is over are forgotten.
_NAMES_MOST = 1_000


class Rates:
    """The last starts of all that share these rates."""

    def __init__(self) -> None:
        self._starts: dict[str, tuple[Rate, deque[float]]] = {}
        self._run: object = None

    def next_start(self, rates: Iterable[Rate]) -> float:
        """The instant from which on a call with these `rates` may start, in seconds; minus infinity: from ever."""
        found = -math.inf
        for rate in rates:
            _, starts = self._starts.get(rate.name, (rate, ()))
            if rate.slots is not None and len(starts) >= rate.slots:
                found = max(found, starts[-rate.slots] + rate.window)
        return found

    def note(self, rates: Iterable[Rate], now: float) -> None:
        """Take note that a call with these `rates` starts `now`."""
        for rate in rates:
            known = self._starts.get(rate.name)
            if known is None or known[0] != rate:
                known = self._starts[rate.name] = rate, deque(() if known is None else known[1], rate.slots)
            known[1].append(now)
        if len(self._starts) > _NAMES_MOST:
            self._starts = {
                name: (rate, starts) for name, (rate, starts) in self._starts.items() if starts[-1] + rate.window > now
            }

    def tell_run(self, run: object) -> None:
        """The next starts are on the clock of `run`; those on another clock are forgotten."""
        if run is not self._run:
            self._starts.clear()
            self._run = run

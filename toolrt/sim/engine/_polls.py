"""The time as a loop that polls the clock sees it.

Rules.  A time that is told while a loop is looked at (`_fairness`) remembers what it is compared with, also after sums
and differences: so it is known at which later time the loop goes another way, and the clock stops there.

Limits.  Whole numbers, dates and products are compared unseen; `Polls.is_seen` says whether any comparison was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nextafter
from typing import Any


class Polls:
    """What one loop compares the time with."""

    def __init__(self) -> None:
        #: The later times at which a comparison has another answer.
        self.times: list[float] = []
        #: Whether the time was compared with anything.
        self.is_seen = False


class PolledTime(float):
    """A time, or a difference of times, that remembers what it is compared with."""

    __slots__ = ("_now", "_polls", "_rises")

    _now: float
    _polls: Polls
    _rises: bool

    def __new__(cls, value: float, now: float, polls: Polls, rises: bool = True) -> PolledTime:
        """Make one that is `value` at the time `now`, and grows with time, or else shrinks."""
        made = super().__new__(cls, value)
        made._now, made._polls, made._rises = now, polls, rises
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)

    def _note(self, other: Any, answer: Any, is_less: bool, is_strict: bool) -> Any:
        self._polls.is_seen = True
        # It will have another answer once it has grown, or shrunk, enough.
        if answer is not NotImplemented and answer == (is_less == self._rises) and not isinstance(other, PolledTime):
            at = self._now + abs(other - float(self))
            at = at if is_strict == (is_less == self._rises) else nextafter(at, inf)
            self._polls.times.append(max(at, nextafter(self._now, inf)))
        return answer

    def __lt__(self, other: Any) -> Any:
        return self._note(other, float.__lt__(self, other), True, True)

    def __le__(self, other: Any) -> Any:
        return self._note(other, float.__le__(self, other), True, False)

    def __gt__(self, other: Any) -> Any:
        return self._note(other, float.__gt__(self, other), False, True)

    def __ge__(self, other: Any) -> Any:
        return self._note(other, float.__ge__(self, other), False, False)

    def _moved(self, operation: Callable[[float, Any], Any], other: Any, rises: bool) -> Any:
        value = operation(self, other)
        if value is NotImplemented or isinstance(other, PolledTime):
            return value
        return PolledTime(value, self._now, self._polls, rises)

    def __add__(self, other: Any) -> Any:
        return self._moved(float.__add__, other, self._rises)

    def __radd__(self, other: Any) -> Any:
        return self._moved(float.__radd__, other, self._rises)

    def __sub__(self, other: Any) -> Any:
        return self._moved(float.__sub__, other, self._rises)

    def __rsub__(self, other: Any) -> Any:
        return self._moved(float.__rsub__, other, not self._rises)

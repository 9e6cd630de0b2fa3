"""Counts and times, kept in memory.

Rules.  What is kept grows with the number of tools, never with that of calls.  The same executions give the same
snapshot, in whatever order they ran.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.plugins.otel._measures import COUNTERS, HISTOGRAMS, Labels, Measures

#: The upper bounds of a distribution's classes, in seconds; the last class has none.
BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0)


@attrs.frozen
class Distribution:
    """How long something took."""

    #: How many times it happened.
    count: int = 0
    #: All of it together, in seconds.
    total: float = 0.0
    #: The shortest, in seconds; None if it never happened.
    least: float | None = None
    #: The longest.
    most: float | None = None
    #: How many took at most 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300 seconds and not less than the bound
    #: before; the last number is of those that took longer.
    classes: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)


@attrs.define
class _Times:
    count: int = 0
    total: int = 0
    least: int = 0
    most: int = 0
    classes: list[int] = attrs.field(factory=lambda: [0] * (len(BOUNDS) + 1))

    def add(self, other: _Times) -> None:
        self.least = other.least if self.count == 0 else min(self.least, other.least)
        self.most = max(self.most, other.most)
        self.count += other.count
        self.total += other.total
        self.classes = [a + b for a, b in zip(self.classes, other.classes, strict=True)]

    def note(self, nanoseconds: int) -> None:
        self.least = nanoseconds if self.count == 0 else min(self.least, nanoseconds)
        self.most = max(self.most, nanoseconds)
        self.count += 1
        self.total += nanoseconds
        self.classes[bisect_left(BOUNDS, nanoseconds / 1e9)] += 1

    def shown(self) -> Distribution:
        if self.count == 0:
            return Distribution()
        return Distribution(self.count, self.total / 1e9, self.least / 1e9, self.most / 1e9, tuple(self.classes))


class Counts(Measures):
    """A sink that keeps counts and times; read them any time, from any thread.

    The names and their labels are in ``docs/reference/events.md``.

    Example::

        counts = Counts()
        runtime = toolrt.Runtime(registry, telemetry=Telemetry(counts))
        ...
        counts.count("toolrt.calls", tool="read_file", outcome="error")
        counts.distribution("toolrt.call.wait", why="slot").most
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._counters: dict[tuple[str, Labels], int] = {}
        self._times: dict[tuple[str, Labels], _Times] = {}

    def _count(self, name: str, amount: int, labels: Labels) -> None:
        with self._lock:
            self._counters[name, labels] = self._counters.get((name, labels), 0) + amount

    def _measure(self, name: str, nanoseconds: int, labels: Labels) -> None:
        with self._lock:
            times = self._times.get((name, labels))
            if times is None:
                times = self._times[name, labels] = _Times()
            times.note(nanoseconds)

    def count(self, name: str, **labels: str | bool) -> int:
        """How often `name` was counted where all of `labels` hold: all tools, say, if none is given.

        Raises:
            DefinitionRefused: nothing of that name is counted.
        """
        if name not in COUNTERS:
            raise DefinitionRefused("Counts.count(name)", f"one of {', '.join(COUNTERS)}", name)
        with self._lock:
            return sum(amount for key, amount in self._counters.items() if _fits(key, name, labels))

    def distribution(self, name: str, **labels: str | bool) -> Distribution:
        """How long `name` took where all of `labels` hold.

        Raises:
            DefinitionRefused: nothing of that name is measured.
        """
        if name not in HISTOGRAMS:
            raise DefinitionRefused("Counts.distribution(name)", f"one of {', '.join(HISTOGRAMS)}", name)
        together = _Times()
        with self._lock:
            for key, times in self._times.items():
                if _fits(key, name, labels):
                    together.add(times)
        return together.shown()

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        """All of it as JSON values, sorted: by name, a list of what was counted, each with its labels."""
        with self._lock:
            found: dict[str, list[dict[str, Any]]] = {}
            for (name, labels), amount in sorted(self._counters.items()):
                found.setdefault(name, []).append({"labels": dict(labels), "count": amount})
            for (name, labels), times in sorted(self._times.items(), key=lambda item: item[0]):
                shown = attrs.asdict(times.shown(), value_serializer=_listed)
                found.setdefault(name, []).append({"labels": dict(labels), **shown})
        return found

    def __repr__(self) -> str:
        return f"<Counts of {self.count('toolrt.calls'):,} calls>"


def _listed(_: object, __: object, value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _fits(key: tuple[str, Labels], name: str, labels: dict[str, str | bool]) -> bool:
    found = dict(key[1])
    return key[0] == name and all(found.get(label) == value for label, value in labels.items())

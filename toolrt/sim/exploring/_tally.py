"""Counts what many executions have shown, in a form that other processes and files can take.

Rules.  An execution is kept as its choices: to show it, it is run again.  So is an outcome that is not made
of plain values, because what another process would make of it need not equal what it was here.  A *place* says where
an execution comes among all; of equal outcomes the first in that order gives the name, and failures are sorted by it,
so that the sum of tallies does not depend on how the work was divided.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import attrs

from toolrt.sim.engine._execution import Execution
from toolrt.sim.exploring._judge import Judgement
from toolrt.trace import stable_text

#: A report keeps this many failing executions; they are counted all the same.
FAILURES_KEPT = 100

Place = tuple[Any, ...]


@attrs.frozen
class ReplayableExecution:
    """An execution as its choices."""

    #: Where it comes among all.
    place: Place
    #: The number its policy started with.
    index: int
    #: The choices, and the stream of random numbers.
    choices: tuple[int, ...]
    chance: int


@attrs.define
class ExecutionCounts:
    """How many executions there were, and what is to be said of all of them."""

    #: How many there were, and how often one was run a second time.
    executions: int = 0
    repeated: int = 0
    #: How many of them failed.
    failed: int = 0
    #: How many decided nothing.
    undecided: int = 0
    #: Why, and how many for each reason.
    reasons: dict[str, int] = attrs.Factory(dict)
    #: How two executions differ that must be alike; None: no two do.
    difference: str | None = None
    #: The first foreign task or callback that ran; None: none did.
    beside: str | None = None
    #: What the claim has to say of them besides.
    caveats: frozenset[str] = frozenset()
    #: The streams of random numbers that they drew from.
    streams: set[int] = attrs.Factory(set)

    def note_one(self, execution: Execution, judgement: Judgement) -> None:
        """Count an execution."""
        self.executions += 1
        self.failed += judgement.failed
        if judgement.undecided:
            self.undecided += 1
            self.reasons[judgement.why] = self.reasons.get(judgement.why, 0) + 1
        self.beside = self.beside or execution.beside
        self.caveats |= execution.caveats
        if execution.chance is not None:
            self.streams.add(execution.chance)


@attrs.define
class Tally(ExecutionCounts):
    """What some executions have shown."""

    #: For each outcome of plain values: it, how often it came, and the place of the first.
    outcomes: dict[Any, tuple[Any, int, Place]] = attrs.Factory(dict)
    #: For each other outcome, by worker and its number there: how often it came, and the first.
    others: dict[tuple[int, int], tuple[int, ReplayableExecution]] = attrs.Factory(dict)
    #: What tells the schedules apart; empty when they are known to be different.
    schedules: set[Any] = attrs.Factory(set)
    #: The first failures, at most `FAILURES_KEPT`.
    failures: list[ReplayableExecution] = attrs.Factory(list)

    def note(
        self,
        execution: Execution,
        judgement: Judgement,
        place: Place,
        repeats: bool,
        number: Callable[[Any], tuple[int, int]],
    ) -> None:
        """Count an execution; `number` numbers an outcome that is not plain."""
        self.note_one(execution, judgement)
        if repeats:
            self.schedules.add(fingerprint(execution))
        recorded = ReplayableExecution(place, execution.index, execution.choices, execution.chance or 0)
        key = outcome_key(execution.outcome)
        if _is_plain(key):
            known = self.outcomes.get(key)
            self.outcomes[key] = (key, 1, place) if known is None else _sooner(known, (key, 1, place))
        else:
            self._add_other(number(key), 1, recorded)
        if judgement.failed:
            self.failures.append(recorded)
            if len(self.failures) > 2 * FAILURES_KEPT:
                self._trim()

    def add(self, other: Tally) -> None:
        """Count what another has counted."""
        self.executions += other.executions
        self.repeated += other.repeated
        self.failed += other.failed
        self.undecided += other.undecided
        for why, count in other.reasons.items():
            self.reasons[why] = self.reasons.get(why, 0) + count
        for key, counted in other.outcomes.items():
            known = self.outcomes.get(key)
            self.outcomes[key] = counted if known is None else _sooner(known, counted)
        for number, (count, first) in other.others.items():
            self._add_other(number, count, first)
        self.difference = self.difference or other.difference
        self.beside = self.beside or other.beside
        self.caveats |= other.caveats
        self.streams |= other.streams
        self.schedules |= other.schedules
        self.failures += other.failures
        self._trim()

    def _add_other(self, number: tuple[int, int], count: int, first: ReplayableExecution) -> None:
        known = self.others.get(number)
        if known is not None:
            count += known[0]
            first = min(known[1], first, key=_place)
        self.others[number] = count, first

    def _trim(self) -> None:
        self.failures.sort(key=_place)
        del self.failures[FAILURES_KEPT:]


def _place(recorded: ReplayableExecution) -> Place:
    return recorded.place


def _sooner(one: tuple[Any, int, Place], other: tuple[Any, int, Place]) -> tuple[Any, int, Place]:
    """Give the sum of two counts of an outcome, under the name of the first."""
    first = min(one, other, key=lambda counted: counted[2])
    return first[0], one[1] + other[1], first[2]


def _is_plain(value: Any) -> bool:
    """Say whether a copy of `value` from another process is as good as the value."""
    if type(value) in (tuple, frozenset):
        return all(map(_is_plain, value))
    # What does not equal itself is found in a dict by being the same object.
    return type(value) in _PLAIN and bool(value == value)


_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def outcome_key(outcome: Any) -> Any:
    """Give what an outcome is counted under: itself, or its text when it cannot be hashed."""
    try:
        hash(outcome)
    except TypeError:
        return stable_text(outcome)
    return outcome


def fingerprint(execution: Execution) -> Any:
    """Give what tells schedules of one program apart, in less memory when the choices are small."""
    choices: Any = execution.choices
    with contextlib.suppress(ValueError):
        choices = bytes(choices)
    return (choices, execution.chance) if execution.chance else choices

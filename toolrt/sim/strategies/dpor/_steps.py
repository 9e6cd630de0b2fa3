"""The footprints of an execution's steps, in the form that the reduction needs.

Rules.  A step that choices have divided is one step, because no other can come between its parts.  It touches what its
parts touch.  Time that moves because nothing else can happen conflicts with everything, as if it had done anything.  An
optional step (the clock beside others, the cancel of a scope) touches what it reports, as any task does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import reduce
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from toolrt._plain import stable_text
from toolrt.probe import ALL_REPORTED, ANYTHING, Resource
from toolrt.sim._paths import CLOCK

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord


def number_of(text: str) -> int:
    """Give a number for a text: the same in every process, as its hash is not."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


class Footprint:
    """What one step touched."""

    __slots__ = ("anything", "label", "pairs", "reads", "writes")

    def __init__(self, pairs: dict[Resource, bool], anything: bool) -> None:
        #: Each resource, and whether it was written.
        self.pairs = tuple(pairs.items())
        self.reads = frozenset(resource for resource, write in pairs.items() if not write)
        self.writes = frozenset(resource for resource, write in pairs.items() if write)
        #: True when that is unknown.
        self.anything = anything
        #: A number for it, which is the same in every process.
        texts = [sorted(map(stable_text, touched)) for touched in (self.reads, self.writes)]
        self.label = number_of(stable_text((*texts, anything)))

    def conflicts_with(self, other: Footprint) -> bool:
        """Say whether the order of the two steps matters."""
        return (
            self.anything
            or other.anything
            or not self.writes.isdisjoint(other.writes)
            or not self.writes.isdisjoint(other.reads)
            or not self.reads.isdisjoint(other.writes)
        )


#: What a step touched that touched nothing, and what one did that may have done anything.
NOTHING = Footprint({}, False)
WILD = Footprint({}, True)


class Footprints:
    """Makes the footprints of an execution's steps; equal ones are one object."""

    def __init__(self, declared: bool) -> None:
        self._declared = declared
        self._known: dict[Any, Footprint] = {}
        self._all: dict[Any, Footprint] = {}
        self._joint: dict[tuple[Footprint, Footprint], Footprint] = {}

    def of(self, record: ExecutionRecord, begin: int, end: int) -> Footprint:
        """Give what the steps from `begin` to `end`, which are one that choices have divided, touched."""
        _, enabled, _, touched, _, _ = record.steps[begin]
        if enabled[0] is CLOCK and record.steps[begin][0].name is CLOCK:
            # Time moves because nothing else can happen.
            return WILD
        implied = record.implied.get(begin, ())
        scope = record.things.scope_of(record.begun_under[begin])
        for index in range(begin + 1, end):
            touched += record.steps[index][3]
            implied += record.implied.get(index, ())
        since = record.wild_since
        wild = since is not None and since < begin
        key = (touched, implied, scope, wild)
        found = self._known.get(key)
        if found is None:
            pairs: dict[Resource, bool] = {} if scope is None else {scope: False}
            for resource, write in (*touched, *implied):
                pairs[resource] = write or pairs.get(resource, False)
            is_complete = pairs.pop(ALL_REPORTED, None) is not None or self._declared
            anything = pairs.pop(ANYTHING, False) or wild or not (touched or is_complete)
            found = self._known[key] = self._one(pairs, anything)
        return found

    def of_all(self, record: ExecutionRecord, steps: Iterable[int]) -> Footprint:
        """Give what several steps touched between two choices."""
        return reduce(self.joint, (self.of(record, step, step + 1) for step in steps))

    def _one(self, pairs: dict[Resource, bool], anything: bool) -> Footprint:
        key = (frozenset(pairs.items()), anything)
        found = self._all.get(key)
        if found is None:
            found = self._all[key] = Footprint(pairs, anything)
        return found

    def joint(self, one: Footprint, other: Footprint) -> Footprint:
        """Give one that touches what either touches."""
        found = self._joint.get((one, other))
        if found is None:
            pairs = dict(one.pairs)
            for resource, write in other.pairs:
                pairs[resource] = write or pairs.get(resource, False)
            found = self._joint[one, other] = self._one(pairs, one.anything or other.anything)
        return found


class Events:
    """The steps of an execution; those that a choice divides are one."""

    __slots__ = ("_begins", "_choices", "count", "record")

    def __init__(self, record: ExecutionRecord) -> None:
        self.record = record
        # Where each begins, or None when no step is divided; and the steps that are choices.
        self._begins: list[int] | None = None
        self._choices = record.choices_within
        self.count = len(record.steps)
        if self._choices or record.cut_within:
            within = {index for choice in self._choices for index in (choice, choice + 1)}
            self._begins = [index for index in range(len(record.steps)) if index not in within]
            if record.cut_within:
                # It was given up before the step was over.
                self._begins.pop()
            self.count = len(self._begins)

    @property
    def are_whole(self) -> bool:
        """Say whether no step is divided: then each is an event of its own."""
        return self._begins is None

    def begin(self, index: int) -> int:
        """Give where in the execution step `index` begins."""
        return index if self._begins is None else self._begins[index]

    def end(self, index: int) -> int:
        """Give where it ends."""
        if self._begins is None:
            return index + 1
        return self._begins[index + 1] if index + 1 < self.count else len(self.record.steps)

    def at(self, step: int) -> int:
        """Give the number of the step that `step` is a part of; past the end, how many there are."""
        return step if self._begins is None else bisect_right(self._begins, step) - (step < len(self.record.steps))

    def choices(self, index: int) -> list[tuple[int, int]]:
        """Give what step `index` has chosen, and of how many."""
        if self._begins is None:
            return []
        begin, end = self.begin(index), self.end(index)
        if end == begin + 1:
            return []
        steps = self.record.steps
        return [(steps[choice][2], len(steps[choice][1])) for choice in range(begin + 1, end, 2)]

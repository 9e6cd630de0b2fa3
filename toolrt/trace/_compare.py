"""Two orders of steps beside each other: where they part, and the race that decides.

Rules.  A race is the first pair of accesses to one resource, one of them a write, by two tasks, that come the other
way round in the second order.  A step of one order is the step of the other with the same number among those of its
task.

Limits.  A race is seen only where both sides report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import attrs

from toolrt.trace._record import Access, Step

# Longer stretches are not compared step by step.
_MOST_COMPARED = 400


@attrs.frozen
class Parting:
    """Two orders of steps that begin and end alike."""

    #: How many steps are the same at the beginning, and at the end.
    before: int
    after: int
    #: How many steps in between are out of place: so many would have to be taken out and put in.
    distance: int


@attrs.frozen
class Race:
    """Two accesses to one resource whose order decides."""

    #: The step and the access that came first in the first order.
    first: tuple[Step, Access]
    #: The step and the access that came second.
    second: tuple[Step, Access]


def parting_of(one: Sequence[str], other: Sequence[str]) -> Parting:
    """How `one` order of steps parts from the `other`; each is given as the tasks that stepped."""
    shorter = min(len(one), len(other))
    before = 0
    while before < shorter and one[before] == other[before]:
        before += 1
    after = 0
    while after < shorter - before and one[-1 - after] == other[-1 - after]:
        after += 1
    mine, theirs = one[before : len(one) - after], other[before : len(other) - after]
    distance = len(mine) + len(theirs)
    if len(mine) <= _MOST_COMPARED and len(theirs) <= _MOST_COMPARED:
        matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
        distance -= 2 * sum(block.size for block in matcher.get_matching_blocks())
    return Parting(before, after, distance)


def race_between(one: Sequence[Step], other: Sequence[Step]) -> Race | None:
    """Give the first race of `one` that goes the other way round in `other`; None when no step has reported one."""
    mine, theirs = [step.task for step in one], [step.task for step in other]
    places = {key: index for index, key in enumerate(_numbered(theirs))}
    keys = list(_numbered(mine))
    start = parting_of(mine, theirs).before
    for first in one[start:]:
        place = places.get(keys[first.index])
        if place is None or not first.accesses:
            continue
        for second in one[first.index + 1 :]:
            if second.task == first.task or places.get(keys[second.index], place) >= place:
                continue
            for left in first.accesses:
                for right in second.accesses:
                    if left.conflicts_with(right):
                        return Race((first, left), (second, right))
    return None


def _numbered(tasks: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Give for each step its task, and its number among that task's steps."""
    made: dict[str, int] = {}
    for task in tasks:
        made[task] = number = made.get(task, -1) + 1
        yield task, number

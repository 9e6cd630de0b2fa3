"""A failing execution beside the nearest one that passes: where they part, and the race that decides.

Rules.  The nearest is looked for among the executions in which one choice is another one, and those after it are
either the same or zeros.  The nearest is the one that goes the same way longest, then the one whose order of steps
has the fewest steps out of place, then the one with the fewest preemptions.  The race is the first pair of accesses
to one resource, one of them a write, by two tasks, that come the other way round in the execution that passes.

Theory.  In a failure with as few preemptions as there can be, each preemption matters: without any one of them it
passes (Zeller, 2002: the cause is the smallest difference between what fails and what does not).

Limits.  Bounded searches: what is found is near, not always nearest.  A race is seen only where both sides report.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

import attrs

from toolrt.sim._execution import Execution
from toolrt.sim._judge import Judgement
from toolrt.trace import Access, Step

__all__ = ["Parting", "Race", "parting_of", "passing_beside", "race_between"]

# How many executions are run to find one that passes, and how many steps those may have altogether.
_MOST_TRIES = 200
_MOST_STEPS = 100_000

# Longer stretches are not compared step by step.
_MOST_COMPARED = 400

#: Runs a list of choices, and judges what came of it.
Attempt = Callable[[tuple[int, ...]], Generator[Any, Execution, tuple[Execution, Judgement]]]


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

    #: The step and the access that came first where it failed.
    first: tuple[Step, Access]
    #: The step and the access that came second.
    second: tuple[Step, Access]


def passing_beside(failing: Execution, attempt: Attempt) -> Generator[Any, Execution, Execution | None]:
    """Give the nearest execution found that passes; None when there is none."""
    best: Execution | None = None
    least: tuple[int, int, int] | None = None
    steps_left = _MOST_STEPS
    tasks = failing.schedule.tasks
    seen = {failing.choices}
    tries = 0
    for choices in _one_choice_away(failing):
        if tries == _MOST_TRIES or steps_left <= 0:
            break
        tries += 1
        execution, judgement = yield from attempt(choices)
        steps_left -= len(execution.choices)
        if judgement.failed or judgement.undecided or execution.choices in seen:
            continue
        seen.add(execution.choices)
        schedule = execution.schedule
        parting = parting_of(tasks, schedule.tasks)
        measure = (-parting.before, parting.distance, schedule.switches)
        if least is None or measure < least:
            best, least = execution, measure
    return best


def _one_choice_away(execution: Execution) -> Iterator[tuple[int, ...]]:
    choices, enabled = execution.choices, execution.enabled
    # Preemptions first: they are what the failure needs.
    places = sorted(range(len(choices)), key=lambda step: (choices[step] == 0, -step))
    for step in places:
        for other in range(len(enabled[step])):
            if other != choices[step]:
                yield (*choices[:step], other)
                if any(choices[step + 1 :]):
                    yield (*choices[:step], other, *choices[step + 1 :])


def parting_of(one: Sequence[str], other: Sequence[str]) -> Parting:
    """Compare two orders of steps."""
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


def race_between(failing: Execution, passing: Execution) -> Race | None:
    """Give the first race that goes the other way round where it passes; None when no step has reported one."""
    places = {key: index for index, key in enumerate(_numbered(passing.schedule.tasks))}
    steps = failing.schedule.steps
    keys = list(_numbered(failing.schedule.tasks))
    start = parting_of(failing.schedule.tasks, passing.schedule.tasks).before
    for first in steps[start:]:
        place = places.get(keys[first.index])
        if place is None or not first.accesses:
            continue
        for second in steps[first.index + 1 :]:
            if second.task == first.task or places.get(keys[second.index], place) >= place:
                continue
            for mine in first.accesses:
                for theirs in second.accesses:
                    if mine.resource == theirs.resource and (mine.write or theirs.write):
                        return Race((first, mine), (second, theirs))
    return None


def _numbered(tasks: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Give for each step its task, and its number among that task's steps."""
    made: dict[str, int] = {}
    for task in tasks:
        made[task] = number = made.get(task, -1) + 1
        yield task, number

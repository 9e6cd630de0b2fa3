"""Proposes what would mend a failure, and explores the program as if it were so.

Rules.
    1. Proposed is what the minimal schedule shows: lines between which another task changed what they touch become
       atomic, in each function that touches it; locks of a circle are taken in one order; the condition of an `if` with
       a wait inside is looked at again; a cancelled line is shielded; of two accesses that came the wrong way round
       the one waits for the other.  Where a world still fails, what decides that failure is made atomic, too.
    2. Each is explored as the failure was found: the same strategy, check and budget.  What fails, or decides nothing,
       is no repair; nor is one under which something comes out that the program never gave.
    3. The repair that loses no outcome of those that passed comes first; then lock orders, atomic lines, looks taken
       again, shields and orders, one after the other; then fewer lines.

Limits.  Shields and orders may fit this failure alone, and say so.  A repair that changes what a step does, rather than
when, is none of these kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused, ReplayDiverged
from toolrt.probe import ANYTHING, Resource
from toolrt.sim.engine._source_lines import SourceLine, SourceLines
from toolrt.sim.exploring._explain import FailureStory
from toolrt.sim.exploring._tally import outcome_key
from toolrt.sim.programs.given._constraints import (
    Again,
    Atomic,
    Before,
    CodeLine,
    Constraint,
    LockOrder,
    Shielded,
    in_words,
)
from toolrt.sim.programs.given._weaving import line_of_if
from toolrt.trace import stable_text

__all__ = ["Repair", "repairs_of"]

#: So many worlds are explored at most, and a world is grown so often.
_MOST, _GROWN = 16, 3

#: What is no variable of the program's.
_NO_VARIABLES = ("Nursery", "CancelScope", "RunVar", "anything")

#: From what is surest to what may fit one failure alone.
_KINDS = (LockOrder, Atomic, Again, Shielded, Before)
_WAITED_AT = ("Lock", "StrictFIFOLock", "Semaphore", "CapacityLimiter", "Condition", "Event", "ParkingLot")


@attrs.frozen
class Repair:
    """A constraint under which the program was explored and did not fail."""

    #: What `toolrt.sim.explore` takes in ``given=``.
    constraint: Constraint
    #: What the exploration under it showed.
    report: Any
    #: How to write it, and what was shown.
    text: str
    #: The outcomes that passed without it and do not come any more, as texts.
    lost: tuple[str, ...] = ()
    #: Whether it may fit this failure alone: an order or a shield.
    may_overfit: bool = False

    def __str__(self) -> str:
        return self.text


def repairs_of(
    story: FailureStory, found_in: Any, explore: Callable[[Sequence[Constraint]], Any], most: int | None = None
) -> list[Repair]:
    """Give what mends the failure of `story`, the repair that holds back least first; none is an answer.

    Args:
        story: the failure.
        found_in: the report that it stands in.
        explore: explores the program again under constraints.
        most: so many executions are run at most, but for the last world, and the first repair that loses no outcome is
            all that is wanted; None: all are.
    """
    if story.places is None:
        return []
    tried: set[Constraint] = set()
    found: list[Repair] = []
    failing = {_outcome(outcome_key(one.execution.outcome)) for one in found_in.failures}
    passing = {_outcome(value) for value in found_in.outcomes} - failing
    spent = 0

    def world(constraint: Constraint) -> Any | None:
        nonlocal spent
        if constraint in tried or len(tried) >= _MOST or (most is not None and spent >= most):
            return None
        tried.add(constraint)
        try:
            report = explore([constraint])
        except (DefinitionRefused, ReplayDiverged):
            return None
        spent += report.executions
        return report

    for constraint in _proposed(story):
        if any(_is_more(constraint, one.constraint) for one in found if not one.lost):
            continue
        if most is not None and any(not one.lost for one in found):
            break
        for _ in range(_GROWN):
            report = world(constraint)
            if report is None:
                break
            if report.verdict == "PASS":
                outcomes = {_outcome(value) for value in report.outcomes}
                if not outcomes - passing:
                    found.append(_repair(constraint, report, tuple(sorted(passing - outcomes))))
                break
            wider = _grown(constraint, report)
            if wider is None:
                break
            constraint = wider
    return sorted(found, key=_rank)


def _outcome(value: Any) -> str:
    """Give an outcome that a report counts as text.

    Of a history (`sim.History`) it is what each call gave: a lock changes which of them overlap.
    """
    operations = getattr(value, "operations", None)
    if isinstance(operations, tuple) and all(hasattr(one, "answer") for one in operations):
        return "; ".join(sorted(f"{one.task}: {one.call} -> {one.answer}" for one in operations))
    return stable_text(value)


def _is_more(constraint: Constraint, other: Constraint) -> bool:
    """Whether `constraint` holds back all that the `other` does, and more."""
    if not isinstance(constraint, Atomic) or not isinstance(other, Atomic):
        return False
    return all(
        any(
            (mine[0].file, mine[0].function) == (first.file, first.function)
            and mine[0].number <= first.number
            and last.number <= mine[1].number
            for mine in constraint.regions
        )
        for first, last in other.regions
    )


def _repair(constraint: Constraint, report: Any, lost: tuple[str, ...]) -> Repair:
    passed = f"{report.executions - report.failed:,} of {report.executions:,} pass"
    text = f"{_written(constraint)}: {passed}, {report.claim.partition(' with ')[0]}"
    overfits = isinstance(constraint, Shielded | Before)
    if lost:
        text += f"; {', '.join(lost)} {'does' if len(lost) == 1 else 'do'} not come any more"
    if overfits:
        text += "; it may fit this failure alone: try it with one task more"
    return Repair(constraint, report, text, lost, overfits)


def _written(constraint: Constraint) -> str:
    """Say how a person writes it."""
    if isinstance(constraint, Atomic):
        return "`async with lock:` round " + " and round ".join(in_words(*one) for one in constraint.regions)
    if isinstance(constraint, LockOrder):
        where = " and ".join(in_words(*one) for one in constraint.regions)
        return f"locks sorted by a number that each has, and taken in this order, in {where}"
    if isinstance(constraint, Again):
        return f"`while` in place of `if` in {constraint.place}, to look again after the wait"
    if isinstance(constraint, Shielded):
        return f"`with trio.CancelScope(shield=True):` round {in_words(constraint.first, constraint.last)}"
    return f"an event: {constraint.second} waits until {constraint.first} has been passed"


def _rank(repair: Repair) -> tuple[int, int, int]:
    constraint = repair.constraint
    if isinstance(constraint, Atomic):
        lines = sum(last.number - first.number + 1 for first, last in constraint.regions)
    else:
        lines = constraint.last.number - constraint.first.number if isinstance(constraint, Shielded) else 0
    return len(repair.lost), _KINDS.index(type(constraint)), lines


# ---------------------------------------------------------------------- proposals


def _proposed(story: FailureStory) -> Iterator[Constraint]:
    """Give what may mend it, the likeliest first."""
    places = story.places
    assert places is not None
    touched = _touched(story, places)
    if story.pattern is not None and story.pattern.name == "leaked cancel":
        yield from _shields(places)
    waits = [line for resource, lines in touched.items() if resource[0] in _WAITED_AT for line in lines]
    if story.execution.error is not None:
        yield from _lock_orders(touched)
    for resource in _contended(story, touched):
        where = {(line.path, line.function) for _, line, _ in touched[resource]}
        # What may be anything may be this.
        other = [one for one in touched.get(ANYTHING, ()) if (one[1].path, one[1].function) in where]
        yield from _atomic([*touched[resource], *other])
    if story.execution.error is not None and waits:
        # One task alone is in no circle: all regions first.
        yield from reversed(list(_atomic(waits)))
    for _, line, _ in waits:
        number = line_of_if(line.path, line.line)
        if number is not None:
            yield Again(CodeLine(line.path, number, line.function))
    yield from _shields(places)
    yield from _orders(story, places)


_Touched = tuple[str, SourceLine, bool]


def _touched(story: FailureStory, places: SourceLines) -> dict[Resource, list[_Touched]]:
    """Give for each resource who touched it, where, and whether that wrote."""
    steps = story.execution.schedule.steps
    found: dict[Resource, list[_Touched]] = {}
    for (step, resource, write), line in sorted(places.of_accesses.items(), key=lambda item: item[0][0]):
        if step < len(steps):
            found.setdefault(resource, []).append((steps[step].task, line, write))
    return found


def _contended(story: FailureStory, touched: dict[Resource, list[_Touched]]) -> list[Resource]:
    """Give what several tasks touch and one writes: what decides first, then the others as they were touched."""
    shared = [
        resource
        for resource, lines in touched.items()
        if resource[0] not in (*_NO_VARIABLES, *_WAITED_AT)
        and resource != ANYTHING
        and len({task for task, *_ in lines}) > 1
        and (any(write for *_, write in lines) or ANYTHING in touched)
    ]
    decides = None if story.race is None else story.race.first[1].resource
    return sorted(shared, key=lambda resource: resource != decides)


def _lock_orders(touched: dict[Resource, list[_Touched]]) -> Iterator[LockOrder]:
    """Give the lines of each function that takes several locks."""
    taken: dict[tuple[str, str], dict[Resource, list[int]]] = {}
    for resource, lines in touched.items():
        if resource[0] in _WAITED_AT:
            for _, line, _ in lines:
                taken.setdefault((line.path, line.function), {}).setdefault(resource, []).append(line.line)
    several = {
        key: [number for lines in locks.values() for number in lines] for key, locks in taken.items() if len(locks) > 1
    }
    if several:
        yield LockOrder(tuple(_region_of(*key, min(lines), max(lines)) for key, lines in several.items()))


def _atomic(lines: Sequence[_Touched]) -> Iterator[Atomic]:
    """Give regions that have these lines: of each function that looks and then writes, then of all functions."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for _, line, _ in lines:
        key = line.path, line.function
        low, high = spans.get(key, (line.line, line.line))
        spans[key] = min(low, line.line), max(high, line.line)
    regions = {key: _region_of(*key, *span) for key, span in spans.items()}
    # A task that touches it there once is one step there already.
    often = {
        key
        for key in spans
        for task in {task for task, *_ in lines}
        if sum(one[0] == task and (one[1].path, one[1].function) == key for one in lines) > 1
    }
    whole = [Atomic((region,)) for key, region in regions.items() if key in often]
    yield from sorted(whole, key=lambda one: one.regions[0][1].number - one.regions[0][0].number)
    if len(regions) > 1:
        yield Atomic(tuple(regions.values()))


def _region_of(path: str, function: str, first: int, last: int) -> tuple[CodeLine, CodeLine]:
    return CodeLine(path, first, function), CodeLine(path, last, function)


def _shields(places: SourceLines) -> Iterator[Shielded]:
    """Give the lines in which a task was cancelled, the last first, each also as far as a step stood behind it."""
    for step in sorted(places.cancelled, reverse=True):
        at = places.of_steps.get(step)
        if at is None:
            continue
        yield Shielded(*_region_of(at.path, at.function, at.line, at.line))
        others = [one.line for one in places.of_steps.values() if (one.path, one.function) == (at.path, at.function)]
        if max(others) > at.line:
            yield Shielded(*_region_of(at.path, at.function, at.line, max(others)))


def _orders(story: FailureStory, places: SourceLines) -> Iterator[Before]:
    """Give the order of the two accesses that came the wrong way round."""
    race = story.race
    if race is None:
        return
    lines = [places.of_access(step.index, access.resource, access.write) for step, access in (race.first, race.second)]
    early, late = lines
    if early is not None and late is not None and early != late:
        yield Before(_place(late), _place(early))


def _place(line: SourceLine) -> CodeLine:
    return CodeLine(line.path, line.line, line.function)


def _grown(constraint: Constraint, report: Any) -> Atomic | None:
    """Give the same with what decides the failure that is left; None: there is nothing to be added."""
    if not isinstance(constraint, Atomic) or not report.failures:
        return None
    story: FailureStory = report.failures[0]._told
    if story.places is None:
        return None
    regions = {(first.file, first.function): (first.number, last.number) for first, last in constraint.regions}
    before = dict(regions)
    touched = _touched(story, story.places)
    for resource in _contended(story, touched)[:1]:
        for _, line, _ in touched[resource]:
            low, high = regions.get((line.path, line.function), (line.line, line.line))
            regions[line.path, line.function] = min(low, line.line), max(high, line.line)
    if regions == before:
        return None
    return Atomic(tuple(_region_of(*key, *span) for key, span in regions.items()))

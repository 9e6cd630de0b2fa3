"""Proposes what would mend a failure, and explores the program as if it were so.

Rules.
    1. Proposed is what the minimal schedule shows: lines between which another task changed what they touch become
       atomic, in each function that touches it; locks of a circle are taken in one order; the condition of an `if` with
       a wait inside is looked at again; a cancelled line is shielded; of two accesses that came the wrong way round
       the one waits for the other.  Where a world still fails, what decides that failure is made atomic, too.
    2. Each is explored as the failure was found: the same strategy, check and budget.  What fails, or decides nothing,
       is no repair; nor is one under which something comes out that the program never gave.
    3. The repair that loses no outcome of those that passed comes first; then lock orders, looks taken again, atomic
       lines, shields and orders, one after the other; then fewer regions and fewer lines.

Limits.  Shields and orders may fit this failure alone, a sample may hide it, and they say so.  A repair that changes
what a step does, rather than when, is none of these kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
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
from toolrt.sim.programs.given._weaving import is_left_before_a_wait, line_of_if
from toolrt.trace import stable_text

#: So many worlds are explored at most, and a world is grown so often.
_MOST, _GROWN = 16, 3

#: A sample of a world says little when fewer of its executions would have failed without the constraint.
_EXPECTED = 5

#: What is no variable of the program's.
_NO_VARIABLES = ("Nursery", "CancelScope", "RunVar", "anything")

#: From what is surest to what may fit one failure alone.
_KINDS = (LockOrder, Again, Atomic, Shielded, Before)
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
    #: Whether it may fit this failure alone (an order or a shield), or hide it: a sample passed in which few executions
    #: would have failed, or under a lock round several functions, or in a library.
    may_overfit: bool = False

    def __str__(self) -> str:
        return self.text


def repairs_of(
    story: FailureStory,
    passing: Callable[[], SourceLines | None],
    found_in: Any,
    explore: Callable[[Sequence[Constraint]], Any],
    most: int | None = None,
) -> list[Repair]:
    """Give what mends the failure of `story`, the repair that holds back least first; none is an answer.

    Args:
        story: the failure.
        passing: gives where the steps of the nearest execution that passes ran; None: there is none.
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
    right = {_outcome(value) for value in found_in.outcomes} - failing
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

    for constraint in _proposed(story, passing):
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
                if not outcomes - right:
                    expected = report.executions * found_in.failed / max(1, found_in.executions)
                    found.append(_repair(constraint, report, tuple(sorted(right - outcomes)), expected))
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


def _repair(constraint: Constraint, report: Any, lost: tuple[str, ...], expected: float) -> Repair:
    """Give a world that passed as a repair; without it so many of its executions were `expected` to fail."""
    passed = f"{report.executions - report.failed:,} of {report.executions:,} pass"
    text = f"{_written(constraint)}: {passed}, {report.claim.partition(' with ')[0]}"
    overfits = isinstance(constraint, Shielded | Before)
    regions = constraint.regions if isinstance(constraint, Atomic) else ()
    elsewhere = any("site-packages" in PurePath(first.file).parts for first, _ in regions)
    hides = not report.complete and (len(regions) > 1 or elsewhere or expected < _EXPECTED)
    if lost:
        text += f"; {', '.join(lost)} {'does' if len(lost) == 1 else 'do'} not come any more"
    if overfits:
        text += "; it may fit this failure alone: try it with one task more"
    elif hides:
        text += "; a sample passed, and a lock moves other moments too: it may hide the failure, try more executions"
    return Repair(constraint, report, text, lost, overfits or hides)


def _written(constraint: Constraint) -> str:
    """Say how a person writes it."""
    if isinstance(constraint, Atomic):
        return "`async with lock:` round " + " and round ".join(_regions_in_words(constraint))
    if isinstance(constraint, LockOrder):
        where = " and ".join(_regions_in_words(constraint))
        return f"locks sorted by a number of each, then taken, in {where}"
    if isinstance(constraint, Again):
        return f"`while` in place of `if` in {constraint.place}, to look again after the wait"
    if isinstance(constraint, Shielded):
        return f"`with trio.CancelScope(shield=True):` round {in_words(constraint.first, constraint.last)}"
    done = "reached" if constraint.reached else "passed"
    return f"an event: {constraint.second} waits until {constraint.first} has been {done}"


def _regions_in_words(constraint: Atomic | LockOrder) -> Iterator[str]:
    """Say which lines these are, with their files where there are several."""
    several = len({first.file for first, _ in constraint.regions}) > 1
    for first, last in constraint.regions:
        early = isinstance(constraint, Atomic) and is_left_before_a_wait(first, last)
        file = f" ({PurePath(first.file).name})" if several else ""
        yield f"{in_words(first, last)}{file}{', not round the wait behind them' if early else ''}"


def _rank(repair: Repair) -> tuple[int, int, int, int]:
    constraint = repair.constraint
    regions: Sequence[tuple[CodeLine, CodeLine]] = ()
    if isinstance(constraint, Atomic):
        regions = constraint.regions
    elif isinstance(constraint, Shielded):
        regions = [(constraint.first, constraint.last)]
    lines = sum(last.number - first.number for first, last in regions)
    return len(repair.lost), _KINDS.index(type(constraint)), len(regions), lines


# ---------------------------------------------------------------------- proposals


def _proposed(story: FailureStory, passing: Callable[[], SourceLines | None]) -> Iterator[Constraint]:
    """Give what may mend it, the likeliest first."""
    places = story.places
    assert places is not None
    touched = _touched(story, places)
    if story.pattern is not None and story.pattern.name == "leaked cancel":
        yield from _shields(places)
    waits = [line for resource, lines in touched.items() if resource[0] in _WAITED_AT for line in lines]
    if story.execution.error is not None:
        yield from _lock_orders(touched)
    for one in waits:
        number = line_of_if(one.line.path, one.line.line)
        if number is not None:
            yield Again(CodeLine(one.line.path, number, one.line.function))
    for resource in _contended(story, touched):
        where = {one.where for one in touched[resource]}
        # What may be anything may be this.
        every = [*touched[resource], *(one for one in touched.get(ANYTHING, ()) if one.where in where)]
        if (among := _among(story, every)) != every:
            yield from _atomic(among)
        yield from _atomic(every)
    if story.execution.error is not None and waits:
        # One task alone is in no circle: all regions first.
        yield from reversed(list(_atomic(waits)))
    yield from _shields(places)
    yield from _orders(story, places, passing)


@attrs.frozen
class _Touched:
    """An access: which task made it in which step, where, and whether it wrote."""

    step: int
    task: str
    line: SourceLine
    write: bool

    @property
    def where(self) -> tuple[str, str]:
        return self.line.path, self.line.function


def _touched(story: FailureStory, places: SourceLines) -> dict[Resource, list[_Touched]]:
    """Give for each resource the accesses to it, each in the async function that made or called it."""
    steps = story.execution.schedule.steps
    found: dict[Resource, list[_Touched]] = {}
    for key, line in sorted(places.of_accesses.items(), key=lambda item: item[0][0]):
        step, resource, write = key
        if step < len(steps):
            one = _Touched(step, steps[step].task, places.callers.get(key, line), write)
            found.setdefault(resource, []).append(one)
    return found


def _among(story: FailureStory, every: list[_Touched]) -> list[_Touched]:
    """Leave out what a task did before it began, or after it saw the end of, all others that touch the same."""
    steps, found = story.execution.schedule.steps, []
    for one in every:
        others = {each.task for each in every} - {one.task}
        ran = [step.index for step in steps if step.task in others]
        are_children = all(other.startswith(f"{one.task}.") for other in others)
        if not are_children or min(ran, default=0) < one.step < max(ran, default=0):
            found.append(one)
    return found


def _contended(story: FailureStory, touched: dict[Resource, list[_Touched]]) -> list[Resource]:
    """Give what several tasks touch and one writes: what decides first, then the others as they were touched."""
    shared = [
        resource
        for resource, lines in touched.items()
        if resource[0] not in (*_NO_VARIABLES, *_WAITED_AT)
        and resource != ANYTHING
        and len({one.task for one in lines}) > 1
        and (any(one.write for one in lines) or ANYTHING in touched)
    ]
    decides = None if story.race is None else story.race.first[1].resource
    return sorted(shared, key=lambda resource: resource != decides)


def _lock_orders(touched: dict[Resource, list[_Touched]]) -> Iterator[LockOrder]:
    """Give the lines of each function that takes several locks."""
    taken: dict[tuple[str, str], dict[Resource, list[int]]] = {}
    for resource, lines in touched.items():
        if resource[0] in _WAITED_AT:
            for one in lines:
                taken.setdefault(one.where, {}).setdefault(resource, []).append(one.line.line)
    several = {
        key: [number for lines in locks.values() for number in lines] for key, locks in taken.items() if len(locks) > 1
    }
    if several:
        yield LockOrder(tuple(_region_of(*key, min(lines), max(lines)) for key, lines in several.items()))


def _atomic(lines: Sequence[_Touched]) -> Iterator[Atomic]:
    """Give regions that have these lines: of each function that looks and then writes, then of all functions."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for one in lines:
        low, high = spans.get(one.where, (one.line.line, one.line.line))
        spans[one.where] = min(low, one.line.line), max(high, one.line.line)
    regions = {key: _region_of(*key, *span) for key, span in spans.items()}
    # A task that touches it there once is one step there already.
    often = {
        key
        for key in spans
        for task in {one.task for one in lines}
        if sum((one.task, one.where) == (task, key) for one in lines) > 1
    }
    whole = [Atomic((region,)) for key, region in regions.items() if key in often]
    yield from sorted(whole, key=lambda one: one.regions[0][1].number - one.regions[0][0].number)
    if len(regions) > 1:
        yield _all_of(spans)


def _all_of(spans: dict[tuple[str, str], tuple[int, int]]) -> Atomic:
    """Give the regions of several functions, in the order of their lines."""
    return Atomic(
        tuple(_region_of(*key, *span) for key, span in sorted(spans.items(), key=lambda one: (one[0][0], one[1])))
    )


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


def _orders(story: FailureStory, places: SourceLines, look: Callable[[], SourceLines | None]) -> Iterator[Before]:
    """Give the order of the two accesses that came the wrong way round, or of a read that raised and its write."""
    pairs: list[tuple[SourceLine | None, SourceLine | None]] = []
    if (race := story.race) is not None:
        early, late = (places.of_access(at.index, each.resource, each.write) for at, each in (race.first, race.second))
        pairs.append((late, early))
    steps = story.execution.schedule.steps
    reads = [key for key in places.of_accesses if key[0] in places.raised and not key[2]]
    if reads and story.passing is not None and (passing := look()) is not None:
        others = story.passing.schedule.steps
        for read, resource, _ in reads:
            task = steps[read].task
            reads_at = [step for step, other, write in passing.of_accesses if other == resource and not write]
            until = min((step for step in reads_at if others[step].task == task), default=len(others))
            writes = [
                (step, line)
                for (step, other, write), line in passing.of_accesses.items()
                if write and other == resource and step < until and others[step].task != task
            ]
            if writes:
                pairs.append((max(writes, key=lambda one: one[0])[1], places.of_access(read, resource, False)))
    for first, second in pairs:
        if first is not None and second is not None and first != second:
            yield Before(_place(first), _place(second))
            yield Before(_place(first), _place(second), reached=True)


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
        for one in _among(story, touched[resource]):
            low, high = regions.get(one.where, (one.line.line, one.line.line))
            regions[one.where] = min(low, one.line.line), max(high, one.line.line)
    if regions == before:
        return None
    return _all_of(regions)

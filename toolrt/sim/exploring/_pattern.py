"""Names the pattern of a failure, where what its steps reported leaves no doubt.

Rules.  A pattern follows from the steps alone: from what the failing schedule has and the nearest one that passes has
not, or from what the tasks of a deadlock wait for.  Names of programs, texts and outcomes say nothing here.  What fits
no pattern has none.

- *Lost update*: a task reads a variable, another writes it, and the first one writes it without a second look.
- *Check-then-act*: the same, and what the first task reads decides an `if`, a `while` or a `match`.
- *Read before write*: a task fails where it reads what another one has not written yet, and has where all is well.
- *Lost wake-up*: a deadlock in which a task waits for what another one told before, when no task waited for it.
- *Lock inversion*: a deadlock in which tasks wait in a circle, each for a lock that the next one holds.
- *Leaked cancel*: a deadlock in which a task waits for what a task took that was cancelled, and has ended.  Or a task
  gets Cancelled before it writes a variable once more, as it does where all is well, and another task reads that.

Limits.  A check inside a function that the `if` calls is not seen as one.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import attrs
import trio

from toolrt.errors import Deadlock, SimulationStopped, errors_in
from toolrt.probe import ANYTHING, Resource
from toolrt.sim._parsing import parsed
from toolrt.sim._paths import CANCEL
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._source_lines import SourceLine, SourceLines
from toolrt.sim.exploring._told import NO_VARIABLES, called, who
from toolrt.trace import Step, race_between

# Of longer schedules no race is looked for.
_MOST_COMPARED = 20_000

# Longer values are not told in a sentence.
_MOST_OF_A_VALUE = 24

# What a task takes and gives back.
_TAKEN = ("Semaphore", "CapacityLimiter", "Lock", "StrictFIFOLock")

# What Trio's primitives are called in the words of a deadlock, for those that another task tells of.
_TOLD_OF = ("an Event", "a Condition")


@attrs.frozen
class FailurePattern:
    """A pattern, of what, and which steps show it."""

    #: "lost update", "check-then-act", "read before write", "lost wake-up", "lock inversion" or "leaked cancel".
    name: str
    #: What the program calls the variable or the primitive; "" for a circle of several.
    subject: str
    #: Who does what in which step.
    sentence: str
    #: Those steps.
    steps: tuple[int, ...] = ()

    @property
    def headline(self) -> str:
        """The name, and of what: "lost update of counter"."""
        return f"{self.name} of {self.subject}" if self.subject else self.name


def pattern_of(execution: Execution, passing: Execution | None, places: SourceLines) -> FailurePattern | None:
    """Name the pattern of a failure; None: it fits none.

    Args:
        execution: the one that fails.
        passing: the nearest one that passes; without it only a circle has a name.
        places: its source lines.
    """
    error, steps = execution.error, execution.schedule.steps
    if isinstance(error, Deadlock) and (found := _inversion(error, places)):
        return found
    if len(steps) > _MOST_COMPARED or (passing is not None and len(passing.schedule.steps) > _MOST_COMPARED):
        return None
    two = _Two(steps, steps if passing is None else passing.schedule.steps, places, passing is not None)
    if isinstance(error, Deadlock):
        return None if passing is None else _of_deadlock(error, two)
    if isinstance(error, SimulationStopped):
        return None
    if passing is None:
        return _stale(two)
    return _too_early(two) or _stale(two) or (None if _is_out_of_time(error) else _kept_back(two))


def _of_deadlock(error: Deadlock, two: _Two) -> FailurePattern | None:
    return _told_too_early(error, two) or _told_between(error, two) or _leaked(error, two)


def _is_out_of_time(error: BaseException | None) -> bool:
    """Say whether a deadline ended it: what is cancelled then had hung before."""
    return any(isinstance(one, trio.TooSlowError) for one in errors_in(error))


class _Two:
    """The steps of the failing schedule, and where each stands in the one that passes."""

    def __init__(self, steps: Sequence[Step], others: Sequence[Step], places: SourceLines, passes: bool = True) -> None:
        self.steps = steps
        self.others = others
        self.places = places
        #: Whether there is one that passes; else `others` are the steps themselves.
        self.passes = passes
        there = {key: index for index, key in enumerate(_numbered(others))}
        self._there = [there.get(key) for key in _numbered(steps)]

    def is_between(self, first: Step, middle: Step, last: Step) -> bool:
        """Say whether `middle` stands between the two in the passing schedule too."""
        if not self.passes:
            return False
        one, two, three = (self._there[step.index] for step in (first, middle, last))
        return one is not None and two is not None and three is not None and one < two < three

    def comes_later(self, first: Step, second: Step) -> bool:
        """Say whether `second` comes before `first` in the passing schedule."""
        one, two = self._there[first.index], self._there[second.index]
        return one is not None and two is not None and two < one


# ---------------------------------------------------------------------- a value that has changed since


def _stale(two: _Two) -> FailurePattern | None:
    race = race_between(two.steps, two.others) if two.passes else None
    if race is not None:
        return _stale_in(race.first[1].resource, two)
    # The pair that decides began before the schedules part.  Of several variables none is picked.
    written = dict.fromkeys(each.resource for step in two.steps for each in step.accesses if each.write)
    found = [pattern for resource in written if (pattern := _stale_in(resource, two)) is not None]
    return found[0] if len(found) == 1 else None


def _stale_in(resource: Resource, two: _Two) -> FailurePattern | None:
    """Find a task that writes what another one has written since it looked, which it has not when all is well."""
    if resource[0] in NO_VARIABLES or resource == ANYTHING:
        return None
    touching = [step for step in two.steps if _touched(step, resource)]
    for place, acts in enumerate(touching):
        looked = next((step for step in reversed(touching[:place]) if step.task == acts.task), None)
        if looked is None or True not in _touched(acts, resource) or not _read_last(looked, resource, two.places):
            continue
        for changed in touching[touching.index(looked) + 1 : place]:
            if True in _touched(changed, resource) and not two.is_between(looked, changed, acts):
                return _stale_pattern(resource, looked, changed, acts, two.places)
    return None


def _stale_pattern(
    resource: Resource, looked: Step, changed: Step, acts: Step, places: SourceLines
) -> FailurePattern | None:
    task, subject = who(looked.task, places), _subject(resource, places)
    reads_first = False in _touched(acts, resource) and not _write_first(acts, resource, places)
    seen, put = _value(looked, resource, False, places), _value(changed, resource, True, places)
    began = (
        f"{subject}{f' = {seen}' if seen else ''} in step {looked.index}; {who(changed.task, places)} writes "
        f"{put or 'it'} in step {changed.index}; {task} writes it in step {acts.index}"
    )
    steps = looked.index, changed.index, acts.index
    if _decides(_place(looked, resource, places)):
        if reads_first and _decides(_place(acts, resource, places)):
            return None
        return FailurePattern("check-then-act", subject, f"{task} checks {began}, as if nothing had changed", steps)
    if reads_first:
        return None
    return FailurePattern("lost update", subject, f"{task} reads {began}, from what it read before", steps)


def _value(step: Step, resource: Resource, write: bool, places: SourceLines) -> str:
    text = places.values.get((step.index, resource, write), "")
    return text if len(text) <= _MOST_OF_A_VALUE else ""


def _too_early(two: _Two) -> FailurePattern | None:
    """A task raises in a step that reads what another one writes before it where all is well."""
    for index in sorted(two.places.raised):
        failed = two.steps[index]
        for access in reversed(failed.accesses):
            resource = access.resource
            if access.write or resource[0] in NO_VARIABLES or resource == ANYTHING:
                continue
            reads = next((at for at, step in enumerate(two.others) if _reads_first(step, failed, resource)), None)
            writes = [step for step in two.others[:reads] if True in _touched(step, resource)]
            if reads is None or not writes or (writer := writes[-1]).task == failed.task:
                continue
            if any(step.task == writer.task and True in _touched(step, resource) for step in two.steps[:index]):
                continue
            subject = _subject(resource, two.places)
            line = _place(failed, resource, two.places)
            sentence = (
                f"{who(failed.task, two.places)} reads {subject} in step {index}{f' ({line})' if line else ''}, before "
                f"{who(writer.task, two.places)} has written it"
            )
            return FailurePattern("read before write", subject, sentence, (index,))
    return None


def _reads_first(step: Step, failed: Step, resource: Resource) -> bool:
    return step.task == failed.task and False in _touched(step, resource)


def _read_last(step: Step, resource: Resource, places: SourceLines) -> bool:
    """Say whether `step` reads `resource`, after its own write if it has one."""
    kinds = _touched(step, resource)
    return False in kinds and (True not in kinds or _write_first(step, resource, places))


def _write_first(step: Step, resource: Resource, places: SourceLines) -> bool:
    """Say whether `step` wrote `resource` before it read it; no when that is not known."""
    noted = [key for key in places.of_accesses if key[:2] == (step.index, resource)]
    return bool(noted) and noted[0][2]


def _decides(place: SourceLine | None) -> bool:
    """Say whether the line belongs to what an `if`, a `while` or a `match` looks at."""
    if place is None:
        return False
    try:
        tree = parsed("".join(linecache.getlines(place.path)))
    except (SyntaxError, ValueError):
        return False
    return any(
        looks_at.lineno <= place.line <= (looks_at.end_lineno or looks_at.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Match)
        for looks_at in [node.subject if isinstance(node, ast.Match) else node.test]
    )


# ---------------------------------------------------------------------- deadlocks


def _inversion(error: Deadlock, places: SourceLines) -> FailurePattern | None:
    circle = circle_in(dict(error.waits_on))
    words = dict(error.waiting)
    held = [
        words.get(task, "").startswith((f"a Lock held by {other}", f"a StrictFIFOLock held by {other}"))
        for task, other in pairwise(circle)
    ]
    if not held or not all(held):
        return None
    last = {path: step for step, path in places.waits}
    told = []
    for task, holder in pairwise(circle):
        what = words[task].partition(" held by ")[0]
        made = [one for one in places.deeds if one[0] == last.get(task) and one[1][0] in what]
        name = called(made[-1][1], places) if made else what
        told.append(f"{who(task, places)} waits for {name}, held by {who(holder, places)}")
    steps = tuple(sorted(last[task] for task in circle[:-1] if task in last))
    return FailurePattern("lock inversion", "", "; ".join(told), steps)


def circle_in(edges: Mapping[str, Sequence[str]]) -> list[str]:
    """Give a way that ends where it begins; [] when there is none."""
    done: set[str] = set()
    for start in edges:
        way: list[str] = []
        branches = [iter((start,))]
        while branches:
            task = next(branches[-1], None)
            if task is None:
                branches.pop()
                if way:
                    done.add(way.pop())
            elif task in way:
                return [*way[way.index(task) :], task]
            elif task not in done:
                way.append(task)
                branches.append(iter(edges.get(task, ())))
    return []


def _told_too_early(error: Deadlock, two: _Two) -> FailurePattern | None:
    """A task notifies a condition for which no task waits; the other way round it would have woken one."""
    for task, parked in _parked(error, two.steps, ("a Condition",)):
        for resource in _written(parked, ("Condition",)):
            waits: set[str] = set()
            for told in two.steps[: parked.index]:
                # What steps next waits no longer.
                waits.discard(told.task)
                if True not in _touched(told, resource):
                    continue
                text = _text(told, resource, two.places)
                if ".notify" not in text:
                    waits.add(told.task)
                elif not waits and told.task != task and two.comes_later(told, parked):
                    subject = _subject(resource, two.places)
                    return FailurePattern(
                        "lost wake-up",
                        subject,
                        f"{who(told.task, two.places)} notifies {subject} in step {told.index}, when no task waits "
                        f"for it; {who(task, two.places)} begins to wait in step {parked.index}",
                        (told.index, parked.index),
                    )
    return None


def _told_between(error: Deadlock, two: _Two) -> FailurePattern | None:
    """A task looks, another one changes what it looked at, and the first one waits to be told of it."""
    for task, parked in _parked(error, two.steps, _TOLD_OF):
        mine = [step for step in two.steps[: parked.index + 1] if step.task == task]
        for resource in dict.fromkeys(each.resource for step in mine for each in step.accesses if not each.write):
            looked = next(step for step in reversed(mine) if _touched(step, resource))
            if _touched(looked, resource) != {False} or not _decides(_place(looked, resource, two.places)):
                continue
            for changed in two.steps[looked.index + 1 : parked.index]:
                if True in _touched(changed, resource) and two.comes_later(changed, parked):
                    subject = _subject(resource, two.places)
                    return FailurePattern(
                        "lost wake-up",
                        subject,
                        f"{who(task, two.places)} checks {subject} in step {looked.index}; "
                        f"{who(changed.task, two.places)} writes it in step {changed.index}; "
                        f"{who(task, two.places)} begins to wait in step {parked.index}",
                        (looked.index, changed.index, parked.index),
                    )
    return None


def _leaked(error: Deadlock, two: _Two) -> FailurePattern | None:
    """A task that was cancelled has ended with what another one waits for; where all is well it gives it back."""
    living = {task for task, _ in error.waiting}
    for task, parked in _parked(error, two.steps, tuple(f"a {kind}" for kind in _TAKEN)):
        for resource in _written(parked, _TAKEN):
            taken = next(
                (step for step in reversed(two.steps[: parked.index]) if True in _touched(step, resource)), None
            )
            if taken is None or taken.task in living:
                continue
            later = [step.index for step in two.steps[taken.index + 1 :] if step.task == taken.task]
            cancels = [step.index for step in two.steps[taken.index + 1 :] if _cancels(step)]
            touches, here = (
                sum(step.task == taken.task and True in _touched(step, resource) for step in steps)
                for steps in (two.others, two.steps)
            )
            if later and cancels and cancels[0] < later[-1] and touches > here:
                subject = _subject(resource, two.places)
                return FailurePattern(
                    "leaked cancel",
                    subject,
                    f"{who(taken.task, two.places)} takes {subject} in step {taken.index}, is cancelled in step "
                    f"{cancels[0]}, and does not give it back; {who(task, two.places)} waits for it from step "
                    f"{parked.index} on",
                    (taken.index, cancels[0], parked.index),
                )
    return None


def _kept_back(two: _Two) -> FailurePattern | None:
    """A task gets Cancelled before it writes a variable back; of several variables none is picked."""
    found = []
    for task, at in {two.steps[index].task: index for index in sorted(two.places.cancelled)}.items():
        for resource in dict.fromkeys(each.resource for step in two.steps[:at] for each in step.accesses if each.write):
            if resource[0] in NO_VARIABLES:
                continue
            here, there = (
                [step.index for step in steps if step.task == task and True in _touched(step, resource)]
                for steps in (two.steps, two.others)
            )
            reader = next(
                (step for step in two.steps[at:] if step.task != task and False in _touched(step, resource)), None
            )
            if not here or here[-1] >= at or len(there) <= len(here) or reader is None:
                continue
            subject, place = called(resource, two.places), two.places.of_steps.get(at)
            where = "" if place is None else f" at {place}"
            sentence = (
                f"{who(task, two.places)} writes {subject} in step {here[-1]}, gets Cancelled in step {at}{where}, and "
                f"does not write it again; {who(reader.task, two.places)} reads it in step {reader.index}"
            )
            steps = here[-1], at, reader.index
            found.append(FailurePattern("leaked cancel", subject, sentence, steps))
    return found[0] if len(found) == 1 else None


def _cancels(step: Step) -> bool:
    return step.task.partition(".")[0] == CANCEL or bool(list(_written(step, ("CancelScope",))))


def _written(step: Step, kinds: tuple[str, ...]) -> Iterator[Resource]:
    return (access.resource for access in step.accesses if access.write and access.resource[0] in kinds)


def _parked(error: Deadlock, steps: Sequence[Step], words: tuple[str, ...]) -> Iterator[tuple[str, Step]]:
    """Give each task that waits for what begins with one of `words`, with its last step."""
    for task, what in error.waiting:
        last = next((step for step in reversed(steps) if step.task == task), None)
        if what.startswith(words) and last is not None:
            yield task, last


# ---------------------------------------------------------------------- what steps touched


def _touched(step: Step, resource: Resource) -> set[bool]:
    return {access.write for access in step.accesses if access.resource == resource}


def _numbered(steps: Sequence[Step]) -> Iterator[tuple[str, int]]:
    """Give what each step is known by in another schedule: its task, and its number among that task's steps."""
    counts: dict[str, int] = {}
    for step in steps:
        counts[step.task] = number = counts.get(step.task, -1) + 1
        yield step.task, number


def _text(step: Step, resource: Resource, places: SourceLines) -> str:
    place = places.of_access(step.index, resource, True)
    return "" if place is None else place.text


def _place(step: Step, resource: Resource, places: SourceLines) -> SourceLine | None:
    return places.of_access(step.index, resource, False)


def _subject(resource: Resource, places: SourceLines) -> str:
    """Give the program's own name for `resource`, without the kind of a primitive."""
    name = called(resource, places)
    return name.removeprefix(f"{resource[0]} ") if resource[0] in NO_VARIABLES else name

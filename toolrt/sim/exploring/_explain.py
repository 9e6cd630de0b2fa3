"""Tells a failure: what went wrong and why, the steps that it depends on, a schedule that passes, how to run it again.

Rules.
    1. The first screen has at most `_MOST_LINES` lines of the terminal's width: the pattern, what is wrong, the steps
       on which that depends with values and lines, the nearest schedule that passes, and the replay line.
    2. What a verbose one adds stands below it: every step, who waits for whom, the race, both schedules, a test.

Theory.  A step depends on the last one before it that wrote what it touches: the slice is what is reached so from the
steps that the pattern, the race and the error name.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from textwrap import wrap
from typing import Any

import attrs
import trio

from toolrt._plain import counted
from toolrt.errors import Deadlock, SimulationStopped, errors_in
from toolrt.probe import ANYTHING, Resource
from toolrt.sim._paths import ROOT, task_of
from toolrt.sim._schedule import in_tokens
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._source_lines import SourceLines
from toolrt.sim.exploring._pattern import FailurePattern, circle_in, pattern_of
from toolrt.sim.exploring._told import called, place_of, who
from toolrt.sim.programs.tracking._guard import variable_at
from toolrt.trace import Race, Step, parting_of, race_between, stable_text

_NOT_REPRODUCED = (
    "Not reproduced: the same choices did not fail the same way when they were run again.\n"
    "What follows is the execution as it was found. Either something has changed since: a mutant or a patch is in\n"
    "force only inside its `with` block, so call explain() there. Or the program depends on something that the\n"
    "simulator does not control."
)

# A first screen has so many lines, and of them at least so many are steps.
_MOST_LINES = 20
_FEWEST_ROWS = 4

# A screen is at least so wide, and what is told is cut at so many letters.
_NARROWEST, _WIDEST = 60, 200

# Of a row so many letters are for the line and its text, where what the step did needs the rest.
_LEAST_OF_A_PLACE = 20

# Longer executions show their first and last steps.
_MOST_ROWS = 200

# Of what is wrong so many lines stand on the first screen, and so many letters head a page.
_MOST_OF_WRONG = 3
_MOST_OF_A_HEADLINE = 120

# Of a schedule that is compared so many steps are shown before and after the difference.
_AROUND = 12


@attrs.frozen(slots=False)
class FailureStory:
    """What there is to say of a failure."""

    #: The execution that is shown.
    execution: Execution
    #: What the check complained of.
    violations: Sequence[Any]
    #: Where in the source its steps ran; None when it was not run again.
    places: SourceLines | None = None
    #: The nearest execution that passes, when one was found.
    passing: Execution | None = None
    #: True when no schedule with fewer preemptions fails the same way: all of them were run.
    fewest: bool = False
    #: What is to be added to the call that runs it again.
    arguments: str = ""
    #: What the program is called, and what judges it: None when only errors count.
    program: str = "program"
    check: str | None = None
    #: False when the same choices did not fail the same way when they were run again.
    reproduced: bool = True
    #: The modules whose plain objects are seen here, though they were not while it was explored.
    looked_into: Sequence[str] = ()

    @property
    def is_decided(self) -> bool:
        """Whether a pair of accesses is known that decides it, or a deadlock says what is wrong."""
        race = self.race
        return race is not None and ANYTHING not in (race.first[1].resource, race.second[1].resource)

    @cached_property
    def race(self) -> Race | None:
        """The pair of accesses that comes the other way round where it passes; None: none is known."""
        steps = self.execution.schedule.steps
        return None if self.passing is None else race_between(steps, self.passing.schedule.steps)

    @cached_property
    def pattern(self) -> FailurePattern | None:
        """What is known as what; None without a run that found the source lines."""
        return None if self.places is None else pattern_of(self.execution, self.passing, self.places)


def explain(
    story: FailureStory, verbose: bool = False, again: str | None = None, more: Sequence[str] = (), heads: int = 0
) -> str:
    """Tell `story`.

    Args:
        verbose: whether all is told, or what fits on a screen.
        again: what runs it again; None: the call of `sim.replay`.
        more: lines to stand before that.
        heads: how many lines stand above all this.
    """
    width = min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
    steps, pattern = story.execution.schedule.steps, story.pattern
    head = [] if story.reproduced else [*_NOT_REPRODUCED.splitlines(), ""]
    if pattern is not None:
        head += _first_lines(f"{pattern.headline}: {pattern.sentence}", width, None if verbose else _MOST_OF_WRONG)
    head += _first_lines(_wrong(story), width, None if verbose else _MOST_OF_WRONG)
    if story.passing is not None and (verbose or pattern is None):
        head += wrap(_race(story), width, subsequent_indent="  ")
    foot = [
        "",
        *_schedules(story, width)[0 if verbose else 1 :],
        *(part for line in more for part in wrap(line, width, subsequent_indent=" " * 8)),
        *_again(story, width, again),
    ]
    marked = _marked_steps(story)
    count = wrap(_count(story, marked), width)
    over = heads + len(head) + len(count) + len(foot) + 2 + _FEWEST_ROWS - _MOST_LINES
    if over > 0 and not verbose:
        head = _shortest(head, max(1, len(head) - over), width)
    room = max(_FEWEST_ROWS, _MOST_LINES - heads - len(head) - len(count) - len(foot) - 2)
    shown: Sequence[int] = range(len(steps))
    if verbose and len(steps) > _MOST_ROWS:
        shown = [*shown[: _MOST_ROWS // 2], *shown[-_MOST_ROWS // 2 :]]
    elif not verbose and len(steps) > room:
        shown = _slice(steps, marked, room)
    told = [*head, "", *_table(story, shown, marked, width), *count, *foot]
    if verbose:
        told += ["", *_rest(story)]
    return "\n".join(line.rstrip() for line in told)


def _first_lines(text: str, width: int, most: int | None) -> list[str]:
    lines = [part for line in text.splitlines() for part in wrap(line, width, subsequent_indent="  ")]
    return lines if most is None else _shortest(lines, most, width)


def _shortest(lines: list[str], most: int, width: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[: most - 1], _cut(lines[most - 1] + " …", width)]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _count(story: FailureStory, marked: Collection[int]) -> str:
    schedule = story.execution.schedule
    count = schedule.switches
    said = f"({counted(len(schedule), 'step')}, {counted(count, 'preemption')}{' >' if count else ''}"
    said += "; with fewer it does not fail" if count and story.fewest else ""
    said += "; * decides it" if marked else ""
    if story.places is None:
        return f"{said}; no source lines: run again to find them, the program took another course)"
    return f"{said})"


# ---------------------------------------------------------------------- the steps


def _marked_steps(story: FailureStory) -> set[int]:
    """The steps that the pattern names, else those of the race."""
    if story.pattern is not None and story.pattern.steps:
        return set(story.pattern.steps)
    return set() if story.race is None else {story.race.first[0].index, story.race.second[0].index}


def _slice(steps: Sequence[Step], marked: Collection[int], room: int) -> list[int]:
    """The steps that `marked` ones and the last ones of each task depend on: as many as there is room for, in order."""
    wrote: dict[Resource, list[int]] = {}
    for step in steps:
        for access in step.accesses:
            if access.write and access.resource != ANYTHING:
                wrote.setdefault(access.resource, []).append(step.index)
    last = {step.task: step.index for step in steps}
    todo = [*sorted(marked, reverse=True), len(steps) - 1, *sorted(last.values(), reverse=True)]
    found: set[int] = set()
    while todo:
        index = todo.pop(0)
        if index in found:
            continue
        more = _with_lone_steps({*found, index}, len(steps))
        left_out = (0 not in more) + sum(at + 1 not in more and at + 1 < len(steps) for at in more)
        if len(more) + left_out > room:
            continue
        found = more
        for access in steps[index].accesses:
            before = [at for at in wrote.get(access.resource, ()) if at < index]
            todo += before[-1:]
    return sorted(found)


def _with_lone_steps(found: set[int], count: int) -> set[int]:
    """Add the steps that would be left out alone: that would take a row as well."""
    lone = [at + 1 for at in found if at + 1 not in found and (at + 2 in found or at + 2 == count)]
    return found.union(lone, [0] if 1 in found else [])


def _table(story: FailureStory, shown: Sequence[int], marked: Collection[int], width: int) -> list[str]:
    """Rows of step, time, task, what it did, and where; a row for those that are left out in between."""
    steps, places = story.execution.schedule.steps, story.places
    with_time = any(step.time for step in steps)
    rows: list[tuple[str, ...]] = []
    expected = 0
    for index in [*shown, len(steps)]:
        if index > expected:
            left_out = " ".join(in_tokens([step.task for step in steps[expected:index]]))
            rows.append(("", "", "", f"… {counted(index - expected, 'step')}: {_cut(left_out, 40)}", ""))
        expected = index + 1
        if index == len(steps):
            break
        step = steps[index]
        mark = ("*" if index in marked else " ") + (">" if _preempts(story.execution, index) else " ")
        done = ", ".join(places.told.get(index, ()) if places is not None else map(str, step.accesses))
        where = "" if places is None else place_of(step, places)
        done = re.sub(r"^runs from \S+$", "runs", done) if where else done
        rows.append((f"{mark}{index}", f"{step.time:g}" if with_time else "", _head(step.task, places), done, where))
    heads = ("step", "time" if with_time else "", "task", "", "")
    widths = [max(len(head), *(len(row[column]) for row in rows)) for column, head in enumerate(heads)]
    widths[2] = min(widths[2], 24)
    room = width - sum(widths[:3]) - 6
    widths[3] = min(widths[3], room - min(widths[4], _LEAST_OF_A_PLACE))
    lines = []
    for number, time, task, done, where in ([heads] if rows else []) + rows:
        fields = [number.rjust(widths[0]), *([time.rjust(widths[1])] if with_time else []), task[:24].ljust(widths[2])]
        fields += [_cut(done, widths[3]).ljust(widths[3]), where]
        lines.append(_cut("  ".join(fields).rstrip(), width))
    return lines


def _preempts(execution: Execution, index: int) -> bool:
    steps = execution.schedule.steps
    if execution.schedule.order == "trio":
        return steps[index].choice > 0
    before = steps[index - 1] if index else None
    return before is not None and before.task != steps[index].task and before.task == steps[index].enabled[0]


def _head(task: str, places: SourceLines | None) -> str:
    """Give what stands in a task's column: its path, and its name or the function that it runs."""
    task = task_of(task)
    name = None if places is None or task == ROOT else places.functions.get(task)
    return task if name is None else f"{task} {name}"


# ---------------------------------------------------------------------- what is wrong


def _wrong(story: FailureStory) -> str:
    execution, places = story.execution, story.places
    error = execution.error
    if isinstance(error, Deadlock):
        circle = circle_in(dict(error.waits_on))
        if circle and story.pattern is not None:
            return f"Deadlock: {' -> '.join(who(task, places) for task in circle)}"
        waits = _waits_of(error, places)
        return f"Deadlock: {'; '.join(waits)}" if waits else stable_text(error)
    lines = []
    for kind, text in _findings(execution, story.violations):
        lines.append(text if kind == "error" else f"{kind}: {text}")
    if len(lines) == 2 and error is None and not any("\n" in line for line in lines):
        lines = ["; ".join(lines)]
    errors = errors_in(error)
    if len(errors) > 1:
        lines += [f"  {stable_text(inner)}" for inner in errors]
    if places is not None and any(isinstance(one, trio.TooSlowError) for one in errors):
        lines += _cut_off(story.execution.schedule.steps, places)
    return "\n".join(lines)


def _waits_of(error: Deadlock, places: SourceLines | None) -> list[str]:
    """Say who waits for what: those of a circle in its order, else all that do not just wait for their children."""
    circle = circle_in(dict(error.waits_on))
    words = dict(error.waiting)
    tasks = circle[:-1] or [task for task, what in words.items() if not what.startswith("its nursery's")] or list(words)
    found = []
    for task in tasks:
        what = words.get(task, "another task")
        for other in sorted(words, key=len, reverse=True):
            what = what.replace(f"held by {other} ", f"held by {who(other, places)} ")
        found.append(f"{who(task, places)} waits for {what}{_which(task, what, places)}")
    return found


def _cut_off(steps: Sequence[Step], places: SourceLines) -> Iterator[str]:
    """Say what the tasks waited for that were cancelled when the time was over."""
    for index in sorted(places.cancelled):
        task = steps[index].task
        waited = max((step for step, path in places.waits if path == task and step < index), default=None)
        words = "" if waited is None else places.waits[waited, task]
        if words and not words.startswith("its nursery's"):
            yield f"  until then {who(task, places)} waited for {words} at {places.of_steps.get(index)}"


def _which(task: str, what: str, places: SourceLines | None) -> str:
    """Name the primitive at which a task has stopped, if its last step says so."""
    if places is None:
        return ""
    last = max((step for step, path in places.waits if path == task), default=None)
    names = [name for thing, name in places.names.items() if (last, thing) in places.deeds and str(thing[0]) in what]
    return f" ({names[-1]})" if names else ""


def _findings(execution: Execution, violations: Sequence[Any]) -> list[tuple[str, str]]:
    """Give what is wrong as pairs: the error, each violation, and the value where there is no error."""
    error = execution.error
    found = []
    if error is not None:
        # A stop's text lists what each task waits for; a group of one error is that error.
        is_stop = isinstance(error, SimulationStopped)
        errors = errors_in(error)
        alone = errors[0] if len(errors) == 1 else error
        found.append(("error", f"{type(error).__name__}: {error}" if is_stop else stable_text(alone)))
    for violation in violations:
        # A law's violation, too, has a text for people.
        is_told = isinstance(violation, str | AssertionError) or hasattr(violation, "law")
        text = str(violation) if is_told else stable_text(violation)
        found.append(("violation", text or type(violation).__name__))
    if error is None:
        found.append(("value", stable_text(execution.value)))
    return found


def about(story: FailureStory, where: str, repairs: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """Give what a page says of a failure above its steps; the first pair is the verdict and what comes first of it.

    Args:
        where: the program's name, and where it is defined.
        repairs: what would mend it, as far as that is known.
    """
    found = _findings(story.execution, story.violations)
    pattern = story.pattern
    if pattern is not None and isinstance(story.execution.error, Deadlock):
        found[0] = "error", _wrong(story)
    return (
        ("FAIL", _complaint(found)),
        *((("Pattern", f"{pattern.name}: {pattern.sentence}"),) if pattern is not None else ()),
        *((kind.capitalize(), text) for kind, text in found),
        *(("Repair", text) for text in repairs),
        ("Program", where),
        ("Schedule", story.execution.schedule.short),
        ("Run it again", _replay_line(story)),
    )


def headline_of(story: FailureStory) -> str:
    """Say in a few words what the failure is: its pattern, else the first line of what is wrong."""
    pattern = story.pattern
    if pattern is not None:
        return pattern.headline
    line = next(iter(_complaint(_findings(story.execution, story.violations)).splitlines()), "")
    return _cut(line, _MOST_OF_A_HEADLINE)


def _complaint(found: Sequence[tuple[str, str]]) -> str:
    return next((text for kind, text in found if kind != "value"), "the execution is wrong")


# ---------------------------------------------------------------------- once more


def _schedules(story: FailureStory, width: int) -> list[str]:
    """The nearest schedule that passes, with the part that differs in brackets."""
    if story.passing is None:
        return []
    mine, theirs = story.execution.schedule.tasks, story.passing.schedule.tasks
    parting = parting_of(mine, theirs)
    return [
        _cut(f"fails   {_marked(mine, parting.before, parting.after)}", width),
        _cut(f"passes  {_marked(theirs, parting.before, parting.after)}", width),
    ]


def _marked(tasks: Sequence[str], before: int, after: int) -> str:
    """Write a schedule with the part that differs in brackets."""
    head, middle = tasks[:before], tasks[before : len(tasks) - after]
    tail = tasks[len(tasks) - after :]
    first, differs, last = (" ".join(in_tokens(part)) for part in (head[-_AROUND:], middle, tail[:_AROUND]))
    parts = ["..." if len(head) > _AROUND else "", first, f"[{differs}]", last, "..." if len(tail) > _AROUND else ""]
    return " ".join(filter(None, parts))


def _again(story: FailureStory, width: int, again: str | None) -> list[str]:
    line = _replay_line(story) if again is None else again
    if again is None and len(line) > 3 * width:
        line = f"sim.replay({story.program}, failure.minimal{story.arguments})"
    return ["Run it again:", f"    {line}"]


def _replay_line(story: FailureStory) -> str:
    """Give the call that runs the execution again."""
    return f'sim.replay({story.program}, "{story.execution.schedule.short}"{story.arguments})'


# ---------------------------------------------------------------------- what a verbose one adds


def _rest(story: FailureStory) -> list[str]:
    error, schedule = story.execution.error, story.execution.schedule
    parts = []
    if schedule.named != schedule.short and len(schedule) <= _MOST_ROWS:
        parts += [f"In short: {schedule.named}", ""]
    if isinstance(error, Deadlock):
        parts += [f"Deadlock: {error}", ""]
        if error.waits_on:
            parts += [*_wait_for_graph(error), ""]
    return [*parts, *_as_a_test(story)]


def _wait_for_graph(error: Deadlock) -> list[str]:
    edges = dict(error.waits_on)
    lines = ["Wait-for graph:"]
    lines += [f"    {task} -> {', '.join(others)}" for task, others in error.waits_on]
    circle = circle_in(edges)
    lines.append(f"    in a circle: {' -> '.join(circle)}" if circle else "    no circle: a task waits for no other")
    return lines


def _no_race(story: FailureStory) -> str:
    """Say that no pair of accesses decides it, and where to look instead."""
    if story.places is not None and story.places.cancelled:
        return "No two accesses decide it. Look at what a task did not do that got Cancelled, and where it got it."
    if story.looked_into or ", track=" in story.arguments:
        return "No two accesses decide it. Look at the steps where the two schedules part."
    return (
        "No access that was reported decides it: what a step does to plain objects is seen where track= has its module "
        "(track=True: the program's own)."
    )


def _race(story: FailureStory) -> str:
    """Say which two accesses came the wrong way round, with their lines."""
    race, places, said = story.race, story.places, []
    if race is None:
        return _no_race(story)
    name = called(race.first[1].resource, places)
    for step, access in (race.first, race.second):
        place = None if places is None else places.of_access(step.index, access.resource, access.write)
        # A lock is taken or waited for, an event set or asked: it has no value to read.
        has_value = access.resource[0] == "cell" or (
            places is not None and any(resource == access.resource for _, resource, _ in places.values)
        )
        did = "touched" if not has_value else "wrote" if access.write else "read"
        line = "" if place is None else f" ({place})"
        said.append((who(step.task, places), did, line))
        if place is not None and place.path and name == "anything":
            name = variable_at(place.path, place.line, access.resource) or name
    (one, did, where), (other, other_did, other_where) = said
    sentence = f"{one} {did} `{name}`{where} before {other} {other_did} it{other_where}."
    return f"The race: {sentence} In the other order it passes."


def _as_a_test(story: FailureStory) -> list[str]:
    choices = list(story.execution.choices)
    while choices and not choices[-1]:
        choices.pop()
    check = "" if story.check is None else f", {story.check}"
    stream = story.execution.chance
    given = [str(choices)] * bool(choices) + [f"chance={stream}"] * bool(stream)
    policy = f"sim.Choices({', '.join(given)})"
    return [
        "As a test, which a repair that moves checkpoints does not break:",
        f"    def test_{_identifier(story.program)}_in_this_order() -> None:",
        f"        only = sim.Random({policy}, 1)",
        f"        report = sim.explore({story.program}, only{check}{story.arguments})",
        "        assert report.verdict is sim.PASS, report",
    ]


def _identifier(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name).strip("_") or "program"

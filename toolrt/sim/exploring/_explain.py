"""Draws a failure for people: one column for each task, time downwards; then what is wrong, and why.

Rules.  First the minimal schedule, step by step, and what is wrong with it.  Then what decides: the pair of accesses
that came the wrong way round, with their lines; where the nearest schedule that passes parts from it; for a deadlock,
which task waits for which.  Last, how to run it again, as a call and as a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from toolrt._plain import counted
from toolrt.errors import Deadlock, SimulationStopped
from toolrt.probe import ANYTHING, Resource
from toolrt.sim._paths import CANCEL, CLOCK, ROOT, key_of_path, task_of
from toolrt.sim._schedule import in_tokens
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._source_lines import SourceLines
from toolrt.sim.exploring._pattern import FailurePattern, circle_in, pattern_of
from toolrt.sim.programs.tracking._guard import variable_at
from toolrt.trace import Access, Race, Step, parting_of, race_between, stable_text

__all__ = ["FailureStory", "about", "explain", "headline_of"]

_NOT_REPRODUCED = (
    "Not reproduced: the same choices did not fail the same way when they were run again.\n"
    "What follows is the execution as it was found. Either something has changed since: a mutant or a patch is in\n"
    "force only inside its `with` block, so call explain() there. Or the program depends on something that the\n"
    "simulator does not control."
)

# Longer executions show their first and last steps.
_MAX_ROWS = 200

# Of the accesses of one step, those that fit into so many characters; the first one always.
_MOST_OF_A_CELL = 72

# Of a value so many characters stand in a column; an old one beside it only within them.
_MOST_OF_A_VALUE = 24

# Of what is wrong so many characters head a page.
_MOST_OF_A_HEADLINE = 120

# Of a schedule that is compared so many steps are shown before and after the difference.
_AROUND = 12


@attrs.frozen
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
        if self.passing is None:
            return False
        race = race_between(self.execution.schedule.steps, self.passing.schedule.steps)
        return race is not None and ANYTHING not in (race.first[1].resource, race.second[1].resource)

    @property
    def pattern(self) -> FailurePattern | None:
        """What is known as what; None without a run that found the source lines."""
        return None if self.places is None else pattern_of(self.execution, self.passing, self.places)


def explain(story: FailureStory) -> str:
    """Tell `story`."""
    schedule = story.execution.schedule
    count = schedule.switches
    head = f"{counted(len(schedule), 'step')}, {counted(count, 'preemption')}"
    if count and story.fewest:
        head += "; with fewer it does not fail"
    parts = [head, ""]
    if (pattern := story.pattern) is not None:
        parts = [f"{pattern.headline}: {pattern.sentence.removeprefix('deadlock: ')}", *parts]
    if not story.reproduced:
        parts += [_NOT_REPRODUCED, ""]
    parts += _columns(schedule.steps, story.places, schedule.order)
    if story.places is None:
        parts.append("(No source lines: run again to find them, the program took another course.)")
    if schedule.named != schedule.short and len(schedule) <= _MAX_ROWS:
        parts += ["", f"In short: {schedule.named}"]
    parts.append("")
    parts += _wrong(story.execution, story.violations)
    if isinstance(story.execution.error, Deadlock) and story.execution.error.waits_on:
        parts += ["", *_wait_for_graph(story.execution.error)]
    if story.passing is not None:
        parts += ["", *_why(story, story.passing)]
    parts += ["", *_again(story)]
    return "\n".join(line.rstrip() for line in parts)


def _columns(steps: Sequence[Step], places: SourceLines | None, order: str) -> list[str]:
    # A choice stands in the column of the task that asked for it.
    tasks = sorted({task_of(step.task) for step in steps}, key=key_of_path)
    rows: list[tuple[str, str, str]] = []
    seen: dict[Resource, str | None] = {}
    for before, step, after in zip((None, *steps), steps, (*steps[1:], None), strict=False):
        told = (_cancelled(step, places), _accesses(step, places, seen))
        done = _other(step, after) or ", ".join(filter(None, told)) or _runs(step, places)
        if order == "trio":
            preempts = step.choice > 0
        else:
            preempts = before is not None and before.task != step.task and before.task == step.enabled[0]
        rows.append((task_of(step.task), f"{'> ' if preempts else ''}{done}", f"{step.time:g}"))
    with_time = any(step.time for step in steps)
    heads = {task: _head(task, places) for task in tasks}
    width = {task: max(len(heads[task]), *(len(text) for name, text, _ in rows if name == task)) for task in tasks}
    margin = max(len(str(len(steps) - 1)), len("step"))
    clock = max(len("time"), *(len(row[2]) for row in rows)) if with_time else 0

    def line(step: str, time: str, cells: dict[str, str]) -> str:
        fields = [step.rjust(margin)]
        if with_time:
            fields.append(time.rjust(clock))
        fields += [cells.get(task, "").ljust(width[task]) for task in tasks]
        return "  ".join(fields)

    lines = [line("step", "time", heads)]
    for index, (task, text, time) in enumerate(rows):
        if _MAX_ROWS // 2 <= index < len(rows) - _MAX_ROWS // 2:
            if index == _MAX_ROWS // 2:
                lines.append(f"  ... not shown: {counted(len(rows) - _MAX_ROWS, 'step')} ...")
            continue
        lines.append(line(str(index), time, {task: text}))
    if any(text.startswith("> ") for _, text, _ in rows):
        preempted = "another of its pass comes before it" if order == "trio" else "the task before could have gone on"
        lines.append(f"(> marks a preemption: {preempted})")
    return lines


def _head(task: str, places: SourceLines | None) -> str:
    """Give the head of a task's column: its path, and the function that it runs."""
    function = None if places is None or task == ROOT else places.functions.get(task)
    return task if function is None else f"{task} {function}"


def _cancelled(step: Step, places: SourceLines | None) -> str:
    """Say where the step begins with `trio.Cancelled`; "" where it does not."""
    if places is None or step.index not in places.cancelled:
        return ""
    place = places.of_steps.get(step.index)
    return "gets Cancelled" if place is None else f"gets Cancelled at {place}"


def _accesses(step: Step, places: SourceLines | None, seen: dict[Resource, str | None]) -> str:
    """Say what the step accesses; of many accesses the first ones, and how many more there are.

    A write whose old value is known says what was read before it, too.
    """
    each = [(access, _with_value(step, access, places, seen)) for access in step.accesses]
    replaced = {access.resource for access, text in each if access.write and " -> " in text}
    told = [text for access, text in each if access.write or access.resource not in replaced]
    shown = len(told)
    while shown > 1 and len(", ".join(told[:shown])) > _MOST_OF_A_CELL:
        shown -= 1
    more = [f"and {len(told) - shown} more"] if shown < len(told) else []
    return ", ".join([*told[:shown], *more])


def _told(access: Access, places: SourceLines | None) -> str:
    """Say what is accessed, by the program's own name for it where it has one."""
    name = None if places is None else places.names.get(access.resource)
    return str(access) if name is None else f"{'writes' if access.write else 'reads'} {name}"


def _with_value(step: Step, access: Access, places: SourceLines | None, seen: dict[Resource, str | None]) -> str:
    """Say what is accessed, with the value where it is known, and of a write the one last `seen`, which it replaces."""
    told = _told(access, places)
    value = None if places is None else places.values.get((step.index, access.resource, access.write))
    if value is not None and len(value) > _MOST_OF_A_VALUE:
        value = f"{value[: _MOST_OF_A_VALUE - 1]}…"
    old = seen.get(access.resource)
    if access.write or value is not None:
        seen[access.resource] = value
    if value is None:
        return told
    both = access.write and old is not None and len(old) + len(value) <= _MOST_OF_A_VALUE
    return f"{told} {old} -> {value}" if both else f"{told} = {value}"


def _other(step: Step, after: Step | None) -> str:
    """Say what is done by a step that is no task's; "" for one that is."""
    if step.task == CLOCK:
        return f"moves to {after.time:g}" if after is not None and after.time > step.time else "moves"
    if step.task.partition(".")[0] == CANCEL:
        return "cancels its scope"
    task, _, choice = step.task.partition("=")
    return f"chooses {choice} of 0 to {len(step.enabled) - 1}" if choice and task else ""


def _runs(step: Step, places: SourceLines | None) -> str:
    place = None if places is None else places.of_steps.get(step.index)
    return "runs" if place is None else f"runs from {place}"


def _wrong(execution: Execution, violations: Sequence[Any]) -> list[str]:
    lines = []
    for kind, text in _findings(execution, violations):
        lines.append(text if kind == "error" else f"{kind}: {text}")
        if kind == "error" and execution.error is not None:
            lines += [f"  {stable_text(inner)}" for inner in _leaves(execution.error) if inner is not execution.error]
    return lines


def _findings(execution: Execution, violations: Sequence[Any]) -> list[tuple[str, str]]:
    """Give what is wrong as pairs: the error, each violation, and the value where there is no error."""
    error = execution.error
    found = []
    if error is not None:
        # A stop's text lists what each task waits for.
        is_stop = isinstance(error, SimulationStopped)
        found.append(("error", f"{type(error).__name__}: {error}" if is_stop else stable_text(error)))
    for violation in violations:
        # A law's violation, too, has a text for people.
        is_told = isinstance(violation, str | AssertionError) or hasattr(violation, "law")
        text = str(violation) if is_told else stable_text(violation)
        found.append(("violation", text or type(violation).__name__))
    if error is None:
        found.append(("value", stable_text(execution.value)))
    return found


def about(story: FailureStory, where: str) -> tuple[tuple[str, str], ...]:
    """Give what a page says of a failure above its steps; the first pair is the verdict and what comes first of it.

    Args:
        where: the program's name, and where it is defined.
    """
    found = _findings(story.execution, story.violations)
    pattern = story.pattern
    return (
        ("FAIL", _complaint(found)),
        *((("Pattern", f"{pattern.name}: {pattern.sentence}"),) if pattern is not None else ()),
        *((kind.capitalize(), text) for kind, text in found),
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
    return line if len(line) <= _MOST_OF_A_HEADLINE else f"{line[: _MOST_OF_A_HEADLINE - 1]}…"


def _complaint(found: Sequence[tuple[str, str]]) -> str:
    return next((text for kind, text in found if kind != "value"), "the execution is wrong")


def _replay_line(story: FailureStory) -> str:
    """Give the call that runs the execution again."""
    return f'sim.replay({story.program}, "{story.execution.schedule.short}"{story.arguments})'


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


# ---------------------------------------------------------------------- which task waits for which


def _wait_for_graph(error: Deadlock) -> list[str]:
    edges = dict(error.waits_on)
    lines = ["Wait-for graph:"]
    lines += [f"    {task} -> {', '.join(others)}" for task, others in error.waits_on]
    circle = circle_in(edges)
    lines.append(f"    in a circle: {' -> '.join(circle)}" if circle else "    no circle: a task waits for no other")
    return lines


# ---------------------------------------------------------------------- what decides


def _why(story: FailureStory, passing: Execution) -> list[str]:
    race = race_between(story.execution.schedule.steps, passing.schedule.steps)
    lines = (
        _race(race, story.places, ", track=" in story.arguments or bool(story.looked_into))
        if race is not None
        else [_no_race(story), ""]
    )
    mine, theirs = story.execution.schedule.tasks, passing.schedule.tasks
    parting = parting_of(mine, theirs)
    lines += [
        f"The nearest schedule that passes parts from it at step {parting.before}:",
        f"    fails   {_marked(mine, parting.before, parting.after)}",
        f"    passes  {_marked(theirs, parting.before, parting.after)}",
    ]
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


def _race(race: Race, places: SourceLines | None, is_tracked: bool) -> list[str]:
    rows = []
    for step, access in (race.first, race.second):
        place = None if places is None else places.of_access(step.index, access.resource, access.write)
        where = "" if place is None else f"{place}  {place.text}"
        rows.append((f"step {step.index}", step.task, _told(access, places), where))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"The race: {_sentence(race, places)} In the other order it passes."]
    if is_tracked and (said := _variable(race, places)):
        lines.append(f"    {said}")
    lines += [
        "    " + "  ".join((*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]))
        for row in rows
    ]
    return [*lines, ""]


def _sentence(race: Race, places: SourceLines | None) -> str:
    """Say which task did what before which other one did what, with functions and lines as far as they are known."""
    told = []
    for step, access in (race.first, race.second):
        place, task = None, step.task
        if places is not None:
            place = places.of_access(step.index, access.resource, access.write)
            function = places.functions.get(step.task)
            task = step.task if function is None else f"{function} ({step.task})"
        # A lock is taken or waited for, an event set or asked: it has no value to read.
        has_value = access.resource[0] == "cell" or (
            places is not None and any(resource == access.resource for _, resource, _ in places.values)
        )
        did = "touched" if not has_value else "wrote" if access.write else "read"
        told.append((task, did, "" if place is None else f" (line {place.line})"))
    (one, did, where), (other, other_did, other_where) = told
    name = _told(race.first[1], places).partition(" ")[2].removeprefix("cell ")
    return f"{one} {did} `{name}`{where} before {other} {other_did} it{other_where}."


def _variable(race: Race, places: SourceLines | None) -> str:
    """Say which variable of the source it is, who touches it, and where; "" when that is not known."""
    name, said = "", []
    for step, access in (race.first, race.second):
        place = None if places is None else places.of_access(step.index, access.resource, access.write)
        if place is None:
            return ""
        name = name or variable_at(place.path, place.line, access.resource) or ""
        said.append(f"{'written' if access.write else 'read'} at {place} ({place.function} of {step.task})")
    return f"{name} {', '.join(said)}" if name else ""


def _marked(tasks: Sequence[str], before: int, after: int) -> str:
    """Write a schedule with the part that differs in brackets."""
    head, middle = tasks[:before], tasks[before : len(tasks) - after]
    tail = tasks[len(tasks) - after :]
    shown = [" ".join(in_tokens(part)) for part in (head[-_AROUND:], middle, tail[:_AROUND])]
    return " ".join(
        filter(
            None,
            (
                "..." if len(head) > _AROUND else "",
                shown[0],
                f"[{shown[1]}]",
                shown[2],
                "..." if len(tail) > _AROUND else "",
            ),
        )
    )


# ---------------------------------------------------------------------- once more


def _again(story: FailureStory) -> list[str]:
    choices = list(story.execution.choices)
    while choices and not choices[-1]:
        choices.pop()
    check = "" if story.check is None else f", {story.check}"
    stream = story.execution.chance
    given = [str(choices)] * bool(choices) + [f"chance={stream}"] * bool(stream)
    policy = f"sim.Choices({', '.join(given)})"
    return [
        "Run it again:",
        f"    {_replay_line(story)}",
        "",
        "Or as a test, which a repair that moves checkpoints does not break:",
        f"    def test_{_identifier(story.program)}_in_this_order() -> None:",
        f"        only = sim.Random({policy}, 1)",
        f"        report = sim.explore({story.program}, only{check}{story.arguments})",
        "        assert report.verdict is sim.PASS, report",
    ]


def _identifier(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name).strip("_") or "program"

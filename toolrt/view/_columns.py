"""The steps of a trace as columns: one for each task, and what each step did.

Rules.  A choice stands in the column of the task that asked for it (``main.0=1`` in that of ``main.0``).  Columns are
in the order of paths, number by number; what is no path comes last, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from toolrt.probe import Resource
from toolrt.trace import Access, Step, Trace, plain, stable_text
from toolrt.view._short import one_line

#: A dict or a list.
T = TypeVar("T", dict[str, Any], list[Any])

#: Of the accesses of a step so many are named.
MOST_ACCESSES = 4

#: A resource that is a file of a workspace's disk, and others, by the first part of its name: what people call them.
_WORDS = {"cell": "", "watched": ""}


def detail(trace: Trace, part: str, kind: type[T]) -> T:
    """Give a part of what the trace's notes say of its steps; an empty one where it is not there, or odd."""
    details = trace.notes.get("details")
    found = details.get(part) if isinstance(details, Mapping) else None
    return found if isinstance(found, kind) else kind()


def column_of(task: str) -> str:
    """Give the column of a step by what stepped."""
    return task.partition("=")[0]


def titles_of(columns: Sequence[str], trace: Trace) -> list[str]:
    """Give what to write above the columns: the task, and the function that it runs where the trace knows it."""
    functions = detail(trace, "functions", dict)

    def title_of(column: str) -> str:
        function = functions.get(column) if column != "main" else None
        return f"{column} {one_line(function, 40)}" if isinstance(function, str) and function else column

    return [title_of(column) for column in columns]


def task_key(task: str) -> tuple[int, tuple[int, ...], str]:
    """Give what tasks are sorted by."""
    root, *numbers = task.split(".")
    if root == "main" and all(number.isascii() and number.isdecimal() and len(number) < 18 for number in numbers):
        return (0, tuple(map(int, numbers)), "")
    return (1, (), task)


def columns_of(tasks: Iterable[str]) -> list[str]:
    """Give the columns for what stepped, or for whose events these are."""
    return sorted({column_of(task) for task in tasks}, key=task_key)


def names_in(trace: Trace) -> dict[str, str]:
    """Give what the program calls its resources, by the resource's text; none where the notes are odd."""
    found = {}
    for pair in detail(trace, "names", list):
        match pair:
            case [list() as resource, str() as name]:
                found[stable_text(resource)] = name
    return found


def resource_text(resource: Resource, names: Mapping[str, str] | None = None) -> str:
    """Give a resource's name as people read it: the program's own of `names_in`, if it has one."""
    if names and (name := names.get(stable_text(plain(resource)))):
        return name
    first, *rest = map(str, resource)
    word = _WORDS.get(first, first) if rest else first
    return " ".join(([word] if word else []) + rest)


def done_in(step: Step, trace: Trace) -> str:
    """Say in a few words what a step did, as the trace's details have it; without them, what it touched."""
    if parts := _told_of(step, trace) or _named(step.accesses, names_in(trace)):
        more = len(parts) - MOST_ACCESSES
        return ", ".join(parts[:MOST_ACCESSES]) + (f" and {more} more" if more > 0 else "")
    task, _, choice = step.task.partition("=")
    if choice:
        return f"chooses {choice} of 0 to {len(step.enabled) - 1}"
    if task == "clock":
        after = trace.steps[step.index + 1] if step.index + 1 < len(trace.steps) else None
        return f"time moves to {after.time:g}" if after is not None and after.time > step.time else "time moves"
    if task.partition(".")[0] == "cancel":
        return "cancels a scope"
    place = detail(trace, "steps", dict).get(str(step.index))
    return f"runs from {place[0]}" if isinstance(place, list) and place else "runs"


def _named(accesses: Sequence[Access], names: Mapping[str, str]) -> list[str]:
    """Name what is written first, then what is only read."""
    written = dict.fromkeys(access.resource for access in accesses if access.write)
    read = dict.fromkeys(access.resource for access in accesses if access.resource not in written)
    return [
        f"{did} {resource_text(one, names)}" for did, found in (("writes", written), ("reads", read)) for one in found
    ]


def _told_of(step: Step, trace: Trace) -> list[str]:
    parts = detail(trace, "told", dict).get(str(step.index))
    return list(map(str, parts)) if isinstance(parts, list) else []


def preempts(steps: Sequence[Step], index: int) -> bool:
    """Say whether step `index` was given to another task although the one before could go on."""
    if index == 0:
        return False
    before, step = steps[index - 1], steps[index]
    return before.task != step.task and step.enabled[:1] == (before.task,)

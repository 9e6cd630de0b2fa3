"""Many schedules of one program under one slider: which schedule, and which step of it.

Rules.  The page is made of traces alone, like every page.  It describes a step by what the step touched and, where the
trace has details, by what it read and wrote.  This module writes no HTML.

With `axes` there is an execution for each combination of positions.  Pictures of calls then have one scale, so that a
reader sees what became longer.

Limits.  A page has at most 2,000 schedules and 200,000 steps; more are refused, not cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from toolrt._plain import counted
from toolrt.errors import DefinitionRefused
from toolrt.trace import Step, Trace, plain, stable_text
from toolrt.view._columns import column_of, columns_of, detail, done_in, preempts, resource_text
from toolrt.view._page import positions_page, slider_of
from toolrt.view._short import one_line, short_text
from toolrt.view._show import Page
from toolrt.view._source import HasTrace, check_names, trace_of
from toolrt.view._svg import timelines

_MOST_SCHEDULES = 2_000
_MOST_STEPS = 200_000
_MOST_POSITIONS = 200


def slider(
    source: Iterable[Trace | HasTrace],
    *,
    wrong: Callable[[Any], object] | None = None,
    names: Sequence[str] | None = None,
    axes: Mapping[str, Sequence[object]] | None = None,
    title: str = "Schedules",
) -> Page:
    """Give a page with two sliders: one over schedules of a program, one over the steps of each.

    With `axes` it has a slider for each of them instead, and shows the picture and the values of the execution at that
    position.  All executions have run beforehand, one for each position: the page runs nothing.

    A notebook shows it as the value of a cell.  It needs no kernel, no widget package and no network, so it also works
    in an exported notebook and as a file.

    Args:
        source: executions or traces of one program, one or more: all that an exploration ran, or a few.
        wrong: says of one of them whether it went wrong; None: it did when it has an error, or is a failure.
        names: what they are called, one for each; None: they are numbered.
        axes: what is moved, by name, each with its positions.  `source` has an execution for each combination, in the
            order of `itertools.product`.  An execution whose value is a mapping shows its entries; the pictures of
            calls have one scale.
        title: the page's heading.

    Returns:
        The page; nothing is written yet.

    Raises:
        DefinitionRefused: something has no trace or no steps, there is nothing to show, there are more than 2,000
            schedules or 200,000 steps (200 executions with `axes`), or there are not as many names or positions.

    Checkpoint: never.

    Example:
        >>> import trio
        >>> from toolrt import sim, view
        >>> async def program():
        ...     await trio.sleep(1)
        >>> view.slider([sim.run(program, details=True)])
        <Page 'Schedules': 1 schedule>
    """
    if isinstance(source, Trace) or not isinstance(source, Iterable):
        raise DefinitionRefused("slider(source)", "executions or traces, one or more", source)
    given = list(source)
    traces = [trace_of(one, "slider(source)") for one in given]
    if axes is not None:
        document = _positions(given, traces, axes, title)
        return Page(lambda: positions_page(document, title), title, counted(len(traces), "position"))
    if not 1 <= len(traces) <= _MOST_SCHEDULES:
        raise DefinitionRefused("slider(source)", f"1 to {_MOST_SCHEDULES:,} executions", f"{len(traces):,} of them")
    steps = sum(len(trace.steps) for trace in traces)
    if steps > _MOST_STEPS:
        raise DefinitionRefused("slider(source)", f"at most {_MOST_STEPS:,} steps altogether", f"{steps:,}")
    if unsteady := next((trace for trace in traces if not trace.steps), None):
        raise DefinitionRefused("slider(source)", "traces of a simulation, which have steps", unsteady)
    if names is None:
        names = [""] * len(traces)
    check_names("slider(names)", names, len(traces))
    judged = [_is_wrong(one) if wrong is None else bool(wrong(one)) for one in given]
    about = counted(len(traces), "schedule")
    return Page(lambda: slider_of(_document(given, traces, judged, names), title), title, about)


def _is_wrong(one: Any) -> bool:
    return getattr(one, "error", None) is not None or hasattr(one, "violations")


def _document(
    given: Sequence[Any], traces: Sequence[Trace], judged: Sequence[bool], names: Sequence[str]
) -> dict[str, Any]:
    columns = columns_of(step.task for trace in traces for step in trace.steps)
    place = {column: index for index, column in enumerate(columns)}
    words: dict[str, int] = {}

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    schedules = []
    for one, trace, is_wrong, name in zip(given, traces, judged, names, strict=True):
        values = _values(trace)
        schedules.append(
            {
                "name": short_text(name, 60),
                "ended": _ended(one, trace),
                "wrong": is_wrong,
                "steps": [
                    [
                        place[column_of(step.task)],
                        word(short_text(_done(step, trace, values), 160)),
                        preempts(trace.steps, step.index),
                        step.time,
                        [[word(_name(resource)), word(value)] for resource, value in _known(step, values)],
                    ]
                    for step in trace.steps
                ],
            }
        )
    return {"columns": [one_line(column, 80) for column in columns], "words": list(words), "schedules": schedules}


def _ended(one: Any, trace: Trace) -> str:
    execution = getattr(one, "execution", one)
    outcome = getattr(execution, "outcome", trace.meta.get("ended", "not known how"))
    return one_line(outcome if isinstance(outcome, str) else stable_text(outcome), 120)


#: What a step read or wrote, as the trace's details have it: by step, resource and kind.
Values = Mapping[tuple[int, str, bool], str]


def _values(trace: Trace) -> Values:
    found = {}
    for access in detail(trace, "accesses", list):
        match access:
            case [int() as step, list() as resource, bool() as write, _, _, str() as value]:
                found[step, stable_text(resource), write] = one_line(value, 80)
    return found


def _value(step: Step, resource: Sequence[Any], write: bool, values: Values) -> str | None:
    return values.get((step.index, stable_text(plain(resource)), write))


def _done(step: Step, trace: Trace, values: Values) -> str:
    """Say what a step did, with what it read or wrote where that is known."""
    told = []
    for access in step.accesses:
        value = _value(step, access.resource, access.write, values)
        if value is not None:
            told.append(f"{'writes' if access.write else 'reads'} {_name(access.resource)} = {value}")
    return ", ".join(told) or one_line(done_in(step, trace), 120)


def _known(step: Step, values: Values) -> list[tuple[Sequence[Any], str]]:
    """Give what is known of memory after a step: what it wrote, else what it read."""
    found = {}
    for access in sorted(step.accesses, key=lambda access: access.write):
        value = _value(step, access.resource, access.write, values)
        if value is not None:
            found[access.resource] = value
    return list(found.items())


def _name(resource: Sequence[Any]) -> str:
    return one_line(resource_text(tuple(resource)), 80)


def _positions(
    given: Sequence[Any], traces: Sequence[Trace], axes: Mapping[str, Sequence[object]], title: str
) -> dict[str, Any]:
    """Give what the page shows.

    Raises:
        DefinitionRefused: `axes` are none, or there are not as many executions as combinations, or more than 200.
    """
    if not isinstance(axes, Mapping) or not axes or not all(len(places) for places in axes.values()):
        raise DefinitionRefused("slider(axes)", "names, each with one position or more", axes)
    wanted = prod(len(places) for places in axes.values())
    if len(traces) != wanted or wanted > _MOST_POSITIONS:
        expected = f"an execution for each of {wanted:,} positions, at most {_MOST_POSITIONS}"
        raise DefinitionRefused("slider(source, axes)", expected, f"{len(traces):,} of them")
    runs = [
        {"picture": picture, "values": [[one_line(str(name), 60), *_shown(value)] for name, value in _entries(one)]}
        for one, picture in zip(given, timelines(traces, title), strict=True)
    ]
    named = [[one_line(str(name), 60), [_label(place) for place in places]] for name, places in axes.items()]
    return {"axes": named, "runs": runs}


def _entries(one: Any) -> list[tuple[object, object]]:
    """What came of an execution: the entries of its value, or how it ended."""
    execution = getattr(one, "execution", one)
    value = getattr(execution, "value", None)
    if getattr(execution, "error", None) is None and isinstance(value, Mapping):
        return list(value.items())
    return [("it ends in", getattr(execution, "outcome", "not known how"))]


def _shown(value: object) -> tuple[str, float | None]:
    """A value as text, and as a number if it is one: only these have a bar."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.6g}", float(value)
    return one_line(value if isinstance(value, str) else stable_text(value), 120), None


def _label(place: object) -> str:
    return one_line(getattr(place, "__name__", None) or str(place), 60)

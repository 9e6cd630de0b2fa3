"""Executions as tables: rows of plain values, for pandas, polars, or nothing but Python.

Rules.  A row is a dict with exactly the columns that `COLUMNS` tells of, in that order; a value is a text, a number,
true, false or None.  What is no such value (an input, an answer) is its JSON, the same in every process.  Seconds are
virtual in a simulation and wall seconds in a recording.  The first column of every table is `execution`: the place of
the execution among those that were given, from 0, so that tables can be joined.

Theory.  One row for each thing that was observed, one column for each fact about it (Wickham, "Tidy Data",
Journal of Statistical Software, 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from itertools import groupby
from types import MappingProxyType
from typing import Any

import attrs

from toolrt._plain import compact
from toolrt.errors import DefinitionRefused
from toolrt.events import CallSubmitted
from toolrt.trace import Trace, TraceEvent, plain, stable_text
from toolrt.view._calls import DrawnCall, calls_of
from toolrt.view._columns import preempts
from toolrt.view._source import HasTrace, trace_of

#: A row of a table.
Row = dict[str, Any]

Sources = Trace | HasTrace | Iterable[Trace | HasTrace]


@attrs.frozen
class Column:
    """What a column holds."""

    #: "int", "float", "bool" or "str"; with "?" behind it: or None.
    kind: str
    #: What it says, with the unit.
    meaning: str


def _described() -> Iterator[tuple[str, Mapping[str, Column]]]:
    """The tables of `columns.txt`: a row for each column."""
    text = resources.files("toolrt.view").joinpath("columns.txt").read_text(encoding="utf-8")
    for block in text.split("\n\n")[1:]:
        name, *rows = block.strip().splitlines()
        cells = [_EXECUTION, *([cell.strip() for cell in row.split(" | ")] for row in rows)]
        yield name.removeprefix("# "), MappingProxyType({name: Column(*rest) for name, *rest in cells})


_EXECUTION = ["execution", "int", "the place of the execution among those given, from 0"]

#: The columns of each table, in order.
COLUMNS: Mapping[str, Mapping[str, Column]] = MappingProxyType(dict(_described()))


def execution_rows(source: Sources) -> list[Row]:
    """Give a row for each execution.

    Args:
        source: an execution, a failure or a trace; or any number of them.

    Returns:
        The rows, with the columns of ``COLUMNS["executions"]``.

    Raises:
        DefinitionRefused: something has no trace.

    Checkpoint: never.

    Example:
        >>> import trio
        >>> from toolrt import sim, view
        >>> async def program():
        ...     await trio.sleep(2)
        ...     return "rested"
        >>> [row] = view.execution_rows(sim.run(program))
        >>> row["outcome"], row["seconds"], row["schedule"]
        ('rested', 2.0, 'main*2')
    """
    return [_execution(place, trace, one) for place, trace, one in _numbered(source, "execution_rows(source)")]


def call_rows(source: Sources) -> list[Row]:
    """Give a row for each call of each execution: by batch in the order they were opened, then by index.

    Args, Returns and Raises are as those of `execution_rows`; the columns are ``COLUMNS["calls"]``.

    Checkpoint: never.
    """
    return [
        _call(place, call, trace.events)
        for place, trace, _ in _numbered(source, "call_rows(source)")
        for call in calls_of(trace)
    ]


def step_rows(source: Sources) -> list[Row]:
    """Give a row for each step of each execution, in order; none for a recording of a real run.

    Args, Returns and Raises are as those of `execution_rows`; the columns are ``COLUMNS["steps"]``.

    Checkpoint: never.
    """
    return [
        {
            "execution": place,
            "step": step.index,
            "task": step.task,
            "could_run": len(step.enabled),
            "choice": step.choice,
            "preempts": preempts(trace.steps, step.index),
            "reads": sum(not access.write for access in step.accesses),
            "writes": sum(access.write for access in step.accesses),
            "woken_by": max(step.causes, default=None),
            "time": float(step.time),
        }
        for place, trace, _ in _numbered(source, "step_rows(source)")
        for step in trace.steps
    ]


def access_rows(source: Sources) -> list[Row]:
    """Give a row for each access of each step, in order: who touched what, and whether they wrote.

    Args, Returns and Raises are as those of `execution_rows`; the columns are ``COLUMNS["accesses"]``.

    Checkpoint: never.
    """
    return [
        {
            "execution": place,
            "step": step.index,
            "task": step.task,
            "resource": _sound(" ".join(map(str, access.resource))),
            "write": access.write,
            "time": float(step.time),
        }
        for place, trace, _ in _numbered(source, "access_rows(source)")
        for step in trace.steps
        for access in step.accesses
    ]


def event_rows(source: Sources) -> list[Row]:
    """Give a row for each event of each execution, in order.

    Args, Returns and Raises are as those of `execution_rows`; the columns are ``COLUMNS["events"]``.

    Checkpoint: never.
    """
    return [
        _event(place, event) for place, trace, _ in _numbered(source, "event_rows(source)") for event in trace.events
    ]


def _numbered(source: Sources, what: str) -> Iterator[tuple[int, Trace, Any]]:
    """Give each trace with its place and what it came from."""
    many: Any = [source] if isinstance(source, Trace) or hasattr(source, "trace") else source
    if not isinstance(many, Iterable):
        raise DefinitionRefused(what, "an execution or a trace, or any number of them", source)
    for place, one in enumerate(many):
        yield place, trace_of(one, what), one


def _execution(place: int, trace: Trace, one: Any) -> Row:
    ended = str(trace.meta.get("ended", "recorded"))
    # A failure has its execution; a trace alone says how it ended, and no more.
    execution = getattr(one, "execution", one)
    error = getattr(execution, "error", None)
    outcome = getattr(execution, "outcome", ended)
    times = [step.time for step in trace.steps[-1:]] + [event.time for event in trace.events[-1:]]
    tasks = [step.task for step in trace.steps]
    stopped = ["!"] if tasks and getattr(getattr(execution, "schedule", None), "stopped", False) else []
    return {
        "execution": place,
        "ended": ended,
        "outcome": _sound(outcome if isinstance(outcome, str) else stable_text(outcome)),
        "error": None if error is None else _sound(stable_text(error)),
        "steps": len(tasks),
        "tasks": len(set(tasks)),
        "preemptions": sum(preempts(trace.steps, index) for index in range(len(tasks))),
        "seconds": float(max(times, default=0.0)),
        "events": len(trace.events),
        "calls": len(trace.of_kind(CallSubmitted)),
        "schedule": " ".join([*_runs(tasks), *stopped]) or None,
    }


def _runs(tasks: list[str]) -> Iterator[str]:
    for task, group in groupby(tasks):
        count = sum(1 for _ in group)
        yield task if count == 1 else f"{task}*{count}"


def _call(place: int, call: DrawnCall, events: tuple[TraceEvent, ...]) -> Row:
    def at(seq: int | None) -> float | None:
        return None if seq is None else float(events[seq].time)

    def between(first: int | None, last: int | None) -> float | None:
        return None if first is None or last is None else float(events[last].time - events[first].time)

    return {
        "execution": place,
        "batch": _sound(call.batch),
        "call": call.index,
        "call_id": _sound(call.call_id),
        "name": _sound(call.name),
        "input": compact(plain(call.input)),
        "lane": call.lane,
        "shared": call.shared,
        "claims": len(call.claims),
        "waits_for": len(call.waits_for),
        "outcome": call.outcome,
        "content": None if call.content is None else _as_text(call.content),
        "error": None if call.error is None else _sound(call.error),
        "progress": len(call.progress),
        "dropped": sum(not accepted for _, accepted in call.progress),
        "submitted": at(call.submitted),
        "started": at(call.started),
        "ended": at(call.ended),
        "delivered": at(call.delivered),
        "waited": between(call.submitted, call.started),
        "ran": between(call.started, call.ended),
        "kept": between(call.settled, call.delivered),
    }


def _event(place: int, event: TraceEvent) -> Row:
    batch, call = event.fields.get("batch"), event.fields.get("call")
    return {
        "execution": place,
        "event": event.seq,
        "step": event.step,
        "task": event.task,
        "time": float(event.time),
        "kind": _sound(event.kind),
        "batch": None if batch is None else _sound(str(batch)),
        "call": call if isinstance(call, int) else None,
        "fields": compact(plain(event.fields)),
    }


def _as_text(value: object) -> str:
    return _sound(value if isinstance(value, str) else compact(plain(value)))


def _sound(text: str) -> str:
    """Write half a character, which no table can hold, as what it is called."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")

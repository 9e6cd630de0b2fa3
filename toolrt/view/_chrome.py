"""A timeline as Chrome trace events, which Perfetto and chrome://tracing open.

Rules.  Events are in order of time, and every begin has its end.  A batch is a process, its calls are its threads: what
a call waited for and when it ran are slices, progress are instants, how many calls run and wait are counters.  In a
simulation the schedule is one more process, with a thread for each task, and arrows for what woke what.

A simulation's time stands still most of the time, so there one step is drawn as one millisecond, and its events share
it; the virtual time is among a slice's arguments.  A recording's microseconds are its own.

Source: "Trace Event Format", the Chromium project, 2016.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from toolrt.trace import Trace
from toolrt.view._calls import PHASES, DrawnBatch, DrawnCall, batches_of
from toolrt.view._chart import label_of
from toolrt.view._columns import column_of, columns_of, done_in
from toolrt.view._short import one_line, short
from toolrt.view._source import HasTrace, trace_of
from toolrt.view._words import told

#: Microseconds of one step.
_STEP = 1_000.0

_SCHEDULE = 1


def chrome(source: Trace | HasTrace) -> str:
    """Give the trace as one JSON object in the Trace Event Format.

    Args:
        source: an execution, or a trace.

    Returns:
        JSON; the same bytes for the same trace.  Open it at ui.perfetto.dev, or in any viewer of that format.

    Raises:
        DefinitionRefused: `source` has no trace.

    Checkpoint: never.
    """
    trace = trace_of(source, "chrome(source)")
    clock = _EventTimes(trace)
    named: list[dict[str, Any]] = []
    timed: list[dict[str, Any]] = []
    if trace.steps:
        _schedule(trace, named, timed)
    for number, batch in enumerate(batches_of(trace), _SCHEDULE + 1):
        _batch(batch, number, trace, clock, named, timed)
    # Stable: what was said first comes first, so that a slice that ends where the next one begins has ended before.
    timed.sort(key=lambda event: event["ts"])
    document = {"displayTimeUnit": "ms", "otherData": short(trace.meta), "traceEvents": named + timed}
    return json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False)


class _EventTimes:
    """When an event is, in microseconds: never before the one before it."""

    def __init__(self, trace: Trace) -> None:
        self._at: list[float] = []
        in_step: dict[int, int] = {}
        for event in trace.events:
            if event.step is not None:
                in_step[event.step] = in_step.get(event.step, 0) + 1
        seen: dict[int, int] = {}
        last = 0.0
        first = trace.events[0].time if trace.events else 0.0
        for event in trace.events:
            if event.step is not None:
                seen[event.step] = seen.get(event.step, 0) + 1
                at = (event.step + seen[event.step] / (in_step[event.step] + 1)) * _STEP
            elif trace.steps:
                at = last
            else:
                at = (event.time - first) * 1e6
            last = max(last, round(at, 3))
            self._at.append(last)

    def at(self, seq: int) -> float:
        return self._at[seq]


def _name(kind: str, process: int, thread: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": text}}


def _sorted(process: int, thread: int, place: int) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread, "args": {"sort_index": place}}


def _schedule(trace: Trace, named: list[dict[str, Any]], timed: list[dict[str, Any]]) -> None:
    columns = columns_of(step.task for step in trace.steps)
    threads = {column: index + 1 for index, column in enumerate(columns)}
    named.append(_name("process_name", _SCHEDULE, 0, "schedule: one step is one millisecond"))
    for column, thread in threads.items():
        named += [_name("thread_name", _SCHEDULE, thread, one_line(column)), _sorted(_SCHEDULE, thread, thread)]
    for step in trace.steps:
        thread = threads[column_of(step.task)]
        args = {
            "step": step.index,
            "virtual_seconds": short(step.time),
            "could_have_run": [one_line(task) for task in step.enabled[:50]],
            "touched": [one_line(str(access)) for access in step.accesses[:50]],
        }
        place = {"pid": _SCHEDULE, "tid": thread}
        start = step.index * _STEP
        timed.append({"ph": "B", "name": one_line(done_in(step, trace), 80), "ts": start, "args": args, **place})
        timed.append({"ph": "E", "ts": start + _STEP * 0.95, **place})
    for number, edge in enumerate(trace.edges):
        if edge.wakes:
            one, other = trace.steps[edge.before], trace.steps[edge.after]
            arrow = {"name": "woke", "cat": "happens-before", "id": number, "pid": _SCHEDULE}
            timed.append({"ph": "s", "ts": (edge.before + 0.5) * _STEP, "tid": threads[column_of(one.task)], **arrow})
            end = {"ph": "f", "bp": "e", "ts": (edge.after + 0.5) * _STEP, "tid": threads[column_of(other.task)]}
            timed.append({**end, **arrow})


def _batch(
    batch: DrawnBatch,
    process: int,
    trace: Trace,
    clock: _EventTimes,
    named: list[dict[str, Any]],
    timed: list[dict[str, Any]],
) -> None:
    named.append(_name("process_name", process, 0, one_line(f"{batch.label} ({batch.policy})")))
    for place, (index, call) in enumerate(sorted(batch.calls.items())):
        thread = index + 1
        named += [_name("thread_name", process, thread, label_of(call, 60)), _sorted(process, thread, place)]
        timed += _slices(call, {"pid": process, "tid": thread}, trace, clock)
    for index, lane in sorted(batch.lanes.items()):
        thread = len(batch.calls) + index + 1_000_000
        named += [_name("thread_name", process, thread, f"lane {index}"), _sorted(process, thread, index - 1_000_000)]
        place_of = {"pid": process, "tid": thread}
        end = len(trace.events) - 1 if lane.merged is None else lane.merged
        name = f"lane {index}" + ("" if lane.shared else ", alone")
        timed.append({"ph": "B", "name": name, "ts": clock.at(lane.started), "args": {}, **place_of})
        timed.append({"ph": "E", "ts": clock.at(end), **place_of})
    timed += _counters(batch, process, clock)


def _slices(call: DrawnCall, place: dict[str, int], trace: Trace, clock: _EventTimes) -> Iterator[dict[str, Any]]:
    for span in call.spans:
        args: dict[str, Any] = {"events": [span.start, span.end]}
        if span.phase == "tickets":
            args["waits_for"] = call.waits_for[:50]
        if span.phase == "runs":
            args |= {"input": short(call.input), "outcome": call.outcome, "error": short(call.error)}
        yield {"ph": "B", "name": PHASES[span.phase], "ts": clock.at(span.start), "args": args, **place}
        yield {"ph": "E", "ts": clock.at(span.end), **place}
    for seq, _ in call.progress:
        yield {"ph": "i", "s": "t", "name": told(trace.events[seq]), "ts": clock.at(seq), **place}


def _counters(batch: DrawnBatch, process: int, clock: _EventTimes) -> Iterator[dict[str, Any]]:
    changes: list[tuple[int, str, int]] = []
    for call in batch.calls.values():
        changes.append((call.submitted, "waiting", 1))
        gone = call.settled if call.started is None else call.started
        if gone is not None:
            changes.append((gone, "waiting", -1))
        if call.started is not None:
            changes.append((call.started, "running", 1))
            if call.ended is not None:
                changes.append((call.ended, "running", -1))
    counts = {"running": 0, "waiting": 0}
    for seq, what, change in sorted(changes):
        counts[what] += change
        yield {"ph": "C", "name": "calls", "ts": clock.at(seq), "pid": process, "tid": 0, "args": dict(counts)}

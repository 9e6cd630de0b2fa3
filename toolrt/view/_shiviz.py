r"""A log for ShiViz, which draws space-time diagrams of what happened before what.

Rules.  Two lines for each step: the task and its vector clock, then what it did.  In a recording without steps it is
two lines for each event, and a task's clock counts its own events alone: nothing else is known of their order.  Read
it with ShiViz' own default parser, ``(?<host>\S*) (?<clock>{.*})\n(?<event>.*)``.

Source: Beschastnikh, Wang, Brun and Ernst, "Debugging distributed systems", Communications of the ACM 59(8), 2016.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from toolrt.trace import Trace
from toolrt.view._columns import done_in
from toolrt.view._short import one_line
from toolrt.view._source import HasTrace, trace_of
from toolrt.view._words import told


def shiviz(source: Trace | HasTrace) -> str:
    """Give the trace as a log with vector clocks.

    Args:
        source: an execution, or a trace.

    Returns:
        Two lines for each step, or event; the same bytes for the same trace.

    Raises:
        DefinitionRefused: `source` has no trace.

    Checkpoint: never.
    """
    trace = trace_of(source, "shiviz(source)")
    return "".join(f"{line}\n" for line in (_steps(trace) if trace.steps else _events(trace)))


def _host(task: str) -> str:
    """A task's name as ShiViz takes it: one word."""
    return "_".join(one_line(task, 80).split()) or "_"


def _clock(clock: dict[str, int]) -> str:
    return json.dumps(clock, sort_keys=True)


def _steps(trace: Trace) -> Iterator[str]:
    happened: dict[int, list[str]] = {}
    for event in trace.events:
        if event.step is not None:
            happened.setdefault(event.step, []).append(told(event))
    for step in trace.steps:
        clock = {_host(task): count for task, count in trace.clock_of(step).items()}
        yield f"{_host(step.task)} {_clock(clock)}"
        yield one_line("; ".join(happened.get(step.index, ())) or done_in(step, trace), 200)


def _events(trace: Trace) -> Iterator[str]:
    counts: dict[str, int] = {}
    for event in trace.events:
        host = _host(event.task)
        counts[host] = counts.get(host, 0) + 1
        yield f"{host} {_clock({host: counts[host]})}"
        yield told(event)

"""One execution as lines for people: what happened in which step, to which call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolrt import events
from toolrt._plain import counted
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._plan import in_words
from toolrt.cli.screen._screen import Screen
from toolrt.events import EventRecord
from toolrt.invariants import Violation
from toolrt.model import ToolCall
from toolrt.sim import Execution
from toolrt.trace import TraceEvent

#: Longer timelines show their first and last lines, and those a violation names.
_ROWS = 120

#: Of several violations so many are printed.
_VIOLATIONS = 5

#: The words for each kind of event; the kinds that are not here add nothing to a batch without a reader.
_TOLD: Mapping[type[EventRecord | None], Callable[[Any], str]] = {
    events.LaneStarted: lambda one: f"lane {one.lane} starts",
    events.CallStarted: lambda one: "starts",
    events.ProgressSent: lambda one: f"says something ({one.number})",
    events.FileRead: lambda one: f"reads {one.file} {one.version}",
    events.MutationBegan: lambda one: f"begins to change {one.file}",
    events.MutationEnded: lambda one: (
        f"has changed {one.file} to {one.version}" if one.ok else f"left {one.file} as it was"
    ),
    events.DiskFailed: lambda one: f"the disk fails ({one.effect} {one.file or '.'}: {one.error})",
    events.CallSettled: lambda one: f"is {one.outcome}",
    events.BatchCancelled: lambda one: f"cancelled: {one.reason}",
    events.CallCancelled: lambda one: f"is cancelled: {one.reason}",
    events.BatchStopped: lambda one: f"call {one.by} stops the batch",
    events.LaneMerged: lambda one: f"lane {one.lane} ends",
    events.ResultDelivered: lambda one: "its result is read",
}


def print_timeline(
    execution: Execution, calls: Sequence[ToolCall], violations: Iterable[Violation], screen: Screen
) -> None:
    """Print what happened in `execution`; ``>`` marks the events that show a violation."""
    schedule = execution.schedule
    preemptions = counted(schedule.switches, "preemption")
    screen.say(f"{counted(len(schedule), 'step')}, {preemptions}:", "bold")
    guilty = {violation.seq for violation in violations}
    events = [event for event in execution.trace.events if type(event.record) in _TOLD or event.seq in guilty]
    width = max(4, len(str(len(schedule))))
    left_out = 0
    for place, event in enumerate(events):
        if _ROWS // 2 <= place < len(events) - _ROWS // 2 and event.seq not in guilty:
            left_out += 1
            continue
        if left_out:
            screen.say(f"... {left_out:,} more", "dim", indent=2)
            left_out = 0
        mark = ">" if event.seq in guilty else " "
        step = "" if event.step is None else event.step
        screen.say(f"{mark} {step:>{width}}  {_told(event, calls)}", "red" if event.seq in guilty else "")
    screen.say()


def _told(event: TraceEvent, calls: Sequence[ToolCall]) -> str:
    tell = _TOLD.get(type(event.record))
    text = event.kind if tell is None else tell(event.record)
    index = event.fields.get("call")
    if index is not None and 0 <= index < len(calls):
        text = f"[{index}] {in_words(calls[index])} {text}"
    return on_one_line(text, 200)


def print_violations(violations: Sequence[Violation], error: BaseException | None, screen: Screen) -> None:
    """Print the sentences that do not hold, each with what was seen instead."""
    for violation in violations[:_VIOLATIONS]:
        for line in str(violation).splitlines():
            screen.say(on_one_line(line), "red")
    if len(violations) > _VIOLATIONS:
        screen.say(f"... and {len(violations) - _VIOLATIONS} more violations", "red")
    if error is not None:
        for line in f"the execution ended by {type(error).__name__}: {error}".splitlines():
            screen.say(on_one_line(line), "red")

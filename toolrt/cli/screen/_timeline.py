"""One execution as lines for people: what happened in which step, to which call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._plan import in_words
from toolrt.cli.screen._screen import Screen
from toolrt.invariants import Violation
from toolrt.model import ToolCall
from toolrt.sim import Execution
from toolrt.trace import Event

__all__ = ["print_timeline", "print_violations"]

#: Longer timelines show their first and last lines, and those a violation names.
_ROWS = 120

#: Of several violations so many are printed.
_VIOLATIONS = 5

#: What each kind of event is told as; the kinds that are not here say nothing new about a batch that is not read.
_TOLD: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "lane.started": lambda fields: f"lane {fields['lane']} starts",
    "call.started": lambda fields: "starts",
    "progress.sent": lambda fields: f"says something ({fields['number']})",
    "file.read": lambda fields: f"reads {fields['file']} {fields['version']}",
    "file.mutation_began": lambda fields: f"begins to change {fields['file']}",
    "file.mutation_ended": lambda fields: (
        f"has changed {fields['file']} to {fields['version']}" if fields["ok"] else f"left {fields['file']} as it was"
    ),
    "disk.failed": lambda fields: f"the disk fails ({fields['effect']} {fields['file'] or '.'}: {fields['error']})",
    "call.settled": lambda fields: f"is {fields['outcome']}",
    "batch.cancelled": lambda fields: f"cancelled: {fields['reason']}",
    "batch.stopped": lambda fields: f"call {fields['by']} stops the batch",
    "lane.merged": lambda fields: f"lane {fields['lane']} ends",
    "result.delivered": lambda fields: "its result is read",
}


def print_timeline(
    execution: Execution, calls: Sequence[ToolCall], violations: Iterable[Violation], screen: Screen
) -> None:
    """Print what happened in `execution`; ``>`` marks the events that show a violation."""
    schedule = execution.schedule
    preemptions = f"{schedule.switches} preemption{'' if schedule.switches == 1 else 's'}"
    screen.say(f"{len(schedule)} steps, {preemptions}:", "bold")
    guilty = {violation.seq for violation in violations}
    events = [event for event in execution.trace.events if event.kind in _TOLD or event.seq in guilty]
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


def _told(event: Event, calls: Sequence[ToolCall]) -> str:
    tell = _TOLD.get(event.kind)
    text = event.kind if tell is None else tell(event.fields)
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

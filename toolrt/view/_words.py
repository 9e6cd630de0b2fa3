"""An event in the words of a timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolrt import events
from toolrt.events import EventRecord
from toolrt.trace import Step, Trace, TraceEvent
from toolrt.view._columns import done_in
from toolrt.view._short import one_line

#: The words for each kind of event; other events show their kind.
_TOLD: Mapping[type[EventRecord | None], Callable[[Any], str]] = {
    events.BatchOpened: lambda one: "batch opens",
    events.CallSubmitted: lambda one: f"{one.name} is submitted",
    events.BatchSealed: lambda one: "batch is sealed",
    events.LaneStarted: lambda one: f"lane {one.lane} starts",
    events.ClaimsAwaited: lambda one: "waits to know its claims",
    events.ClaimsStale: lambda one: f"claims {', '.join(one.claims)} by now",
    events.TicketTaken: lambda one: "takes its tickets",
    events.ApprovalAsked: lambda one: "asks for approval",
    events.ApprovalAnswered: lambda one: f"approval says {one.answer}",
    events.CallStarted: lambda one: "starts",
    events.ProgressSent: lambda one: f"progress {one.number}{'' if one.accepted else ' (dropped)'}",
    events.FileRead: lambda one: f"reads {one.file}",
    events.MutationBegan: lambda one: f"begins to change {one.file}",
    events.MutationEnded: lambda one: f"{'has changed' if one.ok else 'leaves'} {one.file}",
    events.DiskFailed: lambda one: f"disk fails ({one.effect} {one.file or '.'}: {one.error})",
    events.ToolEffect: lambda one: f"does {one.effect}",
    events.CallSettled: lambda one: f"is {one.outcome}",
    events.CallCancelled: lambda one: "is cancelled",
    events.CallEnded: lambda one: "has ended",
    events.CallStartedAgain: lambda one: "runs again",
    events.ModifiersRefused: lambda one: f"stale write of {one.part[1]}",
    events.ModifierApplied: lambda one: f"modifier {one.position} {'applied' if one.ok else 'raised'}",
    events.LaneMerged: lambda one: f"lane {one.lane} is merged",
    events.BatchCancelled: lambda one: "batch is cancelled",
    events.BatchStopped: lambda one: f"call {one.by} stops the batch",
    events.ReaderAsked: lambda one: "the reader waits",
    events.ProgressDelivered: lambda one: f"progress {one.number} is read",
    events.ResultDelivered: lambda one: "result is read",
    events.MergeDelivered: lambda one: f"merge of lane {one.lane} is read",
    events.BatchLeft: lambda one: "batch is left",
}


def told(event: TraceEvent) -> str:
    """Tell `event` in a line; one that is no record by its kind."""
    tell = _TOLD.get(type(event.record))
    text = event.kind if tell is None else tell(event.record)
    call = event.fields.get("call")
    prefix = f"[{call}] " if isinstance(call, int) and not isinstance(call, bool) else ""
    return one_line(f"{prefix}{text}", 120)


def steps_told(trace: Trace) -> Iterator[tuple[Step, str]]:
    """Give each step with the events in it, in words; where there is none, with what it did."""
    happened: dict[int, list[str]] = {}
    for event in trace.events:
        if event.step is not None:
            happened.setdefault(event.step, []).append(told(event))
    for step in trace.steps:
        yield step, "; ".join(happened.get(step.index, ())) or done_in(step, trace)

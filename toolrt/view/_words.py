"""An event in the words of a timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolrt.trace import Event
from toolrt.view._short import one_line

__all__ = ["told"]

#: The words for each kind of event; other events show their kind.
_TOLD: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "batch.opened": lambda fields: "batch opens",
    "call.submitted": lambda fields: f"{fields['name']} is submitted",
    "batch.sealed": lambda fields: "batch is sealed",
    "lane.started": lambda fields: f"lane {fields['lane']} starts",
    "claims.awaited": lambda fields: "waits to know its claims",
    "claims.stale": lambda fields: f"claims {', '.join(fields['claims'])} by now",
    "ticket.taken": lambda fields: "takes its tickets",
    "approval.asked": lambda fields: "asks for approval",
    "approval.answered": lambda fields: f"approval says {fields['answer']}",
    "call.started": lambda fields: "starts",
    "progress.sent": lambda fields: f"progress {fields['number']}{'' if fields['accepted'] else ' (dropped)'}",
    "file.read": lambda fields: f"reads {fields['file']}",
    "file.mutation_began": lambda fields: f"begins to change {fields['file']}",
    "file.mutation_ended": lambda fields: f"{'has changed' if fields['ok'] else 'leaves'} {fields['file']}",
    "disk.failed": lambda fields: f"disk fails ({fields['effect']} {fields['file'] or '.'}: {fields['error']})",
    "tool.effect": lambda fields: f"does {fields['effect']}",
    "call.settled": lambda fields: f"is {fields['outcome']}",
    "call.ended": lambda fields: "has ended",
    "call.again": lambda fields: "runs again",
    "state.refused": lambda fields: f"stale write of {fields['part'][1]}",
    "state.applied": lambda fields: f"modifier {fields['position']} {'applied' if fields['ok'] else 'raised'}",
    "lane.merged": lambda fields: f"lane {fields['lane']} is merged",
    "batch.cancelled": lambda fields: "batch is cancelled",
    "batch.stopped": lambda fields: f"call {fields['by']} stops the batch",
    "reader.asked": lambda fields: "the reader waits",
    "progress.delivered": lambda fields: f"progress {fields['number']} is read",
    "result.delivered": lambda fields: "result is read",
    "merge.delivered": lambda fields: f"merge of lane {fields['lane']} is read",
    "batch.left": lambda fields: "batch is left",
}


def told(event: Event) -> str:
    """Tell `event` in a line; one whose fields are not as expected by its kind."""
    tell = _TOLD.get(event.kind)
    try:
        text = event.kind if tell is None else tell(event.fields)
    except KeyError:
        text = event.kind
    call = event.fields.get("call")
    prefix = f"[{call}] " if isinstance(call, int) and not isinstance(call, bool) else ""
    return one_line(f"{prefix}{text}", 120)

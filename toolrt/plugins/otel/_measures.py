"""What is counted and measured, drawn from what a runtime tells.

Rules.  A call is counted once its outcome can change no more: when its lane has ended, or its batch.  Times are whole
nanoseconds, so a sum does not depend on the order of what is added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

#: The labels of a number: pairs of name and value, sorted by name.
Labels = tuple[tuple[str, str | bool], ...]

#: Stands for the name of a tool that is not there.
UNKNOWN_TOOL = "(unknown)"

#: What is counted: unit and description.
COUNTERS: Mapping[str, tuple[str, str]] = {
    "toolrt.batches": ("{batch}", "Batches that have ended."),
    "toolrt.lanes": ("{lane}", "Lanes that have begun, by whether their calls may overlap."),
    "toolrt.calls": ("{call}", "Calls, by tool and outcome."),
    "toolrt.modifiers.applied": ("{modifier}", "Modifiers that were merged into the state."),
    "toolrt.modifiers.rejected": ("{modifier}", "Modifiers that raised and changed nothing."),
    "toolrt.progress.sent": ("{message}", "Progress messages that tools sent, by tool."),
    "toolrt.progress.dropped": ("{message}", "Progress messages that no reader saw, by tool."),
}

#: What is measured, in seconds.
HISTOGRAMS: Mapping[str, str] = {
    "toolrt.batch.duration": "From the opening of a batch to its end.",
    "toolrt.call.duration": "A call's own execution, by tool.",
    "toolrt.call.wait": "What calls waited, by tool and by what for: lane, claims, approval, slot.",
}


@attrs.define
class _Call:
    tool: str
    outcome: str = ""
    started: int | None = None
    waits: dict[str, int] = attrs.field(factory=dict)


@attrs.define
class _Batch:
    opened: int
    calls: dict[int, _Call] = attrs.field(factory=dict)
    lanes: dict[int, list[int]] = attrs.field(factory=dict)


class Measures(ABC):
    """A sink that counts and measures; who inherits says where that goes."""

    def __init__(self) -> None:
        self._batches: dict[int, _Batch] = {}

    @abstractmethod
    def _count(self, name: str, amount: int, labels: Labels) -> None:
        """Add `amount` to one of `COUNTERS`."""

    @abstractmethod
    def _measure(self, name: str, nanoseconds: int, labels: Labels) -> None:
        """Take note of one time of one of `HISTOGRAMS`."""

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Draw from what happened what it changes."""
        if kind == "batch.opened":
            self._batches[fields["number"]] = _Batch(fields["time"])
            return
        number = fields.get("number")
        batch = self._batches.get(number) if isinstance(number, int) else None
        if batch is None:
            return
        calls = batch.calls
        match kind:
            case "call.submitted":
                calls[fields["call"]] = _Call(fields["tool"] or UNKNOWN_TOOL)
            case "wait.began":
                calls[fields["call"]].waits[fields["why"]] = fields["time"]
            case "wait.ended":
                call = calls[fields["call"]]
                waited = fields["time"] - call.waits.pop(fields["why"])
                self._measure("toolrt.call.wait", waited, (("tool", call.tool), ("why", fields["why"])))
            case "call.joined":
                batch.lanes.setdefault(fields["lane"], []).append(fields["call"])
            case "call.started":
                calls[fields["call"]].started = fields["time"]
            case "call.settled":
                calls[fields["call"]].outcome = fields["outcome"]
            case "call.ended":
                call = calls[fields["call"]]
                if call.started is not None:
                    self._measure("toolrt.call.duration", fields["time"] - call.started, (("tool", call.tool),))
            case "progress.counted":
                labels = (("tool", calls[fields["call"]].tool),)
                self._count_parts("toolrt.progress", ("sent", "dropped"), fields, labels)
            case "lane.began":
                self._count("toolrt.lanes", 1, (("shared", fields["shared"]),))
            case "lane.ended":
                for index in sorted(batch.lanes.pop(fields["lane"], ())):
                    self._counted(calls[index])
            case "state.merged":
                self._count_parts("toolrt.modifiers", ("applied", "rejected"), fields, ())
            case "batch.ended":
                for _, call in sorted(calls.items()):
                    if call.outcome:
                        self._counted(call)
                self._count("toolrt.batches", 1, ())
                self._measure("toolrt.batch.duration", fields["time"] - batch.opened, ())
                del self._batches[fields["number"]]

    def _counted(self, call: _Call) -> None:
        self._count("toolrt.calls", 1, (("outcome", call.outcome), ("tool", call.tool)))
        call.outcome = ""

    def _count_parts(self, name: str, parts: Sequence[str], fields: Mapping[str, Any], labels: Labels) -> None:
        for part in parts:
            if fields[part]:
                self._count(f"{name}.{part}", fields[part], labels)

"""What is counted and measured, drawn from what a runtime tells.

Rules.  A call is counted once its outcome can change no more: when its lane has ended, or its batch.  Times are whole
nanoseconds, so a sum does not depend on the order of what is added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
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
        number = fields.get("number")
        if kind == "batch.opened":
            self._batches[fields["number"]] = _Batch(fields["time"])
            return
        batch = self._batches.get(number) if isinstance(number, int) else None
        react = _REACTIONS.get(kind)
        if batch is not None and react is not None:
            react(self, batch, fields)

    def _submitted(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        batch.calls[fields["call"]] = _Call(fields["tool"] or UNKNOWN_TOOL)

    def _joined(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        batch.lanes.setdefault(fields["lane"], []).append(fields["call"])

    def _wait_began(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        batch.calls[fields["call"]].waits[fields["why"]] = fields["time"]

    def _wait_ended(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        call = batch.calls[fields["call"]]
        began = call.waits.pop(fields["why"])
        self._measure("toolrt.call.wait", fields["time"] - began, (("tool", call.tool), ("why", fields["why"])))

    def _started(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        batch.calls[fields["call"]].started = fields["time"]

    def _settled(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        batch.calls[fields["call"]].outcome = fields["outcome"]

    def _ended(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        call = batch.calls[fields["call"]]
        if call.started is not None:
            self._measure("toolrt.call.duration", fields["time"] - call.started, (("tool", call.tool),))

    def _lane_began(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        self._count("toolrt.lanes", 1, (("shared", fields["shared"]),))

    def _lane_ended(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        for index in sorted(batch.lanes.pop(fields["lane"], ())):
            self._counted(batch.calls[index])

    def _counted(self, call: _Call) -> None:
        self._count("toolrt.calls", 1, (("outcome", call.outcome), ("tool", call.tool)))
        call.outcome = ""

    def _merged(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        for what in ("applied", "rejected"):
            if fields[what]:
                self._count(f"toolrt.modifiers.{what}", fields[what], ())

    def _progress(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        labels = (("tool", batch.calls[fields["call"]].tool),)
        for what in ("sent", "dropped"):
            if fields[what]:
                self._count(f"toolrt.progress.{what}", fields[what], labels)

    def _batch_ended(self, batch: _Batch, fields: Mapping[str, Any]) -> None:
        for _, call in sorted(batch.calls.items()):
            if call.outcome:
                self._counted(call)
        self._count("toolrt.batches", 1, ())
        self._measure("toolrt.batch.duration", fields["time"] - batch.opened, ())
        del self._batches[fields["number"]]


_REACTIONS = {
    "call.submitted": Measures._submitted,
    "call.joined": Measures._joined,
    "wait.began": Measures._wait_began,
    "wait.ended": Measures._wait_ended,
    "call.started": Measures._started,
    "call.settled": Measures._settled,
    "call.ended": Measures._ended,
    "lane.began": Measures._lane_began,
    "lane.ended": Measures._lane_ended,
    "state.merged": Measures._merged,
    "progress.counted": Measures._progress,
    "batch.ended": Measures._batch_ended,
}

"""What the still pictures of calls share: rows, and where on the line an event is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.trace import Trace
from toolrt.view._calls import DrawnBatch, DrawnCall, DrawnLane
from toolrt.view._short import one_line

#: What a row or a column is.
By = Literal["calls", "tasks"]

#: What a length is.
Scale = Literal["order", "time"]


def checked_by(by: By | None, trace: Trace, has_calls: bool) -> By:
    """Give what to draw by: calls where there are any, unless told.

    Raises:
        DefinitionRefused: it is neither, or there are no calls.
    """
    if by not in (None, "calls", "tasks"):
        raise DefinitionRefused("by", '"calls", "tasks" or None', by)
    if by == "calls" and not has_calls:
        raise DefinitionRefused("by", f'"tasks": {trace!r} has no calls', by)
    return by or ("calls" if has_calls else "tasks")


@attrs.frozen
class CallGroup:
    """Calls that stand together: a lane's, or those of a batch that belong to none."""

    batch: DrawnBatch
    lane: DrawnLane | None
    calls: list[DrawnCall]

    @property
    def label(self) -> str:
        """What it is called."""
        if self.lane is None:
            return "in no lane"
        return f"lane {self.lane.index}" + ("" if self.lane.shared else ", alone")


def groups_of(batch: DrawnBatch) -> Iterator[CallGroup]:
    """Give the lanes of a batch in order, then the calls that belong to none."""
    calls = [call for _, call in sorted(batch.calls.items())]
    for index, lane in sorted(batch.lanes.items()):
        yield CallGroup(batch, lane, [call for call in calls if call.lane == index])
    others = [call for call in calls if call.lane not in batch.lanes]
    if others:
        yield CallGroup(batch, None, others)


def label_of(call: DrawnCall, most: int = 40) -> str:
    """Give a call's name as people know it: its index, its tool and what it is about."""
    subject: Any = None
    if isinstance(call.input, dict):
        subject = next((value for value in call.input.values() if isinstance(value, str)), None)
        subject = call.input.get("path", subject)
    about = f" {subject}" if isinstance(subject, str) else ""
    return one_line(f"[{call.index}] {call.name}{about}", most)


def direct_waits(call: DrawnCall, batch: DrawnBatch) -> list[int]:
    """Give whom a call waits for, without those that another of them waits for itself."""
    implied = {index for other in call.waits_for for index in batch.calls[other].waits_for}
    return [index for index in call.waits_for if index not in implied]


class Ruler:
    """Where on a line of some length an event is.

    Args:
        seconds: how long the line is on a scale of time, at least; so several pictures have one scale.

    Raises:
        DefinitionRefused: the scale is neither "order" nor "time".
    """

    def __init__(self, trace: Trace, length: float, scale: Scale, seconds: float = 0.0) -> None:
        if scale not in ("order", "time"):
            raise DefinitionRefused("scale", '"order" or "time"', scale)
        self._events = trace.events
        self._length = length
        self._by_time = scale == "time"
        self._from = trace.events[0].time if trace.events else 0.0
        self._span = max(trace.events[-1].time - self._from if trace.events else 0.0, seconds) or 1.0
        self._last = max(1, len(trace.events) - 1)

    def at(self, seq: int) -> float:
        """Give the place of event `seq`, from 0 to the length."""
        share = (self._events[seq].time - self._from) / self._span if self._by_time else seq / self._last
        return share * self._length

    @property
    def ends(self) -> tuple[str, str]:
        """What stands at the two ends."""
        if self._by_time:
            return "0 s", f"{self._span:.6g} s"
        return "event 0", f"event {self._last}"

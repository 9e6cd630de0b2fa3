"""The calls of a trace, each with what it waited for and when it ran.

Rules.  A call is known by its batch's id and its `call_index`.  Its time is divided into spans that touch: it waits for
its lane, for the tickets of earlier calls, for an approval, for a free place below the limit; it runs; it ends, where
its result was fixed before it could be left; its result is kept until those before it have been read.  What is
missing or odd in a trace from elsewhere is left out, never guessed.  Words and conflicts of claims are those of
`toolrt.model.Claim`, which this room does not import: it draws traces alone.

Limits.  Who waits for whom follows from the claims within one batch; a wait for another batch's calls has no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from toolrt.events import (
    ApprovalAnswered,
    ApprovalAsked,
    BatchLeft,
    BatchOpened,
    CallEnded,
    CallSettled,
    CallStarted,
    CallSubmitted,
    LaneMerged,
    LaneStarted,
    ProgressSent,
    ResultDelivered,
    TicketTaken,
)
from toolrt.trace import Trace, TraceEvent
from toolrt.view._short import one_line

#: What a span is, in the words of a legend.
PHASES: Mapping[str, str] = {
    "lane": "waits for its lane",
    "tickets": "waits for earlier calls",
    "approval": "waits for approval",
    "slot": "waits for a free place",
    "soon": "about to start",
    "runs": "runs",
    "ends": "its result is fixed, it has not ended",
    "kept": "its result waits to be read",
}


@attrs.frozen
class Span:
    """A stretch of one call's time."""

    #: A key of `PHASES`.
    phase: str
    #: The event it begins with, and the one it ends with.
    start: int
    end: int


@attrs.define
class DrawnCall:
    """One call, as a trace tells of it."""

    batch: str
    #: Its `call_index`.
    index: int
    call_id: str
    name: str
    input: Any
    #: The event of its submission.
    submitted: int
    #: Its lane's index; None for calls that belong to none.
    lane: int | None = None
    #: False: it ran alone in its lane.
    shared: bool = True
    #: What it claims, as the event has it.
    claims: list[Any] = attrs.field(factory=list)
    stops: bool = False
    reads_only: bool = False
    # Events, or None.
    ticket: int | None = None
    asked: int | None = None
    answered: int | None = None
    started: int | None = None
    settled: int | None = None
    ended: int | None = None
    delivered: int | None = None
    #: Outcome, content and error of its last result; None while it has none.
    outcome: str | None = None
    content: Any = None
    error: str | None = None
    #: The events of its progress, and whether each was accepted.
    progress: list[tuple[int, bool]] = attrs.field(factory=list)
    #: The indices of the calls of its batch that it had to wait for, in order.
    waits_for: list[int] = attrs.field(factory=list)
    #: Its time, in order.
    spans: list[Span] = attrs.field(factory=list)


@attrs.define
class DrawnLane:
    """One lane of a batch."""

    batch: str
    index: int
    shared: bool
    started: int
    merged: int | None = None


@attrs.define
class DrawnBatch:
    """One batch."""

    batch: str
    policy: str
    limit: int | None
    opened: int
    #: The batch and the call that it was opened inside, or None.
    inside: tuple[str, int] | None = None
    left: int | None = None
    lanes: dict[int, DrawnLane] = attrs.field(factory=dict)
    calls: dict[int, DrawnCall] = attrs.field(factory=dict)

    @property
    def label(self) -> str:
        """What it is called: its id, and what it was opened inside."""
        return f"batch {self.batch}" + ("" if self.inside is None else f" in [{self.inside[1]}] of {self.inside[0]}")


def calls_of(trace: Trace) -> list[DrawnCall]:
    """Give every call, by batch in the order they were opened, then by index."""
    return [call for batch in batches_of(trace) for _, call in sorted(batch.calls.items())]


def batches_of(trace: Trace) -> list[DrawnBatch]:
    """Give every batch in the order they were opened, its calls with their spans."""
    batches: dict[str, DrawnBatch] = {}
    for event in trace.events:
        if "batch" in event.fields:
            name = str(event.fields["batch"])
            batch = batches.get(name)
            if batch is None:
                policy, slots = event.fields.get("policy", ""), event.fields.get("slots")
                both = str(policy) if slots is None else f"{policy}, slots {slots}"
                batch = batches[name] = DrawnBatch(name, both, None, event.seq)
            _take(batch, event)
    last = len(trace.events) - 1
    for batch in batches.values():
        full = _full_until(batch, last)
        _find_waits(batch)
        for call in batch.calls.values():
            call.spans = _spans(call, batch, last, full)
    return list(batches.values())


def _take(batch: DrawnBatch, event: TraceEvent) -> None:
    fields, seq = event.fields, event.seq
    match event.kind:
        case BatchOpened.kind:
            batch.limit = fields["limit"] if isinstance(fields.get("limit"), int) else None
            match fields.get("parent"):
                case [str() as parent, int() as opener]:
                    batch.inside = (parent, opener)
        case BatchLeft.kind:
            batch.left = seq
        case LaneStarted.kind if isinstance(fields.get("lane"), int):
            batch.lanes[fields["lane"]] = DrawnLane(batch.batch, fields["lane"], bool(fields.get("shared", True)), seq)
        case LaneMerged.kind if isinstance(fields.get("lane"), int) and fields["lane"] in batch.lanes:
            batch.lanes[fields["lane"]].merged = seq
        case CallSubmitted.kind if isinstance(fields.get("call"), int):
            index = fields["call"]
            call_id, name = str(fields.get("call_id", "")), str(fields.get("name", ""))
            batch.calls[index] = DrawnCall(batch.batch, index, call_id, name, fields.get("input"), seq)
        case _:
            index = fields.get("call")
            call = batch.calls.get(index) if isinstance(index, int) else None
            if call is not None:
                _take_of_call(call, event)


def _take_of_call(call: DrawnCall, event: TraceEvent) -> None:
    fields, seq = event.fields, event.seq
    match event.kind:
        case TicketTaken.kind:
            call.ticket = seq
            call.lane = fields["lane"] if isinstance(fields.get("lane"), int) else None
            call.shared = bool(fields.get("shared", True))
            claims = fields.get("claims")
            call.claims = claims if isinstance(claims, list) else []
            call.stops, call.reads_only = bool(fields.get("stops")), bool(fields.get("reads_only"))
        case ApprovalAsked.kind:
            call.asked = seq
        case ApprovalAnswered.kind:
            call.answered = seq
        case CallStarted.kind:
            call.started = seq
        case CallSettled.kind:
            call.settled = seq if call.settled is None else call.settled
            call.outcome, call.content = one_line(str(fields.get("outcome")), 30), fields.get("content")
            call.error = None if fields.get("error") is None else str(fields["error"])
        case CallEnded.kind:
            call.ended = seq
        case ResultDelivered.kind:
            call.delivered = seq
        case ProgressSent.kind:
            call.progress.append((seq, bool(fields.get("accepted", True))))


class _Claims:
    """The claims of the calls of one lane so far, found by what they conflict with."""

    def __init__(self) -> None:
        # By mode ("read" or not) and resource: who claims just that, who claims it with all below it, and who claims it
        # or something below it.
        self._exactly: dict[tuple[bool, tuple[str | int, ...]], list[int]] = {}
        self._with_all_below: dict[tuple[bool, tuple[str | int, ...]], list[int]] = {}
        self._at_or_below: dict[tuple[bool, tuple[str | int, ...]], list[int]] = {}

    def add(self, call: DrawnCall) -> None:
        for reads, parts, subtree in _readable(call.claims):
            self._exactly.setdefault((reads, parts), []).append(call.index)
            if subtree:
                self._with_all_below.setdefault((reads, parts), []).append(call.index)
            for length in range(len(parts) + 1):
                self._at_or_below.setdefault((reads, parts[:length]), []).append(call.index)

    def conflicting(self, call: DrawnCall) -> set[int]:
        found: set[int] = set()
        for reads, parts, subtree in _readable(call.claims):
            for mode in (False,) if reads else (False, True):
                found.update((self._at_or_below if subtree else self._exactly).get((mode, parts), ()))
                for length in range(len(parts)):
                    found.update(self._with_all_below.get((mode, parts[:length]), ()))
        return found


def _readable(claims: list[Any]) -> Iterable[tuple[bool, tuple[str | int, ...], bool]]:
    """Give each claim that is one: whether it only reads, its resource, and whether it means all below it."""
    for claim in map(_claim, claims):
        if claim is not None and claim.slots is None:
            yield claim.mode == "read", claim.parts, claim.subtree


def _find_waits(batch: DrawnBatch) -> None:
    """Note for each call the earlier ones of its lane that held a conflicting ticket when it took its own."""
    claims: dict[int | None, _Claims] = {}
    stopping: dict[int | None, list[int]] = {}
    for _, call in sorted(batch.calls.items()):
        if call.ticket is None:
            continue
        before = claims.setdefault(call.lane, _Claims())
        found = before.conflicting(call)
        if not call.reads_only:
            found.update(stopping.get(call.lane, ()))
        for index in sorted(found):
            ended = batch.calls[index].ended
            if ended is None or ended > call.ticket:
                call.waits_for.append(index)
        before.add(call)
        if call.stops:
            stopping.setdefault(call.lane, []).append(call.index)


def _full_until(batch: DrawnBatch, last: int) -> list[tuple[int, int]]:
    """Give the stretches, as pairs of events, in which as many calls ran as the limit allows."""
    if batch.limit is None:
        return []
    changes: list[tuple[int, int]] = []
    for call in batch.calls.values():
        if call.started is not None:
            changes += [(call.started, 1), (last + 1 if call.ended is None else call.ended, -1)]
    found, running, since = [], 0, -1
    for seq, change in sorted(changes):
        if running < batch.limit <= running + change:
            since = seq
        if running >= batch.limit > running + change:
            found.append((since, seq))
        running += change
    return found


def _spans(call: DrawnCall, batch: DrawnBatch, last: int, full: list[tuple[int, int]]) -> list[Span]:
    spans: list[Span] = []

    def until(phase: str, end: int | None) -> None:
        start = spans[-1].end if spans else call.submitted
        if end is not None and end > start:
            spans.append(Span(phase, start, end))

    begun = _first(call.started, call.settled, last)
    until("lane", min(begun, _first(call.ticket, begun)))
    if call.ticket is not None:
        ends = [batch.calls[index].ended for index in call.waits_for]
        if ends:
            until("tickets", min(begun, max(last if end is None else end for end in ends)))
        if call.asked is not None:
            until("approval", min(begun, _first(call.answered, begun)))
        at = spans[-1].end if spans else call.submitted
        blocked = [end for start, end in full if start <= begun and end > at]
        if blocked:
            until("slot", min(begun, max(blocked)))
        until("soon", begun)
    if call.started is not None:
        until("runs", _first(call.settled, call.ended, last))
        until("ends", call.ended)
    if call.settled is not None:
        until("kept", _first(call.delivered, batch.left, last))
    return spans


def _first(*events: int | None) -> int:
    """Give the first that is known."""
    return next(event for event in events if event is not None)


# ---------------------------------------------------------------------- claims

#: So many claims of one call are shown and searched.
MOST_CLAIMS = 40


@attrs.frozen
class DrawnClaim:
    """One claim of a call."""

    #: "read" or "write".
    mode: str
    #: The path of the resource.
    parts: tuple[str | int, ...]
    #: Whether everything below the resource is meant too.
    subtree: bool
    #: Of how many places the call takes one; None: it takes the resource as such.
    slots: int | None = None

    def conflicts_with(self, other: DrawnClaim) -> bool:
        """Whether two calls with these claims must not overlap."""
        places = (self.slots is not None) + (other.slots is not None)
        if places == 2 or (places == 0 and self.mode == other.mode == "read"):
            return False
        short, long = sorted((self, other), key=lambda claim: len(claim.parts))
        if short.parts == long.parts:
            return True
        return short.subtree and long.parts[: len(short.parts)] == short.parts

    def __str__(self) -> str:
        if not self.parts:
            return f"{self.mode} {'everything' if self.subtree else 'the root'}"
        places = "" if self.slots is None else f" (one of {self.slots:,})"
        return f"{self.mode} {'/'.join(map(str, self.parts))}{'/**' if self.subtree else ''}{places}"


def claims_of(call: DrawnCall) -> list[DrawnClaim | None]:
    """Give the claims of a call, the first `MOST_CLAIMS`; None in place of one that is odd."""
    return [_claim(claim) for claim in call.claims[:MOST_CLAIMS]]


def claims_told(call: DrawnCall) -> list[str]:
    """Give the claims of a call in words: "write counter/x"."""
    return ["?" if claim is None else one_line(str(claim), 120) for claim in claims_of(call)]


def held_back(mine: list[DrawnClaim | None], theirs: list[DrawnClaim | None]) -> tuple[int, int] | None:
    """Give the places of the first two claims that conflict; None when no two do."""
    for place, one in enumerate(mine):
        for other_place, other in enumerate(theirs):
            if one is not None and other is not None and one.conflicts_with(other):
                return place, other_place
    return None


def _claim(claim: Any) -> DrawnClaim | None:
    match claim:
        case [("read" | "write") as mode, [*parts], bool() as subtree, *rest] if all(
            isinstance(part, str | int) for part in parts
        ):
            match rest:
                case [] | [int()]:
                    return DrawnClaim(mode, tuple(parts), subtree, *rest)
    return None

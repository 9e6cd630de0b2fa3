"""A trace ordered by batch, lane and call: the form in which the laws read it.

Rules.  This module judges nothing.  An event of a batch that was never opened, or of a call that was never submitted,
still gets its place, so that a law can see it.  A batch id that is opened again begins another batch.

Limits.  Two batches with one id that are open at the same time look like one batch: give batches of different
runtimes different ids when they share a trace.
"""

from __future__ import annotations

import math
import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import attrs

from toolrt.events import (
    ApprovalAnswered,
    ApprovalAsked,
    BatchCancelled,
    BatchLeft,
    BatchOpened,
    BatchSealed,
    BatchStopped,
    CallCancelled,
    CallEnded,
    CallSettled,
    CallStarted,
    CallStartedAgain,
    CallSubmitted,
    ClaimsAwaited,
    ClaimsStale,
    EventRecord,
    FileRead,
    LaneMerged,
    LaneStarted,
    MergeDelivered,
    ModifierApplied,
    ModifiersRefused,
    MutationBegan,
    MutationEnded,
    ProgressDelivered,
    ProgressSent,
    ReaderAsked,
    ResultDelivered,
    ServicesHeard,
    ServicesTold,
    TicketTaken,
    ToolEffect,
)
from toolrt.model import EVERYTHING, Claim, Mode, Rate
from toolrt.trace import Trace, TraceEvent

#: Later than every event of a trace.
NEVER = 1 << 62

#: Events of a program that is a process: it crashes, and another one starts.  What stands between them is the first
#: one's unwinding: no process does that, and no law looks at it.
CRASHED, STARTED = "process.crashed", "process.started"

#: What a call of a sub-batch holds that claims nothing: calls of other sub-batches of its parent may run alone.
_PRESENT = Claim(("present",), Mode.READ)

#: The `tool.effect` by which a tool says that it goes on although it was asked to end.
SHIELD = "shield"

#: The `tool.effect` by which a tool says that its next act is to return, or to raise an error of its own.
RETURNS = "returns"

#: What only finished calls carry: the tool returned, raised, or ran out of time.
RETURNED = ("ok", "error")


class Breach(NamedTuple):
    """What a law of ours finds: the particulars of a `Violation`."""

    detail: str
    batch: str | None = None
    call: int | None = None
    seq: int | None = None


@attrs.define
class CallStory:
    """What happened to one call."""

    batch: BatchStory = attrs.field(repr=False)
    index: int
    submitted: TraceEvent | None = None
    ticket: TraceEvent | None = None
    #: That it took tickets for what its claims look at, before these were known.
    awaited: TraceEvent | None = None
    #: Where its claims turned out not to be those it holds.
    stale: list[TraceEvent] = attrs.field(factory=list)
    asked: TraceEvent | None = None
    #: When the approval check was asked for it once more.
    asked_again: TraceEvent | None = None
    answered: TraceEvent | None = None
    #: That it was cancelled alone.
    cancelled: TraceEvent | None = None
    started: TraceEvent | None = None
    ended: TraceEvent | None = None
    settled: list[TraceEvent] = attrs.field(factory=list)
    sent: list[TraceEvent] = attrs.field(factory=list)
    progress_delivered: list[TraceEvent] = attrs.field(factory=list)
    result_delivered: list[TraceEvent] = attrs.field(factory=list)
    #: Effects and file events the tool reported.
    touched: list[TraceEvent] = attrs.field(factory=list)
    #: Why its modifiers were refused: one of them set an old value.
    refused: TraceEvent | None = None
    #: When its tool ran again, because the call was stale and the tool is pure; `first_end`: when it had ended before.
    again: TraceEvent | None = None
    first_end: TraceEvent | None = None
    #: The sub-batches that its tool opened.
    sub_batches: list[BatchStory] = attrs.field(factory=list, repr=False)
    _claims: tuple[Claim, ...] | None = None

    def breach(self, detail: str, event: TraceEvent | None = None) -> Breach:
        """What a law finds of it, shown by an event."""
        return Breach(detail, self.batch.id, self.index, None if event is None else event.seq)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What its ticket holds; everything for a call that runs alone; nothing without a ticket."""
        if self._claims is None:
            if self.ticket is None:
                return ()
            if not self.shared:
                self._claims = (EVERYTHING,)
            else:
                self._claims = tuple(
                    Claim(tuple(parts), Mode(mode), subtree, *slots)
                    for name in ("claims", "after")
                    for mode, parts, subtree, *slots in self.ticket.fields.get(name, ())
                )
                if not self._claims and self.batch.parent is not None:
                    self._claims = (_PRESENT,)
        return self._claims

    @property
    def places(self) -> tuple[Claim, ...]:
        """The places of resources that it takes; none of one that it claims as such, too."""
        plain = [claim for claim in self.claims if claim.slots is None]
        return tuple(
            claim
            for claim in self.claims
            if claim.slots is not None and not any(claim.conflicts_with(one) for one in plain)
        )

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates that it claims."""
        told = None if self.ticket is None else self.ticket.fields.get("rates")
        return tuple(Rate(name, per_second=per_second) for name, per_second in told or ())

    @property
    def name(self) -> str:
        """The name of its tool."""
        return "" if self.submitted is None else str(self.submitted.fields["name"])

    def places_for(self, claim: Claim) -> int:
        """How many places of the claim's resource there are for it: one, where the call around it has one to lend."""
        parent = self.batch.parent
        lent = () if parent is None else parent.places
        return 1 if any(one.resource == claim.resource for one in lent) else claim.slots or 1

    @property
    def placed(self) -> TraceEvent | None:
        """The event that shows its place in the order of tickets."""
        return self.ticket if self.awaited is None else self.awaited

    @property
    def known(self) -> int:
        """The place in the trace from which on its claims are known, or it has ended without; NEVER: neither."""
        if self.ticket is not None:
            return self.ticket.seq
        return NEVER if self.ended is None else self.ended.seq

    @property
    def shared(self) -> bool:
        """Whether its lane may hold other calls."""
        return self.ticket is None or bool(self.ticket.fields.get("shared", True))

    @property
    def is_alone_everywhere(self) -> bool:
        """Whether nothing at all but the calls inside which it runs may overlap it: it may touch anything."""
        return self.ticket is not None and not self.shared and self.ticket.fields.get("touches") is None

    @property
    def may_exclude(self) -> bool:
        """Whether there are calls that must not overlap it, whatever they touch."""
        return not self.shared or EVERYTHING in self.claims

    def excludes(self, other: CallStory) -> bool:
        """Whether `other` must not overlap it: it is exclusive, or it claims everything and `other` something."""
        if self is other:
            return False
        return not self.shared or (EVERYTHING in self.claims and bool(other.claims))

    @property
    def stops(self) -> bool:
        """Whether its failure skips what follows."""
        return self.ticket is not None and bool(self.ticket.fields.get("stops", False))

    @property
    def reads_only(self) -> bool:
        """Whether it declared to have no effects."""
        return self.ticket is not None and bool(self.ticket.fields.get("reads_only", False))

    @property
    def lane(self) -> int | None:
        """The lane's index, or None for a call that has none."""
        placed = self.ticket or self.awaited
        return None if placed is None else placed.fields.get("lane")

    @property
    def runs(self) -> Iterator[tuple[int, int]]:
        """The places in the trace between which it holds a slot."""
        if self.started is None:
            return
        end = self.ended or self.batch.crashed
        ended = NEVER if end is None else end.seq
        if self.first_end is None:
            yield self.started.seq, ended
            return
        yield self.started.seq, self.first_end.seq
        if self.again is not None:
            yield self.again.seq, ended

    @property
    def before(self) -> CallStory | None:
        """The same call in the process that crashed; None: there was none."""
        earlier = self.batch.earlier
        return None if earlier is None else earlier.calls.get(self.index)

    @property
    def was_caught(self) -> bool:
        """Whether it had its tickets when the process before crashed, so that it may have been about to start."""
        return self.before is not None and self.before.ticket is not None

    @property
    def effects(self) -> list[TraceEvent]:
        """What it did to something outside of the batch."""
        return [
            event
            for event in self.touched
            if event.kind == MutationBegan.kind
            or (event.kind == ToolEffect.kind and event.fields["effect"] not in (RETURNS, SHIELD))
        ]

    @property
    def replayed(self) -> bool:
        """Whether a journal said how it ended, and its tool was not called."""
        return self.started is not None and bool(self.started.fields.get("replayed"))

    @property
    def is_cut(self) -> bool:
        """Whether it was cancelled alone, or interrupted by a crash."""
        return self.cancelled is not None or (self.was_caught and self.outcome == "interrupted")

    @property
    def over(self) -> TraceEvent | None:
        """When it was answered, or had ended and waited for earlier calls to be answered; None if neither."""
        known = [event for event in (*self.settled[:1], self.ended) if event is not None]
        return min(known, key=_seq_of, default=None)

    @property
    def outcome(self) -> str | None:
        """How it ended, after all; None when it did not."""
        return self.settled[-1].fields["outcome"] if self.settled else None

    @property
    def family(self) -> Iterator[CallStory]:
        """The call, those of its sub-batches, and so on."""
        yield self
        for batch in self.sub_batches:
            for call in batch.calls.values():
                yield from call.family

    def conflicts_with(self, earlier: CallStory) -> bool:
        """Whether it must wait for a call whose ticket is older.

        Besides the claims there is the control claim of the batch (RULE 11): a call that stops the batch holds
        WRITE on it, and every later one that has effects holds READ.
        """
        if self.batch is earlier.batch and self.batch.stops_from is not None:
            first = self.batch.stops_from
            mine = "write" if self.stops else None if self.reads_only or self.index < first else "read"
            theirs = "write" if earlier.stops else None if earlier.reads_only or earlier.index < first else "read"
            if mine and theirs and "write" in (mine, theirs):
                return True
        return any(a.conflicts_with(b) for a in self.claims for b in earlier.claims)


@attrs.define
class LaneStory:
    """What happened to one lane."""

    index: int
    started: TraceEvent | None = None
    merged: TraceEvent | None = None
    applied: list[TraceEvent] = attrs.field(factory=list)
    delivered: list[TraceEvent] = attrs.field(factory=list)
    #: The calls that took their tickets in it, and those `lane.started` named.
    calls: dict[int, None] = attrs.field(factory=dict)

    @property
    def shared(self) -> bool:
        """Whether it may hold more than one call."""
        return self.started is None or bool(self.started.fields.get("shared", True))


@attrs.define
class BatchStory:
    """What happened to one batch."""

    id: str
    opened: TraceEvent | None = None
    sealed: TraceEvent | None = None
    left: TraceEvent | None = None
    cancelled: TraceEvent | None = None
    stopped: list[TraceEvent] = attrs.field(factory=list)
    asks: list[TraceEvent] = attrs.field(factory=list)
    calls: dict[int, CallStory] = attrs.field(factory=dict)
    lanes: dict[int, LaneStory] = attrs.field(factory=dict)
    #: The last lane that began with each call.
    came_in: dict[int, LaneStory] = attrs.field(factory=dict, repr=False)
    #: What the reader was handed, in that order.
    delivered: list[TraceEvent] = attrs.field(factory=list)
    #: Everything that happened in it, in order.
    events: list[TraceEvent] = attrs.field(factory=list)
    #: When services were told what a lane changed, and when they had heard.
    hearings: list[tuple[int, int]] = attrs.field(factory=list)
    #: The lowest call that stops the batch, or None.
    stops_from: int | None = None
    #: The call inside which it runs; None for a batch that no tool opened.
    parent: CallStory | None = attrs.field(default=None, repr=False)
    #: That its process crashed, and the same batch in the process before, which did.
    crashed: TraceEvent | None = None
    earlier: BatchStory | None = attrs.field(default=None, repr=False)

    def breach(self, detail: str, event: TraceEvent | None = None) -> Breach:
        """What a law finds of it, and of no call alone, shown by an event."""
        return Breach(detail, self.id, None, None if event is None else event.seq)

    @property
    def owner(self) -> str | None:
        """Whose batch it is; None: it has no owner, or runs inside a tool."""
        return None if self.opened is None else self.opened.fields.get("owner")

    @property
    def root(self) -> BatchStory:
        """The outermost batch around it."""
        return self if self.parent is None else self.parent.batch.root

    @property
    def around(self) -> Iterator[CallStory]:
        """The calls inside which it runs, the innermost first."""
        if self.parent is not None:
            yield self.parent
            yield from self.parent.batch.around

    def call(self, index: int) -> CallStory:
        """The call of that index."""
        if index not in self.calls:
            self.calls[index] = CallStory(self, index)
        return self.calls[index]

    def lane(self, index: int) -> LaneStory:
        """The lane of that index."""
        if index not in self.lanes:
            self.lanes[index] = LaneStory(index)
        return self.lanes[index]

    def lane_of(self, index: int) -> int | None:
        """The lane that the call of that index is in, by its ticket or by the lane's own word."""
        if index not in self.calls:
            return None
        lane = self.calls[index].lane
        if lane is None:
            lane = next((lane.index for lane in self.lanes.values() if index in lane.calls), None)
        return lane

    @property
    def limit(self) -> int | None:
        """How many calls may run at once; None is any number."""
        return None if self.opened is None else self.opened.fields.get("limit")

    @property
    def shared_limits(self) -> Mapping[str, Any] | None:
        """The limits that it shares with other batches; None: it shares none."""
        return None if self.opened is None else self.opened.fields.get("limits")

    @property
    def gives_up(self) -> Sequence[str] | None:
        """The laws that its lane policy gives up; None: the policy declares nothing."""
        return None if self.opened is None else self.opened.fields.get("gives_up")

    @property
    def has_slot_policy(self) -> bool:
        """Whether a slot policy says which ready call goes next."""
        return self.opened is not None and self.opened.fields.get("slots") is not None

    @property
    def cancelled_at(self) -> int:
        """The place in the trace at which it was cancelled, or NEVER."""
        return NEVER if self.cancelled is None else self.cancelled.seq

    @property
    def cut_at(self) -> float:
        """From this call_index on calls may differ, because one was cut short, perhaps inside; else infinite.

        A crash cuts also what had been asked for and was not durable.
        """
        cut = [call.index for call in self.calls.values() if any(one.is_cut for one in call.family)]
        if self.earlier is not None and (self.earlier.sealed is None or len(self.calls) < len(self.earlier.calls)):
            cut.append(len(self.calls))
        return min(cut, default=math.inf)

    @property
    def is_cut(self) -> bool:
        """Whether it was cancelled, or one of its calls or of those of its sub-batches was."""
        return self.cancelled is not None or self.cut_at < math.inf

    @property
    def left_at(self) -> int:
        """The place in the trace at which it was over, or its process crashed; else NEVER."""
        over = self.left or self.crashed
        return NEVER if over is None else over.seq

    def stopped_by(self, index: int) -> TraceEvent | None:
        """The first stop that reaches the call of that index, or None."""
        return next((event for event in self.stopped if event.fields["by"] < index), None)

    def ask_before(self, seq: int) -> TraceEvent | None:
        """The last time before `seq` that the reader asked, or None."""
        at = bisect_left(self.asks, seq, key=_seq_of)
        return self.asks[at - 1] if at else None

    def outcomes(self) -> Iterator[tuple[CallStory, str]]:
        """Every call that has ended, with how it did."""
        for call in self.calls.values():
            if call.outcome is not None:
                yield call, call.outcome


def _seq_of(event: TraceEvent) -> int:
    return event.seq


class TraceStory:
    """One trace, by batch, lane and call."""

    def __init__(self, trace: Trace) -> None:
        #: The batches, in the order they were opened.
        self.batches: list[BatchStory] = []
        self.events: Sequence[TraceEvent] = trace.events
        if any(event.kind == CRASHED for event in trace.events):
            self.events = list(_of_processes(trace.events))
        #: Whether time is virtual: it moves only when nothing can run.  ``notes["time_moves_early"]`` says that it did
        #: not (``clock="explored"``); then no law checks the instant at which something happens.
        simulated = any(event.step is not None and event.step >= 0 for event in self.events[:1])
        self.virtual = simulated and not trace.notes.get("time_moves_early")
        self._open: dict[str, BatchStory] = {}
        self._crashed: TraceEvent | None = None
        for event in self.events:
            if "batch" in event.fields:
                self._add(event)
            elif event.kind == CRASHED:
                self._crashed = event
                for batch in self.batches:
                    batch.crashed = event if batch.left is None else None

    def _add(self, event: TraceEvent) -> None:
        name = event.fields["batch"]
        batch = self._open.get(name)
        if batch is None or (event.kind == BatchOpened.kind and batch.opened is not None):
            earlier = batch if batch is not None and batch.crashed is not None else None
            if batch is None and self._crashed is not None:
                earlier = BatchStory(name, crashed=self._crashed)  # it may have begun, and not been told of
            batch = self._open[name] = BatchStory(name, earlier=earlier)
            self.batches.append(batch)
        if event.kind == BatchOpened.kind:
            self._place_inside(batch, event)
        batch.events.append(event)
        handler = _BY_KIND.get(event.kind)
        if handler is not None:
            handler(batch, event)

    def _place_inside(self, batch: BatchStory, opened: TraceEvent) -> None:
        """A sub-batch names its parent as it is opened."""
        parent = opened.fields.get("parent")
        if parent is not None:
            name, index = parent
            around = self._open.get(name)
            if around is None:
                around = self._open[name] = BatchStory(name)
                self.batches.append(around)
            batch.parent = around.call(index)
            batch.parent.sub_batches.append(batch)

    @cached_property
    def parents(self) -> list[CallStory]:
        """The calls that opened sub-batches, in the order in which they opened their first."""
        found = [batch.parent for batch in self.batches if batch.parent is not None]
        return [call for at, call in enumerate(found) if not any(call is other for other in found[:at])]

    def levels(self, event: TraceEvent) -> Iterator[tuple[str, int]]:
        """The call that an event is of, and those around it, as batch and call: what it does they do."""
        name = str(event.fields["batch"])
        yield name, int(event.fields["call"])
        for call in self._open[name].around:
            yield call.batch.id, call.index

    @cached_property
    def instants(self) -> list[int]:
        """The places of the last events before time moves, and of the last event of all."""
        later = [*(event.time for event in self.events[1:]), math.inf]
        return [event.seq for event, time in zip(self.events, later, strict=True) if time > event.time]


def _of_processes(events: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    """What processes did: all but what stands between a crash and the start of the next one."""
    unwinds = False
    for event in events:
        unwinds = unwinds and event.kind != STARTED
        if not unwinds:
            yield event
        unwinds = unwinds or event.kind == CRASHED


def _cancelled(batch: BatchStory, event: TraceEvent) -> None:
    if batch.cancelled is None:
        batch.cancelled = event


def _ticket(batch: BatchStory, event: TraceEvent) -> None:
    call = batch.call(event.fields["call"])
    call.ticket = event
    batch.lane(event.fields["lane"]).calls[call.index] = None
    if call.stops and (batch.stops_from is None or call.index < batch.stops_from):
        batch.stops_from = call.index


def _awaited(batch: BatchStory, event: TraceEvent) -> None:
    call = batch.call(event.fields["call"])
    if call.awaited is None:
        call.awaited = event
    batch.lane(event.fields["lane"]).calls[call.index] = None


def _lane_started(batch: BatchStory, event: TraceEvent) -> None:
    lane = batch.lane(event.fields["lane"])
    lane.started = event
    for index in event.fields.get("calls", ()):
        lane.calls[index] = None
        # It may have come in a lane before, which was split where the claims of another call became known.
        before = batch.came_in.get(index)
        if before is not None and before is not lane:
            before.calls.pop(index, None)
        batch.came_in[index] = lane


def _lane_merged(batch: BatchStory, event: TraceEvent) -> None:
    lane = batch.lane(event.fields["lane"])
    lane.merged = event
    calls = {index: batch.call(index) for index in lane.calls}
    if any(call.awaited for call in calls.values()):
        # The lane may have been split where claims became known.  What has no ticket by now is behind it; after a
        # cancel that lane never begins, and no event says so.
        lane.calls = {index: None for index, call in calls.items() if call.placed is not None}


def _services_told(batch: BatchStory, event: TraceEvent) -> None:
    batch.hearings.append((event.seq, NEVER))


def _services_heard(batch: BatchStory, event: TraceEvent) -> None:
    batch.hearings[-1] = (batch.hearings[-1][0], event.seq)


def _ended(batch: BatchStory, event: TraceEvent) -> None:
    call = batch.call(event.fields["call"])
    if call.ended is not None:
        call.first_end = call.ended
    call.ended = event


def _asked(batch: BatchStory, event: TraceEvent) -> None:
    call = batch.call(event.fields["call"])
    if call.asked is not None:
        call.asked_again = event
    call.asked = event


_Handler = Callable[[BatchStory, TraceEvent], None]


def _of_batch(batch: BatchStory, event: TraceEvent) -> BatchStory:
    return batch


def _of_lane(batch: BatchStory, event: TraceEvent) -> LaneStory:
    return batch.lane(event.fields["lane"])


def _of_call(batch: BatchStory, event: TraceEvent) -> CallStory:
    return batch.call(event.fields["call"])


def _once(name: str, of: Callable[[BatchStory, TraceEvent], object] = _of_call) -> _Handler:
    """Keep an event that happens once, to a call or `of` something else, in the field `name` of its story."""

    def keep(batch: BatchStory, event: TraceEvent) -> None:
        setattr(of(batch, event), name, event)

    return keep


def _listed(
    name: str, of: Callable[[BatchStory, TraceEvent], object] = _of_call, *, delivered: bool = False
) -> _Handler:
    """Add an event that may happen often to the list `name` of its story."""

    def keep(batch: BatchStory, event: TraceEvent) -> None:
        getattr(of(batch, event), name).append(event)
        if delivered:
            batch.delivered.append(event)

    return keep


_HANDLERS: Mapping[type[EventRecord], _Handler] = {
    BatchOpened: _once("opened", _of_batch),
    BatchSealed: _once("sealed", _of_batch),
    BatchLeft: _once("left", _of_batch),
    BatchCancelled: _cancelled,
    BatchStopped: _listed("stopped", _of_batch),
    ReaderAsked: _listed("asks", _of_batch),
    TicketTaken: _ticket,
    ClaimsAwaited: _awaited,
    ClaimsStale: _listed("stale"),
    LaneStarted: _lane_started,
    LaneMerged: _lane_merged,
    ServicesTold: _services_told,
    ServicesHeard: _services_heard,
    ModifierApplied: _listed("applied", _of_lane),
    ModifiersRefused: _once("refused"),
    MergeDelivered: _listed("delivered", _of_lane, delivered=True),
    CallSubmitted: _once("submitted"),
    ApprovalAsked: _asked,
    ApprovalAnswered: _once("answered"),
    CallCancelled: _once("cancelled"),
    CallStarted: _once("started"),
    CallEnded: _ended,
    CallStartedAgain: _once("again"),
    CallSettled: _listed("settled"),
    ProgressSent: _listed("sent"),
    ProgressDelivered: _listed("progress_delivered", delivered=True),
    ResultDelivered: _listed("result_delivered", delivered=True),
    ToolEffect: _listed("touched"),
    FileRead: _listed("touched"),
    MutationBegan: _listed("touched"),
    MutationEnded: _listed("touched"),
}
#: By kind and not by record: a law also judges traces of other programs, whose events may lack fields.
_BY_KIND = {record.kind: handler for record, handler in _HANDLERS.items()}

#: The newest story: every law of one `check` looks at the same trace.
_last: tuple[weakref.ref[Trace], TraceStory] | None = None


def story_of(trace: Trace) -> TraceStory:
    """The story of `trace`; the newest one is remembered for as long as its trace lives."""
    global _last
    if _last is not None and _last[0]() is trace:
        return _last[1]

    def forget(reference: weakref.ref[Trace]) -> None:
        global _last
        if _last is not None and _last[0] is reference:
            _last = None

    story = TraceStory(trace)
    _last = weakref.ref(trace, forget), story
    return story

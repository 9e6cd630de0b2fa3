"""What an observer is told of one batch.

Rules.
    1. An observer is told what has happened, where it happened: ``batch.opened`` in the task that opened the batch,
       ``call.started`` and what a tool tells in the tool's own task or thread, ``wait.began`` for an approval in the
       task of the check.  So a context variable that an observer sets at ``call.started`` is the tool's.
    2. An observer decides nothing.  What it raises is counted, said once as a warning, and goes no further.
    3. Of what a tool is given and gives, types and sizes are told: no input, no content, no text of an error.  What a
       tool tells of its own accord (`CallTelemetry`) is told as it is, cut to a bound.
    4. What is begun is ended, once, and after all that began inside it.  Times never go back within a batch.
    5. One observer is told one thing at a time, whatever threads its runtimes and tools run in.

Theory.  Nothing here touches what a simulation watches (no primitive of Trio's, no cell, no claim), so an execution
that is observed has the same steps, accesses and schedule as one that is not; and nothing here asks whether it is
simulated, but for the zero of its clock.

Limits.  An observer must not block: a call waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import trio

from toolrt import events
from toolrt.events import EventRecord
from toolrt.model import WRITE, Diagnostics, DirectoryChanged, FileChanged, Observer, OutputChunk
from toolrt.order import CallRecord, CallState, Status
from toolrt.runtime._observer import Clock, Desk
from toolrt.runtime._tool_telemetry import HERE, CallTelemetry, name_of, text_of

__all__ = ["Teller"]

#: A model's id for a call is told up to so many characters.
_ID = 100
#: What a content is called, by its type.
_KINDS: Mapping[str, Any] = {
    "text": str,
    "bytes": (bytes, bytearray, memoryview),
    "mapping": Mapping,
    "list": (list, tuple),
}
#: Of the calls that one waits for, so many are named.
_BLOCKERS = 16


class _Told:
    """What was told of one call."""

    __slots__ = ("ended", "error", "joined", "settled", "spans", "started", "waits")

    def __init__(self) -> None:
        self.joined = self.started = self.settled = self.ended = False
        #: The waits that have begun and not ended.
        self.waits: dict[str, None] = {}
        #: The type of what its tool raised.
        self.error: str | None = None
        #: The spans that its tool has begun: name by number; None once it has ended.
        self.spans: list[str | None] = []


class Teller:
    """Tells an observer of one batch.

    Args:
        observer: who is told.
        desk: what is kept of it.
        batch_id: the batch.
        calls: its calls, by call_index: those so far, and those that come.
    """

    def __init__(self, observer: Observer, desk: Desk, batch_id: str, calls: Sequence[CallRecord]) -> None:
        self._observer = observer
        self._desk = desk
        self._batch_id = batch_id
        self._tracked = calls
        self._calls: dict[int, _Told] = {}
        # The lanes that have begun: True until they end.
        self._lanes: dict[int, bool] = {}
        self._over = False
        # Calls that became ready and have not got a slot yet; and whether one of the batch's own calls is giving back.
        self._ready: list[CallRecord] = []
        self._giving_back = False
        above = HERE.get()
        #: Inside which call the batch was opened, if the same observer is told of that.
        self._above = above if above is not None and above[0]._desk is desk else None
        self._clock: Clock = Clock() if self._above is None else self._above[0]._clock
        with desk.lock:
            desk.opened += 1
            self._number = desk.opened

    @trio.lowlevel.enable_ki_protection
    def _tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        desk = self._desk
        with desk.lock:
            told = {"time": self._clock.now(), "batch": self._batch_id, "number": self._number, **fields}
            try:
                self._observer.event(kind, told)
            except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
                # An exit, too: it comes up in the middle of the bookkeeping.  Ctrl-C itself waits.
                desk.failed(self._observer, kind, error)

    def tell(self, record: EventRecord) -> None:
        """Tell the observer what of `record` it may know, unless the batch is over.  Checkpoint: never."""
        if not self._over:
            _TOLD_BY[type(record)](self, record)

    def call(self, index: int) -> CallRecord:
        """The runtime's record of the call of that index."""
        return self._tracked[index]

    # The batch

    def opened(self, policy: str, limit: int | None) -> None:
        """The batch has been opened."""
        above = self._above
        parent = None
        if above is not None:
            parent = {"batch": above[0]._batch_id, "number": above[0]._number, "call": above[1]}
        self._tell("batch.opened", {"parent": parent, "policy": policy, "limit": limit})

    def cancelled(self, outside: bool) -> None:
        """A cancel was asked; why is the caller's own affair."""
        self._tell("batch.cancelled", {"outside": outside})

    def stopped(self, by: int) -> None:
        """A call has failed and stops the batch."""
        self._tell("batch.stopped", {"by": by})

    def left(self) -> None:
        """The batch is over."""
        outcomes: dict[str, int] = {}
        calls, self._tracked = self._tracked, ()
        for call in calls:
            if call.progress_count:
                counts = {"sent": call.progress_count, "dropped": call.progress_dropped}
                self._tell("progress.counted", {"call": call.call_index, **counts})
            if call.result is not None:
                word = call.result.outcome.value
                outcomes[word] = outcomes.get(word, 0) + 1
        self._tell("batch.ended", {"calls": len(calls), "outcomes": outcomes, "lanes": len(self._lanes)})
        self._over = True
        self._calls.clear()

    # Lanes

    def lane_began(self, lane: int, shared: bool, calls: int) -> None:
        """A lane's start state is known, and its calls have their tickets."""
        self._lanes[lane] = True
        self._tell("lane.began", {"lane": lane, "shared": shared, "calls": calls})

    def lane_ended(self, lane: int, applied: int, rejected: int) -> None:
        """A lane's calls have all ended, or will never begin, and its modifiers are merged."""
        self._tell("state.merged", {"lane": lane, "applied": applied, "rejected": rejected})
        if self._lanes.get(lane):
            self._lanes[lane] = False
            self._tell("lane.ended", {"lane": lane})

    # Calls

    def alone(self, call: CallRecord) -> None:
        """The call is that of a tool outside a batch: what it tells is all there is."""
        self._calls[call.call_index] = _Told()

    def submitted(self, call: CallRecord) -> None:
        """A call has its place in the batch."""
        self._of(call)

    def _of(self, call: CallRecord) -> _Told:
        told = self._calls.get(call.call_index)
        if told is None:
            told = self._calls[call.call_index] = _Told()
            # The name of a tool that is not there is what the model made up.
            tool = None if call.tool is None else call.tool.name
            call_id = call.call_id if isinstance(call.call_id, str) else ""
            self._tell("call.submitted", {"call": call.call_index, "call_id": call_id[:_ID], "tool": tool})
        return told

    def waits_for_lane(self, call: CallRecord) -> None:
        """The call's lane has to wait for those before it."""
        if call.status is Status.QUEUED:
            self._begin_wait(call, "lane", {})

    def joined(self, call: CallRecord) -> None:
        """The call's lane is open, and it has taken its tickets."""
        told = self._of(call)
        if told.settled or told.joined:
            return
        self._end_wait(call, told, "lane")
        told.joined = True
        writes = sum(claim.mode is WRITE for claim in call.claims)
        counts = {"reads": len(call.claims) - writes, "writes": writes}
        self._tell("call.joined", {"call": call.call_index, "lane": call.lane, "shared": call.safe, **counts})
        if not all(ticket.ready for ticket in call.tickets):
            self._begin_wait(call, "claims", {"blocked_by": _blockers(call)})

    def waits_for_approval(self, call: CallRecord) -> None:
        """The approval check takes its time; called in its task."""
        self._begin_wait(call, "approval", {})

    def answered(self, call: CallRecord, answer: str) -> None:
        """The approval check has answered ``allow``, ``deny`` or ``rewrite``."""
        told = self._of(call)
        self._end_wait(call, told, "approval")
        self._tell("approval.answered", {"call": call.call_index, "answer": answer})

    def granted(self, call: CallRecord) -> None:
        """A ticket of the call is first in line."""
        if all(ticket.ready for ticket in call.tickets):
            self._end_wait(call, self._of(call), "claims")

    def ready(self, call: CallRecord) -> None:
        """Nothing but a slot is missing."""
        self._ready.append(call)

    def slots(self) -> None:
        """The slots there are have been given away."""
        if self._giving_back or not self._ready:
            return
        ready, self._ready = self._ready, []
        for call in ready:
            if call.state is CallState.READY:
                self._begin_wait(call, "slot", {})

    def started(self, call: CallRecord, lane: int, thread: bool, timeout: float | None) -> None:
        """The tool's first step is about to run; called in its task."""
        told = self._of(call)
        for why in tuple(told.waits):
            self._end_wait(call, told, why)
        told.started = True
        HERE.set((self, call.call_index, None))
        fields = {"call": call.call_index, "lane": lane, "thread": thread, "timeout": timeout}
        self._tell("call.started", fields)

    def raised(self, call: CallRecord, error: BaseException) -> None:
        """The tool raised `error`; its result is about to be fixed."""
        self._of(call).error = type(error).__name__

    def settled(self, call: CallRecord) -> None:
        """The call's result is fixed, or replaced by a skip."""
        told = self._of(call)
        for why in tuple(told.waits):
            self._end_wait(call, told, why)
        told.settled = True
        result: Any = call.result
        content, size = _measured(result.content)
        fields = {"call": call.call_index, "outcome": result.outcome.value, "content": content, "size": size}
        fields |= {"error": told.error, "error_size": None if result.error is None else len(result.error)}
        self._tell("call.settled", fields | {"modifiers": len(call.modifiers)})

    def gives_back(self, call: CallRecord) -> None:
        """The call's execution is over, or will never be; it is about to give back what it holds."""
        told = self._of(call)
        if not told.joined:
            return
        for number in reversed(range(len(told.spans))):
            self.end_span(call.call_index, told, number, None, left_open=True)
        if not told.ended:
            told.ended = True
            self._tell("call.ended", {"call": call.call_index, "ran": told.started})
        self._giving_back = True

    def gave_back(self) -> None:
        """Whoever could start in its place has."""
        self._giving_back = False
        self.slots()

    def _begin_wait(self, call: CallRecord, why: str, fields: Mapping[str, Any]) -> None:
        told = self._of(call)
        if why not in told.waits and not told.settled:
            told.waits[why] = None
            self._tell("wait.began", {"call": call.call_index, "why": why, **fields})

    def _end_wait(self, call: CallRecord, told: _Told, why: str) -> None:
        if why in told.waits:
            del told.waits[why]
            self._tell("wait.ended", {"call": call.call_index, "why": why})

    # What tools tell

    def of_call(self, call: CallRecord) -> CallTelemetry:
        """What a tool is given to tell by."""
        return CallTelemetry(self, call.call_index)

    def emitted(self, call: CallRecord, event: object) -> None:
        """A tool has told of its work in words that programs understand."""
        try:
            kind, fields = _in_short(event)
        except Exception:  # its own fields are not what they must be
            kind, fields = "event.emitted", {"type": type(event).__name__}
        self._tell_of_tool(call.call_index, kind, fields)

    def service_failed(self, lane: int, service: str, error: BaseException) -> None:
        """A service that was told what a lane changed has raised."""
        self._tell("service.failed", {"lane": lane, "service": name_of(service), "error": type(error).__name__})

    def _tell_of_tool(self, call: int, kind: str, fields: Mapping[str, Any]) -> bool:
        with self._desk.lock:
            told = self._calls.get(call)
            if told is None or told.ended or self._over:
                return False
            self._tell(kind, {"call": call, **fields})
            return True

    def noted(self, call: int, name: str, fields: Mapping[str, Any]) -> None:
        """A tool tells that something happened."""
        self._tell_of_tool(call, "tool.event", {"span": self._innermost(call), "name": name, "fields": fields})

    def _innermost(self, call: int) -> int | None:
        """The number of the innermost block that the running code is in."""
        here = HERE.get()
        inside = here[2] if here is not None and here[0] is self and here[1] == call else None
        told = self._calls.get(call)
        return None if inside is None or told is None or told.spans[inside] is None else inside

    def begin_span(self, call: int, name: str, fields: Mapping[str, Any]) -> int | None:
        """Its number; None where nothing can be told any more."""
        with self._desk.lock:
            inside = self._innermost(call)
            told = self._calls.get(call)
            number = 0 if told is None else len(told.spans)
            if told is not None:
                told.spans.append(name)
            begun = {"span": number, "parent": inside, "name": name, "fields": fields}
            if not self._tell_of_tool(call, "span.began", begun):
                return None
            return number

    def end_span(self, call: int, told: _Told | None, number: int, error: str | None, left_open: bool = False) -> None:
        with self._desk.lock:
            told = self._calls.get(call) if told is None else told
            if told is None or told.spans[number] is None:
                return
            name, told.spans[number] = told.spans[number], None
            ended = {"span": number, "name": name, "error": error, "left_open": left_open}
            self._tell_of_tool(call, "span.ended", ended)


#: What an observer is told of, and by which method; each looks the method up when it is called.
_TOLD_BY: Mapping[type[EventRecord], Callable[[Teller, Any], object]] = {
    events.BatchOpened: lambda teller, one: teller.opened(one.policy, one.limit),
    events.BatchCancelled: lambda teller, one: teller.cancelled(one.outside),
    events.BatchStopped: lambda teller, one: teller.stopped(one.by),
    events.BatchLeft: lambda teller, one: teller.left(),
    events.LaneStarted: lambda teller, one: teller.lane_began(one.lane, one.shared, len(one.calls)),
    events.LaneMerged: lambda teller, one: teller.lane_ended(one.lane, len(one.applied), len(one.rejected)),
    events.LaneAwaited: lambda teller, one: teller.waits_for_lane(teller.call(one.call)),
    events.CallSubmitted: lambda teller, one: teller.submitted(teller.call(one.call)),
    events.ClaimsAwaited: lambda teller, one: teller.waits_for_lane(teller.call(one.call)),
    events.TicketTaken: lambda teller, one: teller.joined(teller.call(one.call)),
    events.TicketGranted: lambda teller, one: teller.granted(teller.call(one.call)),
    events.ApprovalAwaited: lambda teller, one: teller.waits_for_approval(teller.call(one.call)),
    events.ApprovalAnswered: lambda teller, one: teller.answered(teller.call(one.call), one.answer),
    events.CallReady: lambda teller, one: teller.ready(teller.call(one.call)),
    events.SlotsGiven: lambda teller, one: teller.slots(),
    events.CallStarted: lambda teller, one: teller.started(teller.call(one.call), one.lane, one.thread, one.timeout),
    events.CallFailed: lambda teller, one: teller.raised(teller.call(one.call), one.error),
    events.CallSettled: lambda teller, one: teller.settled(teller.call(one.call)),
    events.CallEnded: lambda teller, one: teller.gives_back(teller.call(one.call)),
    events.ReleaseBegan: lambda teller, one: teller.gives_back(teller.call(one.call)),
    events.ReleaseEnded: lambda teller, one: teller.gave_back(),
    events.ServiceFailed: lambda teller, one: teller.service_failed(one.lane, one.service, one.error),
}


def _blockers(call: CallRecord) -> list[int | str]:
    """Whose tickets are in the way, as `CallRecord.waits_for` names them."""
    return [one for one in call.waits_for if isinstance(one, int) or "#" in one][:_BLOCKERS]


def _measured(content: object) -> tuple[str | None, int | None]:
    """What a content is and how much of it there is: characters, bytes or members."""
    if content is None:
        return None, None
    try:
        for name, kinds in _KINDS.items():
            if isinstance(content, kinds):
                return name, len(content)
    except Exception:
        return type(content).__name__, None  # it is asked what it is, and may not know
    return type(content).__name__, None


def _in_short(event: object) -> tuple[str, dict[str, Any]]:
    """An event's kind, and its fields without any content."""
    if isinstance(event, FileChanged):
        target = None if event.target is None else text_of(event.target)
        where = {"path": text_of(event.path), "target": target, "directory": event.is_directory}
        return "file.changed", {**where, "change": event.change.value}
    if isinstance(event, DirectoryChanged):
        return "directory.changed", {"path": text_of(event.path)}
    if isinstance(event, OutputChunk):
        return "output.written", {"offset": event.offset, "size": len(event.text)}
    if isinstance(event, Diagnostics):
        return "diagnostics.found", {"path": text_of(event.path), "findings": len(event.findings)}
    return "event.emitted", {"type": type(event).__name__}

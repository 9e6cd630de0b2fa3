"""Telemetry of one batch: turns the records of its events into what the user's observer hears.

Rules.
    1. The observer hears an event in the task in which it happened: ``batch.opened`` in the task that opened the
       batch, ``call.started`` and a tool's own events in the tool's own task or thread, ``wait.began`` for an approval
       in the task of the check.  So a context variable that an observer sets at ``call.started`` is the tool's.
    2. An observer decides nothing.  An exception that it raises is counted, warned about once, and goes no further.
    3. The observer gets types and sizes of inputs and results: no input, no content, no text of an error.  A tool's
       own events (`CallTelemetry`) are passed on, cut to a bound; of a value that is neither a number nor a text the
       observer gets the type.  They never block a tool, never make it fail, and none comes once the call has ended.
    4. Every wait, lane, call and span that begins ends once, after all that began inside it.  Times never go back
       within a batch.
    5. An observer handles one event at a time, whatever threads its runtimes and tools run in.

Theory.  Telemetry touches nothing that a simulation watches (no primitive of Trio's, no cell, no claim), so an
execution has the same steps, accesses and schedule with an observer and without.  Only the zero of its clock depends
on whether it runs in a simulation.

Limits.  An observer must not block: a call waits for it.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import trio

from toolrt import events
from toolrt.events import EventRecord
from toolrt.model import WRITE, Diagnostics, DirectoryChanged, FileChanged, Observer, OutputChunk
from toolrt.order import CallRecord, CallState, Status
from toolrt.runtime._observer import Clock, ObserverState

#: Bounds of what a tool sends: characters of a name or key, characters of a text, number of fields.
_NAME, _TEXT, _FIELDS = 100, 500, 32

#: The call whose tool the running code belongs to: its batch's telemetry, its call_index, its innermost open span.
_CURRENT: contextvars.ContextVar[tuple[BatchTelemetry, int, int | None] | None] = contextvars.ContextVar(
    "toolrt telemetry", default=None
)
#: A model's id for a call is cut to so many characters.
_ID = 100
#: The word for a content of each type.
_KINDS: Mapping[str, Any] = {
    "text": str,
    "bytes": (bytes, bytearray, memoryview),
    "mapping": Mapping,
    "list": (list, tuple),
}
#: An event names at most so many of the calls that a call waits for.
_BLOCKERS = 16


class _ReportedCall:
    """What the observer has heard of one call."""

    __slots__ = ("ended", "error", "joined", "settled", "spans", "started", "waits")

    def __init__(self) -> None:
        self.joined = self.started = self.settled = self.ended = False
        #: The waits that have begun and not ended.
        self.waits: dict[str, None] = {}
        #: The type of the exception that its tool raised.
        self.error: str | None = None
        #: The spans that its tool has begun: name by number; None once it has ended.
        self.spans: list[str | None] = []


class BatchTelemetry:
    """Listens to the events of one batch and reports them to the user's observer.

    Args:
        observer: the user's observer.
        shared: the state that all batches of this observer share.
        batch_id: the batch.
        calls: its calls, by call_index: the live sequence, which grows as calls are submitted.
    """

    def __init__(self, observer: Observer, shared: ObserverState, batch_id: str, calls: Sequence[CallRecord]) -> None:
        self._observer = observer
        self._shared = shared
        self._batch_id = batch_id
        self._tracked = calls
        self._calls: dict[int, _ReportedCall] = {}
        # The lanes that have begun: True until they end.
        self._lanes: dict[int, bool] = {}
        self._over = False
        # Calls that became ready and have not got a slot yet; and whether one of the batch's own calls is giving back.
        self._ready: list[CallRecord] = []
        self._giving_back = False
        above = _CURRENT.get()
        #: The call inside which the batch was opened, if the same observer hears of that call.
        self._above = above if above is not None and above[0]._shared is shared else None
        self._clock: Clock = Clock() if self._above is None else self._above[0]._clock
        with shared.lock:
            shared.opened += 1
            self._number = shared.opened

    @trio.lowlevel.enable_ki_protection
    def _tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        shared = self._shared
        with shared.lock:
            fields = {"time": self._clock.now(), "batch": self._batch_id, "number": self._number, **fields}
            try:
                self._observer.event(kind, fields)
            except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
                # An exit, too: it comes up in the middle of the bookkeeping.  Ctrl-C itself waits.
                shared.failed(self._observer, kind, error)

    def tell(self, record: EventRecord) -> None:
        """Report `record` to the observer, without contents, unless the batch is over.  Checkpoint: never."""
        if not self._over:
            _REPORTS[type(record)](self, record)

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
        """A cancel was asked; the observer does not hear the reason, which is the caller's text."""
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
        """The call is that of a tool outside a batch: the observer hears only the tool's own events."""
        self._calls[call.call_index] = _ReportedCall()

    def submitted(self, call: CallRecord) -> None:
        """A call has its place in the batch."""
        self._of(call)

    def _of(self, call: CallRecord) -> _ReportedCall:
        reported = self._calls.get(call.call_index)
        if reported is None:
            reported = self._calls[call.call_index] = _ReportedCall()
            # The model made up the name of a tool that does not exist, so the name is content.
            tool = None if call.tool is None else call.tool.name
            call_id = call.call_id if isinstance(call.call_id, str) else ""
            self._tell("call.submitted", {"call": call.call_index, "call_id": call_id[:_ID], "tool": tool})
        return reported

    def waits_for_lane(self, call: CallRecord) -> None:
        """The call's lane has to wait for those before it."""
        if call.status is Status.QUEUED:
            self._begin_wait(call, "lane", {})

    def joined(self, call: CallRecord) -> None:
        """The call's lane is open, and it has taken its tickets."""
        reported = self._of(call)
        if reported.settled or reported.joined:
            return
        self._end_wait(call, reported, "lane")
        reported.joined = True
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
        reported = self._of(call)
        self._end_wait(call, reported, "approval")
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
        reported = self._of(call)
        for why in tuple(reported.waits):
            self._end_wait(call, reported, why)
        reported.started = True
        _CURRENT.set((self, call.call_index, None))
        fields = {"call": call.call_index, "lane": lane, "thread": thread, "timeout": timeout}
        self._tell("call.started", fields)

    def raised(self, call: CallRecord, error: BaseException) -> None:
        """The tool raised `error`; its result is about to be fixed."""
        self._of(call).error = type(error).__name__

    def settled(self, call: CallRecord) -> None:
        """The call's result is fixed, or replaced by a skip."""
        reported = self._of(call)
        for why in tuple(reported.waits):
            self._end_wait(call, reported, why)
        reported.settled = True
        result: Any = call.result
        content, size = _measured(result.content)
        fields = {"call": call.call_index, "outcome": result.outcome.value, "content": content, "size": size}
        fields |= {"error": reported.error, "error_size": None if result.error is None else len(result.error)}
        self._tell("call.settled", fields | {"modifiers": len(call.modifiers)})

    def release_began(self, call: CallRecord) -> None:
        """The call's execution is over, or will never be; it is about to give back what it holds."""
        reported = self._of(call)
        if not reported.joined:
            return
        for number in reversed(range(len(reported.spans))):
            self.end_span(call.call_index, reported, number, None, left_open=True)
        if not reported.ended:
            reported.ended = True
            self._tell("call.ended", {"call": call.call_index, "ran": reported.started})
        self._giving_back = True

    def release_ended(self) -> None:
        """The calls that could start in its place have started."""
        self._giving_back = False
        self.slots()

    def _begin_wait(self, call: CallRecord, why: str, fields: Mapping[str, Any]) -> None:
        reported = self._of(call)
        if why not in reported.waits and not reported.settled:
            reported.waits[why] = None
            self._tell("wait.began", {"call": call.call_index, "why": why, **fields})

    def _end_wait(self, call: CallRecord, reported: _ReportedCall, why: str) -> None:
        if why in reported.waits:
            del reported.waits[why]
            self._tell("wait.ended", {"call": call.call_index, "why": why})

    # Events of tools

    def of_call(self, call: CallRecord) -> CallTelemetry:
        """The `CallTelemetry` that the tool of `call` gets."""
        return CallTelemetry(self, call.call_index)

    def emitted(self, call: CallRecord, event: object) -> None:
        """A tool has emitted one of toolrt's typed events."""
        try:
            kind, fields = _in_short(event)
        except Exception:  # its own fields are not what they must be
            kind, fields = "event.emitted", {"type": type(event).__name__}
        self._tell_of_tool(call.call_index, kind, fields)

    def service_failed(self, lane: int, service: str, error: BaseException) -> None:
        """A service (`Services.after_lane`) has raised."""
        self._tell("service.failed", {"lane": lane, "service": _name_of(service), "error": type(error).__name__})

    def _tell_of_tool(self, call: int, kind: str, fields: Mapping[str, Any]) -> bool:
        with self._shared.lock:
            reported = self._calls.get(call)
            if reported is None or reported.ended or self._over:
                return False
            self._tell(kind, {"call": call, **fields})
            return True

    def noted(self, call: int, name: str, fields: Mapping[str, Any]) -> None:
        """A tool has reported an event of its own."""
        self._tell_of_tool(call, "tool.event", {"span": self._innermost(call), "name": name, "fields": fields})

    def _innermost(self, call: int) -> int | None:
        """The number of the innermost block that the running code is in."""
        current = _CURRENT.get()
        inside = current[2] if current is not None and current[0] is self and current[1] == call else None
        reported = self._calls.get(call)
        return None if inside is None or reported is None or reported.spans[inside] is None else inside

    def begin_span(self, call: int, name: str, fields: Mapping[str, Any]) -> int | None:
        """Begin a span and give its number; None when the call has ended."""
        with self._shared.lock:
            inside = self._innermost(call)
            reported = self._calls.get(call)
            number = 0 if reported is None else len(reported.spans)
            if reported is not None:
                reported.spans.append(name)
            begun = {"span": number, "parent": inside, "name": name, "fields": fields}
            if not self._tell_of_tool(call, "span.began", begun):
                return None
            return number

    def end_span(
        self, call: int, reported: _ReportedCall | None, number: int, error: str | None, left_open: bool = False
    ) -> None:
        with self._shared.lock:
            reported = self._calls.get(call) if reported is None else reported
            if reported is None or reported.spans[number] is None:
                return
            name, reported.spans[number] = reported.spans[number], None
            ended = {"span": number, "name": name, "error": error, "left_open": left_open}
            self._tell_of_tool(call, "span.ended", ended)


#: The method that reports each kind of record; a lambda looks the method up when it is called.
_REPORTS: Mapping[type[EventRecord], Callable[[BatchTelemetry, Any], object]] = {
    events.BatchOpened: lambda batch, one: batch.opened(one.policy, one.limit),
    events.BatchCancelled: lambda batch, one: batch.cancelled(one.outside),
    events.BatchStopped: lambda batch, one: batch.stopped(one.by),
    events.BatchLeft: lambda batch, one: batch.left(),
    events.LaneStarted: lambda batch, one: batch.lane_began(one.lane, one.shared, len(one.calls)),
    events.LaneMerged: lambda batch, one: batch.lane_ended(one.lane, len(one.applied), len(one.rejected)),
    events.LaneAwaited: lambda batch, one: batch.waits_for_lane(batch.call(one.call)),
    events.CallSubmitted: lambda batch, one: batch.submitted(batch.call(one.call)),
    events.ClaimsAwaited: lambda batch, one: batch.waits_for_lane(batch.call(one.call)),
    events.TicketTaken: lambda batch, one: batch.joined(batch.call(one.call)),
    events.TicketGranted: lambda batch, one: batch.granted(batch.call(one.call)),
    events.ApprovalAwaited: lambda batch, one: batch.waits_for_approval(batch.call(one.call)),
    events.ApprovalAnswered: lambda batch, one: batch.answered(batch.call(one.call), one.answer),
    events.CallReady: lambda batch, one: batch.ready(batch.call(one.call)),
    events.SlotsGiven: lambda batch, one: batch.slots(),
    events.CallStarted: lambda batch, one: batch.started(batch.call(one.call), one.lane, one.thread, one.timeout),
    events.CallFailed: lambda batch, one: batch.raised(batch.call(one.call), one.error),
    events.CallSettled: lambda batch, one: batch.settled(batch.call(one.call)),
    events.CallEnded: lambda batch, one: batch.release_began(batch.call(one.call)),
    events.ReleaseBegan: lambda batch, one: batch.release_began(batch.call(one.call)),
    events.ReleaseEnded: lambda batch, one: batch.release_ended(),
    events.ServiceFailed: lambda batch, one: batch.service_failed(one.lane, one.service, one.error),
}


def _blockers(call: CallRecord) -> list[int | str]:
    """The calls whose tickets are in the way, as `CallRecord.waits_for` names them."""
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
        return type(content).__name__, None  # a content's own __class__ or __len__ may raise
    return type(content).__name__, None


def _in_short(event: object) -> tuple[str, dict[str, Any]]:
    """An event's kind, and its fields without any content."""
    if isinstance(event, FileChanged):
        target = None if event.target is None else _text_of(event.target)
        where = {"path": _text_of(event.path), "target": target, "directory": event.is_directory}
        return "file.changed", {**where, "change": event.change.value}
    if isinstance(event, DirectoryChanged):
        return "directory.changed", {"path": _text_of(event.path)}
    if isinstance(event, OutputChunk):
        return "output.written", {"offset": event.offset, "size": len(event.text)}
    if isinstance(event, Diagnostics):
        return "diagnostics.found", {"path": _text_of(event.path), "findings": len(event.findings)}
    return "event.emitted", {"type": type(event).__name__}


class CallTelemetry:
    """Sends a tool's own events and spans to the observer: ``ctx.telemetry``.

    It never blocks the tool, never makes it fail and sends nothing once the call has ended.  The worker thread of a
    sync tool may use it.
    """

    __slots__ = ("_batch", "_call")

    def __init__(self, batch: BatchTelemetry, call: int) -> None:
        self._batch = batch
        self._call = call

    def event(self, kind: str, fields: Mapping[str, Any] | None = None) -> None:
        """Tell the observer that `kind` happened.

        Args:
            kind: what happened, in a few words of your own that do not change: ``"cache.missed"``.
            fields: the particulars: numbers, true or false, short texts.  Of anything else the observer gets the type.

        Checkpoint: never.
        """
        self._batch.noted(self._call, _name_of(kind), _shown(fields))

    def span(self, name: str, fields: Mapping[str, Any] | None = None) -> contextlib.AbstractContextManager[None]:
        """A block of work with a beginning and an end; blocks may stand in each other.

        Leave it in the task and thread that entered it.  One that is open when its call ends, ends with it.

        Example::

            with ctx.telemetry.span("parse", {"files": len(files)}):
                ...

        Checkpoint: never.
        """
        return _Span(self._batch, self._call, _name_of(name), _shown(fields))


class _Span:
    """One block of a tool's work."""

    __slots__ = ("_batch", "_call", "_fields", "_name", "_number", "_token")

    def __init__(self, batch: BatchTelemetry, call: int, name: str, fields: Mapping[str, Any]) -> None:
        self._batch = batch
        self._call = call
        self._name = name
        self._fields = fields
        self._number: int | None = None
        self._token: contextvars.Token[Any] | None = None

    def __enter__(self) -> None:
        self._number = self._batch.begin_span(self._call, self._name, self._fields)
        if self._number is not None:
            self._token = _CURRENT.set((self._batch, self._call, self._number))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            with contextlib.suppress(ValueError):  # it was left where it was not entered
                _CURRENT.reset(self._token)
            self._token = None
        if self._number is not None:
            raised = None if kind is None else kind.__name__
            self._batch.end_span(self._call, None, self._number, raised)


def _name_of(name: object) -> str:
    return name[:_NAME] if type(name) is str else type(name).__name__


def _shown(fields: object) -> dict[str, Any]:
    """A tool's own fields, bounded, as values that an observer may keep."""
    if not isinstance(fields, Mapping):
        return {} if fields is None else {"fields": type(fields).__name__}
    shown: dict[str, Any] = {}
    try:
        for key, value in fields.items():
            if len(shown) == _FIELDS:
                break
            shown[_name_of(key)] = value if value is None or type(value) in (bool, int, float) else _text_of(value)
    except Exception as error:
        shown["fields"] = type(error).__name__
    return shown


def _text_of(value: object) -> str:
    return value[:_TEXT] if type(value) is str else type(value).__name__

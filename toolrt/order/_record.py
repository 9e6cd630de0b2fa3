"""The runtime's records of one call and of one lane, and the read-only view of a call for users.

Rules.  Only `happen` changes a record's state, and it asks the table first.  What is kept beside the state is what an
instruction needs to be carried out: claims, tickets, a result, what was read and changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, overload

import attrs

from toolrt._plain import counted
from toolrt.model import (
    Arguments,
    Claim,
    FileChanged,
    Modifier,
    Outcome,
    Progress,
    Rate,
    ResultReady,
    State,
    StateMerged,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
    Withheld,
    reads_only,
)
from toolrt.model._watched_state import Part, StateReads, bare_state, parts_json
from toolrt.order._lanes import StateKeys
from toolrt.order._slots import Slots
from toolrt.order._states import CallState, Holds, LaneState, Stateful, Status
from toolrt.order._tickets import ClaimTable, Ticket

#: How many progress messages of a batch wait for the reader at most; the newest are dropped and counted.
PROGRESS_BOUND = 1000

#: What is found out of a call's claims: them; what its tool says, which is less of a call that runs alone and so claims
#: everything; and why it may not have them, or None.
FoundClaims = tuple[tuple[Claim, ...], tuple[Claim, ...], str | None]

_WAITS = (CallState.UNAPPROVED, CallState.WAITING, CallState.READY, CallState.ASKING)


class LanePlace:
    """A lane's place among the batch's lanes; it moves when a lane before it has to be split."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        #: From 0.
        self.index = index


class Siblings(list["CallRecord"]):
    """All calls of one batch, by call_index: a list that knows the batch's limit.

    Args:
        iterable: the first of them; none by default.
    """

    #: How many of them run at once.
    limit: float = math.inf
    #: The limits that they share with those of other batches; None: they share none.
    limits: Any = None
    #: Whose batch it is; None: it has no owner.
    owner: Hashable | None = None
    #: Makes the batch durable; None: nothing does.  It belongs to the shell.
    journal: Any = None
    #: Cancels one of them: see `toolrt.Batch.cancel_call`.
    cancel: Callable[[int, str], bool]

    def ended(self) -> Siblings:
        """What calls keep of the batch when it is over: all but each other; a cancel comes too late for them."""
        kept = Siblings()
        kept.limit, kept.owner, kept.journal = self.limit, self.owner, self.journal
        kept.cancel = lambda call_index, reason: False
        return kept


@attrs.frozen(eq=False)
class AppliedModifier:
    """What one modifier did."""

    #: Why it changed nothing; None: it was applied.
    refused: str | None
    #: The parts that it set.
    sets: frozenset[Part]
    #: What it read of the state that it was given.
    reads: StateReads
    #: The state that it left.
    after: State
    #: The Ctrl-C or exit that came up in it; None: none did.
    exit_asked: BaseException | None = None

    def sets_json(self) -> list[list[Any]]:
        """The parts that it set, as JSON: kind, name, and the value that is there now, if one is."""
        left = bare_state(self.after).to_json()
        values: Mapping[str, Mapping[str, Any]] = {"value": left["values"], "field": left["fields"]}
        return [
            [kind, name, values[kind][name]] if name in values[kind] else [kind, name]
            for kind, name in parts_json(self.sets)
        ]


@attrs.frozen(eq=False)
class MergedCall:
    """What the modifiers of one call did to one state."""

    #: What the first of them was given.
    before: State
    #: What the last of them left.
    after: State
    #: One for each, in order.
    modifiers: tuple[AppliedModifier, ...]

    @property
    def exit_asked(self) -> BaseException | None:
        """The first Ctrl-C or exit that came up in its modifiers; None: none did."""
        return next((one.exit_asked for one in self.modifiers if one.exit_asked is not None), None)


class CallRecord(Stateful):
    """One call of a batch: what the model asked for, where it is, and what it has given so far."""

    # Most calls never touch most of these, and a batch makes one record for each call: so the defaults stand
    # on the class.  None of them is ever changed in place.

    state: CallState = CallState.PLACED
    #: Whether it may overlap its neighbours.
    safe: bool = False
    #: Whether its result was looked at before it was handed to a reader.
    is_seen: bool = False
    tool: Tool | None = None
    #: The call whose tool opened the batch, if one did.
    parent: CallRecord | None = None
    #: Of a call of a sub-batch: the call of the outermost batch inside which it runs.
    outermost: CallRecord | None = None
    #: The batches that its tool has open, sub-batches and others.
    opened: tuple[Any, ...] = ()
    #: What it lends to the sub-batches that its tool opens, once it has opened one.
    inside: Any = None
    arguments: Arguments | None = None
    #: Where its lane is; None for calls that belong to none.
    place: LanePlace | None = None
    #: What it claims, once its lane's start state is known.
    claims: tuple[Claim, ...] = ()
    #: What these look at, as its tool declares.
    after: tuple[Claim, ...] = ()
    #: What was found out of its claims as its lane began, while the lane stands still before it; None: nothing.
    asked: FoundClaims | None = None
    #: Whether its claims are to be asked for again before it starts: it waited, or its input is another one.
    asks_again: bool = False
    #: Whether its approval gave it another input.
    rewritten: bool = False
    #: What its approval left of its claims; None is all of them.
    allowed: tuple[Claim, ...] | None = None
    #: What its approval says that it has to leave out of that; None: nothing.
    withheld: Withheld | None = None
    #: Its places in the order, while it holds them.
    tickets: tuple[Ticket, ...] = ()
    #: How many of them are not granted yet.
    missing: int = 0
    #: What it takes tickets for outside its sub-batch when those are all granted, by table.
    outside: tuple[tuple[ClaimTable, tuple[Claim, ...]], ...] = ()
    #: Whether a journal has its answer, so that it starts nothing and waits for no rate.
    is_known: bool = False
    #: The rates that it waits for.
    rates: tuple[Rate, ...] = ()
    #: How it ends if it may not have what it claims: ERROR where another call disagrees with it on a capacity.
    refused_as: Outcome = Outcome.INVALID
    #: Whether its failure stops the batch.
    stops: bool = False
    #: How many characters its result may have; None is any number.
    max_result: int | None = None
    #: The scope it runs in, if something may have to cancel it alone.  It belongs to the shell.
    scope: Any = None
    #: Why it was cancelled alone; None: it was not.
    cancel_reason: str | None = None
    #: Whether its tool's first line was reached; only the bridge to asyncio, which waits for its loop, says otherwise.
    has_begun: bool = True
    #: Tells that it has started, where that line of asyncio's is waited for; given False, that it never will.  None: it
    #: was told, or nobody listens.
    tell_start: Callable[..., None] | None = None
    result: ToolResult | None = None
    #: Modifiers of a call that returned, until its lane has ended.
    modifiers: tuple[Modifier, ...] = ()
    #: What it read of its ``ctx.state``; None: it was given none.
    reads: StateReads | None = None
    #: What its tool returned, while earlier calls of its lane may still make that stale.
    undecided: ToolOutput | None = None
    #: The state that it is shown when it runs again; None: that of its lane's start.
    saw: State | None = None
    #: The error that it gets if it cannot run again.
    stale: str = ""
    #: What its modifiers did, once all earlier calls of its lane have their results.
    merged: MergedCall | None = None
    #: Progress not yet handed to the reader.
    pending_progress: list[Any] | tuple[Any, ...] = ()
    #: How many progress messages it has sent.
    progress_count: int = 0
    #: How far the reader has got: the number after that of the last one handed over.
    progress_delivered: int = 0
    #: How many of them no reader will see.
    progress_dropped: int = 0
    #: The files that it said it changed, in that order; None: it said nothing of files.
    changes: list[FileChanged] | None = None
    #: Hears its progress and its result at once; None: only the batch's reader does.
    listener: Callable[[Progress | ResultReady], object] | None = None
    #: Seconds on Trio's clock; None: not yet.
    started_at: float | None = None
    ended_at: float | None = None

    def __init__(
        self, call: ToolCall, call_index: int, batch_id: str, submitted_at: float, siblings: Siblings | None = None
    ) -> None:
        self.call = call
        #: All calls of its batch.
        self.siblings = Siblings() if siblings is None else siblings
        self.batch_id = batch_id
        #: Its place in the batch, from 0.
        self.call_index = call_index
        #: What the tool is given: the model's input, or the approval's rewrite of it.
        self.input: Any = call.input
        self.submitted_at = submitted_at

    @property
    def call_id(self) -> str:
        """The id the model gave it."""
        return self.call.call_id

    @property
    def name(self) -> str:
        """The tool's name, as the model gave it."""
        return self.call.name

    @property
    def status(self) -> Status:
        """Where it is, as a user sees it."""
        return self.state.status

    @property
    def reads_only(self) -> bool:
        """Whether it is declared to have no effects."""
        return reads_only(self.claims)

    @property
    def lane(self) -> int | None:
        """The index of its lane; None for calls that belong to none."""
        return None if self.place is None else self.place.index

    @property
    def admitted(self) -> bool:
        """Whether it holds tickets, or a slot."""
        return self.state.holds is not Holds.NOTHING

    @property
    def has_started(self) -> bool:
        """Whether its tool's first step has run."""
        return self.started_at is not None

    @property
    def waits_for(self) -> list[Any]:
        """What keeps a queued call from starting: see `TrackedCall.waits_for`."""
        if self.state is CallState.PLACED:
            return ["lane"]
        if self.state not in _WAITS:
            return []  # a call that was spawned is about to take its first step
        found: list[Any] = []
        for ticket in self.tickets:
            for owner in ticket.waits_for():
                mine = owner.siblings is self.siblings
                found.append(owner.call_index if mine else f"{owner.batch_id}#{owner.call_index}")
        if self.state is CallState.UNAPPROVED:
            found.append("approval")
        return list(dict.fromkeys(found)) or ["slot"]

    def story(self) -> str:
        """The call in one line, for errors."""
        outcome = "" if self.result is None else f", {self.result.outcome.value}"
        return f"call {self.call_index} ({self.name}, id {self.call_id!r}): {self.status.value}{outcome}"

    def __repr__(self) -> str:
        return f"<{self.story()}>"


class Decisions:
    """How far the results of a lane are fixed, in call order.

    A call that returned modifiers waits for the calls before it: only then is it known whether it is stale.

    Args:
        state: what the lane started from.
    """

    __slots__ = ("fixed", "state", "underway", "waiting")

    def __init__(self, state: State) -> None:
        #: How many calls wait.
        self.waiting = 0
        #: How many calls, from the first on, have their results.
        self.fixed = 0
        #: What the modifiers of those leave.
        self.state = state
        #: Whether one is being decided on now.
        self.underway = False


class LaneRecord(Stateful):
    """One lane of a batch, from the submission of its first call to its merge.

    Args:
        place: where it is among the batch's lanes.
        shared: whether its calls may overlap.
    """

    # As for calls: an exclusive call has a lane to itself, so the defaults stand on the class.

    state: LaneState = LaneState.GATHERING
    #: The state its calls see, once it has started; once it has ended, the one that they leave.
    start: State
    #: The same state while its calls run; nothing notes what is read of it.
    bare: State
    #: How many of its calls hold tickets or a slot.
    unfinished: int = 0
    #: The table of the control claim, once a call that stops the batch has come.
    control: ClaimTable | None = None
    #: Whether a thread that cannot be stopped outlives its result.
    outlived: bool = False
    #: How many slots its calls hold, those of their sub-batches included; in a sub-batch, how many calls run.
    running: int = 0
    #: Its slots, once one of its calls has lent its own.
    slots: Slots | None = None
    #: Which of its calls have their results, once one has returned modifiers.
    decisions: Decisions | None = None
    #: The call at which it stands still, whose claims are not known yet.
    stands_at: CallRecord | None = None
    #: How many of its calls have been let in, or refused.
    entered: int = 0
    #: Those that claim a whole subtree for writing, as a call that moves or deletes something does.
    wide: tuple[CallRecord, ...] = ()
    keys: StateKeys | None = None
    #: In a sub-batch: the modifiers that were applied as it ended.
    applied: Sequence[Modifier] = ()
    #: What its end has to tell, if some of its calls returned modifiers.
    told: StateMerged | None = None

    def __init__(self, place: LanePlace, shared: bool) -> None:
        self.place = place
        #: Whether its calls may overlap; an exclusive call has a lane to itself.
        self.shared = shared
        if not shared:
            self.state = LaneState.FULL
        self.calls: list[CallRecord] = []
        #: Calls that returned modifiers, in the order they did.
        self.modified: list[CallRecord] = []
        #: Calls that only lack a slot: a heap of their call indices.
        self.ready: list[int] = []
        #: Of them those that were found to wait for a rate or a shared limit, by tool and rates: heaps, too.  One that
        #: has started or ended is taken out when it comes first.
        self.gated: dict[tuple[str, tuple[Rate, ...]], list[int]] = {}

    @property
    def index(self) -> int:
        """Its place among the batch's lanes, from 0."""
        return self.place.index

    @property
    def merge(self) -> StateMerged | None:
        """What its end has to tell; None while it has not ended."""
        if self.told is None and self.state is LaneState.MERGED:
            return StateMerged(self.index, self.start, (), ())
        return self.told

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left to do but its merge."""
        return self.unfinished == 0 and self.state is LaneState.CLOSED and self.stands_at is None

    def add(self, call: CallRecord) -> None:
        """Let a call in."""
        call.place = self.place
        self.calls.append(call)

    def story(self) -> str:
        """The lane in one line, for errors."""
        return f"lane {self.index} with {counted(len(self.calls), 'call')}: {self.state.value}"


class TrackedCall:
    """One call of a batch, as it is now: where it is, what it waits for, and what it has given so far.

    `Batch.submit` gives one, and `Batch.calls` all of them.  A view is live: it shows what is so when it is asked.
    Nothing can be assigned to it, and views of one call are equal.  `cancel` is all that it can do.

    Raises:
        AttributeError: something was assigned.
    """

    __slots__ = ("_record",)
    _record: CallRecord

    def __init__(self, record: CallRecord) -> None:
        object.__setattr__(self, "_record", record)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: a tracked call shows what happened; nothing can be assigned to it")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name}: a tracked call shows what happened; nothing can be deleted from it")

    @property
    def call(self) -> ToolCall:
        """What the model asked for."""
        return self._record.call

    @property
    def call_id(self) -> str:
        """The id the model gave it; two calls of one batch may carry the same."""
        return self._record.call_id

    @property
    def name(self) -> str:
        """The tool's name, as the model gave it."""
        return self._record.name

    @property
    def call_index(self) -> int:
        """Its place in the batch, from 0."""
        return self._record.call_index

    @property
    def status(self) -> Status:
        """Queued, executing, completed or yielded."""
        return self._record.state.status

    @property
    def state(self) -> CallState:
        """Where it is in full: what it waits for, and what it still holds."""
        return self._record.state

    @property
    def safe(self) -> bool:
        """Whether it may overlap its neighbours."""
        return self._record.safe

    @property
    def lane(self) -> int | None:
        """The index of its lane; None for calls that belong to none."""
        return self._record.lane

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What it claims, once its lane has started."""
        return self._record.claims

    @property
    def pending_progress(self) -> list[Any]:
        """Progress not yet handed to the reader, a copy."""
        return list(self._record.pending_progress)

    @property
    def progress_count(self) -> int:
        """How many progress messages it has sent."""
        return self._record.progress_count

    @property
    def results(self) -> list[ToolResult]:
        """Its result in a list, once that is fixed; else an empty one."""
        result = self._record.result
        if result is None:
            return []
        self._record.is_seen = True
        return [result]

    @property
    def modifiers(self) -> tuple[Modifier, ...]:
        """The modifiers that it returned, until its lane has ended."""
        return self._record.modifiers

    @property
    def waits_for(self) -> list[Any]:
        """What keeps a queued call from starting.

        The ``call_index`` of each call of this batch whose ticket is in the way, ``"batch_id#call_index"`` for those of
        other batches, then ``"approval"``; ``"lane"`` before its lane has started; ``"slot"`` when only the limit is in
        the way.  Empty when it does not wait.
        """
        return self._record.waits_for

    @property
    def waited(self) -> float | None:
        """Seconds from its submission to its start; None if it has not started."""
        record = self._record
        return None if record.started_at is None else record.started_at - record.submitted_at

    @property
    def ran(self) -> float | None:
        """Seconds of its own execution; None while that lasts or if it never started."""
        record = self._record
        if record.started_at is None or record.ended_at is None:
            return None
        return record.ended_at - record.started_at

    def cancel(self, reason: str = "no reason given") -> bool:
        """Cancel this call alone: see `toolrt.Batch.cancel_call`.

        Checkpoint: never.
        """
        return self._record.siblings.cancel(self._record.call_index, reason)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrackedCall) and other._record is self._record

    def __hash__(self) -> int:
        return hash(self._record)

    def __repr__(self) -> str:
        return repr(self._record)


class TrackedCalls(Sequence[TrackedCall]):
    """All calls of a batch so far, by call_index: a live view.

    Args:
        records: the engine's own.
    """

    __slots__ = ("_records",)

    def __init__(self, records: Sequence[CallRecord]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> TrackedCall: ...

    @overload
    def __getitem__(self, index: slice) -> list[TrackedCall]: ...

    def __getitem__(self, index: int | slice) -> TrackedCall | list[TrackedCall]:
        if isinstance(index, slice):
            return [TrackedCall(record) for record in self._records[index]]
        return TrackedCall(self._records[index])

    def __iter__(self) -> Iterator[TrackedCall]:
        return map(TrackedCall, self._records)

    def __repr__(self) -> str:
        return repr(list(self._records))

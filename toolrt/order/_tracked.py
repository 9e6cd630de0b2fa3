"""The runtime's record of one call, and the four states it goes through.

Theory.  A call waits (queued), runs (executing), has its result (completed) and has been handed to the reader
(yielded).  The table below is the whole machine; a pair that is not in it is a bug of ours and raises with the
story of that call.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolrt.errors import InternalError
from toolrt.model import (
    Arguments,
    Claim,
    FileChanged,
    Modifier,
    State,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
    Withheld,
    reads_only,
)

if TYPE_CHECKING:
    from toolrt.model._watched_state import StateReads
    from toolrt.order._merge import MergedCall
    from toolrt.order._tickets import Ticket

__all__ = ["TRANSITIONS", "Happening", "LanePlace", "Siblings", "Status", "TrackedCall"]


class Status(enum.StrEnum):
    """Where a call is."""

    #: It has its slot and waits: for its lane, its tickets, an approval or a place below the limit.
    QUEUED = "queued"
    #: Its tool is running.
    EXECUTING = "executing"
    #: Its result is fixed.
    COMPLETED = "completed"
    #: Its result was handed to the reader, or the batch has ended.
    YIELDED = "yielded"

    def __repr__(self) -> str:
        return self.name


class Happening(enum.Enum):
    """What can happen to a call."""

    #: Its tool's first step is about to run.
    START = "start"
    #: Its result is fixed.
    SETTLE = "settle"
    #: Its result is replaced: an earlier call stopped the batch.
    SKIP = "skip"
    #: Its result is handed to the reader, or the batch ends.
    YIELD = "yield"

    # Members are singletons; the inherited hash goes through the name, in Python, and is felt in every call.
    __hash__ = object.__hash__


#: The whole machine.  `SKIP` is possible until the result is handed over.
TRANSITIONS: Mapping[tuple[Status, Happening], Status] = {
    (Status.QUEUED, Happening.START): Status.EXECUTING,
    (Status.QUEUED, Happening.SETTLE): Status.COMPLETED,
    (Status.QUEUED, Happening.SKIP): Status.COMPLETED,
    (Status.EXECUTING, Happening.SETTLE): Status.COMPLETED,
    (Status.EXECUTING, Happening.SKIP): Status.COMPLETED,
    (Status.COMPLETED, Happening.SKIP): Status.COMPLETED,
    (Status.COMPLETED, Happening.YIELD): Status.YIELDED,
}


class LanePlace:
    """A lane's place among the batch's lanes; it moves when a lane before it has to be split."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        #: From 0.
        self.index = index


class Siblings(list["TrackedCall"]):
    """All calls of one batch, by call_index: a list that knows the batch's limit.

    Args:
        iterable: the first of them; none by default.
    """

    #: How many of them run at once.
    limit: float = math.inf


class TrackedCall:
    """One call of a batch: what the model asked for, where it is, and what it has given so far."""

    # Most calls never touch most of these, and a batch makes one record for each call: so the defaults stand
    # on the class.  None of them is ever changed in place.

    status: Status = Status.QUEUED
    #: Whether it may overlap its neighbours.
    safe: bool = False
    tool: Tool | None = None
    #: The call whose tool opened the batch, if one did.
    parent: TrackedCall | None = None
    #: Of a call of a sub-batch: the call of the outermost batch inside which it runs.
    outermost: TrackedCall | None = None
    #: The lane that it runs in, while it does.
    runs_in: Any = None
    #: The batches that its tool has open, sub-batches and others.
    opened: tuple[Any, ...] = ()
    #: What it lends to the sub-batches that its tool opens, once it has opened one.
    inside: Any = None
    arguments: Arguments | None = None
    #: Where its lane is; None for calls that belong to none.
    place: LanePlace | None = None
    #: Whether its lane has started and its tickets are taken.
    admitted: bool = False
    #: What it claims, once its lane's start state is known.
    claims: tuple[Claim, ...] = ()
    #: What these look at, as its tool declares.
    after: tuple[Claim, ...] = ()
    #: Whether its claims are not known yet: it holds tickets for what they look at, and waits for these.
    asking: bool = False
    #: What its tool claimed as its lane began, while the lane stands still before it; None: it was not asked.
    asked: tuple[Claim, ...] | None = None
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
    #: Whether its failure stops the batch.
    stops: bool = False
    #: How many of tickets and approval are still missing before it may start.
    pending: int = 0
    awaiting_approval: bool = False
    #: Whether it holds a slot.
    held: bool = False
    #: Its result was fixed by a stop while it ran: what it still gives is thrown away.
    dropped: bool = False
    #: The scope it runs in, if something may have to cancel it alone.
    scope: Any = None
    result: ToolResult | None = None
    #: Modifiers of a call that returned, until its lane has ended.
    modifiers: tuple[Modifier, ...] = ()
    #: What it read of its ``ctx.state``; None: it was given none.
    reads: StateReads | None = None
    #: What its tool returned, while earlier calls of its lane may still make that stale.
    undecided: ToolOutput | None = None
    #: Whether it is to run again, because it was stale and its tool is pure.
    again: bool = False
    #: The state that it is shown when it runs again; None: that of its lane's start.
    saw: State | None = None
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
    _started_at: float | None = None
    _ended_at: float | None = None

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
        self._submitted_at = submitted_at

    @property
    def call_id(self) -> str:
        """The id the model gave it."""
        return self.call.call_id

    @property
    def name(self) -> str:
        """The tool's name, as the model gave it."""
        return self.call.name

    @property
    def reads_only(self) -> bool:
        """Whether it is declared to have no effects."""
        return reads_only(self.claims)

    @property
    def lane(self) -> int | None:
        """The index of its lane; None for calls that belong to none."""
        return None if self.place is None else self.place.index

    @property
    def results(self) -> list[ToolResult]:
        """Its result, once that is fixed; else nothing."""
        return [] if self.result is None else [self.result]

    @property
    def waits_for(self) -> list[Any]:
        """What keeps a queued call from starting.

        The ``call_index`` of each call of this batch whose ticket is in the way, ``"batch_id#call_index"`` for
        those of other batches, then ``"approval"``; ``"lane"`` before its lane has started; ``"slot"`` when
        only the limit is in the way.  Empty when it does not wait.
        """
        if self.status is not Status.QUEUED:
            return []
        if not self.admitted:
            return ["lane"]
        if self.held:
            return []  # its task is about to take its first step
        found: list[Any] = []
        for ticket in self.tickets:
            for owner in ticket.waits_for():
                mine = owner.siblings is self.siblings
                found.append(owner.call_index if mine else f"{owner.batch_id}#{owner.call_index}")
        if self.awaiting_approval:
            found.append("approval")
        return list(dict.fromkeys(found)) or ["slot"]

    @property
    def has_started(self) -> bool:
        """Whether its tool's first step has run."""
        return self._started_at is not None

    @property
    def waited(self) -> float | None:
        """Seconds from its submission to its start; None if it has not started."""
        return None if self._started_at is None else self._started_at - self._submitted_at

    @property
    def ran(self) -> float | None:
        """Seconds of its own execution; None while that lasts or if it never started."""
        if self._started_at is None or self._ended_at is None:
            return None
        return self._ended_at - self._started_at

    def happen(self, happening: Happening) -> None:
        """Go to the next status, because of what is `happening`.

        Raises:
            InternalError: the table has no such transition.
        """
        after = TRANSITIONS.get((self.status, happening))
        if after is None:
            raise InternalError(f"{happening.value} is impossible for {self.story()}")
        self.status = after

    def story(self) -> str:
        """The call in one line, for errors."""
        outcome = "" if self.result is None else f", {self.result.outcome.value}"
        return f"call {self.call_index} ({self.name}, id {self.call_id!r}): {self.status.value}{outcome}"

    def __repr__(self) -> str:
        return f"<{self.story()}>"

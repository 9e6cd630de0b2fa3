"""The tables of states and events of a call, a lane and a batch.

Rules.
    1. There is one table for each of the three: ``(state, event) -> state``.
    2. A pair that is not in the table is a bug of toolrt.  It raises before anything is written.
    3. A record changes its state by ``happen(event)``.  Code that every call goes through looks the row up in place,
       ``call.state = _TAKE[call.state]`` with ``_TAKE = CallMove.TAKE.leads``, because a method costs as much as the
       rest of such a step.

Theory.  A state of a call says two things at once.  Its *status* is what a user sees: queued, executing, completed or
yielded.  What it *holds* is what it still has to give back: nothing, its tickets, or its tickets and a slot.  The two
do not move together: a result may be fixed, and shown, while a thread that cannot be stopped keeps the slot.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Mapping
from typing import Any

from toolrt.errors import InternalError


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


class Holds(enum.Enum):
    """What a call has to give back."""

    #: It has given back all.
    NOTHING = "nothing"
    #: Its places in the order.
    TICKETS = "tickets"
    #: Its tickets and a slot.
    SLOT = "slot"


class Rows(dict[Any, Any]):
    """The rows of one event, by the state before; a look-up of another state raises.

    Args:
        event: its word.
    """

    def __init__(self, event: str) -> None:
        self._event = event

    def __missing__(self, state: Any) -> Any:
        raise InternalError(f"{self._event} is impossible in the state {state.name.lower()}")


_QUEUED, _EXECUTING, _COMPLETED, _YIELDED = Status
_NOTHING, _TICKETS, _SLOT = Holds


class CallState(enum.Enum):
    """Where a call is, in full."""

    #: Its lane has not started.
    PLACED = "placed", _QUEUED, _NOTHING
    #: Its claims are not known yet: it holds tickets for what they look at, and its lane stands still at it.
    ASKING = "asking", _QUEUED, _TICKETS
    #: It waits for an answer of the approval check, and perhaps for its tickets.
    UNAPPROVED = "unapproved", _QUEUED, _TICKETS
    #: It waits for its tickets.
    WAITING = "waiting", _QUEUED, _TICKETS
    #: Only a slot is missing, or a rate or a limit that batches share keeps it back; it holds no slot meanwhile.
    READY = "ready", _QUEUED, _TICKETS
    #: It has a slot, and its task is about to take its first step.
    SPAWNED = "spawned", _QUEUED, _SLOT
    #: Its tool runs.
    RUNNING = "running", _EXECUTING, _SLOT
    #: Its tool returned modifiers.  Results of earlier calls decide whether they may apply; its task has not ended.
    RETURNED = "returned", _EXECUTING, _SLOT
    #: The same, and its task has ended.
    UNDECIDED = "undecided", _EXECUTING, _TICKETS
    #: It was stale and its tool is pure: it is to run again, and waits for a slot.
    AGAIN = "again", _EXECUTING, _TICKETS
    #: The same, with a slot.
    RESPAWNED = "respawned", _EXECUTING, _SLOT
    #: Its result was fixed before it had a slot; it is about to give its tickets back.
    ANSWERED = "answered", _COMPLETED, _TICKETS
    #: Its result is fixed, and its task or thread has not ended.
    FINISHING = "finishing", _COMPLETED, _SLOT
    #: Its result was fixed by a stop while it ran: what it still gives is thrown away.
    DROPPED = "dropped", _COMPLETED, _SLOT
    #: Its result is fixed.
    COMPLETED = "completed", _COMPLETED, _NOTHING
    #: Its result was handed to the reader, and its thread still runs.
    LINGERING = "lingering", _YIELDED, _SLOT
    #: Its result was handed to the reader, or the batch has ended.
    YIELDED = "yielded", _YIELDED, _NOTHING

    def __init__(self, word: str, status: Status, holds: Holds) -> None:
        #: Its name, for people.
        self.word = word
        #: What a user sees of it.
        self.status = status
        #: What a call in it has to give back.
        self.holds = holds

    __hash__ = object.__hash__


class CallMove(enum.Enum):
    """What happens to a call."""

    #: Its claims look at something that an earlier call may change.
    STAND = "stand"
    #: It takes its tickets.
    TAKE = "take"
    #: Its claims, known at last, keep it out of its lane.
    LEAVE = "leave"
    #: The approval check is about to be asked.
    EXPECT = "expect"
    #: The approval check has allowed it.
    ALLOW = "allow"
    #: Its tickets are all granted.
    GRANT = "grant"
    #: It is given a slot.
    SPAWN = "spawn"
    #: Its tool's first step is about to run.
    START = "start"
    #: Its tool returned modifiers, and an earlier call of its lane has no result yet.
    RETURN = "return"
    #: It was stale and its tool is pure.
    REPEAT = "repeat"
    #: Its result is fixed.
    SETTLE = "settle"
    #: Its result is replaced: an earlier call stopped the batch.
    SKIP = "skip"
    #: It gives back what it holds.
    END = "end"
    #: Its result is handed to the reader.
    YIELD = "yield"
    #: The batch is over.
    CLOSE = "close"

    def __init__(self, word: str) -> None:
        #: Where it leads to, by where the call is: one look-up a step.
        self.leads: dict[CallState, CallState] = Rows(word)

    # Members are singletons; the inherited hash goes through the name, in Python, and is felt in every call.
    __hash__ = object.__hash__


class LaneState(enum.Enum):
    """Where a lane is."""

    #: It has not started, and calls may join.
    GATHERING = "gathering"
    #: It has not started, and no call can join.
    FULL = "full"
    #: Its start state is known, and calls may join.
    OPEN = "open"
    #: No call can join; it ends with the last of its calls.
    CLOSED = "closed"
    #: Its calls have all ended, or will never start, and its modifiers are applied.
    MERGED = "merged"

    __hash__ = object.__hash__


class LaneMove(enum.Enum):
    """What happens to a lane."""

    #: A call came that cannot join, or none will come.
    CLOSE = "close"
    #: Its turn has come.
    START = "start"
    #: Its modifiers are applied.
    MERGE = "merge"

    def __init__(self, word: str) -> None:
        #: Where it leads to, by where the lane is: one look-up a step.
        self.leads: dict[LaneState, LaneState] = Rows(word)

    __hash__ = object.__hash__


class BatchState(enum.Enum):
    """Where a batch is."""

    #: It takes calls.
    OPEN = "open"
    #: No call can come.
    SEALED = "sealed"
    #: It was cancelled: a call that still comes is answered at once.
    CANCELLED = "cancelled"
    #: It was cancelled, and no call can come.
    ENDING = "ending"
    #: Its outcome is fixed.
    OVER = "over"

    __hash__ = object.__hash__


class BatchMove(enum.Enum):
    """What happens to a batch."""

    #: A call comes.
    SUBMIT = "submit"
    #: No call will come.
    SEAL = "seal"
    #: A call that stops the batch has failed.
    STOP = "stop"
    #: It is cut short.
    CANCEL = "cancel"
    #: Nothing of it runs any more, and every call has its result.
    LEAVE = "leave"

    def __init__(self, word: str) -> None:
        #: Where it leads to, by where the batch is: one look-up a step.
        self.leads: dict[BatchState, BatchState] = Rows(word)

    __hash__ = object.__hash__


def _rows(event: Any, **states: str) -> dict[tuple[Any, Any], Any]:
    kind: Any = {CallMove: CallState, LaneMove: LaneState, BatchMove: BatchState}[type(event)]
    return {(kind[before], event): kind[after] for before, after in states.items()}


_ENDED_WAIT = {"ASKING": "ANSWERED", "UNAPPROVED": "ANSWERED", "WAITING": "ANSWERED", "READY": "ANSWERED"}
_ENDED_AGAIN = {"UNDECIDED": "ANSWERED", "AGAIN": "ANSWERED"}

#: The life of a call.
CALL: Mapping[tuple[CallState, CallMove], CallState] = {
    **_rows(CallMove.STAND, PLACED="ASKING"),
    **_rows(CallMove.TAKE, PLACED="WAITING", ASKING="WAITING"),
    **_rows(CallMove.LEAVE, ASKING="PLACED"),
    **_rows(CallMove.EXPECT, WAITING="UNAPPROVED"),
    **_rows(CallMove.ALLOW, UNAPPROVED="WAITING"),
    **_rows(CallMove.GRANT, WAITING="READY"),
    **_rows(CallMove.SPAWN, READY="SPAWNED", AGAIN="RESPAWNED"),
    **_rows(CallMove.START, SPAWNED="RUNNING", RESPAWNED="RUNNING"),
    **_rows(CallMove.RETURN, RUNNING="RETURNED"),
    **_rows(CallMove.REPEAT, RETURNED="RUNNING", UNDECIDED="AGAIN"),
    **_rows(
        CallMove.SETTLE,
        PLACED="COMPLETED",
        **_ENDED_WAIT,
        SPAWNED="FINISHING",
        RUNNING="FINISHING",
        RETURNED="FINISHING",
        **_ENDED_AGAIN,
        RESPAWNED="FINISHING",
    ),
    **_rows(
        CallMove.SKIP,
        PLACED="COMPLETED",
        **_ENDED_WAIT,
        SPAWNED="FINISHING",
        RUNNING="DROPPED",
        RETURNED="DROPPED",
        **_ENDED_AGAIN,
        RESPAWNED="DROPPED",
        ANSWERED="ANSWERED",
        FINISHING="FINISHING",
        DROPPED="DROPPED",
        COMPLETED="COMPLETED",
    ),
    **_rows(
        CallMove.END,
        RETURNED="UNDECIDED",
        ANSWERED="COMPLETED",
        FINISHING="COMPLETED",
        DROPPED="COMPLETED",
        LINGERING="YIELDED",
    ),
    **_rows(CallMove.YIELD, COMPLETED="YIELDED", FINISHING="LINGERING", DROPPED="LINGERING"),
    **_rows(
        CallMove.CLOSE,
        ANSWERED="YIELDED",
        FINISHING="YIELDED",
        DROPPED="YIELDED",
        COMPLETED="YIELDED",
        LINGERING="YIELDED",
        YIELDED="YIELDED",
    ),
}

#: The life of a lane.
LANE: Mapping[tuple[LaneState, LaneMove], LaneState] = {
    **_rows(LaneMove.CLOSE, GATHERING="FULL", FULL="FULL", OPEN="CLOSED", CLOSED="CLOSED"),
    **_rows(LaneMove.START, GATHERING="OPEN", FULL="CLOSED"),
    **_rows(LaneMove.MERGE, FULL="MERGED", CLOSED="MERGED"),
}

#: The life of a batch.
BATCH: Mapping[tuple[BatchState, BatchMove], BatchState] = {
    **_rows(BatchMove.SUBMIT, OPEN="OPEN", CANCELLED="CANCELLED"),
    **_rows(BatchMove.SEAL, OPEN="SEALED", SEALED="SEALED", CANCELLED="ENDING", ENDING="ENDING"),
    **_rows(BatchMove.STOP, OPEN="OPEN", SEALED="SEALED"),
    **_rows(BatchMove.CANCEL, OPEN="CANCELLED", SEALED="ENDING"),
    **_rows(BatchMove.LEAVE, OPEN="OVER", SEALED="OVER", CANCELLED="OVER", ENDING="OVER"),
}

_TABLES: tuple[Mapping[Any, Any], ...] = (CALL, LANE, BATCH)
for _table in _TABLES:
    for (_before, _event), _after in _table.items():
        _event.leads[_before] = _after


class Stateful(abc.ABC):
    """What has a state, and a table that leads from one to the next."""

    #: Where it is.  Code that every call goes through changes it in place (rule 3); all other code by `happen`.
    state: Any

    @abc.abstractmethod
    def story(self) -> str:
        """It in one line, for errors."""

    def happen(self, event: CallMove | LaneMove | BatchMove) -> None:
        """Go to the next state, because of `event`.

        Raises:
            InternalError: the table has no such row; nothing was changed.
        """
        found = event.leads.get(self.state)
        if found is None:
            raise InternalError(f"{event.value} is impossible for {self.story()}")
        self.state = found

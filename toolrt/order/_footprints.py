"""Reports what the runtime's own bookkeeping touches, for an explorer that swaps steps.

Rules.  Reports go to `probe.implied`, and only while an explorer listens: ``if probe.implied is not None``.  A tool's
code runs in the same steps and reports for itself what it touches, so nothing here makes a step one that reported
something; a step that runs only the runtime's own code is marked as fully reported (`probe.vouch`).

Each result slot, each call's status, each lane's merge, the progress that waits and the batch as such are resources of
their own, so that calls settle in any order unless a step looks at both.  The limit counts only where it can bind.
A cancel touches everything.

Limits.  What a sub-batch borrows of its parent's slot is not reported, and a step in which tools do that is not marked
as fully reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolrt import probe
from toolrt.model import Progress, ResultReady, State, Update
from toolrt.order._merge import are_applied
from toolrt.order._record import CallRecord, LaneRecord


def _touches(kind: str, batch_id: str, index: int, write: bool) -> None:
    assert probe.implied is not None
    probe.implied((kind, batch_id, index), write)


def changes(batch_id: str) -> None:
    """The batch's calls, lanes or end are changed."""
    _touches("batch", batch_id, 0, True)


def settles(call: CallRecord) -> None:
    """A call's result is fixed."""
    _touches("status", call.batch_id, call.call_index, True)
    _touches("slot", call.batch_id, call.call_index, True)


def returns(call: CallRecord) -> None:
    """A call's tool has returned, and its result waits for those of earlier calls."""
    _touches("slot", call.batch_id, call.call_index, True)


def looks_at_result(call: CallRecord) -> None:
    """Another call's result depends on whether this call has one."""
    _touches("slot", call.batch_id, call.call_index, False)


def starts(call: CallRecord) -> None:
    """A call starts: all that its tickets waited for comes before."""
    _touches("status", call.batch_id, call.call_index, True)
    for ticket in call.tickets:
        ticket.implies()


def progresses(call: CallRecord) -> None:
    """A call's progress is put behind all that waits for the reader."""
    _touches("status", call.batch_id, call.call_index, False)
    _touches("progress", call.batch_id, 0, True)


def stops(batch_id: str, behind: Iterable[CallRecord]) -> None:
    """Some calls are to be skipped, whatever they are at."""
    changes(batch_id)
    for call in behind:
        settles(call)


def cancels() -> None:
    """The batch is ended early."""
    assert probe.implied is not None
    probe.implied(probe.ANYTHING, True)


def starts_lane(batch_id: str, own_code: bool) -> None:
    """A lane takes its tickets; `own_code`: only the runtime's code runs in the step."""
    _touches("batch", batch_id, 0, False)
    if own_code:
        probe.vouch()


def merges(batch_id: str, lane: LaneRecord, state: State, by_itself: bool) -> None:
    """A lane's modifiers are merged into `state`; `by_itself`: no hook and no parent batch hears of it.

    Most modifiers ran when their call's result was fixed, so only the runtime's code runs in the step of the merge.
    """
    _touches("batch", batch_id, 0, False)
    _touches("merge", batch_id, lane.index, True)
    if by_itself and are_applied(state, lane.modified):
        probe.vouch()


def looks_at_slots(batch_id: str, lane: LaneRecord, limit: float) -> None:
    """A slot is given back, or one is looked for."""
    _touches("slots", batch_id, lane.index, len(lane.calls) > limit)


def shares(limits: Iterable[str]) -> None:
    """A share of these limits is taken or given back, each by its name."""
    assert probe.implied is not None
    for limit in limits:
        probe.implied(("limit", limit), True)


def looks(batch_id: str, update: Update | None, slot: int, merge: int, merges_due: int) -> None:
    """The reader looks for the next update, and finds this one.

    Args:
        batch_id: the reader's batch.
        update: None: there is none yet, or none any more.
        slot: the result slot that comes next.
        merge: the merge that comes next.
        merges_due: how many must come before that slot.
    """
    _touches("batch", batch_id, 0, False)
    _touches("progress", batch_id, 0, isinstance(update, Progress))
    if isinstance(update, Progress):
        return
    if merge < merges_due:
        _touches("merge", batch_id, merge, False)
    else:
        # What is handed over is no longer replaced by a stop.
        _touches("slot", batch_id, slot, isinstance(update, ResultReady))

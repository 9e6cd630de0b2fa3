"""How a batch ends: cut short by a cancel or a stop, or by itself, and in the end with one result for each call.

Rules.
    1. After a cancel nothing starts any more, and what runs is interrupted; after a stop what follows the failed
       call is skipped.  A result that was handed over stays; then whichever of the two came first decides.
    2. The first cancel counts.  Of several stops the one of the lowest call_index does, and none after a cancel.
    3. Ctrl-C or an exit in a call cancels the batch, ends its block, and goes out when the batch is left.
    4. The outcome is fixed once, when nothing of the batch runs any more, and it answers every call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import attrs
import trio

from toolrt import probe
from toolrt.events import BatchCancelled, BatchLeft, BatchStopped, observer
from toolrt.model import BatchOutcome, Outcome, ToolResult
from toolrt.model._watched_state import bare_state
from toolrt.order import Happening, Status, Ticket, TrackedCall, give_back
from toolrt.runtime import _bookkeeping
from toolrt.runtime._one_run import leave_tables

if TYPE_CHECKING:
    from toolrt.runtime._batch import Batch

__all__ = ["Ending"]

#: Looked up once: an attribute of an enumeration costs as much as a call.
_COMPLETED, _YIELDED = Status.COMPLETED, Status.YIELDED


class Ending:
    """What ends one batch, and what comes of it.

    Args:
        batch: which.
    """

    # Few batches are cut short, so most defaults stand on the class.

    #: Ctrl-C or an exit that came up in a call: it goes out when the batch is left.
    exit_asked: BaseException | None = None
    #: What the batch gave; None while it is not over.
    outcome: BatchOutcome | None = None
    #: The scope of the block in which the batch is open; None where there is none.
    block_scope: trio.CancelScope | None = None
    #: The scope of a service that is told what a lane changed, while it is.
    hook_scope: trio.CancelScope | None = None

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        #: Why the batch was cancelled; None while it is not.
        self.cancel_reason: str | None = None
        #: The failed call behind which all are skipped; None while there is none.
        self.stopped_by: TrackedCall | None = None

    # Early

    def cancel(self, reason: str, outside: bool) -> None:
        """Let nothing start any more, and interrupt what runs; a batch that is cancelled or over stays as it is.

        Args:
            reason: what the calls that it reaches say of it.
            outside: whether it came from around the batch: an enclosing scope, or a sub-batch's parent.
        """
        if self.cancel_reason is not None or self.outcome is not None:
            return
        batch = self.batch
        self.cancel_reason = reason
        if probe.implied is not None:
            _bookkeeping.cancels()
        if observer.listens:
            observer.tell(BatchCancelled(batch.batch_id, reason, outside), batch.teller)
        waiting = []
        for call in batch.calls:
            if call.status is Status.QUEUED:
                if call.admitted:
                    waiting.append(call)
                self._settle_not_started(call)
            elif call.inside is not None:
                call.inside.cancel_with_parent("was cancelled")
        batch.sequence.cancel(waiting)
        if self.hook_scope is not None:
            self.hook_scope.cancel()
        batch.reader.tell()

    def cancelled_from_outside(self) -> None:
        """Take note that an enclosing scope was cancelled, if one was."""
        if self.cancel_reason is None and trio.current_effective_deadline() == -math.inf:
            self.cancel("the caller's scope was cancelled", outside=True)

    def give_up(self, error: BaseException) -> None:
        """Cancel the batch because `error` came up where it is driven."""
        self.cancelled_from_outside()
        self.cancel(f"{type(error).__name__} where the batch is driven", outside=True)

    def abort(self, error: BaseException) -> None:
        """Ctrl-C or an exit came up in a call: cancel the batch, and let `error` out when it is left."""
        if self.exit_asked is None:
            self.exit_asked = error
        self.cancel(f"{type(error).__name__} in a call", outside=False)
        if self.block_scope is not None:
            self.block_scope.cancel()

    def stop(self, by: TrackedCall) -> None:
        """Skip every call behind `by`, which failed."""
        batch = self.batch
        if probe.implied is not None:
            _bookkeeping.stops(batch.batch_id, batch.calls[by.call_index + 1 :])
        first = self.stopped_by
        if self.cancel_reason is not None or (first is not None and first.call_index <= by.call_index):
            return
        self.stopped_by = by
        if observer.listens:
            observer.tell(BatchStopped(batch.batch_id, by.call_index), batch.teller)
        waiting = []
        for call in batch.calls[by.call_index + 1 :]:
            if call.status is Status.QUEUED and call.admitted:
                waiting.append(call)
            elif call.status is Status.EXECUTING:
                call.dropped = True
                if call.inside is not None:
                    call.inside.cancel_with_parent(f"was skipped: call {by.call_index} of its batch failed")
            if call.scope is not None:
                call.scope.cancel()
            self._skip(call, by)
        batch.sequence.give_back(waiting)
        batch.reader.tell()

    def answer_late(self, call: TrackedCall) -> None:
        """Answer a call that was submitted after the batch was cut short."""
        if self.stopped_by is not None:
            # A stop is taken note of only before a cancel, so it came first.
            self._skip(call, self.stopped_by)
        else:
            self._settle_not_started(call)

    def _settle_not_started(self, call: TrackedCall) -> None:
        why = f"not started: the batch was cancelled ({self.cancel_reason})"
        self.batch.settle(call, Outcome.NOT_STARTED, None, why)

    def _skip(self, call: TrackedCall, by: TrackedCall) -> None:
        why = f"skipped: call {by.call_index} ({by.name}, id {by.call_id!r}) failed and stops the batch"
        if call.dropped and call.tool is not None and not (call.tool.is_async or probe.threads_inline):
            why += "; its thread cannot be stopped and still runs"
        self.batch.settle(call, Outcome.SKIPPED, None, why, Happening.SKIP)

    # At last

    def leave(self) -> None:
        """Fix the outcome; nothing of the batch runs any more."""
        batch = self.batch
        if probe.implied is not None:
            _bookkeeping.stops(batch.batch_id, batch.calls)
        if batch.opener is not None:
            batch.opener.opened = tuple(other for other in batch.opener.opened if other is not batch)
        if batch.inside is not None:
            batch.inside.ended(batch)
        else:
            leave_tables(batch.tables, batch.reader.token)
        batch.reader.drop_unread()
        results = []
        tickets: list[Ticket] = []
        for call in batch.calls:
            tickets += call.tickets
            if call.result is None:
                # Ctrl-C came up in the very submission of the call.
                self._settle_not_started(call)
            result = cast(ToolResult, call.result)
            if result.progress_dropped != call.progress_dropped:
                result = call.result = attrs.evolve(result, progress_dropped=call.progress_dropped)
            if call.status is _COMPLETED:
                call.status = _YIELDED
            results.append(result)
        kept = [ticket for ticket in tickets if not ticket.released]
        if kept:
            # An exception in the bookkeeping kept them from going back: the next batch must not wait for them.
            give_back(kept, lambda call: cast(int, call.call_index))
        sequence = batch.sequence
        self.outcome = BatchOutcome(tuple(results), sequence.state, tuple(sequence.applied))
        if observer.listens:
            left = {
                "tasks": sum(lane.unfinished for lane in sequence.lanes),
                "tickets": len(tickets),
                "slots": sum(lane.running for lane in sequence.lanes),
                "progress": len(batch.reader.unread),
            }
            dropped = [call.progress_dropped for call in batch.calls]
            state = bare_state(sequence.state)
            observer.tell(BatchLeft(batch.batch_id, results, state, left, dropped), batch.teller)
        if batch.teller is not None:
            observer.stop_measuring(batch.teller)
        batch.reader.tell()

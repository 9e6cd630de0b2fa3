"""The reader's cursor: which update comes next.

Rules.
    1. Results come in call order, each as soon as all before it are.
    2. Progress comes at once, but never before the updates of an earlier lane; a call's progress comes before
       its result, because it is handed over first and nothing is accepted after the result is fixed.
    3. Every lane gives one `StateMerged`, after its last result and before anything of the next lane; that of
       an exclusive call comes right after its result.  Only a lane that a thread outlives lets later results
       pass: results are prompt.
    4. Nothing is buffered but progress: results stay in their slots, merges with their lanes.

So the order of results and merges is the same whatever the timing; only progress comes when it comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from toolrt.model import Progress, ResultReady, StateMerged
from toolrt.order._record import CallRecord, LaneRecord
from toolrt.order._states import CallMove, Status

__all__ = ["PROGRESS_BOUND", "Cursor"]

#: How many progress messages wait for the reader at most; the newest are dropped and counted.
PROGRESS_BOUND = 1000


class Cursor:
    """Walks over the result slots of one batch.

    Args:
        calls: the batch's calls, by call_index; grows while calls are submitted.
        lanes: the batch's lanes, by index; grows likewise.
    """

    __slots__ = ("_calls", "_lanes", "_merges", "_merges_due", "_slot", "progress")

    def __init__(self, calls: Sequence[CallRecord], lanes: Sequence[LaneRecord]) -> None:
        self._calls = calls
        self._lanes = lanes
        self._slot = 0
        #: How many merges were handed over, and how many must be before the next result.
        self._merges = 0
        self._merges_due = 0
        #: Progress not yet handed over, in the order it was sent.
        self.progress: deque[tuple[CallRecord, Progress, int]] = deque()

    def next(self, complete: bool) -> Progress | ResultReady | StateMerged | None:
        """The next update, or None if there is none yet or none any more (`exhausted` tells which).

        Args:
            complete: no further call will come.
        """
        calls = self._calls
        if self.progress and (self.progress[0][0].lane or 0) <= self._merges:
            call, update, number = self.progress.popleft()
            call.pending_progress = call.pending_progress[1:]
            call.progress_delivered = number + 1
            return update
        has_slot = self._slot < len(calls)
        if has_slot:
            self._merges_due = max(self._merges_due, calls[self._slot].lane or 0)
        elif complete:
            self._merges_due = len(self._lanes)
        if self._merges < self._merges_due:
            lane = self._lanes[self._merges]
            merge = lane.merge
            if merge is not None:
                self._merges += 1
                return merge
            if not lane.outlived:
                return None
        if has_slot and calls[self._slot].result is not None:
            call = calls[self._slot]
            if call.status is Status.COMPLETED:  # else the batch has ended, and its late reader takes the rest
                call.happen(CallMove.YIELD)
            self._slot += 1
            if call.lane is not None and not self._lanes[call.lane].shared:
                self._merges_due = max(self._merges_due, call.lane + 1)
            assert call.result is not None
            return ResultReady(call.result)
        return None

    @property
    def place(self) -> tuple[int, int]:
        """Which result slot comes next, and which merge."""
        return self._slot, self._merges

    @property
    def merges_due(self) -> int:
        """How many merges come before the next result."""
        return self._merges_due

    def exhausted(self, complete: bool) -> bool:
        """Whether everything has been handed over and nothing will come; `complete`: no call can come any more."""
        return complete and self._slot == len(self._calls) and self._merges == len(self._lanes) and not self.progress

"""Gives the one reader of a batch its next update, or waits for it.

Rules.
    1. Results come in call order, each as soon as all before it are.
    2. Progress comes at once, but never before the updates of an earlier lane; a call's progress comes before
       its result, because it is handed over first and nothing is accepted after the result is fixed.
    3. Every lane gives one `StateMerged`, after its last result and before anything of the next lane; that of
       an exclusive call comes right after its result.  Only a lane that a thread outlives lets later results
       pass: results are prompt.
    4. Nothing is buffered but progress: results stay in their slots, merges with their lanes.
    5. Nothing here ever makes a tool wait: progress is kept up to a bound, and what is not kept is counted on its call.
    6. The reader may come late, even after the batch was left: results and merges are all still there.

So the order of results and merges is the same whatever the timing; only progress comes when it comes.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

import trio

from toolrt import probe
from toolrt.errors import BatchClosed
from toolrt.events import MergeDelivered, ProgressDelivered, ProgressSent, ReaderAsked, ResultDelivered, observer
from toolrt.model import Progress, ResultReady, StateMerged, Update
from toolrt.model._bounded import bounded_message
from toolrt.order import (
    PROGRESS_BOUND,
    BatchState,
    CallMove,
    CallRecord,
    LaneRecord,
    LaneState,
    Machine,
    Status,
    _footprints,
)
from toolrt.runtime._caller import RUNNING_CALL, refuse_other_run, refuse_own_tools
from toolrt.runtime._interrupts import protected

_YIELD, _MERGED = CallMove.YIELD.leads, LaneState.MERGED


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
        if self.progress and _lane(self.progress[0][0]) <= self._merges:
            call, update, number = self.progress.popleft()
            call.pending_progress = call.pending_progress[1:]
            call.progress_delivered = number + 1
            return update
        has_slot = self._slot < len(calls)
        if has_slot:
            self._merges_due = max(self._merges_due, _lane(calls[self._slot]))
        elif complete:
            self._merges_due = len(self._lanes)
        if self._merges < self._merges_due:
            lane = self._lanes[self._merges]
            if lane.state is _MERGED:
                self._merges += 1
                return lane.merge
            if not lane.outlived:
                return None
        if has_slot and calls[self._slot].result is not None:
            call = calls[self._slot]
            if call.state.status is Status.COMPLETED:  # else the batch has ended, and its late reader takes the rest
                call.state = _YIELD[call.state]
            self._slot += 1
            if call.place is not None and not self._lanes[call.place.index].shared:
                self._merges_due = max(self._merges_due, call.place.index + 1)
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


def _lane(call: CallRecord) -> int:
    """The lane before which none of the call's updates may come; 0 for a call that belongs to no lane."""
    return 0 if call.place is None else call.place.index


class Reader:
    """Hands out updates by the cursor's rules, and waits where there is none yet.

    Args:
        machine: has the batch's calls and lanes, and knows whether a further call will come.
        token: the Trio run that the batch belongs to.
        listens: False if there will be no reader: then progress is dropped at once.
    """

    def __init__(
        self,
        machine: Machine,
        token: trio.lowlevel.TrioToken,
        listens: bool,
    ) -> None:
        self._batch_id = machine.batch_id
        self._machine = machine
        self._calls = machine.calls
        self._cursor = Cursor(machine.calls, machine.lanes)
        #: The progress that waits for the reader.
        self.unread: Collection[object] = self._cursor.progress
        self._listens = listens
        self._token = token
        #: Set when there may be an update; None while the reader does not wait.
        self.news: trio.Event | None = None
        self._reading = False

    def __aiter__(self) -> Reader:
        return self

    @protected
    async def __anext__(self) -> Update:
        """The next update: see `Batch.__anext__`.

        Raises:
            StopAsyncIteration: everything has been handed out, and nothing will come.
            BatchClosed: another task is waiting for the next update, or one of the batch's own tools asked for it;
                nothing was changed.

        Checkpoint: always.
        """
        if not trio.lowlevel.in_trio_run() or trio.lowlevel.current_trio_token() is not self._token:
            refuse_other_run(self._token, self._batch_id, "hand out its updates")
        if RUNNING_CALL.get() is not None:
            refuse_own_tools(self._calls, self._batch_id, "hand out its updates")
        machine = self._machine
        if self._reading:
            raise BatchClosed(self._batch_id, "read its updates", "it has a reader already")
        self._reading = True
        try:
            await trio.lowlevel.checkpoint()
            if observer.records:
                observer.tell(ReaderAsked(self._batch_id))
            while True:
                slot, merge = self._cursor.place if probe.implied is not None else (0, 0)
                update = self._cursor.next(machine.state is not BatchState.OPEN)
                if probe.implied is not None:
                    _footprints.looks(self._batch_id, update, slot, merge, self._cursor.merges_due)
                if update is not None:
                    if self._calls.journal is not None and isinstance(update, ResultReady):
                        await self._calls.journal.settled()
                    if observer.records:
                        self._report(update)
                    return update
                if self._cursor.exhausted(machine.state is not BatchState.OPEN):
                    raise StopAsyncIteration
                self.news = trio.Event()
                await self.news.wait()
        finally:
            self.news = None
            self._reading = False

    def tell(self) -> None:
        """Wake the reader, if it waits."""
        if self.news is not None:
            self.news.set()

    @protected
    def send(self, call: CallRecord, message: Any) -> None:
        """Take a call's progress, from whatever thread."""
        message = bounded_message(message)
        # A tool's thread may have a Trio run of its own.
        if trio.lowlevel.in_trio_run() and trio.lowlevel.current_trio_token() is self._token:
            self._take(call, message)
            return
        # A thread may outlive the whole run: then there is nothing left to count for.
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._take, call, message)

    def _take(self, call: CallRecord, message: Any) -> None:
        if probe.implied is not None and self._listens:
            _footprints.progresses(call)
        listener = call.listener
        if listener is not None and call.status is Status.EXECUTING:
            # It passes the reader by, so a trace, which has what the reader was given, does not have it.
            listener(Progress(call.call_index, call.call_id, message))
            return
        queue = self._cursor.progress
        accepted = self._listens and call.status is Status.EXECUTING and len(queue) < PROGRESS_BOUND
        if observer.records:
            observer.tell(ProgressSent(self._batch_id, call.call_index, call.progress_count, accepted))
        if accepted:
            queue.append((call, Progress(call.call_index, call.call_id, message), call.progress_count))
            call.pending_progress = [*call.pending_progress, message]
            self.tell()
        else:
            call.progress_dropped += 1
        call.progress_count += 1

    def drop_unread(self) -> None:
        """Count the progress that was not read; the batch is over."""
        for call, *_ in self._cursor.progress:
            call.progress_dropped += 1
        self._cursor.progress.clear()

    def _report(self, update: Update) -> None:
        if isinstance(update, Progress):
            number = self._calls[update.call_index].progress_delivered - 1
            observer.tell(ProgressDelivered(self._batch_id, update.call_index, number))
        elif isinstance(update, ResultReady):
            result = update.result
            observer.tell(ResultDelivered(self._batch_id, result.call_index, result.outcome.value))
        else:
            observer.tell(MergeDelivered(self._batch_id, update.lane))

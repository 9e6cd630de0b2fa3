"""The one reader of a batch's updates, and the progress that waits for it.

Rules.  Nothing here ever makes a tool wait: progress is kept up to a bound, and what is not kept is counted on its
call.  The reader may come late, even after the batch was left: results and merges are all still there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from typing import Any

import trio

from toolrt import probe
from toolrt.errors import BatchClosed
from toolrt.events import MergeDelivered, ProgressDelivered, ProgressSent, ReaderAsked, ResultDelivered, observer
from toolrt.model import Progress, ResultReady, Update
from toolrt.order import PROGRESS_BOUND, BatchState, CallRecord, Cursor, LaneRecord, Machine, Status, _footprints
from toolrt.runtime._interrupts import protected

__all__ = ["Reader"]


class Reader:
    """Hands out updates by the cursor's rules, and waits where there is none yet.

    Args:
        batch_id: names the batch in events and errors.
        calls: the batch's calls, by call_index.
        lanes: the batch's lanes, by index.
        token: the Trio run that the batch belongs to.
        listens: False if there will be no reader: then progress is dropped at once.
    """

    def __init__(
        self,
        batch_id: str,
        calls: Sequence[CallRecord],
        lanes: Sequence[LaneRecord],
        token: trio.lowlevel.TrioToken,
        listens: bool,
    ) -> None:
        self._batch_id = batch_id
        self._calls = calls
        self._cursor = Cursor(calls, lanes)
        self._listens = listens
        self._token = token
        #: Set when there may be an update; None while the reader does not wait.
        self.news: trio.Event | None = None
        self._reading = False

    @property
    def unread(self) -> Collection[object]:
        """The progress that waits for the reader."""
        return self._cursor.progress

    async def next(self, machine: Machine) -> Update:
        """The next update.

        Args:
            machine: knows whether a further call will come.

        Raises:
            StopAsyncIteration: everything has been handed out, and nothing will come.
            BatchClosed: another task is waiting for the next update; nothing was changed.

        Checkpoint: always.
        """
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

"""The lanes of a batch: which of them a call joins, how they follow each other, and the state between them.

Rules.
    1. A call joins the last lane if that is open and its policy lets it in; else that lane is closed, and the call has
       one of its own behind it.  Both are decided when it is submitted, synchronously.
    2. Lanes run one after the other, in one task; at a lane's end its modifiers are merged and the next lane
       starts from the state they leave.
    3. Every lane ends in one merge, also one that never started because the batch was cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import trio

from toolrt import probe
from toolrt.events import LaneAwaited, LaneMerged, observer
from toolrt.model import Modifier, State, Tool
from toolrt.model._watched_state import bare_state
from toolrt.order import LanePlace, TrackedCall, shares_a_lane
from toolrt.runtime import _bookkeeping
from toolrt.runtime._after_lane import tell_services
from toolrt.runtime._interrupts import protected
from toolrt.runtime._lane import LaneRun

if TYPE_CHECKING:
    from toolrt.runtime._batch import Batch

__all__ = ["LaneSequence"]


class LaneSequence:
    """The lanes of one batch.

    Args:
        batch: which.
        state: what the first lane starts from.
    """

    def __init__(self, batch: Batch, state: State) -> None:
        self.batch = batch
        #: By index.
        self.lanes: list[LaneRun] = []
        #: The state after the last lane that has ended.
        self.state = state
        #: The modifiers that they have applied, in order; kept for sub-batches alone.
        self.applied: list[Modifier] = []
        #: Whether services hear what they changed: of a sub-batch they hear with its parent's lane.
        self._tells = batch.inside is None and bool(batch.runtime.hooks)
        self._current = -1
        self._news: trio.Event | None = None

    @property
    def running(self) -> LaneRun | None:
        """The lane whose calls may run now; None between two of them."""
        if 0 <= self._current < len(self.lanes):
            lane = self.lanes[self._current]
            if lane.started and not lane.ended:
                return lane
        return None

    # Placing

    def place(self, call: TrackedCall, tool: Tool) -> None:
        """Give a valid `call` of `tool` its lane."""
        batch, lanes = self.batch, self.lanes
        call.safe = shared = shares_a_lane(batch.runtime.lanes, tool, call.input)
        last = lanes[-1] if lanes else None
        if last is not None and not last.closed:
            if shared:
                if not last.started:
                    last.add(call)
                    return
                if last.join(call):
                    return
            last.close()
        lane = LaneRun(batch, LanePlace(len(lanes)), shared)
        lane.add(call)
        lanes.append(lane)
        if self._news is not None:
            self._news.set()

    def is_behind_others(self, call: TrackedCall) -> bool:
        """Whether the call's lane has to wait for another one."""
        return call.lane is not None and (call.lane > self._current + 1 or self.running is not None)

    def split(self, lane: LaneRun, first: int) -> None:
        """Give the lane's calls from position `first` on, which cannot stay in it, a lane of their own behind it."""
        # Those behind keep the place that they know, so that splitting a lane again and again stays O(n).
        batch = self.batch
        if probe.implied is not None:
            _bookkeeping.changes(batch.batch_id)
        behind = LaneRun(batch, lane.place, True)
        behind.calls = lane.calls[first:]
        behind.closed = lane.closed
        lane.closed = True
        lane.place = LanePlace(lane.place.index)
        del lane.calls[first:]
        for call in lane.calls:
            call.place = lane.place
        self.lanes.insert(lane.index + 1, behind)
        for later in self.lanes[lane.index + 1 :]:
            later.place.index += 1
        if observer.measures:
            for call in behind.calls:
                observer.tell(LaneAwaited(batch.batch_id, call.call_index), batch.teller)

    # No more calls

    def close(self) -> None:
        """No further call will come."""
        if self.lanes and not self.lanes[-1].closed:
            self.lanes[-1].close()
        if self._news is not None:
            self._news.set()

    def cancel(self, answered: Iterable[TrackedCall]) -> None:
        """No further call will start: take back what the `answered` ones hold, and cancel those that run."""
        self.close()
        lane = self.running
        if lane is not None:
            lane.close()
            lane.finish_all(answered)
            if lane.nursery is not None:
                lane.nursery.cancel_scope.cancel()

    def give_back(self, answered: Iterable[TrackedCall]) -> None:
        """Take back what the `answered` calls hold, which will never start."""
        lane = self.running
        if lane is not None:
            lane.finish_all(answered)

    # Driving

    @protected
    async def drive(self) -> None:
        """Run lane after lane until the batch is sealed or cancelled and nothing runs any more.

        Checkpoint: always.
        """
        batch = self.batch
        ending = batch.ending
        try:
            while self._current + 1 < len(self.lanes) or await self._wait_lane():
                self._current += 1
                lane = self.lanes[self._current]
                try:
                    if ending.cancel_reason is None:
                        await lane.run()
                    else:
                        lane.start_cancelled()
                except BaseException as error:
                    ending.give_up(error)
                    self._merge(lane)
                    if self._tells and not isinstance(error, GeneratorExit):
                        await tell_services(batch, lane)  # noqa: ASYNC102  cut short: the batch is cancelled
                    raise
                self._merge(lane)
                if self._tells:
                    try:
                        await tell_services(batch, lane)
                    except BaseException as error:
                        ending.give_up(error)
                        raise
        finally:
            self._merge_the_rest()
            if batch.inside is not None:
                batch.inside.ended(batch)

    async def _wait_lane(self) -> bool:
        """Wait until there is another lane; False if there will be none."""
        while self._current + 1 == len(self.lanes):
            if self.batch.is_complete():
                return False
            self._news = trio.Event()
            try:
                await self._news.wait()
            except BaseException as error:
                self.batch.ending.give_up(error)
                raise
            finally:
                self._news = None
        return True

    def _merge(self, lane: LaneRun) -> None:
        batch = self.batch
        if probe.implied is not None:
            _bookkeeping.merges(lane, self._tells)
        try:
            self.state = lane.end(self.state)
        except (KeyboardInterrupt, SystemExit) as error:
            # In a modifier: none of the lane's modifiers is applied.
            lane.modified = []
            self.state = lane.end(self.state)
            batch.ending.abort(error)
        if lane.applied:
            self.applied += lane.applied
            lane.applied = []
        if batch.inside is not None:
            batch.inside.note_changes(batch.path, lane)
        if observer.listens:
            merge: Any = lane.merge
            rejected = [(one.call_index, one.position) for one in merge.rejected]
            merged = LaneMerged(batch.batch_id, lane.index, bare_state(self.state), merge.applied, rejected)
            observer.tell(merged, batch.teller)
        batch.reader.tell()

    def _merge_the_rest(self) -> None:
        """Every lane gives one merge, also one that never started because the batch was cancelled."""
        for lane in self.lanes[self._current + 1 :]:
            self._current += 1
            self._merge(lane)

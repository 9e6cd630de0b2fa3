"""A batch: all calls of one model response, from the first submission to the outcome.

Rules.
    1. `submit` fixes the result slot and the lane, synchronously; whatever happens later, the call is answered
       once, in its own slot.
    2. Lanes run one after the other, in one task; at a lane's end its modifiers are merged and the next lane
       starts from the state they leave.
    3. What ends a batch early is a cancel (what has not started never does) or a stop (what follows the failed
       call is skipped).  A result that was handed over stays; then whichever of the two came first decides.
    4. Leaving waits for everything that still runs, and then nothing of the batch is left.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import attrs
import trio

from toolrt import probe
from toolrt._plain import json_copy, plain
from toolrt.errors import BatchClosed, DefinitionRefused, asks_to_exit, error_text
from toolrt.model import (
    Arguments,
    BatchOutcome,
    Claim,
    Mismatch,
    Modifier,
    Outcome,
    State,
    Tool,
    ToolCall,
    ToolResult,
    Update,
)
from toolrt.order import (
    ClaimTable,
    Happening,
    LanePlace,
    Status,
    TrackedCall,
    shares_a_lane,
)
from toolrt.runtime import _bookkeeping
from toolrt.runtime._after_lane import tell_services
from toolrt.runtime._cancellation import bare, split_cancelled
from toolrt.runtime._execution import RUNNING_CALL
from toolrt.runtime._home import share_of
from toolrt.runtime._lane import LaneRun
from toolrt.runtime._reader import Reader
from toolrt.runtime._telemetry import Teller

if TYPE_CHECKING:
    from toolrt.runtime._inside import Inside
    from toolrt.runtime._runtime import Runtime

__all__ = ["Batch"]

#: Looked up once: an attribute of an enumeration costs as much as a call.
_COMPLETED, _YIELDED = Status.COMPLETED, Status.YIELDED


class Batch:
    """One batch.  Make one with `Runtime.open_batch`, and use it as an async context manager.

    Leaving the block normally seals the batch and waits for it; leaving it by an exception cancels the batch,
    waits for what still runs, and lets that exception out as it is.

    Iterate over it for its updates; there is one reader.

    One that a tool opened (`ToolContext.open_batch`) is a sub-batch: it runs inside the claims and the slot of the
    tool's call, its `parent`.
    """

    #: The scope of a service that is told what a lane changed, while it is.
    hook_scope: trio.CancelScope | None = None
    #: Tells the runtime's observer of this batch; None where there is none, or before the batch is entered.
    teller: Teller | None = None

    def __init__(
        self,
        runtime: Runtime,
        state: State,
        batch_id: str,
        expected_reads: int,
        read: bool,
        events: bool = False,
        inside: Inside | None = None,
        path: tuple[int, ...] = (),
    ) -> None:
        self.runtime = runtime
        #: What its parent lends; None for a batch that no tool opened inside its call.
        self.inside = inside
        #: Whether services hear what its lanes changed: of a sub-batch they hear with its parent's lane.
        self._tells = inside is None and bool(runtime.hooks)
        #: Its place among the sub-batches of its outermost batch: call_index, number of the sub-batch, and so on.
        self.path = path
        #: Names the batch in results, events and errors.
        self.batch_id = batch_id
        #: How many reads its author expects; fixes the read budget while the batch runs.
        self.expected_reads = expected_reads
        #: How many tokens one read may answer; None is any number.  Fixed here (RULES 23).
        self.read_budget = share_of(state.context_budget, expected_reads)
        #: Whether its reader wants the events of toolrt's own tools.
        self.events = events
        #: The tools its calls may name.
        self.registry = runtime.registry
        #: The state after the last lane that has ended.
        self.state = state
        #: The calls so far, by call_index.
        self.calls: list[TrackedCall] = []
        self.approve = runtime.approve
        self.timeout = runtime.timeout
        #: How many calls run at once; a sub-batch has no limit of its own, but the slots that its parent lends.
        self.limit = math.inf if runtime.limit is None or inside is not None else runtime.limit
        self.tables = runtime.tables if inside is None else tuple(map(inside.table, runtime.tables))
        self._lanes: list[LaneRun] = []
        self._current = -1
        self.reader = Reader(batch_id, self.calls, self._lanes, listens=read)
        #: Hands on a call's progress, or drops and counts it.
        self.send = self.reader.send
        #: What calls of a tool are given.
        self.services_of = runtime.services_of
        self._sealed = False
        self._stopped_by: TrackedCall | None = None
        #: Why the batch was cancelled; None while it is not.
        self.cancel_reason: str | None = None
        self._abort: BaseException | None = None
        self._outcome: BatchOutcome | None = None
        #: The context variables of whoever opened the batch: what every call of it sees.
        self.context = contextvars.copy_context()
        self._now = trio.current_time()
        self._threads: trio.CapacityLimiter | None = None
        self._more_calls: trio.Event | None = None
        self._manager: Any = None
        self._nursery: trio.Nursery | None = None
        self._opened = False
        self._opener: TrackedCall | None = None
        #: The modifiers that its lanes have applied, in order; kept for sub-batches alone.
        self._applied: list[Modifier] = []

    @property
    def parent(self) -> TrackedCall | None:
        """The call inside which it runs; None for a batch that is no sub-batch."""
        return None if self.inside is None else self.inside.call

    def _open(self) -> None:
        if self._opened:
            raise BatchClosed(self.batch_id, "be entered", "it was entered before: open another one")
        if self.inside is not None:
            self.inside.entered(self)
            self._opener = self.inside.call
        else:
            self._refuse_inside_a_tool()
        self._opened = True
        if probe.sink is not None:
            policy = getattr(self.runtime.lanes, "__name__", "policy")
            parent = None if self.inside is None else [self.inside.call.batch_id, self.inside.call.call_index]
            fields = {"batch": self.batch_id, "policy": policy, "limit": self.runtime.limit, "parent": parent}
            probe.sink.event("batch.opened", {**fields, "state": self.state.to_json()})
        self.teller = self.runtime.teller(self.batch_id)
        if self.teller is not None:
            self.teller.opened(getattr(self.runtime.lanes, "__name__", "policy"), self.runtime.limit)
        if self.inside is not None and self.inside.is_cancelled:
            self.inside.cancel("was cancelled")

    def _refuse_inside_a_tool(self) -> None:
        """Refuse a batch that is no sub-batch where a call around it holds what its calls would wait for."""
        parent = self._opener = RUNNING_CALL.get()
        while parent is not None and not (parent.status is Status.EXECUTING and self._shares_a_table_with(parent)):
            parent = parent.parent
        if parent is not None:
            holder = f"call {parent.call_index} of batch {parent.batch_id}"
            why = f"{holder} holds claims in the same table, and would wait for itself"
            remedy = "open a sub-batch instead, with ctx.run or ctx.open_batch"
            raise BatchClosed(self.batch_id, "be opened inside a tool", f"{why}: {remedy}")

    def _shares_a_table_with(self, parent: TrackedCall) -> bool:
        return any(ticket.table in self.tables for ticket in parent.tickets)

    # Submitting

    def submit(self, call: ToolCall) -> TrackedCall:
        """Add a call; its place in the batch is fixed when this returns.

        Returns:
            The runtime's record of the call.

        Raises:
            BatchClosed: the batch was sealed or left; nothing was changed.
            DefinitionRefused: `call` is no `ToolCall`; nothing was changed.

        Checkpoint: never.

        Ordering: calls are in the order in which this is called; so are their tickets and their results.
        """
        if not self._opened:
            raise BatchClosed(self.batch_id, "submit a call", "it is not entered: use it with async with")
        if self._sealed or self._outcome is not None:
            raise BatchClosed(self.batch_id, "submit a call", "it was sealed")
        if not isinstance(call, ToolCall):
            raise DefinitionRefused("a call", "a toolrt.ToolCall", call)
        self._now = trio.current_time()
        return self._submit(call)

    def _submit(self, call: ToolCall) -> TrackedCall:
        tracked = TrackedCall(call, len(self.calls), self.batch_id, self._now, self.calls)
        if self._opener is not None:
            tracked.parent = self._opener
            if self.inside is not None:
                tracked.outermost = self._opener.outermost or self._opener
        self.calls.append(tracked)
        if probe.implied is not None:
            _bookkeeping.changes(self.batch_id)
        if probe.sink is not None:
            fields = {"batch": self.batch_id, "call": tracked.call_index, "call_id": str(call.call_id)}
            probe.sink.event("call.submitted", {**fields, "name": str(call.name), "input": plain(call.input)})
        tool = self.runtime.registry.get(call.name)
        tracked.tool = tool
        if self.teller is not None:
            self.teller.submitted(tracked)
        arguments = _unknown_tool(self.runtime, call) if tool is None else _decoded(tracked, tool)
        if tool is not None and tool.stops_batch is not False:
            tracked.stops = tool.may_stop(tracked.input)
        if self._stopped_by is not None:
            # A stop is taken note of only before a cancel, so it came first.
            self._skip(tracked, self._stopped_by)
        elif self.cancel_reason is not None:
            self._settle_not_started(tracked)
        elif isinstance(arguments, list):
            self.settle(tracked, Outcome.INVALID, None, _refusal(call, arguments))
            if tracked.stops:
                self.stop(tracked)
        elif tool is not None:
            tracked.arguments = arguments
            self._place(tracked, tool)
            if self.teller is not None and not tracked.admitted and self._is_behind_others(tracked):
                self.teller.waits_for_lane(tracked)
        return tracked

    def _place(self, call: TrackedCall, tool: Tool) -> None:
        shared = shares_a_lane(self.runtime.lanes, tool, call.input)
        lanes = self._lanes
        last = lanes[-1] if lanes else None
        if last is not None and not last.closed:
            if shared:
                if not last.started:
                    last.add(call)
                    return
                if last.join(call):
                    return
            last.close()
        lane = LaneRun(self, LanePlace(len(lanes)), shared)
        lane.add(call)
        lanes.append(lane)
        if self._more_calls is not None:
            self._more_calls.set()

    def _is_behind_others(self, call: TrackedCall) -> bool:
        """Whether the call's lane has to wait for another one."""
        return call.lane is not None and (call.lane > self._current + 1 or self._running_lane is not None)

    def split(self, lane: LaneRun, first: int) -> None:
        """Give the lane's calls from position `first` on, which cannot stay in it, a lane of their own behind it."""
        # Those behind keep the place that they know, so that splitting a lane again and again stays O(n).
        if probe.implied is not None:
            _bookkeeping.changes(self.batch_id)
        behind = LaneRun(self, lane.place, True)
        behind.calls = lane.calls[first:]
        behind.closed = lane.closed
        lane.closed = True
        lane.place = LanePlace(lane.place.index)
        del lane.calls[first:]
        for call in lane.calls:
            call.place = lane.place
        self._lanes.insert(lane.index + 1, behind)
        for later in self._lanes[lane.index + 1 :]:
            later.place.index += 1
        if self.teller is not None:
            for call in behind.calls:
                self.teller.waits_for_lane(call)

    def seal(self) -> None:
        """Say that no further call will come.  Sealing twice is no harm.

        Checkpoint: never.
        """
        if self._sealed:
            return
        self._sealed = True
        if probe.implied is not None:
            _bookkeeping.changes(self.batch_id)
        if probe.sink is not None:
            probe.sink.event("batch.sealed", {"batch": self.batch_id})
        if self._lanes and not self._lanes[-1].closed:
            self._lanes[-1].close()
        if self._more_calls is not None:
            self._more_calls.set()
        self.reader.tell()

    def tables_of(self, tool: Tool, claims: tuple[Claim, ...]) -> Iterator[tuple[ClaimTable, tuple[Claim, ...]]]:
        """The tables on which a call of `tool` with `claims` takes tickets; a claim on everything means all tables."""
        tables = self.tables
        if len(tables) == 1:
            yield tables[0], claims
            return
        for theirs, mine in self.split_by_table(tool, claims):
            yield (theirs if self.inside is None else self.inside.table(theirs)), mine

    def split_by_table(self, tool: Tool, claims: tuple[Claim, ...]) -> Iterator[tuple[ClaimTable, tuple[Claim, ...]]]:
        """As `tables_of` with `tool` and `claims`, but by who owns what, also where children order themselves."""
        tables = self.runtime.tables
        own = tables[0] if tool.owner is None else tool.owner.claim_table
        for table in tables:
            mine = claims if table is own else tuple(claim for claim in claims if not claim.resource)
            if mine:
                yield table, mine

    @property
    def thread_limiter(self) -> trio.CapacityLimiter:
        """The worker threads of this batch: as many as it has slots."""
        if self._threads is None:
            self._threads = trio.CapacityLimiter(math.inf if self.runtime.limit is None else self.runtime.limit)
        return self._threads

    # Settling

    def settle(
        self,
        call: TrackedCall,
        outcome: Outcome,
        content: Any,
        error: str | None,
        how: Happening = Happening.SETTLE,
    ) -> None:
        """Fix the call's result: its `outcome`, the `content` or the `error`, and `how` it came to that."""
        if probe.implied is not None:
            _bookkeeping.settles(call)
        asked = call.call
        call.result = ToolResult(
            asked.call_id, call.call_index, asked.name, outcome, content, error, call.progress_dropped
        )
        call.happen(how)
        if probe.sink is not None:
            fields: dict[str, Any] = {"batch": self.batch_id, "call": call.call_index, "outcome": outcome.value}
            fields |= {"content": plain(content), "error": error, "modifiers": len(call.modifiers)}
            probe.sink.event("call.settled", fields)
        if self.teller is not None:
            self.teller.settled(call)
        self.reader.tell()

    def _settle_not_started(self, call: TrackedCall) -> None:
        self.settle(call, Outcome.NOT_STARTED, None, f"not started: the batch was cancelled ({self.cancel_reason})")

    def _skip(self, call: TrackedCall, by: TrackedCall) -> None:
        call.modifiers = ()
        why = f"skipped: call {by.call_index} ({by.name}, id {by.call_id!r}) failed and stops the batch"
        if call.dropped and call.tool is not None and not (call.tool.is_async or probe.threads_inline):
            why += "; its thread cannot be stopped and still runs"
        self.settle(call, Outcome.SKIPPED, None, why, Happening.SKIP)

    # Ending early

    @property
    def is_cancelled(self) -> bool:
        """Whether a cancel was asked, from inside or outside."""
        return self.cancel_reason is not None

    def cancel(self, reason: str = "no reason given") -> None:
        """Let nothing start any more, and interrupt what runs.

        Finished results stay.  Calls that have not started become NOT_STARTED; running ones are cancelled and
        become INTERRUPTED unless they return all the same.  Cancelling twice keeps the first reason; cancelling
        a batch that is over changes nothing.

        Raises:
            DefinitionRefused: the reason is no text; nothing was changed.

        Checkpoint: never.
        """
        if not isinstance(reason, str):
            raise DefinitionRefused("a cancel's reason", "a string", reason)
        self._cancel(reason, outside=False)

    def cancelled_with_parent(self, reason: str) -> None:
        """Cancel a sub-batch because its parent is to end, for the parent's `reason`."""
        self._cancel(reason, outside=True)

    def cancelled_from_outside(self) -> None:
        """Take note that an enclosing scope was cancelled, if one was."""
        if self.cancel_reason is None and trio.current_effective_deadline() == -math.inf:
            self._cancel("the caller's scope was cancelled", outside=True)

    def give_up(self, error: BaseException) -> None:
        """Cancel the batch because `error` came up where it is driven."""
        self.cancelled_from_outside()
        self._cancel(f"{type(error).__name__} where the batch is driven", outside=True)

    def abort(self, error: BaseException) -> None:
        """Ctrl-C or an exit came up in a call: cancel the batch, and let `error` out when it is left."""
        if self._abort is None:
            self._abort = error
        self._cancel(f"{type(error).__name__} in a call", outside=False)
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def _cancel(self, reason: str, outside: bool) -> None:
        if self.cancel_reason is not None or self._outcome is not None:
            return
        self.cancel_reason = reason
        if probe.implied is not None:
            _bookkeeping.cancels()
        if probe.sink is not None:
            probe.sink.event("batch.cancelled", {"batch": self.batch_id, "reason": reason, "outside": outside})
        if self.teller is not None:
            self.teller.cancelled(outside)
        lane = self._running_lane
        waiting = []
        for call in self.calls:
            if call.status is Status.QUEUED:
                if call.admitted:
                    waiting.append(call)
                self._settle_not_started(call)
            elif call.inside is not None:
                call.inside.cancel_with_parent("was cancelled")
        if self._lanes:
            self._lanes[-1].close()
        if lane is not None:
            lane.close()
            lane.finish_all(waiting)
            if lane.nursery is not None:
                lane.nursery.cancel_scope.cancel()
        if self._more_calls is not None:
            self._more_calls.set()
        if self.hook_scope is not None:
            self.hook_scope.cancel()
        self.reader.tell()

    def stop(self, by: TrackedCall) -> None:
        """Skip every call behind `by`, which failed."""
        if probe.implied is not None:
            _bookkeeping.stops(self.batch_id, self.calls[by.call_index + 1 :])
        first = self._stopped_by
        if self.cancel_reason is not None or (first is not None and first.call_index <= by.call_index):
            return
        self._stopped_by = by
        if probe.sink is not None:
            probe.sink.event("batch.stopped", {"batch": self.batch_id, "by": by.call_index})
        if self.teller is not None:
            self.teller.stopped(by)
        lane = self._running_lane
        waiting = []
        for call in self.calls[by.call_index + 1 :]:
            if call.status is Status.QUEUED and call.admitted:
                waiting.append(call)
            elif call.status is Status.EXECUTING:
                call.dropped = True
                if call.inside is not None:
                    call.inside.cancel_with_parent(f"was skipped: call {by.call_index} of its batch failed")
            if call.scope is not None:
                call.scope.cancel()
            self._skip(call, by)
        if lane is not None:
            lane.finish_all(waiting)
        self.reader.tell()

    @property
    def _running_lane(self) -> LaneRun | None:
        if 0 <= self._current < len(self._lanes):
            lane = self._lanes[self._current]
            if lane.started and not lane.ended:
                return lane
        return None

    # Driving

    async def drive(self) -> None:
        """Run lane after lane until the batch is sealed or cancelled and nothing runs any more.

        Checkpoint: always.
        """
        try:
            while self._current + 1 < len(self._lanes) or await self._wait_lane():
                self._current += 1
                lane = self._lanes[self._current]
                try:
                    if self.cancel_reason is None:
                        await lane.run()
                    else:
                        lane.start_cancelled()
                except BaseException as error:
                    self.give_up(error)
                    self._merge(lane)
                    if self._tells and not isinstance(error, GeneratorExit):
                        await tell_services(self, lane)  # noqa: ASYNC102  cut short: the batch is cancelled
                    raise
                self._merge(lane)
                if self._tells:
                    try:
                        await tell_services(self, lane)
                    except BaseException as error:
                        self.give_up(error)
                        raise
        finally:
            self._merge_the_rest()
            if self.inside is not None:
                self.inside.ended(self)

    async def _wait_lane(self) -> bool:
        """Wait until there is another lane; False if there will be none."""
        while self._current + 1 == len(self._lanes):
            if self._sealed or self.cancel_reason is not None:
                return False
            self._more_calls = trio.Event()
            try:
                await self._more_calls.wait()
            except BaseException as error:
                self.give_up(error)
                raise
            finally:
                self._more_calls = None
        return True

    def _merge(self, lane: LaneRun) -> None:
        if probe.implied is not None:
            _bookkeeping.merges(lane, self._tells)
        try:
            self.state = lane.end(self.state)
        except (KeyboardInterrupt, SystemExit) as error:
            # In a modifier: none of the lane's modifiers is applied.
            lane.modified = []
            self.state = lane.end(self.state)
            self.abort(error)
        if lane.applied:
            self._applied += lane.applied
            lane.applied = []
        if self.inside is not None:
            self.inside.note_changes(self.path, lane)
        if probe.sink is not None:
            merge: Any = lane.merge
            fields = {"batch": self.batch_id, "lane": lane.index, "state": self.state.to_json()}
            rejected = [[one.call_index, one.position] for one in merge.rejected]
            probe.sink.event("lane.merged", fields | {"applied": list(map(list, merge.applied)), "rejected": rejected})
        if self.teller is not None:
            merge = lane.merge
            self.teller.lane_ended(lane.index, len(merge.applied), len(merge.rejected))
        self.reader.tell()

    def _merge_the_rest(self) -> None:
        """Every lane gives one merge, also one that never started because the batch was cancelled."""
        for lane in self._lanes[self._current + 1 :]:
            self._current += 1
            self._merge(lane)

    # Reading

    def __aiter__(self) -> Batch:
        return self

    async def __anext__(self) -> Update:
        """The next update; the iteration ends when every call is answered and the batch is sealed or cancelled.

        Raises:
            BatchClosed: somebody else is waiting for the next update; nothing was changed.

        Checkpoint: always.

        Ordering: results by call_index, the progress of a call in its order and before its result, and a lane's
        `StateMerged` after its last result.
        """
        return await self.reader.next(self._is_complete)

    def _is_complete(self) -> bool:
        return self._sealed or self.cancel_reason is not None or self._outcome is not None

    # Leaving

    @property
    def outcome(self) -> BatchOutcome:
        """One result for each call, and the state after the last lane; complete also after a cancel.

        Raises:
            BatchClosed: the batch is not over.
        """
        if self._outcome is None:
            raise BatchClosed(self.batch_id, "give its outcome", "it is not over: leave its block first")
        return self._outcome

    async def run(self, calls: Sequence[ToolCall]) -> BatchOutcome:
        """Run all of `calls` in the caller's task.

        Raises:
            DefinitionRefused: one of them is no `ToolCall`; nothing was run.

        Checkpoint: always.
        """
        for call in calls:
            if not isinstance(call, ToolCall):
                raise DefinitionRefused("a call", "a toolrt.ToolCall", call)
        self._open()
        for call in calls:
            self._submit(call)
        self.seal()
        try:
            if self._lanes:
                await self.drive()
            else:
                await trio.lowlevel.checkpoint()
        except GeneratorExit:
            raise  # the whole Trio run is torn down: there is nobody to answer
        except BaseException as error:
            self.give_up(error)
            self._leave()
            raise (self._abort or bare(error)) from None  # noqa: ASYNC104  it is the Cancelled itself, out of its group
        self._leave()
        if self._abort is not None:
            raise self._abort
        if self.cancel_reason is not None:
            await trio.lowlevel.checkpoint_if_cancelled()
        return self.outcome

    async def __aenter__(self) -> Batch:
        """Open the batch: from here on its calls run.

        Raises:
            BatchClosed: it was open before; nothing was changed.

        Checkpoint: always.
        """
        self._open()
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._nursery.start_soon(self.drive, name=f"batch {self.batch_id}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None:
            self.seal()
        else:
            self.cancelled_from_outside()
            self.cancel(f"its block was left by {type(error).__name__}")
        raised: BaseException | None = None
        try:
            await self._manager.__aexit__(None, None, None)  # noqa: ASYNC102  it is the nursery's own exit
        except GeneratorExit:
            raise
        except BaseException as unwinding:  # noqa: ASYNC103  re-raised once the outcome is fixed
            raised = unwinding
        self._leave()
        # What goes out, if several things would: Ctrl-C or an exit in a call; what came up while leaving, a
        # cancellation apart; the block's own exception, as it is; a cancellation from outside.
        if self._abort is not None and asks_to_exit(error) is None:
            raise self._abort
        if raised is not None and (error is None or split_cancelled(raised)[1] is not None):
            raise bare(raised) from None
        return False

    def _leave(self) -> None:
        """Fix the outcome; nothing of the batch runs any more."""
        if probe.implied is not None:
            _bookkeeping.stops(self.batch_id, self.calls)
        if self.inside is not None:
            self.inside.ended(self)
        self.reader.drop_unread()
        results = []
        for call in self.calls:
            if call.result is None:
                # Ctrl-C came up in the very submission of the call.
                self._settle_not_started(call)
            result = cast(ToolResult, call.result)
            if result.progress_dropped != call.progress_dropped:
                result = call.result = attrs.evolve(result, progress_dropped=call.progress_dropped)
            if call.status is _COMPLETED:
                call.status = _YIELDED
            results.append(result)
        self._outcome = BatchOutcome(tuple(results), self.state, tuple(self._applied))
        if probe.sink is not None:
            probe.sink.event(
                "batch.left",
                {
                    "batch": self.batch_id,
                    "results": [result.to_json() for result in results],
                    "state": self.state.to_json(),
                    "left": {
                        "tasks": sum(lane.unfinished for lane in self._lanes),
                        "tickets": sum(len(call.tickets) for call in self.calls),
                        "slots": sum(lane.running for lane in self._lanes),
                        "progress": len(self.reader.unread),
                    },
                    "dropped": [call.progress_dropped for call in self.calls],
                },
            )
        if self.teller is not None:
            self.teller.left(self.calls)
        self.reader.tell()

    def __repr__(self) -> str:
        stage = "over" if self._outcome is not None else "cancelled" if self.is_cancelled else "open"
        return f"<Batch {self.batch_id}: {len(self.calls)} calls, {stage}>"


def _unknown_tool(runtime: Runtime, call: ToolCall) -> list[Mismatch]:
    nearest = runtime.registry.nearest(call.name)
    names = nearest or list(runtime.registry.names[:10])
    hint = f"{'the nearest are' if nearest else 'there are'} {', '.join(names)}" if names else "there are none"
    return [Mismatch("name", f"the name of a tool ({hint})", repr(call.name))]


def _decoded(call: TrackedCall, tool: Tool) -> Arguments | list[Mismatch]:
    """The arguments, from a copy of the input: it is the model's, and whoever handed it in may go on to change it."""
    try:
        call.input = json_copy(call.input)
    except RecursionError:
        return [Mismatch("input", "JSON values", "a value nested too deeply")]
    except Exception as error:
        return [Mismatch("input", "JSON values", f"a mapping that cannot be read ({error_text(error)})")]
    return tool.decode(call.input)


def _refusal(call: ToolCall, mismatches: list[Mismatch]) -> str:
    return f"invalid call of tool {call.name!r}: {'; '.join(map(str, mismatches))}"

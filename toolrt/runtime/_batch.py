"""A batch: all calls of one model response, from the first submission to the outcome.

Rules.
    1. `submit` fixes the result slot and the lane, synchronously; whatever happens later, the call is answered
       once, in its own slot.
    2. What runs when is the matter of its lanes (`LaneSequence`), what cuts it short that of its `Ending`.
    3. Leaving waits for everything that still runs, and then nothing of the batch is left.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import trio

from toolrt import probe
from toolrt.errors import BatchClosed, DefinitionRefused, asks_to_exit
from toolrt.events import BatchOpened, BatchSealed, CallSettled, CallSubmitted, LaneAwaited, observer
from toolrt.model import BatchOutcome, Claim, Outcome, State, Tool, ToolCall, ToolResult, Update
from toolrt.model._watched_state import bare_state, parts_json
from toolrt.order import ClaimTable, Happening, Siblings, Status, TrackedCall
from toolrt.runtime import _bookkeeping
from toolrt.runtime._cancellation import bare, split_cancelled
from toolrt.runtime._decoding import decoded, refusal, unknown_tool
from toolrt.runtime._ending import Ending
from toolrt.runtime._execution import RUNNING_CALL
from toolrt.runtime._home import share_of
from toolrt.runtime._inside import Inside, refuse_inside
from toolrt.runtime._interrupts import protected
from toolrt.runtime._one_run import enter_tables, refuse_other_run
from toolrt.runtime._reader import Reader
from toolrt.runtime._sequence import LaneSequence
from toolrt.runtime._telemetry import Teller

if TYPE_CHECKING:
    from toolrt.runtime._runtime import Runtime

__all__ = ["Batch"]


class Batch:
    """One batch.  Make one with `Runtime.open_batch`, and use it as an async context manager.

    Leaving the block normally seals the batch and waits for it; leaving it by an exception cancels the batch,
    waits for what still runs, and lets that exception out as it is.

    Iterate over it for its updates; there is one reader.

    One that a tool opened (`ToolContext.open_batch`) is a sub-batch: it runs inside the claims and the slot of the
    tool's call, its `parent`.
    """

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
        #: Its place among the sub-batches of its outermost batch: call_index, number of the sub-batch, and so on.
        self.path = path
        #: Names the batch in results, events and errors.
        self.batch_id = batch_id
        #: How many reads its author expects; fixes the read budget while the batch runs.
        self.expected_reads = expected_reads
        #: How many tokens one read may answer; None is any number.  Fixed here (RULES 23).
        self.read_budget = share_of(bare_state(state).context_budget, expected_reads)
        #: Whether its reader wants the events of toolrt's own tools.
        self.events = events
        #: The tools its calls may name.
        self.registry = runtime.registry
        #: The calls so far, by call_index.
        self.calls = Siblings()
        self.approve = runtime.approve
        self.timeout = runtime.timeout
        #: How many calls run at once; a sub-batch has no limit of its own, but the slots that its parent lends.
        self.limit = math.inf if runtime.limit is None or inside is not None else runtime.limit
        self.calls.limit = self.limit
        self.tables = runtime.tables if inside is None else tuple(map(inside.table, runtime.tables))
        #: Its lanes, and the state between them.
        self.sequence = LaneSequence(self, state)
        #: What ends it, and what comes of it.
        self.ending = Ending(self)
        self.reader = Reader(batch_id, self.calls, self.sequence.lanes, listens=read)
        #: Hands on a call's progress, or drops and counts it.
        self.send = self.reader.send
        #: What calls of a tool are given.
        self.services_of = runtime.services_of
        self._sealed = False
        #: The context variables of whoever opened the batch: what every call of it sees.
        self.context = contextvars.copy_context()
        self._now = trio.current_time()
        self._threads: trio.CapacityLimiter | None = None
        self._manager: Any = None
        self._opened = False
        #: The call whose tool opened it, as a sub-batch or otherwise; None where none did.
        self.opener: TrackedCall | None = None

    @property
    def state(self) -> State:
        """The state after the last lane that has ended."""
        return self.sequence.state

    @property
    def parent(self) -> TrackedCall | None:
        """The call inside which it runs; None for a batch that is no sub-batch."""
        return None if self.inside is None else self.inside.call

    def _enter(self) -> None:
        """Let the batch begin, or refuse it and change nothing; what comes after this has to end in `Ending.leave`."""
        refuse_other_run(self.reader.token, self.batch_id, "be entered")
        if self._opened:
            raise BatchClosed(self.batch_id, "be entered", "it was entered before: open another one")
        if self.inside is not None:
            self.inside.entered(self)
            self.opener = self.inside.call
        else:
            self.opener = RUNNING_CALL.get()
            refuse_inside(self.opener, self.batch_id, self.tables)
            enter_tables(self.tables, self.batch_id)
        if self.opener is not None:
            self.opener.opened += (self,)
        self._opened = True

    def _refuse_own_tools(self, action: str) -> None:
        """Refuse what would wait for the very call that asks for it."""
        call = RUNNING_CALL.get()
        while call is not None:
            if call.siblings is self.calls and call.status is Status.EXECUTING:
                why = f"call {call.call_index} ({call.name}) asks for it, and it waits for that call to end"
                raise BatchClosed(self.batch_id, action, f"{why}: do it outside the batch's own tools")
            call = call.parent

    def _begin(self) -> None:
        """Tell that the batch is open."""
        self.teller = self.runtime.teller(self.batch_id, self.calls)
        if self.teller is not None:
            observer.measure_with(self.teller)
        if observer.listens:
            policy = getattr(self.runtime.lanes, "__name__", "policy")
            parent = None if self.inside is None else [self.inside.call.batch_id, self.inside.call.call_index]
            opened = BatchOpened(self.batch_id, policy, self.runtime.limit, parent, bare_state(self.state))
            observer.tell(opened, self.teller)
        if self.inside is not None and self.inside.is_cancelled:
            self.inside.cancel("was cancelled")

    # Submitting

    @protected
    def submit(self, call: ToolCall) -> TrackedCall:
        """Add a call; its place in the batch is fixed when this returns.

        Returns:
            The runtime's record of the call.

        Raises:
            BatchClosed: the batch was sealed or left, or belongs to another Trio run; nothing was changed.
            DefinitionRefused: `call` is no `ToolCall`; nothing was changed.

        Checkpoint: never.

        Ordering: calls are in the order in which this is called; so are their tickets and their results.
        """
        refuse_other_run(self.reader.token, self.batch_id, "submit a call")
        if not self._opened:
            raise BatchClosed(self.batch_id, "submit a call", "it is not entered: use it with async with")
        if self._sealed or self.ending.outcome is not None:
            raise BatchClosed(self.batch_id, "submit a call", "it was sealed")
        if not isinstance(call, ToolCall):
            raise DefinitionRefused("a call", "a toolrt.ToolCall", call)
        self._now = trio.current_time()
        return self._submit(call)

    def _submit(self, call: ToolCall) -> TrackedCall:
        tracked = TrackedCall(call, len(self.calls), self.batch_id, self._now, self.calls)
        if self.opener is not None:
            tracked.parent = self.opener
            if self.inside is not None:
                tracked.outermost = self.opener.outermost or self.opener
        self.calls.append(tracked)
        try:
            self._place(tracked, call)
        except BaseException as error:  # noqa: ASYNC103  it is not async: no cancel comes up in it
            if tracked.result is not None or tracked.place is not None:
                raise
            if isinstance(error, Exception):
                what = f"a call whose name and input can be read (one raised {type(error).__name__})"
                self.settle(tracked, Outcome.INVALID, None, f"invalid call: expected {what}")
                return tracked  # noqa: ASYNC104
            # An exit in a function of the tool's author, or Ctrl-C there: as in the tool itself.
            self.ending.abort(error)
            raise
        return tracked

    def _place(self, tracked: TrackedCall, call: ToolCall) -> None:
        """Give the call its lane, or its answer."""
        if probe.implied is not None:
            _bookkeeping.changes(self.batch_id)
        tool = tracked.tool = self.runtime.registry.get(call.name)
        if observer.listens:
            submitted = CallSubmitted(self.batch_id, tracked.call_index, call.call_id, call.name, call.input)
            observer.tell(submitted, self.teller)
        arguments = unknown_tool(self.registry, call) if tool is None else decoded(tracked, tool)
        if tool is not None and tool.stops_batch is not False:
            tracked.stops = tool.may_stop(tracked.input)
        ending = self.ending
        if ending.stopped_by is not None or ending.cancel_reason is not None:
            ending.answer_late(tracked)
        elif isinstance(arguments, list):
            self.settle(tracked, Outcome.INVALID, None, refusal(call, arguments))
            if tracked.stops:
                ending.stop(tracked)
        elif tool is not None:
            tracked.arguments = arguments
            self.sequence.place(tracked, tool)
            if observer.measures and not tracked.admitted and self.sequence.is_behind_others(tracked):
                observer.tell(LaneAwaited(self.batch_id, tracked.call_index), self.teller)

    @protected
    def seal(self) -> None:
        """Say that no further call will come.  Sealing twice is no harm.

        Raises:
            BatchClosed: the batch belongs to another Trio run; nothing was changed.

        Checkpoint: never.
        """
        if self._sealed:
            return
        refuse_other_run(self.reader.token, self.batch_id, "be sealed")
        self._sealed = True
        if probe.implied is not None:
            _bookkeeping.changes(self.batch_id)
        if observer.records:
            observer.tell(BatchSealed(self.batch_id))
        self.sequence.close()
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
        call.happen(how)
        if how is Happening.SKIP:
            call.modifiers = ()
        if probe.implied is not None:
            _bookkeeping.settles(call)
        asked = call.call
        call.result = ToolResult(
            asked.call_id, call.call_index, asked.name, outcome, content, error, call.progress_dropped
        )
        if observer.listens:
            reads = None if call.reads is None else parts_json(call.reads.parts)
            modifiers = len(call.modifiers)
            settled = CallSettled(self.batch_id, call.call_index, outcome.value, content, error, modifiers, reads)
            observer.tell(settled, self.teller)
        self.reader.tell()

    # Cancelling

    @property
    def cancel_reason(self) -> str | None:
        """Why the batch was cancelled; None while it is not."""
        return self.ending.cancel_reason

    @property
    def is_cancelled(self) -> bool:
        """Whether a cancel was asked, from inside or outside."""
        return self.ending.cancel_reason is not None

    @protected
    def cancel(self, reason: str = "no reason given") -> None:
        """Let nothing start any more, and interrupt what runs.

        Finished results stay.  Calls that have not started become NOT_STARTED; running ones are cancelled and
        become INTERRUPTED unless they return all the same.  Cancelling twice keeps the first reason; cancelling
        a batch that is over changes nothing.

        Raises:
            BatchClosed: the batch belongs to another Trio run; nothing was changed.
            DefinitionRefused: the reason is no text; nothing was changed.

        Checkpoint: never.
        """
        if not isinstance(reason, str):
            raise DefinitionRefused("a cancel's reason", "a string", reason)
        refuse_other_run(self.reader.token, self.batch_id, "be cancelled")
        self.ending.cancel(reason, outside=False)

    # Reading

    def __aiter__(self) -> Batch:
        return self

    @protected
    async def __anext__(self) -> Update:
        """The next update; the iteration ends when every call is answered and the batch is sealed or cancelled.

        Raises:
            BatchClosed: another task is waiting for the next update, or one of the batch's own tools asked for it;
                nothing was changed.

        Checkpoint: always.

        Ordering: results by call_index, the progress of a call in its order and before its result, and a lane's
        `StateMerged` after its last result.
        """
        refuse_other_run(self.reader.token, self.batch_id, "hand out its updates")
        self._refuse_own_tools("hand out its updates")
        return await self.reader.next(self.is_complete)

    def is_complete(self) -> bool:
        """Whether no further call will come."""
        return self._sealed or self.ending.cancel_reason is not None or self.ending.outcome is not None

    # Leaving

    @property
    def outcome(self) -> BatchOutcome:
        """One result for each call, and the state after the last lane; complete also after a cancel.

        Raises:
            BatchClosed: the batch is not over.
        """
        if self.ending.outcome is None:
            raise BatchClosed(self.batch_id, "give its outcome", "it is not over: leave its block first")
        return self.ending.outcome

    @protected
    async def run(self, calls: Sequence[ToolCall]) -> BatchOutcome:
        """Run all of `calls` in the caller's task.

        Raises:
            DefinitionRefused: one of them is no `ToolCall`; nothing was run.

        Checkpoint: always.
        """
        for call in calls:
            if not isinstance(call, ToolCall):
                raise DefinitionRefused("a call", "a toolrt.ToolCall", call)
        ending = self.ending
        self._enter()
        try:
            self._begin()
            for call in calls:
                self._submit(call)
            self.seal()
            if self.sequence.lanes:
                await self.sequence.drive()
            else:
                await trio.lowlevel.checkpoint()
        except GeneratorExit:
            raise  # the whole Trio run is torn down: there is nobody to answer
        except BaseException as error:
            ending.give_up(error)
            ending.leave()
            raise (ending.exit_asked or bare(error)) from None  # noqa: ASYNC104  the Cancelled itself, out of its group
        ending.leave()
        if ending.exit_asked is not None:
            raise ending.exit_asked
        if ending.cancel_reason is not None:
            await trio.lowlevel.checkpoint_if_cancelled()
        return self.outcome

    @protected
    async def __aenter__(self) -> Batch:
        """Open the batch: from here on its calls run.

        Raises:
            BatchClosed: it was open before; nothing was changed.

        Checkpoint: always.
        """
        self._enter()
        try:
            self._begin()
        except BaseException as error:
            self.ending.give_up(error)
            self.ending.leave()
            raise
        self._manager = trio.open_nursery()
        nursery: trio.Nursery = await self._manager.__aenter__()
        self.ending.block_scope = nursery.cancel_scope
        nursery.start_soon(self.sequence.drive, name=f"batch {self.batch_id}")
        return self

    @protected
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, GeneratorExit):  # that one comes where the whole Trio run is torn down
            refuse_other_run(self.reader.token, self.batch_id, "be left")
            self._refuse_own_tools("be left")
        if error is None:
            self.seal()
        else:
            self.ending.cancelled_from_outside()
            self.ending.cancel(f"its block was left by {type(error).__name__}", outside=False)
        raised: BaseException | None = None
        try:
            await self._manager.__aexit__(None, None, None)  # noqa: ASYNC102  it is the nursery's own exit
        except GeneratorExit:
            raise
        except BaseException as unwinding:  # noqa: ASYNC103  re-raised once the outcome is fixed
            raised = unwinding
        self.ending.leave()
        # What goes out, if several things would: Ctrl-C or an exit in a call; what came up while leaving, a
        # cancellation apart; the block's own exception, as it is; a cancellation from outside.
        if self.ending.exit_asked is not None and asks_to_exit(error) is None:
            raise self.ending.exit_asked
        if raised is not None and (error is None or split_cancelled(raised)[1] is not None):
            raise bare(raised) from None
        return False

    def __repr__(self) -> str:
        stage = "over" if self.ending.outcome is not None else "cancelled" if self.is_cancelled else "open"
        return f"<Batch {self.batch_id}: {len(self.calls)} calls, {stage}>"

"""The public view of a batch: submit calls, seal, cancel, read updates and the outcome.

Rules.
    1. `submit` fixes the result slot and the lane, synchronously; whatever happens later, the call is answered
       once, in its own slot.
    2. Leaving waits for everything that still runs, and then nothing of the batch is left.

    3. If several things would go out of the block: Ctrl-C or an exit in a call; what came up while leaving, a
       cancellation apart; the block's own exception, as it is; a cancellation from outside.

What happens inside the block is done by an engine (`toolrt.runtime._run.BatchRun`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, cast

import trio

from toolrt._plain import counted
from toolrt.errors import BatchClosed, DefinitionRefused, asks_to_exit
from toolrt.model import BatchOutcome, Progress, Registry, ResultReady, State, ToolCall, Update
from toolrt.order import BatchState, CallRecord, Machine, Siblings, TrackedCall, TrackedCalls
from toolrt.runtime._caller import RUNNING_CALL, refuse_own_tools
from toolrt.runtime._cancellation import bare, split_cancelled
from toolrt.runtime._interrupts import protected
from toolrt.runtime._lease import Lease
from toolrt.runtime._policies import BatchPolicies
from toolrt.runtime._reader import Reader

#: Hears what one call says and what becomes of it.
Listener = Callable[[Progress | ResultReady], object]


class Engine(Protocol):
    """What carries a batch out, as its façade needs it."""

    batch_id: str
    registry: Registry
    records: Siblings
    machine: Machine
    lease: Lease | None
    reader: Reader
    state: State
    outcome: BatchOutcome | None
    policies: BatchPolicies | None
    entered: bool
    read_budget: int | None
    limit: int | None
    #: Ctrl-C or an exit that came up in a call: it goes out when the batch is left.
    exit_asked: BaseException | None
    #: The way out of the block in which the batch is open, and its scope; None where there is no block.
    block: Any
    block_scope: trio.CancelScope | None

    @property
    def cancel_reason(self) -> str | None:
        """Why the batch was cancelled; None while it is not."""

    def refuse_other_run(self, action: str) -> None:
        """Refuse what is asked outside the batch's own Trio run."""

    def enter(self) -> None:
        """Let the batch begin, or refuse it and change nothing; what comes after this has to end in `close`."""

    def begin(self) -> None:
        """Tell that the batch is open."""

    def add(self, call: ToolCall, now: float, listener: Listener | None = None) -> CallRecord:
        """Add a call that was submitted at the instant `now`."""

    def seal(self) -> None:
        """Say that no further call will come: see `Batch.seal`."""

    def cancel(self, reason: str, outside: bool) -> None:
        """Let nothing start any more, and interrupt what runs."""

    def cancel_call(self, call_index: int, reason: str) -> bool:
        """Cancel one call: see `Batch.cancel_call`."""

    def cancelled_from_outside(self) -> None:
        """Take note that an enclosing scope was cancelled, if one was."""

    def give_up(self, error: BaseException) -> None:
        """Cancel the batch because `error` came up where it is driven."""

    #: Seconds from when it was entered until it is cancelled; None: it has no deadline.
    deadline: float | None

    async def drive_in_time(self) -> None:
        """The same as `drive`, and cancel the batch when its deadline comes."""

    async def drive(self) -> None:
        """Run lane after lane until the batch is sealed or cancelled and nothing runs any more."""

    def close(self) -> None:
        """Fix the outcome; nothing of the batch runs any more."""


class Batch:
    """One batch.  Make one with `Runtime.open_batch`, and use it as an async context manager.

    Leaving the block normally seals the batch and waits for it; leaving it by an exception cancels the batch,
    waits for what still runs, and lets that exception out as it is.

    Iterate over it for its updates; there is one reader.

    One that a tool opened (`ToolContext.open_batch`) is a sub-batch: it runs inside the claims and the slot of the
    tool's call, its `parent`.
    """

    __slots__ = ("__weakref__", "_engine")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def batch_id(self) -> str:
        """Names the batch in results, events and errors."""
        return self._engine.batch_id

    @property
    def calls(self) -> Sequence[TrackedCall]:
        """The calls so far, by call_index: a live view."""
        return TrackedCalls(self._engine.records)

    @property
    def state(self) -> State:
        """The state after the last lane that has ended."""
        return self._engine.state

    @property
    def parent(self) -> TrackedCall | None:
        """The call inside which it runs; None for a batch that is no sub-batch."""
        lease = self._engine.lease
        return None if lease is None else TrackedCall(lease.call)

    @property
    def limit(self) -> int | None:
        """How many of its calls run at once; None is any number.  A sub-batch shares that of the batch around it."""
        return self._engine.limit

    @property
    def read_budget(self) -> int | None:
        """How many tokens one read may answer; None is any number.  Fixed when the batch was opened (RULES 23)."""
        return self._engine.read_budget

    @protected
    def submit(self, call: ToolCall, listener: Listener | None = None) -> TrackedCall:
        """Add a call; its place in the batch is fixed when this returns.

        Args:
            call: the call.
            listener: called in Trio's thread with each `Progress` of the call, in place of the batch's reader, and with
                its `ResultReady` as soon as the result is fixed, whatever the calls before it do.  It must neither wait
                nor raise, and a trace does not have this progress.  Where a `stops_batch` tool fails later, a result
                that was given is replaced, and given anew.

        Returns:
            A live view of the call; nothing can be assigned to it.

        Raises:
            BatchClosed: the batch was sealed or left, or belongs to another Trio run; nothing was changed.
            DefinitionRefused: `call` is no `ToolCall`; nothing was changed.

        Checkpoint: never.

        Ordering: calls are in the order in which this is called; so are their tickets and their results.
        """
        engine = self._engine
        engine.refuse_other_run("submit a call")
        if not engine.entered:
            raise BatchClosed(engine.batch_id, "submit a call", "it is not entered: use it with async with")
        if engine.machine.state is not BatchState.OPEN and engine.machine.state is not BatchState.CANCELLED:
            raise BatchClosed(engine.batch_id, "submit a call", "it was sealed")
        if not isinstance(call, ToolCall):
            raise DefinitionRefused("a call", "a toolrt.ToolCall(call_id, name, input)", call)
        return TrackedCall(engine.add(call, trio.current_time(), listener))

    @protected
    def seal(self) -> None:
        """Say that no further call will come.  Sealing twice is no harm.

        Raises:
            BatchClosed: the batch belongs to another Trio run; nothing was changed.

        Checkpoint: never.
        """
        self._engine.seal()

    @protected
    async def run(self, calls: Sequence[ToolCall]) -> BatchOutcome:
        """Run all of `calls` in the caller's task: in place of ``async with``, for a batch without a reader.

        Raises:
            DefinitionRefused: one of them is no `ToolCall`; nothing was run.
            JournalRefused, JournalFailed: as of `Runtime.run`.

        Checkpoint: always.
        """
        engine = self._engine
        for call in calls:
            if not isinstance(call, ToolCall):
                raise DefinitionRefused("a call", "a toolrt.ToolCall(call_id, name, input)", call)
        journal = engine.records.journal
        if journal is None:
            return await self._run(calls)
        await journal.begin(calls, engine.registry)
        try:
            outcome = await self._run(calls)
            await journal.over(outcome)
        finally:
            journal.left()
        return outcome

    @protected
    async def _run(self, calls: Sequence[ToolCall]) -> BatchOutcome:
        engine = self._engine
        now = trio.current_time()
        engine.enter()
        try:
            engine.begin()
            for call in calls:
                engine.add(call, now)
            engine.machine.seal()
            if engine.machine.lanes:
                await (engine.drive() if engine.deadline is None else engine.drive_in_time())
            else:
                await trio.lowlevel.checkpoint()
        except GeneratorExit:
            raise  # the whole Trio run is torn down: there is nothing left to answer to
        except BaseException as error:
            engine.give_up(error)
            engine.close()
            raise (engine.exit_asked or bare(error)) from None  # noqa: ASYNC104  the Cancelled itself, out of its group
        engine.close()
        if engine.exit_asked is not None:
            raise engine.exit_asked
        if engine.machine.cancel_reason is not None:
            await trio.lowlevel.checkpoint_if_cancelled()
        if engine.policies is not None:
            engine.policies.raise_refused(engine.outcome)
        return cast(BatchOutcome, engine.outcome)

    @property
    def cancel_reason(self) -> str | None:
        """Why the batch was cancelled; None while it is not."""
        return self._engine.cancel_reason

    @property
    def is_cancelled(self) -> bool:
        """Whether a cancel was asked, from inside or outside."""
        return self._engine.cancel_reason is not None

    @property
    def is_complete(self) -> bool:
        """Whether no further call will come that could start: it was sealed, cancelled or left."""
        return self._engine.machine.is_complete

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
        self._engine.refuse_other_run("be cancelled")
        self._engine.cancel(reason, outside=False)

    def cancel_call(self, call_index: int, reason: str = "no reason given") -> bool:
        """Cancel one call; the others go on, and those that waited for it alone may start.

        One that has not started becomes NOT_STARTED.  One that runs is cancelled, with what it runs in sub-batches, and
        becomes INTERRUPTED unless it returns all the same.  Where its tool `stops_batch`, nothing is stopped by this.
        Its modifiers are dropped.

        Args:
            call_index: its place in the batch.
            reason: what its result says of it.

        Returns:
            Whether anything was changed.  Nothing is for a call that has its result, was cancelled or timed out, or
            whose tool may finish what it does (``interrupt="finish"``).

        Raises:
            DefinitionRefused: the batch has no such call, or the reason is no text; nothing was changed.
            BatchClosed: the batch belongs to another Trio run, or the call runs in a batch that was not opened with
                ``async with``; nothing was changed.

        Checkpoint: never.
        """
        return self._engine.cancel_call(call_index, reason)

    @property
    def outcome(self) -> BatchOutcome:
        """One result for each call, and the state after the last lane; complete also after a cancel.

        Raises:
            BatchClosed: the batch is not over.
        """
        outcome = self._engine.outcome
        if outcome is None:
            raise BatchClosed(self.batch_id, "give its outcome", "it is not over: leave its block first")
        return outcome

    def __aiter__(self) -> AsyncIterator[Update]:
        return self._engine.reader

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
        return await self._engine.reader.__anext__()

    @protected
    async def __aenter__(self) -> Batch:
        """Open the batch: from here on its calls run.

        Raises:
            BatchClosed: it was open before; nothing was changed.
            JournalRefused, JournalFailed: as of `Runtime.run`.

        Checkpoint: always.
        """
        engine = self._engine
        journal = engine.records.journal
        if journal is not None:
            await journal.begin()
        try:
            engine.enter()
        except BaseException:
            if journal is not None:
                journal.left()
            raise
        try:
            engine.begin()
        except BaseException as error:
            engine.give_up(error)
            engine.close()
            if journal is not None:
                journal.left()
            raise
        engine.block = trio.open_nursery()
        nursery: trio.Nursery = await engine.block.__aenter__()
        engine.block_scope = nursery.cancel_scope
        drive = engine.drive if engine.deadline is None else engine.drive_in_time
        nursery.start_soon(drive, name=f"batch {engine.batch_id}")
        return self

    @protected
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        engine = self._engine
        if not isinstance(error, GeneratorExit):  # that one comes where the whole Trio run is torn down
            engine.refuse_other_run("be left")
            if RUNNING_CALL.get() is not None:
                refuse_own_tools(engine.records, engine.batch_id, "be left")
        if error is None:
            engine.seal()
        else:
            engine.cancelled_from_outside()
            engine.cancel(f"its block was left by {type(error).__name__}", outside=False)
        raised: BaseException | None = None
        try:
            await engine.block.__aexit__(None, None, None)  # noqa: ASYNC102  it is the nursery's own exit
        except GeneratorExit:
            raise
        except BaseException as unwinding:  # noqa: ASYNC103  re-raised once the outcome is fixed
            raised = unwinding
        engine.close()
        if engine.records.journal is not None:
            engine.records.journal.left()
        # What goes out, if several things would: Ctrl-C or an exit in a call; what came up while leaving, a
        # cancellation apart; the block's own exception, as it is; a cancellation from outside.
        if engine.exit_asked is not None and asks_to_exit(error) is None:
            raise engine.exit_asked
        if raised is not None and (error is None or split_cancelled(raised)[1] is not None):
            raise bare(raised) from None
        if error is None and engine.policies is not None:
            engine.policies.raise_refused(engine.outcome)
        if error is None and engine.records.journal is not None:
            await engine.records.journal.over(engine.outcome)  # noqa: ASYNC102  shielded, and it waits for the disk only
        return False

    def __repr__(self) -> str:
        engine = self._engine
        stage = "over" if engine.outcome is not None else "cancelled" if self.is_cancelled else "open"
        return f"<Batch {engine.batch_id}: {counted(len(engine.records), 'call')}, {stage}>"

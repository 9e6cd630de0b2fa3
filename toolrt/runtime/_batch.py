"""The public view of a batch: submit calls, seal, cancel, read updates and the outcome.

Rules.
    1. `submit` fixes the result slot and the lane, synchronously; whatever happens later, the call is answered
       once, in its own slot.
    2. Leaving waits for everything that still runs, and then nothing of the batch is left.

What it does is done by an engine (`toolrt.runtime._run.BatchRun`), which stays inside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Protocol

from toolrt.errors import BatchClosed
from toolrt.model import BatchOutcome, State, ToolCall, Update
from toolrt.order import CallRecord, TrackedCall, TrackedCalls
from toolrt.runtime._interrupts import protected

__all__ = ["Batch", "Engine"]


class Engine(Protocol):
    """What carries a batch out, as its façade needs it: see the methods of `Batch`."""

    @property
    def batch_id(self) -> str: ...
    @property
    def records(self) -> Sequence[CallRecord]: ...
    @property
    def reader(self) -> AsyncIterator[Update]: ...
    @property
    def state(self) -> State: ...
    @property
    def outcome(self) -> BatchOutcome | None: ...
    @property
    def parent(self) -> CallRecord | None: ...
    @property
    def read_budget(self) -> int | None: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def cancel_reason(self) -> str | None: ...
    @property
    def is_complete(self) -> bool: ...
    def submit(self, call: ToolCall) -> CallRecord: ...
    def seal(self) -> None: ...
    def cancel_by_user(self, reason: str) -> None: ...
    async def run(self, calls: Sequence[ToolCall]) -> BatchOutcome: ...
    async def enter(self) -> None: ...
    async def leave(self, error: BaseException | None) -> None: ...


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
        parent = self._engine.parent
        return None if parent is None else TrackedCall(parent)

    @property
    def limit(self) -> int | None:
        """How many of its calls run at once; None is any number.  A sub-batch shares that of the batch around it."""
        return self._engine.limit

    @property
    def read_budget(self) -> int | None:
        """How many tokens one read may answer; None is any number.  Fixed when the batch was opened (RULES 23)."""
        return self._engine.read_budget

    @protected
    def submit(self, call: ToolCall) -> TrackedCall:
        """Add a call; its place in the batch is fixed when this returns.

        Returns:
            A live view of the call; nothing can be assigned to it.

        Raises:
            BatchClosed: the batch was sealed or left, or belongs to another Trio run; nothing was changed.
            DefinitionRefused: `call` is no `ToolCall`; nothing was changed.

        Checkpoint: never.

        Ordering: calls are in the order in which this is called; so are their tickets and their results.
        """
        return TrackedCall(self._engine.submit(call))

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

        Checkpoint: always.
        """
        return await self._engine.run(calls)

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
        return self._engine.is_complete

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
        self._engine.cancel_by_user(reason)

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

        Checkpoint: always.
        """
        await self._engine.enter()
        return self

    @protected
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        await self._engine.leave(error)  # noqa: ASYNC102  it waits for the nursery, shields nothing and is cut short
        return False

    def __repr__(self) -> str:
        engine = self._engine
        stage = "over" if engine.outcome is not None else "cancelled" if self.is_cancelled else "open"
        return f"<Batch {engine.batch_id}: {len(engine.records)} calls, {stage}>"

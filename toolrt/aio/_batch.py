"""A batch, and one call of the runtime, for asyncio tasks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from types import TracebackType
from typing import Any, TypeVar, cast

import outcome
import trio

from toolrt.aio._bridge import for_asyncio
from toolrt.aio._guest import Guest, TrioCall, here
from toolrt.errors import DefinitionRefused
from toolrt.model import BatchOutcome, State, ToolCall, Update
from toolrt.runtime import Batch, Runtime, ToolContext

T = TypeVar("T")


async def run(
    runtime: Runtime,
    calls: Sequence[ToolCall],
    state: State | None = None,
    *,
    batch_id: str | None = None,
    owner: Hashable | None = None,
    deadline: float | None = None,
    resume: bool = False,
) -> BatchOutcome:
    """Run `calls` as one batch from asyncio, and give one result for each, in call order, and the state they leave.

    Args:
        runtime: whose tools, lanes and limit are used; one runtime serves any number of tasks at once.
        calls: of one model response, in call order.
        state: the state the first lane starts from; the empty one by default.
        batch_id: names the batch: see `Runtime.run`.
        owner: whose batch it is: see `Runtime.run`.
        deadline: seconds until the batch is cancelled; the outcome is given as ever: see `Runtime.run`.
        resume: whether to go on with the batch of this id, where the journal has one: see `Runtime.run`.

    Raises:
        asyncio.CancelledError: the task was cancelled; the batch was cancelled by its laws, and nothing of it runs any
            more.  To have the outcome then, use `open_batch`.
        MisuseError: no asyncio event loop runs here; nothing was run.
        BatchClosed: a batch of another thread is open on the same claim table; nothing was run.
        DefinitionRefused: something in `calls` is no `ToolCall`, or `state` no `State`; nothing was run.
        JournalRefused, JournalFailed: as `Runtime.run`.

    Checkpoint: always.

    Ordering: as `Runtime.run`.

    Example::

        done = await toolrt.aio.run(toolrt.Runtime(registry), calls)
    """
    _checked(runtime, Runtime)
    guest = here()
    await guest.begin()
    options: dict[str, Any] = {"batch_id": batch_id, "owner": owner, "deadline": deadline, "resume": resume}
    return await guest.run(functools.partial(for_asyncio(runtime).run, calls, state, **options))


async def resume(runtime: Runtime, batch_id: str) -> BatchOutcome:
    """Go on from asyncio with a batch that was stopped, and give its outcome: see `Runtime.resume`.

    Args:
        runtime: one with a journal.
        batch_id: the batch, as `run` was given it.

    Raises:
        asyncio.CancelledError: the task was cancelled; the batch can be resumed once more.
        MisuseError: no asyncio event loop runs here; nothing was run.
        JournalRefused, JournalFailed, DefinitionRefused: as `Runtime.resume`.

    Checkpoint: always.

    Ordering: as `Runtime.run`.

    Example::

        done = await toolrt.aio.resume(runtime, "conversation-7/turn-3")
    """
    _checked(runtime, Runtime)
    guest = here()
    await guest.begin()
    return await guest.run(functools.partial(for_asyncio(runtime).resume, batch_id))


async def call(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Await a Trio function from asyncio, such as a method of a `Workspace`, and give what it gives.

    Args:
        function: the Trio function.
        args: its arguments.

    Raises:
        asyncio.CancelledError: the task was cancelled; the function was cancelled and has ended.
        MisuseError: no asyncio event loop runs here.

    Checkpoint: always.

    Example::

        text = await toolrt.aio.call(workspace.read_text, "notes.md")
    """
    guest = here()
    await guest.begin()
    return await guest.run(functools.partial(function, *args))


def open_batch(opener: Runtime | ToolContext, *args: Any, **options: Any) -> AsyncioBatch:
    """A batch that an asyncio task submits to and reads while it runs.

    Args:
        opener: the runtime, or the context of an asyncio tool whose call the batch runs inside.
        args: as of `Runtime.open_batch` or `ToolContext.open_batch`.
        options: the same, by name.

    Raises:
        MisuseError: no asyncio event loop runs here.
        DefinitionRefused: an argument cannot work.

    Example::

        async with toolrt.aio.open_batch(runtime) as batch:
            batch.submit(call)
            batch.seal()
            async for update in batch:
                ...
        batch.outcome
    """
    _checked(opener, Runtime, ToolContext)
    guest = here()
    if isinstance(opener, Runtime):
        opener = for_asyncio(opener)
    return AsyncioBatch(guest, opener.open_batch(*args, **options))


class AsyncioBatch(Batch):
    """A `Batch` whose block, iteration and `run` are awaited in asyncio; all else is as there.

    A cancel of the asyncio task, also by `asyncio.timeout`, cancels the batch as an enclosing Trio scope would: leaving
    the block waits for the end of all that runs, and `outcome` has a result for each call.

    Args:
        guest: the guest Trio run of the event loop.
        batch: the batch in that run.
    """

    __slots__ = ("_ahead", "_call", "_error", "_guest", "_inner", "_is_left", "_is_open")

    def __init__(self, guest: Guest, batch: Batch) -> None:
        super().__init__(batch._engine)
        self._guest = guest
        self._inner = batch
        self._call: TrioCall[None] = TrioCall(self._hold, keeps_turn=True)
        self._is_open = False
        #: Set when the block is left; by the exception in `_error`, if there is one.
        self._is_left = trio.Event()
        self._error: BaseException | None = None
        #: The update that a cancelled `__anext__` had already been given.
        self._ahead: list[Update] = []

    async def _hold(self) -> None:
        """Keep the batch open in Trio until the asyncio block is left."""
        traceback = None
        try:
            async with self._inner:
                self._is_open = True
                self._call.wake()
                await self._is_left.wait()
                if self._error is not None:
                    traceback = self._error.__traceback__
                    raise self._error
        except BaseException as raised:  # noqa: ASYNC103  it is the block's own, which the block raises on
            if raised is not self._error:
                raise
            self._error.__traceback__ = traceback  # the asyncio block raises it on, as it was

    async def __aenter__(self) -> AsyncioBatch:
        """Open the batch: from here on its calls run.

        Raises:
            BatchClosed: it was open before; nothing was changed.
            asyncio.CancelledError: the task was cancelled; the batch is over.

        Checkpoint: always.
        """
        await self._guest.begin()
        self._guest.start(self._call)
        try:
            while not self._is_open and self._call.outcome is None:
                await self._call.woken()
        except BaseException:
            self._call.scope.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._call.ended()  # noqa: ASYNC102  until what was cancelled has ended
            raise
        if not self._is_open:
            await self._call.ended()
        # What the block submits before it first waits comes before the calls of tasks that came later.
        self._guest.loop.call_soon(self._call.pass_turn)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(error, asyncio.CancelledError):
            self._call.scope.cancel()
        else:
            self._error = error
        self._is_left.set()
        try:
            await self._call.ended()  # noqa: ASYNC102  leaving waits, as it does in Trio
        except asyncio.CancelledError:  # noqa: ASYNC103  the block raises its own on
            if not isinstance(error, asyncio.CancelledError):
                raise
        return False

    def __aiter__(self) -> AsyncIterator[Update]:
        return self

    async def __anext__(self) -> Update:
        """The next update: see `Batch.__anext__`.  A cancelled one takes no update away.

        Raises:
            BatchClosed: another task is waiting for the next update, or one of the batch's own tools asked for it;
                nothing was changed.
            asyncio.CancelledError: the task was cancelled.

        Checkpoint: always, unless an update is at hand that a cancelled read was given.
        """
        if self._ahead:
            return self._ahead.pop()
        await self._guest.begin()
        read: TrioCall[Update] = TrioCall(self._engine.reader.__anext__)
        self._guest.start(read)
        try:
            return await read.ended()
        except asyncio.CancelledError:
            if isinstance(read.outcome, outcome.Value):
                self._ahead.append(read.outcome.value)
            raise

    async def run(self, calls: Sequence[ToolCall]) -> BatchOutcome:
        """Run all of `calls`: in place of ``async with``, for a batch without a reader.

        Raises:
            asyncio.CancelledError: the task was cancelled; nothing of the batch runs any more.
            DefinitionRefused: one of `calls` is no `ToolCall`; nothing was run.

        Checkpoint: always.
        """
        await self._guest.begin()
        return await self._guest.run(functools.partial(self._inner.run, calls))


def _checked(opener: object, *kinds: type) -> None:
    if not isinstance(opener, kinds):
        expected = " or ".join(f"a toolrt.{kind.__name__}" for kind in kinds)
        raise DefinitionRefused("toolrt.aio", expected, cast(Any, opener))

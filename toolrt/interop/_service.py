"""A Trio run in a thread of its own, on which callers in other threads run batches side by side.

Rules.
    1. The thread starts with the first batch, and ends a moment after the last one.  It keeps no program from ending.
    2. A batch runs in a copy of its caller's context.  What it raises is raised in the caller's thread.
    3. A caller that is interrupted while it waits cancels its batch, and waits for the end of it.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable

import attrs
import outcome
import trio

from toolrt.errors import InternalError
from toolrt.interop._turns import SharedHost, TableTurns
from toolrt.model import BatchOutcome


@attrs.define(eq=False)
class ServiceCall:
    """One caller's batch.

    Args:
        function: runs it, on Trio.
        ended: called in the service thread when it is over.
    """

    function: Callable[[], Awaitable[BatchOutcome]]
    ended: Callable[[], None]
    context: contextvars.Context = attrs.field(factory=contextvars.copy_context, init=False)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    #: What the batch gave; None while it runs.
    outcome: outcome.Outcome[BatchOutcome] | None = attrs.field(default=None, init=False)
    #: Let go when the batch is over.
    waits: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.waits.acquire()

    async def run(self) -> None:
        """Run the batch, and wake the caller.

        Raises:
            trio.Cancelled: the whole Trio run breaks down; the caller still waits.

        Checkpoint: as the batch does.
        """
        error: BaseException | None = None
        try:
            with self.scope:
                self.outcome = outcome.Value(await self.function())
        except trio.Cancelled:
            raise
        except BaseException as raised:  # noqa: ASYNC103  the caller's thread raises it
            error = raised
        self.end(error)

    def end(self, error: BaseException | None) -> None:
        """Wake the caller, who raises `error`, if there is one.

        Checkpoint: never.
        """
        if error is not None:
            self.outcome = outcome.Error(error)
        self.ended()
        self.waits.release()


#: Seconds for which the thread waits for the next caller.  A new thread with a new Trio run costs 0.2 ms.
_REST = 0.1


class Service(SharedHost):
    """The thread and its Trio run.

    Args:
        turns: what tells whether it may end.
    """

    def __init__(self, turns: TableTurns) -> None:
        super().__init__()
        self._turns = turns
        self._lock = threading.Lock()
        #: Batches that have not started yet.
        self._arrived: list[ServiceCall] = []
        #: Batches that are not over.
        self._running: set[ServiceCall] = set()
        self._thread: threading.Thread | None = None
        #: How other threads reach the Trio run; None before it has begun.
        self._token: trio.lowlevel.TrioToken | None = None
        self._nursery: trio.Nursery | None = None
        #: Set when there is no caller.
        self._rests = trio.Event()

    def run(self, call: ServiceCall) -> BatchOutcome:
        """Run a batch for the calling thread, and give what it gives.

        Checkpoint: never (it is not async): it blocks its thread.
        """
        try:
            self._submit(call)
        except BaseException:
            call.ended()  # no thread could be started
            raise
        try:
            call.waits.acquire()
        except BaseException:
            token = self._token
            if token is not None:
                with contextlib.suppress(trio.RunFinishedError):
                    token.run_sync_soon(call.scope.cancel)
            call.waits.acquire()
            raise
        assert call.outcome is not None
        return call.outcome.unwrap()

    def rest(self) -> None:
        """The last caller has left.

        Checkpoint: never.
        """
        token = self._token
        if token is not None:
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(self._rests.set)

    def _submit(self, call: ServiceCall) -> None:
        """See to it that the call is started.

        The Trio run takes the call under the same lock, so it cannot be over, and the run with it, before this returns.
        """
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="toolrt run_sync", daemon=True)
                thread.start()
                self._thread = thread
            self._arrived.append(call)
            if self._token is not None:
                with contextlib.suppress(trio.RunFinishedError):  # it broke down: `_serve` ends the call
                    self._token.run_sync_soon(self._start, idempotent=True)

    def _serve(self) -> None:
        error: BaseException = InternalError("the Trio run of run_sync ended before its batches")
        try:
            trio.run(self._main)
        except BaseException as broken:  # noqa: ASYNC103  every caller raises it
            error = broken
        with self._lock:
            self._thread = self._token = None
            left = [*self._running, *self._arrived]
            self._running.clear()
            self._arrived.clear()
        for call in left:
            call.end(error)

    async def _main(self) -> None:
        async with trio.open_nursery() as self._nursery:
            with self._lock:
                self._token = trio.lowlevel.current_trio_token()
            self._start()
            may_end = False
            while not may_end:
                await self._rests.wait()
                self._rests = trio.Event()
                await trio.sleep(_REST)
                may_end = self._turns.retire(self)

    def _start(self) -> None:
        assert self._nursery is not None
        with self._lock:
            calls = list(self._arrived)
            self._arrived.clear()
        for call in calls:
            self._running.add(call)
            call.context.run(self._nursery.start_soon, self._run, call)

    async def _run(self, call: ServiceCall) -> None:
        await call.run()
        self._running.discard(call)

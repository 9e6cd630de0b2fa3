"""One guest Trio run per event loop: it starts at its first use and ends with the loop.

Rules.
    1. Trio runs in the loop's own thread, as callbacks of the loop, and the loop waits for Trio's I/O and timers: see
       `toolrt.aio._io_wait`.
    2. The end of the loop ends the guest: `asyncio.run`, `asyncio.Runner`, uvloop and pytest-asyncio close a loop's
       asynchronous generators before they close the loop, and the guest keeps one that waits for exactly this.
    3. A plain ``loop.close()`` tells nothing.  Then the guest is run to its end, without the loop, by the next use of
       `toolrt.aio` in its thread, or at the interpreter's exit in the main thread.  Its batches are cancelled.  Until
       then `trio.run` is refused in that thread.  The guest of a loop that was stopped and not closed, as
       ``loop.run_until_complete`` leaves it, ends in the same way where another loop of its thread needs one, unless
       something runs in it.
    4. A task that awaits the guest is told of the end after the guest's own work has ended, also after a cancel.
    5. Trio starts the tasks of one tick in either order.  So the functions wait in a queue, which each asyncio task
       joins in its first step, and one starts only when the first step of the one before it is done.

Limits.  A thread has one guest at a time: two loops of one thread cannot both have batches open.
"""

from __future__ import annotations

import asyncio
import atexit
import collections
import contextlib
import contextvars
import queue
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar, cast

import attrs
import outcome
import trio

from toolrt.aio._io_wait import LoopWait
from toolrt.errors import MisuseError

T = TypeVar("T")


#: So many ticks of Trio's run in one turn of the loop, if Trio wants the next one at once.  A call takes about four.
_TICKS_AT_ONCE = 4


def _nothing() -> None:
    pass


@attrs.define(eq=False)
class TrioCall(Generic[T]):
    """A Trio function that runs in the guest for an asyncio task.

    Args:
        function: the Trio function, without arguments.
    """

    function: Callable[[], Awaitable[T]]
    #: Whether it keeps later functions from starting until `pass_turn`: its asyncio task is to submit first.
    keeps_turn: bool = False
    #: Lets the next function start; called at most once.
    let_next: Callable[[], None] = attrs.field(default=_nothing, init=False)
    #: Cancelling it cancels the function.
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    #: What the function gave; None while it runs.
    outcome: outcome.Outcome[T] | None = attrs.field(default=None, init=False)
    #: Wakes the asyncio task that waits; None: nothing waits.
    _waiter: asyncio.Future[None] | None = attrs.field(default=None, init=False)

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Run the function and wake the asyncio task; nothing comes out of this.

        Checkpoint: as the function does.
        """
        if not self.keeps_turn:
            self.pass_turn()
        try:
            with self.scope:
                self.outcome = outcome.Value(await self.function())
        except trio.Cancelled:  # noqa: ASYNC103  the guest ends, and with it this task
            pass
        except BaseException as error:  # noqa: ASYNC103  the asyncio task raises it
            self.outcome = outcome.Error(error)
        if self.outcome is None:
            self.outcome = outcome.Error(asyncio.CancelledError())
        self.pass_turn()
        self.wake()

    def pass_turn(self) -> None:
        """Let the next function start.  Twice is no harm.

        Checkpoint: never.
        """
        let_next, self.let_next = self.let_next, _nothing
        let_next()

    def wake(self) -> None:
        """Wake the asyncio task, if it waits.

        Checkpoint: never.
        """
        waiter = self._waiter
        if waiter is not None and not waiter.done() and not waiter.get_loop().is_closed():
            waiter.set_result(None)

    async def woken(self) -> None:
        """Wait, in asyncio, for the next `wake`."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def ended(self) -> T:
        """Wait, in asyncio, for the end, and give what the function gave.

        A cancel of the asyncio task cancels the function and is raised once the function has ended; an exception that
        the function raises then comes out in its place.

        Raises:
            asyncio.CancelledError: the asyncio task was cancelled; the function has ended.
        """
        cancelled: asyncio.CancelledError | None = None
        while self.outcome is None:
            try:
                await self.woken()
            except asyncio.CancelledError as error:  # noqa: ASYNC103  raised after the end
                cancelled = cancelled or error
                self.scope.cancel()
            except BaseException:
                self.scope.cancel()
                raise
        if cancelled is not None and not _is_failure(self.outcome):
            raise cancelled
        return self.outcome.unwrap()


class Guest:
    """The Trio run inside one event loop.

    Args:
        loop: the running event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._thread = threading.get_ident()
        #: What Trio wants run in this thread next, at most one at a time; here until it has run.
        self._tick: Callable[[], object] | None = None
        #: Whether a tick runs.
        self._is_ticking = False
        #: Waits for Trio's I/O and timers; None: Trio does, in a thread.
        self._wait: LoopWait | None = None
        #: What arrived after the loop was closed.
        self._orphans: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._scope = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        #: The functions that have not started, each with the context of its asyncio task, in the order of arrival.
        self._queue: collections.deque[tuple[TrioCall[Any], contextvars.Context]] = collections.deque()
        #: The function that has started and has not let the next one start; None: there is none.
        self._starting: TrioCall[Any] | None = None
        self.is_ending = False
        self.is_over = False
        #: Trio tasks that wait for the asyncio side; each is let go where the loop has been closed.
        self.bridges: set[Callable[[], None]] = set()
        self._end: AsyncIterator[None] | None = None
        #: Wakes those who wait for the guest's start or its end.
        self._waiters: list[asyncio.Future[None]] = []
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._soon_from_thread,
            run_sync_soon_not_threadsafe=self._soon,
            done_callback=self._over,
            host_uses_signal_set_wakeup_fd=True,
        )
        with contextlib.suppress(AttributeError, NotImplementedError):
            self._wait = LoopWait(cast(Any, self._tick).__self__, loop, self._run_ticks)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop; it is not closed.

        Raises:
            MisuseError: it was closed.
        """
        loop = self._loop()
        if loop is None or loop.is_closed():
            raise MisuseError("the asyncio event loop of this batch was closed while the batch ran")
        return loop

    @property
    def is_orphan(self) -> bool:
        """Whether the loop was closed while the guest runs."""
        loop = self._loop()
        return not self.is_over and (loop is None or loop.is_closed())

    async def begin(self) -> None:
        """See to it that the guest ends with the loop.

        Checkpoint: never.
        """
        if self._end is None:
            self._end = self._end_with_loop()
            await self._end.__anext__()

    def start(self, call: TrioCall[Any]) -> None:
        """Start a Trio function in the context of the running asyncio task.

        Checkpoint: never.
        """
        if self.is_ending or self.is_over:
            raise MisuseError("the asyncio event loop is shutting down: no batch can be started in it any more")
        call.let_next = self._let_next
        self._queue.append((call, contextvars.copy_context()))
        self._start_first()

    def _let_next(self) -> None:
        self._starting = None
        self._start_first()

    def _start_first(self) -> None:
        if self._nursery is not None and self._queue and self._starting is None:
            call, context = self._queue.popleft()
            self._starting = call
            self.wake()
            context.run(self._nursery.start_soon, call.run)

    def wake(self) -> None:
        """Let Trio run: one of its tasks is about to become runnable.

        Checkpoint: never.
        """
        if self._wait is not None:
            self._wait.wake()

    async def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run a Trio function from asyncio, and give what it gives.

        Raises:
            asyncio.CancelledError: the asyncio task was cancelled; the function was cancelled and has ended.
        """
        call = TrioCall(function)
        self.start(call)
        return await call.ended()

    async def stop(self) -> None:
        """Cancel what runs in the guest, and wait, in asyncio, until the Trio run has ended.

        A cancel of the asyncio task is raised after that.
        """
        cancelled: asyncio.CancelledError | None = None
        self.is_ending = True
        self._scope.cancel()
        while not self.is_over:
            try:
                await self._changed()
            except asyncio.CancelledError as error:  # noqa: ASYNC103  raised after the end
                cancelled = error
        if cancelled is not None:
            raise cancelled

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs in it, and its loop does not run."""
        loop = self._loop()
        is_running = loop is not None and loop.is_running()
        return self._nursery is not None and not self._nursery.child_tasks and not self._queue and not is_running

    def finish_orphan(self) -> None:
        """Run the guest to its end in place of its loop, which was closed or does not run.

        Checkpoint: never.  It blocks until all that runs in the guest has ended.
        """
        hooks = sys.get_asyncgen_hooks()
        self._scope.cancel()
        for let_go in list(self.bridges):
            let_go()
        while not self.is_over:
            if self._wait is not None:
                self._wait.wait()
            tick, self._tick = self._tick, None
            (tick or self._orphans.get())()
        sys.set_asyncgen_hooks(*hooks)  # Trio has set those of its own loop

    async def _main(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._start_first()
                while True:
                    try:
                        await trio.sleep_forever()
                    except KeyboardInterrupt as error:
                        # Trio has taken the Ctrl-C of a loop that does not handle it: it is the loop's.
                        self.loop.call_soon(_raising(error))
        self._nursery = None

    async def _end_with_loop(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._end = None
            await self.stop()  # noqa: ASYNC102, ASYNC119  the loop closes this generator, and the guest ends here

    async def _changed(self) -> None:
        waiter = self.loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _tell(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done() and not waiter.get_loop().is_closed():
                waiter.set_result(None)

    def _over(self, result: outcome.Outcome[Any]) -> None:
        self.is_over = True
        if self._wait is not None:
            self._wait.close()
        while self._queue:  # the run ended before they could start
            call, _ = self._queue.popleft()
            call.outcome = outcome.Error(asyncio.CancelledError())
            call.wake()
        if getattr(_threads, "guest", None) is self:
            del _threads.guest
        self._tell()
        result.unwrap()

    def _soon(self, function: Callable[[], object]) -> None:
        self._tick = function
        if not self._is_ticking:
            self._tick_soon()

    def _tick_soon(self) -> None:
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            loop.call_soon(self._run_ticks)

    def _run_ticks(self) -> None:
        if self.is_over:  # it was run to its end in place of this loop, which runs again
            return
        self._is_ticking = True
        try:
            for _ in range(_TICKS_AT_ONCE):
                tick, self._tick = self._tick, None
                if tick is not None:
                    tick()
                if self._tick is None or (self._wait is not None and self._wait.hold()):
                    return
                if self._starting is not None and self._starting.keeps_turn:
                    break  # its asyncio task submits before Trio goes on
        finally:
            self._is_ticking = False
        self._tick_soon()

    def _soon_from_thread(self, function: Callable[[], object]) -> None:
        loop = self._loop()
        self._orphans.put(function)
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._run_arrived)

    def _run_arrived(self) -> None:
        if not self.is_over:
            self._orphans.get()()


#: Each thread's guest, as long as it runs.
_threads = threading.local()


def here() -> Guest:
    """The guest of the running event loop; it is started if there is none.

    Raises:
        MisuseError: no event loop runs here, or another Trio run is active in this thread.

    Checkpoint: never.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise MisuseError(
            "toolrt.aio was used where no asyncio event loop runs: in Trio use `await runtime.run(calls, state)`, "
            "in code without a loop `toolrt.run_sync(runtime, calls, state)`"
        ) from None
    guest: Guest | None = getattr(_threads, "guest", None)
    if guest is not None and guest._loop() is loop:
        return guest
    if guest is not None and (guest.is_orphan or guest.is_idle):
        guest.finish_orphan()
        guest = None
    if guest is None:
        if trio.lowlevel.in_trio_run():
            raise MisuseError(
                "toolrt.aio was used in an asyncio loop that shares its thread with a Trio run: use "
                "`await runtime.run(calls, state)` in that run"
            )
        guest = _threads.guest = Guest(loop)
        return guest
    raise MisuseError(
        "another event loop of this thread has a guest Trio run: end it first with `await toolrt.aio.close()` there"
    )


async def close() -> None:
    """End the guest Trio run of this event loop, and wait for its end; batches in it are cancelled.

    A loop that ends by `asyncio.run` does this by itself.  Call it where a loop goes on for ever, as in a notebook,
    before `trio.run` is used in the same thread.  The next use of `toolrt.aio` starts a new one.

    Raises:
        asyncio.CancelledError: the asyncio task was cancelled; the guest has ended.

    Checkpoint: always, if there is a guest.
    """
    guest: Guest | None = getattr(_threads, "guest", None)
    if guest is not None and guest._loop() is asyncio.get_running_loop():
        end = guest._end
        if end is None:
            await guest.stop()
        else:
            await cast(Any, end).aclose()


def _is_failure(result: outcome.Outcome[Any]) -> bool:
    return isinstance(result, outcome.Error) and not isinstance(result.error, asyncio.CancelledError)


def _raising(error: BaseException) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


@atexit.register
def _finish_at_exit() -> None:
    guest: Guest | None = getattr(_threads, "guest", None)
    if guest is not None and guest.is_orphan:
        guest.finish_orphan()

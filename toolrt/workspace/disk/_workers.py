"""Runs a disk's operations in worker threads: one thread does all that wait, as long as they are quick.

Rules.
    1. Operations begin in the order in which they were requested.
    2. One that has begun is never abandoned: a cancelled task waits for its end and gets its result, unless the
       operation asked `check_cancelled` in time.  One that has not begun is withdrawn at once.
    3. A slow operation holds up no other for long: when nothing has begun for `_PATIENCE` seconds although something
       waits, one more thread helps, up to a limit.
    4. A task is woken when nothing else waits, and at the latest after `_HELD` seconds, or `_PATIENCE` more where
       the operation behind is slow.
    5. A thread leaves when nothing waits; none outlives the operations by more than `_PATIENCE`.

Theory.  Most operations take some microseconds in each of some twenty system calls.  At every one of these Python's
threads hand the interpreter to each other, which costs a wake-up.  With a thread for each operation ten of them compete
for it, and one edit of a file makes them change places sixty times (measured).  So Trio's thread and one worker take
turns: Trio's thread hands over all that its tasks request in one pass of its loop, and sleeps; the worker does it all
and wakes it once for ten edits.  Whether more threads help, as on a disk with slow operations, is measured as they run.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import trio

from toolrt import probe

T = TypeVar("T")

#: Wall seconds without a beginning after which one more thread helps.
_PATIENCE = 0.005

#: For so many wall seconds what is done is kept, to be told with what is done next.
_HELD = 0.004

#: The operation that this thread does.
_doing = threading.local()


class _CancelledOperation(BaseException):
    """The operation was cancelled before its last effect."""


@attrs.define(eq=False)
class _Operation:
    """One operation, from the question to the answer."""

    work: Callable[[], Any]
    task: trio.lowlevel.Task
    token: trio.lowlevel.TrioToken
    context: contextvars.Context
    #: Raises the cancel that came meanwhile.
    raise_cancel: Callable[[], Any] | None = None
    value: Any = None
    error: BaseException | None = None

    def do(self) -> None:
        """Do it; its task is still to be told."""
        _doing.operation = self
        try:
            self.value = self.context.run(self.work)
        except BaseException as error:  # noqa: ASYNC103  its task raises it
            self.error = error
        _doing.operation = None


def check_cancelled() -> None:
    """Give up the operation that this thread does, if its caller was cancelled; for the moment before its last effect.

    In a simulation, which cancels between steps only, it does nothing.

    Raises:
        BaseException: it was cancelled; let it through, and leave nothing behind.
    """
    if probe.threads_inline:
        return
    operation = getattr(_doing, "operation", None)
    if operation is None:  # a thread of Trio's
        trio.from_thread.check_cancelled()
    elif operation.raise_cancel is not None:
        raise _CancelledOperation


class DiskThreads:
    """Up to `most` threads for operations that may block.

    Args:
        eager: whether all operations are known to be slow: then more threads help at once.
    """

    def __init__(self, most: int, *, eager: bool = False) -> None:
        self._most = most
        self._eager = eager
        # What follows is touched under the lock only.
        self._lock = threading.Lock()
        self._waiting: deque[_Operation] = deque()
        #: What is done, and whose tasks are still to be told; and when the first of them was done.
        self._done: list[_Operation] = []
        self._since = 0.0
        self._threads = 0
        #: Whether the last thread to leave had done one operation only, as where each waits for the one before.
        self._alone = True
        #: How many operations have begun.
        self._begun = 0
        #: Whether a thread looks for operations that are held up.
        self._watched = False

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` gives, which is done in a thread; what it raises is raised.

        Checkpoint: always.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        token = trio.lowlevel.current_trio_token()
        operation = _Operation(work, trio.lowlevel.current_task(), token, contextvars.copy_context())
        with self._lock:
            self._waiting.append(operation)
            helps = not self._threads or (self._eager and self._threads < self._most)
            self._threads += helps
            watch = not (helps or self._watched) and self._needs_watch()
        if watch:
            _start(self._watch)
        if helps and self._alone:
            _start(self._work)
        elif helps:
            # In the next pass of Trio's loop, when all that is asked for in this one waits.
            token.run_sync_soon(_start, self._work)

        def abort(raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
            with self._lock:
                try:
                    self._waiting.remove(operation)
                except ValueError:
                    operation.raise_cancel = raise_cancel
                    return trio.lowlevel.Abort.FAILED
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        error, operation.error = operation.error, None
        if error is None:
            value: T = operation.value
            return value
        if isinstance(error, _CancelledOperation) and operation.raise_cancel is not None:
            operation.raise_cancel()
        try:
            raise error
        finally:
            del error  # its traceback holds this frame

    def _work(self) -> None:
        """Do what waits, until nothing does."""
        operation: _Operation | None = None
        begun = 0
        while True:
            with self._lock:
                told = self._ended(operation)
                operation = self._waiting.popleft() if self._waiting else None
                if operation is None:
                    told, self._done = [*told, *self._done], []
                    self._threads -= 1
                    self._alone = begun == 1
                else:
                    self._begun += 1
                    begun += 1
                watch = not self._watched and self._needs_watch()
            if told:
                _tell(told)
            if watch:
                _start(self._watch)
            if operation is None:
                return
            operation.do()

    def _ended(self, operation: _Operation | None) -> list[_Operation]:
        """Add `operation` to what is done, if there is one; gives the operations whose tasks are to be woken now."""
        now = time.perf_counter()
        if operation is not None:
            if not self._done:
                self._since = now
            self._done.append(operation)
        if not self._done or now - self._since < _HELD:
            return []
        done, self._done = self._done, []
        return done

    def _held_up(self) -> bool:
        """Whether an operation waits to begin, or a finished one for its task to be woken."""
        return bool(self._waiting or self._done)

    def _needs_watch(self) -> bool:
        """Whether the caller is to start the watch; True for one caller only."""
        needed = not self._watched and self._threads < self._most and self._held_up()
        self._watched |= needed
        return needed

    def _watch(self) -> None:
        """Become one more worker when the others are held up."""
        begun = -1
        while True:
            with self._lock:
                stuck = self._begun == begun
                if stuck or not self._held_up():
                    self._watched = False
                    self._threads += stuck
                    break
                begun = self._begun
            time.sleep(_PATIENCE)
        if stuck:
            self._work()


def _start(work: Callable[[], None]) -> None:
    trio.lowlevel.start_thread_soon(work, _ignore, "toolrt disk")


def _ignore(_: object) -> None:
    """Do nothing at the end of a thread: each operation delivers its own result."""


def _tell(done: list[_Operation]) -> None:
    """Have the tasks of what is done go on."""
    while done:
        token = done[0].token
        tasks = [operation.task for operation in done if operation.token is token]
        done = [operation for operation in done if operation.token is not token]
        # Once that run is over, none of its tasks waits.
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(_go_on, tasks)


def _go_on(tasks: list[trio.lowlevel.Task]) -> None:
    for task in tasks:
        trio.lowlevel.reschedule(task)

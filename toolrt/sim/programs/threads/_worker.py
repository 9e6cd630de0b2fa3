"""One worker thread of a program: a real thread, and a task that stands for it.

Rules.
    1. The thread runs only while its task steps, and the loop waits meanwhile: exactly one of loop and threads runs.
    2. It hands the turn back before it gives Trio's loop something to call (which is also how it ends), before it asks
       whether it is cancelled, while it waits for an answer, and while it sleeps (in virtual time).
    3. A thread that keeps the turn for too long is *stuck*: that ends the execution, undecided, with its stack.
    4. When its execution ends, a thread that has not ended gets `Abandoned` where it stands, and at every further
       hand-over; it ends before the next execution begins.

Theory.  What a thread and the loop do at the same time is done in some order, as far as each part between two
hand-overs is atomic.  To choose that order is to choose which task steps.

Limits.  Races within such a part are not seen.  A stuck thread that waits in C cannot be ended: it is left behind, and
whatever it does when it wakes up ends it.
"""

from __future__ import annotations

import ctypes
import queue
import sys
import threading
import traceback
from _thread import allocate_lock
from collections.abc import Awaitable, Callable
from functools import partial
from math import inf
from types import CodeType, FunctionType, MethodType
from typing import Any

import outcome
import trio
from trio.lowlevel import Abort

from toolrt._without_io import has_threads
from toolrt.errors import DefinitionRefused, NotSimulated, StuckStep, StuckThread
from toolrt.sim._trio_internals._decided import real_monotonic
from toolrt.sim._trio_internals._forced_end import look_no_more, where_it_stands
from toolrt.sim._trio_internals._lent import lent, name_os_thread
from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.engine._scheduler import Scheduler
from toolrt.sim.engine._watchdog import end_of_limit

# So long a thread that is abandoned, or that keeps the turn after Ctrl-C, may take.
_SECONDS_TO_END = 1.0

# The loop looks so often whether Ctrl-C came while a thread has the turn.
_SECONDS_BETWEEN_LOOKS = 0.1

# How the task of a thread waits that only gives others a turn.
_ITS_TURN: Callable[[], Awaitable[object]] = trio.lowlevel.cancel_shielded_checkpoint

# What threads are made of, and wait in.
_NEUTRAL = (threading.__file__, queue.__file__)


class Abandoned(BaseException):
    """Its execution is over."""


def thread_seconds(seconds: float) -> None:
    """Let each worker thread of this execution keep the turn for so many seconds on the wall; 10 unless this is called.

    A thread that keeps it for longer (it waits for what no other thread of the program can do, or computes) ends the
    execution, which decides nothing; its error, a `toolrt.errors.StuckThread`, has the stack.

    Args:
        seconds: more than 0.

    Raises:
        DefinitionRefused: it is no number above 0.
        NotSimulated: this code is in no execution.

    Checkpoint: never.
    """
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < inf:
        raise DefinitionRefused("thread_seconds()", "a number of seconds above 0", seconds)
    scheduler = current_scheduler()
    if scheduler is None:
        raise NotSimulated("be asked how long its threads may take from outside of it", "call it in the program")
    scheduler.record.thread_seconds = seconds


class SimulatedThread:
    """A worker thread.

    Args:
        seam: the Trio run it belongs to.
        scheduler: the execution.
        function: what it calls.
        deliver: takes the outcome of that, in the thread.
        called: its name; None: what Python calls it.
        code_of: whose code it runs; None: that of `function`.

    Raises:
        NotSimulated: this Python has no threads; the execution ends with this error.
    """

    def __init__(
        self,
        seam: Seam,
        scheduler: Scheduler,
        function: Callable[[], object],
        deliver: Callable[[outcome.Outcome[Any]], object],
        called: str | None,
        code_of: Any = None,
    ) -> None:
        if not has_threads():
            refusal = NotSimulated("start a thread in a browser", "Python has none there; start it in a task")
            seam.refused(refusal)
            raise refusal
        self.seam = seam
        self._scheduler = scheduler
        self._job: tuple[Callable[[], object], Callable[[outcome.Outcome[Any]], object]] | None = (function, deliver)
        self._code = _code_of(code_of or function)
        self._called = called
        #: The task that stands for it, and what that is called in the execution; set when it has begun.
        self.task: Any = None
        self.name = ""
        self._starter: Any = seam.current_task()
        #: The name of the task that started it.
        self.starter = scheduler.roster.actors[self._starter].name  # type: ignore[index]
        # Held while the other side has the turn.
        self._go, self._back = allocate_lock(), allocate_lock()
        self._go.acquire()
        self._back.acquire()
        self._thread: threading.Thread | None = None
        # How the task waits for its next step.
        self._waits: Callable[[], Awaitable[object]] = _ITS_TURN
        self._is_waiting = False
        # Says whether what the task waits for is there, and ends that wait; None: the task is told.
        self._is_ready: Callable[[], bool] | None = None
        self._wait_scope: trio.CancelScope | None = None
        # It can go on, and its task has not resumed yet; and it has gone on before that, while a step blocked the loop.
        self._can_go_on, self._went_on = True, False
        #: True once its execution is over for it.
        self.is_abandoned = False
        self.is_over = self._is_lost = False
        #: Threads that wait for its end.
        self.joiners: list[SimulatedThread] = []
        # Whether it is the program's own, and no worker of Trio's.
        self._is_own = False
        self._turns = 0
        #: What rewritten functions that it is in have used, each with the id of its frame and the operation.
        self.used: list[tuple[int, Any, str]] = []

    @property
    def can_be_told(self) -> bool:
        """Whether the task that started it can be told something; it always can until the execution is given up."""
        return not self.is_abandoned or (self._starter in self.seam.tasks and self.seam.is_parked(self._starter))

    def all_report(self, reports: Callable[[CodeType], bool]) -> bool:
        """Say whether all code it is in reports what it touches.

        Args:
            reports: says so of one piece of code.
        """
        code = self._code
        if code is None or not reports(code):
            return False
        frame = None if self._thread is None else sys._current_frames().get(self._thread.ident or 0)
        # Once the function has ended, the thread is in no code but Trio's and ours.
        while frame is not None and frame.f_code is not code:
            if frame.f_code.co_filename not in _NEUTRAL and not reports(frame.f_code):
                return False
            frame = frame.f_back
        return True

    # ------------------------------------------------------------------ in the loop

    @trio.lowlevel.enable_ki_protection
    async def act(self) -> None:
        """Stand for it: each step of this task is one of the thread's."""
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            while self._went_on or self._let_run():
                self._went_on = False
                if self.is_over:
                    break
                self._turns += 1
                waits, self._waits = self._waits, _ITS_TURN
                if self._is_ready is None:
                    await waits()
                else:
                    with trio.CancelScope() as self._wait_scope:
                        await waits()
                    self._wait_scope = None
                await trio.lowlevel.checkpoint_if_cancelled()
        finally:
            self._scheduler.roster.threads.pop(self.task, None)
            self.end()

    @property
    def can_go_on(self) -> bool:
        """Whether it waits for nothing but its turn."""
        return not self.is_over and (self._can_go_on or (self._is_ready is not None and self._is_ready()))

    def begin_as(self, thread: threading.Thread) -> None:
        """Begin as a thread that the program has made; it runs when its task first steps."""
        self._thread, self._is_own = thread, True
        thread.run = self._work  # type: ignore[method-assign]
        with self.seam.between_steps():
            thread.start()

    def go_on_now(self) -> None:
        """Let it run to its next hand-over within a step of another task, which blocks the loop."""
        scope = self._wait_scope
        self._let_run()
        self._went_on = True
        if scope is not None:
            scope.cancel()

    def _let_run(self) -> bool:
        """Let the thread run to its next hand-over; say whether there is one."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            if self._called is not None:
                # It may be "", which the class takes for none.
                self._thread.name = self._called
            with self.seam.between_steps():
                self._thread.start()
            name_os_thread(self._thread, self._called)
        lent.thread, lent.holder = self._thread.ident or 0, self
        try:
            self._go.release()
            self._await_turn()
        finally:
            lent.thread, lent.holder = 0, None
        self._can_go_on = self._waits is _ITS_TURN
        return not self.is_over

    def _await_turn(self) -> None:
        """Wait until the thread hands the turn back, or has kept it for too long."""
        limit = _SECONDS_TO_END if self.is_abandoned else self._scheduler.record.thread_seconds
        left, of_all = end_of_limit()
        if self.is_abandoned or left > limit:
            of_all = inf
        else:
            limit = max(left, _SECONDS_BETWEEN_LOOKS)  # a step that only begins late is not stuck
        begun = real_monotonic()
        is_interrupted = False
        while not self._back.acquire(timeout=min(_SECONDS_BETWEEN_LOOKS, limit)):
            now = real_monotonic()
            if self.seam.is_interrupted and not is_interrupted:
                is_interrupted, begun, limit = True, now, min(limit, _SECONDS_TO_END)
            if now - begun >= limit:
                self._lose(limit, of_all)
                return

    def _lose(self, limit: float, of_all: float) -> None:
        """Give up a thread that keeps the turn: the loop does not wait for it again.

        Args:
            limit: so many seconds it was waited for.
            of_all: the limit of all executions, where that is what has ended the wait; else infinity.
        """
        assert self._thread is not None
        self.is_over = self._is_lost = True
        ident = self._thread.ident or 0
        frame = sys._current_frames().get(ident)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "(it has ended)\n"
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Abandoned))
        look_no_more()
        if not self.is_abandoned:
            if of_all < inf and frame is not None:
                self.seam.refused(StuckStep(of_all, where_it_stands(frame)))
            else:
                self.seam.refused(StuckThread(self._thread.name, limit, stack))
        self.is_abandoned = True
        self._tell_abandoned()

    def end(self) -> None:
        """End it, unless it has ended: what it would wait for raises in it.  In the loop, or between two executions."""
        if self.is_over:
            return
        self.is_abandoned = True
        if self._thread is not None:
            self._let_run()
        else:
            self._tell_abandoned()

    def _tell_abandoned(self) -> None:
        """Tell the task that waits for it, in the loop."""
        if self._job is not None:
            self._job[1](outcome.Error(Abandoned()))

    def wake(self) -> None:
        """Let it go on, if it waits; call it in the loop, or in a thread that has the turn."""
        self._can_go_on = True
        if self._is_waiting:
            self._is_waiting = False
            self.seam.wake(self.task)

    async def _wait(self, seconds: float) -> None:
        if self._can_go_on:
            # It was woken before its task knew that it waits.
            return
        self._is_waiting = True
        try:
            with trio.move_on_after(seconds):
                await trio.lowlevel.wait_task_rescheduled(lambda _: Abort.SUCCEEDED)
        finally:
            self._is_waiting = False

    # ------------------------------------------------------------------ in the thread

    def _work(self) -> None:
        self._go.acquire()
        assert self._job is not None
        function, deliver = self._job
        result: Any = outcome.Error(Abandoned())
        if not self.is_abandoned:
            result = outcome.capture(function)
        if self._is_lost:
            return
        # Nothing of the job outlives it, as in Trio.
        self._job = None
        del function
        try:
            deliver(result)
        except Abandoned:
            pass
        except BaseException as error:  # noqa: ASYNC103
            # As Trio's own threads do.
            print("Exception while delivering result of thread", file=sys.stderr)
            traceback.print_exception(type(error), error, error.__traceback__)
        if not self._is_lost:
            del deliver, result
            if not self._is_own:
                # As a thread of Trio's that has no job.
                threading.current_thread().name = f"Trio thread {self.name}"
            self.is_over = True
            for joiner in self.joiners:
                joiner.wake()
            self._back.release()

    def hand_over(
        self, waits: Callable[[], Awaitable[object]] = _ITS_TURN, is_ready: Callable[[], bool] | None = None
    ) -> None:
        """Hand the turn back, and wait until the task steps again, which it does after `waits`.

        A step that blocks the loop lets the thread go on when `is_ready` says so.
        """
        if not self.is_abandoned and not self._is_lost:
            self._waits, self._is_ready = waits, is_ready
            self._back.release()
            self._go.acquire()
            self._is_ready = None
        if self.is_abandoned or self._is_lost:
            raise Abandoned

    def wait(self, seconds: float | None = None) -> None:
        """Hand the turn back until something calls `wake`, or so much virtual time has passed."""
        self.hand_over(partial(self._wait, inf if seconds is None else max(seconds, 0)))

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.hand_over(partial(trio.sleep, seconds))


def _code_of(function: Any) -> CodeType | None:
    """Give the code of the function that the program runs in a thread, or None when that is in C."""
    while not isinstance(function, FunctionType) or "sync_fn" in function.__code__.co_freevars:
        # Only these types are asked: an object of the program's may have any attribute.
        if isinstance(function, FunctionType):
            if function.__module__ != "trio._threads":
                break
            function = (function.__closure__ or ())[function.__code__.co_freevars.index("sync_fn")].cell_contents
        elif isinstance(function, partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        else:
            return None
    return function.__code__

"""Replaces Trio's ways between loop and threads while a simulation runs.

Rules.  A thread that a step of the program starts is a `SimulatedThread`; all others are left to Trio.  In such a
thread, what gives the loop something to call hands the turn over first, an answer is waited for in virtual time, and a
look whether the thread is cancelled is an access.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import outcome
import trio

from toolrt import probe
from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals._lent import lent, thread_cache, threads
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._seam import OwnRun, Seam
from toolrt.sim._trio_internals._things import SOON, asks_of
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.programs.threads._locks import LOCKS, lock_of, take, wake_waiters
from toolrt.sim.programs.threads._own import end_own_threads, replace_own_threads
from toolrt.sim.programs.threads._worker import SimulatedThread


class ThreadStandIn:
    """Stands in for Trio's ways between loop and threads."""

    def begin(self) -> None:
        """Begin another execution: the threads of the one before end."""
        end_own_threads()

    @contextmanager
    def installed(self, own_run: OwnRun) -> Iterator[None]:
        """Stand there inside the block."""
        replacements = Replacements()
        replace, cache, token = replacements.replace, thread_cache.ThreadCache, trio.lowlevel.TrioToken
        lent.blocks = _let_a_thread_run
        try:
            replace(cache, "start_thread_soon", _starts(cache.start_thread_soon, own_run))
            replace(token, "run_sync_soon", _gives(token.run_sync_soon))
            replace(threads, "_send_message_to_trio", _asks(threads.__dict__["_send_message_to_trio"]))
            replace(threads, "PARENT_TASK_DATA", _ParentTask())
            replace_own_threads(replacements, own_run, _let_a_thread_run)
            replace(threading.Condition, "wait", _waits(threading.Condition.wait, own_run))
            if hasattr(os, "pidfd_open"):
                replace(os, "waitpid", _waits_for_child(os.waitpid))
            yield
        finally:
            lent.blocks = lambda: False
            replacements.put_back()
            self.begin()


def _here() -> SimulatedThread | None:
    """Give the thread of the program that this is."""
    holder = lent.here()
    return holder if isinstance(holder, SimulatedThread) else None


def _starts(real: Callable[..., None], own_run: OwnRun) -> Callable[..., None]:
    """Make what starts a thread of the program's."""

    @wraps(real)
    def start_thread_soon(
        cache: Any,
        fn: Callable[[], object],
        deliver: Callable[[outcome.Outcome[Any]], object],
        name: str | None = None,
    ) -> None:
        seam, scheduler = own_run.in_step(), current_scheduler()
        if seam is None or scheduler is None:
            real(cache, fn, deliver, name)
            return
        if _here() is not None:
            refusal = NotSimulated("start a thread in a thread", "start it in a task")
            seam.refused(refusal)
            raise refusal
        thread = SimulatedThread(seam, scheduler, fn, deliver, name)
        task = scheduler.roster.begin_thread(thread.act, name or "worker thread")
        scheduler.record.threads[task] = thread
        scheduler.record.note_threads()
        thread.task, thread.name = task, scheduler.roster.actors[task].name

    return start_thread_soon


def _gives(real: Callable[..., None]) -> Callable[..., None]:
    """Make what gives the loop something to call."""

    @wraps(real)
    def run_sync_soon(token: Any, sync_fn: Callable[..., object], *args: Any, idempotent: bool = False) -> None:
        thread = _here()
        queue = None if thread is None else thread.seam.queue_of(token)
        if thread is None or queue is None:
            real(token, sync_fn, *args, idempotent=idempotent)
            return
        if not thread.is_abandoned:
            thread.hand_over()
        probe.access(SOON, True)
        if queue.done:
            raise trio.RunFinishedError("run() has exited")
        if idempotent:
            queue.idempotent_queue[sync_fn, args] = None
        elif getattr(sync_fn, "__module__", None) == "trio._threads":
            queue.queue.append((_answers, (thread, sync_fn, *args)))
        else:
            queue.queue.append((sync_fn, args))
        with lent.given_back():
            thread.seam.call_soon()

    return run_sync_soon


def _answers(thread: SimulatedThread, sync_fn: Callable[..., object], *args: Any) -> None:
    """Call what a thread has given, which reports nothing of its own."""
    if thread.can_be_told:
        probe.access(("Thread", thread.name), True)
        # A task that is cancelled may wait for its thread no longer.
        probe.access(asks_of(thread.starter), False)
        sync_fn(*args)


def _asks(real: Callable[..., Any]) -> Callable[..., Any]:
    """Make what sends the loop a message and waits for the answer."""

    @wraps(real)
    def send_message_to_trio(trio_token: Any, message: Any) -> Any:
        thread = _here()
        if thread is not None and (type(trio_token) is not trio.lowlevel.TrioToken or thread.seam.queue_of(trio_token)):
            object.__setattr__(message, "queue", _LoopAnswer(thread))
        return real(trio_token, message)

    return send_message_to_trio


class _LoopAnswer:
    """Stands in for the queue in which a thread gets its answer.

    Args:
        thread: the one that waits.
    """

    def __init__(self, thread: SimulatedThread) -> None:
        self._thread = thread
        self._items: deque[Any] = deque()

    def put_nowait(self, item: Any) -> None:
        """Answer; in the loop."""
        self._items.append(item)
        self._thread.wake()

    def get(self) -> Any:
        """Wait for the answer; in the thread."""
        while not self._items:
            self._thread.wait()
        return self._items.popleft()


def _waits(real: Callable[..., bool], own_run: OwnRun) -> Callable[..., bool]:
    """Make what a thread waits in for another one, or for the loop: conditions, and what is made of them."""

    @wraps(real)
    def wait(condition: Any, timeout: float | None = None) -> bool:
        thread = _here()
        if thread is None:
            return _wait_in_a_task(real, own_run.in_step(), condition, timeout)
        if not condition._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        waiter = _Waiter(thread)
        condition._waiters.append(waiter)
        before = condition._release_save()
        wake_waiters(lock_of(condition))
        try:
            thread.wait(timeout)
        finally:
            _take_again(condition, before)
            if not waiter.is_released:
                condition._waiters.remove(waiter)
        return waiter.is_released

    return wait


def _waits_for_child(real: Callable[[int, int], tuple[int, int]]) -> Callable[[int, int], tuple[int, int]]:
    """Make what a thread waits in for the end of a real process: its task waits for that in the thread's place."""

    @wraps(real)
    def waitpid(pid: int, options: int) -> tuple[int, int]:
        thread = _here()
        if thread is None or pid <= 0 or options & os.WNOHANG:
            return real(pid, options)
        try:
            ends = os.pidfd_open(pid)
        except OSError:
            return real(pid, options)  # which says what is wrong with it
        try:
            thread.hand_over(partial(trio.lowlevel.wait_readable, ends))
        finally:
            os.close(ends)
        return real(pid, options)

    return waitpid


def _wait_in_a_task(real: Callable[..., bool], seam: Seam | None, condition: Any, timeout: float | None) -> bool:
    """Wait outside the program's threads: a step of the program blocks the loop, and threads go on meanwhile."""
    scheduler = current_scheduler()
    if seam is None or scheduler is None:
        return real(condition, timeout)
    if timeout is not None and not scheduler.record.threads:
        return real(condition, timeout)
    waiter = _Waiter(None)
    condition._waiters.append(waiter)
    before = condition._release_save()
    wake_waiters(lock_of(condition))
    try:
        while not waiter.is_released and _let_a_thread_run():
            pass
    finally:
        _take_again(condition, before)
        if not waiter.is_released:
            condition._waiters.remove(waiter)
    if not waiter.is_released:
        if timeout is None:
            refusal = NotSimulated("block Trio's loop for ever", "wait for a trio.Event that a thread sets in the loop")
            seam.refused(refusal)
            raise refusal
        seam.runner.clock.now += timeout
    return waiter.is_released


def _take_again(condition: Any, before: Any) -> None:
    """Take a condition's lock again, as often as it was held."""
    lock = lock_of(condition)
    if isinstance(lock, LOCKS):
        take(lock)
        lock.release()
    condition._acquire_restore(before)


def _let_a_thread_run() -> bool:
    """Let a thread go on that can, while a step blocks the loop; say whether there is one."""
    scheduler = current_scheduler()
    if scheduler is None or _here() is not None:
        return False
    record = scheduler.record
    able = [thread for task in scheduler.roster.threads if (thread := record.threads.get(task)) and thread.can_go_on]
    if not able:
        return False
    able[scheduler.choose(len(able)) if len(able) > 1 else 0].go_on_now()
    return True


class _Waiter:
    """Stands in for the lock that a waiting thread, or a step that blocks the loop, is woken by."""

    def __init__(self, thread: SimulatedThread | None) -> None:
        self._thread = thread
        self.is_released = False

    def release(self) -> None:
        """Wake it."""
        self.is_released = True
        if self._thread is not None:
            self._thread.wake()


class _ParentTask(threading.local):
    """Stands in for what Trio's threads know of the task that waits for them."""

    _cancel_register: list[Any]

    @property
    def cancel_register(self) -> list[Any]:
        """What says whether that task is cancelled; to ask for it is a hand-over, and an access."""
        thread, register = _here(), self._cancel_register
        if thread is not None:
            thread.hand_over()
            probe.access(asks_of(thread.starter), False)
        return register

    @cancel_register.setter
    def cancel_register(self, register: list[Any]) -> None:
        self._cancel_register = register

    @cancel_register.deleter
    def cancel_register(self) -> None:
        del self._cancel_register

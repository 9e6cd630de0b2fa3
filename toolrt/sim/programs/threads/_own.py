"""Threads that a program starts itself, with `threading.Thread` or an executor of `concurrent.futures`.

Rules.
    1. They are refused, unless the program was not written for the explorer (`simulate_own_threads`): each is then an
       actor, as a worker thread is.
    2. A step of the loop that joins one blocks the loop, and threads go on meanwhile; a thread that joins one waits.

Limits.  A thread of the program's that waits in C keeps the turn.  `queue.SimpleQueue` is in C, and executors wait in
it: the one in Python stands in for it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

import outcome

from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals._lent import lent
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._seam import OwnRun, Seam
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.engine._scheduler import Scheduler
from toolrt.sim.programs.threads._worker import Abandoned, SimulatedThread

# Those that simulated programs have started.
_OWN: WeakKeyDictionary[threading.Thread, SimulatedThread] = WeakKeyDictionary()


def simulate_own_threads() -> None:
    """Have threads that the program starts itself simulated until the execution has ended."""
    scheduler = current_scheduler()
    assert scheduler is not None
    scheduler.record.own_threads = True


def end_own_threads() -> None:
    """End those that an execution has left: a task that is killed before its first step has not ended its thread."""
    for simulated in list(_OWN.values()):
        simulated.end()


def replace_own_threads(replacements: Replacements, own_run: OwnRun, let_a_thread_run: Callable[[], bool]) -> None:
    """Replace what starts threads, and what waits for their end.

    Args:
        replacements: puts them back.
        own_run: the run under control.
        let_a_thread_run: lets a thread go on while a step blocks the loop, and says whether there was one.
    """
    real_queue = queue.SimpleQueue

    def here() -> tuple[Seam, Scheduler] | None:
        seam, scheduler = own_run.in_step(), current_scheduler()
        if seam is None or scheduler is None or not scheduler.record.own_threads:
            return None
        return seam, scheduler

    @wraps(real_queue, updated=())
    def simple_queue() -> Any:
        return real_queue() if here() is None else queue.__dict__["_PySimpleQueue"]()

    replace, holder = replacements.replace, threading.Thread
    replace(holder, "start", _starts(holder.start, here))
    replace(holder, "join", _joins(holder.join, own_run, let_a_thread_run))
    replace(holder, "is_alive", _is_alive(holder.is_alive))
    replace(queue, "SimpleQueue", simple_queue)


def _starts(
    real: Callable[[threading.Thread], None], here: Callable[[], tuple[Seam, Scheduler] | None]
) -> Callable[[threading.Thread], None]:
    @wraps(real)
    def start(thread: threading.Thread) -> None:
        found = here()
        if found is None or thread.ident is not None:
            real(thread)
            return
        seam, scheduler = found
        if lent.here() is not None:
            refusal = NotSimulated("start a thread in a thread", "start it in a task")
            seam.refused(refusal)
            raise refusal
        target = getattr(thread, "_target", None) or thread.run
        simulated = SimulatedThread(seam, scheduler, thread.run, _ending(thread), None, code_of=target)
        name = getattr(target, "__name__", type(thread).__name__)
        task = scheduler.roster.begin_thread(simulated.act, name)
        scheduler.record.threads[task] = _OWN[thread] = simulated
        scheduler.record.note_threads()
        simulated.task, simulated.name = task, scheduler.roster.actors[task].name
        # One that is lost must not keep this process alive.
        thread.daemon = True
        simulated.begin_as(thread)

    return start


# What a thread ends with that is none of its own errors: a refusal is the error of its execution.
_SILENT = (Abandoned, NotSimulated, SystemExit)


def _ending(thread: Any) -> Callable[[outcome.Outcome[Any]], None]:
    """Give what takes the outcome of a thread: it says what was raised as the thread itself does."""

    def deliver(result: outcome.Outcome[Any]) -> None:
        if isinstance(result, outcome.Error) and not isinstance(result.error, _SILENT):
            try:
                raise result.error
            except BaseException:  # noqa: ASYNC103  the thread ends here
                thread._invoke_excepthook(thread)

    return deliver


def _joins(real: Callable[..., None], own_run: OwnRun, let_a_thread_run: Callable[[], bool]) -> Callable[..., None]:
    @wraps(real)
    def join(thread: threading.Thread, timeout: float | None = None) -> None:
        own, seam, holder = _OWN.get(thread), own_run.mine(), lent.here()
        if own is None or seam is None or own.is_over or own is holder:
            real(thread, timeout)
        elif isinstance(holder, SimulatedThread):
            own.joiners.append(holder)
            holder.wait(timeout)
        else:
            while not own.is_over and let_a_thread_run():
                pass
            if not own.is_over and timeout is None:
                refusal = NotSimulated("block Trio's loop for ever", "join the thread with trio.to_thread.run_sync")
                seam.refused(refusal)
                raise refusal
            if not own.is_over:
                seam.runner.clock.now += timeout

    return join


def _is_alive(real: Callable[[threading.Thread], bool]) -> Callable[[threading.Thread], bool]:
    @wraps(real)
    def is_alive(thread: threading.Thread) -> bool:
        own = _OWN.get(thread)
        return real(thread) if own is None else not own.is_over

    return is_alive

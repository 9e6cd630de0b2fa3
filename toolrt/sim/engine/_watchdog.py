"""Ends executions that run beyond a limit in wall time, also in a step that never ends.

Rules.  A thread waits for the end of the limit.  From then on it interrupts the thread that simulates whenever code of
the program runs there: that execution is given up, and its error is a `toolrt.errors.StuckStep` with the line where it
stood.  What runs beside steps (a check, a finaliser, the end of a wait) may go on for a while, and is then ended too.
Trio's task that calls callbacks is left alone but in a callback: without it no run goes on.
When the limit is lifted the thread has ended.

Theory.  A call in C that lets no other thread run keeps the watching thread from its turn, too.  Some of these look for
signals, as a regular expression does; so a timer of processor time sends the same signal.

Limits.  Outside the main thread a call that blocks in C is waited for.  So is, in any thread, one that neither looks
for signals nor lets another thread run, such as the sum of an endless iterator: that can be ended only together with
its process, as `tell_where_stuck` asks for.  Where Python has no threads nothing is ended: a page ends its
worker.
"""

from __future__ import annotations

import faulthandler
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from types import FrameType
from typing import Any

from toolrt._without_io import has_threads
from toolrt.errors import StuckStep
from toolrt.sim._trio_internals._forced_end import (
    ForcedEnd,
    beside_steps,
    forced_end,
    functions_of_step,
    is_in_step,
    let_go,
    where_it_stands,
)
from toolrt.sim._trio_internals._step import can_step_inside
from toolrt.sim.engine._teardown import without_warnings

# Wall seconds between two interrupts.
_EVERY = 0.05

# So many seconds, or as many as the limit has, what runs beside the steps may go on after the limit.
_GRACE = 1.0

# A timer's signal counts where the watching thread has sent none for so many seconds.
_UNHEARD = 0.25

# After so many signals that no handler was called for, exceptions are raised from the other thread.
_MOST_UNANSWERED = 5

# So many seconds, or as many as the limit has, after the limit a process may be ended that no other end has reached.
_GRACE_OF_PROCESS = 4.0

# The descriptor to which such a process writes where it stands, and whether it ends then; None: it is waited for.
_last_words: tuple[int, bool] | None = None

# When the limit is over, on the clock that `monotonic` reads, and how many seconds it has.
_limit = inf, inf


def end_of_limit() -> tuple[float, float]:
    """Give the wall seconds that are left of the limit in force, and those that it has; infinity twice: there is none.

    A worker thread that keeps the turn is waited for no longer.

    Checkpoint: never.
    """
    end, seconds = _limit
    return max(end - monotonic(), 0.0), seconds


def tell_where_stuck(descriptor: int | None, ends: bool = True) -> None:
    """Have the stack of each thread written, some time after a limit, where nothing else can end what runs.

    Args:
        descriptor: where they are written; None: what runs is waited for, as without this.
        ends: whether the whole process ends then.

    Checkpoint: never.
    """
    global _last_words
    _last_words = None if descriptor is None else (descriptor, ends)


def _tell_later(end: float, seconds: float) -> None:
    """Have them written some time after a limit of `seconds` that is over at `end`; infinity: not at all."""
    if end == inf:
        faulthandler.cancel_dump_traceback_later()
    elif _last_words is not None:
        # A thread of C does this, which needs no turn of Python's.
        descriptor, ends = _last_words
        after = max(end - monotonic(), 0.0) + max(_GRACE_OF_PROCESS, seconds)
        faulthandler.dump_traceback_later(after, exit=ends, file=descriptor)


@contextmanager
def watched(
    seconds: float, give_up: Callable[[StuckStep], None], end_after_step: Callable[[float], None]
) -> Iterator[None]:
    """Let no execution inside the block run for longer than `seconds` from now.

    Inside another such block the limit ends with that of the other one at the latest.

    Args:
        seconds: in wall time.
        give_up: is called with the error of the execution that runs then.
        end_after_step: is called with `seconds` where it is between two steps.
    """
    if not has_threads():
        yield
        return
    left, outer_seconds = end_of_limit()
    # An error names the limit that was given, not what was left of it.
    named, seconds = (outer_seconds, left) if left < seconds else (seconds, seconds)
    simulating, over = threading.get_ident(), threading.Event()
    signals = hasattr(signal, "pthread_kill") and threading.current_thread() is threading.main_thread()
    attempts = unanswered = 0
    ended: list[FrameType] = []
    # When the watching thread has sent its last signal; before the first, when the limit is over.
    sent = end = monotonic() + seconds
    place = ""
    # What runs beside the steps, since when, and for how long it may: a check that takes its time is no stuck step.
    standing: tuple[FrameType | None, float] = (None, 0.0)
    grace = max(seconds, _GRACE)

    def is_caught(frame: FrameType | None) -> bool | None:
        """Give the execution up if code of the program runs; say whether a step does, or None: no such code runs."""
        nonlocal attempts, place, standing
        if frame is None or over.is_set():
            return None
        is_step = is_in_step(frame)
        if not is_step:
            outermost = beside_steps(frame)
            if outermost is None or outermost is not standing[0]:
                standing = outermost, monotonic()
            if outermost is None:
                # A step may be too short to be met.
                end_after_step(named)
            if outermost is None or monotonic() - standing[1] < grace:
                return None
        attempts += 1
        ended.extend(functions_of_step(frame))
        # Where a finaliser swallows one, it is told in C or not at all: code in Python would meet the next.
        sys.unraisablehook = bool
        place = where_it_stands(frame)
        give_up(StuckStep(named, place))
        return is_step

    def interrupted(_: int, frame: FrameType | None) -> None:
        nonlocal unanswered, sent
        if not unanswered and monotonic() - sent < _UNHEARD:
            return  # the timer's, and the watching thread has its turns
        unanswered, sent = 0, monotonic()
        is_step = is_caught(frame)
        if is_step is not None:
            raise forced_end(is_step and can_step_inside(), attempt=attempts)

    def watch() -> None:
        nonlocal unanswered, sent
        left = seconds
        while not over.wait(left):
            left = _EVERY
            if signals and unanswered < _MOST_UNANSWERED:
                unanswered, sent = unanswered + 1, monotonic()
                signal.pthread_kill(simulating, signal.SIGVTALRM)
                continue
            # The program has its own handler for the signal, or lets none through.
            is_step = is_caught(sys._current_frames().get(simulating))
            if is_step is not None:
                forced_end(is_step and can_step_inside(), simulating, attempts)

    global _limit
    outer, _limit = _limit, (end, named)
    hook = sys.unraisablehook
    before: Any = signal.signal(signal.SIGVTALRM, interrupted) if signals else None
    timer = signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _EVERY) if signals else (0.0, 0.0)
    watchdog = threading.Thread(target=watch, name="toolrt's watchdog", daemon=True)
    watchdog.start()
    if _last_words is not None:
        _tell_later(*_limit)
    try:
        yield
    except ForcedEnd:
        raise StuckStep(named, place) from None
    finally:
        _limit = outer
        if _last_words is not None:
            _tell_later(*outer)
        over.set()
        watchdog.join()
        standing = None, 0.0
        if attempts:
            # It complains as it is dropped.
            with without_warnings():
                let_go(ended)
                ended.clear()
                gc.collect()
            sys.unraisablehook = hook
        if signals:
            signal.setitimer(signal.ITIMER_VIRTUAL, *timer)
            # One that is still pending must not meet the handler that was there before.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGVTALRM])
            signal.signal(signal.SIGVTALRM, before)

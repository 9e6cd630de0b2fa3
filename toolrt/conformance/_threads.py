"""Whether the program's other threads work, or wait for something.

Rules.
    1. A thread of a pool (`concurrent.futures`, and so `asyncio.to_thread`) works unless it is idle or waits.
    2. It waits where it would not go on if nothing else happened: for a future, an event, a queue, the end of a thread.
       One that was woken and has not gone on yet does not wait any more.
    3. One that runs an event loop of its own does not work while that loop has nothing to do; it may go on by itself.
    4. Of a thread of any other kind only a wait is recognized; else nothing is known of it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import gc
import sys
import threading
from types import CodeType, FrameType
from typing import Any


def _code(function: Any) -> CodeType | None:
    return getattr(function, "__code__", None)


_WAIT = _code(threading.Condition.wait)
_JOINS = (_code(threading.Thread.join), _code(getattr(threading.Thread, "_wait_for_tstate_lock", None)))
_RUNS = _code(getattr(asyncio.BaseEventLoop, "_run_once", None))
_POOL = _code(getattr(concurrent.futures.thread, "_worker", None))


def works() -> bool:
    """Whether a thread of a pool works, or a thread begins."""
    begins = any(thread.ident is None for thread in threading.enumerate())
    return begins or any(_in_pool(frame) and not (_waits(frame) or _idles(frame)) for frame in _others())


def unknown() -> bool:
    """Whether there is a thread that may go on by itself, because it is not seen to wait, or waits for real seconds."""
    return any(not _waits(frame) or frame.f_locals.get("timeout") is not None for frame in _others())


def _frames() -> dict[int, FrameType]:
    """The innermost frame of each thread.  A garbage collection in the middle of it can deadlock (Python 3.11)."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def _others() -> list[FrameType]:
    own = threading.get_ident()
    return [frame for thread, frame in _frames().items() if thread != own]


def _in_pool(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is _POOL:
            return True
        frame = frame.f_back
    return False


def _waits(frame: FrameType) -> bool:
    code, names = frame.f_code, frame.f_locals
    if code is _WAIT:
        return names.get("waiter") in names["self"]._waiters
    if code is _POOL:
        return names.get("work_item") is None and not names["work_queue"].qsize()
    return code in _JOINS and names["self"].ident in _frames()


def _idles(frame: FrameType) -> bool:
    return frame.f_code.co_name == "select" and frame.f_back is not None and frame.f_back.f_code is _RUNS

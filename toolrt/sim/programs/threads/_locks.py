"""Locks of `threading`, taken where the thread that has one may have handed its turn over.

Rules.  The lock is Python's own.  A thread that finds it taken hands over until it is given back; a step of the loop
that does so lets threads go on meanwhile, as the loop is blocked.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

import trio

from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals._lent import lent
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.programs.threads._worker import SimulatedThread

#: The types of locks.
LOCKS: tuple[Any, ...] = (type(allocate_lock()), type(threading.RLock()))

# Who waits for a lock.
_WAITERS: WeakKeyDictionary[Any, list[SimulatedThread]] = WeakKeyDictionary()


def lock_of(condition: threading.Condition) -> Any:
    """Give the lock of a condition."""
    return vars(condition)["_lock"]


def take(lock: Any, blocking: bool = True, timeout: float | None = -1) -> bool:
    """Acquire `lock`; `timeout` is in virtual seconds, below 0 or None: for ever.

    Returns:
        Whether it was acquired.

    Raises:
        NotSimulated: the step would block Trio's loop for ever.
        ValueError: as from the lock's own method.
    """
    if not blocking:
        return bool(lock.acquire(False) if timeout in (-1, None) else lock.acquire(False, timeout))
    limit = inf if timeout is None or timeout < 0 else timeout
    scheduler, thread = current_scheduler(), lent.here()
    if lock.acquire(False):
        return True
    if scheduler is None:
        return bool(lock.acquire(True, -1 if limit == inf else limit))
    clock: Any = thread.seam.runner.clock if isinstance(thread, SimulatedThread) else trio.lowlevel.current_clock()
    ends = clock.now + limit
    while clock.now < ends and not lock.acquire(False):
        if isinstance(thread, SimulatedThread):
            waiters = _WAITERS.setdefault(lock, [])
            waiters.append(thread)
            try:
                thread.wait(None if limit == inf else ends - clock.now)
            finally:
                if thread in waiters:
                    waiters.remove(thread)
        elif not lent.blocks():
            if limit == inf:
                scheduler.refuse(refusal := NotSimulated(_BLOCKS, "take the lock in a thread, or use trio.Lock"))
                raise refusal
            clock.now = ends
    else:
        return bool(clock.now < ends)
    return bool(lock.acquire(False))


_BLOCKS = "block Trio's loop for ever"


def give(lock: Any) -> None:
    """Release `lock`, and wake who waits for it."""
    lock.release()
    wake_waiters(lock)


def wake_waiters(lock: Any) -> None:
    """Let each thread that waits for `lock` look again."""
    for thread in _WAITERS.pop(lock, ()):
        thread.wake()

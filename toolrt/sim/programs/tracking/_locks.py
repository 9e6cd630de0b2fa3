"""What rewritten code does with locks of `threading`: each is a resource, and who waits for one hands the turn over.

Limits.  Code that is not rewritten takes a lock itself: where another thread has it, that thread is stuck.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from toolrt.sim._trio_internals._lent import lent
from toolrt.sim.programs.threads._locks import LOCKS, give, lock_of, take
from toolrt.sim.programs.tracking._touch import made, name_of, now, report


def is_lock(thing: Any) -> bool:
    """Whether `thing` is a lock, or a condition, which stands for its lock."""
    return isinstance(thing, LOCKS) or type(thing) is threading.Condition


def _acquire(lock: Any, blocking: bool = True, timeout: float = -1) -> bool:
    report(name_of(lock), True)
    taken = take(lock, blocking, timeout)
    report(name_of(lock), True)
    return taken


def _release(lock: Any) -> None:
    report(name_of(lock), True)
    give(lock)


def _locked(lock: Any) -> bool:
    report(name_of(lock), False)
    return bool(lock.locked())


_METHODS: dict[str, Callable[..., Any]] = {"acquire": _acquire, "release": _release, "locked": _locked}


def lock_method(function: Any) -> Callable[..., Any] | None:
    """Give what stands for a method of a lock; None where it is none of those that are modelled."""
    model = _METHODS.get(function.__name__) if isinstance(function.__self__, LOCKS) else None
    return None if model is None else functools.partial(model, function.__self__)


class HeldLock:
    """A lock that rewritten code holds within a block.

    Args:
        lock: it, or a condition of it.
    """

    def __init__(self, lock: Any) -> None:
        self._lock: Any = lock_of(lock) if isinstance(lock, threading.Condition) else lock

    def __enter__(self) -> bool:
        if lent.thread:
            now.turn()
        return _acquire(self._lock)

    def __exit__(self, *error: object) -> None:
        if lent.thread:
            now.turn()
        _release(self._lock)


#: What makes locks.
LOCK_MODELS: dict[Any, Callable[..., Any]] = {
    threading.Lock: lambda: made(threading.Lock()),
    threading.RLock: lambda: made(threading.RLock()),
}

"""The reports of events, locks, semaphores, limiters, parking lots, channels and run variables.

- *Event*: ``set`` writes, once; ``wait`` reads, so two waits commute.
- *Lock, Semaphore, CapacityLimiter, Condition, ParkingLot, memory channels*: every operation that changes something
  writes, also when the order would not have mattered this time; only an infinite limiter's tokens commute.

- *Memory streams*: every operation on the queue of bytes below one writes it, and so does entering and leaving what
  refuses a second task at the same time.

Limits.  Lockstep streams and unbounded queues are seen only where they park.
"""

from __future__ import annotations

import inspect
import sys
from math import inf
from typing import Any

import trio

from toolrt.sim._trio_internals._reporter import Reporter, Row
from toolrt.sim._trio_internals._things import SOON, Primitives, reads, touch, writes

_core: Any = trio._core
_run: Any = _core._run
_sync: Any = sys.modules["trio._sync"]
_channel: Any = sys.modules["trio._channel"]
_parking_lot: Any = sys.modules["trio._core._parking_lot"]
_local: Any = sys.modules["trio._core._local"]
_util: Any = sys.modules["trio._util"]


_OWN = (_sync.__dict__, _parking_lot.__dict__)


def _looks(things: Primitives, self: Any) -> None:
    # Trio's own primitives report for themselves.
    if sys._getframe(2).f_globals not in _OWN:
        touch(things, self, False)


def _reparks(things: Primitives, self: Any, new_lot: Any, **_: Any) -> None:
    touch(things, self, True)
    touch(things, new_lot, True)


def _counts_waiters(things: Primitives, self: Any) -> None:
    reads(things, self)
    reads(things, self._lock)


def _touches_state(things: Primitives, self: Any, *_: Any) -> None:
    touch(things, self._state, True)


def _is_busy(things: Primitives, self: Any, *_: Any) -> None:
    # Much else may happen in that step: of streams that are no memory's nothing is reported.
    things.implied.append((things.name(self), True))


def _calls_soon(things: Primitives, queue: Any, *_: Any, **__: Any) -> None:
    things.touched.append((SOON, True))


def _reads_variable(things: Primitives, self: Any, *_: Any) -> None:
    things.touched.append((("RunVar", self._name), False))


def _writes_variable(things: Primitives, self: Any, *_: Any) -> None:
    things.touched.append((("RunVar", self._name), True))


def sync() -> tuple[Row, ...]:
    """Give the rows of events, locks, semaphores, limiters, conditions, parking lots, channels and run variables.

    And of callbacks, and of what says that a second task is busy with a thing.
    """
    called, named, limiter = Reporter.called, Reporter.named, _sync.CapacityLimiter
    lot, event, lock, semaphore = _parking_lot.ParkingLot, _sync.Event, _sync._LockImpl, _sync.Semaphore
    tokens_of = inspect.unwrap(limiter.total_tokens.fget)

    def borrows(things: Primitives, self: Any, borrower: Any) -> None:
        # Of infinitely many tokens, only a query shows how many are taken.
        touch(things, self, tokens_of(self) != inf or borrower is not _run.GLOBAL_RUN_CONTEXT.task)

    return (
        (named, event, "__init__", (None, None)),
        (called, event, "set", lambda things, self: touch(things, self, not self._flag)),
        (called, event, "is_set", reads),
        (called, event, "statistics", writes),
        (Reporter.awaited, event, "wait", reads),
        (named, lot, "__init__", (None, None)),
        (Reporter.awaited, lot, "park", writes),
        # No task waits, so none is woken.
        (called, lot, "unpark", lambda things, self, **_: touch(things, self, bool(self._parked))),
        (called, lot, "break_lot", writes),
        (called, lot, "repark", _reparks),
        (called, lot, "__len__ __bool__ statistics", _looks),
        (named, lock, "__init__", (None, "_lot")),
        (called, lock, "acquire_nowait release", writes),
        (called, lock, "locked statistics", reads),
        (named, _sync.Condition, "__init__", (None, "_lot")),
        (called, _sync.Condition, "statistics", _counts_waiters),
        # Two tokens can be taken in any order as long as both are there, but whether they are depends on which others
        # have taken one: a report that said so would change when two of them are swapped.
        (named, semaphore, "__init__", (None, "_lot")),
        (called, semaphore, "acquire_nowait release", writes),
        (called, semaphore, "statistics", reads),
        (Reporter.asked, semaphore, "value", reads),
        (named, limiter, "__init__", (None, "_lot")),
        (called, limiter, "acquire_on_behalf_of_nowait release_on_behalf_of", borrows),
        (called, limiter, "statistics", writes),
        (Reporter.asked, limiter, "borrowed_tokens available_tokens", writes),
        (Reporter.held, limiter, "total_tokens", (reads, writes)),
        (named, _channel.MemoryChannelState, "__init__", ("MemoryChannel", None)),
        (called, _channel.MemorySendChannel, "send_nowait clone close statistics", _touches_state),
        (called, _channel.MemoryReceiveChannel, "receive_nowait clone close statistics", _touches_state),
        (named, _util.ConflictDetector, "__init__", (None, None)),
        (called, _util.ConflictDetector, "__enter__ __exit__", _is_busy),
        (called, _run.EntryQueue, "run_sync_soon", _calls_soon),
        (called, _local.RunVar, "get", _reads_variable),
        (called, _local.RunVar, "set reset", _writes_variable),
    )


def memory_streams() -> tuple[Row, ...]:
    """Give the rows of memory streams: none before a program has imported them."""
    streams: Any = sys.modules.get("trio.testing._memory_streams")
    if streams is None:
        return ()
    queue = streams._UnboundedByteQueue
    return (
        (Reporter.named, queue, "__init__", (None, None)),
        (Reporter.called, queue, "put close close_and_wipe get_nowait _get_impl", writes),
        (Reporter.awaited, queue, "get", reads),
    )

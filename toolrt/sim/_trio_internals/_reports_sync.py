"""The reports of events, locks, semaphores, limiters, parking lots, channels and run variables.

- *Event*: ``set`` writes, once; ``wait`` reads, so two waits commute.
- *Lock, Semaphore, CapacityLimiter, Condition, ParkingLot, memory channels*: every operation that changes something
  writes, also when the order would not have mattered this time; only an infinite limiter's tokens commute.

- *Memory streams*: every operation on the queue of bytes below one writes it, and so does entering and leaving what
  refuses a second task at the same time.

Limits.  Lockstep streams and unbounded queues are seen only where they park.
"""

from __future__ import annotations

import sys
from math import inf
from typing import Any

import trio

from toolrt.sim._trio_internals._reporter import Reporter
from toolrt.sim._trio_internals._things import SOON, Primitives, reads, touch, writes

__all__ = ["report_channels", "report_run_variables", "report_streams", "report_sync"]

_core: Any = trio._core
_run: Any = _core._run
_sync: Any = sys.modules["trio._sync"]
_channel: Any = sys.modules["trio._channel"]
_parking_lot: Any = sys.modules["trio._core._parking_lot"]
_local: Any = sys.modules["trio._core._local"]
_util: Any = sys.modules["trio._util"]


def report_sync(reporter: Reporter) -> None:
    """Let events, locks, semaphores, limiters, conditions and parking lots report."""
    lot, event = _parking_lot.ParkingLot, _sync.Event
    lock, semaphore, limiter = _sync._LockImpl, _sync.Semaphore, _sync.CapacityLimiter

    def its_lot(thing: Any) -> tuple[Any, ...]:
        return (thing._lot,)

    for holder in (lot, event):
        reporter.named(holder)
    for holder in (lock, semaphore, limiter, _sync.Condition):
        reporter.named(holder, its_lot)

    reporter.before(event, "set", lambda things, self: touch(things, self, not self._flag))
    reporter.before(event, "is_set", reads)
    reporter.before(event, "statistics", writes)
    reporter.before_await(event, "wait", reads)

    reporter.before_await(lot, "park", writes)
    # No task waits, so none is woken.
    reporter.before(lot, "unpark", lambda things, self, **_: touch(things, self, bool(self._parked)))
    reporter.before(lot, "break_lot", writes)
    own = (_sync.__dict__, _parking_lot.__dict__)

    def looks(things: Primitives, self: Any) -> None:
        # Trio's own primitives report for themselves.
        if sys._getframe(2).f_globals not in own:
            touch(things, self, False)

    for name in ("__len__", "__bool__", "statistics"):
        reporter.before(lot, name, looks)

    def repark(things: Primitives, self: Any, new_lot: Any, **_: Any) -> None:
        touch(things, self, True)
        touch(things, new_lot, True)

    reporter.before(lot, "repark", repark)

    for name in ("acquire_nowait", "release"):
        reporter.before(lock, name, writes)
    for name in ("locked", "statistics"):
        reporter.before(lock, name, reads)

    def counts_waiters(things: Primitives, self: Any) -> None:
        reads(things, self)
        reads(things, self._lock)

    reporter.before(_sync.Condition, "statistics", counts_waiters)

    # Two tokens can be taken in any order as long as both are there, but whether they are depends on which others have
    # taken one: a report that said so would change when two of them are swapped.
    for name in ("acquire_nowait", "release"):
        reporter.before(semaphore, name, writes)
    for name in ("value", "statistics"):
        reporter.before(semaphore, name, reads)

    tokens_of = limiter.total_tokens.fget

    def borrow(things: Primitives, self: Any, borrower: Any) -> None:
        # Of infinitely many tokens, only a query shows how many are taken.
        touch(things, self, tokens_of(self) != inf or borrower is not _run.GLOBAL_RUN_CONTEXT.task)

    for name in ("acquire_on_behalf_of_nowait", "release_on_behalf_of"):
        reporter.before(limiter, name, borrow)
    for name in ("borrowed_tokens", "available_tokens", "statistics"):
        reporter.before(limiter, name, writes)
    reporter.before(limiter, "total_tokens", reads)
    reporter.before_setting(limiter, "total_tokens", writes)


def report_channels(reporter: Reporter) -> None:
    """Let memory channels report."""
    reporter.named(_channel.MemoryChannelState, kind="MemoryChannel")

    def touches_state(things: Primitives, self: Any, *_: Any) -> None:
        touch(things, self._state, True)

    for holder, operation in (
        (_channel.MemorySendChannel, "send_nowait"),
        (_channel.MemoryReceiveChannel, "receive_nowait"),
    ):
        for name in (operation, "clone", "close", "statistics"):
            reporter.before(holder, name, touches_state)


def report_streams(reporter: Reporter) -> None:
    """Let memory streams report, and what says that a second task is busy with a thing."""
    detector = _util.ConflictDetector
    reporter.named(detector)

    def is_busy(things: Primitives, self: Any, *_: Any) -> None:
        # Much else may happen in that step: of streams that are no memory's nothing is reported.
        things.implied.append((things.name(self), True))

    for name in ("__enter__", "__exit__"):
        reporter.before(detector, name, is_busy)
    streams: Any = sys.modules.get("trio.testing._memory_streams")
    if streams is None:
        return
    queue = streams._UnboundedByteQueue
    reporter.named(queue)
    for name in ("put", "close", "close_and_wipe", "get_nowait", "_get_impl"):
        reporter.before(queue, name, writes)
    reporter.before_await(queue, "get", reads)


def report_run_variables(reporter: Reporter) -> None:
    """Let run variables report, and what gives Trio's loop a callback."""

    def gives(things: Primitives, queue: Any, *_: Any, **__: Any) -> None:
        things.touched.append((SOON, True))

    reporter.before(_run.EntryQueue, "run_sync_soon", gives)
    for name, write in (("get", False), ("set", True), ("reset", True)):

        def note(things: Primitives, self: Any, *_: Any, write: bool = write) -> None:
            things.touched.append((("RunVar", self._name), write))

        reporter.before(_local.RunVar, name, note)

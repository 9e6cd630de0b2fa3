"""What Trio's own primitives say about the running step: the second half of `_trio_internals`.

Rules.  While a simulation runs, each operation on a primitive reports what it touched, as `toolrt.probe` wants it.
Two operations that may be swapped without a difference never both touch one resource with one of them writing;
an operation's report depends on nothing but what it reports, or a swap would change it.  A primitive is named by
its kind, the task that made it, and how many of its kind that task had made before: the same in every schedule.
Everything replaced here acts on the program's own steps alone, and is put back afterwards.

- *Event*: ``set`` writes, once; ``wait`` reads, so two waits commute.
- *Lock, Semaphore, CapacityLimiter, Condition, ParkingLot, memory channels*: every operation that changes something
  writes, also when the order would not have mattered this time; only an infinite limiter's tokens commute.
- *Cancelling* a scope writes the scope and every scope below it that is cancelled by it, and reads those that are
  shielded; it also writes the queue out of which it takes a parked task.  Every step reads the scope it begins
  under (the scheduler notes that), and entering, leaving and waking read scopes too.
- *Nurseries*: opening, spawning in one's own and ending read, so they commute; a child that raises, and a task that
  spawns in a nursery that could be closing, write.  Spawning, waking and joining are causes, not accesses.
- *Deadlines*: changing one writes it.  Time moves when nothing can run, which is no step; where it may move beside
  tasks that can run, that is a step which writes the time and cancels what is due, and whoever asks for the time,
  adds or removes a deadline, or stops being able to run reads it; who waits for all others to block writes it.

Reports that follow from where code runs, and not from what it does (scopes read, nurseries read), are *implied*:
they are kept apart, because a step that only has those may have done anything.

Limits.  ``cancelled_caught`` is not seen.  Memory streams and unbounded queues are seen only where they park.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from math import inf
from types import ModuleType
from typing import Any

import trio

from toolrt.probe import Resource
from toolrt.sim._trio_internals_things import (
    ANYTHING,
    TIME,
    Things,
    cancels,
    changes,
    imply,
    is_inside,
    only_cancelled,
    reads,
    touch,
    writes,
)

__all__ = ["REQUIRED", "Reports"]

_core: Any = trio._core
_run: Any = _core._run
_sync: Any = sys.modules["trio._sync"]
_channel: Any = sys.modules["trio._channel"]
_parking_lot: Any = sys.modules["trio._core._parking_lot"]
_local: Any = sys.modules["trio._core._local"]

#: As in `_trio_internals`: holder, its name for a reader, the names used.
REQUIRED: tuple[tuple[str, ModuleType, str | None, tuple[str, ...]], ...] = (
    ("trio.Event", _sync, "Event", ("__init__", "set", "wait", "is_set", "statistics", "_flag")),
    ("trio.Lock", _sync, "_LockImpl", ("__init__", "acquire_nowait", "release", "locked", "_lot")),
    ("trio.Condition", _sync, "Condition", ("__init__",)),
    ("trio.Semaphore", _sync, "Semaphore", ("__init__", "acquire_nowait", "release", "value", "_value", "_lot")),
    (
        "trio.CapacityLimiter",
        _sync,
        "CapacityLimiter",
        (
            "__init__",
            "acquire_on_behalf_of_nowait",
            "release_on_behalf_of",
            "total_tokens",
            "borrowed_tokens",
            "available_tokens",
            "statistics",
            "_borrowers",
            "_lot",
        ),
    ),
    (
        "trio.lowlevel.ParkingLot",
        _parking_lot,
        "ParkingLot",
        ("__init__", "park", "unpark", "repark", "break_lot", "statistics", "__len__", "__bool__"),
    ),
    ("trio._channel.MemoryChannelState", _channel, "MemoryChannelState", ("__init__",)),
    (
        "trio.MemorySendChannel",
        _channel,
        "MemorySendChannel",
        ("send_nowait", "clone", "close", "statistics", "_state"),
    ),
    (
        "trio.MemoryReceiveChannel",
        _channel,
        "MemoryReceiveChannel",
        ("receive_nowait", "clone", "close", "statistics", "_state"),
    ),
    (
        "trio.CancelScope",
        _run,
        "CancelScope",
        (
            "__attrs_post_init__",
            "__enter__",
            "_close",
            "_cancel",
            "_cancel_called",
            "deadline",
            "relative_deadline",
            "shield",
        ),
    ),
    ("trio._core._run.CancelStatus", _run, "CancelStatus", ("effective_deadline",)),
    (
        "trio.Nursery",
        _run,
        "Nursery",
        ("__init__", "_add_exc", "_check_nursery_closed", "child_tasks", "_parent_task", "_cancel_status"),
    ),
    ("trio._core._run._TaskStatus", _run, "_TaskStatus", ("started", "_old_nursery", "_new_nursery")),
    (
        "trio._core._run.Runner",
        _run,
        "Runner",
        ("spawn_impl", "reschedule", "current_time", "wait_all_tasks_blocked"),
    ),
    ("trio._core._run.Deadlines", _run, "Deadlines", ("add", "remove")),
    ("trio.lowlevel.Task", _run, "Task", ("_parent_nursery",)),
    ("trio.lowlevel.RunVar", _local, "RunVar", ("get", "set", "reset", "_name")),
)


# After so many executions that nobody wanted to know about, Trio's own primitives are put back.
_UNWANTED_MOST = 20


class Reports:
    """Replaces what has to report; one for each simulation."""

    def __init__(self) -> None:
        #: The execution that runs now, or None.
        self.things: Things | None = None
        # What was made outside any execution has one name for the whole simulation.
        self._outside: dict[int, Resource] = {}
        self._kept: list[Any] = []
        # True while a cancelled child hands its Cancelled to its nursery.
        self._quiet = False
        self._replaced: list[tuple[Any, str, Any]] = []
        self._implying = False
        # So many executions in a row have not wanted to know.
        self._unwanted = 0

    def imply_too(self) -> None:
        """Report what is implied as well, until the end of the block: a third of all the cost, for who asks."""
        if not self._implying:
            self._implying = True
            self._replace_places()

    def new_things(self) -> Things:
        """Give an empty record for the next execution."""
        return Things(self._outside, self._kept)

    def begin(self, things: Things | None) -> None:
        """Let Trio's primitives report to `things` from here on; None: nobody wants to know.

        What replaces Trio's own is put in when it is first wanted, and taken out when it was not for a while: both
        take as long as a small execution.
        """
        self.things = things
        if things is not None:
            self._unwanted = 0
            if not self._replaced:
                self._replace_sync()
                self._replace_channels()
                self._replace_scopes()
                self._replace_nurseries()
                self._replace_run_variables()
        elif self._replaced:
            self._unwanted += 1
            if self._unwanted == _UNWANTED_MOST:
                self._put_back()

    @contextmanager
    def confined(self) -> Iterator[None]:
        """Take out at the end of the block whatever was put in."""
        try:
            yield
        finally:
            self.things = None
            self._put_back()

    def _put_back(self) -> None:
        self._implying = False
        for holder, name, value in reversed(self._replaced):
            setattr(holder, name, value)
        self._replaced.clear()

    # ------------------------------------------------------------------ how

    def _here(self) -> Things | None:
        """Give the record of the execution, when one of its program's steps runs in this thread."""
        things = self.things
        if things is not None and getattr(_run.GLOBAL_RUN_CONTEXT, "task", None) in things.actors:
            return things
        return None

    def _replace(self, holder: Any, name: str, make: Callable[[Any], Any]) -> None:
        real = holder.__dict__[name]
        value = make(real)
        self._replaced.append((holder, name, real))
        setattr(holder, name, value)

    def _before(self, holder: Any, name: str, note: Callable[..., None]) -> None:
        """Call ``note(things, self, *args)`` before each call of a method or reading of a property."""
        reports, context = self, _run.GLOBAL_RUN_CONTEXT

        def make(real: Any) -> Any:
            if isinstance(real, property):
                return property(
                    None if real.fget is None else make(real.fget),
                    real.fset,
                    real.fdel,
                    real.__doc__,
                )

            # `_here` in line: these are called at every turn.
            @wraps(real)
            def call(self: Any, *args: Any, **kwargs: Any) -> Any:
                things = reports.things
                if things is not None and getattr(context, "task", None) in things.actors:
                    note(things, self, *args, **kwargs)
                return real(self, *args, **kwargs)

            return call

        self._replace(holder, name, make)

    def _before_await(self, holder: Any, name: str, note: Callable[..., None]) -> None:
        """Call ``note(things, self)`` when a coroutine method begins to run, which may be in another task."""
        here = self._here

        def make(real: Any) -> Any:
            @wraps(real)
            async def call(self: Any) -> Any:
                things = here()
                if things is not None:
                    note(things, self)
                return await real(self)

            return call

        self._replace(holder, name, make)

    def _before_setting(self, holder: Any, name: str, note: Callable[..., None]) -> None:
        """Call ``note(things, self, value)`` before a property is set."""
        here = self._here

        def make(real: Any) -> Any:
            def put(self: Any, value: Any) -> None:
                things = here()
                if things is not None:
                    note(things, self, value)
                real.fset(self, value)

            return property(real.fget, put, real.fdel, real.__doc__)

        self._replace(holder, name, make)

    def _named(
        self, holder: Any, parts: Callable[[Any], tuple[Any, ...]] = lambda thing: (), kind: str | None = None
    ) -> None:
        """Name what ``holder()`` makes by its type; its parts are the same resource."""
        things_of_step = self._here
        context = _run.GLOBAL_RUN_CONTEXT

        def make(real: Any) -> Any:
            @wraps(real)
            def init(self: Any, *args: Any, **kwargs: Any) -> None:
                things = things_of_step()
                if things is None:
                    real(self, *args, **kwargs)
                    return
                name = things.made(self, kind or type(self).__name__, things.actor_of(context.task).name)
                real(self, *args, **kwargs)
                for part in parts(self):
                    things.same(part, name)

            return init

        self._replace(holder, "__init__", make)

    # ------------------------------------------------------------------ what

    def _replace_sync(self) -> None:
        lot, event = _parking_lot.ParkingLot, _sync.Event
        lock, semaphore, limiter = _sync._LockImpl, _sync.Semaphore, _sync.CapacityLimiter

        def its_lot(thing: Any) -> tuple[Any, ...]:
            return (thing._lot,)

        for holder in (lot, event):
            self._named(holder)
        for holder in (lock, semaphore, limiter, _sync.Condition):
            self._named(holder, its_lot)

        self._before(event, "set", lambda things, self: touch(things, self, not self._flag))
        self._before(event, "is_set", reads)
        self._before(event, "statistics", writes)
        self._before_await(event, "wait", reads)

        self._before_await(lot, "park", writes)
        # Nobody there, nobody woken.
        self._before(lot, "unpark", lambda things, self, **_: touch(things, self, bool(self._parked)))
        self._before(lot, "break_lot", writes)
        own = (_sync.__dict__, _parking_lot.__dict__)

        def looks(things: Things, self: Any) -> None:
            # Trio's own primitives report for themselves.
            if sys._getframe(2).f_globals not in own:
                touch(things, self, False)

        for name in ("__len__", "__bool__", "statistics"):
            self._before(lot, name, looks)

        def repark(things: Things, self: Any, new_lot: Any, **_: Any) -> None:
            touch(things, self, True)
            touch(things, new_lot, True)

        self._before(lot, "repark", repark)

        for name in ("acquire_nowait", "release"):
            self._before(lock, name, writes)
        self._before(lock, "locked", reads)

        # Two tokens can be taken in any order as long as both are there, but whether they are depends on who else has
        # taken one: a report that said so would change when two of them are swapped.
        for name in ("acquire_nowait", "release"):
            self._before(semaphore, name, writes)
        self._before(semaphore, "value", reads)

        def borrow(things: Things, self: Any, borrower: Any) -> None:
            # Nobody can tell how many have one of infinitely many, but by asking.
            touch(things, self, self._total_tokens != inf or borrower is not _run.GLOBAL_RUN_CONTEXT.task)

        for name in ("acquire_on_behalf_of_nowait", "release_on_behalf_of"):
            self._before(limiter, name, borrow)
        for name in ("borrowed_tokens", "available_tokens", "statistics"):
            self._before(limiter, name, writes)
        self._before(limiter, "total_tokens", reads)
        self._before_setting(limiter, "total_tokens", writes)

    def _replace_channels(self) -> None:
        self._named(_channel.MemoryChannelState, kind="MemoryChannel")

        def touches_state(things: Things, self: Any, *_: Any) -> None:
            touch(things, self._state, True)

        for holder, operation in (
            (_channel.MemorySendChannel, "send_nowait"),
            (_channel.MemoryReceiveChannel, "receive_nowait"),
        ):
            for name in (operation, "clone", "close", "statistics"):
                self._before(holder, name, touches_state)

    def _replace_scopes(self) -> None:
        scope, context = _run.CancelScope, _run.GLOBAL_RUN_CONTEXT

        def made(things: Things, self: Any) -> None:
            task = context.task
            things.made(self, "CancelScope", things.actor_of(task).name)
            things.fresh = (self, task, task._schedule_points)

        self._before(scope, "__attrs_post_init__", made)

        def is_quiet() -> bool:
            return self._quiet

        def cancelled(things: Things, self: Any, *_: object) -> None:
            if is_quiet():
                imply(things, (*things.name(self), "called"))
            elif things.is_fresh(self):
                # The one that a cancelled checkpoint makes for itself.
                imply(things, things.name(self))
            elif self._cancel_called:
                touch(things, self, False)
            else:
                cancels(things, self)

        self._before(scope, "_cancel", cancelled)
        recalculating = inspect.unwrap(_run.CancelStatus.recalculate).__code__

        def asked(things: Things, self: Any) -> None:
            if sys._getframe(2).f_code is recalculating:
                # Trio asks itself.
                return
            touch(things, self, False)
            if id(self) in things.nursery_scopes:
                things.touched.append(((*things.name(self), "called"), True))

        self._before(scope, "cancel_called", asked)

        def moved(things: Things, self: Any, deadline: float) -> None:
            things.touched.append(((*things.name(self), "deadline"), True))
            if things.timed:
                imply(things, things.name(self))
            if deadline <= trio.current_time():
                # It expires before the next step, as part of this one.
                cancels(things, self)

        def moved_by(things: Things, self: Any, seconds: float) -> None:
            moved(things, self, trio.current_time() + seconds)

        def read(things: Things, self: Any) -> None:
            things.touched.append(((*things.name(self), "deadline"), False))

        self._before(scope, "deadline", read)
        self._before(scope, "relative_deadline", read)
        self._before_setting(scope, "deadline", moved)
        self._before_setting(scope, "relative_deadline", moved_by)

        def shielded(things: Things, self: Any, shield: bool) -> None:
            status = self._cancel_status
            touch(things, self, True)
            if status is not None:
                above = status._parent is not None and status._parent.effectively_cancelled
                changes(things, status, self._cancel_called or (above and not shield))

        self._before_setting(scope, "shield", shielded)

    def _replace_nurseries(self) -> None:
        nursery, context = _run.Nursery, _run.GLOBAL_RUN_CONTEXT

        def make_init(real: Any) -> Any:
            @wraps(real)
            def init(self_: Any, parent: Any, scope: Any, *args: Any) -> None:
                things = self._here()
                if things is not None:
                    things.made(self_, "Nursery", things.actor_of(context.task).name)
                    things.nursery_scopes.add(id(scope))
                real(self_, parent, scope, *args)

            return init

        self._replace(nursery, "__init__", make_init)

        def make_add(real: Any) -> Any:
            @wraps(real)
            def add(self_: Any, exc: BaseException, reason: Any) -> None:
                things = self._here()
                if things is None:
                    real(self_, exc, reason)
                elif self_._cancel_status.effectively_cancelled and only_cancelled(exc):
                    # What its siblings do at the same time, with the same effect.
                    self._quiet = True
                    try:
                        real(self_, exc, reason)
                    finally:
                        self._quiet = False
                else:
                    touch(things, self_, True)
                    real(self_, exc, reason)

            return add

        self._replace(nursery, "_add_exc", make_add)
        self._before(nursery, "child_tasks", writes)

    def _replace_places(self) -> None:
        """Let entering, leaving, spawning, ending and waking say which scopes and nurseries they read."""
        scope, nursery, context = _run.CancelScope, _run.Nursery, _run.GLOBAL_RUN_CONTEXT

        def enter(things: Things, self: Any) -> None:
            imply(things, things.scope_of(context.task._cancel_status))
            if not things.is_fresh(self):
                name = things.name(self)
                imply(things, name)
                imply(things, (*name, "deadline"))

        self._before(scope, "__enter__", enter)

        def close(things: Things, self: Any, _: object) -> None:
            status = self._cancel_status
            if status is not None:
                imply(things, things.scope_of(status))
                imply(things, things.scope_of(status._parent))
            if things.timed and not things.is_fresh(self):
                # A deadline that is set afterwards is none that the clock could move to.
                imply(things, (*things.name(self), "deadline"))

        self._before(scope, "_close", close)

        def effective(things: Things, status: Any) -> None:
            name = things.scope_of(status)
            if name is not None:
                imply(things, name)
                imply(things, (*name, "deadline"))

        self._before(_run.CancelStatus, "effective_deadline", effective)

        def ends(things: Things, self: Any) -> None:
            imply(things, things.own_name(self))
            # The last one wakes the parent; who that is must not show in what it touches.
            imply(things, things.scope_of(self._cancel_status))

        self._before(nursery, "_check_nursery_closed", ends)

        def started(things: Things, self: Any, *_: object) -> None:
            for each in (self._old_nursery, self._new_nursery):
                imply(things, things.name(each))
                imply(things, things.scope_of(each._cancel_status))

        self._before(_run._TaskStatus, "started", started)

        def spawned(things: Things, runner: Any, function: Any, args: Any, into: Any, *_: Any, **more: Any) -> None:
            if more.get("system_task"):
                things.implied.append((ANYTHING, True))
            elif is_inside(context.task, into):
                imply(things, things.name(into))
            else:
                things.implied.append((things.name(into), True))

        self._before(_run.Runner, "spawn_impl", spawned)

        def woken(things: Things, runner: Any, task: Any, *value: Any) -> None:
            # A new task is sent None; whoever wakes one that waits comes before or after whoever cancels it.
            if task is not context.task and value != (None,):
                imply(things, things.scope_of(task._cancel_status))

        self._before(_run.Runner, "reschedule", woken)

        def timely(things: Things, *_: object, **__: object) -> None:
            if things.timed:
                things.implied.append((TIME, False))

        self._before(_run.Deadlines, "add", timely)
        self._before(_run.Deadlines, "remove", timely)
        self._before(_run.Runner, "current_time", timely)

        def idles(things: Things, *_: object, **__: object) -> None:
            if things.timed:
                things.implied.append((TIME, True))

        self._before(_run.Runner, "wait_all_tasks_blocked", idles)

    def _replace_run_variables(self) -> None:
        for name, write in (("get", False), ("set", True), ("reset", True)):

            def note(things: Things, self: Any, *_: Any, write: bool = write) -> None:
                things.touched.append((("RunVar", self._name), write))

            self._before(_local.RunVar, name, note)

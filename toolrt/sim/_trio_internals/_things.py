"""Names Trio's objects in one execution, and keeps what the running step reported about them.

Rules.  A thing is named by its kind, the task that made it, and how many of its kind that task had made before: the
same in every schedule.  What was made outside any execution has a name as long as the simulation lasts.  What a step
*touched* it touched of its own accord; what is *implied* follows from where it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from typing import Any

import trio
from trio.lowlevel import Task

from toolrt.errors import errors_in
from toolrt.probe import ANYTHING, Resource
from toolrt.sim._trio_internals._sockets import Arrivals

_core: Any = trio._core
_run: Any = _core._run
_channel: Any = sys.modules["trio._channel"]
_parking_lot: Any = sys.modules["trio._core._parking_lot"]

Access = tuple[Resource, bool]

#: Written when the clock moves beside tasks that can run; read by a step that asks for the time, changes what the clock
#: can move to, or stops being able to run.
TIME: Resource = ("time",)

#: Read and written by steps that use real files, sockets and processes.
OUTSIDE: Resource = ("the world outside",)

#: Written by a step that gives Trio's loop a callback, and by the one that calls all there are.
SOON: Resource = ("run_sync_soon",)


def asks_of(task: str) -> Resource:
    """Give what a thread reads that asks whether the task that waits for it is cancelled."""
    return ("Task", task, "thread is cancelled")


# The second part of the name of what was made outside an execution, as `Cell` has it.
_OUTSIDE = "outside"


def begun_under(task: Task) -> Any:
    """Give the cancel status that `task` would step under."""
    private: Any = task
    return private._cancel_status


class Primitives:
    """Trio's objects in one execution: what each is called, and what the running step did with them."""

    __slots__ = (
        "_counts",
        "_kept",
        "_kept_outside",
        "_names",
        "_outside",
        "actor_of",
        "actors",
        "fresh",
        "implied",
        "nursery_scopes",
        "quiet",
        "timed",
        "touched",
    )

    def __init__(self, outside: dict[int, Resource], kept: list[Any]) -> None:
        #: What the running step touched of its own accord, and what follows from where it runs.
        self.touched: list[Access] = []
        self.implied: list[Access] = []
        #: The program's tasks; each has a `name`.
        self.actors: Container[Task] = ()
        self.actor_of: Callable[[Task], Any] = lambda task: None
        self._names: dict[int, Resource] = {}
        self._counts: dict[tuple[str, str], int] = {}
        # An id is an object's as long as it lives.
        self._kept: list[Any] = []
        self._outside = outside
        self._kept_outside = kept
        self.nursery_scopes: set[int] = set()
        #: True while a cancelled child hands its Cancelled to its nursery.
        self.quiet = False
        #: True when the clock may move beside tasks that can run.
        self.timed = False
        #: The scope made last, its task, and the number of its step: within that step no other task has the scope.
        self.fresh: tuple[object, Any, int] = (None, None, 0)

    def made(self, thing: Any, kind: str, maker: str) -> Resource:
        """Name something new; made again under another kind, it gets that one's name."""
        count = self._counts.get((kind, maker), 0)
        self._counts[kind, maker] = count + 1
        name = (kind, maker, count)
        self._names[id(thing)] = name
        self._kept.append(thing)
        return name

    def same(self, part: Any, name: Resource) -> None:
        """Let `part` be called `name` too."""
        self._names[id(part)] = name
        self._kept.append(part)

    def name(self, thing: Any) -> Resource:
        """Give what `thing` is called."""
        found = self._names.get(id(thing))
        if found is None:
            found = self._outside.get(id(thing))
            if found is None:
                found = ("cell", _OUTSIDE, type(thing).__name__, len(self._outside))
                self._outside[id(thing)] = found
                self._kept_outside.append(thing)
        return found

    def own_name(self, thing: Any) -> Resource | None:
        """Give what `thing` is called, when it was made in this execution."""
        return self._names.get(id(thing))

    def known(self, thing: Any) -> Resource | None:
        """Give what `thing` is called, wherever it was made; None: it has no name, and gets none.

        The ends of a memory channel are called as what they share.
        """
        if type(thing) in (_channel.MemorySendChannel, _channel.MemoryReceiveChannel):
            thing = thing._state
        return self._names.get(id(thing)) or self._outside.get(id(thing))

    def is_fresh(self, scope: Any) -> bool:
        """Say whether `scope` was made in the running step, and is the last that was."""
        made, task, point = self.fresh
        return scope is made and task is _run.GLOBAL_RUN_CONTEXT.task and bool(task._schedule_points == point)

    def scope_of(self, status: Any) -> Resource | None:
        """Give the name of the scope of a cancel status; None for one outside the program."""
        return None if status is None else self._names.get(id(status._scope))


def touch(things: Primitives, thing: Any, write: bool) -> None:
    things.touched.append((things.name(thing), write))


def reads(things: Primitives, thing: Any, *_: Any, **__: Any) -> None:
    things.touched.append((things.name(thing), False))


def writes(things: Primitives, thing: Any, *_: Any, **__: Any) -> None:
    things.touched.append((things.name(thing), True))


def imply(things: Primitives, name: Resource | None) -> None:
    if name is not None:
        things.implied.append((name, False))


def cancels(things: Primitives, scope: Any) -> None:
    if isinstance(scope, Arrivals):
        things.touched += ((resource, True) for resource in scope.written_when_due())
        return
    touch(things, scope, True)
    if scope._cancel_status is not None:
        changes(things, scope._cancel_status, True)


def changes(things: Primitives, root: Any, cancelled: bool) -> None:
    """Report what Trio touches when the status `root` becomes cancelled, or becomes free again."""
    todo = [(root, cancelled)]
    while todo:
        status, after = todo.pop()
        name = things.scope_of(status)
        changed = after != status.effectively_cancelled
        if name is not None:
            things.touched.append((name, changed))
        if not changed:
            continue
        for task in status._tasks:
            if after and task._abort_func is not None:
                _leaves(things, task)
        for child in status._children:
            below = child._scope
            todo.append((child, below._cancel_called or (after and not below._shield)))


def _leaves(things: Primitives, task: Any) -> None:
    """Report the queue that a parked task is taken out of when it is cancelled."""
    place = task.custom_sleep_data
    if isinstance(place, _parking_lot.ParkingLot):
        touch(things, place, True)
    elif isinstance(place, _channel.MemorySendChannel | _channel.MemoryReceiveChannel):
        touch(things, place._state, True)
    elif (resource := getattr(place, "left_by_cancelling", None)) is not None:
        things.touched.append((resource, True))
    elif getattr(task._abort_func, "__qualname__", "").startswith("Event.wait"):
        # Two waits commute, and so do two that end early: only a step that counts them sees a difference.
        for cell in task._abort_func.__closure__ or ():
            if isinstance(cell.cell_contents, trio.Event):
                touch(things, cell.cell_contents, False)
    elif getattr(task._abort_func, "__qualname__", "").startswith("Runner.wait_all_tasks_blocked"):
        # The clock waits for it.
        things.touched.append((TIME, True))
    elif getattr(task._abort_func, "__qualname__", "").startswith("to_thread_run_sync"):
        # Its thread may ask whether it is cancelled.
        things.touched.append((asks_of(things.actor_of(task).name), True))
    elif (getattr(task._abort_func, "__module__", None) or "").partition(".")[0] != "trio":
        # An abort function outside Trio: it may touch anything.
        things.touched.append((ANYTHING, True))


def is_inside(task: Any, nursery: Any) -> bool:
    """Say whether `nursery` cannot close as long as `task` runs."""
    while task is not None:
        if nursery._parent_task is task:
            return True
        above = task._parent_nursery
        if above is nursery:
            return True
        task = None if above is None else above._parent_task
    return False


def only_cancelled(error: BaseException) -> bool:
    return all(isinstance(one, trio.Cancelled) for one in errors_in(error))

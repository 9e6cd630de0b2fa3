"""Reports the scopes and nurseries that a step reads because of where it runs.

- *Scopes*: entering, leaving and waking read them.  Entering one that was made in another step also writes that it is
  entered, and its deadline if that was relative.
- *Nurseries*: opening, spawning in one's own and ending read, so they commute; a task that spawns in a nursery that
  could be closing writes.  Spawning, waking and joining are causes, not accesses.
- *Time* moves when nothing can run, which is no step; where it may move beside tasks that can run, that is a step which
  writes the time and cancels what is due, and a step that asks for the time, adds or removes a deadline, or stops
  being able to run reads it; a task that waits for all others to block writes it.

These reports are *implied*: they are kept apart, because a step that only has those may have done anything.
"""

from __future__ import annotations

from math import inf
from typing import Any

import trio

from toolrt.sim._trio_internals._reporter import Reporter, Row
from toolrt.sim._trio_internals._things import TIME, Primitives, imply, is_inside

_core: Any = trio._core
_run: Any = _core._run
_context = _run.GLOBAL_RUN_CONTEXT


def _enter(things: Primitives, self: Any) -> None:
    imply(things, things.scope_of(_context.task._cancel_status))
    if not things.is_fresh(self):
        name = things.name(self)
        imply(things, name)
        # The second task that enters a scope is refused, and a relative deadline is counted from the first.
        things.implied += [((*name, "entered"), True), ((*name, "deadline"), self._relative_deadline != inf)]


def _close(things: Primitives, self: Any, _: object) -> None:
    status = self._cancel_status
    if status is not None:
        imply(things, things.scope_of(status))
        imply(things, things.scope_of(status._parent))
    if things.timed and not things.is_fresh(self):
        # A deadline that is set afterwards is none that the clock could move to.
        imply(things, (*things.name(self), "deadline"))


def _effective(things: Primitives, status: Any) -> None:
    name = things.scope_of(status)
    if name is not None:
        imply(things, name)
        imply(things, (*name, "deadline"))


def _ends(things: Primitives, self: Any) -> None:
    imply(things, things.own_name(self))
    # The last child wakes the parent; which child that is must not show in what it touches.
    imply(things, things.scope_of(self._cancel_status))


def _started(things: Primitives, self: Any, *_: object) -> None:
    for each in (self._old_nursery, self._new_nursery):
        imply(things, things.name(each))
        imply(things, things.scope_of(each._cancel_status))
    for task in self._old_nursery._children:
        if task in things.actors:
            things.implied.append((("Task", things.actor_of(task).name, "nursery"), True))


def _spawned(things: Primitives, runner: Any, function: Any, args: Any, into: Any, *_: Any, **more: Any) -> None:
    if more.get("system_task"):
        # Their nursery is open as long as the run lasts, and another run's has another name.
        return
    if is_inside(_context.task, into):
        imply(things, things.name(into))
    else:
        things.implied.append((things.name(into), True))


def _woken(things: Primitives, runner: Any, task: Any, *value: Any) -> None:
    # A new task is sent None; for one that waits, waking and cancelling it depend on each other.
    if task is not _context.task and value != (None,):
        imply(things, things.scope_of(task._cancel_status))


def _timely(things: Primitives, *_: object, **__: object) -> None:
    if things.timed:
        things.implied.append((TIME, False))


def _idles(things: Primitives, *_: object, **__: object) -> None:
    if things.timed:
        things.implied.append((TIME, True))


def implied() -> tuple[Row, ...]:
    """Give the rows of entering, leaving, spawning, ending, waking, and looking at the time."""
    called, runner = Reporter.called, _run.Runner
    return (
        (called, _run.CancelScope, "__enter__", _enter),
        (called, _run.CancelScope, "_close", _close),
        (called, _run.CancelStatus, "effective_deadline", _effective),
        (called, _run.Nursery, "_check_nursery_closed", _ends),
        (called, _run._TaskStatus, "started", _started),
        (called, runner, "spawn_impl", _spawned),
        (called, runner, "reschedule", _woken),
        (called, runner, "current_time", _timely),
        (called, runner, "wait_all_tasks_blocked", _idles),
        (called, _run.Deadlines, "add remove", _timely),
    )

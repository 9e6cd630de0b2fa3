"""The reports of cancel scopes and nurseries about what they read and write.

- *Cancelling* a scope writes the scope and every scope below it that is cancelled by it, and reads those that are
  shielded; it also writes the queue from which it takes a parked task.  Every step reads the scope it begins
  under (the scheduler notes that), and entering, leaving and waking read scopes too.
- *Nurseries*: a child that raises writes.
- *Deadlines*: changing one writes it.
- *Looking around*: a step that asks for the run's statistics, for a task's nurseries or for the frames it waits in may
  see anything; so that step may have done anything.
- ``shield`` and ``cancelled_caught`` are read, and the latter is written where a scope is left, as what is implied: a
  step that does no more than that may still have done anything.
"""

from __future__ import annotations

import inspect
import sys
from functools import wraps
from typing import Any

import trio

from toolrt.sim._trio_internals._reporter import Reporter
from toolrt.sim._trio_internals._things import (
    ANYTHING,
    Primitives,
    cancels,
    changes,
    imply,
    only_cancelled,
    touch,
    writes,
)

__all__ = ["report_looks", "report_nurseries", "report_scopes"]

_core: Any = trio._core
_run: Any = _core._run

# Code whose looks are no program's.
_OWN_ROOMS = ("trio._", "toolrt.sim.")


def report_scopes(reporter: Reporter) -> None:
    """Let cancel scopes report: what is cancelled, shielded, asked for, and when."""
    scope, context = _run.CancelScope, _run.GLOBAL_RUN_CONTEXT

    def made(things: Primitives, self: Any) -> None:
        task = context.task
        things.made(self, "CancelScope", things.actor_of(task).name)
        things.fresh = (self, task, task._schedule_points)

    reporter.before(scope, "__attrs_post_init__", made)

    def cancelled(things: Primitives, self: Any, *_: object) -> None:
        if things.quiet:
            imply(things, (*things.name(self), "called"))
        elif things.is_fresh(self):
            # The one that a cancelled checkpoint makes for itself.
            imply(things, things.name(self))
        elif self._cancel_called:
            touch(things, self, False)
        else:
            cancels(things, self)

    reporter.before(scope, "_cancel", cancelled)
    own = vars(_run)
    recalculating = inspect.unwrap(_run.CancelStatus.recalculate).__code__

    def asked(things: Primitives, self: Any) -> None:
        if sys._getframe(2).f_code is recalculating:
            # Trio asks itself.
            return
        touch(things, self, False)
        if id(self) in things.nursery_scopes:
            things.touched.append(((*things.name(self), "called"), True))

    reporter.before(scope, "cancel_called", asked)

    def moved(things: Primitives, self: Any, deadline: float) -> None:
        things.touched.append(((*things.name(self), "deadline"), True))
        if things.timed:
            imply(things, things.name(self))
        if deadline <= trio.current_time():
            # It expires before the next step, as part of this one.
            cancels(things, self)

    def moved_by(things: Primitives, self: Any, seconds: float) -> None:
        moved(things, self, trio.current_time() + seconds)

    def read(things: Primitives, self: Any) -> None:
        things.touched.append(((*things.name(self), "deadline"), False))

    reporter.before(scope, "deadline", read)
    reporter.before(scope, "relative_deadline", read)
    reporter.before_setting(scope, "deadline", moved)
    reporter.before_setting(scope, "relative_deadline", moved_by)

    def shielded(things: Primitives, self: Any, shield: bool) -> None:
        status = self._cancel_status
        touch(things, self, True)
        if status is not None:
            above = status._parent is not None and status._parent.effectively_cancelled
            changes(things, status, self._cancel_called or (above and not shield))

    def looks_at_shield(things: Primitives, self: Any) -> None:
        # Trio asks itself, too.
        if sys._getframe(2).f_globals is not own:
            imply(things, things.name(self))

    reporter.before(scope, "shield", looks_at_shield)
    reporter.before_setting(scope, "shield", shielded)

    def caught(things: Primitives, self: Any, write: bool) -> None:
        things.implied.append(((*things.name(self), "caught"), write))

    reporter.around_slot(scope, "cancelled_caught", caught)


def report_looks(reporter: Reporter) -> None:
    """Make steps that look at the run or at other tasks report."""
    runner, task = _run.Runner, _run.Task

    def looks_around(things: Primitives, *_: Any) -> None:
        if not sys._getframe(2).f_globals["__name__"].startswith(_OWN_ROOMS):
            things.touched.append((ANYTHING, True))

    reporter.before(runner, "current_statistics", lambda things, _: things.touched.append((ANYTHING, True)))
    for name in ("child_nurseries", "iter_await_frames"):
        reporter.before(task, name, looks_around)

    def looks_up(things: Primitives, self: Any) -> None:
        # It becomes another one when ``started`` is called.
        if self in things.actors:
            imply(things, ("Task", things.actor_of(self).name, "nursery"))

    for name in ("parent_nursery", "eventual_parent_nursery"):
        reporter.before(task, name, looks_up)


def report_nurseries(reporter: Reporter) -> None:
    """Make nurseries report the failure of a child, and each look at their children."""
    nursery, context = _run.Nursery, _run.GLOBAL_RUN_CONTEXT

    first, add_exc = nursery.__init__, nursery._add_exc

    @wraps(first)
    def init(self: Any, parent: Any, scope: Any, *args: Any) -> None:
        things = reporter.here()
        if things is not None:
            things.made(self, "Nursery", things.actor_of(context.task).name)
            things.nursery_scopes.add(id(scope))
        first(self, parent, scope, *args)

    @wraps(add_exc)
    def add(self: Any, exc: BaseException, reason: Any) -> None:
        things = reporter.here()
        if things is None:
            add_exc(self, exc, reason)
        elif self._cancel_status.effectively_cancelled and only_cancelled(exc):
            # What its siblings do at the same time, with the same effect.
            things.quiet = True
            try:
                add_exc(self, exc, reason)
            finally:
                things.quiet = False
        else:
            touch(things, self, True)
            add_exc(self, exc, reason)

    reporter.replace(nursery, "__init__", init)
    reporter.replace(nursery, "_add_exc", add)
    reporter.before(nursery, "child_tasks", writes)

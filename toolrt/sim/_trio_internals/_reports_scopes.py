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
from collections.abc import Callable
from functools import wraps
from typing import Any

import trio

from toolrt.probe import ANYTHING
from toolrt.sim._trio_internals._reporter import Reporter, Row
from toolrt.sim._trio_internals._things import (
    Primitives,
    cancels,
    changes,
    imply,
    only_cancelled,
    touch,
    writes,
)

_core: Any = trio._core
_run: Any = _core._run

# Code whose looks are no program's.
_OWN_ROOMS = ("trio._", "toolrt.sim.")


_OWN = vars(_run)
_context = _run.GLOBAL_RUN_CONTEXT


def _made(things: Primitives, self: Any) -> None:
    task = _context.task
    things.made(self, "CancelScope", things.actor_of(task).name)
    things.fresh = (self, task, task._schedule_points)


def _cancelled(things: Primitives, self: Any, *_: object) -> None:
    if things.quiet:
        imply(things, (*things.name(self), "called"))
    elif things.is_fresh(self):
        # The one that a cancelled checkpoint makes for itself.
        imply(things, things.name(self))
    elif self._cancel_called:
        touch(things, self, False)
    else:
        cancels(things, self)


def _reads_deadline(things: Primitives, self: Any) -> None:
    things.touched.append(((*things.name(self), "deadline"), False))


def _is_relative(things: Primitives, self: Any) -> None:
    things.touched += [((*things.name(self), part), False) for part in ("entered", "deadline")]


def _moved(things: Primitives, self: Any, deadline: float) -> None:
    things.touched.append(((*things.name(self), "deadline"), True))
    if things.timed:
        imply(things, things.name(self))
    if deadline <= trio.current_time():
        # It expires before the next step, as part of this one.
        cancels(things, self)


def _moved_by(things: Primitives, self: Any, seconds: float) -> None:
    _moved(things, self, trio.current_time() + seconds)


def _looks_at_shield(things: Primitives, self: Any) -> None:
    # Trio asks itself, too.
    if sys._getframe(2).f_globals is not _OWN:
        imply(things, things.name(self))


def _shielded(things: Primitives, self: Any, shield: bool) -> None:
    status = self._cancel_status
    touch(things, self, True)
    if status is not None:
        above = status._parent is not None and status._parent.effectively_cancelled
        changes(things, status, self._cancel_called or (above and not shield))


def _caught(things: Primitives, self: Any, write: bool) -> None:
    things.implied.append(((*things.name(self), "caught"), write))


def _looks_around(things: Primitives, *_: Any) -> None:
    if not sys._getframe(2).f_globals["__name__"].startswith(_OWN_ROOMS):
        things.touched.append((ANYTHING, True))


def _looks_up(things: Primitives, self: Any) -> None:
    # It becomes another one when ``started`` is called.
    if self in things.actors:
        imply(things, ("Task", things.actor_of(self).name, "nursery"))


def _opened(things: Primitives, self: Any, parent: Any, scope: Any, *_: Any) -> None:
    things.made(self, "Nursery", things.actor_of(_context.task).name)
    things.nursery_scopes.add(id(scope))


def _failing(reporter: Reporter, real: Any, note: Callable[..., None]) -> Any:
    """Wrap what gives a nursery the error of a child."""

    @wraps(real)
    def add(self: Any, exc: BaseException, reason: Any) -> None:
        things = reporter.here()
        if things is None:
            real(self, exc, reason)
        elif self._cancel_status.effectively_cancelled and only_cancelled(exc):
            # What its siblings do at the same time, with the same effect.
            things.quiet = True
            try:
                real(self, exc, reason)
            finally:
                things.quiet = False
        else:
            note(things, self)
            real(self, exc, reason)

    return add


def scopes() -> tuple[Row, ...]:
    """Give the rows of what is cancelled, shielded, asked for, and when.

    And of the failure of a child, and of looks at the run and at other tasks.
    """
    called, asked_for, held = Reporter.called, Reporter.asked, Reporter.held
    scope, nursery = _run.CancelScope, _run.Nursery
    recalculating = inspect.unwrap(_run.CancelStatus.recalculate).__code__

    def asked(things: Primitives, self: Any) -> None:
        if sys._getframe(2).f_code is recalculating:
            # Trio asks itself.
            return
        touch(things, self, False)
        if id(self) in things.nursery_scopes:
            things.touched.append(((*things.name(self), "called"), True))

    return (
        (called, scope, "__attrs_post_init__", _made),
        (called, scope, "_cancel", _cancelled),
        (asked_for, scope, "cancel_called", asked),
        (asked_for, scope, "is_relative", _is_relative),
        (held, scope, "deadline", (_reads_deadline, _moved)),
        (held, scope, "relative_deadline", (_reads_deadline, _moved_by)),
        (held, scope, "shield", (_looks_at_shield, _shielded)),
        (Reporter.flagged, scope, "cancelled_caught", _caught),
        (called, nursery, "__init__", _opened),
        (_failing, nursery, "_add_exc", writes),
        (asked_for, nursery, "child_tasks", writes),
        (called, _run.Runner, "current_statistics", lambda things, _: things.touched.append((ANYTHING, True))),
        (asked_for, _run.Task, "child_nurseries", _looks_around),
        (called, _run.Task, "iter_await_frames", _looks_around),
        (asked_for, _run.Task, "parent_nursery eventual_parent_nursery", _looks_up),
    )

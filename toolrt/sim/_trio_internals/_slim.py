"""Does often what Trio does, without what Trio looks at only to explain a mistake.

Theory.  A small execution is mostly tasks that begin and end.  For an async function whose nursery is open, Trio's
``spawn_impl`` asks abstract base classes whether it got a coroutine and looks three times for instruments; here the
function's flags say that it makes a coroutine.  A cancel scope asks what time it is when it is entered, and looks at
its deadline in a generator, when it is entered and left, also when it has none; and its new status asks two properties
whether it is cancelled.  A checkpoint awaits a coroutine that awaits a generator; here it awaits the generator.
Everything else (another callable, a mistake in the call, instruments, guest mode, a Trio whose code is another one) is
left to Trio's own function.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Generator
from contextvars import copy_context
from functools import cache, wraps
from inspect import CO_COROUTINE
from math import inf
from types import FunctionType, MethodType
from typing import Any

import trio

_core: Any = trio._core
_run: Any = _core._run
_traps: Any = sys.modules["trio._core._traps"]

#: A run with so many tasks notes which lines start more.
MANY_TASKS = 1_000

# The first 16 hex digits of the SHA-256 of what is written out here (see `digest_of`), and the versions that have it.
_KNOWN = {"12d2b9fd4308825b": "0.35"}


def digest_of(function: Any) -> str:
    """Hash a function's source without comments, blank lines and indentation; "" when it is not there."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    lines = (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in source.splitlines())
    return hashlib.sha256("\n".join(line for line in lines if line).encode()).hexdigest()[:16]


@cache
def is_known() -> bool:
    """Say whether the installed Trio spawns and ends tasks as is written out here and in `stepper`."""
    parts = (
        _run.Runner.spawn_impl,
        _run.Runner.reschedule,
        _run.Runner.task_exited,
        _run.Task._activate_cancel_status,
        _run.Nursery._child_finished,
        _run.CancelStatus.__attrs_post_init__,
        _run.CancelStatus.recalculate,
        _run.CancelStatus.parent_cancellation_is_visible_to_us.fget,
        _run.CancelScope.__enter__,
        _run.CancelScope._might_change_registered_deadline,
        _traps.cancel_shielded_checkpoint,
    )
    return hashlib.sha256("".join(map(digest_of, parts)).encode()).hexdigest()[:16] in _KNOWN


def slim_spawn(note_start: Callable[[Any], None]) -> Callable[..., Any]:
    """Make what stands in for ``Runner.spawn_impl``.

    Args:
        note_start: is given the frame that starts a task where the run has `MANY_TASKS` or more.
    """
    real = _run.Runner.spawn_impl
    make, task_class = type.__call__, _run.Task

    @wraps(real)
    def spawn_impl(
        runner: Any,
        async_fn: Any,
        args: tuple[Any, ...],
        nursery: Any,
        name: object,
        *,
        system_task: bool = False,
        context: Any = None,
    ) -> Any:
        function = async_fn.__func__ if type(async_fn) is MethodType else async_fn
        if (
            type(function) is not FunctionType
            or not (name is None or type(name) is str)
            or not function.__code__.co_flags & CO_COROUTINE
            or system_task
            or nursery is None
            or nursery._closed
            or runner.is_guest
            or runner.instruments.data["_all"]
        ):
            return real(runner, async_fn, args, nursery, name, system_task=system_task, context=context)
        try:
            # Nothing of the function's own runs before the first step.
            coro = async_fn(*args)
        except TypeError:
            return real(runner, async_fn, args, nursery, name, context=context)
        if name is None:
            name = f"{async_fn.__module__}.{async_fn.__qualname__}"
        task = make(
            task_class,
            coro=coro,
            parent_nursery=nursery,
            runner=runner,
            name=name,
            context=copy_context() if context is None else context,
            ki_protected=False,
        )
        runner.tasks.add(task)
        if len(runner.tasks) >= MANY_TASKS:
            note_start(sys._getframe(1))
        nursery._children.add(task)
        task._activate_cancel_status(nursery._cancel_status)
        # The first send of a coroutine is of None.
        task._next_send_fn = coro.send
        runner.runq.append(task)
        return task

    return spawn_impl


def slim_enter() -> Callable[[Any], Any]:
    """Make what stands in for ``CancelScope.__enter__``: a scope without a deadline asks no clock."""
    real = _run.CancelScope.__enter__

    @wraps(real)
    @trio.lowlevel.enable_ki_protection
    def enter(scope: Any) -> Any:
        task = getattr(_run.GLOBAL_RUN_CONTEXT, "task", None)
        if task is None or scope._has_been_entered or scope._deadline != inf or scope._relative_deadline != inf:
            return real(scope)
        scope._has_been_entered = True
        scope._cancel_status = _run.CancelStatus(scope=scope, parent=task._cancel_status)
        task._activate_cancel_status(scope._cancel_status)
        return scope

    return enter


def slim_deadline() -> Callable[[Any], Any]:
    """Make what stands in for ``CancelScope._might_change_registered_deadline``."""
    real = _run.CancelScope._might_change_registered_deadline

    class DeadlineChange:
        """Registers a scope's deadline anew at the end of a block, where it is another."""

        __slots__ = ("_scope",)

        def __init__(self, scope: Any) -> None:
            self._scope = scope

        def __enter__(self) -> None:
            pass

        @trio.lowlevel.enable_ki_protection
        def __exit__(self, *_: object) -> None:
            scope: Any = self._scope
            deadline = inf if scope._cancel_status is None or scope._cancel_called else scope._deadline
            if scope._registered_deadline != deadline:
                with real(scope):
                    pass

    return wraps(real)(lambda scope: DeadlineChange(scope))


def slim_recalculate(real: Callable[[Any], None]) -> Callable[[Any], None]:
    """Make what stands in for `real`, Trio's ``CancelStatus.recalculate``: a new status begins as not cancelled."""

    @wraps(real)
    def recalculate(status: Any) -> None:
        scope, parent = status._scope, status._parent
        is_new = scope._cancel_status is None and not status._tasks and not status._children
        is_below_cancelled = parent is not None and parent.effectively_cancelled and not scope._shield
        if not is_new or scope._cancel_called or is_below_cancelled:
            real(status)

    return recalculate


class _PassedOutcome:
    """What a task is sent after a checkpoint it merely passed: ``outcome.Value(None)``, but to be used again."""

    def unwrap(self) -> None:
        """Give None, as often as asked."""


PASSED = _PassedOutcome()


def slim_checkpoint() -> Callable[[], Any]:
    """Make what stands in for ``cancel_shielded_checkpoint`` where Trio's own code awaits it."""
    message, passed = _traps.CancelShieldedCheckpoint, PASSED

    @types.coroutine
    def cancel_shielded_checkpoint() -> Generator[Any, Any, None]:
        sent = yield message
        if sent is not passed:
            sent.unwrap()

    return cancel_shielded_checkpoint

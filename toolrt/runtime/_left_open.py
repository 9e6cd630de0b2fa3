"""Closes what a tool left open in its task (nurseries, scopes, batches) and refuses answers that must be awaited.

Rules.
    1. A tool ends with the nurseries and cancel scopes of its task as it found them.  What it left open is closed
       here, innermost first: tasks in it are cancelled and waited for, batches in it are left, and an async generator
       that is suspended in a nursery is closed.
    2. That is the ERROR of its call.  The other calls keep their results.
    3. An answer is a value.  A coroutine, a generator or another awaitable in it is closed, and the call is an ERROR.
       So is a function for an answer: a modifier that is not in a `ToolOutput` would be lost without a word.

Limits.  Trio has no public way to close what another left open: the private names used here are `TRIO_NAMES`, and a
test holds them against the installed Trio.  A tool that closes a scope around its whole batch cancels that batch.
Answers are looked through to a depth of `_DEEPEST` and for `_MOST` values.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import types
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

import trio

from toolrt.order import CallRecord
from toolrt.runtime._batch import Batch

#: The private names of Trio that are used here, by their holder.
TRIO_NAMES: Mapping[str, tuple[str, ...]] = {
    "Task": ("_cancel_status", "_child_nurseries", "_activate_cancel_status"),
    "CancelStatus": ("_scope", "encloses", "effectively_cancelled"),
    "Nursery": ("_cancel_status",),
    "NurseryManager": ("_nursery", "_scope"),
}

_DEEPEST = 5
_MOST = 1_000

#: The types of values that hold nothing else.
PLAIN = frozenset((str, int, float, bool, bytes, type(None)))
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
_UNAWAITED = (types.GeneratorType, types.AsyncGeneratorType, Awaitable)


def stands_of(task: Any, status: Any) -> bool:
    """Whether the `task` is in the scope with that `status`, with no nursery open."""
    return task._cancel_status is status and not task._child_nurseries


async def close_left_open(call: CallRecord, task: Any, status: Any, error: BaseException | None) -> BaseException:
    """Close what the call's tool left open in its `task`, which began in the scope with that `status`.

    Args:
        error: what the tool raised; None if it returned.

    Returns: what the call failed with.

    Checkpoint: if a nursery was left open.
    """
    batches = list(call.opened)
    found: list[str] = []
    if call.inside is not None:
        call.inside.cancel("has ended")
    while task._child_nurseries:
        nursery = task._child_nurseries[-1]
        error = _leave_scopes(task, nursery._cancel_status, error, found)
        found.append("a nursery")
        nursery.cancel_scope.cancel()
        for generator in _holders(nursery, batches):
            # It leaves what it entered here, in the task that entered it; left alone, Trio would end it in another one.
            error = await _close_generator(generator, error)
        if nursery not in task._child_nurseries:
            continue
        manager: Any = trio.open_nursery()
        manager._nursery, manager._scope = nursery, nursery.cancel_scope
        try:
            if await manager.__aexit__(type(error), error, None):  # noqa: ASYNC102  it is the nursery's own exit
                error = None
        except BaseException as raised:  # noqa: ASYNC103  it is what the call failed with
            error = raised
        if nursery in task._child_nurseries:  # the tool had closed another one in its place
            task._child_nurseries.remove(nursery)
    error = _leave_scopes(task, status, error, found)
    if task._cancel_status is not status:
        found.append("fewer scopes than it was called in")
        task._activate_cancel_status(status)
    for batch in batches:
        found.append(f"batch {batch.batch_id}")
        if batch.outcome is None:
            batch.close()
    what = ", ".join(dict.fromkeys(found))
    wrong = RuntimeError(f"the tool left {what} open: leave what it enters before it ends, with `with` or `async with`")
    return wrong if error is None else BaseExceptionGroup("a tool that left something open", [wrong, error])


def _holders(nursery: Any, batches: Iterable[Any]) -> list[types.AsyncGeneratorType[Any, Any]]:
    """The async generators that are suspended inside `nursery`, or inside the batch of `batches` that it belongs to."""
    managers = [one for one in gc.get_referrers(nursery) if isinstance(one, type(trio.open_nursery()))]
    of_batch = [batch for batch in batches if getattr(batch.block, "_nursery", None) is nursery]
    # A frame refers to what the tool entered: the batch's façade, which alone refers to its engine by a slot.
    entered = [one for one in gc.get_referrers(*of_batch) if isinstance(one, Batch)]
    near = gc.get_referrers(nursery, *managers, *entered)
    # A frame keeps the way out of a block: the method `__aexit__` of what it entered.
    exits = [one for one in near if isinstance(one, types.MethodType)]
    found = [one for one in (*near, *gc.get_referrers(*exits)) if isinstance(one, types.AsyncGeneratorType)]
    return list({id(one): one for one in found}.values())


async def _close_generator(generator: Any, error: BaseException | None) -> BaseException | None:
    """Close an async generator; gives `error`, or what came up instead.

    Checkpoint: as the generator does.
    """
    try:
        await generator.aclose()
    except BaseException as raised:  # noqa: ASYNC103  it is what the call failed with
        if not isinstance(raised, BaseExceptionGroup):
            return raised  # noqa: ASYNC104
        # A nursery puts the GeneratorExit that ends the generator into a group.
        rest = raised.split(GeneratorExit)[1]
        return error if rest is None else rest  # noqa: ASYNC104
    return error


def _leave_scopes(task: Any, status: Any, error: BaseException | None, found: list[str]) -> BaseException | None:
    """Leave the scopes of `task` that are open inside the one with that `status`."""
    while task._cancel_status is not status and status.encloses(task._cancel_status):
        found.append("a cancel scope")
        inner = task._cancel_status
        try:
            if inner._scope.__exit__(type(error), error, None):
                error = None
        except BaseException as raised:  # noqa: ASYNC103  it is what the call failed with
            error = raised
        if task._cancel_status is inner:
            break
    return error


def check_answer(value: Any) -> None:
    """Refuse a tool's answer that is a function, or that was never awaited or run; the latter is closed.

    Raises:
        TypeError: `value` is a function, or there is a coroutine, a generator or another awaitable in it.
    """
    if type(value) in PLAIN:
        return
    if isinstance(value, _FUNCTIONS):
        raise TypeError(
            "the tool returned a function, expected a value: return a modifier in ToolOutput(content, modifiers=[...])"
        )
    found = _unawaited(value, 0, [_MOST])
    if found:
        for one in found:
            with contextlib.suppress(Exception):
                one.close()
        kind = type(found[0]).__name__.replace("_", " ")
        raise TypeError(
            f"the tool returned something with a {kind} in it: await or exhaust it, and return what it gives"
        )


def _unawaited(value: Any, depth: int, room: list[int]) -> list[Any]:
    if isinstance(value, _UNAWAITED):
        return [value]
    kind = type(value)
    items: Iterable[Any] = value.values() if kind is dict else value if kind in (list, tuple, set, frozenset) else ()
    found: list[Any] = []
    if depth < _DEEPEST:
        for item in items:
            room[0] -= 1
            if room[0] < 0:
                break
            if type(item) not in PLAIN:
                found += _unawaited(item, depth + 1, room)
    return found

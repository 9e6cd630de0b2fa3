"""Chances: time that moves early, a named scope that is cancelled, a value that is chosen.

Rules.  Each is a choice like any other, offered after all tasks, so that the schedule of zeros has none of them; the
clock comes last.  The clock may move to the next deadline whenever there is one, but so many times only, and never
while a task waits for all others to block.  At most one scope is cancelled in an execution.  When nothing can run and a
scope may still be cancelled, that time passes is choice 0, as it is beside an idle-only task.

A choice that the program asks for ends the step it is asked in: that step, the choice (a step called ``main.0=1``,
for choice 1 of ``main.0``) and the rest of it are three.

Theory.  In a real run a deadline may pass between any two steps, because steps take time.  Time that moves only when
nothing can run shows the program as it is on an infinitely fast machine.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import trio

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._host import current_scheduler


@contextmanager
def scope(name: str) -> Iterator[trio.CancelScope]:
    """Run the block in a cancel scope that ``cancel_at=name`` may cancel before any step that is made inside it.

    Without ``cancel_at``, and outside a simulation, it is a plain cancel scope.  Several may have one name, also at the
    same time: each of them may be the one.

    Args:
        name: what ``cancel_at`` calls it; not "any".

    Raises:
        DefinitionRefused: the name is no string, empty, or "any".

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def program():
        ...     with sim.scope("work") as scope:
        ...         await trio.lowlevel.checkpoint()
        ...     return scope.cancelled_caught
        >>> sim.explore(program, sim.Exhaustive(), cancel_at="work").outcomes
        {False: 1, True: 1}
    """
    if not isinstance(name, str) or not name or name == "any":
        raise DefinitionRefused("scope(name)", 'a name other than "any"', name)
    scheduler = current_scheduler()
    extra = None if scheduler is None else scheduler.record.extra
    with trio.CancelScope() as made:
        if scheduler is None or extra is None or extra.wanted != name:
            yield made
            return
        called = scheduler.enter_scope(made)
        try:
            yield made
        finally:
            extra.leave(called)


def choose(n: int) -> int:
    """Give a number below `n` that the explorer picks: a choice like any other, 0 being the simplest.

    For what the program does not decide itself: whether a disk is full, which of several answers a server gives.
    Outside a simulation, and in one that is being unwound, it is 0.

    Args:
        n: how many there are to choose from, 1 or more.

    Raises:
        DefinitionRefused: `n` is not a number of 1 or more.

    Checkpoint: never.

    Example:
        >>> from toolrt import sim
        >>> async def program():
        ...     return sim.choose(2) + sim.choose(2)
        >>> sim.explore(program, sim.Exhaustive()).outcomes
        {0: 1, 1: 2, 2: 1}
    """
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise DefinitionRefused("choose(n)", "a number of things to choose from, 1 or more", n)
    scheduler = current_scheduler()
    return 0 if scheduler is None or n == 1 else scheduler.choose(n)


def faults(
    *errors: BaseException | type[BaseException], at_most: int = 1, where: Callable[..., object] | None = None
) -> Callable[..., None]:
    """Give a function that may raise one of `errors` each time it is called: a choice like any other.

    It takes any arguments, so it fits wherever something asks whether to fail, such as ``MemoryDisk(fault=...)``.
    Outside a simulation it never raises.

    Args:
        errors: exceptions, or types of them; each is made anew from its arguments when it is raised.
        at_most: how often it raises in one execution, 1 or more.
        where: is called with the arguments, and says whether it may raise there; None: everywhere.

    Raises:
        DefinitionRefused: there is no error, one is no exception, or `at_most` is not a number of 1 or more.

    Example:
        >>> import errno
        >>> from toolrt import sim
        >>> async def program():
        ...     fault = sim.faults(OSError(errno.ENOSPC, "full"), where=lambda operation: operation == "write")
        ...     for operation in ("open", "write", "write"):
        ...         fault(operation)
        ...     return "written"
        >>> sim.explore(program, sim.Exhaustive(), lambda execution: True).outcomes
        {'written': 1, 'OSError': 2}
    """
    if not errors or not all(
        isinstance(error, BaseException) or (isinstance(error, type) and issubclass(error, BaseException))
        for error in errors
    ):
        raise DefinitionRefused("faults(errors)", "one or more exceptions", errors)
    if not isinstance(at_most, int) or isinstance(at_most, bool) or at_most < 1:
        raise DefinitionRefused("faults(at_most)", "a number of faults, 1 or more", at_most)
    # The execution in which faults were counted last: one function may serve many executions.
    whose: Callable[[], object] = lambda: None  # noqa: E731
    left = at_most

    def fault(*arguments: Any, **named: Any) -> None:
        nonlocal whose, left
        scheduler = current_scheduler()
        if scheduler is None:
            return
        if whose() is not scheduler:
            whose, left = weakref.ref(scheduler), at_most
        if not left or (where is not None and not where(*arguments, **named)):
            return
        chosen = choose(1 + len(errors))
        if chosen:
            left -= 1
            error = errors[chosen - 1]
            raise error() if isinstance(error, type) else type(error)(*error.args)

    return fault

"""A crash of the program before any step, and what outlives it.

Rules.
    1. ``crash_at="any"``: the program is a process that may end before any of its steps, once in an execution.  When it
       does, everything made by `durable` is copied as it is at that instant.  The process is cancelled, and what it
       still does as it unwinds is done to objects that are then thrown away.
    2. The program starts again, in the same execution, and `durable` gives it the copies.  Its value is the value of
       the execution.
    3. When the crash comes is a choice like any other, so every strategy tries it, every schedule holds it, and choice
       0 is that it does not come.

Limits.  One step is the smallest thing that a crash can cut: what a step does is done or not.  What the program keeps
elsewhere than in durable objects, such as a module's variables, outlives the crash.
"""

from __future__ import annotations

import contextvars
import copy
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.engine._scheduler import TEARDOWN

T = TypeVar("T")


class _Durables:
    """What outlives the crash of one execution, by name."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._copies: dict[str, Any] = {}
        self.crashed = False

    def crash(self) -> None:
        """The process ends: all is copied as it is."""
        self.crashed = True
        self._copies = {name: _copied(value) for name, value in self._made.items()}

    def restart(self) -> None:
        """The next process starts: it finds the copies."""
        self._made = self._copies

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


#: Of the execution that runs; None: it has no crash.
_DURABLES: contextvars.ContextVar[_Durables | None] = contextvars.ContextVar("toolrt durables", default=None)


def durable(name: str, make: Callable[[], T]) -> T:
    """Give the object of this name that outlives a crash: ``crash_at="any"``.

    The first process of an execution makes it.  The one that starts after the crash is given a copy of it, as it was
    when the crash came: by its own method ``copy()``, as a `MemoryDisk` and `toolrt.store.MemoryRecords` have one, or
    by `copy.deepcopy`.  Without a crash each call of the program makes it anew.

    Args:
        name: what it is called by, in every process.
        make: makes it.

    Raises:
        DefinitionRefused: the name is no text, or `make` no function.

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def program():
        ...     saved = sim.durable("saved", list)
        ...     found = "".join(saved)
        ...     saved.append("a")
        ...     await trio.lowlevel.checkpoint()
        ...     saved.append("b")
        ...     return found
        >>> sorted(sim.explore(program, sim.Exhaustive(), crash_at="any").outcomes)
        ['', 'a']
    """
    if not isinstance(name, str) or not callable(make):
        raise DefinitionRefused("sim.durable", "a name and a function that makes what has it", (name, make))
    durables = _DURABLES.get()
    if durables is None:
        return make()
    found: T = durables.get(name, make)
    return found


def _copied(value: Any) -> Any:
    own = getattr(value, "copy", None)
    return copy.deepcopy(value) if own is None or type(value).__module__ in ("builtins", "collections") else own()


def crashing(program: Callable[[], Awaitable[Any]], crasher: str) -> Callable[[], Awaitable[Any]]:
    """Give `program` as a process that may end before any step, and start again.

    Args:
        program: what is run.
        crasher: the name of the task whose step is the crash.
    """

    async def crashed_anywhere() -> Any:
        value: Any = None
        error: BaseException | None = None
        durables, ended = _Durables(), False
        scope, scheduler = trio.CancelScope(), current_scheduler()
        _DURABLES.set(durables)

        async def process() -> None:
            nonlocal value, error, ended
            try:
                with scope:
                    value = await program()
            except BaseException as raised:  # noqa: ASYNC103  raised again below, unless it came by the crash
                error = raised
            ended = True
            if scheduler is not None:
                # Only the crash is left, and it changes nothing.
                scheduler.idle_only = None

        async def crash() -> None:  # noqa: ASYNC124  a task is async
            if not ended:
                probe.access(probe.ANYTHING, True)
                durables.crash()
                scope.cancel()
                if scheduler is not None:
                    scheduler.idle_only = TEARDOWN

        async with trio.open_nursery() as nursery:
            nursery.start_soon(process)
            nursery.start_soon(crash)
            if scheduler is not None:
                scheduler.idle_only, scheduler.record.canceller = (crasher,), crasher
        if durables.crashed:
            durables.restart()
            return await program()
        if error is not None:
            raise error
        return value

    return crashed_anywhere

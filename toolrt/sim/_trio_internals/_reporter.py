"""Wraps operations of Trio so that they report what they touch.

Rules.  A report is made before the operation, and only for a step of the program of the execution that runs now, in
this thread.  All other operations are done without one.  What reports is a table: each row says how an operation is
wrapped (a method of `Reporter`), the class that has it, its names, separated by spaces, and the note that is made of
each use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, wraps
from pathlib import PurePath
from types import FrameType
from typing import Any

import trio

from toolrt.probe import ANYTHING
from toolrt.sim._trio_internals._lent import lent
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._things import Primitives

_core: Any = trio._core
_run: Any = _core._run


_HOME = PurePath(trio.__file__).parent


def deed_of(frame: FrameType) -> str:
    """Give the function of Trio's that runs in `frame`, or that is about to run there; "" where there is none."""
    file = frame.f_code.co_filename
    if file == __file__:
        return getattr(frame.f_locals.get("real"), "__name__", "")
    return frame.f_code.co_name if _is_of_trio(file) else ""


@cache
def _is_of_trio(file: str) -> bool:
    return PurePath(file).is_relative_to(_HOME)


class Reporter(Replacements):
    """Replaces what has to report, and keeps the execution it reports to; a simulation has one for itself.

    A name has the same note in every simulation, so one simulation may hand its reporter on to the next.
    """

    def __init__(self) -> None:
        super().__init__()
        #: The execution that runs now; None: no reports are wanted.
        self.things: Primitives | None = None
        # What reports, with what it stands for, by its class, its name and how it is made: to make all of it takes a
        # third of an execution of a small program.
        self._made: dict[tuple[Any, str, Any], tuple[Any, Any]] = {}

    def here(self) -> Primitives | None:
        """Give the record of the execution, when one of its program's steps runs in this thread."""
        things = self.things
        if things is not None and getattr(_run.GLOBAL_RUN_CONTEXT, "task", None) in things.actors:
            return things
        if things is not None and lent.here() is not None:
            # Trio's primitives are not made for threads: what one does with them may be anything.
            things.touched.append((ANYTHING, True))
        return None

    def report(self, rows: Iterable[Row]) -> None:
        """Let the operations of a table report; no name is in it twice."""
        self.replace_all(
            [
                (holder, name, self._reporting(wrap, holder, name, note))
                for wrap, holder, names, note in rows
                for name in names.split()
            ]
        )

    def _reporting(self, wrap: Callable[[Reporter, Any, Any], Any], holder: Any, name: str, note: Any) -> Any:
        real = holder.__dict__[name]
        known = self._made.get((holder, name, wrap))
        if known is None or known[0] is not real:
            known = self._made[holder, name, wrap] = real, wrap(self, real, note)
        return known[1]

    def called(self, real: Any, note: Callable[..., None]) -> Any:
        """Call ``note(things, self, *args)`` before each call of a method."""
        reporter, context = self, _run.GLOBAL_RUN_CONTEXT

        # `here` in line: these are called at every turn.
        @wraps(real)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            things = reporter.things
            if things is not None and getattr(context, "task", None) in things.actors:
                note(things, self, *args, **kwargs)
            elif things is not None and lent.here() is not None:
                things.touched.append((ANYTHING, True))
            return real(self, *args, **kwargs)

        return call

    def awaited(self, real: Any, note: Callable[..., None]) -> Any:
        """Call ``note(things, self)`` when a coroutine method begins to run, which may be in another task."""
        here = self.here

        @wraps(real)
        async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            things = here()
            if things is not None:
                note(things, self)
            return await real(self, *args, **kwargs)

        return call

    def asked(self, real: property, note: Callable[..., None]) -> property:
        """Call ``note(things, self)`` before a property is read."""
        return property(self.called(real.fget, note), real.fset, real.fdel, real.__doc__)

    def held(self, real: Any, notes: tuple[Callable[..., None], Callable[..., None]]) -> property:
        """Call the first note as `asked` does, and ``notes[1](things, self, value)`` before a property is set."""
        here, note = self.here, notes[1]

        def put(self: Any, value: Any) -> None:
            things = here()
            if things is not None:
                note(things, self, value)
            real.fset(self, value)

        return self.asked(property(real.fget, put, real.fdel, real.__doc__), notes[0])

    def flagged(self, real: Any, note: Callable[[Primitives, Any, bool], None]) -> property:
        """Call ``note(things, self, write)`` before a flag of a class with slots is read or raised.

        That it is down to begin with is no write: no other task has the object then, and it has no name yet.
        """
        here = self.here

        def get(self: Any) -> Any:
            things = here()
            if things is not None:
                note(things, self, False)
            return real.__get__(self)

        def put(self: Any, value: Any) -> None:
            things = here() if value else None
            if things is not None:
                note(things, self, True)
            real.__set__(self, value)

        return property(get, put)

    def named(self, real: Any, kind_and_part: tuple[str | None, str | None]) -> Any:
        """Name what ``__init__`` makes.

        Args:
            real: that method.
            kind_and_part: the kind in the name, None for the type's name; and the attribute that is the same resource,
                None for none.
        """
        here, context, (kind, part) = self.here, _run.GLOBAL_RUN_CONTEXT, kind_and_part

        @wraps(real)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            things = here()
            if things is None:
                real(self, *args, **kwargs)
                return
            name = things.made(self, kind or type(self).__name__, things.actor_of(context.task).name)
            real(self, *args, **kwargs)
            if part is not None:
                things.same(getattr(self, part), name)

        return init


#: How an operation is wrapped, the class that has it, its names, and the note.
Row = tuple[Callable[[Reporter, Any, Any], Any], Any, str, Any]

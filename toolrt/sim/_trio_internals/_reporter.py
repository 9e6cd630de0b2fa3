"""Wraps operations of Trio so that they report what they touch.

Rules.  A report is made before the operation, and only for a step of the program of the execution that runs now, in
this thread.  All other operations are done without one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from pathlib import PurePath
from types import FrameType
from typing import Any

import trio

from toolrt.sim._trio_internals._lent import lent
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._things import ANYTHING, Primitives

__all__ = ["Reporter", "deed_of"]

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
    """Replaces what has to report, and keeps the execution it reports to; one for each simulation."""

    def __init__(self) -> None:
        super().__init__()
        #: The execution that runs now; None: no reports are wanted.
        self.things: Primitives | None = None

    def here(self) -> Primitives | None:
        """Give the record of the execution, when one of its program's steps runs in this thread."""
        things = self.things
        if things is not None and getattr(_run.GLOBAL_RUN_CONTEXT, "task", None) in things.actors:
            return things
        if things is not None and lent.here() is not None:
            # Trio's primitives are not made for threads: what one does with them may be anything.
            things.touched.append((ANYTHING, True))
        return None

    def before(self, holder: Any, name: str, note: Callable[..., None]) -> None:
        """Call ``note(things, self, *args)`` before each call of a method or reading of a property."""
        reporter, context = self, _run.GLOBAL_RUN_CONTEXT

        def make(real: Any) -> Any:
            if isinstance(real, property):
                return property(
                    None if real.fget is None else make(real.fget),
                    real.fset,
                    real.fdel,
                    real.__doc__,
                )

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

        self.replace(holder, name, make(holder.__dict__[name]))

    def before_await(self, holder: Any, name: str, note: Callable[..., None]) -> None:
        """Call ``note(things, self)`` when a coroutine method begins to run, which may be in another task."""
        here, real = self.here, holder.__dict__[name]

        @wraps(real)
        async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            things = here()
            if things is not None:
                note(things, self)
            return await real(self, *args, **kwargs)

        self.replace(holder, name, call)

    def before_setting(self, holder: Any, name: str, note: Callable[..., None]) -> None:
        """Call ``note(things, self, value)`` before a property is set."""
        here, real = self.here, holder.__dict__[name]

        def put(self: Any, value: Any) -> None:
            things = here()
            if things is not None:
                note(things, self, value)
            real.fset(self, value)

        self.replace(holder, name, property(real.fget, put, real.fdel, real.__doc__))

    def around_slot(self, holder: Any, name: str, note: Callable[[Primitives, Any, bool], None]) -> None:
        """Call ``note(things, self, write)`` before a flag of a class with slots is read or raised.

        That it is down to begin with is no write: no other task has the object then, and it has no name yet.
        """
        here, real = self.here, holder.__dict__[name]

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

        self.replace(holder, name, property(get, put))

    def named(
        self, holder: Any, parts: Callable[[Any], tuple[Any, ...]] = lambda thing: (), kind: str | None = None
    ) -> None:
        """Name what ``holder()`` makes by its type; its parts are the same resource."""
        here, context, real = self.here, _run.GLOBAL_RUN_CONTEXT, holder.__dict__["__init__"]

        @wraps(real)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            things = here()
            if things is None:
                real(self, *args, **kwargs)
                return
            name = things.made(self, kind or type(self).__name__, things.actor_of(context.task).name)
            real(self, *args, **kwargs)
            for part in parts(self):
                things.same(part, name)

        self.replace(holder, "__init__", init)

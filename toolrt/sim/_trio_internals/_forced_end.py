"""Ends the step that runs, whatever its code does with what is raised in it.

Rules.  `ForcedEnd` is raised in the program's code.  Code that catches it meets it again at its next call or jump back,
some times in a row: so a loop around a ``try`` is left, too, and so is a ``finally`` that goes on for ever.  What steps
tasks, and what closes them, looks at the base of the class of what comes out of the program: where that is `ForcedEnd`,
it calls `Disarm.replace` before it calls anything else, and catches one that is raised once::

    try:
        disarm.replace()
        while True:
            pass
    except ForcedEnd:
        pass

Theory.  Python looks for an asynchronous exception of its thread at each call and each jump back.  An exception that
sets the next one as it is made is raised again at the next look.  It is set in C alone: between Python's instructions
it would be met too soon.  Another one that is raised once takes its place, and is met as the call
in C returns.  To take it back without another one would leave Python looking for it at every instruction; and under a
tracer it would begin the next function again and again.

Limits.  Only the main thread can be woken from a call that blocks in C.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any

import attr
import outcome
import trio

_SET = ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
_arm: Any = ctypes.PYFUNCTYPE(None, ctypes.c_ulong, ctypes.py_object)(_SET)

# So often in a row at the first attempt, and that many times more at each further one.
_TIMES = 8
_MOST = 8**5

#: The code that steps and closes tasks: what it calls is the program's.
BOUNDARIES: set[CodeType] = set()

# What a caller may go on with.
_GOES_ON = CO_ASYNC_GENERATOR | CO_COROUTINE | CO_GENERATOR | CO_ITERABLE_COROUTINE

_HERE = str(PurePath(__file__).parents[2])
# A thread of the program's that keeps the turn has a limit of its own.
_THREADS = str(PurePath(__file__).parents[1] / "programs" / "threads")
# The methods that attrs makes, those of Trio's outcomes among them, stand in no file.
_NOT_OURS = (sysconfig.get_path("stdlib"), "<frozen", "<attrs generated")
_TRIO = str(PurePath(trio.__file__).parent)
# What Trio is made with stands in site-packages, as the program's own libraries do.
_NOT_THE_PROGRAMS = (_HERE, _TRIO, *_NOT_OURS, *(str(PurePath(str(room.__file__)).parent) for room in (attr, outcome)))

# Trio's task that calls callbacks: nothing may be raised in it, but in a callback.
_core: Any = trio._core
_CALLS_BACK = getattr(getattr(_core._run.EntryQueue, "task", None), "__code__", None)


class ForcedEnd(BaseException):
    """Raised in a step that has to end."""


class Disarm:
    """Keeps the thread that makes it from meeting a `ForcedEnd` once more."""

    #: The base of its class.
    of = ForcedEnd

    def __init__(self) -> None:
        #: Puts one that is raised once in its place, in C: no instruction of Python is between.
        self.replace: Callable[[], object] = partial(_arm, threading.get_ident(), ForcedEnd)


def forced_end(repeated: bool = True, thread: int | None = None, attempt: int = 1) -> type[ForcedEnd]:
    """Make an exception to raise in this thread, or have it raised in another one.

    Args:
        repeated: False: it is raised once, because what is around the step does not disarm.
        thread: the number of the other thread; None: this one.
        attempt: 1 for the first one to end this step; each further one leaves more handlers around one place.
    """
    kind = type("ForcedEnd", (ForcedEnd,), {})
    if repeated:
        times = min(_TIMES**attempt, _MOST)
        again = map(_arm, itertools.repeat(thread or threading.get_ident(), times), itertools.repeat(kind))
        # Also when it is made by `except`, no instruction of Python runs.
        kind.__init__ = staticmethod(itertools.chain(again, itertools.repeat(None)).__next__)  # type: ignore[misc]
    if thread is not None:
        _arm(thread, kind)
    return kind


def look_no_more() -> None:
    """Have this thread raise one of its own, after it has raised one in another thread that may be lost in C.

    Python looks in every thread until one has met its own.  Under a tracer Python 3.11 then begins the next function
    again and again.
    """
    disarm = Disarm()
    try:
        disarm.replace()
        while True:
            pass
    except ForcedEnd:
        pass


def is_in_step(frame: FrameType) -> bool:
    """Say whether code of the program runs in `frame`, in a step of one of its tasks or while one is closed."""
    outer: FrameType | None = frame
    inner, is_programs = frame, False
    while outer is not None and outer.f_code not in BOUNDARIES:
        if outer.f_code.co_filename.startswith(_THREADS) or (outer.f_code is _CALLS_BACK and not is_programs):
            return False
        is_programs = is_programs or not outer.f_code.co_filename.startswith(_NOT_THE_PROGRAMS)
        inner, outer = outer, outer.f_back
    # A task's own coroutine may be one of Trio's; a plain function of Trio's there is what steps and ends tasks.
    is_of_task = is_programs or bool(inner.f_code.co_flags & CO_COROUTINE)
    return outer is not None and outer is not frame and is_of_task


def functions_of_step(frame: FrameType) -> Iterator[FrameType]:
    """Give the frames of plain functions in a step, from `frame` outwards: none of them goes on once it is ended."""
    outer: FrameType | None = frame
    while outer is not None and outer.f_code not in BOUNDARIES:
        if not outer.f_code.co_flags & _GOES_ON:
            yield outer
        outer = outer.f_back


def let_go(frames: Iterable[FrameType]) -> None:
    """Drop what was half made in functions that were ended by force, such as a coroutine for a task."""
    for frame in frames:
        with suppress(RuntimeError):
            frame.clear()
    for thing in gc.get_objects():
        if type(thing) is trio.Nursery:
            # Its finaliser asks for them.
            thing.__dict__.setdefault("_children", set())


def beside_steps(frame: FrameType) -> FrameType | None:
    """Give the outermost frame of the program's code that runs in `frame` where no step is: a finaliser, a check."""
    found, outer = None, frame
    while not outer.f_code.co_filename.startswith(_NOT_THE_PROGRAMS[:2]):
        if not outer.f_code.co_filename.startswith(_NOT_OURS):
            found = outer
        if outer.f_back is None:
            return None
        outer = outer.f_back
    return found


def where_it_stands(frame: FrameType) -> str:
    """Name the innermost line of the program, in the step in which `frame` is."""
    outer: FrameType | None = frame
    while outer is not None and outer.f_code not in BOUNDARIES:
        if not outer.f_code.co_filename.startswith(_NOT_THE_PROGRAMS):
            frame = outer
            break
        outer = outer.f_back
    return f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno} ({frame.f_code.co_name})"

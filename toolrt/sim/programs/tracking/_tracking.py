"""One exploration's tracking: what is rewritten for it, and the begin and the end of each of its executions.

Rules.  Functions get their new code when the exploration begins and their old one when it has ended.  With tracking a
step is taken to have done no more than it reported only where every frame that it went through, of its own task,
reports; any other step may have done anything.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType, GeneratorType, ModuleType
from typing import Any, TypeVar

from toolrt import probe
from toolrt.errors import DefinitionRefused
from toolrt.probe import ALL_REPORTED, Resource
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.engine._job import called_like
from toolrt.sim.programs.tracking import _touch
from toolrt.sim.programs.tracking._births import Reached, reach
from toolrt.sim.programs.tracking._guard import KeptAside
from toolrt.sim.programs.tracking._kinds import code_reports, is_tracked
from toolrt.sim.programs.tracking._sources import is_stale, module_of, namespace_of, new_code
from toolrt.sim.programs.tracking._swapped import SwappedCode
from toolrt.sim.programs.tracking._turns import take_turn

_Program = Callable[[], Awaitable[Any]]
T = TypeVar("T")

#: What a caller says: the program's own module, none, or names.
Track = bool | str | Collection[str] | None


def tracked(function: T) -> T:
    """Rewrite a function so that plain objects report to the simulator what its steps touch.

    The function stays the same object, with its closure and defaults.  The functions within it, and those that its
    closure holds, are rewritten too; of a class, its methods are.  Other functions that it calls are not: a step in
    which one of them ran may have done anything.

    Args:
        function: a function or a class whose source is at hand, in a file or a notebook's cell.

    Returns:
        `function` itself.

    Raises:
        DefinitionRefused: it is neither, or there is no source.

    Checkpoint: never.

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def wait_and_add(numbers, number):
        ...     await trio.lowlevel.checkpoint()
        ...     numbers.append(number)
        >>> sim.tracked(wait_and_add) is wait_and_add
        True
    """
    inner: Any = inspect.unwrap(function) if callable(function) else function
    inner = getattr(inner, "__func__", inner)
    if not isinstance(inner, FunctionType | type):
        raise DefinitionRefused("tracked(function)", "a function or a class", function)
    # Where there is no module's name at hand, a class and its methods say two different ones.
    methods = vars(inner).values() if isinstance(inner, type) else ()
    own = {inner.__module__, *(method.__module__ for method in methods if isinstance(method, FunctionType))}
    found = reach([((inner.__qualname__,), inner)], lambda module: module in own)
    done = 0
    for each in found.functions:
        if each.__module__ in own:
            code = new_code(each)
            if code is not None:
                each.__code__ = code
                _for_good.append(each)
                done += 1
    if not done:
        raise DefinitionRefused("tracked(function)", "a function whose source is at hand", function)
    return function


# So many objects that were there before are named; what lies beyond may be anything.  Where accesses are kept aside,
# only the functions count.
_MOST, _MOST_ASIDE = 50_000, 2_000

# What runs a program and is no part of it.
_NOT_THE_PROGRAM = ("toolrt", "trio", "outcome", "pytest_trio")

# The functions that `tracked` has rewritten.
_for_good: list[FunctionType] = []


class Tracking(SwappedCode):
    """What one exploration tracks.

    Args:
        program: the program, as the caller gave it.
        modules: the names of modules and packages.
        own: whether they are the program's own.
    """

    def __init__(self, program: Any, modules: Collection[str], own: bool) -> None:
        self._program = program
        #: The modules and packages that are tracked, by name.
        self.modules = tuple(modules)
        self._own = own
        #: Is given what keeps the accesses of each execution aside; None: they are reported.
        self.aside: Callable[[KeptAside], None] | None = None
        #: A function whose file was edited since its module was imported, so it is not rewritten; None: there is none.
        self.stale: FunctionType | None = None
        super().__init__()
        self._before: list[tuple[FunctionType, CodeType]] = []
        self._base: Reached | None = None

    def __reduce__(self) -> Any:
        return Tracking, (self._program, self.modules, self._own)

    def __str__(self) -> str:
        return ", ".join(self.modules) or "functions"

    @property
    def argument(self) -> str:
        """What a call that runs the same program again needs besides, as a caller writes it."""
        if not self.modules:
            return ""
        return ", track=True" if self._own else f", track={list(self.modules)!r}"

    def wants(self, module: str) -> bool:
        """Say whether `module` is tracked, by itself or with its package."""
        return any(module == name or module.startswith(f"{name}.") for name in self.modules)

    def _begin(self) -> None:
        found = self._reach()
        for function in found.functions:
            if self._is_mine(function):
                code = new_code(function)
                if code is None and self.stale is None and is_stale(function):
                    self.stale = function
                if code is not None and code is not function.__code__:
                    self._before.append((function, function.__code__))
                    function.__code__ = code

    def _is_mine(self, function: FunctionType) -> bool:
        if self.wants(module_of(function.__globals__)):
            return True
        # A wrapper bears the module's name of what it wraps, and on Python 3.13 so does `attrs.evolve` itself.
        return self.wants(function.__module__ or "") and not code_reports(function.__code__)

    def _end(self) -> None:
        for function, code in self._before:
            function.__code__ = code
        self._before.clear()
        self._base = None

    def _reach(self) -> Reached:
        roots: list[tuple[Resource, Any]] = []
        for name in self.modules:
            if name not in sys.modules and name != "__main__" and self.aside is None:
                importlib.import_module(name)  # a guard finds the functions of a module that no name leads to
        for name, module in sorted(sys.modules.items()):
            if isinstance(module, ModuleType) and self.wants(name):
                roots.append(((name,), module))
        roots += [(("program", name), value) for name, value in namespace_of(self._program).items() if name[:2] != "__"]
        roots.append((("program",), self._program))
        roots += [((function.__qualname__,), function) for function in _for_good]
        for _, root in list(roots):
            space = getattr(root, "__globals__", None)
            if isinstance(space, dict) and root in _for_good:
                roots += [
                    ((space.get("__name__", ""), name), space[name]) for name in root.__code__.co_names if name in space
                ]
        most = _MOST if self.aside is None else _MOST_ASIDE
        self._base = reach(roots, lambda module: self.wants(module) or module in _modules_for_good(), most)
        return self._base

    def bind(self) -> _Program:
        """Give the program with its executions tracked."""
        program, aside = self._program, self.aside

        async def tracked_program() -> Any:
            scheduler = current_scheduler()
            if self._inside and (scheduler is None or self._base is None):
                return await program()
            with self.active():
                if scheduler is None or self._base is None or probe.sink is None:
                    if scheduler is not None:
                        # Where nothing is reported a thread would hand over elsewhere: other schedules.
                        scheduler.record.before_threads = scheduler.need_record
                    return await program()
                if aside is None:
                    _Voucher(scheduler)
                    scheduler.record.threads_at_accesses = True
                else:
                    keeps = KeptAside(scheduler)
                    aside(keeps)
                    _touch.now.aside = keeps.note
                _touch.now.turn = take_turn
                _touch.now.begin(self._base.names, scheduler.roster.name_thing)
                try:
                    return await program()
                finally:
                    _touch.now.end()

        tracked_program.__wrapped__ = program  # type: ignore[attr-defined]
        return called_like(program, tracked_program)


def _modules_for_good() -> set[str]:
    return {function.__module__ for function in _for_good}


def tracking_of(program: Any, track: Any) -> Tracking | None:
    """Give what is tracked of `program`; None: nothing is.

    Args:
        program: the program.
        track: False or None: nothing but what `tracked` has rewritten; True: the program's own module; or names.

    Raises:
        DefinitionRefused: it is something else, or a module that cannot be imported.
    """
    if isinstance(track, str):
        track = [track]
    if track is True:
        names = [_module_of(program)]
    elif track is None or track is False:
        names = []
        if not _reaches_tracked(program):
            return None
    elif isinstance(track, Collection) and all(isinstance(name, str) for name in track) and track:
        names = list(track)
    else:
        raise DefinitionRefused("track", "True (the program's own module), or the names of modules and packages", track)
    for name in names:
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except ImportError as error:
                raise DefinitionRefused("track", "the names of modules that can be imported", name) from error
    return Tracking(program, names, track is True)


def guard_of(program: Any, aside: Callable[[KeptAside], None], modules: Collection[str] = ()) -> Tracking | None:
    """Give what keeps aside what the program's own module, and `modules`, touch; None where its own module reports."""
    module = _module_of(program)
    if module.partition(".")[0] == "toolrt":
        return None
    guard = Tracking(program, [module, *modules], own=True)
    guard.aside = aside
    return guard


def can_be_seen(modules: Collection[str]) -> list[str]:
    """Give those of `modules` whose plain objects are the program's: not those of Python, Trio or toolrt itself."""
    return sorted(
        name
        for name in modules
        if name in sys.modules
        and (home := name.partition(".")[0]) not in _NOT_THE_PROGRAM
        and (home not in sys.stdlib_module_names or name == "__main__")
    )


def active(tracking: Tracking | None) -> AbstractContextManager[None]:
    """Let what is tracked report inside the block."""
    return nullcontext() if tracking is None else tracking.active()


def _module_of(program: Any) -> str:
    while isinstance(program, functools.partial):
        program = program.func
    program = inspect.unwrap(program)
    space = getattr(getattr(program, "__func__", program), "__globals__", None)
    if isinstance(space, dict):
        return module_of(space)
    return getattr(program, "__module__", None) or type(program).__module__


def _reaches_tracked(program: Any) -> bool:
    """Say whether `program` leads to a function that `tracked` has rewritten."""
    if not _for_good:
        return False
    seen: set[int] = set()
    todo: list[Any] = [program]
    while todo:
        thing = todo.pop()
        thing = getattr(thing, "__func__", getattr(thing, "func", thing))
        if id(thing) in seen or len(seen) > 1000:
            continue
        seen.add(id(thing))
        if isinstance(thing, type):
            todo += [value for value in vars(thing).values() if isinstance(value, FunctionType)]
        if not isinstance(thing, FunctionType):
            continue
        if is_tracked(thing.__code__):
            return True
        for cell in thing.__closure__ or ():
            try:
                todo.append(cell.cell_contents)
            except ValueError:
                continue
        codes = [thing.__code__]
        while codes:
            code = codes.pop()
            todo += [thing.__globals__[name] for name in code.co_names if name in thing.__globals__]
            codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return False


# ---------------------------------------------------------------------- who may be taken at its word


class _Voucher:
    """Stands among the watched containers of an execution, and is looked at after each step."""

    def __init__(self, scheduler: Any) -> None:
        self._roster, self._threads = scheduler.roster, scheduler.record.threads
        self._implied = scheduler.record.things.implied
        # The tasks whose last step ended in code that does not report.
        self._foreign: set[Any] = set()
        scheduler.record.watched.append(self)

    def thing(self) -> _Voucher:
        """Give what is looked at."""
        return self

    def look(self) -> bool:
        """Say that the step that has just run reported all it did, or that it may have done anything."""
        _touch.let_go()
        actor = self._roster.spawner
        if actor is None:
            return True
        thread = self._threads.get(actor.task)
        reports = _all_report(actor.task.coro) if thread is None else thread.all_report(code_reports)
        foreign = self._foreign
        if reports and actor not in foreign:
            self._implied.append((ALL_REPORTED, False))
            return False
        if reports:
            foreign.discard(actor)
        else:
            foreign.add(actor)
        return True

    def was_written(self, touched: Iterable[Any]) -> bool:
        """Say no: what is not known may be anything."""
        return False


def _all_report(awaitable: Any) -> bool:
    """Say whether all code that a task is in reports."""
    while awaitable is not None:
        kind = type(awaitable)
        if kind is CoroutineType:
            code, awaitable = awaitable.cr_code, awaitable.cr_await
        elif kind is GeneratorType:
            code, awaitable = awaitable.gi_code, awaitable.gi_yieldfrom
        elif kind is AsyncGeneratorType:
            code, awaitable = awaitable.ag_code, awaitable.ag_await
        elif kind.__name__ in ("async_generator_asend", "async_generator_athrow", "coroutine_wrapper"):
            inner = [each for each in gc.get_referents(awaitable) if isinstance(each, _SUSPENDED)]
            if not inner:
                return False
            awaitable = inner[0]
            continue
        else:
            return False
        if not code_reports(code):
            return False
    return True


_SUSPENDED = (CoroutineType, GeneratorType, AsyncGeneratorType)

"""What rewritten code calls where it goes through something, enters it, awaits it, or may do so in a later step."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from toolrt.probe import ANYTHING
from toolrt.sim._trio_internals._lent import lent
from toolrt.sim.engine._looks import only_looks
from toolrt.sim.programs.tracking._kinds import (
    ATOM,
    CONTAINER,
    INSTANCE,
    LAZY,
    NEUTRAL,
    OPAQUE,
    TUPLE,
    code_reports,
    dunders_of,
    function_reports,
    kind_of,
)
from toolrt.sim.programs.tracking._locks import HeldLock, is_lock
from toolrt.sim.programs.tracking._touch import KEYED, born, items_of, name_of, now, report, touch_key, use, whole, wild


def slowly(thing: Any) -> Any:
    """Give what iterates over `thing` in several steps, and reports in each."""
    if now.names is None or kind_of(type(thing)) not in (CONTAINER, LAZY, OPAQUE, INSTANCE):
        return thing
    if type(thing) is GeneratorType and code_reports(thing.gi_code):
        pass
    elif kind_of(type(thing)) == INSTANCE and dunders_of(type(thing), "iter") == 0:
        return thing
    return _slowly(thing)


def _slowly(thing: Any) -> Iterator[Any]:
    use(thing, "iter")
    iterator = iter(thing)
    while True:
        use(thing, "iter")
        try:
            value = next(iterator)
        except StopIteration:
            return
        yield value


def augmented(before: Any, value: Any) -> Any:
    """Report what an augmented assignment does to the object itself, and give the operand back."""
    if now.names is not None:
        kind = kind_of(type(before))
        if kind == CONTAINER:
            if lent.thread:
                now.turn()
            whole(before, True)
            if type(before) in KEYED and isinstance(value, dict):
                # The keys that it makes.
                for key in dict.keys(value):
                    touch_key(before, key, True)
            elif type(before) in KEYED:
                wild()
            use(value, "iter")
        elif kind not in (ATOM, TUPLE):
            use(before, "arith")
        use(value, "arith")
    return value


def enters(manager: Any) -> Any:
    """Report that a context manager is entered here and left later."""
    if now.names is not None and is_lock(manager):
        return HeldLock(manager)
    if now.names is None or _manages(manager, ("__enter__", "__exit__")):
        return manager
    return _ForeignManager(manager)


def enters_async(manager: Any) -> Any:
    """The same of an async one."""
    if now.names is None or _manages(manager, ("__aenter__", "__aexit__")):
        return manager
    return _ForeignAsyncManager(manager)


def _manages(manager: Any, names: tuple[str, str]) -> bool:
    cls = type(manager)
    generator = getattr(manager, "gen", None) if cls.__module__ == "contextlib" else None
    if generator is not None:
        code = getattr(generator, "gi_code", None) or getattr(generator, "ag_code", None)
        return code is not None and code_reports(code)
    if cls.__module__ == "contextlib":
        # What it closes or calls is code of others.
        return cls.__name__ in ("suppress", "nullcontext")
    if kind_of(cls) == NEUTRAL:
        return True
    return all(function_reports(getattr(cls, name, None)) for name in names)


class _ForeignManager:
    """A context manager whose code is not rewritten: entering and leaving it may do anything."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def __enter__(self) -> Any:
        wild()
        return self._manager.__enter__()

    def __exit__(self, *error: Any) -> Any:
        wild()
        return self._manager.__exit__(*error)


class _ForeignAsyncManager:
    """The same of an async one."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    async def __aenter__(self) -> Any:
        wild()
        try:
            return await self._manager.__aenter__()
        finally:
            wild()

    async def __aexit__(self, *error: Any) -> Any:
        wild()
        try:
            return await self._manager.__aexit__(*error)  # noqa: ASYNC102  what the program's own manager does
        finally:
            wild()


def awaits(awaitable: Any) -> Any:
    """Report what is awaited, where its code does not."""
    if now.names is not None:
        code = getattr(awaitable, "cr_code", None)
        if code is not None:
            if not code_reports(code):
                report(ANYTHING, True)
        elif kind_of(type(awaitable)) != NEUTRAL and not function_reports(getattr(type(awaitable), "__await__", None)):
            report(ANYTHING, True)
    return awaitable


def iterates_async(thing: Any) -> Any:
    """Report an async iteration whose code does not."""
    if now.names is None:
        return thing
    code = getattr(thing, "ag_code", None)
    if code is not None:
        return _Advancing(thing) if code_reports(code) else _ForeignIteration(thing)
    cls = type(thing)
    begins = getattr(cls, "__aiter__", None)
    if begins is None or kind_of(cls) == NEUTRAL or function_reports(begins):
        return thing
    return _ForeignIteration(thing)


async def _advances(generator: Any, awaitable: Any) -> Any:
    report(name_of(generator), True)
    try:
        return await awaitable
    finally:
        report(name_of(generator), True)


def advances(generator: Any, awaitable: Any) -> Any:
    """Report that an async generator runs on when `awaitable` is awaited, and that it stops then."""
    is_tracked = now.names is not None and type(generator) is AsyncGeneratorType
    return _advances(generator, awaitable) if is_tracked else awaitable


class _Advancing:
    """Goes through an async generator, which other tasks may share, and reports it."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __aiter__(self) -> _Advancing:
        return self

    def __anext__(self) -> Any:
        return advances(self._generator, self._generator.__anext__())


class _ForeignIteration:
    """Goes through an async iterable whose code does not report; as a generator it would have to be closed."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __aiter__(self) -> _ForeignIteration:
        wild()
        self._iterator = aiter(self._thing)
        return self

    async def __anext__(self) -> Any:
        wild()
        try:
            return await anext(self._iterator)
        finally:
            wild()


def imported(name: str) -> None:
    """Report an import that runs code."""
    if now.names is not None and name not in sys.modules:
        wild()


def late(value: Any) -> Any:
    """Report an operation whose first operand was looked at in an earlier step."""
    wild()
    return value


def begins(self: Any) -> None:
    """Name an object whose ``__init__`` has begun."""
    if now.names is not None:
        born(self)


def binary(name: str, left: Any, right: Any) -> Any:
    """Do an operation between whose operands a checkpoint may lie."""
    if now.names is not None and lent.thread:
        now.turn()
    use(left, "arith")
    use(right, "str" if name == "mod" else "arith")
    return result(getattr(operator, name)(left, right))


def result(value: Any) -> Any:
    """Name what an operator made."""
    if now.names is not None and kind_of(type(value)) == CONTAINER:
        born(value)
    return value


@only_looks
def within(container: Any, value: Any) -> Any:
    """Report a look for `value` in `container`, and give that back."""
    if now.names is not None:
        if lent.thread and kind_of(type(container)) != ATOM:
            now.turn()
        if type(container) in KEYED:
            use(value, "hash")
            touch_key(container, value, False)
        else:
            use(container, "contains")
    return container


def unpacks(things: Any) -> Any:
    """Report that each of `things` is unpacked, as they come."""
    if now.names is None:
        return things
    kind = kind_of(type(things))
    if kind == LAZY and type(things).__name__ in _PAIRS:
        return things
    if kind in (CONTAINER, TUPLE) and all(kind_of(type(each)) in (ATOM, TUPLE) for each in items_of(things)):
        return things
    return (use(each, "unpack") for each in things)


_PAIRS = ("dict_items", "odict_items", "enumerate", "zip", "pairwise", "product")


def delegates(thing: Any) -> Any:
    """Report what a ``yield from`` goes through."""
    if now.names is not None and type(thing) is GeneratorType and code_reports(thing.gi_code):
        return use(thing, "iter")
    return slowly(thing)

"""What objects are called: by the task that made them and how many it made before, or by the way they were reached.

Rules.  An object is named when it is made, by its type, the running task and a count: the same in every schedule.
What was there before the simulation is named once, by the first path on which it is reached from the globals of the
tracked modules and from the program.  An object that has no name when it is touched came from code that does not
report: that step may have done anything, and names it.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from toolrt.probe import Resource
from toolrt.sim.engine._looks import only_looks
from toolrt.sim.programs.tracking._kinds import ATOM, CONTAINER, INSTANCE, NEUTRAL, OPAQUE, TUPLE, kind_of


class Reached:
    """What is reached from some roots: the names of objects, and the functions."""

    def __init__(self) -> None:
        #: The name of each object and of each closure's cell, by id.
        self.names: dict[int, Resource] = {}
        #: Each object by its name, so that ids stay those of the objects.
        self.kept: list[Any] = []
        #: Every function.
        self.functions: list[FunctionType] = []


def reach(roots: Iterable[tuple[Resource, Any]], wants: Callable[[str], bool], most: int = 50_000) -> Reached:
    """Name what is reached from `roots`, breadth first.

    Args:
        roots: names and objects to begin with.
        wants: says whether to look into classes and functions of a module of this name.
        most: how many objects are looked at.
    """
    found = Reached()
    todo = deque(roots)
    seen: set[int] = set()
    while todo and len(seen) < most:
        name, thing = todo.popleft()
        key = id(thing)
        if key in seen:
            continue
        cls = type(thing)
        kind = kind_of(cls)
        if kind == ATOM:
            continue
        seen.add(key)
        found.kept.append(thing)
        if kind in (CONTAINER, INSTANCE, OPAQUE):
            found.names[key] = name
        todo.extend(_inside(name, thing, kind, found, wants))
    return found


def _inside(name: Resource, thing: Any, kind: int, found: Reached, wants: Callable[[str], bool]) -> Iterator[Any]:
    if kind == CONTAINER and isinstance(thing, dict):
        for index, (key, value) in enumerate(list(thing.items())):
            part = key if isinstance(key, str | int) else index
            yield (*name, part), value
            yield (*name, part, "key"), key
    elif kind in (CONTAINER, TUPLE):
        items = list(thing)
        for index, value in enumerate(items):
            yield (*name, index), value
    elif kind in (INSTANCE, OPAQUE):
        for attribute, value in attributes_of(thing):
            yield (*name, attribute), value
        yield (type(thing).__qualname__,), type(thing)
    elif kind == NEUTRAL:
        yield from _inside_code(name, thing, found, wants)


def _inside_code(name: Resource, thing: Any, found: Reached, wants: Callable[[str], bool]) -> Iterator[Any]:
    if isinstance(thing, FunctionType):
        found.functions.append(thing)
        for index, cell in enumerate(thing.__closure__ or ()):
            variable = thing.__code__.co_freevars[index]
            found.names.setdefault(id(cell), (*name, variable))
            found.kept.append(cell)
            try:
                yield (*name, variable), cell.cell_contents
            except ValueError:
                continue
        # What attrs wrote for a cached property holds the property's own function.
        if wants(thing.__module__ or "") or thing.__code__.co_filename.startswith("<attrs gen"):
            yield (*name, "defaults"), [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
            yield from (((*name, key), value) for key, value in vars(thing).items())
    elif isinstance(thing, MethodType):
        yield (*name, "self"), thing.__self__
        yield name, thing.__func__
    elif isinstance(thing, functools.partial):
        yield name, thing.func
        yield (*name, "arguments"), [*thing.args, *thing.keywords.values()]
    elif isinstance(thing, staticmethod | classmethod):
        yield name, thing.__func__
    elif isinstance(thing, property):
        yield from (
            ((*name, part), function) for part in ("fget", "fset", "fdel") if (function := getattr(thing, part))
        )
    elif isinstance(thing, type) and wants(thing.__module__ or ""):
        for attribute, value in list(vars(thing).items()):
            yield (*name, attribute), value
    elif isinstance(thing, ModuleType) and wants(thing.__name__):
        for attribute, value in list(vars(thing).items()):
            if not attribute.startswith("__"):
                yield (thing.__name__, attribute), value


@only_looks
def attributes_of(thing: Any) -> Iterator[tuple[str, Any]]:
    """Give the attributes that an object has of its own, without asking its class for them."""
    try:
        own = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        own = {}
    if isinstance(own, dict):
        yield from list(own.items())
    for cls in type(thing).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot.startswith("__") and not slot.endswith("__"):
                slot = f"_{cls.__name__.lstrip('_')}{slot}"
            if slot in ("__weakref__", "__dict__"):
                continue
            try:
                yield slot, object.__getattribute__(thing, slot)
            except AttributeError:
                continue

"""Finds what is reached from a watched thing by attributes and items, so that it is watched as well.

Rules.  An object is watched in place if its class is one of the user's: written in Python, and neither of the standard
library nor of Trio or toolrt.  A dict, list, set or deque is replaced by a watched copy, but only where nothing else
holds it: another holder would not see what happens to the copy.  Tuples and frozen objects are looked
through.  Each is named by the first path on which it is found, in the order of attributes and items; a set has no such
order, so what is in one is not watched.

Limits.  What lies deeper than 20 attributes or items, and what comes after 10,000 things, is not watched; nor is what
is stored later.  A step that reaches any of it may have done anything.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
import re
import sys
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from types import FunctionType, MethodDescriptorType, ModuleType
from typing import Any

import trio

from toolrt.sim.programs._cell import Cell

#: So many attributes and items lead from what is watched to the last that is, too.
DEPTH_MOST = 20
# So many things below it are looked at.
_MOST = 10_000

#: What cannot change, and holds nothing that can.
VALUES = (
    int,
    float,
    complex,
    str,
    bytes,
    range,
    type(None),
    type(...),
    type(NotImplemented),
    enum.Enum,
    decimal.Decimal,
    fractions.Fraction,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    uuid.UUID,
    pathlib.PurePath,
    re.Pattern,
    type,
    FunctionType,
    ModuleType,
)

#: What says for itself what happens to it.
REPORTING = (
    Cell,
    trio.Event,
    trio.Lock,
    trio.StrictFIFOLock,
    trio.Semaphore,
    trio.Condition,
    trio.CapacityLimiter,
    trio.CancelScope,
    trio.MemorySendChannel,
    trio.MemoryReceiveChannel,
    trio.lowlevel.ParkingLot,
    trio.lowlevel.RunVar,
)


def is_frozen(cls: Any) -> bool:
    """Say whether instances of `cls` are values: frozen by dataclasses or attrs."""
    parameters = getattr(cls, "__dataclass_params__", None)
    frozen = parameters is not None and parameters.frozen
    return frozen or (hasattr(cls, "__attrs_attrs__") and cls.__setattr__.__name__ == "_frozen_setattrs")


def attributes_of(thing: Any) -> Iterator[tuple[str, Any]]:
    """Give the attributes an object has of its own."""
    try:
        own = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        own = {}
    yield from list(own.items())
    for cls in type(thing).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if not slot.startswith("__") and hasattr(thing, slot):
                yield slot, object.__getattribute__(thing, slot)


# Bases from the standard library that hold nothing of their own.
_BARE = ("abc", "collections.abc", "typing")
_OTHERS = frozenset({*sys.stdlib_module_names, "trio", "toolrt"}) - {"__main__"}


def _is_own(cls: type) -> bool:
    """Say whether `cls` is one of the user's, written in Python."""
    bases = [each for each in cls.__mro__ if each is not object and each.__module__ not in _BARE]
    return bool(bases) and not any(
        each.__module__.partition(".")[0] in _OTHERS
        or any(type(value) is MethodDescriptorType for value in vars(each).values())
        for each in bases
    )


def _holders(give: Callable[[Any], Any], key: Any) -> int:
    return sys.getrefcount(give(key))


# What is counted where one thing holds another.
_ALONE = _holders([object()].__getitem__, 0)


class Below:
    """Watches what lies below one thing.

    Args:
        copies: the kinds of containers, each with what makes a watched copy of one.
        watch: watches an object in place, or a copy, under a name; False: its class admits no subclass.
        name_of: gives the name of what is watched already, and None for what is not.
    """

    def __init__(
        self, copies: dict[type, Any], watch: Callable[[Any, tuple[Any, ...]], bool], name_of: Callable[[Any], Any]
    ) -> None:
        self._copies, self._watch, self._name_of = copies, watch, name_of
        self._containers = (*copies.values(),)
        self._left = _MOST

    def go_into(self, thing: Any, name: tuple[Any, ...], path: str = "", depth: int = 0, spare: int = 0) -> None:
        """Watch what `thing` holds.

        Args:
            thing: a watched object, a copy of a container that is not yet watched, or a value that holds others.
            name: what the accesses to the uppermost thing are called.
            path: leads from there to `thing`, as a program writes it.
            depth: how many attributes and items it has.
            spare: how many others may hold what `thing` holds: 1 below a copy whose original is still there.
        """
        if depth >= DEPTH_MOST:
            return
        kind = type(thing)
        if isinstance(thing, dict):
            for at, key in enumerate(list(dict.keys(thing))):
                give, put = (
                    (lambda at: dict.__getitem__(thing, at)),
                    (lambda at, new: dict.__setitem__(thing, at, new)),
                )
                # Two keys are never shown alike.
                shown = repr(key) if isinstance(key, str | int | None) else f"key {at}"
                self._one(give, put, key, name, f"{path}[{shown}]", depth, spare)
        elif isinstance(thing, list | deque):
            base: Any = list if isinstance(thing, list) else deque
            for at in range(base.__len__(thing)):
                give, put = (lambda at: base.__getitem__(thing, at)), (lambda at, new: base.__setitem__(thing, at, new))
                self._one(give, put, at, name, f"{path}[{at}]", depth, spare)
        elif kind is tuple:
            for at, value in enumerate(thing):
                self._value(value, name, f"{path}[{at}]", depth)
        elif not isinstance(thing, set | frozenset):
            for attribute in [attribute for attribute, _ in attributes_of(thing)]:
                give, put = (
                    (lambda at: object.__getattribute__(thing, at)),
                    (lambda at, new: object.__setattr__(thing, at, new)),
                )
                self._one(give, put, attribute, name, f"{path}.{attribute}", depth, 0)

    def _one(
        self,
        give: Callable[[Any], Any],
        put: Callable[[Any, Any], None],
        key: Any,
        name: tuple[Any, ...],
        path: str,
        depth: int,
        spare: int,
    ) -> None:
        kind = type(give(key))
        if kind in self._containers:
            # Watched already, by a call of its own or in an earlier execution.
            found, is_new = give(key), self._name_of(give(key)) is None
            if is_new or depth == 0:
                self.go_into(found, name, path, depth + 1)
            if is_new:
                self._watch(found, _named(name, path))
        elif kind not in self._copies:
            self._value(give(key), name, path, depth)
        elif self._left > 0 and _holders(give, key) <= _ALONE + spare:
            self._left -= 1
            copy = copied(self._copies[kind], give(key))
            put(key, copy)
            self.go_into(copy, name, path, depth + 1, spare)
            self._watch(copy, _named(name, path))

    def _value(self, value: Any, name: tuple[Any, ...], path: str, depth: int) -> None:
        if isinstance(value, (*VALUES, *REPORTING)) or self._left <= 0:
            return
        self._left -= 1
        cls = type(value)
        if (
            cls is tuple
            or is_frozen(cls)
            or (self._name_of(value) is None and _is_own(cls) and self._watch(value, _named(name, f"{path}.")))
        ):
            self.go_into(value, name, path, depth + 1)


def copied(kind: Any, thing: Any) -> Any:
    """Make a container of `kind` with what `thing` holds."""
    # A deque has a length to keep.
    return kind(thing, thing.maxlen) if isinstance(thing, deque) else kind(thing)


def name_of_attribute(name: tuple[Any, ...], attribute: str) -> tuple[Any, ...]:
    """Give what an attribute is called, of an object of this name: by its path, if the object was found on one."""
    last = name[-1]
    return (*name[:-1], last + attribute) if type(last) is str and last.endswith(".") else (*name, attribute)


def _named(name: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    return (*name[:-1], f"{name[-1]}{path}")

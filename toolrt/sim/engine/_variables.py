"""What the program's variables hold, and by which of them it reaches the things that its steps touch.

Rules.
    1. What an access is about is found in the frame of what reports it: a cell's, a watched thing's, or one that
       rewritten code called.
    2. A thing is called by its place in a container before all else, then by a variable that is no parameter, then by
       an attribute of one; a parameter comes last, as it means another thing in another call, and so does any name that
       meant two things.  Of equal ones the first by name counts, so that a name does not depend on the schedule.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import PurePath
from types import FrameType, MemberDescriptorType
from typing import Any

import attrs
import trio

from toolrt.probe import Resource

#: Stands for what a variable holds that holds nothing, or is not known.
NO_VALUE = object()

# How well a name says what is meant; an item of a variable is better, an attribute of one worse.
_VARIABLE, _PARAMETER, _SELF, _AMBIGUOUS = 0, 2, 4, 2

# Of a container or an object so many parts are looked at.
_MOST_PARTS = 50

# Stands before the name of a channel's sending end: both ends are one thing to the schedule, and two to the program.
_SENDS = ">"


@attrs.frozen
class Held:
    """The variable that an access is about."""

    #: Gives what it holds now, or `NO_VALUE`.
    look: Callable[[], Any]
    #: The object it belongs to, and what that is called; None where it belongs to none.
    thing: Any = None
    base: Resource | None = None
    #: Whether it holds the new value already.
    is_over: bool = False


class Variables:
    """The names by which one execution reached its things."""

    def __init__(self) -> None:
        #: What each thing is called, once `decide` has been called.
        self.found: dict[Resource, str] = {}
        # For each thing the names by which it was reached, with how well they say what is meant.
        self._names: dict[Resource, dict[str, int]] = {}
        # What each name meant.
        self._meant: dict[str, set[Resource]] = {}
        # The plain objects that were touched, by id; kept, so that the id stays theirs.
        self._things: dict[int, tuple[Any, Resource]] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def add(self, thing: Any, base: Resource) -> bool:
        """Note that `thing`, a plain object, was touched and is called `base`; gives whether that is new."""
        is_new = id(thing) not in self._things
        self._things[id(thing)] = thing, base
        return is_new

    def look_into(self, frame: FrameType, known: Callable[[Any], Resource | None]) -> None:
        """Look for things in the variables of `frame`; `known` gives the name of one of Trio's."""
        code = frame.f_code
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self._globals[id(frame.f_globals)] = frame.f_globals
        for name, value in list(frame.f_locals.items()):
            if name.isidentifier() and not name.startswith("_toolrt"):
                rank = _SELF if name in ("self", "cls") else _PARAMETER if name in parameters else _VARIABLE
                self._look_at(name, value, rank, known)

    def decide(self, known: Callable[[Any], Resource | None]) -> None:
        """Look into the globals of all those frames, too, and choose the names: when the execution is over."""
        for each in self._globals.values():
            for name, value in list(each.items()):
                if not name.startswith("__"):
                    self._look_at(name, value, _VARIABLE, known)
        for resource, names in self._names.items():
            ends = (
                [name for name in names if name.startswith(_SENDS)],
                [name for name in names if name[0] not in _SENDS],
            )
            best = [
                min(end, key=lambda name: (names[name] + _AMBIGUOUS * (len(self._meant[name]) > 1), name))
                for end in ends
                if end
            ]
            self.found[resource] = "/".join(name.lstrip(_SENDS) for name in best)

    def _look_at(self, name: str, value: Any, rank: int, known: Callable[[Any], Resource | None]) -> None:
        self._note(name, value, rank, known)
        for part, inner in _parts_of(name, value):
            self._note(part, inner, rank + (-1 if part.endswith("]") else 1), known)

    def _note(self, name: str, value: Any, rank: int, known: Callable[[Any], Resource | None]) -> None:
        thing, resource = self._things.get(id(value), (None, None))
        if resource is None or thing is not value:
            resource = known(value)
        if resource is not None:
            name = _SENDS + name if type(value) is trio.MemorySendChannel else name
            names = self._names.setdefault(resource, {})
            names[name] = min(rank, names.get(name, rank))
            self._meant.setdefault(name, set()).add(resource)


def _parts_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if kind in (list, tuple):
        yield from ((f"{name}[{at}]", part) for at, part in enumerate(value[:_MOST_PARTS]))
    elif kind is dict:
        first = list(islice(value.items(), _MOST_PARTS))
        yield from ((f"{name}[{key!r}]", part) for key, part in first if type(key) is str)
    elif not issubclass(kind, type):
        try:
            # Not by the object's own way to get attributes, which may be code of the program's.
            attributes = object.__getattribute__(value, "__dict__")
        except Exception:
            return
        if type(attributes) is dict:
            yield from ((f"{name}.{key}", part) for key, part in list(islice(attributes.items(), _MOST_PARTS)))


def held_in(frame: FrameType, resource: Resource, write: bool) -> Held | None:
    """The variable that `resource` is, if `frame` is that of what reports an access to it."""
    has = frame.f_locals
    match PurePath(frame.f_code.co_filename).name:
        case "_cell.py":
            return _in_cell(frame.f_code.co_name, has, write)
        case "_watch.py":
            return _watched(frame.f_code.co_name, has, resource, write)
        case "_touch.py":
            return _tracked(frame, has, resource)
    return None


def _in_cell(function: str, has: dict[str, Any], write: bool) -> Held | None:
    if write:
        value = has.get("value", NO_VALUE)
        return Held(lambda: value, is_over=True)
    return Held(lambda: getattr(has.get("self"), "_value", NO_VALUE)) if function == "get" else None


def _watched(function: str, has: dict[str, Any], resource: Resource, write: bool) -> Held | None:
    is_key = resource[-2:-1] == ("key",)
    if write:
        # Which keys a dict has is no matter of what is stored under one.
        value = has.get("value", NO_VALUE) if is_key or function != "__setitem__" else NO_VALUE
        return None if value is NO_VALUE else Held(lambda: value, is_over=True)
    if function == "_attribute":
        return Held(lambda: _attribute_of(has["thing"], has["attribute"]))
    return Held(lambda: dict.get(has["self"], has["key"], NO_VALUE)) if function == "_touch" and is_key else None


def _tracked(frame: FrameType, has: dict[str, Any], resource: Resource) -> Held | None:
    match frame.f_code.co_name:
        case "read_attribute" | "write_attribute" if resource[-1] == has["attribute"]:
            thing, attribute = has["thing"], has["attribute"]
            base = None if resource[0] == "class attribute" else resource[:-1]
            return Held(lambda: _attribute_of(thing, attribute), thing, base)
        case "touch_key" | "touch_index" | "whole" if (base := has.get("name")) == resource[: len(base or ())]:
            thing = has["thing"]
            if base == resource:
                return Held(lambda: thing, thing, base)
            key = has.get("key", resource[-1])
            return Held(lambda: _item_of(thing, key), thing, base)
        case "load_cell" | "load_global":
            value = has["value"]
            return Held(lambda: value)
        case "store_cell":
            closure = has["cell"].__closure__
            return Held(lambda: _held_by(closure[0]), is_over=True)
        case "store_global" if frame.f_back is not None:
            space, name = frame.f_back.f_globals, resource[-1]
            return Held(lambda: space.get(name, NO_VALUE), is_over=True)
    return None


def _held_by(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return NO_VALUE


def _item_of(thing: Any, key: Any) -> Any:
    """What a dict or a list holds there, without running code of its class."""
    if isinstance(thing, dict):
        return dict.get(thing, key, NO_VALUE)
    is_there = isinstance(thing, list) and isinstance(key, int) and -len(thing) <= key < len(thing)
    return list.__getitem__(thing, key) if is_there else NO_VALUE


def _attribute_of(thing: Any, attribute: str) -> Any:
    """Give what an attribute holds, without running code of its class."""
    found = inspect.getattr_static(thing, attribute, NO_VALUE)
    if type(found) is MemberDescriptorType:
        try:
            return object.__getattribute__(thing, attribute)
        except AttributeError:
            return NO_VALUE
    return NO_VALUE if hasattr(type(found), "__get__") else found

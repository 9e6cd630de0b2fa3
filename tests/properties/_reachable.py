"""Everything that can be reached from an object, and what of it can change: labels and plain values."""

from __future__ import annotations

import enum
import functools
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import attrs

from toolrt.model import State
from toolrt.order import CallRecord, LanePlace, LaneRecord, Machine
from toolrt.runtime._run import BatchRun

_ATOMS = (str, bytes, int, float, bool, type(None), enum.Enum, type, types.ModuleType, PurePath)
_CONTAINERS = (dict, list, set, deque, bytearray)


def is_value(thing: object) -> bool:
    """Whether nothing can be assigned to its attributes."""
    return isinstance(thing, State) or type(thing).__setattr__ is not object.__setattr__


def _is_ours(thing: object) -> bool:
    return type(thing).__module__.split(".")[0] == "toolrt"


def _attributes(thing: object) -> Iterator[tuple[str, Any]]:
    for kind in reversed(type(thing).__mro__):
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(thing, name):
                yield name, getattr(thing, name)
    yield from getattr(thing, "__dict__", {}).items()


def _inside(thing: Any) -> Iterator[Any]:
    """What one step leads to."""
    if isinstance(thing, dict):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        yield from thing
    elif isinstance(thing, types.MethodType):
        yield thing.__self__
    elif isinstance(thing, functools.partial):
        yield from (thing.func, thing.args, thing.keywords)
    elif isinstance(thing, types.FunctionType):
        for cell in thing.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:
                continue
    elif _is_ours(thing):
        for _, value in _attributes(thing):
            yield value


def _name(thing: Any) -> str:
    """Which of its class it is, where it has a name."""
    if isinstance(thing, CallRecord):
        return f"{thing.batch_id}#{thing.call_index}"
    if isinstance(thing, LaneRecord):
        return "/".join([*dict.fromkeys(call.batch_id for call in thing.calls), str(thing.index)])
    if isinstance(thing, BatchRun | Machine):
        return thing.batch_id
    return str(thing.index) if isinstance(thing, LanePlace) else str(getattr(thing, "name", ""))


def plain(value: Any) -> str:
    """A text of the value that has no address in it; of what can change only its class and name."""
    if isinstance(value, enum.Enum) or (not isinstance(value, type | types.ModuleType) and isinstance(value, _ATOMS)):
        return repr(value)
    if isinstance(value, dict):
        pairs = [f"{plain(key)}: {plain(one)}" for key, one in value.items()]
        return "{" + ", ".join(pairs if isinstance(value, OrderedDict) else sorted(pairs)) + "}"
    if isinstance(value, list | tuple | deque):
        return "[" + ", ".join(map(plain, value)) + "]"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(plain, value))) + "}"
    if _is_ours(value) and is_value(value) and attrs.has(type(value)):
        fields = (f"{field.name}={plain(getattr(value, field.name))}" for field in attrs.fields(type(value)))
        return f"{type(value).__name__}({', '.join(fields)})"
    if isinstance(value, State):
        return repr(value)
    if isinstance(value, types.FunctionType | types.MethodType | type):
        return value.__qualname__
    return f"<{type(value).__name__} {_name(value)}>"


@attrs.frozen
class Moment:
    """What was reached at one moment."""

    #: By ``Class.attribute``: for each instance its name and what it has there, sorted.
    values: dict[str, list[str]]
    #: The labels of attributes that hold a container.
    containers: frozenset[str]


def things_reached(root: object, views: Mapping[str, Callable[[Any], Any]]) -> Moment:
    """For each attribute of each class what the instances that are reached have there.

    Args:
        views: for some labels what of the value can be seen from outside.
    """
    seen: dict[int, Any] = {}
    stack = [root]
    found: dict[str, list[str]] = {}
    containers: dict[str, None] = {}
    while stack:
        thing = stack.pop()
        if isinstance(thing, _ATOMS) or id(thing) in seen:
            continue
        seen[id(thing)] = thing
        stack += _inside(thing)
        if not _is_ours(thing) or isinstance(thing, types.FunctionType | types.MethodType | functools.partial):
            continue
        for name, value in _attributes(thing):
            if not is_value(thing) or isinstance(value, _CONTAINERS):
                label = f"{type(thing).__name__}.{name}"
                if isinstance(value, _CONTAINERS):
                    containers[label] = None
                shown = views[label](value) if label in views else value
                found.setdefault(label, []).append(f"{_name(thing)} {plain(shown)}")
    return Moment({label: sorted(values) for label, values in found.items()}, frozenset(containers))

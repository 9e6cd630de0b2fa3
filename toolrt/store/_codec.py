"""The codec of a journal: values of tools and states as JSON, and the same values again.

Rules.
    1. What JSON has stays as it is.  A value of another kind becomes ``{"$": kind, "v": ...}``.
    2. What comes back is equal to what was given, and of the same kind.  A value for which this does not hold is
       refused; it is never written as its text.
    3. A codec has a name.  A journal that another codec has written is refused.

Limits.  A subclass of a text, a number or a container comes back as its base.
"""

from __future__ import annotations

import base64
import datetime
import functools
import json
import math
import typing
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.model import Claim, File, Image, Json, Mode, Outcome, State, Text, ToolOutput, ToolResult
from toolrt.model._change import Change, as_change
from toolrt.model._state import FIELDS, LongResult
from toolrt.model._watched_state import bare_state

#: How deep a value may be nested.
_NESTING_MOST = 200

#: Kinds beyond JSON, by their names: the type, what JSON keeps of it, and the way back.
_Kind = tuple[type, Callable[[Any], Any], Callable[[Any], Any]]


def _fields_of(kind: type) -> _Kind:
    """A kind whose values are made of their fields."""
    names = [field.name for field in attrs.fields(kind)]
    return kind, lambda value: [getattr(value, name) for name in names], lambda parts: kind(*parts)


_KINDS: dict[str, _Kind] = {
    "bytes": (bytes, lambda value: base64.b64encode(value).decode(), base64.b64decode),
    "tuple": (tuple, list, tuple),
    "set": (set, list, set),
    "frozenset": (frozenset, list, frozenset),
    "path": (PurePath, str, PurePath),
    "datetime": (datetime.datetime, lambda value: value.isoformat(), datetime.datetime.fromisoformat),
    "date": (datetime.date, lambda value: value.isoformat(), datetime.date.fromisoformat),
    "outcome": (Outcome, lambda value: value.value, Outcome),
    "mode": (Mode, lambda value: value.name, lambda name: Mode[name]),
    "text": _fields_of(Text),
    "json": _fields_of(Json),
    "image": _fields_of(Image),
    "file": _fields_of(File),
    "claim": _fields_of(Claim),
    "result": _fields_of(ToolResult),
    "change": _fields_of(Change),
    "long_result": _fields_of(LongResult),
    "state": (State, lambda state: _state_parts(state), lambda parts: State(parts[0], **parts[1])),
}

#: What a kind of these is written as.
_BASES: tuple[Any, ...] = (bool, int, float, str, list, dict)

_PLAIN: tuple[type, ...] = (str, bool, int, float, type(None), list, dict, ToolOutput)


def _state_parts(state: State) -> list[Any]:
    state = bare_state(state)
    return [dict(state), {name: getattr(state, name) for name in FIELDS}]


@attrs.frozen
class Codec:
    """Turns values into JSON text and back; one by its name for each journal.

    Args:
        name: what journals call it by.  Give another name when `kinds` changes in a way that old journals do not fit.
        kinds: values of your own, by a name for each kind: the type, a function that gives what is to be kept of a
            value, and one that makes the value of that again.

    Raises:
        DefinitionRefused: `name` is no text, or a kind is not three of these or has the name of one that exists.

    Example::

        Codec("shop-1", {"money": (Money, lambda money: [money.amount, money.currency], lambda kept: Money(*kept))})
    """

    #: What journals call it by.
    name: str = "toolrt-1"
    #: Kinds of its own.
    kinds: Mapping[str, _Kind] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise DefinitionRefused("Codec(name)", "a text that is not empty", self.name)
        for name, kind in self.kinds.items():
            if name in _KINDS or name == "dict" or name == "float":
                raise DefinitionRefused("Codec(kinds)", "a name that is free", name)
            if not isinstance(kind, tuple) or len(kind) != 3 or not isinstance(kind[0], type):
                raise DefinitionRefused(f"Codec(kinds[{name!r}])", "a type and two functions", kind)

    def encode(self, value: object) -> Any:
        """Give `value` as a JSON value, whose `decode` is equal to it.

        Raises:
            TypeError: it holds something that the codec does not carry, or is nested too deeply; the text says what.
        """
        return self._encoded(value, _NESTING_MOST)

    def _encoded(self, value: Any, room: int) -> Any:
        if room == 0:
            raise TypeError("a value that is nested too deeply, or holds itself")
        kind = type(value)
        if value is None or kind is bool or kind is int or kind is str:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$": "float", "v": repr(value)}
        if kind is list:
            return [self._encoded(part, room - 1) for part in value]
        if kind is dict:
            if "$" not in value and all(type(key) is str for key in value):
                return {key: self._encoded(part, room - 1) for key, part in value.items()}
            pairs = [[self._encoded(key, room - 1), self._encoded(part, room - 1)] for key, part in value.items()]
            return {"$": "dict", "v": pairs}
        for kinds in (self.kinds, _KINDS):
            for name, (known, keep, _) in kinds.items():
                if isinstance(value, known):
                    return {"$": name, "v": self._encoded(keep(value), room - 1)}
        for base in _BASES:
            if isinstance(value, base):
                return self._encoded(base(value), room)
        if isinstance(value, Mapping):
            return self._encoded(dict(value), room)
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__}, which codec {self.name!r} does not carry")

    def decode(self, kept: Any) -> Any:
        """The value that `encode` made `kept` of.

        Raises:
            TypeError: it is of a kind that this codec does not know.
        """
        if isinstance(kept, list):
            return [self.decode(part) for part in kept]
        if not isinstance(kept, dict):
            return kept
        if "$" not in kept:
            return {key: self.decode(part) for key, part in kept.items()}
        name, inner = kept["$"], self.decode(kept["v"])
        if name == "dict":
            return dict(inner)
        if name == "float":
            return float(inner)
        found = self.kinds.get(name) or _KINDS.get(name)
        if found is None:
            raise TypeError(f"a value of kind {name!r}, which codec {self.name!r} does not know")
        return found[2](inner)

    def modifiers(self, modifiers: tuple[Any, ...]) -> tuple[Change, ...]:
        """The `modifiers` of a call as values.

        Raises:
            TypeError: one of them is a lambda, or another function without a name.
        """
        changes = tuple(map(as_change, modifiers))
        for position, (change, modifier) in enumerate(zip(changes, modifiers, strict=True)):
            if change is None:
                shown = getattr(modifier, "__qualname__", type(modifier).__qualname__)
                raise TypeError(
                    f"modifier {position} ({shown}), a function that no module has by name: return "
                    "toolrt.Change.set(key, value), .append, .add, or .call(named_function, *arguments) instead"
                )
        return changes  # type: ignore[return-value]

    def refuses(self, function: Callable[..., Any]) -> str | None:
        """The name of the type that a tool's `function` declares to return, if no value of it is carried; else None."""
        return _refused(self, function)

    def _is_refused(self, kind: object) -> bool:
        if not isinstance(kind, type) or typing.is_typeddict(kind) or getattr(kind, "_is_protocol", False):
            return False
        carried: tuple[type, ...] = (*_PLAIN, *(kind[0] for kinds in (self.kinds, _KINDS) for kind in kinds.values()))
        if kind.__module__ in ("typing", "collections.abc") or issubclass(kind, (*carried, Mapping)):
            return False
        return not any(issubclass(known, kind) for known in carried)

    def __hash__(self) -> int:
        return id(self)


@functools.lru_cache(1000)
def _refused(codec: Codec, function: Callable[..., Any]) -> str | None:
    try:
        kind = typing.get_type_hints(function).get("return")
    except Exception:
        return None  # annotations that cannot be read now say nothing
    return f"{kind.__module__}.{kind.__qualname__}" if kind is not None and codec._is_refused(kind) else None


def text_of(record: list[Any]) -> str:
    """One record as text: JSON in one line, in the order of its parts."""
    return json.dumps(record, separators=(",", ":"), allow_nan=False)

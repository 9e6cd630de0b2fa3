"""Any value as a JSON value that is the same in every process.

Rules.  What JSON has stays as it is.  Tuples become lists, sets become sorted lists, mappings get text keys; a part of
an answer (an image, a file) becomes its own JSON; everything else, and a float that JSON has no number for, becomes its
text (its `repr`, unless told otherwise) with every memory address taken out.  Of an integer that is longer than Python
writes the length is told.  Nothing raises: an observer must never break what it observes.

Limits.  Information is lost (a tuple comes back as a list), so two values may look the same afterwards.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

# What CPython's default repr prints for an object without one of its own, and Trio's for its tasks.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{6,}")

# Python writes the digits of no longer number, for the time that it takes (`sys.set_int_max_str_digits`).
_BITS_MOST = 14_000

# Deeper containers are not looked into; neither is one that holds itself.
_MAX_DEPTH = 200


def stable_text(value: object, text: Callable[[object], str] = repr) -> str:
    """Give the text of `value` without memory addresses; one that raises is replaced by the type's name."""
    try:
        written = text(value)
    except Exception as error:
        return f"<{type(value).__name__} whose {text.__name__} raises {type(error).__name__}>"
    return _ADDRESS.sub("", written)


def plain(value: object, text: Callable[[object], str] = repr, _above: tuple[int, ...] = ()) -> Any:
    """Give `value` as a JSON value; see the module's header for what becomes of what JSON does not have.

    Args:
        value: anything.
        text: how to write what JSON does not have; ``str`` where a person or a model reads it.
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        bits = value.bit_length()  # type: ignore[attr-defined]
        return value if bits <= _BITS_MOST else f"<int of about {bits * 30_103 // 100_000:,} digits>"
    if kind is float:
        return value if math.isfinite(value) else repr(value)  # type: ignore[arg-type]
    if isinstance(value, str):
        return str.__str__(value)  # a kind of text may have a text of its own, which raises
    if not isinstance(value, list | tuple | Mapping | set | frozenset):
        part = getattr(kind, "_plain_part", None)
        return stable_text(value, text) if part is None else plain(part(value), text, _above)
    if len(_above) >= _MAX_DEPTH or id(value) in _above:
        return f"<{kind.__name__}, too deep>"
    above = (*_above, id(value))
    try:
        items: list[Any] = list(value.items() if isinstance(value, Mapping) else value)
    except Exception:
        return stable_text(value, text)
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else stable_text(key): plain(item, text, above) for key, item in items}
    found = [plain(item, text, above) for item in items]
    return found if isinstance(value, list | tuple) else sorted(found, key=compact)


#: How many levels a value has that `json_copy` copies.  Counted rather than left to Python's own limit: whatever the
#: garbage collector runs just below that limit, a finalizer say, fails there too.
NESTING_MOST = 200


def deeper_than(value: object, levels: int) -> bool:
    """Tell whether arrays and objects stand in each other for more than so many levels."""
    level = [value]
    for _ in range(levels):
        # Each once: a value that holds itself twice would double with every level.
        parts = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = list({id(part): part for some in parts for part in some if isinstance(part, dict | list)}.values())
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def at_once(value: Any) -> Any:
    """Give `value` back, unless it is a coroutine: that is closed and refused, where nothing can wait for it.

    Raises:
        TypeError: it is a coroutine.
    """
    if isinstance(value, types.CoroutineType):
        value.close()
        raise TypeError("a function that must answer at once gave a coroutine")
    return value


#: What holds nothing else.
_SCALARS = frozenset((str, int, float, bool, type(None)))


def json_copy(value: Any, room: int = NESTING_MOST) -> Any:
    """Copy the containers of a JSON value; whatever is no mapping or list is the same object.

    Raises:
        RecursionError: it is nested too deeply, in more than `room` levels, or holds itself.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if room == 0:
        raise RecursionError("nested too deeply")
    if kind is dict:
        return {key: item if type(item) in _SCALARS else json_copy(item, room - 1) for key, item in value.items()}
    if kind is list:
        return [item if type(item) in _SCALARS else json_copy(item, room - 1) for item in value]
    if isinstance(value, Mapping):
        return {key: json_copy(item, room - 1) for key, item in value.items()}
    return value


def frozen(value: Any) -> Any:
    """Turn the lists of a JSON value into tuples, however deep: a resource's name must be hashable."""
    if isinstance(value, list):
        return tuple(frozen(item) for item in value)
    return value


def compact(value: Any) -> str:
    """Write a JSON value with sorted keys and no spaces: one text per value, in every process."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """Write so many of something, for people: ``1 call``, ``1,000 calls``; `nouns` where the plural takes no mere s."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"

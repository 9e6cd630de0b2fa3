"""Any value as a JSON value that is the same in every process.

Rules.  What JSON has stays as it is.  Tuples become lists, sets become sorted lists, mappings get text keys;
everything else, and a float that JSON has no number for, becomes its `repr` with every memory address taken
out.  Nothing raises: an observer must never break what it observes.

Limits.  Information is lost (a tuple comes back as a list), so two values may look the same afterwards.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["compact", "frozen", "plain", "stable_text"]

# What CPython's default repr prints for an object without one of its own, and Trio's for its tasks.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{6,}")

# Deeper values become text: a container that holds itself must end somewhere.
_MAX_DEPTH = 40


def stable_text(value: object) -> str:
    """Give the `repr` of `value` without memory addresses; a `repr` that raises is replaced by the type's name."""
    try:
        text = repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return _ADDRESS.sub("", text)


def plain(value: object, _depth: int = 0) -> Any:
    """Give `value` as a JSON value; see the module's header for what becomes of what JSON does not have."""
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is str:
        return value
    if kind is float:
        return value if math.isfinite(value) else repr(value)  # type: ignore[arg-type]
    if _depth >= _MAX_DEPTH:
        return stable_text(value)
    if isinstance(value, list | tuple):
        return [plain(item, _depth + 1) for item in value]
    if isinstance(value, Mapping):
        try:
            pairs = list(value.items())
        except Exception:
            return stable_text(value)
        return {key if isinstance(key, str) else stable_text(key): plain(item, _depth + 1) for key, item in pairs}
    if isinstance(value, set | frozenset):
        return sorted((plain(item, _depth + 1) for item in value), key=compact)
    return stable_text(value)


def frozen(value: Any) -> Any:
    """Turn the lists of a JSON value into tuples, however deep: a resource's name must be hashable."""
    if isinstance(value, list):
        return tuple(frozen(item) for item in value)
    return value


def compact(value: Any) -> str:
    """Write a JSON value with sorted keys and no spaces: one text per value, in every process."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

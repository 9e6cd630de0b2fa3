"""JSON, strictly: what one reader takes for one thing and another for something else is not read at all.

Rules.  Beyond its grammar, a text is refused for NaN and the infinities (also ``1e999``, which Python reads as
one), for a key that one object has twice, for integers of over 1,000 digits (reading them takes quadratic time)
and for nesting deeper than `MAX_NESTING`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from toolrt._plain import NESTING_MOST, deeper_than

#: Levels of arrays and objects that are read.
MAX_NESTING = NESTING_MOST

#: Digits of an integer.
_MAX_DIGITS = 1_000

#: Flaws of one text that are kept to look for the place of the first: enough for a person, no work for an attacker.
_MAX_FLAWS = 100

#: Characters of a key or number that an error shows.
_SHOWN = 60


class NotStrictJSON(ValueError):
    """A text is not JSON, or not JSON that has one meaning; its text says what is wrong, and where."""


def at(place: str, key: str | int) -> str:
    """The place of an element of `place`: ``content[3].name``; the outermost place is the empty string."""
    if isinstance(key, int):
        return f"{place}[{key}]"
    if not key.isidentifier() or len(key) > _SHOWN:
        return f"{place}[{_shown(key)}]"
    return f"{place}.{key}" if place else key


def _shown(text: str) -> str:
    return json.dumps(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def strict_json(text: str) -> Any:
    """The value that `text` means.

    Raises:
        NotStrictJSON: it has none, or not exactly one.
    """
    # The parser does not tell its hooks where it is: they keep what they made, to be found in the result.
    flaws: list[tuple[object, str]] = []

    def flawed(value: object, why: str) -> Any:
        if len(flaws) == _MAX_FLAWS:
            raise NotStrictJSON(f"{flaws[0][1]} (the first of more than {_MAX_FLAWS} flaws)")
        flaws.append((value, why))
        return value

    def constant(name: str) -> Any:
        return flawed(float(name), f"{name} is not JSON")

    def fraction(digits: str) -> Any:
        value = float(digits)
        return value if math.isfinite(value) else flawed(value, f"the number {_shown(digits)} is too large to hold")

    def integer(digits: str) -> Any:
        if len(digits) > _MAX_DIGITS:
            # A float made here, unlike 0, is an object of its own that the search cannot mistake for another.
            return flawed(
                float(len(digits)), f"an integer of {len(digits):,} digits (at most {_MAX_DIGITS:,} are read)"
            )
        return int(digits)

    def object_(pairs: list[tuple[str, Any]]) -> Any:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return flawed(value, f"the key {_shown(twice)} appears twice in one object")

    too_deep = f"nested too deeply (more than {MAX_NESTING} levels)"
    try:
        value = json.loads(
            text, parse_constant=constant, parse_float=fraction, parse_int=integer, object_pairs_hook=object_
        )
    except json.JSONDecodeError as error:
        raise NotStrictJSON(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotStrictJSON(too_deep) from None
    if deeper_than(value, MAX_NESTING):
        raise NotStrictJSON(too_deep)
    if flaws:
        _refuse_first(flaws, value)
    return value


def _parts(value: object) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list):
        return list(enumerate(value))
    return []


def _refuse_first(flaws: list[tuple[object, str]], value: object) -> None:
    """Raise for the first in reading order; every flaw is in `value`, or in an object that is flawed itself."""
    why_of = {id(part): why for part, why in flaws}
    if id(value) in why_of:
        raise NotStrictJSON(why_of[id(value)])
    left = [("", key, part) for key, part in reversed(_parts(value))]
    while left:
        parent, key, one = left.pop()
        place = at(parent, key)
        if id(one) in why_of:
            raise NotStrictJSON(f"{why_of[id(one)]}, at {place}")
        left.extend((place, key, part) for key, part in reversed(_parts(one)))

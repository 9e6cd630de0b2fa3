"""What is wrong with an input, in words of bounded length.

Rules.  A text for a model names the first `TOLD_MOST` problems and how many more there are.  Names, and what stands
around them, lose their middle: what the model has sent must not come back to it many times as long.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import attrs

#: A refusal tells so many problems in full.
TOLD_MOST = 10
#: How many further ones are counted.
_COUNTED_MOST = 1_000_000

#: Characters of a place, of one name in it, of what is expected, and of what was got.
_PATH_MOST, _NAME_MOST, _EXPECTED_MOST, _GOT_MOST = 200, 80, 600, 120
_DESCRIBED_MOST = 40


def clipped(text: str, most: int) -> str:
    """`text`, without its middle where it has more than `most` characters."""
    if len(text) <= most:
        return text
    return f"{text[: most - most // 2 - 3]}...{text[-(most // 2) :]}"


def clipped_repr(value: object, most: int = _NAME_MOST) -> str:
    """The `repr` of a name, cut before it is written."""
    return clipped(repr(clipped(value, most)) if isinstance(value, str) else repr(value), most + 2)


def path_of(parts: Iterable[object], root: str = "input") -> str:
    """A place in an input: ``input.edits[0].old``."""
    return root + "".join(
        f"[{part}]" if isinstance(part, int) else f".{clipped(str(part), _NAME_MOST)}" for part in parts
    )


def _path(text: str) -> str:
    return clipped(text, _PATH_MOST)


def _expected(text: str) -> str:
    return clipped(text, _EXPECTED_MOST)


def _got(text: str) -> str:
    return clipped(text, _GOT_MOST)


@attrs.frozen
class Mismatch:
    """One thing that is wrong with an input."""

    #: Where: ``input``, ``input.edits[0].old``.
    path: str = attrs.field(converter=_path)
    #: What was expected there.
    expected: str = attrs.field(converter=_expected)
    #: What was there.
    got: str = attrs.field(converter=_got)

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, got {self.got}"


class Words(str):
    """A value that is told in words: shown as it stands, without quotes."""

    __repr__ = str.__str__


#: Where, what was expected there, and what was there: the value itself, or `Words`.
Wrong = tuple[Iterable[str | int], str, Any]

#: Stands for a value that is not there.
NOTHING = Words("nothing")


class Mismatches(list[Mismatch]):
    """The first things that are wrong with an input.

    Args:
        found: what is told.
        more: what the text says of further ones.
    """

    def __init__(self, found: Iterable[Mismatch] = (), more: str = "") -> None:
        super().__init__(found)
        #: What the text says of those that it does not name.
        self.more = more

    @classmethod
    def of(cls, wrong: Iterable[Wrong], more: str = "") -> Mismatches:
        """The first of what is `wrong`, and how many others there are."""
        left = iter(wrong)
        told = [
            Mismatch(path_of(where), expected, got if isinstance(got, Words) else describe(got))
            for where, expected, got in islice(left, TOLD_MOST)
        ]
        uncounted = sum(1 for _ in islice(left, _COUNTED_MOST))
        if uncounted:
            more = f"and {uncounted:,} more" if uncounted < _COUNTED_MOST else f"and more than {uncounted:,} more"
        return cls(told, more)

    def __str__(self) -> str:
        return "; ".join([*map(str, self), *([self.more] if self.more else [])])


def describe(value: object) -> str:
    """A JSON value in a few words: its type, and itself if it is short."""
    names: dict[type, str] = {
        dict: "object", list: "array", str: "string", bool: "boolean",
        int: "integer", float: "number", type(None): "null",
    }  # fmt: skip
    name = names.get(type(value), type(value).__name__)
    is_short = len(value) <= _DESCRIBED_MOST if isinstance(value, str) else isinstance(value, float)
    # Python refuses to write an integer of more than 4,300 digits.
    is_short = is_short or (isinstance(value, int) and value.bit_length() <= 4 * _DESCRIBED_MOST)
    if is_short and len(repr(value)) <= _DESCRIBED_MOST:
        return f"{name} {value!r}"
    return name

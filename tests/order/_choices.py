"""What happens next, chosen from bytes: one draw of Hypothesis for a whole run, so that thousands are quick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices:
    """Reads one choice after the other from `data`; behind its end each choice is the first.

    Args:
        data: shrinks to zeros, and so to the first of everything.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __repr__(self) -> str:
        return f"Choices({self._data.rstrip(bytes(1))!r})"

    @property
    def more(self) -> bool:
        """Whether something is left to choose from."""
        return self._at < len(self._data)

    def below(self, count: int) -> int:
        """Give a number from 0 to `count` - 1; at most 256 of them."""
        found = self._data[self._at] if self.more else 0
        self._at += 1
        return found * count >> 8

    def one_in(self, count: int) -> bool:
        """Give True once in `count` times; never behind the end."""
        return self.below(count) == count - 1

    def one_of(self, options: Sequence[T]) -> T:
        """Give one of the options; there is at least one."""
        return options[self.below(len(options))]

    def some_of(self, options: Sequence[T], most: int) -> list[T]:
        """Give one or more of the options, at most so many, in any order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(min(len(left), 1 + self.below(most)))]


def choices(size: int) -> st.SearchStrategy[Choices]:
    """Draw as many bytes."""
    return st.binary(min_size=size, max_size=size).map(Choices)

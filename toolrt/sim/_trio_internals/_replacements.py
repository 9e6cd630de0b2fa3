"""Replaces names of Trio's for a while, and puts them back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Replacements:
    """What is replaced now.  The code that replaces something calls `put_back`, whatever happens."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def replace(self, holder: Any, name: str, value: Any) -> None:
        """Put `value` in the place of the name `name` of `holder`, a module or a class."""
        self.replace_all([(holder, name, value)])

    def replace_all(self, rows: Iterable[tuple[Any, str, Any]]) -> None:
        """Put a value in the place of each name, as `replace` does, in this order."""
        for holder, name, value in rows:
            self._replaced.append((holder, name, holder.__dict__[name]))
            setattr(holder, name, value)

    def put_back(self) -> None:
        """Put back whatever was there, the last first."""
        for holder, name, real in reversed(self._replaced):
            setattr(holder, name, real)
        self._replaced.clear()

"""Code that stands in the place of other code for as long as a block is open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager


class SwappedCode(ABC):
    """Puts its code in place when the first of its blocks opens, and takes it away when the last one closes."""

    def __init__(self) -> None:
        self._inside = 0

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let the code stand inside the block."""
        self._inside += 1
        try:
            if self._inside == 1:
                self._begin()
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._end()

    @abstractmethod
    def _begin(self) -> None:
        """Put the code in place."""

    @abstractmethod
    def _end(self) -> None:
        """Put back what stood there."""

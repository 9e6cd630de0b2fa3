"""What stands in, in every simulation, for a part of the world outside; the rooms above say what."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from toolrt.sim._trio_internals._seam import Seam

__all__ = ["STAND_INS", "StandIn"]


class StandIn(Protocol):
    """Stands in for something while simulations run."""

    def begin(self) -> None:
        """Begin another execution."""

    def installed(self, mine: Callable[[], Seam | None]) -> AbstractContextManager[None]:
        """Stand there inside the block, in the run that `mine` gives where this thread is in it."""


#: All of them.
STAND_INS: list[StandIn] = []

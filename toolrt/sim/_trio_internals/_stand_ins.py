"""What stands in, in every simulation, for a part of the world outside: one table.

Rules.  A stand-in is entered for the time that simulations run, in the order of the table, and told of each execution.
It decides at each call whether the code that runs is a step of the program; any other code meets what is real.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from toolrt.sim._trio_internals._seam import Seam

__all__ = ["StandIn", "stand_ins"]


class StandIn(Protocol):
    """Stands in for something while simulations run."""

    def begin(self) -> None:
        """Begin another execution."""

    def installed(self, mine: Callable[[], Seam | None]) -> AbstractContextManager[None]:
        """Stand there inside the block, in the run that `mine` gives where this thread is in it."""


#: The room above that has each of them, and its class: for sockets and names of hosts; for child processes; for files
#: and sockets that a program leaves real; for worker threads.
_TABLE = {
    "network._installed": "NetworkStandIn",
    "processes._installed": "ProcessStandIn",
    "real._installed": "RealStandIn",
    "threads._hooks": "ThreadStandIn",
}


@functools.cache
def stand_ins() -> tuple[StandIn, ...]:
    """Give all of them; the first simulation imports their rooms."""
    rooms = {name: importlib.import_module(f"toolrt.sim.programs.{room}") for room, name in _TABLE.items()}
    return tuple(getattr(room, name)() for name, room in rooms.items())

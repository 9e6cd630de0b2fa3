"""The virtual clock: stands still while a task can run, then moves to the next deadline.

Rules.  Time stands still while any task can run and moves only to the next deadline.  It starts at 0 in every
execution, by assignment: an offset that grew from one execution to the next would change the last digit of a
float, and with it the trace.

Theory.  Trio asks its clock how long to sleep exactly when nothing can run, so a clock that jumps when it is
asked needs no other help from Trio.  The jump itself is the scheduler's: see `toolrt.sim.engine._scheduler`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from trio.abc import Clock

from toolrt.sim.engine._polls import PolledTime, Polls

if TYPE_CHECKING:
    from trio.testing import MockClock


class VirtualClock(Clock):
    """A clock that stands still until the scheduler moves it.

    Args:
        rest: called when nothing can run; returns whether a simulation dealt with that.
    """

    def __init__(self, rest: Callable[[], bool]) -> None:
        #: The time in virtual seconds since the execution began.
        self.now = 0.0
        self._rest = rest
        #: The mock clock that the program runs with, which tells and moves this time; None: it has none.
        self.face: MockClock | None = None
        #: What the loop that is looked at compares the time with; None: none is.
        self.polls: Polls | None = None

    @property
    def stands(self) -> bool:
        """Say whether the program alone moves time: its mock clock neither runs nor jumps by itself."""
        face = self.face
        return face is not None and not face.rate and face.autojump_threshold == inf

    def start_clock(self) -> None:
        """Do nothing: there is nothing to start."""

    def current_time(self) -> float:
        """Give the time in virtual seconds since the execution began."""
        return self.now if self.polls is None else PolledTime(self.now, self.now, self.polls)

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Never sleep during an execution; between two, wait for what Trio itself is waiting for."""
        return 0.0 if self._rest() else deadline - self.now

"""Reports the progress of an exploration, and ends it early."""

from __future__ import annotations

import attrs

from toolrt._plain import counted
from toolrt.sim.exploring._estimate import duration, figure

__all__ = ["PROGRESS_EVERY", "Budget", "ExplorationProgress"]

#: Wall seconds between two calls of `progress`.
PROGRESS_EVERY = 0.5


@attrs.frozen
class Budget:
    """When an exploration is to end early."""

    #: After so many executions of this sitting; None is never.
    executions: int | None
    #: After so many wall seconds; None is never.
    seconds: float | None


@attrs.frozen
class ExplorationProgress:
    """How far an exploration has come; `str()` of it is for people."""

    #: How many executions there were, those of earlier sittings included.
    executions: int
    #: How many of them failed.
    failed: int
    #: How many there will probably be in all; None when that cannot be estimated.
    expected: float | None
    #: Wall seconds since this sitting began.
    seconds: float
    #: Executions a second in this sitting; 0 before there was one.
    rate: float
    #: How many of the executions there were in earlier sittings.
    earlier: int = 0

    @property
    def left(self) -> float | None:
        """Wall seconds until all are probably run; None when that cannot be estimated."""
        if self.expected is None or not self.rate:
            return None
        return max(0.0, self.expected - self.executions) / self.rate

    def __str__(self) -> str:
        text = counted(self.executions, "execution")
        if self.expected is not None:
            text += f" of about {figure(self.expected)}"
        text += f", {self.rate:,.0f}/s"
        if self.left is not None:
            text += f", {duration(self.left)} left"
        return text + (f", {self.failed:,} failed" if self.failed else "")

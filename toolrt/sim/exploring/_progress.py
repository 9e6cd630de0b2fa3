"""Reports the progress of an exploration, and ends it early."""

from __future__ import annotations

import attrs

from toolrt._plain import counted
from toolrt.errors import DefinitionRefused
from toolrt.sim.exploring._estimate import duration, figure

#: Wall seconds between two calls of `progress`.
PROGRESS_EVERY = 0.5

# Wall seconds that the last execution may take beyond the time: as long as that was, within these bounds.
_LEAST_GRACE, _MOST_GRACE = 2.0, 10.0


@attrs.frozen
class Budget:
    """When an exploration is to end early."""

    #: After so many executions of this sitting; None is never.
    executions: int | None
    #: After so many wall seconds; None is never.
    seconds: float | None

    def last_second(self) -> float | None:
        """Give the wall seconds after which what still runs is ended, wherever it stands; None is never."""
        return None if self.seconds is None else self.seconds + min(_MOST_GRACE, max(_LEAST_GRACE, self.seconds))


def checked_seconds(seconds: float | None) -> float | None:
    """Give `seconds` as it is.

    Raises:
        DefinitionRefused: it is no time.
    """
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0):
        raise DefinitionRefused("seconds", "wall seconds above 0, or None", seconds)
    return seconds


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

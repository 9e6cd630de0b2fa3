"""The end of an execution that does not end: tasks take turns.

Rules.  Up to half of the step limit a search goes on by its simplest choice, which may let one task step for ever.
From there on the task that has waited longest steps, where the search leaves it open.  So a right program in which a
task counts while it polls ends, and one that never ends is seen in a fair execution.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolrt.sim._paths import CANCEL, CLOCK
from toolrt.sim.policies._policy import RunInfo


class FairTail:
    """Picks the task that has waited longest.

    Args:
        info: the execution that begins.
    """

    __slots__ = ("_last", "_seen", "_steps", "begins")

    def __init__(self, info: RunInfo) -> None:
        #: The step from which it picks.
        self.begins = info.step_limit // 2
        self._steps = info.steps
        self._seen = 0
        self._last: dict[str, int] = {}

    def pick(self, enabled: tuple[str, ...], among: Iterable[int]) -> int:
        """Pick one of the indices `among` into `enabled`; the clock or a cancel only where nothing else can run."""
        for step in range(self._seen, len(self._steps)):
            self._last[self._steps[step][0].name] = step
        self._seen = len(self._steps)
        return min(among, key=lambda at: (_need_not_come(enabled[at]), self._last.get(enabled[at], -1), at))


def _need_not_come(name: str) -> bool:
    return name == CLOCK or name.startswith(CANCEL)

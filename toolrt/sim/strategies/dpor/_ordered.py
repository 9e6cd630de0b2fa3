"""Which steps of one execution are ordered by what was reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolrt.sim.policies._policy import RunInfo
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.strategies.dpor._steps import Events, Footprint, Footprints

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord

__all__ = ["RecordedWalk", "order_of"]

# The order of longer executions is not looked for: that takes the square of their steps.
_STEPS_MOST = 400


class RecordedWalk:
    """A random walk that keeps the record of its execution.

    Args:
        seed: of the walk.
    """

    reads_accesses = True

    def __init__(self, seed: int) -> None:
        self._walk = RandomWalk(seed)
        #: The execution's record; None before it has begun.
        self.record: ExecutionRecord | None = None

    def start(self, info: RunInfo) -> None:
        """Begin."""
        self._walk.start(info)

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick as the walk does."""
        return self._walk.choose(enabled, step)

    def attach(self, record: ExecutionRecord) -> None:
        """Keep the record."""
        self.record = record


def order_of(record: ExecutionRecord) -> Callable[[int, int], bool]:
    """Give what says whether two steps are ordered, the earlier one first; every two are where there are too many."""
    events = Events(record)
    if events.count > _STEPS_MOST or record.has_optional:
        return lambda one, other: True
    footprints = Footprints(declared=False)
    rests = {events.at(rest) for rest in record.rests}
    before: list[int] = []
    steps = record.steps
    prints: list[tuple[str, Footprint]] = []
    for index in range(events.count):
        begin, end = events.begin(index), events.end(index)
        name, causes = steps[begin][0].name, {events.at(cause) for cause in steps[begin][5]}
        footprint = footprints.of(record, begin, end)
        mine = (1 << index) - 1 if index in rests else 0
        rest = max((rest for rest in rests if rest <= index), default=0)
        mine |= (1 << rest) - 1
        for other in reversed(range(index)):
            if not mine >> other & 1 and (
                other in causes or prints[other][0] == name or footprint.conflicts_with(prints[other][1])
            ):
                mine |= before[other]
        prints.append((name, footprint))
        before.append(mine | 1 << index)

    def is_ordered(one: int, other: int) -> bool:
        first, second = events.at(one), events.at(other)
        return second >= len(before) or bool(before[second] >> first & 1)

    return is_ordered

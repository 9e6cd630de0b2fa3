"""Which tasks have yielded, and would only make the same round again, as far as their reads say.

Rules.  A task that has yielded can run again after any step that may have written.  For the reduction it waits on,
until a step has written what it read in its round, or time has moved: a round beside other steps is no other trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrt.sim.strategies.dpor._steps import Footprint, Footprints

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord


class Waiting:
    """Those tasks of one execution, while it runs.

    Args:
        footprints: makes the footprints of steps.
    """

    def __init__(self, footprints: Footprints) -> None:
        self._footprints = footprints
        # For each: the last step of its round, and what the round touched.
        self._yielded: dict[str, tuple[int, Footprint]] = {}
        self._taken_in = 0

    def now(self, record: ExecutionRecord) -> dict[str, tuple[int, Footprint]]:
        """Take in the steps that were made since the last time, and give the tasks that wait."""
        yielded, steps, footprints = self._yielded, record.steps, self._footprints
        for index in range(self._taken_in, len(steps)):
            yielded.pop(steps[index][0].name, None)
            if yielded and index not in record.quiet:
                touched = footprints.of(record, index, index + 1)
                for name in [name for name, (_, saw) in yielded.items() if saw.conflicts_with(touched)]:
                    del yielded[name]
            if (round_ := record.yields.get(index)) is not None:
                yielded[steps[index][0].name] = index, footprints.of_all(record, round_)
        self._taken_in = len(steps)
        if record.rests:
            rest = record.rests[-1]
            for name in [name for name, (last, _) in yielded.items() if last < rest]:
                del yielded[name]
        return yielded

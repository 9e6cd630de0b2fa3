"""Runs a schedule again, exactly.

Rules.  A schedule read from JSON or taken from an execution says which tasks were enabled at each step, and the
program must offer exactly those; one written by a person in the short form says only which task steps, and that
one must be enabled.  Anything else, and any step too many or too few, raises `ReplayDiverged`: a replay never
guesses.
"""

from __future__ import annotations

from toolrt.errors import DefinitionRefused, ReplayDiverged
from toolrt.sim._schedule import Schedule
from toolrt.sim.policies._policy import RunInfo


class Replay:
    """Make the choices of a schedule.

    Args:
        schedule: a `Schedule`, its JSON, or its short form.

    Raises:
        ScheduleRefused: a text is neither form.
    """

    def __init__(self, schedule: Schedule | str) -> None:
        #: The schedule that is replayed.
        self.schedule = Schedule.of(schedule)
        self.chance = self.schedule.chance

    def start(self, info: RunInfo) -> None:
        """Check that tasks step in the orders in which they did; the place in the schedule is the step's index.

        Raises:
            DefinitionRefused: they do not.
        """
        if self.schedule.order != info.order:
            recorded = f'"{self.schedule.order}", with which this schedule was recorded'
            raise DefinitionRefused("order", recorded, info.order)

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Make the choice that the schedule has at this step.

        Raises:
            ReplayDiverged: the schedule has something else here, or has ended.
        """
        steps = self.schedule.steps
        if step >= len(steps):
            raise ReplayDiverged(step, "its end", f"one of {', '.join(enabled)}")
        wanted = steps[step]
        if wanted.enabled:
            if wanted.enabled != enabled:
                raise ReplayDiverged(step, _offer(wanted.enabled, wanted.task), f"one of {', '.join(enabled)}")
        elif wanted.task not in enabled:
            raise ReplayDiverged(step, wanted.task, f"one of {', '.join(enabled)}")
        return enabled.index(wanted.task)

    def finish(self, steps: int) -> None:
        """Check that nothing of the schedule is left after so many steps.

        Raises:
            ReplayDiverged: the program ended earlier.
        """
        if steps < len(self.schedule.steps):
            raise ReplayDiverged(steps, self.schedule.steps[steps].task, "its end")

    def __repr__(self) -> str:
        return f"Replay({self.schedule.short!r})"


def _offer(enabled: tuple[str, ...], task: str) -> str:
    return f"{task} out of {', '.join(enabled)}"

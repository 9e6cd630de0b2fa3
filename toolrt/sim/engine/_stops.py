"""The errors of executions that cannot go on: a deadlock, and too many steps or passes."""

from __future__ import annotations

from math import inf

from toolrt.errors import Deadlock, StepLimit
from toolrt.sim._paths import key_of_path
from toolrt.sim._trio_internals import Seam
from toolrt.sim.engine._record import ExecutionRecord
from toolrt.sim.engine._roster import Roster

__all__ = ["deadlocked", "pass_limit_reached", "step_limit_reached"]


def deadlocked(roster: Roster, steps: int) -> Deadlock:
    """Give the error of an execution in which no task can run and no deadline is pending."""
    waits_on: list[tuple[str, tuple[str, ...]]] = []
    return Deadlock(steps, roster.waiting(waits_on), waits_on)


def step_limit_reached(
    record: ExecutionRecord,
    roster: Roster,
    seam: Seam,
    limit: int,
    clock_moved_at: int,
    idle_only: tuple[str, ...] | None,
) -> StepLimit:
    """Give the error of an execution with too many steps; it names the tasks that could run and were never picked."""
    steps = len(record.steps)
    half = steps // 2
    # An enabled task stays enabled until it steps, except that only one task is enabled beside a choice within a step.
    chosen = record.choices_within[-1] + 1 if record.choices_within else -1
    starved = {actor.name for actor in roster.ready if actor.since <= half and chosen < half}
    starved.difference_update(idle_only or ())
    starved.difference_update(step[0].name for step in record.steps[half:])
    time_stood_still = seam.next_deadline() < inf and steps - clock_moved_at > half
    return StepLimit(limit, roster.waiting(), time_stood_still, starved=sorted(starved, key=key_of_path))


def pass_limit_reached(steps: int, roster: Roster, seam: Seam, limit: int, clock_moved_at: int) -> StepLimit:
    """Give the error of an execution in which foreign tasks ran for too many passes without a step of the program."""
    others = sorted(task.name for task in seam.leftovers.tasks() if task not in roster.actors)
    time_stood_still = seam.next_deadline() < inf and clock_moved_at != steps
    return StepLimit(limit, roster.waiting(), time_stood_still, steps, others)

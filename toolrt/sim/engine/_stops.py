"""The errors of executions that cannot go on: a deadlock, and too many steps or passes."""

from __future__ import annotations

from math import inf

from toolrt.errors import Deadlock, StepLimit, StuckStep
from toolrt.sim._paths import key_of_path
from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim.engine._record import ExecutionRecord
from toolrt.sim.engine._roster import Actor, Roster
from toolrt.sim.engine._waiting import waited_for


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
    """Give the error of an execution with too many steps; it names the tasks that could run and waited for long."""
    steps = len(record.steps)
    half = steps // 2
    # An enabled task stays enabled until it steps, except that only one task is enabled beside a choice within a step.
    starved: set[str] = set()
    if not record.choices_within or record.choices_within[-1] < half - 1:
        starved = _kept_waiting(record, roster, half, min(max(half // 4, 4 * len(roster.ready)), half - 1))
    starved.difference_update(idle_only or ())
    time_stood_still = seam.next_deadline() < inf and steps - clock_moved_at > half
    names = sorted(starved, key=key_of_path)
    return StepLimit(limit, roster.waiting(), time_stood_still, starved=names, started=_started_most(seam))


def overdue(roster: Roster, seam: Seam, seconds: float) -> StuckStep:
    """Give the error of an execution that was beyond its limit in wall time between two of its steps."""
    place = _started_most(seam)
    if not place and roster.actors:
        actor = roster.last or next(iter(roster.actors.values()))
        place = waited_for(actor.task, lambda task: None)[1].removeprefix(" at ")
    return StuckStep(seconds, place or "a step of Trio's")


def _started_most(seam: Seam) -> str:
    """Give the line that has started the most of many tasks; "": there were not many."""
    return seam.started.most_common(1)[0][0] if seam.started else ""


def _kept_waiting(record: ExecutionRecord, roster: Roster, begin: int, most: int) -> set[str]:
    """Name the tasks that could run for more than `most` steps in a row, from step `begin` on, and did not."""
    found: set[str] = set()
    last: dict[Actor, int] = {}
    steps = record.steps
    for index, (actor, _, _, _, time, causes) in enumerate(steps):
        since = max(causes) if causes else last.get(actor, index)
        # Where time has moved, it may have slept.
        if index - max(since, begin) > most and steps[since][4] == time:
            found.add(actor.name)
        last[actor] = index
    for actor in roster.ready:
        if len(steps) - max(begin, actor.since, last.get(actor, 0)) > most:
            found.add(actor.name)
    return found


def pass_limit_reached(steps: int, roster: Roster, seam: Seam, limit: int, clock_moved_at: int) -> StepLimit:
    """Give the error of an execution in which foreign tasks ran for too many passes without a step of the program."""
    others = sorted(task.name for task in seam.leftovers.tasks() if task not in roster.actors)
    time_stood_still = seam.next_deadline() < inf and clock_moved_at != steps
    return StepLimit(limit, roster.waiting(), time_stood_still, steps, others)

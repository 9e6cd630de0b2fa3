"""Follows a schedule in a program that has changed, as far as it goes.

Rules.  As long as the task that the schedule names can run, it runs.  The first step at which it cannot, or at which
the schedule or the program has ended, is where they part; `strayed` has it.  From there on the schedule's steps that
are left are an order of preference: of the tasks that can run, the one whose next step comes first in it; a task that
it does not name again runs only when no other can, by the simplest choice.  So an order that was recorded between two
tasks holds as long as both go on as they did.

Limits.  A task is known by its path.  A program that starts its tasks in another order gives their paths to others, and
what is then followed is the schedule's words, not its sense.  To replay without any guess there is `Replay`.
"""

from __future__ import annotations

import attrs

from toolrt.sim._schedule import Schedule
from toolrt.sim.policies._policy import RunInfo


@attrs.frozen
class Strayed:
    """Where a program went another way than the schedule it followed."""

    #: The step, from 0: so many before it went as they were recorded.
    step: int
    #: The task that the schedule has there; None when it has ended.
    recorded: str | None
    #: The tasks that could run there; none when the program has ended.
    enabled: tuple[str, ...]

    def __str__(self) -> str:
        recorded = "has ended" if self.recorded is None else f"has {self.recorded}"
        offered = f"could run {', '.join(self.enabled)}" if self.enabled else "has ended"
        return f"they part at step {self.step}: the schedule {recorded}, the program {offered}"


class FollowSchedule:
    """Make the choices of a schedule as far as they apply to a program that has changed.

    Args:
        schedule: a `Schedule`, its JSON, or its short form.

    Raises:
        ScheduleRefused: a text is neither form.

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def program(rounds):
        ...     async with trio.open_nursery() as nursery:
        ...         for _ in range(2):
        ...             nursery.start_soon(task, rounds)
        >>> async def task(rounds):
        ...     for _ in range(rounds):
        ...         await trio.lowlevel.checkpoint()
        >>> recorded = sim.run(lambda: program(1), sim.Choices([0, 1, 1])).schedule
        >>> follow = sim.Follow(recorded)
        >>> longer = sim.run(lambda: program(2), follow).schedule
        >>> print(recorded, "->", longer)
        main main.1 main.0*2 main.1 main -> main main.1 main.0*2 main.1*2 main.0 main
        >>> print(follow.strayed)
        they part at step 5: the schedule has main, the program could run main.1, main.0
    """

    #: What steps touch decides nothing here.
    reads_accesses = False

    def __init__(self, schedule: Schedule | str) -> None:
        #: The schedule that is followed.
        self.schedule = Schedule.of(schedule)
        self.chance = self.schedule.chance
        #: Where the last execution went another way, or None: it went as recorded from beginning to end.
        self.strayed: Strayed | None = None
        self._left: list[str] = []

    @property
    def left(self) -> tuple[str, ...]:
        """The tasks of the recorded steps that did not come in the last execution, in order."""
        return tuple(self._left)

    def start(self, info: RunInfo) -> None:
        """Begin anew."""
        self.strayed = None
        self._left = list(self.schedule.tasks)

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Make the choice that the schedule has, or the enabled task that comes first in what is left of it."""
        recorded = self._left[0] if self._left else None
        if self.strayed is None and recorded not in enabled:
            self.strayed = Strayed(step, recorded, enabled)
        place = next((place for place, task in enumerate(self._left) if task in enabled), None)
        return 0 if place is None else enabled.index(self._left.pop(place))

    def finish(self, steps: int) -> None:
        """Note when the program ended, after so many steps, before the schedule."""
        if self.strayed is None and self._left:
            self.strayed = Strayed(steps, self._left[0], ())

    def __repr__(self) -> str:
        return f"Follow({self.schedule.short!r})"

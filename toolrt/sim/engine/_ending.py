"""How one execution ends.

Rules.
- It ends when its root task ends, whatever its children did: an exception that leaves a child is the program's own
  affair, which its parent may catch, and what follows is scheduled like anything else.
- A deadlock, the step limit, a step that would leave the simulation, a policy that raises and Ctrl-C end it too.  From
  then on nothing is recorded, no policy is asked and the program is cancelled; it unwinds by choice 0 under a limit of
  its own, and what has not ended by then is closed by force.  Value, error, schedule and trace are those of the moment
  it ended.
- Nothing raises through Trio's loop.  What a policy raises is kept in `fault`.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import trio
from trio.lowlevel import Task

from toolrt.errors import Deadlock, DefinitionRefused, InternalError, StepLimit, UnsupportedTrio
from toolrt.sim._paths import key_of_path
from toolrt.sim._trio_internals import DUE, GOES_ON, Seam, Things
from toolrt.sim.engine._clock import VirtualClock
from toolrt.sim.engine._record import Record
from toolrt.sim.engine._roster import RawStep
from toolrt.sim.policies._policy import Policy

__all__ = ["Ending"]

# How many steps an ended execution may take to unwind: so many, and so many for each living task.
_UNWINDING_STEPS = 1_000
_UNWINDING_STEPS_PER_TASK = 50


class Ending(Record):
    """An execution's end: its root task's, or that of whoever gives it up; and what is done until nothing is left."""

    __slots__ = (
        "_broken",
        "_clock_moved_at",
        "_ended",
        "_harness",
        "_harness_woken",
        "_limit",
        "_program",
        "_unwinding_left",
        "error",
        "left_nothing",
        "spoiled",
        "value",
    )

    def __init__(
        self,
        seam: Seam,
        clock: VirtualClock,
        program: Callable[[], Awaitable[Any]],
        policy: Policy,
        limit: int,
        steps: list[RawStep],
        nursery: trio.Nursery,
        harness: Task,
        things: Things,
    ) -> None:
        super().__init__(seam, nursery, clock, policy, steps, things)
        self._program = program
        self._limit = limit
        self._harness = harness
        self._harness_woken = False
        self.value: Any = None
        self.error: BaseException | None = None
        # The root task has ended, or nobody waits for it any more.
        self._ended = False
        #: True when the program has ended by itself and nothing is left of it: the harness was not woken.
        self.left_nothing = False
        #: True when tasks were closed by force: the Trio run may be in any state.
        self.spoiled = False
        # The step before which time moved last.
        self._clock_moved_at = 0
        self._unwinding_left = 0
        # Whether nothing of this works any more.
        self._broken = False

    # ------------------------------------------------------------------ the program's root task

    @trio.lowlevel.enable_ki_protection
    async def root(self) -> None:
        """Run the program; the root task of the execution."""
        value = None
        if self._running is None:
            # Trio stepped it without asking: its loop is not the one this was written for.
            self.fault = UnsupportedTrio(trio.__version__, ["its loop does not hand its tasks to _r.shuffle"])
        try:
            awaitable = _called(self._program)
            if not hasattr(awaitable, "__await__"):
                self.fault = DefinitionRefused("a program", "an async function without arguments", self._program)
            else:
                value = await _interruptible(awaitable)
        except BaseException as error:  # noqa: ASYNC103
            # Nothing may leave this task: in the harness's nursery it would end the executions that follow.
            self._end(None, error)
        else:
            self._end(value, None)

    def _end(self, value: Any, error: BaseException | None) -> None:
        self._freeze(value, error)
        self._ended = True
        if self._running is None:
            # Nobody will look whether it has ended.
            self._wake_harness()

    def _freeze(self, value: Any, error: BaseException | None) -> None:
        """Let this be what came of the program, unless that is known already."""
        if not self.over:
            self.over = True
            self.value = value
            self.error = error

    def _wake_harness(self) -> None:
        self._ended = True
        if not self._harness_woken:
            self._harness_woken = True
            self._seam.wake(self._harness)

    # ------------------------------------------------------------------ why it is given up

    def _deadlocked(self) -> Deadlock:
        waits_on: list[tuple[str, tuple[str, ...]]] = []
        return Deadlock(len(self.steps), self._waiting(waits_on), waits_on)

    def _step_limit_reached(self, steps: int) -> StepLimit:
        pending = self._seam.next_deadline() < inf
        half = steps // 2
        recent = self.steps[half:]
        # Who can run can until it steps; beside a choice within a step nobody could.
        chosen = self.choices_within[-1] + 1 if self.choices_within else -1
        starved = {actor.name for actor in self._ready if actor.since <= half and chosen < half}
        starved.difference_update(self.spare or ())
        starved.difference_update(actor.name for actor, _, _, _, _, _ in recent)
        return StepLimit(
            self._limit,
            self._waiting(),
            pending and steps - self._clock_moved_at > half,
            starved=sorted(starved, key=key_of_path),
        )

    def _pass_limit_reached(self, steps: int) -> StepLimit:
        others = sorted(task.name for task in self._seam.leftovers.tasks() if task not in self._actors)
        stood_still = self._seam.next_deadline() < inf and self._clock_moved_at != steps
        return StepLimit(self._limit, self._waiting(), stood_still, steps, others)

    # ------------------------------------------------------------------ giving up

    def abandon(self, fault: BaseException) -> None:
        """End the execution from outside; the caller gets `fault`."""
        self.fault = fault
        if not self.given_up:
            self._give_up(None)

    def refuse(self, refusal: BaseException) -> None:
        """End the execution in the running step, which asked for what is not simulated; that is its error."""
        if not self.given_up:
            self._give_up(refusal)

    def _give_up(self, error: BaseException | None) -> None:
        self._freeze(None, error)
        self.given_up = True
        self._unwinding_left = _UNWINDING_STEPS + _UNWINDING_STEPS_PER_TASK * len(self._actors)
        self._nursery.cancel_scope.cancel()

    def _unwind(self, batch: list[Task], inside: bool) -> bool:
        """Take one step of an execution that is over, by choice 0, and unrecorded; say whether Trio is to take it."""
        if not self._may_unwind():
            return False
        actor = self._pop_first()
        self._running = self._spawner = actor
        self._origin = -1
        if not inside:
            batch.append(actor.task)
            return True
        self._last_ready = self._seam.step(actor.task) % DUE == GOES_ON
        self._running = None
        if self._ended:
            self._wake_harness()
        return False

    def _may_unwind(self) -> bool:
        """Count a step, or a pass of others, while an execution unwinds; after too many, close it by force."""
        self._unwinding_left -= 1
        if self._unwinding_left < 0:
            self._close_by_force()
            return False
        return True

    def _close_by_force(self) -> None:
        self.spoiled = True
        self._forget_who_can_run()
        self._running = None
        self._seam.leftovers.kill_tasks()
        # Trio's own tasks live on.
        self._seam.runq.extend(task for task in self._strangers if task in self._seam.tasks)
        self._strangers.clear()
        self._wake_harness()

    def _break(self, error: BaseException) -> None:
        """Trio's own machinery failed under this program (an abort function raised, say)."""
        self._broken = True
        self._freeze(None, error)
        self.given_up = True
        try:
            self._close_by_force()
        except BaseException as worse:  # noqa: ASYNC103
            self.fault = InternalError(f"could not end an execution that broke: {worse!r}")
            self.fault.__cause__ = worse
            self._wake_harness()


@trio.lowlevel.disable_ki_protection
def _called(program: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
    return program()


@trio.lowlevel.disable_ki_protection
async def _interruptible(awaitable: Awaitable[Any]) -> Any:
    """Let Ctrl-C into the program, but not into what is around it."""
    return await awaitable

"""Decides which task steps next: one execution of one program.

Rules.
- One task steps at a time, to its next checkpoint.  Before each step the *enabled* list is made: the task that
  stepped last, if it still can, then the others by path.  The policy picks an index; 0 is the simplest choice.
- Tasks that are not the program's (see `_turns`) are no choice, and run straight away, in Trio's loop.
- When nothing can run, the tasks in `wait_all_tasks_blocked` with the least cushion wake after that many seconds,
  unless a deadline comes first; else the clock jumps to the next deadline; when there is none, that is a deadlock.
- A task that is `spare` (one that cancels the program, at any moment or never) does not keep time from moving.
  When it alone can run, the choice is between that and its step, and is a step of its own.
- How an execution ends is said in `_ending`.

Limits.  The interleavings are those of whole steps: a task that does not checkpoint is not interrupted.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import trio
from trio.lowlevel import Task

from toolrt.probe import Resource
from toolrt.sim._paths import CLOCK
from toolrt.sim._trio_internals import DUE, ENDED, GOES_ON, Seam, Things, begun_under, can_step_inside, nursery_of
from toolrt.sim.engine._clock import VirtualClock
from toolrt.sim.engine._ending import Ending
from toolrt.sim.engine._offers import Offers
from toolrt.sim.engine._record import checked_choice
from toolrt.sim.engine._roster import Actor, RawStep, in_order
from toolrt.sim.engine._turns import Turns
from toolrt.sim.policies._policy import Policy, RunInfo

__all__ = ["Scheduler"]

# Trio's loop is visited at least this often, in steps: signals and its entry queue live there.
_STEPS_BETWEEN_VISITS = 1_000


class Scheduler(Ending):
    """One execution.  It is the probe's sink while the execution lasts.

    Args:
        seam: the Trio run it happens in.
        clock: that run's clock, already at 0.
        program: what is executed.
        policy: picks the choices.
        info: what the policy is told at the start.
        steps: an empty list to keep the steps in.
        nursery: the harness's, in which the root task is spawned; cancelled when the execution is given up.
        harness: the task to wake when the execution has ended.
        things: what Trio's primitives report to.
        pass_limit: how many passes in a row others may have; the step limit, or 10,000, when None.
        named: whether anybody may ask who could have stepped.
    """

    __slots__ = ("_handed", "_pass_limit", "_pause_at", "_pick_any", "_statuses", "_turns_taken", "is_attached")

    def __init__(
        self,
        seam: Seam,
        clock: VirtualClock,
        program: Callable[[], Awaitable[Any]],
        policy: Policy,
        info: RunInfo,
        steps: list[RawStep],
        nursery: trio.Nursery,
        harness: Task,
        things: Things,
        pass_limit: int | None = None,
        named: bool = True,
    ) -> None:
        super().__init__(seam, clock, program, policy, info.step_limit, steps, nursery, harness, things)
        # Who takes turns with others than the program's tasks; made when there are any, which is seldom.
        self._turns_taken: Turns | None = None
        self._pass_limit = pass_limit
        self._pause_at = min(self._limit, _STEPS_BETWEEN_VISITS)
        # The task that Trio is stepping for it.
        self._handed: Actor | None = None

        things.actors = self._actors
        things.actor_of = self._actors.__getitem__
        attach = getattr(policy, "attach", None)
        # Who picks any of so many, whoever they are, and is not to keep who they were.
        self._pick_any: Callable[[int], int] | None = None if named else getattr(policy, "pick_any", None)
        #: Whether the policy is that of an explorer that swaps steps: it asks under what they began.
        self.is_attached = attach is not None
        self._statuses: list[Any] | None = None
        if attach is not None:
            self._statuses = self.begun_under
            attach(self)
        seam.owns = self._actors.__contains__
        seam.key_of = self._key_of
        seam.refused = self.refuse
        seam.count_runnable = self._ready.__len__

    # ------------------------------------------------------------------ Trio asks

    def tick(self, batch: list[Task]) -> None:
        """Take the runnable tasks of one pass of Trio's loop; leave in `batch` those that Trio is to step."""
        self._seam.runq.extend(batch)
        batch.clear()
        if self._running is not None and self._handed is None:
            # Trio has stepped a task of an execution that is over.
            self._running = None
            if self._ended:
                self._wake_harness()
        try:
            if not self._broken:
                self._schedule(batch)
        except BaseException as error:  # noqa: ASYNC103
            self._break(error)
        if self._broken:
            # Let Trio step whatever there is: the program is gone, the harness is not.
            batch[:] = self._seam.runq
            self._seam.runq.clear()

    def _schedule(self, batch: list[Task]) -> None:
        """Step tasks until Trio is needed; leave in `batch` those that it is to step before it asks again.

        Trio is needed for tasks that are not the program's, for callbacks, for a visit now and then, and for
        every single step when its loop is not the one that `Seam.step` was written for.
        """
        # The hottest loop there is: what is read at every step is in a local name, and little is a call.
        seam, clock, actors, runq = self._seam, self._clock, self._actors, self._seam.runq
        callbacks, callbacks_once = seam.callbacks, seam.callbacks_once
        inside, step_inside = can_step_inside(), seam.step
        steps, touched, strangers = self.steps, self._touched, self._strangers
        statuses, implied = self._statuses, self.things.implied
        ready, keys, names, pick = self._ready, self._keys, self._names, self._policy.choose
        take, pick_any, watched = self._take, self._pick_any, self.watched
        handed, self._handed = self._handed, None
        if self._turns_taken is not None and self._turns_taken.hand_over_the_harness(batch):
            return
        # A deadline may have come while others ran.
        look_for_due = True
        while True:
            if handed is None:
                while runq:
                    take(runq.popleft())
                if (strangers or callbacks or callbacks_once) and not self._has_its_turn():
                    self._hand_over(batch)
                    return
                if look_for_due:
                    if seam.has_due(clock.now):
                        seam.expire(clock.now)
                        continue
                    look_for_due = False
                last_ready = self._last_ready
                offers = self.offers
                if not last_ready and not ready and (offers is None or not self._can_be_cancelled(offers)):
                    if self._ended:
                        return
                    self._rest()
                    continue
                if self.given_up:
                    look_for_due = True
                    if self._unwind(batch, inside):
                        return
                    continue
                index = len(steps)
                if index >= self._pause_at:
                    if index >= self._limit:
                        self._give_up(self._step_limit_reached(index))
                        continue
                    self._pause_at = min(self._limit, index + _STEPS_BETWEEN_VISITS)
                    return
                last: Any = self._last
                actor: Actor
                enabled: tuple[str, ...] = ()
                if pick_any is not None and offers is None and self.spare is None:
                    # Nobody will ask who else could have stepped: that list would cost a step what there are tasks.
                    count = len(names) + last_ready
                    choice = pick_any(count) if count > 1 else 0
                else:
                    if not last_ready:
                        enabled = tuple(names)
                        if self.spare is not None and enabled == self.spare and not self._ended:
                            enabled = (CLOCK, *enabled)
                    elif names:
                        enabled = (last.name, *names)
                    else:
                        enabled = last.alone
                    if offers is not None and not self._ended and enabled[:1] != (CLOCK,):
                        enabled = offers.beside(enabled)
                    try:
                        choice = pick(enabled, index)
                        if type(choice) is not int or not 0 <= choice < len(enabled):
                            choice = checked_choice(choice, enabled, self._policy)
                    except BaseException as error:  # noqa: ASYNC103
                        self.fault = error
                        self._give_up(None)
                        continue  # noqa: ASYNC104
                    if enabled[0] is CLOCK and choice == 0:
                        self._note_other(CLOCK, enabled, 0)
                        self._rest()
                        continue
                    if offers is not None and offers.has(enabled[choice]):
                        self._note_other(enabled[choice], enabled, choice, offers.announce(enabled[choice]))
                        # What it wakes has it for a cause.
                        self._origin = index
                        if offers.take(enabled[choice]):
                            self._move_clock()
                        continue
                if enabled and enabled[0] is CLOCK:
                    actor = self._pop_first()
                elif not last_ready:
                    actor = ready.pop(choice)
                    del keys[choice], names[choice]
                    self._last = actor
                elif choice == 0:
                    self._last_ready = False
                    actor = last
                else:
                    actor = ready.pop(choice - 1)
                    del keys[choice - 1], names[choice - 1]
                    place = bisect_left(keys, last.key)
                    keys.insert(place, last.key)
                    ready.insert(place, last)
                    names.insert(place, last.name)
                    self._last_ready = False
                    self._last = actor
                causes: tuple[int, ...] = ()
                if actor.cause >= 0:
                    if steps[actor.cause][0] is not actor:
                        causes = (actor.cause,)
                    actor.cause = -1
                if actor.exits:
                    causes = self._with_joined(actor, causes)

                task = actor.task
                self._running = self._spawner = actor
                if statuses is not None:
                    statuses.append(begun_under(task))
                # What the step spawns and wakes has it for a cause.
                self._origin = index
                self._making = (enabled, choice, causes)
                if not inside:
                    self._handed = actor
                    batch.append(task)
                    return
            else:
                actor, task, index, offers = handed, handed.task, len(steps), self.offers
                enabled, choice, causes = self._making
            how = 0
            try:
                if handed is None:
                    how = step_inside(task)
                else:
                    handed = None
                    how = seam.how_it_went(task)
            finally:
                # A step that breaks Trio's loop is a step all the same: a replay has to get there.
                self._running = None
                if self._divided:
                    self._divided = False
                    enabled, choice, causes = self._making
                    index = len(steps)
                noted: tuple[tuple[Resource, bool], ...] = ()
                if watched:
                    self.look_at_watched()
                if touched:
                    noted = tuple(touched) if len(touched) == 1 else in_order(touched)
                    touched.clear()
                if implied:
                    self.implied[index] = tuple(implied)
                    implied.clear()
                steps.append((actor, enabled, choice, noted, clock.now, causes))
            if how >= DUE:
                look_for_due = True
                how -= DUE
            if how == GOES_ON:
                self._last_ready = True
                continue
            if offers is not None and (more := offers.parks()):
                self.implied[index] = (*self.implied.get(index, ()), *more)
            if how == ENDED:
                nursery = nursery_of(task)
                owner = actors.get(nursery.parent_task)
                if owner is not None:
                    owner.exits.setdefault(nursery, []).append(index)
                elif self._ended and not self._harness_woken:
                    if strangers or self.given_up or not seam.leftovers.are_none(self._nursery):
                        self._wake_harness()
                    else:
                        self.left_nothing = True
                        return

    # ------------------------------------------------------------------ one step

    def _with_joined(self, actor: Actor, causes: tuple[int, ...]) -> tuple[int, ...]:
        """Add the last steps of the children whose nursery `actor` has just left."""
        closed = [nursery for nursery in actor.exits if self._seam.is_closed(nursery)]
        joined = {step for nursery in closed for step in actor.exits.pop(nursery)}
        return tuple(sorted(joined.union(causes)))

    def _can_be_cancelled(self, offers: Offers) -> bool:
        """Say whether a scope may be cancelled although nothing can run."""
        return bool(offers.open) and not self.given_up and not self._ended

    # ------------------------------------------------------------------ while others run

    def _has_its_turn(self) -> bool:
        """Say whether the program steps next although others can run."""
        return (self._last_ready or bool(self._ready)) and not self._ended and self._turns().give_way()

    def _turns(self) -> Turns:
        turns = self._turns_taken
        if turns is None:
            turns = self._turns_taken = Turns(self._strangers, self._seam, self._limit, self._pass_limit)
        return turns

    def _hand_over(self, batch: list[Task]) -> None:
        """Have Trio step the tasks that are not the program's, and call what is to be called."""
        self._count_pass_of_others()
        if self.beside is None:
            self.beside = self._seam.foreign_among(self._strangers)
        # Whatever Trio does before it asks again is nobody's step.
        self._origin = -1
        self._spawner = None
        if self._ended and len(self._strangers) > 1:
            self._turns().hand_over_all_but_the_harness(batch)
        else:
            self._turns().hand_over(batch)

    def _count_pass_of_others(self) -> None:
        """Count a pass in which no task of the program steps; too many end the execution."""
        if self._ended:
            return
        if self.given_up:
            self._may_unwind()
        elif self._turns().count_pass(steps := len(self.steps)):
            self._give_up(self._pass_limit_reached(steps))

    # ------------------------------------------------------------------ when nothing can run

    def _rest(self) -> None:
        """Nothing can run: wake those who wait for that, else move the clock, else it is a deadlock."""
        seam = self._seam
        self._origin = -1
        # Who wakes now has not just been running: all are in path order.
        self._last = None
        cushion = seam.least_cushion()
        if cushion is not None and cushion < seam.next_deadline() - self._clock.now:
            # Like Trio, which waits so long to see whether anything happens: no deadline does before.
            self.rests.append(len(self.steps))
            if cushion:
                self._clock.now += cushion
                self._clock_moved_at = len(self.steps)
            seam.wake_idle_waiters(cushion)
            return
        if seam.next_deadline() < inf:
            self.rests.append(len(self.steps))
            self._move_clock()
        elif self.given_up:
            self._close_by_force()
        else:
            self._give_up(self._deadlocked())

    def _move_clock(self) -> None:
        """Let time pass up to the next deadline."""
        deadline = self._seam.next_deadline()
        self._clock.now = deadline
        self._clock_moved_at = len(self.steps)
        self._seam.expire(deadline)

    # ------------------------------------------------------------------ Trio failed

    def fail(self, error: BaseException) -> None:
        """Take it that Trio's loop ended with `error` while it had this execution's tasks in hand."""
        self._freeze(None, error)
        actor, self._handed = self._handed, None
        if actor is not None:
            enabled, choice, causes = self._making
            if self.things.implied:
                self.implied[len(self.steps)] = tuple(self.things.implied)
            self.steps.append((actor, enabled, choice, in_order(self._touched), self._clock.now, causes))

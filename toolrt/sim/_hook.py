"""Decides which task steps next: one execution of one program.

Rules.
- One task steps at a time, to its next checkpoint.  Before each step the *enabled* list is made: the task that
  stepped last, if it still can, then the others by path.  The policy picks an index; 0 is the simplest choice.
- Tasks that are not the program's (the harness, system tasks, Trio's own) are no choice.  They run straight away,
  in Trio's loop; so do callbacks given to `run_sync_soon`.  Those that never stop take turns with the program; when
  they go on and no task of the program steps, their passes count as steps do, and the step limit ends it.
- When nothing can run, the tasks in `wait_all_tasks_blocked` wake; when there are none, the clock jumps to the
  next deadline; when there is none, that is a deadlock.
- A task that is `spare` (one that cancels the program, at any moment or never) does not keep time from moving.
  When it alone can run, the choice is between that and its step, and is a step of its own.
- An execution ends when its root task ends, whatever its children did: an exception that leaves a child is the
  program's own affair, which its parent may catch, and what follows is scheduled like anything else.
- A deadlock, the step limit, a policy that raises and Ctrl-C end it too.  From then on nothing is recorded, no
  policy is asked and the program is cancelled; it unwinds by choice 0 under a limit of its own, and what has not
  ended by then is closed by force.  Value, error, schedule and trace are those of the moment it ended.
- Nothing raises through Trio's loop.  What a policy raises is kept in `fault`.

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

from toolrt.errors import Deadlock, DefinitionRefused, InternalError, StepLimit, UnsupportedTrio
from toolrt.probe import Resource
from toolrt.sim._clock import VirtualClock
from toolrt.sim._offers import Offers
from toolrt.sim._paths import CLOCK, key_of_path
from toolrt.sim._record import Record, checked_choice
from toolrt.sim._roster import Actor, RawStep, in_order
from toolrt.sim._trio_internals import DUE, ENDED, GOES_ON, Seam, can_step_inside
from toolrt.sim._trio_internals_things import Things, begun_under
from toolrt.sim._waiting import waits_for
from toolrt.sim.policies._policy import Policy, RunInfo

__all__ = ["Actor", "RawStep", "Scheduler"]

# Trio's loop is visited at least this often, in steps: signals and its entry queue live there.
_STEPS_BETWEEN_VISITS = 1_000

# After so many passes in which others than the program's tasks ran, those and the program take turns.
_PASSES_BEFORE_TURNS = 1_000

# So many passes without a step of the program are never too many.
_LEAST_PASS_LIMIT = 10_000

# How many steps an ended execution may take to unwind: so many, and so many for each living task.
_UNWINDING_STEPS = 1_000
_UNWINDING_STEPS_PER_TASK = 50


class Scheduler(Record):
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

    __slots__ = (
        "_broken",
        "_clock_moved_at",
        "_ended",
        "_handed",
        "_harness",
        "_harness_is_next",
        "_harness_woken",
        "_limit",
        "_pass_limit",
        "_passes_of_others",
        "_passes_since",
        "_patience",
        "_pause_at",
        "_pick_any",
        "_program",
        "_statuses",
        "_unwinding_left",
        "canceller",
        "error",
        "left_nothing",
        "others_ran",
        "rests",
        "spare",
        "spoiled",
        "value",
    )

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
        super().__init__(seam, nursery, clock, policy, steps, things)
        self._program = program
        self._limit = info.step_limit
        self._pass_limit = pass_limit or max(info.step_limit, _LEAST_PASS_LIMIT)
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
        #: The tasks that are no reason to stand still when nothing else can run: the list of their names, or None.
        #: When these alone can run, that time passes (or, if none can, that nobody ever steps) is the first choice.
        self.spare: tuple[str, ...] | None = None
        #: The name of the task that may cancel the program at any moment, or None.
        self.canceller: str | None = None
        #: For an explorer that swaps steps: the numbers of the steps before which nothing could run, and whether
        #: others ran too.
        self.rests: list[int] = []
        self.others_ran = False
        self._clock_moved_at = 0
        self._unwinding_left = 0
        # How many passes others have had since the program had made so many steps.
        self._passes_of_others = 0
        self._passes_since = 0
        self._patience = _PASSES_BEFORE_TURNS
        self._pause_at = min(self._limit, _STEPS_BETWEEN_VISITS)
        # The task that Trio is stepping for it; whether Trio is to step the harness alone next; whether nothing of
        # this works any more.
        self._handed: Actor | None = None
        self._harness_is_next = False
        self._broken = False

        things.actors = self._actors
        things.actor_of = self._actors.__getitem__
        attach = getattr(policy, "attach", None)
        # Who picks any of so many, whoever they are, and is not to keep who they were.
        self._pick_any: Callable[[int], int] | None = None if named else getattr(policy, "pick_any", None)
        # Who swaps steps asks under what they began.
        self._statuses: list[Any] | None = None
        if attach is not None:
            self._statuses = self.begun_under
            attach(self)
        seam.owns = self._actors.__contains__
        seam.key_of = self._key_of

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
        if not self.over:
            self.over = True
            self.value = value
            self.error = error
        self._ended = True
        if self._running is None:
            # Nobody will look whether it has ended.
            self._wake_harness()

    def _wake_harness(self) -> None:
        self._ended = True
        if not self._harness_woken:
            self._harness_woken = True
            self._seam.wake(self._harness)

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
        take, pick_any = self._take, self._pick_any
        handed, self._handed = self._handed, None
        if self._harness_is_next:
            self._harness_is_next = False
            batch.extend(strangers)
            strangers.clear()
            return
        # A deadline may have come while others ran.
        look_for_due = True
        while True:
            if handed is None:
                while runq:
                    take(runq.popleft())
                if (strangers or callbacks or callbacks_once) and not self._has_its_turn():
                    self._hand_over_strangers(batch)
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
                nursery: Any = task.parent_nursery
                owner = actors.get(nursery.parent_task)
                if owner is not None:
                    owner.exits.setdefault(nursery, []).append(index)
                elif self._ended and not self._harness_woken:
                    if strangers or self.given_up or not seam.is_clean(self._nursery):
                        self._wake_harness()
                    else:
                        self.left_nothing = True
                        return

    def _unwind(self, batch: list[Task], inside: bool) -> bool:
        """Take one step of an execution that is over, by choice 0, and unrecorded; say whether Trio is to take it."""
        self._unwinding_left -= 1
        if self._unwinding_left < 0:
            self._close_by_force()
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
        if self._passes_of_others < self._patience or not (self._last_ready or self._ready) or self._ended:
            return False
        self._patience = 1
        self._passes_of_others = 0
        return True

    def _count_pass_of_others(self) -> None:
        """Count a pass in which no task of the program steps; too many end the execution."""
        if self._ended:
            return
        if self.given_up:
            self._unwinding_left -= 1
            if self._unwinding_left < 0:
                self._close_by_force()
            return
        steps = len(self.steps)
        if steps != self._passes_since:
            self._passes_since = steps
            self._passes_of_others = 0
        self._passes_of_others += 1
        # The schedule of an execution that ended this way is replayed with its length for a limit.
        if self._passes_of_others > (self._pass_limit if steps < self._limit else _LEAST_PASS_LIMIT):
            others = sorted(task.name for task in self._seam.strangers() if task not in self._actors)
            stood_still = self._seam.next_deadline() < inf and self._clock_moved_at != steps
            self._give_up(StepLimit(self._limit, self._waiting(), stood_still, steps, others))

    def _hand_over_strangers(self, batch: list[Task]) -> None:
        """Have Trio step the tasks that are not the program's, and call what is to be called."""
        self._count_pass_of_others()
        self.others_ran = self.others_ran or (bool(self.steps) and not self._ended)
        # Whatever Trio does before it asks again is nobody's step.
        self._origin = -1
        self._spawner = None
        strangers = self._strangers
        if self._ended and len(strangers) > 1:
            # The harness ends tasks that are left: none of them may be in the pass it runs in.
            batch.extend(self._all_but_the_harness())
            self._harness_is_next = True
            return
        if len(strangers) > 1:
            # Whatever woke them may have done it in the order of a set.
            strangers.sort(key=self._seam.age_of)
        batch.extend(strangers)
        strangers.clear()

    def _all_but_the_harness(self) -> list[Task]:
        """Leave the harness alone among those that are not the program's; give the others."""
        self._strangers.sort(key=self._seam.age_of)
        others = [task for task in self._strangers if not self._seam.is_main(task)]
        self._strangers[:] = [task for task in self._strangers if self._seam.is_main(task)]
        return others

    def _rest(self) -> None:
        """Nothing can run: wake those who wait for that, else move the clock, else it is a deadlock."""
        seam = self._seam
        self._origin = -1
        # Who wakes now has not just been running: all are in path order.
        self._last = None
        if seam.wake_idle_waiters():
            self.rests.append(len(self.steps))
            return
        if seam.next_deadline() < inf:
            self.rests.append(len(self.steps))
            self._move_clock()
        elif self.given_up:
            self._close_by_force()
        else:
            waits_on: list[tuple[str, tuple[str, ...]]] = []
            self._give_up(Deadlock(len(self.steps), self._waiting(waits_on), waits_on))

    def _move_clock(self) -> None:
        """Let time pass up to the next deadline."""
        deadline = self._seam.next_deadline()
        self._clock.now = deadline
        self._clock_moved_at = len(self.steps)
        self._seam.expire(deadline)

    def _waiting(self, waits_on: list[tuple[str, tuple[str, ...]]] | None = None) -> list[tuple[str, str]]:
        """Say of each living task what it waits for, by path; add to `waits_on` the tasks it waits for."""
        waiting = []
        for actor in self._living():
            asked: dict[str, None] = {}

            def name_of(task: object, asked: dict[str, None] = asked) -> str | None:
                # Who waits for a task asks what it is called.
                name = self._name_of(task)
                if name is not None:
                    asked[name] = None
                return name

            runnable = actor in self._ready or (self._last_ready and actor is self._last)
            waiting.append((actor.name, waits_for(actor.task, name_of, runnable)))
            if asked and waits_on is not None:
                waits_on.append((actor.name, tuple(sorted(asked, key=key_of_path))))
        return waiting

    # ------------------------------------------------------------------ giving up

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

    def abandon(self, fault: BaseException) -> None:
        """End the execution from outside; the caller gets `fault`."""
        self.fault = fault
        if not self.given_up:
            self._give_up(None)

    def fail(self, error: BaseException) -> None:
        """Take it that Trio's loop ended with `error` while it had this execution's tasks in hand."""
        if not self.over:
            self.over = True
            self.error = error
        actor, self._handed = self._handed, None
        if actor is not None:
            enabled, choice, causes = self._making
            if self.things.implied:
                self.implied[len(self.steps)] = tuple(self.things.implied)
            self.steps.append((actor, enabled, choice, in_order(self._touched), self._clock.now, causes))

    def _give_up(self, error: BaseException | None) -> None:
        if not self.over:
            self.over = True
            self.error = error
        self.given_up = True
        self._unwinding_left = _UNWINDING_STEPS + _UNWINDING_STEPS_PER_TASK * len(self._actors)
        self._nursery.cancel_scope.cancel()

    def _close_by_force(self) -> None:
        self.spoiled = True
        self._keys.clear()
        self._ready.clear()
        self._names.clear()
        self._last_ready = False
        self._running = None
        self._seam.kill_strangers()
        # Trio's own tasks live on.
        self._seam.runq.extend(task for task in self._strangers if task in self._seam.tasks)
        self._strangers.clear()
        self._wake_harness()

    def _break(self, error: BaseException) -> None:
        """Trio's own machinery failed under this program (an abort function raised, say)."""
        self._broken = True
        if not self.over:
            self.over = True
            self.error = error
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

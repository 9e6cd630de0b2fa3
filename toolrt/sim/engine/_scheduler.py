"""The scheduler: decides which task of a program steps next, for one execution.

Rules.
- One task steps at a time, to its next checkpoint.  Before each step the *enabled* list is made: the task that
  stepped last, if it still can, then the others by path.  The policy picks an index; 0 is the simplest choice.
- Foreign tasks (see `_turns`) are no choice, and run straight away, in Trio's loop.
- When nothing can run, the tasks in `wait_all_tasks_blocked` with the least cushion wake after that many seconds,
  unless a deadline comes first; else the clock jumps to the next deadline; when there is none, that is a deadlock.
- An *idle-only* task (one that cancels the program, at any moment or never) does not keep time from moving.  If only
  idle-only tasks can run, letting time advance is recorded as a separate choice.

How it ends.
- An execution ends when its root task ends, whatever its children did.  An exception that leaves a child is the
  program's own affair: its parent may catch it, and what follows is scheduled like anything else.
- A deadlock, the step limit, a step that would leave the simulation, a policy that raises and Ctrl-C end it too: it is
  *given up*.  From then on nothing is recorded, no policy is asked and the program is cancelled.  It unwinds by
  choice 0 under a limit of its own, and what has not ended by then is closed by force.  Value, error, schedule and
  trace are those of the moment it was given up.
- Nothing raises through Trio's loop.  What a policy raises is kept in `ExecutionRecord.fault`.

Limits.  The interleavings are those of whole steps: a task that does not checkpoint is not interrupted.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import trio
from trio.lowlevel import Task

from toolrt.errors import DefinitionRefused, InternalError, RealTimeout, UnsupportedTrio
from toolrt.probe import Resource
from toolrt.sim._paths import CLOCK
from toolrt.sim._trio_internals._forced_end import BOUNDARIES
from toolrt.sim._trio_internals._seam import Seam, nursery_of
from toolrt.sim._trio_internals._step import DUE, ENDED, GOES_ON, can_step_inside
from toolrt.sim._trio_internals._things import Primitives, begun_under
from toolrt.sim.engine._apart import take_apart
from toolrt.sim.engine._clock import VirtualClock
from toolrt.sim.engine._extra_choices import ExtraChoices
from toolrt.sim.engine._fairness import Fairness
from toolrt.sim.engine._job import Job, RecordNeeded
from toolrt.sim.engine._passes import Passes
from toolrt.sim.engine._record import ExecutionRecord, in_order
from toolrt.sim.engine._roster import MARK, Actor, RawStep, Roster
from toolrt.sim.engine._stops import deadlocked, overdue, pass_limit_reached, step_limit_reached
from toolrt.sim.engine._teardown import without_warnings
from toolrt.sim.engine._turns import Turns
from toolrt.sim.policies._policy import checked_choice

# Trio's loop is visited at least this often, in steps: signals and its entry queue live there.
_STEPS_BETWEEN_VISITS = 1_000

# Beside so many tasks a policy follows the list of those that can run; a tuple of fewer is looked through sooner.
_MANY = 16

#: In the place of `Scheduler.idle_only`: a process that has crashed unwinds, and in which order is no choice.
TEARDOWN: tuple[str, ...] = ("teardown",)

# An execution that was given up may take this many steps to unwind, and this many more for each of its tasks; but no
# more than the step limit, if that is higher than the first.
_UNWINDING_STEPS = 1_000
_UNWINDING_STEPS_PER_TASK = 50


@trio.lowlevel.disable_ki_protection
def _called(program: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
    """Call `program`, which Ctrl-C may interrupt."""
    return program()


@trio.lowlevel.disable_ki_protection
async def _interruptible(awaitable: Awaitable[Any]) -> Any:
    """Let Ctrl-C into the program, but not into the code around it."""
    return await awaitable


class Scheduler:
    """One execution.

    Args:
        seam: the Trio run it happens in.
        clock: that run's clock, already at 0.
        job: what is executed.
        steps: an empty list to keep the steps in.
        nursery: the harness's, in which the root task is spawned; cancelled when the execution is given up.
        harness: the task to wake when the execution has ended.
        things: what Trio's primitives report to.
    """

    def __init__(
        self,
        seam: Seam,
        clock: VirtualClock,
        job: Job,
        steps: list[RawStep],
        nursery: trio.Nursery,
        harness: Task,
        things: Primitives,
    ) -> None:
        self._seam = seam
        self._clock = clock
        self._job = job
        self._policy = policy = job.policy
        self._nursery = nursery
        self._harness = harness
        self.roster = roster = Roster(seam, nursery, steps, things, self.refuse)
        self.record = ExecutionRecord(clock, steps, things)
        #: The names of the idle-only tasks, or None.
        self.idle_only: tuple[str, ...] | None = None
        # None: a task that can run may step next, whenever it became able to.
        self._passes: Passes | None = None
        # The enabled list, choice and causes of the running step; and whether a choice has divided it.
        self._making: tuple[tuple[str, ...], int, tuple[int, ...]] = ((), 0, ())
        self._divided = False
        self._handed: Actor | None = None  # the task that Trio is stepping for the scheduler
        # The turns of program and foreign tasks; made when there are foreign tasks, which is seldom.
        self._turns_taken: Turns | None = None
        self._pause_at = min(job.step_limit, _STEPS_BETWEEN_VISITS)
        self._fairness = Fairness(self.record, roster, clock, None if job.looks_for_circles else self.need_record)
        self._clock_moved_at = 0  # the step before which time moved last
        #: True once the program was cancelled because it could not go on.
        self.given_up = False
        self._unwinding_left = 0
        # The limit in wall seconds that it is beyond, or None.
        self._overdue: float | None = None
        # The root task has ended, or the harness need not wait for it.
        self._ended = self._harness_woken = False
        #: True when the program has ended by itself and nothing is left of it: the harness was not woken.
        self.left_nothing = False
        #: True when tasks were closed by force: the Trio run may be in any state.
        self.spoiled = False
        self._broken = False  # Trio's machinery failed under this execution: Trio's loop takes over
        # How it picks by number alone or from the kept list: lists of names are then made for a reader, or never.
        own = vars(type(policy))
        self._pick_any = getattr(policy, "pick_any", None) if "pick_any" in own else None
        self._pick_kept = getattr(policy, "_pick_kept", None) if "_pick_kept" in own else None
        if self._pick_kept or (self._pick_any and (job.reports or job.keeps_enabled)):
            if job.order == "trio" or job.places is not None:
                self._pick_any = self._pick_kept = None
            else:
                roster.changes = self.record.changes = []
        attach = getattr(policy, "attach", None)
        #: True for the policy of an explorer that swaps steps: the cancel status at the begin of each step is kept.
        self.is_attached = attach is not None
        self._statuses: list[Any] | None = None if attach is None else self.record.begun_under
        if attach is not None:
            attach(self.record)
        if job.order == "trio":
            self._passes = Passes(roster, seam, self.record, clock)

    # ------------------------------------------------------------------ Trio asks

    def tick(self, batch: list[Task]) -> None:
        """Take the runnable tasks of one pass of Trio's loop; leave in `batch` those that Trio is to step."""
        runq, record = self._seam.runq, self.record
        runq.extend(batch)
        batch.clear()
        if record.running is not None and self._handed is None:
            # Trio has stepped a task of an execution that is over.
            record.running = None
            if self._ended:
                self._wake_harness()
        try:
            if not self._broken:
                self._schedule(batch)
        except BaseException as error:  # noqa: ASYNC103
            self._break(error)
        if self._broken:
            batch[:] = runq  # Trio steps what is left: the program is gone, the harness is not
            runq.clear()

    def _schedule(self, batch: list[Task]) -> None:
        """Step tasks until Trio is needed; leave in `batch` those that it is to step before it asks again.

        Trio is needed for foreign tasks, for callbacks, for a visit now and then, and for every single step when its
        loop is not the one that `Seam.step` was written for.  Each turn of the loop has these phases:

        1. take:      tasks from Trio's run queue become enabled, or are foreign.
        2. foreign:   foreign tasks and callbacks go to Trio, unless the program has its turn.
        3. deadlines: those that are due expire.
        4. rest:      if nothing can run, idle waiters wake, or the clock moves, or it is a deadlock.
        5. unwind:    an execution that was given up goes on by choice 0, unrecorded.
        6. limits:    the step limit, and the visit to Trio's loop.
        7. choose:    the policy picks from the enabled list.
        8. extra:     a choice that is no task's step is carried out, and the turn ends.
        9. begin:     the chosen task leaves the enabled list; its causes are known.
        10. step:     it runs to its next checkpoint, here or in Trio's loop.
        11. record:   the step is kept with what it touched.
        12. end:      a task that ended is noted for its nursery; after the root task the execution is over.
        """
        # This is the hottest loop: what each step reads is in a local name, and few things are calls.
        seam, clock, roster, record, runq = self._seam, self._clock, self.roster, self.record, self._seam.runq
        callbacks, callbacks_once = seam.callbacks, seam.callbacks_once
        passes = self._passes
        inside, step_inside = can_step_inside(), seam.step if passes is None else passes.step
        steps, touched, foreign, actors = record.steps, record.touched, roster.foreign, roster.actors
        statuses, implied, watched = self._statuses, record.things.implied, record.watched
        ready, names = roster.ready, roster.names
        take = roster.take if passes is None else roster.take_later
        fairness, yielded, quiet = self._fairness, roster.yielded, record.quiet
        pick, pick_any, pick_kept, changes = self._policy.choose, self._pick_any, self._pick_kept, roster.changes
        # So many tasks have to be able to run for a policy to be asked without a tuple of their names.
        without_tuple = 1 if pick_any is not None else _MANY if pick_kept is not None else inf
        handed, self._handed = self._handed, None
        if self._turns_taken is not None and self._turns_taken.hand_over_the_harness(batch):
            return
        # A deadline may have come while others ran; within a pass none expires.
        look_for_due = passes is None
        while True:
            if handed is None:
                # 1. take
                while runq:
                    take(runq.popleft())
                # 2. foreign
                if (foreign or callbacks or callbacks_once) and not self._turns().is_programs(self._ended):
                    self._hand_over(batch)
                    return
                # 3. deadlines
                if look_for_due:
                    if seam.has_due(clock.now):
                        seam.expire(clock.now)
                        roster.wake_yielded()
                        continue
                    look_for_due = False
                # 4. rest
                extra = record.extra
                if not ready:
                    if passes is not None and passes.begin():
                        continue
                    if self._ended:
                        return
                    if record.outside is not None and not self.given_up and record.outside.rests():
                        continue
                    if extra is None or not extra.open or self.given_up:
                        self._rest()
                        continue
                # 5. unwind
                if self.given_up:
                    look_for_due = True
                    if self._unwind(batch, inside):
                        return
                    continue
                # 6. limits
                index = len(steps)
                if index >= self._pause_at:
                    if self._is_at_limit(index):
                        continue
                    return
                # 7. choose
                actor: Actor
                enabled: tuple[str, ...] = ()
                mark: Any = None
                # That of the task to go on, or -1.
                place = roster.place
                if (count := len(ready)) >= without_tuple and extra is None and self.idle_only is None:
                    # A tuple of names costs a step in proportion to the number of tasks, and the policy needs none.
                    choice = 0
                    if pick_kept is not None:
                        choice = pick_kept(names, place, changes)
                    elif pick_any is not None and count > 1:
                        choice = pick_any(count)
                    mark = None if changes is None else len(changes) * MARK + place + 1
                else:
                    if self.idle_only is TEARDOWN:
                        enabled = ready[max(place, 0)].alone
                    elif place < 0:
                        enabled = tuple(names)
                        if self.idle_only is not None and enabled == self.idle_only and not self._ended:
                            enabled = (CLOCK, *enabled)
                    elif len(names) > 1:
                        enabled = (names[place], *names[:place], *names[place + 1 :])
                    else:
                        enabled = ready[0].alone
                    if (
                        extra is not None
                        and not self._ended
                        and enabled[:1] != (CLOCK,)
                        and (passes is None or passes.is_between or not enabled)
                    ):
                        enabled = extra.beside(enabled)
                    try:
                        choice = pick(enabled, index)
                        if type(choice) is not int or not 0 <= choice < len(enabled):
                            choice = checked_choice(choice, enabled, self._policy)
                    except BaseException as error:  # noqa: ASYNC103
                        record.fault = error
                        self._give_up(None)
                        continue  # noqa: ASYNC104
                    # 8. extra
                    if enabled[0] is CLOCK and choice == 0:
                        record.add_other(CLOCK, enabled, 0)
                        self._rest()
                        continue
                    if extra is not None and extra.has(enabled[choice]):
                        self._take_extra(extra, enabled, choice)
                        continue
                # 9. begin
                if choice <= place:
                    place = choice - 1 if choice else place
                elif enabled and enabled[0] is CLOCK:
                    place = 0
                else:
                    place = choice
                roster.last = actor = ready[place]
                roster.place = place
                if passes is not None:
                    roster.leave()
                causes: tuple[int, ...] = ()
                if actor.cause >= 0:
                    if steps[actor.cause][0] is not actor:
                        causes = (actor.cause,)
                    actor.cause = -1
                if actor.exits:
                    causes = roster.with_joined(actor, causes, implied)
                task = actor.task
                record.running = roster.spawner = actor
                if statuses is not None:
                    statuses.append(begun_under(task))
                if mark is not None:
                    enabled = mark
                # The step is the cause of what it spawns and wakes.
                roster.origin = index
                self._making = (enabled, choice, causes)
                # 10. step
                if actor.is_watched:
                    fairness.begin(actor)
                if not inside:
                    if passes is not None:
                        passes.enter(actor)
                    self._handed = actor
                    batch.append(task)
                    return
            else:
                actor, task, index, extra = handed, handed.task, len(steps), record.extra
                enabled, choice, causes = self._making
            how = 0
            try:
                if handed is None:
                    how = step_inside(task)
                else:
                    handed = None
                    how = seam.how_it_went(task)
            finally:
                # 11. record: also a step that breaks Trio's loop, because a replay has to get there.
                record.running = None
                if actor.is_watched:
                    fairness.end(actor, len(steps), self._divided)
                if self._divided:
                    self._divided = False
                    enabled, choice, causes = self._making
                    index = len(steps)
                noted: tuple[tuple[Resource, bool], ...] = ()
                if watched:
                    record.compare_watched()
                if touched:
                    noted = tuple(touched) if len(touched) == 1 else in_order(touched)
                    touched.clear()
                if implied:
                    record.implied[index] = tuple(implied)
                    implied.clear()
                steps.append((actor, enabled, choice, noted, clock.now, causes))
            if how >= DUE:
                look_for_due = True
                how -= DUE
            if yielded and index not in quiet:
                roster.wake_yielded()
            if how == GOES_ON:
                actor.passed += 1
                yields = actor.passed > 0 and not self._ended and fairness.yields(actor, index)
                if passes is None:
                    if yields:
                        roster.leave()
                    continue
                roster.later.append(actor)
            else:
                if passes is None:
                    roster.leave()
                actor.passed = 0
                if actor.is_watched:
                    fairness.forget(actor)
            if extra is not None and (more := extra.parks()):
                record.implied[index] = (*record.implied.get(index, ()), *more)
            # 12. end
            if how == ENDED:
                nursery = nursery_of(task)
                owner = actors.get(nursery.parent_task)
                if owner is not None:
                    owner.exits.setdefault(nursery, []).append(index)
                elif self._ended and not self._harness_woken:
                    if roster.has_beside:
                        record.cut_at(index)
                    if foreign or self.given_up or not seam.leftovers.are_none(self._nursery):
                        self._wake_harness()
                    else:
                        self.left_nothing = True
                        return

    def _is_at_limit(self, steps: int) -> bool:
        """Give up at a limit, in steps or time; before it, arrange the next visit of Trio's loop and say False."""
        limit = self._job.step_limit
        if self._overdue is not None:
            self._give_up(overdue(self.roster, self._seam, self._overdue))
            self._unwinding_left = 0
            return True
        if steps < limit:
            self._pause_at = min(limit, steps + _STEPS_BETWEEN_VISITS)
            return False
        reached = step_limit_reached(self.record, self.roster, self._seam, limit, self._clock_moved_at, self.idle_only)
        self._give_up(reached)
        return True

    # ------------------------------------------------------------------ choices that are no task's step

    def extra_choices(self) -> ExtraChoices:
        """Give what can happen beside steps, to add to it."""
        if self.record.extra is None:
            self.record.extra = ExtraChoices(self._seam, self.record.things)
        return self.record.extra

    def enter_scope(self, scope: trio.CancelScope) -> str:
        """Offer to cancel a scope that the running step has entered; give the name of that choice."""
        task = self.roster.actors[self._seam.current_task()].name  # type: ignore[index]
        return self.extra_choices().enter(scope, task, len(self.record.steps))

    def _take_extra(self, extra: ExtraChoices, enabled: tuple[str, ...], choice: int) -> None:
        """Carry out a choice that is no task's step."""
        name, record = enabled[choice], self.record
        if self._passes is not None:
            self._passes.reopen()
        self.roster.origin = len(record.steps)
        record.add_other(name, enabled, choice, extra.announce(name))
        self.roster.wake_yielded()
        if extra.take(name):
            self._move_clock()

    def take_deadlines_apart(self) -> None:
        """Have deadlines of one instant come one by one."""
        self.record.has_deadlines = True

    def choose(self, n: int) -> int:
        """Let the policy pick a number below `n` for the running step, which is divided there."""
        record, policy = self.record, self._policy
        actor, steps = record.running, record.steps
        if actor is None or record.over:
            return 0
        record.add(actor, *self._making)
        self._making, self._divided = (actor.alone, 0, ()), True
        enabled = tuple(f"{actor.name}={number}" for number in range(n))
        try:
            chosen = checked_choice(policy.choose(enabled, len(steps)), enabled, policy)
            record.add_other(enabled[chosen], enabled, chosen)
            record.choices_within.append(len(steps) - 1)
            # The policy is asked for the rest of the step too: it sees every recorded step.
            checked_choice(policy.choose(actor.alone, len(steps)), actor.alone, policy)
        except BaseException as error:  # noqa: ASYNC103
            record.fault, record.cut_within = error, True
            self._give_up(None)
            return 0  # noqa: ASYNC104
        record.begun_under.append(begun_under(actor.task))
        self.roster.origin = len(steps)
        return chosen

    # ------------------------------------------------------------------ while foreign tasks run

    def _turns(self) -> Turns:
        turns = self._turns_taken
        if turns is None:
            turns = self._turns_taken = Turns(self.roster, self._seam, self.record, self._job)
        return turns

    def _hand_over(self, batch: list[Task]) -> None:
        """Have Trio step the foreign tasks and call the callbacks; too many passes in a row end the execution."""
        turns, steps = self._turns(), len(self.record.steps)
        if self._ended:
            pass
        elif self.given_up:
            self._may_unwind()
        elif self._overdue is not None:
            self._is_at_limit(steps)
        elif turns.count_pass(steps):
            limit = self._job.step_limit
            self._give_up(pass_limit_reached(steps, self.roster, self._seam, limit, self._clock_moved_at))
        # What they write is not seen.
        self.roster.wake_yielded()
        turns.hand_over(batch, self._ended)

    # ------------------------------------------------------------------ when nothing can run

    def _rest(self) -> None:
        """Wake the tasks that wait until nothing can run, else move the clock, else it is a deadlock."""
        seam, roster, record = self._seam, self.roster, self.record
        roster.origin = -1
        roster.last = None  # of those that wake now none was the last to run: all are in path order
        if self._passes is not None:
            self._passes.reopen()
        cushion = None if roster.yielded else seam.least_cushion()
        if cushion is not None and cushion < seam.next_deadline() - self._clock.now:
            # Trio does the same: it waits this long to see whether anything happens, and no deadline comes before.
            record.rests.append(len(record.steps))
            if cushion and not self._clock.stands:
                self._clock.now += cushion
                self._clock_moved_at = len(record.steps)
            seam.wake_idle_waiters(cushion)
        elif seam.next_deadline() < inf:
            record.rests.append(len(record.steps))
            self._move_clock()
        elif self.given_up:
            self._close_by_force()
        elif roster.yielded:
            self._give_up(self._fairness.livelocked(self._job.step_limit))
        else:
            self._give_up(deadlocked(roster, len(record.steps)))

    def _move_clock(self) -> None:
        """Let time pass up to the next deadline, or to what a loop that polls the clock waits for."""
        deadline = self._fairness.next_poll(self._seam.next_deadline())
        self._clock.now = deadline
        self._clock_moved_at = len(self.record.steps)
        if self.record.has_deadlines:
            take_apart(self._seam, self.roster, self.record.things, deadline)
        self._seam.expire(deadline)
        self.roster.wake_yielded()

    # ------------------------------------------------------------------ the program's root task

    @trio.lowlevel.enable_ki_protection
    async def root(self) -> None:
        """Run the program; the root task of the execution."""
        record, program, disarm, value = self.record, self._job.program, self._seam.disarm, None
        if record.running is None:
            # Trio stepped it without asking: its loop is not the one this was written for.
            record.fault = UnsupportedTrio(trio.__version__, ["its loop does not hand its tasks to _r.shuffle"])
        try:
            awaitable = _called(program)
            if not hasattr(awaitable, "__await__"):
                record.fault = DefinitionRefused("a program", "an async function without arguments", program)
            else:
                value = await _interruptible(awaitable)
        except BaseException as error:  # noqa: ASYNC103
            if error.__class__.__base__ is disarm.of:
                try:
                    disarm.replace()
                    while True:
                        pass
                except disarm.of:
                    pass
            record.freeze(None, error)  # one that left would end the executions that follow in the harness's nursery
        else:
            record.freeze(value, None)
        self._ended = True
        if record.running is None:
            self._wake_harness()  # no turn of `_schedule` follows that would see the end

    def _wake_harness(self) -> None:
        self._ended = True
        self.roster.release_callbacks()
        if not self._harness_woken:
            self._harness_woken = True
            self._seam.wake(self._harness)

    # ------------------------------------------------------------------ giving up

    def abandon(self, fault: BaseException) -> None:
        """End the execution from outside; the caller gets `fault`."""
        self.record.fault = fault
        self._give_up(None)

    def refuse(self, refusal: BaseException) -> None:
        """End the execution in the running step, which asked for what is not simulated; that is its error."""
        if self.given_up and self.record.running is not None and not isinstance(refusal, RealTimeout):
            # It has caught the first refusal, and may catch any number.
            raise self.force_end(refusal)
        self._give_up(refusal)

    def force_end(self, error: BaseException) -> type[BaseException]:
        """Give the execution up; what is given is to be raised in its step, and what is left of it will be closed."""
        self.record.freeze(None, error)
        self.given_up = self.spoiled = True
        self._unwinding_left = 0
        return self._seam.forced_end()

    def end_after_step(self, seconds: float) -> None:
        """Have no further step begin: the execution is beyond its limit of `seconds`.  Any thread may call this."""
        self._overdue = seconds
        self._pause_at = self._unwinding_left = 0

    def need_record(self) -> None:
        """End the execution, to run it again with a record of what its steps touch."""
        self.abandon(RecordNeeded())

    def _give_up(self, error: BaseException | None) -> None:
        if self.given_up:
            return
        self.record.freeze(None, error)
        self.given_up = True
        self.roster.wake_yielded()
        most = max(_UNWINDING_STEPS, self._job.step_limit)
        self._unwinding_left = min(_UNWINDING_STEPS + _UNWINDING_STEPS_PER_TASK * len(self.roster.actors), most)
        with self._seam.in_its_run():
            self._nursery.cancel_scope.cancel()

    def _unwind(self, batch: list[Task], inside: bool) -> bool:
        """Take one step of an execution that was given up, unrecorded; say whether Trio is to take it."""
        if not self._may_unwind():
            return False
        roster, record = self.roster, self.record
        actor = roster.begin_first()
        record.running = roster.spawner = actor
        roster.origin = -1
        if not inside:
            roster.leave()
            batch.append(actor.task)
            return True
        with without_warnings():
            if self._seam.step(actor.task) % DUE != GOES_ON:
                roster.leave()
        record.running = None
        if self._ended:
            self._wake_harness()
        return False

    def _may_unwind(self) -> bool:
        """Count a step, or a foreign pass, while an execution unwinds; after too many, close it by force."""
        self._unwinding_left -= 1
        if self._unwinding_left < 0:
            self._close_by_force()
            return False
        return True

    def _close_by_force(self) -> None:
        seam, foreign = self._seam, self.roster.foreign
        self.spoiled = True
        self.roster.clear_runnable()
        self.record.running = None
        with without_warnings():
            seam.leftovers.kill_tasks()
        seam.leftovers.detach_scopes(self._nursery, self._harness)
        # Trio's own tasks live on.
        seam.runq.extend(task for task in foreign if task in seam.tasks)
        foreign.clear()
        self._wake_harness()

    # ------------------------------------------------------------------ Trio failed

    def _break(self, error: BaseException) -> None:
        """End the execution because Trio's own machinery failed under it (an abort function raised, say)."""
        self._broken = True
        self.record.freeze(None, error)
        self.given_up = True
        try:
            self._close_by_force()
        except BaseException as worse:  # noqa: ASYNC103
            self.record.fault = InternalError(f"could not end an execution that broke: {worse!r}")
            self.record.fault.__cause__ = worse
            self._wake_harness()

    def fail(self, error: BaseException) -> None:
        """Make `error`, with which Trio's loop ended during this execution, its error; record the step it ended in."""
        record = self.record
        record.freeze(None, error)
        actor, self._handed = self._handed, None
        if actor is not None:
            if actor.is_watched:
                self._fairness.end(actor, len(record.steps), self._divided)
            record.add(actor, *self._making)


# It takes back what ends a step by force, as what steps tasks does.
BOUNDARIES.add(Scheduler.root.__code__)

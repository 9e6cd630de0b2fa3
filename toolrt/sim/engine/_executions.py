"""Runs executions one after the other in one Trio run.

Rules.  Between two executions nothing is left: tasks, async generators, RunVars, deadlines, time.  When an execution
had to be ended by force, the next one gets a fresh Trio run.  Garbage is not collected while an execution runs:
when a finalizer runs would depend on everything else in the process.  It may be between two of them, at each visit of
Trio's loop.

Theory.  Starting and stopping a Trio run costs several times what one small execution does.  So does waking the task
that waits for its end: an execution that leaves nothing is followed by the next one at once.
"""

from __future__ import annotations

import gc
from math import inf

import trio
from trio.lowlevel import Abort, Task

from toolrt import probe
from toolrt.sim._trio_internals._control import controlled, outside_run
from toolrt.sim._trio_internals._decided import Decided
from toolrt.sim._trio_internals._reports import Reports
from toolrt.sim._trio_internals._seam import OwnRun, Seam, seam_of_this_run
from toolrt.sim._trio_internals._stand_ins import StandIns
from toolrt.sim.engine._clock import VirtualClock
from toolrt.sim.engine._closing import Closing
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._job import Jobs, result_of
from toolrt.sim.engine._roster import RawStep
from toolrt.sim.engine._scheduler import Scheduler
from toolrt.sim.engine._teardown import collect_unheard
from toolrt.sim.policies._policy import RunInfo

# Trio's loop is visited at least this often, in steps, also when one small execution follows another.
_STEPS_BETWEEN_VISITS = 1_000


class Executions:
    """The executions of one Trio run.

    Args:
        jobs: says which.
        reports: has Trio's primitives report to them.
    """

    def __init__(self, jobs: Jobs, reports: Reports) -> None:
        self._jobs = jobs
        self._reports = reports
        self._clock = VirtualClock(self._rest)
        #: Random numbers and clocks of the program that runs.
        self.decided = Decided()
        #: What stands in for the world outside, where its programs have needed it; None before the run has begun.
        self.stand_ins: StandIns | None = None
        #: The Trio run.
        self.own = OwnRun()
        #: The execution that runs now; None between two.
        self.scheduler: Scheduler | None = None
        # The harness's task, and the nursery in which it has programs begin.
        self._main: Task | None = None
        self._nursery: trio.Nursery | None = None
        # The observer before the execution, or None when it has the probe; and whether garbage was collected.
        self._observed_by: tuple[probe.Sink | None, bool] | None = None
        self._collecting = False
        self._closing: Closing | None = None

    def run_with(self, clock: trio.testing.MockClock) -> None:
        """Have `clock` tell and move the time of the execution that runs, from what it tells now on."""
        if not clock.rate:
            self._clock.now += clock.current_time()
        self._clock.face = clock

    def run(self) -> None:
        """Do jobs in a Trio run of their own, until the driver has answered or that run is not fit for another one."""
        try:
            try:
                with controlled(self._tick, self.own, self.decided) as self.stand_ins, self._reports.confined():
                    trio.run(self._harness, clock=self._clock)
            finally:
                # Even when Trio itself fails.
                self._observe_as_before()
        except trio.TrioInternalError as error:
            self._trio_failed(error)
        finally:
            self.stand_ins = self.own.seam = self.scheduler = self._main = self._nursery = self._closing = None

    def _trio_failed(self, error: trio.TrioInternalError) -> None:
        """Make a failure of Trio's own loop the error of the execution that caused it, and end that execution."""
        scheduler = self.scheduler
        if scheduler is None or self.own.seam is None:
            raise error
        scheduler.fail(error.__cause__ or error)
        self.own.seam.leftovers.bury()
        self._jobs.advance(result_of(self._jobs.job, scheduler.record, self.decided.drawn_from))

    # ------------------------------------------------------------------ Trio asks

    def _tick(self, batch: list[Task]) -> None:
        """Schedule a pass of Trio's loop."""
        seam = self.own.seam
        assert seam is not None
        if self.scheduler is not None:
            self.scheduler.tick(batch)
            if self.scheduler.left_nothing:
                self._go_on(seam, batch)
        elif self._closing is not None:
            self._closing.count_pass(batch)

    def _rest(self) -> bool:
        if self.scheduler is not None:
            return True
        if self.own.seam is not None:
            # An async generator that is being closed may sleep behind a shield.
            deadline = self.own.seam.next_deadline()
            if deadline < inf:
                self._clock.now = max(self._clock.now, deadline)
                return True
        return self._closing is not None and self._closing.stop()

    # ------------------------------------------------------------------ one execution after the other

    @trio.lowlevel.enable_ki_protection
    async def _harness(self) -> None:
        """Do jobs until the driver has answered or the Trio run is spoiled."""
        self.own.seam = seam = seam_of_this_run()
        self._main = harness = trio.lowlevel.current_task()
        self._closing = closing = Closing(seam)
        jobs = self._jobs
        fit = True
        while fit and jobs.answer is None:
            # One nursery serves many executions; one that was given up was cancelled with its nursery.
            left = False
            try:
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    with trio.CancelScope(shield=True):
                        fresh = True
                        while fit and fresh and jobs.answer is None:
                            fit, fresh = await self._execute(seam, harness, nursery, closing)
                    left = True
            except BaseExceptionGroup:
                # A task that a program had put into this nursery, its own task's, failed; that has ended the program.
                if not left:
                    raise
        if fit:
            # Nothing is left in this run: it ends as any other does.
            self.own.seam = None

    @trio.lowlevel.enable_ki_protection
    async def _execute(self, seam: Seam, harness: Task, nursery: trio.Nursery, closing: Closing) -> tuple[bool, bool]:
        """Do jobs up to one that leaves something; say whether the Trio run, and the nursery, can be used again."""
        if not self._begin(seam, harness, nursery):
            return True, True
        try:
            scheduler = await self._until_woken()
            if scheduler is None:
                return True, True
            if seam.callbacks or seam.callbacks_once:
                await closing.call_callbacks()
            self.scheduler = None
            # As in Trio, before the generators: one in which a task still waits cannot be closed.
            self._kill_tasks(seam, scheduler)
            if seam.leftovers.has_async_generators() and not await closing.close_async_generators(nursery):
                scheduler.spoiled = True
        finally:
            self._end(asked=True)
            self._let_garbage_be_collected()
        self._kill_tasks(seam, scheduler)
        seam.leftovers.sweep()
        self._hand_over(seam, result_of(self._jobs.job, scheduler.record, self.decided.drawn_from))
        return not scheduler.spoiled, not nursery.cancel_scope.cancel_called

    def _kill_tasks(self, seam: Seam, scheduler: Scheduler) -> None:
        """End the system tasks that the program spawned: they have no nursery that would have ended them."""
        if seam.leftovers.tasks():
            seam.leftovers.kill_tasks()
            scheduler.spoiled = True

    @trio.lowlevel.enable_ki_protection
    async def _until_woken(self) -> Scheduler | None:
        """Wait for an execution that leaves something, or for the end; Ctrl-C ends the one that runs."""
        try:
            await trio.lowlevel.wait_task_rescheduled(lambda _: Abort.SUCCEEDED)
        except KeyboardInterrupt as interrupt:
            assert self.scheduler is not None
            self.scheduler.abandon(interrupt)
            await trio.lowlevel.wait_task_rescheduled(lambda _: Abort.FAILED)
        return self.scheduler

    def _begin(self, seam: Seam, harness: Task, nursery: trio.Nursery) -> bool:
        """Begin the next execution; say whether there was another one to begin."""
        while self._jobs.answer is None:
            job = self._jobs.job
            assert job is not None
            self._clock.now, self._clock.face = 0.0, None
            own = getattr(job.policy, "chance", None)
            self.decided.begin(job.chance if own is None else own)
            assert self.stand_ins is not None
            self.stand_ins.begin()
            steps: list[RawStep] = []
            info = RunInfo(job.index, job.step_limit, steps, job.order)
            try:
                job.policy.start(info)
                things = self._reports.begin(job.reports)
                if job.places is not None:
                    job.places.collect_from(things, steps)
                scheduler = Scheduler(seam, self._clock, job, steps, nursery, harness, things)
                if scheduler.is_attached:
                    self._reports.imply_too()
            except BaseException as error:  # noqa: ASYNC103
                self._end(asked=True)
                self._hand_over(seam, error)
                continue  # noqa: ASYNC104
            self.scheduler = scheduler
            self._observe(scheduler.record if job.reports else None)
            probe.implied = scheduler.record.imply if job.reports and scheduler.is_attached else None
            if self._jobs.was_abandoned:
                self._jobs.was_abandoned = False
                collect_unheard(generation=1)
            self._collecting = self._collecting or gc.isenabled()
            gc.disable()
            seam.spawn_root(scheduler.root, nursery, job.task_name, harness)
            return True
        return False

    def _go_on(self, seam: Seam, batch: list[Task]) -> None:
        """Do the jobs that follow, as long as nothing is left of each: the harness need not be woken for them."""
        harness, nursery = self._main, self._nursery
        assert harness is not None
        assert nursery is not None
        steps = 0
        # Once for many: a search that keeps much would have all of it looked through after each execution.
        self._let_garbage_be_collected()
        while self.scheduler is not None and self.scheduler.left_nothing:
            scheduler = self.scheduler
            steps += len(scheduler.record.steps)
            job = self._jobs.job
            self._end(asked=job is None or not job.caller_is_not_asked)
            seam.leftovers.sweep()
            self._hand_over(seam, result_of(job, scheduler.record, self.decided.drawn_from))
            del scheduler  # and what its program has left
            if not self._begin(seam, harness, nursery):
                seam.wake(harness)
            elif steps < _STEPS_BETWEEN_VISITS:
                self.scheduler.tick(batch)

    def _hand_over(self, seam: Seam, result: Execution | BaseException) -> None:
        job = self._jobs.job
        self._jobs.was_abandoned = isinstance(result, BaseException)
        if job is not None and job.caller_is_not_asked:
            self._jobs.advance(result)
        else:
            outside_run(seam, lambda: self._jobs.advance(result))

    def _observe(self, record: probe.Sink | None) -> None:
        """Let `record` have the probe."""
        if self._observed_by is None:
            self._observed_by = probe.sink, probe.threads_inline
        if probe.sink is not record or not probe.threads_inline:
            probe.observe(record, inline=True)

    def _end(self, asked: bool) -> None:
        """End the execution; when its caller is asked, the observer before it has the probe again."""
        self.scheduler = probe.implied = None
        if self.own.seam is not None:
            self.own.seam.holds_deadlines = False
            if self._main is not None:
                self.own.seam.interrupt_instead(self._main)
        self._reports.end()
        if asked:
            self._observe_as_before()

    def _observe_as_before(self) -> None:
        """Let the observer before the executions have the probe again."""
        if self._observed_by is not None:
            (sink, inline), self._observed_by = self._observed_by, None
            probe.observe(sink, inline=inline)

    def _let_garbage_be_collected(self) -> None:
        if self._collecting:
            self._collecting = False
            gc.enable()

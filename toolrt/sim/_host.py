"""Runs many executions inside one Trio run.

Rules.  A *driver* is a generator: it yields a `Job`, is sent the `Execution`, and so on until it returns.  It is
called outside the Trio run, in the caller's thread, so it may do anything, even simulate something else.
Between two executions nothing is left: tasks, async generators, RunVars, deadlines, time.  When an execution
had to be ended by force, the next one gets a fresh Trio run.  Garbage is not collected while an execution runs:
when a finalizer runs would depend on everything else in the process.  It may be between two of them, at each visit of
Trio's loop.

Theory.  Starting and stopping a Trio run costs several times what one small execution does.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import gc
import threading
from collections.abc import Awaitable, Callable, Generator
from math import inf
from typing import Any, TypeVar

import attrs
import outcome
import trio
from trio.lowlevel import Abort, Task

from toolrt import probe
from toolrt.errors import DefinitionRefused, NotSimulated, StepLimit
from toolrt.sim._clock import VirtualClock
from toolrt.sim._execution import Execution
from toolrt.sim._hook import RawStep, Scheduler
from toolrt.sim._places import Places
from toolrt.sim._trio_internals import (
    Seam,
    check_supported,
    controlled,
    is_host_of_guest,
    outside_run,
    seam_of_this_run,
)
from toolrt.sim._trio_internals_accesses import Reports
from toolrt.sim._trio_internals_things import Things
from toolrt.sim.policies._policy import Policy, RunInfo

__all__ = ["DEFAULT_STEP_LIMIT", "Driver", "Job", "checked_job", "current_scheduler", "simulate"]

T = TypeVar("T")

#: After so many steps an execution is stopped, unless the caller says otherwise.
DEFAULT_STEP_LIMIT = 10_000

# Callbacks that are left at the end of an execution may call for others that often.
_PASSES_FOR_CALLBACKS = 100

# Trio's loop is visited at least this often, in steps, also when one small execution follows another.
_STEPS_BETWEEN_VISITS = 1_000

# Async generators that are left at the end of an execution may take so many passes to close.
_PASSES_FOR_GENERATORS = 1_000

# The names replaced in Trio and the probe's sink are the process's: one thread simulates at a time.
_turn = threading.RLock()

_current: list[_Host] = []


@attrs.define
class Job:
    """One execution to do; `checked_job` makes one from what a caller gave."""

    #: The program.
    program: Callable[[], Awaitable[Any]]
    #: Who picks its choices.
    policy: Policy
    #: The number of steps after which it is stopped, 1 or more.
    step_limit: int = DEFAULT_STEP_LIMIT
    #: Its place among the executions of one exploration, from 0.
    index: int = 0
    #: True when the driver calls nothing of its caller's before it asks for the next job: stepping out of the Trio
    #: run for it is a twentieth of a small execution.
    caller_is_not_asked: bool = False
    #: False when nobody will be shown the execution: what its steps touched and events are then not reported, and who
    #: else could have stepped need not be kept.
    reports: bool = True
    #: How many passes in a row system tasks and callbacks may have; the step limit, or 10,000, when None.
    pass_limit: int | None = None
    #: Collects where in the source each step ran, and each access was made; None: nobody wants to know.
    places: Places | None = None


def checked_job(program: object, policy: object, step_limit: object) -> Job:
    """Give the job for arguments that nobody has looked at yet.

    Raises:
        DefinitionRefused: one of them is not what it must be.
    """
    if not callable(program):
        raise DefinitionRefused("a program", "an async function without arguments", program)
    if isinstance(policy, type) or not (
        callable(getattr(policy, "start", None)) and callable(getattr(policy, "choose", None))
    ):
        raise DefinitionRefused("a policy", "an object with start(info) and choose(enabled, step)", policy)
    if not isinstance(step_limit, int) or isinstance(step_limit, bool) or step_limit < 1:
        raise DefinitionRefused("step_limit", "a number of steps, 1 or more", step_limit)
    return Job(program, policy, step_limit)  # type: ignore[arg-type]


#: Yields jobs, is sent executions, returns the answer.
Driver = Generator[Job, Execution, T]


def simulate(driver: Driver[T]) -> T:
    """Do the jobs of `driver` until it returns.

    Raises:
        UnsupportedTrio: Trio's internals are not those this was written for.
        NotSimulated: a Trio loop is running in this thread.
        KeyboardInterrupt: Ctrl-C; the execution is ended first.

    What the driver raises, and what a policy raises once the driver lets it pass, is raised as it is.
    """
    if is_host_of_guest():
        raise NotSimulated(
            "start in the thread of a Trio run in guest mode",
            "call toolrt.sim before that run begins or after it has ended, or in a process of its own",
        )
    if trio.lowlevel.in_trio_run():
        raise NotSimulated(
            "start another simulation, or be simulated from inside a running Trio loop",
            "call toolrt.sim from a sync test or function (def, not async def)",
        )
    with _turn:
        answer: T = _Host(driver).run()
    return answer


def current_scheduler() -> Scheduler | None:
    """Give the execution this thread is in, if it is in one."""
    if not _current:
        return None
    host = _current[-1]
    return host.scheduler if host.seam is not None and host.seam.is_current() else None


class _Host:
    """The Trio runs of one `simulate`, one after the other."""

    def __init__(self, driver: Driver[Any]) -> None:
        self._driver = driver
        self._job: Job | None = None
        self._answer: outcome.Outcome[Any] | None = None
        self._clock = VirtualClock(self._rest)
        self._reports = Reports()
        self.seam: Seam | None = None
        self.scheduler: Scheduler | None = None
        # The harness's task, and the nursery in which it has programs begin.
        self._main: Task | None = None
        self._nursery: trio.Nursery | None = None
        # Who observed before the execution, and whether garbage was collected.
        self._observed_by: tuple[probe.Sink | None, bool] = (None, False)
        self._collecting = False
        # The task that closes async generators, and the passes it may still take.
        self._closer: Task | None = None
        self._closing_left = 0

    def run(self) -> Any:
        # The driver is asked for its first job before anything is replaced: it may refuse its arguments.
        self._advance(None)
        while self._answer is None:
            check_supported()
            _current.append(self)
            try:
                # Even when Trio itself fails, whoever observed before observes again.
                with (
                    controlled(self._tick, lambda: self.seam),
                    self._reports.confined(),
                    probe.observed_by(probe.sink, inline=probe.threads_inline),
                ):
                    trio.run(self._harness, clock=self._clock)
            except trio.TrioInternalError as error:
                self._trio_failed(error)
            finally:
                _current.pop()
                self.seam = self.scheduler = None
        return self._answer.unwrap()

    def _trio_failed(self, error: trio.TrioInternalError) -> None:
        """Take a failure of Trio's own loop for the error of the execution that caused it, and go on without it."""
        scheduler, job = self.scheduler, self._job
        if scheduler is None or job is None or self.seam is None:
            raise error
        scheduler.fail(error.__cause__ or error)
        self.seam.bury()
        self._advance(_result(job, scheduler))

    @trio.lowlevel.disable_ki_protection
    def _advance(self, result: Execution | BaseException | None) -> None:
        """Give the driver what came of its job, and take the next one or its answer."""
        try:
            if isinstance(result, BaseException):
                self._job = self._driver.throw(result)
            else:
                # None begins it.
                self._job = self._driver.send(result)  # type: ignore[arg-type]
        except StopIteration as stop:
            self._answer = outcome.Value(stop.value)
        except BaseException as error:  # noqa: ASYNC103
            self._answer = outcome.Error(error)

    def _tick(self, batch: list[Task]) -> bool:
        seam = self.seam
        if seam is None or not seam.is_current():
            return False
        if self.scheduler is not None:
            self.scheduler.tick(batch)
            if self.scheduler.left_nothing:
                self._go_on(seam, batch)
        elif self._closer is not None:
            self._closing_left -= 1
            if self._closing_left < 0:
                self._stop_closing(seam)
                batch[:] = [task for task in batch if task in seam.tasks]
        return True

    def _rest(self) -> bool:
        if self.scheduler is not None:
            return True
        if self.seam is not None:
            # An async generator that is being closed may sleep behind a shield.
            deadline = self.seam.next_deadline()
            if deadline < inf:
                self._clock.now = max(self._clock.now, deadline)
                return True
            if self._closer is not None:
                self._stop_closing(self.seam)
                return True
        return False

    async def _close_async_generators(self, seam: Seam, nursery: trio.Nursery) -> bool:
        """Close what the execution left half iterated; say whether that came to an end by itself."""
        harness = trio.lowlevel.current_task()
        ended = False

        async def close() -> None:
            nonlocal ended
            self._closer = trio.lowlevel.current_task()
            try:
                await seam.close_async_generators()
                ended = True
            finally:
                self._closer = None
                seam.wake(harness)

        self._closing_left = _PASSES_FOR_GENERATORS
        nursery.start_soon(close)
        await trio.lowlevel.wait_task_rescheduled(lambda _: Abort.FAILED)
        return ended

    def _stop_closing(self, seam: Seam) -> None:
        """End by force a generator that never stops closing: its task wakes the harness on its way out."""
        closer = self._closer
        assert closer is not None
        seam.kill(closer)

    @trio.lowlevel.enable_ki_protection
    async def _harness(self) -> None:
        """Do jobs until the driver has answered or the Trio run is spoiled."""
        self.seam = seam = seam_of_this_run()
        self._main = harness = trio.lowlevel.current_task()
        fit = True
        while fit and self._answer is None:
            # One nursery serves many executions; one that was given up was cancelled with its nursery.
            left = False
            try:
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    with trio.CancelScope(shield=True):
                        fresh = True
                        while fit and fresh and self._answer is None:
                            fit, fresh = await self._execute(seam, harness, nursery)
                    left = True
            except BaseExceptionGroup:
                # A task that a program had put into this nursery, its own task's, failed; that has ended the program.
                if not left:
                    raise

    @trio.lowlevel.enable_ki_protection
    async def _execute(self, seam: Seam, harness: Task, nursery: trio.Nursery) -> tuple[bool, bool]:
        """Do jobs up to one that leaves something; say whether the Trio run, and the nursery, can be used again."""
        if not self._begin(seam, harness, nursery):
            return True, True
        try:
            scheduler = await self._until_woken()
            if scheduler is None:
                return True, True
            if seam.callbacks or seam.callbacks_once:
                await _until_called(seam)
            self.scheduler = None
            if seam.has_async_generators() and not await self._close_async_generators(seam, nursery):
                scheduler.spoiled = True
        finally:
            self._restore()
            self._let_garbage_be_collected()
        if seam.strangers():
            # System tasks that the program spawned have no nursery that would have ended them.
            seam.kill_strangers()
            scheduler.spoiled = True
        seam.sweep()
        self._hand_over(seam, _result(self._job, scheduler))
        return not scheduler.spoiled, not nursery.cancel_scope.cancel_called

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
        while self._answer is None:
            job = self._job
            assert job is not None
            self._clock.now = 0.0
            steps: list[RawStep] = []
            info = RunInfo(job.index, job.step_limit, steps)
            things = self._reports.new_things() if job.reports else Things({}, [])
            try:
                job.policy.start(info)
                self._reports.begin(things if job.reports else None)
                if hasattr(job.policy, "attach"):
                    self._reports.imply_too()
                if job.places is not None:
                    job.places.collect_from(things, steps)
                scheduler = Scheduler(
                    seam,
                    self._clock,
                    job.program,
                    job.policy,
                    info,
                    steps,
                    nursery,
                    harness,
                    things,
                    job.pass_limit,
                    job.reports,
                )
            except BaseException as error:  # noqa: ASYNC103
                self._hand_over(seam, error)
                continue  # noqa: ASYNC104
            self.scheduler = scheduler
            self._observed_by = probe.sink, probe.threads_inline
            probe.sink, probe.threads_inline = scheduler if job.reports else None, True
            probe.implied = scheduler.imply if job.reports and hasattr(job.policy, "attach") else None
            self._collecting = self._collecting or gc.isenabled()
            gc.disable()
            seam.spawn(scheduler.root, nursery, "main", harness)
            return True
        return False

    def _restore(self) -> None:
        """Let whoever observed before observe again."""
        self.scheduler = self._reports.things = probe.implied = None
        probe.sink, probe.threads_inline = self._observed_by

    def _let_garbage_be_collected(self) -> None:
        if self._collecting:
            self._collecting = False
            gc.enable()

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
            steps += len(scheduler.steps)
            self._restore()
            seam.sweep()
            self._hand_over(seam, _result(self._job, scheduler))
            if not self._begin(seam, harness, nursery):
                self._let_garbage_be_collected()
                seam.wake(harness)
            elif steps < _STEPS_BETWEEN_VISITS:
                self.scheduler.tick(batch)

    def _hand_over(self, seam: Seam, result: Execution | BaseException) -> None:
        if self._job is not None and self._job.caller_is_not_asked:
            self._advance(result)
        else:
            outside_run(seam, lambda: self._advance(result))


@trio.lowlevel.enable_ki_protection
async def _until_called(seam: Seam) -> None:
    """Let Trio's loop call the callbacks that are left; those that never end are dropped by `Seam.sweep`."""
    for _ in range(_PASSES_FOR_CALLBACKS):
        if not seam.callbacks and not seam.callbacks_once:
            break
        await trio.lowlevel.cancel_shielded_checkpoint()


def _result(job: Job | None, scheduler: Scheduler) -> Execution | BaseException:
    """Give the execution, or what has to be raised instead."""
    assert job is not None
    error = scheduler.error
    fault = scheduler.fault or (None if error is None else _interrupt_in(error))
    if fault is None and (finish := getattr(job.policy, "finish", None)) is not None:
        try:
            finish(len(scheduler.steps))
        except BaseException as raised:  # noqa: ASYNC103
            fault = raised
    if fault is not None:
        return fault
    return Execution(scheduler.value, error, scheduler.steps, scheduler.events, isinstance(error, StepLimit), job.index)


def _interrupt_in(error: BaseException) -> BaseException | None:
    """Give the Ctrl-C that ended the program, also when a nursery has wrapped it."""
    if isinstance(error, KeyboardInterrupt):
        return error
    if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt) is not None:
        interrupt = KeyboardInterrupt()
        interrupt.__cause__ = error
        return interrupt
    return None

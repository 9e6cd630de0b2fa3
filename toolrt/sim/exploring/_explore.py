"""Runs one schedule, replays one, or explores many."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from toolrt.errors import DefinitionRefused, ReplayDiverged
from toolrt.sim._schedule import Schedule
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._host import bounded, execute, simulate
from toolrt.sim.engine._job import DEFAULT_STEP_LIMIT, Job, check_program, checked_job
from toolrt.sim.engine._source_lines import SourceLines
from toolrt.sim.exploring._checkpoint import Checkpoint
from toolrt.sim.exploring._conclusion import report_of
from toolrt.sim.exploring._divided import Divided
from toolrt.sim.exploring._executors import JobsArgument, checked_workers
from toolrt.sim.exploring._judge import Check
from toolrt.sim.exploring._outcomes import with_outcomes
from toolrt.sim.exploring._program import ExploredProgram
from toolrt.sim.exploring._progress import Budget, ExplorationProgress, checked_seconds
from toolrt.sim.exploring._repeats import step_in_words, told_by
from toolrt.sim.exploring._report import QUICK, Report
from toolrt.sim.exploring._sequence import exploration
from toolrt.sim.exploring._temporal import needs_one_process, observing, together
from toolrt.sim.exploring._told import tell
from toolrt.sim.policies import Fifo, Policy, Replay
from toolrt.sim.programs._actors import DEFAULT_CLOCK_MOVES, actors_of
from toolrt.sim.programs.given._constraints import Constraint
from toolrt.sim.programs.given._weaving import world_of
from toolrt.sim.programs.tracking._tracking import Track, active, tracking_of
from toolrt.sim.strategies import Portfolio, Shared, Strategy

Program = Callable[[], Awaitable[Any]]

# A replay lets system tasks and callbacks have so many passes between two steps of its schedule.
_REPLAY_PASS_LIMIT = 1_000_000


def run(
    program: Program,
    policy: Policy | None = None,
    *,
    step_limit: int = DEFAULT_STEP_LIMIT,
    cancel_at: str | None = None,
    crash_at: str | None = None,
    clock: str | None = None,
    clock_moves: int = DEFAULT_CLOCK_MOVES,
    order: str = "any",
    track: Track = False,
    details: bool = False,
    seconds: float | None = None,
    given: Sequence[Constraint] | None = None,
) -> Execution:
    """Run `program` once, with a virtual clock, under the choices of `policy`.

    Args:
        program: an async function without arguments; any Trio program that needs no thread, socket or subprocess.
        policy: picks the next task at every step; `Fifo()` when None.
        step_limit: the number of steps after which it is stopped, 1 or more.
        cancel_at: None, or "any": the program runs in a cancel scope that the policy may cancel before any step.
            What is cancelled so has the value ``CANCELLED``.  Or the name of a `scope`, which it may cancel.
        crash_at: None, or "any": the program may crash before any step, and starts again with what `durable` kept.
        clock: None: time moves when nothing can run, and deadlines of one instant come together, before any task steps;
            "explored": the policy may also move it to the next deadline; "real": deadlines of one instant come one by
            one, as on a real clock, and the policy decides in which order and after which steps.
        clock_moves: how often, 1 or more.
        order: "any": any task that can run may step next; "trio": each of them once per pass, in any order within it,
            as Trio's scheduler has them.
        track: as `explore` takes it.
        details: True: keep in the trace's notes the source line of each step and access, and what each `Cell` held,
            for `Execution.show`.  It takes several times as long.
        seconds: wall seconds after which it is ended, wherever it stands, above 0; None is no limit.  Its error is then
            a `toolrt.errors.StuckStep`, which names the line.
        given: as `explore` takes it.

    Returns:
        The execution.  What the program raised, a deadlock and the step limit are its `error`.

    Raises:
        DefinitionRefused: an argument is not what it must be; nothing was run.
        NotSimulated: called inside a running Trio loop.
        UnsupportedTrio: the installed Trio's internals are not those the simulator knows.
        KeyboardInterrupt: Ctrl-C, or the program raised it.

    What a policy raises is raised as it is.

    Checkpoint: never (it is not async).

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def program():
        ...     await trio.sleep(3600)
        ...     return trio.current_time()
        >>> sim.run(program).value
        3600.0
    """
    actors = actors_of(cancel_at, crash_at, clock, clock_moves, order)
    task = ExploredProgram(program, None, step_limit, actors, tracking_of(program, track), world_of(program, given))
    job = checked_job(task.bound(), Fifo() if policy is None else policy, step_limit)
    with bounded(checked_seconds(seconds)):
        return _executed(job, details)


def _executed(job: Job, details: bool) -> Execution:
    """Do one job."""
    if details:
        job.places = SourceLines()
    execution = execute(job)
    if job.places is not None:
        execution._notes = tell(job.places, execution).notes()
    return execution


def replay(
    program: Program,
    schedule: Schedule | str,
    *,
    cancel_at: str | None = None,
    crash_at: str | None = None,
    clock: str | None = None,
    clock_moves: int = DEFAULT_CLOCK_MOVES,
    order: str = "any",
    track: Track = False,
    details: bool = False,
    given: Sequence[Constraint] | None = None,
) -> Execution:
    """Run `program` again exactly as `schedule` says.

    Args:
        program: the program the schedule was made with.
        schedule: a `Schedule`, its JSON, or its short form.
        cancel_at: what it was when the schedule was made.
        crash_at: the same.
        clock: the same.
        clock_moves: the same.
        order: the same.
        track: the same.
        details: as `run` takes it.
        given: what it was when the schedule was made.

    Returns:
        The execution; its `error` is the program's.

    Raises:
        DefinitionRefused: the schedule was made in the other order, or an argument is not what it must be.
        ReplayDiverged: the program offered something else than the schedule has; it is never guessed.
        ScheduleRefused: a text is neither form.

    And what `run` raises.
    """
    policy = Replay(schedule)
    wanted = policy.schedule
    # A schedule that the limit did not stop has to end by itself, wherever its limit was.
    limit = max(1, len(wanted)) if wanted.stopped else max(DEFAULT_STEP_LIMIT, len(wanted) + 1)
    actors = actors_of(cancel_at, crash_at, clock, clock_moves, order)
    task = ExploredProgram(program, None, limit, actors, tracking_of(program, track), world_of(program, given))
    job = checked_job(task.bound(), policy, limit)
    # What others did between the schedule's steps once came to an end.
    job.pass_limit = _REPLAY_PASS_LIMIT
    execution = _executed(job, details)
    for before, after in zip(wanted.steps, execution.schedule.steps, strict=True):
        # The short form does not say what was touched, nor when.
        if before.enabled and told_by(before) != told_by(after):
            raise ReplayDiverged(before.index, step_in_words(before), step_in_words(after))
    if wanted.stopped != execution.schedule.stopped:
        raise ReplayDiverged(len(wanted), "the step limit", "its end")
    return execution


def explore(
    program: Program,
    strategy: Strategy | None = None,
    check: Check | None = None,
    max_executions: int | None = None,
    jobs: JobsArgument = 1,
    *,
    step_limit: int = DEFAULT_STEP_LIMIT,
    cancel_at: str | None = None,
    crash_at: str | None = None,
    clock: str | None = None,
    clock_moves: int = DEFAULT_CLOCK_MOVES,
    order: str = "any",
    track: Track = False,
    seconds: float | None = None,
    progress: Callable[[ExplorationProgress], object] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    made_from: str = "",
    outcomes: Iterable[Any] | None = None,
    given: Sequence[Constraint] | None = None,
) -> Report:
    """Run `program` under many schedules and judge each execution.

    Args:
        program: an async function without arguments.
        strategy: picks the executions; None is ``Portfolio(1000)``.
        check: is called with each execution, outside Trio.  It complains by AssertionError, by returning False, a
            text that says what is wrong, or violations; ``None`` and ``[]`` are no complaint, but an execution with an
            error is then a failure; exactly ``True`` says that all is well.  The first time that it reads a trace or
            schedule, the program may run once more for it.  None: an execution fails when it has an error, and what
            comes out of it is not judged.  Where a check has an attribute `leaves_out`, a tuple of texts, the report
            says that it leaves those out.
        max_executions: stop after so many, 1 or more; None is as many as the strategy gives.  Some of them are run
            twice, which `Report.repeated` counts and this does not.
        jobs: the number of processes, 1 or more; or a `concurrent.futures.Executor`; or a `dask.distributed.Client`,
            whose cluster then runs it.  With more than one process the strategy is `Exhaustive`, `Bounded`, `DPOR`,
            `Portfolio`, or `Random` with a policy of toolrt's; what program and check write into memory stays in the
            process that ran them.  To reach other processes than forked ones, program and check are functions of a
            module that can be imported there, or what cloudpickle can send.
        step_limit: the number of steps after which an execution is stopped, 1 or more.
        cancel_at: None, or "any": each program runs in a cancel scope that the strategy may cancel before any step,
            and when it does is a choice like any other.  What is cancelled so has the value ``CANCELLED``.  Or the name
            of a `scope` in the program, which may be cancelled as long as it is open; one in each execution.
        crash_at: None, or "any": each program may crash before any step, once, and starts again with what `durable`
            kept; when it does is a choice like any other.  Not together with `cancel_at`.
        clock: None: time moves when nothing can run, and deadlines of one instant come together, before any task steps;
            "explored": the strategy may also move it to the next deadline before any step; "real": deadlines of one
            instant come one by one, as on a real clock, in each order and after any step.
        clock_moves: how often it may in one execution, 1 or more.
        order: "any": any task that can run may step next, which is what Trio promises; "trio": each of them once per
            pass, in any order within it, which is what its scheduler does.
        track: which modules are rewritten, for as long as this runs, so that plain objects report what steps touch:
            True is the program's own module, else names of modules or packages.  False: none, but what `tracked` has
            rewritten.  The claim names them.
        seconds: wall seconds after which no further execution is begun, above 0; None is no limit.  An execution that
            goes on for as long again, or for 2 seconds if that is more, or 10 if that is less, is ended wherever it
            stands: a step that never ends, too.  Then the report is INCONCLUSIVE and names the line.
        progress: is called twice a second or so with an `ExplorationProgress`, outside Trio, and once at the end.
        checkpoint: a file in which the exploration is kept every 5 seconds and when it ends early; when the file is
            there, the exploration continues from it.  It is removed when all was run.  For the strategies that `jobs`
            is for.
        made_from: what the program works on, where its name does not say it: a digest of its input, a version.  A
            checkpoint of the same program made from something else is refused.
        outcomes: every outcome that the program must have, and no other: values that it returns, and types of errors
            or their names.  A list where a value cannot be hashed.  Another outcome is a failure.  One that never comes
            is in `Report.missing`: the verdict is FAIL when the whole space was run, else INCONCLUSIVE.  An error that
            is expected here is no failure.  None: outcomes are counted, and not compared.
        given: constraints on schedules, such as `atomic`: the program is explored as if it had a lock there.  Its file
            stays as it is.  The claim names them.  With one job.

    Returns:
        The report.  An execution that the step limit ended while a deadline was pending, or while a task that
        could run was never given a turn, decides nothing: the verdict is then INCONCLUSIVE, unless another one
        failed.  So it is when the strategy set out to run a whole space and was stopped before.  The part of a
        worker that was lost is run again; only the third loss of one part counts, and makes it INCONCLUSIVE, too.
        `Report.unfinished` and `Report.reasons` say why.  With several jobs or a checkpoint Ctrl-C ends it early, and
        the report is that of what was run.

    Raises:
        DefinitionRefused: an argument is not what it must be; nothing was run.
        InputRefused: the checkpoint is another exploration's, or none; it is left as it was.

    And what `run` raises; what the check raises, other than AssertionError, is raised as it is.  Where an execution
    ended with an error, and so has no value, a TypeError or AttributeError of the check is not: it fails by its error.

    Checkpoint: never (it is not async).
    """
    actors = actors_of(cancel_at, crash_at, clock, clock_moves, order)
    found_by = partial(explore, program, strategy, check, max_executions, step_limit=step_limit, cancel_at=cancel_at)
    found_by = partial(found_by, crash_at=crash_at, clock=clock, clock_moves=clock_moves, order=order, track=track)

    def in_a_world(more: Sequence[Constraint]) -> Report:
        """Explore the same under `more` constraints."""
        return found_by(seconds=seconds, outcomes=outcomes, given=[*(given or ()), *more])

    checked_workers(jobs)
    checked_seconds(seconds)
    if progress is not None and not callable(progress):
        raise DefinitionRefused("progress", "a function of an ExplorationProgress, or None", progress)
    if max_executions is not None and (
        not isinstance(max_executions, int) or isinstance(max_executions, bool) or max_executions < 1
    ):
        raise DefinitionRefused("max_executions", "a number of executions, 1 or more, or None", max_executions)
    check = together(check)
    if check is not None and not callable(check):
        raise DefinitionRefused("check", "a function of an execution, or None", check)
    leaves_out = getattr(check, "leaves_out", ())
    if not isinstance(leaves_out, tuple) or not all(isinstance(what, str) for what in leaves_out):
        raise DefinitionRefused("check.leaves_out", "a tuple of texts", leaves_out)
    if not isinstance(made_from, str):
        raise DefinitionRefused("made_from", "a string", made_from)
    if strategy is None:
        strategy = Portfolio()
    if isinstance(strategy, type) or not callable(getattr(strategy, "begin", None)):
        raise DefinitionRefused(
            "strategy", "a strategy, such as sim.DPOR() or sim.Random(sim.RandomWalk(seed=1), 500)", strategy
        )
    # Refuse a bad program or limit before anything runs, also when the strategy gives nothing.
    check_program(program, step_limit)
    if outcomes is not None:
        check = with_outcomes(check, outcomes)
    program = observing(program, check)
    if needs_one_process(check) and not (jobs == 1 and checkpoint is None):
        raise DefinitionRefused("jobs with sim.always and the like", "1, without a checkpoint", jobs)
    if given and not (jobs == 1 and checkpoint is None):
        raise DefinitionRefused("jobs with given", "1, without a checkpoint", jobs)
    tracking, world = tracking_of(program, track), world_of(program, given)
    task = ExploredProgram(program, check, step_limit, actors, tracking, world)
    bound = task.bound()
    budget, began = Budget(max_executions, seconds), time.perf_counter()
    search = strategy.begin()
    if jobs == 1 and checkpoint is None:
        with nullcontext() if world is None else world.active(), active(tracking), bounded(budget.last_second()):
            seen = simulate(exploration(task, bound, search, budget, progress))
        report = report_of(task, search, seen)
        took = time.perf_counter() - began
        for failure in report.failures:
            failure.found_by = report, in_a_world
            failure.may_explore = took <= QUICK
        return report
    if not isinstance(search, Shared) or not search.can_be_divided:
        raise DefinitionRefused(
            "strategy with jobs or checkpoint",
            "Exhaustive, Bounded, DPOR, Portfolio, or Random with a policy of toolrt's own (another may depend on "
            "anything, so it cannot be divided)",
            strategy,
        )
    kept = None if checkpoint is None else Checkpoint(checkpoint, _whose(task, strategy, made_from))
    search.divide()
    divided = Divided(task, search, jobs, budget, progress, kept)
    with active(tracking):
        seen = divided.run()
    return report_of(task, divided.search, seen)


def _whose(task: ExploredProgram, strategy: Strategy, made_from: str) -> str:
    """Say which exploration this is, in words that are the same in every process."""
    name = getattr(task.program, "__qualname__", type(task.program).__qualname__)
    module = getattr(task.program, "__module__", type(task.program).__module__)
    beside = task.actors
    actors = f"cancel_at={beside.cancel_at}, clock={beside.clock}, clock_moves={beside.clock_moves}"
    if beside.order != "any":
        actors += f", order={beside.order}"
    made = f" made from {made_from}" if made_from else ""
    made += "" if task.tracking is None else f" with track={task.tracking}"
    return f"{strategy!r} of {module}.{name}{made}, step_limit={task.step_limit}, {actors}"

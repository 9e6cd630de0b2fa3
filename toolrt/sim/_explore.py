"""Run one schedule, replay one, or explore many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import zip_longest
from typing import Any

from toolrt.errors import DefinitionRefused, ReplayDiverged
from toolrt.sim._actors import arguments_for, enters_scope, with_actors, with_clock
from toolrt.sim._cell import OUTSIDE
from toolrt.sim._execution import Execution
from toolrt.sim._host import DEFAULT_STEP_LIMIT, Driver, Job, checked_job, simulate
from toolrt.sim._judge import Check, judge
from toolrt.sim._report import Failure, Report, Verdict
from toolrt.sim._schedule import Schedule
from toolrt.sim.policies import Choices, Fifo, Policy, Replay
from toolrt.sim.strategies import DPOR, Portfolio, Redundant, Strategy, uncontrolled
from toolrt.trace import Access, Step, stable_text

__all__ = ["explore", "replay", "run"]

Program = Callable[[], Awaitable[Any]]

# A report keeps this many failing executions; they are counted all the same.
_FAILURES_KEPT = 100

#: So often the clock may move early, unless the caller says otherwise: most bugs need one deadline, or two in a row.
DEFAULT_CLOCK_MOVES = 2

# A replay lets system tasks and callbacks have so many passes between two steps of its schedule.
_REPLAY_PASS_LIMIT = 1_000_000


def run(
    program: Program,
    policy: Policy | None = None,
    *,
    step_limit: int = DEFAULT_STEP_LIMIT,
    cancel_at: str | None = None,
    clock: str | None = None,
    clock_moves: int = DEFAULT_CLOCK_MOVES,
) -> Execution:
    """Run `program` once, with a virtual clock, under the choices of `policy`.

    Args:
        program: an async function without arguments; any Trio program that needs no thread, socket or subprocess.
        policy: who picks the next task at every step; `Fifo()` when None.
        step_limit: the number of steps after which it is stopped, 1 or more.
        cancel_at: None, or "any": the program runs in a cancel scope that the policy may cancel before any step.
            What is cancelled so has the value ``CANCELLED``.  Or the name of a `scope`, which it may cancel.
        clock: None: time moves when nothing can run; "explored": the policy may also move it to the next deadline.
        clock_moves: how often, 1 or more.

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
    program = with_actors(with_clock(program, clock, clock_moves), cancel_at)
    job = checked_job(program, Fifo() if policy is None else policy, step_limit)

    def driver() -> Driver[Execution]:
        return (yield job)

    return simulate(driver())


def replay(
    program: Program,
    schedule: Schedule | str,
    *,
    cancel_at: str | None = None,
    clock: str | None = None,
    clock_moves: int = DEFAULT_CLOCK_MOVES,
) -> Execution:
    """Run `program` again exactly as `schedule` says.

    Args:
        program: the program the schedule was made with.
        schedule: a `Schedule`, its JSON, or its short form.
        cancel_at: what it was when the schedule was made.
        clock: the same.
        clock_moves: the same.

    Returns:
        The execution; its `error` is the program's.

    Raises:
        ReplayDiverged: the program offered something else than the schedule has; it is never guessed.
        ScheduleRefused: a text is neither form.

    And what `run` raises.
    """
    policy = Replay(schedule)
    wanted = policy.schedule
    # A schedule that was not stopped by the limit has to end of its own accord, wherever its limit was.
    limit = len(wanted) if wanted.stopped else max(DEFAULT_STEP_LIMIT, len(wanted) + 1)
    program = with_actors(with_clock(program, clock, clock_moves), cancel_at)
    job = checked_job(program, policy, max(1, limit))
    # What others did between the schedule's steps once came to an end.
    job.pass_limit = _REPLAY_PASS_LIMIT

    def driver() -> Driver[Execution]:
        return (yield job)

    execution = simulate(driver())
    for before, after in zip(wanted.steps, execution.schedule.steps, strict=True):
        # The short form does not say what was touched, nor when.
        if before.enabled and _told(before) != _told(after):
            raise ReplayDiverged(before.index, _in_words(before), _in_words(after))
    if wanted.stopped != execution.schedule.stopped:
        raise ReplayDiverged(len(wanted), "the step limit", "its end")
    return execution


def _told(step: Step) -> tuple[float, tuple[Access, ...]]:
    # The number of a nameless cell made outside the execution means nothing in another process.
    named = tuple(access for access in step.accesses if access.resource[:2] != ("cell", OUTSIDE))
    return step.time, named


def _in_words(step: Step) -> str:
    time, accesses = _told(step)
    return f"{step.task} at {time:g} s ({', '.join(map(str, accesses)) or 'touches nothing'})"


def explore(
    program: Program,
    strategy: Strategy | None = None,
    check: Check | None = None,
    max_executions: int | None = None,
    jobs: int = 1,
    *,
    step_limit: int = DEFAULT_STEP_LIMIT,
    cancel_at: str | None = None,
    clock: str | None = None,
    clock_moves: int = DEFAULT_CLOCK_MOVES,
) -> Report:
    """Run `program` under many schedules and judge each execution.

    Args:
        program: an async function without arguments.
        strategy: picks the executions; None is ``Portfolio(1000)``.
        check: is called with each execution, outside Trio.  It complains by AssertionError, by returning False or
            violations; ``None`` and ``[]`` are no complaint, but an execution with an error is then a failure;
            exactly ``True`` says that all is well.  None: an execution fails when it has an error.
        max_executions: stop after so many, 1 or more; None is as many as the strategy gives.
        jobs: the number of processes; must be 1.
        step_limit: the number of steps after which an execution is stopped, 1 or more.
        cancel_at: None, or "any": each program runs in a cancel scope that the strategy may cancel before any step,
            and when it does is a choice like any other.  What is cancelled so has the value ``CANCELLED``.  Or the name
            of a `scope` in the program, which may be cancelled as long as it is open; one in each execution.  Not for
            ``DPOR``.
        clock: None: time moves when nothing can run; "explored": the strategy may also move it to the next deadline
            before any step.  Not for ``DPOR``.
        clock_moves: how often it may in one execution, 1 or more.

    Returns:
        The report.  An execution that the step limit ended while a deadline was pending, or while a task that
        could run was never given a turn, decides nothing: the verdict is then INCONCLUSIVE, unless another one
        failed.  So it is when the strategy set out to run a whole space and was stopped before.

    Raises:
        DefinitionRefused: an argument is not what it must be; nothing was run.

    And what `run` raises; what the check raises, other than AssertionError, is raised as it is.

    Checkpoint: never (it is not async).
    """
    if jobs != 1 or isinstance(jobs, bool):
        raise DefinitionRefused("jobs", "1 (one process; run several explorations with different seeds instead)", jobs)
    if max_executions is not None and (
        not isinstance(max_executions, int) or isinstance(max_executions, bool) or max_executions < 1
    ):
        raise DefinitionRefused("max_executions", "a number of executions, 1 or more, or None", max_executions)
    if check is not None and not callable(check):
        raise DefinitionRefused("check", "a function of an execution, or None", check)
    if strategy is None:
        strategy = Portfolio()
    if isinstance(strategy, type) or not callable(getattr(strategy, "begin", None)):
        raise DefinitionRefused("strategy", "a strategy, such as Random(RandomWalk(seed=1), 500)", strategy)
    # Refuse a bad program or limit before anything runs, also when the strategy gives nothing.
    checked_job(program, Fifo(), step_limit)
    if (cancel_at is not None or clock is not None) and isinstance(strategy, DPOR):
        raise DefinitionRefused("strategy with cancel_at or clock", "Exhaustive, Bounded or a sample", strategy)
    arguments = arguments_for(cancel_at, clock, clock_moves)
    program = with_clock(program, clock, clock_moves)
    program = with_actors(program, cancel_at)
    report = simulate(_exploration(program, strategy, check, max_executions, step_limit, arguments))
    named = cancel_at not in (None, "any")
    if named and report.verdict is Verdict.PASS and not enters_scope(program, str(cancel_at), step_limit):
        # A name that is nobody's is cancelled nowhere.
        report.verdict, report.complete = Verdict.INCONCLUSIVE, False
        report.unfinished = f"the simplest schedule enters no scope named {cancel_at!r}"
    with_ = [f"cancel_at={cancel_at}"] if cancel_at is not None else []
    if clock is not None:
        with_.append(f"clock_moves<={clock_moves}")
    if with_:
        report.claim += f" with {', '.join(with_)}"
    return report


def _exploration(
    program: Program,
    strategy: Strategy,
    check: Check | None,
    max_executions: int | None,
    step_limit: int,
    arguments: str,
) -> Driver[Report]:
    search = strategy.begin()
    executions = failed = undecided = 0
    outcomes: dict[Any, int] = {}
    schedules: set[tuple[int, ...] | bytes] = set()
    failures: list[Failure] = []
    first: Execution | None = None
    alone = check is None and search.asks_nobody
    while max_executions is None or executions < max_executions:
        policy = search.policy()
        if policy is None:
            break
        try:
            execution = yield Job(program, policy, step_limit, executions, alone)
        except Redundant:
            continue
        search.learn(execution)
        first = first or execution
        executions += 1
        schedules.add(_fingerprint(execution.choices))
        key = execution.outcome
        try:
            outcomes[key] = outcomes.get(key, 0) + 1
        except TypeError:
            key = stable_text(key)
            outcomes[key] = outcomes.get(key, 0) + 1
        judgement = judge(execution, check)
        undecided += judgement.undecided
        failed += judgement.failed
        if judgement.failed and len(failures) < _FAILURES_KEPT:
            failures.append(Failure(program, check, step_limit, execution, judgement, arguments))
    unfinished, difference = search.unfinished(), None
    if first is not None and not (failed or undecided or unfinished):
        # A PASS says that schedules decide: so the first is run once more, after all the others.
        again = yield Job(program, Choices(first.choices), step_limit, 0, alone)
        difference = _difference(first, again)
    if failed:
        verdict = Verdict.FAIL
    elif undecided or unfinished or difference or not executions:
        verdict = Verdict.INCONCLUSIVE
    else:
        verdict = Verdict.PASS
    return Report(
        verdict=verdict,
        claim=f"uncontrolled(n={executions})" if difference else search.claim(executions, len(schedules)),
        executions=executions,
        distinct=len(schedules),
        complete=search.complete() and not difference,
        outcomes=outcomes,
        failed=failed,
        undecided=undecided,
        failures=failures,
        unfinished=unfinished or difference,
    )


def _difference(first: Execution, again: Execution) -> str | None:
    """Say where two executions of one schedule differ, in what could run or in what was touched; None: nowhere."""
    for step, (before, after) in enumerate(zip_longest(first.schedule.steps, again.schedule.steps)):
        if before is None or after is None or _offered(before) != _offered(after):
            return uncontrolled(step, _offered(before), _offered(after))
        if _told(before) != _told(after):
            return uncontrolled(step, _in_words(before), _in_words(after))
    if type(first.error) is not type(again.error):
        return uncontrolled(len(first.choices), _ended(first), _ended(again))
    return None


def _offered(step: Step | None) -> str:
    return "its end" if step is None else ", ".join(step.enabled)


def _ended(execution: Execution) -> str:
    return "a return" if execution.error is None else type(execution.error).__name__


def _fingerprint(choices: tuple[int, ...]) -> tuple[int, ...] | bytes:
    """Give what tells schedules of one program apart, in less memory when the choices are small."""
    try:
        return bytes(choices)
    except ValueError:
        return choices

"""One async test under many schedules: what the marker and the decorator both do.

Rules.
    1. First the schedules that failed before, then the strategy's; the first execution that fails ends it.
    2. What fails is raised as the program raised it, outside of Trio, with the verdict, the minimal schedule and the
       way to run it again as a note; so ``xfail(raises=...)``, a debugger and Hypothesis see the error itself.
    3. Skipping, exiting and what Hypothesis raises to steer itself end the exploration and mean what they always mean;
       what a simulation cannot control (a thread, a socket) is raised as it is: no schedule brought it about.
    4. A search that was not finished, or decided nothing, fails too: it is no pass.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
import unittest
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from types import FunctionType, TracebackType
from typing import Any, TypeVar, overload

import attrs
import hypothesis
import pytest

from toolrt import sim
from toolrt.errors import DefinitionRefused, NotSimulated, RealTimeout, ReplayDiverged, ScheduleRefused, error_text
from toolrt.sim.engine._host import bounded
from toolrt.sim.engine._record import THREADS_AT_ACCESSES
from toolrt.sim.exploring._progress import Budget
from toolrt.sim.programs.tracking._sources import new_code
from toolrt.testing._given import CONTROL, Example, current_example, fresh, replayable
from toolrt.testing._on_plain_trio import NOT_ON_PLAIN_TRIO
from toolrt.testing._pages import kept
from toolrt.testing._saved import SavedSchedules, ScheduleDatabase
from toolrt.testing._strategy import chosen
from toolrt.testing._trial import refuse_unsimulated

Program = Callable[[], Awaitable[Any]]
Check = Callable[[sim.Execution], Any]
Test = TypeVar("Test", bound=Callable[..., Awaitable[Any]])

# What says that a test shall not be judged.
SET_ASIDE = (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)


class Wrong(AssertionError):
    """The check complained of an execution that raised nothing."""


class NotShown(AssertionError):
    """No execution failed, or none by its order, and nothing was shown."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(text)
        #: The cause alone.
        self.why = why


@attrs.frozen
class ExplorationPlan:
    """How one test is explored."""

    #: A strategy, its name, or None for the default one.
    strategy: sim.Strategy | str | None = None
    #: How many executions, or None for as many as usual.
    executions: int | None = None
    #: What named strategies draw from.
    seed: int = 0
    #: What is asked about every execution; None: it fails when it raises.
    check: Check | None = None
    #: Every outcome that the test must have, and no other, as `sim.explore` takes them; None: they are not compared.
    outcomes: Collection[Any] | None = None
    #: The number of steps after which an execution is stopped; None: what `sim.explore` has.
    step_limit: int | None = None
    #: "any": the test is cancelled at any of its steps, too; a name: a `sim.scope` of that name is; None: neither.
    cancel_at: str | None = None
    #: "any": the test may crash before any step, and starts again with what `sim.durable` kept; None: it may not.
    crash_at: str | None = None
    #: "explored": time may move before any step at which a deadline is pending; None: when nothing can run; "real": so,
    #: and deadlines of one instant come one by one.
    clock: str | None = None
    #: How often it may, 1 or more; None: what `sim.explore` has.
    clock_moves: int | None = None
    #: "any": a task that can run may step next at any time; "trio": each once per pass, as Trio's loop has them.
    order: str = "any"
    #: How many processes share the executions, 1 or more; with more than one a failure does not end it early.
    jobs: int = 1
    #: Wall seconds after which no further execution is begun; None: no limit.
    seconds: float | None = None
    #: None or True: plain objects that code of the test's own module touches are seen; names: those of modules and
    #: packages; False: none.
    track: bool | str | Collection[str] | None = None
    #: A schedule: only this one is run.
    replay: str | None = None
    #: Whether a failure is told with what would mend it, and whether all is told of it.
    repairs: bool = False
    verbose: bool = False
    #: Whether the test did not ask for its tracking: a failure that comes with it only is none then.
    tracks_unasked: bool = False
    #: Says whether a failure is none of the test's, of a program that is explored as a mapping has it; None: all are.
    disowns: Callable[[sim.Failure, Program, Mapping[str, Any]], bool] | None = attrs.field(default=None, repr=False)

    @property
    def untracked(self) -> ExplorationPlan:
        """The same without tracking."""
        return attrs.evolve(self, track=[], tracks_unasked=False)

    @property
    def how(self) -> dict[str, Any]:
        """The other arguments of `sim.explore`."""
        limit = {} if self.step_limit is None else {"step_limit": self.step_limit}
        return {**self.actors, **limit, "outcomes": self.outcomes}

    @property
    def actors(self) -> dict[str, Any]:
        """What else may happen, as `sim.explore` and `sim.replay` take it."""
        moves = {} if self.clock_moves is None else {"clock_moves": self.clock_moves}
        track = {"track": self.track} if self.track else {}
        ends = {"cancel_at": self.cancel_at, "crash_at": self.crash_at}
        return {**ends, "clock": self.clock, "order": self.order, **moves, **track}


# What the plugin alone says.
_OF_THE_PLUGIN = ("replay", "verbose", "tracks_unasked", "disowns")

#: The arguments of `explored` and of the marker.
OPTIONS = tuple(name for name in attrs.fields_dict(ExplorationPlan) if name not in _OF_THE_PLUGIN)


def checked(plan: ExplorationPlan, is_given: bool) -> tuple[sim.Strategy, int | None]:
    """Give the strategy of `plan`, and the most executions it may take.

    Args:
        plan: the plan.
        is_given: whether Hypothesis picks the workload.

    Raises:
        DefinitionRefused: an option is not what it must be, or does not go with another; the test was not run.
    """
    strategy, most = chosen(plan.strategy, plan.executions, plan.seed)
    # `sim.explore` checks these.
    sim.run(_nothing, **plan.actors)
    if not isinstance(plan.jobs, int) or isinstance(plan.jobs, bool) or plan.jobs < 1:
        raise DefinitionRefused("jobs", "a number of processes, 1 or more", plan.jobs)
    if plan.jobs > 1 and is_given:
        # Each example would begin processes of its own, and what one draws the others do not know.
        expected = "1 (run whole tests side by side, as pytest-xdist does)"
        raise DefinitionRefused("jobs with @given", expected, plan.jobs)
    return strategy, most


async def _nothing() -> None:
    pass


def names_tracked(track: Any, test: Callable[..., Any]) -> Any:
    """Give the names that `track` says for `test`; what is no such word is left as it is."""
    if track is True:
        return [test.__module__]
    if track is None:
        return [test.__module__] if _can_be_tracked(test) else []
    return [track] if isinstance(track, str) else track or []


def _can_be_tracked(test: Callable[..., Any]) -> bool:
    """Say whether the test's own code is found by its module's name, and can be rewritten: else all that it does might
    be anything, and a search that finishes without tracking would not.
    """
    inner = inspect.unwrap(test)
    if not isinstance(inner, FunctionType):
        return False
    module = sys.modules.get(inner.__module__)
    return module is not None and vars(module) is inner.__globals__ and new_code(inner) is not None


def explore(
    program: Program,
    plan: ExplorationPlan,
    saved: SavedSchedules,
    again: Callable[[str], str],
    found: Callable[[sim.Report], object] = lambda report: None,
) -> sim.Report | None:
    """Explore `program`, and raise what is wrong with it.

    Args:
        program: an async function without arguments.
        plan: how.
        saved: the schedules that are tried first, and where one that fails is kept.
        again: gives the line that tells a person how to run a schedule again.
        found: is called with the report of each exploration, whatever its verdict.

    Returns:
        What passed; None when `plan.replay` is no schedule of this one of many examples.

    Raises:
        NotShown: no execution failed, and the verdict is not PASS; or `plan.replay` is no schedule of `program`.
        Wrong: the check complained.

    And what a failing execution raised.
    """
    __tracebackhide__ = True
    example = current_example()
    limit = Budget(None, plan.seconds).last_second()
    # A search may be followed by one without tracking, and a failure by its story.  What is then closed by force takes
    # time, too, and at twice the limit the process is ended.
    with bounded(None if limit is None else 1.25 * limit), nullcontext() if example is None else example.quiet():
        return _explore(program, plan, saved, again, found, example)


def _explore(
    program: Program,
    plan: ExplorationPlan,
    saved: SavedSchedules,
    again: Callable[[str], str],
    found: Callable[[sim.Report], object],
    example: Example | None,
) -> sim.Report | None:
    __tracebackhide__ = True
    if plan.replay is not None:
        # A schedule says itself in which order it was made.
        schedule = plan.replay
        plan = attrs.evolve(plan, order=sim.Schedule.of(schedule).order)
        report = _replayed(program, plan, schedule)
        if plan.tracks_unasked and (report is None or not report.failures):
            return _explore(program, plan.untracked, saved, again, found, example)
        if report is None:
            if example is not None:
                return None
            # It may be of an execution with something left real, which is left so once it is refused.
            for failure in sim.explore(program, sim.Random(sim.Fifo(), 1), **plan.how).failures:
                refuse_unsimulated(failure.error)
            why = "the schedule given by --explore-replay is none of this test"
            raise NotShown(f"{why}:\n    {schedule}", why)
        saved.fits(schedule)
        if report.failures:
            _fail(program, plan, report, saved, again, example)
        return report
    for schedule in saved.schedules:
        known = _replayed(program, plan, schedule) if _is_of(schedule, plan.order) else None
        if known is None:
            continue
        saved.fits(schedule)
        if known.failures:
            _fail(program, plan, known, saved, again, example)
    saved.tried()
    report = searched(program, plan, example)
    if plan.tracks_unasked and _is_of_tracking(program, plan, report, example):
        # Rewritten code did something else than the test's own: what it shows is not the test's.
        return _explore(program, plan.untracked, saved, again, found, example)
    found(report)
    if report.failures and report.verdict is sim.FAIL:
        _fail(program, plan, report, saved, again, example)
    if report.verdict is sim.FAIL:
        # An outcome that is expected never came.
        raise Wrong(str(report))
    if report.verdict is not sim.PASS:
        why = report.unfinished or next(iter(report.reasons), "no execution was run")
        # What decides nothing says itself what would.
        advice = "" if why in report.reasons else f" {_advice(why)}"
        raise NotShown(f"{report}\n\nAn exploration that shows nothing is no pass.{advice}", why)
    return report


def searched(program: Program, plan: ExplorationPlan, example: Example | None) -> sim.Report:
    """Explore; up to the first failure, unless processes share the executions."""
    strategy, most = checked(plan, example is not None)
    if plan.jobs > 1:
        return sim.explore(program, strategy, plan.check, most, plan.jobs, seconds=plan.seconds, **plan.how)
    search = _UntilFailure(strategy)
    began = time.perf_counter()
    report = sim.explore(program, search, plan.check, most, seconds=plan.seconds, **plan.how)
    if example is not None:
        example.spent(time.perf_counter() - began, search.slowest)
    return report


def _is_of_tracking(program: Program, plan: ExplorationPlan, report: sim.Report, example: Example | None) -> bool:
    """Say whether a failure or doubt comes with tracking only."""
    if report.failures:
        if THREADS_AT_ACCESSES in report.failures[0].execution.caveats:
            return False  # untracked threads hand over elsewhere, in none of these schedules
        same = _replayed(program, plan.untracked, report.failures[0].schedule.short)
        return same is None or not same.failures
    if not is_uncontrolled(report) or is_uncontrolled(searched(program, plan.untracked, example)):
        return False
    # What executions share may have changed for good meanwhile: the doubt has to come back.
    return is_uncontrolled(searched(program, plan, example))


# What an exploration says in which the same choices led to different things.
_UNCONTROLLED = "the simulator does not control"


def is_uncontrolled(report: sim.Report) -> bool:
    """Say whether the same choices led to different things."""
    return _UNCONTROLLED in (report.unfinished or "")


# What would decide an exploration that is unfinished for the reason with these words.
_ADVICE = {
    _UNCONTROLLED: "Every execution has to begin alike: what they share (a module-scoped fixture, a global, tmp_path) "
    "must not be changed by the test, and clocks, chance and the order of sets must decide nothing.",
    "ran beside the program's tasks": "A task of the program's own (start_soon in a nursery of its own) in place of a "
    "system task or callback can be explored.",
    "a random schedule": "What tasks share has to be seen (sim.Cell, sim.watch), or every order has to be run "
    '(strategy="exhaustive", strategy="portfolio").',
    "the step limit": "More steps (step_limit=...) decide it.",
    "could not end within": "See that line: nothing else was wrong.",
    "": "More executions (executions=..., --explore-executions), or a strategy that samples "
    '(strategy="portfolio"), decide it.',
}


def _advice(why: str) -> str:
    """Say what would decide an exploration that is unfinished for this reason."""
    return next(advice for words, advice in _ADVICE.items() if words in why)


def _is_of(schedule: str, order: str) -> bool:
    """Say whether a schedule that was kept is one of this order."""
    try:
        return sim.Schedule.of(schedule).order == order
    except ScheduleRefused:
        return False


def _replayed(program: Program, plan: ExplorationPlan, schedule: str) -> sim.Report | None:
    """Run one schedule; None when it is none of the program."""
    try:
        return sim.explore(program, sim.Random(sim.Replay(schedule), 1), plan.check, seconds=plan.seconds, **plan.how)
    except ReplayDiverged:
        return None


class _UntilFailure:
    """A strategy whose search ends with the first execution that fails, or that is not to be judged."""

    minds_failures = True

    def __init__(self, strategy: sim.Strategy) -> None:
        self._strategy = strategy
        self._is_over = False
        self._began = 0.0
        #: Wall seconds of the slowest execution.
        self.slowest = 0.0

    def begin(self) -> Any:
        """Begin the other strategy's search; what it says of itself comes out here."""
        self._search = self._strategy.begin()
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_search"], name)

    def policy(self) -> sim.Policy | None:
        """Give the next policy, as long as nothing has failed."""
        self._began = time.perf_counter()
        return None if self._is_over else self._search.policy()

    def learn(self, execution: sim.Execution) -> None:
        """Take in the time that an execution took, and what it raised."""
        self.slowest = max(self.slowest, time.perf_counter() - self._began)
        self._search.learn(execution)
        self._is_over |= execution.error is not None and _special(execution.error) is not None

    def judged(self, failed: bool) -> None:
        """Take in whether it has failed."""
        self._is_over |= failed
        if getattr(self._search, "minds_failures", False):
            self._search.judged(failed)


def _fail(
    program: Program,
    plan: ExplorationPlan,
    report: sim.Report,
    saved: SavedSchedules,
    again: Callable[[str], str],
    example: Example | None,
) -> None:
    """Raise the failure in `report`, with a text for people."""
    __tracebackhide__ = True
    failure = report.failures[0]
    if failure.error is not None and (special := _special(failure.error)) is not None:
        raise _bare(special)
    if example is not None and not example.is_final:
        # Hypothesis looks for a simpler workload: the schedule is made simpler once it has found that.
        raise _bare(failure.error) if failure.error is not None else Wrong("the check complained")
    how = {**plan.how, "seconds": plan.seconds}
    if plan.disowns is not None and plan.replay is None and plan.disowns(failure, program, how):
        assert failure.error is not None
        what, shown_by = error_text(failure.error).splitlines()[0], again(failure.schedule.short)
        raise NotShown(f"{NOT_ON_PLAIN_TRIO}: {what:.100}; {shown_by} shows it", NOT_ON_PLAIN_TRIO)
    failure.may_explore = False  # the search has ended with the failure: more would take longer than it did
    try:
        error, story = _told(program, plan, failure, saved, again, example)
    except RealTimeout:
        schedule = failure.schedule.short
        saved.add(schedule)
        found = failure.error or "\n".join(map(str, failure.violations))
        error, story = failure.error, f"{found}\n{_NOT_SIMPLER}\n    {again(schedule)}"
    text = f"{report.verdict.name}: {report.claim}\n{story}"
    if error is None:
        raise Wrong(text)
    error = _bare(error)
    error.add_note("\n" + text)
    raise error


_NOT_SIMPLER = "To make its schedule simpler took longer than --explore-seconds allows.  Run it again as it was found:"


def _told(
    program: Program,
    plan: ExplorationPlan,
    failure: sim.Failure,
    saved: SavedSchedules,
    again: Callable[[str], str],
    example: Example | None,
) -> tuple[BaseException | None, str]:
    """Give what the minimal schedule of a failure raises, and its story."""
    schedule = failure.minimal.short
    saved.add(schedule)
    command = again(schedule)
    repairs = _mended(program, plan, failure) if plan.repairs and example is None else []
    story = failure.explain(plan.verbose, again=command, more=repairs, heads=1)
    return _of_minimal(program, plan, failure, example), story + kept(failure, command)


def _mended(program: Program, plan: ExplorationPlan, failure: sim.Failure) -> list[str]:
    """Say what would mend the failure: the test, and then each repair, is explored to the end, not to a failure."""
    strategy, most = checked(plan, is_given=False)

    def in_a_world(given: Sequence[Any] = ()) -> sim.Report:
        return sim.explore(program, strategy, plan.check, most, seconds=plan.seconds, given=given, **plan.how)

    failure.found_by = in_a_world(), in_a_world
    repairs = [f"    {repair}" for repair in failure.repairs()[:_MOST_REPAIRS]]
    return ["What would mend it:", *(repairs or ["    no lock, look, shield or order of its lines"])]


#: A report tells so many repairs.
_MOST_REPAIRS = 3


def _of_minimal(
    program: Program, plan: ExplorationPlan, failure: sim.Failure, example: Example | None
) -> BaseException | None:
    """Give what the minimal schedule raises."""
    if failure.error is None:
        return None
    if example is not None:
        example.loud()
    try:
        execution = sim.replay(program, failure.minimal, **plan.actors)
    except ReplayDiverged as diverged:
        failure.error.add_note(f"\nNot controlled: the same schedule gave something else the second time. {diverged}")
        return failure.error
    return failure.error if execution.error is None else execution.error


def _special(error: BaseException) -> BaseException | None:
    """Give the one exception in `error` that means something else than a failure."""
    leaves = _leaves(error)
    for leaf in leaves:
        if isinstance(leaf, (pytest.exit.Exception, NotSimulated, *CONTROL)):
            return leaf
    return leaves[0] if len(leaves) == 1 and isinstance(leaves[0], SET_ASIDE) else None


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _bare(error: BaseException) -> BaseException:
    """Cut from the traceback the frames before those of the test."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            _bare(inner)
    found: TracebackType | None = error.__traceback__
    while found is not None and found.tb_next is not None and _is_machinery(found):
        found = found.tb_next
    return error.with_traceback(found)


def _is_machinery(entry: TracebackType) -> bool:
    room: str = entry.tb_frame.f_globals.get("__name__", "")
    return room.startswith(("toolrt.sim.", "toolrt.testing.", "trio."))


@overload
def explored(test: Test, /) -> Callable[..., None]: ...
@overload
def explored(
    *,
    strategy: sim.Strategy | str | None = ...,
    executions: int | None = ...,
    seed: int = ...,
    check: Check | None = ...,
    outcomes: Collection[Any] | None = ...,
    step_limit: int | None = ...,
    cancel_at: str | None = ...,
    crash_at: str | None = ...,
    clock: str | None = ...,
    clock_moves: int | None = ...,
    order: str = ...,
    jobs: int = ...,
    seconds: float | None = ...,
    track: bool | str | Collection[str] | None = ...,
) -> Callable[[Test], Callable[..., None]]: ...
def explored(test: Any = None, /, **options: Any) -> Any:
    """Make a sync test of an async one: a call explores it.

    For unittest, scripts, and wherever there is no pytest; with pytest, ``@pytest.mark.explore`` does the same and
    knows fixtures.  Under ``@given`` Hypothesis picks the workload and each example is explored.

    Args:
        test: an async function; its arguments are those of the sync one.
        strategy: a strategy, or its name: "portfolio" (the default), "random", "pct", "pos", "urw", "exhaustive",
            "dpor", "bounded".
        executions: the size of a sample (100 by default), or the most that a search may take.
        seed: what named strategies draw from; 0 by default.
        check: as `toolrt.sim.explore` takes it.
        outcomes: every outcome that the test must have, and no other: values that it returns, types of errors or their
            names, as `toolrt.sim.explore` takes them.
        step_limit: steps after which an execution is stopped.
        cancel_at: "any" has the test cancelled at any of its steps, too, which is no failure by itself; a name has a
            `sim.scope` of that name cancelled.
        crash_at: "any" has the test crash before any of its steps, once, and start again with what `sim.durable` kept.
        clock: "explored" lets time move before any step at which a deadline is pending, too; "real" lets deadlines of
            one instant come one by one, in each order.
        clock_moves: how often it may; 2 by default.
        order: "any" (the default): any task that can run may step next; "trio": each of them once per pass, in any
            order within it, as Trio's scheduler has them.
        jobs: how many processes share the executions, 1 by default; with more than one all are run, also after one has
            failed, and what the test writes into memory stays in the process that ran it.  Not under ``@given``.
        seconds: wall seconds after which no further execution is begun; no limit by default.
        track: the plain objects that are seen: those that code of the test's own module touches (the default; under the
            marker also of packages below pytest's rootdir that it imports), those of modules and packages that are
            named, or with False none; as `toolrt.sim.explore` takes it.

    Raises:
        DefinitionRefused: an option is unknown, or the test is not async.

    Example:
        >>> import trio
        >>> from hypothesis import given, strategies as st
        >>> from toolrt import sim, testing
        >>> @given(st.integers(1, 3))
        ... @testing.explored(executions=20)
        ... async def test_all_are_counted(tasks):
        ...     cell = sim.Cell(0, name="count")
        ...     async def add():
        ...         cell.set(cell.get() + 1)
        ...     async with trio.open_nursery() as nursery:
        ...         for _ in range(tasks):
        ...             nursery.start_soon(add)
        ...     assert cell.get() == tasks
        >>> test_all_are_counted()

    Checkpoint: never; call it outside Trio.
    """
    if not options.keys() <= set(OPTIONS):
        raise DefinitionRefused("explored()", f"keyword arguments: {', '.join(OPTIONS)}", sorted(options))
    plan = ExplorationPlan(**options)
    return _decorated(plan, test) if test is not None else functools.partial(_decorated, plan)


def _decorated(plan: ExplorationPlan, test: Callable[..., Awaitable[Any]]) -> Callable[..., None]:
    if not inspect.iscoroutinefunction(test):
        raise DefinitionRefused("explored()", "an async test", test)
    plan = attrs.evolve(plan, track=names_tracked(plan.track, test), tracks_unasked=plan.track is None)

    @functools.wraps(test)
    def sync(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        name = f"{test.__module__}.{test.__qualname__}"
        database = hypothesis.settings.default.database if hypothesis.settings.default else None
        saved = SavedSchedules(None if database is None else ScheduleDatabase(database), name)
        try:
            explore(called(test, args, kwargs), plan, saved, lambda _: f"{name} (it tries this schedule first)")
        finally:
            if current_example() is None:
                # A schedule that does not fit one example may fit the next.
                saved.settle()

    return sync


def called(
    test: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[], Awaitable[Any]]:
    """Give the program that calls `test`, each time with unchanged arguments."""
    args = tuple(map(replayable, args))
    kwargs = {name: replayable(value) for name, value in kwargs.items()}

    def program() -> Awaitable[Any]:
        return test(*map(fresh, args), **{name: fresh(value) for name, value in kwargs.items()})

    program.as_written = functools.partial(test, *args, **kwargs)  # type: ignore[attr-defined]
    return program

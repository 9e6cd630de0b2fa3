"""The pytest plugin: ``@pytest.mark.explore`` runs an async test under many schedules.

::

    @pytest.mark.explore(strategy="dpor", executions=2000)
    async def test_counter():
        ...

Every execution calls the test anew, under `toolrt.sim`: virtual time, and every order of steps that Trio allows.
The test fails when one execution fails, and says which schedule, shrunk, and how to replay it.

Rules.
    1. Fixtures are made anew for each execution; which are not, and why, is in `toolrt.testing._fixtures`.
    2. A test that is marked for pytest-trio too (``trio_mode`` marks all) is run by the explorer alone.
    3. With Hypothesis's ``@given`` it picks the workload, and each example is explored.
    4. ``--explore-executions``, ``--explore-seed`` and ``--explore-order`` outrank the marker; ``--explore-replay``
       runs one schedule, in the order in which it was made.
    5. A schedule that failed is kept (``--explore-database``, the ini option ``explore_database``, or else
       Hypothesis' database) and tried first the next time.
"""

from __future__ import annotations

import functools
import gc
import inspect
import re
import shlex
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any

import attrs
import hypothesis
import pytest
from hypothesis import HealthCheck

from toolrt import sim
from toolrt._plain import counted
from toolrt.errors import DefinitionRefused, NotSimulated
from toolrt.sim._parsing import uncollected
from toolrt.sim.engine._teardown import collect_unheard, finalisers_unheard
from toolrt.sim.programs.threads._own import simulate_own_threads
from toolrt.sim.programs.tracking._tracking import can_be_seen
from toolrt.testing._changed import changes_key
from toolrt.testing._explored import (
    OPTIONS,
    SET_ASIDE,
    ExplorationPlan,
    NotShown,
    Wrong,
    checked,
    explore,
    is_uncontrolled,
    names_tracked,
    searched,
)
from toolrt.testing._fixtures import Recipe, emptied, execution_of, recipe_for
from toolrt.testing._given import fresh, replayable
from toolrt.testing._on_plain_trio import NOT_ON_PLAIN_TRIO, passes_on_plain_trio
from toolrt.testing._pages import keeping
from toolrt.testing._saved import SavedSchedules, ScheduleDatabase, ScheduleDirectory, ScheduleStore
from toolrt.testing._unedited import (
    ADVISED_BY,
    EXPLORED,
    FAILED,
    REFUSED,
    UNCHANGED,
    UNDECIDED,
    Explored,
    anyio_backend,
    cause_of,
    checked_number,
    left_to_asyncio,
    outcome_key,
    refuse,
    unmarked_key,
)

__all__: list[str] = []

# What tells the seed of further executions from the seeds that people name.
_OTHER_SEEDS = 1_000_003

# What a refusal asks for where something can be left real.
_REMEDY = re.compile(r'sim\.leave_real\("(\w+)"\)')

_FILES, _CLOCKS = "files", "clocks"

# How an exploration may end that shows nothing.
_ENDS = (Exception, pytest.skip.Exception, pytest.fail.Exception)

_test_key = pytest.StashKey[Callable[..., Any]]()
_written_key = pytest.StashKey[dict[Any, Any]]()
_recipes_key = pytest.StashKey[list[Recipe]]()


def _is_explored(node: Any) -> bool:
    """Say whether `node` is a marked test of Trio's; a sync one is not, when its class or module is marked."""
    if not isinstance(node, pytest.Function) or node.get_closest_marker("explore") is None:
        return False
    if left_to_asyncio(node) is not None:
        return False
    own = any(marker.name == "explore" for marker in node.own_markers)
    return own or inspect.iscoroutinefunction(_written(node))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note the fixtures as they were written, before another plugin wraps their functions."""
    if isinstance(item, pytest.Function):
        item.stash[_written_key] = {
            definition: (definition.func, definition.argnames)
            for definitions in item._fixtureinfo.name2fixturedefs.values()
            for definition in definitions
        }


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> object:
    """Give an explored test a recipe for each fixture that is made anew for each execution."""
    # A fixture of a wider scope has a node that is no test: it is one that is about to run that asks for it.
    item = getattr(request, "_pyfuncitem", request.node)
    if not _is_explored(item):
        return None
    function, arguments = item.stash[_written_key].get(fixturedef) or (fixturedef.func, fixturedef.argnames)
    try:
        recipe = recipe_for(fixturedef, function, arguments, request, item)
    except BaseException as refused:
        # As pytest does: the fixture is torn down, and the next test that asks for it sets it up anew.
        fixturedef.cached_result = (None, fixturedef.cache_key(request), (refused, refused.__traceback__))
        raise
    if recipe is None:
        return None
    item.stash.setdefault(_recipes_key, []).append(recipe)
    fixturedef.cached_result = (recipe, fixturedef.cache_key(request), None)
    return recipe


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Remember the test as it was written, before pytest-trio wraps it, and where its failure is kept."""
    directories = [item.config.getoption(f"explore_{kind}") for kind in ("html", "reproduce")]
    with keeping(item.nodeid, *(None if directory is None else Path(directory) for directory in directories)):
        yield from _remembered(item)


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Have no finaliser run while a failure is told: pytest parses the source for that."""
    with uncollected():
        return (yield)


def _remembered(item: pytest.Item) -> Generator[None, Any, None]:
    given = getattr(getattr(item, "obj", None), "hypothesis", None)
    if not isinstance(item, pytest.Function) or not _is_explored(item):
        yield
        return
    item.stash[_test_key] = _written(item)
    _allow_fixtures(item)
    if given is None:
        yield
        return
    # The function serves the next set of parameters too, and pytest-trio leaves its wrapper there.
    before = given.inner_test
    try:
        yield
    finally:
        given.inner_test = before


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Explore a marked test; leave all others to the other plugins."""
    __tracebackhide__ = True
    marker = pyfuncitem.get_closest_marker("explore")
    test = pyfuncitem.stash.get(_test_key, None)
    if marker is None or test is None:
        return None
    if not inspect.iscoroutinefunction(test):
        pytest.fail("@pytest.mark.explore needs an async test", pytrace=False)
    try:
        plan = _plan(marker, pyfuncitem.config, test)
        checked(plan, is_given=hasattr(pyfuncitem.obj, "hypothesis"))
    except DefinitionRefused as refused:
        text = str(refused)
    else:
        _Explored(pyfuncitem, test, plan).run()
        return True
    pytest.fail(text, pytrace=False)


def _is_installed(path: Path) -> bool:
    """Say whether a test came with a package that is installed: its suite is not the user's own."""
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts)


def _packages_tested(test: Callable[..., Any], root: Path) -> list[str]:
    """Give the packages and modules below the rootdir that a test's module has imported something from, by name."""
    imported = [
        value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        for value in inspect.unwrap(test).__globals__.values()
    ]
    names = {name.partition(".")[0] for name in imported if isinstance(name, str)}
    found = []
    for name in can_be_seen(names - {test.__module__.partition(".")[0], "conftest"}):
        module = sys.modules[name]
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        place = next((Path(place) for place in places if place), None)
        if place is not None and place.is_relative_to(root) and not _is_installed(place):
            found.append(name)
    return found


def _written(item: pytest.Function) -> Callable[..., Any]:
    """Give the test's own function, not bound."""
    inner = getattr(getattr(item.obj, "hypothesis", None), "inner_test", item.obj)
    found: Callable[..., Any] = inspect.unwrap(inner)
    return getattr(found, "__func__", found)


def _parameters(item: pytest.Function) -> set[str]:
    """Give the names that parametrization gives a value, directly or through a fixture."""
    callspec = getattr(item, "callspec", None)
    return set() if callspec is None else set(callspec.params)


def _allow_fixtures(item: pytest.Function) -> None:
    """Tell Hypothesis that function-scoped fixtures are no trap here, when all of them are made anew."""
    function = getattr(item.obj, "__func__", item.obj)
    settings = getattr(function, "_hypothesis_internal_use_settings", None)
    known = item._fixtureinfo.name2fixturedefs
    scoped = {name for name in item._fixtureinfo.argnames if name in known and known[name][-1].scope == "function"}
    scoped -= _parameters(item)
    if settings is None or not scoped or not scoped <= {recipe.name for recipe in item.stash.get(_recipes_key, [])}:
        return
    suppressed = {*settings.suppress_health_check, HealthCheck.function_scoped_fixture}
    function._hypothesis_internal_use_settings = hypothesis.settings(settings, suppress_health_check=suppressed)


def _plan(marker: pytest.Mark, config: pytest.Config, test: Callable[..., Any]) -> ExplorationPlan:
    unknown = [name for name in marker.kwargs if name not in OPTIONS]
    if marker.args or unknown:
        got = unknown or list(marker.args)
        raise DefinitionRefused("@pytest.mark.explore", f"keyword arguments: {', '.join(OPTIONS)}", got)
    plan = ExplorationPlan(**marker.kwargs, replay=config.getoption("explore_replay"))
    named = config.getoption("explore_track") or []
    track = False if plan.track is None and "none" in named else plan.track
    seed, strategy, seconds = (config.getoption(f"explore_{name}") for name in ("seed", "strategy", "seconds"))
    executions = config.getoption("explore_executions")
    if executions is None:
        executions = checked_number(config.getoption("explore") or "")
    tracked = names_tracked(track, test)
    if track is None and tracked:
        tracked = [*tracked, *_packages_tested(test, config.rootpath)]
    return attrs.evolve(
        plan,
        executions=plan.executions if executions is None else executions,
        seed=plan.seed if seed is None else seed,
        strategy=strategy if plan.strategy is None else plan.strategy,
        seconds=plan.seconds if seconds is None else seconds,
        order=_order_named(config) or plan.order,
        track=[*dict.fromkeys([*tracked, *(name for name in named if name != "none")])],
        tracks_unasked=track is None,
        repairs=plan.repairs or config.getoption("explore_repair"),
        verbose=config.getoption("explore_verbose"),
    )


def _order_named(config: pytest.Config) -> str | None:
    """Give the order that the command line names, or else the ini file; None: neither does."""
    named = config.getoption("explore_order") or config.getini("explore_order") or None
    if named not in (None, "any", "trio"):
        raise DefinitionRefused("the ini option explore_order", "any or trio", named)
    return named


@contextmanager
def _heap_set_aside() -> Iterator[None]:
    """Spare collections of garbage inside the block all that is there: pytest itself, and the modules of the suite."""
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Explored:
    """One test that is explored."""

    def __init__(self, item: pytest.Function, test: Callable[..., Any], plan: ExplorationPlan) -> None:
        self._item = item
        self._test = test
        self._plan = plan
        self._instance = item.instance if item.cls is not None else None
        self._attributes = dict(vars(self._instance)) if hasattr(self._instance, "__dict__") else None
        self._recipes = item.stash.get(_recipes_key, [])
        self._hypothesis: Any = getattr(item.obj, "hypothesis", None)
        self._saved = SavedSchedules(self._place(), item.nodeid)
        self._shown: list[str] = []
        # True: earlier runs had some of the executions.
        self._goes_on = False
        # What every execution leaves real.
        self._real: tuple[str, ...] = ()
        self._found = item.stash.setdefault(outcome_key, Explored(FAILED))
        marker = item.get_closest_marker("explore")
        by_marker = marker is not None and "order" in marker.kwargs and not item.stash.get(unmarked_key, False)
        named = by_marker or _order_named(item.config) is not None
        self._found.orders_unasked = plan.order == "trio" and not named

    def run(self) -> None:
        """Explore it, or each of its examples."""
        __tracebackhide__ = True
        try:
            with _heap_set_aside():
                self._run()
        except NotSimulated as refusal:
            if not self._item.stash.get(unmarked_key, False):
                self._found.kind, self._found.why = REFUSED, refusal.action
                raise
            why, text = refusal.action, f"not explored: {refusal}"
        else:
            self._found.kind = EXPLORED
            if self._found.distinct > 1 or self._found.alone or self._found.alone is None:
                return
            self._found.kind, self._found.why = UNDECIDED, "one schedule came up, and there are others"
            pytest.skip(f"undecided: {self._found.why}")
        refuse(self._item, why, text)

    def _pass_over_what_is_known(self) -> None:
        """Leave out the executions that ``--explore-changed`` need not repeat; skip the test when all are."""
        changes = self._item.config.stash.get(changes_key, None)
        if changes is None or self._plan.replay is not None:
            return
        plan = attrs.evolve(self._plan, executions=None, check=None)
        check = getattr(self._plan.check, "__qualname__", "")
        self._found.digest = changes.digest(self._item, f"{plan} {check}")
        spent = changes.spent(self._item, self._found.digest)
        if not spent:
            return
        most = self._plan.executions
        if most is None or spent >= most:
            self._found.kind = UNCHANGED
            pytest.skip("nothing that it runs has changed since it was explored")
        self._goes_on = True
        self._plan = attrs.evolve(
            self._plan, executions=most - int(spent), seed=self._plan.seed + _OTHER_SEEDS * int(spent)
        )

    def _run(self) -> None:
        __tracebackhide__ = True
        self._pass_over_what_is_known()
        given = {name: self._item.funcargs[name] for name in self._item._fixtureinfo.argnames}
        try:
            if self._hypothesis is None:
                self._leaving_real(given)
            else:
                self._under_hypothesis(given)
        finally:
            self._saved.settle()
        if self._plan.replay is not None and not self._saved.fitted:
            pytest.fail(f"no example has the schedule of --explore-replay:\n    {self._plan.replay}", pytrace=False)
        if self._shown:
            self._say_what_was_shown()

    def _count(self, report: sim.Report) -> None:
        self._found.executions += report.executions
        self._found.distinct += report.distinct
        self._found.whole = report.complete and self._hypothesis is None

    def _say_what_was_shown(self) -> None:
        """Have the report of a test that passed say it: with ``-rA``, and in a JUnit file."""
        shown = self._shown[0]
        if self._hypothesis is not None:
            shown = f"{counted(len(self._shown), 'example')}, {counted(self._found.executions, 'execution')}"
        self._item.user_properties.append(("explore", shown))
        self._item.add_report_section("call", "explore", f"PASS: {shown}\n")

    def _leaving_real(self, given: dict[str, Any]) -> None:
        """Explore it; leave real what a test without a marker would be refused for, where that can be left real.

        A real process is first run to its end.  A test that shows nothing then, or fails, may talk to it meanwhile: its
        pipes are left real, too.  So are clocks where no order is what fails it.  Where that shows no more, what was
        found first stands; but no failure does where the test is undecided with real pipes.
        """
        __tracebackhide__ = True
        while True:
            try:
                return self._explore_alone(given)
            except NotSimulated as refusal:
                kind = _REMEDY.search(refusal.remedy)
                if not self._item.stash.get(unmarked_key, False) or kind is None or kind[1] in self._real:
                    first: BaseException = refusal
                    break
                self._leave_real(kind[1])
            except _ENDS as failure:
                first = failure
                break
        found, real = attrs.evolve(self._found), self._real
        for kind_left, is_worth_it in (
            (_FILES, "processes" in real and _FILES not in real),
            (_CLOCKS, found.why == NOT_ON_PLAIN_TRIO),
        ):
            if not is_worth_it or self._plan.replay is not None:  # a schedule is of what was real when it was made
                continue
            self._leave_real(kind_left)
            try:
                return self._explore_alone(given)
            except _ENDS as second:
                undecided = isinstance(second, pytest.skip.Exception)
                if kind_left == _FILES and undecided and not isinstance(first, NotSimulated | pytest.skip.Exception):
                    raise  # with real pipes it may pass: that it failed without them is no verdict
            self._real = real
            for field in attrs.fields_dict(Explored):
                setattr(self._found, field, getattr(found, field))
        try:
            raise first
        finally:
            del first  # this frame is in its traceback: what the test had would wait for the collector

    def _leave_real(self, kind: str) -> None:
        self._real = self._found.real = *self._real, kind
        self._found.executions = self._found.distinct = 0

    def _explore_alone(self, given: dict[str, Any]) -> None:
        __tracebackhide__ = True
        try:
            with self._garbage():
                return self._explore(given)
        except NotShown as failure:
            text = str(failure)
            self._found.kind, self._found.why = UNDECIDED, cause_of(failure.why)
            if self._item.stash.get(unmarked_key, False):
                pytest.skip(f"undecided: {text if failure.why == NOT_ON_PLAIN_TRIO else failure.why}")
        except Wrong as failure:
            text = str(failure)
        # Nothing of the test is on the way to these.
        pytest.fail(text, pytrace=False)

    @contextmanager
    def _garbage(self) -> Iterator[None]:
        """Let garbage complain of nothing inside the block, of a test that has no marker.

        The executions make much of it, which is collected at once.  What the test itself leaves, a plain run tells; and
        what is real ends at its own time.
        """
        if not self._item.stash.get(unmarked_key, False):
            yield
            return
        collect_unheard()  # also what was ended as it was refused
        try:
            with finalisers_unheard():
                yield
        finally:
            collect_unheard()

    def _under_hypothesis(self, given: dict[str, Any]) -> None:
        __tracebackhide__ = True

        @functools.wraps(self._test)
        def example(*_instance: Any, **arguments: Any) -> None:
            __tracebackhide__ = True
            if self._instance is not None:
                # Hypothesis gives the instance too, by its name.
                arguments = {name: value for name, value in arguments.items() if value is not self._instance}
            self._explore(arguments)

        # So that each parameter set keeps examples of its own.
        digest = getattr(self._hypothesis.inner_test, "_hypothesis_internal_add_digest", None)
        if digest is not None:
            example._hypothesis_internal_add_digest = digest  # type: ignore[attr-defined]
        self._hypothesis.inner_test = example
        self._item.obj(**given)

    def _explore(self, arguments: dict[str, Any]) -> None:
        __tracebackhide__ = True
        fixtures = self._item._fixtureinfo.name2fixturedefs.keys() - _parameters(self._item)
        mine = {name: replayable(value) for name, value in arguments.items() if name not in fixtures}

        unmarked = self._item.stash.get(unmarked_key, False)
        directory = self._item.funcargs.get("tmp_path")
        empty = emptied(directory) if isinstance(directory, Path) else None

        def program() -> Any:
            if unmarked:
                simulate_own_threads()
            if self._real:
                sim.leave_real(*self._real)
            return plain({})

        def plain(made: Mapping[Recipe, Any]) -> Any:
            if empty is not None:
                empty()
            if self._attributes is not None:
                vars(self._instance).clear()
                vars(self._instance).update(self._attributes)
            copied = {name: fresh(value) for name, value in mine.items()}
            body = self._test if self._instance is None else functools.partial(self._test, self._instance)
            return execution_of(body, self._recipes, {**arguments, **copied}, made)()

        # Trio names a run's main task by its function.
        for function in (program, plain):
            function.__module__, function.__qualname__ = self._test.__module__, self._test.__qualname__
        written = self._test if self._instance is None else MethodType(self._test, self._instance)
        program.as_written = functools.partial(written, **arguments)  # type: ignore[attr-defined]
        plan = self._plan
        if unmarked and self._hypothesis is None:
            _, options = anyio_backend(self._item)
            plan = attrs.evolve(plan, disowns=functools.partial(passes_on_plain_trio, plain, self._recipes, options))
        report = explore(program, plan, self._saved, self._again, self._count)
        if report is None:
            return
        self._shown.append(report.claim)
        if unmarked and self._found.orders_unasked:
            self._look_at_all_orders(program)
        is_alone = self._found.distinct == 1 and self._plan.replay is None and not self._goes_on
        if is_alone and unmarked:
            seconds = self._plan.seconds
            others = sim.explore(program, sim.DPOR(), max_executions=2, seconds=seconds, **self._plan.actors)
            if self._plan.tracks_unasked and (others.failures or is_uncontrolled(others)):
                actors = self._plan.untracked.actors
                others = sim.explore(program, sim.DPOR(), max_executions=2, seconds=seconds, **actors)
            self._found.alone = others.complete and others.verdict is sim.PASS
            if not others.failures and not is_uncontrolled(others):
                # They are two, where the sample was of one.
                self._found.distinct = max(self._found.distinct, others.distinct)
            self._found.whole |= self._found.alone

    def _look_at_all_orders(self, program: Callable[[], Any]) -> None:
        """Draw a few of all orders that Trio documents; a failure there is advice, and no failure of the test."""
        if self._plan.replay is not None or self._hypothesis is not None or self._real:
            return
        if _is_installed(self._item.path):
            return
        plan = attrs.evolve(self._plan, order="any", strategy=None, executions=ADVISED_BY, track=[], jobs=1)
        try:
            report = searched(program, plan, None)
        except (NotSimulated, *SET_ASIDE):
            return
        if report.failures and report.verdict is sim.FAIL:
            self._found.fails_in_any_order = True

    def _place(self) -> ScheduleStore | None:
        config = self._item.config
        named = config.getoption("explore_database")
        if named is not None:
            return ScheduleDirectory(Path(config.invocation_params.dir, named))
        ini = config.getini("explore_database")
        if ini:
            return ScheduleDirectory(Path(config.rootpath, ini))
        settings = getattr(self._item.obj, "_hypothesis_internal_use_settings", None) or hypothesis.settings.default
        database = None if settings is None else settings.database
        return None if database is None else ScheduleDatabase(database)

    def _again(self, schedule: str) -> str:
        """Give the command that runs `schedule` again from where pytest was started."""
        config = self._item.config
        name = self._item.nodeid
        if config.rootpath != config.invocation_params.dir:
            path, colons, rest = name.partition("::")
            with_path = Path(config.rootpath, path)
            here = config.invocation_params.dir
            name = f"{with_path.relative_to(here) if with_path.is_relative_to(here) else with_path}{colons}{rest}"
        explore = " --explore" if self._item.stash.get(unmarked_key, False) else ""
        return f"pytest {shlex.quote(name)}{explore} --explore-replay {shlex.quote(schedule)}"

"""pytest's fixtures, made anew for each execution of an explored test.

Rules.
    1. What is made anew: function-scoped fixtures of test modules, conftest files and modules they name, async ones
       wherever they are from, what depends on either, ``setup_method`` and ``setup_function``, and of pytest's own
       ``caplog``, ``capsys`` and its kin, ``monkeypatch`` and ``recwarn``.  ``tmp_path`` is emptied.  Everything else
       (the fixtures of installed plugins, those of a wider scope) is made once, by pytest, for all executions, and
       ``--explore`` names it.
    2. They are set up in the test's own task, one after the other in pytest's order, and torn down in reverse, under
       the explored schedule and in virtual time.  They add no task, so they multiply no schedules.
    3. As in pytest-trio, a fixture does not see the test's exception, only a cancel; ``nursery`` gives each
       fixture, and the test, a nursery of its own that is cancelled at the end.
    4. A fixture that is a `trio.testing.MockClock` tells and moves virtual time.  Time then stands still until the test
       moves it, unless the clock jumps by itself, as ``autojump_clock`` does, or runs.

Limits.  An error in a fixture is the test's failure, as in pytest-trio.  Attributes of a test's instance are put back
as they were; what they hold is not.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import inspect
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from toolrt.sim.engine._host import run_with
from toolrt.testing._unedited import refuse, shared_key

_PYTEST_TRIO = "pytest_trio.plugin"
# pytest's own whose fixtures are generators that put back what they changed.
_RENEWED = ("_pytest.capture", "_pytest.logging", "_pytest.monkeypatch", "_pytest.recwarn")
_XUNIT = ("_xunit_setup_method_fixture", "_xunit_setup_function_fixture")


@attrs.frozen(eq=False, repr=False)
class Recipe:
    """How to make one fixture."""

    name: str
    #: The fixture's function, bound to the test's instance; None is pytest-trio's ``nursery``.
    function: Callable[..., Any] | None
    #: Its arguments; recipes among them are made first.
    arguments: Mapping[str, Any]

    @property
    def wants_nursery(self) -> bool:
        """Say whether one of the arguments is a nursery."""
        return any(isinstance(value, Recipe) and value.function is None for value in self.arguments.values())

    def __repr__(self) -> str:
        return f"<fixture {self.name}, made anew for each execution>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # How Hypothesis shows it among the arguments of an example; else it would list the fields.
        printer.text(repr(self))


def recipe_for(
    fixturedef: Any, function: Callable[..., Any], argnames: Sequence[str], request: Any, item: pytest.Item
) -> Recipe | None:
    """Give the recipe for a fixture that is to be made anew; None when pytest makes it, once.

    A fixture that can be neither fails the test.

    Args:
        fixturedef: the fixture.
        function: its function as it was written.
        argnames: the names of that function's arguments.
        request: asks for it.
        item: the test.
    """
    module = getattr(inspect.unwrap(function), "__module__", "") or ""
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if request.scope != "function":
        if is_async:
            _refuse(
                item,
                f"the async fixture {fixturedef.argname} has scope {request.scope!r}, but every execution is a "
                "program of its own and async fixtures are made anew for each: give it function scope",
                f"an async fixture of scope {request.scope}",
            )
        if not module.startswith(("_pytest.", "anyio.")):
            item.stash.setdefault(shared_key, []).append(fixturedef.argname)
        return None
    arguments = {name: request.getfixturevalue(name) for name in argnames}
    depends = any(isinstance(value, Recipe) for value in arguments.values())
    if module == _PYTEST_TRIO and fixturedef.argname == "nursery":
        return Recipe(fixturedef.argname, None, {})
    own = module.partition(".")[0] not in _rooms_of_plugins(request.config)
    forced = getattr(function, "_force_trio_fixture", False) or fixturedef.argname.startswith(_XUNIT)
    forced = forced or module == _PYTEST_TRIO
    if module in _RENEWED:
        function = _renewed(function)
    elif not (own or is_async or depends or forced):
        if not module.startswith(("_pytest.", "anyio.")):
            item.stash.setdefault(shared_key, []).append(fixturedef.argname)
        return None
    return Recipe(fixturedef.argname, _bound(function, request.instance), arguments)


def _renewed(fixture: Callable[..., Any]) -> Callable[..., Any]:
    """Give a fixture of pytest's own that goes on to its end also where its test was cancelled, as under pytest.

    ``caplog`` begins without the records of earlier executions: its handler is the test's.
    """

    def renewed(**arguments: Any) -> Iterator[Any]:
        source = fixture(**arguments)
        value = next(source)
        if fixture.__module__ == "_pytest.logging":
            value.clear()
        try:
            yield value
        finally:
            next(source, None)

    return renewed


def emptied(directory: Path) -> Callable[[], None]:
    """Give what empties a `directory` that is empty now; one that holds something is left as it is."""
    if any(directory.iterdir()):
        return lambda: None

    def empty() -> None:
        for entry in directory.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    return empty


def _rooms_of_plugins(config: pytest.Config) -> set[str]:
    """Give the packages of pytest and of the plugins that are installed beside it."""
    named = (getattr(plugin, "__name__", "") for plugin, _ in config.pluginmanager.list_plugin_distinfo())
    return {"_pytest", *(name.partition(".")[0] for name in named)}


def _refuse(item: pytest.Item, why: str, cause: str) -> None:
    refuse(item, cause, f"@pytest.mark.explore: {item.name} cannot be explored: {why}")


def _bound(function: Any, instance: Any) -> Callable[..., Any]:
    """Bind a fixture that is a method to the instance that the test is called on."""
    owner = getattr(function, "__self__", None)
    if instance is not None and owner is not None and isinstance(instance, type(owner)):
        function = function.__func__.__get__(instance)
    bound: Callable[..., Any] = function
    return bound


def execution_of(
    body: Callable[..., Awaitable[Any]],
    recipes: list[Recipe],
    arguments: Mapping[str, Any],
    made: Mapping[Recipe, Any] | None = None,
) -> Callable[[], Awaitable[Any]]:
    """Give the program that makes the fixtures of `recipes`, in that order, and calls `body` with `arguments`.

    Those that are `made` already are left out.
    """
    made = made or {}
    steps = [recipe for recipe in recipes if recipe.function is not None and recipe not in made]
    if not recipes and not any(isinstance(value, pytest.FixtureRequest) for value in arguments.values()):
        return lambda: body(**arguments)
    last = Recipe("the test", body, arguments)

    async def program() -> Any:
        return await _FixtureScopes(steps, last, made).run(0)

    return program


class _FixtureScopes:
    """The fixtures of one execution."""

    def __init__(self, recipes: list[Recipe], last: Recipe, made: Mapping[Recipe, Any]) -> None:
        self._recipes = recipes
        self._last = last
        self._made = dict(made)
        self._value: Any = None

    async def run(self, place: int) -> Any:
        """Make the fixtures from `place` on, call the test, and tear them down."""
        is_last = place == len(self._recipes)
        recipe = self._last if is_last else self._recipes[place]
        if not recipe.wants_nursery:
            return await self._lifetime(recipe, None, place, is_last)
        value: Any = None
        failure: BaseException | None = None
        async with trio.open_nursery() as nursery:
            try:
                value = await self._lifetime(recipe, nursery, place, is_last)
            except BaseException as error:  # noqa: ASYNC103  raised outside the nursery, which would wrap it
                if _is_cancel(error):
                    raise
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return value

    async def _lifetime(self, recipe: Recipe, nursery: trio.Nursery | None, place: int, is_last: bool) -> Any:
        assert recipe.function is not None
        finalizers: list[Callable[[], object]] = []
        arguments = {name: self._resolved(value, nursery, finalizers) for name, value in recipe.arguments.items()}
        source = recipe.function(**arguments)
        if not is_last:
            self._made[recipe] = await _set_up(source)
        value: Any = None
        failures: list[BaseException] = []
        try:
            value = await (source if is_last else self.run(place + 1))
        except BaseException as error:  # noqa: ASYNC103  a cancel is thrown into the fixture, which has to pass it on
            failures.append(error)
        try:
            await _torn_down(recipe, source, failures)
        except BaseException as error:  # noqa: ASYNC103  raised below
            failures.append(error)
        for finalizer in reversed(finalizers):
            try:
                finalizer()
            except Exception as error:
                failures.append(error)
        if len(failures) > 1:
            raise BaseExceptionGroup("errors in an async test and its fixtures", failures)
        if failures:
            raise failures[0]
        return value

    def _resolved(self, value: Any, nursery: trio.Nursery | None, finalizers: list[Callable[[], object]]) -> Any:
        if isinstance(value, Recipe):
            return nursery if value.function is None else self._made[value]
        if isinstance(value, pytest.FixtureRequest):
            return _Request(value, self._made, finalizers)
        return value


async def _set_up(source: Any) -> Any:
    """Give what a fixture's function makes, whose call gave `source`."""
    made = source
    if inspect.isawaitable(source):
        made = await source
    elif inspect.isasyncgen(source):
        made = await anext(source)
    elif inspect.isgenerator(source):
        made = next(source)
    if isinstance(made, MockClock):
        run_with(made)
    return made


async def _torn_down(recipe: Recipe, source: Any, failures: list[BaseException]) -> None:
    """Let a fixture that has yielded go on to its end."""
    cancel = failures.pop() if failures and _is_cancel(failures[-1]) else None
    if inspect.isasyncgen(source):
        try:
            await (anext(source) if cancel is None else source.athrow(cancel))
        except StopAsyncIteration:
            return
    elif inspect.isgenerator(source):
        try:
            if cancel is None:
                next(source)
            else:
                source.throw(cancel)
        except StopIteration:
            return
    elif cancel is not None:
        raise cancel
    else:
        return
    raise RuntimeError(f"fixture {recipe.name} yielded twice")


def _is_cancel(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)


class _Request:
    """`request` as a fixture of one execution sees it."""

    def __init__(self, request: Any, made: Mapping[Recipe, Any], finalizers: list[Callable[[], object]]) -> None:
        self._request = request
        self._made = made
        self._finalizers = finalizers

    def getfixturevalue(self, name: str) -> Any:
        """Give the fixture of this execution."""
        value = self._request.getfixturevalue(name)
        if isinstance(value, Recipe):
            if value not in self._made:
                pytest.fail(
                    f"@pytest.mark.explore: name the fixture {name} as an argument: getfixturevalue() comes too late "
                    "for one that is made anew for each execution",
                    pytrace=False,
                )
            return self._made[value]
        return value

    def addfinalizer(self, finalizer: Callable[[], object]) -> None:
        """Have `finalizer` called at the end of this execution."""
        self._finalizers.append(finalizer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)

"""The pytest plugin: ``@pytest.mark.explore`` runs an async test under many schedules.

::

    @pytest.mark.explore(strategy=sim.Random(sim.RandomWalk(seed=1), 500))
    async def test_counter():
        ...

Every execution calls the test anew, under `toolrt.sim`: virtual time, and every order of steps that Trio allows.
The test fails when one execution fails, and says which schedule, shrunk, and how to replay it.

Rules.  Sync fixtures are made once for all executions, so a test that changes one must make its own.  Async
fixtures belong to one Trio run and are refused.  A test that is marked for pytest-trio too (``trio_mode`` marks
all) is run by the explorer alone.  With Hypothesis's ``@given`` each example is explored.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import pytest

from toolrt import sim
from toolrt.errors import DefinitionRefused

__all__: list[str] = []

#: How many executions one test gets unless its marker says otherwise: a second or so for most.
DEFAULT_EXECUTIONS = 100

_OPTIONS = ("strategy", "executions", "seed", "check", "step_limit")

_test_key = pytest.StashKey[Callable[..., Any]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "explore(strategy=None, executions=None, seed=0, check=None, step_limit=None): "
        "run this async test under many schedules in virtual time (toolrt)",
    )


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Remember the test as it was written, before pytest-trio wraps it."""
    if isinstance(item, pytest.Function) and item.get_closest_marker("explore") is not None:
        item.stash[_test_key] = _written(item.obj)
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Explore a marked test; leave all others to whoever runs them."""
    marker = pyfuncitem.get_closest_marker("explore")
    if marker is None:
        return None
    test = pyfuncitem.stash[_test_key]
    if not inspect.iscoroutinefunction(test):
        pytest.fail("@pytest.mark.explore needs an async test", pytrace=False)
    options = _options(marker)
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    for name, value in given.items():
        if type(value).__name__ == "TrioFixture":
            pytest.fail(
                f"@pytest.mark.explore cannot use {name}: an async fixture lives in one Trio run", pytrace=False
            )

    def explored(*args: Any, **kwargs: Any) -> None:
        _explore(lambda: test(*args, **kwargs), **options)

    hypothesis = getattr(pyfuncitem.obj, "hypothesis", None)
    if hypothesis is None:
        try:
            explored(**given)
        except _NotAllPass as failure:
            pytest.fail(str(failure), pytrace=False)
    else:
        # Raised through Hypothesis, which shrinks the example and adds it as a note.
        hypothesis.inner_test = functools.wraps(test)(explored)
        pyfuncitem.obj(**given)
    return True


def _written(obj: Any) -> Callable[..., Any]:
    inner = getattr(getattr(obj, "hypothesis", None), "inner_test", obj)
    found: Callable[..., Any] = inspect.unwrap(inner)
    if inspect.ismethod(obj):
        found = functools.partial(found, obj.__self__) if not inspect.ismethod(inner) else inner
    return found


def _options(marker: pytest.Mark) -> dict[str, Any]:
    unknown = [name for name in marker.kwargs if name not in _OPTIONS]
    if marker.args or unknown:
        got = unknown or list(marker.args)
        raise DefinitionRefused("@pytest.mark.explore", f"keyword arguments: {', '.join(_OPTIONS)}", got)
    return dict(marker.kwargs)


class _NotAllPass(AssertionError):
    """An execution failed, or nothing was decided."""


def _explore(
    program: Callable[[], Awaitable[Any]],
    strategy: sim.Strategy | None = None,
    executions: int | None = None,
    seed: int = 0,
    check: Callable[[sim.Execution], Any] | None = None,
    step_limit: int | None = None,
) -> None:
    """Explore `program`, and raise when an execution fails or nothing was decided."""
    __tracebackhide__ = True
    limit = {} if step_limit is None else {"step_limit": step_limit}
    if strategy is None:
        strategy = sim.Random(sim.RandomWalk(seed=seed), DEFAULT_EXECUTIONS if executions is None else executions)
    report = sim.explore(program, strategy, check, executions, **limit)
    if report.failures:
        failure = report.failures[0]
        if isinstance(failure.error, pytest.skip.Exception | pytest.xfail.Exception):
            raise failure.error
        raise _NotAllPass(f"{report}\n\n{failure.explain()}")
    if report.verdict is not sim.PASS:
        raise _NotAllPass(str(report))

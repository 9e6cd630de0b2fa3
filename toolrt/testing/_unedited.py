"""``pytest --explore``: every async test of a suite is explored, and no test is edited.

Rules.
    1. A test is explored when its function is async and it is one of Trio's: those of pytest-trio and ``trio_mode``,
       the Trio variants of anyio's, those that a plugin of the suite's own runs, and those that are marked.  Tests of
       asyncio are left to their own plugins, and counted.
    2. A test that cannot be explored (a real socket, a fixture of a wider scope that is async) is skipped, and so is
       one whose exploration showed nothing; the reason says which.  A test fails when an execution of it fails, unless
       it does so in every order and passes on plain Trio.
    3. The summary counts all of them, also where pytest-xdist spreads them over processes.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
from collections import Counter
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TextIO

import attrs
import pytest

from toolrt._plain import counted
from toolrt.sim.engine._teardown import collect_unheard, collect_what_is_left
from toolrt.sim.engine._watchdog import tell_where_stuck
from toolrt.testing import _last_report
from toolrt.testing._changed import Changes, changes_key

#: What a test has been found to be, in words of the summary.
EXPLORED, FAILED, UNDECIDED, REFUSED = "explored", "failed", "undecided", "refused"
SKIPPED, ASYNCIO, UNCHANGED = "skipped", "asyncio", "unchanged"

#: How many executions in any order give advice.
ADVISED_BY = 20

#: How many of the slowest tests, and of the reasons, the summary names.
_NAMED = 5


@attrs.define
class Explored:
    """What the exploration of one test came to; it crosses to another process as a dict of plain values."""

    kind: str
    #: Why it was refused, left alone or is undecided.
    why: str = ""
    executions: int = 0
    distinct: int = 0
    #: Whether the one schedule that came up stands for all there are; None: that was not asked.
    alone: bool | None = None
    #: Whether all that there is was explored.
    whole: bool = False
    #: What decides its exploration, as ``--explore-changed`` has it; empty without.
    digest: str = ""
    #: What its executions left real, as `toolrt.sim.leave_real` calls it.
    real: tuple[str, ...] = ()
    #: Fixtures that all its executions shared.
    shared: tuple[str, ...] = ()
    #: Whether it was explored in Trio's orders only because neither the command line nor a marker names an order.
    orders_unasked: bool = False
    #: Whether it passed in those, and failed in one of a few that Trio's documentation allows besides.
    fails_in_any_order: bool = False


outcome_key = pytest.StashKey[Explored]()

#: True for a test without a marker: what cannot be shown of it is skipped.
unmarked_key = pytest.StashKey[bool]()

#: The fixtures that all executions of a test share, by name.
shared_key = pytest.StashKey[list[str]]()


def refuse(item: pytest.Item, why: str, text: str) -> NoReturn:
    """End a test that cannot be explored: skip an unmarked one, fail a marked one.

    Args:
        item: the test.
        why: the cause, in words that are the same for all tests with it.
        text: what to tell its reader.
    """
    __tracebackhide__ = True
    if (found := item.stash.get(outcome_key, None)) is not None:
        found.kind, found.why = REFUSED, why
    if item.stash.get(unmarked_key, False):
        pytest.skip(text)
    pytest.fail(text, pytrace=False)


def checked_number(text: str) -> int | None:
    """Give the N of ``--explore=N``; None: there is none.

    Raises:
        UsageError: it is no number of executions.
    """
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise pytest.UsageError(f"--explore={text}: expected a number of executions, 1 or more, or --explore alone")
    return int(text)


def is_async(item: pytest.Item) -> bool:
    """Say whether the test's function, as it was written, is async."""
    if not isinstance(item, pytest.Function):
        return False
    inner = getattr(getattr(item.obj, "hypothesis", None), "inner_test", item.obj)
    return inspect.iscoroutinefunction(inspect.unwrap(inner))


def anyio_backend(item: pytest.Function) -> tuple[str | None, Mapping[str, Any]]:
    """Name the backend that anyio's plugin runs the test on, with its options; None: it runs it on none."""
    params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    backend = params.get("anyio_backend", item.funcargs.get("anyio_backend"))
    return (backend, {}) if backend is None or isinstance(backend, str) else backend


def left_to_asyncio(item: pytest.Function) -> str | None:
    """Give what runs the test under asyncio; None: nothing does."""
    backend, _ = anyio_backend(item)
    if backend is not None:
        return None if backend == "trio" else f"anyio's backend {backend}"
    if item.get_closest_marker("trio") is not None:
        return None
    return "pytest-asyncio" if item.get_closest_marker("asyncio") is not None else None


class Unedited:
    """The plugin of ``--explore``."""

    def __init__(self, config: pytest.Config, changed: str | None) -> None:
        self._config = config
        self._changed = changed
        self._seen: dict[str, tuple[Explored, float]] = {}
        # What a process that outlives this one is told; None: there is none.
        self._survivor: TextIO | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Learn what has changed; pytest's cache is there by now."""
        if self._changed is not None:
            self._config.stash[changes_key] = Changes.since(self._config, self._changed)
        # Another worker of pytest-xdist goes on with the tests that are left.  pytest's own dump has the same timer.
        if float(self._config.getini("faulthandler_timeout") or 0):
            return
        if hasattr(self._config, "workerinput"):
            tell_where_stuck(os.dup(2))
        elif hasattr(os, "fork") and self._config.getoption("explore_seconds") and not self._is_divided():
            self._survivor = _last_report.begin()
            tell_where_stuck(self._survivor.fileno(), ends=False)

    def _is_divided(self) -> bool:
        """Say whether the tests run in workers of pytest-xdist's."""
        return bool(self._config.getoption("dist", "no") != "no")

    def _tell_survivor(self, **said: object) -> None:
        if self._survivor is not None:
            with contextlib.suppress(OSError):
                print(json.dumps(said), file=self._survivor)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Have what was ended in the middle of a test complain in no other test."""
        found, _ = self._seen.get(nodeid, (None, 0.0))
        if found is not None and (found.kind in (REFUSED, UNDECIDED) or found.real):
            collect_unheard()
        else:
            collect_what_is_left()

    def pytest_sessionfinish(self) -> None:
        """Keep what was found, in the process that heard of all tests."""
        tell_where_stuck(None)
        self._tell_survivor(ends=True)
        if hasattr(self._config, "workerinput"):
            return
        tests = {name: attrs.asdict(found) | {"seconds": spent} for name, (found, spent) in self._seen.items()}
        if changes_key in self._config.stash:
            self._config.stash[changes_key].keep(tests)
        if (file := self._config.getoption("explore_json")) is not None:
            Path(self._config.invocation_params.dir, file).write_text(json.dumps({"tests": tests}), encoding="utf-8")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Mark a test that is to be explored, before its fixtures are made."""
        self._tell_survivor(begins=item.nodeid)
        if not is_async(item):
            return
        assert isinstance(item, pytest.Function)
        name = left_to_asyncio(item)
        item.stash[outcome_key] = Explored(FAILED) if name is None else Explored(ASYNCIO, name)
        if name is None and item.get_closest_marker("explore") is None:
            item.stash[unmarked_key] = True
            # A test that was never made for the explorer is asked what Trio's scheduler can do to it.
            item.add_marker(pytest.mark.explore(order="trio"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Send what was found with the report: the process that writes the summary may be another."""
        report = yield
        if (found := item.stash.get(outcome_key, None)) is not None:
            if report.skipped and found.kind == FAILED:
                found.kind = SKIPPED
            if report.failed and found.kind == EXPLORED:
                # A fixture failed, or what pytest finds after it: the count is pytest's.
                found.kind = FAILED
            shared: list[str] = item.stash.get(shared_key, [])
            found.shared = tuple(shared)
            report.explored = attrs.asdict(found)
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep what was found of a test."""
        if report.when == "call" or report.outcome != "passed":
            self._tell_survivor(test=report.nodeid, outcome=report.outcome)
        found = getattr(report, "explored", None)
        if found is not None:
            _, seconds = self._seen.get(report.nodeid, (None, 0.0))
            self._seen[report.nodeid] = Explored(**found), seconds + report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the table."""
        if not self._seen:
            return
        terminalreporter.write_sep("=", "explored schedules")
        for line in self._lines():
            terminalreporter.write_line(line)

    def _lines(self) -> Generator[str]:
        kinds = Counter(found.kind for found, _ in self._seen.values())
        ran = [found for found, _ in self._seen.values() if found.executions]
        yield f"{'async tests':<12} {sum(kinds.values()) - kinds[ASYNCIO]:>6}"
        for kind in (EXPLORED, FAILED, UNDECIDED, REFUSED, SKIPPED, *([UNCHANGED] if kinds[UNCHANGED] else [])):
            yield f"{kind:<12} {kinds[kind]:>6}"
        yield f"{'executions':<12} {sum(found.executions for found in ran):>6}"
        yield f"{'distinct':<12} {sum(found.distinct for found in ran):>6}"
        if any(found.orders_unasked for found in ran):
            yield (
                "orders: those that Trio's scheduler makes; --explore-order any explores all that Trio's "
                "documentation allows, as the marker does"
            )
        advised = [name for name, (found, _) in self._seen.items() if found.fails_in_any_order]
        if advised:
            yield (
                f"advice: {counted(len(advised), 'test')} passed in these orders, and failed in one of "
                f"{ADVISED_BY} that Trio may make tomorrow; --explore-order any shows how:"
            )
            yield from (f"        {name}" for name in advised[:_NAMED])
            yield from [f"        and {len(advised) - _NAMED} more"] if len(advised) > _NAMED else []
        yield from self._reasons(UNDECIDED, "undecided, by cause:")
        yield from self._reasons(REFUSED, "refused, by cause:")
        yield from self._reasons(ASYNCIO, "left to asyncio:")
        left = Counter(kind for found in ran if found.kind != REFUSED for kind in found.real)
        if left:
            yield f"left real (tests): {', '.join(f'{kind} ({times})' for kind, times in left.most_common())}"
        shared = Counter(name for found in ran for name in found.shared)
        if shared:
            named = ", ".join(f"{name} ({times})" for name, times in shared.most_common(_NAMED))
            yield f"fixtures that the executions of a test shared (tests): {named}"
        slowest = sorted(self._seen.items(), key=lambda entry: -entry[1][1])[:_NAMED]
        yield "slowest:"
        for name, (found, seconds) in slowest:
            yield f"{seconds:>8.2f} s  {found.executions:>6} executions  {name}"

    def _reasons(self, kind: str, title: str) -> Generator[str]:
        reasons = Counter(found.why for found, _ in self._seen.values() if found.kind == kind)
        if reasons:
            yield title
            for why, times in sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0])):
                yield f"{times:>6}  {why}"


def cause_of(why: str) -> str:
    """Give the cause of an exploration that showed nothing, in words that are the same for all tests with it."""
    return "the same choices led to different things" if why.startswith("the same choices led to") else why

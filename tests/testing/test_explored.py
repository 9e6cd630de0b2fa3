"""Exploring under Hypothesis and without pytest: workloads and schedules, both shrunk."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.testing._counting import count, settings_of
from toolrt import sim, testing
from toolrt.errors import Deadlock, DefinitionRefused


def test_explored_test_that_holds_passes() -> None:
    """One task loses nothing."""

    @testing.explored
    async def holds() -> None:
        assert await count(1) == 1

    holds()


async def _counted_or_lost() -> int:
    counted = await count(2)
    if counted == 1:
        raise LookupError
    return counted


def test_explored_test_has_the_outcomes_that_it_names() -> None:
    """A value and an error that is expected, and no other."""
    testing.explored(strategy="dpor", outcomes=[2, LookupError])(_counted_or_lost)()
    testing.explored(strategy="dpor", outcomes=[2, LookupError], jobs=2)(_counted_or_lost)()


_NO_SOURCE = """
import trio
from toolrt import sim

async def test():
    async def bump(name):
        cell = sim.Cell(0, name=name)
        cell.set(cell.get() + 1)
        await trio.lowlevel.checkpoint()
        cell.set(cell.get() + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(bump, "a")
        nursery.start_soon(bump, "b")
"""


def test_default_tracks_no_test_that_cannot_be_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that finishes without tracking finishes by default, too: here nothing of the test would report."""
    module = ModuleType("no_source")
    exec(compile(_NO_SOURCE, "<no source>", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "no_source", module)
    testing.explored(strategy="dpor", executions=3, track=False)(module.test)()
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        testing.explored(strategy="dpor", executions=3, track=True)(module.test)()
    testing.explored(strategy="dpor", executions=3)(module.test)()


def test_outcome_that_is_not_named_ends_the_exploration() -> None:
    """It is raised where it is an error, after the first execution that has it."""
    ran = 0

    async def counts() -> int:
        nonlocal ran
        ran += 1
        return await count(3)

    with pytest.raises(LookupError):
        testing.explored(strategy="dpor", outcomes={2})(_counted_or_lost)()
    with pytest.raises(AssertionError, match="the outcome 3 is none of"):
        testing.explored(strategy="exhaustive", outcomes={1})(counts)()
    # The first execution, the shrinker's and the explainer's: not all 90.
    assert ran < 45


@pytest.mark.parametrize(("strategy", "words"), [("dpor", "FAIL"), ("random", "INCONCLUSIVE")])
def test_outcome_that_never_comes_is_no_pass(strategy: str, words: str) -> None:
    """It fails a search that ran everything, and a sample shows nothing."""

    @testing.explored(strategy=strategy, executions=30, outcomes={1, 2, 3})
    async def counts() -> int:
        return await count(2)

    with pytest.raises(AssertionError, match=rf"{words}(?s:.*)never  3, which is expected"):
        counts()


def test_explored_test_raises_what_it_raised_with_the_minimal_schedule() -> None:
    """The exception is the program's own; the rest is a note."""

    @testing.explored(strategy="dpor")
    async def loses() -> None:
        assert await count(2) == 2

    with settings_of(None), pytest.raises(AssertionError) as caught:
        loses()
    [note] = caught.value.__notes__
    assert "FAIL: " in note
    assert "1 preemption" in note
    frames = [entry.name for entry in caught.traceback]
    assert frames[-1] == "loses"
    assert "choose" not in frames


def test_check_that_complains_is_told() -> None:
    """Nothing was raised: the error says what the check said."""

    @testing.explored(executions=3, check=lambda execution: ["not even"])
    async def counts() -> None:
        await count(2)

    with settings_of(None), pytest.raises(testing.Wrong, match="not even"):
        counts()


def test_check_may_accept_an_error() -> None:
    """Exactly True says that all is well."""

    @testing.explored(executions=3, check=lambda execution: isinstance(execution.error, Deadlock))
    async def waits() -> None:
        await trio.sleep_forever()

    waits()


def test_cancel_at_any_step_is_explored_too() -> None:
    """What is left behind when the test is cancelled is found, and replayed as it was found."""
    lent: list[int] = []

    @testing.explored(strategy="exhaustive", cancel_at="any", check=lambda execution: lent == [])
    async def borrows() -> None:
        lent.clear()
        lent.append(1)
        await trio.lowlevel.checkpoint()
        lent.remove(1)

    with settings_of(None), pytest.raises(testing.Wrong, match="the check returned False") as caught:
        borrows()
    assert "cancel" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"cancel_at": ""}, "cancel_at"),
        ({"clock": "wall"}, "clock"),
        ({"clock": "explored", "clock_moves": 0}, "clock_moves"),
        ({"jobs": 0}, "jobs"),
        ({"jobs": "2"}, "jobs"),
    ],
)
def test_actor_or_number_of_processes_that_cannot_be_is_refused(options: dict[str, Any], what: str) -> None:
    """Before the test is run."""
    runs: list[int] = []

    @testing.explored(**options)
    async def nothing() -> None:
        runs.append(1)

    with pytest.raises(DefinitionRefused, match=what):
        nothing()
    assert not runs


@pytest.mark.process
def test_processes_find_a_failure(tmp_path: Path) -> None:
    """It is run again here, made simple, and raised as the test raised it."""

    @testing.explored(strategy="dpor", jobs=2)
    async def loses() -> None:
        assert await count(2) == 2

    with settings_of(None), pytest.raises(AssertionError) as caught:
        loses()
    assert "1 preemption" in "".join(caught.value.__notes__)


@pytest.mark.seldom
@pytest.mark.process
def test_processes_of_examples_are_refused() -> None:
    """Each example would begin its own."""

    @given(st.integers())
    @testing.explored(jobs=2)
    async def nothing(number: int) -> None:
        pass

    with pytest.raises(DefinitionRefused, match="@given"):
        nothing()


def test_nothing_shown_is_no_pass() -> None:
    """A step limit with a deadline pending decides nothing."""

    @testing.explored(executions=3, step_limit=5)
    async def spins() -> None:
        rounds = sim.Cell(0, name="rounds")
        with trio.move_on_after(1):
            while True:
                rounds.set(rounds.get() + 1)
                await trio.lowlevel.checkpoint()

    with pytest.raises(testing.NotShown, match="INCONCLUSIVE"):
        spins()


@pytest.mark.parametrize("options", [{"executoins": 3}, {"replay": "main"}, {"strategy": "magic"}, {"executions": 0}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    """A typing error is no silent default."""

    async def nothing() -> None:
        pass

    with pytest.raises(DefinitionRefused):
        testing.explored(**options)(nothing)()


def test_sync_test_is_refused() -> None:
    """There is nothing to explore."""
    with pytest.raises(DefinitionRefused):
        testing.explored(lambda: None)  # type: ignore[arg-type,return-value]


def test_unittest_methods_are_explored() -> None:
    """`self` and skipping work as they do there."""

    class Tests(unittest.TestCase):
        @testing.explored(executions=5)
        async def test_counts(self) -> None:
            assert await count(1) == 1

        @testing.explored(executions=5)
        async def test_skipped(self) -> None:
            self.skipTest("not here")

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(result)
    assert result.wasSuccessful()
    assert len(result.skipped) == 1

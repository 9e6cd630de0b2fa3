"""Exploring under Hypothesis and without pytest: workloads and schedules, both shrunk."""

from __future__ import annotations

import os
import sys
import time
import unittest
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import trio
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.errors import DeadlineExceeded

from tests.testing._losing import LOSING
from toolrt import sim, testing
from toolrt.errors import Deadlock, DefinitionRefused
from toolrt.testing._given import fresh

if TYPE_CHECKING:
    from tests.testing.conftest import Inner

QUICK = settings(max_examples=30, database=None, suppress_health_check=[HealthCheck.differing_executors])


async def bump(cell: sim.Cell[int]) -> None:
    """Lose an update, if somebody comes between."""
    seen = cell.get()
    await trio.lowlevel.checkpoint()
    cell.set(seen + 1)


async def count(tasks: int) -> int:
    """Count in so many tasks."""
    cell = sim.Cell(0, name="counter")
    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(bump, cell)
    return cell.get()


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


@pytest.mark.parametrize("strategy", ["exhaustive", "dpor"])
def test_named_scope_is_cancelled_too(strategy: str) -> None:
    """A scope that may be cancelled inside of the test."""

    @testing.explored(strategy=strategy, cancel_at="work")
    async def finishes() -> None:
        with sim.scope("work") as scope:
            await trio.lowlevel.checkpoint()
        assert not scope.cancelled_caught

    with settings_of(None), pytest.raises(AssertionError) as caught:
        finishes()
    assert "cancel.0" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("strategy", ["exhaustive", "dpor"])
def test_time_beside_work_is_explored_too(strategy: str) -> None:
    """A timeout that cuts work that goes on is found, and replayed with the clock it was found with."""

    @testing.explored(strategy=strategy, clock="explored", clock_moves=1)
    async def in_time() -> None:
        with trio.move_on_after(1) as scope:
            await trio.lowlevel.checkpoint()
        assert not scope.cancelled_caught

    with settings_of(None), pytest.raises(AssertionError) as caught:
        in_time()
    text = "".join(caught.value.__notes__)
    assert "with clock_moves<=1" in text
    assert "clock" in text.splitlines()[-1] or "moves to 1" in text


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"cancel_at": ""}, "cancel_at"),
        ({"clock": "real"}, "clock"),
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
def test_processes_share_the_executions(tmp_path: Path) -> None:
    """Others than this one run some of them."""
    file = tmp_path / "pids"

    @testing.explored(strategy="exhaustive", jobs=2)
    async def notes() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(trio.lowlevel.checkpoint)
        with file.open("a") as out:
            out.write(f"{os.getpid()}\n")

    with settings_of(None):
        notes()
    pids = file.read_text().split()
    # All 90, and the first once more to see whether the test is controlled; so are some of each process's.
    assert 92 <= len(pids) <= 91 + 2 * 7
    assert len(set(pids)) > 1


@pytest.mark.process
def test_processes_find_a_failure(tmp_path: Path) -> None:
    """It is run again here, made simple, and raised as the test raised it."""

    @testing.explored(strategy="dpor", jobs=2)
    async def loses() -> None:
        assert await count(2) == 2

    with settings_of(None), pytest.raises(AssertionError) as caught:
        loses()
    assert "1 preemption" in "".join(caught.value.__notes__)


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


class settings_of:  # noqa: N801  used like a function
    """Have Hypothesis' default settings name a database."""

    def __init__(self, database: Any) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._before = settings.get_current_profile_name()
        settings.register_profile("toolrt-test", settings(database=self._database))
        settings.load_profile("toolrt-test")

    def __exit__(self, *_: object) -> None:
        settings.load_profile(self._before)


def test_hypothesis_shrinks_the_workload_and_the_explorer_the_schedule() -> None:
    """Two tasks and one preemption are the least that loses a count."""
    calls: list[int] = []

    @QUICK
    @given(tasks=st.integers(0, 6), noise=st.lists(st.integers(), max_size=5))
    @testing.explored(executions=20)
    async def loses(tasks: int, noise: list[int]) -> None:
        calls.append(tasks)
        noise.clear()
        assert await count(tasks) == tasks

    with pytest.raises(AssertionError) as caught:
        loses()
    notes = "\n".join(caught.value.__notes__)
    assert "tasks=2" in notes
    assert "noise=[]" in notes
    assert "6 steps, 1 preemption" in notes
    assert calls[-1] == 2


def test_drawn_containers_are_full_again_in_each_execution() -> None:
    """A test may empty what it is given."""

    @QUICK
    @given(names=st.lists(st.integers(), min_size=2, max_size=4))
    @testing.explored(executions=3)
    async def pops(names: list[int]) -> None:
        assert len(names) > 1
        names.clear()

    pops()


def test_drawing_inside_gives_every_execution_the_same() -> None:
    """And what was drawn is in the report."""
    drawn: list[list[int]] = []

    @QUICK
    @given(data=st.data())
    @testing.explored(executions=3)
    async def draws(data: st.DataObject) -> None:
        values = [data.draw(st.integers(0, 50), label="size")]
        await trio.lowlevel.checkpoint()
        values += data.draw(st.lists(st.integers(0, 3), max_size=2))
        drawn.append(values)
        assert values[0] < 20

    with pytest.raises(AssertionError) as caught:
        draws()
    assert "Draw 1 (size): 20" in "\n".join(caught.value.__notes__)
    assert drawn[-1] == [20]


@pytest.mark.slow
def test_drawing_in_an_order_that_the_schedule_decides_is_refused() -> None:
    """There would be no one workload."""

    @settings(QUICK, max_examples=2, phases=[Phase.generate])
    @given(data=st.data())
    @testing.explored(strategy="exhaustive")
    async def draws(data: st.DataObject) -> None:
        async def one(strategy: st.SearchStrategy[Any]) -> None:
            await trio.lowlevel.checkpoint()
            data.draw(strategy)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, st.integers())
            nursery.start_soon(one, st.text())

    with pytest.raises(BaseExceptionGroup) as caught:
        draws()
    assert caught.group_contains(DefinitionRefused, match="draw before tasks are started")


def test_assume_discards_an_example() -> None:
    """From a child task too: nothing of Hypothesis' is raised through Trio's loop, or taken for a failure."""
    seen: list[int] = []
    database = InMemoryExampleDatabase()

    @settings(QUICK, database=database)
    @example(n=1)
    @given(n=st.integers(0, 9))
    @testing.explored(executions=3)
    async def assumes(n: int) -> None:
        async def child() -> None:
            await trio.lowlevel.checkpoint()
            assume(n % 2 == 0)
            seen.append(n)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)

    assumes()
    assert {n % 2 for n in seen} == {0}
    assert not database.data


def test_explicit_examples_are_explored() -> None:
    """`@example` is a workload like any other."""

    @settings(QUICK, phases=[Phase.explicit])
    @example(tasks=3)
    @given(tasks=st.integers(0, 1))
    @testing.explored(executions=20)
    async def loses(tasks: int) -> None:
        assert await count(tasks) == tasks

    with pytest.raises(AssertionError) as caught:
        loses()
    notes = "\n".join(caught.value.__notes__)
    assert "tasks=3" in notes
    assert "1 preemption" in notes


@pytest.mark.parametrize(("seconds", "fails"), [(0.01, False), (0.3, True)])
def test_deadline_counts_the_slowest_execution(seconds: float, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred quick executions are no slow example; one that is slow is."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    @settings(QUICK, max_examples=3, deadline=timedelta(milliseconds=200))
    @given(st.integers())
    @testing.explored(executions=100)
    async def takes(n: int) -> None:
        now[0] += seconds

    if fails:
        with pytest.raises(DeadlineExceeded):
            takes()
    else:
        takes()


def test_example_that_failed_is_found_again_from_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workload is kept by Hypothesis, the schedule beside it."""
    # Where a seed is given for the whole run, Hypothesis looks into no database.
    monkeypatch.setattr("hypothesis.core.global_force_seed", None)
    database = InMemoryExampleDatabase()
    calls: list[int] = []

    def test(executions: int) -> Any:
        @settings(QUICK, database=database)
        @given(tasks=st.integers(0, 40))
        @testing.explored(executions=executions, strategy="random", seed=0)
        async def loses(tasks: int) -> None:
            calls.append(tasks)
            assert await count(min(tasks, 2)) == min(tasks, 2)

        return loses

    with pytest.raises(AssertionError):
        test(30)()
    kept = [key for key in database.data if key.startswith(b"toolrt.explore\0")]
    assert len(kept) == 1
    assert database.data[kept[0]] == {b"main main.0 main.1*2 main.0 main"}
    calls.clear()
    with pytest.raises(AssertionError):
        test(30)()
    assert calls[0] == 2


def test_skip_inside_an_example_skips() -> None:
    """As it does without the explorer."""

    @QUICK
    @given(st.integers())
    @testing.explored(executions=3)
    async def skips(n: int) -> None:
        pytest.skip("not here")

    with pytest.raises(pytest.skip.Exception):
        skips()


def test_notes_are_printed_once() -> None:
    """For the execution that is reported, not for those that shrinking took."""

    @QUICK
    @given(n=st.integers(0, 9))
    @testing.explored(executions=3)
    async def notes(n: int) -> None:
        hypothesis.note("seen once")
        assert await count(2) == 2

    with pytest.raises(AssertionError) as caught:
        notes()
    assert "\n".join(caught.value.__notes__).count("seen once") == 1


@pytest.mark.parametrize(
    "value",
    [[1, [2]], {"a": [1]}, {1, 2}, deque([1], 3), (1, [2]), bytearray(b"x"), [object()]],
    ids=lambda value: type(value).__name__,
)
def test_fresh_value_is_equal_and_its_containers_are_others(value: Any) -> None:
    """Objects are shared, containers are not."""
    copied = fresh(value)
    assert copied == value
    assert type(copied) is type(value)

    def containers(thing: Any) -> Iterator[int]:
        if isinstance(thing, list | dict | set | deque | bytearray):
            yield id(thing)
        if isinstance(thing, list | tuple | deque):
            for inner in thing:
                yield from containers(inner)

    assert not set(containers(value)) & set(containers(copied))


_GIVEN = (
    LOSING
    + """
from hypothesis import given, settings, strategies as st

@pytest.mark.explore(executions=20)
class TestIt:
    @pytest.mark.parametrize("extra", [0, 1])
    @settings(max_examples=30, deadline=None)
    @given(tasks=st.integers(0, 5))
    async def test_given(self, cell, extra, tasks):
        async with trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(bump, cell)
        assert cell.get() == tasks
"""
)


@pytest.mark.process
def test_given_with_marker_fixtures_class_and_parameters(inner: Inner) -> None:
    """The report has the minimal example, its minimal schedule and the command."""
    code, output = inner(_GIVEN)
    assert code == 1, output
    assert "2 failed" in output
    assert output.count("tasks=2,") == 2
    assert output.count("6 steps, 1 preemption") == 2
    assert "cell=<fixture cell, made anew for each execution>" in output
    assert "pytest 'test_it.py::TestIt::test_given[0]' --explore-replay 'main main.0 main.1*2 main.0 main'" in output


@pytest.mark.slow
@pytest.mark.process
def test_given_is_replayed_with_the_example_of_the_database(inner: Inner) -> None:
    """One workload has the schedule; the others are passed over."""
    inner(_GIVEN)
    name, schedule = "test_it.py::TestIt::test_given[0]", "main main.0 main.1*2 main.0 main"
    code, output = inner(None, name, "--explore-replay", schedule)
    assert code == 1, output
    assert "tasks=2," in output
    code, output = inner(None, name, "--explore-replay", "main main.0*99")
    assert code == 1, output
    assert "no example has the schedule" in output


@pytest.mark.slow
@pytest.mark.process
def test_seed_of_hypothesis_decides_the_workloads(inner: Inner) -> None:
    """The same seed, the same examples; the explorer draws from its own."""
    text = _GIVEN.replace("        async with", '        print("tasks", tasks)\n        async with').replace(
        "assert cell.get() == tasks", "assert cell.get() <= tasks"
    )
    first, second = (inner(text, "--hypothesis-seed=3")[1] for _ in range(2))
    lines = [[line for line in output.splitlines() if line.startswith("tasks")] for output in (first, second)]
    assert lines[0] == lines[1]
    assert len(lines[0]) > 100


@pytest.mark.process
def test_fixture_that_is_made_once_is_still_a_trap_for_given(inner: Inner) -> None:
    """Hypothesis' health check stays where it is right: pytest's own tmp_path is not made anew."""
    code, output = inner(_GIVEN.replace("self, cell,", "self, cell, tmp_path,"))
    assert code == 1, output
    assert "uses a function-scoped fixture" in output

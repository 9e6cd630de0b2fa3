"""Exploring under Hypothesis: workloads and schedules, both shrunk."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import hypothesis
import pytest
import trio
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.errors import DeadlineExceeded

from tests.testing._counting import QUICK, count
from tests.testing._losing import LOSING
from tests.testing.conftest import Inner, ended
from toolrt import testing
from toolrt.errors import DefinitionRefused
from toolrt.testing._given import fresh


@pytest.mark.seldom
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


@pytest.mark.seldom
def test_drawn_containers_are_full_again_in_each_execution() -> None:
    """A test may empty what it is given."""

    @QUICK
    @given(names=st.lists(st.integers(), min_size=2, max_size=4))
    @testing.explored(executions=3)
    async def pops(names: list[int]) -> None:
        assert len(names) > 1
        names.clear()

    pops()


@pytest.mark.seldom
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


@pytest.mark.seldom
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


@pytest.mark.seldom
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


@pytest.mark.seldom
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


@pytest.mark.seldom
@pytest.mark.process
def test_given_with_marker_fixtures_class_and_parameters(inner: Inner) -> None:
    """The report has the minimal example, its minimal schedule and the command."""
    output = ended(inner(_GIVEN), 1, "2 failed")
    assert output.count("tasks=2,") == 2
    assert output.count("6 steps, 1 preemption") == 2
    assert "cell=<fixture cell, made anew for each execution>" in output
    assert "pytest 'test_it.py::TestIt::test_given[0]' --explore-replay 'main main.0 main.1*2 main.0 main'" in output


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.process
def test_given_is_replayed_with_the_example_of_the_database(inner: Inner) -> None:
    """One workload has the schedule; the others are passed over."""
    inner(_GIVEN)
    name, schedule = "test_it.py::TestIt::test_given[0]", "main main.0 main.1*2 main.0 main"
    ended(inner(None, name, "--explore-replay", schedule), 1, "tasks=2,")
    ended(inner(None, name, "--explore-replay", "main main.0*99"), 1, "no example has the schedule")


@pytest.mark.seldom
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


@pytest.mark.seldom
@pytest.mark.process
def test_fixture_that_is_made_once_is_still_a_trap_for_given(inner: Inner) -> None:
    """Hypothesis' health check stays where it is right: pytest's own tmp_path is not made anew."""
    ended(inner(_GIVEN.replace("self, cell,", "self, cell, tmp_path,")), 1, "uses a function-scoped fixture")

"""The orders of Trio's loop: generated, reduced and replayed, and held against plain Trio both ways."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from tests._profile import FULL
from tests.sim._programs import OPERATIONS, THINGS, lost_update, program_of, timed
from tests.sim._traces import TooMany, count_traces, reduced
from toolrt import sim, testing
from toolrt.errors import DefinitionRefused, InputRefused

pytest_plugins = ["pytester"]

_loop: Any = trio._core._run


async def loaded_in_time() -> str:
    """A user waits for two checkpoints, a loader needs one: that is enough in Trio, and no promise of its."""
    loaded: list[str] = []

    async def load() -> None:
        await checkpoint()
        loaded.append("loaded")

    async def use() -> None:
        await checkpoint()
        await checkpoint()
        loaded.append("used")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(load)
        nursery.start_soon(use)
    return ", ".join(loaded)


def _says(right: str) -> Callable[[sim.Execution], bool]:
    return lambda execution: execution.value == right


def test_a_program_fails_in_one_order_and_holds_in_the_other() -> None:
    """The program of the page on orders, with its counts."""
    check = _says("loaded, used")
    some = sim.explore(loaded_in_time, sim.Exhaustive(), check)
    assert (some.verdict, some.executions, some.failed) == (sim.FAIL, 10, 4)
    assert some.order == "any"
    every = sim.explore(loaded_in_time, sim.Exhaustive(), check, order="trio")
    assert every.verdict is sim.PASS
    assert every.claim == "exhaustive(schedules=4) with order=trio"
    assert every.order == "trio"
    assert sim.explore(loaded_in_time, sim.DPOR(), check, order="trio").complete


@pytest.mark.parametrize(
    ("tasks", "order", "schedules", "traces"),
    [(2, "any", 6, 4), (2, "trio", 4, 2), (3, "any", 90, 36), (3, "trio", 36, 6)],
)
def test_counts_of_the_page(programs: ModuleType, tasks: int, order: str, schedules: int, traces: int) -> None:
    """The table of the page on orders; under Trio's an update is always lost."""
    program = programs.lost_update(tasks, 1)[0]
    every = sim.explore(program, sim.Exhaustive(), lambda execution: True, order=order)
    assert every.executions == schedules
    report, _, outcomes = reduced(program, order=order)
    assert report.executions == traces
    assert (len(outcomes) == 1) == (order == "trio")
    assert every.outcomes.keys() == report.outcomes.keys()


STRATEGIES: list[sim.Strategy] = [
    sim.Exhaustive(),
    sim.Bounded(0),
    sim.Bounded(9),
    sim.DPOR(),
    sim.Portfolio(30),
    *(sim.Random(policy, 10) for policy in (sim.RandomWalk(1), sim.PCT(2, 1), sim.POS(1), sim.URW(1), sim.Fifo())),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_every_strategy_keeps_the_order(strategy: sim.Strategy) -> None:
    """None makes the outcome that takes a task two steps ahead; each names the order."""
    report = sim.explore(loaded_in_time, strategy, _says("loaded, used"), order="trio")
    assert report.verdict is sim.PASS
    assert report.claim.endswith(" with order=trio")


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR(), sim.Portfolio(30)], ids=str)
def test_divided_searches_keep_the_order(strategy: sim.Strategy, tmp_path: pathlib.Path) -> None:
    """With a checkpoint, which another order refuses, the same is run."""
    kept = tmp_path / "kept"
    whole = sim.explore(lost_update, strategy, lambda execution: True, order="trio")
    report = sim.explore(lost_update, strategy, lambda execution: True, order="trio", checkpoint=kept)
    assert (report.claim, report.outcomes) == (whole.claim, whole.outcomes)
    assert report.outcomes.keys() == {1}


def test_a_checkpoint_belongs_to_its_order(tmp_path: pathlib.Path) -> None:
    """What was run in one order is no part of the other."""
    kept = tmp_path / "kept"
    sim.explore(lost_update, sim.Exhaustive(), max_executions=1, order="trio", checkpoint=kept)
    with pytest.raises(InputRefused, match="order=trio"):
        sim.explore(lost_update, sim.Exhaustive(), checkpoint=kept)


@pytest.mark.seldom
def test_a_schedule_keeps_its_order() -> None:
    """Each form says it, replays under it, and is refused under the other by name."""
    failure = sim.explore(lost_update, check=_says("2"), order="trio").failures[0]
    schedule = failure.minimal
    assert schedule.order == "trio"
    assert schedule.short.startswith("trio: main ")
    assert 'order="trio")' in failure.explain()
    for form in (schedule, schedule.to_json(), schedule.short):
        assert sim.Schedule.of(form).order == "trio"
        execution = sim.replay(lost_update, form, order="trio")
        assert execution.schedule == schedule
        assert execution.trace.meta["order"] == "trio"
        with pytest.raises(DefinitionRefused, match=r'order: expected "trio", with which this schedule was recorded'):
            sim.replay(lost_update, form)
    with pytest.raises(DefinitionRefused, match=r'order: expected "any"'):
        sim.replay(lost_update, sim.run(lost_update).schedule, order="trio")


def test_a_test_is_explored_in_its_order() -> None:
    """The decorator takes the order, and its failures run again in it."""

    async def test_it() -> None:
        assert await loaded_in_time() == "loaded, used"

    testing.explored(strategy="exhaustive", order="trio")(test_it)()
    with pytest.raises(AssertionError):
        testing.explored(strategy="exhaustive")(test_it)()

    async def test_that_fails() -> None:
        assert await lost_update() == 2

    with pytest.raises(AssertionError) as failed:
        testing.explored(strategy="dpor", order="trio")(test_that_fails)()
    assert "with order=trio" in failed.value.__notes__[0]
    with pytest.raises(DefinitionRefused, match="order"):
        testing.explored(order="fifo")(test_it)()


@pytest.mark.parametrize("actors", [{"cancel_at": "any"}, {"clock": "explored"}])
def test_events_come_between_passes(actors: dict[str, Any]) -> None:
    """A cancel, and time, come before or after both steps of a pass, and each schedule replays."""
    seen: list[sim.Execution] = []

    def look(execution: sim.Execution) -> bool:
        seen.append(execution)
        return True

    report = sim.explore(timed, sim.Exhaustive(), look, order="trio", **actors)
    assert len(report.outcomes) > 1
    assert sim.explore(timed, sim.DPOR(), look, order="trio", **actors).outcomes.keys() == report.outcomes.keys()
    for execution in seen:
        again = sim.replay(timed, execution.schedule.to_json(), order="trio", **actors)
        assert again.trace.to_json() == execution.trace.to_json()


async def in_a_past_deadline() -> tuple[bool, bool, bool]:
    """A deadline in the past, given by a step, beside an event that another step of the pass sets."""
    scope, event, wrote = trio.CancelScope(), trio.Event(), sim.Cell(False, "wrote")
    seen: list[bool] = []

    async def wait() -> None:
        with scope:
            await event.wait()
        seen.append(scope.cancelled_caught)

    async def hurry() -> None:
        await checkpoint()
        wrote.set(True)
        scope.deadline = -1

    async def fire() -> None:
        await checkpoint()
        seen.append(wrote.get())
        event.set()

    async with trio.open_nursery() as nursery:
        for task in (wait, hurry, fire):
            nursery.start_soon(task)
    return seen[0], seen[1], scope.cancel_called


def test_deadlines_expire_between_passes() -> None:
    """The event wins also where the deadline was given first: Trio looks at deadlines after the pass."""
    outcomes = sim.explore(in_a_past_deadline, sim.Exhaustive(), lambda execution: True, order="trio").outcomes
    assert outcomes.keys() == {(True, False, True), (False, False, True)}
    _hold_against_plain_trio(in_a_past_deadline, 0, 500)


# ---------------------------------------------------------------------- the oracle: every schedule


_SPECS = st.lists(
    st.tuples(
        st.sampled_from([None, None, 0, 1]),
        st.lists(
            st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, THINGS - 1)), min_size=1, max_size=4
        ).map(tuple),
    ),
    min_size=2,
    max_size=4,
).map(tuple)

ACTORS: list[dict[str, Any]] = [
    {},
    {},
    {"cancel_at": "any"},
    {"cancel_at": "work"},
    {"clock": "explored"},
    {"clock": "real"},
]


@pytest.mark.seldom
@pytest.mark.slow
@settings(max_examples=2_000 if FULL else 8, suppress_health_check=[HealthCheck.filter_too_much])
@given(spec=_SPECS, declared=st.booleans(), actors=st.sampled_from(ACTORS))
@example(spec=((None, (("idle", 0),)), (None, (("soon", 0),))), declared=False, actors={"cancel_at": "any"})
def test_reduction_runs_one_execution_of_each_trace(spec, declared: bool, actors: dict[str, Any]) -> None:
    """Law: within the orders of Trio's loop, too, as many executions as traces, and the outcomes of every schedule."""
    program = program_of(spec)
    try:
        counted = count_traces(program, declared, limit=400 if FULL else 150, order="trio", **actors)
    except TooMany:
        return
    report, search, outcomes = reduced(program, "declared" if declared else "reported", order="trio", **actors)
    assert [seen for seen in counted.traces.values() if len(seen) > 1] == []
    assert outcomes == counted.outcomes
    assert search.complete()
    assert report.executions >= len(counted.traces)
    if search.passes == 1:
        assert report.executions == len(counted.traces)


# What a simulation alone has.
_PLAIN = sorted(OPERATIONS.keys() - {"pick"})

_PLAIN_SPECS = st.lists(
    st.tuples(
        st.sampled_from([None, None, 0, 1]),
        st.lists(st.tuples(st.sampled_from(_PLAIN), st.sampled_from((0, 0, 0, 1))), min_size=2, max_size=4).map(tuple),
    ),
    min_size=2,
    max_size=3,
).map(tuple)


@settings(max_examples=300 if FULL else 10)
@given(spec=_PLAIN_SPECS, seed=st.integers(0, 1_000))
def test_each_pass_steps_each_task_once(spec, seed: int) -> None:
    """Law: a task steps twice only after each task that could run with it has stepped."""
    execution = sim.run(program_of(spec), sim.RandomWalk(seed), order="trio")
    waiting: set[str] = set()
    for step in execution.schedule.steps:
        waiting = waiting or set(step.enabled)
        assert set(step.enabled) == waiting
        waiting.discard(step.task)


# ---------------------------------------------------------------------- plain Trio, both ways


@contextmanager
def _shuffled(seed: int) -> Iterator[None]:
    """Let plain Trio shuffle each batch, by a seed of ours: Hypothesis would have it draw the same in each example."""
    before, state = _loop._ALLOW_DETERMINISTIC_SCHEDULING, _loop._r.getstate()
    _loop._ALLOW_DETERMINISTIC_SCHEDULING = True
    _loop._r.seed(seed)
    try:
        yield
    finally:
        _loop._r.setstate(state)
        _loop._ALLOW_DETERMINISTIC_SCHEDULING = before


def _in_plain_trio(program: Callable[[], Awaitable[Any]]) -> str:
    """Run it in a Trio run of its own, with Trio's own clock for tests, and give what came out, as text."""

    async def main() -> str:
        with trio.CancelScope(deadline=1_000_000) as scope:
            try:
                value = repr(await program())
            except Exception as error:
                value = type(error).__name__
        # Nothing could run any more.
        return "Deadlock" if scope.cancel_called else value

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def _hold_against_plain_trio(program: Callable[[], Awaitable[Any]], seed: int, most: int) -> int:
    """Compare the outcomes of every schedule with those of plain Trio, and give how many there are."""
    outcomes = count_traces(program, limit=150, order="trio").outcomes
    plain: set[str] = set()
    for run in range(most):
        with _shuffled(seed * most + run):
            plain.add(_in_plain_trio(program))
        assert plain <= outcomes
        if run >= 20 and plain == outcomes:
            break
    assert plain == outcomes
    return len(outcomes)


@pytest.mark.slow
@settings(max_examples=300 if FULL else 6, suppress_health_check=[HealthCheck.filter_too_much])
@given(spec=_PLAIN_SPECS, seed=st.integers(0, 1_000))
def test_trio_makes_exactly_these(spec, seed: int) -> None:
    """Law: no outcome that plain Trio cannot make, and each one it makes in thousands of runs."""
    with contextlib.suppress(TooMany):
        _hold_against_plain_trio(program_of(spec), seed, 5_000)

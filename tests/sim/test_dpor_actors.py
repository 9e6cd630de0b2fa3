"""The reduction with cancels, an explored clock, choices and faults, against the oracle that runs every schedule."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from tests._profile import FULL
from tests.sim._programs import (
    OPERATIONS,
    THINGS,
    faulty_change,
    lost_update,
    program_of,
    set_apart,
    timed,
    two_scopes,
)
from tests.sim._traces import InParts, TooMany, count_traces, outcome_of, reduced
from toolrt import sim

Program = Callable[[], Awaitable[Any]]


async def three_steps() -> None:
    """Three steps of one task."""
    await checkpoint()
    await checkpoint()


async def independent() -> tuple[int, int]:
    """Two tasks that share nothing."""
    cells = await set_apart()
    return cells[0].get(), cells[1].get()


async def sleeper() -> float:
    """Three sleeps."""
    for _ in range(3):
        await trio.sleep(1)
    return trio.current_time()


async def blocked() -> None:
    """A deadlock."""
    await trio.sleep_forever()


async def chosen() -> tuple[int, int]:
    """Two tasks that choose, each for itself, the second time only when the first choice was 1."""
    cells = [sim.Cell(0), sim.Cell(0)]

    async def pick(cell: sim.Cell[int]) -> None:
        first = sim.choose(2)
        cell.set(first)
        await checkpoint()
        cell.set(first + (sim.choose(3) if first else 0))

    async with trio.open_nursery() as nursery:
        for cell in cells:
            nursery.start_soon(pick, cell)
    return cells[0].get(), cells[1].get()


async def chosen_twice() -> tuple[int, ...]:
    """Two choices within one step, the second of as many as the first says, beside a write that one of them races."""
    cell, own = sim.Cell(0, "x"), sim.Cell(0, "own")
    seen: list[int] = []

    async def pick() -> None:
        first = sim.choose(3)
        own.set(first)
        second = sim.choose(first + 1)
        seen.extend((first, second, cell.get() if second else -1))

    async def put() -> None:
        cell.set(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pick)
        nursery.start_soon(put)
    return tuple(seen)


ANY: dict[str, Any] = {"cancel_at": "any"}
WORK: dict[str, Any] = {"cancel_at": "work"}
CLOCK: dict[str, Any] = {"clock": "explored", "clock_moves": 2}

#: Program, what else can happen, traces, schedules.
LISTED: dict[str, tuple[Program, dict[str, Any], int, int]] = {
    "three steps, cancelled": (three_steps, ANY, 4, 4),
    "a lost update, cancelled": (lost_update, ANY, 68, 92),
    "a lost update beside a clock that has nowhere to go": (lost_update, CLOCK, 4, 6),
    "two tasks that share nothing, cancelled": (independent, ANY, 60, 92),
    "a timeout beside a clock": (timed, CLOCK, 4, 4),
    "a timeout beside a clock, cancelled": (timed, {**ANY, **CLOCK}, 22, 22),
    "sleeps, cancelled": (sleeper, ANY, 8, 8),
    "sleeps beside a clock, cancelled": (sleeper, {**ANY, **CLOCK}, 12, 12),
    "a deadlock, cancelled": (blocked, ANY, 3, 3),
    "one of two scopes": (two_scopes, WORK, 36, 36),
    "choices of two tasks": (chosen, {}, 16, 96),
    "choices within a step": (chosen_twice, {}, 9, 12),
}


@pytest.mark.parametrize("name", LISTED)
def test_one_execution_of_each_trace(name: str) -> None:
    """As many executions as the oracle counts traces, and its outcomes."""
    program, actors, traces, schedules = LISTED[name]
    counted = count_traces(program, **actors)
    assert (len(counted.traces), counted.schedules) == (traces, schedules)
    report, search, outcomes = reduced(program, **actors)
    assert outcomes == counted.outcomes
    assert (report.executions, search.passes) == (traces, 1)
    assert report.claim.startswith(f"exhaustive(traces={traces})")
    assert report.verdict is sim.PASS


@pytest.mark.parametrize("name", [name for name, (_, actors, _, _) in LISTED.items() if actors])
def test_vouched_accesses_leave_no_outcome_out(name: str) -> None:
    """With silent steps that touch nothing there are fewer traces, and the same outcomes."""
    program, actors, _, _ = LISTED[name]
    counted = count_traces(program, declared=True, **actors)
    report, _, outcomes = reduced(program, "declared", **actors)
    assert outcomes == counted.outcomes
    assert report.executions == len(counted.traces)


def test_every_value_is_chosen_in_every_trace() -> None:
    """A choice belongs to the step that asks: all its values, in each order of what they touch."""

    async def program() -> tuple[tuple[str, int], ...]:
        log: list[tuple[str, int]] = []
        cell = sim.Cell(None)

        async def pick(name: str, n: int) -> None:
            value = sim.choose(n)
            cell.set(None)
            log.append((name, value))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pick, "a", 2)
            nursery.start_soon(pick, "b", 3)
        return tuple(log)

    report = sim.explore(program, sim.DPOR())
    wanted = {order for a in range(2) for b in range(3) for order in ((("a", a), ("b", b)), (("b", b), ("a", a)))}
    assert report.outcomes == dict.fromkeys(wanted, 1)
    assert report.claim == "exhaustive(traces=12)"


def test_values_that_nobody_else_sees_are_not_combined_with_orders() -> None:
    """Four tasks choose one of two each: sixteen traces of 40,320 schedules."""

    async def program() -> tuple[int, ...]:
        cells = [sim.Cell(0) for _ in range(4)]

        async def pick(cell: sim.Cell[int]) -> None:
            cell.set(sim.choose(2))
            await checkpoint()
            cell.set(cell.get() + 1)

        async with trio.open_nursery() as nursery:
            for cell in cells:
                nursery.start_soon(pick, cell)
        return tuple(cell.get() for cell in cells)

    report = sim.explore(program, sim.DPOR())
    assert report.claim == "exhaustive(traces=16)"
    assert len(report.outcomes) == 16


def test_faults_of_the_disk_are_branches() -> None:
    """Each operation of a change fails once, and the file is old or new."""
    every, report = sim.explore(faulty_change, sim.Exhaustive()), sim.explore(faulty_change, sim.DPOR())
    assert report.outcomes == every.outcomes
    assert report.complete


def test_a_search_of_ones_own_around_the_reduction_may_have_actors() -> None:
    """Whoever hands it over."""

    class Wrapped:
        def begin(self) -> sim.Search:
            return sim.DPOR().begin()

    assert sim.explore(three_steps, Wrapped(), **ANY).outcomes == {None: 1, sim.CANCELLED: 3}  # type: ignore[arg-type]


def test_vouched_accesses_are_held_against_a_sample_with_the_same_actors() -> None:
    """An outcome that only the cancelled sample has is noticed."""

    async def program() -> str:
        order: list[str] = []

        async def arrive(name: str) -> None:
            order.append(name)

        async with trio.open_nursery() as nursery:
            for name in "abcd":
                nursery.start_soon(arrive, name)
        return "".join(order)

    report = sim.explore(program, sim.DPOR("declared"), lambda execution: True, **ANY)
    assert str(report.unfinished).startswith("a random schedule had an outcome that no trace had: ")


#: Programs on which the reduction was wrong while it was built.
REGRESSIONS: dict[str, tuple[Any, bool, dict[str, Any]]] = {
    "a scope that a cut execution would have cancelled": (
        ((0, (("try_lock", 1),)), (1, (("scoped", 1),))),
        False,
        WORK,
    ),
    "a clock that could have moved had another task not stopped first": (
        ((None, (("send", 1),)), (0, (("sleep", 1), ("choose", 0)))),
        True,
        CLOCK,
    ),
    "a clock that could not move once somebody waits for all others": (
        ((None, (("idle", 1),)), (None, (("sleep", 0),)), (0, (("is_set", 1),))),
        True,
        CLOCK,
    ),
    "a clock that moves after a step that another one sleeps beside": (
        ((0, (("deadline", 0), ("timeout", 1))), (0, (("set", 1),))),
        True,
        CLOCK,
    ),
    "a cancel while a callback keeps all from being idle": (
        ((None, (("soon", 0), ("idle", 0))),),
        False,
        ANY,
    ),
    "idle waiters, a deadline in the past and a scope": (
        ((0, (("idle", 1), ("deadline", 0), ("timeout", 0))), (0, (("idle", 1), ("scoped", 1)))),
        True,
        {"clock": "explored", "clock_moves": 1},
    ),
    "choices beside a timeout": (
        ((None, (("notify", 0), ("fire", 0))), (1, (("pick", 0),)), (1, (("timeout", 1), ("sleep", 0)))),
        False,
        {"clock": "explored", "clock_moves": 1},
    ),
    "a value that sleeps beside others that do not": (
        (
            (1, (("nested_locks", 0), ("pick", 1))),
            (None, (("get", 0), ("is_set", 1), ("wait", 1))),
            (None, (("choose", 1),)),
        ),
        False,
        {},
    ),
    "a deadline that comes for a scope that was left": (
        ((1, (("pick", 1), ("pick", 0), ("add", 0))), (0, (("wait", 1),)), (None, (("now", 1), ("deadline", 1)))),
        False,
        {"clock": "explored", "clock_moves": 1},
    ),
    "a clock that was to move before what brings its deadline": (
        ((1, (("sleep", 0), ("lock", 0))), (None, (("idle", 0), ("pick", 0)))),
        True,
        {**ANY, "clock": "explored", "clock_moves": 1},
    ),
    "a silent step beside a clock": (
        ((None, (("sleep", 0), ("sleep", 1))), (None, (("hurry", 1),)), (None, (("semaphore", 1),))),
        False,
        {"clock": "explored", "clock_moves": 1},
    ),
    "a deadline that the end of the program may forestall": (
        ((None, (("deadline", 1),)), (1, (("now", 0), ("timeout", 0), ("scoped", 1)))),
        True,
        {"clock": "real"},
    ),
    "choices in a scope": (
        ((1, (("pick", 0), ("scoped", 0))), (1, (("scoped", 1), ("timeout", 0)))),
        True,
        {**WORK, "clock": "explored", "clock_moves": 1},
    ),
}


def _agrees(spec: Any, declared: bool, actors: dict[str, Any], limit: int) -> None:
    program = program_of(spec)
    try:
        counted = count_traces(program, declared, limit=limit, **actors)
    except TooMany:
        return
    accesses = "declared" if declared else "reported"
    report, search, outcomes = reduced(program, accesses, **actors)
    assert [seen for seen in counted.traces.values() if len(seen) > 1] == []
    assert outcomes == counted.outcomes
    assert report.claim.startswith("exhaustive(")
    if search.passes == 1:
        assert report.executions == len(counted.traces)
    else:
        assert report.executions >= len(counted.traces)
    in_parts: set[str] = set()
    parts = InParts(accesses, counted.schedules)
    report = sim.explore(program, parts, lambda execution: in_parts.add(outcome_of(execution)) or True, **actors)
    assert in_parts == counted.outcomes
    assert report.claim.startswith("exhaustive(")
    if search.passes == 1:
        assert report.executions == len(counted.traces)


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", REGRESSIONS)
def test_reduction_agrees_where_it_did_not(name: str) -> None:
    """Programs that a search through random ones found."""
    _agrees(*REGRESSIONS[name], limit=200_000)


_TIMED = ["sleep", "timeout", "hurry", "now", "deadline", "idle"]
_SPECS = st.lists(
    st.tuples(
        st.sampled_from([None, None, 0, 1]),
        st.lists(
            st.tuples(
                st.sampled_from([*sorted(OPERATIONS), *_TIMED, *["scoped", "pick"] * 4]), st.integers(0, THINGS - 1)
            ),
            min_size=1,
            max_size=3,
        ).map(tuple),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
_ACTORS = st.fixed_dictionaries(
    {},
    optional={
        "cancel_at": st.sampled_from(["any", "work"]),
        "clock": st.sampled_from(["explored", "real"]),
        "clock_moves": st.integers(1, 2),
    },
)


@pytest.mark.seldom
@pytest.mark.slow
@settings(max_examples=1_000 if FULL else 20, suppress_health_check=[HealthCheck.too_slow])
@given(spec=_SPECS, declared=st.booleans(), actors=_ACTORS)
def test_reduction_agrees_on_generated_programs(spec: Any, declared: bool, actors: dict[str, Any]) -> None:
    """Law: same outcomes as every schedule, and one execution of each trace, in one part and in several."""
    _agrees(spec, declared, actors, limit=400)

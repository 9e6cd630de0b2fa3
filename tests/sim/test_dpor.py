"""One execution of each Mazurkiewicz trace, held against an oracle that runs every schedule."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from tests._profile import FULL
from tests.sim._programs import OPERATIONS, THINGS, program_of, withholding
from tests.sim._traces import TooMany, count_traces, reduced
from toolrt import sim
from toolrt.errors import DefinitionRefused


def tools(count: int, files: int):
    """Three steps each; the one in the middle writes one of the files."""

    async def program() -> tuple[int, ...]:
        contents = [sim.Cell(-1, f"file {index}") for index in range(files)]

        async def tool(index: int) -> None:
            progress = sim.Cell(0)
            progress.set(1)
            await checkpoint()
            contents[index % files].set(index)
            await checkpoint()
            progress.set(2)

        async with trio.open_nursery() as nursery:
            for index in range(count):
                nursery.start_soon(tool, index)
        return tuple(content.get() for content in contents)

    return program


#: Program, its arguments, traces, schedules (None: too many to run them all here).
LISTED = {
    "lost update 2x1": ("lost_update", (2, 1), 4, 6),
    "lost update 3x1": ("lost_update", (3, 1), 36, 90),
    "lost update 3x2": ("lost_update", (3, 2), 762, 1_680),
    "reorder 3": ("reorder", (3,), 36, 90),
    "reorder 4": ("reorder", (4,), 576, 2_520),
    "dining 2": ("dining", (2,), 5, 8),
    "dining 3": ("dining", (3,), 37, 285),
    "dining 4": ("dining", (4,), 185, None),
    "tools 4 on 2": (tools, (4, 2), 4, None),
    "tools 6 on 3": (tools, (6, 3), 8, None),
    "tools 5 on 5": (tools, (5, 5), 1, None),
    "tools 5 on 1": (tools, (5, 1), 120, None),
    "tools 3 on 1": (tools, (3, 1), 6, 1_680),
}


def listed(programs: ModuleType, name: str):
    """Give a listed program, its traces and its schedules."""
    made, arguments, traces, schedules = LISTED[name]
    program = getattr(programs, made)(*arguments)[0] if isinstance(made, str) else made(*arguments)
    return program, traces, schedules


@pytest.mark.parametrize("name", LISTED)
def test_reduction_runs_one_execution_of_each_trace(name: str, programs: ModuleType) -> None:
    """As many executions as traces, and none of them twice."""
    program, traces, _ = listed(programs, name)
    report, strategy, _ = reduced(program)
    assert (report.executions, strategy.redundant) == (traces, 0)
    assert report.complete
    assert report.claim == f"exhaustive(traces={traces})"


@pytest.mark.parametrize("name", [name for name, (*_, schedules) in LISTED.items() if schedules])
def test_reduction_agrees_with_every_schedule(name: str, programs: ModuleType) -> None:
    """The oracle runs every schedule and finds as many traces, and the same outcomes."""
    program, traces, schedules = listed(programs, name)
    counted = count_traces(program)
    assert (counted.schedules, len(counted.traces)) == (schedules, traces)
    assert reduced(program)[2] == counted.outcomes


@pytest.mark.parametrize("count", [2, 3, 4])
def test_reduction_finds_the_one_deadlock(count: int, programs: ModuleType) -> None:
    """Philosophers deadlock in exactly one trace; the last one reversed, in none."""
    assert reduced(programs.dining(count)[0])[0].outcomes["Deadlock"] == 1


_SPECS = st.lists(
    st.tuples(
        st.sampled_from([None, None, 0, 1]),
        st.lists(
            st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, THINGS - 1)), min_size=1, max_size=3
        ).map(tuple),
    ),
    min_size=2,
    max_size=3,
).map(tuple)


@pytest.mark.seldom
@pytest.mark.slow
@settings(max_examples=1_000 if FULL else 20)
@given(spec=_SPECS, declared=st.booleans())
def test_reduction_agrees_on_generated_programs(spec, declared: bool) -> None:
    """Law: same outcomes as every schedule, one execution of each trace, and one outcome for each trace."""
    program = program_of(spec)
    try:
        counted = count_traces(program, declared, limit=400)
    except TooMany:
        return
    report, search, outcomes = reduced(program, "declared" if declared else "reported")
    assert [seen for seen in counted.traces.values() if len(seen) > 1] == []
    assert outcomes == counted.outcomes
    assert report.complete
    if search.passes == 1:
        assert report.executions == len(counted.traces)
    else:
        assert report.executions >= len(counted.traces)


#: Programs on which an earlier reduction was wrong: their tasks, and whether accesses were declared.
REGRESSIONS = {
    "a step that touches less once it is cancelled": (((None, (("family", 1),)), (None, (("set", 0),))), True),
    "an attempt that touches more when the lock is held": (
        ((None, (("try_lock", 0), ("cancel", 0))), (0, (("try_lock", 0),)), (None, (("cancel", 0),))),
        False,
    ),
    "a deadline in the past of a scope that was left": (
        (
            (None, (("deadline", 0),)),
            (None, (("choose", 0), ("park", 0))),
            (0, (("try_lock", 0), ("is_cancelled", 0))),
        ),
        False,
    ),
    "a first step that reports only when its scope was cancelled before": (
        ((0, (("sleep", 0),)), (None, (("deadline", 0),)), (None, (("send", 0), ("sleep", 1)))),
        False,
    ),
    "a step that touches less than was feared": (
        ((None, (("shield", 1),)), (1, (("choose", 1),)), (None, (("shield", 0), ("choose", 0)))),
        True,
    ),
    "two attempts in one step when the first lock is held": (
        ((None, (("try_lock", 0), ("try_lock", 1))), (None, (("try_lock", 1),)), (0, (("try_lock", 0),))),
        True,
    ),
    "an attempt that goes on to a cell when the lock is held": (
        ((None, (("try_lock", 1),)), (None, (("set", 0),)), (None, (("try_lock", 1), ("choose", 1), ("get", 0)))),
        False,
    ),
    "two tasks that touch less when a third has stepped": (
        (
            (None, (("try_lock", 0), ("get", 0))),
            (None, (("choose", 1), ("add", 0))),
            (None, (("set", 0), ("try_lock", 0))),
        ),
        False,
    ),
    "two tokens of a semaphore": (
        ((None, (("notify", 1), ("semaphore", 1))), (None, (("choose", 1),)), (None, (("semaphore", 1),))),
        True,
    ),
    "two scopes cancelled by one of their steps": (
        (
            (1, (("semaphore", 1),)),
            (1, (("limiter", 0), ("try_lock", 0), ("cancel", 1))),
            (None, (("semaphore", 1), ("choose", 1))),
        ),
        True,
    ),
    "a sibling's failure that a step is no longer hit by": (
        ((0, (("get", 0), ("family", 1))), (1, (("set", 1), ("wait", 1))), (None, (("choose", 1),))),
        True,
    ),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_reduction_agrees_where_it_did_not(name: str) -> None:
    """Programs that Hypothesis once found."""
    spec, declared = REGRESSIONS[name]
    program = program_of(spec)
    counted = count_traces(program, declared)
    report, _, outcomes = reduced(program, "declared" if declared else "reported")
    assert outcomes == counted.outcomes
    assert report.complete
    assert report.claim.startswith(f"exhaustive(traces={len(counted.traces)}")
    assert report.executions == len(counted.traces)


def test_a_step_that_withholds_what_decides_is_noticed() -> None:
    """An event is set when a list says so, which nobody reports: once more, by all that each step has touched."""
    report, search, outcomes = reduced(withholding)
    counted = count_traces(withholding)
    assert outcomes == counted.outcomes
    assert search.passes == 2
    assert report.claim == "exhaustive(traces<=9)"
    assert len(counted.traces) == 7


def test_independent_tasks_are_one_execution() -> None:
    """Eight tasks that share nothing: 16! / 2**8 schedules, one trace."""

    async def program() -> None:
        async def work() -> None:
            cell = sim.Cell(0)
            cell.set(1)
            await checkpoint()
            cell.set(2)

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(work)

    assert reduced(program)[0].executions == 1


def test_steps_inside_a_scope_read_it() -> None:
    """A cancel comes before, between and after the steps of a task that does nothing but pass checkpoints."""
    steps = (("get", 0), ("checkpoint", 0)) * 3
    program = program_of(((1, steps), (None, (("cancel", 1),))))
    counted = count_traces(program, declared=True)
    assert reduced(program, "declared")[2] == counted.outcomes
    assert len(counted.outcomes) == 4


async def _sleep() -> None:
    await trio.sleep(1)


@pytest.mark.parametrize("wait", [trio.testing.wait_all_tasks_blocked, _sleep])
def test_nothing_is_turned_round_over_a_rest(wait) -> None:
    """What comes after a moment at which nothing could run comes after it in every schedule."""

    async def program() -> int:
        cell = sim.Cell(0)

        async def put() -> None:
            cell.set(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(put)
            await wait()
            cell.set(2)
        return cell.get()

    report = reduced(program, "declared")[0]
    assert report.complete
    assert report.outcomes == {2: 1}


def _silent(tasks: int):
    """Tasks that append to a list nobody reports."""

    async def program() -> str:
        order = []

        async def arrive(name: str) -> None:
            order.append(name)

        async with trio.open_nursery() as nursery:
            for name in "abc"[:tasks]:
                nursery.start_soon(arrive, name)
        return "".join(order)

    return program


def test_silent_steps_conflict_with_everything() -> None:
    """A step that reported nothing may have done anything."""
    report, _, outcomes = reduced(_silent(3))
    assert len(outcomes) == report.executions == 6


def test_declared_takes_the_callers_word() -> None:
    """With accesses="declared" silent steps commute, and the claim says whose word that is."""
    report, _, _ = reduced(_silent(3), "declared")
    assert report.executions == 1
    assert report.claim == "exhaustive(traces=1, accesses=declared)"


def test_declared_is_held_against_a_sample() -> None:
    """A random schedule with an outcome that no trace had: the caller's word was wrong, and nothing was shown."""
    report = sim.explore(_silent(3), sim.DPOR("declared"), lambda execution: True)
    assert report.verdict is sim.INCONCLUSIVE
    assert "step 2 (main.2: touches nothing) and step 3 (main.1: touches nothing)" in str(report.unfinished)


def test_declared_is_held_against_so_many(programs: ModuleType) -> None:
    """A sample that shows nothing new is part of the claim."""
    report = sim.explore(programs.lost_update(2, 1)[0], sim.DPOR("declared", samples=7), lambda execution: True)
    assert report.verdict is sim.PASS
    assert report.claim == "exhaustive(traces=4, accesses=declared, sampled=7)"


def test_nothing_is_complete_when_the_budget_ends(programs: ModuleType) -> None:
    """Fewer executions than traces: the claim says so."""
    report = sim.explore(programs.lost_update(3, 1)[0], sim.DPOR(), max_executions=10)
    assert report.verdict is sim.INCONCLUSIVE
    assert report.claim == "incomplete(traces=10)"


def test_step_limit_is_a_doubt() -> None:
    """An execution that was cut off was not looked at to its end."""

    async def program() -> None:
        for _ in range(100):
            await checkpoint()

    report = sim.explore(program, sim.DPOR(), lambda execution: True, step_limit=20)
    assert report.claim == "incomplete(traces=1)"
    assert report.unfinished == "the step limit ended an execution"


def test_callbacks_are_steps() -> None:
    """What a callback does belongs to a step of the task that calls it."""

    async def program() -> None:
        event = trio.Event()
        trio.lowlevel.current_trio_token().run_sync_soon(event.set)
        await event.wait()

    report = reduced(program)[0]
    assert report.claim == "exhaustive(traces=1)"


def _shrinking(begin: int):
    """A program that spawns four tasks, and from its execution number `begin` none."""
    runs = []

    async def program() -> None:
        runs.append(1)
        cell = sim.Cell(0, "x")

        async def touch() -> None:
            cell.set(1)

        async with trio.open_nursery() as nursery:
            for _ in range(4 if len(runs) < begin else 0):
                nursery.start_soon(touch)

    return program


def test_a_program_that_is_not_determined_is_undecided() -> None:
    """What can run must follow from the steps before; where it does not, the search ends and says where."""
    # The second execution is run twice, so this is the third.
    report = sim.explore(_shrinking(4), sim.DPOR())
    assert (report.verdict, report.claim) == (sim.INCONCLUSIVE, "incomplete(traces=2)")
    assert re.search(r"led to main\.\d at step 1 once, to main another time", str(report.unfinished))


def test_failure_of_a_program_that_is_not_determined_is_a_failure() -> None:
    """What failed before is not lost."""
    # Two executions, each run twice: the first because it fails.
    report = sim.explore(_shrinking(5), sim.DPOR(), lambda execution: len(execution.choices) < 3)
    assert (report.verdict, report.failed) == (sim.FAIL, 2)


def test_a_task_that_should_be_able_to_step_is_a_doubt() -> None:
    """A step whose absence changed what another does had an effect it did not report."""
    runs = []

    async def program() -> None:
        runs.append(1)
        cells = [sim.Cell(0), sim.Cell(0)]
        order = []

        async def first() -> None:
            cells[0].set(1)
            order.append(1)

        async def second() -> None:
            if not order:
                await trio.sleep_forever()
            cells[1].set(1)
            await checkpoint()
            cells[0].set(2)

        with trio.move_on_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(first)
                nursery.start_soon(second)

    report = reduced(program)[0]
    assert report.verdict is sim.INCONCLUSIVE
    assert report.unfinished == "a step had an effect it did not report"


def test_samples_are_a_number() -> None:
    """Fewer than none is none."""
    with pytest.raises(DefinitionRefused, match="samples"):
        sim.DPOR("declared", samples=-1)

"""What one execution leaves behind never reaches the next, nor the process."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial

import pytest
import trio
import trio.testing
from trio.lowlevel import RunVar, checkpoint

from toolrt import probe, sim
from toolrt.errors import Deadlock, NotSimulated, UnsupportedTrio

_RUN = trio._core._run


def _twenty(program, check=None) -> sim.Report:
    return sim.explore(program, sim.Random(sim.RandomWalk(0), 20), check)


def test_async_generators_are_closed_between_executions() -> None:
    """A generator left half iterated is closed before the next execution begins, in order."""
    log: list[str] = []
    kept = []

    async def numbers(name: str):
        try:
            yield 1
        finally:
            log.append(name)

    async def program() -> int:
        before = len(log)
        for name in "ab":
            generator = numbers(name)
            kept.append(generator)
            await anext(generator)
        return before % 2

    assert _twenty(program).outcomes == {0: 20}
    # Six more than 20: the first is run again after all others, and those of number 1, 2, 4, 8 and 16 at once.
    assert log == ["a", "b"] * 26


def test_nothing_is_warned_of_where_the_explorer_gives_up() -> None:
    """What is dropped half iterated as a program is torn down warns of nothing, and the filters are what they were."""

    async def numbers():
        yield 1
        yield 2

    async def program() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            async for _ in numbers():
                await trio.sleep_forever()

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        report = _twenty(program)
        assert warnings.filters == before
        warnings.warn("heard again", stacklevel=1)
    assert isinstance(report.failures[0].error, Deadlock)
    assert [str(one.message) for one in heard] == ["heard again"]


class _Complains:
    """Complains as it is collected unless it was closed; only the collector of garbage finds it."""

    def __init__(self) -> None:
        self.myself = self
        self.closed = False

    def __del__(self) -> None:
        if not self.closed:
            warnings.warn("not closed", ResourceWarning, stacklevel=1)


def test_garbage_of_an_execution_that_is_run_again_complains_of_nothing() -> None:
    """One that is ended before its thread begins, to be run again with a record, leaves what is not closed."""

    async def program() -> None:
        thing = _Complains()
        await trio.to_thread.run_sync(int)
        thing.closed = True

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        report = sim.explore(program, sim.Random(sim.Fifo(), 3), track=__name__)
        gc.collect()
    assert report.failed == 0
    assert not heard


def test_run_variables_are_cleared() -> None:
    """A RunVar starts without a value in every execution."""
    variable: RunVar[int] = RunVar("variable", default=0)

    async def program() -> int:
        before = variable.get()
        variable.set(before + 1)
        return before

    assert _twenty(program).outcomes == {0: 20}


def test_deadlines_do_not_reach_the_next_execution() -> None:
    """A scope left with a deadline does not move the next execution's clock."""
    kept = []

    async def program() -> float:
        scope = trio.CancelScope(deadline=5)
        kept.append(scope)
        with trio.move_on_after(3):
            await checkpoint()
        await trio.sleep(10)
        return trio.current_time()

    assert _twenty(program).outcomes == {10.0: 20}


def test_withdrawn_deadlines_are_dropped() -> None:
    """Trio's list of deadlines is empty when an execution begins."""

    async def program() -> int:
        before = len(_RUN.GLOBAL_RUN_CONTEXT.runner.deadlines._heap)
        with trio.move_on_after(3):
            await checkpoint()
        return before

    assert _twenty(program).outcomes == {0: 20}


def test_context_variables_do_not_leak() -> None:
    """A context variable set by the program is unset in the next execution."""
    import contextvars

    variable = contextvars.ContextVar("variable", default=0)

    async def program() -> int:
        before = variable.get()
        variable.set(before + 1)
        return before

    assert _twenty(program).outcomes == {0: 20}


@pytest.mark.seldom
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_task_that_swallows_all_is_ended_by_force() -> None:
    """Not even GeneratorExit ends it; the next execution does not see it."""

    async def program() -> str:
        while True:
            try:
                await trio.sleep_forever()
            except BaseException:
                continue

    assert _twenty(program, lambda execution: True).outcomes == {"Deadlock": 20}
    gc.collect()


@pytest.mark.parametrize("inside", [True, False])
def test_an_abort_function_that_raises_ends_one_execution(monkeypatch: pytest.MonkeyPatch, inside: bool) -> None:
    """What breaks Trio itself is that execution's error, and the next one runs, whoever does the stepping."""
    from toolrt.sim.engine import _scheduler

    monkeypatch.setattr(_scheduler, "can_step_inside", lambda: inside)
    broken = [True]

    async def program() -> str:
        if broken:
            broken.pop()

            def abort(_: object) -> trio.lowlevel.Abort:
                raise LookupError("broken")

            with trio.CancelScope() as scope:
                scope.cancel()
                await trio.lowlevel.wait_task_rescheduled(abort)
        return "fine"

    outcomes = sim.explore(program, sim.Random(sim.Fifo(), 3), lambda execution: True).outcomes
    assert outcomes == {"LookupError": 1, "fine": 2}
    assert probe.sink is None
    gc.collect()


@pytest.mark.parametrize("inside", [True, False])
def test_a_step_that_breaks_trio_is_replayed(monkeypatch: pytest.MonkeyPatch, inside: bool) -> None:
    """The step in which an abort function raised is part of the schedule."""
    from toolrt.sim.engine import _scheduler

    monkeypatch.setattr(_scheduler, "can_step_inside", lambda: inside)

    async def program() -> None:
        def abort(_: object) -> trio.lowlevel.Abort:
            raise LookupError("broken")

        await checkpoint()
        with trio.CancelScope() as scope:
            scope.cancel()
            await trio.lowlevel.wait_task_rescheduled(abort)

    execution = sim.run(program)
    assert execution.schedule.short == "main*2"
    assert isinstance(sim.replay(program, execution.schedule).error, LookupError)


def test_garbage_is_not_collected_while_an_execution_runs() -> None:
    """The collector is off inside an execution, and as it was in a check."""

    async def program() -> bool:
        return gc.isenabled()

    assert sim.explore(program, sim.Random(sim.Fifo(), 2), lambda execution: gc.isenabled()).outcomes == {False: 2}


def test_many_executions_do_not_grow() -> None:
    """2,000 executions in one Trio run leave as many tasks and objects as 200 do."""
    counts = []

    async def program() -> int:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
            nursery.start_soon(checkpoint)
        return trio.lowlevel.current_statistics().tasks_living

    seen = []

    def count(execution: sim.Execution) -> None:
        seen.append(execution.value)
        if execution.index in (200, 1999):
            gc.collect()
            counts.append(len(gc.get_objects()))

    report = sim.explore(program, sim.Random(sim.Fifo(), 2000), count)
    assert len(set(seen)) == 1
    assert report.distinct == 1
    # The list of what was seen is one object; a leak of one object each would be 1,800.
    assert counts[1] - counts[0] < 200


def test_simulation_inside_a_running_loop_is_refused() -> None:
    """In an async function sim.run refuses before the first step and says what to do."""

    async def program() -> None:
        sim.run(checkpoint)

    with pytest.raises(NotSimulated, match="sync test"):
        trio.run(program)


async def test_simulation_inside_an_async_test_is_refused() -> None:
    """A pytest-trio test runs in a loop: it is told to be a sync test."""
    with pytest.raises(NotSimulated, match="sync test"):
        sim.run(checkpoint)


def test_simulation_inside_a_simulation_is_refused() -> None:
    """A simulated program is inside a running loop too."""

    async def program() -> None:
        sim.run(checkpoint)

    assert isinstance(sim.run(program).error, NotSimulated)


def test_other_threads_are_not_touched() -> None:
    """A Trio run in another thread keeps its threads and its clock while a simulation runs here."""
    answers = []
    started, go_on = threading.Event(), threading.Event()

    def other() -> None:
        async def real() -> bool:
            started.set()
            go_on.wait(10)
            await trio.to_thread.run_sync(int)
            return trio.current_time() > 1000

        answers.append(trio.run(real))

    thread = threading.Thread(target=other)
    thread.start()
    started.wait(10)

    async def program() -> float:
        go_on.set()
        thread_is_done = threading.Event()
        thread_is_done.wait(0.05)
        await trio.sleep(3)
        return trio.current_time()

    assert sim.run(program).value == 3.0
    thread.join(10)
    assert answers == [True]


def test_sync_tools_run_inline() -> None:
    """While an execution runs, the probe says that threads run inline."""

    async def program() -> bool:
        return probe.threads_inline

    assert sim.run(program).value is True
    assert probe.threads_inline is False


@pytest.mark.parametrize(
    ("holder", "name"),
    [
        (_RUN, "_r"),
        (_RUN, "CancelStatus"),
        (_RUN.Deadlines, "expire"),
        (_RUN.Runner, "task_exited"),
        (trio._threads, "_send_message_to_trio"),
    ],
)
def test_trio_without_a_private_name_is_refused(monkeypatch: pytest.MonkeyPatch, holder, name: str) -> None:
    """A Trio whose internals moved is refused before the first step, with what is gone."""
    started = []

    async def program() -> None:
        started.append(True)

    with monkeypatch.context() as patch:
        patch.delattr(holder, name)
        with pytest.raises(UnsupportedTrio) as caught:
            sim.run(program)
    assert started == []
    assert any(name in difference for difference in caught.value.differences)


@pytest.mark.parametrize("inside", [True, False])
def test_both_ways_of_stepping_give_the_same(monkeypatch: pytest.MonkeyPatch, inside: bool) -> None:
    """Where Trio's loop is another one, each step is left to it: same schedules, same traces."""
    from toolrt.sim.engine import _scheduler

    async def program() -> tuple[int, ...]:
        order: list[int] = []

        async def work(index: int) -> None:
            await checkpoint()
            probe.event("worked", index=index)
            await trio.sleep(index % 2)
            order.append(index)

        with trio.move_on_after(0.5):
            async with trio.open_nursery() as nursery:
                for index in range(3):
                    nursery.start_soon(work, index)
        trio.lowlevel.current_trio_token().run_sync_soon(order.append, 99)
        await checkpoint()
        return tuple(order)

    normal = [sim.run(program, sim.RandomWalk(seed)).trace.to_json() for seed in range(20)]
    monkeypatch.setattr(_scheduler, "can_step_inside", lambda: inside)
    assert [sim.run(program, sim.RandomWalk(seed)).trace.to_json() for seed in range(20)] == normal


def test_both_ways_of_stepping_deadlock_and_unwind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlock, step limit and force work the same when Trio does the stepping."""
    from toolrt.sim.engine import _scheduler

    monkeypatch.setattr(_scheduler, "can_step_inside", lambda: False)

    async def stubborn() -> None:
        while True:
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                continue

    async def spin() -> None:
        rounds = sim.Cell(0, name="rounds")
        while True:
            rounds.set(rounds.get() + 1)
            await checkpoint()

    assert isinstance(sim.run(stubborn).error, Deadlock)
    assert type(sim.run(spin, step_limit=100).error).__name__ == "StepLimit"
    assert sim.run(checkpoint).error is None


def test_interrupt_raised_by_the_program_is_raised() -> None:
    """A KeyboardInterrupt that leaves the program is never kept as an error, not even in a group."""

    async def fail() -> None:
        raise KeyboardInterrupt

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)

    for interrupted in (fail, program):
        with pytest.raises(KeyboardInterrupt):
            sim.run(interrupted)
    assert sim.run(checkpoint).error is None


def test_failure_of_what_executions_leave_behind_is_of_no_schedule() -> None:
    """The schedule that passed at first fails at the end: a variable outside decides, so the report blames no order."""
    left = []

    async def program() -> None:
        left.append(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checkpoint)
            nursery.start_soon(checkpoint)
        assert len(left) < 5

    report = _twenty(program)
    assert report.verdict is sim.INCONCLUSIVE
    assert "what executions leave behind" in str(report)
    assert report.failed == 17


def test_failure_of_a_schedule_stays_one_where_something_is_left_behind() -> None:
    """What is left behind fails nothing by itself: the first schedule passes after all others, too."""
    left = []

    async def program() -> None:
        seen: list[int] = []

        async def one(number: int) -> None:
            await checkpoint()
            seen.append(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, 0)
            nursery.start_soon(one, 1)
        left.append(1)
        assert seen == [0, 1]

    report = sim.explore(program, sim.Exhaustive())
    assert report.verdict is sim.FAIL


async def _sleeps_in_an_async_generator(log: list[str]):
    try:
        await trio.sleep_forever()
        yield 1
    finally:
        log.append("closed")


async def _is_refused_and_goes_on(log: list[str]) -> None:
    """It shields its wait, so that it is ended by force."""
    with suppress(NotSimulated):
        threading.Thread(target=log.clear).start()
    with trio.CancelScope(shield=True):
        async for _ in _sleeps_in_an_async_generator(log):
            pass


async def _leaves_a_system_task(log: list[str]) -> None:
    async def reads() -> None:
        async for _ in _sleeps_in_an_async_generator(log):
            pass

    trio.lowlevel.spawn_system_task(reads)
    await trio.testing.wait_all_tasks_blocked()


_kept: list[AsyncIterator[int]] = []


async def _leaves_one_that_waits_as_it_is_closed(log: list[str]) -> None:
    async def waits() -> None:
        try:
            with trio.CancelScope(shield=True):
                await trio.sleep_forever()
        finally:
            log.append("closed")

    async def numbers():
        try:
            yield 1
        finally:
            await waits()

    _kept.append(numbers())
    await anext(_kept[-1])


@pytest.mark.parametrize(
    "program", [_is_refused_and_goes_on, _leaves_a_system_task, _leaves_one_that_waits_as_it_is_closed]
)
def test_what_a_task_awaits_is_ended_with_it(
    program: Callable[[list[str]], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An async generator, and what it awaits: dropped later, either would complain in another test."""
    log: list[str] = []
    complaints: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: complaints.append(repr(told.exc_value)))
    sim.run(partial(program, log))
    _kept.clear()
    gc.collect()
    assert (log, complaints) == (["closed"], [])


def test_async_generator_that_waits_on_as_its_task_is_ended_is_no_error_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can close one that is running, and Trio would log its attempt: with all that the program had, kept."""
    monkeypatch.setattr(sys, "unraisablehook", bool)

    kept: list[AsyncIterator[int]] = []

    async def waits_on() -> None:
        for _ in range(100):
            with suppress(BaseException), trio.CancelScope(shield=True):
                await trio.sleep_forever()

    async def numbers():
        await waits_on()
        yield 1

    async def program() -> None:
        kept.append(numbers())
        await anext(kept[0])

    assert isinstance(sim.run(program).error, Deadlock)
    assert not caplog.records
    kept.clear()
    gc.collect()

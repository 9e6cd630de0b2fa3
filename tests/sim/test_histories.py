"""Histories of Trio's objects, and of objects with a planted bug, under the explorer."""

from __future__ import annotations

import pytest
import trio

from tests.sim._subjects import RIGHT, WRONG, CounterModel, RacingCounter, program_of
from toolrt import sim
from toolrt.sim import OperationEnd

_SAMPLE = sim.Random(sim.RandomWalk(seed=3), 150)


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", RIGHT)
def test_right_object_is_linearizable(name: str) -> None:
    """No schedule of Trio's own objects, or of what is built rightly on them, has a history without an order."""
    make, model, script = RIGHT[name]
    report = sim.explore(
        program_of(make, script), _SAMPLE, lambda execution: sim.linearizable(execution, model, cancelled="nothing")
    )
    assert report.verdict is sim.PASS, report.failures[0].explain()


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("strategy", [_SAMPLE, sim.DPOR()], ids=["sample", "DPOR"])
def test_planted_bug_is_found(name: str, strategy: sim.Strategy) -> None:
    """The failure shows the history, and replays."""
    make, model, script = WRONG[name]
    program = program_of(make, script)

    def check(execution: sim.Execution) -> sim.HistoryJudgement:
        return sim.linearizable(execution, model, cancelled="nothing")

    report = sim.explore(program, strategy, check, max_executions=400)
    assert report.verdict is sim.FAIL
    assert "not linearizable: " in report.failures[0].violations[0]
    assert not check(sim.replay(program, report.failures[0].minimal))


def test_reduction_keeps_histories_apart() -> None:
    """`DPOR` and the exhaustive search make the same histories: what returned before what was called is kept."""
    program = program_of(RacingCounter, ((("add",),), (("add",),)))
    reduced = sim.explore(program, sim.DPOR())
    whole = sim.explore(program, sim.Exhaustive())
    assert set(reduced.outcomes) == set(whole.outcomes)
    assert reduced.complete


def test_history_outside_a_simulation() -> None:
    """A plain Trio run is recorded, too; tasks are named by their function."""

    async def main() -> sim.History:
        history, counter = sim.History(), RacingCounter()

        async def add() -> None:
            await history.call(counter.add)

        await history.run(add, add)
        return history

    history = trio.run(main)
    assert [one.result for one in history] == [1, 1]
    assert {one.task for one in history} == {"add-0", "add-1"}
    assert not sim.linearizable(history, CounterModel)


def test_how_operations_end() -> None:
    """A cancelled operation, one that raises, one that is stuck and one that has not returned."""

    async def program() -> sim.History:
        history, event = sim.History(), trio.Event()
        channel, _ = trio.open_memory_channel[int](1)
        channel.close()

        async def cancelled() -> None:
            with trio.move_on_after(1):
                await history.call(event.wait)

        async def raising() -> None:  # noqa: ASYNC124  a task is one step
            with pytest.raises(trio.ClosedResourceError):
                history.now(channel.send_nowait, 3)

        async def waiting() -> None:
            await history.call(event.wait)

        await history.run(cancelled, raising, waiting)
        return history

    history = sim.run(program).value
    assert [one.ended for one in history] == [OperationEnd.CANCELLED, OperationEnd.RAISED, OperationEnd.STUCK]
    assert str(history.operations[1]) == "send_nowait(3) -> ClosedResourceError"


def test_arguments_are_recorded_as_they_were() -> None:
    """A list that is changed after the call stands in the history as it was."""
    history = sim.History()
    items = [1]
    history.now(len, items)
    items.append(2)
    assert history.operations[0].args == ([1],)


def test_stand_in_hands_on_what_is_no_method() -> None:
    """Attributes are read and written behind it, and `async with` is recorded as acquire and release."""

    async def program() -> tuple[sim.History, int]:
        history = sim.History()
        limiter = sim.recorded(trio.CapacityLimiter(1), history)
        limiter.total_tokens = 2
        async with limiter:
            pass
        return history, limiter.total_tokens

    history, tokens = sim.run(program).value
    assert [one.name for one in history] == ["acquire", "release"]
    assert tokens == 2

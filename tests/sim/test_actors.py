"""A cancel that may come before any step."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import Deadlock, DefinitionRefused, ReplayDiverged


def _any(execution: sim.Execution) -> bool:
    return True


async def _three_steps() -> str:
    await checkpoint()
    await checkpoint()
    return "done"


def test_cancel_comes_before_every_step_and_after_the_last() -> None:
    """A program of three steps can be cancelled at three places, or not at all."""
    report = sim.explore(_three_steps, sim.Exhaustive(), cancel_at="any")
    assert report.outcomes == {sim.CANCELLED: 3, "done": 1}
    assert report.claim == "exhaustive(schedules=4) with cancel_at=any"
    assert report.verdict is sim.PASS


def test_cancel_is_the_last_choice() -> None:
    """The schedule of zeros runs the program to its end."""
    execution = sim.run(_three_steps, sim.Choices(), cancel_at="any")
    assert (execution.value, execution.schedule.short) == ("done", "main main.0*3 main.1 main")


def test_cancel_is_combined_with_every_order() -> None:
    """Two tasks of two steps have six orders, and each is cut: one or both of them stop at their checkpoint."""

    async def program() -> tuple[str, ...]:
        log.clear()

        async def work(name: str) -> None:
            log.append(name)
            seen.get()
            await checkpoint()
            seen.set(len(log))
            log.append(name)

        seen = sim.Cell(0, name="seen")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, "a")
            nursery.start_soon(work, "b")
        return tuple(log)

    log: list[str] = []
    found: set[tuple[object, tuple[str, ...]]] = set()
    report = sim.explore(program, sim.Exhaustive(), lambda e: found.add((e.value, tuple(log))) or True, cancel_at="any")
    assert report.complete
    uncut = {value for value, _ in found if value is not sim.CANCELLED}
    assert len(uncut) == 6
    assert {len(done) for value, done in found if value is sim.CANCELLED} == {2, 3}


@pytest.mark.seldom
def test_cancelled_between_take_and_give_back_is_found() -> None:
    """What a step holds and gives back two steps later is lost when the cancel comes between."""
    held: list[int] = []

    async def program() -> None:
        held.clear()
        held.append(1)
        await checkpoint()
        held.pop()

    def check(execution: sim.Execution) -> bool:
        return not held

    assert sim.explore(program, sim.Exhaustive(), check).verdict is sim.PASS
    report = sim.explore(program, check=check, cancel_at="any")
    assert report.verdict is sim.FAIL
    failure = report.failures[0]
    assert sim.replay(program, failure.minimal, cancel_at="any").value is sim.CANCELLED
    assert held
    assert f'sim.replay(program, "{failure.minimal.short}", cancel_at="any")' in failure.explain()


def test_schedule_with_a_cancel_needs_one() -> None:
    """A replay without the cancel diverges."""
    execution = sim.run(_three_steps, cancel_at="any")
    with pytest.raises(ReplayDiverged):
        sim.replay(_three_steps, execution.schedule)


def test_cancel_that_does_not_matter_is_shrunk_away() -> None:
    """A failure that needs no cancel has one only after its end."""

    async def program() -> None:
        await checkpoint()
        raise ValueError("always")

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 20), cancel_at="any")
    failure = next(failure for failure in report.failures if isinstance(failure.error, ValueError))
    assert failure.minimal.short == "main main.0*2 main.1 main"


def test_time_passes_before_the_cancel_too() -> None:
    """A cancel that may still come does not hold the clock: it can come at every instant."""

    async def program() -> float:
        try:
            for _ in range(3):
                await trio.sleep(1)
        finally:
            left.append(trio.current_time())
        return trio.current_time()

    left: list[float] = []
    report = sim.explore(program, sim.Exhaustive(), cancel_at="any")
    assert report.complete
    assert set(left) == {0.0, 1.0, 2.0, 3.0}
    assert report.outcomes[3.0] == 1
    execution = sim.run(program, sim.Choices(), cancel_at="any")
    assert (execution.value, execution.schedule.tasks.count("clock")) == (3.0, 3)
    for form in (execution.schedule, execution.schedule.to_json(), execution.schedule.short):
        assert sim.replay(program, form, cancel_at="any").value == 3.0


def test_deadlock_is_not_hidden_by_the_cancel() -> None:
    """A program that waits for nobody is a deadlock in one schedule, and cancelled out of it in the others."""
    report = sim.explore(trio.sleep_forever, sim.Exhaustive(), _any, cancel_at="any")
    assert set(report.outcomes) == {"Deadlock", sim.CANCELLED}
    assert report.outcomes["Deadlock"] == 1
    assert isinstance(sim.run(trio.sleep_forever, cancel_at="any", policy=sim.Choices()).error, Deadlock)


def test_idle_waiters_wake_before_the_cancel_too() -> None:
    """A cancel that may still come is no reason for wait_all_tasks_blocked to wait."""

    async def program() -> str:
        await trio.testing.wait_all_tasks_blocked()
        return "idle"

    assert set(sim.explore(program, sim.Exhaustive(), cancel_at="any").outcomes) == {"idle", sim.CANCELLED}


def test_livelock_is_not_excused_by_the_cancel() -> None:
    """A program that spins for ever is no better for a cancel that never comes."""

    async def spin() -> None:
        while True:
            await checkpoint()

    report = sim.explore(spin, sim.Random(sim.Choices(), 1), step_limit=50, cancel_at="any")
    assert (report.verdict, report.undecided) == (sim.FAIL, 0)


def test_errors_are_the_programs() -> None:
    """What the program raises is raised as it is, in no group more."""

    async def program() -> None:
        await checkpoint()
        raise KeyError("mine")

    report = sim.explore(program, sim.Exhaustive(), _any, cancel_at="any")
    assert set(report.outcomes) == {sim.CANCELLED, "KeyError"}


@pytest.mark.parametrize("cancel_at", ["", True, 3])
def test_cancel_at_is_any_or_a_name(cancel_at: object) -> None:
    """Anything else is refused before anything runs."""
    for call in (sim.run, sim.explore):
        with pytest.raises(DefinitionRefused, match="cancel_at"):
            call(_three_steps, cancel_at=cancel_at)
    with pytest.raises(DefinitionRefused, match="cancel_at"):
        sim.replay(_three_steps, "main", cancel_at=cancel_at)  # type: ignore[arg-type]

"""Virtual time."""

from __future__ import annotations

from functools import partial

import trio
import trio.testing

from toolrt import sim


def test_clock_starts_at_zero_in_every_execution() -> None:
    """No execution sees what time it was in the one before."""

    async def program() -> float:
        before = trio.current_time()
        await trio.sleep(0.1)
        return before

    report = sim.explore(program, sim.Random(sim.RandomWalk(1), 20))
    assert report.outcomes == {0.0: 20}


def _three_naps() -> object:
    async def program() -> tuple[str, ...]:
        woken: list[str] = []

        async def nap(name: str) -> None:
            await trio.sleep(1)
            woken.append(name)

        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(nap, name)
        return tuple(woken)

    return program


def test_equal_deadlines_wake_in_a_stable_order() -> None:
    """The same choices wake them in the same order, 200 times."""
    report = sim.explore(_three_naps(), sim.Random(sim.Choices(), 200))
    assert report.outcomes == {("a", "b", "c"): 200}


def test_equal_deadlines_cancel_in_path_order() -> None:
    """Abort functions of scopes that expire at one instant run by path, not by address."""

    async def program() -> tuple[int, ...]:
        aborted: list[int] = []

        async def park(index: int) -> None:
            def abort(_: object) -> trio.lowlevel.Abort:
                aborted.append(index)
                return trio.lowlevel.Abort.SUCCEEDED

            with trio.move_on_at(1):
                await trio.lowlevel.wait_task_rescheduled(abort)

        async with trio.open_nursery() as nursery:
            for index in range(8):
                nursery.start_soon(park, index)
        return tuple(aborted)

    report = sim.explore(program, sim.Random(sim.RandomWalk(1), 200))
    assert report.outcomes == {tuple(range(8)): 200}


def test_cancelled_scope_aborts_in_path_order() -> None:
    """Abort functions of one cancelled scope run by path, also those of nested nurseries."""

    async def program() -> tuple[str, ...]:
        aborted: list[str] = []

        async def park(name: str) -> None:
            def abort(_: object) -> trio.lowlevel.Abort:
                aborted.append(name)
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(abort)

        async def family(name: str) -> None:
            async with trio.open_nursery() as inner:
                for child in "xyz":
                    inner.start_soon(park, name + child)

        async with trio.open_nursery() as nursery:
            for name in "abcd":
                nursery.start_soon(family, name)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        return tuple(aborted)

    wanted = tuple(name + child for name in "abcd" for child in "xyz")
    report = sim.explore(program, sim.Random(sim.Choices(), 50))
    assert report.outcomes == {wanted: 50}


def test_clock_stands_still_while_someone_waits_for_idleness() -> None:
    """wait_all_tasks_blocked wakes before the clock moves; with a cushion so much later, and after what comes first."""

    async def program(cushion: float) -> float:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
            await trio.testing.wait_all_tasks_blocked(cushion)
            return trio.current_time()

    assert [sim.run(partial(program, cushion)).value for cushion in (0.0, 0.5, 5.0)] == [0.0, 0.5, 6.0]


def test_deadline_moved_into_the_past_expires_at_the_next_checkpoint() -> None:
    """A scope whose deadline is set to now is cancelled without the clock moving."""

    async def program() -> tuple[bool, float]:
        with trio.CancelScope() as scope:
            scope.deadline = trio.current_time()
            await trio.sleep_forever()
        return scope.cancelled_caught, trio.current_time()

    assert sim.run(program).value == (True, 0.0)


def test_deadline_moved_into_the_past_stops_a_busy_task() -> None:
    """Deadlines expire between any two steps, not only when nothing can run."""

    async def program() -> int:
        passed = 0
        with trio.CancelScope() as scope:
            scope.deadline = trio.current_time()
            while passed < 5:
                await trio.lowlevel.checkpoint()
                passed += 1
        return passed

    assert sim.run(program).value == 0


def test_steps_carry_their_time() -> None:
    """A schedule's steps say when they ran, in virtual seconds."""

    async def program() -> None:
        await trio.sleep(1.5)

    assert [step.time for step in sim.run(program).schedule.steps] == [0.0, 1.5]

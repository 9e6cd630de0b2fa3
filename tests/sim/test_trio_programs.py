"""Trio's own primitives, nurseries and cancel scopes work under every schedule."""

from __future__ import annotations

import trio
import trio.testing
from trio.lowlevel import checkpoint

from toolrt import sim


def outcomes(program, executions: int = 200) -> dict[object, int]:
    """Give the outcomes of a random sample."""
    report = sim.explore(program, sim.Random(sim.RandomWalk(4), executions), lambda execution: True)
    return report.outcomes


def test_wait_all_tasks_blocked_waits_for_all() -> None:
    """Its caller goes on when every other task is parked."""

    async def program() -> int:
        steps: list[int] = []

        async def walk() -> None:
            for index in range(3):
                await checkpoint()
                steps.append(index)
            await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(walk)
            nursery.start_soon(walk)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        return len(steps)

    assert outcomes(program) == {6: 200}


def test_child_failure_is_scheduled_like_anything_else() -> None:
    """A parent may catch what a child raised; what follows still has every order."""

    async def program() -> tuple[int, ...]:
        async def fail() -> None:
            raise ValueError("no")

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fail)
        except* ValueError:
            pass
        order: list[int] = []

        async def note(index: int) -> None:
            await checkpoint()
            order.append(index)

        async with trio.open_nursery() as nursery:
            for index in range(3):
                nursery.start_soon(note, index)
        return tuple(order)

    assert len(outcomes(program)) == 6


def test_program_error_is_not_raised() -> None:
    """What leaves the program is the execution's error, as it is."""

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_fail)

    async def _fail() -> None:
        raise ValueError("no")

    error = sim.run(program).error
    assert isinstance(error, ExceptionGroup)
    assert isinstance(error.exceptions[0], ValueError)


def test_run_sync_soon_runs_soon() -> None:
    """A callback given to the Trio token runs before the next step, or later, or never: there is no guarantee."""

    async def program() -> tuple[str, ...]:
        log: list[str] = []
        trio.lowlevel.current_trio_token().run_sync_soon(log.append, "callback")
        await checkpoint()
        log.append("step")
        return tuple(log)

    assert outcomes(program, 20).keys() == {("callback", "step"), ("step",)}


def test_callback_can_end_a_deadlock() -> None:
    """A callback that sets an event wakes the one who waits for it."""

    async def program() -> str:
        event = trio.Event()
        trio.lowlevel.current_trio_token().run_sync_soon(event.set)
        await event.wait()
        return "woken"

    assert sim.run(program).value == "woken"


def test_foreign_awaitable_is_an_error_of_the_program() -> None:
    """Awaiting something made for another framework raises TypeError in the task, as in Trio."""

    class Foreign:
        def __await__(self):
            yield "unknown"

    async def program() -> None:
        await Foreign()

    assert isinstance(sim.run(program).error, TypeError)


def test_trio_testing_clock_is_not_needed() -> None:
    """Sequencer and the other test helpers work too."""

    async def program() -> tuple[int, ...]:
        sequencer, order = trio.testing.Sequencer(), []

        async def at(index: int) -> None:
            async with sequencer(index):
                order.append(index)

        async with trio.open_nursery() as nursery:
            for index in (2, 0, 1):
                nursery.start_soon(at, index)
        return tuple(order)

    assert outcomes(program) == {(0, 1, 2): 200}

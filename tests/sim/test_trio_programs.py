"""Trio's own primitives, nurseries and cancel scopes work under every schedule."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import Deadlock, DefinitionRefused


def outcomes(program, executions: int = 200) -> dict[object, int]:
    """Give the outcomes of a random sample."""
    report = sim.explore(program, sim.Random(sim.RandomWalk(4), executions), lambda execution: True)
    return report.outcomes


def test_event_wakes_all() -> None:
    """Every waiter goes on once the event is set."""

    async def program() -> int:
        event, woken = trio.Event(), []

        async def wait(index: int) -> None:
            await event.wait()
            woken.append(index)

        async with trio.open_nursery() as nursery:
            for index in range(3):
                nursery.start_soon(wait, index)
            await checkpoint()
            event.set()
        return len(woken)

    assert outcomes(program) == {3: 200}


def test_lock_excludes() -> None:
    """Under a lock no update is lost, in any schedule."""

    async def program() -> int:
        lock, cell = trio.Lock(), sim.Cell(0)

        async def add() -> None:
            async with lock:
                seen = cell.get()
                await checkpoint()
                cell.set(seen + 1)

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(add)
        return cell.get()

    assert outcomes(program) == {4: 200}


@pytest.mark.parametrize("limiter", [lambda: trio.Semaphore(2), lambda: trio.CapacityLimiter(2)])
def test_limiter_limits(limiter) -> None:
    """At most two are inside at once, and some schedule has two."""

    async def program() -> int:
        gate, inside, most = limiter(), [], [0]

        async def enter(index: int) -> None:
            async with gate:
                inside.append(index)
                most[0] = max(most[0], len(inside))
                await checkpoint()
                inside.remove(index)

        async with trio.open_nursery() as nursery:
            for index in range(4):
                nursery.start_soon(enter, index)
        return most[0]

    assert set(outcomes(program)) == {1, 2} or set(outcomes(program)) == {2}


def test_condition_can_lose_a_notification() -> None:
    """notify() before wait() is lost: some schedules deadlock, the others do not."""

    async def program() -> str:
        condition = trio.Condition()

        async def wait() -> None:
            async with condition:
                await condition.wait()

        async def notify() -> None:
            async with condition:
                condition.notify()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(notify)
        return "done"

    assert set(outcomes(program)) == {"Deadlock", "done"}


def test_memory_channel_delivers_each_item_once() -> None:
    """Two producers and two consumers over a bounded channel lose and double nothing."""

    async def program() -> tuple[int, ...]:
        send, receive = trio.open_memory_channel[int](1)
        got: list[int] = []

        async def produce(channel: trio.MemorySendChannel[int], items: range) -> None:
            async with channel:
                for item in items:
                    await channel.send(item)

        async def consume(channel: trio.MemoryReceiveChannel[int]) -> None:
            async with channel:
                async for item in channel:
                    got.append(item)

        async with trio.open_nursery() as nursery, send, receive:
            nursery.start_soon(produce, send.clone(), range(2))
            nursery.start_soon(produce, send.clone(), range(2, 4))
            nursery.start_soon(consume, receive.clone())
            nursery.start_soon(consume, receive.clone())
        return tuple(sorted(got))

    assert outcomes(program) == {(0, 1, 2, 3): 200}


def test_nursery_start_hands_over_a_value() -> None:
    """nursery.start() returns what the child gave to started(), and the child lives on."""

    async def program() -> tuple[int, float]:
        async def serve(task_status: trio.TaskStatus[int]) -> None:
            await trio.sleep(1)
            task_status.started(7)
            await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            value = await nursery.start(serve)
        return value, trio.current_time()

    assert outcomes(program) == {(7, 2.0): 200}


def test_shield_holds_off_a_cancel() -> None:
    """A shielded sleep ends in its own time inside a cancelled scope."""

    async def program() -> tuple[float, bool]:
        with trio.move_on_after(1) as outer:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
            await checkpoint()
        return trio.current_time(), outer.cancelled_caught

    assert outcomes(program, 3) == {(5.0, True): 3}


def test_fail_after_raises() -> None:
    """TooSlowError is the program's own error."""

    async def program() -> None:
        with trio.fail_after(1):
            await trio.sleep_forever()

    assert outcomes(program, 3) == {"TooSlowError": 3}


def test_cancel_is_one_more_task() -> None:
    """A task that cancels another finds it before, inside and after its work."""

    async def program() -> int:
        done: list[int] = []

        async def work(scope: trio.CancelScope) -> None:
            with scope:
                for index in range(3):
                    await checkpoint()
                    done.append(index)

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(work, scope)

            async def cancel() -> None:
                await checkpoint()
                scope.cancel()

            nursery.start_soon(cancel)
        return len(done)

    assert set(outcomes(program)) == {0, 1, 2, 3}


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


def test_nested_nurseries_join_inside_out() -> None:
    """An outer nursery ends after what was spawned in an inner one."""

    async def program() -> tuple[str, ...]:
        log: list[str] = []

        async def leaf(name: str) -> None:
            await checkpoint()
            log.append(name)

        async def branch(name: str) -> None:
            async with trio.open_nursery() as inner:
                inner.start_soon(leaf, name)
                inner.start_soon(leaf, name)
            log.append(name.upper())

        async with trio.open_nursery() as outer:
            outer.start_soon(branch, "a")
            outer.start_soon(branch, "b")
        return tuple(log)

    found = outcomes(program)
    assert len(found) > 3
    assert all(order.index("A") > 1 and order.count("a") == 2 for order in found)
    assert all("a" not in order[order.index("A") :] for order in found)


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


@pytest.mark.parametrize("program", [None, 3, "main"])
def test_program_must_be_callable(program: object) -> None:
    """What cannot be called is refused before anything runs."""
    with pytest.raises(DefinitionRefused, match="a program"):
        sim.run(program)  # type: ignore[arg-type]


def test_program_must_be_async() -> None:
    """A sync function is no program."""
    with pytest.raises(DefinitionRefused, match="async function"):
        sim.run(lambda: 3)  # type: ignore[arg-type,return-value]


def test_program_that_returns_at_once_has_one_step() -> None:
    """The shortest program is one step of main."""

    async def program() -> str:
        return "done"

    execution = sim.run(program)
    assert (execution.value, execution.schedule.short) == ("done", "main")


def test_program_that_waits_for_nothing_deadlocks_at_step_one() -> None:
    """sleep_forever alone is a deadlock after one step."""
    error = sim.run(trio.sleep_forever).error
    assert isinstance(error, Deadlock)
    assert error.step == 1

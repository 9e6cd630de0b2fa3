"""System tasks and callbacks that never end are no reason never to return."""

from __future__ import annotations

import contextlib

import pytest
import trio
import trio.testing
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import SimulationStopped, StepLimit


async def _spins() -> None:
    while True:
        await checkpoint()


async def _beats() -> None:
    while True:  # noqa: ASYNC110  a heartbeat
        await trio.sleep(1)


async def _waits_for_idleness() -> None:
    while True:
        await trio.testing.wait_all_tasks_blocked()


def _resubmit() -> None:
    trio.lowlevel.current_trio_token().run_sync_soon(_resubmit)


def _resubmit_once() -> None:
    trio.lowlevel.current_trio_token().run_sync_soon(_resubmit_once, idempotent=True)


def _system_task(function):
    return lambda: trio.lowlevel.spawn_system_task(function)


#: What goes on for ever without a step of the program.
ENDLESS = {
    "a system task that spins": _system_task(_spins),
    "a system task that sleeps": _system_task(_beats),
    "a system task that waits for idleness": _system_task(_waits_for_idleness),
    "a callback": _resubmit,
    "an idempotent callback": _resubmit_once,
}


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("start", ENDLESS.values(), ids=ENDLESS)
def test_run_returns_while_strangers_go_on(monkeypatch: pytest.MonkeyPatch, start, inside: bool) -> None:
    """A program that waits for nobody is stopped, whatever system tasks and callbacks keep doing."""
    from toolrt.sim.engine import _scheduler

    monkeypatch.setattr(_scheduler, "can_step_inside", lambda: inside)

    async def program() -> None:
        start()
        await trio.sleep_forever()

    error = sim.run(program).error
    assert isinstance(error, StepLimit)
    assert not error.time_stood_still
    assert "main waits for nothing (sleep_forever)" in str(error)


def test_stop_names_the_system_tasks() -> None:
    """The message says which system tasks went on."""

    async def program() -> None:
        trio.lowlevel.spawn_system_task(_beats, name="heartbeat")
        await trio.sleep_forever()

    assert "main.0 waits for" in str(sim.run(program, step_limit=100).error)


@pytest.mark.parametrize("start", ENDLESS.values(), ids=ENDLESS)
def test_stopped_program_replays(start) -> None:
    """The schedule of such a program ends by the limit, and replays, in both forms."""

    async def program() -> None:
        await checkpoint()
        start()
        await trio.sleep_forever()

    schedule = sim.run(program, step_limit=40).schedule
    # A task that spins and changes nothing is a livelock at once.
    assert schedule.short in ("main*2 main.0*38 !", "main*2 callbacks*38 !", "main*2 main.0*2")
    for form in (schedule, schedule.to_json(), schedule.short):
        assert isinstance(sim.replay(program, form).error, SimulationStopped)


@pytest.mark.parametrize("start", ENDLESS.values(), ids=ENDLESS)
def test_endless_strangers_do_not_reach_the_next_execution(start) -> None:
    """An execution that ends of its own accord leaves no callback and no system task to the next."""
    ran: list[int] = []

    async def program() -> int:
        start()
        await checkpoint()
        before = trio.lowlevel.current_statistics()
        ran.append(before.tasks_living)
        return before.run_sync_soon_queue_size

    report = sim.explore(program, sim.Random(sim.Fifo(), 4))
    assert len(report.outcomes) == 1
    assert len(set(ran)) == 1


@pytest.mark.drawn(2)
@pytest.mark.parametrize("start", ENDLESS.values(), ids=ENDLESS)
def test_unwinding_is_bounded_while_strangers_go_on(start) -> None:
    """A program that never stops cleaning up is ended by force, strangers or not, and the next one runs."""

    async def program() -> None:
        start()
        while True:
            with contextlib.suppress(trio.Cancelled):
                await trio.sleep_forever()

    report = sim.explore(program, sim.Random(sim.Fifo(), 2), lambda execution: True)
    assert report.outcomes in ({"StepLimit": 2}, {"Livelock": 2})


@pytest.mark.parametrize("start", [ENDLESS["a system task that spins"], _resubmit], ids=["task", "callback"])
def test_strangers_do_not_starve_the_program(start) -> None:
    """A system task that polls lets the program go on, as it does in Trio."""

    async def program() -> str:
        start()
        for _ in range(20):
            await checkpoint()
        return "done"

    assert sim.run(program).value == "done"


def test_spinning_system_task_does_not_hold_the_clock() -> None:
    """A task that spins and changes nothing gives way, as any task of the program does: the sleeper wakes."""

    async def program() -> None:
        trio.lowlevel.spawn_system_task(_spins)
        await trio.sleep(1)

    report = sim.explore(program, sim.Random(sim.Fifo(), 2))
    assert report.verdict is sim.PASS
    assert report.undecided == 0


def test_long_sleep_beside_a_heartbeat_ends() -> None:
    """A heartbeat is no livelock while the program sleeps to a deadline of its own."""

    async def program() -> float:
        trio.lowlevel.spawn_system_task(_beats)
        await trio.sleep(3000)
        return trio.current_time()

    assert sim.run(program).value == 3000.0


def test_pending_callbacks_run_before_the_next_execution() -> None:
    """What a program gave to run_sync_soon in its last step is done in its own execution."""
    ran: list[int] = []

    async def program() -> int:
        before = len(ran)
        trio.lowlevel.current_trio_token().run_sync_soon(ran.append, 1)
        return before

    # The second is run twice.
    assert sim.explore(program, sim.Random(sim.Fifo(), 3)).outcomes == {0: 1, 1: 1, 3: 1}


def test_system_tasks_wake_in_the_order_they_were_spawned() -> None:
    """An event keeps its waiters in a set: the order of addresses must decide nothing."""
    kept: list[object] = []

    async def program() -> tuple[int, ...]:
        # What the allocator gives next differs from one execution to the next.
        kept.append([object() for _ in range(len(kept) * 7 % 41)])
        go, done = trio.Event(), trio.Event()
        woken: list[int] = []

        async def wait(number: int) -> None:
            await go.wait()
            woken.append(number)
            if len(woken) == 8:
                done.set()

        for number in range(8):
            trio.lowlevel.spawn_system_task(wait, number)
        await checkpoint()
        go.set()
        await done.wait()
        return tuple(woken)

    outcomes = sim.explore(program, sim.Random(sim.Fifo(), 100)).outcomes
    assert len(outcomes) == 1


async def _parks() -> None:
    await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)


@pytest.mark.parametrize("wait", [trio.lowlevel.cancel_shielded_checkpoint, _parks], ids=["spins", "waits"])
def test_generator_that_never_closes_is_ended_by_force(wait) -> None:
    """A generator left half iterated whose clean-up never ends does not keep the simulation from ending."""
    kept = []

    async def program() -> int:
        async def numbers():
            try:
                yield 1
            finally:
                while True:
                    await wait()

        kept.append(numbers())
        await anext(kept[-1])
        return 1

    assert sim.explore(program, sim.Random(sim.Fifo(), 2)).outcomes == {1: 2}


def test_sibling_of_the_program_has_a_name_of_its_own() -> None:
    """A task put into the nursery that the program itself is in is not mistaken for the program."""

    async def program() -> str:
        nursery = trio.lowlevel.current_task().parent_nursery
        assert nursery is not None
        nursery.start_soon(checkpoint)
        await checkpoint()
        await checkpoint()
        return "done"

    execution = sim.run(program)
    assert set(execution.schedule.tasks) == {"main", "main.0"}
    assert sim.replay(program, execution.schedule).value == "done"


def test_sibling_that_fails_ends_the_program_and_nothing_else() -> None:
    """Its error cancels the program's task; it does not leave the simulator, and the next execution runs."""
    failing = [True]

    async def program() -> str:
        async def fail() -> None:
            raise ValueError("no")

        nursery = trio.lowlevel.current_task().parent_nursery
        assert nursery is not None
        if failing:
            failing.pop()
            nursery.start_soon(fail)
        await trio.sleep(1)
        return "done"

    report = sim.explore(program, sim.Random(sim.Fifo(), 3), lambda execution: True)
    assert report.outcomes == {"Cancelled": 1, "done": 2}

"""What a program reads of Trio is reported, and is what plain Trio tells it."""

from __future__ import annotations

import contextlib

import pytest
import trio
import trio.testing
from trio.lowlevel import checkpoint

from toolrt import sim


async def _yield(times: int) -> None:
    for _ in range(times):
        await checkpoint()


def _reads(look, change, steps: int = 2):
    """A program in which one task looks at something between others' changes, and reports something else besides."""

    async def program() -> str:
        seen: list[str] = []
        made = look.make()
        mark = sim.Cell(0, name="mark")

        async def looks() -> None:
            for _ in range(steps):
                mark.set(1)
                seen.append(str(look.read(made)))
                await checkpoint()
            mark.set(2)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(looks)
            nursery.start_soon(change, made)
            with contextlib.suppress(Exception):
                made.task = nursery.parent_task
        return " ".join(seen)

    return program


class _Look:
    def __init__(self, make, read) -> None:
        self.make, self.read = make, read


def _tell() -> None:
    """Report something, so that the running step is believed to have done no more."""
    sim.Cell(0, name="other").set(1)


async def _waits(semaphore: trio.Semaphore) -> None:
    _tell()
    await checkpoint()
    _tell()
    with trio.move_on_after(1):
        await semaphore.acquire()


async def _waits_for_condition(condition: trio.Condition) -> None:
    _tell()
    await checkpoint()
    _tell()
    with trio.move_on_after(1):
        async with condition:
            await condition.wait()


async def _waits_for_event(event: trio.Event) -> None:
    _tell()
    await checkpoint()
    _tell()
    with trio.move_on_after(1):
        await event.wait()


async def _locks(lock: trio.Lock) -> None:
    _tell()
    await checkpoint()
    _tell()
    async with lock:
        await checkpoint()
        _tell()


async def _borrows(limiter: trio.CapacityLimiter) -> None:
    _tell()
    await checkpoint()
    _tell()
    async with limiter:
        await checkpoint()
        _tell()


async def _sends(channels) -> None:
    _tell()
    await checkpoint()
    _tell()
    channels[0].send_nowait(1)


async def _shields(scope: trio.CancelScope) -> None:
    _tell()
    await checkpoint()
    with scope:
        _tell()
        scope.shield = True
        await checkpoint()
        _tell()


async def _catches(scope: trio.CancelScope) -> None:
    _tell()
    await checkpoint()
    with scope:
        _tell()
        scope.cancel()
        await checkpoint()
    _tell()
    await checkpoint()
    _tell()


async def _moves(scope: trio.CancelScope) -> None:
    _tell()
    await checkpoint()
    _tell()
    scope.deadline = 7
    await checkpoint()
    _tell()


async def _spawns(_: object) -> None:
    _tell()
    await checkpoint()
    _tell()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_child)
    _tell()


async def _child() -> None:
    _tell()


def _children(_: object) -> int:
    root = trio.lowlevel.current_root_task()
    todo, count = [root], 0
    while todo:
        count += 1
        todo += [child for nursery in todo.pop().child_nurseries for child in nursery.child_tasks]
    return count


LOOKS = {
    "Semaphore.statistics": (_Look(lambda: trio.Semaphore(0), lambda it: it.statistics().tasks_waiting), _waits),
    "Condition.statistics": (_Look(trio.Condition, lambda it: it.statistics().tasks_waiting), _waits_for_condition),
    "Condition.statistics of its lock": (
        _Look(trio.Condition, lambda it: it.statistics().lock_statistics.locked),
        _waits_for_condition,
    ),
    "Event.statistics": (_Look(trio.Event, lambda it: it.statistics().tasks_waiting), _waits_for_event),
    "Lock.statistics": (_Look(trio.Lock, lambda it: it.statistics().locked), _locks),
    "CapacityLimiter.statistics": (
        _Look(lambda: trio.CapacityLimiter(1), lambda it: it.statistics().borrowed_tokens),
        _borrows,
    ),
    "channel statistics": (
        _Look(lambda: trio.open_memory_channel[int](1), lambda it: it[1].statistics().current_buffer_used),
        _sends,
    ),
    "CancelScope.shield": (_Look(trio.CancelScope, lambda it: it.shield), _shields),
    "CancelScope.cancel_called": (_Look(trio.CancelScope, lambda it: it.cancel_called), _catches),
    "CancelScope.cancelled_caught": (_Look(trio.CancelScope, lambda it: it.cancelled_caught), _catches),
    "CancelScope.deadline": (_Look(trio.CancelScope, lambda it: it.deadline), _moves),
    "current_statistics": (
        _Look(trio.Event, lambda it: trio.lowlevel.current_statistics().tasks_living),
        _spawns,
    ),
    "task.child_nurseries": (_Look(trio.Event, _children), _spawns),
}


@pytest.mark.parametrize("name", LOOKS)
def test_reduction_sees_who_looks(name: str) -> None:
    """Every outcome that the exhaustive search has, the reduction has too, and it counts as complete."""
    program = _reads(*LOOKS[name])
    every = sim.explore(program, sim.Exhaustive(), lambda execution: True)
    reduced = sim.explore(program, sim.DPOR(samples=0), lambda execution: True)
    assert every.complete
    assert len(every.outcomes) > 1
    assert reduced.complete
    assert set(reduced.outcomes) == set(every.outcomes)


async def _parents() -> str:
    seen: list[bool] = []
    mark = sim.Cell(0, name="mark")
    inner: list[trio.lowlevel.Task] = []

    async def starts(task_status: trio.TaskStatus[None]) -> None:
        _tell()
        inner.append(trio.lowlevel.current_task())
        await checkpoint()
        _tell()
        task_status.started()
        await checkpoint()
        _tell()

    async with trio.open_nursery() as nursery:

        async def looks() -> None:
            for _ in range(3):
                mark.set(1)
                seen.append(bool(inner) and inner[0].parent_nursery is nursery)
                await checkpoint()
            mark.set(2)

        nursery.start_soon(looks)
        await nursery.start(starts)
    return str(seen)


def test_reduction_sees_who_looks_at_a_parent() -> None:
    """A task changes nurseries when it calls ``started``."""
    every = sim.explore(_parents, sim.Exhaustive(), lambda execution: True)
    reduced = sim.explore(_parents, sim.DPOR(samples=0), lambda execution: True)
    assert len(every.outcomes) > 1
    assert set(reduced.outcomes) == set(every.outcomes)


async def _memory_stream() -> str:
    send, receive = trio.testing.MemorySendStream(), trio.testing.MemoryReceiveStream()
    got: list[str] = []

    async def put(data: bytes) -> None:
        _tell()
        await checkpoint()
        _tell()
        receive.put_data(data)

    async def take() -> None:
        mark = sim.Cell(0, name="mark")
        mark.set(1)
        await checkpoint()
        mark.set(2)
        got.append(bytes(await receive.receive_some(1)).decode())
        mark.set(3)

    receive.put_data(b"-")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(put, b"a")
        nursery.start_soon(put, b"b")
        nursery.start_soon(take)
    got.append(bytes(await receive.receive_some()).decode())
    await send.aclose()
    return " ".join(got)


def test_memory_streams_report() -> None:
    """What arrives together depends on the order, also where the steps report something else."""
    every = sim.explore(_memory_stream, sim.Exhaustive(), lambda execution: True)
    reduced = sim.explore(_memory_stream, sim.DPOR(samples=0), lambda execution: True)
    assert set(reduced.outcomes) == set(every.outcomes)


async def _cushions() -> list[object]:
    log: list[object] = []

    async def sleeps() -> None:
        for _ in range(3):
            await trio.sleep(0.02)
            log.append("slept")

    async def waits(cushion: float) -> None:
        await trio.testing.wait_all_tasks_blocked(cushion)
        log.append(cushion)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeps)
        for cushion in (0.05, 0.0, 0.08):
            nursery.start_soon(waits, cushion)
    return log


def test_cushion_lets_time_pass() -> None:
    """Who waits with a cushion is woken when nothing has happened for that long, as in plain Trio."""
    plain = trio.run(_cushions)
    assert plain == [0.0, "slept", "slept", "slept", 0.05, 0.08]
    assert sim.run(_cushions).value == plain


async def _cushion_takes_time() -> float:
    began = trio.current_time()
    await trio.testing.wait_all_tasks_blocked(0.03)
    return trio.current_time() - began


def test_cushion_is_time() -> None:
    """The clock has moved by it; without one it has not."""
    assert trio.run(_cushion_takes_time) >= 0.03
    assert sim.run(_cushion_takes_time).value == 0.03
    report = sim.explore(_cushions, sim.Random(sim.RandomWalk(1), 20))
    assert {str(outcome) for outcome in report.outcomes} == {str(trio.run(_cushions))}


async def _sleep_data() -> list[object]:
    task = trio.lowlevel.current_task()
    seen: list[object] = []
    task.custom_sleep_data = "mine"
    seen.append(task.custom_sleep_data)
    await checkpoint()
    seen.append(task.custom_sleep_data)
    task.custom_sleep_data = "again"
    await trio.lowlevel.cancel_shielded_checkpoint()
    seen.append(task.custom_sleep_data)
    task.custom_sleep_data = "sleeps"
    await checkpoint()
    seen.append(task.custom_sleep_data)
    return seen


def test_custom_sleep_data_is_forgotten_at_a_checkpoint() -> None:
    """As in plain Trio, whatever kind of checkpoint it is."""
    assert sim.run(_sleep_data).value == trio.run(_sleep_data) == ["mine", None, None, None]


async def _statistics() -> list[int]:
    counts = []
    async with trio.open_nursery() as nursery:
        counts.append(trio.lowlevel.current_statistics().tasks_living)
        for _ in range(3):
            nursery.start_soon(trio.sleep, 0)
        counts += [trio.lowlevel.current_statistics().tasks_living, trio.lowlevel.current_statistics().tasks_runnable]
    # What calls it waits until the loop has looked.
    trio.lowlevel.current_trio_token().run_sync_soon(int)
    counts.append(trio.lowlevel.current_statistics().tasks_runnable)
    return counts


def test_statistics_are_those_of_plain_trio() -> None:
    """As many tasks live and can run as in a Trio run of its own."""
    assert sim.run(_statistics).value == trio.run(_statistics)


def test_only_the_programs_own_looks_at_its_nursery_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator itself asks no task for its nursery by the public name: that would be an access of some step."""
    asked: list[str] = []
    real = vars(trio.lowlevel.Task)["parent_nursery"]

    def parent_nursery(task):
        asked.append(task.name)
        return real.fget(task)

    monkeypatch.setattr(trio.lowlevel.Task, "parent_nursery", property(parent_nursery))

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(trio.lowlevel.checkpoint)

    for strategy in (sim.DPOR(), sim.Exhaustive(), sim.Random(sim.RandomWalk(1), 5)):
        assert sim.explore(program, strategy, lambda execution: True).verdict is sim.PASS
    assert asked == []

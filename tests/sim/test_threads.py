"""Worker threads as actors: their order is explored, and what plain Trio does with real ones is among it."""

from __future__ import annotations

import contextvars
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
import trio
from hypothesis import settings

from toolrt import probe, sim
from toolrt.errors import Deadlock, NotSimulated, StuckThread

_ORDERS = ("any", "trio")

_variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def _lost_update() -> int:
    """Two threads read, ask the loop, and write."""
    counter = sim.Cell(0)

    def add() -> None:
        seen = counter.get()
        trio.from_thread.run_sync(probe.vouch)
        counter.set(seen + 1)

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(trio.to_thread.run_sync, add)
    return counter.get()


async def _one_at_a_time() -> int:
    """The same with a limiter of one."""
    counter, limiter = sim.Cell(0), trio.CapacityLimiter(1)

    def add() -> None:
        seen = counter.get()
        trio.from_thread.run_sync(probe.vouch)
        counter.set(seen + 1)

    async def call() -> None:
        await trio.to_thread.run_sync(add, limiter=limiter)

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(call)
    return counter.get()


async def _beside_the_loop() -> tuple[object, ...]:
    """A thread and a task write in one list."""
    order: list[str] = []

    async def task() -> None:
        order.append("a")
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        order.append("b")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        nursery.start_soon(trio.to_thread.run_sync, order.append, "thread")
    return tuple(order)


async def _cancelled_meanwhile() -> tuple[object, ...]:
    """A thread asks whether it is cancelled while a task cancels it."""
    seen: list[str] = []

    def work() -> None:
        for _ in range(2):
            trio.from_thread.check_cancelled()
            seen.append("not yet")

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, work)
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            scope.cancel()
    return len(seen), scope.cancelled_caught


async def _abandoned() -> tuple[object, ...]:
    """The task goes on without its thread, or gets the value in time."""
    got: list[int] = []

    async def call() -> None:
        got.append(await trio.to_thread.run_sync(int, abandon_on_cancel=True))

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            for _ in range(3):
                await trio.lowlevel.checkpoint()
            scope.cancel()
    return len(got), scope.cancelled_caught


async def _asks_twice() -> tuple[object, ...]:
    """Two threads run functions in the loop, which see each other."""
    order = sim.Cell[tuple[int, ...]](())

    async def append(number: int) -> None:
        order.set((*order.get(), number))

    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(trio.to_thread.run_sync, trio.from_thread.run, append, number)
    return order.get()


_PROGRAMS = (_lost_update, _one_at_a_time, _beside_the_loop, _cancelled_meanwhile, _abandoned, _asks_twice)

# Too many schedules for a reduction in a test: two threads that each ask the loop.
_LARGE = (_lost_update, _asks_twice)


def _outcomes(program: Callable[[], Awaitable[Any]], order: str, strategy: Any = None) -> set[Any]:
    report = sim.explore(program, strategy or sim.DPOR(), lambda execution: True, order=order, max_executions=3_000)
    assert strategy is not None or report.complete, report
    return set(report.outcomes)


def _explored(program: Callable[[], Awaitable[Any]], order: str) -> set[Any]:
    return _outcomes(program, order, sim.Random(sim.RandomWalk(0), 150) if program in _LARGE else None)


@pytest.mark.seldom
@pytest.mark.parametrize("order", _ORDERS)
@pytest.mark.parametrize("program", [_beside_the_loop, _cancelled_meanwhile, _abandoned])
def test_reduction_leaves_no_outcome_out(program: Callable[[], Awaitable[Any]], order: str) -> None:
    """DPOR finds every outcome that all schedules together have."""
    assert _outcomes(program, order) == _outcomes(program, order, sim.Exhaustive())


@pytest.mark.seldom
def test_orders_have_what_they_can() -> None:
    """What one at a time excludes never comes; what Trio's passes exclude comes in any order only."""
    for order in _ORDERS:
        assert _explored(_lost_update, order) == {1, 2}
        assert _explored(_one_at_a_time, order) == {2}
        assert _explored(_asks_twice, order) == {(0, 1), (1, 0)}
        assert _explored(_abandoned, order) == {(0, True), (1, False)}
    first = ("thread", "a", "b")
    assert first in _explored(_beside_the_loop, "any")
    assert first not in _explored(_beside_the_loop, "trio")


@pytest.mark.parametrize("program", _PROGRAMS)
def test_what_trio_does_is_explored(program: Callable[[], Awaitable[Any]]) -> None:
    """Each outcome of plain Trio with real threads is one of those explored under its own order."""
    explored = _explored(program, "trio")
    for _ in range(20 if settings.default.max_examples <= 100 else 5_000):  # type: ignore[attr-defined]
        assert trio.run(program) in explored


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.parametrize("program", _PROGRAMS)
def test_what_is_explored_trio_does(program: Callable[[], Awaitable[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain Trio comes to each outcome that its order has here, if chance slows down its threads and its loop."""
    explored = _explored(program, "trio")
    chance, seen = random.Random(0), set()
    real = trio._core._thread_cache.ThreadCache.start_thread_soon

    def slowly(call: Callable[..., object]) -> Callable[..., object]:
        def slow(*args: object) -> object:
            time.sleep(chance.choice((0, 0, 0.0001, 0.001)))
            return call(*args)

        return slow

    def start(cache: object, fn: Any, deliver: Any, name: str | None = None) -> None:
        real(cache, slowly(fn), slowly(deliver), name)

    monkeypatch.setattr(trio._core._thread_cache.ThreadCache, "start_thread_soon", start)
    monkeypatch.setattr(trio.from_thread, "check_cancelled", slowly(trio.from_thread.check_cancelled))

    class SlowLoop(trio.abc.Instrument):
        def before_task_step(self, task: object) -> None:
            time.sleep(chance.choice((0, 0, 0.0005)))

    for _ in range(20_000):
        seen.add(trio.run(program, instruments=[SlowLoop()]))
        if seen == explored:
            break
    assert seen == explored


@pytest.mark.seldom
def test_schedules_are_replayed() -> None:
    """A schedule with threads gives the same again, in both forms, under both orders."""
    for order in _ORDERS:
        report = sim.explore(_lost_update, sim.Random(sim.RandomWalk(1), 300), lambda run: run.value == 2, order=order)
        failure = report.failures[0].execution
        assert "thread." in str(failure.schedule)
        for schedule in (failure.schedule, str(failure.schedule), failure.schedule.to_json()):
            assert sim.replay(_lost_update, schedule, order=order).value == 1


def test_threads_carry_what_trio_carries() -> None:
    """Context, exceptions, names, the task that waits, and a token's run of its own."""

    async def program() -> tuple[object, ...]:
        _variable.set("task")
        token = trio.lowlevel.current_trio_token()
        main = trio.lowlevel.current_task()

        async def answer(number: int) -> tuple[int, str, bool]:
            await trio.lowlevel.checkpoint()
            return number + 1, _variable.get(), trio.lowlevel.current_task() is main

        def work() -> tuple[object, ...]:
            found = (_variable.get(), threading.current_thread().name)
            with pytest.raises(RuntimeError):
                trio.lowlevel.current_task()
            _variable.set("thread")
            return (
                *found,
                trio.from_thread.run(answer, 1),
                trio.from_thread.run(answer, 2, trio_token=token),
                trio.from_thread.run_sync(lambda: trio.lowlevel.current_task() is main),
            )

        def fail() -> None:
            raise ValueError("as it is")

        with pytest.raises(ValueError, match="as it is"):
            await trio.to_thread.run_sync(fail)
        with pytest.raises(RuntimeError, match="call it from a thread"):
            trio.from_thread.run_sync(int, trio_token=token)
        return (*(await trio.to_thread.run_sync(work, thread_name="worker")), _variable.get())

    expected = ("task", "worker", (2, "thread", True), (3, "thread", False), True, "task")
    assert trio.run(program) == expected
    for order in _ORDERS:
        assert set(sim.explore(program, order=order, max_executions=20).outcomes) == {expected}


def test_threads_wait_in_virtual_time() -> None:
    """A thread sleeps, and waits for another one or for a task: 3,000 seconds that a test's limit would not see."""

    async def program() -> tuple[object, ...]:
        event, items = threading.Event(), queue.Queue[int]()

        def work() -> tuple[object, ...]:
            time.sleep(1_000)
            return event.wait(1_000), items.get(timeout=3_000), event.wait(1), time.monotonic()

        async def help_it() -> None:
            await trio.sleep(3_000)
            event.set()
            await trio.to_thread.run_sync(items.put, 7)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(help_it)
            return await trio.to_thread.run_sync(work)

    assert sim.run(program).value == (False, 7, True, 3_000.0)
    assert isinstance(sim.run(_waits_for_ever).error, Deadlock)


async def _waits_for_ever() -> None:
    await trio.to_thread.run_sync(threading.Event().wait)


def test_stuck_thread_is_undecided() -> None:
    """It ends the exploration, which says where the thread is; nothing of it runs on."""
    lock = threading.Lock()
    lock.acquire()
    woken: list[int] = []

    def work() -> None:
        lock.acquire()
        woken.append(1)

    async def program() -> None:
        sim.thread_seconds(0.2)
        await trio.to_thread.run_sync(work)

    report = sim.explore(program, max_executions=50)
    assert (report.verdict, report.executions, report.undecided) == (sim.INCONCLUSIVE, 1, 1)
    assert "which kept the turn for 0.2 seconds" in str(report)
    error = sim.run(program).error
    assert isinstance(error, StuckThread)
    assert "lock.acquire()" in error.stack
    for thread in [thread for thread in threading.enumerate() if thread.name == error.name]:
        # It takes the lock, and ends before its next line.
        lock.release()
        thread.join(5)
    assert woken == []
    assert sim.run(_lost_update).error is None


def test_loop_that_waits_lets_threads_go_on() -> None:
    """A step that waits for a thread lets it go on; where there is none it would wait for ever, and is refused."""

    async def program() -> bool:
        event, items = threading.Event(), queue.Queue[int]()

        def work() -> None:
            items.get()
            event.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, work)
            await trio.testing.wait_all_tasks_blocked(0.01)
            items.put(1)
            while not event.is_set():
                time.sleep(0.01)  # noqa: ASYNC251
            nursery.start_soon(trio.to_thread.run_sync, items.put, 2)
            await trio.sleep(1)
            return items.get() == 2 and event.wait()

    for order in _ORDERS:
        assert sim.run(program, order=order).value is True

    async def blocks() -> None:
        threading.Event().wait()

    error = sim.run(blocks).error
    assert isinstance(error, NotSimulated)
    assert error.action == "block Trio's loop for ever"


def test_no_thread_outlives_its_execution() -> None:
    """What waits when the program ends, or is given up, gets an exception there, and ends."""
    ended: list[str] = []

    def work() -> None:
        try:
            trio.from_thread.run(trio.sleep_forever)
        finally:
            ended.append(threading.current_thread().name)

    async def returns() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: trio.to_thread.run_sync(work, abandon_on_cancel=True, thread_name="mine"))
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        return "returned"

    async def never() -> None:
        await trio.to_thread.run_sync(work, thread_name="mine")

    for program, outcome in ((returns, "returned"), (never, "Deadlock")):
        ended.clear()
        assert sim.explore(program, sim.Random(sim.Fifo(), 3)).outcomes == {outcome: 3}
        assert len(ended) >= 3
        assert "mine" not in [thread.name for thread in threading.enumerate()]


def test_files_are_read_in_threads(tmp_path: Path) -> None:
    """Trio's and AnyIO's paths and files follow, and AnyIO's own ways between loop and threads."""

    async def program() -> tuple[object, ...]:
        path = trio.Path(tmp_path) / "a"
        await path.write_text("text")
        async with await trio.open_file(path) as file, await anyio.open_file(path) as other:
            read = await file.read(), await other.read(), await anyio.Path(path).read_text()
        async with anyio.from_thread.BlockingPortal() as portal:
            called = await anyio.to_thread.run_sync(lambda: portal.call(anyio.sleep, 1))
        slept = await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(anyio.sleep, 1))
        return (*read, called, slept, trio.current_time())

    for order in _ORDERS:
        assert sim.run(program, order=order).value == ("text", "text", "text", None, None, 2.0)


def test_interrupt_while_a_thread_runs() -> None:
    """Ctrl-C ends the simulation, also while a thread has the turn for a long time."""

    def work() -> None:
        signal.raise_signal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else os.kill(
            os.getpid(), signal.SIGINT
        )

    async def program() -> None:
        await trio.to_thread.run_sync(work)
        await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        sim.run(program)
    assert sim.run(_one_at_a_time).value == 2


def test_threads_are_not_counted_as_tasks() -> None:
    """What Trio says of tasks and threads is what it says outside."""

    async def program() -> tuple[int, ...]:
        def count() -> tuple[int, int]:
            return trio.lowlevel.current_statistics().tasks_living, trio.testing.active_thread_count()

        inside = await trio.to_thread.run_sync(trio.from_thread.run_sync, count)
        await trio.testing.wait_all_threads_completed()
        return (*inside, *count())

    assert sim.run(program).value == trio.run(program)


def test_tracked_code_in_threads_is_seen() -> None:
    """A thread that runs rewritten code depends on what it touches alone; one that runs other code may do anything."""

    async def program() -> int:
        mine, theirs = [0], [0]

        def add() -> None:
            theirs[0] += 1

        async def task() -> None:
            for _ in range(3):
                mine[0] += 1
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            nursery.start_soon(trio.to_thread.run_sync, add)
        return mine[0] + theirs[0]

    plain = sim.explore(program, sim.DPOR(samples=0), order="any", track=False)
    tracked = sim.explore(program, sim.DPOR(samples=0), order="any", track=True)
    assert plain.outcomes.keys() == tracked.outcomes.keys() == {4}
    assert tracked.executions < plain.executions


_LOSES_A_THREAD = """
import os, sys, trio
from toolrt import sim

read, write = os.pipe()

async def program():
    sim.thread_seconds(0.1)
    await trio.to_thread.run_sync(os.read, read, 1)

print(type(sim.run(program).error).__name__)
sys.settrace(lambda *_: None)
(lambda: print("went on"))()
sys.settrace(None)
os.write(write, b"x")
"""


@pytest.mark.process
def test_thread_that_stays_in_c_stops_no_code_under_a_tracer() -> None:
    """Python 3.11 began the first function again and again, as long as that thread had not met its exception."""
    command = [sys.executable, "-c", _LOSES_A_THREAD]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout.split("\n"), ended.returncode) == (["StuckThread", "went on", ""], 0), ended.stderr

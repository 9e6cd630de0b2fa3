"""Limits in wall time hold, whatever the program does."""

from __future__ import annotations

import contextlib
import itertools
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import probe, sim
from toolrt.errors import DefinitionRefused, NotSimulated, StuckStep
from toolrt.sim._trio_internals._forced_end import is_in_step
from toolrt.sim.engine._host import current_scheduler

Program = Callable[[], Awaitable[Any]]


async def swallows_exceptions() -> None:
    """Ask again for what is refused."""
    while True:
        with contextlib.suppress(Exception):
            await trio.lowlevel.wait_readable(0)


async def swallows_everything() -> None:
    """The same, with all that Python has."""
    while True:
        try:
            while True:
                try:
                    await trio.lowlevel.wait_readable(0)
                except BaseException:
                    pass
                finally:
                    threading.Thread(target=print).start()
        except:  # noqa: E722
            continue


async def spins() -> None:  # noqa: ASYNC124  that is the point
    """Never reach a checkpoint."""
    while True:
        pass


async def spins_and_swallows() -> None:  # noqa: ASYNC124
    """The same behind two handlers, and once more on the way out."""
    try:
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
    finally:
        while True:
            pass


async def spins_in_a_generator() -> None:  # noqa: ASYNC124
    """The same in a generator that does not end when it is closed."""

    def numbers() -> Generator[int]:
        while True:
            try:
                yield 1
                while True:
                    pass
            except BaseException:
                pass

    for _ in numbers():
        pass


async def cleans_up_for_ever() -> None:
    """Spin in the cleanup of a child, which another child's error cancels."""

    async def child() -> None:
        try:
            await trio.sleep_forever()
        finally:
            await spins()

    async def failing() -> None:
        await trio.sleep(1)
        raise ValueError

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
        nursery.start_soon(failing)


async def leaves_a_generator() -> None:
    """Spin in an async generator that is closed."""

    async def numbers() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await spins()

    half = numbers()
    await anext(half)
    await half.aclose()


async def blocks() -> None:  # noqa: ASYNC124
    """Wait in a sync call for what never comes."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


async def spins_after_a_checkpoint() -> None:
    """Come back to a checkpoint whenever it is interrupted, so that the step is looked at by a tracer."""
    while True:
        with contextlib.suppress(BaseException):
            await trio.lowlevel.checkpoint()
            while True:
                pass


async def spins_behind_many_handlers() -> None:  # noqa: ASYNC124
    """Begin again in each of many loops that swallow everything."""

    def inner(depth: int) -> None:
        while True:
            with contextlib.suppress(BaseException):
                while not depth:
                    pass
                inner(depth - 1)

    inner(20)


async def spins_as_it_is_cancelled() -> None:
    """Never return from the function that is to abort a wait."""

    def abort(_: object) -> trio.lowlevel.Abort:
        while True:
            pass

    with trio.move_on_after(1):
        await trio.lowlevel.wait_task_rescheduled(abort)


async def lets_no_signal_through() -> None:  # noqa: ASYNC124
    """Block the signal that would wake it, and spin."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGVTALRM])
    await spins()


async def ignores_the_signal() -> None:  # noqa: ASYNC124
    """Take the signal's handler away, and spin."""
    signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
    await spins()


async def matches_for_ever() -> None:  # noqa: ASYNC124
    """Wait for a regular expression, which lets no other thread run."""
    re.match(r"(a+)+$", "a" * 50 + "b")


async def ends_what_never_ends() -> None:  # noqa: ASYNC124
    """Spin in a finaliser, which can raise nothing."""

    class Endless:
        def __del__(self) -> None:
            while True:
                pass

    Endless()


async def blocks_in_a_thread() -> None:
    """Wait in a worker thread for what never comes."""
    await trio.to_thread.run_sync(_block)


async def spins_in_a_thread() -> None:
    """Spin in a worker thread."""

    def spin() -> None:
        while True:
            pass

    await trio.to_thread.run_sync(spin)


def _block() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


_STUCK = [spins, spins_and_swallows, spins_in_a_generator, cleans_up_for_ever, leaves_a_generator, blocks]
_STUCK += [spins_after_a_checkpoint, spins_behind_many_handlers, spins_as_it_is_cancelled]
_STUCK += [lets_no_signal_through, ignores_the_signal, matches_for_ever, ends_what_never_ends]
_IN_THREADS = [blocks_in_a_thread, spins_in_a_thread]


def _left_behind() -> tuple[int, Any]:
    return threading.active_count(), signal.getsignal(signal.SIGVTALRM)


@pytest.mark.parametrize("program", [swallows_exceptions, swallows_everything])
def test_refusal_that_is_swallowed_ends_at_the_second(program: Program) -> None:
    """What is refused twice ends the execution, which needs no limit and leaves nothing to the next one."""
    for _ in range(2):
        assert isinstance(sim.run(program).error, NotSimulated)
    assert sim.run(trio.lowlevel.checkpoint).error is None
    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 3), lambda execution: True)
    assert report.verdict is sim.INCONCLUSIVE


@pytest.mark.parametrize("program", _STUCK)
def test_limit_ends_what_never_reaches_a_checkpoint(program: Program) -> None:
    """An execution ends at its limit, with the line where it stood, and leaves no thread and no signal handler."""
    before = _left_behind()
    error = sim.run(program, seconds=0.2).error
    assert isinstance(error, StuckStep)
    assert Path(__file__).name in error.place
    threads, handler = _left_behind()
    assert threads <= before[0]  # one of an earlier test may have ended
    assert handler == before[1]
    assert sim.run(trio.lowlevel.checkpoint).error is None


@pytest.mark.parametrize("program", _IN_THREADS)
def test_limit_holds_for_worker_threads(program: Program) -> None:
    """One that keeps the turn is waited for no longer, however long it might have kept it, and its line is named."""
    error = sim.run(program, seconds=0.2).error
    assert isinstance(error, StuckStep)
    assert Path(__file__).name in error.place
    assert sim.run(trio.lowlevel.checkpoint).error is None


def test_task_that_calls_callbacks_is_ended_in_a_callback_only() -> None:
    """It is Trio's, and without it no run goes on."""
    seen: list[tuple[bool, bool]] = []

    async def program() -> None:
        token, called = trio.lowlevel.current_trio_token(), trio.Event()

        def call_back() -> None:
            frame = sys._getframe()
            assert frame.f_back is not None
            seen.append((is_in_step(frame), is_in_step(frame.f_back)))
            called.set()

        token.run_sync_soon(call_back)
        await called.wait()

    sim.run(program)
    assert seen == [(True, False)]


@pytest.mark.parametrize("file", [trio.__file__, "<attrs generated methods outcome._impl.Value>"])
def test_what_ends_a_task_is_not_interrupted(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """Trio's own code that takes long after a step, because it cancels thousands of tasks, is no code of a step."""
    seen: list[bool] = []
    real = trio._core._run.Runner.task_exited
    space: dict[str, Any] = {"look": lambda: seen.append(is_in_step(sys._getframe(1))), "real": real}
    exec(compile("def ends(*args):\n    look()\n    real(*args)", file, "exec"), space)
    monkeypatch.setattr(trio._core._run.Runner, "task_exited", space["ends"])

    async def program() -> None:  # noqa: ASYNC124
        raise ValueError

    sim.run(program)
    assert seen
    assert not any(seen)


@pytest.mark.process
def test_process_that_c_code_keeps_ends_where_that_was_asked_for() -> None:
    """It writes the line at which it stood; another process goes on with what is left."""
    script = """
import itertools, sys
from toolrt import sim
from toolrt.sim.engine import _watchdog

async def sums():
    sum(itertools.repeat(0))

_watchdog._GRACE_OF_PROCESS = 0.2
_watchdog.tell_where_stuck(2)
sim.run(sums, seconds=0.2)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert 'File "<string>", line 7 in sums' in ended.stderr


@pytest.mark.parametrize("program", [spins, spins_and_swallows])
def test_limit_holds_outside_the_main_thread(program: Program) -> None:
    """The same where no signal arrives."""
    found: list[sim.Execution] = []
    thread = threading.Thread(target=lambda: found.append(sim.run(program, seconds=0.2)))
    thread.start()
    thread.join()
    assert isinstance(found[0].error, StuckStep)


@pytest.mark.seldom
@pytest.mark.parametrize("jobs", [1, 2])
def test_exploration_that_gets_stuck_is_inconclusive(jobs: int) -> None:
    """It ends soon after its time, and says which line it stood at; further executions are not begun."""
    report = sim.explore(spins, sim.Exhaustive(), seconds=0.1, jobs=jobs)
    assert report.verdict is sim.INCONCLUSIVE
    assert "it stood at test_bounds.py" in str(report)
    assert "(spins)" in str(report)
    assert report.executions == 1


@pytest.mark.seldom
def test_check_that_never_ends_is_ended() -> None:
    """What runs between two executions, such as a check, is ended by an error that names its line."""

    def check(_: sim.Execution) -> bool:
        while True:
            pass

    with pytest.raises(StuckStep, match=Path(__file__).name):
        sim.explore(trio.lowlevel.checkpoint, sim.Exhaustive(), check, seconds=0.2)


@pytest.mark.seldom
def test_generator_that_never_closes_does_not_keep_its_execution() -> None:
    """An async generator that spins as it is closed after the execution is left."""
    kept: list[AsyncGenerator[int]] = []

    async def numbers() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await spins()

    async def program() -> int:
        kept.append(numbers())
        return await anext(kept[-1])

    assert sim.run(program, seconds=0.2).value == 1
    assert sim.run(trio.lowlevel.checkpoint).error is None


def test_limit_leaves_alone_what_ends_in_time() -> None:
    """A program that ends is the same with and without a limit."""

    async def program() -> float:
        await trio.sleep(1)
        return trio.current_time()

    assert sim.run(program, seconds=60).value == sim.run(program).value == 1


def test_limit_is_a_time() -> None:
    """Zero seconds are refused."""
    with pytest.raises(DefinitionRefused):
        sim.run(spins, seconds=0)


async def names_by_address() -> int:
    """What its steps touch has another name in each execution, so that a reduction always finds something new."""
    shared, met = object(), []

    async def touches(name: str) -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            probe.vouch()
            probe.access(("thing", id(shared), next(_NEW)), True)
            met.append(name)

    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(touches, name)
    return len(met)


_NEW = itertools.count()


@pytest.mark.seldom
@pytest.mark.parametrize("strategy", [sim.DPOR(), sim.DPOR(samples=0)], ids=repr)
def test_reduction_of_what_is_not_controlled_ends(strategy: sim.Strategy) -> None:
    """The tree of what is to be tried grows with each execution; the verdict says what was not controlled."""
    report = sim.explore(names_by_address, strategy)
    assert report.verdict is sim.INCONCLUSIVE
    assert report.executions <= 1_000
    assert "depends on something the simulator does not control" in str(report)


@pytest.mark.parametrize("steps", range(6))
def test_answer_of_a_thread_wakes_no_task_that_the_limit_has_ended(steps: int) -> None:
    """The thread is ended with the task that waits for it, and tells it so; Trio's loop went down with that."""

    async def program() -> None:
        async def end_it() -> None:
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            # As the watchdog does between two steps.
            scheduler = current_scheduler()
            assert scheduler is not None
            scheduler.end_after_step(1.0)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, int)
            nursery.start_soon(end_it)

    for policy in (sim.Fifo(), *map(sim.RandomWalk, range(5))):
        report = sim.explore(program, sim.Random(policy, 1))
        assert report.failed == 0

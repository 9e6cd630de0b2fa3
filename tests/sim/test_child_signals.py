"""Children that are stopped and continued, and process groups."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.errors import Deadlock, NotSimulated

_COUNTS = "import signal\nprint('up', flush=True)\nsignal.alarm(60)\nsignal.pause()"
_COMMAND = [sys.executable, "-S", "-E", "-c", _COUNTS]


async def _counts(child: sim.ChildProcess) -> int:
    await child.stdout.send_all(b"up\n")
    await trio.sleep(60)
    return 7


async def _start(is_real: bool, **options: Any) -> trio.Process:
    process = await trio.lowlevel.open_process(_COMMAND if is_real else ["counts"], stdout=subprocess.PIPE, **options)
    assert process.stdout is not None
    assert await process.stdout.receive_some() == b"up\n"
    return process


async def _is_stopped(process: trio.Process, is_real: bool) -> None:
    """Wait until a signal has stopped it: Linux takes the lower of two signals that come at one time first."""
    flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
    is_stopped = not is_real
    while not is_stopped:
        await trio.sleep(0.01)
        is_stopped = os.waitid(os.P_PID, process.pid, flags) is not None  # noqa: ASYNC222  it does not block


async def _stopped_then_killed(is_real: bool) -> tuple[Any, ...]:
    process = await _start(is_real)
    process.send_signal(signal.SIGSTOP)
    await _is_stopped(process, is_real)
    process.terminate()
    with trio.move_on_after(0.05) as scope:
        await process.wait()
    process.kill()
    return scope.cancelled_caught, await process.wait()


async def _terminated_once_it_goes_on(is_real: bool) -> tuple[Any, ...]:
    # The system ignores SIGTSTP in an orphaned group, as a test's own may be; this group's parent is in the session.
    process = await _start(is_real, process_group=0)
    process.send_signal(signal.SIGTSTP)
    await _is_stopped(process, is_real)
    process.terminate()
    with trio.move_on_after(0.05) as scope:
        await process.wait()
    process.send_signal(signal.SIGCONT)
    return scope.cancelled_caught, await process.wait()


async def _group(is_real: bool) -> tuple[Any, ...]:
    leader = await _start(is_real, start_new_session=True)
    member = await _start(is_real, process_group=leader.pid) if sys.platform == "darwin" else None
    own = await _start(is_real, process_group=0)
    same = [os.getpgid(process.pid) == process.pid for process in (leader, own)]
    os.killpg(leader.pid, signal.SIGTERM)
    os.kill(own.pid, signal.SIGKILL)
    codes = [await process.wait() for process in (leader, own) if process is not None]
    gone = []
    for call in (lambda: os.kill(own.pid, 0), lambda: os.killpg(leader.pid, signal.SIGTERM)):
        try:
            call()
        except ProcessLookupError:
            gone.append(True)
    return same, codes, gone, member


@pytest.mark.process
@pytest.mark.parametrize("program", [_stopped_then_killed, _terminated_once_it_goes_on, _group])
def test_signals_do_to_scripts_what_they_do_to_processes(program: Any) -> None:
    """Plain Trio with a real process, and scripts in both orders, come to one outcome."""

    async def scripted() -> str:
        with sim.Process("counts", _counts):
            return str(await program(False))

    seen = str(trio.run(program, True))
    for order in ("any", "trio"):
        assert set(sim.explore(scripted, sim.Random(sim.RandomWalk(seed=1), 10), order=order).outcomes) == {seen}


def _writes(*, stop: int | None = signal.SIGSTOP, resume: bool = True, starts: bool = False) -> Any:
    """Give a program whose child writes twice, in a task of its own if it `starts` one, and is stopped meanwhile."""

    async def lines(child: sim.ChildProcess) -> None:
        await child.stdout.send_all(b"1")
        await child.stdout.send_all(b"2")

    async def script(child: sim.ChildProcess) -> None:
        if starts:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lines, child)
        else:
            await lines(child)

    async def program() -> tuple[bytes, bytes]:
        with sim.Process("writes", script):
            process = await trio.lowlevel.open_process(["writes"], stdout=subprocess.PIPE)
            assert process.stdout is not None
            if stop is not None:
                process.send_signal(stop)
            before = bytearray()
            with trio.move_on_after(5):
                while chunk := await process.stdout.receive_some():
                    before += chunk
            if not resume:
                await process.wait()
            process.send_signal(signal.SIGCONT)
            after = b"".join([bytes(chunk) async for chunk in process.stdout])
            await process.wait()
        return bytes(before), after

    return program


@pytest.mark.parametrize("starts", [False, True])
def test_stopped_script_writes_nothing_until_it_goes_on(starts: bool) -> None:
    """It is stopped before, between or after its writes; what is left comes after SIGCONT."""
    report = sim.explore(_writes(starts=starts), sim.Random(sim.RandomWalk(seed=2), 60))
    assert set(report.outcomes) == {(b"", b"12"), (b"1", b"2"), (b"12", b"")}
    assert set(sim.explore(_writes(stop=None), sim.DPOR(), max_executions=50).outcomes) == {(b"12", b"")}


@pytest.mark.seldom
@pytest.mark.parametrize("accesses", ["reported", "declared"])
def test_reduction_stops_it_at_every_place(accesses: Any) -> None:
    """DPOR has the outcomes of all schedules: a step that stops a process concerns each of its next steps."""
    report = sim.explore(_writes(), sim.DPOR(accesses=accesses), max_executions=3_000)
    assert set(report.outcomes) == {(b"", b"12"), (b"1", b"2"), (b"12", b"")}


@pytest.mark.parametrize("order", ["any", "trio"])
def test_what_a_stopped_script_waits_for_comes_later(order: Any) -> None:
    """Its sleep ends while it is stopped; what it has started itself goes on."""

    async def inner(child: sim.ChildProcess) -> None:
        await trio.sleep(1)
        await child.stdout.send_all(b"inner ")

    async def script(child: sim.ChildProcess) -> None:
        process = await trio.lowlevel.open_process(["inner"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        seen.append(process)
        await child.stdout.send_all(b"up ")
        await trio.sleep(1)
        await child.stdout.send_all(b"outer")

    seen: list[trio.Process] = []

    async def program() -> tuple[bytes, int | None, bytes]:
        seen.clear()
        with sim.Process("script", script), sim.Process("inner", inner):
            process = await trio.lowlevel.open_process(["script"], stdout=subprocess.PIPE)
            assert process.stdout is not None
            before = bytearray(await process.stdout.receive_some())
            process.send_signal(signal.SIGSTOP)
            with trio.move_on_after(5):
                before += await process.stdout.receive_some()
            code = seen[0].poll()
            process.send_signal(signal.SIGCONT)
            return bytes(before), code, bytes(await process.stdout.receive_some())

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 10), order=order)
    assert set(report.outcomes) == {(b"up ", 0, b"outer")}


def test_waiting_for_a_stopped_process_is_a_deadlock_in_words() -> None:
    """Nothing else sends the signal: the text says what the process waits for."""
    report = sim.explore(_writes(resume=False), sim.Random(sim.RandomWalk(seed=1), 10))
    assert isinstance(report.failures[0].error, Deadlock)
    assert "SIGCONT: it is stopped" in str(report.failures[0].error)


@pytest.mark.parametrize("order", ["any", "trio"])
def test_stopped_process_does_not_outlive_its_execution(order: Any) -> None:
    """A program that ends with a stopped child leaves nothing to the next execution."""
    finals = []

    async def script(child: sim.ChildProcess) -> None:
        try:
            await trio.sleep(9)
        finally:
            finals.append(1)

    async def program() -> int:
        with sim.Process("script", script):
            process = await trio.lowlevel.open_process(["script"])
            await trio.testing.wait_all_tasks_blocked()
            process.send_signal(signal.SIGSTOP)
        return 1

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 3), order=order)
    assert report.outcomes == {1: 3}
    assert len(finals) >= 3


def test_script_cannot_stop_itself() -> None:
    """Nothing would be left of it that could go on."""

    async def script(child: sim.ChildProcess) -> None:
        os.kill(child.pid, signal.SIGSTOP)

    async def program() -> None:
        with sim.Process("script", script):
            await trio.run_process(["script"])

    assert isinstance(sim.run(program).error, NotSimulated)


def test_signal_to_a_group_reaches_what_its_leader_started() -> None:
    """A child of a script is in the group of the script's process, and one with a group of its own is not."""

    async def sleeps(child: sim.ChildProcess) -> None:
        await trio.sleep(60)

    ended: list[int] = []

    async def leads(child: sim.ChildProcess) -> None:
        member = await trio.lowlevel.open_process(["sleeps"])
        apart = await trio.lowlevel.open_process(["sleeps"], process_group=0)
        await child.stdout.send_all(b"up")
        with child.open_signal_receiver(signal.SIGTERM) as signals:
            assert await anext(signals) == signal.SIGTERM
            ended.append(await member.wait())
        apart.kill()
        ended.append(await apart.wait())

    async def program() -> list[int]:
        ended.clear()
        with sim.Process("sleeps", sleeps), sim.Process("leads", leads):
            leader = await trio.lowlevel.open_process(["leads"], stdout=subprocess.PIPE, start_new_session=True)
            assert leader.stdout is not None
            await leader.stdout.receive_some()
            await trio.testing.wait_all_tasks_blocked()
            os.killpg(os.getpgid(leader.pid), signal.SIGTERM)
            await leader.wait()
        return [*ended]

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 5), lambda each: each.value == [-15, -9])
    assert report.verdict is sim.PASS, report.failures[0].explain()

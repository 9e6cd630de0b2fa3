"""Child processes: scripted ones are explored, and what real ones do on plain Trio is among it."""

from __future__ import annotations

import gc
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
import trio
import trio.testing

from toolrt import sim
from toolrt.errors import Deadlock, DefinitionRefused, NotSimulated

_ORDERS = ("any", "trio")

# What each command is on plain Trio: Python, and a program for it.
_REAL = {
    "upper": "import sys; sys.stdout.write(sys.stdin.read().upper())",
    "two lines": "import sys; print('one', flush=True); print('two', flush=True); sys.exit(3)",
    "sleeps": "import signal; signal.alarm(60); signal.pause()",
    "deaf": "import signal; signal.signal(15, 1); print('ready', flush=True); signal.alarm(60); signal.pause()",
    "no reader": "import os, sys; sys.stdin.close(); os._exit(4)",
}


async def _upper(child: sim.ChildProcess) -> None:
    data = b"".join([chunk async for chunk in child.stdin])
    await child.stdout.send_all(data.upper())


async def _two_lines(child: sim.ChildProcess) -> int:
    await child.stdout.send_all(b"one\n")
    await child.stdout.send_all(b"two\n")
    return 3


async def _sleeps(child: sim.ChildProcess) -> None:
    await trio.sleep(60)


async def _deaf(child: sim.ChildProcess) -> None:
    with child.open_signal_receiver(signal.SIGTERM):
        await child.stdout.send_all(b"ready\n")
        await trio.sleep(60)


async def _no_reader(child: sim.ChildProcess) -> int:
    await child.stdin.aclose()
    return 4


_SCRIPTS = {"upper": _upper, "two lines": _two_lines, "sleeps": _sleeps, "deaf": _deaf, "no reader": _no_reader}


def _command(name: str, is_real: bool) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", _REAL[name]] if is_real else [name]


async def _answers(is_real: bool) -> tuple[Any, ...]:
    done = await trio.run_process(_command("upper", is_real), stdin=b"hello", capture_stdout=True)
    return done.returncode, done.stdout


async def _read_before_the_end(is_real: bool) -> tuple[Any, ...]:
    process = await trio.lowlevel.open_process(_command("two lines", is_real), stdout=subprocess.PIPE)
    assert process.stdout is not None
    chunks = [chunk async for chunk in process.stdout]
    return tuple(chunks), process.poll() is None, await process.wait()


async def _end_before_the_output(is_real: bool) -> tuple[Any, ...]:
    process = await trio.lowlevel.open_process(_command("two lines", is_real), stdout=subprocess.PIPE)
    assert process.stdout is not None
    code = await process.wait()
    return code, await process.stdout.receive_some(), await process.stdout.receive_some()


async def _killed(is_real: bool) -> tuple[Any, ...]:
    process = await trio.lowlevel.open_process(_command("sleeps", is_real))
    process.kill()
    return await process.wait(), process.returncode


async def _terminated(is_real: bool) -> tuple[Any, ...]:
    process = await trio.lowlevel.open_process(_command("deaf", is_real), stdout=subprocess.PIPE)
    assert process.stdout is not None
    first = await process.stdout.receive_some()
    process.terminate()
    with trio.move_on_after(0.01) as scope:
        await process.wait()
    process.kill()
    return first, scope.cancelled_caught, await process.wait()


async def _cancelled(is_real: bool) -> tuple[Any, ...]:
    with trio.move_on_after(0.02) as scope:
        await trio.run_process(_command("sleeps", is_real))
    return (scope.cancelled_caught,)


async def _nobody_reads(is_real: bool) -> tuple[Any, ...]:
    process = await trio.lowlevel.open_process(_command("no reader", is_real), stdin=subprocess.PIPE)
    assert process.stdin is not None
    try:
        await process.stdin.send_all(bytes(1_000_000))
    except trio.BrokenResourceError:
        return "broken", await process.wait()
    return "sent", await process.wait()


_PROGRAMS = (
    _answers,
    _read_before_the_end,
    _end_before_the_output,
    _killed,
    _terminated,
    _cancelled,
    _nobody_reads,
)


def _scripted(program: Callable[[bool], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    async def scripted() -> Any:
        with (
            sim.Process("upper", _upper),
            sim.Process("two lines", _two_lines),
            sim.Process("sleeps", _sleeps),
            sim.Process("deaf", _deaf),
            sim.Process("no reader", _no_reader),
        ):
            return await program(False)

    return scripted


def _outcomes(program: Callable[[], Awaitable[Any]], order: str = "any", limit: int = 3_000) -> set[Any]:
    return set(sim.explore(program, sim.DPOR(), lambda execution: True, order=order, max_executions=limit).outcomes)


@pytest.mark.parametrize("program", _PROGRAMS)
def test_what_real_processes_do_is_explored(program) -> None:
    """Plain Trio with real processes comes to nothing that the scripted ones do not come to in Trio's orders."""
    seen = {trio.run(program, True) for _ in range(3 if program is not _killed else 1)}
    explored = _outcomes(_scripted(program), "trio", 40)
    assert seen <= explored, (seen, explored)


def test_output_and_end_come_in_all_orders() -> None:
    """Lines come together or one by one, and the end is seen with the output or after it."""
    explored = _outcomes(_scripted(_read_before_the_end))
    assert explored == {
        (chunks, is_late, 3) for chunks in ((b"one\n", b"two\n"), (b"one\ntwo\n",)) for is_late in (True, False)
    }


def test_cancelled_run_is_terminated_then_killed() -> None:
    """Trio's five seconds between the two pass on the virtual clock."""

    async def program() -> tuple[bool, float]:
        with sim.Process("deaf", _deaf), trio.move_on_after(3) as scope, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await trio.run_process(["deaf"], stdout=subprocess.DEVNULL)
        return scope.cancelled_caught, trio.current_time()

    assert _outcomes(program, "trio") == {(True, 8.0)}


def test_plain_output_comes_in_parts() -> None:
    """Without a script, bytes come whole or divided, to two streams, with an exit code."""

    async def program() -> tuple[Any, ...]:
        with sim.Process("git", stdout=b"abc", stderr=(b"d", b"e"), returncode=2):
            process = await trio.lowlevel.open_process(
                ["/usr/bin/git", "log"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            assert process.stdout is not None
            chunks = [chunk async for chunk in process.stdout]
            return chunks[0], b"".join(chunks), await process.wait()

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 150), lambda execution: True, order="trio")
    explored = set(report.outcomes)
    assert {first for first, _, _ in explored} == {b"a", b"ab", b"abc", b"abcd", b"abcde"}
    assert {rest for _, *rest in map(list, explored) for rest in [tuple(rest)]} == {(b"abcde", 2)}


def test_child_knows_its_command() -> None:
    """It has the words of its command, environment and directory; `anyio` leads there too."""
    seen: list[Any] = []

    async def script(child: sim.ChildProcess) -> int:
        seen.append((child.args, child.env, child.cwd))
        raise SystemExit(7)

    async def program() -> int:
        with sim.Process("tool", script):
            done = await anyio.run_process("bin/tool 'a b'", check=False, env={"A": "1"}, cwd="/", stdout=None)
            return done.returncode

    assert sim.run(program).value == 7
    assert seen == [(("bin/tool", "a b"), {"A": "1"}, "/")]


def test_full_pipe_is_a_deadlock() -> None:
    """Who waits for the end without reading waits for ever, as with a real pipe of 65,536 bytes."""

    async def program(size: int) -> int:
        with sim.Process("talks", stdout=(bytes(size),)):
            process = await trio.lowlevel.open_process(["talks"], stdout=subprocess.PIPE)
            return await process.wait()

    assert sim.run(lambda: program(65_536)).value == 0
    assert isinstance(sim.run(lambda: program(65_537)).error, Deadlock)


def test_write_that_is_read_no_more_ends_it() -> None:
    """A script that goes on writing ends as by SIGPIPE."""

    async def script(child: sim.ChildProcess) -> None:
        while True:
            await child.stdout.send_all(b"yes\n")

    async def program() -> int:
        with sim.Process("yes", script):
            process = await trio.lowlevel.open_process(["yes"], stdout=subprocess.PIPE)
            assert process.stdout is not None
            await process.stdout.receive_some(4)
            await process.stdout.aclose()
            return await process.wait()

    assert sim.run(program).value == -signal.SIGPIPE


def test_error_of_a_script_is_the_error_of_the_execution() -> None:
    """A script is a part of the test: what it raises fails it."""

    async def script(child: sim.ChildProcess) -> None:
        raise LookupError(child.args)

    async def program() -> None:
        with sim.Process("bad", script):
            await trio.run_process(["bad"])

    report = sim.explore(program, sim.DPOR(), max_executions=20)
    assert report.verdict is sim.FAIL
    assert isinstance(report.failures[0].execution.error, LookupError)
    assert sim.run(_scripted(_answers)).value == (0, b"HELLO")


def test_child_ends_with_its_execution() -> None:
    """A program need not wait for its children; the next execution has none of them."""

    async def program() -> None:
        with sim.Process("sleeps", _sleeps):
            await trio.lowlevel.open_process(["sleeps"])

    report = sim.explore(program, sim.DPOR())
    assert report.verdict is sim.PASS, report
    assert "processes" not in report.claim


@pytest.mark.parametrize("start", [trio.run_process, trio.lowlevel.open_process])
def test_undeclared_command_is_refused(start) -> None:
    """The refusal says what to declare."""
    with pytest.raises(NotSimulated, match=r'with sim\.Process\("git", script\)'):
        raise sim.run(lambda: start(["/usr/bin/git"])).error or AssertionError


@pytest.mark.parametrize(
    "arguments",
    [{"name": ""}, {"name": "a", "stdout": "text"}, {"name": "a", "script": _upper, "returncode": 1}],
)
def test_wrong_declarations_are_refused(arguments) -> None:
    """A name, and either a script or plain values."""
    with pytest.raises(DefinitionRefused):
        sim.Process(**arguments)


def test_declaration_does_nothing_on_plain_trio() -> None:
    """Outside a simulation the command is the real one."""

    async def program() -> bytes:
        with sim.Process(sys.executable, stdout=b"scripted"):
            done = await trio.run_process([sys.executable, "-S", "-E", "-c", "print('real')"], capture_stdout=True)
        return done.stdout.strip()

    assert trio.run(program) == b"real"
    assert sim.run(program).value == b"scripted"


async def _real_echo() -> tuple[Any, ...]:
    sim.leave_real("processes")
    seen: list[str] = []

    async def beside() -> None:
        await trio.lowlevel.checkpoint()
        seen.append("beside")

    async def echo() -> None:
        done = await trio.run_process(["cat"], stdin=b"hello", capture_stdout=True)
        seen.append(done.stdout.decode())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beside)
        nursery.start_soon(echo)
    return tuple(seen), trio.current_time()


def test_end_of_a_real_process_is_seen_in_any_order() -> None:
    """It runs in no virtual time; other tasks go on before its end is seen, or after; the claim says it was real."""
    report = sim.explore(_real_echo, sim.Random(sim.RandomWalk(0), 15), lambda execution: True)
    assert set(report.outcomes) == {(("beside", "hello"), 0.0)} or set(report.outcomes) == {
        (("beside", "hello"), 0.0),
        (("hello", "beside"), 0.0),
    }
    assert report.claim.endswith("with real processes")


def test_real_command_that_is_not_there_raises() -> None:
    """As on plain Trio; and a blocking one is the program's own affair."""

    async def program() -> int:
        sim.leave_real("processes")
        with pytest.raises(FileNotFoundError):
            await trio.run_process(["./there is none"])
        blocks = subprocess.run
        return blocks(["cat"], stdin=subprocess.DEVNULL, check=True).returncode

    assert sim.run(program).value == 0


def test_real_exit_codes_are_kept() -> None:
    """A number of its own, or the signal that ended it."""

    async def program() -> tuple[int, int]:
        sim.leave_real("processes")
        codes = [(await trio.run_process(text, shell=True, check=False)).returncode for text in ("exit 3", "kill $$")]
        return codes[0], codes[1]

    assert sim.run(program).value == (3, -15)


def test_claim_says_what_threads_are() -> None:
    """A claim with threads says how far it goes."""

    async def program() -> None:
        await trio.to_thread.run_sync(int)

    assert sim.explore(program, sim.DPOR()).claim.endswith(" with threads atomic between hand-overs")


async def _two_writes(child: sim.ChildProcess) -> None:
    await child.stdout.send_all(b"a")
    await child.stdout.send_all(b"b")


async def _signalled() -> tuple[bytes, int]:
    with sim.Process("two", _two_writes):
        process = await trio.lowlevel.open_process(["two"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.terminate()
        return b"".join([chunk async for chunk in process.stdout]), await process.wait()


async def _script_with_tasks() -> int:
    async def script(child: sim.ChildProcess) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child.stdout.send_all, b"a")

    with sim.Process("tasks", script):
        process = await trio.lowlevel.open_process(["tasks"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        chunks = [chunk async for chunk in process.stdout]
        return len(chunks) if process.poll() is None else -1


@pytest.mark.seldom
@pytest.mark.parametrize("order", _ORDERS)
@pytest.mark.parametrize("program", [_signalled, _script_with_tasks])
def test_reduction_leaves_no_outcome_out(program, order: str) -> None:
    """DPOR finds every outcome that all schedules together have."""
    everything = sim.explore(program, sim.Exhaustive(), lambda execution: True, order=order, max_executions=3_000)
    assert everything.complete, everything
    assert _outcomes(program, order) == set(everything.outcomes)


def test_signal_comes_at_any_moment() -> None:
    """Before the script has begun, between two writes, behind the last one, and too late."""
    assert _outcomes(_signalled) == {(b"", -15), (b"a", -15), (b"ab", -15), (b"ab", 0)}


def test_schedule_names_processes() -> None:
    """A process has a name of its own, its script's tasks as well, and a schedule is replayed in both forms."""
    execution = sim.run(_script_with_tasks, sim.RandomWalk(0))
    text = str(execution.schedule)
    assert "process.0" in text
    assert "process.0.1" in text
    assert sim.replay(_script_with_tasks, execution.schedule).value == execution.value
    assert sim.replay(_script_with_tasks, sim.Schedule.from_json(execution.schedule.to_json())).value == execution.value


def test_real_process_ends_with_its_execution() -> None:
    """One that the program leaves behind is killed, and one that takes too long decides nothing."""

    async def leaves(*command: str) -> None:
        sim.leave_real("processes")
        sim.thread_seconds(0.05)
        await trio.lowlevel.open_process(command, stdin=subprocess.PIPE)

    async def waits() -> None:
        sim.leave_real("processes")
        sim.thread_seconds(0.05)
        await trio.run_process(["sleep", "20"])

    assert sim.run(lambda: leaves("sleep", "20")).error is None
    with pytest.raises(NotSimulated, match=r"more than 0\.05 seconds"):
        raise sim.run(waits).error or AssertionError


def test_real_process_gets_its_signal_where_files_are_real_too() -> None:
    """Its pipes and its end are the operating system's."""

    async def program() -> int:
        sim.leave_real("processes", "files")
        process = await trio.lowlevel.open_process(["sleep", "100"])
        process.kill()
        return await process.wait()

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 2))
    assert report.outcomes == {-9: 2}
    assert "real files, real processes" in report.claim


def test_a_signal_is_seen_before_time_passes_for_want_of_an_answer() -> None:
    """A real process that was silent has ended of it, and whatever waits for its end sees that at once."""

    async def program() -> tuple[int, float]:
        sim.leave_real("processes", "files")
        sim.thread_seconds(2)
        process = await trio.lowlevel.open_process(["sleep", "100"])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process.wait)
            await trio.testing.wait_all_tasks_blocked()
            process.kill()
            nursery.cancel_scope.deadline = trio.current_time() + 1
        return await process.wait(), trio.current_time()

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 2))
    assert report.outcomes == {(-9, 0.0): 2}, report


def test_pipes_of_a_real_process_that_has_ended_by_itself_are_closed() -> None:
    """It ends before its script is at work, in an execution that is given up."""

    async def program() -> None:
        sim.leave_real("processes")
        await trio.lowlevel.open_process(["true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # In real time.
        select.select([], [], [], 0.05)
        raise ValueError("over")

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            assert isinstance(sim.run(program).error, ValueError)
            gc.collect()
    assert not [warning for warning in told if "unclosed file" in str(warning.message)]

"""What cannot be controlled is refused at the step that asks for it, with what to do instead."""

from __future__ import annotations

import _socket
import asyncio
import multiprocessing
import multiprocessing.forkserver
import os
import queue
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import NotSimulated

_ONE_THREAD = "use trio.to_thread.run_sync, which is simulated, or call the function directly"
_SOCKETS_REAL = 'say sim.leave_real("sockets")'
_SAY_WHICH = "with sim.Network(hosts=[...])"
_NOTHING_OUTSIDE = "give it a memory stream or a stand-in"
_DECLARE_IT = 'say sim.leave_real("processes")'
_ITS_OWN_RUN = "await the function itself; a simulation already is its Trio run"


async def _pool() -> None:
    with ThreadPoolExecutor() as pool:
        pool.submit(int)


async def _process() -> None:
    await trio.run_process([sys.executable, "-V"], stdin=subprocess.DEVNULL)


async def _nested_run() -> None:
    trio.run(checkpoint)


async def _guest_run() -> None:
    trio.lowlevel.start_guest_run(checkpoint, run_sync_soon_threadsafe=_now, done_callback=_now)


async def _exit() -> None:
    os._exit(0)


def _now(function: Callable[..., object]) -> None:
    raise AssertionError("nothing was started")


@pytest.mark.parametrize(
    ("program", "action", "remedy"),
    [
        (_pool, "start a thread", _ONE_THREAD),
        (_process, "start a subprocess", _DECLARE_IT),
        (_nested_run, "start a Trio run of its own", _ITS_OWN_RUN),
        (_guest_run, "start a Trio run of its own", _ITS_OWN_RUN),
        (_exit, "end the process (os._exit)", "raise SystemExit, which ends the program alone"),
    ],
)
def test_refusal_says_what_to_do_instead(program: Callable[[], Awaitable[None]], action: str, remedy: str) -> None:
    """It names what the program did, and the way out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = sim.run(program).error
    assert isinstance(error, NotSimulated)
    assert error.action == action
    assert error.remedy.endswith(remedy)
    assert str(error) == f"a simulated program cannot {action}: {error.remedy}"


def _fork() -> None:
    if not os.fork():
        os._exit(0)


def _event_loop() -> None:
    asyncio.new_event_loop().close()


def _coroutine() -> None:
    # Its loop is refused before it has a coroutine in hand.
    asyncio.Runner().__enter__()


def _blocking_read() -> None:
    first, second = socket.socketpair()
    with first, second:
        first.recv(1)


_TRUE = shutil.which("true") or ""


def _system() -> int:
    return os.system(_TRUE)


@pytest.mark.parametrize(
    ("call", "action", "remedy"),
    [
        (lambda: _socket.socketpair(), "use a socket", _NOTHING_OUTSIDE),
        (lambda: socket.create_connection(("python.org", 80)), "look up a host (python.org)", _SAY_WHICH),
        (lambda: socket.create_connection(("192.0.2.1", 80)), "reach 192.0.2.1", _SAY_WHICH),
        (lambda: socket.gethostbyname("python.org"), "look up a host (python.org)", _SAY_WHICH),
        (_blocking_read, "block on a socket", "no other task could run meanwhile"),
        (lambda: subprocess.run([_TRUE], check=False), "start a subprocess", _DECLARE_IT),
        (_system, "start a subprocess", _DECLARE_IT),
        (lambda: os.popen(_TRUE), "start a subprocess", _DECLARE_IT),
        (lambda: os.posix_spawn(_TRUE, [_TRUE], {}), "start a subprocess", _DECLARE_IT),
        (lambda: os.spawnv(os.P_WAIT, _TRUE, [_TRUE]), "start a subprocess", _DECLARE_IT),
        (_fork, "start a subprocess", _DECLARE_IT),
        (lambda: multiprocessing.Process(target=int).start(), "start a subprocess", _DECLARE_IT),
        (lambda: multiprocessing.forkserver.ensure_running(), "start a subprocess (multiprocessing)", _DECLARE_IT),
        (lambda: multiprocessing.Pipe(), "use a connection of multiprocessing", _SOCKETS_REAL),
        (_event_loop, "start an event loop of its own", _NOTHING_OUTSIDE),
        (_coroutine, "start an event loop of its own", _NOTHING_OUTSIDE),
    ],
    ids=[
        "socketpair",
        "create_connection",
        "connect",
        "gethostbyname",
        "recv",
        "subprocess",
        "system",
        "popen",
        "posix_spawn",
        "spawn",
        "fork",
        "multiprocessing",
        "fork server",
        "pipe of multiprocessing",
        "event loop",
        "asyncio",
    ],
)
def test_standard_library_is_refused_like_trio(call: Callable[[], object], action: str, remedy: str) -> None:
    """A program that leaves the simulation without Trio's help is stopped at that step, and nothing is left."""

    async def program() -> None:
        await checkpoint()
        call()

    opened = _open_files()
    execution = sim.run(program)
    assert isinstance(execution.error, NotSimulated)
    assert execution.error.action.startswith(action)
    assert execution.error.remedy.endswith(remedy)
    assert len(execution.schedule) == 2
    assert _open_files() == opened


def _open_files() -> list[str]:
    return sorted(os.listdir("/dev/fd"))


def test_code_around_a_simulation_may_leave_it() -> None:
    """A check, a policy and what they call are no step of the program."""
    answers: list[object] = []

    def check(execution: sim.Execution) -> bool:
        with socket.socket():
            pass
        answers.append(subprocess.run([_TRUE], check=True).returncode)
        return True

    class Asks(sim.Fifo):
        def choose(self, enabled: tuple[str, ...], step: int) -> int:
            with socket.socket():
                return super().choose(enabled, step)

    report = sim.explore(checkpoint, sim.Random(Asks(), 2), check)
    assert (report.verdict, answers) == (sim.PASS, [0, 0])


def test_simulation_within_a_check_refuses_too() -> None:
    """Each has its own refusals, one inside the other."""

    async def program() -> None:
        _system()

    def check(execution: sim.Execution) -> bool:
        return isinstance(execution.error, NotSimulated) and isinstance(sim.run(program).error, NotSimulated)

    report = sim.explore(program, sim.Random(sim.Fifo(), 2), check)
    assert report.failed == 0
    # What was refused was not simulated, whatever a check says of it.
    assert report.verdict is sim.INCONCLUSIVE


def test_stand_in_for_a_name_of_the_library_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what the refusal asks for, also where only a step puts it there."""

    async def program() -> list[int]:
        answers = [_system()]
        with pytest.MonkeyPatch.context() as within:
            within.setattr(os, "fork", lambda: 5)
            answers.append(os.fork())
        return answers

    async def without() -> None:
        await program()
        os.fork()

    monkeypatch.setattr(os, "system", lambda command: 7)
    assert sim.run(program).value == [7, 5]
    assert isinstance(sim.run(without).error, NotSimulated)
    assert _system() == 7


def meanwhile(work: Callable[[], object]) -> bool:
    """Do `work` in another thread while a step of a simulation is under way here; whether it came to its end."""
    begun, done = threading.Event(), threading.Event()

    def other() -> None:
        begun.wait(10)
        work()
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    async def program() -> bool:
        begun.set()
        return done.wait(10)

    ended: bool = sim.run(program).value
    thread.join()
    return ended


def test_other_threads_may_leave_the_simulation() -> None:
    """Sockets and processes of other threads have nothing to do with it."""

    def leave() -> None:
        with socket.socket():
            subprocess.run([_TRUE], check=True)

    assert meanwhile(leave)


def test_what_stays_in_the_process_is_not_refused(tmp_path: Path) -> None:
    """Files, a database of SQLite, and an address that is a number."""

    async def program() -> object:
        with sqlite3.connect(tmp_path / "a.db") as database:
            database.execute("create table t (n)")
        database.close()
        (tmp_path / "a.txt").write_text("a")
        numeric = socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return numeric[0][4]

    assert sim.run(program).value == ("127.0.0.1", 80)


def test_host_of_a_guest_run_is_refused() -> None:
    """Between two ticks of a guest run no task runs, and a simulation would take its place all the same."""
    calls: queue.Queue[Callable[[], object]] = queue.Queue()
    ended: list[object] = []

    async def guest() -> int:
        for _ in range(3):
            await checkpoint()
        return 7

    trio.lowlevel.start_guest_run(guest, run_sync_soon_threadsafe=calls.put, done_callback=ended.append)
    calls.get(timeout=10)()
    with pytest.raises(NotSimulated, match=r"in guest mode: call toolrt\.sim before that run begins or after it"):
        sim.run(checkpoint)
    while not ended:
        calls.get(timeout=10)()
    assert ended[0].unwrap() == 7  # type: ignore[attr-defined]
    assert sim.run(checkpoint).error is None


def test_task_of_a_guest_run_is_refused_like_any_other() -> None:
    """Inside a task the advice is that of every running loop."""
    calls: queue.Queue[Callable[[], object]] = queue.Queue()
    ended: list[object] = []

    async def guest() -> None:
        sim.run(checkpoint)

    trio.lowlevel.start_guest_run(guest, run_sync_soon_threadsafe=calls.put, done_callback=ended.append)
    while not ended:
        calls.get(timeout=10)()
    with pytest.raises(NotSimulated, match="sync test"):
        ended[0].unwrap()  # type: ignore[attr-defined]


def test_runs_of_other_threads_are_not_refused() -> None:
    """Another thread starts its own Trio run while a simulation is under way here."""
    answers: list[int] = []

    async def answer() -> int:
        return 42

    assert meanwhile(lambda: answers.append(trio.run(answer)))
    assert answers == [42]

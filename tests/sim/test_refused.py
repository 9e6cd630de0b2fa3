"""What cannot be controlled is refused at the step that asks for it, with what to do instead."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import NotSimulated

_ONE_THREAD = "call the function directly, or give the program a stand-in for it"
_NOTHING_OUTSIDE = "give it a memory stream or a stand-in"
_ITS_OWN_RUN = "await the function itself; a simulation already is its Trio run"


async def _pool() -> None:
    with ThreadPoolExecutor() as pool:
        pool.submit(int)


async def _socket_pair() -> None:
    trio.socket.socketpair()


async def _listeners() -> None:
    await trio.open_tcp_listeners(0, host="127.0.0.1")


async def _name_lookup() -> None:
    await trio.socket.getaddrinfo("localhost", 80)


async def _path() -> None:
    await trio.Path(os.devnull).exists()


async def _process() -> None:
    await trio.run_process([sys.executable, "-V"], stdin=subprocess.DEVNULL)


async def _nested_run() -> None:
    trio.run(checkpoint)


async def _guest_run() -> None:
    trio.lowlevel.start_guest_run(checkpoint, run_sync_soon_threadsafe=_now, done_callback=_now)


def _now(function: Callable[..., object]) -> None:
    raise AssertionError("nothing was started")


@pytest.mark.parametrize(
    ("program", "action", "remedy"),
    [
        (_pool, "start a thread", _ONE_THREAD),
        (_path, "use a worker thread", _ONE_THREAD),
        (_name_lookup, "use a worker thread", _ONE_THREAD),
        (_socket_pair, "use a socket", _NOTHING_OUTSIDE),
        (_listeners, "use a socket", _NOTHING_OUTSIDE),
        (_process, "start a subprocess", _NOTHING_OUTSIDE),
        (_nested_run, "start a Trio run of its own", _ITS_OWN_RUN),
        (_guest_run, "start a Trio run of its own", _ITS_OWN_RUN),
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


def test_refusal_is_the_programs_to_catch() -> None:
    """It is raised in the task that asked, so one execution ends by it and the program may deal with it."""

    async def program() -> str:
        try:
            await trio.to_thread.run_sync(int)
        except NotSimulated:
            return "without a thread"
        return "with a thread"

    assert sim.explore(program, sim.Random(sim.Fifo(), 3)).outcomes == {"without a thread": 3}


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
    begun, done = threading.Event(), threading.Event()

    async def answer() -> int:
        return 42

    def other() -> None:
        begun.wait(10)
        answers.append(trio.run(answer))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    async def program() -> bool:
        begun.set()
        return done.wait(10)

    assert sim.run(program).value is True
    assert answers == [42]
    thread.join()

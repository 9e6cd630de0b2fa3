"""The simulator in a Python without I/O, threads and processes: the same answers, and refusals in words."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable

import pytest

from tests import _profile
from tests.playground import _verified
from toolrt import _without_io
from toolrt.teaching.litmus import LITMUS

InBrowser = Callable[[str], str]

#: They start threads.
_THREADS = {"check_then_thread", "check_in_thread"}

#: They have sockets, of the network in memory.
_SOCKETS = ["one_read", "read_until_whole"]

#: So many schedules and classes at most has a program of the reduced run.
_FEW = 130


def _chosen() -> list[str]:
    every = [name for name in LITMUS if name not in _THREADS]
    if _profile.FULL:
        return every
    counted = ((name, LITMUS[name]) for name in every)
    small = [name for name, one in counted if one.interleavings is not None and one.interleavings.number <= _FEW]
    return [*small[:: max(1, len(small) // 40)][:40], *_SOCKETS]


@pytest.mark.seldom
def test_litmus_programs_give_what_they_give_on_cpython(in_browser: InBrowser) -> None:
    """Verdicts, outcomes with their counts, executions, classes and claims."""
    chosen = _chosen()
    assert len(chosen) >= 40
    script = inspect.getsource(_verified)
    told = in_browser(f"{script}\nimport json\nprint(json.dumps(verified({chosen})))")
    here = _verified.verified(chosen)
    assert json.loads(told) == here
    assert not any(problems for *_, problems, _ in here.values())


_REFUSALS = """
import json, socket, subprocess, sys, threading
import toolrt
import trio
from toolrt import sim

said = {"platform": sys.platform}

async def thread():
    await trio.to_thread.run_sync(print)

async def own_thread():
    threading.Thread(target=print).start()

for name, program in (("thread", thread), ("own thread", own_thread)):
    said[name] = str(sim.run(program).error)

async def real():
    sim.leave_real("sockets")
    with trio.socket.socket() as one:
        await trio.lowlevel.wait_readable(one)

async def waits():
    await trio.lowlevel.wait_readable(socket.socket())

for name, run in (("socket", waits), ("for ever", trio.sleep_forever), ("process", lambda: trio.run_process(["true"]))):
    try:
        trio.run(run)
    except BaseException as error:
        while error.__cause__ is not None:
            error = error.__cause__
        said[name] = f"{type(error).__name__}: {error}"

async def sleeps():
    before = trio.current_time()
    await trio.sleep(0.01)
    return trio.current_time() - before >= 0.01

said["sleep"] = trio.run(sleeps)

@toolrt.tool(safe=True, schema=None)
async def look(ctx, key):
    return ctx.state[key]

async def shouts():
    async def shout(stream):
        await stream.send_all((await stream.receive_some()).upper())

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(trio.serve_tcp, shout, 9000)
        async with await trio.open_tcp_stream("localhost", 9000) as stream:
            await stream.send_all(b"hello")
            answer = await stream.receive_some()
        nursery.cancel_scope.cancel()
    return answer.decode()

said["network"] = sim.run(shouts).value
done = toolrt.run_sync(
    toolrt.Runtime(toolrt.Registry([look])), [toolrt.ToolCall("1", "look", {"key": "a"})], toolrt.State({"a": "found"})
)
said["run_sync"] = done.results[0].content
print(json.dumps(said))
"""


@pytest.mark.seldom
def test_io_threads_and_processes_are_refused_in_words(in_browser: InBrowser) -> None:
    """A program that needs them is told what is missing; sleeps and batches of sync callers work."""
    said = json.loads(in_browser(_REFUSALS))
    words = "a simulated program cannot start a thread in a browser: Python has none there; start it in a task"
    assert said["thread"] == words
    # As on any platform, until the program asks for threads of its own.
    assert said["own thread"].startswith("a simulated program cannot start a thread: use trio.to_thread.run_sync")
    assert said["socket"].startswith("OSError: [Errno 138] Python in a browser has no I/O: nothing can be waited for")
    assert said["for ever"].startswith("RuntimeError: this Trio program would wait for ever: Python in a browser has")
    assert said["process"].startswith("RuntimeError: Python in a browser has no threads, and so no child processes")
    assert (said["platform"], said["sleep"], said["run_sync"]) == ("emscripten", True, "found")
    assert said["network"] == "HELLO"


def test_trio_is_left_alone_where_there_is_io() -> None:
    """On this platform no stand-in is in place."""
    import select

    assert sys.platform != "emscripten"
    assert _without_io.has_threads()
    assert getattr(select, "epoll", None) is not _without_io.Epoll


def test_pair_wakes_a_wait_once() -> None:
    """A descriptor that was registered for one event is told once, until it is registered again."""
    table, (one, other) = _without_io.Epoll(), _without_io.socketpair()
    read, once = 1, 1 << 30
    table.register(one, read | once)
    assert table.poll(0, 8) == []
    other.send(b"x")
    assert table.poll(0, 8) == [(one.fileno(), read)]
    assert table.poll(0, 8) == []
    table.modify(one, read)
    assert table.poll(0, 8) == table.poll(0, 8) == [(one.fileno(), read)]
    assert one.recv(8) == b"x"
    with pytest.raises(BlockingIOError):
        one.recv(8)
    with pytest.raises(FileExistsError):
        table.register(one, read)
    table.unregister(one)
    with pytest.raises(FileNotFoundError):
        table.modify(one, read)
    one.close()
    with pytest.raises(OSError, match="no I/O"):
        table.register(one, read)

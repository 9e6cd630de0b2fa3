"""Several toolrt processes on the same files: one change at a time, none lost, and no wait without an end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from toolrt import Outcome, Registry, Runtime, ToolCall, Workspace
from toolrt.workspace import RealDisk

pytestmark = pytest.mark.process

Start = Callable[..., "subprocess.Popen[str]"]

#: Counts to a number in a file, with a worker thread that takes its time between reading and writing.
_COUNTER = """
import sys
if sys.argv[4] == "flock":
    import fcntl
    del fcntl.F_OFD_SETLK
import trio
from toolrt.workspace import RealDisk

root, name, rounds, _ = sys.argv[1:]
disk = RealDisk(root)

def one_more(before):
    sum(range(20_000))
    return str(int(before.content) + 1).encode()

async def main():
    refused = 0
    for _ in range(int(rounds)):
        try:
            await disk.revise(tuple(name.split("/")), 100, one_more)
        except OSError:
            refused += 1
    print(refused)

print("ready", flush=True)
sys.stdin.readline()
trio.run(main)
"""

#: Adds lines to one file by way of the workspace's files, reading it again where another process has changed it.
_APPENDER = """
import sys
import toolrt, trio
from toolrt import WRITE, Registry, Runtime, ToolCall, Workspace

root, mine, rounds = sys.argv[1:]
workspace = Workspace(root)

@toolrt.tool(claims=lambda input, state: workspace.claims("log", state, WRITE), owner=workspace)
async def add(ctx, line: str) -> None:
    log = workspace.identify("log", ctx.state)
    await workspace.files.read(ctx, log)
    await workspace.files.revise(ctx, log, lambda was: was + line.encode())

runtime = Runtime(Registry([add]))

async def main():
    for number in range(int(rounds)):
        ok = False
        while not ok:
            ok = (await runtime.run([ToolCall("0", "add", {"line": f"{mine} {number}\\n"})])).results[0].ok

print("ready", flush=True)
sys.stdin.readline()
trio.run(main)
"""

#: Is in the middle of a change of a.txt until its input ends; another descriptor of the lock file was closed meanwhile.
_HOLDER = """
import glob, os, sys
import trio
from toolrt.workspace import RealDisk

def change(before):
    for lock in glob.glob(os.environ["TOOLRT_STATE_DIR"] + "/**/*lock*", recursive=True):
        open(lock).close()
    print("ready", flush=True)
    sys.stdin.read()
    return b"theirs"

trio.run(RealDisk(sys.argv[1]).revise, ("a.txt",), 100, change)
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a program with arguments; it is there, and goes on when it is told to."""
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    children: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def told(children: list[subprocess.Popen[str]]) -> list[str]:
    """Let all of them go on at one time, and give what each has printed in the end."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    ends = [child.communicate(timeout=60)[0] for child in children]
    assert [child.returncode for child in children] == [0] * len(children)
    return ends


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty workspace."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.seldom
@pytest.mark.parametrize("locks", ["ofd", "flock"])
def test_no_change_of_two_processes_is_lost(start: Start, root: Path, locks: str) -> None:
    """Each of many read-and-write steps counts and none is refused, with no extra and nothing asked for."""
    (root / "counter").write_text("0")
    ends = told([start(_COUNTER, root, "counter", 60, locks) for _ in range(2)])
    assert (root / "counter").read_text() == "120"
    assert ends == ["0\n", "0\n"]


@pytest.mark.seldom
def test_processes_with_roots_one_in_the_other_take_turns(start: Start, root: Path) -> None:
    """A file is the same one below both roots."""
    (root / "package").mkdir()
    (root / "package/counter").write_text("0")
    ends = told(
        [start(_COUNTER, root, "package/counter", 60, "ofd"), start(_COUNTER, root / "package", "counter", 60, "ofd")]
    )
    assert (root / "package/counter").read_text() == "120"
    assert ends == ["0\n", "0\n"]


@pytest.mark.seldom
def test_names_of_one_file_take_turns(start: Start, root: Path) -> None:
    """Each process changes the file by another of its names."""
    (root / "a").write_text("0")
    os.link(root / "a", root / "b")
    ends = told([start(_COUNTER, root, name, 40, "ofd") for name in "ab"])
    assert (root / "a").read_text() == "80"
    assert ends == ["0\n", "0\n"]


@pytest.mark.seldom
def test_two_processes_append_to_one_file(start: Start, root: Path) -> None:
    """Changes by way of the workspace: every line of both is there once, each process's in its own order."""
    (root / "log").write_text("")
    told([start(_APPENDER, root, mine, 20) for mine in ("left", "right")])
    lines = (root / "log").read_text().splitlines()
    assert len(lines) == 40
    for mine in ("left", "right"):
        assert [line for line in lines if line.startswith(mine)] == [f"{mine} {number}" for number in range(20)]


@pytest.mark.parametrize("ends", ["released", "killed", "cancelled", "timed out"])
async def test_a_change_waits_for_another_process(start: Start, root: Path, ends: str) -> None:
    """Reads and other files do not wait; the wait ends with the other's change, its life, a cancel or a deadline."""
    (root / "a.txt").write_text("a")
    holder = start(_HOLDER, root)
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert await trio.to_thread.run_sync(holder.stdout.readline) == "ready\n"
    workspace = Workspace(root)
    tools = Registry(workspace.tools())
    runtime = Runtime(tools, timeout=0.2) if ends == "timed out" else Runtime(tools)
    async with runtime.open_batch() as batch:
        batch.submit(ToolCall("0", "read_file", {"path": "a.txt"}))
        batch.submit(ToolCall("1", "write_file", {"path": "b.txt", "content": "b"}))
        batch.submit(ToolCall("2", "write_file", {"path": "a.txt", "content": "mine"}))
        batch.seal()
        done = 0
        async for update in batch:
            done += hasattr(update, "result")
            if done == 2:
                break
        assert [call.status.value for call in batch.calls[2:]] == ["executing"]
        assert (root / "a.txt").read_text() == "a"
        if ends == "released":
            holder.stdin.close()
        elif ends == "killed":
            os.kill(holder.pid, signal.SIGKILL)
        elif ends == "cancelled":
            batch.cancel("the user asked for it")
    # What the other process has written since this workspace read the file is not overwritten.
    outcome, left = {
        "released": (Outcome.ERROR, "theirs"),
        "killed": (Outcome.OK, "mine"),
        "cancelled": (Outcome.INTERRUPTED, "a"),
        "timed out": (Outcome.TIMED_OUT, "a"),
    }[ends]
    assert [result.outcome for result in batch.outcome.results] == [Outcome.OK, Outcome.OK, outcome]
    assert (root / "a.txt").read_text() == left
    assert workspace.claim_table.statistics()["groups"] == 0


@pytest.mark.seldom
async def test_a_process_that_never_goes_on_is_not_waited_for(
    start: Start, root: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """After half a minute the call is an error that may be tried again, and nothing was changed."""
    (root / "a.txt").write_text("a")
    holder = start(_HOLDER, root)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    workspace = Workspace(root)
    call = ToolCall("0", "write_file", {"path": "a.txt", "content": "mine"})
    [result] = (await Runtime(Registry(workspace.tools())).run([call])).results
    assert result.outcome is Outcome.ERROR
    assert "another toolrt process" in str(result.error)
    assert (root / "a.txt").read_text() == "a"
    assert trio.current_time() < 60


async def test_disks_of_one_process_take_turns(root: Path) -> None:
    """Two disks and several tasks in one process: what they change at one time is all there."""
    (root / "counter").write_text("0")
    disks = [RealDisk(root) for _ in range(2)]

    async def count(disk: RealDisk) -> None:
        for _ in range(25):
            await disk.revise(("counter",), 100, lambda before: str(int(before.content) + 1).encode())  # type: ignore[union-attr]

    async with trio.open_nursery() as nursery:
        for disk in disks:
            nursery.start_soon(count, disk)
            nursery.start_soon(count, disk)
    assert (root / "counter").read_text() == "100"


def test_the_lock_is_not_in_the_workspace(
    start: Start, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the state directory; where that is inside, or cannot be written, files are changed all the same."""
    changes = [ToolCall("0", "write_file", {"path": "a.txt", "content": "a"})]
    (tmp_path / "file").write_text("")
    for state, found in (("state", 1), ("work/state", 0), ("file/state", 0)):
        monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / state))
        workspace = Workspace(root, state_dir=tmp_path / "history") if found else Workspace(root)
        done = trio.run(Runtime(Registry(workspace.tools())).run, changes)
        assert done.results[0].ok, done
        assert len(list(tmp_path.glob(f"{state}/changes.lock"))) == found
    assert not list(root.glob("**/*.lock"))

"""The guard across processes: one change at a time, none lost, nobody stuck."""

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

from toolrt import Registry, Runtime, ToolCall, Workspace
from toolrt.errors import InputRefused, MissingExtra
from toolrt.workspace import GuardedDisk

pytest.importorskip("filelock", reason="the edit extra is not installed")

Start = Callable[..., "subprocess.Popen[str]"]

#: Counts to a number in a file, with a worker thread that takes its time between reading and writing.
_COUNTER = """
import sys, time
import trio
from toolrt.workspace import GuardedDisk, RealDisk

kind, root, lock, rounds = sys.argv[1:]
disk = GuardedDisk(root, lock=lock) if kind == "guarded" else RealDisk(root)

def one_more(before):
    time.sleep(0.001)
    return str(int(before.content) + 1).encode()

async def main():
    refused = 0
    for _ in range(int(rounds)):
        try:
            await disk.revise(("counter",), 100, one_more)
        except OSError:
            refused += 1
    print(refused)

print("ready", flush=True)
sys.stdin.readline()
trio.run(main)
"""

#: Adds lines to one file by way of the workspace's files, reading it again where somebody else has changed it.
_EDITOR = """
import sys
import toolrt, trio
from toolrt import WRITE, Registry, Runtime, ToolCall, Workspace
from toolrt.workspace import GuardedDisk

root, lock, mine, rounds = sys.argv[1:]
workspace = Workspace(GuardedDisk(root, lock=lock))

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

#: Holds the lock file until its input ends.
_HOLDER = """
import sys
from filelock import FileLock
lock = FileLock(sys.argv[1])
lock.acquire()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program with arguments; it is there, and goes on when it is told to."""
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


def test_guard_loses_no_change_of_two_processes(start: Start, root: Path, tmp_path: Path) -> None:
    """Each of many read-and-write steps of two processes counts, and none is refused."""
    (root / "counter").write_text("0")
    ends = told([start(_COUNTER, "guarded", root, tmp_path / "lock", 60) for _ in range(2)])
    assert (root / "counter").read_text() == "120"
    assert ends == ["0\n", "0\n"]


def test_without_guard_two_processes_meet(start: Start, root: Path, tmp_path: Path) -> None:
    """What the guard is for: without it some of the same steps are refused, or lost."""
    (root / "counter").write_text("0")
    ends = told([start(_COUNTER, "free", root, tmp_path / "lock", 200) for _ in range(2)])
    assert int((root / "counter").read_text()) < 400
    assert ends != ["0\n", "0\n"] or int((root / "counter").read_text()) < 400


def test_guard_lets_two_processes_edit_one_file(start: Start, root: Path, tmp_path: Path) -> None:
    """Changes by way of the workspace: every line of both is there once, each process's in its own order."""
    (root / "log").write_text("")
    told([start(_EDITOR, root, tmp_path / "lock", mine, 20) for mine in ("left", "right")])
    lines = (root / "log").read_text().splitlines()
    assert len(lines) == 40
    for mine in ("left", "right"):
        assert [line for line in lines if line.startswith(mine)] == [f"{mine} {number}" for number in range(20)]


@pytest.mark.parametrize("ends", ["released", "killed", "cancelled"])
async def test_guard_that_another_process_holds_is_waited_for(
    start: Start, root: Path, tmp_path: Path, ends: str
) -> None:
    """A change waits while reads do not; it can be cancelled, and proceeds when the other gives back or is killed."""
    holder = start(_HOLDER, tmp_path / "lock")
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert await trio.to_thread.run_sync(holder.stdout.readline) == "ready\n"
    (root / "a.txt").write_text("a")
    workspace = Workspace(GuardedDisk(root, lock=tmp_path / "lock"))
    runtime = Runtime(Registry(workspace.tools()))
    async with runtime.open_batch() as batch:
        batch.submit(ToolCall("0", "read_file", {"path": "a.txt"}))
        batch.submit(ToolCall("1", "write_file", {"path": "a.txt", "content": "b"}))
        batch.submit(ToolCall("2", "write_file", {"path": "c.txt", "content": "c"}))
        batch.seal()
        async for update in batch:
            if getattr(getattr(update, "result", None), "call_index", None) == 0:
                break
        for _ in range(5):
            await trio.sleep(0.001)
        assert [call.status.value for call in batch.calls[1:]] == ["executing"] * 2
        assert (root / "a.txt").read_text() == "a"
        if ends == "released":
            holder.stdin.close()
        elif ends == "killed":
            os.kill(holder.pid, signal.SIGKILL)
        else:
            batch.cancel("nobody waits any longer")
    outcome = "interrupted" if ends == "cancelled" else "ok"
    assert [result.outcome.value for result in batch.outcome.results] == ["ok", outcome, outcome]
    assert (root / "a.txt").read_text() == ("a" if ends == "cancelled" else "b")
    if ends == "cancelled":
        holder.stdin.close()
    done = await runtime.run([ToolCall("3", "write_file", {"path": "a.txt", "content": "next"})])
    assert done.results[0].ok
    assert workspace.claim_table.statistics()["groups"] == 0


async def test_guard_of_two_workspaces_in_one_process_is_one(root: Path, tmp_path: Path) -> None:
    """Two tables, one lock: what they change at one time is all there."""
    (root / "counter").write_text("0")
    disks = [GuardedDisk(root, lock=tmp_path / "lock") for _ in range(2)]

    async def count(disk: GuardedDisk) -> None:
        for _ in range(25):
            await disk.revise(("counter",), 100, lambda before: str(int(before.content) + 1).encode())  # type: ignore[union-attr]

    async with trio.open_nursery() as nursery:
        for disk in disks:
            nursery.start_soon(count, disk)
            nursery.start_soon(count, disk)
    assert (root / "counter").read_text() == "100"


def test_guard_keeps_its_lock_file_out_of_the_workspace(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the state directory, the same for every name of the root; or where it is told to be."""
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "alias").symlink_to(root)
    GuardedDisk(root)
    GuardedDisk(tmp_path / "alias")
    assert len(list((tmp_path / "state").glob("*/guard.lock"))) == 1
    assert list(root.iterdir()) == []
    monkeypatch.delenv("TOOLRT_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
    with pytest.raises(InputRefused, match="inside the workspace"):
        GuardedDisk(root)
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputRefused, match="expected a file that can be written"):
        GuardedDisk(root, lock=tmp_path / "taken")


def test_guard_without_its_extra_says_which(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails when it is made, not at the first change."""
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(MissingExtra, match=r"toolrt\[edit\]"):
        GuardedDisk(root)

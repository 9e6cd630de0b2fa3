"""Nothing outside the workspace is read, written or shown, whatever is swapped for a link meanwhile.

What is swapped: a file for a link to a file outside, a directory for a link to a directory outside that looks just
like it, and either for a pipe.  When: before every single operation on the twin, and before every single system
call on the real disk; for good, and put back one step later.  And at any moment, by a thread that does nothing else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from tests._profile import FULL
from tests.workspace._every_tool import inputs_at, names_of
from toolrt import Registry, Runtime, State, ToolCall, sim
from toolrt.workspace import Directory, Kind, MemoryDisk, RealDisk, Special, Symlink, Workspace

TOOLS = names_of(Workspace(MemoryDisk()).tools())

#: What stands outside, under the names that it has inside, and must never be seen.
SECRET = "one secret\n"

#: What no message may show.
OUTSIDE = "/elsewhere/private"

CONTENT = {"d/a.txt": "one\n", "d/deep/c.txt": "one\n", "b.txt": "one\n"}

#: What is swapped, and for what: a link to its double outside, or a pipe.
SWAPS = [("d/a.txt", "link"), ("d", "link"), ("d", "pipe"), ("d/a.txt", "pipe"), ("d/deep", "link")]

#: What a call is about.
TARGETS = ["d/a.txt", "d/deep/c.txt", "d/new/x.txt", "d"]


def texts_of(results: Any) -> str:
    """All that a model is shown."""
    return "\n".join(f"{result.content!r} {result.error}" for result in results)


async def answers(workspace: Workspace, calls: list[ToolCall]) -> Any:
    return (await Runtime(Registry(workspace.tools())).run(calls, State())).results


@pytest.fixture(params=TOOLS)
def tool_name(request: pytest.FixtureRequest) -> str:
    """Every tool that a workspace has."""
    return request.param


def calls_at(workspace: Workspace, name: str, swapped: str) -> Iterator[ToolCall]:
    """Calls of the tool that go through what is swapped, or have it below what they are about."""
    tool = next(tool for tool in workspace.tools() if tool.name == name)
    for path in TARGETS:
        if path.startswith(swapped) or swapped.startswith(path):
            for input in inputs_at(tool, path):
                yield ToolCall("id", name, input)


# The twin: before every operation.


class SwappedTwin(MemoryDisk):
    """A twin on which somebody swaps something before operation number `at`, and back before number `back`."""

    def __init__(self, swap: tuple[str, str], at: int, back: int | None) -> None:
        self.count = -1
        self._swap = swap
        self._at, self._back = at, back
        super().__init__(CONTENT, root="/home/me/repo", fault=lambda effect, path: self._step())
        for path, text in CONTENT.items():
            self.put(f"{OUTSIDE}/{path}", SECRET + text)
        self.put(f"{OUTSIDE}/d/new", Directory())
        self.count = 0

    def _step(self) -> None:
        number, self.count = self.count, self.count + 1
        path, into = self._swap
        if number == self._at:
            self.put(path, Symlink(f"{OUTSIDE}/{path}") if into == "link" else Special())
        elif number == self._back:
            self.drop(path)
            for name, text in CONTENT.items():
                if name.startswith(path):
                    self.put(name, text)

    def lstat(self, path: str) -> Any:
        self._step()
        return super().lstat(path)

    def readlink(self, path: str) -> str:
        self._step()
        return super().readlink(path)

    def listdir(self, path: str) -> list[str]:
        self._step()
        return super().listdir(path)

    def folds(self, path: str) -> Any:
        self._step()
        return super().folds(path)

    def outside(self) -> dict[str, Any]:
        """All that lies outside, with numbers that change with the content."""
        found: dict[str, Any] = {}
        pending = [OUTSIDE]
        while pending:
            path = pending.pop()
            found[path] = super().lstat(path)
            if found[path].kind is Kind.DIRECTORY:
                pending += [f"{path}/{name}" for name in super().listdir(path)]
        return found


def swapped_run(call: ToolCall, swap: tuple[str, str], at: int, back: int | None) -> int:
    """Run the call with a swap and hold it against the scope; returns how many operations there were."""
    disk = SwappedTwin(swap, at, back)
    before = disk.outside()
    workspace = Workspace(disk)
    execution = sim.run(lambda: answers(workspace, [call]))
    assert execution.error is None, (call, swap, at, back, execution.error)
    shown = texts_of(execution.value) + execution.trace.to_json()
    assert "secret" not in shown, (call, swap, at, back, shown)
    assert "elsewhere" not in shown, (call, swap, at, back, shown)
    assert disk.outside() == before, (call, swap, at, back)
    return disk.count


@pytest.mark.drawn(10)
@pytest.mark.parametrize("swap", SWAPS, ids=str)
def test_scope_holds_when_swapped_before_any_operation(tool_name: str, swap: tuple[str, str]) -> None:
    """For good, or back again one, two or five operations later (all of these, at each operation, in the full run)."""
    reached = 0
    stride = 1 if FULL else 3
    for number, call in enumerate(calls_at(Workspace(MemoryDisk()), tool_name, swap[0])):
        at = number % stride
        while at <= swapped_run(call, swap, at, None):
            for later in (1, 2, 5) if FULL else ((1, 2, 5)[at % 3],):
                swapped_run(call, swap, at, at + later)
            at += stride
        reached = max(reached, at)
    # Finding out what a name means and doing something with it are several operations.
    assert reached >= 3


def test_swap_is_noticed_by_what_these_tests_look_at() -> None:
    """A tool that trusts a name it looked up before is caught: what is swapped really leads outside."""
    disk = SwappedTwin(("d", "link"), 10**9, None)
    disk.put("d", Symlink(f"{OUTSIDE}/d"))
    identity = Workspace(disk).identify("d/a.txt")
    assert identity.key is None
    assert f"{OUTSIDE}/d/a.txt" in disk.outside()
    assert disk.readlink("/home/me/repo/d") == f"{OUTSIDE}/d"


# The real disk: before every system call.

#: Every function of `os` that takes a path or a descriptor and that a disk may use.
CALLS = [
    *(
        "open",
        "close",
        "lstat",
        "stat",
        "fstat",
        "listdir",
        "scandir",
        "readlink",
        "read",
        "write",
        "rename",
        "replace",
    ),
    *("mkdir", "unlink", "rmdir", "link", "symlink", "ftruncate", "fchmod", "fchown", "fsync", "lseek", "chmod"),
]


@attrs.define
class Swapper:
    """Swaps things on the real disk, with the functions as they were before anybody wrapped them."""

    root: Path
    outside: Path
    really: dict[str, Callable[..., Any]] = attrs.field(init=False)
    #: The real paths of all that was opened between the system calls.
    opened: set[str] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.really = {name: getattr(os, name) for name in CALLS}

    def plant(self, root: Path, secret: str) -> None:
        for path, text in CONTENT.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(secret + text)

    def swap(self, path: str, into: str) -> None:
        here, aside = f"{self.root}/{path}", f"{self.root}/aside"
        # What the call itself has moved, deleted or made meanwhile cannot be swapped.
        with suppress(OSError):
            self.really["rename"](here, aside)
            if into == "link":
                self.really["symlink"](f"{self.outside}/{path}", here)
            else:
                os.mkfifo(here)

    def back(self, path: str) -> None:
        here, aside = f"{self.root}/{path}", f"{self.root}/aside"
        with suppress(OSError):
            self.really["unlink"](here)
            self.really["rename"](aside, here)

    @contextmanager
    def before_call(self, swap: tuple[str, str], at: int, back: int | None) -> Iterator[list[int]]:
        """Swap before system call number `at`, and back before number `back`; yields how many there were."""
        count = [0]

        def wrapped(name: str) -> Callable[..., Any]:
            function = self.really[name]

            def call(*args: Any, **kwargs: Any) -> Any:
                number, count[0] = count[0], count[0] + 1
                if number == at:
                    self.swap(*swap)
                elif number == back:
                    self.back(swap[0])
                value = function(*args, **kwargs)
                if name == "open" and os.path.isdir("/proc/self/fd"):
                    # Where it has led to, whatever it was called.
                    self.opened.add(self.really["readlink"](f"/proc/self/fd/{value}"))
                return value

            return call

        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, wrapped(name))
            yield count


@pytest.fixture
def planted(tmp_path: Path) -> Callable[[str], Swapper]:
    """Makes a workspace with its double outside, each time a new one."""

    def plant(number: str) -> Swapper:
        base = tmp_path / number
        swapper = Swapper(base / "repo", base / OUTSIDE[1:])
        swapper.plant(swapper.root, "")
        swapper.plant(swapper.outside, SECRET)
        (swapper.outside / "d/new").mkdir()
        return swapper

    return plant


def outside_of(root: Path) -> dict[str, Any]:
    """All that lies below a directory, with content, times and numbers."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_ino,
            path.is_dir() or (path.lstat().st_mtime_ns, path.read_bytes()),
        )
        for path in sorted(root.rglob("*"))
    }


def real_run(swapper: Swapper, call: ToolCall, swap: tuple[str, str], at: int, back: int | None) -> int:
    workspace = Workspace(RealDisk(swapper.root))
    before = outside_of(swapper.outside)

    async def run() -> Any:
        with swapper.before_call(swap, at, back) as count:
            return await answers(workspace, [call]), count[0]

    results, count = trio.run(run)
    shown = texts_of(results)
    assert "secret" not in shown, (call, swap, at, back, shown)
    assert "elsewhere" not in shown, (call, swap, at, back, shown)
    assert str(swapper.root.parent) not in shown, (call, swap, at, back, shown)
    assert outside_of(swapper.outside) == before, (call, swap, at, back)
    assert not [path for path in swapper.opened if path.startswith(str(swapper.outside))], (call, swap, at, back)
    return count


#: Every how many system calls the real disk is swapped at: all with HYPOTHESIS_PROFILE=full, else a sample.
STRIDE = 1 if FULL else 13


@pytest.mark.drawn(10)
@pytest.mark.parametrize("swap", SWAPS, ids=str)
def test_scope_holds_when_swapped_before_any_system_call(
    tool_name: str, swap: tuple[str, str], planted: Callable[[str], Swapper]
) -> None:
    """The same on the real disk; a pipe in a file's or directory's place blocks nobody."""
    for number, call in enumerate(calls_at(Workspace(MemoryDisk()), tool_name, swap[0])):
        at = number % STRIDE
        while True:
            count = real_run(planted(f"{number}-{at}-for-good"), call, swap, at, None)
            real_run(planted(f"{number}-{at}-back"), call, swap, at, at + 1 + at % 3)
            if at > count:
                break
            at += STRIDE


#: How often the racing thread's victim is called.
ROUNDS = 300 if FULL else 30


@pytest.mark.parametrize("swap", [("d", "link"), ("d/a.txt", "link")], ids=str)
def test_scope_holds_against_a_racing_thread(
    tool_name: str, swap: tuple[str, str], planted: Callable[[str], Swapper]
) -> None:
    """A thread swaps a directory or file for a link outside and back, as fast as it can, while the tool works."""
    swapper = planted("race")
    workspace = Workspace(RealDisk(swapper.root))
    before = outside_of(swapper.outside)
    stop, swapped = threading.Event(), threading.Event()

    def race() -> None:
        while not stop.is_set():
            swapper.swap(*swap)
            swapped.set()
            swapper.back(swap[0])
            if not os.path.lexists(swapper.root / "d"):
                # The tool has moved or deleted it; nobody but this thread makes links, so this stays inside.
                with suppress(OSError):
                    swapper.plant(swapper.root, "")

    async def run() -> None:
        calls = list(calls_at(workspace, tool_name, swap[0]))
        for number in range(ROUNDS):
            shown = texts_of(await answers(workspace, [calls[number % len(calls)]]))
            assert "secret" not in shown
            assert "elsewhere" not in shown
            assert str(swapper.root.parent) not in shown

    thread = threading.Thread(target=race)
    thread.start()
    try:
        swapped.wait()
        trio.run(run)
    finally:
        stop.set()
        thread.join()
    assert outside_of(swapper.outside) == before


# Special files.


@pytest.mark.parametrize("kind", [Kind.FIFO, Kind.SOCKET, Kind.DEVICE])
def test_special_file_is_refused_on_the_twin(tool_name: str, kind: Kind) -> None:
    """Its kind is named where the call is about its content, and it stays as it is."""
    disk = MemoryDisk({"b.txt": "one\n", "special": Special(kind)})
    workspace = Workspace(disk)
    tool = next(tool for tool in workspace.tools() if tool.name == tool_name)
    for input in inputs_at(tool, "special"):
        [result] = sim.run(lambda input=input: answers(workspace, [ToolCall("id", tool_name, input)])).value
        if tool_name in ("read_file", "write_file", "edit_file", "multi_edit"):
            assert f"got {kind.value}" in result.error
            assert disk.lstat("/workspace/special").kind is kind


async def test_special_file_is_refused_without_blocking(tool_name: str, tmp_path: Path) -> None:
    """A real pipe that nobody writes to, a socket and a device hold nobody up."""
    import socket

    os.mkfifo(tmp_path / "pipe")
    os.symlink("pipe", tmp_path / "way")
    (tmp_path / "b.txt").write_text("one\n")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket"))
    listening.close()
    specials = ["pipe", "way", "socket"]
    try:
        os.mknod(tmp_path / "device", 0o600 | 0o020000, os.makedev(1, 5))
        specials.append("device")
    except PermissionError:
        pass  # only root may make one
    workspace = Workspace(tmp_path)
    tool = next(tool for tool in workspace.tools() if tool.name == tool_name)
    for path in specials:
        for input in inputs_at(tool, path):
            [result] = await answers(workspace, [ToolCall("id", tool_name, input)])
            if tool_name in ("read_file", "write_file", "edit_file", "multi_edit"):
                assert result.outcome.value == "error"
                assert str(tmp_path) not in result.error


async def test_directory_with_special_files_is_read_without_blocking(tmp_path: Path) -> None:
    """Listing and searching pass a pipe by."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "b.txt").write_text("one\n")
    workspace = Workspace(tmp_path)
    for tool in workspace.tools():
        for input in inputs_at(tool, "."):
            await answers(workspace, [ToolCall("id", tool.name, input)])
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "b.txt").read_text() in ("one\n", "1\n")

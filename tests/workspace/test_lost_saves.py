"""Another program saves a file while toolrt changes it: no save is lost, at whatever moment it comes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio

from toolrt.workspace import RealDisk, Snapshot

pytestmark = pytest.mark.process

#: Saves a file each time it is told to, as editors do: a new file is renamed over the old one.
_EDITOR = """
import os, sys
path, way = sys.argv[1:]
print("ready", flush=True)
for number, line in enumerate(sys.stdin):
    if way == "renames":
        with open(path + "~", "w") as file:
            file.write(f"theirs {number}")
        os.replace(path + "~", path)
    elif way == "removes":
        os.unlink(path)
    elif way == "directory":
        os.unlink(path)
        os.mkdir(path)
    else:
        with open(path, "w") as file:
            file.write(f"theirs {number}")
    print("saved", flush=True)
"""


class Editor:
    """The other program."""

    def __init__(self, path: Path, way: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _EDITOR, str(path), way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._read() == "ready\n"

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def save(self) -> None:
        """It has saved when this returns."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        assert self._read() == "saved\n"

    def close(self) -> None:
        """It is gone."""
        self._process.communicate()


@pytest.fixture
def editor() -> Iterator[Callable[[Path, str], Editor]]:
    """Starts it."""
    with contextlib.ExitStack() as stack:

        def start(path: Path, way: str) -> Editor:
            made = Editor(path, way)
            stack.callback(made.close)
            return made

        yield start


class Watch:
    """Lets something happen at a moment of a change: when so many calls of the system's functions have returned.

    It begins where the change has been given what stands there, and ends with the change.
    """

    def __init__(self, at: int, times: int, happens: Callable[[], None]) -> None:
        self._left = at
        self._times = times
        self._happens = happens
        self._on = True
        #: How often it has happened.
        self.happened = 0

    def __call__(self, frame: FrameType, event: str, what: Any) -> None:
        """As `sys.setprofile` wants it."""
        if not self._on:
            sys.setprofile(None)
        elif event == "c_return" and getattr(what, "__module__", None) == "posix" and self.happened < self._times:
            self._left -= 1
            if self._left < 0:
                self._on = False
                self._happens()
                self.happened += 1
                self._on = True

    async def change(self, disk: RealDisk) -> tuple[bytes | None, bool]:
        """Change a.txt meanwhile; gives what was found there, and whether the change was made."""
        found: list[bytes | None] = []

        def change(before: Snapshot | None) -> bytes:
            found.append(None if before is None else before.content)
            sys.setprofile(self)
            return b"ours"

        try:
            await disk.revise(("a.txt",), 100, change)
        except OSError:
            return found[0], False
        else:
            return found[0], True
        finally:
            self._on = False


@pytest.mark.parametrize("way", ["renames", "removes", "directory"])
async def test_a_save_at_any_call_of_a_change_is_not_lost(
    editor: Callable[[Path, str], Editor], tmp_path: Path, way: str
) -> None:
    """A second process saves after each single system call: its save is there in the end."""
    path = tmp_path / "a.txt"
    other = editor(path, way)
    disk = RealDisk(tmp_path)
    ended: list[tuple[bool, str]] = []
    for at in range(100):
        if path.is_dir():
            path.rmdir()
        path.write_text("old")
        watch = Watch(at, 1, other.save)
        before, made = await watch.change(disk)
        if not watch.happened:
            break
        assert before == b"old"
        stands = "nothing" if not path.exists() else "a directory" if path.is_dir() else path.read_text()[:6]
        ended.append((made, stands))
        assert sorted(os.listdir(tmp_path)) in ([], ["a.txt"]), "a name of the disk's own was left"
    else:
        pytest.fail("the change never ended")
    theirs = {"renames": "theirs", "removes": "nothing", "directory": "a directory"}[way]
    assert {stands for _, stands in ended} == {theirs}, ended
    assert not ended[0][0], "a save before the last look is a conflict"
    assert len(ended) > 5


@pytest.mark.parametrize("tries", [2, 3])
async def test_the_latest_of_several_saves_stays(
    editor: Callable[[Path, str], Editor], tmp_path: Path, tries: int
) -> None:
    """Saves that come while an earlier one is put back: the file is what the last of them left."""
    path = tmp_path / "a.txt"
    other = editor(path, "renames")
    disk = RealDisk(tmp_path)
    saved = 0
    for at in range(60):
        path.write_text("old")
        watch = Watch(at, tries, other.save)
        before, _ = await watch.change(disk)
        saved += watch.happened
        if not watch.happened:
            break
        assert before == b"old"
        assert path.read_text() == f"theirs {saved - 1}"
        assert os.listdir(tmp_path) == ["a.txt"]
    else:
        pytest.fail("the change never ended")


def test_many_saves_of_a_running_program_are_not_lost(tmp_path: Path) -> None:
    """Two processes at full speed: what toolrt made of the old text never stands over a save."""
    path = tmp_path / "a.txt"
    program = """
import os, sys
path = sys.argv[1]
print("ready", flush=True)
for line in sys.stdin:
    with open(path + "~", "w") as file:
        file.write("theirs")
    os.replace(path + "~", path)
    print("saved", flush=True)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    disk = RealDisk(tmp_path)
    found: list[bytes] = []

    async def main() -> list[str]:
        lost = []
        for number in range(300):
            path.write_text("old")
            found.clear()

            def change(before: Snapshot | None) -> bytes:
                assert before is not None
                found.append(before.content)
                return b"ours"

            child.stdin.write("\n")
            child.stdin.flush()
            made = True
            try:
                await disk.revise(("a.txt",), 100, change)
            except OSError:
                made = False
            assert child.stdout.readline() == "saved\n"
            if path.read_text() != "theirs" and not (made and found[-1] == b"theirs"):
                lost.append(f"round {number}: made={made} found={found}")
        return lost

    assert trio.run(main) == []
    child.communicate()

"""What a crash or an error leaves, at every step: the old or the new, never less."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.workspace import _crash
from tests.workspace._crash import BEFORE, CHANGES, LONG, OLD, SHORT
from toolrt import probe
from toolrt.workspace import HardLink, MemoryDisk, RealDisk, Unsynced, User, Workspace, is_own

CHANGE_NAMES = pytest.mark.parametrize("name", CHANGES)


def planted(**options: Any) -> MemoryDisk:
    content = {path: text for path, text in BEFORE.items() if path != "names/y"}
    return MemoryDisk({**content, "names/y": HardLink("names/x")}, **options)


def tidy(files: dict[str, bytes | str]) -> bool:
    return not any(is_own(part) for path in files for part in path.split("/"))


def error_of(change: _crash.Change, disk: MemoryDisk) -> OSError | None:
    """What the change raises."""
    try:
        trio.run(change.operation, disk)
    except OSError as error:
        return error
    return None


# The twin


@CHANGE_NAMES
def test_twin_crashed_before_any_effect_has_old_or_new(name: str) -> None:
    """At each effect, and after the last, the disk that is found is mended to one of the two."""
    change = CHANGES[name]
    found: list[MemoryDisk] = []
    disk = planted(fault=lambda effect, path: found.append(disk.crashed()))
    trio.run(change.operation, disk)
    found.append(disk.crashed())
    endings = []
    for crashed in found:
        crashed.recover()
        endings.append(Workspace(crashed).snapshot())
        assert crashed.recover() == []
        assert crashed.lstat("/workspace/names/x").links == 2
    assert endings[0] == BEFORE
    assert endings[-1] == change.after
    partly = {**BEFORE, "e/": ""} if change.partly else BEFORE
    assert all(ending in (BEFORE, change.after, partly) for ending in endings)


def test_twin_written_in_place_is_half_written_until_it_is_mended() -> None:
    """The crash that these tests are about happens: without `recover` a file is neither old nor new."""
    found: list[MemoryDisk] = []
    disk = planted(fault=lambda effect, path: found.append(disk.crashed()))
    trio.run(CHANGES["grow in place"].operation, disk)
    halves = [crashed for crashed in found if crashed.peek(("names", "x")) not in (OLD, LONG)]
    assert halves
    for crashed in halves:
        assert crashed.recover([("names",)]) == ["names/x"]
        assert Workspace(crashed).snapshot() == BEFORE


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
@CHANGE_NAMES
def test_twin_that_fails_at_any_effect_is_as_it_was(name: str, number: int) -> None:
    """An error at each effect in turn is raised; or it came after the last that counts, and `recover` does the rest."""
    change = CHANGES[name]
    at = 0
    while True:
        left = at

        def fault(effect: str, path: str) -> None:
            nonlocal left
            if left == 0:
                left -= 1
                raise OSError(number, "told to")
            left -= 1

        disk = planted(fault=fault)
        error = error_of(change, disk)
        if left >= 0:
            break
        if error is None:
            assert disk.recover()
            assert Workspace(disk).snapshot() == change.after
        else:
            assert error.errno == number
            files = Workspace(disk).snapshot()
            assert files == BEFORE or (change.partly and files == {**BEFORE, "e/": ""})
        at += 1
    assert at >= 1
    assert Workspace(disk).snapshot() == change.after


@CHANGE_NAMES
def test_twin_mended_while_a_writer_lives_lets_him_end(name: str) -> None:
    """`recover` at any effect takes nothing away that is in use."""
    change = CHANGES[name]
    disk = planted(fault=lambda effect, path: mended.extend(disk.recover()))
    mended: list[str] = []
    trio.run(change.operation, disk)
    assert mended == []
    assert Workspace(disk).snapshot() == change.after


@CHANGE_NAMES
def test_twin_without_room_is_as_it_was(name: str) -> None:
    """Whatever the room is, the change is made or refused, whole."""
    change = CHANGES[name]
    room = sum(-(-len(content) // 4096) * 4096 for path, content in BEFORE.items() if path != "names/y")
    refused = 0
    for more in range(0, 40_000, 4096):
        disk = planted(capacity=room + more)
        error = error_of(change, disk)
        if error is None:
            assert Workspace(disk).snapshot() == change.after
        else:
            assert error.errno == errno.ENOSPC
            assert Workspace(disk).snapshot() == BEFORE
            refused += 1
    assert refused == {"replace": 1, "create": 6}.get(name, 0) or "in place" in name


def test_twin_gives_room_back_to_nobody_it_refused() -> None:
    """What fails for want of room leaves as much as there was."""
    disk = MemoryDisk({"a": b"x" * 4096}, capacity=8192)
    for _ in range(3):
        with pytest.raises(OSError) as caught:
            trio.run(disk.revise, ("a",), 10_000, lambda before: b"y" * 8192)
        assert caught.value.errno == errno.ENOSPC
    trio.run(disk.revise, ("a",), 10_000, lambda before: b"y" * 4096)
    assert disk.peek(("a",)) == b"y" * 4096


def test_twin_file_of_somebody_else_is_written_in_place_and_stays_his() -> None:
    """Who may write a file but not give one away writes into it, behind a recovery copy."""
    found: list[MemoryDisk] = []
    disk = MemoryDisk(user=User(1, (1,)), fault=lambda effect, path: found.append(disk.crashed()))
    disk.put("a", OLD, mode=0o666, owner=(2, 2))
    inode = disk.lstat("/workspace/a").inode
    trio.run(disk.revise, ("a",), 100_000, lambda before: SHORT)
    assert (disk.peek(("a",)), disk.lstat("/workspace/a").inode) == (SHORT, inode)
    for crashed in found:
        crashed.recover()
        assert Workspace(crashed).snapshot() in ({"a": OLD}, {"a": SHORT})


# The real disk


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("sync", ["plain", "fsync"])
def test_real_disk_killed_at_any_call_has_old_or_new(tmp_path: Path, sync: str) -> None:
    """A process is killed before each system call of each change, and in the middle of each write."""
    ended = subprocess.run(
        [sys.executable, _crash.__file__, str(tmp_path), sync], capture_output=True, text=True, timeout=250, check=False
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["wrong"] == []
    assert all(count >= 3 for count in told["counts"].values()), told


@pytest.mark.parametrize("fsync", [False, True])
@CHANGE_NAMES
def test_real_disk_that_fails_at_any_call_is_as_it_was(tmp_path: Path, name: str, fsync: bool) -> None:
    """An error in the place of each system call: the old, or the new where the error says so."""
    change = CHANGES[name]
    root = f"{tmp_path}/repo"
    number = 0
    while True:
        _crash.plant(root)
        disk = RealDisk(root, fsync=fsync)
        workspace = Workspace(disk)  # made before, so that it mends nothing
        left = number

        def happening(call: str, really: Any, arguments: Any) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise OSError(errno.EIO, "told to")

        with _crash.at_every_call(happening):
            try:
                _crash.run(disk, change.operation)
                error = None
            except OSError as caught:
                error = caught
        files = workspace.snapshot()
        if left >= 0:
            break
        where = f"call {number}: {error!r}: {sorted(files)}"
        if error is None or isinstance(error, Unsynced):
            disk.recover()
            files = workspace.snapshot()
            assert files == change.after or (change.partly and error is not None), where
        elif change.partly:
            assert files in (BEFORE, {**BEFORE, "e/": ""}, {**BEFORE, "e/f/": ""}), where
        else:
            assert files == BEFORE, where
        number += 1
    assert files == change.after
    assert number >= 3


@pytest.mark.seldom
def test_real_disk_mended_at_any_call_lets_a_living_writer_end(tmp_path: Path) -> None:
    """`recover` in another process would see the same locks: what is in use is left alone."""
    root = f"{tmp_path}/repo"
    _crash.plant(root)
    disk, other = RealDisk(root), RealDisk(root)
    workspace = Workspace(disk)
    left = 0

    def happening(call: str, really: Any, arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            other.recover()

    for change in CHANGES.values():
        number = 0
        while left >= 0 or number == 0:
            _crash.plant(root)
            left = number
            with _crash.at_every_call(happening):
                _crash.run(disk, change.operation)
            assert workspace.snapshot() == change.after
            if left >= 0:
                break
            left, number = 0, number + 1


def test_real_disk_syncs_the_file_before_and_the_directory_after_the_rename(tmp_path: Path) -> None:
    """With fsync, what the rename makes visible is on the disk, and then so is the rename."""
    _crash.plant(f"{tmp_path}/repo")
    disk = RealDisk(f"{tmp_path}/repo", fsync=True)
    _crash.run(disk, CHANGES["replace"].operation)  # which makes the key, where there was none
    _crash.plant(f"{tmp_path}/repo")
    order: list[str] = []

    def happening(call: str, really: Any, arguments: Any) -> None:
        if call == "fsync":
            order.append("sync directory" if os.path.isdir(f"/proc/self/fd/{arguments[0]}") else "sync file")
        elif call in ("write", "replace", "rename", "unlink", "ftruncate", "_exchanging_rename"):
            order.append(call)

    with _crash.at_every_call(happening):
        _crash.run(disk, CHANGES["replace"].operation)
        assert order == ["write", "sync file", "_exchanging_rename", "unlink", "sync directory"]
        order.clear()
        _crash.run(disk, CHANGES["shrink in place"].operation)
    assert order == [
        *["write", "write", "write", "sync file", "rename", "sync directory"],
        *["write", "ftruncate", "sync file", "unlink", "sync directory"],
    ]


def test_recovery_copy_of_a_file_that_somebody_else_wrote_since_is_left_alone(tmp_path: Path) -> None:
    """Neither his content nor the old one is lost: nobody but a person can tell which is wanted."""
    found: list[MemoryDisk] = []
    disk = planted(fault=lambda effect, path: found.append(disk.crashed()))
    trio.run(CHANGES["grow in place"].operation, disk)
    crashed = next(crashed for crashed in found if crashed.peek(("names", "x")) not in (OLD, LONG))
    copy = next(name for name in crashed.listdir("/workspace/names") if is_own(name))
    trio.run(crashed.revise, ("names", "y"), 100_000, lambda before: b"his")
    assert crashed.recover() == []
    assert Workspace(crashed).snapshot()["names/x"] == b"his"
    assert copy in crashed.listdir("/workspace/names")


def test_threads_are_not_needed_to_recover(tmp_path: Path) -> None:
    """It is for the start of a program, where no Trio runs."""
    _crash.plant(f"{tmp_path}/repo")
    (tmp_path / "repo" / "d" / ".toolrt-1-2-3.tmp").write_text("left")
    (tmp_path / "repo" / "d" / ".toolrt-mine.txt").write_text("mine")
    disk = RealDisk(tmp_path / "repo")
    left = _crash.left_by(f"{tmp_path}/repo", ("d", "half"))
    assert disk.recover([("missing",), ("d",), ("d",)]) == [f"d/{left}"]
    assert disk.strangers([("missing",), ("d",), ("d",)]) == ["d/.toolrt-1-2-3.tmp"]
    planted = {"d/.toolrt-mine.txt": b"mine", "d/.toolrt-1-2-3.tmp": b"left"}
    assert Workspace(disk).snapshot() == {**BEFORE, **planted}
    assert probe.sink is None

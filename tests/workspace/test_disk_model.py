"""The twin is the real disk's model: whatever is done to both, they answer alike and have the same."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests._profile import FULL
from tests.workspace import _disk_machine
from tests.workspace._disk_machine import DiskMachine, new_directory

#: How many sequences of operations are tried, of each kind.
EXAMPLES = 2_000 if FULL else 60

#: The size of the small disk, in bytes: a few files of the sizes that the machine writes.
SMALL = 64 * 1024


class UnboundMachine(DiskMachine):
    """Both disks, as whoever runs the tests; permission bits let him do everything he does here."""

    base = staticmethod(new_directory)


@pytest.mark.seldom
def test_twin_and_real_disk_agree() -> None:
    """Any sequence of operations, with somebody else at work: same answers, same errno, same trees."""
    _disk_machine.run(UnboundMachine, EXAMPLES)


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can plant what belongs to others, and become one of them")
def test_twin_and_real_disk_agree_where_permission_binds() -> None:
    """The same for an unprivileged user, with modes and owners that bind him, in a process of its own."""
    ended = subprocess.run(
        [sys.executable, _disk_machine.__file__, "unprivileged", str(EXAMPLES)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a file system that is soon full."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    tried = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={SMALL},mode=755", "none", str(mounted)], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield mounted
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


@pytest.mark.seldom
@pytest.mark.process
def test_twin_and_real_disk_agree_when_there_is_no_room(small_disk: Path) -> None:
    """The same on a disk of 64 KiB: both are full at the same operation, and leave the same."""

    @contextlib.contextmanager
    def emptied() -> Iterator[str]:
        try:
            yield str(small_disk)
        finally:
            for left in small_disk.iterdir():
                shutil.rmtree(left)

    class SmallMachine(DiskMachine):
        capacity = SMALL
        base = staticmethod(emptied)

    _disk_machine.run(SmallMachine, EXAMPLES)

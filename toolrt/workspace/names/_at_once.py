"""Does in one worker thread what goes through many directories or files of a real disk.

Rules.  What is awaited of the disk in that thread has been done when the `await` returns, so the code is the same for
all disks.  A cancel ends the work before its next directory or file.  The twin, a mixed tree, and a simulation go step
by step in Trio's thread.

Theory.  A worker thread for each directory takes 20 to 50 times as long as the directories themselves (measured on
30,000 files).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

import trio

from toolrt import probe
from toolrt.errors import InternalError
from toolrt.workspace.disk._disk import Disk, Entry, Snapshot, Stat, Survey
from toolrt.workspace.disk._listings import Listing
from toolrt.workspace.disk._real import RealDisk
from toolrt.workspace.disk._real_keep import survey
from toolrt.workspace.names._mounts import MountedDisk, located, real_disks

T = TypeVar("T")


def goes_at_once(disk: Disk) -> bool:
    """Whether `at_once` uses a thread for `disk`: every part of it is a real disk as toolrt made it."""
    parts = real_disks(disk)
    return bool(parts) and not probe.threads_inline and all(type(part).names is RealDisk.names for part in parts)


async def at_once(disk: Disk, work: Callable[[Disk], Coroutine[Any, Any, T]]) -> T:
    """What `work` gives, which is given a disk to await; see the module's head.

    Checkpoint: always.
    """
    if not goes_at_once(disk):
        return await work(disk)
    view = disk.over(AtOnce) if isinstance(disk, MountedDisk) else cast(Disk, AtOnce(disk))
    return await trio.to_thread.run_sync(lambda: _result(work(view)), abandon_on_cancel=False)


async def listing(disk: Disk, entry: Entry) -> Listing:
    """What is in the directory at `entry`, by name and kind.

    Raises:
        OSError: as `Disk.names`.

    Checkpoint: always, but in a thread of `at_once`.
    """
    part, below = located(disk, entry)
    if isinstance(part, AtOnce) and (entry or not disk.mounts):
        return part.listing(below)
    return Listing.of(await disk.names(entry))


class AtOnce:
    """A real disk for one worker thread: what is awaited has been done."""

    def __init__(self, disk: Disk) -> None:
        self._disk = cast(RealDisk, disk)
        self.root = disk.root
        self.mounts = disk.mounts
        self.folds = disk.folds

    async def look(self, entry: Entry) -> Stat:
        """As `RealDisk.look`."""
        return self._disk._look(entry)

    async def names(self, entry: Entry) -> list[tuple[str, Stat]]:
        """As `RealDisk.names`."""
        trio.from_thread.check_cancelled()
        return self._disk._names(entry)

    def listing(self, entry: Entry) -> Listing:
        """As `RealDisk.listing`."""
        trio.from_thread.check_cancelled()
        return self._disk.listing(entry)

    async def read(self, entry: Entry, limit: int) -> Snapshot:
        """As `RealDisk.read`."""
        trio.from_thread.check_cancelled()
        return self._disk._read(entry, limit)

    def lstat(self, path: str) -> Stat:
        """As `RealDisk.lstat`."""
        return self._disk.lstat(path)

    def readlink(self, path: str) -> str:
        """As `RealDisk.readlink`."""
        return self._disk.readlink(path)

    def names_of(self, stat: Stat) -> list[Entry]:
        """As `RealDisk.names_of`."""
        return self._disk.names_of(stat)

    async def survey(self, entry: Entry, *, contents: bool = True) -> Survey:
        """As `RealDisk.survey`."""
        return survey(self._disk.root, entry, contents, last_call=trio.from_thread.check_cancelled)

    async def read_part(self, entry: Entry, start: int, size: int) -> Snapshot:
        """As `RealDisk.read_part`."""
        trio.from_thread.check_cancelled()
        return self._disk._read_part(entry, start, size)


def _result(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        given: T = end.value
        return given
    work.close()
    raise InternalError("work at once had to wait")

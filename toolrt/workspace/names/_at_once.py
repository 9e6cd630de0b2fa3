"""Does in one worker thread what goes through many directories or files of a real disk.

Rules.  What is awaited of the disk in that thread has been done when the `await` returns, so the code is the same for
all disks.  A cancel ends the work before its next directory or file.  The twin, a mixed tree, and a simulation go step
by step in Trio's thread.

Theory.  A worker thread for each directory takes 20 to 50 times as long as the directories themselves (measured on
30,000 files).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

import trio

from toolrt import probe
from toolrt.errors import InternalError
from toolrt.workspace.disk._disk import Disk, Entry, Stat, is_own
from toolrt.workspace.disk._listings import Listing
from toolrt.workspace.disk._real import RealDisk
from toolrt.workspace.disk._real_walk import WalkedRoot
from toolrt.workspace.names._mounts import MountedDisk, located, real_disks

T = TypeVar("T")


def goes_at_once(disk: Disk) -> bool:
    """Whether `at_once` uses a thread for `disk`: every part of it is a real disk as toolrt made it."""
    parts = real_disks(disk)
    as_made = (type(part).names is RealDisk.names and not isinstance(part, AtOnce) for part in parts)
    return bool(parts) and not probe.threads_inline and all(as_made)


async def at_once(disk: Disk, work: Callable[[Disk], Coroutine[Any, Any, T]]) -> T:
    """What `work` gives, which is given a disk to await; see the module's head.

    Checkpoint: always.
    """
    if not goes_at_once(disk):
        return await work(disk)
    view = disk.over(AtOnce) if isinstance(disk, MountedDisk) else AtOnce(disk)
    return await trio.to_thread.run_sync(_result, work(view), real_disks(view), abandon_on_cancel=False)


async def listing(disk: Disk, entry: Entry) -> Listing:
    """What is in the directory at `entry`, by name and kind.

    Raises:
        OSError: as `Disk.names`.

    Checkpoint: always, but in a thread of `at_once`.
    """
    part, below = located(disk, entry)
    if isinstance(part, AtOnce) and (entry or not disk.mounts):
        trio.from_thread.check_cancelled()
        return part.listing(below)
    return Listing.of(await disk.names(entry))


async def first_names(disk: Disk, entry: Entry, most: int) -> tuple[list[tuple[str, Stat]], int]:
    """The first names in the directory at `entry` but the disk's own, with looks, and how many there are.

    A look at each of 100,000 names takes seconds, and Python's garbage collector long to go through them.

    Raises:
        OSError: as `Disk.names`.

    Checkpoint: always.
    """

    async def found(disk: Disk) -> tuple[list[tuple[str, Stat]], int]:
        part, below = located(disk, entry)
        if isinstance(part, AtOnce) and (entry or not disk.mounts):
            return part.first_names(below, most)
        named = [one for one in await disk.names(entry) if not is_own(one[0])]
        return named[:most], len(named)

    return await at_once(disk, found)


class AtOnce(RealDisk):
    """The same real disk for one worker thread: what is awaited of it has been done."""

    def __init__(self, disk: Disk) -> None:
        vars(self).update(vars(disk))
        self._of = disk
        self._root = self.kept_way = WalkedRoot(self._root.path, self._root.sync, self._root.seal)

    def now_ns(self) -> int:
        """What the disk's own clock says, which may be that of a class below `RealDisk`."""
        return self._of.now_ns()

    def _in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        trio.from_thread.check_cancelled()
        return _done(work)


async def _done(work: Callable[[], T]) -> T:  # noqa: ASYNC124  it is awaited in place of a way to a thread
    return work()


def _result(work: Coroutine[Any, Any, T], disks: Sequence[Disk]) -> T:
    """What a coroutine gives that waits for nothing; the ways that these disks kept for it are closed."""
    try:
        work.send(None)
        work.close()
    except StopIteration as end:
        given: T = end.value
        return given
    finally:
        for disk in disks:
            cast(AtOnce, disk).kept_way.let_go()
    raise InternalError("work at once had to wait")

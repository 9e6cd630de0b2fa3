"""The real disk, changed by one process at a time.

Rules.  Each change is made while this process holds one lock file, and it is held by no task for longer than the
change: it is taken, used and given back inside one worker thread, so neither a cancel nor a crash of the task can
leave it locked, and the system takes it back when the process ends.  Whoever waits for it holds no thread and can be
cancelled.  Reads do not wait: they see a file as it was before a change or after it.

Theory.  Tickets order the calls of everybody who shares a `Workspace`; two processes share none.  What they need is
that reading a file, making its new content and putting it in place are one step for all of them: then a change that
finds the file as it was not expected is refused, and none is lost.  Who comes first between processes is not decided
here, nor is it the same every time.

Limits.  It guards against processes that use it as well, and whose lock file is the same (on one machine, with one
state directory); nobody else is held off.  Changes of one disk are made one after the other, also those of different
files.  A change is one operation of the disk: a patch of several files is several.  Turns are not kept: who asks most
often is served most often.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from toolrt.errors import InputRefused, MissingExtra
from toolrt.workspace._real import RealDisk
from toolrt.workspace._recovery import state_directory

if TYPE_CHECKING:
    from filelock import FileLock

__all__ = ["GuardedDisk"]

T = TypeVar("T")

#: Seconds until a lock that somebody holds is tried again: first, and at most.  A change takes about a millisecond.
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05


class _HeldElsewhere(Exception):
    """Another process has the lock."""


class GuardedDisk(RealDisk):
    """The directory tree at `root`, changed by one process at a time.

    Give it to a `Workspace` in each process that works on the same files.

    Args:
        root: an existing directory.
        fsync: as of `RealDisk`.
        lock: the lock file, the same for all; its directory is made.  None: one in the user's state directory, as
            for the history of a workspace.

    Raises:
        MissingExtra: the ``edit`` extra is not installed.
        InputRefused: there is no directory at `root`, or no lock file can be there.

    Example::

        workspace = Workspace(GuardedDisk("path/to/repo"))
    """

    def __init__(
        self, root: str | os.PathLike[str], *, fsync: bool = False, lock: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__(root, fsync=fsync)
        self._lock_file = os.path.abspath(lock) if lock is not None else self._usual_lock_file()
        self._new_lock()  # the extra is missed now, or never
        try:
            os.makedirs(os.path.dirname(self._lock_file), exist_ok=True)
            os.close(os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise InputRefused(
                f"lock file {self._lock_file!r}",
                f"expected a file that can be written, got {os.strerror(error.errno or 0)!r}",
                "Name another one with lock=.",
            ) from None
        #: The tasks of this process wait in line here, rather than for the file.
        self._turn = trio.Lock()

    def _usual_lock_file(self) -> str:
        directory = state_directory(self, None)
        if directory is None:
            raise InputRefused(
                "the lock file's directory", "the user's state directory is inside the workspace", "Name it with lock=."
            )
        return os.path.join(directory, "guard.lock")

    def _new_lock(self) -> FileLock:
        try:
            from filelock import FileLock
        except ImportError:
            raise MissingExtra("a guard across processes", "edit") from None
        # Several threads take and give it back, each its own; and two disks of one process are two that must wait.
        return FileLock(self._lock_file, timeout=0, thread_local=False, is_singleton=False)

    async def _changed(self, work: Callable[[], T]) -> T:
        async with self._turn:
            pause = _FIRST_PAUSE
            while True:
                try:
                    return await self._in_thread(lambda: self._alone(work))
                except _HeldElsewhere:
                    await trio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)

    def _alone(self, work: Callable[[], T]) -> T:
        from filelock import Timeout

        lock = self._new_lock()
        try:
            lock.acquire()
        except Timeout:
            raise _HeldElsewhere from None
        try:
            return work()
        finally:
            lock.release()

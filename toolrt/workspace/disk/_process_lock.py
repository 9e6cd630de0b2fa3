"""Locks paths between processes that change the same files, in one file of the state directory.

Rules.  A path is one byte of the lock file.  A change locks its own paths exclusively and the directories above them
together with others.  So two changes meet where they touch one entry, or where one touches a directory above the other;
the roots of the two processes may differ.  A file with several names is locked by its number too.  Nothing waits here:
if another change holds a path, `LockHeld` is raised and the caller tries again.

Theory.  Reading a file, making its new content and putting it in place are one step for all processes that take turns.
So a change that finds another content than it expects is refused, and none is lost.  Open file description locks
(``F_OFD_SETLK``) belong to the open file: a process that opens and closes the lock file elsewhere does not lose them,
as it would POSIX locks, and threads of one process exclude each other.  The system takes them back when the process
ends. Locks are taken from the root down and never waited for, so they cannot deadlock.

Limits.  Only processes that find one lock file take turns: those of one user on one machine, with one state directory.
A directory that is mounted at two places counts as two.  Turns are not fair: a process that asks often may be served
more often.  Where the system has no such locks, flock(2) on the whole file replaces them, and changes of all files
exclude each other; where there is neither, or no private state directory, processes do not take turns.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)

#: What says that another process has a lock, and what says that there are no such locks.
_HELD = (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK)
_NONE = (errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class LockHeld(Exception):
    """Another process, or another change of this one, is at work there."""


class ProcessLock:
    """Locks between processes, kept in the first of `directories` that can hold the lock file."""

    def __init__(self, directories: Sequence[str]) -> None:
        self._files = [os.path.join(directory, "changes.lock") for directory in directories]

    @contextlib.contextmanager
    def held(self, alone: Iterable[str], together: Iterable[str] = ()) -> Iterator[None]:
        """Inside, no other change touches these; without a lock file it is entered all the same.

        Args:
            alone: absolute paths, or other names, that are changed.
            together: those that have to stay what they are.  The directories above all of them are added.

        Raises:
            LockHeld: one of them is locked; nothing is.
        """
        descriptor = self._opened()
        if descriptor is None:
            yield
            return
        try:
            own = dict.fromkeys(alone)
            shared = dict.fromkeys(above for path in own for above in _above(path))
            shared.update((above, None) for path in together for above in (*_above(path), path))
            _take(descriptor, [path for path in shared if path not in own], fcntl.F_RDLCK)
            _take(descriptor, list(own), fcntl.F_WRLCK)
            yield
        finally:
            # Said before it is closed: a child that was forked meanwhile has the open file, too.
            with contextlib.suppress(OSError):
                if _OFD is None:
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
                else:
                    fcntl.fcntl(descriptor, _OFD, _range(fcntl.F_UNLCK, 0, 0))
            os.close(descriptor)

    def _opened(self) -> int | None:
        """The lock file, open; None: there can be none."""
        for file in self._files:
            try:
                try:
                    return os.open(file, _FLAGS, 0o600)
                except FileNotFoundError:
                    os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
                    return os.open(file, _FLAGS, 0o600)
            except OSError:
                continue
        return None


#: The call that locks for an open file, where the system has it.
_OFD: int | None = getattr(fcntl, "F_OFD_SETLK", None)


def _take(descriptor: int, paths: Sequence[str], kind: int) -> None:
    """Lock these paths; all of the file where the system or its file system has no locks on parts of it."""
    for path in sorted(paths):
        if _OFD is None or not _taken(partial(fcntl.fcntl, descriptor, _OFD, _range(kind, _byte_of(path), 1))):
            _taken(partial(fcntl.flock, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB))
            return


def _taken(lock: Callable[[], object]) -> bool:
    """Whether there is such a lock, which is taken then."""
    try:
        lock()
    except OSError as error:
        if error.errno in _HELD:
            raise LockHeld from None
        if error.errno not in _NONE:
            raise
        return False
    return True


def _range(kind: int, start: int, length: int) -> bytes:
    """A ``struct flock``: from the start of the file; a length of 0 is all of it."""
    return struct.pack("@hhqqi4x", kind, os.SEEK_SET, start, length, 0)


def _above(path: str) -> Iterator[str]:
    """The directories above an absolute path, the root first; none of another name."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)


@functools.lru_cache(maxsize=4096)
def _byte_of(path: str) -> int:
    """The byte that stands for a path; spellings that a directory may fold are one."""
    folded = unicodedata.normalize("NFD", path).casefold().encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(folded, digest_size=7).digest(), "big")

"""Which index is asked: the one on the disk, or one in memory where that cannot be used.

Rules.  A damaged index is removed and made from the segments, once in a session.  One that cannot be used now (locked
by somebody else, no room for it, a directory that cannot be written) is left as it is, and the question is answered by
one that is made in memory from the same segments.  So only segments that cannot be read leave a question without an
answer.

Theory.  An index holds nothing that the segments do not say, so which of them answers makes no difference.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable
from typing import TypeVar

from toolrt.workspace.journal._sqlite import Index, index_in

__all__ = ["Catalogue"]

T = TypeVar("T")

#: What SQLite says (primary codes) where an index may be whole, and cannot be used now.
_LATER = frozenset(
    {
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY),
        *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
        *(sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOLFS),
    }
)

#: A kind of input or output error that means a file that was cut off.
_CUT_OFF = sqlite3.SQLITE_IOERR | 2 << 8

#: What a damaged index leads to, besides what SQLite says.
_NONSENSE = (ValueError, TypeError, KeyError)


class Catalogue:
    """The index of the segments in `directory`.  Not for use by two threads at once."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._index: Index | None = None
        #: Which file the index is: another one at its name was made by another process.
        self._file: tuple[int, int] | None = None
        self._rebuilt = False
        #: The one in memory, once it was needed.
        self._spare: Index | None = None

    def ask(self, question: Callable[[Index], T], *, alone: bool = False) -> T:
        """What the index says once it knows all that the segments do.

        Args:
            question: may be asked again where the first index turns out to be of no use.
            alone: whether to ask the index in memory, because what is asked of is not for others.

        Raises:
            OSError, sqlite3.Error, ValueError: the segments cannot be read.
        """
        while not alone:
            try:
                index = self._opened()
                index.absorb()
                return question(index)
            except (sqlite3.Error, OSError, *_NONSENSE) as error:
                damaged = _is_damage(error)
                if not damaged and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                    break
                self._close_index()
                if not damaged or self._rebuilt:
                    break
                self._rebuilt = True
                self._remove()
        if self._spare is None:
            self._spare = Index(self._directory, in_memory=True)
        self._spare.absorb()
        return question(self._spare)

    def _opened(self) -> Index:
        if self._index is None:
            self._file = _file_at(index_in(self._directory))
            self._index = Index(self._directory)
            self._file = self._file or _file_at(index_in(self._directory))
        return self._index

    def _remove(self) -> None:
        """The damaged index is gone, unless another process has made a new one meanwhile, or looks just now."""
        path = index_in(self._directory)
        with contextlib.suppress(OSError):
            above = os.open(self._directory, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(above, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _file_at(path) != self._file:
                    return
                for suffix in ("", "-wal", "-shm"):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path + suffix)
            finally:
                os.close(above)

    def _close_index(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    def forget(self) -> None:
        """Leave it all to the process that this one was forked from."""
        self._index = self._spare = None

    def close(self) -> None:
        """Let it go; who asks again opens it again."""
        self._close_index()
        if self._spare is not None:
            self._spare.close()
            self._spare = None


def _is_damage(error: Exception) -> bool:
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        return code == _CUT_OFF or code & 0xFF not in _LATER
    return isinstance(error, _NONSENSE)


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino

"""The disk port: what a workspace asks of a disk, and the values it is answered with.

Rules.  A *path* is an absolute POSIX path in the disk's own namespace; the synchronous operations take one, look,
and never open a file or write.  An *entry* is the parts of a path below the disk's root, none of them ``.``,
``..`` or a symbolic link; the asynchronous operations take one and reach it from the root, part by part, without
following a link anywhere.  So a name that was swapped for a link after it was looked up leads to an error
(``ELOOP``), never out of the root.

Theory.  Finding out what a name means and touching what it means are kept apart: the first is identity's
business and may be wrong by the time the second happens; the second cannot leave the root whatever the first said.

Limits.  An error is an `OSError` with the errno Linux gives for it; its text names an entry, never a path.
"""

from __future__ import annotations

import enum
import errno
import os
import stat
import unicodedata
from typing import Protocol, runtime_checkable

import attrs

__all__ = ["EXACT", "Disk", "Entry", "Folding", "Kind", "NotRegular", "Stat", "TooLarge", "failure", "parts_of"]

#: The parts of a path below a disk's root; empty is the root itself.
Entry = tuple[str, ...]

#: The longest name and the longest path that a disk takes, in bytes (Linux: NAME_MAX, and PATH_MAX without its NUL).
NAME_MAX = 255
PATH_MAX = 4095


class Kind(enum.Enum):
    """What stands behind a name."""

    #: A regular file: all that is ever opened.
    FILE = "a file"
    #: A directory.
    DIRECTORY = "a directory"
    #: A symbolic link, itself.
    SYMLINK = "a symbolic link"
    #: A named pipe; opening one may block.
    FIFO = "a named pipe"
    #: A socket.
    SOCKET = "a socket"
    #: A block or character device; opening one may do anything.
    DEVICE = "a device"

    @classmethod
    def of(cls, mode: int) -> Kind:
        """The kind that the file type bits of `mode` say."""
        kinds = {
            stat.S_IFREG: cls.FILE,
            stat.S_IFDIR: cls.DIRECTORY,
            stat.S_IFLNK: cls.SYMLINK,
            stat.S_IFIFO: cls.FIFO,
            stat.S_IFSOCK: cls.SOCKET,
        }
        return kinds.get(stat.S_IFMT(mode), cls.DEVICE)


@attrs.frozen
class Stat:
    """What a look at a name shows, without following it."""

    #: What it is.
    kind: Kind
    #: Permission bits, 0 to 0o7777.
    mode: int
    #: Bytes of content; of a link, of its target's text.
    size: int
    #: When the content last changed, in nanoseconds; the twin counts changes of the file instead.
    mtime_ns: int
    #: The file's number on its device: the same for all its hard links.
    inode: int
    #: The device's number.
    device: int
    #: How many names it has, 1 or more.
    links: int


@attrs.frozen
class Folding:
    """Which spellings of a name a directory takes for the same.

    A folding may take more spellings for the same than the directory does (then two files wait for each other
    although they need not), never fewer.  With both, this is canonical caseless matching (Unicode 15, D145).
    """

    #: ``README`` and ``readme`` are one name.
    case: bool = False
    #: Composed and decomposed letters are one name.
    unicode: bool = False

    def fold(self, name: str) -> str:
        """The one spelling that stands for all spellings of `name`; folding it again changes nothing."""
        if self.unicode:
            name = unicodedata.normalize("NFD", name)
        if self.case:
            name = name.casefold()
            if self.unicode:
                name = unicodedata.normalize("NFD", name)
        return name


#: Every spelling is a name of its own.
EXACT = Folding()


class TooLarge(OSError):
    """A file has more bytes than the reader wants; nothing was read.

    Attributes:
        size: its bytes.
        limit: how many were wanted at most.
    """

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(errno.EFBIG, f"{size} bytes where at most {limit} are read")


class NotRegular(OSError):
    """What stands behind the name is neither file nor directory; it was not opened.

    Attributes:
        kind: what it is.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        super().__init__(errno.EINVAL, f"{kind.value} where a regular file was expected")


def failure(number: int, entry: Entry) -> OSError:
    """The error `number` at `entry`; its text shows no path above the root."""
    return OSError(number, os.strerror(number), "/".join(entry) or ".")


def parts_of(path: str) -> Entry:
    """The parts of an absolute path that has no ``.`` or ``..``."""
    return tuple(part for part in path.split("/") if part)


@runtime_checkable
class Disk(Protocol):
    """A tree of files that a workspace works on: the real one (`RealDisk`) or the twin (`MemoryDisk`).

    Both answer alike, errno by errno; the contract tests are one module that runs on both.
    """

    @property
    def root(self) -> str:
        """The path of the directory all entries are below: absolute, and no link among its parts."""

    @property
    def home(self) -> str | None:
        """What ``~`` stands for, or None: then it stands for nothing."""

    def lstat(self, path: str) -> Stat:
        """What `path` is, links not followed; no directory on the way may be a link.

        Raises:
            OSError: ENOENT, ENOTDIR, EACCES, ENAMETOOLONG.

        Checkpoint: never.
        """

    def readlink(self, path: str) -> str:
        """The text of the symbolic link at `path`.

        Raises:
            OSError: as `lstat`; EINVAL when it is no link.

        Checkpoint: never.
        """

    def listdir(self, path: str) -> list[str]:
        """The names in the directory at `path`, sorted.

        Raises:
            OSError: as `lstat`; ENOTDIR when it is no directory.

        Checkpoint: never.
        """

    def folds(self, path: str) -> Folding:
        """Which spellings the directory at `path` takes for the same name; `EXACT` when it cannot be looked at.

        Checkpoint: never.
        """

    def peek(self, entry: Entry) -> bytes:
        """The content of the file at `entry`, read at once, for comparing a tree at rest.

        Raises:
            OSError: as `read`.

        Checkpoint: never; it blocks.
        """

    async def read(self, entry: Entry, limit: int) -> bytes:
        """The content of the regular file at `entry`, at most `limit` bytes.

        Raises:
            OSError: ENOENT, ENOTDIR, EISDIR, EACCES, EIO; ELOOP when a link stands anywhere on the way.
            TooLarge: it has more than `limit` bytes.
            NotRegular: it is a pipe, socket or device; it was not opened, so nothing blocked.

        Checkpoint: always.
        """

    async def replace(self, entry: Entry, content: bytes) -> None:
        """The file at `entry` has exactly `content`; its mode, or a new file's default, is kept.

        A file with one name is replaced as a whole: whoever reads it sees the old content or the new.  A file
        with several names is written in place, so that it stays one file.  A cancel before the last effect
        changes nothing; after it the call returns normally.  No temporary file is left in either case.

        Raises:
            OSError: as `read`; ENOENT when its directory is missing, ENOSPC when there is no room.  The file is
                as it was.
            NotRegular: as `read`.

        Checkpoint: always.
        """

    async def make_dirs(self, entry: Entry) -> None:
        """A directory stands at `entry` and at each part of the way; who finds one there is content.

        Raises:
            OSError: ENOTDIR when something else stands there, ELOOP when a link does; directories made before
                that stay.

        Checkpoint: always, once per directory.
        """

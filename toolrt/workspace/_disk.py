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
import functools
import os
import stat
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import attrs

__all__ = [
    "COPY",
    "EXACT",
    "OWN",
    "PARTIAL",
    "Change",
    "Changed",
    "Disk",
    "Entry",
    "Folding",
    "Kind",
    "NotRegular",
    "Revision",
    "Snapshot",
    "Stat",
    "TooLarge",
    "Unsynced",
    "failure",
    "is_own",
    "parts_of",
]

#: The parts of a path below a disk's root; empty is the root itself.
Entry = tuple[str, ...]

#: The longest name and the longest path that a disk takes, in bytes (Linux: NAME_MAX, and PATH_MAX without its NUL).
NAME_MAX = 255
PATH_MAX = 4095

#: Names of the disk's own begin with `OWN` and end with `PARTIAL` (of no use without its writer) or with `COPY` (a
#: recovery copy).
OWN = ".toolrt-"
PARTIAL = ".tmp"
COPY = ".undo"


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

    @staticmethod
    def of(mode: int) -> Kind:
        """The kind that the file type bits of `mode` say."""
        return KIND_OF_TYPE.get(mode & TYPE_BITS, DEVICE)


#: The bits of a mode that say the file type, and what they say; anything else is a device.
TYPE_BITS = stat.S_IFMT(0o177777)
DEVICE = Kind.DEVICE
KIND_OF_TYPE = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFDIR: Kind.DIRECTORY,
    stat.S_IFLNK: Kind.SYMLINK,
    stat.S_IFIFO: Kind.FIFO,
    stat.S_IFSOCK: Kind.SOCKET,
}


@attrs.frozen
class Stat:
    """What a look at a name shows, without following it."""

    #: What it is.
    kind: Kind
    #: Permission bits, 0 to 0o7777.
    mode: int
    #: Bytes of content; of a link, of its target's text.
    size: int
    #: When the content last changed, in nanoseconds of the clock that `Disk.now_ns` reads; of anything but a file,
    #: the twin says 0.
    mtime_ns: int
    #: The file's number on its device: the same for all its hard links.
    inode: int
    #: The device's number.
    device: int
    #: How many names it has, 1 or more.
    links: int


@attrs.frozen
class Snapshot:
    """A file as it was at one moment."""

    #: Every byte of it.
    content: bytes
    #: What a look showed at that moment; its size is the content's.
    stat: Stat


@attrs.frozen
class Revision:
    """What `Disk.revise` found, and what it left."""

    #: The file that was there; None: nothing was.
    before: Snapshot | None
    #: The file that is there now; `before` itself where nothing was changed.
    after: Snapshot | None


#: Makes a file's new content from what is there (None: nothing); None leaves the file as it is.
Change = Callable[[Snapshot | None], bytes | None]


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


class Changed(OSError):
    """Somebody else changed what stands at the name while it was being revised; it was left as they made it.

    Its errno is ESTALE.
    """

    def __init__(self) -> None:
        super().__init__(errno.ESTALE, "somebody else changed it meanwhile")


class Unsynced(OSError):
    """The change stands, but the disk failed to say that it would outlive a loss of power.

    Its errno is the one that the system gave (EIO).
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "changed, but not known to outlive a loss of power")


def failure(number: int, entry: Entry | None = None) -> OSError:
    """The error `number` at `entry`; its text shows no path above the root, and with None no path at all."""
    if entry is None:
        return OSError(number, os.strerror(number))
    return OSError(number, os.strerror(number), "/".join(entry) or ".")


def is_own(name: str) -> bool:
    """Whether `name` is one of the disk's own, which is there only while something is written, or after a crash."""
    return name.startswith(OWN) and name.endswith((PARTIAL, COPY))


@functools.lru_cache(maxsize=256)
def parts_of(path: str) -> Entry:
    """The parts of an absolute path that has no ``.`` or ``..``."""
    return tuple(part for part in path.split("/") if part)


#: The mounts of a disk that has none.
NO_MOUNTS: Mapping[str, str] = MappingProxyType({})


@runtime_checkable
class Disk(Protocol):
    """A tree of files that a workspace works on: the real one (`RealDisk`) or the twin (`MemoryDisk`).

    Both answer alike, errno by errno; the contract tests are one module that runs on both.
    """

    @property
    def root(self) -> str:
        """The path of the directory all entries are below: absolute, and no link among its parts."""

    @property
    def mounts(self) -> Mapping[str, str]:
        """The paths of directories elsewhere that stand at names of the root, by name; see `MountedDisk`."""

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

    @property
    def time_step_ns(self) -> int:
        """How coarse `Stat.mtime_ns` may be: two changes of one file nearer than this may show the same time."""

    def now_ns(self) -> int:
        """What the clock says that `Stat.mtime_ns` is taken from.

        Checkpoint: never.
        """

    def recover(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """What dead writers left is gone: a file that one was writing in place is whole again.

        Whoever writes holds a lock while he does, so what a living writer needs is left alone.  For the start of a
        program; who finds nothing to do has changed nothing.

        Args:
            directories: where to look, not below them; what is no directory is passed over.  None: in the whole tree.

        Returns: the names that were put back or taken away, below the root, sorted.

        Raises:
            OSError: something could not be put back or taken away; the next call finds it again.

        Checkpoint: never; it blocks.
        """

    async def look(self, entry: Entry) -> Stat:
        """What stands at `entry`, links not followed.

        Raises:
            OSError: ENOENT, ENOTDIR, EACCES, ENAMETOOLONG; ELOOP when a link stands on the way.

        Checkpoint: always.
        """

    async def names(self, entry: Entry) -> list[tuple[str, Stat]]:
        """The names in the directory at `entry`, sorted, and what stands at each.

        Raises:
            OSError: as `look`; ENOTDIR when it is no directory, ELOOP when it is a link.

        Checkpoint: always.
        """

    async def read(self, entry: Entry, limit: int) -> Snapshot:
        """The regular file at `entry`, at most `limit` bytes; content and look belong together.

        Raises:
            OSError: ENOENT, ENOTDIR, EISDIR, EACCES, EIO; ELOOP when a link stands anywhere on the way.
            TooLarge: it has more than `limit` bytes.
            NotRegular: it is a pipe, socket or device; it was not opened, so nothing blocked.
            Changed: it never stood still while it was read.

        Checkpoint: always.
        """

    async def revise(self, entry: Entry, limit: int, change: Change) -> Revision:
        """The file at `entry` has the content that `change` makes of what is there; or it is as it was.

        `change` runs once, where it may not await: in a worker thread on the real disk.  What it raises is raised.

        A file with one name is replaced as a whole: whoever reads it sees the old content or the new, after a crash
        too.  A file with several names, or of an owner it could not be given back to, is written in place, so that
        it stays one file; `recover` mends what a crash leaves of that.  Mode and owner are kept.  A cancel
        before the last effect changes nothing; after it the call returns normally.  No temporary file is left in
        either case.

        Args:
            limit: the most bytes that are read.

        Raises:
            OSError: as `read`, but for ENOENT, which means here that its directory is missing; EACCES also when the
                file itself may not be written; ENOSPC when there is no room.
            TooLarge, NotRegular: as `read`.
            Changed: what stands there just before the last effect is not what `change` was given.
            Unsynced: the change stands.

        Checkpoint: always.
        """

    async def make_dirs(self, entry: Entry) -> None:
        """A directory stands at `entry` and at each part of the way; who finds one there is content.

        Raises:
            OSError: ENOTDIR when something else stands there, ELOOP when a link does, EACCES, ENOSPC; directories
                made before that stay.

        Checkpoint: always, once per directory.
        """

    async def make_link(self, entry: Entry, text: str) -> None:
        """A symbolic link with this text stands at `entry`, where nothing stood; it need not lead anywhere.

        Raises:
            OSError: EEXIST when something stands there, ENOENT when its directory is missing or `text` is empty;
                ENOTDIR, ELOOP, EACCES, ENOSPC.
            Unsynced: the link stands.

        Checkpoint: always.
        """

    async def set_mode(self, entry: Entry, mode: int) -> None:
        """The file or directory at `entry` has these permission bits, `mode`.

        Raises:
            OSError: as `look`; ELOOP when it is a link, EACCES when it may not be read, EPERM when it is somebody
                else's, EBUSY when it is the root.
            NotRegular: it is a pipe, socket or device.
            Unsynced: it has them.

        Checkpoint: always.
        """

    async def remove(self, entry: Entry, expected: Stat | None = None) -> None:
        """Nothing stands at `entry`, where a file, a link, a special file or an empty directory stood.

        Of a link, or of a file with several names, only the name goes.

        Args:
            expected: what a look showed; None: whatever stands there goes.

        Raises:
            OSError: as `look`; ENOTEMPTY when it is a directory with names in it, EBUSY when it is the root, EPERM
                when the directory lets nobody but owners remove.
            Changed: a look shows something else than `expected`.
            Unsynced: the name is gone.

        Checkpoint: always.
        """

    async def remove_tree(self, entry: Entry) -> None:
        """Nothing stands at `entry`, whatever stood there; a directory goes with all that is in it.

        It is moved aside first, in one step, so at every moment it is all there or not there at all.  What the disk
        fails to delete after that stays aside, for `recover`.  Links are not followed.

        Raises:
            OSError: as `remove`, except ENOTEMPTY; EACCES and EPERM also when something inside may not be removed,
                EBUSY when another disk begins there, ENAMETOOLONG when it is more than 256 directories deep.  Nothing
                was removed.
            Unsynced: the name is gone.

        Checkpoint: always.
        """

    async def move(self, source: Entry, target: Entry) -> None:
        """What stood at `source` stands at `target`, links not followed.

        Raises:
            OSError: as `look` for either; EEXIST when something stands at `target`, unless that is `source` itself
                by another spelling; EINVAL when `target` is inside `source`; EBUSY when `source` is the root;
                EXDEV when they are on different devices.
            Unsynced: it was moved.

        Checkpoint: always.
        """

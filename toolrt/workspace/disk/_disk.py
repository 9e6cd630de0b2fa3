"""The disk port: the operations that a workspace needs of a disk, and the values that they return.

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
import functools
import stat
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import attrs

#: The parts of a path below a disk's root; empty is the root itself.
Entry = tuple[str, ...]

#: The longest name and the longest path that a disk takes, in bytes (Linux: NAME_MAX, and PATH_MAX without its NUL).
NAME_MAX = 255
PATH_MAX = 4095

#: How deep below the root a name may lead.  A claim on each directory of the way, each as long as its own depth, is
#: quadratic; no real tree is this deep.
DEEPEST = 256

#: Names of the disk's own begin with `OWN` and end with `PARTIAL` (of no use without its writer), with `COPY` (a
#: recovery copy) or with `KEPT` (a directory with what was removed and can be put back).
OWN = ".toolrt-"
PARTIAL = ".tmp"
COPY = ".undo"
KEPT = ".kept"

#: What is kept stands in its directory (its *box*) under this name.
BOXED = "it"


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
    #: When anything of it last changed, its names and mode too, by the same clock; no program can set it back.  Of
    #: anything but a file, the twin says 0.
    ctime_ns: int
    #: The file's number on its device: the same for all its hard links.
    inode: int
    #: The device's number.
    device: int
    #: How many names it has, 1 or more.
    links: int

    @property
    def changed_ns(self) -> int:
        """When it last changed in any way: a program that changes a file may set `mtime_ns` to what it was."""
        return max(self.mtime_ns, self.ctime_ns)


@attrs.frozen
class Survey:
    """What a look through a file, or a directory with all that is in it, showed."""

    #: What it is.
    kind: Kind
    #: Its permission bits.
    mode: int
    #: The SHA-256 of a file's content or of a link's text; of a directory one over the names, kinds, permission bits
    #: and digests of all that is in it.
    digest: bytes
    #: Bytes of all files in it.
    size: int
    #: The device and the number of the thing itself.
    number: tuple[int, int]


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


#: Decides from a look at a file with several names whether it is written in place: then all its names have the new
#: content.  Else this name gets a file of its own, and the others keep theirs.
InPlace = Callable[[Stat], bool]


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


def is_own(name: str) -> bool:
    """Whether `name` is reserved: it begins with ``.toolrt-`` and ends in ``.tmp``, ``.undo`` or ``.kept``.

    In any case of letters, because on a disk that folds them they are one name.  Walks do not show such a name and
    tools refuse it.
    """
    return name[:1] == "." and name[: len(OWN)].lower() == OWN and name.lower().endswith((PARTIAL, COPY, KEPT))


def is_boxed(entry: Entry | None) -> bool:
    """Whether `entry` is that of something that is kept aside, so that a removal can be taken back."""
    return entry is not None and len(entry) > 1 and entry[-1] == BOXED and is_box(entry[-2])


def is_box(name: str) -> bool:
    """Whether `name` is reserved for a directory that has what is kept aside."""
    return is_own(name) and name.endswith(KEPT)


def is_plain(entry: Entry) -> bool:
    """Whether all parts are names: not empty, not ``.`` or ``..``, without a slash or NUL."""
    return not any(part in ("", ".", "..") or "/" in part or "\0" in part for part in entry)


@functools.lru_cache(maxsize=256)
def parts_of(path: str) -> Entry:
    """The parts of an absolute path that has no ``.`` or ``..``."""
    return tuple(part for part in path.split("/") if part)


def path_below(root: str, entry: Entry) -> str:
    """The path of an entry below the directory at `root`."""
    return "/".join((root.rstrip("/"), *entry)) or "/"


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

    def names_of(self, stat: Stat) -> list[Entry]:
        """The names of the file that `stat` is a look at, as far as they were found below the root.

        The search is bounded (see `toolrt.workspace.disk._real_links`), and names of the disk's own do not count.
        Where fewer were found than there are, the others are outside, or not known.

        Checkpoint: never; it blocks.
        """

    @property
    def time_step_ns(self) -> int:
        """How coarse the times of a `Stat` may be: two changes of one file nearer than this may show the same time."""

    def now_ns(self) -> int:
        """What the clock says that the times of a `Stat` are taken from.

        Checkpoint: never.
        """

    def recover(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """What dead writers left is gone: a file that one was writing in place is whole again.

        A writer holds a lock while it writes, so what a living writer needs is left alone.  A name that looks like one
        of the disk's own but was not made by it is left alone, too: see `strangers`.  For the start of a program;
        where there is nothing to do nothing is changed.

        Args:
            directories: where to look, not below them; what is no directory is passed over.  None: in the whole tree.

        Returns: the names that were put back or taken away, below the root, sorted.

        Raises:
            OSError: something could not be put back or taken away; the next call finds it again.

        Checkpoint: never; it blocks.
        """

    def strangers(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """The names like the disk's own (`is_own`) that it did not make, below the root, sorted; they are left alone.

        A repository may bring such names along, and a program that had another private state directory leaves some
        when it dies.  A person may delete them.

        Args:
            directories: where to look, as for `recover`.

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

    async def read_part(self, entry: Entry, start: int, size: int) -> Snapshot:
        """At most `size` bytes of the regular file at `entry`, from byte `start` on; none behind its end.

        The look is of the whole file.  Fewer bytes than `size` say nothing of the file's end; none do.

        Raises:
            OSError, NotRegular: as `read`, but a file that changes meanwhile is read as it is found.

        Checkpoint: always.
        """

    async def revise(self, entry: Entry, limit: int, change: Change, in_place: InPlace | None = None) -> Revision:
        """The file at `entry` has the content that `change` makes of what is there; or it is as it was.

        `change` runs once, where it may not await: in a worker thread on the real disk.  What it raises is raised.

        A file with one name is replaced as a whole: a reader sees the old content or the new, after a crash too.
        One with several names is written in place where `in_place` says so, and all of them have the new content;
        else this name has a file of its own then.  One with one name, of an owner it could not be given back to, is
        written in place as well; `recover` mends what a crash leaves of that.  Mode and owner are kept.  A cancel
        before the last effect changes nothing; after it the call returns normally.  No temporary file is left in
        either case.

        Args:
            limit: the most bytes that are read.
            in_place: is asked about a file with several names, after `change`; None: it is written in place if all
                its names are found below the root.

        Raises:
            OSError: as `read`, but for ENOENT, which means here that its directory is missing; EACCES also when the
                file itself may not be written; ENOSPC when there is no room.
            TooLarge, NotRegular: as `read`.
            Changed: what stands there just before the last effect is not what `change` was given.
            Inseparable: it has names elsewhere, and cannot be given a file of its own.
            Unsynced: the change stands.

        Checkpoint: always.
        """

    async def make_dirs(self, entry: Entry) -> None:
        """A directory stands at `entry` and at each part of the way; one that is there already stays.

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
            OSError: as `look`; ELOOP when it is a link, EACCES when it may not be read, EPERM when it belongs to
                another user, EBUSY when it is the root.
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
                when the directory lets only owners remove.
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

    def kept_for(self, entry: Entry) -> Entry:
        """A new entry, for `keep`, on the file system that `entry` is on.

        Raises:
            OSError: as `lstat`.

        Checkpoint: never.
        """

    async def survey(self, entry: Entry, *, contents: bool = True) -> Survey:
        """What stands at `entry`, with all that is in it, which could be removed; links are not followed.

        Args:
            contents: whether files are read; else the digest says nothing, and the size is what the file system says.

        Raises:
            OSError: as `remove_tree`, and as `read` for the files in it.

        Checkpoint: always.
        """

    async def keep(self, entry: Entry, kept: Entry, begin: Callable[[Survey], None]) -> None:
        """Nothing stands at `entry`; what stood there is kept at `kept`, and no other name leads to its files.

        `begin` is given what is kept once nothing can fail any more but the last step.  It may run in a worker thread;
        what it raises is raised.  A cancel before that changes nothing.

        Args:
            kept: an entry that `kept_for` gave.

        Raises:
            OSError: as `survey`; EACCES or ENOSPC also where it cannot be kept there, EXDEV where that is another file
                system.  Nothing was removed.
            Unsynced: it is kept.

        Checkpoint: always.
        """

    async def move(self, source: Entry, target: Entry) -> None:
        """What stood at `source` stands at `target`, links not followed.

        Where `source` is what is kept aside (an entry that `kept_for` gave), nothing is left of what kept it.

        Raises:
            OSError: as `look` for either; EEXIST when something stands at `target`, unless that is `source` itself
                by another spelling; EINVAL when `target` is inside `source`; EBUSY when `source` is the root;
                EXDEV when they are on different devices.
            Unsynced: it was moved.

        Checkpoint: always.
        """

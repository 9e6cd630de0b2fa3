"""Reaches an entry of the real disk without following links, and reads it.

Rules.  One directory after the other is opened from the root, each by its name inside the one before and without
following a link.  Directories are opened to pass through (O_PATH where there is such a thing), which asks no more than
the right to search them.  A file is opened only after a look showed that it is one.
"""

from __future__ import annotations

import errno
import functools
import operator
import os
import stat
from types import TracebackType

import attrs

from toolrt.workspace.disk._disk import DEVICE, KIND_OF_TYPE, TYPE_BITS, Entry, Kind, Snapshot, Stat, is_plain
from toolrt.workspace.disk._disk_errors import (
    Changed,
    Inseparable,
    NotRegular,
    TooLarge,
    Unsynced,
    failure,
    require_below_root,
)
from toolrt.workspace.disk._seal import Seal


def _flags(*names: str) -> int:
    """The flags of these names; what a system lacks is left out, for `RealDisk` refuses it anyway."""
    return functools.reduce(operator.or_, (getattr(os, name, 0) for name in names), 0)


#: To pass through a directory, and to list or sync it.
_PASSED = _flags("O_PATH", "O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
#: To know one file from another that may be given its number.
HELD = _flags("O_PATH", "O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
LISTED = _flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
#: O_NONBLOCK: what was a file may have become a pipe since it was looked at.
READ_ONLY = _flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
READ_WRITE = _flags("O_RDWR", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
TEMPORARY = _flags("O_RDWR", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")

#: How often a file that changes while it is read is read again.  One that a log is written to stands still for
#: longer than a read takes; one that never does is refused.
_READS = 10


@attrs.frozen
class FileImage:
    """A file as it was read, with all that the system said of it."""

    snapshot: Snapshot
    found: os.stat_result
    #: Its extended attributes, access control lists among them, but those that do not outlive a write; if asked for.
    attributes: tuple[tuple[str, bytes], ...] = ()


class shown_as:  # noqa: N801  a context manager; as a class it costs a fifth of one made of a generator
    """Errors inside say `entry` where the system's own text may say a path."""

    __slots__ = ("_entry",)

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, OSError):
            raise shown(error, self._entry) from None


def shown(error: OSError, entry: Entry) -> OSError:
    """`error`, saying `entry` where the system's own text may say a path."""
    if isinstance(error, TooLarge | NotRegular | Changed | Inseparable | Unsynced):
        return error
    return failure(error.errno or 0, entry)


class opened:  # noqa: N801  as `shown_as`
    """An open descriptor; it is closed when the block ends.

    Args:
        entry: what errors inside say where the system's own text may say a path; None: they are as they are.
    """

    __slots__ = ("_descriptor", "_entry")

    def __init__(self, descriptor: int, entry: Entry | None = None) -> None:
        self._descriptor = descriptor
        self._entry = entry

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        os.close(self._descriptor)
        if self._entry is not None and isinstance(error, OSError):
            raise shown(error, self._entry) from None


@attrs.frozen
class RealRoot:
    """The directory that a real disk works below, as the operations in its worker threads use it."""

    #: Its path, without a link in it.
    path: str
    #: Whether each change is on the disk before it counts.
    sync: bool
    #: Signs the names that operations make, and knows them again.
    seal: Seal

    def directory(self, entry: Entry) -> opened:
        """The directory at `entry`, open to pass through, reached without following a link."""
        return opened(self.way(entry))

    def listed(self, entry: Entry) -> opened:
        """The directory at `entry`, open to list it, reached without following a link."""
        with self.directory(entry[:-1]) as above:
            return opened(open_below(entry[-1] if entry else ".", above, LISTED))

    def above(self, entry: Entry, refused: int) -> opened:
        """The directory that `entry` is in, which errors inside say; the root itself is refused with that number."""
        require_below_root(entry, refused)
        return opened(self.way(entry[:-1]), entry)

    def way(self, entry: Entry) -> int:
        """As `directory`, to be closed by the caller."""
        if not is_plain(entry):
            raise failure(errno.EINVAL)
        depth = 0
        try:
            here = os.open(self.path, _PASSED)
            for name in entry:
                depth += 1
                try:
                    below = open_below(name, here)
                finally:
                    os.close(here)
                here = below
        except OSError as error:
            raise shown(error, entry[:depth]) from None
        return here

    def settle(self, *directories: int, below: str = ".") -> None:
        """What was renamed, made or removed in these open directories outlives a loss of power, if that is wanted.

        Args:
            below: the name of a directory in each of them, which is meant then.
        """
        if self.sync:
            try:
                for directory in directories:
                    sync_directory(directory, below)
            except OSError as error:
                raise Unsynced(error.errno or 0) from None


#: Ways of more directories are not kept, and none are where a process may open no more files.
_KEPT_DEEPEST = 32


@attrs.frozen
class WalkedRoot(RealRoot):
    """The same for one thread that goes through a tree: the directories on the way to the last entry stay open.

    One that is renamed meanwhile is gone through as the one that was entered.
    """

    _names: list[str] = attrs.field(factory=list, init=False, eq=False)
    #: From this descriptor on there are few left for what is done there.
    _highest: int = attrs.field(factory=lambda: os.sysconf("SC_OPEN_MAX") - 8, init=False, eq=False)
    #: The root, and what each of the names leads to.
    _open: list[int] = attrs.field(factory=list, init=False, eq=False)

    def way(self, entry: Entry) -> int:
        if len(entry) > _KEPT_DEEPEST or not is_plain(entry):
            return super().way(entry)
        pairs = enumerate(zip(entry, self._names, strict=False))
        same = next((depth for depth, (name, kept) in pairs if name != kept), min(len(entry), len(self._names)))
        self.let_go(same)
        try:
            if not self._open:
                self._open.append(os.open(self.path, _PASSED))
            for name in entry[same:]:
                self._open.append(open_below(name, self._open[-1]))
                self._names.append(name)
                if self._open[-1] >= self._highest:
                    self.let_go()
                    return super().way(entry)
            return os.dup(self._open[-1])
        except OSError as error:
            raise shown(error, entry[: len(self._open)]) from None

    def let_go(self, depth: int = -1) -> None:
        """Close what is open below so many names; -1: all."""
        while len(self._open) > depth + 1:
            os.close(self._open.pop())
        del self._names[max(depth, 0) :]


def sync_directory(above: int, below: str = ".") -> None:
    """The names in the open directory, or in the one `below` it, are on the disk."""
    with opened(os.open(below, LISTED, dir_fd=above)) as descriptor:
        os.fsync(descriptor)


def open_below(name: str, above: int, flags: int = _PASSED) -> int:
    """The directory `name` in the open directory `above`."""
    try:
        return os.open(name, flags, dir_fd=above)
    except NotADirectoryError:
        # Linux says ENOTDIR for a link that must not be followed to a directory; the port says ELOOP.
        if stat.S_ISLNK(os.lstat(name, dir_fd=above).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def stat_of(found: os.stat_result) -> Stat:
    """What the port says of what the system says."""
    mode = found.st_mode
    return Stat(
        KIND_OF_TYPE.get(mode & TYPE_BITS, DEVICE),
        mode & 0o7777,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_ino,
        found.st_dev,
        found.st_nlink,
    )


def same(first: os.stat_result, second: os.stat_result) -> bool:
    """Whether two looks showed one file, unchanged between them.

    The time of status change tells what the time of content change may hide: it cannot be set back.
    """
    return (
        first.st_dev == second.st_dev
        and first.st_ino == second.st_ino
        and first.st_size == second.st_size
        and first.st_mtime_ns == second.st_mtime_ns
        and first.st_ctime_ns == second.st_ctime_ns
    )


def require_regular(found: os.stat_result, entry: Entry) -> None:
    """Refuse what is no regular file."""
    if stat.S_ISREG(found.st_mode):
        return
    kind = Kind.of(found.st_mode)
    if kind is Kind.SYMLINK:
        raise failure(errno.ELOOP, entry)
    if kind is Kind.DIRECTORY:
        raise failure(errno.EISDIR, entry)
    raise NotRegular(kind)


def seen_or_none(above: int, entry: Entry, limit: int, *, attributes: bool = False) -> FileImage | None:
    """The file that `entry` names in the open directory `above`, read; None: nothing stands there.

    Args:
        attributes: whether its extended attributes are read, too.
    """
    try:
        found = os.lstat(entry[-1], dir_fd=above)
    except FileNotFoundError:
        return None
    require_regular(found, entry)
    with opened(os.open(entry[-1], READ_ONLY, dir_fd=above)) as descriptor:
        for _ in range(_READS):
            found = os.fstat(descriptor)
            require_regular(found, entry)
            if found.st_size > limit:
                raise TooLarge(found.st_size, limit)
            content = read_all(descriptor, limit + 1, found.st_size)
            if len(content) > limit:
                raise TooLarge(len(content), limit)
            others = _attributes_of(descriptor) if attributes else ()
            if same(found, os.fstat(descriptor)):
                return FileImage(Snapshot(content, stat_of(found)), found, others)
            os.lseek(descriptor, 0, os.SEEK_SET)
    raise Changed


def part_seen(root: RealRoot, entry: Entry, start: int, size: int) -> Snapshot:
    """At most `size` bytes, from `start` on, of the file at `entry`."""
    with root.above(entry, errno.EISDIR) as above:
        require_regular(os.lstat(entry[-1], dir_fd=above), entry)
        with opened(os.open(entry[-1], READ_ONLY, dir_fd=above)) as descriptor:
            found = os.fstat(descriptor)
            require_regular(found, entry)
            return Snapshot(os.pread(descriptor, size, start), stat_of(found))


def _attributes_of(descriptor: int) -> tuple[tuple[str, bytes], ...]:
    """See `FileImage.attributes`; none where the system or the file system has no such thing."""
    if not hasattr(os, "listxattr"):
        return ()
    try:
        names = os.listxattr(descriptor)
        if not names:
            return ()
        return tuple((name, os.getxattr(descriptor, name)) for name in names if name not in _ENDED_BY_A_WRITE)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return ()
        raise


#: A write takes a program's capabilities away, and a signature is valid for the signed content only.
_ENDED_BY_A_WRITE = frozenset(("security.capability", "security.ima", "security.evm"))


def read_all(descriptor: int, most: int, size: int = 0) -> bytes:
    """What can be read from here on, at most `most` bytes; where a look showed `size`, it ends after so many."""
    at_once = min(max((size or 1 << 20) + 1, 1 << 16), 1 << 20)
    blocks: list[bytes] = []
    while most > 0 and (block := os.read(descriptor, min(most, at_once))):
        blocks.append(block)
        most, size = most - len(block), size - len(block)
        if not size:
            break
    return b"".join(blocks)

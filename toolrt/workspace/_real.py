"""The real disk, for POSIX systems.

Rules.  Nothing that may block runs in Trio's thread, except the looks (`lstat`, `readlink`, `listdir`, `folds`)
that identity needs synchronously.  What runs in a worker thread is never abandoned: a cancel that comes while a
file is being replaced waits for the end of it, and the caller is told what really happened.

Theory.  An entry is reached by opening one directory after the other from the root, each by its name inside the
one before and with O_NOFOLLOW.  No path is ever resolved twice, so there is no moment at which a directory
swapped for a link could lead elsewhere.  A regular file is looked at before it is opened (opening a pipe wakes
its writer, opening a device may do anything) and looked at again once it is open, because it may have been
swapped in between; O_NONBLOCK keeps that case from blocking too.

Limits.  Content, mode and, where the user may, ownership survive a replace; extended attributes and ACLs do not.
A file with several names is written in place: a crash of the machine in the middle may leave it half written.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import operator
import os
import stat
import string
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from typing import TypeVar

import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.workspace._disk import EXACT, Entry, Folding, Kind, NotRegular, Stat, TooLarge, failure

__all__ = ["RealDisk"]

T = TypeVar("T")


def _flags(*names: str) -> int:
    """The flags of these names; what a system lacks is left out, for `RealDisk` refuses it anyway."""
    return functools.reduce(operator.or_, (getattr(os, name, 0) for name in names), 0)


_DIRECTORY = _flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_LOOK_ONLY = _flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
_IN_PLACE = _flags("O_RDWR", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
_TEMPORARY = _flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")

#: How many worker threads of one disk may run at once: enough to keep a disk busy, few enough to share a machine.
_THREADS = 16

#: How many of a directory's names are tried to find out how it folds.
_NAMES_TRIED = 64

#: How many directories' foldings are remembered; all are forgotten when there are more.
_FOLDINGS_KEPT = 4096


class RealDisk:
    """The directory tree at `root`, as the operating system has it.

    Args:
        root: an existing directory; links in it are resolved once, now.

    Raises:
        InputRefused: there is no directory at `root`.
        DefinitionRefused: the system cannot open files relative to a directory (Windows).
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        if os.open not in os.supports_dir_fd:
            raise DefinitionRefused("RealDisk", "a POSIX system; use MemoryDisk here", sys.platform)
        given = os.fspath(root)
        try:
            self._root = os.path.realpath(given, strict=True)
            is_directory = stat.S_ISDIR(os.stat(self._root).st_mode)
        except (OSError, ValueError) as error:
            why = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
            raise InputRefused(
                f"workspace root {given!r}", f"expected a directory, got none ({why})", "Create it first."
            ) from None
        if not is_directory:
            raise InputRefused(
                f"workspace root {given!r}", "expected a directory, got a file", "Name the directory it is in."
            )
        home = os.path.expanduser("~")
        self._home = home if home.startswith("/") else None
        self._foldings: dict[str, Folding] = {}
        self._limiter = trio.CapacityLimiter(_THREADS)

    @property
    def root(self) -> str:
        """The path of the directory all entries are below."""
        return self._root

    @property
    def home(self) -> str | None:
        """The user's home directory when the disk was made, or None."""
        return self._home

    def lstat(self, path: str) -> Stat:
        """What `path` is, links not followed."""
        try:
            found = os.lstat(path)
        except UnicodeEncodeError:
            raise OSError(errno.EILSEQ, "a name that this system's encoding cannot hold") from None
        return Stat(
            kind=Kind.of(found.st_mode),
            mode=stat.S_IMODE(found.st_mode),
            size=found.st_size,
            mtime_ns=found.st_mtime_ns,
            inode=found.st_ino,
            device=found.st_dev,
            links=found.st_nlink,
        )

    def readlink(self, path: str) -> str:
        """The text of the symbolic link at `path`."""
        return os.readlink(path)

    def listdir(self, path: str) -> list[str]:
        """The names in the directory at `path`, sorted."""
        return sorted(os.listdir(path))

    def folds(self, path: str) -> Folding:
        """Which spellings the directory at `path` takes for the same name.

        A name that is there is looked up under another spelling; where no name has another spelling, the
        directory above answers (a new directory folds as the one it is made in, on every system that folds).
        """
        known = self._foldings.get(path)
        if known is not None:
            return known
        case, composed = _tried(path)
        above = EXACT
        if (case is None or composed is None) and path != "/":
            above = self.folds(os.path.dirname(path))
        folding = Folding(
            case=above.case if case is None else case,
            # Where letters fold by case they fold by composition too (ext4 and APFS both do), and APFS
            # composes even where case counts; to assume too much is safe.
            unicode=(above.unicode or bool(case) or sys.platform == "darwin") if composed is None else composed,
        )
        # An empty directory is asked again: its first name may tell better than the directory above.
        if case is not None:
            if len(self._foldings) >= _FOLDINGS_KEPT:
                self._foldings.clear()
            self._foldings[path] = folding
        return folding

    def peek(self, entry: Entry) -> bytes:
        """The content of the file at `entry`, read at once."""
        return self._read(entry, sys.maxsize - 1)

    async def read(self, entry: Entry, limit: int) -> bytes:
        """The content of the regular file at `entry`, at most `limit` bytes; see `Disk.read`."""
        return await self._in_thread(lambda: self._read(entry, limit))

    async def replace(self, entry: Entry, content: bytes) -> None:
        """The file at `entry` has exactly `content`; see `Disk.replace`."""
        await self._in_thread(lambda: self._replace(entry, content))

    async def make_dirs(self, entry: Entry) -> None:
        """A directory stands at `entry`; see `Disk.make_dirs`."""
        await self._in_thread(lambda: self._make_dirs(entry))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if probe.threads_inline:
            await trio.lowlevel.checkpoint()
            return work()
        return await trio.to_thread.run_sync(work, abandon_on_cancel=False, limiter=self._limiter)

    @contextlib.contextmanager
    def _directory(self, entry: Entry) -> Iterator[int]:
        """The open directory at `entry`, reached without following a link."""
        descriptor = self._open_way(entry)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_way(self, entry: Entry) -> int:
        with _shown_as(()):
            here = os.open(self._root, _DIRECTORY)
        for depth, name in enumerate(entry):
            try:
                with _shown_as(entry[: depth + 1]):
                    below = _open_directory(name, here)
            finally:
                os.close(here)
            here = below
        return here

    def _read(self, entry: Entry, limit: int) -> bytes:
        if not entry:
            raise failure(errno.EISDIR, entry)
        with self._directory(entry[:-1]) as directory, _shown_as(entry):
            _require_regular(os.lstat(entry[-1], dir_fd=directory), entry)
            descriptor = os.open(entry[-1], _LOOK_ONLY, dir_fd=directory)
            try:
                found = os.fstat(descriptor)
                _require_regular(found, entry)
                if found.st_size > limit:
                    raise TooLarge(found.st_size, limit)
                content = _read_all(descriptor, limit + 1)
            finally:
                os.close(descriptor)
        if len(content) > limit:
            raise TooLarge(len(content), limit)
        return content

    def _replace(self, entry: Entry, content: bytes) -> None:
        if not entry:
            raise failure(errno.EISDIR, entry)
        with self._directory(entry[:-1]) as directory, _shown_as(entry):
            try:
                before = os.lstat(entry[-1], dir_fd=directory)
            except FileNotFoundError:
                before = None
            if before is not None:
                _require_regular(before, entry)
                if before.st_nlink > 1:
                    _write_in_place(entry, directory, content)
                    return
            _swap_in(entry[-1], directory, content, before)

    def _make_dirs(self, entry: Entry) -> None:
        for depth in range(1, len(entry) + 1):
            made = entry[:depth]
            with self._directory(made[:-1]) as directory, _shown_as(made):
                try:
                    os.mkdir(made[-1], dir_fd=directory)
                except FileExistsError:
                    os.close(_open_directory(made[-1], directory))


@contextlib.contextmanager
def _shown_as(entry: Entry) -> Iterator[None]:
    """Errors inside say `entry` where the system's own text may say a path."""
    try:
        yield
    except (TooLarge, NotRegular):
        raise
    except OSError as error:
        raise failure(error.errno or 0, entry) from None


def _open_directory(name: str, above: int) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=above)
    except NotADirectoryError:
        # Linux says ENOTDIR for a link that must not be followed to a directory; the port says ELOOP.
        if stat.S_ISLNK(os.lstat(name, dir_fd=above).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def _require_regular(found: os.stat_result, entry: Entry) -> None:
    kind = Kind.of(found.st_mode)
    if kind is Kind.SYMLINK:
        raise failure(errno.ELOOP, entry)
    if kind is Kind.DIRECTORY:
        raise failure(errno.EISDIR, entry)
    if kind is not Kind.FILE:
        raise NotRegular(kind)


def _read_all(descriptor: int, most: int) -> bytes:
    blocks: list[bytes] = []
    while most > 0 and (block := os.read(descriptor, min(most, 1 << 20))):
        blocks.append(block)
        most -= len(block)
    return b"".join(blocks)


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


#: Makes temporary names of this process differ; the process and thread make them differ from others'.
_serial = itertools.count()


def _swap_in(name: str, directory: int, content: bytes, before: os.stat_result | None) -> None:
    """Write a temporary file beside `name` and move it there; remove it whatever else happens."""
    temporary = f".toolrt-{os.getpid()}-{threading.get_ident()}-{next(_serial)}.tmp"
    descriptor = os.open(temporary, _TEMPORARY, 0o666 if before is None else 0o600, dir_fd=directory)
    try:
        try:
            _write_all(descriptor, content)
            if before is not None:
                made = os.fstat(descriptor)
                if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
                    # Who may not give a file away keeps the new one; the mode follows in any case.
                    with contextlib.suppress(PermissionError):
                        os.fchown(descriptor, before.st_uid, before.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
        finally:
            os.close(descriptor)
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise


def _write_in_place(entry: Entry, directory: int, content: bytes) -> None:
    """Give a file with several names new content; on an error put the old content back."""
    descriptor = os.open(entry[-1], _IN_PLACE, dir_fd=directory)
    try:
        found = os.fstat(descriptor)
        _require_regular(found, entry)
        old = _read_all(descriptor, found.st_size)
        try:
            _overwrite(descriptor, content)
        except OSError:
            _overwrite(descriptor, old)
            raise
    finally:
        os.close(descriptor)


def _overwrite(descriptor: int, content: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    _write_all(descriptor, content)
    os.ftruncate(descriptor, len(content))


#: ASCII letters only: that they fold is what all systems that fold at all agree on.
_OTHER_CASE = str.maketrans(
    string.ascii_lowercase + string.ascii_uppercase, string.ascii_uppercase + string.ascii_lowercase
)


def _tried(path: str) -> tuple[bool | None, bool | None]:
    """Whether names in `path` fold by case and by composition; None where no name there can tell."""
    try:
        with os.scandir(path) as found:
            names = [entry.name for entry in itertools.islice(found, _NAMES_TRIED)]
    except OSError:
        return None, None
    case: bool | None = None
    composed: bool | None = None
    for name in names:
        if case is None and (other := name.translate(_OTHER_CASE)) != name:
            case = _is_same(path, name, other, names)
        if composed is None and (other := _recomposed(name)) != name:
            composed = _is_same(path, name, other, names)
        if case is not None and composed is not None:
            break
    return case, composed


def _recomposed(name: str) -> str:
    decomposed = unicodedata.normalize("NFD", name)
    return decomposed if decomposed != name else unicodedata.normalize("NFC", name)


def _is_same(path: str, name: str, other: str, names: list[str]) -> bool | None:
    """Whether `other` finds the entry `name`; None when that cannot be told."""
    if other in names:
        return False
    try:
        first = os.lstat(f"{path}/{name}")
    except OSError:
        return None
    try:
        second = os.lstat(f"{path}/{other}")
    except FileNotFoundError:
        return False
    except OSError:
        return None
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)

"""The real disk, for POSIX systems.

Rules.  Nothing that may block runs in Trio's thread, except the looks (`lstat`, `readlink`, `listdir`, `folds`)
that identity needs synchronously.  What runs in a worker thread is never abandoned: a cancel that comes while a
file is being replaced waits for the end of it, and the call returns or raises what really happened.

Theory.  An entry is reached by opening one directory after the other from the root, each by its name inside the
one before and with O_NOFOLLOW (`_real_walk`).  No path is ever resolved twice, so there is no moment at which a
directory swapped for a link could lead elsewhere.  A regular file is looked at before it is opened (opening a pipe
wakes its writer, opening a device may do anything) and looked at again once it is open, because it may have been
swapped in between; O_NONBLOCK keeps that case from blocking too.

Limits.  See `_real_write` for what survives a change and what a crash leaves, and `_real_recover` for how that is
mended.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import attrs
import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.workspace.disk._disk import (
    EXACT,
    NO_MOUNTS,
    Change,
    Entry,
    Folding,
    InPlace,
    Revision,
    Snapshot,
    Stat,
    Survey,
    is_boxed,
    is_own,
    path_below,
)
from toolrt.workspace.disk._disk_errors import DiskBusy, failure
from toolrt.workspace.disk._listings import FileStamp, Listing, Listings, in_order
from toolrt.workspace.disk._process_lock import LockHeld, ProcessLock
from toolrt.workspace.disk._real_fold import tried
from toolrt.workspace.disk._real_keep import boxes, give_back, keep, kept_for, survey
from toolrt.workspace.disk._real_links import names_of
from toolrt.workspace.disk._real_recover import recover, strangers
from toolrt.workspace.disk._real_remove import remove, remove_tree
from toolrt.workspace.disk._real_walk import (
    LISTED,
    RealRoot,
    WalkedRoot,
    opened,
    part_seen,
    seen_or_none,
    shown_as,
    stat_of,
)
from toolrt.workspace.disk._real_write import make_dirs, make_link, move, revise, set_mode
from toolrt.workspace.disk._seal import Seal, private_directories
from toolrt.workspace.disk._workers import DiskThreads, check_cancelled

T = TypeVar("T")


#: How many worker threads of one disk may run at once: enough to keep a disk busy, few enough to share a machine.
_THREADS = 16

#: How many directories' foldings are remembered; all are forgotten when there are more.
_FOLDINGS_KEPT = 4096

_TIME_STEP_NS = 2_000_000_000

#: Seconds until a change is tried again that another process is in the way of: first, and at most.  A change takes
#: about a millisecond.
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05

#: Seconds after which a change is given up where its call has no earlier deadline: a process that was stopped in the
#: middle of its own change goes on holding the lock.
_LONGEST_WAIT = 30.0


class RealDisk:
    """The directory tree at `root`, as the operating system has it.

    Args:
        root: an existing directory; links in it are resolved once, now.
        fsync: whether each change is on the disk, file and directory, before its call returns: then
            it outlives a loss of power, and takes some milliseconds.

    Raises:
        InputRefused: there is no directory at `root`.
        DefinitionRefused: the system cannot open files relative to a directory (Windows).
    """

    def __init__(self, root: str | os.PathLike[str], *, fsync: bool = False) -> None:
        if os.open not in os.supports_dir_fd:
            raise DefinitionRefused("RealDisk", "a POSIX system; use MemoryDisk here", sys.platform)
        given = os.fspath(root)
        if not given:
            # An unset variable, most likely; to realpath it is the current directory.
            remedy = "Name it; . is the current directory."
            raise InputRefused("workspace root ''", "expected a directory, got an empty name", remedy)
        try:
            found = os.path.realpath(given, strict=True)
            is_directory = stat.S_ISDIR(os.stat(found).st_mode)
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
        self._listings = Listings()
        #: Files that were looked into, as they were then: why they are not searched, or "" for text; a search adds and
        #: asks.
        self.looked_into: dict[FileStamp, str] = {}
        self._root = RealRoot(found, fsync, Seal(private_directories([found])))
        self.trust(self._root.seal)
        self._workers = DiskThreads(_THREADS, eager=fsync)

    @property
    def root(self) -> str:
        """The path of the directory all entries are below."""
        return self._root.path

    @property
    def mounts(self) -> Mapping[str, str]:
        """None: it has one root."""
        return NO_MOUNTS

    @property
    def fsync(self) -> bool:
        """Whether each change is on the disk before its call returns."""
        return self._root.sync

    @property
    def home(self) -> str | None:
        """The user's home directory when the disk was made, or None."""
        return self._home

    def lstat(self, path: str) -> Stat:
        """What `path` is, links not followed."""
        try:
            return stat_of(os.lstat(path))
        except (OSError, UnicodeEncodeError) as error:
            raise _pathless(error) from None

    def readlink(self, path: str) -> str:
        """The text of the symbolic link at `path`."""
        try:
            return os.readlink(path)
        except (OSError, UnicodeEncodeError) as error:
            raise _pathless(error) from None

    def listdir(self, path: str) -> list[str]:
        """The names in the directory at `path`, sorted."""
        try:
            with opened(os.open(path, LISTED)) as listed:
                return sorted(os.listdir(listed))
        except (OSError, UnicodeEncodeError) as error:
            raise _pathless(error) from None

    def folds(self, path: str) -> Folding:
        """Which spellings the directory at `path` takes for the same name.

        A name that is there is looked up under another spelling; where no name has another spelling, the
        directory above answers (a new directory folds as the one it is made in, on every system that folds).
        """
        known = self._foldings.get(path)
        if known is not None:
            return known
        case, composed = tried(path)
        above = EXACT
        if (case is None or composed is None) and path != "/":
            above = self.folds(os.path.dirname(path))
        folding = Folding(
            case=above.case if case is None else case,
            # Where letters fold by case they fold by composition too (ext4 and APFS both do), and APFS
            # composes even where case counts; to assume too much is safe.
            unicode=(above.unicode or bool(case) or sys.platform == "darwin") if composed is None else composed,
        )
        if folding == EXACT:
            folding = EXACT  # the one object, which identity looks for before it asks for a fold
        # An empty directory is asked again: its first name may tell better than the directory above.
        if case is not None:
            if len(self._foldings) >= _FOLDINGS_KEPT:
                self._foldings.clear()
            self._foldings[path] = folding
        return folding

    @property
    def time_step_ns(self) -> int:
        """Two seconds: FAT's, the coarsest that a Linux or macOS file system has."""
        return _TIME_STEP_NS

    def now_ns(self) -> int:
        """What the system's clock says, which file times are taken from."""
        return time.time_ns()

    def peek(self, entry: Entry) -> bytes:
        """The content of the file at `entry`, read at once."""
        return self._read(entry, sys.maxsize - 1).content

    def recover(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """What dead writers left is gone; see `Disk.recover`."""
        return recover(self._root, directories)

    def strangers(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """Names that look like the disk's own and were not made by it; see `Disk.strangers`."""
        return strangers(self._root, directories)

    @property
    def seal(self) -> Seal:
        """What signs the names that this disk makes, and knows them again."""
        return self._root.seal

    def trust(self, seal: Seal) -> None:
        """Only names signed by `seal` are the disk's own from now on; a workspace gives that of its state directory.

        Processes that change the same files take turns by a lock file there.
        """
        self._root = attrs.evolve(self._root, seal=seal)
        self._lock = ProcessLock(seal.directories)

    def names_of(self, stat: Stat) -> list[Entry]:
        """The names of a file that were found below the root; see `Disk.names_of`."""
        return names_of(self._root, stat)

    async def look(self, entry: Entry) -> Stat:
        """What stands at `entry`; see `Disk.look`."""
        return await self._in_thread(lambda: self._look(entry))

    async def names(self, entry: Entry) -> list[tuple[str, Stat]]:
        """The names in the directory at `entry`; see `Disk.names`."""
        return await self._in_thread(lambda: self._names(entry))

    async def read(self, entry: Entry, limit: int) -> Snapshot:
        """The regular file at `entry`; see `Disk.read`."""
        return await self._in_thread(lambda: self._read(entry, limit))

    async def read_part(self, entry: Entry, start: int, size: int) -> Snapshot:
        """A part of the regular file at `entry`; see `Disk.read_part`."""
        return await self._in_thread(lambda: part_seen(self._root, entry, start, size))

    async def revise(self, entry: Entry, limit: int, change: Change, in_place: InPlace | None = None) -> Revision:
        """The file at `entry` has what `change` makes of it; see `Disk.revise`."""
        return await self._changed(lambda: revise(self._root, entry, limit, change, in_place), entry)

    async def make_dirs(self, entry: Entry) -> None:
        """A directory stands at `entry`; see `Disk.make_dirs`."""
        await self._changed(lambda: make_dirs(self._root, entry), together=entry)

    async def make_link(self, entry: Entry, text: str) -> None:
        """A symbolic link stands at `entry`; see `Disk.make_link`."""
        await self._changed(lambda: make_link(self._root, entry, text), entry)

    async def set_mode(self, entry: Entry, mode: int) -> None:
        """The file or directory at `entry` has these permission bits; see `Disk.set_mode`."""
        await self._changed(lambda: set_mode(self._root, entry, mode), entry)

    async def remove(self, entry: Entry, expected: Stat | None = None) -> None:
        """Nothing stands at `entry`; see `Disk.remove`."""
        await self._changed(lambda: remove(self._root, entry, expected), entry)

    async def remove_tree(self, entry: Entry) -> None:
        """Nothing stands at `entry`, whatever did; see `Disk.remove_tree`."""
        await self._changed(lambda: remove_tree(self._root, entry), entry)

    def kept_for(self, entry: Entry) -> Entry:
        """A new entry for what is to be kept; see `Disk.kept_for`."""
        try:
            return kept_for(self._root, entry)
        except OSError as error:
            raise _pathless(error) from None

    def boxes(self) -> list[Entry]:
        """What this workspace's history may have kept aside at the root, for cleaning up.  It blocks."""
        return boxes(self._root)

    async def survey(self, entry: Entry, *, contents: bool = True) -> Survey:
        """What stands at `entry` with all that is in it; see `Disk.survey`."""
        return await self._in_thread(lambda: survey(self._root, entry, contents))

    async def keep(self, entry: Entry, kept: Entry, begin: Callable[[Survey], None]) -> None:
        """What stood at `entry` is kept at `kept`; see `Disk.keep`."""
        await self._changed(lambda: keep(self._root, entry, kept, begin), entry, kept)

    async def move(self, source: Entry, target: Entry) -> None:
        """What stood at `source` stands at `target`; see `Disk.move`."""
        work = give_back if is_boxed(source) else move
        await self._changed(lambda: work(self._root, source, target), source, target)

    async def _changed(self, work: Callable[[], T], *alone: Entry, together: Entry | None = None) -> T:
        """Do what changes these entries while no other toolrt process changes them.

        The lock is taken, used and given back inside one worker thread, so no cancel leaves it taken.  Between two
        tries no thread is held, and the caller may be cancelled.
        """
        began, pause = trio.current_time(), _FIRST_PAUSE
        while True:
            try:
                return await self._in_thread(lambda: self._alone(work, alone, together))
            except LockHeld:
                if trio.current_time() - began > _LONGEST_WAIT:
                    raise DiskBusy from None
                await trio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _alone(self, work: Callable[[], T], alone: Sequence[Entry], together: Entry | None) -> T:
        paths = [path_below(self._root.path, entry) for entry in alone]
        for path in paths[:]:
            with contextlib.suppress(OSError, ValueError):
                found = os.lstat(path)
                if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
                    paths.append(f"file {found.st_dev} {found.st_ino}")
        with self._lock.held(paths, () if together is None else (path_below(self._root.path, together),)):
            return work()

    def _in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        return _inline(work) if probe.threads_inline else self._workers.run(work)

    def _look(self, entry: Entry) -> Stat:
        with self._root.directory(entry[:-1]) as above, shown_as(entry):
            return stat_of(os.lstat(entry[-1], dir_fd=above) if entry else os.fstat(above))

    def _names(self, entry: Entry) -> list[tuple[str, Stat]]:
        with shown_as(entry), self._root.listed(entry) as here:
            return _looks(in_order(os.listdir(here)), here)

    def first_names(self, entry: Entry, most: int) -> tuple[list[tuple[str, Stat]], int]:
        """As `Disk.names` the first of them but the disk's own, and how many there are; for a worker thread.

        Args:
            entry: the directory.
            most: so many names.

        Checkpoint: never; it blocks.
        """
        with shown_as(entry), self._root.listed(entry) as here:
            names = in_order([name for name in os.listdir(here) if not is_own(name)])
            found = _looks(names[:most], here)
            return found, len(found) + len(names[most:])

    def listing(self, entry: Entry) -> Listing:
        """What is in the directory at `entry`, by name and kind; for a worker thread.

        Raises:
            OSError: as `Disk.names`.

        Checkpoint: never; it blocks.
        """
        known = self._listings.find(entry, path_below(self._root.path, entry))
        if known is not None:
            return known
        with self._root.listed(entry) as descriptor, shown_as(entry):
            return self._listings.listed(entry, descriptor, self.now_ns() - self.time_step_ns)

    def stamps(self, base: Entry, names: Iterable[Entry]) -> dict[Entry, FileStamp]:
        """What says that the files at these names below `base` are as they were; for a worker thread.

        Checkpoint: never; it blocks.
        """
        found: dict[Entry, FileStamp] = {}
        groups: dict[Entry, list[Entry]] = {}
        for one in names:
            groups.setdefault(one[:-1], []).append(one)
        root = WalkedRoot(self._root.path, self._root.sync, self._root.seal)
        try:
            for above, group in groups.items():
                check_cancelled()
                with contextlib.suppress(OSError), root.directory((*base, *above)) as here:
                    for one in group:
                        try:
                            seen = os.lstat(one[-1], dir_fd=here)
                        except FileNotFoundError:
                            continue
                        found[one] = seen.st_size, seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns
        finally:
            root.let_go()
        return found

    def _read(self, entry: Entry, limit: int) -> Snapshot:
        with self._root.above(entry, errno.EISDIR) as above:
            seen = seen_or_none(above, entry, limit)
            if seen is None:
                raise failure(errno.ENOENT, entry)
            return seen.snapshot


def _pathless(error: OSError | UnicodeEncodeError) -> OSError:
    """The same error, that says no path."""
    if isinstance(error, UnicodeEncodeError):
        return OSError(errno.EILSEQ, "a name that this system's encoding cannot hold")
    return OSError(error.errno, os.strerror(error.errno or 0))


def _looks(names: Iterable[str], listed: int) -> list[tuple[str, Stat]]:
    return [(name, stat_of(found)) for name in names if (found := _found(name, listed))]


def _found(name: str, listed: int) -> os.stat_result | None:
    try:
        return os.lstat(name, dir_fd=listed)
    except FileNotFoundError:
        return None  # gone since it was listed


async def _inline(work: Callable[[], T]) -> T:
    """Do it here, as one step of a simulation."""
    await trio.lowlevel.checkpoint()
    return work()

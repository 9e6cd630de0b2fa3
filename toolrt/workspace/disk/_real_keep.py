"""Keeps removed entries of the real disk aside, so that they can be put back whole.

Rules.  What is removed is renamed into a *box*: a directory with a signed name of the disk's own, on the same file
system.  Nothing is copied, with one exception: a file with several names is copied first, because a program that
writes it by another name would change what is kept.  Everything that can fail is done before the rename; where it
fails nothing was removed.  A box has a ``.gitignore`` and an ``.ignore`` that leave all of it out.

Theory.  One rename is one step, so a crash leaves the thing at its place or in its box, and history, which was told
before, finds out which.  The digest over all of it says later whether it is still what was removed.

Limits.  Extended attributes of a file with several names are not copied.  Between the look and the rename another
program may change what is removed: it is in the box then, but does not fit the digest, so it is not put back.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable

from toolrt.workspace.disk._disk import BOXED, KEPT, OWN, Entry, Kind, Survey, is_boxed
from toolrt.workspace.disk._disk_errors import Changed, failure, require_below_root
from toolrt.workspace.disk._real_remove import delete_tree, require_removable
from toolrt.workspace.disk._real_walk import (
    LISTED,
    READ_ONLY,
    TEMPORARY,
    RealRoot,
    open_below,
    opened,
    require_regular,
    shown_as,
)
from toolrt.workspace.disk._real_write import locked, rename_new, write_all
from toolrt.workspace.disk._workers import check_cancelled

#: What a box has beside the thing: files that leave all of it out for git and for ripgrep.
IGNORING = (".gitignore", ".ignore")

#: The copies of files with several names, until they have taken the place of those in the thing.
_OWN = "own"

#: Bytes that are read at once.
_CHUNK = 1024 * 1024


def kept_for(root: RealRoot, entry: Entry) -> Entry:
    """See `Disk.kept_for`."""
    with root.above(entry, errno.EBUSY) as above:
        device = os.fstat(above).st_dev
    for depth in range(len(entry)):
        with root.directory(entry[:depth]) as area, shown_as(entry):
            found = os.fstat(area)
        if found.st_dev == device:
            return (*entry[:depth], root.seal.name(OWN, KEPT, found.st_ino, root.seal.place), BOXED)
    raise failure(errno.EXDEV, entry)


def boxes(root: RealRoot) -> list[Entry]:
    """What is kept in boxes at the root that a disk with its seal made, and no living writer holds."""
    found: list[Entry] = []
    with root.listed(()) as above:
        number = os.fstat(above).st_ino
        for name in sorted(os.listdir(above)):
            if not name.endswith(KEPT) or not root.seal.made(name, OWN, KEPT, number, root.seal.place):
                continue
            with contextlib.suppress(OSError), opened(open_below(name, above, LISTED)) as box:
                if locked(box):
                    found.append((name, BOXED))
    return found


def survey(root: RealRoot, entry: Entry, contents: bool) -> Survey:
    """See `Disk.survey`."""
    with root.above(entry, errno.EBUSY) as above:
        if is_boxed(entry):
            _settle(above)
        return _SurveyWalk(contents).survey(above, entry[-1], len(entry))


def keep(root: RealRoot, entry: Entry, kept: Entry, begin: Callable[[Survey], None]) -> None:
    """See `Disk.keep`."""
    require_below_root(entry, errno.EBUSY)
    with root.directory(entry[:-1]) as above, root.directory(kept[:-2]) as area, shown_as(entry):
        looking = _SurveyWalk()
        surveyed = looking.survey(above, entry[-1], len(entry))
        os.mkdir(kept[-2], 0o700, dir_fd=area)
        box = open_below(kept[-2], area, LISTED)
        try:
            locked(box)
            if os.fstat(box).st_dev != surveyed.number[0]:
                raise failure(errno.EXDEV)
            for name in IGNORING:
                _write_new(box, name, b"*\n")
            for names in looking.shared:
                _copied(above, (entry[-1], *names), box, (_OWN, *names), root.sync)
            root.settle(box)
            check_cancelled()
            begin(surveyed)
            now = os.lstat(entry[-1], dir_fd=above)
            if (now.st_dev, now.st_ino) != surveyed.number:
                raise Changed
            rename_new(entry[-1], above, kept[-1], box)
        except BaseException:
            with contextlib.suppress(OSError):
                delete_tree(box)
                os.rmdir(kept[-2], dir_fd=area)
            raise
        else:
            # Where this fails it is done when the box is looked at next.
            with contextlib.suppress(OSError):
                _settle(box)
        finally:
            os.close(box)
        root.settle(area, above)


def give_back(root: RealRoot, kept: Entry, entry: Entry) -> None:
    """See `Disk.move`: what is kept at `kept` stands at `entry`."""
    with root.directory(kept[:-2]) as area, root.directory(kept[:-1]) as box, root.above(entry, errno.EEXIST) as above:
        _settle(box)
        rename_new(kept[-1], box, entry[-1], above)
        with contextlib.suppress(OSError):
            for name in IGNORING:
                os.unlink(name, dir_fd=box)
            os.rmdir(kept[-2], dir_fd=area)
        root.settle(above, area)


class _SurveyWalk:
    """One look through all that stands at a name."""

    def __init__(self, contents: bool = True) -> None:
        self._contents = contents
        self._size = 0
        #: The files with several names, by the names that lead to them from the thing.
        self.shared: list[Entry] = []

    def survey(self, above: int, name: str, depth: int) -> Survey:
        """What stands there, after everything in it was found removable."""
        found = os.lstat(name, dir_fd=above)
        if stat.S_ISDIR(found.st_mode):
            with opened(open_below(name, above, LISTED)) as tree:
                require_removable(tree, depth)
        elif not os.access(".", os.W_OK | os.X_OK, dir_fd=above, effective_ids=True):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        digest = self._digest(above, name, ())
        kind = Kind.of(found.st_mode)
        return Survey(kind, stat.S_IMODE(found.st_mode), digest, self._size, (found.st_dev, found.st_ino))

    def _digest(self, above: int, name: str, names: Entry) -> bytes:
        check_cancelled()
        found = os.lstat(name, dir_fd=above)
        kind = Kind.of(found.st_mode)
        if kind is Kind.SYMLINK:
            return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=above))).digest()
        if kind is Kind.FILE:
            if found.st_nlink > 1:
                self.shared.append(names)
            return self._digest_of_file(above, name)
        if kind is not Kind.DIRECTORY:
            return hashlib.sha256(kind.name.encode()).digest()
        parts = []
        with opened(open_below(name, above, LISTED)) as tree:
            for below in os.listdir(tree):
                mode = os.lstat(below, dir_fd=tree).st_mode
                parts.append(
                    (os.fsencode(below), Kind.of(mode), mode & 0o7777, self._digest(tree, below, (*names, below)))
                )
        return tree_digest(parts)

    def _digest_of_file(self, above: int, name: str) -> bytes:
        made = hashlib.sha256()
        with opened(os.open(name, READ_ONLY, dir_fd=above)) as descriptor:
            found = os.fstat(descriptor)
            require_regular(found, (name,))
            if not self._contents:
                self._size += found.st_size
                return b""
            while chunk := os.read(descriptor, _CHUNK):
                made.update(chunk)
                self._size += len(chunk)
                check_cancelled()
        return made.digest()


def tree_digest(parts: list[tuple[bytes, Kind, int, bytes]]) -> bytes:
    """The digest of a directory, made of the name, kind, permission bits and digest of each thing in it."""
    made = hashlib.sha256(b"directory")
    for name, kind, mode, digest in sorted(parts, key=lambda part: part[0]):
        mode = 0o777 if kind is Kind.SYMLINK else mode
        made.update(b"%d:%s%s %o " % (len(name), name, kind.name.encode(), mode))
        made.update(digest)
    return made.digest()


def _write_new(above: int, name: str, content: bytes) -> None:
    with opened(os.open(name, TEMPORARY, 0o600, dir_fd=above)) as descriptor:
        os.write(descriptor, content)


def _copied(above: int, source: Entry, box: int, target: Entry, sync: bool) -> None:
    """Copy a file, with owner, permission bits and times, as a file of its own; directories on the way are made."""
    with contextlib.ExitStack() as opened:

        def way(here: int, names: Entry, make: bool) -> int:
            for name in names:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=here)
                here = open_below(name, here, LISTED)
                opened.callback(os.close, here)
            return here

        old = os.open(source[-1], READ_ONLY, dir_fd=way(above, source[:-1], False))
        opened.callback(os.close, old)
        found = os.fstat(old)
        require_regular(found, source)
        new = os.open(target[-1], TEMPORARY, 0o600, dir_fd=way(box, target[:-1], True))
        opened.callback(os.close, new)
        while chunk := os.read(old, _CHUNK):
            write_all(new, chunk)
            check_cancelled()
        with contextlib.suppress(PermissionError):
            os.fchown(new, found.st_uid, found.st_gid)
        os.fchmod(new, stat.S_IMODE(found.st_mode))
        os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns))
        if sync:
            os.fsync(new)


def _settle(box: int) -> None:
    """The copies have taken the place of the files with several names."""
    try:
        found = os.lstat(_OWN, dir_fd=box)
    except FileNotFoundError:
        return
    _settle_one(box, _OWN, found.st_mode, box, BOXED)


def _settle_one(above: int, name: str, mode: int, there: int, target: str) -> None:
    if not stat.S_ISDIR(mode):
        os.rename(name, target, src_dir_fd=above, dst_dir_fd=there)
        return
    with opened(open_below(name, above, LISTED)) as copies, opened(open_below(target, there, LISTED)) as things:
        for below in os.listdir(copies):
            _settle_one(copies, below, os.lstat(below, dir_fd=copies).st_mode, things, below)
    os.rmdir(name, dir_fd=above)

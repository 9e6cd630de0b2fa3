"""Changes an entry of the real disk.

Rules.  New content is first written under a name of the disk's own, which its writer keeps locked as long as it lives,
and comes to its place by one rename.  So a crash leaves the old content or the new, and beside it at most a file that
`recover` recognises as a dead writer's.  No change by another program is replaced: a new name is made only where there
is none, in one step; an old file is looked at again just before.

A rename would part a file with several names into two.  That is done if one of its names stands outside the root, or
was not found: what is outside must not change.  A file whose names are all inside is written in place.  So is a file
with one name that a rename would take from its owner, or whose extended attributes this process may not set.  In place
means behind a recovery copy, which holds the old and the new content and gets its name (``.undo``) only when it is
whole: until then the file is untouched, and from then on it can be mended.

To replace an old file its name is exchanged with the new one's, and the file that came out is looked at: if another
program saved after the last look, its save is put back, and the change is refused.

Limits.  A program that has the old file open and writes to it after that look loses what it writes.  Where names
cannot be exchanged (neither renameat2 nor renameatx_np, or a file system without it) there is a moment, some
microseconds, between the last look and the rename, in which another program's save is lost; without an exclusive
rename there is one when a directory is moved.  A file that is written in place has such a moment, too.  A process that
is killed while it puts another program's save back leaves that save under a name of the disk's own.  Locks are
flock(2)'s: where a file system has none, files of dead writers stay.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable

from toolrt.workspace.disk._disk import COPY, OWN, PARTIAL, Change, Entry, InPlace, Revision, Snapshot, Stat
from toolrt.workspace.disk._disk_errors import Changed, Inseparable, Unsynced, failure, require_below_root
from toolrt.workspace.disk._real_links import names_of
from toolrt.workspace.disk._real_walk import (
    HELD,
    LISTED,
    READ_ONLY,
    READ_WRITE,
    TEMPORARY,
    FileImage,
    RealRoot,
    open_below,
    opened,
    read_all,
    require_regular,
    same,
    seen_or_none,
    shown,
    shown_as,
    stat_of,
    sync_directory,
)
from toolrt.workspace.disk._seal import Seal
from toolrt.workspace.disk._workers import check_cancelled

#: The bytes of a recovery copy before the contents: a block, so that these stay aligned.
COPY_HEAD = 4096

#: What flock says where a file system has no locks.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


#: How often a new file is made anew because another program has locked it meanwhile.
_TRIES = 10


def revise(root: RealRoot, entry: Entry, limit: int, change: Change, in_place: InPlace | None) -> Revision:
    """See `Disk.revise`."""
    require_below_root(entry, errno.EISDIR)
    with root.directory(entry[:-1]) as above:
        try:
            seen = seen_or_none(above, entry, limit, attributes=True)
        except OSError as error:
            raise shown(error, entry) from None
        content = change(None if seen is None else seen.snapshot)
        before = None if seen is None else seen.snapshot
        if content is None:
            return Revision(before, before)

        def last_look() -> None:
            _require_there(root, entry[:-1], above)
            if seen is not None:
                _require_same(above, entry[-1], seen)
            check_cancelled()

        try:
            if seen is not None:
                _require_writable(above, entry[-1])
            several = seen is not None and seen.found.st_nlink > 1
            if seen is not None and several and _stays_one(root, seen.snapshot.stat, in_place):
                after = _written_in_place(root, above, entry, content, seen, last_look)
            else:
                try:
                    after = _swapped_in(root, above, entry[-1], content, seen, last_look)
                except _OwnerNotKept:
                    assert seen is not None
                    if several:
                        raise Inseparable from None
                    after = _written_in_place(root, above, entry, content, seen, last_look)
        except OSError as error:
            raise shown(error, entry) from None
        return Revision(before, Snapshot(content, stat_of(after)))


def _stays_one(root: RealRoot, stat: Stat, in_place: InPlace | None) -> bool:
    """Whether a file with several names is to be written in place."""
    return len(names_of(root, stat)) >= stat.links if in_place is None else in_place(stat)


class _OwnerNotKept(Exception):
    """A replacement could not be given the file's owner, or its extended attributes."""


def _require_writable(above: int, name: str) -> None:
    """Refuse a file that may not be written, though its directory would let it be replaced."""
    if not os.access(name, os.W_OK, dir_fd=above, effective_ids=True, follow_symlinks=False):
        os.lstat(name, dir_fd=above)
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


class _Temporary:
    """A new file of the disk's own, locked; it is removed when the block ends in an error."""

    __slots__ = ("_above", "_descriptor", "_name")

    def __init__(self, above: int, mode: int, seal: Seal) -> None:
        self._above = above
        number = os.fstat(above).st_ino
        for _ in range(_TRIES):
            self._name = seal.name(OWN, PARTIAL, number)
            self._descriptor = os.open(self._name, TEMPORARY, mode, dir_fd=above)
            try:
                if locked(self._descriptor) and os.fstat(self._descriptor).st_nlink:
                    return
            except BaseException:
                self._leave(remove=True)
                raise
            # A start of another process took it for a dead writer's, or another program locks what is new.
            self._leave(remove=True)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def __enter__(self) -> tuple[str, int]:
        return self._name, self._descriptor

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._leave(remove=kind is not None)

    def _leave(self, *, remove: bool) -> None:
        if remove:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._above)
        os.close(self._descriptor)


def locked(descriptor: int) -> bool:
    """Lock the open file or directory until it is closed, where its file system has locks; never waits.

    Returns: False where another program holds a lock on it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def copy_head(seal: Seal, copy: int, name: str, inode: int, old: bytes, new: bytes) -> bytes:
    """The first block of a recovery copy: what it is a copy of, and a signature over that and over the copy itself.

    Args:
        copy: the open copy.
        name: the file that is written in place, in the copy's own directory; and `inode`, its number.
    """
    contents = hashlib.sha256(old)
    contents.update(new)
    said = {"name": name, "inode": inode, "old": len(old), "new": len(new), "contents": contents.hexdigest()}
    text = json.dumps(said)
    signature = seal.sign("copy", os.fstat(copy).st_ino, text)
    return f"{signature} {text}".encode().ljust(COPY_HEAD - 1) + b"\n"


def _swapped_in(
    root: RealRoot, above: int, name: str, content: bytes, seen: FileImage | None, last_look: Callable[[], None]
) -> os.stat_result:
    """Write `content` beside `name` and move it there."""
    with _Temporary(above, 0o666 if seen is None else 0o600, root.seal) as (temporary, descriptor):
        if seen is not None:
            _give(descriptor, seen.found)
        write_all(descriptor, content)
        if seen is not None:
            os.fchmod(descriptor, stat.S_IMODE(seen.found.st_mode))
            _give_attributes(descriptor, seen)
        if root.sync:
            os.fsync(descriptor)
        # From here on nothing may fail but the rename itself.
        after = os.fstat(descriptor)
        last_look()
        if seen is None:
            try:
                rename_new(temporary, above, name, above)
            except FileExistsError:
                raise Changed from None
        else:
            _replaced(temporary, descriptor, above, name, seen)
    root.settle(above)
    return after


def _replaced(temporary: str, descriptor: int, above: int, name: str, seen: FileImage) -> None:
    """Put the new file, which is open, in the place of the one that was seen, and take that away.

    The two names are exchanged, so what stood there is not lost before it was looked at.  Where it is another
    program's save it goes back, and the change is refused.  What then comes out is the new file, or a later save: that
    goes back in turn.
    """
    try:
        if not _exchanged(temporary, above, name):
            os.replace(temporary, name, src_dir_fd=above, dst_dir_fd=above)
            return
    except FileNotFoundError:
        raise Changed from None
    failed: OSError | None = None
    try:
        if _is_as_seen(above, temporary, seen):
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=above)
            return
    except FileNotFoundError:
        return  # the start of another process took it for what a dead writer left
    except OSError as error:
        failed = error
    with contextlib.ExitStack() as stack:
        put = descriptor
        while True:
            # What is put back is held open, so that no later save is given its number.
            back = os.open(temporary, HELD, dir_fd=above)
            stack.callback(os.close, back)
            try:
                _exchanged(temporary, above, name)
            except OSError:
                os.replace(temporary, name, src_dir_fd=above, dst_dir_fd=above)
                break
            if os.path.samestat(os.fstat(put), os.lstat(temporary, dir_fd=above)):
                break
            put = back
    raise Changed if failed is None else failed


def _is_as_seen(above: int, name: str, seen: FileImage) -> bool:
    """Whether that file is the one that was seen, unchanged.

    A rename changes ctime, and on a union of file systems the number too: so contents are compared.
    """
    found = os.lstat(name, dir_fd=above)
    if _shape(found) != _shape(seen.found):
        return False
    with opened(os.open(name, READ_ONLY, dir_fd=above)) as descriptor:
        content = read_all(descriptor, len(seen.snapshot.content) + 1)
        return content == seen.snapshot.content and _shape(os.fstat(descriptor)) == _shape(seen.found)


def _shape(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_mtime_ns


def _give(descriptor: int, owner: os.stat_result) -> None:
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (owner.st_uid, owner.st_gid):
        try:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EINVAL):
                raise _OwnerNotKept from None
            raise


def _give_attributes(descriptor: int, seen: FileImage) -> None:
    for name, value in seen.attributes:
        try:
            os.setxattr(descriptor, name, value)
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EACCES, errno.ENOTSUP):
                raise _OwnerNotKept from None
            raise


def _require_there(root: RealRoot, entry: Entry, above: int) -> None:
    """Refuse a directory that was moved since it was opened: it may be outside the root by now."""
    with root.directory(entry) as now:
        if not os.path.samestat(os.fstat(now), os.fstat(above)):
            raise Changed


def _require_same(above: int, name: str, seen: FileImage) -> None:
    try:
        unchanged = same(seen.found, os.lstat(name, dir_fd=above))
    except FileNotFoundError:
        unchanged = False
    if not unchanged:
        raise Changed


def _written_in_place(
    root: RealRoot, above: int, entry: Entry, content: bytes, seen: FileImage, last_look: Callable[[], None]
) -> os.stat_result:
    """Give a file new content behind a recovery copy; on an error put the old content back."""
    old = seen.snapshot.content
    with contextlib.ExitStack() as stack:
        target = os.open(entry[-1], READ_WRITE, dir_fd=above)
        stack.callback(os.close, target)
        require_regular(os.fstat(target), entry)
        copy, descriptor = stack.enter_context(_Temporary(above, 0o600, root.seal))
        write_all(descriptor, copy_head(root.seal, descriptor, entry[-1], seen.found.st_ino, old, content))
        write_all(descriptor, old)
        write_all(descriptor, content)
        if root.sync:
            os.fsync(descriptor)
        last_look()
        if not same(seen.found, os.fstat(target)):
            raise Changed
        whole = copy.removesuffix(PARTIAL) + COPY
        os.rename(copy, whole, src_dir_fd=above, dst_dir_fd=above)
        try:
            if root.sync:
                sync_directory(above)
            overwrite(target, content)
            if stat.S_IMODE(os.fstat(target).st_mode) != stat.S_IMODE(seen.found.st_mode):
                # Writing takes the set-user bit away; only its owner can give it back.
                with contextlib.suppress(PermissionError):
                    os.fchmod(target, stat.S_IMODE(seen.found.st_mode))
            if root.sync:
                os.fsync(target)
            after = os.fstat(target)
            os.unlink(whole, dir_fd=above)
        except BaseException:
            # Where this fails too, the copy stays for `recover`.
            overwrite(target, old)
            if root.sync:
                os.fsync(target)
            os.unlink(whole, dir_fd=above)
            raise
    root.settle(above)
    return after


def overwrite(descriptor: int, content: bytes) -> None:
    """The open file has exactly `content`."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    write_all(descriptor, content)
    os.ftruncate(descriptor, len(content))


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of `content` to the open file, from where it stands on."""
    written = os.write(descriptor, content) if content else 0
    while written < len(content):
        written += os.write(descriptor, memoryview(content)[written:])


def make_dirs(root: RealRoot, entry: Entry) -> None:
    """See `Disk.make_dirs`."""
    for depth in range(1, len(entry) + 1):
        made = entry[:depth]
        with root.above(made, errno.EEXIST) as above:
            try:
                os.mkdir(made[-1], dir_fd=above)
            except FileExistsError:
                os.close(open_below(made[-1], above))
            else:
                root.settle(above, below=made[-1])
                root.settle(above)


def make_link(root: RealRoot, entry: Entry, text: str) -> None:
    """See `Disk.make_link`."""
    with root.above(entry, errno.EEXIST) as above:
        os.symlink(text, entry[-1], dir_fd=above)
        root.settle(above)


def set_mode(root: RealRoot, entry: Entry, mode: int) -> None:
    """See `Disk.set_mode`."""
    with root.above(entry, errno.EBUSY) as above:
        _require_mode(os.lstat(entry[-1], dir_fd=above), entry)
        # There is no way to set the mode of a name and be sure that it is no link; so what is open is set.
        with opened(os.open(entry[-1], READ_ONLY, dir_fd=above)) as descriptor:
            _require_mode(os.fstat(descriptor), entry)
            os.fchmod(descriptor, mode)
            if root.sync:
                _synced(descriptor)


def _require_mode(found: os.stat_result, entry: Entry) -> None:
    """Refuse what has no mode to set: all but files and directories."""
    if not stat.S_ISDIR(found.st_mode):
        require_regular(found, entry)


def _synced(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise Unsynced(error.errno or 0) from None


def move(root: RealRoot, source: Entry, target: Entry) -> None:
    """See `Disk.move`."""
    require_below_root(source, errno.EBUSY)
    require_below_root(target, errno.EEXIST)
    with root.directory(source[:-1]) as here, root.directory(target[:-1]) as there, shown_as(source):
        try:
            rename_new(source[-1], here, target[-1], there)
        except FileExistsError:
            if not _other_spelling(source[-1], here, target[-1], there):
                raise failure(errno.EEXIST, target) from None
            os.rename(source[-1], target[-1], src_dir_fd=here, dst_dir_fd=there)
        root.settle(there, here)


def _other_spelling(name: str, here: int, other: str, there: int) -> bool:
    """Whether `other` finds `name` itself, which is not the same as another name of one file."""
    if name == other or not os.path.samestat(os.fstat(here), os.fstat(there)):
        return False
    if not os.path.samestat(os.lstat(name, dir_fd=here), os.lstat(other, dir_fd=there)):
        return False
    with opened(os.open(".", LISTED, dir_fd=there)) as descriptor:
        return other not in os.listdir(descriptor)


_Rename = Callable[[int, bytes, int, bytes], int]


def _found_renames() -> tuple[_Rename | None, _Rename | None]:
    """The system's calls that rename only to a name that is free, and that exchange two names."""
    name, free, both = ("renameatx_np", 4, 2) if sys.platform == "darwin" else ("renameat2", 1, 2)
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return None, None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int

    def with_flag(flag: int) -> _Rename:
        return lambda here, source, there, target: int(call(here, source, there, target, flag))

    return with_flag(free), with_flag(both)


_exclusive_rename, _exchanging_rename = _found_renames()


def _exchanged(first: str, above: int, second: str) -> bool:
    """Exchange what stands at two names of a directory; False: this system, or its file system, does not."""
    return _renamed(_exchanging_rename, first, above, second, above)


def _renamed(rename: _Rename | None, source: str, here: int, target: str, there: int) -> bool:
    """Rename by that call; False: this system, or its file system, does not."""
    if rename is None:
        return False
    if rename(here, os.fsencode(source), there, os.fsencode(target)) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number))


def rename_new(source: str, here: int, target: str, there: int) -> None:
    """Rename to a name at which nothing stands, else FileExistsError."""
    if _renamed(_exclusive_rename, source, here, target, there):
        return
    # Not on this file system, or into itself: which the plain rename says too.
    if not stat.S_ISDIR(os.lstat(source, dir_fd=here).st_mode):
        try:
            os.link(source, target, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                raise
        else:
            os.unlink(source, dir_fd=here)
            return
    try:
        os.lstat(target, dir_fd=there)
    except FileNotFoundError:
        os.rename(source, target, src_dir_fd=here, dst_dir_fd=there)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

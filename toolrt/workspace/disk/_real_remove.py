"""Removes an entry from the real disk.

Rules.  A directory with all its content is looked through first.  It is refused untouched where something in it could
not go: for want of permission, because it is immutable (``chattr +i``, ``+a``), or because another file system is
mounted there.  Then it is moved aside in one step, and with that step it is gone: what the disk fails to delete
afterwards stays under a name of the disk's own, for `recover`.  It is never moved back incomplete.

Theory.  A caller that gets an error relies on all being there; a caller that gets none relies on nothing being there.
Only a rename guarantees one or the other.

Limits.  What another program puts into the directory between the look and its end is deleted with it, even after it was
moved aside (through an open handle or a working directory).  If the program keeps adding files, the rest stays under
the other name.  Only Linux from 5.8 on tells which directories are mounts; elsewhere a mount is recognised by its
device number, so a bind mount of the same device looks like a directory.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
from collections.abc import Callable

from toolrt.workspace.disk._disk import DEEPEST, OWN, PARTIAL, Entry, Kind, Stat
from toolrt.workspace.disk._disk_errors import Changed
from toolrt.workspace.disk._real_walk import LISTED, RealRoot, open_below, opened, stat_of
from toolrt.workspace.disk._real_write import locked, rename_new

#: How often a directory is emptied again of what another program puts into it.
_ROUNDS = 3


def remove(root: RealRoot, entry: Entry, expected: Stat | None) -> None:
    """See `Disk.remove`."""
    with root.above(entry, errno.EBUSY) as above:
        found = os.lstat(entry[-1], dir_fd=above)
        if expected is not None and stat_of(found) != expected:
            raise Changed
        if stat.S_ISDIR(found.st_mode):
            os.rmdir(entry[-1], dir_fd=above)
        else:
            os.unlink(entry[-1], dir_fd=above)
        root.settle(above)


def remove_tree(root: RealRoot, entry: Entry) -> None:
    """See `Disk.remove_tree`."""
    with root.above(entry, errno.EBUSY) as above:
        if Kind.of(os.lstat(entry[-1], dir_fd=above).st_mode) is not Kind.DIRECTORY:
            os.unlink(entry[-1], dir_fd=above)
        else:
            with opened(open_below(entry[-1], above, LISTED)) as tree:
                require_removable(tree, len(entry))
                # Another program may hold a lock on its own directory: then ours is not needed, because a start that
                # finds the tree aside cannot lock it either, or deletes it as this does.
                locked(tree)
                aside = root.seal.name(OWN, PARTIAL, os.fstat(above).st_ino)
                rename_new(entry[-1], above, aside, above)
                with contextlib.suppress(OSError):
                    delete_tree(tree, len(entry))
                    os.rmdir(aside, dir_fd=above)
        root.settle(above)


def require_removable(tree: int, depth: int = 0) -> None:
    """Refuse a tree in which something may not be removed, before any of it is.

    Args:
        depth: how deep the open directory is.
    """
    names = sorted(os.listdir(tree))
    if not names:
        return
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=tree, effective_ids=True):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    _require_not_too_deep(depth + 1)
    me, own = os.geteuid(), os.fstat(tree)
    _require_unmarked(_attributes(".", tree) & ~_MOUNTED)
    for name in names:
        found = os.lstat(name, dir_fd=tree)
        if own.st_mode & stat.S_ISVTX and me not in (0, own.st_uid, found.st_uid):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        _require_unmarked(_attributes(name, tree))
        if stat.S_ISDIR(found.st_mode):
            if found.st_dev != own.st_dev:
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
            with opened(open_below(name, tree, LISTED)) as below:
                require_removable(below, depth + 1)


def delete_tree(tree: int, depth: int = 0) -> None:
    """The open directory is empty; links in it were not followed.

    Args:
        depth: how deep the open directory is.
    """
    _require_not_too_deep(depth)
    for name in sorted(os.listdir(tree)):
        if stat.S_ISDIR(os.lstat(name, dir_fd=tree).st_mode):
            for more in reversed(range(_ROUNDS)):
                with opened(open_below(name, tree, LISTED)) as below:
                    delete_tree(below, depth + 1)
                try:
                    os.rmdir(name, dir_fd=tree)
                    break
                except OSError as error:
                    if error.errno != errno.ENOTEMPTY or not more:
                        raise
        else:
            os.unlink(name, dir_fd=tree)


def _require_not_too_deep(depth: int) -> None:
    """Refuse what no name leads to; each directory on the way down is open at once, too."""
    if depth > DEEPEST:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))


#: What a name may be marked with (statx(2)): it cannot be changed, can only be appended to, is where a mount begins.
_IMMUTABLE, _APPEND, _MOUNTED = 0x10, 0x20, 0x2000


def _require_unmarked(attributes: int) -> None:
    if attributes & _MOUNTED:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    if attributes & (_IMMUTABLE | _APPEND):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def _found_attributes() -> Callable[[str, int], int]:
    """What tells the attributes of a name in an open directory, links not followed; where nothing does, none."""
    no_follow, no_automount, at_attributes, size = 0x100, 0x800, 8, 256
    try:
        call = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError):
        return lambda name, above: 0
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)
    call.restype = ctypes.c_int

    def attributes(name: str, above: int) -> int:
        told = ctypes.create_string_buffer(size)
        if call(above, os.fsencode(name), no_follow | no_automount, 0, told):
            return 0
        found: int = struct.unpack_from("=Q", told, at_attributes)[0]
        return found

    return attributes


_attributes = _found_attributes()

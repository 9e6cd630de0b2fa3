"""Finds what dead writers left on the real disk, and repairs it.

Rules.  Only signatures count: a name is the disk's own if it is signed for the directory it stands in, and a recovery
copy if its whole head is signed (`toolrt.workspace.disk._seal`).  Any other name is left alone, unopened; `strangers`
lists such names.  A living writer holds a lock on its file, so a free lock means a dead writer.  Its partial file is
deleted.  Its recovery copy mends the file if that is a mixture of the two contents the copy holds, and is deleted.  A
file that is neither was written by another program since; both are left as they are, so that nothing is lost.

Theory.  A writer that dies between making a file and locking it loses nothing.  One that lives finds, after it got the
lock, that its file has no name any more, and makes another.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator

from toolrt.workspace.disk._disk import COPY, KEPT, OWN, PARTIAL, Entry, is_own, is_plain
from toolrt.workspace.disk._real_remove import delete_tree, require_removable
from toolrt.workspace.disk._real_walk import (
    LISTED,
    READ_ONLY,
    READ_WRITE,
    RealRoot,
    open_below,
    opened,
    read_all,
    shown_as,
)
from toolrt.workspace.disk._real_write import COPY_HEAD, overwrite
from toolrt.workspace.disk._seal import Seal

#: What a write leaves whole when the power goes: bytes are compared within blocks of this size.
_BLOCK = 4096

#: The errors for what belongs to another user, whose own start mends it, and for a tree that a program goes on using:
#: both are left alone.
_LEFT_ALONE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENOTEMPTY, errno.ENAMETOOLONG)


def recover(root: RealRoot, directories: Iterable[Entry] | None) -> list[str]:
    """See `Disk.recover`."""
    done: list[str] = []
    failed: OSError | None = None
    for entry in _below(root) if directories is None else sorted(set(directories)):
        try:
            with shown_as(entry):
                way = root.listed(entry)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES):
                raise
            continue
        with way as above:
            number = os.fstat(above).st_ino
            for name in sorted(os.listdir(above)):
                if not is_own(name) or not _is_ours(root.seal, name, number):
                    continue
                try:
                    with shown_as((*entry, name)):
                        mended = _mended(root, above, name)
                except OSError as error:
                    # Any other error is raised once all names have been tried.
                    if error.errno not in _LEFT_ALONE:
                        failed = error
                else:
                    if mended is not None:
                        done.append("/".join((*entry, mended)))
    if failed is not None:
        raise failed
    return sorted(done)


def strangers(root: RealRoot, directories: Iterable[Entry] | None) -> list[str]:
    """See `Disk.strangers`."""
    seal = root.seal
    found: list[str] = []
    for entry in _below(root) if directories is None else sorted(set(directories)):
        with contextlib.suppress(OSError), root.listed(entry) as above:
            number = os.fstat(above).st_ino
            names = [
                name
                for name in os.listdir(above)
                if is_own(name)
                and not _is_ours(seal, name, number)
                and not seal.made(name, OWN, KEPT, number, seal.place)
            ]
            found.extend("/".join((*entry, name)) for name in names)
    return sorted(found)


def _is_ours(seal: Seal, name: str, above: int) -> bool:
    """Whether the disk itself made that name, in the directory of that inode number."""
    return any(name.endswith(suffix) and seal.made(name, OWN, suffix, above) for suffix in (PARTIAL, COPY))


def left_in(root: str, directories: int, names: int) -> list[Entry]:
    """The directories that have names like the disk's own, as far as a bounded look from the root finds them.

    It only looks, by paths, which is quick: the mending goes to the directory by itself.  Links are not followed, and
    what cannot be looked at is passed over.

    Args:
        directories: how many are looked through at most, and `names`: how many names, those nearest to the root first.
    """
    found: list[Entry] = []
    pending: deque[Entry] = deque([()])
    while pending and directories > 0 and names > 0:
        entry = pending.popleft()
        directories -= 1
        own = False
        try:
            with os.scandir("/".join((root, *entry))) as looked_at:
                for below in looked_at:
                    names -= 1
                    if is_own(below.name):
                        own = True
                    elif below.is_dir(follow_symlinks=False):
                        pending.append((*entry, below.name))
        except OSError:
            pass
        if own:
            found.append(entry)
    return found


def _below(root: RealRoot) -> Iterator[Entry]:
    """Every directory, from the root on, links not followed."""
    pending: list[Entry] = [()]
    while pending:
        entry = pending.pop()
        yield entry
        with contextlib.suppress(OSError), root.listed(entry) as above, os.scandir(above) as found:
            pending.extend((*entry, below.name) for below in found if below.is_dir(follow_symlinks=False))


def _mended(root: RealRoot, above: int, name: str) -> str | None:
    """Take `name` away if its writer is dead, mending its file first; what was mended or taken, or None."""
    try:
        found = os.lstat(name, dir_fd=above)
        if stat.S_ISDIR(found.st_mode):
            descriptor = open_below(name, above, LISTED)
        elif stat.S_ISREG(found.st_mode):
            descriptor = _opened(name, above)
        else:
            return None
    except FileNotFoundError:
        return None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None  # its writer lives, or that cannot be found out
        mended = name
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            require_removable(descriptor)
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=above, effective_ids=True):
                return None
            delete_tree(descriptor)
            os.rmdir(name, dir_fd=above)
        else:
            if name.endswith(COPY):
                put_back = _put_back(root, above, descriptor)
                if put_back is None:
                    return None
                mended = put_back or name
            os.unlink(name, dir_fd=above)
        root.settle(above)
        return mended
    except FileNotFoundError:
        return None  # another process was faster
    finally:
        os.close(descriptor)


def _opened(name: str, above: int) -> int:
    try:
        return os.open(name, READ_ONLY, dir_fd=above)
    except PermissionError:
        # It has its file's mode already, and may not be read.
        return os.open(name, (READ_ONLY & ~os.O_RDONLY) | os.O_WRONLY, dir_fd=above)


def _put_back(root: RealRoot, above: int, copy: int) -> str | None:
    """Make whole the file that the recovery copy is of.

    Returns: its name; ``""`` when it needs nothing; None when it is not known, or another program's by now.
    """
    told = _told_by(copy, root.seal)
    if told is None:
        return ""  # the power went before it was on the disk, and so before its file was touched, if it was synced
    name, inode, old, new = told
    for candidate in (name, *sorted(os.listdir(above))):
        try:
            found = os.lstat(candidate, dir_fd=above)
            if found.st_ino != inode or not stat.S_ISREG(found.st_mode):
                continue
            target = opened(os.open(candidate, READ_WRITE, dir_fd=above))
        except FileNotFoundError:
            continue
        with target as descriptor:
            if os.fstat(descriptor).st_ino != inode:
                continue
            now = read_all(descriptor, len(old) + len(new) + 1)
            if now in (old, new):
                return ""
            if not mixture(now, old, new):
                return None
            overwrite(descriptor, old)
            if root.sync:
                os.fsync(descriptor)
            return candidate
    return None


def _told_by(copy: int, seal: Seal) -> tuple[str, int, bytes, bytes] | None:
    """What a recovery copy says: the file's name and number, its old content and its new; None: it is not whole.

    No more is read than a writer has signed: of a file that only has the name, one block.
    """
    found = os.fstat(copy)
    signature, _, text = read_all(copy, COPY_HEAD).rstrip().decode("ascii", "replace").partition(" ")
    if not seal.signed(signature, "copy", found.st_ino, text):
        return None
    said = json.loads(text)
    name, inode, sizes = str(said["name"]), int(said["inode"]), (int(said["old"]), int(said["new"]))
    if found.st_size != COPY_HEAD + sum(sizes) or not is_plain((name,)):
        return None
    contents = read_all(copy, sum(sizes))
    if hashlib.sha256(contents).hexdigest() != said["contents"]:
        return None
    return name, inode, contents[: sizes[0]], contents[sizes[0] :]


def mixture(now: bytes, old: bytes, new: bytes) -> bool:
    """Whether `now` may be what a broken write of `new` over `old` left; unwritten bytes may be zero."""
    if not min(len(old), len(new)) <= len(now) <= max(len(old), len(new)):
        return False
    for start in range(0, len(now), _BLOCK):
        block = now[start : start + _BLOCK]
        before, after = old[start : start + len(block)], new[start : start + len(block)]
        if block in (before, after) or not any(block):
            continue
        if any(
            byte and byte != (before[at] if at < len(before) else 0) and byte != (after[at] if at < len(after) else 0)
            for at, byte in enumerate(block)
        ):
            return False
    return True

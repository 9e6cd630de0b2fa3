"""How the real disk finds what dead writers left, and mends it.

Rules.  A name of the disk's own whose lock is free has a dead writer: whoever lives holds it.  A partial one goes.
A recovery copy mends its file if the file is a mixture of the two contents the copy holds, and goes; a file that is
neither was written by somebody else since, and both are left as they are, so that nothing is lost.

Theory.  A writer that dies between making a file and locking it loses nothing; one that lives finds after it got
the lock that its file has no name any more, and makes another.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator

from toolrt.workspace._disk import COPY, Entry, is_own
from toolrt.workspace._real_remove import delete_tree, require_removable
from toolrt.workspace._real_walk import LISTED, READ_ONLY, READ_WRITE, directory, open_below, read_all, shown_as
from toolrt.workspace._real_write import overwrite, synced_directory

__all__ = ["left_in", "mixture", "recover"]

#: What a write leaves whole when the power goes: bytes are compared within blocks of this size.
_BLOCK = 4096

#: What is said of another user's, which is his to mend, and of a tree that somebody goes on using: it is in no one's
#: way.
_LEFT_ALONE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENOTEMPTY, errno.ENAMETOOLONG)


def recover(root: str, directories: Iterable[Entry] | None, *, sync: bool) -> list[str]:
    """See `Disk.recover`."""
    done: list[str] = []
    failed: OSError | None = None
    for entry in _below(root) if directories is None else sorted(set(directories)):
        try:
            with shown_as(entry), directory(root, entry) as passed:
                above = os.open(".", LISTED, dir_fd=passed)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES):
                raise
            continue
        try:
            for name in sorted(os.listdir(above)):
                if not is_own(name):
                    continue
                try:
                    with shown_as((*entry, name)):
                        mended = _mended(above, name, sync)
                except OSError as error:
                    # Anything else is said once all have been tried.
                    if error.errno not in _LEFT_ALONE:
                        failed = error
                else:
                    if mended is not None:
                        done.append("/".join((*entry, mended)))
        finally:
            os.close(above)
    if failed is not None:
        raise failed
    return sorted(done)


def left_in(root: str, most: int) -> list[Entry]:
    """The directories that have names of the disk's own, among the `most` that are nearest to the root.

    It only looks, by paths, which is quick: whoever mends goes to the directory by itself.  Links are not followed, and
    what cannot be looked at is passed over.
    """
    found: list[Entry] = []
    pending: deque[Entry] = deque([()])
    while pending and most > 0:
        entry = pending.popleft()
        most -= 1
        own = False
        try:
            with os.scandir("/".join((root, *entry))) as names:
                for below in names:
                    if is_own(below.name):
                        own = True
                    elif below.is_dir(follow_symlinks=False):
                        pending.append((*entry, below.name))
        except OSError:
            pass
        if own:
            found.append(entry)
    return found


def _below(root: str) -> Iterator[Entry]:
    """Every directory, from the root on, links not followed."""
    pending: list[Entry] = [()]
    while pending:
        entry = pending.pop()
        yield entry
        with contextlib.suppress(OSError), directory(root, entry) as passed:
            above = os.open(".", LISTED, dir_fd=passed)
            try:
                with os.scandir(above) as found:
                    pending.extend((*entry, below.name) for below in found if below.is_dir(follow_symlinks=False))
            finally:
                os.close(above)


def _mended(above: int, name: str, sync: bool) -> str | None:
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
            return None  # its writer lives, or nobody can tell
        mended = name
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            require_removable(descriptor)
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=above, effective_ids=True):
                return None
            delete_tree(descriptor)
            os.rmdir(name, dir_fd=above)
        else:
            if name.endswith(COPY):
                put_back = _put_back(above, descriptor, sync)
                if put_back is None:
                    return None
                mended = put_back or name
            os.unlink(name, dir_fd=above)
        if sync:
            synced_directory(above)
        return mended
    except FileNotFoundError:
        return None  # somebody else was faster
    finally:
        os.close(descriptor)


def _opened(name: str, above: int) -> int:
    try:
        return os.open(name, READ_ONLY, dir_fd=above)
    except PermissionError:
        # It has its file's mode already, and may not be read.
        return os.open(name, (READ_ONLY & ~os.O_RDONLY) | os.O_WRONLY, dir_fd=above)


def _put_back(above: int, copy: int, sync: bool) -> str | None:
    """Make whole the file that the recovery copy is of.

    Returns: its name; ``""`` when it needs nothing; None when it is not known, or somebody else's by now.
    """
    head, _, contents = read_all(copy, os.fstat(copy).st_size).partition(b"\n")
    try:
        told = json.loads(head)
        name, inode = str(told["name"]), int(told["inode"])
        old, new = contents[: told["old"]], contents[told["old"] :]
        whole = (len(old), len(new)) == (told["old"], told["new"])
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        return ""  # the power went before it was on the disk, and so before its file was touched, if it was synced
    for candidate in (name, *sorted(os.listdir(above))):
        try:
            found = os.lstat(candidate, dir_fd=above)
            if found.st_ino != inode or not stat.S_ISREG(found.st_mode):
                continue
            target = os.open(candidate, READ_WRITE, dir_fd=above)
        except FileNotFoundError:
            continue
        try:
            if os.fstat(target).st_ino != inode:
                continue
            now = read_all(target, len(old) + len(new) + 1)
            if now in (old, new):
                return ""
            if not mixture(now, old, new):
                return None
            overwrite(target, old)
            if sync:
                os.fsync(target)
            return candidate
        finally:
            os.close(target)
    return None


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

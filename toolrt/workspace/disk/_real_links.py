"""Finds all names of a file on the real disk.

Rules.  Directories are opened one inside the other and no link is followed, so a name that is counted stands below the
root.  A directory that is mounted at two places is looked into once.  Names of the disk's own do not count: what is
kept under them is not to change with the file.

Limits.  The nearest `MOST_DIRECTORIES` directories are looked into, and `MOST_NAMES` names are looked at; a name that
stands elsewhere is not found, and neither is one in a directory that may not be listed.
"""

from __future__ import annotations

import errno
import os
from collections import deque

from toolrt.workspace.disk._disk import Entry, Stat, is_own
from toolrt.workspace.disk._real_walk import RealRoot

#: What is looked through for the names of one file: some tenths of a second.
MOST_DIRECTORIES = 10_000
MOST_NAMES = 200_000

#: The errors for a directory that may not be listed, or that another program has removed or replaced meanwhile.
_NOT_LISTED = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def names_of(root: RealRoot, stat: Stat) -> list[Entry]:
    """See `Disk.names_of`."""
    found: list[Entry] = []
    directories, names = MOST_DIRECTORIES, MOST_NAMES
    seen: set[tuple[int, int]] = set()
    pending: deque[Entry] = deque([()])
    while pending and directories > 0 and names > 0 and len(found) < stat.links:
        entry = pending.popleft()
        directories -= 1
        try:
            way = root.listed(entry)
        except OSError as error:
            if error.errno not in _NOT_LISTED:
                raise
            continue
        with way as above:
            itself = os.fstat(above)
            if (itself.st_dev, itself.st_ino) in seen:
                continue
            seen.add((itself.st_dev, itself.st_ino))
            with os.scandir(above) as found_here:
                for one in found_here:
                    names -= 1
                    if is_own(one.name):
                        continue
                    if one.is_dir(follow_symlinks=False):
                        pending.append((*entry, one.name))
                    elif one.inode() == stat.inode and _is(one, stat):
                        found.append((*entry, one.name))
    return found


def _is(one: os.DirEntry[str], stat: Stat) -> bool:
    try:
        look = one.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False  # gone since it was listed
    return (look.st_dev, look.st_ino) == (stat.device, stat.inode)

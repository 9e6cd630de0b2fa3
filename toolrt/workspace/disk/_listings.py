"""What is in the directories of a real disk, by name and kind; remembered while their times say that nothing changed.

Rules.
    1. A directory is listed again unless it is the same one (device and number) and both its times are what they were.
    2. A directory that changed less than the file system's time step before it was listed is not remembered: a change
    just
       after the listing might leave its times as they are.
    3. A name and its kind are remembered.  Sizes and times of files are not, for they change while the directory's
    times stay.

Theory.  A name comes, goes or becomes another thing only by a change of its directory, whose ctime no program can set
back.  A look at a directory is one system call; listing it is five and one more for each of its names.

Limits.  A file system that keeps no times of its directories, or a network file system that keeps old ones for a
while, is believed, as it is for the contents of files (`toolrt.workspace.change._cache`).
"""

from __future__ import annotations

import heapq
import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set

import attrs

from toolrt.workspace.disk._disk import Entry, Kind, Stat, is_own

#: How many names are remembered; all are forgotten when there are more.  A name takes about 80 bytes.
_NAMES_MOST = 500_000

#: How many names are sorted at once: a few milliseconds, in which no other thread runs.
_SORTED_AT_ONCE = 8192

#: Device, number, mtime and ctime of a directory.
_Stamp = tuple[int, int, int, int]

#: Size, device, number, mtime and ctime of a file: they stay only while its content does.
FileStamp = tuple[int, int, int, int, int]


@attrs.define(eq=False)
class Listing:
    """What is in one directory, but for the disk's own names.

    Tuples of texts, because Python's garbage collector stops going through them; it goes on with a dict of 100,000
    kinds, and holds the interpreter for 13 ms each time.
    """

    #: The names of directories, and all others, in order.
    directories: tuple[str, ...]
    others: tuple[str, ...]
    #: Those of the others that are no files.
    special: frozenset[str]
    #: What a look at each showed; none where they were not looked at.
    stats: Mapping[str, Stat]
    #: What a reader made of it last, and by which rules; None: nothing yet.  It is remembered with the listing.
    filtered: tuple[object, Listing] | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, named: Iterable[tuple[str, Stat]]) -> Listing:
        """The listing that `Disk.names` gave."""
        stats = {name: stat for name, stat in named if not is_own(name)}
        directories = tuple([name for name, stat in stats.items() if stat.kind is Kind.DIRECTORY])
        others = tuple([name for name, stat in stats.items() if stat.kind is not Kind.DIRECTORY])
        return cls(directories, others, frozenset(name for name in others if stats[name].kind is not Kind.FILE), stats)

    def __len__(self) -> int:
        return len(self.directories) + len(self.others)

    def has_file(self, name: str) -> bool:
        """Whether a file stands at this name."""
        at = bisect_left(self.others, name)
        return self.others[at : at + 1] == (name,) and name not in self.special

    def without(self, names: Set[str]) -> Listing:
        """The same without these names."""
        directories, others = (
            tuple([name for name in some if name not in names]) for some in (self.directories, self.others)
        )
        return Listing(directories, others, self.special, self.stats)


class Listings:
    """The listings of one disk that are remembered."""

    def __init__(self) -> None:
        self._known: dict[Entry, tuple[_Stamp, Listing]] = {}
        self._names = 0

    def find(self, entry: Entry, path: str) -> Listing | None:
        """The listing of the directory at `entry`, which is at `path`; None: it has to be listed."""
        known = self._known.get(entry)
        if known is None:
            return None
        try:
            found = os.lstat(path)
        except OSError:
            return None
        return known[1] if _stamp(found) == known[0] else None

    def listed(self, entry: Entry, descriptor: int, settled_before: int) -> Listing:
        """The listing of the open directory at `entry`; it is remembered if it did not change since `settled_before`.

        Args:
            settled_before: nanoseconds of the clock that the directory's times are taken from.
        """
        found = os.fstat(descriptor)
        listing = _listing(descriptor)
        if max(found.st_mtime_ns, found.st_ctime_ns) < settled_before:
            before = self._known.get(entry)
            self._names += len(listing) - (0 if before is None else len(before[1]))
            if self._names > _NAMES_MOST:
                self._known.clear()
                self._names = len(listing)
            self._known[entry] = _stamp(found), listing
        return listing


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _listing(descriptor: int) -> Listing:
    directories: list[str] = []
    others: list[str] = []
    special: list[str] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            name = entry.name
            if name[:1] == "." and is_own(name):
                continue
            if entry.is_dir(follow_symlinks=False):
                directories.append(name)
            else:
                others.append(name)
                if not entry.is_file(follow_symlinks=False):
                    special.append(name)
    return Listing(in_order(directories), in_order(others), frozenset(special), {})


def in_order(names: Sequence[str]) -> tuple[str, ...]:
    """The names, sorted some at a time."""
    parts = [sorted(names[at : at + _SORTED_AT_ONCE]) for at in range(0, len(names), _SORTED_AT_ONCE)]
    return tuple(parts[0] if len(parts) == 1 else [name for name in heapq.merge(*parts)])  # noqa: C416  a turn for each

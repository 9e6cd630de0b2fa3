"""A bounded cache of what was read from files; it never changes an answer.

Rules (RULE 23).  A cached value belongs to a file and is valid while the file's number, size and times of change, of
its content and of anything about it, stay the same.  A value is cached only if the file had not changed for longer than
the disk's time step when it was read: a younger file could change once more and show the same time.  A mutation drops
the values of its file.  A call that holds a WRITE claim on the file bypasses the cache, because it may have changed the
file in ways that the workspace does not see.

Theory.  The least recently used value goes first, once there are too many values or bytes.  The cache decides what is
read from the disk, never what is answered, so its order may depend on timing.

Limits.  No program can set the second time (ctime) back, but a change through a memory map may show late, and a clock
that is set back while files change may hide a change.  A mutation compares contents, so it refuses what such a change
left, and drops the file's values: then the next reader sees it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from toolrt import probe
from toolrt.workspace.disk._below import Name, NameMemory
from toolrt.workspace.disk._disk import Entry, Stat

T = TypeVar("T")

#: What is kept of a file; None: its content.
Part = tuple[object, ...] | None

#: What of a file has to be as it was: device, number, size, both times of change.
Stamp = tuple[int, int, int, int, int]


def stamp_of(stat: Stat) -> Stamp:
    """What `stat` shows that has to stay for a content to stay."""
    return stat.device, stat.inode, stat.size, stat.mtime_ns, stat.ctime_ns


@attrs.frozen
class CachedEntry(Generic[T]):
    """One thing that is kept of a file."""

    #: What the file showed when it was read.
    stamp: Stamp
    #: The SHA-256 of its content then.
    digest: bytes
    #: What is kept.
    value: T
    #: Bytes that it counts for.
    size: int


class Cache(Generic[T]):
    """Things kept by file and part of it, the least recently used dropped first.

    Args:
        name: names the cache in what the probe reports.
        entries: how many are kept at most; 0: none.
        size: how many bytes they may have together; a larger one is not kept at all.
    """

    def __init__(self, name: str, entries: int, size: int) -> None:
        self._name = name
        self._most_entries = entries
        self._most_bytes = size
        #: By file and part: what is kept of a file is below its name, so that dropping a file costs what it has.
        self._kept: NameMemory[CachedEntry[T]] = NameMemory()
        self._bytes = 0
        self._hits = 0
        self._misses = 0
        self._evictions = 0

    def find(self, file: Entry, part: Part = None) -> CachedEntry[T] | None:
        """What is kept, whether or not the file still shows its stamp."""
        self._touch(file, write=False)
        return self._kept.get((*file, part))

    def hit(self, file: Entry, part: Part = None) -> None:
        """What `find` gave was used."""
        self._hits += 1
        if (*file, part) in self._kept:
            self._kept.move_to_end((*file, part))

    def miss(self) -> None:
        """Nothing that `find` gave was used."""
        self._misses += 1

    def keep(self, file: Entry, kept: CachedEntry[T], part: Part = None) -> None:
        """Keep this instead of what was kept there."""
        if kept.size > self._most_bytes or self._most_entries < 1:
            return
        self._touch(file, write=True)
        before = self._kept.get((*file, part))
        self._kept.use((*file, part), kept)
        self._bytes += kept.size - (0 if before is None else before.size)
        while self._bytes > self._most_bytes or len(self._kept) > self._most_entries:
            self._forget(self._kept.oldest())
            self._evictions += 1

    def drop(self, entry: Entry) -> None:
        """Keep nothing of the file there any more, and of what stands below it."""
        for name in list(self._kept.below(entry)):
            self._forget(name)

    def statistics(self) -> dict[str, int]:
        """How much it holds and has done: ``entries``, ``bytes``, ``hits``, ``misses``, ``evictions``."""
        # Counting is ordered with all looks; the looks are reads of this name, so they commute.
        probe.access(("files", self._name), True)
        return {
            "entries": len(self._kept),
            "bytes": self._bytes,
            "hits": self._hits,
            "misses": self._misses,
            "evictions": self._evictions,
        }

    def _forget(self, name: Name) -> None:
        self._touch(name[:-1], write=True)
        self._bytes -= self._kept.forget(name).size

    def _touch(self, file: Name, *, write: bool) -> None:
        if probe.sink is not None:
            probe.sink.access(("files", self._name), False)
            probe.sink.access(("files", self._name, *file), write)

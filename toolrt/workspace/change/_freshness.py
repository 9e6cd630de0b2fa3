"""Remembers what this workspace last saw of each file, so that no unread change of another program is overwritten.

Rules.  The workspace remembers every read and every mutation of its own: the SHA-256 of the content, or that there was
no file.  A mutation that finds anything else is a conflict and changes nothing.  A file that was never seen has no
condition.  Reads and mutations of sibling calls count, so siblings never conflict.

Theory.  Optimistic concurrency with content as the version: the content is compared when the call's ticket is first in
line, on the very bytes that the change is computed from.  A file that was changed and changed back is fresh: nothing
would be lost.

Accesses.  A reader remembers what the disk showed, and the disk's own accesses order the reader with any change.  So
remembering counts as a "read" of this memory, and readers of one file stay independent.  Mutations "write" it.

Limits.  The memory is bounded, the least recently seen file goes first, and it then has no condition again.  A file
with several names is remembered by its number too, also when only one name is left; it conflicts when its content
matches neither its name nor its number.  If another program removes all its names, and a different file with several
names gets its number, that file conflicts until it is read.
"""

from __future__ import annotations

from toolrt import probe
from toolrt.workspace.disk._below import Name, NameMemory
from toolrt.workspace.disk._disk import Entry, Kind, Stat

#: Looked up once: an attribute of an enumeration costs as much as a call.
_FILE = Kind.FILE


class Freshness:
    """The last content seen of each file.

    Args:
        entries: how many files are remembered at most.
    """

    def __init__(self, entries: int) -> None:
        self._most = entries
        #: By key, or by number.
        self._seen: NameMemory[bytes | None] = NameMemory()

    def saw(self, key: Entry, stat: Stat | None, digest: bytes | None, *, own: bool = False) -> None:
        """The file has this digest, or None: it is not there.

        Args:
            stat: a look at it, or at what stood there before.
            own: whether a mutation of this workspace made it so.
        """
        names = [key]
        if stat is not None and stat.kind is _FILE:
            if stat.links > 1 and digest is not None:
                # A missing name says nothing about the file's other names.
                names.append(by_number(stat))
            elif stat.links == 1 and own:
                # Its one name has another file now, or none: the system gives the number to whatever comes next.
                self._forget(by_number(stat))
        for name in names:
            self._touch(name, write=own)
            self._seen.use(name, digest)
        while len(self._seen) > self._most:
            # Which one goes depends on the order of all looks: then, and only then, the memory is one resource.
            probe.access(("files", "seen"), True)
            self._forget(self._seen.oldest())

    def expected(self, key: Entry, stat: Stat | None) -> tuple[bytes | None, ...] | None:
        """What a mutation may find at that key, where a look showed `stat`; None: anything."""
        self._touch(key, write=True)
        known = [self._seen[key]] if key in self._seen else []
        if stat is not None and (known or stat.links > 1) and stat.kind is _FILE:
            number = by_number(stat)
            if number in self._seen:
                self._touch(number, write=True)
                known.append(self._seen[number])
        return tuple(known) or None

    def moved(self, source: Entry, target: Entry | None) -> None:
        """What stood at and below `source` stands at `target`, or None: nowhere.

        What was known of `target` is known no more: nothing stood there, and what does now came from `source`.
        """
        if source == target:
            return
        names = list(self._seen.below(source))
        if target is not None:
            for name in list(self._seen.below(target)):
                self._forget(name)
        for name in names:
            self._touch(name, write=True)
            digest = self._seen[name]
            self._seen[name] = None
            if target is not None:
                there = (*target, *name[len(source) :])
                self._touch(there, write=True)
                self._seen.use(there, digest)

    def _forget(self, name: Name) -> None:
        if name in self._seen:
            self._touch(name, write=True)
            self._seen.forget(name)

    def statistics(self) -> dict[str, int]:
        """How much it holds: ``entries``."""
        probe.access(("files", "seen"), True)
        return {"entries": len(self._seen)}

    def _touch(self, name: Name, *, write: bool) -> None:
        if probe.sink is not None:
            probe.sink.access(("files", "seen"), False)
            probe.sink.access(("files", "seen", *name), write)


def by_number(stat: Stat) -> Entry:
    """Stands for all names of a file; no part of a key is empty, so it differs from every key."""
    return ("", str(stat.device), str(stat.inode))

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

from collections import OrderedDict

from toolrt import probe
from toolrt.workspace.disk._below import NameIndex
from toolrt.workspace.disk._disk import Entry, Kind, Stat
from toolrt.workspace.names._identity import Identity

#: Looked up once: an attribute of an enumeration costs as much as a call.
_FILE = Kind.FILE


class Freshness:
    """The last content seen of each file.

    Args:
        entries: how many files are remembered at most.
    """

    def __init__(self, entries: int) -> None:
        self._most = entries
        self._seen: OrderedDict[Entry, bytes | None] = OrderedDict()
        self._below = NameIndex(self._seen)

    def saw(self, identity: Identity, digest: bytes | None, *, own: bool = False) -> None:
        """The file has this digest, or None: it is not there.

        Args:
            own: whether a mutation of this workspace made it so.
        """
        for name in _names_of(identity, digest):
            if probe.sink is not None:
                self._touch(name, write=own)
            self._note(name, digest)
        found = identity.found
        if own and found is not None and found.links == 1 and found.kind is _FILE:
            # Its one name has another file now, or none: the system gives the number to whatever comes next.
            self._forget(by_number(found))
        while len(self._seen) > self._most:
            name = next(iter(self._seen))
            # Which one goes depends on the order of all looks: then, and only then, the memory is one resource.
            probe.access(("files", "seen"), True)
            self._forget(name)

    def expected(self, identity: Identity) -> tuple[bytes | None, ...] | None:
        """What a mutation may find there; None: anything."""
        return self.expected_at(identity.key or (), identity.found)

    def expected_at(self, key: Entry, stat: Stat | None) -> tuple[bytes | None, ...] | None:
        """As `expected`, for a name that was listed and a look at it."""
        known: list[bytes | None] = []
        if probe.sink is not None:
            self._touch(key, write=True)
        if key in self._seen:
            known.append(self._seen[key])
        if stat is not None and (known or stat.links > 1) and stat.kind is _FILE:
            number = by_number(stat)
            if number in self._seen:
                self._touch(number, write=True)
                known.append(self._seen[number])
        return tuple(known) or None

    def saw_at(self, key: Entry, digest: bytes | None, stat: Stat | None) -> None:
        """As `saw` of an own mutation, for a file that history put back, and a look at it."""
        names = [key]
        if stat is not None and stat.kind is Kind.FILE and stat.links > 1:
            names.append(by_number(stat))
        for name in names:
            self._touch(name, write=True)
            self._note(name, digest)

    def moved(self, source: Entry, target: Entry | None) -> None:
        """What stood at and below `source` stands at `target`, or None: nowhere.

        What was known of `target` is known no more: nothing stood there, and what does now came from `source`.
        """
        if source == target:
            return
        names = self._below.at(source)
        if target is not None:
            for name in self._below.at(target):
                self._forget(name)
        depth = len(source)
        for name in names:
            self._touch(name, write=True)
            digest = self._seen[name]
            self._seen[name] = None
            if target is not None:
                self._touch((*target, *name[depth:]), write=True)
                self._note((*target, *name[depth:]), digest)

    def _note(self, name: Entry, digest: bytes | None) -> None:
        if name in self._seen:
            self._seen.move_to_end(name)
            self._seen[name] = digest
        else:
            self._seen[name] = digest
            self._below.add(name)

    def _forget(self, name: Entry) -> None:
        if name in self._seen:
            self._touch(name, write=True)
            del self._seen[name]
            self._below.drop(name)

    def statistics(self) -> dict[str, int]:
        """How much it holds: ``entries``."""
        probe.access(("files", "seen"), True)
        return {"entries": len(self._seen)}

    def _touch(self, name: Entry, *, write: bool) -> None:
        if probe.sink is not None:
            probe.sink.access(("files", "seen"), False)
            probe.sink.access(("files", "seen", *name), write)


def _names_of(identity: Identity, digest: bytes | None) -> list[Entry]:
    """The names that the file is remembered under; a missing name says nothing about the file's other names."""
    names: list[Entry] = [identity.key or ()]
    if identity.found is not None and identity.shared and digest is not None:
        names.append(by_number(identity.found))
    return names


def by_number(stat: Stat) -> Entry:
    """Stands for all names of a file; no part of a key is empty, so it differs from every key."""
    return ("", str(stat.device), str(stat.inode))

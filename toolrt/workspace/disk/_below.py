"""An index of names by directory: finds all names below a directory at a cost proportional to what it finds.

Rules.  The caller holds the names; the index holds only which names are below which directory.  It knows a directory as
long as something below it is held.
"""

from __future__ import annotations

from collections.abc import Container

from toolrt.workspace.disk._disk import Entry


class NameIndex:
    """The names in `held`, by directory.

    Args:
        held: has a name from before it is added until it is dropped.
    """

    __slots__ = ("_held", "_in")

    def __init__(self, held: Container[Entry]) -> None:
        self._held = held
        #: What is in each directory: names that are held, and directories that have such below them.
        self._in: dict[Entry, dict[Entry, None]] = {}

    def add(self, name: Entry) -> None:
        """The name is held now."""
        while name:
            above = name[:-1]
            there = self._in.get(above)
            if there is not None:
                there[name] = None
                return
            self._in[above] = {name: None}
            name = above

    def drop(self, name: Entry) -> None:
        """The name is not held any more."""
        while name and name not in self._held and name not in self._in:
            above = name[:-1]
            there = self._in[above]
            del there[name]
            if there:
                return
            del self._in[above]
            name = above

    def at(self, directory: Entry) -> list[Entry]:
        """What is held there and below it."""
        found: list[Entry] = []
        pending = [directory]
        while pending:
            name = pending.pop()
            if name in self._held:
                found.append(name)
            pending.extend(self._in.get(name, ()))
        return found

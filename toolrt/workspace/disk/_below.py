"""A memory of values by name that finds all names below a directory at a cost proportional to what it finds.

Rules.  The memory keeps the order in which names were used last, as an `OrderedDict` does, and which names are below
which directory.  It knows a directory as long as something below it is remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import TypeVar

T = TypeVar("T")

#: The parts of a path; the last one may be something else that belongs to the file of the parts before it.
Name = tuple[Hashable, ...]


class NameMemory(OrderedDict[Name, T]):
    """Values by name, the one that was used last at the end."""

    def __init__(self) -> None:
        #: What is in each directory: names that are remembered, and directories that have such below them.
        self._in: dict[Name, dict[Name, None]] = {}
        super().__init__()

    def use(self, name: Name, value: T) -> None:
        """`name` has that value, and was used last."""
        self[name] = value
        self.move_to_end(name)
        while name:
            above = name[:-1]
            there = self._in.get(above)
            if there is not None:
                there[name] = None
                return
            self._in[above] = {name: None}
            name = above

    def forget(self, name: Name) -> T:
        """The value of `name`, which is not remembered any more."""
        value = self.pop(name)
        while name and name not in self and name not in self._in:
            above = name[:-1]
            there = self._in[above]
            del there[name]
            if there:
                break
            del self._in[above]
            name = above
        return value

    def oldest(self) -> Name:
        """The name that was used longest ago."""
        return next(iter(self))

    def below(self, directory: Name) -> Iterator[Name]:
        """The names that are remembered there and below it."""
        pending = [directory]
        while pending:
            name = pending.pop()
            if name in self:
                yield name
            pending.extend(self._in.get(name, ()))

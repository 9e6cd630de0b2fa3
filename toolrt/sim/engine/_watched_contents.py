"""Compares the contents of watched containers between steps, to find changes that bypass their methods.

Rules.  What a container holds is compared by identity after each step.  Where it is something else and the step
reported no write of it, C code has changed it.
"""

from __future__ import annotations

import weakref
from typing import Any

from toolrt.probe import Resource


class WatchedContents:
    """What a watched container held when it was last looked at.

    Args:
        thing: the container.
        name: what its accesses are called.
    """

    __slots__ = ("_held", "_name", "thing")

    def __init__(self, thing: Any, name: Resource) -> None:
        #: Gives the container; None when it is gone.
        self.thing = weakref.ref(thing)
        self._name = name
        self.look()

    def look(self) -> bool:
        """Look at it, and say whether it holds something else than before."""
        thing = self.thing()
        if thing is None:
            return False
        if isinstance(thing, dict):
            held = [*dict.keys(thing), *dict.values(thing)]
        else:
            base: Any = type(thing).__mro__[1]
            # The base's own iterator reports nothing.
            held = list(base.__iter__(thing))
        before, self._held = getattr(self, "_held", held), held
        return len(before) != len(held) or any(map(_is_not, before, held))

    def was_written(self, touched: list[tuple[Resource, bool]]) -> bool:
        """Say whether `touched` has a write of it, or of one of its keys."""
        name = self._name
        return any(write and resource[: len(name)] == name for resource, write in touched)


def _is_not(one: object, other: object) -> bool:
    return one is not other


#: What was watched outside any execution.
WATCHED_OUTSIDE: list[WatchedContents] = []

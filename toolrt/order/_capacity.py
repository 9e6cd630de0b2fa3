"""A capacity: the places of one resource.  Each ticket takes one, in the order of tickets.

Rules.
    1. A ticket has its place when fewer tickets before it are left than there are places.
    2. So those that have places are always the first of those that are left, and one that ends lets the next one in.
    3. A ticket that ends while it waits leaves as if it had never been there.

Theory.  With one place this is a writer.  A ticket waits for earlier tickets only, so no cycle can form: the first
ticket of a table that is left has no other before it, and waits for no place.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Capacity(Generic[T]):
    """The places of one resource, while a ticket has one.

    Args:
        slots: how many there are.
    """

    __slots__ = ("_held", "_waiting", "slots")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._held: dict[T, None] = {}
        self._waiting: dict[T, None] = {}

    def enter(self, ticket: T) -> bool:
        """Let a `ticket` in, behind all others; gives whether it has a place."""
        has_place = len(self._held) < self.slots
        (self._held if has_place else self._waiting)[ticket] = None
        return has_place

    def leave(self, ticket: T) -> T | None:
        """Let a `ticket` go; gives the one that has its place now, if one waited for it."""
        if ticket in self._waiting:
            del self._waiting[ticket]
            return None
        del self._held[ticket]
        if not self._waiting:
            return None
        following = next(iter(self._waiting))
        del self._waiting[following]
        self._held[following] = None
        return following

    @property
    def is_empty(self) -> bool:
        """Whether no ticket is left."""
        return not self._held

    @property
    def is_full(self) -> bool:
        """Whether a ticket that came now would wait."""
        return len(self._held) >= self.slots

    def before(self, ticket: T) -> list[T]:
        """The tickets before one that waits for a place, in their order; none for one that has its place."""
        if ticket not in self._waiting:
            return []
        waiting = list(self._waiting)
        return [*self._held, *waiting[: waiting.index(ticket)]]

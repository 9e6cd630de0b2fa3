"""Slots: limit how many calls of one batch and its sub-batches run at once.

Rules.
    1. The slots belong to the lane of the outermost batch.  A call that opens a sub-batch lends its own: one child of
       it can always run.
    2. For each further child a slot is taken if one is free.  Nothing but children waits for one, and the outermost
       lane's own ready calls come first; then children, by the places of their parents.

Theory.  Slots are counted, not handed from one call to another: a call with n running children, n above 0, uses n
slots, its own and n - 1 more.  A call with no running child uses its own.  A parent never waits for a slot, so a limit
of 1 is enough at any depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from toolrt import probe


class Running(Protocol):
    """What slots ask of a lane."""

    #: How many of them its calls hold, those of their sub-batches included.
    running: int


class Slots:
    """The slots of one lane of an outermost batch, from the moment at which a call in it lends its own.

    Args:
        batch_id: of the outermost batch.
        lane: the lane; it counts the slots that are held.
        limit: how many there are.
        dispatch: lets ready calls of the lane take free slots.
    """

    __slots__ = ("_dispatch", "batch_id", "lane", "limit", "starved")

    def __init__(self, batch_id: str, lane: Running, limit: float, dispatch: Callable[[], None]) -> None:
        self.batch_id = batch_id
        self.lane = lane
        self.limit = limit
        self._dispatch = dispatch
        #: What lets the lanes of sub-batches that wait for a slot take one, by their batches' places.
        self.starved: dict[tuple[int, ...], Callable[[], None]] = {}

    def hand_out(self) -> None:
        """Give free slots to the lanes that wait for one: the outermost first, then by their parents' places."""
        self._dispatch()
        for path in sorted(self.starved):
            # A lane that still waits after this has put itself back.
            self.starved.pop(path)()


class LentSlot:
    """What one call lends to its children: its own slot, and those that are free.

    Args:
        slots: of the outermost lane inside which the call runs.
    """

    __slots__ = ("running", "slots")

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        #: How many children run.
        self.running = 0

    @property
    def free(self) -> float:
        """How many more children may run now."""
        self._report(write=False)
        return (self.running == 0) + max(0, self.slots.limit - self.slots.lane.running)

    def take(self) -> None:
        """A child starts."""
        self.running += 1
        if self.running > 1:
            self.slots.lane.running += 1
        self._report(write=True)

    def give(self) -> None:
        """A child has ended."""
        self.running -= 1
        if self.running > 0:
            self.slots.lane.running -= 1
        self._report(write=True)

    def _report(self, write: bool) -> None:
        if probe.sink is not None and self.slots.limit != math.inf:
            probe.sink.access(("slots", self.slots.batch_id), write)

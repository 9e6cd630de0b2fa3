"""Slots against the sentence that they implement: a call with n running children uses n slots, and at least one."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs
from hypothesis import given, settings

from tests.order._choices import Choices, choices
from toolrt import probe
from toolrt.order import LanePlace, LaneRecord, LentSlot, Slots


@attrs.define(eq=False)
class Running:
    """One call that runs."""

    children: list[Running] = attrs.field(factory=list)
    #: What it lends, once it has opened a sub-batch.
    lent: LentSlot | None = None

    @property
    def uses(self) -> int:
        return max(1, sum(child.uses for child in self.children))


class Noted:
    """Stands for an explorer: notes what is reported."""

    def __init__(self) -> None:
        self.writes: list[bool] = []

    def access(self, resource: object, write: bool) -> None:
        assert resource == ("slots", "batch")
        self.writes.append(write)


@settings(max_examples=4 * settings.default.max_examples)
@given(choices=choices(60))
def test_slots_are_counted(choices: Choices) -> None:
    """Calls start and end at any depth: no more run than there are slots, and no slot is lost."""
    limit = choices.one_of((1, 2, 3, 5, math.inf))
    lane = LaneRecord(LanePlace(0), True)
    slots = Slots("batch", lane, limit, lambda: None)
    outer: list[Running] = []
    before, noted = probe.sink, Noted()
    probe.sink = noted  # type: ignore[assignment]
    try:
        while choices.more:
            used = sum(call.uses for call in outer)
            assert lane.running == used <= limit
            every = [*outer]
            for call in every:
                every += call.children
            parent = choices.one_of([None, *every])
            mine = outer if parent is None else parent.children
            if parent is not None and parent.lent is None:
                parent.lent = LentSlot(slots)
            lent = None if parent is None else parent.lent
            noted.writes.clear()
            free = limit - used if lent is None else lent.free
            if lent is not None:
                assert free == (not mine) + limit - used
            changed = lane.running
            leaves = [call for call in mine if not call.children]
            if free and choices.below(3):
                mine.append(Running())
                _count(lane, lent, 1)
            elif leaves:
                mine.remove(choices.one_of(leaves))
                _count(lane, lent, -1)
            told = [] if lent is None or limit == math.inf else [False]
            if told and (lane.running != changed or len(noted.writes) > 1):
                told.append(True)
            assert noted.writes == told, "an explorer is told of each look, and of each change"
    finally:
        probe.sink = before


def _count(lane: LaneRecord, lent: LentSlot | None, by: int) -> None:
    if lent is None:
        lane.running += by
    elif by > 0:
        lent.take()
    else:
        lent.give()


@given(choices=choices(40))
def test_free_slots_go_to_the_outermost_lane_first_and_then_by_places(choices: Choices) -> None:
    """Each lane that waits is asked once, and is still known where it waits on."""
    told: list[tuple[int, ...]] = []
    lane = LaneRecord(LanePlace(0), True)
    slots = Slots("batch", lane, 1, lambda: told.append(()))
    paths = {tuple(choices.below(3) for _ in range(1 + choices.below(3))) for _ in range(choices.below(6))}
    waits_on = {path for path in paths if choices.one_in(2)}

    def asked(path: tuple[int, ...]) -> Callable[[], None]:
        def ask() -> None:
            told.append(path)
            if path in waits_on:
                slots.starved[path] = asked(path)

        return ask

    slots.starved.update((path, asked(path)) for path in sorted(paths, reverse=True))
    slots.hand_out()
    assert told == [(), *sorted(paths)]
    assert set(slots.starved) == waits_on

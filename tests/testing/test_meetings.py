"""Three calls that meet at one thing: every cell of the table is drawn, and is a batch that the laws hold for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from toolrt.invariants import Mix, check, simulate
from toolrt.testing import _strategies_meetings as meetings
from toolrt.testing._strategies_calls import FEATURES, Palette

PALETTE = Palette(frozenset(FEATURES))
EARLY = [name for name, _ in meetings._EARLY]


def _mix(palette: Palette, *cell: Any) -> Mix:
    """The mix of one cell; each draw takes the option of that number, or the first."""
    numbers = iter(cell)
    return Mix(meetings.meeting(lambda strategy: next(numbers, 0), palette), state={"x": "0"})


def _cells(inside: bool) -> Iterator[tuple[int, ...]]:
    """Each cell once, every second one with the other of what is drawn last."""
    names = (EARLY, meetings._WHERE, meetings._CLAIMS)
    each = product(*([table.index(name) for name in dict.fromkeys(table)] for table in names))
    for number, (early, where, claims) in enumerate(each):
        yield early, where, claims, 0, 0, number % 2, 3 * inside


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True], ids=["in one batch", "in a sub-batch"])
def test_laws_hold_in_every_cell(inside: bool) -> None:
    """Under a schedule that takes the second task that can run in each step."""
    for cell in _cells(inside):
        mix = _mix(PALETTE, *cell)
        execution = simulate(mix, [1] * 60)
        assert execution.error is None, mix
        assert check(execution.trace) == [], mix


def test_every_cell_is_another_batch() -> None:
    """But for those in which the call ends before its place matters."""
    cells = [*_cells(False)]
    assert len({repr(_mix(PALETTE, *cell)) for cell in cells}) > len(cells) / 2


def test_features_that_are_off_are_not_drawn() -> None:
    """No approval, no timeout, no key of the state, no sub-batch."""
    off = frozenset({"approvals", "timeouts", "sub-batches", "overwrite", "state", "broken"})
    palette = Palette(frozenset(FEATURES) - off)
    for cell in _cells(True):
        numbers = [number % 2 for number in cell]
        for call in _mix(palette, *numbers).calls:
            assert (call.approval, call.approval_after, call.timeout) == (None, None, None)
            assert not call.sub_batches
            assert not any("State" in type(action).__name__ for action in call.does)

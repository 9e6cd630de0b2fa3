"""Three calls that meet at one thing: every cell of the table is drawn, and is a batch that the laws hold for."""

from __future__ import annotations

from typing import Any

import pytest

from toolrt.invariants import Mix, check, simulate
from toolrt.testing import _strategies_meetings as meetings
from toolrt.testing._strategies_calls import FEATURES, Palette

PALETTE = Palette(frozenset(FEATURES))
#: How a call ends early, where it is then, and what the others claim.
CELLS = len(meetings._EARLY) * len(meetings._WHERE) * len(meetings._CLAIMS)
REST = len(meetings._SECONDS) * len(meetings._LATER) * len(meetings._EITHER)


def _mix(number: int, **settings: Any) -> Mix:
    return Mix(meetings.meeting(lambda strategy: number, PALETTE), state={"x": "0"}, **settings)


def test_every_cell_is_another_batch() -> None:
    """But for the two that stand twice in the table, which are drawn more often."""
    early, where = len(set(meetings._EARLY)), len(set(meetings._WHERE))
    assert len({repr(_mix(number)) for number in range(CELLS)}) >= early * where * len(meetings._CLAIMS) * 0.9


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True], ids=["in one batch", "in a sub-batch"])
@pytest.mark.parametrize("either", [False, True], ids=["one", "other"])
def test_laws_hold_in_every_cell(inside: bool, either: bool) -> None:
    """Under a schedule that takes the second task that can run in each step."""
    offset = CELLS * REST * 3 * inside + CELLS * REST // 2 * either
    for number in range(CELLS):
        mix = _mix(offset + number)
        execution = simulate(mix, [1] * 60)
        assert execution.error is None, mix
        assert check(execution.trace) == [], mix


def test_features_that_are_off_are_not_drawn() -> None:
    """No approval, no timeout, no sub-batch."""
    off = frozenset({"approvals", "timeouts", "sub-batches"})
    palette = Palette(frozenset(FEATURES) - off)
    for number in range(0, CELLS * REST * 4, 97):
        for call in meetings.meeting(lambda strategy, number=number: number, palette):
            assert (call.approval, call.approval_after, call.timeout) == (None, None, None)
            assert not call.sub_batches

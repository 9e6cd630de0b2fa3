"""The retail example: the rows and answers of a serial run, under every schedule, in less time."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrt import serial, sim

RETAIL = Path(__file__).parents[2] / "docs" / "examples" / "retail" / "retail.py"

_BATCHES = 12


class Shop(dict[str, Any]):
    """What the example's module defines, shown in few words."""

    def __repr__(self) -> str:
        return "Shop()"


@pytest.fixture(scope="module")
def retail() -> Shop:
    """What the example's module defines."""
    return Shop(runpy.run_path(str(RETAIL)))


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), order=st.integers(0, 10_000))
def test_rows_are_those_of_a_serial_run_under_every_schedule(retail: Shop, seed: int, order: int) -> None:
    """And so is every answer; the balance of a wallet that two calls change is the sum of both."""
    calls = retail["drawn"](seed)
    _, *expected = retail["ran"](calls, serial)
    _, *found = retail["ran"](calls, policy=sim.RandomWalk(order))
    assert found == expected


def test_batches_of_all_tools_are_more_than_2_7_times_faster_than_serial(retail: Shop) -> None:
    """On virtual time, over a part of the batches that the page tells of; each of the fifteen tools has answered."""
    slow = fast = 0.0
    answered = set()
    for seed in range(_BATCHES):
        calls = retail["drawn"](seed)
        slow += retail["ran"](calls, serial)[0]
        seconds, answers, _ = retail["ran"](calls)
        fast += seconds
        answered |= {call.name for call, (outcome, _, _) in zip(calls, answers, strict=True) if outcome == "OK"}
    assert len(answered) == 15
    assert slow / fast > 2.7

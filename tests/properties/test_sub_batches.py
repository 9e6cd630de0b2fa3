"""All laws for batches whose calls open sub-batches, whatever those do and whenever they are cancelled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt import sim
from toolrt.invariants import require
from toolrt.testing import Mix, schedules, simulate, tool_mixes


def opens(mix: Mix) -> bool:
    """Whether some call opens a sub-batch."""
    return any(call.sub_batches for call in mix.calls)


@pytest.mark.seldom
@given(mix=(tool_mixes(cancel=True) | tool_mixes()).filter(opens), schedule=schedules())
def test_laws_hold_inside_calls(mix: Mix, schedule: list[int]) -> None:
    """Under a schedule that Hypothesis draws, and shrinks."""
    execution = simulate(mix, schedule, replayed=True)
    require(execution.trace, context=f"mix: {mix!r}\nschedule: {schedule}")
    assert execution.error is None, execution.error


@pytest.mark.seldom
@given(mix=tool_mixes(max_calls=3).filter(opens), seed=st.integers(0, 2**16))
def test_laws_hold_inside_calls_that_are_cancelled_anywhere(mix: Mix, seed: int) -> None:
    """With a cancel before any step, among many schedules of each mix."""
    report = sim.explore(mix.program(), sim.Random(sim.RandomWalk(seed=seed), 15), mix.check, cancel_at="any")
    assert not report.failures, f"{mix!r}\n{report.failures[0].explain()}"

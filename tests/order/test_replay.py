"""The machine's decisions depend on its events alone: a fresh machine, told the same without Trio, says the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given

from tests.order._replay import Record, Replay, recording
from toolrt.invariants.mutants._mutant import patched
from toolrt.invariants.script import Scripted, Sleep, TakePlace
from toolrt.order import LaneRecord, Machine
from toolrt.testing import Mix, schedules, simulate, tool_mixes

# A batch that shares nothing with others, and opens none: one machine hears all.
_ALONE = ("sub_batches", "shared")


def recorded(mix: Mix, schedule: list[int]) -> Record:
    """What the machine of the mix was told under this schedule, and what it said."""
    with recording("mix") as found:
        simulate(mix, schedule)
    return found[0]


@pytest.mark.seldom
@given(
    mix=tool_mixes(without=_ALONE, cancel=True) | tool_mixes(without=_ALONE),
    schedule=schedules(),
)
@example(mix=Mix([Scripted([TakePlace("a", 2), TakePlace("a", 3)])]), schedule=[])  # an error that names the batch
def test_machine_says_the_same_without_trio(mix: Mix, schedule: list[int]) -> None:
    """Instructions and states, in the same order, for claims, modifiers, approvals, stops, timeouts and cancels."""
    record = recorded(mix, schedule)
    replay = Replay(record).run()
    assert [lane.state for lane in replay.machine.lanes] == [lane.state for lane in record.machine.lanes]
    assert replay.followed == sum(step[0] == "do" for step in record.steps)


def _highest_first(dispatch: Any) -> Any:
    def highest_first(self: Machine, lane: LaneRecord) -> None:
        lane.ready.sort(reverse=True)
        dispatch(self, lane)

    return highest_first


def test_replay_sees_a_machine_that_decides_otherwise() -> None:
    """Ready calls that take slots in another order are noticed at the first of them."""
    mix = Mix([Scripted([Sleep(1)], says="safe") for _ in range(3)], limit=1)
    record = recorded(mix, [])
    assert Replay(record).run().followed > 3
    with patched(Machine, "dispatch", _highest_first), pytest.raises(AssertionError, match="the machine says spawn"):
        Replay(record).run()

"""The machine of a batch, model-checked: whatever happens in whatever order, what must hold of its records holds.

Nothing here imports Trio.  What tools, policies and approval checks answer is chosen by Hypothesis.
"""

from __future__ import annotations

import subprocess
import sys
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from tests.order._batch_machine import TOOLS, BatchMachine
from tests.order._choices import Choices, choices
from tests.order._step import STATE, Instruction, PlainTool, Recording, Steps
from toolrt.errors import InternalError
from toolrt.model import Outcome
from toolrt.order import (
    BATCH,
    CALL,
    LANE,
    BatchMove,
    BatchState,
    CallMove,
    CallRecord,
    CallState,
    LaneMove,
    LaneRecord,
    LaneState,
)


@pytest.mark.seldom
@settings(max_examples=4 * settings.default.max_examples)
@given(choices=choices(250))
def test_machine_keeps_its_rules_whatever_happens(choices: Choices) -> None:
    """Events in any order that the shell may bring them in."""
    BatchMachine(choices).run()


#: A row of a table changed: the event, where, and where it leads to then.
MUTANTS: list[tuple[Any, Any, Any]] = [
    (CallMove.EXPECT, CallState.WAITING, CallState.WAITING),
    (CallMove.SPAWN, CallState.READY, CallState.READY),
    (CallMove.SETTLE, CallState.SPAWNED, CallState.ANSWERED),
    (CallMove.SETTLE, CallState.RUNNING, CallState.COMPLETED),
    (CallMove.END, CallState.FINISHING, CallState.FINISHING),
    (CallMove.TAKE, CallState.PLACED, CallState.PLACED),
    (CallMove.GRANT, CallState.WAITING, CallState.WAITING),
    (LaneMove.START, LaneState.FULL, LaneState.OPEN),
    (LaneMove.CLOSE, LaneState.OPEN, LaneState.OPEN),
    (BatchMove.SEAL, BatchState.OPEN, BatchState.OPEN),
]


@pytest.mark.parametrize(("event", "before", "after"), MUTANTS, ids=[f"{one[0]}-{one[1].name}" for one in MUTANTS])
def test_a_changed_row_is_caught(event: Any, before: Any, after: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model checker sees when a table says something else."""
    monkeypatch.setitem(event.leads, before, after)
    random = Random(0)
    with pytest.raises((AssertionError, InternalError, IndexError)):
        for _ in range(400):
            BatchMachine(Choices(random.randbytes(250))).run()


@pytest.mark.parametrize(
    ("states", "events", "table"),
    [(CallState, CallMove, CALL), (LaneState, LaneMove, LANE), (BatchState, BatchMove, BATCH)],
)
def test_every_state_and_event_is_used(states: Any, events: Any, table: Any) -> None:
    """Each event stands in the table, each state is reached or is the first one, and only the last has no way out."""
    reached = {after for (before, _), after in table.items() if after is not before}
    assert set(events) == {event for _, event in table}
    assert set(states) - reached <= {next(iter(states))}
    leaving = {before for before, _ in table}
    assert [state for state in states if state not in leaving] in ([], [list(states)[-1]])


def test_what_is_not_in_the_table_changes_nothing() -> None:
    """The table is asked before anything is written."""
    call = Steps(1).new_call(PlainTool())
    for event in CallMove:
        if (call.state, event) not in CALL:
            with pytest.raises(InternalError, match=f"toolrt bug: {event.value} is impossible for call 0"):
                call.happen(event)
            assert call.state is CallState.PLACED


def chosen(limit: int, calls: int, *preferred: int) -> tuple[Steps, Any, list[CallRecord], list[Instruction]]:
    """A lane of calls that claim nothing has begun, and a slot policy names those that are `preferred`, in turn."""
    steps = Steps(limit, prefers=True)
    steps.verbs.preferred = list(preferred)
    made = [steps.new_call(PlainTool(claims=lambda: ())) for _ in range(calls)]
    for call in made:
        steps.step("place", call, True)
    steps.step("seal")
    told = steps.step("begin", STATE)
    assert told[:calls] == [("claims", call.call_index) for call in made]
    return steps, steps.machine.lanes[0], made, told[calls:]


def ended(steps: Steps, lane: Any, call: CallRecord) -> list[Instruction]:
    call.happen(CallMove.START)
    steps.settle(call, Outcome.OK)
    return steps.step("finish", lane, call)


def test_slot_policy_names_the_call_that_starts() -> None:
    """It is asked for each slot while more calls are ready than there are slots."""
    steps, lane, calls, told = chosen(1, 4, 2, 3, 0)
    assert told == [("prefer", 0), ("spawn", 2)]
    assert ended(steps, lane, calls[2]) == [("prefer", 0), ("spawn", 3)]
    assert ended(steps, lane, calls[3]) == [("prefer", 0), ("spawn", 0)]
    assert ended(steps, lane, calls[0]) == [("spawn", 1)], "one call and one slot: there is nothing to choose"


def test_slot_policy_is_asked_for_one_slot_at_a_time() -> None:
    """Two slots are two questions; the calls that are left fit."""
    _, _, _, told = chosen(2, 3, 2, 1)
    assert told == [("prefer", 0), ("spawn", 2), ("prefer", 0), ("spawn", 1)]


class CancelsWhatItNames(Recording):
    """A slot policy that does more than to choose: it has the call that it names answered first, or the batch."""

    def __init__(self, all_of_them: bool) -> None:
        super().__init__()
        self.all_of_them, self.is_done = all_of_them, False
        self.machine: Any = None

    def prefer(self, lane: LaneRecord, ready: list[CallRecord], more_may_come: bool) -> CallRecord:
        call = super().prefer(lane, ready, more_may_come)
        if not self.is_done:
            self.is_done = True
            if self.all_of_them:
                self.machine.cancel("why", False)
            else:
                self.machine.cancel_call(call, "why")
        return call


def test_slot_policys_answer_is_dropped_where_the_call_is_not_ready_any_more() -> None:
    """It was answered meanwhile: another call takes the slot, or none does after a cancel."""
    for all_of_them in (False, True):
        verbs = CancelsWhatItNames(all_of_them)
        verbs.preferred = [3, 1]
        steps = Steps(1, prefers=True, verbs=verbs)
        verbs.machine = steps.machine
        for _ in range(4):
            steps.step("place", steps.new_call(PlainTool(claims=lambda: ())), True)
        steps.step("seal")
        spawned = [index for verb, index in steps.step("begin", STATE) if verb == "spawn"]
        assert spawned == ([] if all_of_them else [1])
        assert steps.machine.lanes[0].is_over == all_of_them


@pytest.mark.seldom
def test_lane_of_many_calls_begins_in_one_step() -> None:
    """Each call is let in once the one before it is, and neither stands inside the other."""
    batch = BatchMachine(Choices(b""))
    for _ in range(1_500):
        batch.steps.step("place", batch.steps.new_call(TOOLS[0]), True)
    assert len(batch.steps.step("begin", STATE)) > 1_500


def test_call_that_opens_a_lane_does_not_join() -> None:
    """The policy's answer comes with the event, also where the lane before it has begun."""
    steps = Steps(9)
    first, second, third = (steps.new_call(PlainTool(claims=lambda: ())) for _ in range(3))
    steps.step("place", first, True)
    steps.step("place", second, True, True)
    steps.step("begin", STATE)
    steps.step("place", third, True)
    assert [call.lane for call in (first, second, third)] == [0, 1, 1]


def test_machine_needs_no_trio() -> None:
    """The pure room can be imported, and its machine stepped, where there is no Trio."""
    program = (
        "import sys, types; sys.modules['trio'] = None\n"
        "from tests.order._step import STATE, PlainTool, Steps\n"
        "steps = Steps(1); call = steps.new_call(PlainTool())\n"
        "steps.step('place', call, False)\n"
        "assert steps.step('begin', STATE) == [('claims', 0), ('spawn', 0)]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

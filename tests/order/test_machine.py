"""The machine of a batch, model-checked: whatever happens in whatever order, what must hold of its records holds.

Nothing here imports Trio.  What tools, policies and approval checks answer is chosen by Hypothesis, as an event.
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
from tests.order._step import STATE, Instruction, PlainTool, Steps
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
    LaneState,
)


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


def waiting(limit: int, calls: int) -> tuple[Steps, Any, list[CallRecord]]:
    """A lane of calls that claim nothing, whose slot policy was just asked."""
    steps = Steps(limit, prefers=True)
    made = [steps.new_call(PlainTool(claims=lambda: ())) for _ in range(calls)]
    for call in made:
        steps.step("place", call, True)
    steps.step("seal")
    assert steps.step("begin", STATE) == [("ask", 0)]
    lane = steps.machine.lanes[0]
    for call in made[:-1]:
        assert steps.step("claimed", lane, call, (), None) == [("ask", call.call_index + 1)]
    assert steps.step("claimed", lane, made[-1], (), None) == [("prefer", 0)]
    return steps, lane, made


def ended(steps: Steps, lane: Any, call: CallRecord) -> list[Instruction]:
    call.happen(CallMove.START)
    steps.settle(call, Outcome.OK)
    return steps.step("finish", lane, call)


def test_slot_policys_answer_is_an_event_that_may_come_late() -> None:
    """Until it comes nothing starts; then the call that it names does, and the policy is asked for the next slot."""
    steps, lane, calls = waiting(1, 4)
    assert steps.step("dispatch", lane) == []
    assert steps.step("preferred", lane, calls[2]) == [("spawn", 2)]
    assert ended(steps, lane, calls[2]) == [("prefer", 0)]
    assert steps.step("preferred", lane, calls[3]) == [("spawn", 3)]
    assert ended(steps, lane, calls[3]) == [("prefer", 0)]
    assert steps.step("preferred", lane, calls[0]) == [("spawn", 0)]
    assert ended(steps, lane, calls[0]) == [("spawn", 1)], "one call and one slot: there is nothing to choose"


def test_slot_policy_is_asked_for_one_slot_at_a_time() -> None:
    """Two slots are two questions; the calls that are left fit."""
    steps, lane, calls = waiting(2, 3)
    assert steps.step("preferred", lane, calls[2]) == [("spawn", 2), ("prefer", 0)]
    assert steps.step("preferred", lane, calls[1]) == [("spawn", 1)]


def test_slot_policys_answer_is_dropped_where_the_call_is_not_ready_any_more() -> None:
    """It was answered, or runs: the machine asks again, or starts nothing after a cancel."""
    steps, lane, calls = waiting(1, 4)
    steps.settle(calls[3], Outcome.ERROR)
    steps.step("finish", lane, calls[3])
    assert steps.step("preferred", lane, calls[3]) == [("prefer", 0)]
    assert steps.step("preferred", lane, calls[1]) == [("spawn", 1)]
    assert ended(steps, lane, calls[1]) == [("prefer", 0)]
    steps, lane, calls = waiting(1, 3)
    steps.step("cancel", "why", False)
    assert steps.step("preferred", lane, calls[1]) == []
    assert lane.is_over


def test_lane_of_many_calls_begins_in_one_step() -> None:
    """Each call is let in by the answer about the one before it, and no answer stands inside another."""
    batch = BatchMachine(Choices(b""))
    for _ in range(1_500):
        batch.steps.step("place", batch.steps.new_call(TOOLS[0]), True)
    assert len(batch.steps.step("begin", STATE)) > 3_000


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
        "assert steps.step('begin', STATE) == [('ask', 0)]\n"
        "assert steps.step('claimed', steps.machine.lanes[0], call, (), None) == [('spawn', 0)]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

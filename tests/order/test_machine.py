"""The machine of a batch, model-checked: whatever happens in whatever order, what must hold of its records holds.

Nothing here imports Trio.  What tools, policies and approval checks answer is chosen by Hypothesis, as an event.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.order._step import STATE, Instruction, PlainTool, Steps
from toolrt.errors import InternalError
from toolrt.model import READ, WRITE, Claim, Outcome, ToolOutput
from toolrt.order import (
    BATCH,
    CALL,
    LANE,
    BatchMove,
    BatchState,
    CallMove,
    CallRecord,
    CallState,
    Holds,
    LaneMove,
    LaneState,
    MergedCall,
    Status,
)

CLAIMS = st.lists(
    st.builds(Claim, st.sampled_from(["a", "b", ("a", "x")]), st.sampled_from([READ, WRITE]), st.booleans()), max_size=2
).map(tuple)

#: What a tool is like: it declares claims, they look at something, it is pure, it is exclusive.
TOOLS = (
    PlainTool(claims=lambda: ()),
    PlainTool(claims=lambda: (), claims_after=lambda: ()),
    PlainTool(claims=lambda: (), pure=True),
    PlainTool(),
)


class BatchMachine(RuleBasedStateMachine):
    """One batch, driven by events alone."""

    def __init__(self) -> None:
        super().__init__()
        self.outstanding: list[Instruction] = []
        self.preferring: list[tuple[Any, list[int]]] = []
        self.spawned: list[int] = []
        self.answered: set[int] = set()
        self.cancelled = False

    @initialize(limit=st.sampled_from([1, 2, 9]), approves=st.booleans(), prefers=st.booleans())
    def begin(self, limit: int, approves: bool, prefers: bool) -> None:
        self.limit, self.approves = limit, approves
        self.steps = Steps(limit, approves, prefers=prefers)
        self.machine = self.steps.machine

    # What follows

    def follow(self, told: list[Instruction], data: Any) -> None:
        """Carry out what was told: ask at once, keep the rest for later events."""
        queue = list(told)
        while queue:
            verb, index = queue.pop(0)
            if verb == "wake" or verb.startswith("interrupt"):
                continue
            if verb == "prefer":
                lane = self.machine.lanes[index]
                assert len(lane.ready) > self.limit - lane.running > 0, "the slot policy has nothing to choose"
                self.preferring.append((lane, list(lane.ready)))
                continue
            call = self.machine.calls[index]
            lane = self.machine.lanes[call.lane if call.lane is not None else self.machine.current]
            if verb == "ask" and call.tool is not None and call.tool.claims_after is not None:
                looked_at = data.draw(CLAIMS)
                more = self.steps.step("looks", lane, call, looked_at) if looked_at else self.claimed(lane, call, data)
                queue = more + queue
            elif verb in ("ask", "ask_claims"):
                queue = self.claimed(lane, call, data) + queue
            elif verb == "ask_early":
                call.asked = data.draw(CLAIMS)
            elif verb == "ask_late":
                queue = self.steps.step("looks_now", lane, call, data.draw(CLAIMS)) + queue
            elif verb == "ask_now":
                why = data.draw(st.sampled_from([None, None, "refused"]))
                queue = self.steps.step("known", lane, call, data.draw(CLAIMS), call.after, why) + queue
            elif verb == "ask_again":
                if data.draw(st.booleans()):
                    queue = self.steps.step("holds", lane, call) + self.steps.step("dispatch", lane) + queue
                else:
                    queue = self.end_unstarted(lane, call, Outcome.ERROR) + queue
            elif verb == "decide":
                queue = self.decide(lane, call, data) + queue
            elif verb == "spawn":
                assert not self.cancelled, "something was spawned after a cancel"
                assert call.state in (CallState.SPAWNED, CallState.RESPAWNED)
                assert all(ticket.ready for ticket in call.tickets), "it was spawned before its tickets were granted"
                self.spawned.append(index)
            elif verb == "approve":
                self.outstanding.append((verb, index))
            else:
                assert index not in self.answered or verb == "skipped", f"call {index} was answered twice"
                self.answered.add(index)

    def claimed(self, lane: Any, call: CallRecord, data: Any) -> list[Instruction]:
        claims = data.draw(CLAIMS) if lane.shared else (Claim((), WRITE, subtree=True),)
        if call.asked is not None:
            claims, call.asked = call.asked, None
        return self.steps.step("claimed", lane, call, claims, data.draw(st.sampled_from([None] * 5 + ["refused"])))

    def end_unstarted(self, lane: Any, call: CallRecord, outcome: Outcome) -> list[Instruction]:
        self.settle(call, outcome)
        return self.steps.step("finish", lane, call) + self.steps.step("failed", lane, call)

    def settle(self, call: CallRecord, outcome: Outcome) -> None:
        self.steps.settle(call, outcome)
        self.answered.add(call.call_index)

    def decide(self, lane: Any, call: CallRecord, data: Any) -> list[Instruction]:
        """A call that returned modifiers: they apply, or it is stale and runs again, or is refused."""
        again = call.tool is not None and call.tool.pure and not self.cancelled and call.saw is None
        if again and data.draw(st.booleans()):
            return self.steps.step("repeat", lane, call, STATE, "stale")
        self.settle(call, Outcome.OK)
        call.merged = MergedCall(STATE, STATE, ())
        return self.steps.step("decide", lane)

    # What happens

    @precondition(lambda self: self.machine.state in (BatchState.OPEN, BatchState.CANCELLED))
    @rule(tool=st.sampled_from(TOOLS), stops=st.booleans(), data=st.data())
    def submit(self, tool: PlainTool, stops: bool, data: Any) -> None:
        if len(self.machine.calls) >= 6:
            return
        call = self.steps.new_call(tool, stops)
        if self.machine.stopped_by is not None or self.cancelled:
            self.follow(self.steps.step("answer_late", call), data)
        else:
            opens = data.draw(st.sampled_from([False, False, False, True]))
            self.follow(self.steps.step("place", call, tool.claims is not None, opens), data)

    @precondition(lambda self: self.machine.running is None and self.machine.current + 1 < len(self.machine.lanes))
    @rule(data=st.data())
    def lane_begins(self, data: Any) -> None:
        if self.cancelled:
            self.steps.step("pass_over", STATE)
            self.steps.step("merged", self.machine.lanes[self.machine.current], STATE)
        else:
            self.follow(self.steps.step("begin", STATE), data)

    @precondition(lambda self: self.outstanding)
    @rule(allow=st.booleans(), data=st.data())
    def approval_answers(self, allow: bool, data: Any) -> None:
        _, index = self.outstanding.pop(0)
        call = self.machine.calls[index]
        lane = self.machine.lanes[call.lane or 0]
        if call.state is not CallState.UNAPPROVED:
            return
        if allow:
            self.follow(self.steps.step("allowed", lane, call) + self.steps.step("dispatch", lane), data)
        else:
            self.follow(self.end_unstarted(lane, call, Outcome.DENIED), data)

    @precondition(lambda self: self.preferring)
    @rule(which=st.integers(0, 5), data=st.data())
    def slot_policy_answers(self, which: int, data: Any) -> None:
        """It names a call that was ready when it was asked, and may not be any more."""
        lane, ready = self.preferring.pop(0)
        call = self.machine.calls[ready[which % len(ready)]]
        self.follow(self.steps.step("preferred", lane, call), data)

    @precondition(lambda self: self.spawned)
    @rule(which=st.integers(0, 5))
    def task_starts(self, which: int) -> None:
        call = self.machine.calls[self.spawned.pop(which % len(self.spawned))]
        if call.state in (CallState.SPAWNED, CallState.RESPAWNED):
            call.happen(CallMove.START)
        elif call.state is CallState.DROPPED:
            self.steps.step("finish", self.machine.lanes[call.lane or 0], call)

    def running(self) -> list[CallRecord]:
        return [
            call
            for call in self.machine.calls
            if call.state in (CallState.RUNNING, CallState.RETURNED)
            or (call.state in (CallState.DROPPED, CallState.FINISHING) and call.call_index not in self.spawned)
        ]

    @precondition(lambda self: self.running())
    @rule(which=st.integers(0, 5), how=st.sampled_from(["ok", "modifiers", "fails", "ends"]), data=st.data())
    def task_goes_on(self, which: int, how: str, data: Any) -> None:
        found = self.running()
        call = found[which % len(found)]
        lane = self.machine.lanes[call.lane or 0]
        if call.state is not CallState.RUNNING:
            self.follow(self.steps.step("finish", lane, call), data)
        elif how == "ok":
            self.settle(call, Outcome.OK)
            self.follow(self.steps.step("decide", lane), data)
        elif how == "modifiers" and lane.shared:
            call.undecided = ToolOutput("", modifiers=(lambda state: state,))
            call.modifiers = call.undecided.modifiers
            lane.modified.append(call)
            self.follow(self.steps.step("returned", lane, call), data)
        elif how == "fails":
            self.settle(call, Outcome.ERROR)
            self.follow(self.steps.step("failed", lane, call), data)

    @rule(data=st.data())
    def seal(self, data: Any) -> None:
        if self.machine.state is not BatchState.SEALED and self.machine.state is not BatchState.ENDING:
            self.follow(self.steps.step("seal"), data)
            assert self.machine.is_complete

    @precondition(lambda self: self.machine.state in (BatchState.OPEN, BatchState.SEALED) and self.machine.calls)
    @rule(data=st.data(), sure=st.integers(0, 2))
    def cancel(self, data: Any, sure: int) -> None:
        if sure == 0:
            self.cancelled = True
            self.follow(self.steps.step("cancel", "why", False), data)

    @precondition(lambda self: self.machine.running is not None and self.machine.running.is_over)
    @rule()
    def lane_ends(self) -> None:
        lane = self.machine.running
        assert lane is not None
        assert all(call.state.holds is Holds.NOTHING for call in lane.calls), (
            "a lane is over and a call holds something"
        )
        assert (lane.running, lane.undecided) == (0, 0)
        self.steps.step("merged", lane, STATE)

    # What must hold

    @invariant()
    def holds(self) -> None:
        """Slots are counted, the limit is kept, conflicting calls do not run together, lanes follow each other."""
        machine = self.machine
        having = [call for call in machine.calls if call.state.holds is Holds.SLOT]
        assert len(having) <= self.limit, "more calls run than the limit says"
        for lane in machine.lanes:
            mine = [call for call in lane.calls if call.state.holds is not Holds.NOTHING]
            assert lane.running == sum(call.state.holds is Holds.SLOT for call in lane.calls), "slots were miscounted"
            assert lane.shared or lane.state is not LaneState.OPEN, "a call may join one that runs alone"
            assert not mine or lane is machine.running, "a call outside the lane that runs holds something"
        runs = [call for call in having if call.state in (CallState.RUNNING, CallState.SPAWNED)]
        for call in runs:
            others = [one for one in runs if one.call_index > call.call_index]
            clash = [
                one for one in others for mine in call.claims for theirs in one.claims if mine.conflicts_with(theirs)
            ]
            assert not clash, f"{call} and {clash} run together"
            assert self.approves is False or call.call_index not in [index for _, index in self.outstanding]
        for call in machine.calls:
            over = call.state in (CallState.COMPLETED, CallState.YIELDED)
            assert not (over and call.tickets), f"{call} is over and has tickets"
            assert (call.result is None) == (call.status in (Status.QUEUED, Status.EXECUTING))

    @invariant()
    def goes_on(self) -> None:
        """Where nothing runs and nothing is to be answered, no call of the lane that runs waits."""
        lane = self.machine.running
        if (
            lane is None
            or self.outstanding
            or self.preferring
            or any(call.state.holds is Holds.SLOT for call in lane.calls)
        ):
            return
        stuck = [call for call in lane.calls if call.status in (Status.QUEUED, Status.EXECUTING)]
        assert not stuck, f"{stuck} wait and nothing will wake them"

    def teardown(self) -> None:
        """Bring the batch to its end: every call is answered, and nothing is left in the tables."""
        if not hasattr(self, "machine"):
            return
        if self.machine.state in (BatchState.OPEN, BatchState.SEALED):
            self.cancelled = True
            self.steps.step("cancel", "the end", False)
        while (lane := self.machine.running) is not None:
            for call in lane.calls:
                if call.state is CallState.RUNNING:
                    self.settle(call, Outcome.INTERRUPTED)
                if call.state.holds is Holds.SLOT:
                    for _, index in self.steps.step("finish", lane, call):
                        self.settle_if_open(index)
            self.settle_undecided(lane)
            assert lane.is_over, lane.story()
            self.steps.step("merged", lane, STATE)
        for call in self.machine.calls:
            assert call.status in (Status.COMPLETED, Status.YIELDED), call
        for table in self.machine.admission.tables:
            assert table.statistics() == dict.fromkeys(table.statistics(), 0)

    def settle_if_open(self, index: int) -> None:
        if index >= 0 and self.machine.calls[index].state in (CallState.RETURNED, CallState.UNDECIDED):
            self.settle(self.machine.calls[index], Outcome.OK)

    def settle_undecided(self, lane: Any) -> None:
        while lane.undecided:
            told = self.steps.step("decide", lane)
            assert told or not lane.undecided, "calls wait for a decision that nothing brings"
            for _, index in told:
                self.settle_if_open(index)


def test_machine_keeps_its_rules_whatever_happens() -> None:
    """Events in any order that the shell may bring them in."""
    run_state_machine_as_test(BatchMachine, settings=settings(stateful_step_count=25, max_examples=40))  # type: ignore[no-untyped-call]


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
    found = settings(
        max_examples=400,
        stateful_step_count=25,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    with pytest.raises((AssertionError, InternalError, IndexError)):
        run_state_machine_as_test(BatchMachine, settings=found)  # type: ignore[no-untyped-call]


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

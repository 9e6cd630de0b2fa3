"""The machine of a batch beside its rules: whatever happens in whatever order, what must hold of its records holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from tests.order._batch_shell import Owner, Shell, conflict
from tests.order._choices import Choices
from tests.order._step import STATE, Instruction, PlainTool, Steps
from toolrt.model import READ, WRITE, Claim, Outcome, State, ToolOutput
from toolrt.model._watched_state import StateReads
from toolrt.order import (
    BatchState,
    CallMove,
    CallRecord,
    CallState,
    ClaimTable,
    Holds,
    LanePlace,
    LaneRecord,
    LaneState,
    LentSlot,
    Slots,
    Status,
)

RESOURCES = ["a", "b", ("a", "x"), ("a",), ("state", "k"), ("state", "j"), ("state",), ()]

#: What a tool is like: it declares claims, they look at something, it is pure, it is exclusive.
TOOLS = (
    PlainTool(claims=lambda: ()),
    PlainTool(claims=lambda: (), is_async=False),
    PlainTool(claims=lambda: (), claims_after=lambda: ()),
    PlainTool(claims=lambda: (), claims_after=lambda: (), looks_again=True),
    PlainTool(claims=lambda: (), pure=True),
    PlainTool(),
)

FAILED = (Outcome.ERROR, Outcome.INVALID, Outcome.DENIED)


class BatchMachine:
    """One batch, driven by events alone.

    Args:
        choices: what happens next, and what tools, policies and approval checks answer.
    """

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.outstanding: list[Instruction] = []
        #: The call that the slot policy has named, and that has not started; None: there is none.
        self.preferred: CallRecord | None = None
        #: The calls whose modifiers were asked for, each with its lane and, if it is stale, the state they were given.
        self.stale: list[tuple[LaneRecord, CallRecord, State | None]] = []
        self.spawned: list[int] = []
        self.answered: set[int] = set()
        self.cancelled = False

        limit, approves, prefers = choices.one_of((1, 2, 3, 9)), choices.one_in(3), choices.one_in(4)
        owners, inside = choices.below(3), choices.one_in(3)
        self.limit, self.approves = limit, approves
        tables = ClaimTable("runtime"), *(ClaimTable(f"owner {number}") for number in range(owners))
        self.owners = [None, *(Owner(table) for table in tables[1:])]
        #: The lane of the outer batch, in whose call this batch is open.
        self.outer = LaneRecord(LanePlace(0), True) if inside else None
        lent = None
        if self.outer is not None:
            self.outer.running = 1
            self.outer.slots = Slots("outer", self.outer, limit, lambda: None)
            lent = LentSlot(self.outer.slots)
        self.outside = 1
        shell = Shell()
        shell.batch = self
        self.steps = Steps(limit, approves, tables, prefers, lent, shell)
        self.machine = self.steps.machine
        #: Who failed of those that stop the batch; who had to wait; who was asked for its claims again since.
        self.failures: list[int] = []
        self.waited: set[int] = set()
        self.asked_again: set[int] = set()
        #: The lanes in which calls were asked early.
        self.asked_in: dict[int, LaneRecord] = {}

    def step(self, event: str, *values: Any) -> list[Instruction]:
        """Let it happen, and look at what the shell would be told of it."""
        before = self.situation()
        told = self.steps.step(event, *values)
        assert self.preferred is None, "the call that the slot policy names does not start"
        while self.stale:
            self.decided(*self.stale.pop())
        return self.told(event, before, told)

    def decided(self, lane: LaneRecord, call: CallRecord, state: State | None) -> None:
        """A stale call runs again on the `state` that the earlier ones leave, or is refused; any other one is over."""
        assert call.tool is not None
        if state is None or (call.result is not None and call.result.outcome is Outcome.SKIPPED):
            assert call.result is not None
        elif call.tool.pure and not self.cancelled:
            assert (call.modifiers, call.merged, call.undecided, call.reads) == ((), None, None, None)
            assert call.saw is state
            assert call.stale.startswith("stale write of state key 'k'")
            assert call not in lane.modified
        else:
            assert call.result is not None
            assert call.result.outcome is Outcome.ERROR
            assert (call.modifiers, call.merged) == ((), None)
            assert call not in lane.modified

    def told(self, event: str, before: set[str], told: list[Instruction]) -> list[Instruction]:
        self.look_at(told)
        spawned = [index for verb, index in told if verb == "spawn"]
        if not self.steps.machine.prefers and spawned:
            lane = self.machine.running
            assert lane is not None
            for call in lane.calls:
                assert call.state is not CallState.READY or call.call_index > max(spawned), (
                    "it takes slots out of order"
                )
        if event not in ("begin", "pass_over", "merged") and ("wake", -1) not in told:
            assert self.situation() <= before, f"the shell sleeps through {event}"
        for place, (verb, index) in enumerate(told):
            if verb == "skipped" and event != "answer_late":
                assert ("interrupt", index) in told[:place], "it is skipped and goes on"
            if verb in ("invalid", "error"):
                self.note_failure(self.machine.calls[index])
        return told

    def situation(self) -> set[str]:
        """What has come of that for which the shell waits."""
        lane = self.machine.running
        if lane is not None:
            return {"the lane is over"} if lane.is_over else set()
        more = self.machine.current + 1 < len(self.machine.lanes)
        return {"another lane"} if more else {"the end"} if self.machine.is_complete else set()

    def note_failure(self, call: CallRecord) -> None:
        if call.stops and not self.cancelled:
            self.failures.append(call.call_index)

    def free(self) -> float:
        """How many calls more may run."""
        inner = sum(call.state.holds is Holds.SLOT for call in self.machine.calls)
        if self.outer is None:
            return self.limit - inner
        used = self.outside + max(0, inner - 1)
        assert self.outer.running == used, "slots were miscounted"
        return (inner == 0) + max(0, self.limit - used)

    def look_at(self, told: list[Instruction]) -> None:
        """Look at instructions that were carried out."""
        for verb, index in told:
            if verb in ("wake", "spawn", "prefer", "looks_at", "claims", "stale", "applied", "interrupt"):
                continue
            if verb.startswith("interrupt_") or verb == "fix_result":
                continue
            if verb == "approve":
                self.outstanding.append((verb, index))
                continue
            assert index not in self.answered or verb == "skipped", f"call {index} was answered twice"
            self.answered.add(index)

    def end_unstarted(self, lane: LaneRecord, call: CallRecord, outcome: Outcome) -> None:
        self.settle(call, outcome)
        self.note_failure(call)
        self.machine.finish(lane, call)
        self.machine.failed(lane, call)

    def settle(self, call: CallRecord, outcome: Outcome) -> None:
        self.steps.settle(call, outcome)
        self.answered.add(call.call_index)

    def some_claims(self) -> tuple[Claim, ...]:
        choices = self.choices
        return tuple(
            Claim(choices.one_of(RESOURCES), choices.one_of((WRITE, READ)), choices.one_in(3))
            for _ in range(choices.one_of((1, 1, 1, 2, 0)))
        )

    # What happens

    def run(self) -> None:
        """Let happen what may, until there is nothing left to choose; what must hold does after each event."""
        while self.choices.more:
            self.choices.one_of([event for often, event in self.events() for _ in range(often)])()
            for rule in (
                self.holds,
                self.waits_for_nothing_else,
                self.lanes_keep_state_keys_apart,
                self.every_call_has_its_place,
                self.results_are_decided_in_call_order,
                self.cuts_go_through,
                self.goes_on,
            ):
                rule()
        self.bring_to_its_end()

    def events(self) -> Iterator[tuple[int, Callable[[], None]]]:
        """What may happen now, and how often it should."""
        machine, lane = self.machine, self.machine.running
        if machine.state in (BatchState.OPEN, BatchState.CANCELLED) and len(machine.calls) < 8:
            yield 6, self.submit
        if lane is None and machine.current + 1 < len(machine.lanes):
            yield 3, self.lane_begins
        if self.outstanding:
            yield 3, self.approval_answers
        if self.spawned:
            yield 4, self.task_starts
        if self.running():
            yield 6, self.task_goes_on
        if machine.state not in (BatchState.SEALED, BatchState.ENDING):
            yield 1, self.seal
        if machine.state in (BatchState.OPEN, BatchState.SEALED) and machine.calls and self.choices.one_in(16):
            yield 8, self.cancel
        if self.outer is not None:
            yield 2, self.outer_call
        if lane is not None and lane.is_over:
            yield 4, self.lane_ends
        yield 1, lambda: None

    def submit(self) -> None:
        tool, stops = self.choices.one_of(TOOLS), self.choices.one_in(4)
        owner = self.choices.one_of(self.owners)
        call = self.steps.new_call(attrs.evolve(tool, owner=owner), stops)
        if self.machine.stopped_by is not None or self.cancelled:
            told = self.step("answer_late", call)
            expected = Outcome.NOT_STARTED if self.machine.stopped_by is None else Outcome.SKIPPED
            assert told == [(expected.value, call.call_index)]
        else:
            opens = self.choices.one_in(5)
            joins = tool.claims is not None and not opens
            last = self.machine.lanes[-1] if self.machine.lanes else None
            gathers = last is not None and last.state is LaneState.GATHERING
            self.step("place", call, tool.claims is not None, opens)
            if not joins or gathers:
                assert call.lane == len(self.machine.lanes) - 1
                assert (self.machine.lanes[-1] is last) == joins

    def lane_begins(self) -> None:
        if self.cancelled:
            self.step("pass_over", STATE)
            self.step("merged", self.machine.lanes[self.machine.current], STATE)
        else:
            self.step("begin", STATE)

    def approval_answers(self) -> None:
        allow = not self.choices.one_in(3)
        _, index = self.outstanding.pop(self.choices.below(len(self.outstanding)))
        call = self.machine.calls[index]
        lane = self.machine.lanes[call.lane or 0]
        if call.state is not CallState.UNAPPROVED:
            return
        if allow:
            self.step("allowed", lane, call)
            self.step("dispatch", lane)
        else:
            before = self.situation()
            self.end_unstarted(lane, call, Outcome.DENIED)
            self.told("denied", before, self.steps.collect())

    def task_starts(self) -> None:
        call = self.machine.calls[self.spawned.pop(self.choices.below(len(self.spawned)))]
        if call.state in (CallState.SPAWNED, CallState.RESPAWNED):
            call.happen(CallMove.START)
        elif call.state is CallState.DROPPED:
            self.step("finish", self.machine.lanes[call.lane or 0], call)

    def running(self) -> list[CallRecord]:
        return [
            call
            for call in self.machine.calls
            if call.state in (CallState.RUNNING, CallState.RETURNED)
            or (call.state in (CallState.DROPPED, CallState.FINISHING) and call.call_index not in self.spawned)
        ]

    def task_goes_on(self) -> None:
        call = self.choices.one_of(self.running())
        how = self.choices.one_of(("ok", "modifiers", "modifiers", "fails"))
        lane = self.machine.lanes[call.lane or 0]
        if call.state is not CallState.RUNNING:
            self.step("finish", lane, call)
        elif how == "ok":
            self.settle(call, Outcome.OK)
            self.step("decide", lane)
        elif how == "modifiers" and lane.shared:
            call.undecided = ToolOutput("", modifiers=(lambda state: state,))
            call.reads = StateReads()
            if self.choices.one_in(2):
                call.reads.parts.add("k")
            call.modifiers = call.undecided.modifiers
            lane.modified.append(call)
            self.step("returned", lane, call)
        elif how == "fails":
            self.settle(call, Outcome.ERROR)
            self.note_failure(call)
            self.step("failed", lane, call)

    def seal(self) -> None:
        self.step("seal")
        assert self.machine.is_complete

    def cancel(self) -> None:
        self.cancelled = True
        before = [call.call_index for call in self.machine.calls if call.status is not Status.QUEUED]
        lane = self.machine.running
        told = self.step("cancel", "why", False)
        assert [index for verb, index in told if verb == "interrupt_children"] == before
        assert [index for verb, index in told if verb == "interrupt_lane"] == ([] if lane is None else [lane.index])

    def outer_call(self) -> None:
        """A call beside the parent starts, if it has a slot, or ends and gives it back."""
        starts = self.choices.one_in(2)
        assert self.outer is not None
        assert self.outer.slots is not None
        if starts and self.outer.running < self.limit:
            self.outer.running += 1
            self.outside += 1
        elif not starts and self.outside > 1:
            self.outer.running -= 1
            self.outside -= 1
            self.outer.slots.hand_out()
            self.look_at(self.steps.collect())

    def lane_ends(self) -> None:
        lane = self.machine.running
        assert lane is not None
        assert all(call.state.holds is Holds.NOTHING for call in lane.calls), (
            "a lane is over and a call holds something"
        )
        assert (lane.running, _waiting(lane)) == (0, 0)
        self.step("merged", lane, STATE)

    # What must hold

    def holds(self) -> None:
        """Slots are counted, the limit is kept, conflicting calls do not run together, lanes follow each other."""
        machine = self.machine
        having = [call for call in machine.calls if call.state.holds is Holds.SLOT]
        assert len(having) <= self.limit, "more calls run than the limit says"
        assert self.free() >= 0
        for lane in machine.lanes:
            mine = [call for call in lane.calls if call.state.holds is not Holds.NOTHING]
            assert lane.running == sum(call.state.holds is Holds.SLOT for call in lane.calls), "slots were miscounted"
            assert lane.shared or lane.state is not LaneState.OPEN, "a call may join one that runs alone"
            assert not mine or lane is machine.running, "a call outside the lane that runs holds something"
        runs = [call for call in having if call.state in (CallState.RUNNING, CallState.SPAWNED)]
        for call in runs:
            assert not self.blockers(call), f"{call} runs together with one that it waits for"
            assert self.approves is False or call.call_index not in [index for _, index in self.outstanding]
        for call in machine.calls:
            over = call.state in (CallState.COMPLETED, CallState.YIELDED)
            assert not (over and call.tickets), f"{call} is over and has tickets"
            assert (call.result is None) == (call.status in (Status.QUEUED, Status.EXECUTING))

    def blockers(self, call: CallRecord) -> list[CallRecord]:
        """The earlier calls of its lane that it has to wait for."""
        mine = self.machine.lanes[call.lane or 0].calls
        return [one for one in mine[: mine.index(call)] if one.tickets and conflict(one, call)]

    def waits_for_nothing_else(self) -> None:
        """A call waits for an earlier conflict, an approval, a claim that is not known yet, or a slot."""
        lane = self.machine.running
        if lane is None:
            return
        if not lane.unfinished and lane.stands_at is None:
            assert lane.is_over == (self.machine.is_complete or lane is not self.machine.lanes[-1] or not lane.shared)
        for place, call in enumerate(lane.calls):
            blockers = self.blockers(call)
            if call.state is CallState.ASKING:
                assert lane.stands_at is call
                assert not any(one.tickets for one in lane.calls[place + 1 :]), "the lane does not stand still"
            if call.state in (CallState.WAITING, CallState.ASKING):
                assert blockers, f"{call} waits for nothing"
            if call.state in (CallState.WAITING, CallState.ASKING, CallState.UNAPPROVED):
                assert (call.missing > 0) == bool(blockers)
                if blockers and call.tool is not None and not call.tool.looks_again:
                    self.waited.add(call.call_index)
            elif call.state is CallState.PLACED:
                assert lane.stands_at is not None, f"{call} was not let in"
                tool = call.tool
                assert tool is not None
                early = tool.claims_after is None and not tool.looks_again
                assert (call.asked is not None) == early, "how long the lane stands still decides what it claims"
            elif call.state in (CallState.READY, CallState.AGAIN):
                assert not blockers
                assert self.free() <= 0, f"{call} waits, and a slot is free"

    def lanes_keep_state_keys_apart(self) -> None:
        """No two calls of a shared lane have claims on the state that conflict; a claim on everything may stay."""
        for lane in self.machine.lanes:
            known = [call for call in lane.calls if call.tickets]
            for place, call in enumerate(known):
                keys = [one for one in (*call.claims, *call.after) if one.resource[:1] == ("state",)]
                for earlier in known[:place] if lane.shared and call.state is not CallState.ASKING else ():
                    theirs = (*earlier.claims, *earlier.after)
                    assert not any(one.conflicts_with(other) for one in keys for other in theirs)

    def every_call_has_its_place(self) -> None:
        """Lanes take the calls in call order; a call that is in none was answered at once."""
        placed = [call for lane in self.machine.lanes for call in lane.calls]
        assert placed == [call for call in self.machine.calls if call in placed]
        assert all(call in placed or call.result is not None for call in self.machine.calls)
        for number, lane in enumerate(self.machine.lanes):
            assert lane.index == number
            assert lane.shared or len(lane.calls) == 1
            for call in lane.calls:
                assert call.tool is not None
                assert lane.shared == call.safe == (call.tool.claims is not None)
                assert call.asked is None or self.asked_in[call.call_index] is lane, "its claims are of another lane"
            assert all(call.lane == number for call in lane.calls)

    def results_are_decided_in_call_order(self) -> None:
        """A call that returned modifiers waits for results of earlier calls, and for nothing else."""
        for lane in self.machine.lanes:
            waiting = [call for call in lane.calls if call.undecided is not None]
            assert _waiting(lane) == len(waiting), "those who wait were miscounted"
            if waiting and lane is self.machine.running:
                earlier = lane.calls[: lane.calls.index(waiting[0])]
                assert any(call.result is None for call in earlier), f"{waiting[0]} waits for no result"
            if lane.decisions is not None:
                after = [call.merged.after for call in lane.calls if call.merged is not None]
                assert any(lane.decisions.state is state for state in (STATE, *after))

    def cuts_go_through(self) -> None:
        """Of the calls that stop the batch the first one counts; nothing behind it, or after a cancel, is to come."""
        machine = self.machine
        assert (None if machine.stopped_by is None else machine.stopped_by.call_index) == min(
            self.failures, default=None
        )
        for call in machine.calls:
            if self.failures and call.call_index > min(self.failures):
                assert call.result is not None
                assert call.result.outcome is Outcome.SKIPPED
            if self.cancelled:
                assert call.status is not Status.QUEUED
                assert call.state not in (CallState.AGAIN, CallState.RESPAWNED)

    def goes_on(self) -> None:
        """Where nothing runs and nothing is to be answered, no call of the lane that runs waits."""
        lane = self.machine.running
        if lane is None or self.outstanding or any(call.state.holds is Holds.SLOT for call in lane.calls):
            return
        stuck = [call for call in lane.calls if call.status in (Status.QUEUED, Status.EXECUTING)]
        assert not stuck, f"{stuck} wait and nothing will wake them"

    def bring_to_its_end(self) -> None:
        """Every call is answered, and nothing is left in the tables."""
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
        while _waiting(lane):
            told = self.steps.step("decide", lane)
            assert told or not _waiting(lane), "calls wait for a decision that nothing brings"
            for _, index in told:
                self.settle_if_open(index)


def _waiting(lane: LaneRecord) -> int:
    return 0 if lane.decisions is None else lane.decisions.waiting

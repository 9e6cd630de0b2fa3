"""The shell of the machine's model: carries its instructions out, and says which calls conflict or change others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from tests.order._step import Recording
from toolrt.model import WRITE, Claim, Outcome, State, ToolOutput
from toolrt.model._watched_state import StateReads
from toolrt.order import (
    BatchState,
    CallMove,
    CallRecord,
    CallState,
    ClaimTable,
    FoundClaims,
    LaneRecord,
    MergedCall,
    Status,
)
from toolrt.order._record import AppliedModifier

if TYPE_CHECKING:
    from tests.order._batch_machine import BatchMachine


@attrs.frozen(eq=False)
class Owner:
    """Stands for a workspace: its tools order themselves in its table."""

    claim_table: ClaimTable


def conflict(first: CallRecord, second: CallRecord) -> bool:
    """Whether `second` has to wait for `first`, which took its tickets before it, as the rules have it."""
    lane = first.siblings
    assert first.tool is not None
    assert second.tool is not None
    undecided = first.state is CallState.UNDECIDED and not first.tool.pure
    same = first.tool.owner is second.tool.owner
    for mine in () if undecided else (*first.claims, *first.after):
        for theirs in (*second.claims, *second.after):
            if mine.conflicts_with(theirs) and (same or not (mine.resource and theirs.resource)):
                return True
    if first.lane != second.lane or not (first.stops or second.stops) or second.state is CallState.ASKING:
        return False
    if first.stops:
        return second.stops or not second.reads_only
    stops_before = any(one.stops and one.lane == first.lane for one in lane[: first.call_index])
    return stops_before and not first.reads_only


def changes(earlier: CallRecord, call: CallRecord) -> bool:
    """Whether the claims of `call` look at what `earlier` may change: a tool that looks again fears moves alone."""
    assert earlier.tool is not None
    assert call.tool is not None
    wide = any(claim.subtree and claim.mode is WRITE for claim in earlier.claims)
    return (
        earlier.tool.owner is call.tool.owner
        and (wide or not call.tool.looks_again)
        and any(mine.conflicts_with(theirs) for mine in earlier.claims for theirs in call.after)
    )


class Shell(Recording):
    """Answers questions at once, as the runtime does, and notes what is to be done."""

    batch: BatchMachine

    def spawn(self, lane: LaneRecord, calls: list[CallRecord]) -> None:
        super().spawn(lane, calls)
        batch = self.batch
        preferred, batch.preferred = batch.preferred, None
        assert preferred is None or calls == [preferred], "another call took the slot"
        assert not batch.cancelled, "something was spawned after a cancel"
        for call in calls:
            assert call.state in (CallState.SPAWNED, CallState.RESPAWNED)
            assert not batch.blockers(call), "it was spawned before its tickets were granted"
            fresh = call.call_index in batch.asked_again or call.call_index not in batch.waited
            assert fresh, "its claims may have changed"
            batch.spawned.append(call.call_index)

    def looks_at(self, lane: LaneRecord, call: CallRecord) -> tuple[Claim, ...]:
        super().looks_at(lane, call)
        if call.state is CallState.ASKING:
            assert not self.batch.blockers(call), "what its claims look at may still change"
            if self.batch.choices.one_in(2):
                return call.after
        return self.batch.some_claims()

    def claims(self, lane: LaneRecord, call: CallRecord) -> FoundClaims:
        super().claims(lane, call)
        batch = self.batch
        if lane.stands_at is None:
            for earlier in lane.calls[: lane.calls.index(call)] if call in lane.calls else lane.calls:
                assert not (earlier.tickets and changes(earlier, call)), "what its claims look at may still change"
            batch.waited.discard(call.call_index)
        elif lane.stands_at is call:
            assert not batch.blockers(call), "what its claims look at may still change"
        else:  # it is asked early
            batch.asked_in[call.call_index] = lane
            batch.waited.add(call.call_index)
        claims = batch.some_claims() if lane.shared else (Claim((), WRITE, subtree=True),)
        return claims, claims if lane.shared else (), "refused" if batch.choices.one_in(8) else None

    def stale(self, lane: LaneRecord, call: CallRecord) -> tuple[Outcome, str] | None:
        super().stale(lane, call)
        self.batch.asked_again.add(call.call_index)
        return (Outcome.ERROR, "stale") if self.batch.choices.one_in(4) else None

    def answer(self, call: CallRecord, outcome: Outcome, why: str, event: CallMove) -> None:
        if event is CallMove.SKIP and call.tool is not None:
            runs = call.status is Status.EXECUTING or call.state is CallState.DROPPED
            assert ("its thread cannot be stopped" in why) == (runs and not call.tool.is_async)
        super().answer(call, outcome, why, event)

    def prefer(self, lane: LaneRecord, ready: list[CallRecord], more_may_come: bool) -> CallRecord:
        super().prefer(lane, ready, more_may_come)
        batch = self.batch
        assert more_may_come == (batch.machine.state is BatchState.OPEN), "it is wrong about the calls to come"
        lent = batch.machine.lent  # what has just ended may not have given its slot back yet
        free = batch.limit - lane.running if lent is None else lent.free
        assert len(ready) > free > 0, "the slot policy has nothing to choose"
        assert ready == sorted(ready, key=lambda call: call.call_index), "they are not in call order"
        batch.preferred = batch.choices.one_of(ready)
        return batch.preferred

    def applied(self, call: CallRecord, state: State) -> MergedCall:
        """A call that returned modifiers sets a key: it is stale where it has read the key and that has changed."""
        super().applied(call, state)
        batch, lane = self.batch, self.batch.machine.lanes[call.lane or 0]
        earlier = lane.calls[: lane.calls.index(call)]
        assert all(one.result is not None for one in earlier), "an earlier call has no result"
        left = [one.merged.after for one in earlier if one.merged is not None]
        assert state == (left[-1] if left else lane.start), "it is given another state than the earlier calls leave"
        seen = lane.start if call.saw is None else call.saw
        assert call.reads is not None
        is_stale = call.reads.has_read("k") and seen.get("k") != state.get("k")
        batch.stale.append((lane, call, state if is_stale else None))
        after = state.set("k", str(batch.choices.below(3)))
        return MergedCall(state, after, (AppliedModifier(None, frozenset({"k"}), StateReads(), after),))

    def fix_result(self, call: CallRecord, output: ToolOutput) -> None:
        super().fix_result(call, output)
        assert output is call.undecided
        self.batch.settle(call, Outcome.OK)

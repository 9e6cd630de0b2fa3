"""The shell of the machine's model: carries its instructions out, and says which calls conflict or change others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from tests.order._step import STATE, Recording
from toolrt.model import WRITE, Claim, Outcome
from toolrt.order import (
    CallMove,
    CallRecord,
    CallState,
    ClaimTable,
    FoundClaims,
    LaneRecord,
    MergedCall,
    Status,
)

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

    def prefer(self, lane: LaneRecord, ready: list[CallRecord]) -> CallRecord:
        super().prefer(lane, ready)
        batch = self.batch
        lent = batch.machine.lent  # what has just ended may not have given its slot back yet
        free = batch.limit - lane.running if lent is None else lent.free
        assert len(ready) > free > 0, "the slot policy has nothing to choose"
        assert ready == sorted(ready, key=lambda call: call.call_index), "they are not in call order"
        batch.preferred = batch.choices.one_of(ready)
        return batch.preferred

    def decide(self, lane: LaneRecord, call: CallRecord) -> str | None:
        """A call that returned modifiers: they apply, or it is stale and runs again, or is refused."""
        super().decide(lane, call)
        batch, place = self.batch, lane.calls.index(call)
        earlier = lane.calls[:place]
        assert all(one.result is not None for one in earlier), "an earlier call has no result"
        left = [one.merged.after for one in earlier if one.merged is not None]
        assert lane.decisions is not None
        assert lane.decisions.state == (left[-1] if left else lane.start), (
            "it is given another state than the earlier calls leave"
        )
        assert call.tool is not None
        if call.tool.pure and batch.machine.cancel_reason is None and batch.choices.one_in(2):
            batch.repeats.append((lane, call, lane.decisions.state))
            return "stale"
        if batch.choices.one_in(4):
            lane.modified.remove(call)
            batch.settle(call, Outcome.ERROR)
            call.modifiers = ()
            batch.note_failure(call)
            if call.stops:
                batch.machine.stop(call)
        else:
            batch.settle(call, Outcome.OK)
            call.merged = MergedCall(STATE, STATE.set("of", str(call.call_index)), ())
        return None

"""One lane while it lives: its nursery, and which of its calls may start.

Rules.
    1. All tickets of a lane are taken at once, synchronously, in call order, before any of its calls starts; a
       call that joins the lane later takes its own when it is submitted.
    2. A call becomes a task when tickets, approval and slot are all its own, and whoever grants the last of
       them spawns it.  A waiting call is a record, and holds no slot.
    3. Ready calls take slots in call_index order.
    4. The lane has ended when all its calls have and it is closed.

Theory.  Where some call stops the batch when it fails, it writes the lane's control claim, and every later call
that may have effects reads it; so none of them has started when the failure is known.  That claim lives in a
table of the lane, because lanes follow each other anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, cast

import trio

from toolrt import probe
from toolrt.model import READ, WRITE, Claim, Modifier, Outcome, State, StateMerged, Tool
from toolrt.order import (
    ClaimTable,
    LanePlace,
    StateKeys,
    Status,
    Ticket,
    TrackedCall,
    claims_of,
    give_back,
    merged,
    parallel,
    touched_by,
)
from toolrt.runtime._approval import Approval
from toolrt.runtime._bookkeeping import looks_at_slots, starts_lane
from toolrt.runtime._execution import execute
from toolrt.runtime._inside import Inside, hand_out

if TYPE_CHECKING:
    from toolrt.runtime._batch import Batch

__all__ = ["LaneRun"]

_STOPS = (Claim("control", WRITE),)
_MAY_BE_STOPPED = (Claim("control", READ),)

#: Looked up once: an attribute of an enumeration costs as much as a call.
_QUEUED = Status.QUEUED


class LaneRun:
    """A lane of one batch, from the submission of its first call to its merge."""

    # As for tracked calls: an exclusive call has a lane to itself, so the defaults stand on the class.

    #: Whether its start state is known and its tickets are taken.
    started: bool = False
    nursery: trio.Nursery | None = None
    #: How many of its calls have not ended.
    unfinished: int = 0
    #: The table of the control claim, once a call that stops the batch has come.
    control: ClaimTable | None = None
    #: Whether all its calls have ended, and their modifiers are applied.
    ended: bool = False
    _merge: StateMerged | None = None
    #: Whether a thread that cannot be stopped outlives its result.
    outlived: bool = False
    #: How many slots its calls hold, those of their sub-batches included; in a sub-batch, how many calls run.
    running: int = 0
    #: In a sub-batch: the modifiers that were applied as it ended.
    applied: Sequence[Modifier] = ()
    #: The lanes of sub-batches that wait for a slot of this one, by their batches' places.
    starved: dict[tuple[int, ...], LaneRun] | None = None
    _state_keys: StateKeys | None = None
    _over: trio.Event | None = None

    def __init__(self, batch: Batch, place: LanePlace, shared: bool) -> None:
        self.batch = batch
        self.place = place
        #: Whether its calls may overlap; an exclusive call has a lane to itself.
        self.shared = shared
        #: Whether no further call can join.
        self.closed = not shared
        self.calls: list[TrackedCall] = []
        #: The state its calls see.
        self.state: State = batch.sequence.state
        #: Calls that returned modifiers, in the order they did.
        self.modified: list[TrackedCall] = []
        self._ready: list[int] = []
        self._approval = None if batch.approve is None else Approval(self, batch.approve)

    @property
    def merge(self) -> StateMerged | None:
        """What its end has to tell; None while it has not ended."""
        if self._merge is None and self.ended:
            self._merge = merged(self.index, self.state, self.modified)
        return self._merge

    def end(self, state: State) -> State:
        """Apply the modifiers of its calls to `state`; gives the state after it."""
        after = state
        if self.modified:
            self._merge = merged(self.index, state, self.modified)
            after = self._merge.state
            if self.batch.inside is not None:
                calls = self.batch.calls
                self.applied = [calls[call].modifiers[position] for call, position in self._merge.applied]
            for call in self.modified:
                call.modifiers = ()
            self.modified = []
        self.state = after
        self.ended = True
        return after

    @property
    def index(self) -> int:
        """Its place among the batch's lanes, from 0."""
        return self.place.index

    def add(self, call: TrackedCall) -> None:
        """Let a call in, before the lane has started."""
        call.place = self.place
        self.calls.append(call)

    async def run(self) -> None:
        """Run the lane until all its calls have ended and it is closed.

        Checkpoint: always.
        """
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            tables = self.batch.tables
            alone = not tables[0].busy and (len(tables) == 1 or not any(table.busy for table in tables))
            # A child may wait for a slot that nobody of its own batch holds.
            alone = alone and self.batch.inside is None
            try:
                self._start()
                if not (alone and self.closed) and not self._is_over:
                    # Only calls of this lane keep the nursery open by themselves: wait here for those that are
                    # still to come, or that wait for another batch.
                    self._over = trio.Event()
                    await self._over.wait()
            except BaseException as error:
                # While the nursery is still open: what waits must be answered, and its tickets given back,
                # before another batch can grant them to a nursery that has closed.
                self.batch.ending.give_up(error)
                raise
        self.nursery = None

    def start_cancelled(self) -> None:
        """Stand for a lane that never runs: its calls were answered when the batch was cancelled."""
        self.started = self.closed = True
        self.state = self.batch.sequence.state

    @property
    def _is_over(self) -> bool:
        return self.closed and self.unfinished == 0

    def close(self) -> None:
        """Let no further call join."""
        self.closed = True
        self._wake_if_over()

    def _wake_if_over(self) -> None:
        if self._over is not None and self._is_over:
            self._over.set()

    # Tickets

    def _start(self) -> None:
        """Take the tickets of all its calls, then let them start."""
        if probe.implied is not None:
            starts_lane(self)
        self.state = self.batch.sequence.state
        self.started = True
        refused: list[tuple[TrackedCall, str]] = []
        for position, call in enumerate(self.calls):
            if call.status is _QUEUED:
                claims = claims_of(cast(Tool, call.tool), call.input, self.state, self.shared)
                refusal = None if self.batch.inside is None else self._uncovered(call, claims)
                if refusal is not None:
                    refused.append((call, refusal))
                    continue
                if not self._takes(call, claims):
                    self.batch.sequence.split(self, position)
                    break
                if not call.pending:
                    self._ready.append(call.call_index)
                    if self.batch.teller is not None:
                        self.batch.teller.ready(call)
        if probe.sink is not None:
            self._report_start()
        if self.batch.teller is not None:
            self.batch.teller.lane_began(self.index, self.shared, self.calls)
        for call, refusal in refused:
            self._refuse(call, refusal)
        if self._approval is not None:
            # A snapshot: a check may submit calls, and those are asked as they join.
            for call in [call for call in self.calls if call.admitted]:
                self._approval.ask(call)
        self.dispatch(at_home=True)

    def join(self, call: TrackedCall) -> bool:
        """Let a call join that is submitted while the lane runs; False if its claim on a state key forbids it."""
        claims = claims_of(cast(Tool, call.tool), call.input, self.state, self.shared)
        refusal = None if self.batch.inside is None else self._uncovered(call, claims)
        if refusal is not None:
            self.add(call)
            self._refuse(call, refusal)
            return True
        if not self._takes(call, claims):
            return False
        self.add(call)
        if probe.sink is not None:
            self._report_ticket(call)
        if self.batch.teller is not None:
            self.batch.teller.joined(call)
        if self._approval is not None:
            self._approval.ask(call)
        else:
            self.ready_if_granted(call)
        self.dispatch()
        return True

    def _uncovered(self, call: TrackedCall, claims: tuple[Claim, ...]) -> str | None:
        """Why a child may not have these claims; None if its parent covers them."""
        batch, tool = self.batch, cast(Tool, call.tool)
        touched = call.allowed = touched_by(tool, call.input, self.state)
        wanted = batch.split_by_table(tool, claims if touched is None else touched)
        return cast(Inside, batch.inside).refusal(wanted)

    def _refuse(self, call: TrackedCall, why: str) -> None:
        if call.status is not Status.QUEUED:
            return
        self.batch.settle(call, Outcome.INVALID, None, f"invalid call of tool {call.name!r}: {why}")
        if call.stops:
            self.batch.ending.stop(call)

    def _takes(self, call: TrackedCall, claims: tuple[Claim, ...]) -> bool:
        """Take the call's tickets, unless a claim on a state key keeps it out of this lane."""
        tool: Any = call.tool
        if claims and self.shared and not self._admits(claims):
            return False
        call.claims = claims
        call.admitted = True
        self.unfinished += 1
        call.safe = self.shared
        if claims:
            tables = self.batch.tables
            if len(tables) == 1:
                self._take(call, tables[0], claims)
            else:
                for table, mine in self.batch.tables_of(tool, claims):
                    self._take(call, table, mine)
        if call.stops and self.shared:
            if self.control is None:
                self.control = ClaimTable("control")
            self._take(call, self.control, _STOPS)
        elif self.control is not None and not call.reads_only:
            self._take(call, self.control, _MAY_BE_STOPPED)
        if self._approval is not None:
            # Before anybody is asked: a first call denied at once must not let a second one start that was not
            # asked yet.
            self._approval.expect(call)
        return True

    def _admits(self, claims: tuple[Claim, ...]) -> bool:
        if self._state_keys is None:
            self._state_keys = StateKeys(apart=self.batch.runtime.lanes is not parallel)
        return self._state_keys.admits(claims)

    def _take(self, call: TrackedCall, table: ClaimTable, claims: tuple[Claim, ...]) -> None:
        ticket = table.take(claims, call, self._granted)
        call.tickets = (*call.tickets, ticket)
        if not ticket.ready:
            call.pending += 1

    def _granted(self, call: TrackedCall) -> None:
        call.pending -= 1
        if self.batch.teller is not None:
            self.batch.teller.granted(call)
        self.ready_if_granted(call)
        self.dispatch()

    def ready_if_granted(self, call: TrackedCall) -> None:
        """Let the call start, if nothing that it waits for but a slot is missing."""
        if call.pending == 0 and call.status is _QUEUED:
            heappush(self._ready, call.call_index)
            if self.batch.teller is not None:
                self.batch.teller.ready(call)

    def dispatch(self, at_home: bool = False) -> None:
        """Spawn ready calls while there are slots, lowest call_index first.

        Whoever grants the last ticket may be another call, or another batch, so a call is spawned in the batch's
        own context; `at_home` says that this is it.
        """
        ready, calls, limit = self._ready, self.batch.calls, self.batch.limit
        inside = self.batch.inside
        if ready and probe.implied is not None:
            looks_at_slots(self)
        if inside is not None:
            while ready and calls[ready[0]].status is not Status.QUEUED:
                heappop(ready)
            limit = self.running + (inside.free if ready else 0)
        nursery: Any = self.nursery
        while ready and self.running < limit:
            call = calls[heappop(ready)]
            if call.status is not _QUEUED:
                continue
            self.running += 1
            if inside is not None:
                inside.take()
            call.held = True
            if at_home:
                nursery.start_soon(execute, self, call, name=call.call.name)
            else:
                self.batch.context.run(nursery.start_soon, execute, self, call, name=call.call.name)
        if self.batch.teller is not None:
            self.batch.teller.slots()
        if ready and inside is not None:
            inside.starve(self)

    def finish(self, call: TrackedCall) -> None:
        """Give back what the call holds: its execution is over, or will never be."""
        if probe.sink is not None:
            probe.sink.event("call.ended", {"batch": call.batch_id, "call": call.call_index})
        if self.batch.teller is not None:
            self.batch.teller.gives_back(call)
        call.runs_in = None
        tickets, call.tickets = call.tickets, ()
        if len(tickets) == 1:
            tickets[0].release()
        elif tickets:
            give_back(tickets, _call_index)
        self._free(call)
        if self.starved or self.batch.inside is not None:
            hand_out(self)
        elif self._ready:
            self.dispatch()
        if self.batch.teller is not None:
            self.batch.teller.gave_back()
        if self._over is not None:
            self._wake_if_over()

    def finish_all(self, calls: Iterable[TrackedCall]) -> None:
        """The same for many calls that never started, as one step."""
        tickets: list[Ticket] = []
        for call in calls:
            if probe.sink is not None:
                probe.sink.event("call.ended", {"batch": call.batch_id, "call": call.call_index})
            if self.batch.teller is not None:
                self.batch.teller.gives_back(call)
            tickets += call.tickets
            call.tickets = ()
            self._free(call)
        give_back(tickets, _call_index)
        if self.starved or self.batch.inside is not None:
            hand_out(self)
        else:
            self.dispatch()
        if self.batch.teller is not None:
            self.batch.teller.gave_back()
        self._wake_if_over()

    def _free(self, call: TrackedCall) -> None:
        if call.held:
            if probe.implied is not None:
                looks_at_slots(self)
            call.held = False
            self.running -= 1
            if self.batch.inside is not None:
                self.batch.inside.give()
        self.unfinished -= 1

    def _report_start(self) -> None:
        if probe.sink is None:
            return
        probe.sink.event(
            "lane.started",
            {
                "batch": self.batch.batch_id,
                "lane": self.index,
                "shared": self.shared,
                "calls": [call.call_index for call in self.calls],
                "state": self.state.to_json(),
            },
        )
        for call in self.calls:
            if call.admitted:
                self._report_ticket(call)

    def _report_ticket(self, call: TrackedCall) -> None:
        if probe.sink is None:
            return
        probe.sink.event(
            "ticket.taken",
            {
                "batch": call.batch_id,
                "call": call.call_index,
                "lane": self.index,
                "shared": self.shared,
                "claims": [[claim.mode.value, list(claim.resource), claim.subtree] for claim in call.claims],
                "stops": call.stops,
                "reads_only": call.reads_only,
            },
        )


def _call_index(call: TrackedCall) -> int:
    return call.call_index

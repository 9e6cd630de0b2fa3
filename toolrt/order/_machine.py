"""The state machine of one batch: takes events, answers with instructions; no Trio, no clock, no tools.

Rules.
    1. Every method that is not marked as a question is an *event*: something has happened.  It answers with
       *instructions*: calls of `Verbs`.  What only a policy, a tool or its author knows, it asks of `Questions`; the
       answer is what the question gives.  An approval check takes its time, so what it answers is an event.  The
       machine starts no task and reads no clock.
    2. All tickets of a lane are taken at once, in call order, before any of its calls starts; a call that joins the
       lane later takes its own then.  `Admission` lets calls in and takes their tickets.
    3. A call is spawned when tickets, approval and slot are all its own.  The event that brings the last of them spawns
       it.  A waiting call is a record, and holds no slot.  Ready calls take slots in call_index order, or as a slot
       policy answers where more are ready than there are free slots.
    4. A lane has ended when all its calls have and it is closed.  Lanes run one after the other.
    5. A call that had to wait asks for its claims again when it is granted.
    6. After a cancel nothing starts any more, and what runs is interrupted; a cancel of one call does this to that call
       alone.  After a stop what follows the failed call is skipped.  The first cancel counts.  Of several stops the one
       of the lowest call_index does, and none after a cancel.

Two forms.  Bound to verbs that act at once, the machine is the core of the runtime (`toolrt.runtime`).  Bound to verbs
that record, it is a function from an event to a list of instructions: see `step` in `toolrt.order._step`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any, cast

from toolrt import probe
from toolrt._plain import counted
from toolrt.events import (
    BatchCancelled,
    BatchSealed,
    BatchStopped,
    CallCancelled,
    CallEnded,
    CallReady,
    EventListener,
    LaneAwaited,
    ModifiersRefused,
    ReleaseBegan,
    ReleaseEnded,
    SlotsGiven,
    TicketGranted,
    observer,
)
from toolrt.model import Outcome, State, ToolOutput
from toolrt.model._watched_state import bare_state, parts_json
from toolrt.order import _footprints
from toolrt.order._admission import Admission
from toolrt.order._lanes import may_go_stale
from toolrt.order._limits import Limits
from toolrt.order._merge import stale_part
from toolrt.order._rates import Rates
from toolrt.order._record import CallRecord, Decisions, LanePlace, LaneRecord, Siblings
from toolrt.order._slots import LentSlot
from toolrt.order._stale import stale_text
from toolrt.order._states import (
    BatchMove,
    BatchState,
    CallMove,
    CallState,
    Holds,
    LaneMove,
    LaneState,
    Stateful,
    Status,
)
from toolrt.order._tickets import ClaimTable, Ticket, give_back
from toolrt.order._verbs import Questions, Verbs

# Looked up once: an attribute of an enumeration costs as much as a call.
_PLACED, _ASKING, _WAITING, _READY = CallState.PLACED, CallState.ASKING, CallState.WAITING, CallState.READY
_AGAIN, _QUEUED, _SLOT, _NOTHING = CallState.AGAIN, Status.QUEUED, Holds.SLOT, Holds.NOTHING
_GRANT, _SPAWN, _END = CallMove.GRANT.leads, CallMove.SPAWN.leads, CallMove.END.leads
_SEAL = BatchMove.SEAL.leads
_CLOSE, _START, _MERGE = LaneMove.CLOSE.leads, LaneMove.START.leads, LaneMove.MERGE.leads


class Machine(Stateful):
    """All decisions of one batch.

    Args:
        batch_id: names the batch.
        verbs: carries out what follows.
        questions: finds out what tools and their authors say.
        tables: where tickets are taken.
        limit: how many calls run at once.
        approves: whether each call is to be approved.
        apart: whether calls whose claims on one key of the state conflict are kept in lanes of their own.
        lent: the slot of the parent call; None outside a sub-batch.
        path: the batch's place among the sub-batches of its outermost batch.
        prefers: whether there is a slot policy to be asked.
        limits: the limits that the batch shares with others; None: it shares none.
        rates: where the starts of calls that claim a rate are known; None: those of its first table.
        inside: of a sub-batch, the tables in which its calls order themselves, one for each of `tables`; else None.
    """

    def __init__(
        self,
        batch_id: str,
        verbs: Verbs,
        questions: Questions,
        tables: tuple[ClaimTable, ...],
        limit: float,
        approves: bool = False,
        apart: bool = True,
        lent: LentSlot | None = None,
        path: tuple[int, ...] = (),
        prefers: bool = False,
        limits: Limits | None = None,
        rates: Rates | None = None,
        inside: tuple[ClaimTable, ...] | None = None,
    ) -> None:
        self.batch_id = batch_id
        self.verbs = verbs
        self.questions = questions
        self.limit = limit
        self.approves = approves
        self.lent = lent
        self.path = path
        self.prefers = prefers
        #: Lets calls into their lanes, and takes their tickets.
        self.admission = Admission(self, questions, tables, inside, apart)
        self.held_up: tuple[CallRecord, CallRecord] | None = None
        self.limits = limits
        self.rates = tables[0]._rates if rates is None else rates
        #: Whether some call waits for more than its slot: for a rate, or a limit that is shared.
        self.gated = limits is not None
        #: The time on the run's clock, as of the last answer.
        self.time = -math.inf
        #: The batch's telemetry; None: it has none.
        self.telemetry: EventListener | None = None
        self.state = BatchState.OPEN
        #: By call_index.
        self.calls = Siblings()
        self.calls.limit = limit
        #: By index.
        self.lanes: list[LaneRecord] = []
        #: The index of the lane that runs, or ran last.
        self.current = -1
        #: The failed call behind which all are skipped; None while there is none.
        self.stopped_by: CallRecord | None = None
        #: Why the batch was cancelled; None while it is not.
        self.cancel_reason: str | None = None

    def story(self) -> str:
        """The batch in one line, for errors."""
        return f"batch {self.batch_id} with {counted(len(self.calls), 'call')}: {self.state.value}"

    # Questions

    @property
    def running(self) -> LaneRecord | None:
        """The lane whose calls may run now; None between two of them."""
        if 0 <= self.current < len(self.lanes):
            lane = self.lanes[self.current]
            if lane.state is LaneState.OPEN or lane.state is LaneState.CLOSED:
                return lane
        return None

    @property
    def is_complete(self) -> bool:
        """Whether no further call will come that could start."""
        return self.state is not BatchState.OPEN

    def is_behind_others(self, call: CallRecord) -> bool:
        """Whether the call's lane has to wait for another one."""
        return call.lane is not None and (call.lane > self.current + 1 or self.running is not None)

    # Submitting

    def place(self, call: CallRecord, shared: bool, opens: bool = False) -> None:
        """A valid call came; `shared`: the policy lets it share a lane, `opens`: one that begins with it."""
        call.safe = shared
        last = self.lanes[-1] if self.lanes else None
        if last is not None:
            joins = shared and not opens
            if joins and last.state is LaneState.GATHERING:
                last.add(call)
                return
            if joins and last.state is LaneState.OPEN and self.admission.join(last, call):
                return
            if last.state is LaneState.GATHERING or last.state is LaneState.OPEN:
                self.close_lane(last)
        self.add_lane(call, shared)

    def add_lane(self, call: CallRecord, shared: bool) -> None:
        """Let the `call` open a lane behind all others; `shared`: other calls may join it."""
        lane = LaneRecord(LanePlace(len(self.lanes)), shared)
        lane.add(call)
        self.lanes.append(lane)
        self.verbs.wake()

    def close_lane(self, lane: LaneRecord) -> None:
        """Let no further call join the `lane`."""
        lane.state = _CLOSE[lane.state]
        if lane.unfinished == 0:
            self.verbs.wake()

    def seal(self) -> None:
        """No further call will come."""
        self.state = _SEAL[self.state]
        if probe.implied is not None:
            _footprints.changes(self.batch_id)
        if observer.records:
            observer.tell(BatchSealed(self.batch_id))
        self._close_last()

    def _close_last(self) -> None:
        if self.lanes and self.lanes[-1].state in (LaneState.GATHERING, LaneState.OPEN):
            self.close_lane(self.lanes[-1])
        self.verbs.wake()

    def split(self, lane: LaneRecord, first: int) -> None:
        """The lane's calls from position `first` on cannot stay in it: they get a lane of their own behind it."""
        # Those behind keep the place that they know, so that splitting a lane again and again stays O(n).
        if probe.implied is not None:
            _footprints.changes(self.batch_id)
        behind = LaneRecord(lane.place, True)
        behind.calls = lane.calls[first:]
        if lane.state is LaneState.CLOSED:
            behind.happen(LaneMove.CLOSE)
        lane.happen(LaneMove.CLOSE)
        lane.place = LanePlace(lane.place.index)
        del lane.calls[first:]
        for call in lane.calls:
            call.place = lane.place
        for call in behind.calls:
            call.asked = None  # what it claims follows from the state that its own lane starts with
        self.lanes.insert(lane.index + 1, behind)
        for later in self.lanes[lane.index + 1 :]:
            later.place.index += 1
        if observer.measures:
            for call in behind.calls:
                observer.tell(LaneAwaited(self.batch_id, call.call_index), self.telemetry)

    def let_go(self) -> None:
        """The batch is over: cut every circle of references, so that its memory is free as soon as none leads to it.

        The garbage collector, which would free it otherwise, looks at every object of the process.
        """
        ended = self.calls.ended()
        self.calls.cancel = ended.cancel
        for call in self.calls:
            call.siblings = ended
            if call.inside is not None:
                call.inside = None
                self.lanes[call.lane or 0].slots = None
        self.verbs = self.questions = self.admission = cast(Any, None)

    # A lane begins

    def begin(self, state: State, own_step: bool = True) -> None:
        """The next lane's turn has come, and `state` is what its calls see; `own_step`: no tool runs in this step."""
        self.current += 1
        lane = self.lanes[self.current]
        if probe.implied is not None:
            _footprints.starts_lane(self.batch_id, own_step and self.lent is None and not self.approves)
        lane.start = state
        lane.bare = state if type(state) is State else bare_state(state)
        lane.state = _START[lane.state]
        self.admission.let_in(lane)

    def pass_over(self, state: State) -> None:
        """The next lane's turn would have come, with `state`; its calls were answered when the batch was cut short."""
        self.current += 1
        lane = self.lanes[self.current]
        lane.start = state
        if lane.state is LaneState.GATHERING:
            lane.happen(LaneMove.CLOSE)

    def granted(self, call: CallRecord) -> None:
        """A ticket of the call is first in line."""
        lane = self.lanes[self.current]
        call.missing -= 1
        if observer.measures:
            observer.tell(TicketGranted(call.batch_id, call.call_index), self.telemetry)
        if call.outside and not call.missing:
            self.admission.go_outside(lane, call)
        if call.state is not _ASKING:
            self.ready_if_granted(lane, call)
            self.dispatch(lane)
        elif call.missing == 0:
            try:
                self.admission.granted(lane, call)
            except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
                # The call whose end granted the ticket is another one, perhaps of another batch.
                self.verbs.exit_or_raise(error)

    def allowed(self, lane: LaneRecord, call: CallRecord) -> None:
        """The approval check has allowed the call of `lane`."""
        call.happen(CallMove.ALLOW)
        self.admission.answered(lane, call)
        self.ready_if_granted(lane, call)

    def ready_if_granted(self, lane: LaneRecord, call: CallRecord) -> None:
        """Let the call of `lane` start, if nothing that it waits for but a slot is missing."""
        if call.state is not _WAITING or call.missing:
            return
        tool: Any = call.tool
        if call.asks_again and may_go_stale(tool, lane.shared):
            ending = self.questions.stale(lane, call)
            if ending is not None:
                self.refuse(lane, call, *ending)
            if call.state is not _WAITING:
                return
        call.state = _GRANT[call.state]
        heappush(lane.ready, call.call_index)
        if observer.measures:
            observer.tell(CallReady(call.batch_id, call.call_index), self.telemetry)

    def dispatch(self, lane: LaneRecord, most: float = math.inf) -> None:
        """Spawn ready calls of `lane`, `most` of them at most, while there are slots.

        The lowest call_index goes first, or the one that the slot policy names.
        """
        ready = lane.ready
        if not ready and not lane.gated:
            if self.limits is not None:
                self.limits.wait_no_more(self)
            if observer.measures:
                observer.tell(SlotsGiven(self.batch_id), self.telemetry)
            return
        calls, limit, lent = self.calls, self.limit, self.lent
        if probe.implied is not None:
            _footprints.looks_at_slots(self.batch_id, lane, self.limit)
        if lent is not None:
            while ready and calls[ready[0]].state is not _READY and calls[ready[0]].state is not _AGAIN:
                heappop(ready)
            limit = lane.running + (lent.free if ready or lane.gated else 0)
        if self.gated:
            self._pass_gates(lane, limit, most)
        else:
            if self.prefers:
                self._choose(lane, limit)
            started = []
            while ready and lane.running < limit:
                call = calls[heappop(ready)]
                if call.state is _READY or call.state is _AGAIN:
                    # What `_start` does, where there is no rate and no limit that is shared: by far the most common.
                    call.state = _SPAWN[call.state]
                    lane.running += 1
                    if lent is not None:
                        lent.take()
                    started.append(call)
            if started:
                self.verbs.spawn(lane, started)
        if observer.measures:
            observer.tell(SlotsGiven(self.batch_id), self.telemetry)
        if (ready or lane.gated) and lent is not None:
            lent.slots.starved[self.path] = lambda: self.dispatch(lane)

    def _pass_gates(self, lane: LaneRecord, limit: float, most: float) -> None:
        """The same where calls may wait for a rate or a limit that is shared; one that waits holds up no other."""
        calls, limits, gated = self.calls, self.limits, lane.gated
        for index in lane.ready:
            heappush(gated.setdefault((calls[index].name, calls[index].rates), []), index)
        lane.ready.clear()
        if any(rates for _, rates in gated):
            self.time, run = self.questions.time()
            self.rates.tell_run(run)
        while True:
            # Calls of one gate pass it in order, so the first of each tells when it opens.
            for gate, indexes in list(gated.items()):
                while indexes and calls[indexes[0]].state not in (_READY, _AGAIN):
                    heappop(indexes)
                if not indexes:
                    del gated[gate]
            gates = {gate: self._opens_at(calls[indexes[0]]) for gate, indexes in gated.items()}
            waiting = [instant for instant in gates.values() if instant > self.time]
            passing = [gated[gate] for gate, instant in gates.items() if instant <= self.time]
            if not passing or lane.running >= limit or most <= 0:
                break
            if self.prefers:
                behind = sorted({index for indexes in passing for index in indexes})
                self._start_preferred(lane, [calls[at] for at in behind if calls[at].state in (_READY, _AGAIN)])
            else:
                call = calls[min(indexes[0] for indexes in passing)]
                self._start(lane, call)
                self.verbs.spawn(lane, [call])
            most -= 1
        if limits is not None and (math.inf in waiting or (passing and lane.running < limit)):
            limits.wait(self, lane)  # also one that has had its turn
        elif limits is not None:
            limits.wait_no_more(self)
        wakes = min(waiting, default=math.inf)
        if wakes < math.inf:
            self.verbs.wake_at(lane, wakes)

    def _opens_at(self, call: CallRecord) -> float:
        """The instant from which on no rate keeps the ready call; infinity: a limit that is shared has no room."""
        if self.limits is not None and not self.limits.has_room(call.name):
            return math.inf
        return self.rates.next_start(call.rates) if call.rates else -math.inf

    def _start(self, lane: LaneRecord, call: CallRecord) -> None:
        """The ready call of `lane` takes a slot, and its share of what others wait for, too; it is to be spawned."""
        if self.limits is not None:
            self.limits.take(call)
            if probe.implied is not None:
                _footprints.shares(self.limits.bounded_by(call.name))
        if call.rates:
            self.rates.note(call.rates, self.time)
        call.state = _SPAWN[call.state]
        lane.running += 1
        if self.lent is not None:
            self.lent.take()

    def _choose(self, lane: LaneRecord, limit: float) -> None:
        """Ask the slot policy while more calls are ready than there are slots."""
        calls, ready = self.calls, lane.ready
        while lane.running < limit:
            # In order, so it is a heap as well.
            ready[:] = sorted(index for index in ready if calls[index].state in (_READY, _AGAIN))
            if len(ready) <= limit - lane.running:
                break
            self._start_preferred(lane, [calls[index] for index in ready])

    def _start_preferred(self, lane: LaneRecord, ready: list[CallRecord]) -> None:
        """Start the one of the `ready` calls that the slot policy names, unless the policy itself has cancelled it."""
        call = ready[0] if len(ready) == 1 else self.questions.prefer(lane, ready, not self.is_complete)
        lent = self.lent
        has_slot = lane.running < self.limit if lent is None else lent.free > 0
        passes = not self.gated or self._opens_at(call) <= self.time
        if has_slot and passes and call.state in (_READY, _AGAIN):
            if not self.gated:
                lane.ready.remove(call.call_index)
            self._start(lane, call)
            self.verbs.spawn(lane, [call])
        heapify(lane.ready)

    # Results

    def refuse(self, lane: LaneRecord, call: CallRecord, outcome: Outcome, why: str) -> None:
        """The call of `lane` waits, and will never run: fix its result, an `outcome` and `why`."""
        admitted = call.admitted
        self.verbs.answer(call, outcome, why, CallMove.SETTLE)
        if admitted:
            self.finish(lane, call)
        self.failed(lane, call)

    def failed(self, lane: LaneRecord, call: CallRecord) -> None:
        """The result of a call of `lane` is fixed, and it failed."""
        if call.stops:
            self.stop(call)
        if lane.decisions is not None:
            self.decide(lane)

    def returned(self, lane: LaneRecord, call: CallRecord) -> None:
        """The tool returned modifiers: its result is fixed as soon as all earlier calls of the lane have theirs.

        Only then is it known whether the call is stale: whether a modifier sets from an old value what an earlier call
        has changed.
        """
        call.happen(CallMove.RETURN)
        if probe.implied is not None:
            _footprints.returns(call)
        if lane.decisions is None:
            lane.decisions = Decisions(lane.start)
        lane.decisions.waiting += 1
        self.decide(lane)

    def decide(self, lane: LaneRecord) -> None:
        """Decide on the calls of `lane` that wait for earlier ones, in call order, as far as those have results."""
        decisions = lane.decisions
        if decisions is None or decisions.underway:
            return
        decisions.underway = True
        calls = lane.calls
        try:
            while decisions.waiting:
                call = calls[decisions.fixed]
                if probe.implied is not None:
                    _footprints.looks_at_result(call)
                if call.status is _QUEUED or call.status is Status.EXECUTING:
                    if call.undecided is None:
                        return
                    if not self._fix(lane, call, decisions):
                        return  # it runs again
                decisions.fixed += 1
                if call.merged is not None:
                    decisions.state = call.merged.after
                if call.undecided is not None:
                    call.undecided = None
                    decisions.waiting -= 1
                    self._decided_on(call)
        finally:
            decisions.underway = False

    def _fix(self, lane: LaneRecord, call: CallRecord, decisions: Decisions) -> bool:
        """Fix the result of a call whose earlier calls have theirs; False: it is stale and runs once more."""
        tool: Any = call.tool
        call.merged = merged = self.questions.applied(call, decisions.state)
        if merged.exit_asked is not None:
            self.verbs.exit_or_raise(merged.exit_asked)
        stale = None
        if call.reads is not None:
            stale = stale_part(merged, call.reads, lane.start if call.saw is None else call.saw)
        if stale is None:
            self.verbs.fix_result(call, cast(ToolOutput, call.undecided))
            return True
        earlier = ((one.call_index, one.name, one.merged) for one in lane.calls[: decisions.fixed])
        why = stale_text(stale, lane.start, earlier)
        if tool.pure and self.cancel_reason is None:
            self._repeat(lane, call, decisions.state, why)
            return False
        if observer.records:
            sets = frozenset(part for modifier in merged.modifiers for part in modifier.sets)
            [part] = parts_json([stale])
            observer.tell(ModifiersRefused(self.batch_id, call.call_index, lane.index, part, parts_json(sets)))
        call.modifiers, call.merged = (), None
        lane.modified.remove(call)
        self.verbs.answer(call, Outcome.ERROR, why, CallMove.SETTLE)
        if call.stops:
            self.stop(call)
        return True

    def _decided_on(self, call: CallRecord) -> None:
        """Give back what a call that has ended kept until its result was fixed."""
        if call.state is not CallState.ANSWERED:
            return
        if observer.measures:
            observer.tell(ReleaseBegan(call.batch_id, call.call_index), self.telemetry)
        tickets, call.tickets = call.tickets, ()
        call.state = _END[call.state]
        for ticket in tickets:
            ticket.release()
        if observer.measures:
            observer.tell(ReleaseEnded(call.batch_id), self.telemetry)

    def _repeat(self, lane: LaneRecord, call: CallRecord, state: State, stale: str) -> None:
        """The call was stale and its tool is pure: it runs once more, on the `state` that the earlier calls leave.

        Args:
            lane: its lane.
            stale: the error that it gets if it cannot run again.
        """
        call.happen(CallMove.REPEAT)
        lane.modified.remove(call)
        call.modifiers, call.merged, call.undecided, call.reads = (), None, None, None
        call.saw, call.stale = state, stale
        cast(Decisions, lane.decisions).waiting -= 1
        if call.state is _AGAIN:
            # Its task has ended: it takes a slot again, and still has its tickets.
            lane.unfinished += 1
            heappush(lane.ready, call.call_index)
            self.dispatch(lane)

    def _refuse_again(self, lane: LaneRecord) -> None:
        """The batch is cancelled: refuse the calls that wait to run again."""
        for call in lane.calls:
            if call.state is _AGAIN or call.state is CallState.RESPAWNED:
                self.verbs.answer(call, Outcome.ERROR, call.stale, CallMove.SETTLE)
                self.finish(lane, call)

    def merged(self, lane: LaneRecord, state: State) -> None:
        """The lane's modifiers are applied, and leave `state`; its calls have all ended, or will never start."""
        if lane.state is LaneState.GATHERING or lane.state is LaneState.OPEN:
            lane.happen(LaneMove.CLOSE)  # where it is driven an error came up
        lane.state = _MERGE[lane.state]
        lane.start = state

    # The end of a call

    def finish(self, lane: LaneRecord, call: CallRecord) -> None:
        """The execution of a call of `lane` is over, or will never be: it gives back what it holds."""
        if observer.listens:
            observer.tell(CallEnded(call.batch_id, call.call_index), self.telemetry)
        waits, holds, tool = call.state is CallState.RETURNED, call.state.holds, call.tool
        call.state = _END[call.state]
        tickets, call.tickets = call.tickets, ()
        if waits and tool is not None and tool.pure:
            # If it has to run again, what it reads must be as its place in the order has it.
            tickets, call.tickets = (), tickets
        elif waits and call.stops:
            # Nothing that it may have to skip starts before its result is known: it keeps its control claim.
            tickets, call.tickets = tickets[:-1], tickets[-1:]
        if len(tickets) == 1:
            tickets[0].release()
        elif tickets:
            give_back(tickets, _call_index)
        self._free(lane, call, holds)
        if lane.stands_at is call:
            self.admission.go_on(lane)
        if lane.ready or lane.gated or self.lent is not None or lane.slots is not None:
            self._hand_out(lane)
        if observer.measures:
            observer.tell(ReleaseEnded(self.batch_id), self.telemetry)
        if lane.decisions is not None:
            self.decide(lane)
        if lane.unfinished == 0:
            self.verbs.wake()

    def _finish_all(self, lane: LaneRecord, calls: Iterable[CallRecord]) -> None:
        """The same for many calls that never started, as one step."""
        tickets: list[Ticket] = []
        for call in calls:
            if observer.listens:
                observer.tell(CallEnded(call.batch_id, call.call_index), self.telemetry)
            holds = call.state.holds
            call.state = _END[call.state]
            tickets += call.tickets
            call.tickets = ()
            self._free(lane, call, holds)  # one that was about to take its first step has a slot
        give_back(tickets, _call_index)
        if self.limits is not None:
            self.dispatch(lane)  # it may wait for a limit no more
        if lane.stands_at is not None and lane.stands_at.status is not _QUEUED:
            self.admission.go_on(lane)
        self._hand_out(lane)
        if observer.measures:
            observer.tell(ReleaseEnded(self.batch_id), self.telemetry)
        if self.cancel_reason is not None:
            self._refuse_again(lane)
        if lane.decisions is not None:
            self.decide(lane)
        if lane.is_over:
            self.verbs.wake()

    def _free(self, lane: LaneRecord, call: CallRecord, holds: Holds) -> None:
        """The call of `lane` has ended: it gives back what it `holds` beside its tickets."""
        lane.unfinished -= 1
        if holds is not _SLOT:
            return
        if probe.implied is not None:
            _footprints.looks_at_slots(self.batch_id, lane, self.limit)
        lane.running -= 1
        if self.lent is not None:
            self.lent.give()
        if self.limits is not None:
            if probe.implied is not None:
                _footprints.shares(self.limits.bounded_by(call.name))
            self.limits.give(call)
            self.limits.hand_out()  # batches that wait for these limits take turns, then goes this one

    def _hand_out(self, lane: LaneRecord) -> None:
        if self.lent is not None:
            self.lent.slots.hand_out()
        elif lane.slots is not None:
            lane.slots.hand_out()
        elif lane.ready or lane.gated:
            self.dispatch(lane)

    # Cut short

    def cancel(self, reason: str, outside: bool) -> None:
        """The batch is cancelled for a `reason`, perhaps from `outside`: nothing starts, what runs is interrupted."""
        self.happen(BatchMove.CANCEL)
        self.cancel_reason = reason
        if probe.implied is not None:
            _footprints.cancels()
        if observer.listens:
            observer.tell(BatchCancelled(self.batch_id, reason, outside), self.telemetry)
        waiting = []
        for call in self.calls:
            if call.status is _QUEUED:
                if call.admitted:
                    waiting.append(call)
                self.answer_not_started(call)
            else:
                self.verbs.interrupt_children(call, "was cancelled")
        self._close_last()
        lane = self.running
        if lane is not None:
            if lane.state is LaneState.OPEN:
                self.close_lane(lane)
            self._finish_all(lane, waiting)
            self.verbs.interrupt_lane(lane)

    def cancel_call(self, call: CallRecord, reason: str) -> bool:
        """The call is cancelled alone for a `reason`; False, and nothing was changed, if that comes too late for it.

        One that has not started never does, and those behind it take its place.  One that runs is interrupted.  Too
        late it is for one that has returned, that a cancel, a stop or its timeout has reached, or that may finish.
        """
        waits = call.status is _QUEUED or call.state is _AGAIN or call.state is CallState.RESPAWNED
        tool = call.tool
        if self.cancel_reason is not None or call.cancel_reason is not None:
            return False
        if not waits and (call.state is not CallState.RUNNING or tool is None or tool.interrupt == "finish"):
            return False
        if not waits and call.scope.cancel_called:
            return False  # its timeout
        call.cancel_reason = reason
        if probe.implied is not None:
            _footprints.cancels()
        if observer.records:
            observer.tell(CallCancelled(self.batch_id, call.call_index, reason))
        self.verbs.interrupt(call)
        self.verbs.interrupt_children(call, "was cancelled")
        if waits:
            holds, again = call.admitted, call.status is not _QUEUED
            outcome = Outcome.INTERRUPTED if again else Outcome.NOT_STARTED
            why = "interrupted before it ran once more" if again else "not started"
            self.verbs.answer(call, outcome, f"{why}: the call was cancelled ({reason})", CallMove.SETTLE)
            lane = self.lanes[call.place.index]  # type: ignore[union-attr]
            if holds:
                self.finish(lane, call)
            else:
                self.decide(lane)
        return True

    def stop(self, by: CallRecord) -> None:
        """A call that stops the batch has failed: every call behind it is skipped, `by` its failure."""
        if probe.implied is not None:
            _footprints.stops(self.batch_id, self.calls[by.call_index + 1 :])
        first = self.stopped_by
        if self.cancel_reason is not None or (first is not None and first.call_index <= by.call_index):
            return
        self.happen(BatchMove.STOP)
        self.stopped_by = by
        if observer.listens:
            observer.tell(BatchStopped(self.batch_id, by.call_index), self.telemetry)
        waiting = []
        for call in self.calls[by.call_index + 1 :]:
            if (call.status is _QUEUED and call.admitted) or call.state is _AGAIN:
                waiting.append(call)
            elif call.status is Status.EXECUTING:
                self.verbs.interrupt_children(call, f"was skipped: call {by.call_index} of its batch failed")
            self.verbs.interrupt(call)
            self.skip(call, by)
        lane = self.running
        if lane is not None:
            self._finish_all(lane, waiting)

    def skip(self, call: CallRecord, by: CallRecord) -> None:
        """Replace the call's result, because `by` failed."""
        why = f"skipped: call {by.call_index} ({by.name}, id {by.call_id!r}) failed and stops the batch"
        runs = call.tool is not None and (call.status is Status.EXECUTING or call.state is CallState.DROPPED)
        if runs and probe.in_thread(call.tool):
            why += "; its thread cannot be stopped and still runs"
        self.verbs.answer(call, Outcome.SKIPPED, why, CallMove.SKIP)

    def answer_late(self, call: CallRecord) -> None:
        """A call came after the batch was cut short."""
        if self.stopped_by is not None:
            # A stop is taken note of only before a cancel, so it came first.
            self.skip(call, self.stopped_by)
        else:
            self.answer_not_started(call)

    def answer_not_started(self, call: CallRecord) -> None:
        """The call never started."""
        why = f"not started: the batch was cancelled ({self.cancel_reason})"
        self.verbs.answer(call, Outcome.NOT_STARTED, why, CallMove.SETTLE)


def _call_index(call: CallRecord) -> int:
    return call.call_index

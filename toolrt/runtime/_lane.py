"""One lane while it lives: its nursery, and which of its calls may start.

Rules.
    1. All tickets of a lane are taken at once, synchronously, in call order, before any of its calls starts; a
       call that joins the lane later takes its own when it is submitted.
    2. A call becomes a task when tickets, approval and slot are all its own, and whoever grants the last of
       them spawns it.  A waiting call is a record, and holds no slot.
    3. Ready calls take slots in call_index order.
    4. The lane has ended when all its calls have and it is closed.
    5. A call whose claims look at what an earlier call may change takes tickets for what they look at
       (``claims_after``), and asks for its claims when these are granted.  Until then the lane stands still at it: its
       later calls take no tickets.  See `ClaimTable.close` for those of other batches.
    6. A call that had to wait asks for its claims again when it is granted.  Where its tickets do not cover the answer
       it ends as an error, and nothing has run.

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
from toolrt.errors import asks_to_exit
from toolrt.events import (
    CallEnded,
    CallReady,
    ClaimsAwaited,
    ClaimsStale,
    LaneStarted,
    ModifiersRefused,
    ReleaseBegan,
    ReleaseEnded,
    SlotsGiven,
    TicketGranted,
    TicketTaken,
    observer,
)
from toolrt.model import READ, WRITE, Claim, Modifier, Outcome, State, StateMerged, Tool, ToolOutput, covers
from toolrt.model._watched_state import bare_state, parts_json
from toolrt.order import (
    ClaimTable,
    LanePlace,
    StateKeys,
    Status,
    Ticket,
    TrackedCall,
    applied,
    circle_through,
    claims_of,
    give_back,
    looked_at_by,
    may_go_stale,
    merged,
    parallel,
    stale_claims_text,
    stale_part,
    stale_text,
    touched_by,
)
from toolrt.runtime._approval import Approval
from toolrt.runtime._bookkeeping import changes, looks_at_result, looks_at_slots, returns, starts_lane
from toolrt.runtime._execution import execute, execute_again, fix_result
from toolrt.runtime._inside import Inside, hand_out

if TYPE_CHECKING:
    from toolrt.runtime._batch import Batch

__all__ = ["LaneRun"]

_STOPS = (Claim("control", WRITE),)
_MAY_BE_STOPPED = (Claim("control", READ),)

#: Claimed by a call whose claims turn out to look at something else than it waited for: it waits for all writers.
_LOOKS_ANYWHERE = (Claim((), READ, subtree=True),)

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
    #: How many of its calls wait for earlier ones to know whether they are stale.
    undecided: int = 0
    #: How many of its calls, from the first on, have their results, and the state that their modifiers leave.
    _decided: int = 0
    _so_far: State | None = None
    _deciding: bool = False
    #: Whether a modifier asked to exit: then no modifier of the lane applies.
    _given_up: bool = False
    #: The call that is to run again and waits for a slot, and what it is refused with if the batch is cancelled.
    _waits_again: tuple[TrackedCall, str] | None = None
    #: The call at which it stands still, whose claims are not known yet.
    stands_at: TrackedCall | None = None
    #: How many of its calls have been let in, or refused.
    _entered: int = 0
    #: Those that claim a whole subtree for writing, as who moves or deletes something does.
    _wide: list[TrackedCall] | None = None
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
        if self._given_up:
            self.modified = []
        if self.modified:
            self._merge = merged(self.index, state, self.modified)
            after = self._merge.state
            if self.batch.inside is not None:
                calls = self.batch.calls
                self.applied = [calls[call].modifiers[position] for call, position in self._merge.applied]
            for call in self.modified:
                call.modifiers = ()
                call.merged = None
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
                if not (alone and self.closed and self.stands_at is None) and not self._is_over:
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
        return self.closed and self.unfinished == 0 and self.stands_at is None

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
        refused = self._let_in(at_start=True)
        if observer.listens:
            self._report_start()
        for call, refusal in refused:
            self._refuse(call, refusal)
        if self._approval is not None:
            # A snapshot: a check may submit calls, and those are asked as they join.
            for call in [call for call in self.calls if call.admitted and not call.asking]:
                self._approval.ask(call)
        self.dispatch(at_home=True)

    def _let_in(self, at_start: bool = False) -> list[tuple[TrackedCall, str]]:
        """Let calls take their tickets, up to one whose claims are not known yet; gives those refused, with why."""
        refused: list[tuple[TrackedCall, str]] = []
        while self._entered < len(self.calls) and self.stands_at is None:
            call = self.calls[self._entered]
            if call.status is _QUEUED:
                refusal = self._enter(call)
                if refusal is _APART:
                    self.batch.sequence.split(self, self._entered)
                    break
                if at_start and refusal is None and not call.asking:
                    refusal = self._circle(call)
                if refusal is not None:
                    refused.append((call, refusal))
                elif at_start and not call.pending:
                    self._ready.append(call.call_index)
                    if observer.measures:
                        observer.tell(CallReady(call.batch_id, call.call_index), self.batch.teller)
            self._entered += 1
        if at_start:
            for call in self.calls[self._entered :]:
                self._ask_early(call)
        return refused

    def _ask_early(self, call: TrackedCall) -> None:
        """Keep what the call claims now, for when it is let in: how long the lane stands still decides nothing."""
        tool = cast(Tool, call.tool)
        if tool.claims_after is None and may_go_stale(tool, self.shared) and call.status is _QUEUED:
            call.asked = self._claims_of(call)

    def _enter(self, call: TrackedCall) -> str | None:
        """Take the call's tickets; or say why it is refused, or `_APART` if it has to open another lane."""
        tool: Any = call.tool
        after = () if tool.claims_after is None else self._looked_at_by(call)
        if after and self._must_wait(tool, after):
            if not self._admits(after, record=False):
                return _APART
            call.after = after
            self._wait_for_claims(call)
            return self._circle(call)
        if call.asked is None:
            claims = self._claims_of(call)
        else:
            claims, call.asked, call.asks_again = call.asked, None, True
        refusal = None if self.batch.inside is None else self._uncovered(call, claims)
        if refusal is None:
            call.after = after
            if not self._takes(call, claims):
                refusal = _APART
        return refusal

    def join(self, call: TrackedCall) -> bool:
        """Let a call join that is submitted while the lane runs; False if its claim on a state key forbids it."""
        if self.stands_at is not None:
            self.add(call)
            self._ask_early(call)
            return True
        refusal = self._enter(call)
        if refusal is _APART:
            return False
        self.add(call)
        self._entered += 1
        if refusal is None and call.asking:
            return True
        self._welcome(call, refusal)
        self.dispatch()
        return True

    def _welcome(self, call: TrackedCall, refusal: str | None) -> None:
        """Go on with a call that came in while the lane runs: its tickets are taken, or it is refused."""
        if refusal is not None:
            self._refuse(call, refusal)
            return
        if call.status is not _QUEUED:
            return
        if observer.listens:
            self._report_ticket(call)
        refusal = self._circle(call)
        if refusal is not None:
            self._refuse(call, refusal)
            return
        if self._approval is not None:
            self._approval.ask(call)
        else:
            self.ready_if_granted(call)

    def _uncovered(self, call: TrackedCall, claims: tuple[Claim, ...]) -> str | None:
        """Why a child may not have these claims; None if its parent covers them."""
        batch, tool = self.batch, cast(Tool, call.tool)
        touched = call.allowed = touched_by(tool, call.input, bare_state(self.state))
        wanted = batch.split_by_table(tool, claims if touched is None else touched)
        return cast(Inside, batch.inside).refusal(wanted)

    def _circle(self, call: TrackedCall) -> str | None:
        """Why the call, which has its tickets, would never start; None if it may, as in a batch that no tool opened."""
        if call.parent is None or self.batch.inside is not None or all(ticket.ready for ticket in call.tickets):
            return None
        return circle_through(call)

    def _refuse(self, call: TrackedCall, why: str) -> None:
        if call.status is not Status.QUEUED:
            return
        self.batch.settle(call, Outcome.INVALID, None, f"invalid call of tool {call.name!r}: {why}")
        if call.admitted:
            self.finish(call)
        if call.stops:
            self.batch.ending.stop(call)
        if self.undecided:
            self.decide()

    def _takes(self, call: TrackedCall, claims: tuple[Claim, ...]) -> bool:
        """Take the call's tickets, unless a claim on a state key keeps it out of this lane."""
        tool: Any = call.tool
        held = (*claims, *call.after) if call.after else claims
        if held and self.shared and not self._admits(held):
            return False
        self._claims_known(call, claims)
        call.admitted = True
        self.unfinished += 1
        if held:
            tables = self.batch.tables
            if len(tables) == 1:
                self._take(call, tables[0], held)
            else:
                for table, mine in self.batch.tables_of(tool, held):
                    self._take(call, table, mine)
        self._take_the_rest(call)
        return True

    def _claims_known(self, call: TrackedCall, claims: tuple[Claim, ...]) -> None:
        call.claims = claims
        if self.shared and any(claim.subtree and claim.mode is WRITE for claim in claims):
            self._wide = self._wide or []
            self._wide.append(call)

    def _take_the_rest(self, call: TrackedCall) -> None:
        """Take what the call needs besides its claims."""
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

    # Claims that are not known yet

    def _claims_of(self, call: TrackedCall) -> tuple[Claim, ...]:
        return claims_of(cast(Tool, call.tool), call.input, bare_state(self.state), self.shared)

    def _looked_at_by(self, call: TrackedCall) -> tuple[Claim, ...]:
        return looked_at_by(cast(Tool, call.tool), call.input, bare_state(self.state), self.shared)

    def _must_wait(self, tool: Tool, after: tuple[Claim, ...]) -> bool:
        """Whether something earlier may still change what the call's claims look at.

        A tool that looks again waits for calls of its own batch alone: it tells a change by others itself (RULES 18).
        """
        if not any(table.delays(mine) for table, mine in self.batch.tables_of(tool, after)):
            return False
        if not tool.looks_again:
            return True
        earlier = [claim for call in self._wide or () if call.tickets for claim in call.claims]
        return any(theirs.conflicts_with(mine) for theirs in earlier for mine in after)

    def _wait_for_claims(self, call: TrackedCall) -> None:
        """Take open tickets in all tables: which of them the claims will be in is not known."""
        call.admitted = call.asking = True
        self.unfinished += 1
        self.stands_at = call
        for table, mine in self._by_table(call, call.after).items():
            self._take(call, table, mine, is_open=True)
        if observer.listens:
            after = _as_lists(call.after)
            observer.tell(ClaimsAwaited(call.batch_id, call.call_index, self.index, after), self.batch.teller)

    def _by_table(self, call: TrackedCall, claims: tuple[Claim, ...]) -> dict[ClaimTable, tuple[Claim, ...]]:
        found: dict[ClaimTable, tuple[Claim, ...]] = dict.fromkeys(self.batch.tables, ())
        found.update(self.batch.tables_of(cast(Tool, call.tool), claims))
        return found

    def _close(self, call: TrackedCall, claims: tuple[Claim, ...], still_open: bool) -> None:
        """Let the call's open tickets hold `claims`."""
        by_table = self._by_table(call, claims)
        for ticket in call.tickets:
            ticket.table.close(ticket, by_table[ticket.table], still_open)
        call.pending = sum(not ticket.ready for ticket in call.tickets)

    def _ask_claims(self, call: TrackedCall) -> None:
        """What the call's claims look at stays as it is from now on: ask for them, and let those behind it go on."""
        if probe.implied is not None:
            changes(self.batch.batch_id)
            for ticket in call.tickets:
                ticket.implies()
        after = self._looked_at_by(call)
        if not all(covers(call.after, claim) for claim in after):
            # It looks at something else by now, which others may be changing.
            call.after = _LOOKS_ANYWHERE
            self._close(call, call.after, still_open=True)
            if call.pending:
                return
            after = self._looked_at_by(call)
        claims = self._claims_of(call)
        refusal = None if self.batch.inside is None else self._uncovered(call, claims)
        call.after, call.asking = after, False
        if refusal is None and not self._admits((*claims, *after)):
            self._leave_lane(call)
            return
        if refusal is None:
            self._claims_known(call, claims)
            self._close(call, (*claims, *after), still_open=False)
            self._take_the_rest(call)
            for table in self.batch.tables:
                table.go_on()
        self._welcome(call, refusal)
        if self.stands_at is call:
            self._go_on()

    def _leave_lane(self, call: TrackedCall) -> None:
        """A claim on a state key, known only now, keeps the call out of this lane."""
        tickets, call.tickets, call.after = call.tickets, (), ()
        call.admitted = False
        self.unfinished -= 1
        self.stands_at = None
        self.batch.sequence.split(self, self.calls.index(call))
        give_back(tickets, _call_index)
        self._wake_if_over()

    def _go_on(self) -> None:
        """Let the calls in that stand behind one whose claims are known by now, or which has ended."""
        self.stands_at = None
        came = self._entered
        refused = {call.call_index: why for call, why in self._let_in()}
        for call in self.calls[came : self._entered]:
            if call.call_index in refused or (call.admitted and not call.asking):
                self._welcome(call, refused.get(call.call_index))
        self.dispatch()
        self._wake_if_over()

    def stale_claims(self, call: TrackedCall, refused: bool) -> list[Claim]:
        """What the call would claim now and does not hold; whoever observes is told, and what its claims look at.

        Args:
            refused: whether the call is not run because of it.
        """
        held = (*call.claims, *call.after)
        if probe.sink is None:
            claims = self._claims_of(call)
            return [claim for claim in claims if not covers(held, claim)]
        with probe.looking() as looked_at:
            claims = self._claims_of(call)
        missing = [claim for claim in claims if not covers(held, claim)]
        if missing:
            holds, claims_now = list(map(str, held)), list(map(str, missing))
            reads = list(map(list, looked_at))
            observer.tell(ClaimsStale(call.batch_id, call.call_index, refused, holds, claims_now, reads))
        return missing

    def _is_stale(self, call: TrackedCall) -> bool:
        """Whether the call, which was granted just now, would claim what it does not hold; then it has ended."""
        try:
            missing = self.stale_claims(call, refused=True)
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            self._exit_or_raise(error)
            return True  # noqa: ASYNC104  the batch lets it out when it is left
        if not missing:
            return False
        if call.rewritten:
            holds = ", ".join(map(str, call.claims)) or "nothing"
            why = f"denied: the rewritten input claims {missing[0]}, the call holds {holds}"
            self.batch.settle(call, Outcome.DENIED, None, why)
        else:
            self.batch.settle(call, Outcome.ERROR, None, stale_claims_text(call.claims, missing[0]))
        self.finish(call)
        if call.stops:
            self.batch.ending.stop(call)
        if self.undecided:
            self.decide()
        return True

    def _admits(self, claims: tuple[Claim, ...], record: bool = True) -> bool:
        if self._state_keys is None:
            self._state_keys = StateKeys(apart=self.batch.runtime.lanes is not parallel)
        return self._state_keys.admits(claims, record)

    def _take(self, call: TrackedCall, table: ClaimTable, claims: tuple[Claim, ...], is_open: bool = False) -> None:
        ticket = table.take(claims, call, self._granted, is_open)
        call.tickets = (*call.tickets, ticket)
        if not ticket.ready:
            call.pending += 1
            call.asks_again = True

    def _granted(self, call: TrackedCall) -> None:
        call.pending -= 1
        if observer.measures:
            observer.tell(TicketGranted(call.batch_id, call.call_index), self.batch.teller)
        if not call.asking:
            self.ready_if_granted(call)
            self.dispatch()
        elif call.pending == 0 and call.status is _QUEUED:
            try:
                self._ask_claims(call)
            except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
                self._exit_or_raise(error)

    def _exit_or_raise(self, error: BaseException) -> None:
        """Ctrl-C or an exit while a tool was asked what it claims: the batch lets it out when it is left."""
        exit_asked = asks_to_exit(error)
        if exit_asked is None:
            raise error
        self.batch.ending.abort(exit_asked)

    def ready_if_granted(self, call: TrackedCall) -> None:
        """Let the call start, if nothing that it waits for but a slot is missing."""
        if call.pending == 0 and call.status is _QUEUED:
            if call.asks_again and may_go_stale(cast(Tool, call.tool), self.shared) and self._is_stale(call):
                return
            heappush(self._ready, call.call_index)
            if observer.measures:
                observer.tell(CallReady(call.batch_id, call.call_index), self.batch.teller)

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
            while ready and calls[ready[0]].status is not Status.QUEUED and not calls[ready[0]].again:
                heappop(ready)
            limit = self.running + (inside.free if ready else 0)
        nursery: Any = self.nursery
        while ready and self.running < limit:
            call = calls[heappop(ready)]
            if call.status is not _QUEUED and not call.again:
                continue
            run = execute_again if call.again else execute
            self.running += 1
            if inside is not None:
                inside.take()
            call.held = True
            if at_home:
                nursery.start_soon(run, self, call, name=call.call.name)
            else:
                self.batch.context.run(nursery.start_soon, run, self, call, name=call.call.name)
        if observer.measures:
            observer.tell(SlotsGiven(self.batch.batch_id), self.batch.teller)
        if ready and inside is not None:
            inside.starve(self)

    # Stale writes

    def decide_later(self, call: TrackedCall, output: ToolOutput) -> None:
        """Fix the result of a call that returned modifiers as soon as all earlier calls of its lane have theirs.

        Only then is it known whether the call is stale: whether a modifier sets from an old value what an earlier
        call has changed.
        """
        if probe.implied is not None:
            returns(call)
        call.undecided = output
        self.undecided += 1
        self.decide()

    def decide(self) -> None:
        """Fix the results of calls that wait for earlier ones, in call order, as far as those have theirs."""
        if self._deciding:
            return
        self._deciding = True
        calls = self.calls
        try:
            while self.undecided and self._decided < len(calls):
                call = calls[self._decided]
                if probe.implied is not None:
                    looks_at_result(call)
                if call.result is None:
                    if call.undecided is None:
                        return
                    self._fix(call, call.undecided)
                if call.result is None:
                    return  # it runs again
                self._decided += 1
                if call.merged is not None:
                    self._so_far = call.merged.after
                if call.undecided is not None:
                    call.undecided = None
                    self.undecided -= 1
                    self._decided_on(call)
        finally:
            self._deciding = False

    def _fix(self, call: TrackedCall, output: ToolOutput) -> None:
        """Fix the result of a call whose earlier calls have theirs: what it returned, or that it is stale."""
        before = self.state if self._so_far is None else self._so_far
        stale = None
        try:
            call.merged = applied(call.modifiers, before, call.tool)
        except BaseException as error:  # noqa: ASYNC103  a modifier asks to exit: it goes out when the batch is left
            self._given_up = True
            self.batch.ending.abort(error)
        else:
            if call.reads is not None:
                stale = stale_part(call.merged, call.reads, self.state if call.saw is None else call.saw)
        if stale is None:
            fix_result(self, call, output)
            return
        earlier = ((one.call_index, one.name, one.merged) for one in self.calls[: self._decided])
        text = stale_text(stale, self.state, earlier)
        if cast(Tool, call.tool).pure and not self.batch.is_cancelled:
            self._run_again(call, before, text)
            return
        if observer.records and call.merged is not None:
            sets = frozenset(part for modifier in call.merged.modifiers for part in modifier.sets)
            [part] = parts_json([stale])
            observer.tell(ModifiersRefused(call.batch_id, call.call_index, self.index, part, parts_json(sets)))
        call.modifiers, call.merged = (), None
        self.modified.remove(call)
        self.batch.settle(call, Outcome.ERROR, None, text)
        if call.stops:
            self.batch.ending.stop(call)

    def _run_again(self, call: TrackedCall, state: State, text: str) -> None:
        """Let a call of a pure tool run once more, on the `state` that the earlier calls leave."""
        self.modified.remove(call)
        call.modifiers, call.merged, call.undecided, call.reads = (), None, None, None
        call.again, call.saw = True, state
        self.undecided -= 1
        if call.runs_in is None:
            # Its task has ended: it takes a slot again, and still has its tickets.
            self.unfinished += 1
            self._waits_again = call, text
            heappush(self._ready, call.call_index)
            self.dispatch()

    def starts_again(self, call: TrackedCall) -> bool:
        """Whether a call that waited to run again still is to."""
        wanted = self._waits_again is not None and self._waits_again[0] is call
        self._waits_again = None
        return wanted

    def _refuse_again(self) -> None:
        """The batch is cancelled: refuse the call that waits to run again."""
        if self._waits_again is not None:
            (call, text), self._waits_again = self._waits_again, None
            call.again = False
            self.batch.settle(call, Outcome.ERROR, None, text)
            self.finish(call)

    def _decided_on(self, call: TrackedCall) -> None:
        """Give back what a call that has ended kept until its result was fixed."""
        if call.runs_in is not None:
            return
        if observer.measures:
            observer.tell(ReleaseBegan(call.batch_id, call.call_index), self.batch.teller)
        tickets, call.tickets = call.tickets, ()
        for ticket in tickets:
            ticket.release()
        if observer.measures:
            observer.tell(ReleaseEnded(call.batch_id), self.batch.teller)

    def finish(self, call: TrackedCall) -> None:
        """Give back what the call holds: its execution is over, or will never be."""
        if observer.listens:
            observer.tell(CallEnded(call.batch_id, call.call_index), self.batch.teller)
        waits = call.undecided is not None
        call.runs_in = None
        tickets, call.tickets = call.tickets, ()
        if waits and cast(Tool, call.tool).pure:
            # If it has to run again, what it reads must be as its place in the order has it.
            tickets, call.tickets = (), tickets
        elif waits and call.stops:
            # Nothing that it may have to skip starts before its result is known: it keeps its control claim.
            tickets, call.tickets = tickets[:-1], tickets[-1:]
        if len(tickets) == 1:
            tickets[0].release()
        elif tickets:
            give_back(tickets, _call_index)
        self._free(call)
        if self.stands_at is call:
            self._go_on()
        if self.starved or self.batch.inside is not None:
            hand_out(self)
        elif self._ready:
            self.dispatch()
        if observer.measures:
            observer.tell(ReleaseEnded(self.batch.batch_id), self.batch.teller)
        if self.undecided:
            self.decide()
        if self._over is not None:
            self._wake_if_over()

    def finish_all(self, calls: Iterable[TrackedCall]) -> None:
        """The same for many calls that never started, as one step."""
        tickets: list[Ticket] = []
        for call in calls:
            if observer.listens:
                observer.tell(CallEnded(call.batch_id, call.call_index), self.batch.teller)
            tickets += call.tickets
            call.tickets = ()
            self._free(call)
        give_back(tickets, _call_index)
        if self.stands_at is not None and self.stands_at.status is not _QUEUED:
            self._go_on()
        if self.starved or self.batch.inside is not None:
            hand_out(self)
        else:
            self.dispatch()
        if observer.measures:
            observer.tell(ReleaseEnded(self.batch.batch_id), self.batch.teller)
        if self._waits_again is not None and self.batch.is_cancelled:
            self._refuse_again()
        if self.undecided:
            self.decide()
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
        calls = [call.call_index for call in self.calls]
        started = LaneStarted(self.batch.batch_id, self.index, self.shared, calls, bare_state(self.state))
        observer.tell(started, self.batch.teller)
        for call in self.calls:
            if call.admitted and not call.asking:
                self._report_ticket(call)

    def _report_ticket(self, call: TrackedCall) -> None:
        taken = TicketTaken(
            call.batch_id,
            call.call_index,
            self.index,
            self.shared,
            _as_lists(call.claims),
            call.stops,
            call.reads_only,
            _as_lists(call.after),
        )
        observer.tell(taken, self.batch.teller)


#: Says that a call has to open another lane.
_APART = "apart"


def _as_lists(claims: tuple[Claim, ...]) -> list[list[Any]]:
    return [[claim.mode.value, list(claim.resource), claim.subtree] for claim in claims]


def _call_index(call: TrackedCall) -> int:
    return call.call_index

"""Admits calls: gets their claims, checks that they fit into their lane, and takes their tickets.

Rules.
    1. The calls of a lane are let in one after the other, in call order, each once its claims are known.
    2. A call takes all its tickets at once: for its claims, for what these look at, and for the lane's control claim.
       Those outside its sub-batch (rule 4) it takes when the others are granted: what it then waits for cannot wait for
       it inside.
    3. In a shared lane a claim on a key of the state keeps a call out where an earlier call of the lane conflicts.  It
       then opens a lane of its own, and takes along what is behind it.
    4. A call that runs alone takes its tickets once it is allowed to run: its lane keeps it alone in its batch.  It
       claims everything, unless its tool says what it touches and that it shares no lane, as a command does.  In a
       batch with an owner one that declares nothing takes none: turns of lanes keep it alone among its owner's calls
       (`toolrt.runtime`).  As it lends what it does not hold, the calls of its sub-batches take tickets outside.
    5. A call whose claims look at what an earlier call may change takes open tickets in all tables, for what they look
       at.  Its lane stands still at it: it asks for its claims when these tickets are granted, and later calls take
       none until then.

Theory.  Where some call stops the batch when it fails, it writes the lane's control claim, and every later call that
may have effects reads it; so none of them has started when the failure is known.  That claim lives in a table of the
lane, because lanes follow each other anyway.
"""

from __future__ import annotations

from typing import Any, Protocol

from toolrt import probe
from toolrt.events import (
    CallReady,
    ClaimsAwaited,
    EventListener,
    LaneStarted,
    TicketTaken,
    WaitsForUndeclared,
    observer,
)
from toolrt.model import EVERYTHING, READ, WRITE, Claim, Outcome, Rate, covers
from toolrt.order import _footprints
from toolrt.order._circle import circle_through
from toolrt.order._lanes import STATE_KEY, StateKeys, may_go_stale
from toolrt.order._record import CallRecord, LaneRecord
from toolrt.order._slots import LentSlot
from toolrt.order._states import CallMove, CallState, Status
from toolrt.order._tickets import ClaimTable, Ticket, give_back
from toolrt.order._verbs import Questions, Verbs

_STOPS = (Claim("control", WRITE),)
_MAY_BE_STOPPED = (Claim("control", READ),)

#: Claimed by a call of a sub-batch that touches nothing: a call of another sub-batch of its parent may run alone.
_PRESENT = (Claim("present", READ),)

#: Claimed by a call whose claims turn out to look at something else than it waited for: it waits for all writers.
_LOOKS_ANYWHERE = (Claim((), READ, subtree=True),)

#: What came of letting a call in, if it has to open another lane.
_APART = "apart"

_PLACED, _ASKING, _WAITING, _QUEUED = CallState.PLACED, CallState.ASKING, CallState.WAITING, Status.QUEUED
_TAKE, _GRANT = CallMove.TAKE.leads, CallMove.GRANT.leads


class AdmissionHost(Protocol):
    """What an admission needs of its batch's machine."""

    batch_id: str
    verbs: Verbs
    approves: bool
    lent: LentSlot | None
    telemetry: EventListener | None
    #: Whether some call waits for more than its slot: for a rate, or a limit that is shared.
    gated: bool
    #: A call, and the one of another batch that it waits for because a tool declares nothing; told once.
    held_up: tuple[CallRecord, CallRecord] | None

    def granted(self, call: CallRecord) -> None:
        """A ticket of the call that had to wait is first in line."""

    def ready_if_granted(self, lane: LaneRecord, call: CallRecord) -> None:
        """Let the call of `lane` start, if nothing that it waits for but a slot is missing."""

    def dispatch(self, lane: LaneRecord) -> None:
        """Spawn ready calls of `lane` while there are slots."""

    def refuse(self, lane: LaneRecord, call: CallRecord, outcome: Outcome, why: str) -> None:
        """The call of `lane` will never run: fix its result, an `outcome` and `why`, and give back what it holds."""

    def split(self, lane: LaneRecord, first: int) -> None:
        """The lane's calls from position `first` on get a lane of their own behind it."""


class Admission:
    """Lets one batch's calls into their lanes, and takes their tickets.

    Args:
        host: the batch's machine.
        questions: finds out what calls claim.
        tables: those of the runtime.
        inside: of a sub-batch, the tables in which its calls order themselves, one for each of the runtime's; None: the
            same.
        apart: whether calls whose claims on one key of the state conflict are kept in lanes of their own.
    """

    def __init__(
        self,
        host: AdmissionHost,
        questions: Questions,
        tables: tuple[ClaimTable, ...],
        inside: tuple[ClaimTable, ...] | None,
        apart: bool,
    ) -> None:
        self._host = host
        self._questions = questions
        #: Where the runtime's batches take tickets.
        self.runtime_tables = tables
        self._apart = apart
        #: Whether the batch has an owner.
        self.owned = False
        self._outside = False
        #: Where the batch's own calls take tickets.
        self.tables = tables if inside is None else inside

    def order_outside(self) -> None:
        """Let the calls of a sub-batch take tickets outside, too: their parent lends claims that it has none for."""
        self._outside = True
        self.tables += self.runtime_tables

    # Letting calls in

    def let_in(self, lane: LaneRecord) -> None:
        """The lane begins: let the calls in that came, in call order, and spawn those that are ready."""
        came = self._let_in(lane, True)
        for call in lane.calls[lane.entered :]:
            self.ask_early(lane, call)
        if observer.listens:
            self._tell_start(lane)
        for call, refusal in came:
            if refusal is not None:
                self._refuse(lane, call, refusal)
        if self._host.approves:
            for call, refusal in came:
                if refusal is None:
                    self._host.verbs.approve(lane, call)
        self._host.dispatch(lane)

    def join(self, lane: LaneRecord, call: CallRecord) -> bool:
        """A call came that may join the lane, which runs; False: what it claims keeps it out."""
        if lane.stands_at is not None:
            lane.add(call)
            self.ask_early(lane, call)
            return True
        refusal = self._admit(lane, call)
        if refusal is _APART:
            call.after = ()
            return False
        lane.add(call)
        lane.entered += 1
        if refusal is not None or call.state is not _ASKING:
            self._welcome(lane, call, refusal)
            self._host.dispatch(lane)
        return True

    def go_on(self, lane: LaneRecord) -> None:
        """Let the calls in that stand behind one whose claims are known by now, or which has ended."""
        lane.stands_at = None
        for call, refusal in self._let_in(lane, False):
            self._welcome(lane, call, refusal)
        self._host.dispatch(lane)

    def _let_in(self, lane: LaneRecord, at_start: bool) -> list[tuple[CallRecord, str | None]]:
        """Let calls in, in call order, up to one at which the lane stands still, or which has to open another lane.

        Args:
            at_start: whether the lane begins: then calls that wait for nothing are ready at once.

        Returns: those that have their tickets, each with None; and those that may not have them, each with the reason.
        """
        came: list[tuple[CallRecord, str | None]] = []
        calls = lane.calls
        while lane.entered < len(calls) and lane.stands_at is None:
            call = calls[lane.entered]
            if call.state is _PLACED:
                refusal = self._admit(lane, call)
                if refusal is _APART:
                    call.after = ()
                    self._host.split(lane, lane.entered)
                    break
                if at_start and refusal is None and call.parent is not None and call.state is not _ASKING:
                    refusal = self._circle(call)
                if refusal is not None or call.state is not _ASKING:
                    came.append((call, refusal))
                if at_start and refusal is None and call.state is _WAITING and not call.missing:
                    call.state = _GRANT[call.state]
                    lane.ready.append(call.call_index)
                    if observer.measures:
                        observer.tell(CallReady(call.batch_id, call.call_index), self._host.telemetry)
            lane.entered += 1
        return came

    def _admit(self, lane: LaneRecord, call: CallRecord) -> str | None:
        """Ask what the call claims, and take its tickets; or let the lane stand still at it.

        Returns: why it may not have what it claims; `_APART` if it has to open another lane; else None.
        """
        tool: Any = call.tool
        if tool.claims_after is not None:
            looked_at = self._questions.looks_at(lane, call)
            if looked_at and self.must_wait(lane, call, looked_at):
                if not self.fits(lane, call, looked_at, record=False):
                    return _APART
                self.stand(lane, call, looked_at)
                if observer.listens:
                    after = claims_json(looked_at)
                    awaited = ClaimsAwaited(call.batch_id, call.call_index, lane.index, after)
                    observer.tell(awaited, self._host.telemetry)
                return self._circle(call)
            call.after = looked_at
        if call.asked is None:
            claims, said, refusal = self._questions.claims(lane, call)
        else:
            (claims, said, refusal), call.asked, call.asks_again = call.asked, None, True
        if refusal is None:
            for claim in said:
                if claim.slots is not None:
                    refusal = self._disagreement(call, said)
                    break
        if refusal is None and not self.take(lane, call, claims):
            return _APART
        return refusal

    def ask_early(self, lane: LaneRecord, call: CallRecord) -> None:
        """Keep what the call claims now, for when it is let in: how long the lane stands still decides nothing."""
        tool: Any = call.tool
        if tool.claims_after is None and may_go_stale(tool, lane.shared) and call.state is _PLACED:
            call.asked = self._questions.claims(lane, call)

    def _welcome(self, lane: LaneRecord, call: CallRecord, refusal: str | None) -> None:
        """Go on with a call that came in while the lane runs: its tickets are taken, or it is refused."""
        if refusal is None and call.status is not _QUEUED:
            return
        if refusal is None:
            if observer.listens:
                self._tell_tickets(lane, call)
            refusal = self._circle(call)
        if refusal is not None:
            self._refuse(lane, call, refusal)
        elif self._host.approves:
            self._host.verbs.approve(lane, call)
        else:
            self._host.ready_if_granted(lane, call)

    def _tell_start(self, lane: LaneRecord) -> None:
        calls = [call.call_index for call in lane.calls]
        observer.tell(LaneStarted(self._host.batch_id, lane.index, lane.shared, calls, lane.bare), self._host.telemetry)
        for call in lane.calls:
            if call.admitted and call.state is not _ASKING:
                self._tell_tickets(lane, call)

    def _tell_tickets(self, lane: LaneRecord, call: CallRecord) -> None:
        claims, after = claims_json(call.claims), claims_json(call.after)
        place = call.batch_id, call.call_index, lane.index, lane.shared
        touches = None if call.allowed is None else claims_json(call.allowed)
        rates = [[rate.name, rate.per_second] for rate in call.rates] or None
        taken = TicketTaken(*place, claims, call.stops, call.reads_only, after, touches, rates)
        observer.tell(taken, self._host.telemetry)

    def _circle(self, call: CallRecord) -> str | None:
        """Why the call, which has its tickets, would never start; None if it may, as in a batch that no tool opened."""
        inside = self._host.lent is not None and not self._outside
        if call.parent is None or inside or all(ticket.ready for ticket in call.tickets):
            return None
        return circle_through(call)

    def _refuse(self, lane: LaneRecord, call: CallRecord, why: str) -> None:
        if call.status is _QUEUED:
            text = f"invalid call of tool {call.name!r}: {why}" if call.refused_as is Outcome.INVALID else why
            self._host.refuse(lane, call, call.refused_as, text)

    # Claims that are not known at once

    def granted(self, lane: LaneRecord, call: CallRecord) -> None:
        """What the claims of the call of `lane` look at stays as it is from now on: ask for them, and hold them."""
        if probe.implied is not None:
            _footprints.changes(call.batch_id)
            for ticket in call.tickets:
                ticket.implies()
        looked_at = self._questions.looks_at(lane, call)
        if not all(covers(call.after, claim) for claim in looked_at):
            # It looks at something else by now, which others may be changing.
            call.after = _LOOKS_ANYWHERE
            self.close(call, call.after, still_open=True)
            if call.missing:
                return
        claims, _, refusal = self._questions.claims(lane, call)
        if refusal is None and not self.fits(lane, call, (*claims, *looked_at)):
            self._leave_lane(lane, call)
            return
        if refusal is None:
            refusal = self._disagreement(call, claims)
        if refusal is None:
            self.know(lane, call, claims, looked_at)
        self._welcome(lane, call, refusal)
        if lane.stands_at is call:
            self.go_on(lane)

    def _leave_lane(self, lane: LaneRecord, call: CallRecord) -> None:
        """A claim on a state key, known only now, keeps the call out of this lane."""
        tickets, call.tickets, call.after = call.tickets, (), ()
        call.happen(CallMove.LEAVE)
        lane.unfinished -= 1
        lane.stands_at = None
        self._host.split(lane, lane.calls.index(call))
        give_back(tickets, _call_index)
        if lane.is_over:
            self._host.verbs.wake()

    def _disagreement(self, call: CallRecord, claims: tuple[Claim, ...]) -> str | None:
        """Why the call may not have `claims`: an earlier one gives a resource another capacity; None if it may."""
        if not call.is_known:
            call.rates = tuple(claim for claim in claims if isinstance(claim, Rate))
        if call.rates:
            self._host.gated = True
        who = f"call {call.call_index} ({call.name}) of batch {call.batch_id}"
        for table, mine in self.by_table(call.tool, claims).items():
            why = table.disagrees(mine, who)
            if why is not None:
                call.refused_as = Outcome.ERROR
                return why
        return None

    # Tickets

    def by_table(self, tool: Any, claims: tuple[Claim, ...]) -> dict[ClaimTable, tuple[Claim, ...]]:
        """The `claims` of a call of `tool`, by the tables on which the batch's calls take tickets."""
        if len(self.tables) == 1:
            return {self.tables[0]: claims}
        inside = dict(zip(self.runtime_tables, self.tables, strict=False))
        outside = by_owner(self.runtime_tables, None if tool is None else tool.owner, claims)
        found = {inside[table]: mine for table, mine in outside.items()}
        if self._outside and tool is not None and (tool.claims is not None or tool.claims_after is not None):
            found.update(outside)
        return found

    def fits(
        self, lane: LaneRecord, call: CallRecord, claims: tuple[Claim, ...], record: bool = True, declared: bool = True
    ) -> bool:
        """Whether the `call` with `claims` may be in the lane: see `StateKeys.admits`."""
        if lane.keys is None:
            lane.keys = StateKeys(self._apart)
        return lane.keys.admits(claims, lane.calls[0] is call, record, declared)

    def take(self, lane: LaneRecord, call: CallRecord, claims: tuple[Claim, ...]) -> bool:
        """Take the call's tickets; False, and nothing was changed, if a claim on a state key keeps it out."""
        held = (*claims, *call.after) if call.after else claims
        approves, lent = self._host.approves, self._host.lent
        if lane.shared:
            if lane.keys is not None or (held and any(map(_may_be_of_state, held))):
                declared = call.tool is None or call.tool.claims is not None or not held
                if not self.fits(lane, call, held, declared=declared):
                    return False
        elif lent is None:
            held = self._held_by_lonely(lane, call, held)
        if claims:
            self._note(lane, call, claims)
        call.state = _TAKE[call.state]
        lane.unfinished += 1
        if (held and (lane.shared or not approves)) or lent is not None:
            self._take_all(call, held)
        if call.stops or lane.control is not None or approves:
            self._take_the_rest(lane, call)
        if call.outside:
            self._take_outside(call)
        return True

    def answered(self, lane: LaneRecord, call: CallRecord) -> None:
        """A call of `lane` was allowed to run: if it runs alone it takes its tickets now, for what it was allowed."""
        if not lane.shared and self._host.lent is None:
            held = self._held_by_lonely(lane, call, call.claims)
            self._take_all(call, held if call.allowed is None else call.allowed)

    def _held_by_lonely(self, lane: LaneRecord, call: CallRecord, claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
        """What of its `claims` a call takes tickets for that runs alone in `lane`: see rule 4."""
        tool: Any = call.tool
        said = said_by_lonely(lane, call)
        if said is not None:
            return said
        return () if self.owned and tool.claims is None else claims

    def _take_all(self, call: CallRecord, held: tuple[Claim, ...]) -> None:
        if call.rates or call.is_known:
            held = _resources(held)
        if held:
            if len(self.tables) == 1:
                self._take(call, self.tables[0], held)
            else:
                self._take_inside(call, self.by_table(call.tool, held))
        elif self._host.lent is not None:
            self._take(call, self.tables[0], _PRESENT)

    def _take_inside(
        self, call: CallRecord, claims: dict[ClaimTable, tuple[Claim, ...]], is_open: bool = False
    ) -> None:
        """Take tickets for `claims`; those outside come later (rule 2)."""
        for table, mine in claims.items():
            if self._outside and table in self.runtime_tables:
                call.outside = (*call.outside, (table, mine))
            else:
                self._take(call, table, mine, is_open)

    def go_outside(self, lane: LaneRecord, call: CallRecord) -> None:
        """Nothing inside stands in the way of the call of `lane` any more: take its tickets outside."""
        self._take_outside(call)
        refusal = self._circle(call)
        if refusal is not None:
            self._refuse(lane, call, refusal)

    def _take_outside(self, call: CallRecord) -> None:
        """Take the call's tickets outside, if all its others are granted."""
        if call.missing:
            return
        outside, call.outside = call.outside, ()
        for table, mine in outside:
            self._take(call, table, mine, is_open=call.state is _ASKING)

    def _note(self, lane: LaneRecord, call: CallRecord, claims: tuple[Claim, ...]) -> None:
        call.claims = claims
        if lane.shared:
            for claim in claims:
                if claim.subtree and claim.mode is WRITE:
                    lane.wide = (*lane.wide, call)
                    return

    def _take_the_rest(self, lane: LaneRecord, call: CallRecord) -> None:
        """Take what the call needs besides its claims."""
        if call.stops and lane.shared:
            if lane.control is None:
                lane.control = ClaimTable("control")
            self._take(call, lane.control, _STOPS)
        elif lane.control is not None and not call.reads_only:
            self._take(call, lane.control, _MAY_BE_STOPPED)
        if self._host.approves:
            # Before any check is asked: a first call denied at once must not let a second one start that was not
            # asked yet.
            call.happen(CallMove.EXPECT)

    def _take(self, call: CallRecord, table: ClaimTable, claims: tuple[Claim, ...], is_open: bool = False) -> None:
        ticket = table.take(claims, call, self._host.granted, is_open)
        call.tickets = (*call.tickets, ticket)
        if ticket.missing:
            call.missing += 1
            call.asks_again = True
            if not table.told and table.tenure is not None and table.tenure[1] > 1:
                self._tell_of_undeclared(call, ticket)

    def _tell_of_undeclared(self, call: CallRecord, ticket: Ticket) -> None:
        """Say once who waits for another batch because a tool declares nothing, and no batch names its owner."""
        for other in ticket.waits_for():
            if other.batch_id != call.batch_id and (_declares_nothing(other) or _declares_nothing(call)):
                ticket.table.told = True
                self._host.held_up = call, other
                if observer.measures:
                    waits = WaitsForUndeclared(call.batch_id, call.call_index, other.batch_id, other.call_index)
                    observer.tell(waits, self._host.telemetry)
                return

    def must_wait(self, lane: LaneRecord, call: CallRecord, looked_at: tuple[Claim, ...]) -> bool:
        """Whether something earlier may still change what the call's claims look at.

        A tool that looks again waits for calls of its own batch alone: it tells a change by others itself (RULES 18).
        """
        tool: Any = call.tool
        if not any(table.delays(mine) for table, mine in self.by_table(tool, looked_at).items()):
            return False
        if not tool.looks_again:
            return True
        earlier = [claim for other in lane.wide if other.tickets for claim in other.claims]
        return any(theirs.conflicts_with(mine) for theirs in earlier for mine in looked_at)

    def stand(self, lane: LaneRecord, call: CallRecord, looked_at: tuple[Claim, ...]) -> None:
        """Let the lane stand still at the call; it takes open tickets in all tables, as its claims may be in any."""
        call.happen(CallMove.STAND)
        call.after = looked_at
        lane.unfinished += 1
        lane.stands_at = call
        self._take_inside(call, self._in_all_tables(call, looked_at), is_open=True)
        self._take_outside(call)

    def know(self, lane: LaneRecord, call: CallRecord, claims: tuple[Claim, ...], looked_at: tuple[Claim, ...]) -> None:
        """Let the open tickets hold the call's claims, which are known now, and let others enter behind it."""
        call.after = looked_at
        self._note(lane, call, claims)
        call.state = _TAKE[call.state]
        self.close(call, (*claims, *looked_at), still_open=False)
        self._take_the_rest(lane, call)
        for table in self.tables:
            table.go_on()

    def close(self, call: CallRecord, claims: tuple[Claim, ...], still_open: bool) -> None:
        """Let the call's open tickets hold `claims`, and stay open if they are `still_open`."""
        by_table = self._in_all_tables(call, claims)
        for ticket in call.tickets:
            ticket.table.close(ticket, by_table[ticket.table], still_open)
        call.missing = sum(not ticket.ready for ticket in call.tickets)

    def _in_all_tables(self, call: CallRecord, claims: tuple[Claim, ...]) -> dict[ClaimTable, tuple[Claim, ...]]:
        found: dict[ClaimTable, tuple[Claim, ...]] = dict.fromkeys(self.tables, ())
        found.update(self.by_table(call.tool, _resources(claims)))
        return found


def by_owner(
    tables: tuple[ClaimTable, ...], owner: Any, claims: tuple[Claim, ...]
) -> dict[ClaimTable, tuple[Claim, ...]]:
    """The `tables` of a runtime that `claims` belong to: the owner's; all of them for a claim on everything.

    Args:
        owner: of the call's tool; None: the first table is its own.
    """
    own = tables[0] if owner is None else owner.claim_table
    found = {}
    for table in tables:
        mine = claims if table is own else tuple(claim for claim in claims if not claim.resource)
        if mine:
            found[table] = mine
    return found


def said_by_lonely(lane: LaneRecord, call: CallRecord) -> tuple[Claim, ...] | None:
    """What a call that runs alone in `lane` touches, where its tool says so and never shares a lane; None elsewhere."""
    tool: Any = call.tool
    return None if tool.claims is None or tool.declares else tuple(tool.claims_for(call.input, lane.bare))


def _declares_nothing(call: CallRecord) -> bool:
    tool = call.tool
    return tool is not None and tool.claims is None and EVERYTHING in call.claims


def _may_be_of_state(claim: Claim) -> bool:
    """Whether the claim may be on a key of the state; `StateKeys` looks at no other."""
    return not claim.resource or claim.resource[0] == STATE_KEY


def claims_json(claims: tuple[Claim, ...]) -> list[list[Any]]:
    """The claims as events hold them: mode, resource, whether a subtree is meant; then of how many places it is one."""
    return [
        [claim.mode.value, list(claim.resource), claim.subtree, *(() if claim.slots is None else (claim.slots,))]
        for claim in _resources(claims)
    ]


def _resources(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """The claims without rates, which are no resources."""
    return tuple(claim for claim in claims if not isinstance(claim, Rate))


def _call_index(call: CallRecord) -> int:
    return call.call_index

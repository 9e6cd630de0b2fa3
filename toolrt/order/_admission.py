"""Admits a call: takes its tickets on the right tables, and checks that it fits into its lane.

Rules.
    1. A call takes all its tickets at once: for its claims, for what these look at, and for the lane's control claim.
    2. In a shared lane a claim on a key of the state keeps a call out where an earlier call of the lane conflicts.
    3. A call whose claims are not known yet takes open tickets in all tables, for what its claims look at.

Theory.  Where some call stops the batch when it fails, it writes the lane's control claim, and every later call that
may have effects reads it; so none of them has started when the failure is known.  That claim lives in a table of the
lane, because lanes follow each other anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolrt.model import READ, WRITE, Claim
from toolrt.order._lanes import StateKeys
from toolrt.order._record import CallRecord, LaneRecord
from toolrt.order._states import CallMove
from toolrt.order._tickets import ClaimTable

__all__ = ["Admission"]

_STOPS = (Claim("control", WRITE),)
_MAY_BE_STOPPED = (Claim("control", READ),)
_TAKE = CallMove.TAKE.leads


class Admission:
    """Takes the tickets of one batch's calls.

    Args:
        tables: for each table of the runtime the one in which the batch's calls order themselves, which is another one
            in a sub-batch.
        apart: whether calls whose claims on one key of the state conflict are kept in lanes of their own.
        approves: whether each call is to be approved before it starts.
        granted: called with a call when one of its tickets that had to wait is first in line.
    """

    def __init__(
        self,
        tables: Sequence[tuple[ClaimTable, ClaimTable]],
        apart: bool,
        approves: bool,
        granted: Callable[[CallRecord], None],
    ) -> None:
        self._tables = tables
        self._apart = apart
        self._approves = approves
        self._granted = granted
        #: Where the batch's own calls take tickets.
        self.tables = tuple(inner for _, inner in tables)

    def by_owner(self, owner: Any, claims: tuple[Claim, ...]) -> dict[ClaimTable, tuple[Claim, ...]]:
        """The runtime's tables that `claims` belong to: the owner's; all of them for a claim on everything.

        Args:
            owner: of the call's tool; None: the first table is its own.
        """
        own = self._tables[0][0] if owner is None else owner.claim_table
        found = {}
        for table, _ in self._tables:
            mine = claims if table is own else tuple(claim for claim in claims if not claim.resource)
            if mine:
                found[table] = mine
        return found

    def by_table(self, owner: Any, claims: tuple[Claim, ...]) -> dict[ClaimTable, tuple[Claim, ...]]:
        """The same by the tables on which the batch's calls take tickets."""
        if len(self._tables) == 1:
            return {self._tables[0][1]: claims}
        inner = dict(self._tables)
        return {inner[table]: mine for table, mine in self.by_owner(owner, claims).items()}

    def fits(self, lane: LaneRecord, claims: tuple[Claim, ...], record: bool = True) -> bool:
        """Whether a call with `claims` may be in the lane; if so they count from now on, unless `record` is False."""
        if lane.keys is None:
            lane.keys = StateKeys(self._apart)
        return lane.keys.admits(claims, record)

    def take(self, lane: LaneRecord, call: CallRecord, claims: tuple[Claim, ...]) -> bool:
        """Take the call's tickets; False, and nothing was changed, if a claim on a state key keeps it out."""
        held = (*claims, *call.after) if call.after else claims
        if held and lane.shared and not self.fits(lane, held):
            return False
        self._note(lane, call, claims)
        call.state = _TAKE[call.state]
        lane.unfinished += 1
        if held:
            if len(self.tables) == 1:
                self._take(call, self.tables[0], held)
            else:
                for table, mine in self.by_table(_owner(call), held).items():
                    self._take(call, table, mine)
        if call.stops or lane.control is not None or self._approves:
            self._take_the_rest(lane, call)
        return True

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
        if self._approves:
            # Before any check is asked: a first call denied at once must not let a second one start that was not
            # asked yet.
            call.happen(CallMove.EXPECT)

    def _take(self, call: CallRecord, table: ClaimTable, claims: tuple[Claim, ...], is_open: bool = False) -> None:
        ticket = table.take(claims, call, self._granted, is_open)
        call.tickets = (*call.tickets, ticket)
        if ticket.missing:
            call.missing += 1
            call.asks_again = True

    # Claims that are not known yet

    def must_wait(self, lane: LaneRecord, call: CallRecord, looked_at: tuple[Claim, ...]) -> bool:
        """Whether something earlier may still change what the call's claims look at.

        A tool that looks again waits for calls of its own batch alone: it tells a change by others itself (RULES 18).
        """
        tool: Any = call.tool
        if not any(table.delays(mine) for table, mine in self.by_table(tool.owner, looked_at).items()):
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
        for table, mine in self._in_all_tables(call, looked_at).items():
            self._take(call, table, mine, is_open=True)

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
        found.update(self.by_table(_owner(call), claims))
        return found


def _owner(call: CallRecord) -> Any:
    return None if call.tool is None else call.tool.owner

"""The turn of a lane among those of all batches of one owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import trio

from toolrt.model import READ, WRITE, Claim, State, Tool
from toolrt.model._claim import EVERYTHING
from toolrt.model._watched_state import bare_state
from toolrt.order import ClaimTable, LaneRecord, Siblings, Ticket, said_by_lonely

#: What a lane claims among those of its owner: to be alone, or beside others that are not alone.
_ALONE, _BESIDE = (Claim("calls", WRITE),), (Claim("calls", READ),)


class OwnerTurn:
    """The turns of one batch, one after the other.

    A call whose tool declares nothing is alone among the calls of one owner, so its lane waits for all before it.  So
    does one that claims everything, because a call that declares nothing may run inside it.

    Args:
        calls: of the batch, which know its owner.
        tables: the claim tables of its runtime.
    """

    def __init__(self, calls: Siblings, tables: Sequence[ClaimTable]) -> None:
        self._calls = calls
        self._tables = tables
        #: The lane's place among those of the owner, in each table.
        self._tickets: tuple[Ticket, ...] = ()
        #: Set when the lane's turn has come, or is waited for no more; None: no task waits.
        self._is_due: trio.Event | None = None

    async def wait(self, lane: LaneRecord, state: State) -> None:
        """Wait until the `lane`, which begins with `state`, may run beside those of its owner's other batches.

        Checkpoint: if it has to wait.
        """
        lane.bare = bare_state(state)
        first = lane.calls[0]
        tool = cast(Tool, first.tool)
        if lane.shared:
            lonely = tool.claims is not None and EVERYTHING in tool.claims_for(first.input, lane.bare)
        else:
            lonely = said_by_lonely(lane, first) is None
        claims = _ALONE if lonely else _BESIDE
        self._tickets = tuple(
            table.of_owner(self._calls.owner).take(claims, first, lambda call: self._look()) for table in self._tables
        )
        if self._has_come():
            return
        self._is_due = due = trio.Event()
        try:
            await due.wait()
        finally:
            self._is_due = None

    def _has_come(self) -> bool:
        return all(ticket.ready for ticket in self._tickets)

    def _look(self) -> None:
        if self._has_come():
            self.wait_no_more()

    def wait_no_more(self) -> None:
        """Let the task that waits go on, whether the turn has come or the batch is cancelled."""
        if self._is_due is not None:
            self._is_due.set()

    def give_back(self) -> None:
        """Let the owner's next lane have its turn; nothing happens where there is none."""
        tickets, self._tickets = self._tickets, ()
        for ticket in tickets:
            ticket.release()

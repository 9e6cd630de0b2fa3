"""A lease: lends the claims and the slot of a call to the sub-batches that its tool opens (RULE 20).

Rules.
    1. A child may claim what its parent may touch, and nothing else.  Children of one parent order among themselves in
       tables of their own: no other call can meet them, because what they touch is the parent's.
    2. The parent's slot is lent: one child of it can always run (`toolrt.order.LentSlot`).
    3. No child outlives its parent: a cancel, a timeout or a stop of the parent reaches its sub-batches; a tool that
       ends while one is open cancels it, and its call has ended when that has.

Limits.  Sub-batches are nested `DEEPEST` deep at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import trio

from toolrt.errors import BatchClosed
from toolrt.model import WRITE, Claim, FileChanged, ParentCall, Rate, Tool, covers
from toolrt.model._claim import claims_in_words
from toolrt.order import (
    CallRecord,
    CallState,
    ClaimTable,
    LaneRecord,
    LentSlot,
    Machine,
    Slots,
    Status,
    by_owner,
)
from toolrt.runtime._caller import refuse_other_run

#: How many sub-batches may be open around each other.
DEEPEST = 16

_RUNS = (CallState.RUNNING, CallState.RETURNED)


def refuse_inside(opener: CallRecord | None, batch_id: str, tables: Sequence[ClaimTable]) -> None:
    """Refuse a batch that is no sub-batch where a call around it holds what the batch's calls would wait for.

    Args:
        opener: the call whose tool opens the batch; None where none does.
        batch_id: names the batch.
        tables: where its calls will take tickets.

    Raises:
        BatchClosed: `opener`, or a call around it, holds claims in one of `tables`.
    """
    while opener is not None:
        if opener.status is Status.EXECUTING and any(ticket.table in tables for ticket in opener.tickets):
            holder = f"call {opener.call_index} of batch {opener.batch_id}"
            why = f"{holder} holds claims in the same table, and would wait for itself"
            remedy = "open a sub-batch instead, with ctx.run or ctx.open_batch"
            raise BatchClosed(batch_id, "be opened inside a tool", f"{why}: {remedy}")
        opener = opener.parent


def lease_of(call: CallRecord, machine: Machine, outer: Lease | None, token: trio.lowlevel.TrioToken) -> Lease:
    """What `call` of the batch of `machine` lends; it is made when the call opens its first sub-batch.

    Args:
        outer: what the batch's own parent lends; None where it has none.
        token: the Trio run that the batch belongs to.

    Raises:
        BatchClosed: the call is not running.
    """
    lease: Lease | None = call.inside
    if lease is None:
        lease = Lease(call, machine, machine.lanes[call.lane or 0], outer, token)
        lease.refuse_if_over()
        call.inside = lease
    lease.refuse_if_over()
    return lease


class OpenBatch(Protocol):
    """What a lease asks of a sub-batch."""

    def cancel(self, reason: str, outside: bool) -> None:
        """Let nothing start any more, and interrupt what runs."""


class Lease:
    """One call as the parent of sub-batches.

    Args:
        call: the parent.
        machine: of the batch that it is a call of.
        lane: its lane.
        outer: what that batch's own parent lends; None where it has none.
        token: the Trio run that it runs in.

    Raises:
        BatchClosed: the call is not running.
    """

    def __init__(
        self,
        call: CallRecord,
        machine: Machine,
        lane: LaneRecord,
        outer: Lease | None,
        token: trio.lowlevel.TrioToken,
    ) -> None:
        self.call = call
        self.outer = outer
        self._machine = machine
        self._lane = lane
        self._token = token
        if outer is not None:
            slots: Slots = outer.slot.slots
        else:
            if lane.slots is None:
                lane.slots = Slots(machine.batch_id, lane, machine.limit, lambda: machine.dispatch(lane))
            slots = lane.slots
        #: What its children run in.
        self.slot: LentSlot = LentSlot(slots)
        #: How many sub-batches are open around its children.
        self.depth: int = 1 if outer is None else outer.depth + 1
        #: The call's place: its index, behind those of the calls and sub-batches around it.
        self.path: tuple[int, ...] = (*machine.path, call.call_index)
        self._opened = 0
        self._open: dict[OpenBatch, None] = {}
        self._tables: dict[ClaimTable, ClaimTable] = {}
        self._ended: trio.Event | None = None
        self._changes: dict[tuple[int, ...], list[FileChanged]] = {}
        #: Whether some child may have changed files and said nothing.
        self._silent = False

    # Opening and ending

    def place(self, batch_id: str | None) -> tuple[str, tuple[int, ...]]:
        """The name and the path of the next sub-batch."""
        self._opened += 1
        name = f"{self.call.batch_id}/{self.call.call_index}.{self._opened}" if batch_id is None else batch_id
        return name, (*self.path, self._opened)

    @property
    def is_cancelled(self) -> bool:
        """Whether the parent is to end, and its sub-batches with it."""
        return self._machine.cancel_reason is not None and cast(Tool, self.call.tool).interrupt == "cancel"

    def refuse_if_over(self) -> None:
        """Refuse a sub-batch of a call that is not running.

        Raises:
            BatchClosed: the call is not running.
        """
        call = self.call
        if call.state not in _RUNS:
            why = f"call {call.call_index} is not running: only a tool that runs opens batches inside its call"
            raise BatchClosed(call.batch_id, "lend its claims to a sub-batch", why)

    def entered(self, batch: OpenBatch, batch_id: str) -> None:
        """Take note that calls of `batch` may run from now on.

        Raises:
            BatchClosed: the call has ended or runs in another Trio run, or too many sub-batches are open around it.
        """
        call = self.call
        if call.state not in _RUNS:
            why = f"call {call.call_index} of batch {call.batch_id}, which would lend its claims, has ended"
            raise BatchClosed(batch_id, "be opened inside a call", why)
        refuse_other_run(self._token, batch_id, "be opened inside a call")
        if self.depth > DEEPEST:
            why = f"{DEEPEST} sub-batches are open around it, the most there may be: let fewer tools open batches"
            raise BatchClosed(batch_id, "be opened inside a call", why)
        self._open[batch] = None

    def ended(self, batch: OpenBatch) -> None:
        """Take note that nothing of `batch` runs any more."""
        self._open.pop(batch, None)
        if self._ended is not None:
            self._ended.set()

    def cancel(self, why: str) -> None:
        """Let no child start any more, and interrupt those that run."""
        for batch in list(self._open):
            batch.cancel(f"call {self.call.call_index} of batch {self.call.batch_id} {why}", outside=True)

    def cancel_with_parent(self, why: str) -> None:
        """The same, unless the parent may finish what it does: then so may its children."""
        if cast(Tool, self.call.tool).interrupt == "cancel":
            self.cancel(why)

    async def wait_ended(self) -> None:
        """Cancel what is open still, and wait until nothing of it runs.

        Checkpoint: if something is open.
        """
        self.cancel("has ended")
        if self._open:
            with trio.CancelScope(shield=True):
                while self._open:
                    self._ended = trio.Event()
                    await self._ended.wait()
        self._tell_changes()

    # What children changed

    def note_changes(self, path: tuple[int, ...], lane: LaneRecord) -> None:
        """Keep what the calls of a lane that has ended said of files."""
        for call in lane.calls:
            if not call.has_started:
                continue
            if call.changes is not None:
                self._changes[*path, call.call_index] = call.changes
            elif any(claim.mode is WRITE for claim in (call.claims if call.allowed is None else call.allowed)):
                self._silent = True

    def _tell_changes(self) -> None:
        """What children said counts as said by the parent; where one said nothing, its own claims speak for it."""
        if self.call.changes is not None or self._changes:
            of_children = [change for _, changes in sorted(self._changes.items()) for change in changes]
            self.call.changes = None if self._silent else [*of_children, *(self.call.changes or ())]

    # Claims

    @property
    def lends_unheld(self) -> bool:
        """Whether the parent is alone among its owner's calls only, and so lends claims for which it has no tickets."""
        owned = self._machine.admission.owned if self.outer is None else self.outer.lends_unheld
        return owned and not self._lane.shared and cast(Tool, self.call.tool).claims is None

    @property
    def is_alone(self) -> bool:
        """Whether nothing runs beside the parent, nor beside those around it, but calls of its own sub-batches."""
        lane = self._lane
        alone = not lane.shared or (lane.keys is not None and lane.keys.alone)
        return alone and (self.outer is None or self.outer.is_alone)

    def table(self, theirs: ClaimTable) -> ClaimTable:
        """The table in which children order what, outside, `theirs` orders."""
        table = self._tables.get(theirs)
        if table is None:
            name = f"{theirs.name} in {self.call.batch_id}#{self.call.call_index}"
            table = self._tables[theirs] = ClaimTable(name)
            table.one_place = self._lent_places()
        return table

    def _lent_places(self) -> frozenset[tuple[Any, ...]]:
        """The resources where the parent has one place: its children take turns there, whatever the capacity."""
        held = self.call.claims if self.call.allowed is None else self.call.allowed
        return frozenset(
            claim.resource
            for claim in held
            if claim.slots is not None and not any(one.slots is None and one.covers(claim) for one in held)
        )

    def refusal(self, wanted: Mapping[ClaimTable, tuple[Claim, ...]]) -> str | None:
        """Why a child may not have the claims `wanted`, by table; None if the parent covers them all."""
        call: Any = self.call
        held = call.claims if call.allowed is None else call.allowed
        here = by_owner(self._machine.admission.runtime_tables, call.tool.owner, held)
        for table, claims in wanted.items():
            there = here.get(table, ())
            for claim in claims:
                if not isinstance(claim, Rate) and not covers(there, claim):
                    holds = claims_in_words(*there)
                    if table not in here and held:
                        holds = "nothing there: those resources have another owner"
                    return (
                        f"it claims {claims_in_words(claim)}, and call {call.call_index} of batch {call.batch_id} "
                        f"({call.name}), inside which it would run, holds {holds}"
                    )
        return None

    @property
    def asked_as(self) -> ParentCall:
        """The parent as approval checks of its children are shown it."""
        call, outer = self.call, self.outer
        return ParentCall(
            call.batch_id, call.call_index, call.call_id, call.name, None if outer is None else outer.asked_as
        )

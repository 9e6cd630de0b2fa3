"""What a call lends to the sub-batches that its tool opens: its claims, and its slot (RULE 20).

Rules.
    1. A child may claim what its parent may touch, and nothing else.  Children of one parent order among themselves in
       tables of their own: nobody else can meet them, because what they touch is the parent's.
    2. The parent's slot is lent: one child of it can always run.  For each further one a slot of the outermost batch is
       taken if it is free, and nothing waits for one but children; the outermost batch's own ready calls come first.
    3. No child outlives its parent: a cancel, a timeout or a stop of the parent reaches its sub-batches; a tool that
       ends while one is open cancels it, and its call has ended when that has.

Theory.  Slots are counted, not handed from one to the other: a call with n running children, n above 0, uses n slots,
its own and n - 1 more, so it does not matter which child has which.  A call with no running child uses its own.  A
parent never waits for a slot, so a limit of 1 is enough at any depth.

Limits.  Sub-batches are nested `DEEPEST` deep at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import trio

from toolrt import probe
from toolrt.errors import BatchClosed
from toolrt.model import WRITE, Claim, FileChanged, ParentCall, Tool, covers
from toolrt.order import ClaimTable, Status, TrackedCall
from toolrt.runtime._one_run import refuse_other_run

if TYPE_CHECKING:
    from toolrt.runtime._batch import Batch
    from toolrt.runtime._lane import LaneRun

__all__ = ["DEEPEST", "Inside", "hand_out", "inside_of", "refuse_inside"]

#: How many sub-batches may be open around each other.
DEEPEST = 16


def inside_of(call: TrackedCall) -> Inside:
    """What `call` lends; always the same for one call.

    Raises:
        BatchClosed: the call is not running.
    """
    inside: Inside | None = call.inside
    lane: LaneRun | None = call.runs_in
    if lane is None or call.status is not Status.EXECUTING:
        why = f"call {call.call_index} is not running: only a tool that runs opens batches inside its call"
        raise BatchClosed(call.batch_id, "lend its claims to a sub-batch", why)
    if inside is None:
        inside = call.inside = Inside(call, lane)
    return inside


def refuse_inside(opener: TrackedCall | None, batch_id: str, tables: Sequence[ClaimTable]) -> None:
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


class Inside:
    """One call as the parent of sub-batches.  Get it from `inside_of`."""

    def __init__(self, call: TrackedCall, lane: LaneRun) -> None:
        #: The parent.
        self.call = call
        #: The batch it is a call of.
        self.batch: Batch = lane.batch
        outer = lane.batch.inside
        #: The lane of the outermost batch that the call runs in, which has the slots.
        self.root_lane: LaneRun = lane if outer is None else outer.root_lane
        #: How many sub-batches are open around its children.
        self.depth: int = 1 if outer is None else outer.depth + 1
        #: The call's place: its index, behind those of the calls and sub-batches around it.
        self.path: tuple[int, ...] = (*lane.batch.path, call.call_index)
        #: How many of its children run.
        self.running = 0
        self._opened = 0
        self._open: dict[Batch, None] = {}
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
        parent: Any = self.call.tool
        return self.batch.is_cancelled and parent.interrupt == "cancel"

    def entered(self, batch: Batch) -> None:
        """Take note that calls of `batch` may run from now on.

        Raises:
            BatchClosed: the call has ended or runs in another Trio run, or too many sub-batches are open around it.
        """
        if self.call.status is not Status.EXECUTING or self.call.runs_in is None:
            why = f"call {self.call.call_index} of batch {self.call.batch_id}, which would lend its claims, has ended"
            raise BatchClosed(batch.batch_id, "be opened inside a call", why)
        refuse_other_run(self.batch.reader.token, batch.batch_id, "be opened inside a call")
        if self.depth > DEEPEST:
            why = f"{DEEPEST} sub-batches are open around it, the most there may be: let fewer tools open batches"
            raise BatchClosed(batch.batch_id, "be opened inside a call", why)
        self._open[batch] = None

    def ended(self, batch: Batch) -> None:
        """Take note that nothing of `batch` runs any more."""
        self._open.pop(batch, None)
        if self._ended is not None:
            self._ended.set()

    def cancel(self, why: str) -> None:
        """Let no child start any more, and interrupt those that run."""
        for batch in list(self._open):
            batch.ending.cancel(f"call {self.call.call_index} of batch {self.call.batch_id} {why}", outside=True)

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

    def note_changes(self, path: tuple[int, ...], lane: LaneRun) -> None:
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

    def table(self, theirs: ClaimTable) -> ClaimTable:
        """The table in which children order what, outside, `theirs` orders."""
        table = self._tables.get(theirs)
        if table is None:
            name = f"{theirs.name} in {self.call.batch_id}#{self.call.call_index}"
            table = self._tables[theirs] = ClaimTable(name)
        return table

    def refusal(self, wanted: Iterator[tuple[ClaimTable, tuple[Claim, ...]]]) -> str | None:
        """Why a child may not have the claims `wanted`, by table; None if the parent covers them all."""
        held = self.call.claims if self.call.allowed is None else self.call.allowed
        parent: Any = self.call.tool
        here = dict(self.batch.split_by_table(parent, held))
        for table, claims in wanted:
            there = here.get(table, ())
            for claim in claims:
                if not covers(there, claim):
                    holds = ", ".join(map(str, there)) or "nothing"
                    if table not in here and held:
                        holds = "nothing there: those resources have another owner"
                    return (
                        f"it claims {claim}, and call {self.call.call_index} of batch {self.call.batch_id} "
                        f"({self.call.name}), inside which it would run, holds {holds}"
                    )
        return None

    @property
    def asked_as(self) -> ParentCall:
        """The parent as approval checks of its children are shown it."""
        call, outer = self.call, self.batch.inside
        return ParentCall(
            call.batch_id, call.call_index, call.call_id, call.name, None if outer is None else outer.asked_as
        )

    # Slots

    @property
    def free(self) -> int | float:
        """How many more children may run now."""
        root = self.root_lane
        limit = root.batch.limit
        self._report(write=False)
        return (self.running == 0) + max(0, limit - root.running)

    def take(self) -> None:
        """A child starts."""
        self.running += 1
        if self.running > 1:
            self.root_lane.running += 1
        self._report(write=True)

    def give(self) -> None:
        """A child has ended."""
        self.running -= 1
        if self.running > 0:
            self.root_lane.running -= 1
        self._report(write=True)

    def starve(self, lane: LaneRun) -> None:
        """Take note that `lane`, of a sub-batch, waits for a slot."""
        if self.root_lane.starved is None:
            self.root_lane.starved = {}
        self.root_lane.starved[lane.batch.path] = lane

    def _report(self, write: bool) -> None:
        if probe.sink is not None and self.root_lane.batch.limit != math.inf:
            probe.sink.access(("slots", self.root_lane.batch.batch_id), write)


def hand_out(lane: LaneRun) -> None:
    """Give free slots to who waits for one: the outermost batch first, then children by their parents' places."""
    root = lane if lane.batch.inside is None else lane.batch.inside.root_lane
    root.dispatch()
    starved = root.starved
    for path in sorted(starved or ()):
        # Whoever still waits after this has put itself back.
        cast(Any, starved).pop(path).dispatch()

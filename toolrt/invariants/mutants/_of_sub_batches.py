"""Mutants of sub-batches: they lend, cover, order or end in another way than RULE 20 says."""

from __future__ import annotations

import math
from typing import Any

import trio

from toolrt.invariants.mixes._mix import Mix
from toolrt.invariants.mutants._mutant import Function, Mutant, MutantList, instead, together
from toolrt.invariants.script import AddCell, AppendFile, ChangeState, Scripted, SeeState, Sleep, SubBatch
from toolrt.order import ClaimTable, LentSlot, Slots
from toolrt.runtime._lease import Lease
from toolrt.runtime._run import BatchRun

_TWO = SubBatch([Scripted([Sleep(1)], says="safe"), Scripted([Sleep(1)], says="safe")])


_ON_A_FILE = [Scripted([AppendFile("f", "a")]), Scripted([AppendFile("f", "b")])]

_declared = MutantList()


@_declared.instead("children are not covered", "same_file_in_call_order", Lease, "refusal").on(
    Mix([Scripted([SubBatch(_ON_A_FILE[:1], claimed=False)]), _ON_A_FILE[1]])
)
def _always_covered(refusal: Function, self: Any, wanted: Any) -> Any:
    """A call of a sub-batch runs whatever it claims, though its parent does not hold it."""
    return None


class _UngatedTable(ClaimTable):
    """Gives every ticket at once."""

    def take(self, claims: Any, *rest: Any) -> Any:
        return super().take((), *rest)


@_declared.instead("children are not ordered", "same_file_in_call_order", Lease, "table").on(
    Mix([Scripted([SubBatch(_ON_A_FILE)])])
)
def _one_table_each(table: Function, self: Lease, theirs: ClaimTable) -> ClaimTable:
    """The calls of a sub-batch take no tickets."""
    return self._tables.setdefault(theirs, _UngatedTable(theirs.name))


@_declared.instead("children wait for their parent", "batch_ends", Lease, "table").on(
    Mix([Scripted([SubBatch(_ON_A_FILE)])])
)
def _in_the_parents_table(table: Function, self: Any, theirs: Any) -> Any:
    """The calls of a sub-batch take their tickets behind those of their parent."""
    return theirs


@_declared.instead("the slot is not lent", "batch_ends", LentSlot, "free").on(
    Mix([Scripted([_TWO], says="safe")], limit=1)
)
def _not_lent(free: Any, self: LentSlot) -> int | float:
    """A child needs a free slot, also the first one; with one slot it waits for ever."""
    return max(0, self.slots.limit - self.slots.lane.running)


@_declared.instead("children take any number of slots", "no_needless_wait", LentSlot, "free").on(
    Mix([Scripted([_TWO], says="safe"), Scripted([Sleep(1)], says="safe")], limit=2)
)
def _any_number(free: Any, self: LentSlot) -> float:
    """The calls of a sub-batch run all at once, whatever the limit of the batch around them."""
    return math.inf


@_declared.instead("children run one at a time", "no_needless_wait", LentSlot, "free").on(
    Mix([Scripted([_TWO], says="safe")])
)
def _one_at_a_time(free: Any, self: LentSlot) -> int:
    """The calls of a sub-batch have their parent's slot only, though others are free."""
    return int(self.running == 0)


@_declared.instead("children come first", "no_needless_wait", Slots, "hand_out").on(
    Mix(
        [
            Scripted([SubBatch([Scripted([Sleep(seconds)], says="safe") for seconds in (1, 3, 1)])], says="safe"),
            Scripted([Sleep(1)], says="safe"),
        ],
        limit=2,
        delays=(0, 0.5),
    )
)
def _children_first(hand_out: Function, self: Slots) -> None:
    """A slot that comes free goes to a child that waits, though a call of the outermost batch is ready."""
    for path in sorted(self.starved):
        self.starved.pop(path)()
    hand_out(self)


@_declared.instead("children keep their slots", "nothing_left", LentSlot, "give").on(
    Mix([Scripted([_TWO], says="safe")])
)
def _kept(give: Function, self: LentSlot) -> None:
    """A slot that a child took beside its parent's is not given back."""
    self.running -= 1


async def _shielded(drive: Function, self: BatchRun) -> None:
    with trio.CancelScope(shield=self.lease is not None):
        await drive(self)


def _lets_children_run(cancel: Function, self: BatchRun, reason: str, outside: bool) -> None:
    if self.lease is None or not outside:
        cancel(self, reason, outside)


_declared.add(
    "children outlast a cancel",
    "cancel_truthful",
    "A cancel of the batch does not reach the sub-batches of its calls.",
    together(instead(BatchRun, "drive", _shielded), instead(BatchRun, "cancel", _lets_children_run)),
    Mix(
        [Scripted([SubBatch([Scripted([AddCell("a", "x"), Sleep(1)]), Scripted([AddCell("a", "y")])])])],
        cancel_after=0.5,
    ),
)


@_declared.instead("children's state leaks", "same_as_oracle", BatchRun, "close").on(
    Mix(
        [
            Scripted([SubBatch([Scripted([ChangeState("x", "a")], says="safe")])], says="safe"),
            Scripted([SeeState("x")], says="nothing"),
        ],
        state={"x": "0"},
    )
)
def _leaking(close: Function, self: BatchRun) -> None:
    """The modifiers of a sub-batch are handed on, whether or not its parent does."""
    close(self)
    if self.lease is not None:
        parent: Any = self.lease._machine.verbs
        parent.state = self.state


#: What laws have to see inside a call.
SUB_BATCHES: tuple[Mutant, ...] = tuple(_declared.mutants)

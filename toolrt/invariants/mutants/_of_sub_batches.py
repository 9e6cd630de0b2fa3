"""Mutants of sub-batches: they lend, cover, order or end in another way than RULE 20 says."""

from __future__ import annotations

import math
from typing import Any

import trio

from toolrt.invariants.mixes._mix import Mix
from toolrt.invariants.mutants._mutant import Function, Mutant, instead, together
from toolrt.invariants.script import AddCell, AppendFile, ChangeState, Scripted, SeeState, Sleep, SubBatch
from toolrt.order import ClaimTable, LentSlot, Slots
from toolrt.runtime._lease import Lease
from toolrt.runtime._run import BatchRun

__all__ = ["SUB_BATCHES"]


def _always_covered(refusal: Function, self: Any, wanted: Any) -> Any:
    return None


def _in_the_parents_table(table: Function, self: Any, theirs: Any) -> Any:
    return theirs


def _one_table_each(table: Function, self: Lease, theirs: ClaimTable) -> ClaimTable:
    return self._tables.setdefault(theirs, _UngatedTable(theirs.name))


class _UngatedTable(ClaimTable):
    """Gives every ticket at once."""

    def take(self, claims: Any, *rest: Any) -> Any:
        return super().take((), *rest)


def _not_lent(free: Any, self: LentSlot) -> int | float:
    return max(0, self.slots.limit - self.slots.lane.running)


def _any_number(free: Any, self: LentSlot) -> float:
    return math.inf


def _one_at_a_time(free: Any, self: LentSlot) -> int:
    return int(self.running == 0)


def _children_first(hand_out: Function, self: Slots) -> None:
    for path in sorted(self.starved):
        self.starved.pop(path)()
    hand_out(self)


def _kept(give: Function, self: LentSlot) -> None:
    self.running -= 1


async def _shielded(drive: Function, self: BatchRun) -> None:
    with trio.CancelScope(shield=self.lease is not None):
        await drive(self)


def _lets_children_run(cancel: Function, self: BatchRun, reason: str, outside: bool) -> None:
    if self.lease is None or not outside:
        cancel(self, reason, outside)


def _leaking(close: Function, self: BatchRun) -> None:
    close(self)
    if self.lease is not None:
        parent: Any = self.lease._machine.verbs
        parent.state = self.state


_TWO = SubBatch([Scripted([Sleep(1)], says="safe"), Scripted([Sleep(1)], says="safe")])
_ON_A_FILE = [Scripted([AppendFile("f", "a")]), Scripted([AppendFile("f", "b")])]

#: What laws have to see inside a call.
SUB_BATCHES: tuple[Mutant, ...] = (
    Mutant(
        "children are not covered",
        "same_file_in_call_order",
        "A call of a sub-batch runs whatever it claims, though its parent does not hold it.",
        instead(Lease, "refusal", _always_covered),
        Mix([Scripted([SubBatch(_ON_A_FILE[:1], claimed=False)]), _ON_A_FILE[1]]),
    ),
    Mutant(
        "children are not ordered",
        "same_file_in_call_order",
        "The calls of a sub-batch take no tickets.",
        instead(Lease, "table", _one_table_each),
        Mix([Scripted([SubBatch(_ON_A_FILE)])]),
    ),
    Mutant(
        "children wait for their parent",
        "batch_ends",
        "The calls of a sub-batch take their tickets behind those of their parent.",
        instead(Lease, "table", _in_the_parents_table),
        Mix([Scripted([SubBatch(_ON_A_FILE)])]),
    ),
    Mutant(
        "the slot is not lent",
        "batch_ends",
        "A child needs a free slot, also the first one; with one slot it waits for ever.",
        instead(LentSlot, "free", _not_lent),
        Mix([Scripted([_TWO], says="safe")], limit=1),
    ),
    Mutant(
        "children take any number of slots",
        "no_needless_wait",
        "The calls of a sub-batch run all at once, whatever the limit of the batch around them.",
        instead(LentSlot, "free", _any_number),
        Mix([Scripted([_TWO], says="safe"), Scripted([Sleep(1)], says="safe")], limit=2),
    ),
    Mutant(
        "children run one at a time",
        "no_needless_wait",
        "The calls of a sub-batch have their parent's slot only, though others are free.",
        instead(LentSlot, "free", _one_at_a_time),
        Mix([Scripted([_TWO], says="safe")]),
    ),
    Mutant(
        "children come first",
        "no_needless_wait",
        "A slot that comes free goes to a child that waits, though a call of the outermost batch is ready.",
        instead(Slots, "hand_out", _children_first),
        Mix(
            [
                Scripted([SubBatch([Scripted([Sleep(seconds)], says="safe") for seconds in (1, 3, 1)])], says="safe"),
                Scripted([Sleep(1)], says="safe"),
            ],
            limit=2,
            delays=(0, 0.5),
        ),
    ),
    Mutant(
        "children keep their slots",
        "nothing_left",
        "A slot that a child took beside its parent's is not given back.",
        instead(LentSlot, "give", _kept),
        Mix([Scripted([_TWO], says="safe")]),
    ),
    Mutant(
        "children outlast a cancel",
        "cancel_truthful",
        "A cancel of the batch does not reach the sub-batches of its calls.",
        together(instead(BatchRun, "drive", _shielded), instead(BatchRun, "cancel", _lets_children_run)),
        Mix(
            [Scripted([SubBatch([Scripted([AddCell("a", "x"), Sleep(1)]), Scripted([AddCell("a", "y")])])])],
            cancel_after=0.5,
        ),
    ),
    Mutant(
        "children's state leaks",
        "same_as_oracle",
        "The modifiers of a sub-batch are handed on, whether or not its parent does.",
        instead(BatchRun, "close", _leaking),
        Mix(
            [
                Scripted([SubBatch([Scripted([ChangeState("x", "a")], says="safe")])], says="safe"),
                Scripted([SeeState("x")], says="nothing"),
            ],
            state={"x": "0"},
        ),
    ),
)

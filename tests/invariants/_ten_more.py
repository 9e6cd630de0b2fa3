"""Ten wrong runtimes that were written after the strategies were frozen; their score stands in mutation.md.

No strategy was changed for them.  None has a workload of its own: random examples alone are to catch them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from toolrt.invariants import Mix, Mutant
from toolrt.invariants.mutants._mutant import Function, MutantList, instead, together
from toolrt.model import Outcome, ToolOutput
from toolrt.order import CallRecord, ClaimTable, Machine, _merge
from toolrt.runtime import _execution, _questions
from toolrt.runtime._approval import Approval
from toolrt.runtime._lease import Lease
from toolrt.runtime._run import BatchRun

_declared = MutantList()


@_declared.instead("a timeout stops the batch", "same_as_oracle", BatchRun, "settle").on(Mix())
def _timeouts_stop(settle: Function, self: BatchRun, call: CallRecord, outcome: Outcome, *rest: Any) -> None:
    """A call that runs out of time skips what follows, though its tool does not ask for it."""
    settle(self, call, outcome, *rest)
    if outcome is Outcome.TIMED_OUT and not call.stops:
        self.machine.stop(call)


@_declared.instead("a stop spares the next call", "same_as_oracle", Machine, "skip").on(Mix())
def _spares_the_next(skip: Function, self: Machine, call: CallRecord, by: CallRecord) -> None:
    """The call right behind one that stops the batch keeps the result that it had."""
    if call.call_index != by.call_index + 1 or call.result is None:
        skip(self, call, by)


def _reversed(applied: Function, modifiers: Any, *rest: Any) -> Any:
    return applied(list(modifiers)[::-1], *rest)


_declared.add(
    "modifiers of one call in reverse",
    "same_as_oracle",
    "The modifiers that one call returns apply last first.",
    together(instead(_merge, "applied", _reversed), instead(_questions, "applied", _reversed)),
    Mix(),
)


@_declared.instead("an error loses its modifiers", "same_as_oracle", _execution, "_returned").on(Mix())
def _error_loses_modifiers(returned: Function, run: Any, lane: Any, call: CallRecord, value: Any) -> None:
    """The modifiers of a call that returns an error do not apply."""
    if isinstance(value, ToolOutput) and value.error is not None:
        value = attrs.evolve(value, modifiers=())
    returned(run, lane, call, value)


@_declared.instead("a second run sees the old state", "same_as_oracle", Machine, "_repeat").on(Mix())
def _again_on_the_old(repeat: Function, self: Machine, lane: Any, call: CallRecord, state: Any, stale: str) -> None:
    """A call of a pure tool that was stale runs again on the state that its lane started from."""
    repeat(self, lane, call, lane.start, stale)


@_declared.instead("only the first claim is held", "same_as_oracle", ClaimTable, "take").on(Mix())
def _only_the_first(take: Function, self: ClaimTable, claims: Iterable[Any], *rest: Any) -> Any:
    """Of several claims of a call only the first takes a ticket."""
    return take(self, list(claims)[:1], *rest)


@_declared.instead("what is skipped changes the state", "same_as_oracle", BatchRun, "settle").on(Mix())
def _skipped_modifies(settle: Function, self: BatchRun, call: CallRecord, outcome: Outcome, *rest: Any) -> None:
    """The modifiers of a call that had returned apply though a stop has skipped it."""
    modifiers = call.modifiers
    settle(self, call, outcome, *rest)
    if outcome is Outcome.SKIPPED:
        call.modifiers = modifiers


@_declared.instead("slots come back together", "same_as_oracle", Machine, "_hand_out").on(Mix())
def _when_idle(hand_out: Function, self: Machine, lane: Any) -> None:
    """A slot that is free is handed on only when no other is taken."""
    if lane.running == 0:
        hand_out(self, lane)


@_declared.instead("a rewritten input is not used", "same_as_oracle", Approval, "_rewrite").on(Mix())
def _not_rewritten(rewrite: Function, self: Approval, call: CallRecord, verdict: Any) -> Any:
    """A call whose input an approval check rewrote runs with the input that it had."""
    before = call.input, call.arguments
    refusal = rewrite(self, call, verdict)
    if refusal is None:
        call.input, call.arguments = before
    return refusal


@_declared.instead("a stop spares sub-batches", "same_as_oracle", Lease, "cancel").on(Mix())
def _lends_to_the_first(cancel: Function, self: Lease, why: str) -> None:
    """The sub-batches of a call that is skipped run on."""
    if why.startswith("was skipped"):
        return
    cancel(self, why)


#: Each names law 7, as a mutant has to name one; whichever law trips catches it.
TEN_MORE: tuple[Mutant, ...] = tuple(_declared.mutants)

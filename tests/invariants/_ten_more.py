"""Ten wrong runtimes that were written after the strategies were frozen; their score stands in mutation.md.

No strategy was changed for them.  None has a workload of its own: random examples alone are to catch them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from toolrt.invariants import Mix, Mutant
from toolrt.invariants.mutants._mutant import Function, instead, together
from toolrt.model import Outcome, ToolOutput
from toolrt.order import CallRecord, ClaimTable, Machine, _merge
from toolrt.runtime import _execution, _questions
from toolrt.runtime._approval import Approval
from toolrt.runtime._lease import Lease
from toolrt.runtime._run import BatchRun

__all__ = ["TEN_MORE"]


def _timeouts_stop(settle: Function, self: BatchRun, call: CallRecord, outcome: Outcome, *rest: Any) -> None:
    settle(self, call, outcome, *rest)
    if outcome is Outcome.TIMED_OUT and not call.stops:
        self.machine.stop(call)


def _spares_the_next(skip: Function, self: Machine, call: CallRecord, by: CallRecord) -> None:
    if call.call_index != by.call_index + 1 or call.result is None:
        skip(self, call, by)


def _reversed(applied: Function, modifiers: Any, *rest: Any) -> Any:
    return applied(list(modifiers)[::-1], *rest)


def _error_loses_modifiers(returned: Function, run: Any, lane: Any, call: CallRecord, value: Any) -> None:
    if isinstance(value, ToolOutput) and value.error is not None:
        value = attrs.evolve(value, modifiers=())
    returned(run, lane, call, value)


def _again_on_the_old(repeat: Function, self: Machine, lane: Any, call: CallRecord, state: Any, stale: str) -> None:
    repeat(self, lane, call, lane.start, stale)


def _only_the_first(take: Function, self: ClaimTable, claims: Iterable[Any], *rest: Any) -> Any:
    return take(self, list(claims)[:1], *rest)


def _skipped_modifies(settle: Function, self: BatchRun, call: CallRecord, outcome: Outcome, *rest: Any) -> None:
    modifiers = call.modifiers
    settle(self, call, outcome, *rest)
    if outcome is Outcome.SKIPPED:
        call.modifiers = modifiers


def _when_idle(hand_out: Function, self: Machine, lane: Any) -> None:
    if lane.running == 0:
        hand_out(self, lane)


def _not_rewritten(rewrite: Function, self: Approval, call: CallRecord, verdict: Any) -> Any:
    before = call.input, call.arguments
    refusal = rewrite(self, call, verdict)
    if refusal is None:
        call.input, call.arguments = before
    return refusal


def _lends_to_the_first(cancel: Function, self: Lease, why: str) -> None:
    if why.startswith("was skipped"):
        return
    cancel(self, why)


def _mutant(name: str, sentence: str, owner: Any, attribute: str, function: Function) -> Mutant:
    return Mutant(name, "same_as_oracle", sentence, instead(owner, attribute, function), Mix())


#: Each names law 7, as a mutant has to name one; whichever law trips catches it.
TEN_MORE: tuple[Mutant, ...] = (
    _mutant(
        "a timeout stops the batch",
        "A call that runs out of time skips what follows, though its tool does not ask for it.",
        BatchRun,
        "settle",
        _timeouts_stop,
    ),
    _mutant(
        "a stop spares the next call",
        "The call right behind one that stops the batch keeps the result that it had.",
        Machine,
        "skip",
        _spares_the_next,
    ),
    Mutant(
        "modifiers of one call in reverse",
        "same_as_oracle",
        "The modifiers that one call returns apply last first.",
        together(instead(_merge, "applied", _reversed), instead(_questions, "applied", _reversed)),
        Mix(),
    ),
    _mutant(
        "an error loses its modifiers",
        "The modifiers of a call that returns an error do not apply.",
        _execution,
        "_returned",
        _error_loses_modifiers,
    ),
    _mutant(
        "a second run sees the old state",
        "A call of a pure tool that was stale runs again on the state that its lane started from.",
        Machine,
        "repeat",
        _again_on_the_old,
    ),
    _mutant(
        "only the first claim is held",
        "Of several claims of a call only the first takes a ticket.",
        ClaimTable,
        "take",
        _only_the_first,
    ),
    _mutant(
        "what is skipped changes the state",
        "The modifiers of a call that had returned apply though a stop has skipped it.",
        BatchRun,
        "settle",
        _skipped_modifies,
    ),
    _mutant(
        "slots come back together",
        "A slot that is free is handed on only when no other is taken.",
        Machine,
        "_hand_out",
        _when_idle,
    ),
    _mutant(
        "a rewritten input is not used",
        "A call whose input an approval check rewrote runs with the input that it had.",
        Approval,
        "_rewrite",
        _not_rewritten,
    ),
    _mutant(
        "a stop spares sub-batches",
        "The sub-batches of a call that is skipped run on.",
        Lease,
        "cancel",
        _lends_to_the_first,
    ),
)

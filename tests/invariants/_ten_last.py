"""Ten wrong runtimes that were written after the strategies of decision 088 were frozen; see mutation.md.

No strategy was changed for them.  None has a workload of its own: random examples alone are to catch them.
"""

from __future__ import annotations

from typing import Any

import attrs

from toolrt.invariants import Mix, Mutant
from toolrt.invariants.mutants._mutant import Function, instead
from toolrt.model import WRITE, Outcome, Tool
from toolrt.order import CallRecord, ClaimTable, Machine, _machine
from toolrt.order._admission import Admission
from toolrt.runtime import _execution
from toolrt.runtime._run import BatchRun

__all__ = ["TEN_LAST"]


def _one_stop(stop: Function, self: Machine, by: CallRecord) -> None:
    if self.stopped_by is None:
        stop(self, by)


def _failed_lane(apply: Function, self: BatchRun, lane: Any) -> None:
    if any(call.result is not None and call.result.outcome is Outcome.ERROR for call in lane.calls):
        lane.modified = []
    apply(self, lane)


def _reads_write(take: Function, self: ClaimTable, claims: Any, *rest: Any) -> Any:
    return take(self, [attrs.evolve(claim, mode=WRITE) for claim in claims], *rest)


def _denied_keep(finish: Function, self: Machine, lane: Any, call: CallRecord) -> None:
    if call.result is not None and call.result.outcome is Outcome.DENIED:
        call.tickets = ()
    finish(self, lane, call)


def _first_of_a_group(describe: Function, self: Tool, error: BaseException) -> str:
    first = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error
    return str(describe(self, first))


def _last_slot_empty(dispatch: Function, self: Machine, lane: Any) -> None:
    before, self.limit = self.limit, max(1, self.limit - 1)
    try:
        dispatch(self, lane)
    finally:
        self.limit = before


def _latest_first(heappop: Function, heap: list[int]) -> int:
    heap.sort()
    return heap.pop()


async def _doubled(guarded: Function, *most: Any) -> None:
    *rest, seconds = most
    await guarded(*rest, None if seconds is None else 2 * seconds)


def _late_unheld(know: Function, self: Admission, lane: Any, call: CallRecord, claims: Any, looked_at: Any) -> None:
    know(self, lane, call, (), looked_at)


def _lets_go_early(finish: Function, self: Machine, lane: Any, call: CallRecord) -> None:
    stops, call.stops = call.stops, False
    finish(self, lane, call)
    call.stops = stops


def _mutant(name: str, sentence: str, owner: Any, attribute: str, function: Function) -> Mutant:
    return Mutant(name, "same_as_oracle", sentence, instead(owner, attribute, function), Mix())


#: Each names law 7, as a mutant has to name one; whichever law trips catches it.
TEN_LAST: tuple[Mutant, ...] = (
    _mutant(
        "only the first stop counts",
        "An earlier call that fails after a later one has stopped the batch skips nothing more.",
        Machine,
        "stop",
        _one_stop,
    ),
    _mutant(
        "an error undoes its lane",
        "The modifiers of a lane do not apply if a call of it ended in an error.",
        BatchRun,
        "_apply",
        _failed_lane,
    ),
    _mutant("reads claim to write", "A read claim is taken as a write claim.", ClaimTable, "take", _reads_write),
    _mutant(
        "a denied call keeps its tickets",
        "The tickets of a call that is denied are not given back.",
        Machine,
        "finish",
        _denied_keep,
    ),
    _mutant(
        "the first error of a group",
        "Of a group of errors the result says the first alone.",
        Tool,
        "describe_error",
        _first_of_a_group,
    ),
    _mutant(
        "the last slot stays empty", "One slot fewer is used than there are.", Machine, "dispatch", _last_slot_empty
    ),
    _mutant(
        "the latest is first",
        "A free slot goes to the ready call with the highest call_index.",
        _machine,
        "heappop",
        _latest_first,
    ),
    _mutant(
        "a timeout is doubled",
        "A call has twice the seconds that its tool names.",
        _execution,
        "_execute_guarded",
        _doubled,
    ),
    _mutant(
        "what is known late is not held",
        "Claims that look at what others change take no ticket.",
        Admission,
        "know",
        _late_unheld,
    ),
    _mutant(
        "a stop lets go early",
        "A call that may stop the batch gives back all its tickets when it ends, though its result is not fixed.",
        Machine,
        "finish",
        _lets_go_early,
    ),
)

"""Ten wrong runtimes that were written after the strategies of decision 088 were frozen; see mutation.md.

No strategy was changed for them.  None has a workload of its own: random examples alone are to catch them.
"""

from __future__ import annotations

from typing import Any

import attrs

from toolrt.invariants import Mix, Mutant
from toolrt.invariants.mutants._mutant import Function, MutantList
from toolrt.model import WRITE, Outcome, Tool
from toolrt.order import CallRecord, ClaimTable, Machine, _machine
from toolrt.order._admission import Admission
from toolrt.runtime import _execution
from toolrt.runtime._run import BatchRun

_declared = MutantList()


@_declared.instead("only the first stop counts", "same_as_oracle", Machine, "stop").on(Mix())
def _one_stop(stop: Function, self: Machine, by: CallRecord) -> None:
    """An earlier call that fails after a later one has stopped the batch skips nothing more."""
    if self.stopped_by is None:
        stop(self, by)


@_declared.instead("an error undoes its lane", "same_as_oracle", BatchRun, "_apply").on(Mix())
def _failed_lane(apply: Function, self: BatchRun, lane: Any) -> None:
    """The modifiers of a lane do not apply if a call of it ended in an error."""
    if any(call.result is not None and call.result.outcome is Outcome.ERROR for call in lane.calls):
        lane.modified = []
    apply(self, lane)


@_declared.instead("reads claim to write", "same_as_oracle", ClaimTable, "take").on(Mix())
def _reads_write(take: Function, self: ClaimTable, claims: Any, *rest: Any) -> Any:
    """A read claim is taken as a write claim."""
    return take(self, [attrs.evolve(claim, mode=WRITE) for claim in claims], *rest)


@_declared.instead("a denied call keeps its tickets", "same_as_oracle", Machine, "finish").on(Mix())
def _denied_keep(finish: Function, self: Machine, lane: Any, call: CallRecord) -> None:
    """The tickets of a call that is denied are not given back."""
    if call.result is not None and call.result.outcome is Outcome.DENIED:
        call.tickets = ()
    finish(self, lane, call)


@_declared.instead("the first error of a group", "same_as_oracle", Tool, "describe_error").on(Mix())
def _first_of_a_group(describe: Function, self: Tool, error: BaseException) -> str:
    """Of a group of errors the result says the first alone."""
    first = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error
    return str(describe(self, first))


@_declared.instead("the last slot stays empty", "same_as_oracle", Machine, "dispatch").on(Mix())
def _last_slot_empty(dispatch: Function, self: Machine, lane: Any) -> None:
    """One slot fewer is used than there are."""
    before, self.limit = self.limit, max(1, self.limit - 1)
    try:
        dispatch(self, lane)
    finally:
        self.limit = before


@_declared.instead("the latest is first", "same_as_oracle", _machine, "heappop").on(Mix())
def _latest_first(heappop: Function, heap: list[int]) -> int:
    """A free slot goes to the ready call with the highest call_index."""
    heap.sort()
    return heap.pop()


@_declared.instead("a timeout is doubled", "same_as_oracle", _execution, "_execute_guarded").on(Mix())
async def _doubled(guarded: Function, *most: Any) -> None:
    """A call has twice the seconds that its tool names."""
    *rest, seconds = most
    await guarded(*rest, None if seconds is None else 2 * seconds)


@_declared.instead("what is known late is not held", "same_as_oracle", Admission, "know").on(Mix())
def _late_unheld(know: Function, self: Admission, lane: Any, call: CallRecord, claims: Any, looked_at: Any) -> None:
    """Claims that look at what others change take no ticket."""
    know(self, lane, call, (), looked_at)


@_declared.instead("a stop lets go early", "same_as_oracle", Machine, "finish").on(Mix())
def _lets_go_early(finish: Function, self: Machine, lane: Any, call: CallRecord) -> None:
    """A call that may stop the batch gives back all its tickets when it ends, though its result is not fixed."""
    stops, call.stops = call.stops, False
    finish(self, lane, call)
    call.stops = stops


#: Each names law 7, as a mutant has to name one; whichever law trips catches it.
TEN_LAST: tuple[Mutant, ...] = tuple(_declared.mutants)

"""Mutants of laws 1 to 7: what is answered, in which order, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import trio

from toolrt.invariants.mixes._mix import Mix
from toolrt.invariants.mutants._mutant import Function, Mutant, MutantList
from toolrt.invariants.script import (
    AddCell,
    AppendFile,
    BreakState,
    ChangeState,
    Fail,
    Metered,
    ReadCell,
    ReadFile,
    Scripted,
    SeeState,
    Sleep,
    TakePlace,
)
from toolrt.model import READ, WRITE, Claim, ResultReady, State
from toolrt.model._update import StateMerged
from toolrt.order import CallMove, CallRecord, CallState, ClaimTable, Limits, Machine, Status, _machine
from toolrt.order._capacity import Capacity
from toolrt.order._rates import Rates
from toolrt.runtime import _run
from toolrt.runtime._context import ToolContext
from toolrt.runtime._reader import Cursor, Reader
from toolrt.runtime._run import BatchRun

_TWO_SPEEDS = Mix(
    [
        Scripted([Sleep(2), ChangeState("x", "a")], says="safe"),
        Scripted([Sleep(1), ChangeState("x", "b")], says="safe"),
    ],
    state={"x": "0"},
)

_declared = MutantList()


# Law 1


@_declared.instead("answers by id", "answered_once", BatchRun, "close").on(
    Mix([Scripted([Fail()], says="safe", call_id="twice"), Scripted(says="safe", call_id="twice")])
)
def _by_id(leave: Function, self: BatchRun) -> None:
    """Results are kept by the call's id, so that of two calls with one id only one is answered."""
    calls = self.records
    found = {call.call_id: call.result for call in calls}
    for call in calls:
        call.result = found[call.call_id]
    leave(self)


@_declared.instead("answers twice", "answered_once", BatchRun, "settle").on(
    Mix([Scripted([Sleep(1)], says="safe"), Scripted([Fail()], says="safe")])
)
def _twice(settle: Function, self: BatchRun, call: CallRecord, *answer: Any) -> None:
    """Every call is answered, and answered again."""
    before = call.state
    settle(self, call, *answer)
    call.state = before
    settle(self, call, *answer)


@_declared.instead("a cancel silences the reader", "answered_once", Reader, "__anext__").on(
    Mix([Scripted([Sleep(2)], says="safe"), Scripted([Sleep(2)], says="safe")], cancel_after=1.25)
)
async def _silenced(next_update: Function, self: Reader) -> Any:
    """After a cancel the reader is told that nothing more will come."""
    if self._machine.cancel_reason is not None:
        await trio.lowlevel.checkpoint()
        raise StopAsyncIteration
    return await next_update(self)


# Law 2


@_declared.instead("results as they come", "results_in_call_order", Cursor, "next").on(
    Mix([Scripted([Sleep(2)], says="safe"), Scripted([Sleep(1)], says="safe")])
)
def _as_they_come(next_update: Function, self: Cursor, *args: Any) -> Any:
    """The reader gets results in the order in which calls finish."""
    for call in self._calls:
        if call.status is Status.COMPLETED and call.result is not None:
            call.happen(CallMove.YIELD)
            self._slot += 1
            return ResultReady(call.result)
    if any(call.status in (Status.QUEUED, Status.EXECUTING) for call in self._calls):
        return None
    return next_update(self, *args)


@_declared.instead("results at the end", "results_in_call_order", Cursor, "next").on(
    Mix([Scripted([Sleep(1)], says="safe"), Scripted([Sleep(2)], says="safe")])
)
def _all_at_the_end(next_update: Function, self: Cursor, *args: Any) -> Any:
    """The reader gets no result before the last call has finished."""
    if any(call.status in (Status.QUEUED, Status.EXECUTING) for call in self._calls):
        return None
    return next_update(self, *args)


# Law 3


@_declared.instead("modifiers as they come", "modifiers_in_call_order", _run, "merged").on(_TWO_SPEEDS)
def _as_finished(merged: Function, lane: int, state: State, calls: Iterable[CallRecord]) -> StateMerged:
    """Modifiers apply in the order in which calls finish."""
    parts = []
    for call in calls:
        parts.append(merged(lane, state, [call]))
        state = parts[-1].state
    applied = sorted(pair for part in parts for pair in part.applied)
    rejected = [one for part in parts for one in part.rejected]
    return StateMerged(lane, state, tuple(applied), tuple(rejected))


def _raises(modifier: Function, state: State) -> bool:
    try:
        modifier(state)
    except Exception:
        return True
    return False


@_declared.instead("a bad modifier ends the merge", "modifiers_in_call_order", _run, "merged").on(
    Mix([Scripted([BreakState()], says="safe"), Scripted([ChangeState("x", "a")], says="safe")])
)
def _up_to_a_bad_one(merged: Function, lane: int, state: State, calls: Iterable[CallRecord]) -> Any:
    """After a modifier that raises no further one is applied."""
    kept = sorted(calls, key=lambda call: call.call_index)
    bad = [at for at, call in enumerate(kept) if any(_raises(modifier, state) for modifier in call.modifiers)]
    return merged(lane, state, kept[: bad[0] + 1] if bad else kept)


@_declared.instead("a bad modifier undoes the merge", "same_as_oracle", _run, "merged").on(
    Mix(
        [Scripted([ChangeState("x", "a")], says="safe"), Scripted([BreakState()], says="safe")],
        lanes="by_safety",
        state={"x": "0"},
    )
)
def _forgotten(merged: Function, lane: int, state: State, calls: Iterable[CallRecord]) -> Any:
    """When one modifier raises, the lane leaves the state as it was."""
    merge = merged(lane, state, calls)
    return StateMerged(lane, state, merge.applied, merge.rejected) if merge.rejected else merge


# Laws 4 to 6: claims that are not taken as they are declared


@_declared.instead("files are not ordered", "same_file_in_call_order", ClaimTable, "take").on(
    Mix([Scripted([AppendFile("f", "a")]), Scripted([AppendFile("f", "b")])])
)
def _no_files(take: Function, self: ClaimTable, claims: Iterable[Claim], *rest: Any) -> Any:
    """Claims on files are not taken."""
    return take(self, [claim for claim in claims if claim.resource[:1] != ("file",)], *rest)


@_declared.instead("readers of files do not wait", "same_file_in_call_order", ClaimTable, "take").on(
    Mix([Scripted([AppendFile("f", "a")]), Scripted([ReadFile("f")])])
)
def _no_file_reads(take: Function, self: ClaimTable, claims: Iterable[Claim], *rest: Any) -> Any:
    """READ claims on files are not taken."""
    kept = [claim for claim in claims if claim.mode is not READ or claim.resource[:1] != ("file",)]
    return take(self, kept, *rest)


@_declared.instead("everything is claimed in vain", "exclusive_alone", ClaimTable, "take").on(
    Mix([Scripted([AddCell("a", "x"), Sleep(1)], says="nothing"), Scripted([AddCell("a", "y")])], lanes="parallel")
)
def _no_root(take: Function, self: ClaimTable, claims: Iterable[Claim], *rest: Any) -> Any:
    """A claim on everything is not taken, so a call that declares nothing overlaps its neighbours."""
    return take(self, [claim for claim in claims if claim.resource], *rest)


@_declared.instead("one at a time", "no_needless_wait", Machine, "__init__").on(
    Mix([Scripted([Sleep(1)], says="safe"), Scripted([Sleep(1)], says="safe")])
)
def _limit_of_one(init: Function, self: Machine, *args: Any, **kwargs: Any) -> None:
    """Only one call runs at once, whatever the limit."""
    init(self, *args, **kwargs)
    self.limit = 1


@_declared.instead("no limit", "no_needless_wait", Machine, "__init__").on(
    Mix([Scripted([Sleep(1)], says="safe")] * 3, limit=2)
)
def _no_limit(init: Function, self: Machine, *args: Any, **kwargs: Any) -> None:
    """As many calls run at once as are ready, whatever the limit."""
    init(self, *args, **kwargs)
    self.limit = float("inf")


@_declared.instead("readers exclude readers", "no_needless_wait", ClaimTable, "take").on(
    Mix([Scripted([ReadCell("a"), Sleep(1)]), Scripted([ReadCell("a"), Sleep(1)])])
)
def _all_write(take: Function, self: ClaimTable, claims: Iterable[Claim], *rest: Any) -> Any:
    """READ claims are taken as if they were WRITE."""
    return take(self, [Claim(claim.resource, WRITE, claim.subtree) for claim in claims], *rest)


@_declared.instead("one place more", "same_file_in_call_order", Capacity, "__init__").on(
    Mix([Scripted([TakePlace("a", 2), Sleep(1)])] * 3)
)
def _one_place_more(init: Function, self: Capacity[Any], slots: int) -> None:
    """A resource has one place more than its claims say."""
    init(self, slots + 1)


@_declared.instead("a place is all places", "no_needless_wait", ClaimTable, "take").on(
    Mix([Scripted([TakePlace("a", 2), Sleep(1)])] * 2)
)
def _all_places(take: Function, self: ClaimTable, claims: Iterable[Claim], *rest: Any) -> Any:
    """A claim that takes a place is taken as one of the whole resource."""
    return take(self, [Claim(claim.resource, claim.mode, claim.subtree) for claim in claims], *rest)


@_declared.instead("capacities may differ", "same_as_oracle", ClaimTable, "disagrees").on(
    Mix([Scripted([TakePlace("a", 2)]), Scripted([TakePlace("a", 3)])])
)
def _any_capacity(disagrees: Function, self: ClaimTable, *rest: Any) -> None:
    """A call that gives a resource another number of places than one before it runs all the same."""


@_declared.instead("a shared limit has one more", "no_needless_wait", Limits, "has_room").on(
    Mix([Scripted([Sleep(1)], says="safe")] * 4, shared=2)
)
def _one_more(has_room: Function, self: Limits, name: str) -> bool:
    """A limit that batches share lets one call more run than it says."""
    return all(len(self._running[tools]) <= self._most[tools] for tools in self._of(name))


@_declared.instead("a shared limit holds up the rest", "no_needless_wait", Machine, "_opens_at").on(
    Mix([Scripted([Sleep(2)], says="safe"), *[Scripted([Sleep(1)], says="safe")] * 3], shared_evens=1)
)
def _keeps_others_up(opens_at: Function, self: Machine, call: CallRecord) -> float:
    """A call for which its tool's limit has no room holds up the ready calls behind it."""
    earlier = (one for one in self.calls[: call.call_index] if one.state in (CallState.READY, CallState.AGAIN))
    opens: list[float] = [opens_at(self, one) for one in (*earlier, call)]
    return max(opens)


@_declared.instead("rates start anew", "no_needless_wait", Rates, "note").on(
    Mix([Scripted([Metered("a", 1.0)]), Scripted([Metered("a", 1.0)])])
)
def _no_note(note: Function, self: Rates, rates: Iterable[Any], now: float) -> None:
    """No start is noted, so a rate keeps nothing back."""


@_declared.instead("limits are a batch's own", "no_needless_wait", Machine, "__init__").on(
    Mix([Scripted([Sleep(1)], says="safe")], shared=1, beside=[Scripted([Sleep(1)], says="safe")])
)
def _own_limits(init: Function, self: Machine, *args: Any, **kwargs: Any) -> None:
    """Each batch counts its own calls against a limit that batches share."""
    init(self, *args, **kwargs)
    if self.limits is not None:
        own: Any = {"tools": self.limits.tools, "uses": self.limits.uses}
        self.limits = Limits(self.limits.limit, **own)


@_declared.instead("rates are a batch's own", "no_needless_wait", Machine, "__init__").on(
    Mix([Scripted([Metered("a", 1.0)])], beside=[Scripted([Metered("a", 1.0)])])
)
def _own_rates(init: Function, self: Machine, *args: Any, **kwargs: Any) -> None:
    """Each batch knows of its own starts alone."""
    init(self, *args, **kwargs)
    self.rates = Rates()


@_declared.instead("slots to the last", "no_needless_wait", _machine, "heappop").on(
    Mix([Scripted([Sleep(1)], says="safe")] * 3, limit=1)
)
def _highest_first(heappop: Function, heap: list[int]) -> int:
    """A free slot goes to the ready call of the highest index."""
    return heap.pop(heap.index(max(heap)))


# Law 7


@_declared.instead("uses are not counted", "same_as_oracle", Limits, "use").on(
    Mix([Scripted(says="safe")] * 3, uses_evens=1)
)
def _used_again(use: Function, self: Limits, owner: Any, name: str) -> None:
    """A conversation may call a tool as often as it likes."""


@_declared.instead("stale state", "same_as_oracle", ToolContext, "__init__").on(
    Mix(
        [Scripted([ChangeState("x", "a")], says="nothing"), Scripted([SeeState("x")], says="safe")],
        lanes="by_safety",
        state={"x": "0"},
    )
)
def _stale(init: Function, self: ToolContext, call: CallRecord, state: State, send: Any) -> None:
    """Every call sees the batch's first state."""
    init(self, call, State({"x": "0"}), send)


#: Laws 1 to 7.
ORDER: tuple[Mutant, ...] = tuple(_declared.mutants)

"""Mutants of laws 8 to 14: progress, failure, cancel, timeouts, and what is left in the end."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from typing import Any

import attrs
import trio

from toolrt.invariants.mixes._mix import Mix
from toolrt.invariants.mutants._mutant import Function, Mutant, MutantList, patched
from toolrt.invariants.script import (
    AddCell,
    ChangeState,
    Fail,
    LeaveOpen,
    Pause,
    ReadCell,
    Say,
    Scripted,
    Shield,
    Sleep,
)
from toolrt.model import Claim, Outcome
from toolrt.order import CallRecord, CallState, ClaimTable, LaneRecord, Machine, Status
from toolrt.runtime import _execution
from toolrt.runtime._reader import Cursor, Reader
from toolrt.runtime._run import BatchRun

_TALKING = Mix(
    [Scripted([Say("a", 3), Sleep(1), Say("b", 2), Pause()], says="safe"), Scripted([Say("c")], says="safe")]
)


_STOPPING = Mix([Scripted([Sleep(1), Fail()], stops=True), Scripted([AddCell("a", "x")])])


_CANCELLED = Mix(
    [Scripted([Sleep(2)], says="safe"), Scripted([AddCell("a", "x"), Sleep(2)]), Scripted([AddCell("a", "y")])],
    cancel_after=1.25,
)


_WAITING = Mix([Scripted([AddCell("a", "x"), Sleep(2)]), Scripted([ReadCell("a"), Sleep(1)], timeout=1.5)])

_declared = MutantList()


# Law 8


class _NewestFirst(deque[Any]):
    def popleft(self) -> Any:
        return self.pop()


@_declared.instead("newest progress first", "progress_at_once", Cursor, "__init__").on(_TALKING)
def _newest_first(init: Function, self: Cursor, *args: Any) -> None:
    """Of the progress that waits for the reader the newest is handed over first."""
    init(self, *args)
    self.progress = _NewestFirst()


@_declared.instead("progress with the result", "progress_at_once", Cursor, "next").on(_TALKING)
def _with_the_result(next_update: Function, self: Cursor, *args: Any) -> Any:
    """Progress is handed over when its call has finished."""
    if self.progress and self.progress[0][0].status is Status.EXECUTING:
        return None
    return next_update(self, *args)


@_declared.instead("progress thrown away", "progress_at_once", Reader, "_take").on(_TALKING)
def _keeps_nothing(take: Function, self: Reader, call: CallRecord, message: Any) -> None:
    """Only the first message of a call is kept, though there is room."""
    listens, self._listens = self._listens, call.progress_count == 0
    take(self, call, message)
    self._listens = listens


@_declared.instead("drops are not counted", "progress_at_once", Reader, "_take").on(
    Mix([Scripted([Say("a", 1_001)], says="safe")], reader="slow")
)
def _uncounted(take: Function, self: Reader, call: CallRecord, message: Any) -> None:
    """What no reader will see is not on the result."""
    before = call.progress_dropped
    take(self, call, message)
    call.progress_dropped = before


# Law 9


@_declared.instead("stops too late", "failure_contained", ClaimTable, "take").on(_STOPPING)
def _no_control(take: Function, self: ClaimTable, claims: Iterable[Claim], *rest: Any) -> Any:
    """The control claim is not taken, so what follows a call that may stop the batch has started by then."""
    return take(self, () if self.name == "control" else claims, *rest)


@_declared.instead("every failure stops", "failure_contained", BatchRun, "settle").on(
    Mix([Scripted([Fail()], says="safe"), Scripted([Sleep(1)], says="safe")])
)
def _every_failure_stops(settle: Function, self: BatchRun, call: CallRecord, outcome: Outcome, *rest: Any) -> None:
    """A call that fails skips what follows, though its tool does not ask for it."""
    settle(self, call, outcome, *rest)
    if outcome is Outcome.ERROR and not call.stops:
        self.machine.stop(call)


@_declared.instead("keeps what a stop discards", "failure_contained", Machine, "skip").on(
    Mix([Scripted([Sleep(1), Fail()], stops=True), Scripted([ReadCell("a")])])
)
def _keeps_finished(skip: Function, self: Machine, call: CallRecord, *by: Any) -> None:
    """A read that had finished keeps its result though an earlier call stops the batch."""
    if call.status is not Status.COMPLETED:
        skip(self, call, *by)


@_declared.instead("what is left open stops the rest", "failure_contained", _execution, "close_left_open").on(
    Mix([Scripted([LeaveOpen()], says="safe"), Scripted([Sleep(1)], says="safe")])
)
async def _stops_the_rest(close: Function, call: CallRecord, *args: Any) -> BaseException:
    """A call whose tool leaves a nursery or a scope open skips what follows."""
    error: BaseException = await close(call, *args)
    call.stops = True  # the machine stops the batch when the call fails
    return error


# Law 10


@_declared.instead("denies that it ran", "cancel_truthful", BatchRun, "settle").on(_CANCELLED)
def _denies_effects(settle: Function, self: BatchRun, call: CallRecord, outcome: Outcome, *rest: Any) -> None:
    """An interrupted call is reported as not started, though its effects may have landed."""
    settle(self, call, Outcome.NOT_STARTED if outcome is Outcome.INTERRUPTED else outcome, *rest)


@_declared.instead("a cancel waits", "cancel_truthful", BatchRun, "interrupt_lane").on(_CANCELLED)
def _lets_lanes_run(interrupt: Function, self: BatchRun, lane: LaneRecord) -> None:
    """A cancel starts nothing new, and lets what runs come to its end."""


@_declared.instead("interrupts who returned", "cancel_truthful", BatchRun, "cancel").on(
    Mix([Scripted([Sleep(2)], says="safe"), Scripted([ChangeState("x", "a")], says="safe")], cancel_after=1.25)
)
def _interrupts_who_returned(cancel: Function, self: BatchRun, reason: str, outside: bool) -> None:
    """A call that has returned and waits for earlier calls is reported as interrupted by a cancel."""
    lane: Any = self.machine.running
    for call in () if lane is None else lane.calls:
        if call.state is CallState.UNDECIDED:
            lane.modified.remove(call)
            call.modifiers = ()
            self.settle(call, Outcome.INTERRUPTED, None, "interrupted")
    cancel(self, reason, outside)


@_declared.instead("a cancel outranks a return", "cancel_truthful", _execution, "_returned").on(
    Mix([Scripted([Shield(2)], says="safe")], cancel_after=1.25)
)
def _cancel_outranks_a_return(returned: Function, run: Any, lane: LaneRecord, call: CallRecord, value: Any) -> None:
    """A call whose tool returns after a cancel is reported as interrupted."""
    if run.cancel_reason is not None and call.state is CallState.RUNNING:
        run.settle(call, Outcome.INTERRUPTED, None, "interrupted")
    else:
        returned(run, lane, call, value)


@_declared.instead("a cancel cuts what may finish", "cancel_truthful", _execution, "_execute_guarded").on(
    Mix([Scripted([Sleep(2)], says="safe", interrupt="finish")], cancel_after=1.25)
)
async def _no_shield(guarded: Function, run: Any, lane: LaneRecord, call: CallRecord, tool: Any, *rest: Any) -> None:
    """A cancel interrupts a call whose tool asks to finish."""
    await guarded(run, lane, call, attrs.evolve(tool, interrupt="cancel"), *rest)


@_declared.instead("a cancel of one call takes back its result", "cancel_truthful", BatchRun, "cancel_call").on(
    Mix(
        [Scripted([Sleep(1)], says="safe"), Scripted([Sleep(2)], says="safe")],
        cancel_after=1.25,
        cancel_call=0,
        reader="none",
    )
)
def _takes_back(cancel_call: Function, self: BatchRun, call_index: int, reason: str) -> bool:
    """A call that has its result is reported as interrupted when it is cancelled alone."""
    call = self.records[call_index]
    if call.status is Status.COMPLETED:
        self.amend(call, Outcome.INTERRUPTED, None, "interrupted")
        return True
    answer: bool = cancel_call(self, call_index, reason)
    return answer


@_declared.instead("a call cancelled alone runs on", "cancel_truthful", BatchRun, "interrupt").on(
    Mix([Scripted([Sleep(2)], says="safe"), Scripted([Sleep(2)], says="safe")], cancel_after=1.25, cancel_call=1)
)
def _lets_calls_run(interrupt: Function, self: BatchRun, call: CallRecord) -> None:
    """A cancel of one call is heard only by calls that have not started."""


@_declared.instead("a deadline never comes", "cancel_truthful", BatchRun, "_expire").on(
    Mix([Scripted([Sleep(2)], says="safe")], deadline=1.25)
)
async def _no_deadline(expire: Function, self: BatchRun) -> None:
    """A batch runs on when its deadline has passed."""


# Law 11


@_declared.instead("timeouts count waiting", "timeout_own_time", _execution, "_execute_guarded").on(_WAITING)
async def _since_submission(
    guarded: Function, run: Any, lane: Any, call: CallRecord, tool: Any, context: Any, now: float, *rest: Any
) -> None:
    """A timeout counts from the submission of the call."""
    await guarded(run, lane, call, tool, context, call.submitted_at, *rest)


@_declared.instead("timeouts never come", "timeout_own_time", _execution, "_execute_guarded").on(
    Mix([Scripted([Sleep(3)], says="safe", timeout=1.5)])
)
async def _never(
    guarded: Function, run: Any, lane: Any, call: Any, tool: Any, context: Any, now: float, seconds: float | None
) -> None:
    """A call may run as long as it likes."""
    await guarded(run, lane, call, tool, context, now, None)


# Law 12


@_declared.instead("tickets are kept", "nothing_left", Machine, "finish").on(
    Mix([Scripted([AddCell("a", "x")]), Scripted([AddCell("b", "x")])])
)
def _keeps_tickets(finish: Function, self: Machine, lane: LaneRecord, call: CallRecord) -> None:
    """A call that has ended still counts among those that hold tickets."""
    held = call.tickets
    finish(self, lane, call)
    call.tickets = held


# Law 13


@_declared.instead("waits for more calls", "batch_ends", BatchRun, "drive").on(Mix([Scripted([AddCell("a", "x")])]))
async def _waits_for_more(drive: Function, self: BatchRun) -> None:
    """A sealed batch waits for further calls."""
    await drive(self)
    await trio.sleep_forever()


@_declared.instead("forgets who waits", "batch_ends", Machine, "granted").on(
    Mix([Scripted([AddCell("a", "x"), Sleep(1)]), Scripted([AddCell("a", "y")])])
)
def _forgets_to_start(granted: Function, self: Machine, call: CallRecord) -> None:
    """A call whose turn has come is not started."""
    call.missing -= 1


# Law 14


def _by_chance(dispatch: Function) -> Function:
    turns = itertools.count()

    def by_chance(self: Machine, lane: LaneRecord) -> None:
        # What a set of objects, ordered by address, would do; but never the same twice in a row, as that might.
        if len(lane.ready) > 1:
            first = next(turns) % len(lane.ready)
            lane.ready[:] = lane.ready[first:] + lane.ready[:first]
        dispatch(self, lane)

    return by_chance


_declared.add(
    "starts by chance",
    "same_schedule_same_trace",
    "Calls that are ready start in an order that no schedule has.",
    lambda: patched(Machine, "dispatch", _by_chance),
    Mix([Scripted([Sleep(1)], says="safe")] * 4),
)


#: Laws 8 to 14.
RUNTIME: tuple[Mutant, ...] = tuple(_declared.mutants)

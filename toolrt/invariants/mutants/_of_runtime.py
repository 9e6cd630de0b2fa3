"""Mutants of laws 8 to 14: progress, failure, cancel, timeouts, and what is left in the end."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
import trio

from toolrt.invariants.mixes._mix import Mix
from toolrt.invariants.mutants._mutant import Function, Mutant, instead, patched
from toolrt.invariants.mutants._of_order import taking
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

__all__ = ["RUNTIME"]


# Law 8


class _NewestFirst(deque[Any]):
    def popleft(self) -> Any:
        return self.pop()


def _newest_first(init: Function, self: Cursor, *args: Any) -> None:
    init(self, *args)
    self.progress = _NewestFirst()


def _with_the_result(next_update: Function, self: Cursor, *args: Any) -> Any:
    if self.progress and self.progress[0][0].status is Status.EXECUTING:
        return None
    return next_update(self, *args)


def _keeps_nothing(take: Function, self: Reader, call: CallRecord, message: Any) -> None:
    listens, self._listens = self._listens, call.progress_count == 0
    take(self, call, message)
    self._listens = listens


def _uncounted(take: Function, self: Reader, call: CallRecord, message: Any) -> None:
    before = call.progress_dropped
    take(self, call, message)
    call.progress_dropped = before


# Law 9


def _no_control(table: ClaimTable, claim: Claim) -> Claim | None:
    return None if table.name == "control" else claim


def _every_failure_stops(settle: Function, self: BatchRun, call: CallRecord, outcome: Outcome, *rest: Any) -> None:
    settle(self, call, outcome, *rest)
    if outcome is Outcome.ERROR and not call.stops:
        self.machine.stop(call)


def _keeps_finished(skip: Function, self: Machine, call: CallRecord, *by: Any) -> None:
    if call.status is not Status.COMPLETED:
        skip(self, call, *by)


async def _stops_the_rest(close: Function, call: CallRecord, *args: Any) -> BaseException:
    error: BaseException = await close(call, *args)
    call.stops = True  # the machine stops the batch when the call fails
    return error


# Law 10


def _denies_effects(settle: Function, self: BatchRun, call: CallRecord, outcome: Outcome, *rest: Any) -> None:
    settle(self, call, Outcome.NOT_STARTED if outcome is Outcome.INTERRUPTED else outcome, *rest)


def _lets_them_run(interrupt: Function, self: Any, lane: Any) -> Any:
    return None


def _interrupts_who_returned(cancel: Function, self: BatchRun, reason: str, outside: bool) -> None:
    lane: Any = self.machine.running
    for call in () if lane is None else lane.calls:
        if call.state is CallState.UNDECIDED:
            lane.modified.remove(call)
            call.modifiers = ()
            self.settle(call, Outcome.INTERRUPTED, None, "interrupted")
    cancel(self, reason, outside)


def _cancel_outranks_a_return(returned: Function, run: Any, lane: LaneRecord, call: CallRecord, value: Any) -> None:
    if run.cancel_reason is not None and call.state is CallState.RUNNING:
        run.settle(call, Outcome.INTERRUPTED, None, "interrupted")
    else:
        returned(run, lane, call, value)


def _takes_back(cancel_call: Function, self: BatchRun, call_index: int, reason: str) -> bool:
    call = self.records[call_index]
    if call.status is Status.COMPLETED:
        self.amend(call, Outcome.INTERRUPTED, None, "interrupted")
        return True
    answer: bool = cancel_call(self, call_index, reason)
    return answer


async def _no_shield(guarded: Function, run: Any, lane: LaneRecord, call: CallRecord, tool: Any, *rest: Any) -> None:
    await guarded(run, lane, call, attrs.evolve(tool, interrupt="cancel"), *rest)


# Law 11


async def _since_submission(
    guarded: Function, run: Any, lane: Any, call: CallRecord, tool: Any, context: Any, now: float, *rest: Any
) -> None:
    await guarded(run, lane, call, tool, context, call.submitted_at, *rest)


async def _never(
    guarded: Function, run: Any, lane: Any, call: Any, tool: Any, context: Any, now: float, seconds: float | None
) -> None:
    await guarded(run, lane, call, tool, context, now, None)


# Law 12


def _keeps_tickets(finish: Function, self: Machine, lane: LaneRecord, call: CallRecord) -> None:
    held = call.tickets
    finish(self, lane, call)
    call.tickets = held


# Law 13


async def _waits_for_more(drive: Function, self: BatchRun) -> None:
    await drive(self)
    await trio.sleep_forever()


def _forgets_to_start(granted: Function, self: Machine, call: CallRecord) -> None:
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


def _in_law(name: str) -> Callable[..., Mutant]:
    return lambda label, sentence, apply, workload: Mutant(label, name, sentence, apply, workload)


_TALKING = Mix(
    [Scripted([Say("a", 3), Sleep(1), Say("b", 2), Pause()], says="safe"), Scripted([Say("c")], says="safe")]
)
_STOPPING = Mix([Scripted([Sleep(1), Fail()], stops=True), Scripted([AddCell("a", "x")])])
_CANCELLED = Mix(
    [Scripted([Sleep(2)], says="safe"), Scripted([AddCell("a", "x"), Sleep(2)]), Scripted([AddCell("a", "y")])],
    cancel_after=1.25,
)
_WAITING = Mix([Scripted([AddCell("a", "x"), Sleep(2)]), Scripted([ReadCell("a"), Sleep(1)], timeout=1.5)])

#: Laws 8 to 14.
RUNTIME: tuple[Mutant, ...] = (
    _in_law("progress_at_once")(
        "newest progress first",
        "Of the progress that waits for the reader the newest is handed over first.",
        instead(Cursor, "__init__", _newest_first),
        _TALKING,
    ),
    _in_law("progress_at_once")(
        "progress with the result",
        "Progress is handed over when its call has finished.",
        instead(Cursor, "next", _with_the_result),
        _TALKING,
    ),
    _in_law("progress_at_once")(
        "progress thrown away",
        "Only the first message of a call is kept, though there is room.",
        instead(Reader, "_take", _keeps_nothing),
        _TALKING,
    ),
    _in_law("progress_at_once")(
        "drops are not counted",
        "What no reader will see is not on the result.",
        instead(Reader, "_take", _uncounted),
        Mix([Scripted([Say("a", 1_001)], says="safe")], reader="slow"),
    ),
    _in_law("failure_contained")(
        "stops too late",
        "The control claim is not taken, so what follows a call that may stop the batch has started by then.",
        taking(_no_control),
        _STOPPING,
    ),
    _in_law("failure_contained")(
        "every failure stops",
        "A call that fails skips what follows, though its tool does not ask for it.",
        instead(BatchRun, "settle", _every_failure_stops),
        Mix([Scripted([Fail()], says="safe"), Scripted([Sleep(1)], says="safe")]),
    ),
    _in_law("failure_contained")(
        "keeps what a stop discards",
        "A read that had finished keeps its result though an earlier call stops the batch.",
        instead(Machine, "skip", _keeps_finished),
        Mix([Scripted([Sleep(1), Fail()], stops=True), Scripted([ReadCell("a")])]),
    ),
    _in_law("failure_contained")(
        "what is left open stops the rest",
        "A call whose tool leaves a nursery or a scope open skips what follows.",
        instead(_execution, "close_left_open", _stops_the_rest),
        Mix([Scripted([LeaveOpen()], says="safe"), Scripted([Sleep(1)], says="safe")]),
    ),
    _in_law("cancel_truthful")(
        "denies that it ran",
        "An interrupted call is reported as not started, though its effects may have landed.",
        instead(BatchRun, "settle", _denies_effects),
        _CANCELLED,
    ),
    _in_law("cancel_truthful")(
        "a cancel waits",
        "A cancel starts nothing new, and lets what runs come to its end.",
        instead(BatchRun, "interrupt_lane", _lets_them_run),
        _CANCELLED,
    ),
    _in_law("cancel_truthful")(
        "interrupts who returned",
        "A call that has returned and waits for earlier calls is reported as interrupted by a cancel.",
        instead(BatchRun, "cancel", _interrupts_who_returned),
        Mix(
            [Scripted([Sleep(2)], says="safe"), Scripted([ChangeState("x", "a")], says="safe")],
            cancel_after=1.25,
        ),
    ),
    _in_law("cancel_truthful")(
        "a cancel outranks a return",
        "A call whose tool returns after a cancel is reported as interrupted.",
        instead(_execution, "_returned", _cancel_outranks_a_return),
        Mix([Scripted([Shield(2)], says="safe")], cancel_after=1.25),
    ),
    _in_law("cancel_truthful")(
        "a cancel cuts what may finish",
        "A cancel interrupts a call whose tool asks to finish.",
        instead(_execution, "_execute_guarded", _no_shield),
        Mix([Scripted([Sleep(2)], says="safe", interrupt="finish")], cancel_after=1.25),
    ),
    _in_law("cancel_truthful")(
        "a cancel of one call takes back its result",
        "A call that has its result is reported as interrupted when it is cancelled alone.",
        instead(BatchRun, "cancel_call", _takes_back),
        Mix(
            [Scripted([Sleep(1)], says="safe"), Scripted([Sleep(2)], says="safe")],
            cancel_after=1.25,
            cancel_call=0,
            reader="none",
        ),
    ),
    _in_law("cancel_truthful")(
        "a call cancelled alone runs on",
        "A cancel of one call is heard only by calls that have not started.",
        instead(BatchRun, "interrupt", _lets_them_run),
        Mix([Scripted([Sleep(2)], says="safe"), Scripted([Sleep(2)], says="safe")], cancel_after=1.25, cancel_call=1),
    ),
    _in_law("timeout_own_time")(
        "timeouts count waiting",
        "A timeout counts from the submission of the call.",
        instead(_execution, "_execute_guarded", _since_submission),
        _WAITING,
    ),
    _in_law("timeout_own_time")(
        "timeouts never come",
        "A call may run as long as it likes.",
        instead(_execution, "_execute_guarded", _never),
        Mix([Scripted([Sleep(3)], says="safe", timeout=1.5)]),
    ),
    _in_law("nothing_left")(
        "tickets are kept",
        "A call that has ended still counts among those that hold tickets.",
        instead(Machine, "finish", _keeps_tickets),
        Mix([Scripted([AddCell("a", "x")]), Scripted([AddCell("b", "x")])]),
    ),
    _in_law("batch_ends")(
        "waits for more calls",
        "A sealed batch waits for further calls.",
        instead(BatchRun, "drive", _waits_for_more),
        Mix([Scripted([AddCell("a", "x")])]),
    ),
    _in_law("batch_ends")(
        "forgets who waits",
        "A call whose turn has come is not started.",
        instead(Machine, "granted", _forgets_to_start),
        Mix([Scripted([AddCell("a", "x"), Sleep(1)]), Scripted([AddCell("a", "y")])]),
    ),
    _in_law("same_schedule_same_trace")(
        "starts by chance",
        "Calls that are ready start in an order that no schedule has.",
        lambda: patched(Machine, "dispatch", _by_chance),
        Mix([Scripted([Sleep(1)], says="safe")] * 4),
    ),
)

"""Executes one call: runs the tool under its timeout and turns what it returned or raised into the outcome.

Rules.
    1. A call's first act is to check that it is still wanted: Trio runs the first step of a task even in a
       scope that was cancelled meanwhile.
    2. A call that returns is OK, whatever was asked meanwhile.  Any `trio.Cancelled` inside what it raises makes
       it interrupted, or timed out if its own scope caught it; the rest of what it raised goes into the error.
    3. A cancel from outside outranks the call's own timeout.
    4. Results are prompt: a thread that cannot be stopped is waited for after its result is fixed.  Until it has
       ended, the call keeps its tickets and its slot.  Where nothing has seen the result by then, it says how the
       thread ended: a call that a cancel interrupted, and whose thread returned, is OK.
    5. Cancellation belongs to Trio: after the bookkeeping it is passed on.
    6. What a tool leaves running in a sub-batch is cancelled, and the call has ended when that has.
    7. A call that may be cancelled alone has a scope of its own.  A batch without a block has no caller to ask.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

import attrs
import trio

from toolrt import probe
from toolrt.errors import asks_to_exit
from toolrt.events import CallFailed, CallStarted, CallStartedAgain, observer
from toolrt.model import Outcome, Tool, ToolOutput
from toolrt.model._read_result import kept
from toolrt.order import CallMove, CallRecord, CallState, LaneRecord, Machine, Status, _footprints, may_go_stale
from toolrt.runtime._caller import RUNNING_CALL
from toolrt.runtime._cancellation import split_cancelled
from toolrt.runtime._context import ToolContext
from toolrt.runtime._host import CallHost, FixesResults
from toolrt.runtime._interrupts import protected
from toolrt.runtime._left_open import PLAIN, check_answer, close_left_open, stands_of
from toolrt.runtime._questions import ToolQuestions
from toolrt.runtime._reader import Reader

T = TypeVar("T")

# Looked up once: an attribute of an enumeration costs as much as a call.
_SPAWNED, _RUNNING, _START, _OK = CallState.SPAWNED, CallState.RUNNING, CallMove.START.leads, Outcome.OK
_SETTLED = (CallState.DROPPED, CallState.LINGERING)
_CUT_SHORT = (Outcome.INTERRUPTED, Outcome.NOT_STARTED)

# What the result of a call says of its thread, and what it says instead once the thread has ended.
_STILL_RUNS = "; its thread cannot be stopped and still runs"
_HAS_ENDED = "; its thread could not be stopped and ran on"

# What asyncio says, or Trio's own functions, where a task of asyncio awaits Trio.
_OF_TRIO = ("Task got bad yield", "must be called from async context")

# What Trio and asyncio say where a task of Trio's awaits asyncio.
_OF_ASYNCIO = ("unrecognized yield message", "Trio got an unknown message", "no running event loop")


class EndedBefore(Exception):
    """What stands for a tool where a journal knows how its call ended.

    Attributes:
        outcome: how it ended.
        text: what its result says.
        may_stop: whether what follows a tool that ``stops_batch`` is skipped: it may have failed.
    """

    def __init__(self, outcome: Outcome, text: str, may_stop: bool = True) -> None:
        self.outcome = outcome
        self.text = text
        self.may_stop = may_stop
        super().__init__(text)


class ExecutionHost(CallHost, FixesResults, Protocol):
    """What a call's task asks of the batch's engine."""

    machine: Machine
    block: Any
    timeout: float | None
    reader: Reader
    questions: ToolQuestions
    #: Whether a model can read on in results that are too long.
    reads_on: bool

    @property
    def cancel_reason(self) -> str | None:
        """Why the batch was cancelled; None while it is not."""

    @property
    def thread_limiter(self) -> trio.CapacityLimiter:
        """The worker threads of the batch."""

    def amend(self, call: CallRecord, outcome: Outcome, content: Any, error: str | None) -> None:
        """Replace a result that nothing has seen yet."""

    def cancelled_from_outside(self) -> None:
        """Take note that an enclosing scope was cancelled, if one was."""


@trio.lowlevel.disable_ki_protection
def asked(function: Callable[..., T], *args: Any) -> T:
    """What the author's `function` answers to `args`."""
    return function(*args)


@trio.lowlevel.disable_ki_protection
async def awaited(awaitable: Awaitable[T]) -> T:
    """What the author's `awaitable` gives.

    Checkpoint: as it does.
    """
    return await awaitable


def _is_stepped() -> bool:
    """Whether Trio steps a call's task now; it does not when a coroutine is closed from elsewhere."""
    if not trio.lowlevel.in_trio_task():
        return False
    return trio.lowlevel.current_task().coro.cr_code is execute.__code__


@protected
async def execute(run: ExecutionHost, lane: LaneRecord, call: CallRecord) -> None:
    """The task of one call, or of one of a pure tool that is to run again: run its tool, fix its result, end it.

    Checkpoint: as the tool does.
    """
    # 1. Is it still wanted?  That is asked once its intent is durable.
    again = call.saw is not None
    journal = call.siblings.journal
    intends = journal is not None and call.state is _SPAWNED
    if intends:
        await journal.intend(call)
    if probe.implied is not None and not again:
        _footprints.starts(call)
    if call.state is not _SPAWNED and call.state is not CallState.RESPAWNED and call.state is not CallState.DROPPED:
        if intends:
            journal.held_back(call)
        return
    task: Any = trio.lowlevel.current_task()
    status = task._cancel_status
    if probe.implied is not None or status.effectively_cancelled:
        await _look_for_cancel(run, journal if intends else None, call)
    if call.state is CallState.DROPPED:
        run.machine.finish(lane, call)
        return

    # 2. It starts.
    tool: Any = call.tool
    RUNNING_CALL.set(call)
    call.state = _START[call.state]
    seconds = run.timeout if tool.timeout is None else tool.timeout
    now = run.now()
    if not again:
        call.started_at = now
        if observer.listens:
            _tell_start(run, lane, call, seconds)
    started_at = call.started_at

    # 3. The tool runs; once more, if it was stale when it returned and is pure.
    guarded = seconds is not None or lane.control is not None or run.block is not None
    guarded = guarded or not tool.is_async or tool.interrupt == "finish"
    positional, named = call.arguments or ((), {})
    while call.state is _RUNNING:
        # It is written in each round, also where it stays: so a simulation sees at once that nothing polls here.
        call.started_at = started_at
        if call.saw is not None and observer.records:
            observer.tell(CallStartedAgain(call.batch_id, call.call_index, lane.index))
        context = ToolContext(call, lane.start if call.saw is None else call.saw, run)
        if guarded:
            await _execute_guarded(run, lane, call, tool, context, now, seconds)
            now = run.now()
            continue
        coroutine = None
        try:
            # What `_answer` does, without a coroutine of its own: this is what by far the most calls go through.
            function = tool.function if journal is None else journal.function_of(call)
            coroutine = function(context, *positional, **named)
            value = await awaited(coroutine)
            if task._cancel_status is not status or task._child_nurseries:
                raise await close_left_open(call, task, status, None)
            if type(value) not in PLAIN:
                check_answer(value.content if isinstance(value, ToolOutput) else value)
            if journal is not None:
                value = await journal.returned(call, value)
        except BaseException as error:  # noqa: ASYNC103  _failed re-raises a Cancelled that is due
            error = await _tidied(call, task, status, coroutine, error)  # noqa: ASYNC102  what was left open ends
            await _failed(run, lane, call, error, None, None)  # noqa: ASYNC102  shielded, and it waits for a thread only
            return  # noqa: ASYNC104  no Cancelled that is due gets here
        _returned(run, lane, call, value)
        if call.inside is not None:
            await call.inside.wait_ended()
        if call.state is not _RUNNING:
            run.machine.finish(lane, call)


async def _look_for_cancel(run: ExecutionHost, journal: Any, call: CallRecord) -> None:
    """Take note of a cancel that came before the call's first step, and raise it; `journal` knows of the call's intent.

    Checkpoint: if the call's task is cancelled.
    """
    try:
        await trio.lowlevel.checkpoint_if_cancelled()
    except trio.Cancelled:
        run.cancelled_from_outside()
        if journal is not None:
            journal.held_back(call)
        raise


def _tell_start(run: ExecutionHost, lane: LaneRecord, call: CallRecord, seconds: float | None) -> None:
    tool: Any = call.tool
    if observer.records and may_go_stale(tool, lane.shared):
        # Nothing is decided by it: the answer at this instant depends on the schedule.
        run.questions.stale_claims(lane, call, refused=False)
    journal = call.siblings.journal
    replayed = (journal is not None and journal.stands_in(call)) or None
    about = lane.index, probe.in_thread(tool), seconds, tool.interrupt, replayed, tool.idempotent or None

    started = CallStarted(call.batch_id, call.call_index, *about)

    def tell_later(has_begun: bool = True) -> None:
        call.tell_start = None
        if has_begun:
            observer.tell(started, run.telemetry)

    if getattr(tool.function, "begins_later", False) and not replayed:
        call.tell_start = tell_later
    else:
        observer.tell(started, run.telemetry)


async def _execute_guarded(
    run: ExecutionHost,
    lane: LaneRecord,
    call: CallRecord,
    tool: Tool,
    context: ToolContext,
    now: float,
    seconds: float | None,
) -> None:
    """The same for a call with a scope of its own: a timeout, a shield, a thread, or a stop that may come."""
    journal = call.siblings.journal
    function = tool.function if journal is None else journal.function_of(call)
    finishes = tool.interrupt == "finish"
    scope = trio.CancelScope(deadline=math.inf if seconds is None else now + seconds, shield=finishes)
    call.scope = None if finishes else scope
    thread = _Thread(run.thread_limiter) if probe.in_thread(tool) else None
    positional, named = call.arguments or ((), {})
    returned = False
    try:
        with scope:
            value = await _call(call, tool, thread, lambda: function(context, *positional, **named))
            if journal is not None:
                value = await journal.returned(call, value)
            _returned(run, lane, call, value)
            if call.inside is not None:
                await call.inside.wait_ended()
            if call.state is not _RUNNING:
                run.machine.finish(lane, call)
            returned = True
    except BaseException as error:  # noqa: ASYNC103  as above
        caught = scope.cancelled_caught
        await _failed(run, lane, call, error, (call.cancel_reason or seconds) if caught else None, thread)  # noqa: ASYNC102
        return  # noqa: ASYNC104
    if not returned:
        await _failed(run, lane, call, None, call.cancel_reason or seconds, thread)


async def _call(call: CallRecord, tool: Tool, thread: _Thread | None, function: Callable[[], Any]) -> Any:
    if thread is not None:
        limiter = cast(trio.CapacityLimiter, thread)
        try:
            await trio.to_thread.run_sync(lambda: thread.run(function), abandon_on_cancel=True, limiter=limiter)
        except trio.Cancelled:  # noqa: ASYNC103  a call that returned is OK, and its scope stays cancelled
            if not thread.returned:
                raise
            with trio.CancelScope(shield=True):
                await thread.ended.wait()
        [value] = thread.returned
    elif tool.is_async:
        return await _answer(call, function())
    else:
        value = asked(function)
    if isinstance(value, Awaitable):
        _close(value)
        raise TypeError("a plain def returned an awaitable: make the tool async def")
    check_answer(value.content if isinstance(value, ToolOutput) else value)
    return value


async def _answer(call: CallRecord, coroutine: Any) -> Any:
    """What the tool's coroutine returns; its task is as it was before, whatever the tool did.

    Checkpoint: as the tool does.
    """
    task: Any = trio.lowlevel.current_task()
    status = task._cancel_status
    try:
        value = await awaited(coroutine)
    except BaseException as error:
        raise await _tidied(call, task, status, coroutine, error) from None  # noqa: ASYNC102, ASYNC104  they end
    if not stands_of(task, status):
        raise await close_left_open(call, task, status, None)
    check_answer(value.content if isinstance(value, ToolOutput) else value)
    return value


async def _tidied(call: CallRecord, task: Any, status: Any, coroutine: Any, error: BaseException) -> BaseException:
    """What the call failed with, once nothing of its tool is open: `error`, if nothing was.

    Checkpoint: if a nursery was left open.
    """
    _close(coroutine)
    if stands_of(task, status) or not _is_stepped():
        return error
    return await close_left_open(call, task, status, error)


def _close(coroutine: Any) -> None:
    """Close a tool's coroutine that is over, or has not begun: Ctrl-C may have come before its first step."""
    close = getattr(coroutine, "close", None)
    if close is not None:
        close()


def _returned(run: ExecutionHost, lane: LaneRecord, call: CallRecord, value: Any) -> None:
    call.ended_at = run.now()
    if call.state in _SETTLED:
        return
    if run.reads_on and call.max_result is not None:
        value = kept(value, call.max_result)
    if isinstance(value, ToolOutput):
        if value.modifiers:
            call.modifiers = value.modifiers
            lane.modified.append(call)
            if lane.shared:
                call.undecided = value
                run.machine.returned(lane, call)
                return
        run.fix_result(call, value)
    else:
        run.settle(call, _OK, value, None)
        if lane.decisions is not None:
            run.machine.decide(lane)


def _error_of(tool: Any, error: BaseException) -> str:
    """Give the text of a failed call; Trio's own words for a tool that awaits asyncio do not say what to do."""
    text: str = tool.describe_error(error)
    if isinstance(error, TypeError | RuntimeError) and any(sign in str(error) for sign in _OF_ASYNCIO):
        text += " (A tool that awaits asyncio is made with @toolrt.aio.tool, and toolrt.aio awaits its batch.)"
    elif isinstance(error, RuntimeError) and any(sign in str(error) for sign in _OF_TRIO):
        text += " (A tool that awaits Trio is made with @toolrt.tool; one made with @toolrt.aio.tool awaits asyncio.)"
    return text


async def _failed(
    run: ExecutionHost,
    lane: LaneRecord,
    call: CallRecord,
    error: BaseException | None,
    caught: float | str | None,
    thread: _Thread | None,
) -> None:
    """Fix the result of a call that did not return.

    Args:
        run, lane, call: the call's.
        error: what its own scope did not catch.
        caught: what that did: the seconds of its timeout, or the reason of a cancel of this call.
        thread: the one that it runs in.
    """
    if isinstance(error, GeneratorExit) and not _is_stepped():
        raise error  # the whole Trio run is torn down: there is nothing left to answer to
    cancelled, rest = (None, None) if error is None else split_cancelled(error)
    exit_asked = asks_to_exit(rest)
    running = "" if thread is None or not thread.running else _STILL_RUNS
    tool: Any = call.tool
    also = "" if rest is None else f"; it raised {tool.describe_error(rest)}"
    call.ended_at = run.now()
    was_cancelled = cancelled is not None or isinstance(caught, str)
    never_began = was_cancelled and not call.has_begun and exit_asked is None and not isinstance(rest, EndedBefore)
    if call.tell_start is not None:
        call.tell_start(not never_began)
    if rest is not None and observer.measures:
        observer.tell(CallFailed(call.batch_id, call.call_index, rest), run.telemetry)
    if cancelled is not None:
        run.cancelled_from_outside()
    dropped = call.state in _SETTLED
    if exit_asked is not None:
        # Ctrl-C or an exit: not the tool's failure.  The batch ends, and who leaves it gets the exception.
        why = f"interrupted by {tool.describe_error(exit_asked)}; effects may have landed"
        outcome = Outcome.INTERRUPTED
    elif isinstance(rest, EndedBefore):
        outcome, why = rest.outcome, rest.text
    elif never_began:
        why = f"not started: {call.cancel_reason or run.cancel_reason or 'its call was cancelled'}"
        outcome = Outcome.NOT_STARTED
    elif isinstance(caught, str):
        why = f"interrupted while it ran (the call was cancelled: {caught}); effects may have landed{running}{also}"
        outcome = Outcome.INTERRUPTED
    elif caught is not None and cancelled is None:
        why = f"timed out after {caught:g} s of its own execution; effects may have landed{running}{also}"
        outcome = Outcome.TIMED_OUT
    elif cancelled is not None:
        reason = run.cancel_reason or "it raised trio.Cancelled by itself"
        why = f"interrupted while it ran ({reason}); effects may have landed{running}{also}"
        outcome = Outcome.INTERRUPTED
    else:
        outcome, why = Outcome.ERROR, "" if rest is None else _error_of(tool, rest)
    journal = call.siblings.journal
    if journal is not None and not dropped and exit_asked is None:
        # What a cancelled batch cut short is decided when it is resumed.
        if outcome not in _CUT_SHORT or run.cancel_reason is None:
            await journal.ended(call, outcome, why)
        dropped = call.state in _SETTLED
    if not dropped:
        run.settle(call, outcome, None, why)
    if exit_asked is not None:
        run.abort(exit_asked)
    result = call.result
    stops = rest.may_stop if isinstance(rest, EndedBefore) else outcome not in _CUT_SHORT
    if call.stops and not dropped and result is not None and stops:
        run.machine.stop(call)
    if lane.decisions is not None:
        run.machine.decide(lane)
    if call.inside is not None:
        call.inside.cancel("has ended")
    if thread is not None and thread.running:
        lane.outlived = True
        run.reader.tell()
        with trio.CancelScope(shield=True):
            await thread.ended.wait()
        if call.status is not Status.YIELDED and not call.is_seen and call.listener is None:
            _say_how_it_ended(run, call, thread)
    if call.inside is not None:
        await call.inside.wait_ended()
    run.machine.finish(lane, call)
    if cancelled is not None and trio.current_effective_deadline() == -math.inf:
        raise cancelled


def _say_how_it_ended(run: ExecutionHost, call: CallRecord, thread: _Thread) -> None:
    """Let a result that nothing has seen say how the thread ended that went on after it was fixed."""
    result: Any = call.result
    outcome, content = result.outcome, result.content
    error: str | None = str(result.error).replace(_STILL_RUNS, _HAS_ENDED)
    if outcome is Outcome.INTERRUPTED and thread.raised is not None and split_cancelled(thread.raised)[0] is None:
        outcome, error = Outcome.ERROR, _error_of(call.tool, thread.raised)
    elif outcome is Outcome.INTERRUPTED and thread.returned:
        [value] = thread.returned
        if not isinstance(value, ToolOutput):
            outcome, content, error = _OK, value, None
        elif not value.modifiers:  # those of a call that was interrupted do not apply
            outcome, content, error = Outcome.OK if value.error is None else Outcome.ERROR, value.content, value.error
    if outcome is _OK:
        try:
            check_answer(content)
        except Exception as refused:
            outcome, content, error = Outcome.ERROR, None, _error_of(call.tool, refused)
    run.amend(call, outcome, content, error)


@attrs.define(eq=False)
class _Thread:
    """A worker thread's place below the limit; it knows when the thread has really ended.

    Trio gives the place back when the thread ends, also when the call was abandoned long before.
    """

    _limiter: trio.CapacityLimiter
    #: Whether the thread has been handed its work and has not ended.
    running: bool = attrs.field(default=False, init=False)
    #: Set when the thread has ended.
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: What the tool returned, once it has; Trio throws it away where a cancel comes in the same tick.
    returned: list[Any] = attrs.field(factory=list, init=False)
    #: What it raised; None: nothing.
    raised: BaseException | None = attrs.field(default=None, init=False)

    def run(self, function: Callable[[], Any]) -> None:
        """Run the tool, in the thread."""
        try:
            self.returned.append(function())
        except BaseException as error:
            self.raised = error
            raise

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        await self._limiter.acquire_on_behalf_of(borrower)
        self.running = True

    def release_on_behalf_of(self, borrower: object) -> None:
        self._limiter.release_on_behalf_of(borrower)
        self.running = False
        self.ended.set()

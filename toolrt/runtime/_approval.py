"""Asks the runtime's approval check about the calls of a lane, and applies its answers.

Rules.
    1. Every call of a lane is asked for once its tickets are taken, all of them before any can start; one that joins
       the lane later is asked for then.
    2. A call that waits for its answer keeps its tickets and holds no slot, and only calls that wait for its
       tickets wait for that answer.
    3. What was approved is what is executed: the check is shown a copy of the input, and a rewrite is validated
       again.  Neither a rewrite nor a narrowing may touch more than the tickets hold.
    4. A check that raises denies.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any, Protocol, cast

import trio

from toolrt._aside import Aside
from toolrt._plain import json_copy
from toolrt.errors import asks_to_exit
from toolrt.events import ApprovalAnswered, ApprovalAsked, ApprovalAwaited, observer
from toolrt.model import Allow, ApprovalRequest, Approve, Claim, Deny, Outcome, Rewrite, Tool, covers, decision
from toolrt.model._claim import claims_in_words
from toolrt.order import (
    CallRecord,
    CallState,
    LaneRecord,
    Machine,
    Status,
    claims_of,
    looked_at_by,
    may_go_stale,
    touched_by,
)
from toolrt.runtime._cancellation import split_cancelled
from toolrt.runtime._execution import asked, awaited
from toolrt.runtime._host import FixesResults
from toolrt.runtime._interrupts import protected
from toolrt.runtime._lease import Lease
from toolrt.runtime._telemetry import BatchTelemetry


class ApprovalHost(FixesResults, Protocol):
    """What an approval asks of the batch's engine."""

    machine: Machine
    lease: Lease | None
    telemetry: BatchTelemetry | None
    _nursery: trio.Nursery | None

    def cancelled_from_outside(self) -> None:
        """Take note that an enclosing scope was cancelled, if one was."""


class Approval:
    """Asks whether the calls of one lane may run.

    Args:
        engine: of the batch.
        lane: the lane whose calls it asks for.
        approve: the runtime's check.
    """

    def __init__(self, engine: ApprovalHost, lane: LaneRecord, approve: Approve) -> None:
        self._engine = engine
        self.lane = lane
        self._approve = approve
        self._aside = Aside()
        #: The check of this lane, once its first call is asked for.
        self._check: Approve | None = None

    def ask(self, call: CallRecord) -> None:
        """Ask for approval; the call is ready when nothing is missing any more."""
        if call.status is not Status.QUEUED:
            return
        engine, lane = self._engine, self.lane
        journal = call.siblings.journal
        known = None if journal is None else journal.answer_of(call)
        if known is not None:
            self._answered(call, known)
            return
        if observer.records:
            observer.tell(ApprovalAsked(call.batch_id, call.call_index))
        # A copy, so that whatever the check does to it, what was validated and claimed is what is executed.
        shown = json_copy(call.input)
        request = ApprovalRequest(
            call.call_id,
            call.name,
            shown,
            call.call_index,
            call.batch_id,
            lane.bare,
            call.claims if call.allowed is None else call.allowed,
            call.tool,
            None if engine.lease is None else engine.lease.asked_as,
        )
        tool = cast(Tool, call.tool)
        try:
            if self._check is None:
                of_lane = getattr(self._approve, "for_lane", None)
                self._check = self._approve if of_lane is None else cast(Approve, asked(of_lane))
            # One that is made for a lane knows itself what takes its time.
            of_lane = self._check is not self._approve
            if inspect.iscoroutinefunction(self._check):
                # It runs nothing yet, and Ctrl-C behind its return would leave a coroutine that no task awaits.
                answer: Any = self._check(request)
            else:
                answer = asked(self._check, request) if of_lane else asked(self._aside.ask, self._check, request)
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            if asks_to_exit(error) is not None:
                engine.abort(error)
                return  # noqa: ASYNC104
            answer = Deny(f"the approval check raised {tool.describe_error(error)}")
        if inspect.isawaitable(answer):
            call.scope = trio.CancelScope()
            cast(trio.Nursery, engine._nursery).start_soon(self._wait_answer, call, answer, name=f"approve {call.name}")
        else:
            self._answered(call, decision(answer))

    @protected
    async def _wait_answer(self, call: CallRecord, answer: Awaitable[Any]) -> None:
        scope = call.scope
        engine = self._engine
        verdict: Allow | Deny | Rewrite | None = None
        if observer.measures:
            observer.tell(ApprovalAwaited(call.batch_id, call.call_index), engine.telemetry)
        try:
            with scope:
                verdict = decision(await awaited(answer))
        except BaseException as error:  # noqa: ASYNC103  the Cancelled in it is re-raised
            if isinstance(error, GeneratorExit) and not trio.lowlevel.in_trio_task():
                raise
            exit_asked = asks_to_exit(error)
            if exit_asked is not None:
                engine.abort(exit_asked)
                return  # noqa: ASYNC104  Ctrl-C: the batch lets it out when it is left
            cancelled, _ = split_cancelled(error)
            if cancelled is not None:
                engine.cancelled_from_outside()
                raise cancelled from None  # noqa: ASYNC104  it is the Cancelled itself, without the rest of its group
            verdict = Deny(f"the approval check raised {cast(Tool, call.tool).describe_error(error)}")
        if verdict is not None and call.siblings.journal is not None:
            await call.siblings.journal.answered(call, verdict)
        call.scope = None
        if verdict is not None:
            self._answered(call, verdict)
            engine.machine.dispatch(self.lane)

    def _answered(self, call: CallRecord, verdict: Allow | Deny | Rewrite) -> None:
        engine, lane = self._engine, self.lane
        if observer.listens:
            word = type(verdict).__name__.lower()
            observer.tell(ApprovalAnswered(call.batch_id, call.call_index, word), engine.telemetry)
        if call.state is not CallState.UNAPPROVED:
            return
        if not isinstance(verdict, Deny):
            refusal = self._rewrite(call, verdict) if isinstance(verdict, Rewrite) else None
            refusal = refusal or self._narrow(call, verdict.within)
            call.withheld = verdict.withheld
            if refusal is not None:
                verdict = Deny(refusal)
        if isinstance(verdict, Deny):
            engine.settle(call, Outcome.DENIED, None, f"denied: {verdict.reason}")
            if call.stops:
                engine.machine.stop(call)
            engine.machine.finish(lane, call)
        else:
            engine.machine.allowed(lane, call)

    def _narrow(self, call: CallRecord, within: tuple[Claim, ...] | None) -> str | None:
        """Leave the call these claims of those it holds, or say why not."""
        if within is None:
            return None
        try:
            within = tuple(within)
            held = call.claims if call.allowed is None else call.allowed
            excess = [claim for claim in within if not covers(held, claim)]
        except Exception as error:
            return f"the approval narrows the call to what are no claims ({type(error).__name__})"
        if excess:
            narrowed, holds = claims_in_words(excess[0]), claims_in_words(*held)
            return f"the approval narrows the call to {narrowed}, the call holds {holds}"
        call.allowed = within
        return None

    def _rewrite(self, call: CallRecord, verdict: Rewrite) -> str | None:
        """Give the call its new input, or say why not."""
        tool = cast(Tool, call.tool)
        try:
            rewritten = json_copy(verdict.input)
        except RecursionError:
            return "the rewritten input is nested too deeply"
        arguments = tool.decode(rewritten)
        if isinstance(arguments, list):
            return f"the rewritten input does not fit: {arguments}"
        lane = self.lane
        state = lane.bare
        if may_go_stale(tool, lane.shared):
            # Asked for when the call is granted: what its claims look at may change until then.
            wanted: tuple[Claim, ...] = ()
            held = call.claims
            call.rewritten = call.asks_again = True
        else:
            wanted, held = claims_of(tool, rewritten, state, lane.shared), call.claims
        if call.allowed is not None:
            wanted, held = touched_by(tool, rewritten, state, lane.shared) or (), call.allowed
        for claim in wanted:
            if not covers(held, claim):
                holds = claims_in_words(*held)
                return f"the rewritten input claims {claims_in_words(claim)}, the call holds {holds}"
        for claim in looked_at_by(tool, rewritten, state, lane.shared):
            if not covers((*call.after, *call.claims), claim):
                return (
                    f"the claims of the rewritten input look at {claims_in_words(claim)}, which the call does not hold"
                )
        stops = tool.may_stop(rewritten)
        if stops and not call.stops:
            return "the rewritten input stops the batch when it fails, the call's own does not"
        call.stops = stops
        call.input = rewritten
        call.arguments = arguments
        return None

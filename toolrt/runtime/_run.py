"""Runs one batch: tells the machine what happened, and carries out its instructions on Trio.

Rules.
    1. The machine (`toolrt.order.Machine`) decides.  This module awaits, spawns, cancels, asks tools, builds results.
    2. Lanes run one after the other, in one task; at a lane's end its modifiers are merged and the next lane starts
       from the state they leave.  Every lane ends in one merge, also one that a cancel kept from starting.
    3. Ctrl-C or an exit in a call cancels the batch, ends its block, and goes out when the batch is left.
    4. The outcome is fixed once, when nothing of the batch runs any more, and it answers every call.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import attrs
import trio

from toolrt import probe
from toolrt.errors import BatchClosed, DefinitionRefused, asks_to_exit
from toolrt.events import (
    BatchLeft,
    BatchOpened,
    CallSettled,
    CallSubmitted,
    ClaimsStale,
    LaneAwaited,
    LaneMerged,
    ModifiersRefused,
    observer,
)
from toolrt.model import (
    AfterLane,
    Approve,
    BatchOutcome,
    Claim,
    Modifier,
    Outcome,
    Registry,
    Services,
    State,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
    covers,
)
from toolrt.model._tool import decoded, invalid_call_text
from toolrt.model._watched_state import bare_state, parts_json
from toolrt.order import (
    BatchMove,
    BatchState,
    CallMove,
    CallRecord,
    CallState,
    ClaimTable,
    LaneChoice,
    LanePolicy,
    LaneRecord,
    LaneState,
    Machine,
    SlotPolicy,
    Status,
    Ticket,
    _footprints,
    applied,
    claims_of,
    enter_tables,
    give_back,
    gives_up,
    leave_tables,
    looked_at_by,
    merged,
    parallel,
    policy_name,
    shares_a_lane,
    stale_claims_text,
    stale_part,
    stale_text,
    touched_by,
)
from toolrt.runtime._after_lane import tell_services
from toolrt.runtime._approval import Approval
from toolrt.runtime._batch import Batch
from toolrt.runtime._caller import (
    RUNNING_CALL,
    TABLES_LOCK,
    is_over,
    refuse_other_run,
    refuse_own_tools,
    refuse_shared_table,
)
from toolrt.runtime._cancellation import bare, split_cancelled
from toolrt.runtime._execution import execute, execute_again
from toolrt.runtime._host import share_of
from toolrt.runtime._interrupts import protected
from toolrt.runtime._lease import Lease, refuse_inside
from toolrt.runtime._policies import BatchPolicies
from toolrt.runtime._reader import Reader
from toolrt.runtime._telemetry import BatchTelemetry

__all__ = ["BatchRun", "Settings"]

# Looked up once: an attribute of an enumeration costs as much as a call.
_SETTLE, _SKIP, _EXECUTING = CallMove.SETTLE, CallMove.SKIP, Status.EXECUTING
_CLOSE, _SUBMIT = CallMove.CLOSE.leads, BatchMove.SUBMIT.leads


@attrs.frozen
class Settings:
    """What a runtime gives each of its batches."""

    registry: Registry
    policy: LanePolicy
    #: Which ready call takes the next slot; None: the lowest call_index.
    slots: SlotPolicy | None
    #: Whether one of the two is more than a function of tool and input.
    asks_policies: bool
    #: How many calls of one batch run at once; None is any number.
    limit: int | None
    approve: Approve | None
    #: Seconds of its own execution for a call whose tool names none; None is no limit.
    timeout: float | None
    #: The claim tables on which calls take tickets.
    tables: tuple[ClaimTable, ...]
    #: Which services hear what a lane changed, and the owner whose tools' calls count; None means all.
    hooks: tuple[tuple[Any, AfterLane], ...]
    #: What calls of a tool are given.
    services_of: Callable[[Tool | None], Services]
    #: The telemetry of a new batch, by its id and its calls; None: nothing observes the runtime.
    telemetry: Callable[[str, Sequence[CallRecord]], BatchTelemetry] | None
    #: Makes a batch inside a call.
    sub_batch: Callable[..., Batch]


class BatchRun:
    """The engine of one batch.

    Args:
        settings: of the runtime.
        state: what the first lane starts from.
        batch_id: names the batch.
        expected_reads: how many reads its author expects; fixes the read budget while the batch runs.
        listens: whether the batch will have a reader; if not, progress is dropped at once.
        events: whether that reader wants the events of toolrt's own tools.
        lease: what the call lends inside which it runs; None for a batch that is no sub-batch.
        path: its place among the sub-batches of its outermost batch: call_index, number of the sub-batch, and so on.
    """

    # Few batches are observed or cut short, so most defaults stand on the class.

    #: The batch's telemetry; None where there is none, or before the batch is entered.
    telemetry: BatchTelemetry | None = None
    #: What the batch gave; None while it is not over.
    outcome: BatchOutcome | None = None
    #: The call whose tool opened it, as a sub-batch or otherwise; None where none did.
    opener: CallRecord | None = None
    #: The cancel scope of the service (`Services.after_lane`) that runs now; None: none runs.
    hook_scope: trio.CancelScope | None = None
    #: Ctrl-C or an exit that came up in a call: it goes out when the batch is left.
    exit_asked: BaseException | None = None
    #: What its policies are asked, where they are not just a function of tool and input.
    policies: BatchPolicies | None = None
    _entered: bool = False
    _threads: trio.CapacityLimiter | None = None
    #: The way out of the block in which the batch is open, and its scope; None where there is no block.
    _manager: Any = None
    _block_scope: trio.CancelScope | None = None
    #: The nursery of the lane that runs, and whether the lane is beginning: then this is the batch's own context.
    _nursery: trio.Nursery | None = None
    _begins: bool = False
    _approval: Approval | None = None
    #: Set when the lane that runs is over, and when there is another lane or there will be none.
    _over: trio.Event | None = None
    _news: trio.Event | None = None

    def __init__(
        self,
        settings: Settings,
        state: State,
        batch_id: str,
        expected_reads: int,
        listens: bool,
        events: bool,
        lease: Lease | None,
        path: tuple[int, ...],
    ) -> None:
        self.settings = settings
        self.batch_id = batch_id
        self.lease = lease
        #: The state after the last lane that has ended.
        self.state = state
        #: The modifiers that lanes have applied, in order; kept for sub-batches alone.
        self.applied: list[Modifier] = []
        self.events = events
        self.registry = settings.registry
        self.services_of = settings.services_of
        self.timeout = settings.timeout
        budget = (state if type(state) is State else bare_state(state)).context_budget
        #: How many tokens one read may answer; None is any number.  Fixed here (RULES 23).
        self.read_budget = None if budget is None else share_of(budget, expected_reads)
        tables = settings.tables
        self.machine = Machine(
            batch_id,
            self,
            [(table, table if lease is None else lease.table(table)) for table in tables],
            # A sub-batch has no limit of its own, but the slots that its parent lends.
            math.inf if settings.limit is None or lease is not None else settings.limit,
            settings.approve is not None,
            settings.policy is not parallel,
            None if lease is None else lease.slot,
            path,
            settings.slots is not None,
        )
        if settings.asks_policies:
            self.policies = BatchPolicies(batch_id, settings.policy, settings.slots)
        self.records = self.machine.calls
        #: The Trio run that the batch belongs to.
        self.token = trio.lowlevel.current_trio_token()
        self.reader = Reader(self.machine, self.token, listens)
        #: Hands on a call's progress, or drops and counts it.
        self.send = self.reader.send
        #: The context variables at the place where the batch was opened: what every call of it sees.
        self.context = contextvars.copy_context()
        self._now = trio.current_time()
        # Of a sub-batch services hear with its parent's lane.
        self._tells = lease is None and bool(settings.hooks)

    @property
    def parent(self) -> CallRecord | None:
        """The call inside which it runs; None for a batch that is no sub-batch."""
        return None if self.lease is None else self.lease.call

    @property
    def hooks(self) -> tuple[tuple[Any, AfterLane], ...]:
        """Which services hear what a lane changed, and the owner whose tools' calls count; None means all."""
        return self.settings.hooks

    @property
    def limit(self) -> int | None:
        """How many calls run at once; of a sub-batch those of the batch around it count, too."""
        return self.settings.limit

    @property
    def cancel_reason(self) -> str | None:
        """Why the batch was cancelled; None while it is not."""
        return self.machine.cancel_reason

    @property
    def is_complete(self) -> bool:
        """Whether no further call will come that could start."""
        return self.machine.state is not BatchState.OPEN

    @property
    def thread_limiter(self) -> trio.CapacityLimiter:
        """The worker threads of this batch: as many as it has slots."""
        if self._threads is None:
            self._threads = trio.CapacityLimiter(math.inf if self.limit is None else self.limit)
        return self._threads

    def _refuse_other_run(self, action: str) -> None:
        if not trio.lowlevel.in_trio_run() or trio.lowlevel.current_trio_token() is not self.token:
            refuse_other_run(self.token, self.batch_id, action)

    # Submitting

    def submit(self, call: ToolCall) -> CallRecord:
        """Add a call: see `Batch.submit`."""
        self._refuse_other_run("submit a call")
        if not self._entered:
            raise BatchClosed(self.batch_id, "submit a call", "it is not entered: use it with async with")
        if self.machine.state is not BatchState.OPEN and self.machine.state is not BatchState.CANCELLED:
            raise BatchClosed(self.batch_id, "submit a call", "it was sealed")
        if not isinstance(call, ToolCall):
            raise DefinitionRefused("a call", "a toolrt.ToolCall", call)
        self._now = trio.current_time()
        return self._submit(call)

    def _submit(self, call: ToolCall) -> CallRecord:
        record = CallRecord(call, len(self.records), self.batch_id, self._now, self.records)
        if self.opener is not None:
            record.parent = self.opener
            if self.lease is not None:
                record.outermost = self.opener.outermost or self.opener
        self.machine.state = _SUBMIT[self.machine.state]
        self.records.append(record)
        try:
            self._place(record, call)
        except BaseException as error:  # noqa: ASYNC103  it is not async: no cancel comes up in it
            if record.result is not None or record.place is not None:
                raise
            if isinstance(error, Exception):
                what = f"a call whose name and input can be read (one raised {type(error).__name__})"
                self.settle(record, Outcome.INVALID, None, f"invalid call: expected {what}")
                return record  # noqa: ASYNC104
            # An exit in a function of the tool's author, or Ctrl-C there: as in the tool itself.
            self.abort(error)
            raise
        return record

    def _place(self, record: CallRecord, call: ToolCall) -> None:
        """Give the call its lane, or its answer."""
        if probe.implied is not None:
            _footprints.changes(self.batch_id)
        machine = self.machine
        tool = record.tool = self.registry.get(call.name)
        if observer.listens:
            submitted = CallSubmitted(self.batch_id, record.call_index, call.call_id, call.name, call.input)
            observer.tell(submitted, self.telemetry)
        record.input, arguments = decoded(call, tool, self.registry)
        if tool is not None and tool.stops_batch is not False:
            record.stops = tool.may_stop(record.input)
        if machine.stopped_by is not None or machine.cancel_reason is not None:
            machine.answer_late(record)
        elif isinstance(arguments, list):
            self.settle(record, Outcome.INVALID, None, invalid_call_text(call, arguments))
            if record.stops:
                machine.stop(record)
        elif tool is not None:
            record.arguments = arguments
            if self.policies is None:
                machine.place(record, shares_a_lane(self.settings.policy, tool, record.input))
            else:
                choice = self.policies.place(record)
                machine.place(record, choice is not LaneChoice.ALONE, choice is LaneChoice.OPEN)
            if observer.measures and not record.admitted and machine.is_behind_others(record):
                observer.tell(LaneAwaited(self.batch_id, record.call_index), self.telemetry)

    def seal(self) -> None:
        """Say that no further call will come: see `Batch.seal`."""
        if self.machine.state is BatchState.SEALED or self.machine.state is BatchState.ENDING:
            return
        self._refuse_other_run("be sealed")
        if self.outcome is None:
            self.machine.seal()
        self._wake_reader()

    # What tools, their authors and approval checks are asked

    def ask(self, lane: LaneRecord, call: CallRecord) -> None:
        """Find out what the call's claims look at, and what it claims."""
        if cast(Tool, call.tool).claims_after is not None:
            looked_at = self._looked_at_by(lane, call)
            if looked_at:
                self.machine.looks(lane, call, looked_at)
                return
        self.ask_claims(lane, call)

    def ask_claims(self, lane: LaneRecord, call: CallRecord) -> None:
        """Find out what the call claims."""
        if call.asked is None:
            claims = self._claims_of(lane, call)
        else:
            claims, call.asked, call.asks_again = call.asked, None, True
        self.machine.claimed(lane, call, claims, None if self.lease is None else self._uncovered(lane, call, claims))

    def ask_early(self, lane: LaneRecord, call: CallRecord) -> None:
        """Keep what the call claims now."""
        call.asked = self._claims_of(lane, call)

    def ask_late(self, lane: LaneRecord, call: CallRecord) -> None:
        """Find out what the call's claims look at, which stays as it is from now on."""
        try:
            if probe.implied is not None:
                _footprints.changes(self.batch_id)
                for ticket in call.tickets:
                    ticket.implies()
            self.machine.looks_now(lane, call, self._looked_at_by(lane, call))
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            self._exit_or_raise(error)

    def ask_now(self, lane: LaneRecord, call: CallRecord, looked_at: tuple[Claim, ...] | None) -> None:
        """Find out what the call claims, and what its claims look at if that is not known."""
        if looked_at is None:
            looked_at = self._looked_at_by(lane, call)
        claims = self._claims_of(lane, call)
        refused = None if self.lease is None else self._uncovered(lane, call, claims)
        self.machine.known(lane, call, claims, looked_at, refused)

    def ask_again(self, lane: LaneRecord, call: CallRecord) -> None:
        """Find out whether the call, which was granted after a wait, still claims what it holds."""
        try:
            missing = self.stale_claims(lane, call, refused=True)
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            self._exit_or_raise(error)
            return  # noqa: ASYNC104  the batch lets it out when it is left
        if not missing:
            self.machine.holds(lane, call)
            return
        if call.rewritten:
            holds = ", ".join(map(str, call.claims)) or "nothing"
            why = f"denied: the rewritten input claims {missing[0]}, the call holds {holds}"
            self.settle(call, Outcome.DENIED, None, why)
        else:
            self.settle(call, Outcome.ERROR, None, stale_claims_text(call.claims, missing[0]))
        self.machine.finish(lane, call)
        self.machine.failed(lane, call)

    def prefer(self, lane: LaneRecord, ready: list[CallRecord]) -> None:
        """Find out which ready call takes the next slot."""
        chosen = ready[0]
        try:
            if self.policies is not None:
                chosen = self.policies.prefer(ready, not self.is_complete)
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            self._exit_or_raise(error)
        finally:
            self.machine.preferred(lane, chosen)

    def _claims_of(self, lane: LaneRecord, call: CallRecord) -> tuple[Claim, ...]:
        return claims_of(cast(Tool, call.tool), call.input, lane.bare, lane.shared)

    def _looked_at_by(self, lane: LaneRecord, call: CallRecord) -> tuple[Claim, ...]:
        return looked_at_by(cast(Tool, call.tool), call.input, lane.bare, lane.shared)

    def _uncovered(self, lane: LaneRecord, call: CallRecord, claims: tuple[Claim, ...]) -> str | None:
        """Why a child may not have these claims; None if its parent covers them."""
        tool = cast(Tool, call.tool)
        touched = call.allowed = touched_by(tool, call.input, lane.bare)
        wanted = self.machine.admission.by_owner(tool.owner, claims if touched is None else touched)
        return cast(Lease, self.lease).refusal(wanted)

    def stale_claims(self, lane: LaneRecord, call: CallRecord, refused: bool) -> list[Claim]:
        """What the call would claim now and does not hold; a recorder hears of it, and what its claims look at.

        Args:
            refused: whether the call is not run because of it.
        """
        held = (*call.claims, *call.after)
        if probe.sink is None:
            claims = self._claims_of(lane, call)
            return [claim for claim in claims if not covers(held, claim)]
        with probe.looking() as looked_at:
            claims = self._claims_of(lane, call)
        missing = [claim for claim in claims if not covers(held, claim)]
        if missing:
            holds, claims_now = list(map(str, held)), list(map(str, missing))
            reads = list(map(list, looked_at))
            observer.tell(ClaimsStale(call.batch_id, call.call_index, refused, holds, claims_now, reads))
        return missing

    def approve(self, lane: LaneRecord, call: CallRecord) -> None:
        """Ask the approval check."""
        if self._approval is None or self._approval.lane is not lane:
            self._approval = Approval(self, lane, cast(Approve, self.settings.approve))
        self._approval.ask(call)

    def _exit_or_raise(self, error: BaseException) -> None:
        """Ctrl-C or an exit while a tool was asked what it claims: the batch lets it out when it is left."""
        exit_asked = asks_to_exit(error)
        if exit_asked is None:
            raise error
        self.abort(exit_asked)

    def decide(self, lane: LaneRecord, call: CallRecord) -> None:
        """Fix the result of a call whose earlier calls have theirs: what it returned, or that it is stale."""
        output = cast(ToolOutput, call.undecided)
        before = lane.start if lane.so_far is None else lane.so_far
        stale = None
        try:
            call.merged = applied(call.modifiers, before, call.tool)
        except BaseException as error:  # noqa: ASYNC103  a modifier asks to exit: it goes out when the batch is left
            lane.given_up = True
            self.abort(error)
        else:
            if call.reads is not None:
                stale = stale_part(call.merged, call.reads, lane.start if call.saw is None else call.saw)
        if stale is None:
            self.fix_result(call, output)
            return
        earlier = ((one.call_index, one.name, one.merged) for one in lane.calls[: lane.decided])
        text = stale_text(stale, lane.start, earlier)
        if cast(Tool, call.tool).pure and self.cancel_reason is None:
            self.machine.repeat(lane, call, before, text)
            return
        if observer.records and call.merged is not None:
            sets = frozenset(part for modifier in call.merged.modifiers for part in modifier.sets)
            [part] = parts_json([stale])
            observer.tell(ModifiersRefused(call.batch_id, call.call_index, lane.index, part, parts_json(sets)))
        call.modifiers, call.merged = (), None
        lane.modified.remove(call)
        self.settle(call, Outcome.ERROR, None, text)
        if call.stops:
            self.machine.stop(call)

    # Results

    def settle(
        self, call: CallRecord, outcome: Outcome, content: Any, error: str | None, event: CallMove = _SETTLE
    ) -> None:
        """Fix the call's result: its `outcome`, the `content` or the `error`; `event` is `SETTLE` or `SKIP`."""
        call.state = event.leads[call.state]
        if event is _SKIP:
            call.modifiers = ()
        if probe.implied is not None:
            _footprints.settles(call)
        asked = call.call
        call.result = ToolResult(
            asked.call_id, call.call_index, asked.name, outcome, content, error, call.progress_dropped
        )
        if observer.listens:
            reads = None if call.reads is None else parts_json(call.reads.parts)
            modifiers = len(call.modifiers)
            settled = CallSettled(self.batch_id, call.call_index, outcome.value, content, error, modifiers, reads)
            observer.tell(settled, self.telemetry)
        self._wake_reader()

    def answer(self, call: CallRecord, outcome: Outcome, why: str, event: CallMove) -> None:
        """Fix the result of a call that the machine answers."""
        self.settle(call, outcome, None, why, event)

    def fix_result(self, call: CallRecord, output: ToolOutput) -> None:
        """Fix the result of a call that returned `output`."""
        outcome = Outcome.OK if output.error is None else Outcome.ERROR
        self.settle(call, outcome, output.content, output.error)
        if output.error is not None and call.stops:
            self.machine.stop(call)

    # What the machine lets happen

    def spawn(self, lane: LaneRecord, call: CallRecord) -> None:
        """Make the call a task.

        The event that spawns it may come from another batch, so the task gets the batch's own context.
        """
        nursery = cast(trio.Nursery, self._nursery)
        run = execute if call.state is CallState.SPAWNED else execute_again
        if self._begins:
            nursery.start_soon(run, self, lane, call, name=call.call.name)
        else:
            self.context.run(nursery.start_soon, run, self, lane, call, name=call.call.name)  # type: ignore[arg-type]

    def interrupt(self, call: CallRecord) -> None:
        """Cancel the call alone: its tool, or the approval check that it waits for."""
        if call.scope is not None:
            call.scope.cancel()

    def interrupt_children(self, call: CallRecord, why: str) -> None:
        """Cancel the call's sub-batches, unless the call may finish what it does."""
        if call.inside is not None:
            call.inside.cancel_with_parent(why)

    def interrupt_lane(self, lane: LaneRecord) -> None:
        """Cancel everything that runs in the lane."""
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def wake(self) -> None:
        """Let the driving task look again, if what it waits for is so."""
        machine = self.machine
        if self._over is not None and machine.lanes[machine.current].is_over:
            self._over.set()
        if self._news is not None and (machine.current + 1 < len(machine.lanes) or self.is_complete):
            self._news.set()

    def _wake_reader(self) -> None:
        """Let the reader look for an update, if it waits for one."""
        if self.reader.news is not None:
            self.reader.news.set()

    # Cut short

    def cancel_by_user(self, reason: str) -> None:
        """Cancel the batch: see `Batch.cancel`."""
        if not isinstance(reason, str):
            raise DefinitionRefused("a cancel's reason", "a string", reason)
        self._refuse_other_run("be cancelled")
        self.cancel(reason, outside=False)

    def cancel(self, reason: str, outside: bool) -> None:
        """Let nothing start any more, and interrupt what runs; a batch that is cancelled or over stays as it is.

        Args:
            reason: what the calls that it reaches say of it.
            outside: whether it came from around the batch: an enclosing scope, or a sub-batch's parent.
        """
        if self.cancel_reason is not None or self.outcome is not None:
            return
        self.machine.cancel(reason, outside)
        if self.hook_scope is not None:
            self.hook_scope.cancel()
        self._wake_reader()

    def cancelled_from_outside(self) -> None:
        """Take note that an enclosing scope was cancelled, if one was."""
        if self.cancel_reason is None and trio.current_effective_deadline() == -math.inf:
            self.cancel("the caller's scope was cancelled", outside=True)

    def give_up(self, error: BaseException) -> None:
        """Cancel the batch because `error` came up where it is driven."""
        self.cancelled_from_outside()
        self.cancel(f"{type(error).__name__} where the batch is driven", outside=True)

    def abort(self, error: BaseException) -> None:
        """Ctrl-C or an exit came up in a call: cancel the batch, and let `error` out when it is left."""
        if self.exit_asked is None:
            self.exit_asked = error
        self.cancel(f"{type(error).__name__} in a call", outside=False)
        if self._block_scope is not None:
            self._block_scope.cancel()

    # Driving

    @protected
    async def drive(self) -> None:
        """Run lane after lane until the batch is sealed or cancelled and nothing runs any more.

        Checkpoint: always.
        """
        machine = self.machine
        try:
            while machine.current + 1 < len(machine.lanes) or await self._wait_lane():
                try:
                    if machine.cancel_reason is None:
                        await self._run_lane()
                    else:
                        machine.pass_over(self.state)
                except BaseException as error:
                    self.give_up(error)
                    lane = self._merge()
                    if self._tells and not isinstance(error, GeneratorExit):
                        await tell_services(self, lane)  # noqa: ASYNC102  cut short: the batch is cancelled
                    raise
                lane = self._merge()
                if self._tells:
                    try:
                        await tell_services(self, lane)
                    except BaseException as error:
                        self.give_up(error)
                        raise
        finally:
            while machine.current + 1 < len(machine.lanes):
                machine.pass_over(self.state)
                self._merge()
            if self.lease is not None:
                self.lease.ended(self)

    async def _wait_lane(self) -> bool:
        """Wait until there is another lane; False if there will be none."""
        machine = self.machine
        while machine.current + 1 == len(machine.lanes):
            if machine.state is not BatchState.OPEN:
                return False
            self._news = trio.Event()
            try:
                await self._news.wait()
            except BaseException as error:
                self.give_up(error)
                raise
            finally:
                self._news = None
        return True

    async def _run_lane(self) -> None:
        """Run the next lane until all its calls have ended and it is closed.

        Checkpoint: always.
        """
        machine = self.machine
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            # A child may wait for a slot that no call of its own batch holds.
            alone = self.lease is None
            for table in self.settings.tables if alone else ():
                alone = alone and not table.busy
            try:
                self._begins = True
                try:
                    machine.begin(self.state)
                finally:
                    self._begins = False
                lane = machine.lanes[machine.current]
                by_itself = alone and lane.state is LaneState.CLOSED and lane.stands_at is None
                if not by_itself and not lane.is_over:
                    # Only calls of this lane keep the nursery open by themselves: wait here for those that are
                    # still to come, or that wait for another batch.
                    self._over = trio.Event()
                    await self._over.wait()
            except BaseException as error:
                # While the nursery is still open: what waits must be answered, and its tickets given back,
                # before another batch can grant them to a nursery that has closed.
                self.give_up(error)
                raise
            finally:
                self._over = None
        self._nursery = None

    def _merge(self) -> LaneRecord:
        """Apply the modifiers of the lane that has ended, or will never start; gives the lane."""
        machine = self.machine
        lane = machine.lanes[machine.current]
        if probe.implied is not None:
            own_code = not lane.modified and not self._tells and self.lease is None
            _footprints.merges(self.batch_id, lane, own_code)
        try:
            self._apply(lane)
        except (KeyboardInterrupt, SystemExit) as error:
            # In a modifier: none of the lane's modifiers is applied.
            lane.given_up = True
            self._apply(lane)
            self.abort(error)
        machine.merged(lane, self.state)
        if self.lease is not None:
            self.lease.note_changes(machine.path, lane)
        if observer.listens:
            merge: Any = lane.merge
            rejected = [(one.call_index, one.position) for one in merge.rejected]
            told = LaneMerged(self.batch_id, lane.index, bare_state(self.state), merge.applied, rejected)
            observer.tell(told, self.telemetry)
        self._wake_reader()
        return lane

    def _apply(self, lane: LaneRecord) -> None:
        if lane.given_up:
            lane.modified = []
        if not lane.modified:
            return
        lane.told = merged(lane.index, self.state, lane.modified)
        self.state = lane.told.state
        if self.lease is not None:
            self.applied += [self.records[call].modifiers[position] for call, position in lane.told.applied]
        for call in lane.modified:
            call.modifiers = ()
            call.merged = None
        lane.modified = []

    # Sub-batches

    def sub_batch(
        self,
        call: CallRecord,
        state: State,
        registry: Registry | None,
        batch_id: str | None,
        reads: int | list[ToolCall],
        events: bool | None,
    ) -> Batch:
        """A batch inside the call: see `ToolContext.open_batch`."""
        lease: Lease | None = call.inside
        if lease is None:
            lane = self.machine.lanes[call.lane or 0]
            lease = Lease(call, self.machine, lane, self.lease, self.token)
            lease.refuse_if_over()
            call.inside = lease
        lease.refuse_if_over()
        return self.settings.sub_batch(lease, state, registry, batch_id, reads, events)

    # Entering and leaving

    def _enter(self) -> None:
        """Let the batch begin, or refuse it and change nothing; what comes after this has to end in `close`."""
        self._refuse_other_run("be entered")
        if self._entered:
            raise BatchClosed(self.batch_id, "be entered", "it was entered before: open another one")
        if self.lease is not None:
            self.lease.entered(self, self.batch_id)
            self.opener = self.lease.call
        else:
            self.opener = RUNNING_CALL.get()
            if self.opener is not None:
                refuse_inside(self.opener, self.batch_id, self.settings.tables)
            with TABLES_LOCK:
                taken = enter_tables(self.settings.tables, self.token, is_over)
            if taken is not None:
                refuse_shared_table(self.batch_id, taken.name)
        if self.opener is not None:
            self.opener.opened += (self,)
        self._entered = True

    def _begin(self) -> None:
        """Tell that the batch is open."""
        settings = self.settings
        if settings.telemetry is not None:
            self.telemetry = self.machine.telemetry = settings.telemetry(self.batch_id, self.records)
            observer.measure_with(self.telemetry)
        if observer.listens:
            parent = None if self.lease is None else [self.lease.call.batch_id, self.lease.call.call_index]
            slots = None if settings.slots is None else policy_name(settings.slots)
            opened = BatchOpened(
                self.batch_id,
                policy_name(settings.policy),
                settings.limit,
                parent,
                bare_state(self.state),
                gives_up(settings.policy),
                slots,
            )
            observer.tell(opened, self.telemetry)
        if self.lease is not None and self.lease.is_cancelled:
            self.lease.cancel("was cancelled")

    async def run(self, calls: Sequence[ToolCall]) -> BatchOutcome:
        """Run all of `calls` in the caller's task: see `Runtime.run`."""
        for call in calls:
            if not isinstance(call, ToolCall):
                raise DefinitionRefused("a call", "a toolrt.ToolCall", call)
        self._enter()
        try:
            self._begin()
            for call in calls:
                self._submit(call)
            self.seal()
            if self.machine.lanes:
                await self.drive()
            else:
                await trio.lowlevel.checkpoint()
        except GeneratorExit:
            raise  # the whole Trio run is torn down: there is nothing left to answer to
        except BaseException as error:
            self.give_up(error)
            self.close()
            raise (self.exit_asked or bare(error)) from None  # noqa: ASYNC104  the Cancelled itself, out of its group
        self.close()
        if self.exit_asked is not None:
            raise self.exit_asked
        if self.cancel_reason is not None:
            await trio.lowlevel.checkpoint_if_cancelled()
        if self.policies is not None:
            self.policies.raise_refused(self.outcome)
        return cast(BatchOutcome, self.outcome)

    async def enter(self) -> None:
        """Open the batch: see `Batch.__aenter__`."""
        self._enter()
        try:
            self._begin()
        except BaseException as error:
            self.give_up(error)
            self.close()
            raise
        self._manager = trio.open_nursery()
        nursery: trio.Nursery = await self._manager.__aenter__()
        self._block_scope = nursery.cancel_scope
        nursery.start_soon(self.drive, name=f"batch {self.batch_id}")

    async def leave(self, error: BaseException | None) -> None:
        """Leave the block, which `error` ended, if one did: see `Batch`."""
        if not isinstance(error, GeneratorExit):  # that one comes where the whole Trio run is torn down
            self._refuse_other_run("be left")
            if RUNNING_CALL.get() is not None:
                refuse_own_tools(self.records, self.batch_id, "be left")
        if error is None:
            self.seal()
        else:
            self.cancelled_from_outside()
            self.cancel(f"its block was left by {type(error).__name__}", outside=False)
        raised: BaseException | None = None
        try:
            await self._manager.__aexit__(None, None, None)  # noqa: ASYNC102  it is the nursery's own exit
        except GeneratorExit:
            raise
        except BaseException as unwinding:  # noqa: ASYNC103  re-raised once the outcome is fixed
            raised = unwinding
        self.close()
        # What goes out, if several things would: Ctrl-C or an exit in a call; what came up while leaving, a
        # cancellation apart; the block's own exception, as it is; a cancellation from outside.
        if self.exit_asked is not None and asks_to_exit(error) is None:
            raise self.exit_asked
        if raised is not None and (error is None or split_cancelled(raised)[1] is not None):
            raise bare(raised) from None
        if error is None and self.policies is not None:
            self.policies.raise_refused(self.outcome)

    def close(self) -> None:
        """Fix the outcome; nothing of the batch runs any more."""
        if probe.implied is not None:
            _footprints.stops(self.batch_id, self.records)
        if self.opener is not None:
            self.opener.opened = tuple(other for other in self.opener.opened if other is not self)
        if self.lease is not None:
            self.lease.ended(self)
        else:
            with TABLES_LOCK:
                leave_tables(self.settings.tables, self.token)
        if self.reader.unread:
            self.reader.drop_unread()
        results = []
        tickets: list[Ticket] = []
        for call in self.records:
            tickets += call.tickets
            if call.result is None:
                # Ctrl-C came up in the very submission of the call.
                self.machine.answer_not_started(call)
            result = cast(ToolResult, call.result)
            if result.progress_dropped != call.progress_dropped:
                result = call.result = attrs.evolve(result, progress_dropped=call.progress_dropped)
            call.state = _CLOSE[call.state]
            results.append(result)
        kept = [ticket for ticket in tickets if not ticket.released]
        if kept:
            # An exception in the bookkeeping kept them from going back: the next batch must not wait for them.
            give_back(kept, lambda call: cast(int, call.call_index))
        machine, state = self.machine, self.state
        machine.happen(BatchMove.LEAVE)
        self.outcome = BatchOutcome(tuple(results), state, tuple(self.applied))
        if observer.listens:
            left = {
                "tasks": sum(lane.unfinished for lane in machine.lanes),
                "tickets": len(tickets),
                "slots": sum(lane.running for lane in machine.lanes),
                "progress": len(self.reader.unread),
            }
            dropped = [call.progress_dropped for call in self.records]
            observer.tell(BatchLeft(self.batch_id, results, bare_state(state), left, dropped), self.telemetry)
        if self.telemetry is not None:
            observer.stop_measuring(self.telemetry)
        self._wake_reader()

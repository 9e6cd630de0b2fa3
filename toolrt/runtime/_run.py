"""Runs one batch: tells the machine what happened, and carries out its instructions on Trio.

Rules.
    1. The machine (`toolrt.order.Machine`) decides.  This module awaits, spawns, cancels, asks tools, builds results.
    2. Lanes run one after the other; at a lane's end its modifiers are merged and the next lane starts from the state
       they leave: in the step in which a lane of one call ends if the next has one call, too, else in the task that
       drives the batch.  Every lane ends in one merge, also one that a cancel kept from starting.
    3. Ctrl-C or an exit in a call cancels the batch, ends its block, and goes out when the batch is left.
    4. The outcome is fixed once, when nothing of the batch runs any more, and it answers every call.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
import warnings
from collections.abc import Hashable
from typing import Any, cast

import attrs
import trio

from toolrt import probe
from toolrt._plain import counted
from toolrt.errors import BatchClosed, DefinitionRefused, UndeclaredWarning, asks_to_exit
from toolrt.events import (
    BatchLeft,
    BatchOpened,
    CallSettled,
    CallSubmitted,
    LaneAwaited,
    LaneMerged,
    observer,
)
from toolrt.model import (
    Approve,
    BatchOutcome,
    Modifier,
    Outcome,
    Registry,
    ResultReady,
    State,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
)
from toolrt.model._bounded import bounded
from toolrt.model._invalid_call import invalid_call_text
from toolrt.model._read_result import read_result
from toolrt.model._tool import decoded
from toolrt.model._watched_state import bare_state, parts_json
from toolrt.order import (
    BatchMove,
    BatchState,
    CallMove,
    CallRecord,
    CallState,
    Holds,
    LaneChoice,
    LaneRecord,
    LaneState,
    Machine,
    Status,
    Ticket,
    _footprints,
    enter_tables,
    give_back,
    gives_up,
    leave_tables,
    merged,
    parallel,
    policy_name,
    shares_a_lane,
)
from toolrt.runtime._after_lane import tell_services
from toolrt.runtime._alarm import Alarm
from toolrt.runtime._approval import Approval
from toolrt.runtime._batch import Batch, Listener
from toolrt.runtime._caller import RUNNING_CALL, TABLES_LOCK, is_over, refuse_other_run, refuse_shared_table
from toolrt.runtime._execution import execute
from toolrt.runtime._host import share_of
from toolrt.runtime._interrupts import protected
from toolrt.runtime._lease import Lease, lease_of, refuse_inside
from toolrt.runtime._owner_turn import OwnerTurn
from toolrt.runtime._policies import BatchPolicies
from toolrt.runtime._questions import ToolQuestions
from toolrt.runtime._reader import Reader
from toolrt.runtime._settings import Settings
from toolrt.runtime._telemetry import BatchTelemetry

# Looked up once: an attribute of an enumeration costs as much as a call.
_SETTLE, _SKIP, _EXECUTING = CallMove.SETTLE, CallMove.SKIP, Status.EXECUTING
_CLOSE, _SUBMIT, _LEAVE = CallMove.CLOSE.leads, BatchMove.SUBMIT.leads, BatchMove.LEAVE.leads


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
        owner: whose batch it is; None: it has no owner.
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
    #: Whether it was entered: then its end has to come in `close`.
    entered: bool = False
    #: Seconds from then until it is cancelled; None: it has no deadline.
    deadline: float | None = None
    _entered_at: float = 0.0
    _threads: trio.CapacityLimiter | None = None
    #: The way out of the block in which the batch is open, and its scope; None where there is no block.
    block: Any = None
    block_scope: trio.CancelScope | None = None
    #: The nursery of the lane that runs.
    _nursery: trio.Nursery | None = None
    _approval: Approval | None = None
    #: The task that waits until the lane that runs is over; None: none does.
    _driver: trio.lowlevel.Task | None = None
    #: Whether the next lane is begun now, in the step in which the one before it ended.
    _advances: bool = False
    #: Set when there is another lane or there will be none.
    _news: trio.Event | None = None
    #: The turns of its lanes among those of its owner's batches; None before the first.
    _turn: OwnerTurn | None = None
    #: What lets calls start that wait for a rate; None before the first that waits.
    _alarm: Alarm | None = None

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
        owner: Hashable | None = None,
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
        self.hooks = settings.hooks
        self.limit, self.timeout = settings.limit, settings.timeout
        self.max_result = settings.max_result if lease is None else None
        #: Whether a model can read on in results that are too long.
        self.reads_on = lease is None and settings.registry.get(read_result.name) is read_result
        budget = (state if type(state) is State else bare_state(state)).context_budget
        #: How many tokens one read may answer; None is any number.  Fixed here (RULES 23).
        self.read_budget = None if budget is None else share_of(budget, expected_reads)
        if settings.asks_policies:
            self.policies = BatchPolicies(batch_id, settings.policy, settings.slots)
        self.questions = ToolQuestions(self, lease, self.policies, settings.tables)
        limits = settings.limits
        #: What belongs to one Trio run at a time: the claim tables, and limits that are shared.
        self._tenures = settings.tables if limits is None else (*settings.tables, limits._tenure)
        self.machine = Machine(
            batch_id,
            self,
            self.questions,
            settings.tables,
            # A sub-batch has no limit of its own, but the slots that its parent lends.
            limit=math.inf if settings.limit is None or lease is not None else settings.limit,
            approves=settings.approve is not None,
            apart=settings.policy is not parallel,
            lent=None if lease is None else lease.slot,
            path=path,
            prefers=settings.slots is not None,
            limits=None if lease is not None else limits,
            rates=None if limits is None else limits._rates,
            inside=None if lease is None else tuple(map(lease.table, settings.tables)),
        )
        if lease is not None and lease.lends_unheld:
            self.machine.admission.order_outside()
        self.records = self.machine.calls
        self.records.owner = owner
        self.records.cancel = self.cancel_call
        #: The Trio run that the batch belongs to.
        self.token = trio.lowlevel.current_trio_token()
        #: Gives the time.  A simulation has to see that the time is asked for; else one call is enough, and not three.
        self.now = trio.current_time if probe.threads_inline else trio.lowlevel.current_clock().current_time
        self.reader = Reader(self.machine, self.token, listens)
        #: Hands on a call's progress, or drops and counts it.
        self.send = self.reader.send
        #: The context variables at the place where the batch was opened: what every call of it sees.
        self.context = contextvars.copy_context()
        # Of a sub-batch services hear with its parent's lane.
        self._tells = lease is None and bool(settings.hooks)
        # No service, no approval check and no turn among batches of one owner comes between two lanes.
        self._merges_at_once = not self._tells and settings.approve is None and owner is None

    @property
    def cancel_reason(self) -> str | None:
        """Why the batch was cancelled; None while it is not."""
        return self.machine.cancel_reason

    @property
    def thread_limiter(self) -> trio.CapacityLimiter:
        """The worker threads of this batch: as many as it has slots."""
        if self._threads is None:
            self._threads = trio.CapacityLimiter(math.inf if self.limit is None else self.limit)
        return self._threads

    def refuse_other_run(self, action: str) -> None:
        if not trio.lowlevel.in_trio_run() or trio.lowlevel.current_trio_token() is not self.token:
            refuse_other_run(self.token, self.batch_id, action)

    # Submitting

    def add(self, call: ToolCall, now: float, listener: Listener | None = None) -> CallRecord:
        """Add a call that was submitted at the instant `now`: its slot and its lane are fixed when this returns."""
        record = CallRecord(call, len(self.records), self.batch_id, now, self.records)
        record.max_result = self.max_result
        if listener is not None:
            record.listener = listener
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
        machine, journal = self.machine, self.records.journal
        tool = record.tool = self.registry.get(call.name)
        if observer.listens:
            asked = record.call_index, call.call_id, call.name, call.input
            observer.tell(CallSubmitted(self.batch_id, *asked), self.telemetry)
        record.input, arguments = decoded(call, tool, self.registry)
        if tool is not None and tool.stops_batch is not False:
            record.stops = tool.may_stop(record.input)
        if tool is not None and tool.max_result is not None:
            record.max_result = tool.max_result
        refusal = None
        if tool is not None and machine.limits is not None and not isinstance(arguments, list):
            refusal = machine.limits.use(self.records.owner, call.name)
        unkept = None
        if journal is not None:
            unkept = journal.submitted(record)
            record.is_known = journal.knows(record)
        if machine.stopped_by is not None or machine.cancel_reason is not None:
            machine.answer_late(record)
        elif unkept is not None:
            self.settle(record, Outcome.ERROR, None, unkept)
        elif isinstance(arguments, list):
            self.settle(record, Outcome.INVALID, None, invalid_call_text(call, arguments))
            if record.stops:
                machine.stop(record)
        elif refusal is not None:
            self.settle(record, Outcome.DENIED, None, refusal)
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
        if self.machine.state in (BatchState.SEALED, BatchState.ENDING):
            return
        self.refuse_other_run("be sealed")
        if self.outcome is None:
            self.machine.seal()
        self._wake_reader()

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
        self.amend(call, outcome, content, error)
        if call.listener is not None:
            call.listener(ResultReady(cast(ToolResult, call.result)))
        if self.reader.news is not None:
            self.reader.news.set()

    def amend(self, call: CallRecord, outcome: Outcome, content: Any, error: str | None) -> None:
        """Write the call's result, perhaps in place of one that nothing has seen: its thread has ended since."""
        asked, most = call.call, call.max_result
        if most is not None:
            if content is not None and (type(content) is not str or len(content) > most):
                content = bounded(content, most)
            if error is not None:
                error = bounded(error, most)
        call.result = ToolResult(
            asked.call_id, call.call_index, asked.name, outcome, content, error, call.progress_dropped
        )
        if observer.listens:
            reads = None if call.reads is None else parts_json(call.reads.parts)
            about = outcome.value, content, error, len(call.modifiers), reads
            observer.tell(CallSettled(self.batch_id, call.call_index, *about), self.telemetry)

    def answer(self, call: CallRecord, outcome: Outcome, why: str, event: CallMove) -> None:
        """Fix the result of a call that the machine answers."""
        self.settle(call, outcome, None, why, event)

    def fix_result(self, call: CallRecord, output: ToolOutput) -> None:
        """Fix the result of a call that returned `output`."""
        self.settle(call, Outcome.OK if output.error is None else Outcome.ERROR, output.content, output.error)
        if output.error is not None and call.stops:
            self.machine.stop(call)

    # What the machine lets happen

    def spawn(self, lane: LaneRecord, calls: list[CallRecord]) -> None:
        """Make the calls tasks, in the batch's own context: the event that spawns them may come from another batch."""
        nursery: Any = self._nursery
        for call in calls:
            self.context.run(nursery.start_soon, execute, self, lane, call, name=call.call.name)

    def approve(self, lane: LaneRecord, call: CallRecord) -> None:
        """Ask the approval check."""
        if self._approval is None or self._approval.lane is not lane:
            self._approval = Approval(self, lane, cast(Approve, self.settings.approve))
        self._approval.ask(call)

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
        is_over = (self._driver is not None or self._alarm is not None) and machine.lanes[machine.current].is_over
        if is_over and self._alarm is not None:
            self._alarm.end()
        if is_over and self._driver is not None and not self._advances:
            self._advance()
        if self._news is not None and (machine.current + 1 < len(machine.lanes) or machine.is_complete):
            self._news.set()

    def _advance(self) -> None:
        """The lane that runs is over: begin the next one if both have one call, else let the driving task go on.

        So a call that runs alone starts in the pass of Trio's loop after the one in which that before it ends, as the
        calls of one lane do that wait for each other.
        """
        machine = self.machine
        self._advances = True
        try:
            while machine.cancel_reason is None and self._goes_on_after_next():
                self._merge(own_step=False)
                machine.begin(self.state, own_step=False)
                if not machine.lanes[machine.current].is_over:
                    return
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            self.exit_or_raise(error)
        finally:
            self._advances = False
        driver, self._driver = self._driver, None
        if driver is not None:
            trio.lowlevel.reschedule(driver)

    def wake_at(self, lane: LaneRecord, instant: float) -> None:
        """Let ready calls of `lane` look again at this `instant`, when a rate lets one start."""
        if self._alarm is None:
            self._alarm = Alarm(self.context)
        self._alarm.set(self._nursery, instant, functools.partial(self.machine.dispatch, lane))

    def _wake_reader(self) -> None:
        """Let the reader look for an update, if it waits for one."""
        if self.reader.news is not None:
            self.reader.news.set()

    # Cut short

    def cancel(self, reason: str, outside: bool) -> None:
        """Let nothing start any more, and interrupt what runs; a batch that is cancelled or over stays as it is.

        Args:
            reason: what the calls that it reaches say of it.
            outside: whether it came from around the batch: an enclosing scope, or a sub-batch's parent.
        """
        if self.cancel_reason is not None or self.outcome is not None:
            return
        self.machine.cancel(reason, outside)
        if self._turn is not None:
            self._turn.wait_no_more()
        if self.hook_scope is not None:
            self.hook_scope.cancel()
        self._wake_reader()

    @protected
    def cancel_call(self, call_index: int, reason: str) -> bool:
        """Cancel one call: see `Batch.cancel_call`."""
        if not isinstance(reason, str):
            raise DefinitionRefused("a cancel's reason", "a string", reason)
        if type(call_index) is not int or not 0 <= call_index < len(self.records):
            expected = f"the call_index of one of its {counted(len(self.records), 'call')}"
            raise DefinitionRefused(f"batch {self.batch_id}: a cancel of one call", expected, call_index)
        self.refuse_other_run("have a call cancelled")
        call = self.records[call_index]
        if call.state is CallState.RUNNING and self.block is None and cast(Tool, call.tool).interrupt != "finish":
            why = "its calls cannot be told apart: open it with open_batch, in place of run"
            raise BatchClosed(self.batch_id, f"cancel call {call_index}, which runs", why)
        changed = self.machine.cancel_call(call, reason)
        if changed and self.records.journal is not None:
            self.records.journal.cancelled(call)
        self._wake_reader()
        return changed

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
        if self.block_scope is not None:
            self.block_scope.cancel()

    def exit_or_raise(self, error: BaseException) -> None:
        """The same for an `error` of a function of an author's, if it is Ctrl-C or asks to exit; else raise it."""
        exit_asked = asks_to_exit(error)
        if exit_asked is None:
            raise error
        self.abort(exit_asked)

    # Driving

    @protected
    async def drive_in_time(self) -> None:
        """The same as `drive`, and cancel the batch when its deadline comes.

        Checkpoint: always.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._expire, name="deadline")
            await self.drive()
            nursery.cancel_scope.cancel()

    @protected
    async def _expire(self) -> None:
        await trio.sleep_until(self._entered_at + cast(float, self.deadline))
        self.cancel(f"its deadline of {self.deadline:g} s had passed", outside=False)

    @protected
    async def drive(self) -> None:
        """Run lane after lane until the batch is sealed or cancelled and nothing runs any more.

        Checkpoint: always.
        """
        machine = self.machine
        try:
            while machine.current + 1 < len(machine.lanes) or await self._wait_lane():
                if machine.admission.owned and machine.cancel_reason is None:
                    await self._wait_turn(machine.lanes[machine.current + 1])
                try:
                    if machine.cancel_reason is None:
                        await self._run_lanes()
                    else:
                        machine.pass_over(self.state)
                except BaseException as error:
                    self.give_up(error)
                    lane = self._merge()
                    if self._tells and not isinstance(error, GeneratorExit):
                        await tell_services(self, lane)  # noqa: ASYNC102  cut short: the batch is cancelled
                    raise
                lane = self._merge()
                self._give_turn()
                if self._tells:
                    try:
                        await tell_services(self, lane)
                    except BaseException as error:
                        self.give_up(error)
                        raise
        finally:
            self._give_turn()
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

    async def _wait_turn(self, lane: LaneRecord) -> None:
        """Wait until the `lane` may run beside those of its owner's other batches, or the batch is cancelled.

        Checkpoint: if it has to wait.
        """
        if self._turn is None:
            self._turn = OwnerTurn(self.records, self.settings.tables)
        try:
            await self._turn.wait(lane, self.state)
        except BaseException as error:
            self.give_up(error)
            raise

    def _give_turn(self) -> None:
        if self._turn is not None:
            self._turn.give_back()

    async def _run_lanes(self) -> None:
        """Run the next lane until all its calls have ended and it is closed; all but its merge.

        Lanes of one call that come before it run and merge in the same nursery, because opening one costs more than a
        call, and the end of each begins the next (`_advance`).  A lane of more calls ends with its nursery: that is how
        an explorer knows that all of them come before the merge.

        Checkpoint: always.
        """
        machine, lanes = self.machine, self.machine.lanes
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                is_cancelled = False
                while not is_cancelled and self._goes_on_after_next():
                    machine.begin(self.state)
                    if lanes[machine.current].is_over:
                        await trio.lowlevel.cancel_shielded_checkpoint()
                    else:
                        await self._wait_over()
                    if machine.cancel_reason is None:
                        self._merge()
                    is_cancelled = machine.cancel_reason is not None
                if not is_cancelled:
                    await self._begin_lane()
            except BaseException as error:
                # While the nursery is still open: what waits must be answered, and its tickets given back,
                # before another batch can grant them to a nursery that has closed.
                self.give_up(error)
                raise
        self._nursery = None

    async def _begin_lane(self) -> None:
        """Begin the next lane, and wait here for what does not keep the nursery open by itself.

        Checkpoint: if it waits.
        """
        # A child may wait for a slot that no call of its batch holds, any call for a ticket of another batch, or for a
        # limit that it shares.  While an approval check thinks, another batch may take such a ticket.
        alone = self.lease is None and self.machine.limits is None and self.settings.approve is None
        for table in self.settings.tables if alone else ():
            alone = alone and not table.busy
        self.machine.begin(self.state)
        lane = self.machine.lanes[self.machine.current]
        by_itself = alone and lane.state is LaneState.CLOSED and lane.stands_at is None
        if not by_itself and not lane.is_over:
            # Calls of this lane that are still to come, or that wait for another batch.
            await self._wait_over()

    def _goes_on_after_next(self) -> bool:
        """Whether the next lane has one call, and the batch goes on to another lane as soon as that is merged."""
        lanes, at = self.machine.lanes, self.machine.current + 1
        return self._merges_at_once and at + 1 < len(lanes) and len(lanes[at].calls) == 1

    async def _wait_over(self) -> None:
        """Wait until the lane that runs is over.

        Checkpoint: always.
        """
        self._driver = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._wait_no_more)

    def _wait_no_more(self, _: object) -> trio.lowlevel.Abort:
        self._driver = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _merge(self, own_step: bool = True) -> LaneRecord:
        """Apply the modifiers of the lane that has ended, or will never start; gives the lane.  Once is enough.

        Args:
            own_step: whether no tool runs in this step.
        """
        machine = self.machine
        lane = machine.lanes[machine.current]
        if lane.state is LaneState.MERGED:
            return lane
        if probe.implied is not None:
            by_itself = own_step and not self._tells and self.lease is None
            _footprints.merges(self.batch_id, lane, self.state, by_itself)
        if lane.modified:
            self._apply(lane)
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
        lane.told = merged(lane.index, self.state, lane.modified)
        self.state = lane.told.state
        if self.lease is not None:
            self.applied += [self.records[call].modifiers[position] for call, position in lane.told.applied]
        for call in lane.modified:
            if call.merged is not None and call.merged.exit_asked is not None:
                self.abort(call.merged.exit_asked)
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
        lease = lease_of(call, self.machine, self.lease, self.token)
        batch = self.settings.sub_batch(lease, state, registry, batch_id, reads, events)
        engine: Any = batch._engine
        if self.records.journal is not None:
            engine.records.journal = self.records.journal.inside(engine.machine.path, engine.abort)
        return batch

    # Entering and leaving

    def enter(self) -> None:
        """Let the batch begin, or refuse it and change nothing; what comes after this has to end in `close`."""
        self.refuse_other_run("be entered")
        if self.entered:
            raise BatchClosed(self.batch_id, "be entered", "it was entered before: open another one")
        if self.lease is not None:
            self.lease.entered(self, self.batch_id)
            self.opener = self.lease.call
        else:
            self.opener = RUNNING_CALL.get()
            # A batch that a tool opens is not ordered by owner: its lanes might wait for the very call that opened it.
            self.machine.admission.owned = self.records.owner is not None and self.opener is None
            if self.opener is not None:
                refuse_inside(self.opener, self.batch_id, self.settings.tables)
                self.machine.limits = None  # its calls run in the share of the one that opened it
            self.records.limits = self.machine.limits
            with TABLES_LOCK:
                taken = enter_tables(self._tenures, self.token, is_over)
            if taken is not None:
                refuse_shared_table(self.batch_id, taken.name)
        if self.opener is not None:
            self.opener.opened += (self,)
        self.settings.open_batches[id(self)] = self.batch_id, self.records
        self.entered = True
        if self.deadline is not None:
            self._entered_at = trio.current_time()

    def begin(self) -> None:
        """Tell that the batch is open."""
        settings = self.settings
        if settings.telemetry is not None:
            self.telemetry = self.machine.telemetry = settings.telemetry(self.batch_id, self.records)
            observer.measure_with(self.telemetry)
        if observer.listens:
            parent = None if self.lease is None else [self.lease.call.batch_id, self.lease.call.call_index]
            policy = policy_name(settings.policy)
            slots = None if settings.slots is None else policy_name(settings.slots)
            owner = self.settings.tables[0].of_owner(self.records.owner).name if self.machine.admission.owned else None
            limits = None if self.machine.limits is None else self.machine.limits.to_json()
            about = settings.limit, parent, bare_state(self.state), gives_up(settings.policy), slots, owner, limits
            observer.tell(BatchOpened(self.batch_id, policy, *about, self.deadline), self.telemetry)
        if self.lease is not None and self.lease.is_cancelled:
            self.lease.cancel("was cancelled")

    def close(self) -> None:
        """Fix the outcome; nothing of the batch runs any more."""
        if probe.implied is not None:
            _footprints.stops(self.batch_id, self.records)
        self.settings.open_batches.pop(id(self), None)
        if self.opener is not None:
            self.opener.opened = tuple(other for other in self.opener.opened if other is not self)
        if self.lease is not None:
            self.lease.ended(self)
        else:
            with TABLES_LOCK:
                leave_tables(self._tenures, self.token)
        if self.reader.unread:
            self.reader.drop_unread()
        results = []
        tickets: list[Ticket] = []
        limits = self.machine.limits
        for call in self.records:
            tickets += call.tickets
            if call.result is None:
                # Ctrl-C came up in the very submission of the call.
                self.machine.answer_not_started(call)
            result: Any = call.result
            if result.progress_dropped != call.progress_dropped:
                result = call.result = attrs.evolve(result, progress_dropped=call.progress_dropped)
            if limits is not None and call.state.holds is Holds.SLOT:
                limits.give(call)
            call.state = _CLOSE[call.state]
            results.append(result)
        if tickets:
            # An exception in the bookkeeping kept them from going back: the next batch must not wait for them.
            give_back([one for one in tickets if not one.released], lambda call: cast(int, call.call_index))
        if limits is not None:
            limits.wait_no_more(self.machine)
        machine, state = self.machine, self.state
        machine.state = _LEAVE[machine.state]
        self.outcome = BatchOutcome(tuple(results), state, tuple(self.applied), self.batch_id)
        if observer.listens:
            tasks, slots = sum(lane.unfinished for lane in machine.lanes), sum(lane.running for lane in machine.lanes)
            left = {"tasks": tasks, "tickets": len(tickets), "slots": slots, "progress": len(self.reader.unread)}
            dropped = [call.progress_dropped for call in self.records]
            observer.tell(BatchLeft(self.batch_id, results, bare_state(state), left, dropped), self.telemetry)
        if self.telemetry is not None:
            observer.stop_measuring(self.telemetry)
        self._wake_reader()
        machine.let_go()
        del self.questions
        if machine.held_up is not None:
            call, other = machine.held_up
            mine, theirs = f"call {call.call_index} ({call.name})", f"call {other.call_index} ({other.name})"
            with contextlib.suppress(Warning):  # where warnings are errors, this one would lose the outcome
                warnings.warn(UndeclaredWarning(mine, call.batch_id, theirs, other.batch_id), stacklevel=2)

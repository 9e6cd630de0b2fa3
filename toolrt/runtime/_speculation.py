"""Speculation past barriers, an experiment: calls of pure tools run early, and are validated in their turn.

Rules.
    1. An early run has no place in the order.  Its call stays *placed*: it is queued, shows no progress, holds no
       ticket and no slot.  Early runs begin only in free slots; where a call needs such a slot, the last of them ends.
    2. It notes what it reads: parts of ``ctx.state``, `toolrt.sim.Cell`, and files and names of a workspace.  A change
       of a cell or a file, a sub-batch and another batch are refused, and make it useless.  A tool that reads anything
       else is not pure.
    3. In the call's turn, with its tickets and its slot, what the early run read is looked at again.  If all of it is
       as it was, its answer and its progress are the call's.  Otherwise the tool runs as if nothing had happened.
    4. An early run that fails is useless: its reads may not belong together.
    5. All early runs are cancelled when the batch is cut short, and the batch is left when they have ended.

Theory.  Optimistic reads are validated in a preset order, and what fails runs again (Block-STM: Gelashvili et al.,
PPoPP 2023).  Reads are validated by value.  What an early run gives is a function of what it read, as the tool is pure;
while the call holds its tickets no other call changes that.  So the answer is that of a run in turn.

Limits.  Only async tools with ``pure=True``, in a batch that is no sub-batch and has no approval check, without a
timeout and without ``interrupt="finish"`` or ``claims_after``: there an early run could change how a call is answered.
An answer with modifiers holds only if the state is the very one that the early run saw.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

import attrs
import trio

from toolrt import probe
from toolrt.errors import asks_to_exit
from toolrt.model import Event, Registry, Services, State, Tool, ToolCall, ToolOutput
from toolrt.model._watched_state import ALL_KEYS, Part, StateReads, bare_state
from toolrt.order import CallRecord, CallState, LaneRecord, claims_of, has_changed
from toolrt.runtime._batch import Batch
from toolrt.runtime._caller import RUNNING_CALL
from toolrt.runtime._cancellation import split_cancelled
from toolrt.runtime._context import ToolContext
from toolrt.runtime._execution import awaited
from toolrt.runtime._interrupts import protected
from toolrt.runtime._left_open import check_answer, close_left_open, stands_of
from toolrt.runtime._run import BatchRun

__all__ = ["Speculation", "SpeculativeRun"]

#: What an early run gave that gave nothing of use.
_NOTHING: Any = object()
#: More progress than this makes an early run useless: a batch would drop it, too.
_MOST_MESSAGES = 1_000


@attrs.define(eq=False)
class EarlyRun:
    """One early run of a call: its own record of the call, what it has read, and what it gave."""

    #: A record that nothing else sees.
    record: CallRecord
    #: What it is given as its state.
    snapshot: State
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    notes: probe.NotedReads = attrs.field(factory=probe.NotedReads)
    #: Its progress and events, in order.
    messages: list[Any] = attrs.field(factory=list)
    value: Any = _NOTHING
    over: trio.Event = attrs.field(factory=trio.Event)


@attrs.frozen
class EarlyHost:
    """The host of an early run: that of the batch, but what the tool tells is kept, and it opens nothing."""

    _host: BatchRun
    _early: EarlyRun
    events: bool
    telemetry: None = None

    @property
    def registry(self) -> Registry | None:
        return self._host.registry

    @property
    def read_budget(self) -> int | None:
        return self._host.read_budget

    def services_of(self, tool: Tool | None) -> Services:
        return self._host.services_of(tool)

    def send(self, call: CallRecord, message: Any) -> None:
        self._early.messages.append(message)

    def sub_batch(self, call: CallRecord, *options: Any) -> Batch:
        probe.refuse_effect("a sub-batch")
        raise AssertionError("an early run is speculative")


class Speculation:
    """The early runs of one batch.

    Args:
        host: the batch's engine.
    """

    def __init__(self, host: BatchRun) -> None:
        self._host = host
        self._nursery: trio.Nursery | None = None
        #: Calls that may run early, in call order.
        self._candidates: deque[CallRecord] = deque()
        #: By call_index; until the call's turn.
        self._early: dict[int, EarlyRun] = {}
        #: Those that have not ended, in the order in which they began.
        self._running: list[EarlyRun] = []

    @protected
    async def beside(self, drive: Callable[[], Awaitable[None]]) -> None:
        """Await `drive()` with a nursery for early runs, all of which have ended on return.

        Checkpoint: always.
        """
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await drive()
            finally:
                self.cancel()
                self._nursery = None

    def cancel(self) -> None:
        """Cancel all early runs, and begin no other."""
        self._candidates.clear()
        for early in self._running:
            early.scope.cancel()

    # Beginning

    def submitted(self, call: CallRecord) -> None:
        """Note that `call` came; it may run early, if it waits for a lane."""
        tool = call.tool
        if call.state is not CallState.PLACED or tool is None or not tool.pure or not tool.is_async:
            return
        timeout = self._host.timeout if tool.timeout is None else tool.timeout
        if timeout is None and tool.interrupt == "cancel" and tool.claims_after is None:
            self._candidates.append(call)
            self.begin()

    def begin(self) -> None:
        """Begin the early runs that there is room for, beside the lane that runs."""
        machine = self._host.machine
        lane = machine.running
        if self._nursery is None or lane is None or machine.stopped_by is not None:
            return
        while self._candidates and lane.running + len(lane.ready) + len(self._running) < machine.limit:
            call = self._candidates.popleft()
            if call.state is CallState.PLACED:
                self._begin(call)

    def make_room(self) -> None:
        """A call has taken a slot: cancel the last early runs, if there are more than free slots."""
        machine = self._host.machine
        lane = machine.running
        while self._running and lane is not None and lane.running + len(self._running) > machine.limit:
            probe.access(probe.ANYTHING, True)
            self._running.pop().scope.cancel()

    def _begin(self, call: CallRecord) -> None:
        probe.access(probe.ANYTHING, True)
        tool = cast(Tool, call.tool)
        record = CallRecord(call.call, call.call_index, call.batch_id, call.submitted_at)
        record.tool, record.arguments, record.input, record.parent = tool, call.arguments, call.input, call.parent
        state = self._host.state
        record.claims = claims_of(tool, call.input, bare_state(state), call.safe)
        early = self._early[call.call_index] = EarlyRun(record, state)
        self._running.append(early)
        nursery: Any = self._nursery
        self._host.context.run(nursery.start_soon, self._run, early, name=f"{call.name}, early")

    @protected
    async def _run(self, early: EarlyRun) -> None:
        """The task of one early run.

        Checkpoint: as the tool does.
        """
        RUNNING_CALL.set(early.record)
        try:
            with early.scope, probe.noting(early.notes):
                early.value = await self._answer(early)
        except BaseException as error:  # noqa: ASYNC103  a Cancelled goes on, out of its group
            cancelled, rest = split_cancelled(error)
            if isinstance(error, GeneratorExit):
                raise
            if isinstance(asks_to_exit(rest), KeyboardInterrupt):
                self._host.abort(cast(BaseException, asks_to_exit(rest)))
            if cancelled is not None:
                raise cancelled from None  # noqa: ASYNC104
        finally:
            probe.access(probe.ANYTHING, True)
            early.over.set()
            if early in self._running:
                self._running.remove(early)
        self.begin()

    async def _answer(self, early: EarlyRun) -> Any:
        """What the tool gives; its task is as it was before."""
        record, tool = early.record, cast(Tool, early.record.tool)
        context = ToolContext(record, early.snapshot, EarlyHost(self._host, early, self._host.events))
        positional, named = record.arguments or ((), {})
        task: Any = trio.lowlevel.current_task()
        status = task._cancel_status
        try:
            value = await awaited(tool.function(context, *positional, **named))
        except BaseException as error:
            if isinstance(error, GeneratorExit) or stands_of(task, status):
                raise
            raise await close_left_open(record, task, status, error) from None  # noqa: ASYNC102, ASYNC104  they end
        if not stands_of(task, status):
            raise await close_left_open(record, task, status, None)
        check_answer(value.content if isinstance(value, ToolOutput) else value)
        return value

    # In turn

    def in_turn(self, lane: LaneRecord, call: CallRecord) -> None:
        """The call of `lane` is about to run: if it ran early, its tool gives that answer, if it holds."""
        early = self._early.pop(call.call_index, None)
        if early is None:
            return
        tool: Any = call.tool
        tries = [early]

        async def function(context: ToolContext, *positional: Any, **named: Any) -> Any:
            value = await self._validated(tries.pop(), lane, call, context) if tries else _NOTHING
            return await tool.function(context, *positional, **named) if value is _NOTHING else value

        call.tool = tool.rebound(function, claims=tool.claims, owner=tool.owner, claims_after=tool.claims_after)

    @protected
    async def _validated(self, early: EarlyRun, lane: LaneRecord, call: CallRecord, context: ToolContext) -> Any:
        """The early run's answer, if the call would give the same now.

        Checkpoint: if the early run has not ended, or has read a file.
        """
        probe.access(probe.ANYTHING, True)
        try:
            # What is stale already is not waited for.
            if not early.over.is_set() and await self._holds(early, lane, call, context):
                await early.over.wait()
            if early.value is _NOTHING or not await self._holds(early, lane, call, context):
                return _NOTHING
        finally:
            early.scope.cancel()
        value = early.value
        if isinstance(value, ToolOutput) and value.modifiers and early.snapshot is not lane.start:
            return _NOTHING
        for message in early.messages:
            if isinstance(message, Event):
                context.emit(message)
            else:
                context.progress(message)
        call.reads = early.record.reads
        return value

    async def _holds(self, early: EarlyRun, lane: LaneRecord, call: CallRecord, context: ToolContext) -> bool:
        """Whether all that the early run has read so far is there now."""
        record = early.record
        if early.notes.refused or len(early.messages) > _MOST_MESSAGES or record.changes is not None:
            return False
        if record.claims != call.claims or _differs(record.reads, early.snapshot, lane.start):
            return False
        for look, seen in tuple(early.notes.reads):
            try:
                hash(seen)
                now = look(context)
                if inspect.isawaitable(now):
                    now = await now
            except Exception:
                return False
            if not (now is seen or (type(now) is type(seen) and now == seen)):
                return False
        return True


def _differs(reads: StateReads | None, seen: State, now: State) -> bool:
    """Whether a part of the state that was read holds something else `now` than when it was `seen`."""
    if reads is None or seen is now:
        return False
    old, new = bare_state(seen), bare_state(now)
    return any(_part_differs(part, old, new) for part in sorted(reads.parts, key=repr))


def _part_differs(part: Part, old: State, new: State) -> bool:
    if part == ALL_KEYS:
        return set(old) != set(new)
    if isinstance(part, tuple) and part[0] == "key":
        return (part[1] in old) != (part[1] in new)
    return has_changed(part, old, new)


class SpeculativeRun(BatchRun):
    """The engine of a batch whose pure calls may run early; the arguments are those of `BatchRun`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._speculation = Speculation(self)

    def _place(self, record: CallRecord, call: ToolCall) -> None:
        super()._place(record, call)
        self._speculation.submitted(record)

    def spawn(self, lane: LaneRecord, call: CallRecord) -> None:
        """As of `BatchRun`."""
        self._speculation.in_turn(lane, call)
        super().spawn(lane, call)
        self._speculation.make_room()
        self._speculation.begin()

    def cancel(self, reason: str, outside: bool) -> None:
        """As of `BatchRun`."""
        super().cancel(reason, outside)
        self._speculation.cancel()

    @protected
    async def drive(self) -> None:
        """As of `BatchRun`."""
        await self._speculation.beside(super().drive)

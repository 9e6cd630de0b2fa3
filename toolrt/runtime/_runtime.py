"""The runtime: opens batches with one registry, lane policy, limit and set of services."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.model import (
    NO_SERVICES,
    SILENT,
    AfterLane,
    Approve,
    BatchOutcome,
    Observer,
    Registry,
    Services,
    State,
    Tool,
    ToolCall,
)
from toolrt.model._bounded import RESULT_MOST, is_a_bound
from toolrt.model._watched_state import bare_state
from toolrt.order import (
    CallRecord,
    ClaimTable,
    LanePolicy,
    Limits,
    Siblings,
    SlotPolicy,
    by_claims,
    checked_lanes,
    checked_slots,
    is_rule,
    next_batch,
    policy_name,
)
from toolrt.runtime._batch import Batch
from toolrt.runtime._interrupts import protected
from toolrt.runtime._lease import Lease
from toolrt.runtime._observer import observer_state
from toolrt.runtime._run import BatchRun
from toolrt.runtime._settings import Settings
from toolrt.runtime._statistics import RuntimeStatistics, statistics_of
from toolrt.runtime._telemetry import BatchTelemetry

if TYPE_CHECKING:
    from toolrt.store import Journal
    from toolrt.store._kept import KeptBatch

_EMPTY = State()


class Runtime:
    """Runs batches of tool calls on Trio, by rules that hold under every schedule.

    Args:
        registry: the tools.
        lanes: which calls may share a lane: `by_claims` (the default), `by_safety`, `parallel`, `serial`, or one of
            your own: a function ``(tool, input) -> bool``, or a `LaneRule`, which sees the lane as it stands.
        limit: how many calls of one batch run at once, 1 or more; None is no limit.
        approve: asked for each valid call before it starts; it allows, denies or rewrites.  A plain function is asked
            in a thread, for one call of a lane after the other, so that a question to a person holds up nothing else.
        timeout: seconds of its own execution, above 0, for calls of tools that name none; None is no limit.
        services: what every tool is given beside its input.  For a service that is None there, a tool gets its
            owner's (of a workspace: its files and their history); a tool without owner gets the only owner's, if any.
        telemetry: the observer, such as `toolrt.plugins.otel.Telemetry`; None is that of `services`.
        slots: which of the ready calls takes the next slot, where there are too few: a function of them, in call order,
            that gives one of them; None: the one of the lowest call_index.
        max_result: how many characters a result may have whose tool names no ``max_result``, 1 or more; None is no
            limit.  What is longer loses its middle, and says so; ``read_file`` says which lines to ask for.  What a
            tool reads of its own sub-batch is whole.
        limits: what its calls share with those of other batches and runtimes that have the same `Limits`: how many run
            at once, of all tools and of each, and how often a conversation may use one; None: nothing.
        journal: where batches are kept, so that `resume` goes on with one in a later process; None: nowhere.

    Raises:
        DefinitionRefused: something here cannot work; the text says what.
    """

    def __init__(
        self,
        registry: Registry,
        lanes: LanePolicy = by_claims,
        limit: int | None = 10,
        approve: Approve | None = None,
        timeout: float | None = None,
        services: Services | None = None,
        telemetry: Observer | None = None,
        slots: SlotPolicy | None = None,
        *,
        max_result: int | None = RESULT_MOST,
        journal: Journal | None = None,
        limits: Limits | None = None,
    ) -> None:
        if not isinstance(registry, Registry):
            raise DefinitionRefused("Runtime(registry)", "a registry, such as toolrt.Registry([tool])", registry)
        checked_lanes("Runtime(lanes)", lanes)
        checked_slots("Runtime(slots)", slots)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise DefinitionRefused("Runtime(limit)", "a whole number, 1 or more, or None", limit)
        if approve is not None and not callable(approve):
            raise DefinitionRefused("Runtime(approve)", "a function of an ApprovalRequest", approve)
        if isinstance(timeout, bool) or (timeout is not None and not _is_a_time(timeout)):
            raise DefinitionRefused("Runtime(timeout)", "finite seconds above 0, or None", timeout)
        if max_result is not None and not is_a_bound(max_result):
            raise DefinitionRefused("Runtime(max_result)", "a number of characters, 1 or more, or None", max_result)
        if services is not None and not isinstance(services, Services):
            raise DefinitionRefused("Runtime(services)", "a toolrt.Services or None", services)
        if telemetry is not None and (isinstance(telemetry, type) or not callable(getattr(telemetry, "event", None))):
            raise DefinitionRefused("Runtime(telemetry)", "an object with event(kind, fields), or None", telemetry)
        if limits is not None and not isinstance(limits, Limits):
            raise DefinitionRefused("Runtime(limits)", "a toolrt.Limits, or None; `limit=` is a batch's", limits)
        if journal is not None and not hasattr(journal, "codec"):  # its class is imported where one is used
            raise DefinitionRefused("Runtime(journal)", "a toolrt.Journal(path) or None", journal)
        self.registry = registry
        self.lanes = lanes
        self.journal = journal
        self.slots = slots
        self._asks_policies = slots is not None or is_rule(lanes)
        self.limit = limit
        self.limits = limits
        self.approve = approve
        self.timeout = timeout
        self.max_result = max_result
        #: The claim tables on which calls take tickets: those of the tools' owners, else one of its own.
        self.tables: tuple[ClaimTable, ...] = tuple(
            {id(owner.claim_table): owner.claim_table for owner in registry.owners}.values()
        ) or (ClaimTable("runtime"),)
        #: What every tool is given; a tool's owner may add to it.
        self.services = NO_SERVICES if services is None else services
        if telemetry is not None:
            self.services = self.services.replace(telemetry=telemetry)
        self._services_by_owner = {
            id(owner): self.services.filled_from(own) for owner, own in _services_of(registry.owners)
        }
        only = list(self._services_by_owner.values()) if len(registry.owners) == 1 else []
        self._services_without_owner = only[0] if only else self.services
        #: Which services hear what a lane changed, and the owner whose tools' calls count; None means all.
        self._hooks: tuple[tuple[Any, AfterLane], ...] = (
            *((None, hook) for hook in self.services.after_lane),
            *(
                (owner, hook)
                for owner, own in _services_of(registry.owners)
                for hook in own.after_lane
                if hook not in self.services.after_lane
            ),
        )
        self._observer_state = observer_state(self.services.telemetry)
        self._open_batches: dict[int, tuple[str, Siblings]] = {}

    def statistics(self) -> RuntimeStatistics:
        """What runs and waits now, in all batches of this runtime, those opened through a door of it included.

        Checkpoint: never.

        Example::

            for call, others in runtime.statistics().waits_for.items():
                print(call, "waits for", ", ".join(others))
        """
        return statistics_of(list(self._open_batches.values()))

    @property
    def telemetry(self) -> Observer | None:
        """The observer of this runtime's events; None: it has none."""
        return None if self.services.telemetry is SILENT else self.services.telemetry

    @property
    def telemetry_failures(self) -> int:
        """How often the observer raised; of one that other runtimes tell too, all of it."""
        return observer_state(self.services.telemetry).failures

    def _telemetry(self, batch_id: str, calls: Sequence[CallRecord]) -> BatchTelemetry:
        """What tells the observer of a new batch, by its `batch_id` and its `calls`."""
        return BatchTelemetry(self.services.telemetry, self._observer_state, batch_id, calls)

    def services_of(self, tool: Tool | None) -> Services:
        """What calls of `tool` are given.

        Checkpoint: never.
        """
        owner = None if tool is None else tool.owner
        if owner is None:
            return self._services_without_owner
        return self._services_by_owner.get(id(owner), self.services)

    @protected
    async def run(
        self,
        calls: Sequence[ToolCall],
        state: State | None = None,
        *,
        batch_id: str | None = None,
        owner: Hashable | None = None,
        deadline: float | None = None,
        resume: bool = False,
    ) -> BatchOutcome:
        """Run `calls` as one batch and give one result for each, in call order, and the state they leave.

        Args:
            calls: of one model response, in call order.
            state: the state the first lane starts from; the empty one by default.
            batch_id: names the batch, as of `open_batch`; with a journal, what `resume` is given.
            owner: whose batch it is, such as the id of a conversation: any value that can be a key of a dict.  A tool
                that declares nothing runs alone among the calls of one owner; owners meet in claims alone.  None: it
                runs alone among all calls that share its claim table, and a warning says once who waited for whom.
            deadline: seconds until the batch is cancelled, above 0, from when it begins; None: it has no deadline.
                What has returned by then keeps its result, what runs is INTERRUPTED, with its sub-batches, and what
                waits is NOT_STARTED; the outcome is given as ever.
            resume: whether to go on with the batch of this `batch_id`, as `resume` does, where the journal has one: so
                an agent that may have been killed does not have to know how far it came.  The batch keeps the state
                and the owner that it began with.

        Raises:
            trio.Cancelled: an enclosing scope was cancelled; to have the outcome then, use `open_batch`.
            DefinitionRefused: something in `calls` is no `ToolCall`, or `state` no `State`, or there is nothing that
                `resume` could go on with: no journal, or no `batch_id`; nothing was run.
            MisuseError: awaited outside Trio; nothing was run.
            JournalRefused: the journal has a batch of this id, and `resume` is False or its calls are others; it cannot
                keep the state, or is another process's; nothing was run.
            JournalFailed: the journal cannot be written; the batch was cancelled.

        Checkpoint: always.

        Ordering: the results are those of the calls, in the order of `calls`, whatever finished first.
        """
        if not isinstance(calls, Iterable):
            raise DefinitionRefused("calls", "a list of toolrt.ToolCall", calls)
        calls = list(calls)
        if resume:
            kept = await self._journal_of(batch_id).find(cast(str, batch_id))
            if kept is not None:
                return await self._go_on(kept, calls, deadline)
        has_budget = isinstance(state, State) and bare_state(state).context_budget is not None
        reads = self.registry.reads_in(calls) if has_budget else 1
        run = self._new_batch(state, batch_id, reads, listens=False, owner=owner, deadline=deadline)
        return await Batch(run).run(calls)

    @protected
    async def resume(self, batch_id: str) -> BatchOutcome:
        """Go on with a batch that was stopped, by a crash or a cancel, and give its outcome as `run` does.

        What had a result keeps it, and its tool is not run again; what had not started runs.  A call that was running
        may have happened: it runs again if its tool is ``idempotent`` or ``pure`` or the call only reads; a file tool
        looks whether its change is there; any other is INTERRUPTED, and its error says that it may have happened.  An
        approval that was given is not asked for again, one that was pending is.  A batch that is over gives its outcome
        again.  Where this is stopped too, resume once more.

        Args:
            batch_id: the batch, as `run` was given it or ``journal.unfinished()`` has it.

        Raises:
            JournalRefused: the journal has no such batch, or it runs now, its records were removed, or it was begun
                with another registry, lane policy or codec; nothing was run.
            JournalFailed: the journal cannot be read or written.
            DefinitionRefused: the runtime has no journal.
            trio.Cancelled: an enclosing scope was cancelled.

        Checkpoint: always.

        Ordering: as `run`.

        Example::

            for batch_id in await runtime.journal.unfinished():
                outcome = await runtime.resume(batch_id)
        """
        return await self._go_on(await self._journal_of(batch_id).read(batch_id))

    def _journal_of(self, batch_id: str | None) -> Journal:
        """The journal that may have a batch of this id.

        Raises:
            DefinitionRefused: there is no journal, or no id.
        """
        if self.journal is None:
            raise DefinitionRefused("a resume", "Runtime(registry, journal=toolrt.Journal(path))", None)
        if not isinstance(batch_id, str) or not batch_id:
            raise DefinitionRefused("a resume", "the batch_id of the batch, a string", batch_id)
        return self.journal

    async def _go_on(
        self, kept: KeptBatch, calls: Sequence[ToolCall] | None = None, deadline: float | None = None
    ) -> BatchOutcome:
        """Go on with the batch that left `kept`; None: with the calls that are kept."""
        codec, batch_id = cast("Journal", self.journal).codec, kept.batch_id
        known = kept.outcome(codec)
        if calls is not None:
            kept.refuse_other_calls(codec, calls, is_over=known is not None)
        if known is not None:
            return BatchOutcome(*known, (), batch_id)
        kept.refuse_changed(codec, policy_name(self.lanes), self.registry)
        calls = kept.tool_calls(codec) if calls is None else calls
        state = codec.decode(kept.header["state"])
        # An owner that no file keeps was an object of the process that ended: no other batch has it.
        owner = codec.decode(kept.header["owner"]) if "owner" in kept.header else object()
        reads = self.registry.reads_in(calls)
        run = self._new_batch(state, batch_id, reads, listens=False, owner=owner, deadline=deadline, kept=kept)
        return await Batch(run).run(calls)

    def open_batch(
        self,
        state: State | None = None,
        batch_id: str | None = None,
        expected_reads: int = 1,
        *,
        events: bool = False,
        owner: Hashable | None = None,
        deadline: float | None = None,
    ) -> Batch:
        """A batch that takes calls while it runs and is read while it runs.

        Args:
            state: the state the first lane starts from; the empty one by default.
            batch_id: names the batch; by default by a number that all runtimes on one workspace count and, outside of
                a simulation, an ending that no other process gives.
            expected_reads: how many reads will share the read budget, 1 or more.
            events: whether the reader wants what toolrt's own tools tell of their work: a `FileChanged`, an
                `OutputChunk` and the like, each as the message of a `Progress`.
            owner: whose batch it is: see `run`.
            deadline: seconds from when the block is entered until the batch is cancelled: see `run`.

        Ordering: see `Batch.submit` and `Batch.__anext__`; batches on one claim table order by when their lanes took
        their tickets.

        Example::

            async with runtime.open_batch(state) as batch:
                batch.submit(call)
                batch.seal()
                async for update in batch:
                    ...
            batch.outcome
        """
        reads = expected_reads
        return Batch(self._new_batch(state, batch_id, reads, True, events, owner=owner, deadline=deadline))

    def _sub_batch(
        self,
        lease: Lease,
        state: State,
        registry: Registry | None,
        batch_id: str | None,
        reads: int | list[ToolCall],
        events: bool | None,
    ) -> Batch:
        """A batch inside the call of `lease`; the other arguments are as of `CallHost.sub_batch`.

        Raises:
            DefinitionRefused: `registry` is neither a `Registry` nor None.
        """
        if registry is not None and not isinstance(registry, Registry):
            raise DefinitionRefused("a sub-batch's registry", "a toolrt.Registry, or None for the runtime's", registry)
        runtime = self if registry is None or registry is self.registry else self._with_registry(registry)
        count = runtime.registry.reads_in(reads) if isinstance(reads, list) else reads
        return Batch(
            runtime._new_batch(state, batch_id, count, events is not None, False if events is None else events, lease)
        )

    def awaiting(self, adapted: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Runtime:
        """The same runtime, where `adapted` stands between the batch and the approval check and hooks.

        A door from another event loop uses it.
        """
        if self.approve is None and not self._hooks:
            return self
        other = copy.copy(self)
        other.approve = None if self.approve is None else adapted(self.approve)
        other._hooks = tuple((owner, adapted(hook)) for owner, hook in self._hooks)
        return other

    def _with_registry(self, registry: Registry) -> Runtime:
        """The same runtime with other tools; those that have no owner are ordered as this one orders them."""
        given = self.lanes, self.limit, self.approve, self.timeout, self.services
        other = Runtime(registry, *given, slots=self.slots, max_result=self.max_result, limits=self.limits)
        other.journal = self.journal
        owned = (owner.claim_table for owner in registry.owners)
        other.tables = tuple(dict.fromkeys((self.tables[0], *owned)))
        other._open_batches = self._open_batches
        return other

    def _new_batch(
        self,
        state: State | None,
        batch_id: str | None,
        expected_reads: int,
        listens: bool,
        events: bool = False,
        lease: Lease | None = None,
        owner: Hashable | None = None,
        deadline: float | None = None,
        kept: KeptBatch | None = None,
    ) -> BatchRun:
        try:
            hash(owner)
        except TypeError:
            raise DefinitionRefused("a batch's owner", "a value that can be a key of a dict, or None", owner) from None
        if not isinstance(expected_reads, int) or isinstance(expected_reads, bool) or expected_reads < 1:
            raise DefinitionRefused("open_batch(expected_reads)", "a whole number, 1 or more", expected_reads)
        if not isinstance(events, bool):
            raise DefinitionRefused("open_batch(events)", "True or False", events)
        if deadline is not None and (isinstance(deadline, bool) or not _is_a_time(deadline)):
            raise DefinitionRefused("a batch's deadline", "finite seconds above 0, or None", deadline)
        if state is None:
            state = _EMPTY
        if not isinstance(state, State):
            raise DefinitionRefused("a batch's state", "a toolrt.State", state)
        if batch_id is not None and not isinstance(batch_id, str):
            raise DefinitionRefused("a batch's id", "a string", batch_id)
        if not trio.lowlevel.in_trio_run():
            raise MisuseError(
                "a batch of a Runtime runs in Trio: in asyncio use `await toolrt.aio.run(runtime, calls)` or "
                "`async with toolrt.aio.open_batch(runtime)`, outside both `toolrt.run_sync(runtime, calls)`"
            )
        path: tuple[int, ...] = ()
        if lease is not None:
            batch_id, path = lease.place(batch_id)
        else:
            number = next_batch(self.tables)
            batch_id = batch_id or probe.unique("batch", number)
        settings = Settings(
            self.registry,
            self.lanes,
            self.slots,
            self._asks_policies,
            self.limit,
            self.limits,
            self.approve,
            self.timeout,
            self.max_result,
            self.tables,
            self._hooks,
            self.services_of,
            None if self.services.telemetry is SILENT else self._telemetry,
            self._sub_batch,
            self._open_batches,
        )
        run = BatchRun(settings, state, batch_id, expected_reads, listens, events, lease, path, owner)
        run.deadline = deadline
        if self.journal is not None and lease is None:
            from toolrt.runtime._journal import BatchJournal

            lanes = policy_name(self.lanes)
            run.records.journal = BatchJournal.of(self.journal, batch_id, lanes, state, owner, run.abort, kept)
        return run

    def __repr__(self) -> str:
        slots = "" if self.slots is None else f", slots={policy_name(self.slots)}"
        return f"Runtime({self.registry!r}, lanes={policy_name(self.lanes)}, limit={self.limit}{slots})"


def _is_a_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 < seconds <= sys.float_info.max


def _services_of(owners: Iterable[Any]) -> Iterator[tuple[Any, Services]]:
    for owner in owners:
        services = getattr(owner, "services", None)
        if isinstance(services, Services):
            yield owner, services

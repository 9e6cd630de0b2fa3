"""The context that a tool gets: state, services, progress, sub-batches.

Rules.  A context belongs to one call, and what it says of the call stays the same while the call runs.  Copies say the
same and share the services.  What a tool tells (`progress`, `emit`) never blocks it and never makes it fail.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.model import (
    EVERYTHING,
    NO_SERVICES,
    SILENT,
    BatchOutcome,
    Claim,
    Event,
    FileChanged,
    Observer,
    Registry,
    Services,
    State,
    ToolCall,
    ToolTelemetry,
    Withheld,
    WorkingDir,
)
from toolrt.model._watched_state import StateReads, bare_state
from toolrt.order import CallRecord
from toolrt.runtime._batch import Batch
from toolrt.runtime._host import BudgetedHost, CallHost, NoBatch, share_of
from toolrt.runtime._interrupts import protected
from toolrt.runtime._observer import observer_state
from toolrt.runtime._telemetry import BatchTelemetry


class _Unchanged:
    """Asks `ToolContext.isolate` to leave a value as it is."""

    def __repr__(self) -> str:
        return "SAME"


#: The default of `ToolContext.isolate`.
SAME = _Unchanged()


@attrs.define(eq=False)
class ToolContext:
    """One call's view of its batch.

    It belongs to the call: what it says stays the same while the call runs.
    """

    _call: CallRecord
    _state: State
    _host: CallHost

    @property
    def state(self) -> State:
        """The state as of the start of the call's lane.

        The runtime notes which keys and fields the tool reads of it: a modifier that sets one of them from this old
        value, where an earlier call of the lane has changed it, is refused (law `no_write_lost`).
        """
        call = self._call
        if call.reads is None:
            call.reads = StateReads()
        return call.reads.watching(self._state)

    @classmethod
    def standalone(
        cls,
        working_dir: WorkingDir,
        session_id: str | None = None,
        telemetry: Observer | None = None,
        *,
        services: Services | None = None,
        registry: Registry | None = None,
        context_budget: int | None = None,
    ) -> ToolContext:
        """A context for a tool that is called outside a batch: ``await tool(ToolContext.standalone("."), key="k")``.

        Nothing orders such a call: it holds a claim on everything and takes no ticket, so let nothing else touch what
        it touches.  Modifiers that it returns are the caller's to apply; its progress and events go nowhere.

        Args:
            working_dir: where the tool's relative paths start; None is the workspace's own root.
            session_id: stands for the batch's id; None is ``"standalone"``.
            telemetry: who observes; None is that of `services`.
            services: what the tool is given beside; None is nothing.
            registry: the tools it may call; None is none.
            context_budget: how many tokens the model's context still has room for; None is unknown.

        Raises:
            DefinitionRefused: something here is of another type.

        Checkpoint: never.
        """
        if session_id is not None and not isinstance(session_id, str):
            raise DefinitionRefused("ToolContext.standalone(session_id)", "a string or None", session_id)
        if registry is not None and not isinstance(registry, Registry):
            raise DefinitionRefused("ToolContext.standalone(registry)", "a toolrt.Registry or None", registry)
        services = NO_SERVICES if services is None else services
        if not isinstance(services, Services):
            raise DefinitionRefused("ToolContext.standalone(services)", "a toolrt.Services or None", services)
        if telemetry is not None:
            services = services.replace(telemetry=telemetry)
        state = State(working_dir=working_dir, context_budget=context_budget)
        call = CallRecord(ToolCall("standalone", "standalone", {}), 0, session_id or "standalone", 0.0)
        call.claims = (EVERYTHING,)
        reports: BatchTelemetry | None = None
        if services.telemetry is not SILENT:
            reports = BatchTelemetry(services.telemetry, observer_state(services.telemetry), call.batch_id, ())
            reports.alone(call)
        return cls(call, state, NoBatch(registry, services, share_of(context_budget, 1), reports))

    @property
    def call_id(self) -> str:
        """The id the model gave the call; two calls of one batch may carry the same."""
        return self._call.call_id

    @property
    def batch_id(self) -> str:
        """The batch's id."""
        return self._call.batch_id

    @property
    def call_index(self) -> int:
        """The call's place in its batch, from 0."""
        return self._call.call_index

    @property
    def origin(self) -> tuple[str, int, str]:
        """Batch, place and id of the call that a model asked for: this one, or the outermost that it runs inside.

        What a file's history keeps, so that a batch is undone with all its sub-batches.
        """
        call = self._call.outermost or self._call
        return call.batch_id, call.call_index, call.call_id

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the call may touch while it runs: what it holds, or what its approval left of that.

        One claim on everything for an exclusive call that no approval narrowed.
        """
        call = self._call
        return call.claims if call.allowed is None else call.allowed

    @property
    def withheld(self) -> Withheld | None:
        """What the call has to leave out of its claims, if its approval says so: see `Allow.withheld`.

        Only a tool that says it `leaves_out` is allowed to run with such an answer of `Permissions`.
        """
        return self._call.withheld

    @property
    def alone(self) -> bool:
        """Whether no other call of the batch shares its lane, so that `state` has all that came before it."""
        return not self._call.safe

    # Services

    @property
    def _services(self) -> Services:
        return self._host.services_of(self._call.tool)

    @property
    def registry(self) -> Registry | None:
        """The tools of the runtime; None outside a batch, unless some were given."""
        return self._host.registry

    @property
    def files(self) -> Any:
        """The files (`Workspace.files`); None where there is no workspace."""
        return self._services.files

    @property
    def history(self) -> Any:
        """The versions of the files (`Workspace.history`); None where there is no workspace."""
        return self._services.history

    @property
    def search(self) -> Any:
        """Search over symbols and text; None when it is off."""
        return self._services.search

    @property
    def graph(self) -> Any:
        """The code graph; None when it is off."""
        return self._services.graph

    @property
    def lsp(self) -> Any:
        """The language servers; None when they are off."""
        return self._services.lsp

    @property
    def telemetry(self) -> ToolTelemetry:
        """Sends events and spans to the runtime's observer; `toolrt.model.SILENT`, which does nothing, without one.

        Example::

            with ctx.telemetry.span("parse", {"files": len(files)}):
                ctx.telemetry.event("cache.missed")
        """
        telemetry = self._host.telemetry
        return SILENT if telemetry is None else telemetry.of_call(self._call)

    @property
    def read_budget(self) -> int | None:
        """How many tokens one read of this batch may answer; None is any number.

        The same for all calls of the batch and all the time: it is fixed when the batch opens (RULES 23).
        """
        return self._host.read_budget

    @property
    def max_result(self) -> int | None:
        """How many characters the call's result may have; None is any number.

        What is longer loses its middle.  A tool that answers less, and says how to get the rest, serves a model better.
        """
        return self._call.max_result

    @property
    def has_journal(self) -> bool:
        """Whether the runtime keeps its batches in a journal, so that they are resumed after a crash."""
        return self._call.siblings.journal is not None

    # Sub-batches

    @protected
    async def run(
        self, calls: Sequence[ToolCall], state: State | None = None, *, registry: Registry | None = None
    ) -> BatchOutcome:
        """Run `calls` as a sub-batch: inside this call's claims and slot.  See `open_batch`, and `Runtime.run`.

        Args:
            calls: each may claim what this call may touch (`claims`), and nothing else: it is INVALID otherwise.
            state: what the first lane starts from; the call's own `state` by default.
            registry: the tools; those of the runtime by default.

        Returns: one result for each call, in call order, the state that they leave, and the modifiers that made it:
            no other call sees that state, unless this tool hands them on
            (``ToolOutput(..., modifiers=outcome.modifiers)``).

        Raises:
            trio.Cancelled: this call was cancelled, or timed out.
            BatchClosed: the call is not running, runs in no batch, or too many sub-batches are open around it.
            DefinitionRefused: something in `calls` is no `ToolCall`, or `state` or `registry` none; nothing was run.

        Checkpoint: always.

        Ordering: as `Runtime.run`; other calls of the batch around it see all of it or nothing.

        Example::

            @toolrt.tool(claims=[Claim("counter", WRITE)])
            async def twice(ctx: ToolContext) -> list[str]:
                outcome = await ctx.run([ToolCall("1", "bump", {}), ToolCall("2", "bump", {})])
                return [result.outcome.value for result in outcome.results]
        """
        calls = list(calls)
        start = self.state if state is None else state
        return await self._host.sub_batch(self._call, start, registry, None, calls, None).run(calls)

    @protected
    def open_batch(
        self,
        state: State | None = None,
        batch_id: str | None = None,
        expected_reads: int = 1,
        *,
        events: bool = False,
        registry: Registry | None = None,
    ) -> Batch:
        """A sub-batch that takes calls while it runs and is read while it runs; else as `run`.

        It keeps all laws.  Its calls order among themselves; they may not claim what this call does not.  One of them
        can always run, in this call's slot; for each further one a slot must be free that no other call is ready for.
        A cancel or a timeout of this call is one of the sub-batch; a tool that returns while it is open cancels it.
        The approval check is asked for its calls, too (`ApprovalRequest.parent` names this one).  Progress and results
        come to the code that reads it here: hand on what is to be seen outside.

        Args:
            state: what the first lane starts from; the call's own `state` by default.
            batch_id: names it; by default ``"<batch_id>/<call_index>.<number>"``.
            expected_reads: how many reads will share the read budget, 1 or more.
            events: as of `Runtime.open_batch`.
            registry: the tools; those of the runtime by default.

        Raises:
            BatchClosed: as `run`.
            DefinitionRefused: an argument is not what it must be.

        Checkpoint: never.

        Ordering: as `Runtime.open_batch`.
        """
        if not isinstance(events, bool):
            raise DefinitionRefused("open_batch(events)", "True or False", events)
        start = self.state if state is None else state
        return self._host.sub_batch(self._call, start, registry, batch_id, expected_reads, events)

    def isolate(
        self, *, working_dir: WorkingDir | _Unchanged = SAME, context_budget: int | _Unchanged | None = SAME
    ) -> ToolContext:
        """The same call with a working directory and budgets of its own; files, services and claims are the same.

        For a part of a tool's work that must not disturb another part: what its sub-batches do to their state, a
        `change_dir` for one, stays with it.

        Args:
            working_dir: where its relative paths start; by default where this context's do.
            context_budget: how many tokens it may count on, None is unknown; by default what this context may.

        Raises:
            DefinitionRefused: a value is of another type.

        Checkpoint: never.
        """
        fields: dict[str, Any] = {}
        if not isinstance(working_dir, _Unchanged):
            fields["working_dir"] = working_dir
        if not isinstance(context_budget, _Unchanged):
            fields["context_budget"] = context_budget
        state = self.state.replace(**fields)
        return ToolContext(self._call, state, BudgetedHost(self._host, share_of(bare_state(state).context_budget, 1)))

    # Telling

    @property
    def hands_events(self) -> bool:
        """Whether the batch's reader wants the events of toolrt's own tools (``open_batch(events=True)``).

        For a tool that opens a sub-batch and hands on what its calls tell.
        """
        return self._host.events

    @protected
    def progress(self, message: Any) -> None:
        """Report to the reader of the batch's updates what the call is doing.

        Never blocks and never fails: what cannot be kept is dropped and counted on the call's result.  May be
        called from the worker thread of a sync tool.  A message of more than 100,000 characters loses its middle, and
        says so; one that is no text becomes the beginning of its JSON.

        Checkpoint: never.  Ordering: messages of one call arrive in order and before its result.
        """
        self._host.send(self._call, message)

    @protected
    def emit(self, event: Event) -> None:
        """Say something that programs understand, with the call's identity filled in.

        It arrives as the message of a `Progress`, under the same rules as `progress`: one order for both, before the
        call's result, dropped and counted where it cannot be kept.  A `FileChanged` also tells the services that keep
        up with the files (`Services.after_lane`).  What is no `Event` arrives as it is.

        Checkpoint: never.  Ordering: as `progress`.

        Example::

            @attrs.frozen
            class Cloned(toolrt.Event):
                url: str

            ctx.emit(Cloned("https://example.org/repo"))
        """
        event = self._noted(event)
        if self._host.telemetry is not None:
            self._host.telemetry.emitted(self._call, event)
        self._host.send(self._call, event)

    @protected
    def note(self, kind: Callable[..., Event], *values: Any) -> None:
        """Emit ``kind(*values)`` as toolrt's own tools do: only a batch opened with ``events=True`` hands it over.

        Who opened the batch without sees from these tools what it always saw.  The event is not even made if neither
        the reader nor a service wants it.

        Checkpoint: never.  Ordering: as `progress`.
        """
        call, host = self._call, self._host
        wanted = host.events or bool(host.services_of(call.tool).after_lane)
        if not wanted and host.telemetry is None:
            return
        event = kind(*values, batch_id=call.batch_id, call_index=call.call_index, call_id=call.call_id)
        if host.telemetry is not None:
            host.telemetry.emitted(call, event)
        if wanted:
            self._keep(event)
        if host.events:
            host.send(call, event)

    @protected
    def about_to(self, what: Any) -> None:
        """Make durable what this call is about to do, where the runtime has a journal; else nothing happens.

        If the process ends before the call has its result, ``Tool.landed`` is given all that was noted so, and tells
        whether it happened.  May be called from any thread, and waits for the disk.

        Args:
            what: a value that the journal's codec carries.

        Raises:
            JournalFailed: it could not be written: do nothing.
            TypeError: the codec does not carry `what`.

        Checkpoint: never.
        """
        journal = self._call.siblings.journal
        if journal is not None:
            journal.front(self._call, what)

    @protected
    def changes_no_file(self) -> None:
        """Say that this call changes no file but those it names in events.

        For a tool that runs alone: services that keep up with the files (`Services.after_lane`) must otherwise take it
        that such a call may have changed any.

        Checkpoint: never.
        """
        if self._call.changes is None:
            self._call.changes = []

    def _noted(self, event: Event) -> Event:
        """The event with the call's identity."""
        call = self._call
        with contextlib.suppress(Exception):  # an event of a kind that cannot be changed stays as it is
            event = event.of_call(call.batch_id, call.call_index, call.call_id)
        self._keep(event)
        return event

    def _keep(self, event: Event) -> None:
        """Keep what the event says of files for the services that want it."""
        call = self._call
        if isinstance(event, FileChanged):
            if call.changes is None:
                call.changes = []
            call.changes.append(event)

    def __repr__(self) -> str:
        return f"<ToolContext of {self._call.story()}>"

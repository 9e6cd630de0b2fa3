"""What a tool is given.

Rules.  A context belongs to one call, and what it says of the call stays the same while the call runs.  Copies say the
same and share the services.  What a tool tells (`progress`, `emit`) never blocks it and never makes it fail.
"""

from __future__ import annotations

import contextlib
from typing import Any, cast

from toolrt.errors import DefinitionRefused
from toolrt.model import (
    EVERYTHING,
    NO_SERVICES,
    Claim,
    DirectoryChanged,
    Event,
    FileChanged,
    Registry,
    Services,
    State,
    Telemetry,
    ToolCall,
    WorkingDir,
)
from toolrt.order import TrackedCall
from toolrt.runtime._home import Alone, Home, share_of

__all__ = ["ToolContext"]


class ToolContext:
    """One call's view of its batch.

    It belongs to the call: what it says stays the same while the call runs.
    """

    __slots__ = ("_call", "_home", "state")

    #: The state as of the call's lane's start.
    state: State

    def __init__(self, call: TrackedCall, state: State, home: Home) -> None:
        self._call = call
        self._home = home
        self.state = state

    @classmethod
    def standalone(
        cls,
        working_dir: WorkingDir,
        session_id: str | None = None,
        telemetry: Telemetry | None = None,
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
        call = TrackedCall(ToolCall("standalone", "standalone", {}), 0, session_id or "standalone", 0.0)
        call.claims = (EVERYTHING,)
        return cls(call, state, Alone(registry, services, share_of(context_budget, 1)))

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
    def claims(self) -> tuple[Claim, ...]:
        """What the call may touch while it runs: what it holds, or what its approval left of that.

        One claim on everything for an exclusive call that nobody narrowed.
        """
        call = self._call
        return call.claims if call.allowed is None else call.allowed

    # Services

    @property
    def _services(self) -> Services:
        return self._home.services_of(self._call.tool)

    @property
    def registry(self) -> Registry | None:
        """The tools of the runtime; None outside a batch, unless some were given."""
        return self._home.registry

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
    def telemetry(self) -> Telemetry:
        """Whoever observes; `toolrt.model.SILENT`, which does nothing, where nobody does."""
        return self._services.telemetry

    @property
    def read_budget(self) -> int | None:
        """How many tokens one read of this batch may answer; None is any number.

        The same for all calls of the batch and all the time: it is fixed when the batch opens (RULES 23).
        """
        return self._home.read_budget

    # Telling

    def progress(self, message: Any) -> None:
        """Say what the call is doing, to whoever reads the batch's updates.

        Never blocks and never fails: what cannot be kept is dropped and counted on the call's result.  May be
        called from the worker thread of a sync tool.

        Checkpoint: never.  Ordering: messages of one call arrive in order and before its result.
        """
        self._home.send(self._call, message)

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
        self._home.send(self._call, self._noted(event))

    def note(self, event: Event) -> None:
        """As `emit`, for toolrt's own tools: only in a batch that was opened with ``events=True`` is it handed over.

        Who opened the batch without sees from these tools what it always saw, and pays nothing for the rest.

        Checkpoint: never.  Ordering: as `progress`.
        """
        event = self._noted(event)
        if self._home.events:
            self._home.send(self._call, event)

    def _noted(self, event: Event) -> Event:
        """The event with the call's identity; what it says of files is kept for the services."""
        call = self._call
        with contextlib.suppress(Exception):  # an event of a kind that cannot be changed stays as it is
            event = event.of_call(call.batch_id, call.call_index, call.call_id)
        if isinstance(event, FileChanged | DirectoryChanged) and call.changes is None:
            call.changes = []
        if isinstance(event, FileChanged):
            cast(list[FileChanged], call.changes).append(event)
        return event

    def __repr__(self) -> str:
        return f"<ToolContext of {self._call.story()}>"

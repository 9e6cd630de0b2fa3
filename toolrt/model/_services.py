"""The services that a tool gets from its runtime beside its input, and the events that they receive.

Rules.
    1. A service that is not there is None; telemetry is always there, and `SILENT` does nothing.
    2. Services are shared: by all calls, batches and copies of a context.  What one answers must not depend on which
       call came first: each says which rule it keeps (`docs/explanation/tool-context.md`).
    3. Services that keep up with the files hear between two lanes what the lane changed, in call order
       (`Services.after_lane`).  They can make no call fail.

Theory.  The rooms that build services stand above this one, so all that is known of them here is what a tool asks of
them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.model._event import FileChanged


class Observer(Protocol):
    """Observes a runtime (``Runtime(telemetry=...)``); it decides nothing.

    It gets one event at a time, in the task or worker thread in which it happened.  It must not block: a call waits
    for it.  An exception that it raises fails no call.
    """

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Take note that `kind` happened; `fields` holds JSON values and is not changed afterwards.

        The kinds and their fields are in ``docs/reference/events.md``.
        """


class ToolTelemetry(Protocol):
    """What a tool tells observers by (``ctx.telemetry``); it never blocks and never fails."""

    def event(self, kind: str, fields: Mapping[str, Any] | None = None) -> None:
        """Tell that `kind` happened: a few words that do not change, and numbers and short texts."""

    def span(self, name: str, fields: Mapping[str, Any] | None = None) -> AbstractContextManager[None]:
        """A block of work called `name`, with a beginning and an end; `fields` are what else is known of it."""


class Silent:
    """The telemetry that does nothing."""

    def event(self, kind: str, fields: Mapping[str, Any] | None = None) -> None:
        """Do nothing."""

    def span(self, name: str, fields: Mapping[str, Any] | None = None) -> AbstractContextManager[None]:
        """A block that no observer hears of."""
        return _NOTHING

    def __repr__(self) -> str:
        return "SILENT"


_NOTHING: AbstractContextManager[None] = nullcontext()

#: The telemetry of a runtime that was given none.
SILENT = Silent()


class FileService(Protocol):
    """What tools read and change files by, such as `Workspace.files`."""

    async def read(self, ctx: Any, identity: Any) -> Any:
        """The file as it is."""

    async def revise(self, ctx: Any, identity: Any, change: Any) -> Any:
        """The file has the content that `change` makes of what stood there."""


class HistoryService(Protocol):
    """The versions of files, such as `Workspace.history`."""

    def versions(self, path: str, state: Any = None) -> Any:
        """All versions of the file, the oldest first."""


@attrs.frozen
class LaneChanges:
    """What the calls of one lane changed."""

    #: The batch of the lane.
    batch_id: str
    #: The lane's index.
    lane: int
    #: The names at which something may not be what it was, each once, by call_index and, of one call, in the order it
    #: said so; relative to the workspace's root, with slashes.  Of a call that changed files and said nothing, what it
    #: claimed.
    paths: tuple[str, ...] = ()
    #: What the calls said of them, in the same order.
    changes: tuple[FileChanged, ...] = ()
    #: Whether anything else may have changed too: a call that may touch everything said nothing of files.
    unknown: bool = False


#: Told what a lane changed.  See `Services.after_lane`.
AfterLane = Callable[[LaneChanges], Awaitable[None] | None]


def _hooks(value: Iterable[AfterLane]) -> tuple[AfterLane, ...]:
    hooks = tuple(value) if isinstance(value, Iterable) else value
    if not isinstance(hooks, tuple) or not all(map(callable, hooks)):
        raise DefinitionRefused("Services(after_lane)", "functions of a LaneChanges", value)
    return hooks


def _check_telemetry(_: object, __: object, value: object) -> None:
    if not callable(getattr(value, "event", None)):
        raise DefinitionRefused("Services(telemetry)", "an object with event(kind, fields)", value)


@attrs.frozen
class Services:
    """What the tools of a runtime are given; each is None where there is none.

    Raises:
        DefinitionRefused: `telemetry` or `after_lane` is none.
    """

    #: The files, such as `Workspace.files`.
    files: FileService | None = None
    #: Their versions, such as `Workspace.history`.
    history: HistoryService | None = None
    #: Search over symbols and text.
    search: Any = None
    #: The code graph.
    graph: Any = None
    #: Language servers.
    lsp: Any = None
    #: The observer; never None.
    telemetry: Observer = attrs.field(default=SILENT, validator=_check_telemetry)
    #: Called one after the other when a lane that changed files has ended, before the next starts: sync functions, or
    #: async ones, which hold the next lane back until they are done.  `telemetry` hears of what they raise, which
    #: changes nothing else.  After a cancel an async one gets as far as its first checkpoint.
    after_lane: tuple[AfterLane, ...] = attrs.field(default=(), converter=_hooks)

    def replace(self, **services: Any) -> Services:
        """The same services with others in place of some: ``services.replace(graph=graph)``.

        Raises:
            DefinitionRefused: there is no such service, or it is none.
        """
        names = [field.name for field in attrs.fields(Services)]
        for name in services:
            if name not in names:
                raise DefinitionRefused("Services.replace", f"one of {', '.join(names)}", name)
        return attrs.evolve(self, **services)

    def filled_from(self, other: Services) -> Services:
        """These, and those of `other` where there is none; all hooks of both, each once."""
        if other is self:
            return self
        missing = {
            name: getattr(other, name)
            for name in ("files", "history", "search", "graph", "lsp")
            if getattr(self, name) is None
        }
        if self.telemetry is SILENT:
            missing["telemetry"] = other.telemetry
        hooks = (*self.after_lane, *(hook for hook in other.after_lane if hook not in self.after_lane))
        return attrs.evolve(self, **missing, after_lane=hooks)


#: None at all.
NO_SERVICES = Services()

"""Telemetry that a tool sends itself: ``ctx.telemetry``.

Rules.  It never blocks a tool, never makes it fail, and sends nothing once the call has ended.  A tool may hand over
anything: of a value that is neither a number nor a text the observer gets the type, and every text is cut to a bound.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolrt.runtime._telemetry import BatchTelemetry

__all__ = ["CURRENT", "CallTelemetry", "name_of", "text_of"]

#: Bounds of what a tool sends: characters of a name or key, characters of a text, number of fields.
_NAME, _TEXT, _FIELDS = 100, 500, 32

#: The call whose tool the running code belongs to: its batch's telemetry, its call_index, its innermost open span.
CURRENT: contextvars.ContextVar[tuple[BatchTelemetry, int, int | None] | None] = contextvars.ContextVar(
    "toolrt telemetry", default=None
)


class CallTelemetry:
    """Sends a tool's own events and spans to the observer: ``ctx.telemetry``.

    It never blocks the tool, never makes it fail and sends nothing once the call has ended.  The worker thread of a
    sync tool may use it.
    """

    __slots__ = ("_batch", "_call")

    def __init__(self, batch: BatchTelemetry, call: int) -> None:
        self._batch = batch
        self._call = call

    def event(self, kind: str, fields: Mapping[str, Any] | None = None) -> None:
        """Tell the observer that `kind` happened.

        Args:
            kind: what happened, in a few words of your own that do not change: ``"cache.missed"``.
            fields: the particulars: numbers, true or false, short texts.  Of anything else the observer gets the type.

        Checkpoint: never.
        """
        self._batch.noted(self._call, name_of(kind), _shown(fields))

    def span(self, name: str, fields: Mapping[str, Any] | None = None) -> contextlib.AbstractContextManager[None]:
        """A block of work with a beginning and an end; blocks may stand in each other.

        Leave it in the task and thread that entered it.  One that is open when its call ends, ends with it.

        Example::

            with ctx.telemetry.span("parse", {"files": len(files)}):
                ...

        Checkpoint: never.
        """
        return _Span(self._batch, self._call, name_of(name), _shown(fields))


class _Span:
    """One block of a tool's work."""

    __slots__ = ("_batch", "_call", "_fields", "_name", "_number", "_token")

    def __init__(self, batch: BatchTelemetry, call: int, name: str, fields: Mapping[str, Any]) -> None:
        self._batch = batch
        self._call = call
        self._name = name
        self._fields = fields
        self._number: int | None = None
        self._token: contextvars.Token[Any] | None = None

    def __enter__(self) -> None:
        self._number = self._batch.begin_span(self._call, self._name, self._fields)
        if self._number is not None:
            self._token = CURRENT.set((self._batch, self._call, self._number))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            with contextlib.suppress(ValueError):  # it was left where it was not entered
                CURRENT.reset(self._token)
            self._token = None
        if self._number is not None:
            raised = None if kind is None else kind.__name__
            self._batch.end_span(self._call, None, self._number, raised)


def name_of(name: object) -> str:
    return name[:_NAME] if type(name) is str else type(name).__name__


def _shown(fields: object) -> dict[str, Any]:
    """A tool's own fields, bounded, as values that an observer may keep."""
    if not isinstance(fields, Mapping):
        return {} if fields is None else {"fields": type(fields).__name__}
    shown: dict[str, Any] = {}
    try:
        for key, value in fields.items():
            if len(shown) == _FIELDS:
                break
            shown[name_of(key)] = value if value is None or type(value) in (bool, int, float) else text_of(value)
    except Exception as error:
        shown["fields"] = type(error).__name__
    return shown


def text_of(value: object) -> str:
    return value[:_TEXT] if type(value) is str else type(value).__name__

"""Keeps what the probe reports, until the trace is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from toolrt import probe
from toolrt.events import EventRecord
from toolrt.probe import Resource
from toolrt.trace._trace import RawEvent, Trace


class Recorder:
    """A `probe.Sink` that keeps every event; one tuple each, made into a `TraceEvent` when the trace is read.

    Args:
        clock: gives the time in seconds.
        task: gives the name of the task that runs.
    """

    def __init__(self, clock: Callable[[], float], task: Callable[[], str]) -> None:
        self._clock = clock
        self._task = task
        self._events: list[RawEvent] = []

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Keep the event.  Checkpoint: never."""
        self._events.append((None, self._clock(), self._task(), kind, fields))

    def tell(self, record: EventRecord) -> None:
        """Keep a record of an event.  Checkpoint: never."""
        self._events.append((None, self._clock(), self._task(), record.kind, record.kept()))

    def access(self, resource: Resource, write: bool) -> None:
        """Let it pass: accesses belong to steps, and only a simulation has steps.  Checkpoint: never."""

    def trace(self, meta: Mapping[str, Any] | None = None) -> Trace:
        """Give what was recorded so far, with `meta` about it; what comes later is not in it."""
        return Trace(tuple(self._events), (), meta)


@contextmanager
def recording(clock: Callable[[], float], task: Callable[[], str]) -> Iterator[Recorder]:
    """Record every event reported inside the block; the observer before observes again after it.

    Example:
        >>> from toolrt import probe
        >>> from toolrt.trace import recording
        >>> with recording(clock=lambda: 0.0, task=lambda: "main") as recorder:
        ...     probe.event("call.started", call=0)
        >>> [event.kind for event in recorder.trace().events]
        ['call.started']
    """
    recorder = Recorder(clock, task)
    with probe.observed_by(recorder):
        yield recorder

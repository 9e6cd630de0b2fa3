"""Where code says what a step touches, and where a program adds events of its own to a trace.

Rules.  Nothing here decides anything: a program that is observed behaves exactly as one that is not.
While nothing observes, ``sink`` is None and the whole cost is one attribute load and one comparison, so
hot code is written as::

    if probe.sink is not None:
        probe.sink.access(("file", name), True)

Theory.  An *event* says what happened, for a reader of the trace; toolrt's own are records (`toolrt.events`), and
`event` adds any other.  An *access* says which shared resource the running step touched, for an explorer that must
know which steps may be swapped (two steps are dependent when both touch one resource and one of them writes it).

What a step touches because of where it runs (a scope it is inside, the bookkeeping of a batch) is *implied*: it is
reported to `implied`, if that is set, and is in no trace.  A step that reported no access of its own may have done
anything, unless it calls `vouch`: then it reports all that others could see.

Limits.  The sink is one per process.  Report from the thread that runs Trio: code in a worker thread has no
place in the order of steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast

from toolrt.events import EventListener, EventRecord, observer

__all__ = [
    "ALL_REPORTED",
    "ANYTHING",
    "Resource",
    "Sink",
    "access",
    "event",
    "implied",
    "looking",
    "observe",
    "observed_by",
    "sink",
    "threads_inline",
    "unique",
    "vouch",
]

#: A resource's name: a stable tuple of strings and numbers, never an ``id()``.
Resource = tuple[Any, ...]


class Sink(Protocol):
    """An observer: a recorder, a simulation, a telemetry exporter."""

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Take note that `kind` happened; `fields` holds JSON values and is not changed afterwards."""

    def access(self, resource: Resource, write: bool) -> None:
        """Take note that the running step read (or, with `write`, wrote) `resource`."""


#: The observer, or None.  Set it with `observed_by`, read it as ``probe.sink``.
sink: Sink | None = None

#: Takes what the running step touches because of where it runs, for an explorer that swaps steps; None: no such
#: explorer runs.
implied: Callable[[Resource, bool], None] | None = None

#: Written by a step that did something that has no name: its order with any other matters.
ANYTHING: Resource = ("anything",)

#: Implied by a step that called `vouch`.
ALL_REPORTED: Resource = ("all reported",)

#: True while a simulation runs: what would go to a worker thread runs inline, as one step.
threads_inline: bool = False


def in_thread(tool: Any) -> bool:
    """Whether a tool runs in a worker thread: a plain ``def``, in a simulation only where its function asks for it."""
    return not tool.is_async and (not threads_inline or getattr(tool.function, "in_thread", False))


def event(kind: str, **fields: Any) -> None:
    """Report an event of this `kind` with these `fields` to the observer.  For code that is not hot."""
    if sink is not None:
        sink.event(kind, fields)


def access(resource: Resource, write: bool) -> None:
    """Report that the running step read, or with `write` wrote, `resource`."""
    if sink is not None:
        sink.access(resource, write)


def vouch() -> None:
    """Say that the running step reports all that it touches and others could see, be it nothing.

    An explorer takes a step that reported nothing for one that may have done anything.  A call says that it did not:
    the whole step, from the checkpoint before to the next one, reports all that others could see.

    Checkpoint: never.
    """
    if implied is not None:
        implied(ALL_REPORTED, False)


def unique(name: str, number: int) -> str:
    """Give ``name-number`` with an ending that no other process gives; without one where it is observed.

    Checkpoint: never.
    """
    return f"{name}-{number}" if threads_inline or sink is not None else f"{name}-{number}-{os.urandom(3).hex()}"


class _ByFields:
    """Hands records on to a sink as kind and fields."""

    __slots__ = ("_event",)

    def __init__(self, sink: Sink) -> None:
        self._event = sink.event

    def tell(self, record: EventRecord) -> None:
        self._event(record.kind, record.to_json())


def observe(by: Sink | None, *, inline: bool) -> None:
    """Let the sink `by` see every event and access from now on; `inline` runs sync tools in place.

    One that is an `toolrt.events.EventListener` too, by its ``tell``, is handed toolrt's own events as records.
    """
    global sink, threads_inline
    sink, threads_inline = by, inline
    observer.record_with(cast(EventListener, by) if by is None or hasattr(by, "tell") else _ByFields(by))


@contextmanager
def observed_by(observer: Sink | None, *, inline: bool = False) -> Iterator[None]:
    """Let `observer` see every event and access inside the block; `inline` runs sync tools in place."""
    before = sink, threads_inline
    observe(observer, inline=inline)
    try:
        yield
    finally:
        observe(before[0], inline=before[1])


class _ReadCollector:
    """Hands everything on to the `sink` there is, and keeps the names of what was read."""

    def __init__(self, sink: Sink | None) -> None:
        self._sink = sink
        self.found: dict[Resource, None] = {}

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        if self._sink is not None:
            self._sink.event(kind, fields)

    def access(self, resource: Resource, write: bool) -> None:
        if not write:
            self.found[resource] = None
        if self._sink is not None:
            self._sink.access(resource, write)


@contextmanager
def looking() -> Iterator[dict[Resource, None]]:
    """Give a dict that holds, when the block is left, the names of everything that was read in it.

    The observer sees these accesses as well.
    """
    global sink
    before = sink
    sink = looks = _ReadCollector(before)
    try:
        yield looks.found
    finally:
        sink = before

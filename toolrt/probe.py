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

A *speculative* run (`toolrt.runtime._speculation`) notes each read with a way to look again, and may have no effect.
While there is none, `speculates` is 0, and that costs a read one comparison.

Limits.  The sink is one per process.  Report from the thread that runs Trio: code in a worker thread has no
place in the order of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, cast

from toolrt.errors import DefinitionRefused
from toolrt.events import EventListener, EventRecord, observer

__all__ = [
    "ALL_REPORTED",
    "ANYTHING",
    "NotedReads",
    "Resource",
    "Sink",
    "access",
    "event",
    "implied",
    "is_speculative",
    "looking",
    "note_read",
    "noting",
    "observe",
    "observed_by",
    "refuse_effect",
    "sink",
    "speculates",
    "threads_inline",
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


class NotedReads:
    """What one speculative run has read."""

    __slots__ = ("reads", "refused")

    def __init__(self) -> None:
        #: For each read how to look again, given the context of the call, and what was there.
        self.reads: list[tuple[Callable[[Any], Any], Any]] = []
        #: Whether it tried to have an effect.
        self.refused = False


#: How many speculative runs there are.
speculates: int = 0

_noted: ContextVar[NotedReads | None] = ContextVar("toolrt noted reads", default=None)


@contextmanager
def noting(notes: NotedReads) -> Iterator[None]:
    """Let the block, and what it starts, be a speculative run that keeps its reads in `notes`."""
    global speculates
    before = _noted.set(notes)
    speculates += 1
    try:
        yield
    finally:
        speculates -= 1
        _noted.reset(before)


def is_speculative() -> bool:
    """Whether the running code is speculative."""
    return _noted.get() is not None


def note_read(look: Callable[[Any], Any], value: object) -> bool:
    """Whether the running code is speculative; if it is, note that it was given `value`.

    Call it only while `speculates`.

    Args:
        look: gives what is there by then, or an awaitable that does, in the call whose `ToolContext` it is handed.
        value: what can be hashed; anything else counts as changed.
    """
    notes = _noted.get()
    if notes is None:
        return False
    notes.reads.append((look, value))
    return True


def refuse_effect(effect: str) -> None:
    """Refuse `effect`, such as "a write of cell a", if the running code is speculative.

    Call it only while `speculates`.

    Raises:
        DefinitionRefused: it is.
    """
    notes = _noted.get()
    if notes is not None:
        notes.refused = True
        raise DefinitionRefused("a tool with pure=True", "no effect but its content and modifiers", effect)

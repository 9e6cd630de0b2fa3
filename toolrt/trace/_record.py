"""The three things a trace is made of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs

from toolrt.errors import InputRefused
from toolrt.events import EventRecord, from_json
from toolrt.probe import Resource


@attrs.frozen
class Access:
    """One step touched one resource."""

    #: The resource's name: a tuple of strings and numbers.
    resource: Resource
    #: True for a write, False for a read.
    write: bool

    def conflicts_with(self, other: Access) -> bool:
        """Say whether the order of this and the other matters: same resource, and at least one writes."""
        return self.resource == other.resource and (self.write or other.write)

    def __str__(self) -> str:
        return f"{'writes' if self.write else 'reads'} {' '.join(map(str, self.resource))}"


@attrs.frozen
class TraceEvent:
    """Something happened."""

    #: Its place among the trace's events, from 0.
    seq: int
    #: The index of the step it happened in, or None outside a simulation.
    step: int | None
    #: When, in seconds: virtual in a simulation, wall in production.
    time: float
    #: The path of the task it happened in (``main.0``), or whatever names a task in production.
    task: str
    #: What happened, as dotted words: ``call.started``.
    kind: str
    #: The particulars.
    fields: Mapping[str, Any] = attrs.field(hash=False)

    @cached_property
    def record(self) -> EventRecord | None:
        """The event as the record of its kind; None where toolrt has no such kind, or a field is missing or wrong."""
        try:
            return from_json(self.kind, self.fields)
        except InputRefused:
            return None


@attrs.frozen
class Step:
    """The code that one task ran between two of its checkpoints."""

    #: Its place in the execution, from 0.
    index: int
    #: The path of the task that ran.
    task: str
    #: The paths of the tasks that could run, in canonical order (the task that ran last first, if it still could;
    #: then by path).
    enabled: tuple[str, ...]
    #: The index in `enabled` of the task that ran.
    choice: int
    #: What it touched, sorted by name, each once.
    accesses: tuple[Access, ...]
    #: When, in virtual seconds.
    time: float
    #: The steps that made it runnable: the one that spawned or woke its task, and the last steps of the tasks
    #: it joined.  Empty when the clock woke it, or when the task merely passed a checkpoint.
    causes: tuple[int, ...] = ()

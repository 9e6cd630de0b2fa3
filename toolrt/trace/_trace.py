"""One execution, as it was observed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from toolrt._plain import compact, counted, frozen, plain
from toolrt.errors import InputRefused, InternalError
from toolrt.events import SCHEMA, EventRecord
from toolrt.trace._clocks import Clocks
from toolrt.trace._edges import Edge, direct_of, edges_of
from toolrt.trace._record import Access, Step, TraceEvent

#: An event as a recorder keeps it: step, time, task, kind, and the fields or the record that has them.
RawEvent = tuple[int | None, float, str, str, Mapping[str, Any] | EventRecord]

_VERSION = 1
#: The version of the events' fields in a trace that names none: they were as in version 1.
_UNVERSIONED = 1
_REMEDY = "Give the text that Trace.to_json() returned, unchanged."


class Trace:
    """Everything observed in one execution.

    Events and steps are built when they are first asked for, so a trace that is not read costs nothing.

    Args:
        events: the events in the order they happened, as a recorder keeps them.
        steps: the steps in the order they ran, or a function that gives them.
        meta: its origin: versions, and how the execution ended.
        notes: what others add to it (an oracle's answer); JSON values.
    """

    def __init__(
        self,
        events: Iterable[RawEvent] = (),
        steps: Sequence[Step] | Callable[[], Sequence[Step]] = (),
        meta: Mapping[str, Any] | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self._raw_events = events
        self._raw_steps = steps
        #: Its origin: versions, and how the execution ended.
        self.meta: dict[str, Any] = dict(meta or {})
        #: Free for readers of the trace; kept by `to_json`, so put JSON values in it.
        self.notes: dict[str, Any] = dict(notes or {})

    @cached_property
    def events(self) -> tuple[TraceEvent, ...]:
        """The events, in the order they happened."""
        return tuple(
            TraceEvent(seq, step, time, task, kind, fields.to_json() if isinstance(fields, EventRecord) else fields)
            for seq, (step, time, task, kind, fields) in enumerate(self._raw_events)
        )

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps, in the order they ran; empty outside a simulation."""
        return tuple(self._raw_steps() if callable(self._raw_steps) else self._raw_steps)

    @cached_property
    def _clocks(self) -> Clocks:
        return Clocks(self.steps)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Why steps came before steps of other tasks: by the later step, then by the earlier; none without steps."""
        return tuple(edges_of(self.steps))

    @cached_property
    def direct_edges(self) -> tuple[Edge, ...]:
        """Those of `edges` that no chain of others implies."""
        return tuple(direct_of(self.steps, self._clocks))

    @property
    def races(self) -> tuple[Edge, ...]:
        """The direct edges whose steps could have come the other way round: nothing but their accesses orders them."""
        return tuple(edge for edge in self.direct_edges if edge.is_access)

    def clock_of(self, step: Step) -> dict[str, int]:
        """Give the vector clock of `step`: how many steps of each task happened before it or are it; no zeros.

        Raises:
            InternalError: the step is not of this trace.
        """
        index = self._step_of(step)
        assert index is not None
        return self._clocks.of(index)

    def of_kind(self, *kinds: str | type[EventRecord]) -> tuple[TraceEvent, ...]:
        """Give the events of any of `kinds`, named or given as classes of records, in the order they happened."""
        wanted = {kind if isinstance(kind, str) else kind.kind for kind in kinds}
        return tuple(event for event in self.events if event.kind in wanted)

    def happens_before(self, first: TraceEvent | Step, second: TraceEvent | Step) -> bool:
        """Say whether `first` happened before `second` in every timing that keeps the causes.

        Without steps (a production run) only the order of one task's own events is known.

        Raises:
            InternalError: one of the two is not of this trace.
        """
        a, b = self._step_of(first), self._step_of(second)
        if a is None or b is None:
            return (
                isinstance(first, TraceEvent)
                and isinstance(second, TraceEvent)
                and first.task == second.task
                and first.seq < second.seq
            )
        if a == b:
            return isinstance(first, TraceEvent) and isinstance(second, TraceEvent) and first.seq < second.seq
        return self._clocks.before(a, b)

    def concurrent(self, first: TraceEvent | Step, second: TraceEvent | Step) -> bool:
        """Say whether neither `first` nor `second` happened before the other: so they could have come the other way.

        Things of one step are never concurrent.
        """
        a, b = self._step_of(first), self._step_of(second)
        if first is second or (a is not None and a == b):
            return False
        return not self.happens_before(first, second) and not self.happens_before(second, first)

    def _step_of(self, thing: TraceEvent | Step) -> int | None:
        index = thing.index if isinstance(thing, Step) else thing.step
        if index is not None and not 0 <= index < len(self.steps):
            raise InternalError(f"step {index} is not of this trace, which has {len(self.steps)}")
        return index

    def to_json(self) -> str:
        """Write it as one line of JSON, the same bytes for the same execution in every process."""
        return compact(
            {
                "toolrt_trace": _VERSION,
                "schema": SCHEMA,
                "meta": plain(self.meta),
                "notes": plain(self.notes),
                "steps": [
                    {
                        "task": step.task,
                        "enabled": list(step.enabled),
                        "touched": [[plain(access.resource), access.write] for access in step.accesses],
                        "time": plain(step.time),
                        "causes": list(step.causes),
                    }
                    for step in self.steps
                ],
                "events": [
                    {
                        "step": event.step,
                        "time": plain(event.time),
                        "task": event.task,
                        "kind": event.kind,
                        "fields": plain(event.fields),
                    }
                    for event in self.events
                ],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Read a text that `to_json` wrote; writing it again gives the same bytes.

        Raises:
            InputRefused: it is not a trace; the message names the place.
        """
        try:
            document = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputRefused("trace", f"not JSON: {error}", _REMEDY) from None
        reader = _JsonReader()
        top = reader.mapping(document, "the top level")
        version = top.get("toolrt_trace")
        if version != _VERSION:
            raise InputRefused("trace", f"toolrt_trace is {version!r}, expected {_VERSION}", _REMEDY)
        schema = top.get("schema", _UNVERSIONED)
        if isinstance(schema, bool) or not isinstance(schema, int) or not 1 <= schema <= SCHEMA:
            raise InputRefused("trace", f"schema is {schema!r}, expected 1 to {SCHEMA}", _REMEDY)
        steps = [reader.step(index, entry) for index, entry in enumerate(reader.sequence(top.get("steps"), "steps"))]
        events = [
            reader.event(index, entry, len(steps))
            for index, entry in enumerate(reader.sequence(top.get("events"), "events"))
        ]
        meta = reader.mapping(top.get("meta"), "meta")
        return cls(events, steps, meta, reader.mapping(top.get("notes"), "notes"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Trace of {counted(len(self.steps), 'step')} and {counted(len(self.events), 'event')}>"


class _JsonReader:
    """Reads the parts of a trace's JSON, naming the place of whatever is wrong."""

    def refuse(self, place: str, expected: str, got: object) -> InputRefused:
        return InputRefused("trace", f"{place}: expected {expected}, got {got!r:.60}", _REMEDY)

    def mapping(self, value: object, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.refuse(place, "an object", value)
        return value

    def sequence(self, value: object, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.refuse(place, "an array", value)
        return value

    def text(self, value: object, place: str) -> str:
        if not isinstance(value, str):
            raise self.refuse(place, "a string", value)
        return value

    def number(self, value: object, place: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(place, "a number", value)
        return value

    def step(self, index: int, value: object) -> Step:
        place = f"steps[{index}]"
        entry = self.mapping(value, place)
        task = self.text(entry.get("task"), f"{place}.task")
        enabled = tuple(
            self.text(name, f"{place}.enabled") for name in self.sequence(entry.get("enabled"), f"{place}.enabled")
        )
        if task not in enabled:
            raise self.refuse(f"{place}.task", f"one of the enabled tasks {list(enabled)}", task)
        accesses = []
        for pair in self.sequence(entry.get("touched"), f"{place}.touched"):
            if not (
                isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], list) and isinstance(pair[1], bool)
            ):
                raise self.refuse(f"{place}.touched", "pairs of a resource and true or false", pair)
            accesses.append(Access(frozen(pair[0]), pair[1]))
        causes = self.sequence(entry.get("causes"), f"{place}.causes")
        for cause in causes:
            if isinstance(cause, bool) or not isinstance(cause, int) or not 0 <= cause < index:
                raise self.refuse(f"{place}.causes", "indices of earlier steps", cause)
        time = self.number(entry.get("time"), f"{place}.time")
        return Step(index, task, enabled, enabled.index(task), tuple(accesses), time, tuple(causes))

    def event(self, index: int, value: object, steps: int) -> RawEvent:
        place = f"events[{index}]"
        entry = self.mapping(value, place)
        step = entry.get("step")
        if step is not None and (isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < steps):
            raise self.refuse(f"{place}.step", f"null or the index of one of {steps} steps", step)
        return (
            step,
            self.number(entry.get("time"), f"{place}.time"),
            self.text(entry.get("task"), f"{place}.task"),
            self.text(entry.get("kind"), f"{place}.kind"),
            self.mapping(entry.get("fields"), f"{place}.fields"),
        )

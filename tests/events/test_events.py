"""Each kind of event has a record, and a record is the same after it was written and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given, settings

from toolrt import Registry, Runtime, ToolCall, ToolContext, events, probe, tool
from toolrt.errors import InputRefused
from toolrt.events import BatchLeft, BatchSealed, CallFailed, CallStarted, EventRecord, ServiceFailed, observer
from toolrt.testing import Mix, simulate, tool_mixes
from toolrt.trace import recording


@pytest.mark.seldom
@settings(max_examples=60)
@given(mix=tool_mixes(cancel=True) | tool_mixes())
def test_events_of_real_batches_are_records(mix: Mix) -> None:
    """What a simulation keeps of any batch is what the record of its kind writes, field by field."""
    for event in simulate(mix, []).trace.events:
        record = events.from_json(event.kind, event.fields)
        assert record.traced
        assert record.to_json() == event.fields
        assert list(record.to_json()) == list(event.fields)


@pytest.mark.parametrize("record", events.kinds().values(), ids=events.kinds())
def test_events_can_be_written_and_read(record: type[EventRecord]) -> None:
    """Reading what was written gives an equal record, with the optional fields and without."""
    of_type = {"int": 3, "bool": True}
    values = {field.name: of_type.get(str(field.type), f"a {field.name}") for field in attrs.fields(record)}
    values |= {name: [[1, 2]] for name in ("applied", "rejected") if name in values}
    needed = {field.name: values[field.name] for field in attrs.fields(record) if field.default is attrs.NOTHING}
    for fields in (values, needed):
        one = record(**fields)
        assert events.from_json(one.kind, one.to_json()) == one
        assert set(one.to_json()) == set(fields)


@pytest.mark.parametrize("record", events.kinds().values(), ids=events.kinds())
def test_events_are_frozen_and_say_when_they_happen(record: type[EventRecord]) -> None:
    """No field can be assigned, and the reference page has a sentence for each."""
    one = record(**{field.name: () for field in attrs.fields(record)})
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.batch = "another"  # type: ignore[attr-defined]
    assert record.__doc__ is not None
    assert "." in record.__doc__


def test_errors_are_written_as_text() -> None:
    """A record holds the exception itself; its JSON does not."""
    assert ServiceFailed("b", 0, "hook", ValueError("why")).to_json()["error"] == "ValueError: why"
    assert CallFailed("b", 0, ValueError("why")).to_json()["error"] == "ValueError"


def test_unknown_kinds_and_missing_fields_are_refused() -> None:
    """The message names what is wrong; a field that is not known is passed over."""
    with pytest.raises(InputRefused, match=r"call\.begun"):
        events.from_json("call.begun", {})
    with pytest.raises(InputRefused, match="lane is missing"):
        events.from_json("call.started", {"batch": "b", "call": 0})
    for wrong in ("0", True, 0.0):
        with pytest.raises(InputRefused, match=r"call\.ended\.call: expected int, got"):
            events.from_json("call.ended", {"batch": "b", "call": wrong})
    assert events.from_json("batch.sealed", {"batch": "b", "new": 1}) == BatchSealed("b")
    assert events.from_json("batch.left", {"batch": "b", "results": [], "state": {}, "left": {}}) == BatchLeft(
        "b", [], {}, {}
    )


class Kept:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[EventRecord] = []

    def tell(self, record: EventRecord) -> None:
        self.told.append(record)


class Fields:
    """A sink of one's own, which knows no records."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Mapping[str, Any]]] = []

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        self.told.append((kind, fields))

    def access(self, resource: probe.Resource, write: bool) -> None:
        pass


def flags() -> tuple[bool, bool, bool]:
    return observer.listens, observer.records, observer.measures


def test_flags_say_who_listens() -> None:
    """Nothing listens at first; a recorder and the telemetry of batches come and go apart."""
    assert flags() == (False, False, False)
    one, two = Kept(), Kept()
    observer.measure_with(one)
    observer.measure_with(two)
    with recording(lambda: 0.0, lambda: "main") as recorder:
        assert flags() == (True, True, True)
        observer.stop_measuring(one)
        observer.stop_measuring(two)
        observer.stop_measuring(two)
        assert flags() == (True, True, False)
        observer.tell(BatchSealed("b"), two)
    assert flags() == (False, False, False)
    assert [event.kind for event in recorder.trace().events] == ["batch.sealed"]
    assert two.told == [BatchSealed("b")]


def test_what_a_trace_does_not_hold_goes_to_telemetry_alone() -> None:
    """A recorder is told of no wait."""
    kept = Kept()
    with recording(lambda: 0.0, lambda: "main") as recorder:
        observer.tell(events.CallReady("b", 0), kept)
    assert recorder.trace().events == ()
    assert kept.told == [events.CallReady("b", 0)]


def test_a_sink_of_ones_own_is_told_kinds_and_fields() -> None:
    """`probe.observed_by` takes any object with ``event`` and ``access``, as before there were records."""
    sink = Fields()
    with probe.observed_by(sink):
        observer.tell(CallStarted("b", 0, 1, False, None, "cancel"))
        probe.event("of one's own", n=1)
    fields = {"batch": "b", "call": 0, "lane": 1, "thread": False, "timeout": None, "interrupt": "cancel"}
    assert sink.told == [("call.started", fields), ("of one's own", {"n": 1})]


@tool(safe=True)
async def nothing(ctx: ToolContext) -> None:
    """Nothing."""


async def test_telemetry_listens_as_long_as_its_batch() -> None:
    """The flags fall when the last observed batch is left."""
    runtime = Runtime(Registry([nothing]), telemetry=Fields())
    async with runtime.open_batch() as batch:
        assert flags() == (True, False, True)
        batch.submit(ToolCall("c", "nothing", {}))
    assert flags() == (False, False, False)

"""What the telemetry tests share: an observer that keeps everything, and what must hold of what it was told."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator

from toolrt.trace import Trace

Told = tuple[str, Mapping[str, Any]]


class Keeper:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        self.told.append((kind, dict(fields)))

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.told]

    def of(self, *kinds: str) -> list[Mapping[str, Any]]:
        return [fields for kind, fields in self.told if kind in kinds]


class Raising:
    """An observer that fails at what it is told."""

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        raise ValueError("the observer is broken")


class Numbered(IdGenerator):
    """Ids that are the same in every run."""

    def __init__(self) -> None:
        self._spans = self._traces = 0

    def generate_span_id(self) -> int:
        self._spans += 1
        return self._spans

    def generate_trace_id(self) -> int:
        self._traces += 1
        return self._traces

    def is_trace_id_random(self) -> bool:
        return False


class Exported:
    """A provider of OpenTelemetry's SDK that keeps the spans in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(id_generator=Numbered(), shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def spans(self) -> Sequence[ReadableSpan]:
        """The spans that have ended, in that order."""
        return self._exporter.get_finished_spans()


def tree(spans: Iterable[ReadableSpan]) -> list[Any]:
    """The spans' names as a tree: each a name, or a list of a name and what is below it, by their beginning."""
    spans = list(spans)
    ids = {span.context.span_id for span in spans if span.context is not None}
    below: dict[int | None, list[ReadableSpan]] = defaultdict(list)
    for span in spans:
        parent = None if span.parent is None or span.parent.span_id not in ids else span.parent.span_id
        below[parent].append(span)

    def grown(parent: int | None) -> list[Any]:
        found = sorted(below[parent], key=lambda span: (span.start_time or 0, span.context.span_id))  # type: ignore[union-attr]
        return [
            [span.name, *grown(span.context.span_id)] if span.context.span_id in below else span.name  # type: ignore[union-attr]
            for span in found
        ]

    return grown(None)


def wrong_with_spans(spans: Sequence[ReadableSpan], begun: int | None = None) -> list[str]:
    """What does not hold: ended once, parents there, children inside parents, times ordered."""
    wrong = []
    by_id = {span.context.span_id: span for span in spans if span.context is not None}
    if len(by_id) != len(spans):
        wrong.append("a span has ended twice")
    if begun is not None and begun != len(spans):
        wrong.append(f"{begun} spans have begun and {len(spans)} ended")
    for span in spans:
        start, end = span.start_time, span.end_time
        if start is None or end is None or start > end:
            wrong.append(f"{span.name} ends before it begins")
            continue
        for event in span.events:
            if not start <= event.timestamp <= end:
                wrong.append(f"{event.name} is outside of {span.name}")
        parent = None if span.parent is None else by_id.get(span.parent.span_id)
        if parent is None:
            if span.name != "toolrt.batch":
                wrong.append(f"{span.name} has no parent")
            continue
        if (parent.start_time or 0) > start or (parent.end_time or 0) < end:
            wrong.append(f"{span.name} is not inside {parent.name}")
        if parent.name.split()[0] not in _PARENTS.get(span.name.split()[0], (parent.name.split()[0],)):
            wrong.append(f"{span.name} is a child of {parent.name}")
    return wrong


#: Which spans may stand above those of the runtime.
_PARENTS = {
    "toolrt.lane": ("toolrt.batch",),
    "execute_tool": ("toolrt.lane", "toolrt.batch"),
    "toolrt.wait": ("execute_tool", "toolrt.batch"),
}


def wrong_with(told: Sequence[Told]) -> list[str]:
    """What does not hold of all that an observer was told of batches that are over."""
    wrong: list[str] = []
    if [fields["time"] for _, fields in told] != sorted(fields["time"] for _, fields in told):
        wrong.append("time goes back")
    batches: dict[int, list[Told]] = {}
    open_calls: set[tuple[int, int]] = set()
    for kind, fields in told:
        number = fields["number"]
        if kind == "batch.opened":
            if number in batches:
                wrong.append(f"batch {number} is opened twice")
            above = fields["parent"]
            if above is not None and (above["number"], above["call"]) not in open_calls:
                wrong.append(f"batch {number} is not inside its parent")
            batches[number] = []
        elif kind == "call.started":
            open_calls.add((number, fields["call"]))
        elif kind == "call.ended":
            open_calls.discard((number, fields["call"]))
        if number not in batches:
            wrong.append(f"{kind} of batch {number}, which was not opened")
            continue
        batches[number].append((kind, fields))
    for number, events in batches.items():
        wrong += [f"batch {number}: {one}" for one in _wrong_with_batch(events)]
    if open_calls:
        wrong.append(f"calls {sorted(open_calls)} have not ended")
    return wrong


def _wrong_with_batch(events: Sequence[Told]) -> list[str]:
    wrong = []
    if events[-1][0] != "batch.ended" or sum(kind == "batch.ended" for kind, _ in events) != 1:
        wrong.append("it has not ended once, at last")
    lane_open: int | None = None
    began: Counter[str] = Counter()
    joined: dict[int, int] = {}
    started: set[int] = set()
    threads: set[int] = set()
    ended: set[int] = set()
    submitted: list[int] = []
    outcomes: dict[int, str] = {}
    waits: set[tuple[int, str]] = set()
    spans: dict[tuple[int, int], int | None] = {}
    for kind, fields in events:
        call = fields.get("call")
        if kind == "lane.began":
            if lane_open is not None:
                wrong.append(f"lane {fields['lane']} begins inside lane {lane_open}")
            lane_open = fields["lane"]
            began[kind] += 1
        elif kind == "lane.ended":
            if lane_open != fields["lane"]:
                wrong.append(f"lane {fields['lane']} ends and is not open")
            if left := [one for one, lane in joined.items() if lane == lane_open and one not in ended]:
                wrong.append(f"calls {left} outlive their lane")
            lane_open = None
        elif kind == "call.submitted":
            submitted.append(call)
        elif kind == "call.joined":
            if call in joined or fields["lane"] != lane_open:
                wrong.append(f"call {call} joins lane {fields['lane']}")
            joined[call] = fields["lane"]
        elif kind == "call.started":
            if call in started or call not in joined or call in ended:
                wrong.append(f"call {call} starts")
            started.add(call)
            threads |= {call} if fields["thread"] else set()
        elif kind == "call.settled":
            # A thread cannot be stopped: a result that nothing had seen says how it ended.
            if call in outcomes and fields["outcome"] != "skipped" and call not in threads:
                wrong.append(f"call {call} is settled twice")
            outcomes[call] = fields["outcome"]
        elif kind == "call.ended":
            if call in ended or call not in joined or fields["ran"] != (call in started):
                wrong.append(f"call {call} ends")
            if any(key[0] == call for key in spans):
                wrong.append(f"call {call} ends with spans open")
            ended.add(call)
        elif kind == "wait.began":
            if (call, fields["why"]) in waits or call in started or call in outcomes:
                wrong.append(f"call {call} waits for {fields['why']}")
            if (fields["why"] == "lane") == (call in joined):
                wrong.append(f"call {call} waits for {fields['why']}, and joined is {call in joined}")
            if fields["why"] == "slot" and any(one == call for one, _ in waits):
                wrong.append(f"call {call} waits for a slot and for something else")
            waits.add((call, fields["why"]))
        elif kind == "wait.ended":
            if (call, fields["why"]) not in waits:
                wrong.append(f"call {call} ends a wait for {fields['why']} that did not begin")
            waits.discard((call, fields["why"]))
        elif kind == "span.began":
            if call not in started or call in ended or (call, fields["span"]) in spans:
                wrong.append(f"span {fields['span']} of call {call} begins")
            if fields["parent"] is not None and (call, fields["parent"]) not in spans:
                wrong.append(f"span {fields['span']} of call {call} is not inside its parent")
            spans[call, fields["span"]] = fields["parent"]
        elif kind == "span.ended":
            if (call, fields["span"]) not in spans:
                wrong.append(f"span {fields['span']} of call {call} ends")
            if (call, fields["span"]) in {(key[0], parent) for key, parent in spans.items()} and not fields[
                "left_open"
            ]:
                wrong.append(f"span {fields['span']} of call {call} ends before one inside it")
            spans.pop((call, fields["span"]), None)
    if lane_open is not None or waits or spans or set(joined) != ended:
        wrong.append(f"left open: lane {lane_open}, waits {waits}, spans {spans}, calls {set(joined) ^ ended}")
    if submitted != list(range(len(submitted))) or set(outcomes) != set(submitted):
        wrong.append(f"submitted {submitted}, settled {sorted(outcomes)}")
    last = events[-1][1]
    if last.get("outcomes") != dict(Counter(outcomes.values())) or last.get("lanes") != began["lane.began"]:
        wrong.append(f"{last} says another thing than {outcomes}")
    return wrong


_NAMES = {"lane.began": "lane.started", "state.merged": "lane.merged"}
_COMMON = ("call.submitted", "call.started", "call.settled", "call.ended", "batch.cancelled", "batch.stopped")
_KINDS = {**_NAMES, **{kind: kind for kind in _COMMON}}


def told_as_reported(told: Sequence[Told]) -> list[Any]:
    """What telemetry told, of what the probe reports too: kind, time, batch, call or lane, outcome."""
    return [
        (_KINDS[kind], fields["time"], fields["batch"], fields.get("call", fields.get("lane")), fields.get("outcome"))
        for kind, fields in told
        if kind in _KINDS
    ]


def reported(trace: Trace) -> list[Any]:
    """The same of a trace.

    A call that ended before its claims were known has not joined its lane: telemetry tells of its result alone.
    """
    found = []
    joined = {(event.fields["batch"], event.fields["call"]) for event in trace.of_kind("ticket.taken")}
    for event in trace.of_kind(*_KINDS.values()):
        fields = event.fields
        if event.kind == "call.ended" and (fields["batch"], fields["call"]) not in joined:
            continue
        place = fields.get("call", fields.get("lane"))
        found.append((event.kind, round(event.time * 1e9), fields["batch"], place, fields.get("outcome")))
    return found


def outcomes_of_spans(spans: Sequence[ReadableSpan]) -> list[tuple[Any, Any]]:
    """Index and outcome of every call, sorted."""
    shown = [dict(span.attributes or {}) for span in spans if span.name.startswith("execute_tool")]
    return sorted((attributes["toolrt.call"], attributes["toolrt.outcome"]) for attributes in shown)


def outcomes_of_results(trace: Trace) -> list[tuple[Any, Any]]:
    """The same of what the batches left."""
    results = [result for event in trace.of_kind("batch.left") for result in event.fields["results"]]
    return sorted((result["call_index"], result["outcome"]) for result in results)

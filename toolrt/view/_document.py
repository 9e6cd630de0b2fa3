"""A trace as the JSON that the page reads.

Rules.  Tables of columns, so that ten thousand events stay a megabyte or two; every text is short, and says how much
is left out.  Nothing here is HTML.

Limits.  In a trace with few tasks times steps the page has the direct edges and marks the races.  In a larger one that
would take seconds, so the page has all edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolrt.probe import Resource
from toolrt.trace import Edge, Trace, parting_of, race_between
from toolrt.view._calls import MOST_CLAIMS, PHASES, DrawnBatch, DrawnCall, batches_of, claims_of, claims_told, held_back
from toolrt.view._columns import column_of, columns_of, detail, done_in, names_in, preempts, resource_text, titles_of
from toolrt.view._short import one_line, short, short_text
from toolrt.view._words import told

#: Tasks times steps of a trace that is searched for races.
_MOST_CLOCKED = 4_000_000

#: So many races of one trace are listed.
_MOST_RACES = 500

#: Lines of one file.
_MOST_LINES = 200

#: Of one call so many that it waits for.
_MOST_WAITS = 200

#: Two traces are compared up to so many steps when the race between them is looked for.
_MOST_COMPARED = 4_000


def document_of(traces: Sequence[Trace], names: Sequence[str], title: str) -> dict[str, Any]:
    """Give what the page is made of: one trace, or two to be compared."""
    runs = [_run(trace, name) for trace, name in zip(traces, names, strict=True)]
    document: dict[str, Any] = {"title": short_text(title, 200), "phases": dict(PHASES), "runs": runs, "parting": None}
    if len(traces) == 2:
        document["parting"] = _parting(*traces)
    return document


def _run(trace: Trace, name: str) -> dict[str, Any]:
    steps, events = trace.steps, trace.events
    columns = columns_of([step.task for step in steps] + [event.task for event in events])
    place = {column: index for index, column in enumerate(columns)}
    names = _TextTable()
    resources = _ResourceTable(trace)
    kinds = _TextTable()
    batches = batches_of(trace)
    tasks = len({step.task for step in steps})
    is_clocked = tasks * len(steps) <= _MOST_CLOCKED
    return {
        "name": short_text(name, 60),
        "meta": short(trace.meta),
        "columns": [one_line(title, 80) for title in titles_of(columns, trace)],
        "names": names.entries,
        "resources": resources.entries,
        "kinds": kinds.entries,
        "steps": {
            "column": [place[column_of(step.task)] for step in steps],
            "name": [names.of(one_line(step.task, 80)) for step in steps],
            "time": [short(step.time) for step in steps],
            "enabled": [[names.of(one_line(task, 80)) for task in step.enabled[:50]] for step in steps],
            "more": {step.index: len(step.enabled) - 50 for step in steps if len(step.enabled) > 50},
            "touched": [
                [2 * resources.at(access.resource) + access.write for access in step.accesses[:40]] for step in steps
            ],
            "untold": {step.index: len(step.accesses) - 40 for step in steps if len(step.accesses) > 40},
            "done": [short_text(done_in(step, trace), 160) for step in steps],
            "preempts": [index for index in range(len(steps)) if preempts(steps, index)],
        },
        "events": {
            "step": [-1 if event.step is None else event.step for event in events],
            "time": [short(event.time) for event in events],
            "column": [place[column_of(event.task)] for event in events],
            "kind": [kinds.of(short_text(event.kind, 80)) for event in events],
            "told": [told(event) for event in events],
            "fields": [short(event.fields) for event in events],
        },
        "batches": [_batch(batch) for batch in batches],
        "edges": [_edge(edge, resources) for edge in (trace.direct_edges if is_clocked else trace.edges)],
        "races": [_edge(race, resources) for race in _races(trace)] if is_clocked else None,
        "details": _details(trace, resources),
    }


class _TextTable:
    """Texts, each once."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._places: dict[str, int] = {}

    def of(self, text: str) -> int:
        place = self._places.setdefault(text, len(self.entries))
        if place == len(self.entries):
            self.entries.append(text)
        return place


def _resource(resource: Resource, names: Mapping[str, str]) -> str:
    return one_line(resource_text(resource, names), 120)


class _ResourceTable(_TextTable):
    """Resources, by what people call them."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._names = names_in(trace)

    def at(self, resource: Resource) -> int:
        return self.of(_resource(resource, self._names))


def _edge(edge: Edge, resources: _ResourceTable) -> list[Any]:
    return [edge.before, edge.after, [resources.at(each) for each in edge.resources[:8]], edge.wakes]


def _races(trace: Trace) -> list[Edge]:
    # What the program shares comes first: a race for a lock or a queue decides less often.
    races = sorted(trace.races, key=lambda race: not any(each[0] in ("cell", "watched") for each in race.resources))
    return races[:_MOST_RACES]


def _batch(batch: DrawnBatch) -> dict[str, Any]:
    return {
        "id": short_text(batch.batch, 80),
        "label": short_text(batch.label, 120),
        "policy": short_text(batch.policy, 40),
        "limit": batch.limit,
        "opened": batch.opened,
        "left": batch.left,
        "lanes": [
            {"index": lane.index, "shared": lane.shared, "started": lane.started, "merged": lane.merged}
            for _, lane in sorted(batch.lanes.items())
        ],
        "calls": _calls(batch),
    }


def _calls(batch: DrawnBatch) -> list[dict[str, Any]]:
    claims = {call.index: claims_of(call) for call in batch.calls.values()}

    def holders(call: DrawnCall) -> list[list[int]]:
        """Give each call that it waits for with the places of both claims; without them where no claims conflict."""
        waits = call.waits_for[:_MOST_WAITS]
        return [[index, *(held_back(claims[call.index], claims[index]) or ())] for index in waits]

    return [_call(call, holders(call)) for _, call in sorted(batch.calls.items())]


def _call(call: DrawnCall, holders: list[list[int]]) -> dict[str, Any]:
    return {
        "index": call.index,
        "id": short_text(call.call_id, 80),
        "name": short_text(call.name, 80),
        "input": short(call.input),
        "lane": call.lane,
        "shared": call.shared,
        "claims": claims_told(call),
        "unshown": max(0, len(call.claims) - MOST_CLAIMS),
        "ticket": call.ticket,
        "waits": call.waits_for[:_MOST_WAITS],
        "holders": holders,
        "submitted": call.submitted,
        "started": call.started,
        "settled": call.settled,
        "ended": call.ended,
        "delivered": call.delivered,
        "outcome": call.outcome,
        "content": short(call.content),
        "error": None if call.error is None else short_text(call.error),
        "progress": [[seq, accepted] for seq, accepted in call.progress],
        "spans": [[span.phase, span.start, span.end] for span in call.spans],
    }


def _details(trace: Trace, resources: _ResourceTable) -> dict[str, Any]:
    """Where each step ran and what cells held, as the notes have it; nothing where they are odd."""
    stops = _stops(detail(trace, "stops", dict))
    found: dict[str, Any] = {"steps": {}, "accesses": {}, "sources": {}, "stops": stops}
    for file, lines in detail(trace, "sources", dict).items():
        kept = found["sources"][short_text(file, 100)] = []
        for line in lines[:_MOST_LINES] if isinstance(lines, list) else ():
            match line:
                case [int() as number, str() as text]:
                    kept.append([number, one_line(text, 160)])
    for index, place in detail(trace, "steps", dict).items():
        match place:
            case [str() as where, str() as line]:
                found["steps"][str(index)] = [short_text(where, 120), short_text(line, 200)]
    for access in detail(trace, "accesses", list):
        match access:
            case [
                int() as step,
                list() as resource,
                bool() as write,
                str() as where,
                str() as line,
                str() | None as value,
            ]:
                entry = [
                    2 * resources.at(tuple(resource)) + write,
                    short_text(where, 120),
                    short_text(line, 200),
                    None if value is None else short_text(value, 200),
                ]
                found["accesses"].setdefault(str(step), []).append(entry)
    return found


def _stops(stops: Mapping[str, Any]) -> dict[str, Any]:
    """Where each task stopped at the end of its step, and what tasks waited for; nothing where the notes are odd."""
    found: dict[str, Any] = {"frames": [], "steps": {}, "waits": []}
    frames, steps, waits = (stops.get(part) for part in ("frames", "steps", "waits"))
    for frame in frames if isinstance(frames, list) else ():
        match frame:
            case [str() as where, str() as function, str() as text]:
                found["frames"].append([short_text(where, 120), one_line(function, 80), one_line(text, 160)])
            case _:
                found["frames"].append(["?", "", ""])
    for step, places in steps.items() if isinstance(steps, Mapping) else ():
        if isinstance(places, list):
            known = [place for place in places if type(place) is int and 0 <= place < len(found["frames"])]
            found["steps"][str(step)] = known
    for wait in waits if isinstance(waits, list) else ():
        match wait:
            case [int() as step, str() as task, str() as words]:
                found["waits"].append([step, one_line(task, 80), one_line(words, 160)])
    return found


def _parting(one: Trace, other: Trace) -> dict[str, Any]:
    """Say where two executions part, and which pair of accesses decides."""
    if one.steps and other.steps:
        mine, theirs = [step.task for step in one.steps], [step.task for step in other.steps]
        parting = parting_of(mine, theirs)
        race = None
        if max(len(mine), len(theirs)) <= _MOST_COMPARED:
            race = race_between(one.steps, other.steps)
        found: dict[str, Any] = {"unit": "steps", "before": parting.before, "after": parting.after, "race": None}
        if race is not None:
            (first, left), (second, right) = race.first, race.second
            found["race"] = {
                "resource": _resource(left.resource, names_in(one)),
                "steps": [
                    [first.index, second.index],
                    [_same(first.index, mine, theirs), _same(second.index, mine, theirs)],
                ],
                "writes": [left.write, right.write],
            }
        return found
    mine, theirs = (
        [_happened(one, seq) for seq in range(len(one.events))],
        [_happened(other, seq) for seq in range(len(other.events))],
    )
    parting = parting_of(mine, theirs)
    return {"unit": "events", "before": parting.before, "after": parting.after, "race": None}


def _same(index: int, mine: list[str], theirs: list[str]) -> int | None:
    """Give the step of the other order with the same number among its task's; None when it has none."""
    number = mine[: index + 1].count(mine[index])
    for place, task in enumerate(theirs):
        number -= task == mine[index]
        if number == 0:
            return place
    return None


def _happened(trace: Trace, seq: int) -> str:
    # Neither time nor names of batches: those differ from run to run.
    event = trace.events[seq]
    return f"{event.kind} {event.fields.get('call')} {event.fields.get('lane')}"

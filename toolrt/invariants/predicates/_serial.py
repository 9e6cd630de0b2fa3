"""Laws 15 and 16: by claims ends like one call after the other, and no write of state is lost in silence.

Rules.
    1. Law 15 compares with ``notes["serial"]``: what `toolrt.invariants.serial` gives on the same calls (``results``,
       ``state``, ``files``, and in ``sets`` the parts of the state that each call changes).  That is a run of its own,
       without lanes, and shares no code with the runtime; law 7 compares with the same plan.
    2. A difference that is meant is left out of the comparison, and nothing else is.  A call may differ when it read a
       part of the state that an earlier call of its lane sets, unless both claim that state key: it is shown the state
       as of its lane's start, and may be refused for a stale write.  From there a difference can only go on through the
       state and through claims: to calls that read what such a call sets, and to later calls whose claims conflict with
       claims under which it may write.
    3. Law 16 looks at one trace alone: at what each call read, and at what each modifier was given, read and set.

Limits.  Law 15 looks at batches of `by_claims`, and of lane policies of a user's own that do not give it up.  With a
cancel it compares the results of finished calls.  Where a call is refused inside a sub-batch because its parent does
not cover it, nothing is compared: in a lane of its own the parent covers everything; nor where a call that opened a
batch has its answer from before a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolrt.events import BatchOpened, ModifierApplied
from toolrt.invariants.predicates._equality import compared_results
from toolrt.invariants.predicates._law import told
from toolrt.invariants.predicates._story import BatchStory, Breach, CallStory, LaneStory, TraceStory
from toolrt.model import EVERYTHING, READ, WRITE, Claim
from toolrt.order import STATE_KEY
from toolrt.trace import Trace, TraceEvent, plain

#: A part of the state, as events have it: its kind and its name.
_Part = tuple[str, str]

_ALL_KEYS: _Part = ("keys", "")


def has_serial(trace: Trace) -> bool:
    """Whether the trace is to end as the serial run in its notes."""
    opened = next((event for event in trace.events if event.kind == BatchOpened.kind), None)
    if opened is None or not isinstance(trace.notes.get("serial"), Mapping):
        return False
    # A policy of a user's own keeps the law, unless it gives it up; a function that declares nothing promises nothing.
    given_up = opened.fields.get("gives_up")
    return opened.fields.get("policy") == "by_claims" if given_up is None else "same_as_serial" not in given_up


@told(15, "same_as_serial", "By claims is as one at a time: same results, same files, same state.", has_serial)
def same_as_serial(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """A batch run by claims ends like a serial run of the same calls, and so does each batch inside it."""
    found = _compared(story, trace)
    if found is None:
        return
    serial, batch, left, meant, exact = found
    expected = [want for want in _before(batch, serial) if want["call_index"] not in meant.calls]
    yield from compared_results(batch, left, expected, exact, "the serial run")
    for name, ran, inner in ran_inside(story, trace):
        if inner is not None and inner.left is not None:
            yield from compared_results(inner, inner.left, ran["results"], exact, f"the serial run of {name}")
    if not exact:
        return
    yield from _states(batch, left, plain(serial["state"]), meant)
    files = trace.notes.get("files")
    if isinstance(files, Mapping) and not meant.files:
        want = serial.get("files", {})
        for file in sorted({*files, *want}):
            if files.get(file) != want.get(file):
                text = f"{file}: the serial run leaves {want.get(file)!r}, got {files.get(file)!r}"
                yield batch.breach(text)


def _compared(
    story: TraceStory, trace: Trace
) -> tuple[Mapping[str, Any], BatchStory, TraceEvent, _MeantDifferences, bool] | None:
    """What is compared: the serial run, the batch, its end, what may differ, and whether all has to be the same."""
    if not has_serial(trace):
        return None
    serial: Mapping[str, Any] = trace.notes["serial"]
    batch = next((batch for batch in story.batches if batch.left is not None and batch.parent is None), None)
    if batch is None or batch.left is None or _refuses_children(batch) or _ran_before(batch):
        return None
    exact = bool(serial.get("exact", True)) and not batch.is_cut
    return serial, batch, batch.left, _MeantDifferences(batch, serial.get("sets", ()), exact), exact


def _before(batch: BatchStory, serial: Mapping[str, Any]) -> list[Any]:
    return [want for want in plain(serial["results"]) if want["call_index"] < batch.cut_at]


def ran_inside(story: TraceStory, trace: Trace) -> Iterator[tuple[str, Mapping[str, Any], BatchStory | None]]:
    """Each batch that the serial run ran inside a call which may not differ: its id, its end, and the batch itself.

    Such a call runs to its end, so its batches are left, and end in the same way.
    """
    found = _compared(story, trace)
    if found is None or "tree" not in found[0]:
        return
    serial, batch, _, meant, exact = found
    inside = {inner.id: inner for inner in story.batches if inner.parent is not None}
    alike = {want["call_index"] for want in _before(batch, serial) if want["outcome"] in ("ok", "error")} - meant.calls
    for name, ran in serial["tree"].items():
        path = name.removeprefix(f"{batch.id}/")
        if exact and path != name and int(path.split(".")[0]) in alike:
            yield name, ran, inside.get(name)


def _ran_before(batch: BatchStory) -> bool:
    """Whether a call has its answer from before a crash, and opened a batch then: what it read there is not seen."""
    return any(call.replayed and call.before is not None and call.before.sub_batches for call in batch.calls.values())


def _refuses_children(batch: BatchStory) -> bool:
    return any(
        one.outcome == "invalid" for call in batch.calls.values() for one in call.family if one.batch is not batch
    )


def _states(batch: BatchStory, left: TraceEvent, want: Any, meant: _MeantDifferences) -> Iterator[Breach]:
    got = left.fields["state"]
    for kind, of in (("value", "values"), ("field", "fields")):
        here, there = got.get(of, {}), want.get(of, {})
        for name in sorted({*here, *there}):
            if (kind, name) in meant.parts:
                continue
            mine, theirs = here.get(name, "nothing"), there.get(name, "nothing")
            if mine != theirs:
                yield batch.breach(f"state {name}: the serial run leaves {theirs!r}, got {mine!r}", left)


class _MeantDifferences:
    """What of a batch may differ from the serial run, because it is meant to."""

    def __init__(self, batch: BatchStory, in_turn: Sequence[Any], exact: bool) -> None:
        #: The calls whose results may differ.
        self.calls: set[int] = set()
        #: The parts of the state that may.
        self.parts: set[_Part] = set()
        #: Whether files may.
        self.files = False
        #: Claims under which such calls may have written.
        self._claims: list[Claim] = []
        self._sets: dict[int, set[_Part]] = {
            index: {_part(part) for part in parts} for index, parts in enumerate(in_turn)
        }
        for lane in batch.lanes.values():
            for event in lane.applied:
                self._sets.setdefault(event.fields["call"], set()).update(map(_part, event.fields.get("sets", ())))
        for index in sorted(batch.calls):
            call = batch.calls[index]
            if call.refused is not None:
                self._sets.setdefault(index, set()).update(map(_part, call.refused.fields["sets"]))
            if self._may_differ(batch, call, exact):
                self._spread(batch, call)
            elif any(_touches(event, self.parts) for event in _applied_of(batch, call)):
                # Its result is the same; what its modifiers make of another state is not.
                self.parts |= self._sets.get(index, set())

    def _may_differ(self, batch: BatchStory, call: CallStory, exact: bool) -> bool:
        if _has_stale_claims(call):
            return True
        if not exact and call.first_end is not None and call.again is None:
            return True  # it was to run again, and the cancel came first
        if any(claim.conflicts_with(mine) for claim in self._claims for mine in call.claims):
            return True
        read = _reads_of(call)
        if _meet(read, self.parts):
            return True
        lane = batch.lanes.get(-1 if call.lane is None else call.lane)
        if lane is not None and lane.shared and call.again is None:
            for other in lane.calls:
                sets = self._sets.get(other, set()) if other < call.index else set()
                if _meet(read, {part for part in sets if not _kept_apart(call, batch.call(other), part)}):
                    return True
        if not exact and call.sub_batches:
            return True
        return any(_differs_inside(one) for one in call.family if one.batch is not batch)

    def _spread(self, batch: BatchStory, call: CallStory) -> None:
        """Take note of what follows from a difference of this call."""
        self.calls.add(call.index)
        self.parts |= self._sets.get(call.index, set())
        writes = [claim for claim in call.claims if claim.mode is WRITE]
        if _has_stale_claims(call):
            writes = [EVERYTHING]  # in the serial run it touched what it does not hold
        self._claims += writes
        self.files = self.files or bool(writes)
        if call.stops:
            # In one of the two runs what follows may be skipped.
            for other in batch.calls:
                if other > call.index:
                    self.calls.add(other)
                    self.parts |= self._sets.get(other, set())
                    self.files = True


def _has_stale_claims(call: CallStory) -> bool:
    """Whether it was refused, because it would have claimed what it does not hold."""
    return any(event.fields["refused"] for event in call.stale)


def _differs_inside(call: CallStory) -> bool:
    """Whether a call of a sub-batch may differ from one in a lane of its own."""
    if call.refused is not None or _has_stale_claims(call):
        return True
    lane = call.batch.lanes.get(-1 if call.lane is None else call.lane)
    if lane is None or not lane.shared or call.again is not None:
        return False
    sets = {
        _part(part)
        for event in lane.applied
        if event.fields["call"] < call.index
        for part in event.fields.get("sets", ())
    }
    return _meet(_reads_of(call), sets)


def _applied_of(batch: BatchStory, call: CallStory) -> Iterator[TraceEvent]:
    lane = batch.lanes.get(-1 if call.lane is None else call.lane)
    for event in () if lane is None else lane.applied:
        if event.fields["call"] == call.index:
            yield event


def _touches(event: TraceEvent, parts: set[_Part]) -> bool:
    return _meet({_part(part) for part in event.fields.get("reads", ())}, parts)


def _reads_of(call: CallStory) -> set[_Part]:
    return {_part(part) for event in call.settled for part in event.fields.get("reads", ())}


def _part(fields: Sequence[Any]) -> _Part:
    return str(fields[0]), str(fields[1])


def _meet(read: set[_Part], sets: set[_Part]) -> bool:
    """Whether something that was read is set."""
    for kind, name in sets:
        if (kind, name) in read or (kind == "value" and (("key", name) in read or _ALL_KEYS in read)):
            return True
    return False


def _kept_apart(call: CallStory, earlier: CallStory, part: _Part) -> bool:
    """Whether claims on the key promise that the call sees what the earlier one made of it."""
    mine, theirs = Claim((STATE_KEY, part[1]), READ), Claim((STATE_KEY, part[1]), WRITE)
    claimed = any(claim.covers(mine) for claim in call.claims)
    return part[0] == "value" and claimed and any(claim.covers(theirs) for claim in earlier.claims)


# Law 16


def _tells_of_state(trace: Trace) -> bool:
    return all("sets" in event.fields for event in trace.events if event.kind == ModifierApplied.kind)


@told(16, "no_write_lost", "No write of state is lost in silence.", _tells_of_state)
def no_write_lost(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """No modifier undoes a change of an earlier call that its own call had not seen, unless it reads its argument."""
    for batch in story.batches:
        for _, lane in sorted(batch.lanes.items()):
            if lane.started is not None and lane.shared and "state" in lane.started.fields:
                yield from _lost(batch, lane, _parts_of(lane.started.fields["state"]))
                if lane.merged is not None or batch.crashed is None:  # what is refused now is applied at the lane's end
                    yield from _needlessly_refused(batch, lane)


def _parts_of(state: Mapping[str, Any]) -> dict[_Part, Any]:
    values = {("value", name): value for name, value in state.get("values", {}).items()}
    return values | {("field", name): value for name, value in state.get("fields", {}).items()}


def _lost(batch: BatchStory, lane: LaneStory, seen: Mapping[_Part, Any]) -> Iterator[Breach]:
    now = dict(seen)
    changed_by: dict[_Part, int] = {}
    before, of = dict(now), None
    for event in lane.applied:
        index = event.fields["call"]
        if index != of:
            before, of = dict(now), index
        if not event.fields.get("ok") or "sets" not in event.fields:
            continue
        call = batch.call(index)
        had_read, reads = _reads_of(call), {_part(part) for part in event.fields["reads"]}
        for kind, name, *value in event.fields["sets"]:
            part = (str(kind), str(name))
            by = changed_by.get(part)
            if (
                call.again is None
                and by is not None
                and by != index
                and part not in reads
                and _is_stale(part, had_read, reads, seen, before)
            ):
                text = (
                    f"call {by} changed state {name} after this call had read it, and this call's modifier sets it "
                    f"without reading it: expected the call to be refused"
                )
                yield Breach(text, batch.id, index, event.seq)
            if value:
                now[part] = value[0]
            else:
                now.pop(part, None)
            changed_by[part] = index


def _is_stale(
    part: _Part, had_read: set[_Part], reads: set[_Part], seen: Mapping[_Part, Any], before: Mapping[_Part, Any]
) -> bool:
    if part in had_read and (part in seen, seen.get(part)) != (part in before, before.get(part)):
        return True
    looked, looks = (
        (("key", part[1]) in had_read or _ALL_KEYS in had_read),
        (("key", part[1]) in reads or _ALL_KEYS in reads),
    )
    return part[0] == "value" and looked and not looks and (part in seen) != (part in before)


def _needlessly_refused(batch: BatchStory, lane: LaneStory) -> Iterator[Breach]:
    for index in lane.calls:
        call = batch.call(index)
        if call.refused is None:
            continue
        part = _part(call.refused.fields["part"])
        earlier = {
            _part(other)
            for event in lane.applied
            if event.fields["call"] < index
            for other in event.fields.get("sets", ())
        }
        if part not in earlier:
            text = f"refused for state {part[1]}, which no earlier call of its lane has changed"
            yield Breach(text, batch.id, index, call.refused.seq)
        elif not _meet(_reads_of(call), {part}):
            text = f"refused for state {part[1]}, which the call had not read"
            yield Breach(text, batch.id, index, call.refused.seq)

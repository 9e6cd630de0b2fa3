"""Laws 4 and 5: which calls may overlap.

Law 4 compares versions only in a simulation: on a real disk others may write too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from itertools import chain

import attrs

from toolrt.events import CallEnded, CallStarted, FileRead, MutationBegan, MutationEnded, TicketTaken
from toolrt.invariants.predicates._law import told
from toolrt.invariants.predicates._serial import has_serial
from toolrt.invariants.predicates._story import CRASHED, NEVER, BatchStory, Breach, CallStory, TraceStory
from toolrt.invariants.serial import conflict
from toolrt.trace import Trace, TraceEvent


def _seq(event: TraceEvent) -> int:
    return event.seq


@attrs.define
class _FileHistory:
    """What is known of one file while the trace is read."""

    #: The calls whose mutation has begun and not ended, by batch and call.
    open: dict[tuple[str, int], TraceEvent] = attrs.field(factory=dict)
    #: For each batch the highest call whose mutation has begun.
    highest: dict[str, int] = attrs.field(factory=dict)
    #: What the last mutation left, and the event that says so; None before the first one.
    landed: TraceEvent | None = None
    #: The first read before any mutation.
    first_read: TraceEvent | None = None


@told(4, "same_file_in_call_order", "Mutations of one file happen in call_index order, and never overlap.")
def same_file_in_call_order(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """A read sees exactly the mutations of lower calls of its batch; calls whose claims conflict run in call order.

    So do calls that take a place of one resource: each starts while fewer before it are left than there are places.
    """
    for batch in story.batches:
        yield from _in_order_of_claims(batch)
        yield from _in_order_of_places(batch)
    files: dict[str, _FileHistory] = {}
    for event in story.events:
        if event.kind == CRASHED:
            files.clear()  # what was being written may be whole or not
        elif event.kind in _FILE_EVENTS:
            name = str(event.fields.get("file"))
            file = files.setdefault(name, _FileHistory())
            yield from _FILE_EVENTS[event.kind](name, file, event, story)
    yield from _missed(story)


def _in_order_of_claims(batch: BatchStory) -> Iterator[Breach]:
    """Calls that start beside one that conflicts with them, or before one of a lower index that does.

    Of calls that exclude others law 5 speaks.
    """
    running: dict[int, CallStory] = {}
    #: Those that have started, in call order.
    started: list[int] = []
    for event in batch.events:
        if event.kind == CallEnded.kind:
            running.pop(event.fields["call"], None)
        elif event.kind == CallStarted.kind:
            call = batch.calls[event.fields["call"]]
            late = [batch.calls[index] for index in started[bisect_right(started, call.index) :]]
            for other in {**running, **{one.index: one for one in late}}.values():
                if _meets(call, other):
                    what = "beside" if other.index in running else "after"
                    text = f"its claims conflict with those of call {other.index}: expected call order, it started"
                    yield call.breach(f"{text} {what} that one", event)
            insort(started, call.index)
            running[call.index] = call


def _in_order_of_places(batch: BatchStory) -> Iterator[Breach]:
    """Calls that start while as many calls of lower index as there are places have one, or are to have it first."""
    #: The calls that have a ticket for a place of each resource and have not ended.
    left: dict[tuple[object, ...], list[int]] = {}
    for event in batch.events:
        if event.kind == TicketTaken.kind:
            call = batch.calls[event.fields["call"]]
            for claim in call.places:
                insort(left.setdefault(claim.resource, []), call.index)
        elif event.kind == CallEnded.kind:
            for indices in left.values():
                if event.fields["call"] in indices:
                    indices.remove(event.fields["call"])
        elif event.kind == CallStarted.kind:
            call = batch.calls[event.fields["call"]]
            for claim in call.places:
                slots, before = call.places_for(claim), bisect_left(left.get(claim.resource, []), call.index)
                if before >= slots:
                    what = "/".join(map(str, claim.resource))
                    text = (
                        f"{what} has {slots} places for it: expected fewer calls before it that take one, got {before}"
                    )
                    yield call.breach(text, event)


def _meets(one: CallStory, other: CallStory) -> bool:
    if one is other or one.may_exclude or other.may_exclude:
        return False
    return any(conflict(mine, theirs) for mine in one.claims for theirs in other.claims)


def _where(event: TraceEvent) -> tuple[str, int]:
    return str(event.fields["batch"]), int(event.fields["call"])


def _began(name: str, file: _FileHistory, event: TraceEvent, story: TraceStory) -> Iterator[Breach]:
    batch, call = _where(event)
    for _, other in file.open:
        text = f"{name}: expected mutations one at a time; that of call {other} had not ended"
        yield Breach(text, batch, call, event.seq)
    for where, index in story.levels(event):
        before = file.highest.get(where, -1)
        if index < before:
            text = f"{name}: expected mutations by call_index, got one by call {index} after call {before}"
            yield Breach(text, where, index, event.seq)
        file.highest[where] = max(before, index)
    file.open[batch, call] = event


def _ended(name: str, file: _FileHistory, event: TraceEvent, story: TraceStory) -> Iterator[Breach]:
    file.open.pop(_where(event), None)
    if event.fields["ok"]:
        file.landed = event
    yield from ()


def _read(name: str, file: _FileHistory, event: TraceEvent, story: TraceStory) -> Iterator[Breach]:
    batch, call = _where(event)
    for where, index in story.levels(event):
        if file.highest.get(where, -1) > index:
            text = f"{name}: expected not to see the mutation by call {file.highest[where]}, read after it had begun"
            yield Breach(text, where, index, event.seq)
    if any(where != (batch, call) for where in file.open):
        yield Breach(f"{name}: read while it was being changed", batch, call, event.seq)
    version = event.fields.get("version")
    if not story.virtual or version is None:
        return
    if file.landed is None:
        first = file.first_read = file.first_read or event
        if version != first.fields["version"]:
            text = f"{name}: no mutation changed it since call {first.fields['call']} read {first.fields['version']}"
            yield Breach(f"{text}, read {version}", batch, call, event.seq)
    elif file.landed.fields.get("version") not in (None, version):
        expected = f"{file.landed.fields['version']} of call {file.landed.fields['call']}"
        yield Breach(f"{name}: expected version {expected}, read {version}", batch, call, event.seq)


_FILE_EVENTS = {MutationBegan.kind: _began, MutationEnded.kind: _ended, FileRead.kind: _read}


def _missed(story: TraceStory) -> Iterator[Breach]:
    """Reads that came before the end of a mutation of a lower call."""
    #: For each file and batch the lowest call whose mutation ends later in the trace.
    later: dict[tuple[str, str], int] = {}
    found = []
    for event in reversed(story.events):
        if event.kind == CRASHED:
            later.clear()
        if event.kind not in _FILE_EVENTS:
            continue
        for batch, call in story.levels(event):
            key = str(event.fields.get("file")), batch
            if event.kind == MutationEnded.kind:
                later[key] = min(call, later.get(key, call))
            elif event.kind == FileRead.kind and later.get(key, call) < call:
                text = f"{key[0]}: expected to see the mutation by call {later[key]}, read before it had ended"
                found.append(Breach(text, batch, call, event.seq))
    yield from reversed(found)


@told(5, "exclusive_alone", "An exclusive call overlaps nothing.")
def exclusive_alone(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """Between the start and the end of a call that runs alone, no other call of its tree of batches runs.

    A call does not overlap the calls of its own sub-batches, which run inside it.  One of a sub-batch whose tool says
    what it touches is alone among the calls of its parent; one that declares nothing is alone in the whole tree, and
    among the calls of all batches of its owner.  Where the serial run is at hand, it says which calls those are, too.
    """
    yield from _beside_by_serial(story, trace)
    for batch in story.batches:
        if batch.parent is None:
            yield from _overlaps([batch], batch.events)
    for parent in story.parents:
        batches = parent.sub_batches
        events = batches[0].events if len(batches) == 1 else sorted(chain(*(b.events for b in batches)), key=_seq)
        yield from _overlaps(batches, events)
        yield from _outside_of(parent)
        for batch in batches:
            for call in batch.calls.values():
                if call.is_alone_everywhere:
                    yield from _beside(call)
    owned: dict[str, list[BatchStory]] = {}
    for batch in story.batches:
        if batch.owner is not None:
            owned.setdefault(batch.owner, []).append(batch)
    for family in owned.values():
        for batch in family if len(family) > 1 else ():
            others = [call for other in family if other is not batch for call in other.calls.values()]
            for call in batch.calls.values():
                if call.is_alone_everywhere:
                    yield from _overlapped(call, others)


def _beside_by_serial(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """Calls that overlap one whose tool, as the serial run knows, says nothing of what it touches."""
    tree = trace.notes.get("serial", {}).get("tree", {}) if has_serial(trace) else {}
    for batch in story.batches:
        for index in tree.get(batch.id, {}).get("alone", ()):
            call = batch.calls.get(index)
            if call is not None and not call.is_alone_everywhere:  # of others it is asked below
                family = [batch] if batch.parent is None else batch.parent.sub_batches
                yield from _overlapped(call, (o for one in family for o in one.calls.values() if o is not call))
                yield from _beside(call)


def _overlaps(batches: list[BatchStory], events: list[TraceEvent]) -> Iterator[Breach]:
    by_id = {batch.id: batch for batch in batches}
    running: dict[tuple[str, int], CallStory] = {}
    #: Those of them that may exclude others.
    lonely: dict[tuple[str, int], CallStory] = {}
    for event in events:
        if event.kind == CallStarted.kind:
            batch = by_id[event.fields["batch"]]
            call = batch.calls[event.fields["call"]]
            for other in (running if call.may_exclude else lonely).values():
                alone, beside = (call, other) if call.excludes(other) else (other, call)
                if alone.excludes(beside):
                    text = f"call {alone.index} runs alone: expected nothing beside it, got call {beside.index}"
                    yield call.breach(text, event)
            running[_where(event)] = call
            if call.may_exclude:
                lonely[_where(event)] = call
        elif event.kind == CallEnded.kind:
            running.pop(_where(event), None)
            lonely.pop(_where(event), None)


def _beside(call: CallStory) -> Iterator[Breach]:
    """Calls that run while `call` does, beside one of those inside which it runs."""
    for around in call.batch.around:
        level = around.batch.parent
        for batch in [around.batch] if level is None else level.sub_batches:
            yield from _overlapped(call, (other for other in batch.calls.values() if other is not around))


def _overlapped(call: CallStory, others: Iterable[CallStory]) -> Iterator[Breach]:
    mine = list(call.runs)
    for other in others:
        if any(a < d and c < b for a, b in mine for c, d in other.runs):
            text = f"call {call.index} declares nothing: expected nothing beside it, got call {other.index} of batch"
            yield Breach(f"{text} {other.batch.id}", call.batch.id, call.index, mine[0][0])


def _outside_of(parent: CallStory) -> Iterator[Breach]:
    """Children that run while their parent does not, or may touch what it may not."""
    began = NEVER if parent.started is None else parent.started.seq
    ended = NEVER if parent.ended is None else parent.ended.seq
    for batch in parent.sub_batches:
        for call in batch.calls.values():
            if call.started is None:
                continue
            if call.started.seq < began or ((call.ended is None or call.ended.seq > ended) and ended != NEVER):
                text = f"expected it to run inside call {parent.index} of batch {parent.batch.id}, which opened it"
                yield call.breach(text, call.started)

"""Laws 4 to 6: who may overlap whom, and who must not wait.

Law 6 works out from the tickets, the approvals and the limit when each call could have run, and looks at the
instants before time moves: what could run by then and does not is a needless wait.  That needs virtual time, which
moves only when nothing can run; in a production run law 6 looks at the limit alone.  Law 4 compares versions only
in a simulation: on a real disk others may write too.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from toolrt.invariants._law import Found, told
from toolrt.invariants._story import NEVER, BatchStory, CallStory, Story
from toolrt.trace import Event, Trace

__all__ = ["exclusive_alone", "no_needless_wait", "same_file_in_call_order"]


@attrs.define
class _Mutation:
    """One mutation of one file, from before its first touch until after its last."""

    began: Event
    ended: Event | None = None

    @property
    def call(self) -> int:
        return int(self.began.fields["call"])

    def overlaps(self, event: Event) -> bool:
        return self.began.seq < event.seq and (self.ended is None or self.ended.seq > event.seq)


@told(4, "same_file_in_call_order", "Mutations of one file happen in call_index order, and never overlap.")
def same_file_in_call_order(story: Story, trace: Trace) -> Iterator[Found]:
    """A read sees exactly the mutations of lower calls of its batch."""
    mutations: dict[str, list[_Mutation]] = {}
    reads: dict[str, list[Event]] = {}
    for event in story.events:
        file = str(event.fields.get("file"))
        if event.kind == "file.mutation_began":
            for other in mutations.setdefault(file, []):
                if other.overlaps(event):
                    text = f"{file}: expected mutations one at a time; that of call {other.call} had not ended"
                    yield Found(text, event.fields["batch"], event.fields["call"], event.seq)
            mutations[file].append(_Mutation(event))
        elif event.kind == "file.mutation_ended":
            for mutation in mutations.get(file, ()):
                if mutation.ended is None and _same_call(mutation.began, event):
                    mutation.ended = event
                    break
        elif event.kind == "file.read":
            reads.setdefault(file, []).append(event)
    for file, found in mutations.items():
        yield from _file_order(file, found)
    for file, seen in reads.items():
        yield from _reads_of(file, seen, mutations.get(file, []), story.virtual)


def _same_call(one: Event, other: Event) -> bool:
    return bool(one.fields["batch"] == other.fields["batch"] and one.fields["call"] == other.fields["call"])


def _file_order(file: str, mutations: list[_Mutation]) -> Iterator[Found]:
    highest: dict[str, int] = {}
    for mutation in mutations:
        batch = mutation.began.fields["batch"]
        before = highest.get(batch, -1)
        if mutation.call < before:
            text = f"{file}: expected mutations by call_index, got one by call {mutation.call} after call {before}"
            yield Found(text, batch, mutation.call, mutation.began.seq)
        highest[batch] = max(before, mutation.call)


def _reads_of(file: str, reads: list[Event], mutations: list[_Mutation], virtual: bool) -> Iterator[Found]:
    unchanged: tuple[str, Event] | None = None
    for read in reads:
        batch, call = read.fields["batch"], int(read.fields["call"])
        for mutation in mutations:
            if mutation.began.fields["batch"] != batch or mutation.call == call:
                continue
            if mutation.call < call and (mutation.ended is None or mutation.ended.seq > read.seq):
                text = f"{file}: expected to see the mutation by call {mutation.call}, read before it had ended"
                yield Found(text, batch, call, read.seq)
            if mutation.call > call and mutation.began.seq < read.seq:
                text = f"{file}: expected not to see the mutation by call {mutation.call}, read after it had begun"
                yield Found(text, batch, call, read.seq)
        if any(mutation.overlaps(read) and not _same_call(mutation.began, read) for mutation in mutations):
            yield Found(f"{file}: read while it was being changed", batch, call, read.seq)
        landed = [m.ended for m in mutations if m.ended is not None and m.ended.seq < read.seq and m.ended.fields["ok"]]
        version = read.fields.get("version")
        if not virtual or version is None:
            continue
        if landed:
            expected = landed[-1].fields.get("version")
            if expected is not None and version != expected:
                text = f"{file}: expected version {expected} of call {landed[-1].fields['call']}, read {version}"
                yield Found(text, batch, call, read.seq)
        elif unchanged is None:
            unchanged = version, read
        elif version != unchanged[0]:
            first = unchanged[1].fields["call"]
            text = f"{file}: nobody changed it since call {first} read {unchanged[0]}, read {version}"
            yield Found(text, batch, call, read.seq)


@told(5, "exclusive_alone", "An exclusive call overlaps nothing.")
def exclusive_alone(story: Story, trace: Trace) -> Iterator[Found]:
    """Between the start and the end of a call that runs alone, no other call of its batch runs."""
    for batch in story.batches:
        running: dict[int, CallStory] = {}
        for event in batch.events:
            if event.kind == "call.started":
                call = batch.calls[event.fields["call"]]
                for other in running.values():
                    alone = call if call.excludes(other) else other
                    if alone.excludes(call) or alone.excludes(other):
                        text = (
                            f"call {alone.index} runs alone: expected nothing beside it, got call {other.index} beside"
                        )
                        yield Found(f"{text} call {call.index}", batch.id, call.index, event.seq)
                running[call.index] = call
            elif event.kind == "call.ended":
                running.pop(event.fields["call"], None)


@told(6, "no_needless_wait", "Calls that do not conflict never wait for each other.")
def no_needless_wait(story: Story, trace: Trace) -> Iterator[Found]:
    """No call is left waiting when it could run, and no more run than the limit allows."""
    for batch in story.batches:
        yield from _limit_kept(batch)
    if not story.virtual:
        return
    order = sorted(
        (call for batch in story.batches for call in batch.calls.values() if call.ticket is not None), key=_taken
    )
    ready = {}
    for at, call in enumerate(order):
        ready[id(call)] = _ready_at(call, order[:at])
    # Where the step limit cut an execution off, its last instant had not ended.
    instants = story.instants[:-1] if trace.meta.get("ended") == "StepLimit" else story.instants
    for batch in story.batches:
        yield from _asked_at_once(batch)
        yield from _waits(instants, batch, ready)


def _taken(call: CallStory) -> int:
    return NEVER if call.ticket is None else call.ticket.seq


def _limit_kept(batch: BatchStory) -> Iterator[Found]:
    if batch.limit is None:
        return
    running = 0
    for event in batch.events:
        if event.kind == "call.started":
            running += 1
            if running > batch.limit:
                text = f"expected at most {batch.limit} calls to run at once, got {running}"
                yield Found(text, batch.id, event.fields["call"], event.seq)
        elif event.kind == "call.ended" and batch.calls[event.fields["call"]].started is not None:
            running -= 1


def _ready_at(call: CallStory, earlier: list[CallStory]) -> int:
    """The place in the trace from which nothing but a slot is missing, or NEVER."""
    assert call.ticket is not None
    ready = call.ticket.seq
    if call.asked is not None:
        ready = max(ready, NEVER if call.answered is None else call.answered.seq)
    for other in earlier:
        ended = NEVER if other.ended is None else other.ended.seq
        if ended > ready and call.conflicts_with(other):
            ready = ended
    return ready


def _asked_at_once(batch: BatchStory) -> Iterator[Found]:
    for call in batch.calls.values():
        if call.asked is not None and call.ticket is not None and call.asked.time > call.ticket.time:
            text = f"expected approval to be asked at {call.ticket.time:g} s with the lane, got {call.asked.time:g} s"
            yield Found(text, batch.id, call.index, call.asked.seq)


def _waits(instants: list[int], batch: BatchStory, ready: dict[int, int]) -> Iterator[Found]:
    began = -1
    over = min(batch.cancelled_at, batch.left_at)
    told: set[object] = set()
    for instant in instants:
        if instant >= over:
            return
        for found in _waits_at(batch, ready, began, instant):
            if (found.call, found.detail) not in told:
                told.add((found.call, found.detail))
                yield found
        began = instant


def _by(event: Event | None, instant: int) -> bool:
    return event is not None and event.seq <= instant


def _waits_at(batch: BatchStory, ready: dict[int, int], began: int, instant: int) -> Iterator[Found]:
    """What is wrong when time moves after `instant`; the instant itself began after `began`."""
    calls = [batch.calls[index] for index in sorted(batch.calls)]
    running = sum(_by(call.started, instant) and not _by(call.ended, instant) for call in calls)
    free = batch.limit is None or running < batch.limit
    waiting = [
        call
        for call in calls
        if _by(call.submitted, instant)
        and not _by(call.started, instant)
        and not _by(call.ended, instant)
        and not (call.settled and call.settled[0].seq <= instant)
    ]
    held = [call for call in calls if _by(call.ticket, instant) and not _by(call.ended, instant)]
    for call in waiting:
        if not _by(call.ticket, instant):
            if not any(other.index < call.index for other in held):
                text = "expected its lane to start, every call before it has ended"
                yield Found(text, batch.id, call.index, None)
        elif ready[id(call)] <= instant:
            if free:
                text = f"nothing it conflicts with is left and a slot is free ({running} run): expected it to run"
                yield Found(text, batch.id, call.index, None)
            for other in calls[calls.index(call) + 1 :]:
                if other.started is None or not began < other.started.seq <= instant:
                    continue
                if ready[id(call)] <= ready.get(id(other), -1):
                    text = f"call {other.index} got the slot that was call {call.index}'s by call_index"
                    yield Found(text, batch.id, call.index, other.started.seq)
    if batch.stopped and batch.stopped[0].seq <= instant:
        return
    for lane in batch.lanes.values():
        closed = _by(batch.sealed, instant) or any(not _by(call.ticket, instant) for call in waiting)
        mine = [batch.call(index) for index in lane.calls]
        lives = _by(lane.started, instant) and not _by(lane.merged, instant)
        if lives and closed and all(_by(call.ended, instant) for call in mine):
            yield Found(f"expected lane {lane.index} to end, every call of it has", batch.id, None, None)

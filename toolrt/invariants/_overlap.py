"""Laws 4 and 5: who may overlap whom.

Law 4 compares versions only in a simulation: on a real disk others may write too.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from toolrt.invariants._law import Found, told
from toolrt.invariants._story import CallStory, Story
from toolrt.trace import Event, Trace

__all__ = ["exclusive_alone", "same_file_in_call_order"]


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

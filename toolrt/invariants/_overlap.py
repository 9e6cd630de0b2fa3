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
class _File:
    """What is known of one file while the trace is read."""

    #: The calls whose mutation has begun and not ended, by batch and call.
    open: dict[tuple[str, int], Event] = attrs.field(factory=dict)
    #: For each batch the highest call whose mutation has begun.
    highest: dict[str, int] = attrs.field(factory=dict)
    #: What the last mutation left, and the event that says so; None while nobody has changed it.
    landed: Event | None = None
    #: The first read, while nobody has changed it.
    first_read: Event | None = None


@told(4, "same_file_in_call_order", "Mutations of one file happen in call_index order, and never overlap.")
def same_file_in_call_order(story: Story, trace: Trace) -> Iterator[Found]:
    """A read sees exactly the mutations of lower calls of its batch."""
    files: dict[str, _File] = {}
    for event in story.events:
        if event.kind in _FILE_EVENTS:
            name = str(event.fields.get("file"))
            file = files.setdefault(name, _File())
            yield from _FILE_EVENTS[event.kind](name, file, event, story.virtual)
    yield from _missed(story)


def _where(event: Event) -> tuple[str, int]:
    return str(event.fields["batch"]), int(event.fields["call"])


def _began(name: str, file: _File, event: Event, virtual: bool) -> Iterator[Found]:
    batch, call = _where(event)
    for _, other in file.open:
        text = f"{name}: expected mutations one at a time; that of call {other} had not ended"
        yield Found(text, batch, call, event.seq)
    before = file.highest.get(batch, -1)
    if call < before:
        text = f"{name}: expected mutations by call_index, got one by call {call} after call {before}"
        yield Found(text, batch, call, event.seq)
    file.highest[batch] = max(before, call)
    file.open[batch, call] = event


def _ended(name: str, file: _File, event: Event, virtual: bool) -> Iterator[Found]:
    file.open.pop(_where(event), None)
    if event.fields["ok"]:
        file.landed = event
    yield from ()


def _read(name: str, file: _File, event: Event, virtual: bool) -> Iterator[Found]:
    batch, call = _where(event)
    if file.highest.get(batch, -1) > call:
        text = f"{name}: expected not to see the mutation by call {file.highest[batch]}, read after it had begun"
        yield Found(text, batch, call, event.seq)
    if any(where != (batch, call) for where in file.open):
        yield Found(f"{name}: read while it was being changed", batch, call, event.seq)
    version = event.fields.get("version")
    if not virtual or version is None:
        return
    if file.landed is None:
        first = file.first_read = file.first_read or event
        if version != first.fields["version"]:
            text = f"{name}: nobody changed it since call {first.fields['call']} read {first.fields['version']}"
            yield Found(f"{text}, read {version}", batch, call, event.seq)
    elif file.landed.fields.get("version") not in (None, version):
        expected = f"{file.landed.fields['version']} of call {file.landed.fields['call']}"
        yield Found(f"{name}: expected version {expected}, read {version}", batch, call, event.seq)


_FILE_EVENTS = {"file.mutation_began": _began, "file.mutation_ended": _ended, "file.read": _read}


def _missed(story: Story) -> Iterator[Found]:
    """Reads that came before the end of a mutation of a lower call."""
    #: For each file and batch the lowest call whose mutation ends later in the trace.
    later: dict[tuple[str, str], int] = {}
    found = []
    for event in reversed(story.events):
        if event.kind not in _FILE_EVENTS:
            continue
        batch, call = _where(event)
        key = str(event.fields.get("file")), batch
        if event.kind == "file.mutation_ended":
            later[key] = min(call, later.get(key, call))
        elif event.kind == "file.read" and later.get(key, call) < call:
            text = f"{key[0]}: expected to see the mutation by call {later[key]}, read before it had ended"
            found.append(Found(text, batch, call, event.seq))
    yield from reversed(found)


@told(5, "exclusive_alone", "An exclusive call overlaps nothing.")
def exclusive_alone(story: Story, trace: Trace) -> Iterator[Found]:
    """Between the start and the end of a call that runs alone, no other call of its batch runs."""
    for batch in story.batches:
        running: dict[int, CallStory] = {}
        #: Those of them that may exclude others.
        lonely: dict[int, CallStory] = {}
        for event in batch.events:
            if event.kind == "call.started":
                call = batch.calls[event.fields["call"]]
                for other in (running if call.may_exclude else lonely).values():
                    alone, beside = (call, other) if call.excludes(other) else (other, call)
                    if alone.excludes(beside):
                        text = f"call {alone.index} runs alone: expected nothing beside it, got call {beside.index}"
                        yield Found(text, batch.id, call.index, event.seq)
                running[call.index] = call
                if call.may_exclude:
                    lonely[call.index] = call
            elif event.kind == "call.ended":
                running.pop(event.fields["call"], None)
                lonely.pop(event.fields["call"], None)

"""Law 8: progress flows at once and never blocks.

In virtual time the law checks that a waiting reader gets each message in the instant it was sent.  In every trace it
checks the order, and that each lost message is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolrt._plain import counted
from toolrt.events import ProgressDelivered, ProgressSent
from toolrt.invariants.predicates._law import told
from toolrt.invariants.predicates._story import NEVER, BatchStory, Breach, CallStory, TraceStory
from toolrt.order import PROGRESS_BOUND
from toolrt.trace import Trace, TraceEvent


@told(8, "progress_at_once", "Progress flows at once and never blocks.")
def progress_at_once(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """Per call in order, before its result, never after; what is dropped is counted."""
    for batch in story.batches:
        for call in batch.calls.values():
            if call.sent or call.progress_delivered:
                yield from _sent(call)
                yield from _delivered(batch, call, story.virtual)
        yield from _dropped_in_need(batch)


def _sent(call: CallStory) -> Iterator[Breach]:
    settled = call.settled[0].seq if call.settled else NEVER
    for number, event in enumerate(call.sent):
        if event.fields["number"] != number:
            yield call.breach(f"expected message {number} next, the tool sent {event.fields['number']}", event)
        if call.started is None or event.seq < call.started.seq:
            yield call.breach("progress of a call that had not started", event)
        if event.seq > settled and event.fields["accepted"]:
            yield call.breach("progress was accepted after the result was fixed", event)


def _delivered(batch: BatchStory, call: CallStory, virtual: bool) -> Iterator[Breach]:
    accepted = {event.fields["number"]: event for event in call.sent if event.fields["accepted"]}
    result = call.result_delivered[0].seq if call.result_delivered else NEVER
    before = -1
    for event in call.progress_delivered:
        number = event.fields["number"]
        source = accepted.get(number)
        if source is None or source.seq > event.seq:
            yield call.breach(f"message {number} was delivered, and not accepted before", event)
        elif virtual:
            ask = batch.ask_before(event.seq)
            if event.time > max(event.time if ask is None else ask.time, source.time):
                text = f"message {number} was sent at {source.time:g} s to a reader that waited, delivered at"
                yield call.breach(f"{text} {event.time:g} s", event)
        if number <= before:
            yield call.breach(f"expected messages in order, got {number} after {before}", event)
        if event.seq > result:
            yield call.breach(f"message {number} was delivered after the result", event)
        before = max(before, number)
    # A reader may come for the results when the batch is over; progress is not kept for it.
    if result < batch.left_at:
        seen = {event.fields["number"] for event in call.progress_delivered if event.seq < result}
        missing = [number for number, event in accepted.items() if number not in seen and event.seq < result]
        if missing:
            text = f"expected accepted messages before the result, {missing} were not delivered by then"
            yield call.breach(text, call.result_delivered[0])
    dropped = None if batch.left is None else batch.left.fields.get("dropped")
    if dropped is not None and batch.left is not None and call.index < len(dropped):
        want = len(call.sent) - len(call.progress_delivered)
        if dropped[call.index] != want:
            sent = counted(len(call.sent), "message")
            yield call.breach(f"never delivered: {want} of {sent}, the result counts {dropped[call.index]}", batch.left)


def _dropped_in_need(batch: BatchStory) -> Iterator[Breach]:
    """No message is dropped while there is room, unless its call or batch is over."""
    if not batch.asks:
        return
    waiting = 0
    for event in batch.events:
        if event.kind == ProgressDelivered.kind:
            waiting -= 1
        elif event.kind == ProgressSent.kind:
            if event.fields["accepted"]:
                waiting += 1
            elif waiting < PROGRESS_BOUND and not _unwanted(batch, event):
                text = f"dropped although only {waiting} of {PROGRESS_BOUND} wait for the reader"
                yield Breach(text, batch.id, event.fields["call"], event.seq)


def _unwanted(batch: BatchStory, event: TraceEvent) -> bool:
    call = batch.calls[event.fields["call"]]
    if call.settled and call.settled[0].seq < event.seq:
        return True
    stop = batch.stopped_by(call.index)
    return event.seq > batch.cancelled_at or (stop is not None and stop.seq < event.seq)

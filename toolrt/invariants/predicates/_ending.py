"""Laws 12 and 13: what a batch leaves behind, and that it ends.

``notes["temp_files"]`` and ``notes["open_handles"]``, where present, list what is left on a workspace's disk, and
``notes["threads"]`` the threads that still run.  Law 13 judges complete executions: a trace that was cut off in a
production run has unfinished batches.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolrt.invariants.predicates._law import told
from toolrt.invariants.predicates._serial import ran_inside
from toolrt.invariants.predicates._story import Breach, TraceStory
from toolrt.trace import Trace


@told(12, "nothing_left", "Nothing is left behind.")
def nothing_left(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """No task, ticket, lock entry, temporary file or open handle outlives the batch, and no work its call."""
    for batch in story.batches:
        if batch.left is None:
            continue
        for what, count in sorted(batch.left.fields.get("left", {}).items()):
            if count:
                yield batch.breach(f"expected no {what} to be left, got {count}", batch.left)
        for call in batch.calls.values():
            if call.placed is not None and (call.ended is None or call.ended.seq > batch.left.seq):
                yield call.breach("took a ticket and never gave it back", call.placed)
            late = next((event for event in call.touched if call.ended and event.seq > call.ended.seq), None)
            if late is not None:
                yield call.breach("it had ended and given its tickets back, and its work goes on", late)
    for note in ("temp_files", "open_handles", "claims_left", "threads"):
        for name in trace.notes.get(note, ()):
            yield Breach(f"expected no {note.replace('_', ' ')}, got {name}")


@told(13, "batch_ends", "The batch ends.")
def batch_ends(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """No deadlock for any mix of claims, no starvation; what the serial run answers is answered, in every batch.

    A batch whose process crashes ends in the next one.
    """
    ended = str(trace.notes.get("error") or trace.meta.get("ended", ""))
    if ended in ("Deadlock", "StepLimit"):
        yield Breach(f"expected the execution to end by itself, it ended by {ended}")
    for batch in story.batches:
        if batch.opened is not None and batch.left is None and batch.crashed is None:
            waiting = [call.index for call in batch.calls.values() if not call.settled]
            text = f"expected the batch to be left; calls without a result: {waiting or 'none'}"
            yield batch.breach(text, batch.opened)
    for name, ran, inner in ran_inside(story, trace):
        if inner is None:
            yield Breach(f"expected batch {name}, which the serial run runs, and there is none")
            continue
        for want in ran["results"]:
            if not inner.call(want["call_index"]).settled:
                text = "expected a result, as the serial run has one, got none"
                yield Breach(text, name, want["call_index"])

"""Laws 9 to 11: what a failure, a cancel and a timeout may do, and what they may not.

In virtual time a timeout is exact; in a production run law 11 allows the clock a hundredth.  A tool that shields
itself reports the effect ``shield``; only such a tool may outlast its timeout or a cancel.  A tool that reports the
effect ``returns`` as its last act is a witness that the runtime cannot silence: it returned, or raised an error of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolrt.events import (
    ApprovalAsked,
    CallEnded,
    CallSettled,
    CallStarted,
    FileRead,
    MutationBegan,
    MutationEnded,
    ProgressSent,
    ToolEffect,
)
from toolrt.invariants.predicates._law import told
from toolrt.invariants.predicates._story import NEVER, RETURNS, SHIELD, BatchStory, Breach, CallStory, TraceStory
from toolrt.trace import Trace, TraceEvent

#: A failure of these kinds stops the batch, if the call's tool says so.
_STOPPING = ("error", "invalid", "denied", "timed_out")

#: What only a cancel, or a stop, may do to a call.
_CUT = ("interrupted", "not_started")

#: The outcomes of a call that no tool has run for.
_DID_NOTHING = ("not_started", "denied", "invalid")

#: Seconds by which two sums of the same times may differ.
_SLACK = 1e-9

#: How the error of a call begins that a cancel interrupted; after Ctrl-C or an exit it begins otherwise.
_CUT_SHORT = "interrupted while it ran"

#: What a call is not whose tool has returned (RULES 12).
_NEVER_RETURNED = ("interrupted", "timed_out")


@told(9, "failure_contained", "A failure stays with its call.")
def failure_contained(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """Only a call that asks for it stops others, and then exactly those of higher index."""
    for batch in story.batches:
        if batch.cancelled is None:
            for call, outcome in batch.outcomes():
                if outcome in _CUT and not call.is_cut:
                    text = f"the batch was not cancelled, expected the call to go its way, got {outcome}"
                    yield call.breach(text, call.settled[-1])
        for event in batch.stopped:
            yield from _stop(batch, event)
        for call, outcome in batch.outcomes():
            yield from _skip(batch, call, outcome)


def _stop(batch: BatchStory, event: TraceEvent) -> Iterator[Breach]:
    stopper = batch.calls.get(event.fields["by"])
    if stopper is None:
        yield Breach("stopped by a call that was never submitted", batch.id, event.fields["by"], event.seq)
        return
    if stopper.outcome not in (*_STOPPING, "skipped") and not stopper.is_cut:
        yield stopper.breach(f"stopped by a call that did not fail: {stopper.outcome}", event)
    if stopper.ticket is not None and not stopper.stops:
        yield stopper.breach("stopped by a call whose tool does not ask for it", event)
    for call in batch.calls.values():
        if call.index > stopper.index and call.started is not None and not call.reads_only:
            text = f"call {stopper.index} stopped the batch; expected no later call with effects to start"
            yield call.breach(text, call.started)


def _skip(batch: BatchStory, call: CallStory, outcome: str) -> Iterator[Breach]:
    stop = batch.stopped_by(call.index)
    if outcome == "skipped":
        if stop is None:
            yield call.breach("skipped, although no earlier call stopped the batch", call.settled[-1])
        else:
            error = str(call.settled[-1].fields.get("error"))
            stops = [event.fields["by"] for event in batch.stopped if event.fields["by"] < call.index]
            if not any(f"call {by}" in error for by in stops):
                yield call.breach(f"expected its error to name call {stops[0]}, got {error!r}", call.settled[-1])
    elif stop is not None and batch.left is not None and outcome != "not_started":
        # A call that was already told to the reader keeps its answer.
        told = call.result_delivered and call.result_delivered[0].seq < stop.seq
        if not told and not (batch.cancelled_at < stop.seq):
            text = f"call {stop.fields['by']} stopped the batch; expected skipped, got {outcome}"
            yield call.breach(text, call.settled[-1])
    has_stopped = any(event.fields["by"] <= call.index for event in batch.stopped)
    if outcome in _STOPPING and call.stops and not has_stopped and batch.cancelled is None:
        text = f"its tool stops the batch when it fails, and it ended as {outcome}; expected a stop"
        yield call.breach(text, call.settled[-1])


@told(10, "cancel_truthful", "Cancel is prompt and truthful.")
def cancel_truthful(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """Finished results are kept, nothing starts after it, nothing runs once the batch is left.

    A batch's deadline is a cancel that comes at its instant.  A crash is a cancel of its process: in the next one no
    call that had an effect has an outcome of one that did not run.
    """
    for batch in story.batches:
        if story.virtual:
            yield from _at_the_deadline(batch)
        for call, outcome in batch.outcomes():
            last = call.settled[-1]
            if outcome == "interrupted" and call.started is None:
                yield call.breach("interrupted, although it never started", last)
            if outcome == "interrupted" and call.again is None and call.ended is not None and call.ended.seq < last.seq:
                yield call.breach("interrupted, although its tool had returned; expected ok or error", last)
            elif outcome in _NEVER_RETURNED and _returned(call):
                text = f"its tool had returned, or raised an error; expected ok or error, got {outcome}"
                yield call.breach(text, last)
            if outcome == "interrupted" and _may_finish(call) and str(last.fields.get("error")).startswith(_CUT_SHORT):
                text = "interrupted, although its tool asks to finish; expected the cancel to wait for it"
                yield call.breach(text, last)
            if outcome == "not_started" and call.started is not None and not call.replayed:
                yield call.breach("said not to have started, and it had", last)
            if outcome in _DID_NOTHING and call.before is not None and call.before.effects:
                yield call.breach(f"{outcome}, and before the crash it took effect", last)
        if batch.cancelled is not None:
            yield from _after_cancel(batch, batch.cancelled, story.virtual)
            if story.virtual:
                for call in batch.calls.values():
                    yield from _slow_to_end(call, batch.cancelled)
        for call in batch.calls.values():
            if call.cancelled is not None:
                yield from _after_cancel_alone(call, call.cancelled)
                if story.virtual:
                    yield from _slow_to_end(call, call.cancelled)
        yield from _after_leaving(batch)
        yield from _after_cancel_around(batch, story.virtual)


def _at_the_deadline(batch: BatchStory) -> Iterator[Breach]:
    """The calls of a batch that has a deadline are over by then, or it is cancelled at that instant."""
    deadline = None if batch.opened is None else batch.opened.fields.get("deadline")
    if deadline is None or batch.opened is None or batch.crashed is not None:
        return
    due, cancelled = batch.opened.time + deadline, batch.cancelled
    if cancelled is not None and "deadline" in str(cancelled.fields.get("reason")) and cancelled.time < due - _SLACK:
        yield batch.breach(f"its deadline was at {due:g} s: expected no cancel before", cancelled)
    for call in batch.calls.values() if cancelled is None or cancelled.time > due + _SLACK else ():
        if call.over is None or call.over.time > due + _SLACK:
            yield call.breach(f"expected the batch to be cancelled by its deadline at {due:g} s", call.over)


def _after_cancel_around(batch: BatchStory, virtual: bool) -> Iterator[Breach]:
    """A cancel of a batch is one of its calls' sub-batches, unless the call may finish."""
    for around in batch.around:
        if _may_finish(around):
            return
        for cancelled in (around.batch.cancelled, around.cancelled):
            if cancelled is None:
                continue
            for call in batch.calls.values():
                if call.started is not None and call.started.seq > cancelled.seq:
                    what = f"call {around.index} of " if cancelled is around.cancelled else ""
                    text = f"started after {what}batch {around.batch.id}, inside which it runs, was cancelled"
                    yield call.breach(text, call.started)
                elif virtual:
                    yield from _slow_to_end(call, cancelled)


def _after_cancel_alone(call: CallStory, cancelled: TraceEvent) -> Iterator[Breach]:
    """A cancel of one call comes before its result, and keeps it from starting."""
    first = call.settled[0] if call.settled else None
    if first is not None and first.seq < cancelled.seq:
        yield call.breach(f"cancelled when it was {first.fields['outcome']}; expected that to be kept", cancelled)
    if call.started is None and first is not None and first.fields["outcome"] != "not_started":
        yield call.breach(f"cancelled before it started; expected not_started, got {first.fields['outcome']}", first)
    if call.started is not None and call.started.seq > cancelled.seq:
        yield call.breach("started after it was cancelled", call.started)


def _may_finish(call: CallStory) -> bool:
    return call.started is not None and call.started.fields.get("interrupt") == "finish"


def _returned(call: CallStory) -> bool:
    """Whether its tool said that it returns, the last time it ran."""
    since = -1 if call.again is None else call.again.seq
    return any(event.fields.get("effect") == RETURNS and event.seq > since for event in call.touched)


def _takes_its_time(call: CallStory) -> bool:
    """Whether it, or one inside it, said that it may outlast a cancel or a timeout; a thread inside it always may."""
    return any(
        any(event.fields.get("effect") == SHIELD for event in one.touched)
        or (one is not call and one.started is not None and _outlasts(one.started))
        for one in call.family
    )


def _outlasts(started: TraceEvent) -> bool:
    return started.fields.get("interrupt") != "cancel" or bool(started.fields.get("thread"))


def _after_cancel(batch: BatchStory, cancelled: TraceEvent, virtual: bool) -> Iterator[Breach]:
    for call in batch.calls.values():
        settled = call.settled[0] if call.settled else None
        if call.started is not None and call.started.seq > cancelled.seq:
            yield call.breach("started after the batch was cancelled", call.started)
        if settled is None:
            continue
        outcome = settled.fields["outcome"]
        if settled.seq < cancelled.seq:
            if call.outcome not in (outcome, "skipped"):
                text = f"settled as {outcome} before the cancel, expected that to be kept, got {call.outcome}"
                yield call.breach(text, call.settled[-1])
            if outcome in _CUT and call.cancelled is None:
                yield call.breach(f"{outcome} before the batch was cancelled", settled)
        elif call.started is None and not batch.stopped:
            if outcome != "not_started":
                text = f"never started when the batch was cancelled; expected not_started, got {outcome}"
                yield call.breach(text, settled)
            late = call.submitted is not None and settled.time > max(cancelled.time, call.submitted.time)
            if virtual and late:
                text = f"expected its answer at the cancel, {cancelled.time:g} s, got it at {settled.time:g} s"
                yield call.breach(text, settled)


def _slow_to_end(call: CallStory, cancelled: TraceEvent) -> Iterator[Breach]:
    """A call that ran on, in virtual time, though nothing says that it may."""
    if call.started is None or call.started.fields.get("interrupt") != "cancel" or not call.settled:
        return
    over = call.over
    if over is None:
        return
    late = call.started.seq < cancelled.seq < over.seq and over.time > cancelled.time
    if late and not _takes_its_time(call):
        text = f"expected it to be interrupted at the cancel, {cancelled.time:g} s; it went on until"
        yield call.breach(f"{text} {over.time:g} s", over)


def _after_leaving(batch: BatchStory) -> Iterator[Breach]:
    if batch.left is None:
        return
    for event in reversed(batch.events):
        if event.seq <= batch.left.seq:
            break
        if event.kind in _RUNNING:
            text = f"{event.kind} after the batch was left"
            yield Breach(text, batch.id, event.fields.get("call"), event.seq)
    for call in batch.calls.values():
        began: dict[str, int] = {}
        for event in call.touched:
            if event.kind in (MutationBegan.kind, MutationEnded.kind):
                step = 1 if event.kind == MutationBegan.kind else -1
                began[event.fields["file"]] = began.get(event.fields["file"], 0) + step
        for file, open_mutations in began.items():
            if open_mutations > 0:
                yield call.breach(f"{file}: a mutation had begun and never ended", batch.left)


#: What only running code of a batch does.
_RUNNING = frozenset(
    {
        ApprovalAsked.kind,
        CallEnded.kind,
        CallSettled.kind,
        CallStarted.kind,
        MutationBegan.kind,
        MutationEnded.kind,
        FileRead.kind,
        ProgressSent.kind,
        ToolEffect.kind,
    }
)


@told(11, "timeout_own_time", "A timeout counts the call's own execution, never its waiting.")
def timeout_own_time(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """A call times out when it has run as long as its timeout, not earlier and not later."""
    slack = 1e-9 if story.virtual else 0.01
    for batch in story.batches:
        for call in batch.calls.values():
            for settled in call.settled:
                if settled.fields["outcome"] == "timed_out":
                    yield from _timed_out(call, settled, slack)
            if story.virtual:
                yield from _outlasted(call)
    yield from _held_by_threads(story)


def _timed_out(call: CallStory, settled: TraceEvent, slack: float) -> Iterator[Breach]:
    if call.started is None:
        yield call.breach("timed out, although it never started", settled)
        return
    if call.replayed:
        return
    timeout, ran = call.started.fields.get("timeout"), settled.time - call.started.time
    if "timeout" in call.started.fields and timeout is None:
        yield call.breach("timed out, and it has no timeout", settled)
    elif timeout is not None and ran < timeout * (1 - slack) - slack:
        yield call.breach(f"timed out after {ran:g} s of its own execution, its timeout is {timeout:g} s", settled)


def _outlasted(call: CallStory) -> Iterator[Breach]:
    """A call that is still unanswered when its timeout has passed."""
    timeout = None if call.started is None else call.started.fields.get("timeout")
    over = call.over
    if call.started is None or timeout is None or over is None or not call.settled or call.again is not None:
        return
    ran = over.time - call.started.time
    if ran > timeout * (1 + 1e-9) + 1e-9 and not _takes_its_time(call):
        yield call.breach(f"ran for {ran:g} s and its timeout is {timeout:g} s; expected timed_out then", over)


def _held_by_threads(story: TraceStory) -> Iterator[Breach]:
    """A thread that cannot be stopped keeps its claims until it ends, and its result says so."""
    for batch in story.batches:
        for call in batch.calls.values():
            if call.outcome != "timed_out" or call.started is None or not call.started.fields.get("thread"):
                continue
            ended = NEVER if call.ended is None else call.ended.seq
            if ended > call.settled[0].seq and not call.settled[0].fields.get("error"):
                yield Breach(
                    "its thread runs on; expected its result to say so", batch.id, call.index, call.settled[0].seq
                )
            for other in batch.calls.values():
                after = other.ticket is not None and call.ticket is not None and other.ticket.seq > call.ticket.seq
                if after and other.started is not None and other.started.seq < ended and other.conflicts_with(call):
                    text = f"started while the thread of call {call.index}, which it conflicts with, ran on"
                    yield other.breach(text, other.started)

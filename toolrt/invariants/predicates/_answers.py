"""Laws 1 to 3: one answer for each call, the order of answers, and the order of modifiers.

The second half of law 2 needs virtual time: the clock of a production run cannot show whether a result was ready
earlier or was handed over late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolrt._plain import counted
from toolrt.events import MergeDelivered, ResultDelivered
from toolrt.invariants.predicates._law import told
from toolrt.invariants.predicates._story import NEVER, RETURNED, BatchStory, Breach, CallStory, LaneStory, TraceStory
from toolrt.model import Outcome
from toolrt.trace import Trace, TraceEvent

_OUTCOMES = frozenset(outcome.value for outcome in Outcome)


@told(1, "answered_once", "Every call is answered once.")
def answered_once(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """From `submit()` on, each call gets exactly one result, in its own slot; approval is asked for once.

    Where the batch's process crashes, this holds of both processes together: what started is in the batch that goes on,
    what was handed out stays, and no tool that may not do so does once more what it did.
    """
    for batch in story.batches:
        yield from _across_the_crash(batch)
        yield from _settled_once(batch)
        if batch.left is not None and "results" in batch.left.fields:
            yield from _answers_of(batch, batch.left)
        if batch.parent is None and trace.notes.get("read_to_the_end") == batch.id:
            yield from _told_to_the_reader(batch)


def _settled_once(batch: BatchStory) -> Iterator[Breach]:
    for call in batch.calls.values():
        for before, event in zip(call.settled, call.settled[1:], strict=False):
            outcome, stop = event.fields["outcome"], batch.stopped_by(call.index)
            if outcome == "skipped" and stop is not None and stop.seq <= event.seq:
                continue
            if call.started is not None and call.started.fields.get("thread"):
                continue  # it could not be stopped: a result that nothing had seen says how it ended
            was = before.fields["outcome"]
            yield call.breach(f"expected one answer, got {was}, then {outcome}", event)
        for event in call.settled:
            outcome, error = event.fields["outcome"], event.fields.get("error")
            if outcome not in _OUTCOMES:
                known = ", ".join(sorted(_OUTCOMES))
                yield call.breach(f"expected an outcome of {known}, got {outcome!r}", event)
            elif (outcome == "ok") != (error is None):
                want = "no error" if outcome == "ok" else "an error that says why"
                yield call.breach(f"outcome {outcome}: expected {want}, got {error!r}", event)
        if call.asked_again is not None:
            yield call.breach("its approval was asked for twice", call.asked_again)
        if call.submitted is None and call.settled:
            event = call.settled[0]
            yield call.breach("expected no answer for a call that was never submitted", event)


def _across_the_crash(batch: BatchStory) -> Iterator[Breach]:
    for before in () if batch.earlier is None else batch.earlier.calls.values():
        call = batch.calls.get(before.index)
        if call is None or call.submitted is None:
            if before.started is not None or before.result_delivered:
                text = "it had started when the process crashed: expected it in the batch that goes on"
                yield Breach(text, batch.id, before.index, None if batch.opened is None else batch.opened.seq)
            continue
        last = call.settled[-1] if call.settled else None
        for event in before.result_delivered if last is not None else ():
            if event.fields["outcome"] != call.outcome:
                text = f"delivered as {event.fields['outcome']} before the crash, then {call.outcome}"
                yield call.breach(text, last)
        if call.replayed and not call.was_caught:
            yield call.breach("answered as before the crash, and it could not have started then", call.started)
        may_again = call.started is not None and call.started.fields.get("idempotent")
        if before.effects and call.effects and not may_again:
            yield call.breach("it took effect before the crash: expected it not to run again", call.effects[0])


def _answers_of(batch: BatchStory, left: TraceEvent) -> Iterator[Breach]:
    results: list[dict[str, Any]] = left.fields["results"]
    submitted = [call for call in batch.calls.values() if call.submitted is not None]
    if len(results) != len(submitted):
        yield batch.breach(f"expected {counted(len(submitted), 'result')}, one for each call, got {len(results)}", left)
    for call in submitted:
        assert call.submitted is not None
        if not call.settled:
            yield call.breach("expected an answer, got none", left)
        if call.index >= len(results):
            yield call.breach("expected a result in its slot, got none", left)
            continue
        result = results[call.index]
        asked = call.submitted.fields
        for field, want in (("call_index", call.index), ("call_id", asked["call_id"]), ("name", asked["name"])):
            if result[field] != want:
                yield call.breach(f"{field} in its slot: expected {want!r}, got {result[field]!r}", left)
        if call.settled:
            last = call.settled[-1]
            for field in ("outcome", "content", "error"):
                if field in last.fields and result[field] != last.fields[field]:
                    text = f"{field}: settled as {last.fields[field]!r}, answered with {result[field]!r}"
                    yield call.breach(text, left)
        for event in call.result_delivered:
            if event.fields["outcome"] != result["outcome"]:
                text = f"the reader was told {event.fields['outcome']}, the result says {result['outcome']}"
                yield call.breach(text, event)


def _told_to_the_reader(batch: BatchStory) -> Iterator[Breach]:
    """A program whose reader came to the end of the updates was handed every answer, also under a cancel.

    What is submitted after the cancel is answered in its slot only: the updates may have ended before.
    """
    for call in batch.calls.values():
        if call.submitted is not None and call.submitted.seq < batch.cancelled_at and not call.result_delivered:
            text = "the program read to the end; expected it to be handed this result"
            yield Breach(text, batch.id, call.index, batch.left.seq if batch.left is not None else None)


@told(2, "results_in_call_order", "Results are in call order, and each is delivered as soon as all before it are.")
def results_in_call_order(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """The reader is a cursor over the result slots; a lane's merge follows its last result."""
    for batch in story.batches:
        yield from _order_of_results(batch)
        yield from _order_of_merges(batch)
        if story.virtual:
            yield from _promptness(batch)
        yield from _read_to_the_end(batch)


def _order_of_results(batch: BatchStory) -> Iterator[Breach]:
    expected = 0
    for event in batch.delivered:
        if event.kind != ResultDelivered.kind:
            continue
        index = event.fields["call"]
        call = batch.calls[index]
        if index != expected:
            yield Breach(
                f"expected the result of call {expected} next, got that of call {index}", batch.id, index, event.seq
            )
        if not call.settled or call.settled[0].seq > event.seq:
            yield Breach("its result was delivered before it was settled", batch.id, index, event.seq)
        expected = index + 1


def _order_of_merges(batch: BatchStory) -> Iterator[Breach]:
    place = {event.seq: at for at, event in enumerate(batch.delivered)}
    before: LaneStory | None = None
    # Behind a lane that a thread outlives no merge is due: none of the lanes there can have started.
    passed = False
    of_lane: dict[int | None, list[TraceEvent]] = {}
    for event in batch.delivered:
        if "call" in event.fields:
            of_lane.setdefault(batch.lane_of(event.fields["call"]), []).append(event)
    for _, lane in sorted(batch.lanes.items()):
        passed = passed or (before is not None and _outlived(batch, before))
        for extra in lane.delivered[1:]:
            yield batch.breach(f"expected the merge of lane {lane.index} once, got it again", extra)
        mine = of_lane.get(lane.index, [])
        if lane.delivered:
            merge = lane.delivered[0]
            late = [event for event in mine if event.seq > merge.seq]
            if late:
                text = f"expected all of lane {lane.index} before its merge, got {late[0].kind} after it"
                yield Breach(text, batch.id, late[0].fields["call"], late[0].seq)
            results = [event for event in mine if event.kind == ResultDelivered.kind]
            if not lane.shared and results:
                between = batch.delivered[place[results[-1].seq] + 1 : place[merge.seq]]
                if any(event.kind == ResultDelivered.kind for event in between) and not (
                    passed or _outlived(batch, lane)
                ):
                    text = f"expected the merge of lane {lane.index} right after the result of its only call"
                    yield batch.breach(text, merge)
        due = before.delivered[0].seq if before is not None and before.delivered else NEVER
        if before is not None and mine and mine[0].seq < due and not passed:
            text = f"expected the merge of lane {before.index} before anything of lane {lane.index}"
            yield Breach(f"{text}, got {mine[0].kind}", batch.id, mine[0].fields["call"], mine[0].seq)
        before = lane


def _outlived(batch: BatchStory, lane: LaneStory) -> bool:
    """Whether a thread that cannot be stopped outlives its result: then results do not wait for the merge (RULE 15)."""
    threads = [
        call
        for call in map(batch.call, lane.calls)
        if call.started is not None and call.started.fields.get("thread") and call.settled
    ]
    return any(call.ended is None or call.ended.seq > call.settled[0].seq + 1 for call in threads)


def _promptness(batch: BatchStory) -> Iterator[Breach]:
    """An update that was ready while the reader waited is handed over in that instant."""
    ready = 0.0
    if batch.cancelled is not None and batch.cancelled.fields.get("outside"):
        return
    for event in batch.delivered:
        if event.kind == ResultDelivered.kind:
            index = event.fields["call"]
            call = batch.calls[index]
            if not call.settled:
                continue
            ready = max(ready, call.settled[-1].time if call.settled[-1].seq < event.seq else call.settled[0].time)
            text = f"the result of call {index}"
        elif event.kind == MergeDelivered.kind:
            lane = batch.lanes[event.fields["lane"]]
            if lane.merged is None:
                continue
            ready = max(ready, lane.merged.time)
            text = f"the merge of lane {lane.index}"
        else:
            continue
        asked = batch.ask_before(event.seq)
        if asked is not None and event.time > max(ready, asked.time):
            due = max(ready, asked.time)
            text = (
                f"expected {text} at {due:g} s, when it was ready and asked for; it was delivered at {event.time:g} s"
            )
            yield Breach(text, batch.id, event.fields.get("call"), event.seq)


def _read_to_the_end(batch: BatchStory) -> Iterator[Breach]:
    """A reader that was told there is nothing more has seen everything."""
    if batch.left is None or batch.cancelled is not None or not batch.asks:
        return
    if batch.delivered and batch.asks[-1].seq < batch.delivered[-1].seq:
        return
    for call in batch.calls.values():
        if call.submitted is not None and call.settled and not call.result_delivered:
            yield call.breach("the reader read to the end; expected it to be handed this result", batch.left)
    for lane in batch.lanes.values():
        if lane.merged is not None and not lane.delivered:
            text = f"the reader read to the end; expected it to be handed the merge of lane {lane.index}"
            yield batch.breach(text, batch.left)


@told(3, "modifiers_in_call_order", "Modifiers merge in call order.")
def modifiers_in_call_order(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """A call sees its lane's start state; at the lane's end modifiers apply by call and position."""
    for batch in story.batches:
        if batch.opened is None:
            continue
        state = batch.opened.fields.get("state")
        for _, lane in sorted(batch.lanes.items()):
            if lane.started is not None and "state" in lane.started.fields:
                begins = lane.started.fields["state"]
                if begins != state:
                    text = f"lane {lane.index} starts from {begins!r}, expected what was merged before: {state!r}"
                    yield batch.breach(text, lane.started)
            yield from _merge_of(batch, lane)
            if lane.merged is not None:
                state = lane.merged.fields["state"]
        if batch.left is not None and "state" in batch.left.fields and batch.left.fields["state"] != state:
            text = f"the batch ends with {batch.left.fields['state']!r}, expected what its lanes merged: {state!r}"
            yield batch.breach(text, batch.left)


def _merge_of(batch: BatchStory, lane: LaneStory) -> Iterator[Breach]:
    places = [(event.fields["call"], event.fields["position"]) for event in lane.applied]
    for event, before, place in zip(lane.applied[1:], places, places[1:], strict=False):
        if place <= before:
            text = f"expected modifiers by call and position, got {list(place)} after {list(before)}"
            yield Breach(text, batch.id, place[0], event.seq)
    last = max((call for call in map(batch.call, lane.calls) if call.started), key=_ended_at, default=None)
    for event, (index, _) in zip(lane.applied, places, strict=True):
        call = batch.call(index)
        if index not in lane.calls:
            text = f"expected modifiers of lane {lane.index} alone, got one of a call that is not in it"
            yield Breach(text, batch.id, index, event.seq)
        elif call.started is None or call.outcome not in RETURNED:
            text = f"expected modifiers of calls that returned, got one of a call that ended as {call.outcome}"
            yield Breach(text, batch.id, index, event.seq)
        if last is not None and _ended_at(last) > event.seq:
            text = f"expected the merge after the last call of lane {lane.index}; call {last.index} was still running"
            yield Breach(text, batch.id, index, event.seq)
    if lane.merged is None:
        return
    for field, ok in (("applied", True), ("rejected", False)):
        want = [[*place] for event, place in zip(lane.applied, places, strict=True) if event.fields["ok"] is ok]
        got = [list(place) for place in lane.merged.fields.get(field, want)]
        if got != want:
            yield batch.breach(f"lane {lane.index}: {field} says {got}, expected {want}", lane.merged)
    found: dict[int, list[int]] = {}
    for index, position in places:
        found.setdefault(index, []).append(position)
    for index in lane.calls:
        call = batch.call(index)
        count = call.settled[-1].fields.get("modifiers") if call.settled else None
        if count is None or call.outcome not in RETURNED:
            continue
        positions = found.get(index, [])
        if positions != list(range(count)):
            text = f"expected its {count} modifiers, each once; got those at positions {positions}"
            yield Breach(text, batch.id, index, lane.merged.seq)


def _ended_at(call: CallStory) -> int:
    return NEVER if call.ended is None else call.ended.seq

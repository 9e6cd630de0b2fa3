"""Law 17: a ticket covers what its call touches when it runs.

Rules.  The runtime asks a call for its claims as its tickets are taken, and again when they are granted after a wait;
where the tickets do not cover the second answer, the call is refused.  Under an observer it asks once more as the call
starts, decides nothing by it, and reports an answer that the tickets do not cover (``claims.stale``).

Theory.  What `claims` looks at is covered where every call that changes it conflicts with the call's tickets: then no
schedule can change the answer once the call is granted.  Where it is not covered no check at one instant can give the
same answer under every schedule, so the law says so of each trace that shows it: a call that started with stale claims,
or one that was refused because of what a call changed that no ticket orders with it.

Limits.  The law knows only reads that report to the probe: cells, watched values, the twin disk.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolrt.invariants.predicates._law import told
from toolrt.invariants.predicates._story import Breach, CallStory, TraceStory
from toolrt.trace import Trace, TraceEvent


@told(17, "claims_hold", "A ticket covers what its call touches when it runs.")
def claims_hold(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """No call starts with claims that are not those it would make now, or is refused because of an unordered change."""
    for batch in story.batches:
        for call in batch.calls.values():
            for event in call.stale:
                yield from _of_stale(story, trace, call, event)


def _of_stale(story: TraceStory, trace: Trace, call: CallStory, event: TraceEvent) -> Iterator[Breach]:
    looked_at = [" ".join(map(str, resource)) for resource in event.fields["looked_at"]]
    looks = f"its claims look at {', '.join(looked_at)}" if looked_at else "its claims look at what reports nothing"
    held, now = (", ".join(event.fields[name]) or "nothing" for name in ("holds", "claims"))
    remedy = "claim that as well, and declare it with claims_after"
    if not event.fields["refused"]:
        yield call.breach(f"it started holding {held}, and by now it claims {now}: {looks}; {remedy}", event)
        return
    for resource, other in _changed_unordered(story, trace, call, event):
        what = " ".join(map(str, resource))
        text = (
            f"it was refused by chance: its claims look at {what}, which call {other.index} changes in no order with it"
        )
        yield call.breach(f"{text}; {remedy}", event)


def _changed_unordered(
    story: TraceStory, trace: Trace, call: CallStory, event: TraceEvent
) -> Iterator[tuple[tuple[object, ...], CallStory]]:
    """What the claims looked at and a call changed whose claims do not conflict."""
    looked_at = {tuple(resource) for resource in event.fields["looked_at"]}
    for batch in story.batches:
        for other in batch.calls.values():
            if other is call or other.started is None or other.conflicts_with(call) or other.excludes(call):
                continue
            for resource in _written_by(trace, other, event):
                if resource in looked_at:
                    yield resource, other


def _written_by(trace: Trace, call: CallStory, before: TraceEvent) -> Iterator[tuple[object, ...]]:
    """What the steps of a call wrote before an event."""
    assert call.started is not None
    first = call.started.step
    if first is None or before.step is None or not trace.steps:
        return
    task = trace.steps[first].task
    for step in trace.steps[first : before.step + 1]:
        if step.task == task or step.task.startswith(f"{task}."):
            yield from (tuple(access.resource) for access in step.accesses if access.write)

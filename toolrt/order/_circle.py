"""Finds deadlocks across batches and runtimes: what each call waits for, and whether a new one would close a circle.

Rules.
    1. Within one table a ticket waits for earlier tickets only, so no circle can form.  A tool that runs a batch on
       another runtime waits for that batch while it holds tickets: then one can, over two tables or more.  So it can
       where the tool holds a share of limits (`toolrt.Limits`), and a call with a ticket waits for one.
    2. Only a call of a batch that a tool opened can close it: nothing waits for any other new call.  It is held against
       the graph when it has taken its tickets, and refused where it would wait for the call inside which it runs.  A
       sub-batch closes one only where its calls take tickets outside.

Theory.  A running call waits for the calls of the batches that its tool has open; a queued one for the calls before
it, all of them, for some of those before it where they have the places of a resource, and for one of those that hold
the slots of its batch or a limit that it shares.  What may end is the least set that is closed under that; a call
outside of it is in a deadlock (Holt, "Some deadlock properties of computer systems", 1972).

Limits.  It is known what a tool waits for where it opened the batch in its own task, in a task that it started or
through `trio.from_thread`.  A tool that waits otherwise (an event, another thread's Trio run) is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolrt.order._record import CallRecord
from toolrt.order._states import CallState, Holds, Status

_ENDED = (Status.COMPLETED, Status.YIELDED)


def circle_through(call: CallRecord) -> str | None:
    """Why `call`, which has just taken its tickets, would never start; None if it may.

    Ordering: what it waits for is named in the order of the tickets.
    """
    # Earlier calls of its own batch were held against the same graph, so no way to what they wait for leads back.
    known = {id(one) for one in call.siblings if one is not call}
    needs: dict[int, tuple[CallRecord, list[CallRecord], list[tuple[list[CallRecord], float]]]] = {}
    todo = [call]
    while todo:
        one = todo.pop()
        if id(one) in needs:
            continue
        every = [] if id(one) in known else list(_waits_for_all(one))
        some = [] if id(one) in known else list(_waits_for_some(one))
        needs[id(one)] = one, every, some
        todo += [*every, *(other for others, _ in some for other in others)]
    ending: set[int] = set()
    while True:
        more = {
            key
            for key, (_, every, some) in needs.items()
            if key not in ending
            and all(id(other) in ending for other in every)
            and all(sum(id(other) not in ending for other in others) <= most for others, most in some)
        }
        if not more:
            break
        ending |= more
    if id(call) in ending:
        return None
    way = [call]
    while not way[1:] or way[-1] not in way[:-1]:
        _, every, some = needs[id(way[-1])]
        others = *every, *(other for those, _ in some for other in those)
        way.append(next(other for other in others if id(other) not in ending))
    steps = ", which waits for ".join(f"call {one.call_index} ({one.name}) of batch {one.batch_id}" for one in way[1:])
    return f"it would never start: it waits for {steps}"


def _unended(calls: Iterable[CallRecord]) -> Iterator[CallRecord]:
    return (one for one in calls if one.status not in _ENDED)


def _waits_for_all(call: CallRecord) -> Iterator[CallRecord]:
    """The calls that must all end before this one can."""
    if call.status is Status.EXECUTING:
        for batch in call.opened:
            yield from _unended(batch.records)
    elif call.status is Status.QUEUED and call.state.holds is not Holds.SLOT:
        if call.state is not CallState.PLACED:
            for ticket in call.tickets:
                yield from ticket.behind()
        else:
            # Those of the lanes before its own, or the one whose claims are not known, at which its lane stands still.
            for one in _unended(call.siblings):
                if (one.lane or 0) < (call.lane or 0) or (one.state is CallState.ASKING and one.lane == call.lane):
                    yield one


def _waits_for_some(call: CallRecord) -> Iterator[tuple[list[CallRecord], float]]:
    """The calls before this one in a capacity: it starts when only so many are left; and so for slots and limits."""
    if call.status is not Status.QUEUED or call.state.holds is not Holds.TICKETS:
        return
    for ticket in call.tickets:
        yield from ticket.counts()
    holding = [one for one in call.siblings if one.state.holds is Holds.SLOT]
    if len(holding) >= call.siblings.limit:
        yield holding, call.siblings.limit - 1
    if call.siblings.limits is not None:
        yield from call.siblings.limits.waits_for(call.name)

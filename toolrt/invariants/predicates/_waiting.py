"""Law 6: calls that do not conflict never wait for each other.

Theory.  A call could run from the moment at which its ticket is taken, its approval is there, and every older
ticket that it conflicts with has ended; from then on only a slot may be missing, and slots go to the lowest
call_index (list scheduling, RULE 7), or to the ready call that a slot policy names.  In virtual time nothing is late by
chance: time moves only when nothing can run.  So the law looks at each instant before time moves: a call that could run
by then and does not waits needlessly.

Rules.  One pass over a batch's events.  All claims are taken to be of one table: a wait for another batch that
holds a resource of the same name counts as justified.  A sub-batch has no slots but its parent's, which one child can
always have, and those that are free (RULE 20).  Limits that batches share, and rates, may keep a call back, too: then
it waits where the one has no room, or the other has had its starts.

Limits.  In a production run the law checks only the limit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import Any

from toolrt.invariants.predicates._law import told
from toolrt.invariants.predicates._shared_limits import SharedLimits
from toolrt.invariants.predicates._story import NEVER, BatchStory, Breach, CallStory, TraceStory
from toolrt.model import EVERYTHING, WRITE, Claim
from toolrt.trace import Trace, TraceEvent


@told(6, "no_needless_wait", "Calls that do not conflict never wait for each other.")
def no_needless_wait(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """No call is left waiting when it could run, and no more run than the limit allows."""
    slots = {id(batch): _Slots(batch) for batch in story.batches if batch.parent is None}
    for of_batch in slots.values():
        yield from of_batch.limit_kept()
    shared = SharedLimits(story)
    yield from shared.kept()
    if not story.virtual:
        return
    # Children are ordered only among the children of their parent: other calls cannot touch what the parent claims.
    # So they are among those of their process.
    families: dict[tuple[int, bool], list[CallStory]] = {}
    # In a batch with an owner, a parent that declares nothing is alone among its owner's calls only.
    for batch in story.batches:
        inside = batch.parent is not None and batch.root.owner is None
        of = id(batch.parent) if inside else 0, batch.crashed is None
        families.setdefault(of, []).extend(batch.calls.values())
    ready: dict[int, int] = {}
    for family in families.values():
        tickets = sorted((place, at, call) for at, (place, call) in enumerate(_by_ticket(family)))
        ready |= _ready_times([call for _, _, call in tickets])
    # Where the step limit cut an execution off, its last instant had not ended.
    instants = story.instants[:-1] if trace.meta.get("ended") == "StepLimit" else story.instants
    for batch in story.batches:
        yield from _asked_at_once(batch)
        # A lane waits for the lanes of its owner's other batches.
        others = [] if batch.owner is None else [one for one in story.batches if one.owner == batch.owner]
        beside = [other for other in others if other is not batch]
        yield from _Watch(batch, ready, slots[id(batch.root)], beside, shared).judged(instants)


class _Slots:
    """The slots of one outermost batch, as its calls and those of its sub-batches take them.

    A call with n running children, n above 0, takes n slots, its own and n - 1 more; any other that runs takes one.
    """

    def __init__(self, batch: BatchStory) -> None:
        self._batch = batch
        #: The places at which something starts or ends, and how many slots are taken from there on.
        self._places: list[int] = []
        self._taken: list[int] = []
        #: The same for the children of each parent.
        self._children: dict[int, tuple[list[int], list[int]]] = {}
        self._starts: list[tuple[int, BatchStory, int]] = []
        self._add(batch)
        self._starts.sort(key=_place_of)
        changes: list[tuple[int, int]] = []
        for call in (one for top in batch.calls.values() for one in top.family):
            for began, ended in call.runs:
                changes += [(began, 1), (ended, -1)]
        for places, counts in self._children.values():
            extra = 0
            for place, count in zip(places, counts, strict=True):
                used = max(0, count - 1)
                changes.append((place, used - extra))
                extra = used
        # A child runs in its parent's slot: what it counts as a call is taken back.
        for places, counts in self._children.values():
            before = 0
            for place, count in zip(places, counts, strict=True):
                changes.append((place, before - count))
                before = count
        taken = 0
        for place, change in sorted(changes):
            taken += change
            if self._places and self._places[-1] == place:
                self._taken[-1] = taken
            else:
                self._places.append(place)
                self._taken.append(taken)

    def _add(self, batch: BatchStory) -> None:
        for call in batch.calls.values():
            if call.started is not None:
                self._starts.append((call.started.seq, batch, call.index))
            steps = sorted(
                step
                for inner in call.sub_batches
                for child in inner.calls.values()
                for began, ended in child.runs
                for step in ((began, 1), (ended, -1))
            )
            places: list[int] = []
            counts: list[int] = []
            for place, step in steps:
                places.append(place)
                counts.append((counts[-1] if counts else 0) + step)
            if steps:
                self._children[id(call)] = places, counts
            for inner in call.sub_batches:
                self._add(inner)

    @property
    def limit(self) -> int | None:
        """How many slots there are; None is any number."""
        return self._batch.limit

    def taken(self, place: int) -> int:
        """How many slots are taken at that place in the trace."""
        at = bisect_right(self._places, place)
        return self._taken[at - 1] if at else 0

    def children(self, parent: CallStory, place: int) -> int:
        """How many children of `parent` run then."""
        places, counts = self._children.get(id(parent), ([], []))
        at = bisect_right(places, place)
        return counts[at - 1] if at else 0

    @property
    def places_inside(self) -> list[int]:
        """Where a child starts or ends."""
        return [place for places, _ in self._children.values() for place in places if place != NEVER]

    def taking_more(self, before: int, instant: int) -> Iterator[CallStory]:
        """Children that started between these places beside another one of their parent, which still runs."""
        low = bisect_right(self._starts, before, key=_place_of)
        high = bisect_right(self._starts, instant, key=_place_of)
        for _, batch, index in self._starts[low:high]:
            if batch.parent is not None and self.children(batch.parent, instant) >= 2:
                yield batch.calls[index]

    def limit_kept(self) -> Iterator[Breach]:
        """Where more slots are taken than there are."""
        if self.limit is None:
            return
        for place, batch, index in self._starts:
            taken = self.taken(place)
            if taken > self.limit:
                text = f"expected at most {self.limit} calls to run at once, got {taken}"
                yield Breach(text, batch.id, index, place)


def _place_of(start: tuple[int, BatchStory, int]) -> int:
    return start[0]


def _asked_at_once(batch: BatchStory) -> Iterator[Breach]:
    for call in batch.calls.values():
        if call.asked is not None and call.ticket is not None and call.asked.time > call.ticket.time:
            text = f"expected approval to be asked at {call.ticket.time:g} s with the lane, got {call.asked.time:g} s"
            yield call.breach(text, call.asked)


def _by_ticket(family: list[CallStory]) -> Iterator[tuple[int, CallStory]]:
    """Every call that has a place in the order, and from where in the trace on it has it."""
    last: dict[tuple[int, int | None], int] = {}
    for call in family:
        if call.placed is not None:
            # A lane's tickets are taken in call order; that a call's claims are awaited may be told before it starts.
            lane, place = (id(call.batch), call.lane), call.placed.seq
            if call.asked is not None and not call.shared and call.batch.parent is None:
                # Its lane keeps it alone in its batch; among others it has its place once it is allowed to run.
                place = _seq(call.answered)
            last[lane] = max(last.get(lane, -1), place)
            yield last[lane], call


class _Ends:
    """For every claim the place in the trace at which the last ticket that conflicts with it has ended.

    Per path and mode it keeps the latest end of the claims on exactly that path, of the subtree claims on it, and
    of the claims below it; per resource, too, the ends of all that take a place of it.
    """

    def __init__(self) -> None:
        self._latest: dict[tuple[str, tuple[Any, ...], bool], int] = {}
        #: The same for claims that take a place; those are no obstacle for each other.
        self._of_places: dict[tuple[str, tuple[Any, ...], bool], int] = {}
        self._ends: dict[tuple[Any, ...], list[int]] = {}

    def before(self, claim: Claim) -> int:
        """The end of everything older that conflicts with `claim`; -1 when there is nothing."""
        if claim.slots is not None:
            return self._before(Claim(claim.resource, WRITE), self._latest)
        return max(self._before(claim, self._latest), self._before(claim, self._of_places))

    def place(self, claim: Claim, slots: int) -> int:
        """From where on fewer than `slots` older tickets that take a place of the claim's resource are left."""
        ends = self._ends.get(claim.resource, [])
        return ends[-slots] if len(ends) >= slots else -1

    def _before(self, claim: Claim, latest: Mapping[tuple[str, tuple[Any, ...], bool], int]) -> int:
        path = claim.resource
        modes = (True, False) if claim.mode is WRITE else (True,)
        found = -1
        for writes in modes:
            found = max(found, latest.get(("at", path, writes), -1))
            for depth in range(len(path)):
                found = max(found, latest.get(("subtree", path[:depth], writes), -1))
            if claim.subtree:
                found = max(found, latest.get(("below", path, writes), -1))
        return found

    def add(self, claim: Claim, ended: int) -> None:
        """Count a ticket's claim that ends at `ended`."""
        latest = self._latest
        if claim.slots is not None:
            insort(self._ends.setdefault(claim.resource, []), ended)
            claim, latest = Claim(claim.resource, WRITE), self._of_places
        path, writes = claim.resource, claim.mode is WRITE
        keys = [("at", path, writes), *(("below", path[:depth], writes) for depth in range(len(path)))]
        if claim.subtree:
            keys.append(("subtree", path, writes))
        for key in keys:
            if ended > latest.get(key, -1):
                latest[key] = ended


def _ready_times(calls: list[CallStory]) -> dict[int, int]:
    """For each call, oldest ticket first, the place from which nothing but a slot is missing, or NEVER."""
    ends = _Ends()
    #: Of each batch's control claim: the latest end of a call that stops the batch, and of a call that may be stopped.
    control: dict[int, list[int]] = {}
    ready: dict[int, int] = {}
    for call in calls:
        # Until its claims are known all later calls wait behind it.
        at = call.known
        if call.awaited is not None:
            ends.add(EVERYTHING, at)
        if call.asked is not None:
            at = max(at, _seq(call.answered))
        for claim in call.claims:
            at = max(at, ends.before(claim))
        places = call.places
        for claim in places:
            at = max(at, ends.place(claim, call.places_for(claim)))
        stoppers = control.setdefault(id(call.batch), [-1, -1])
        may_be_stopped = (
            not call.reads_only and call.batch.stops_from is not None and call.index > call.batch.stops_from
        )
        if call.stops:
            at = max(at, *stoppers)
        elif may_be_stopped:
            at = max(at, stoppers[0])
        ready[id(call)] = at
        ended = _seq(call.ended)
        for claim in call.claims:
            if claim.slots is None or claim in places:
                ends.add(claim, ended)
        if call.stops or may_be_stopped:
            kind = 0 if call.stops else 1
            # One that may stop the batch lets later calls go when its result is known, too.
            known = call.settled[0].seq if call.stops and call.settled else ended
            stoppers[kind] = max(stoppers[kind], ended, known)
    return ready


def _seq(event: TraceEvent | None) -> int:
    return NEVER if event is None else event.seq


class _Lowest:
    """The smallest of the values kept under the indices below a given one: a segment tree."""

    def __init__(self, size: int) -> None:
        self._leaves = 1
        while self._leaves < size:
            self._leaves *= 2
        self._least = [NEVER] * (2 * self._leaves)

    def put(self, index: int, value: int) -> None:
        """Keep `value` under `index`; NEVER removes what is there."""
        at = index + self._leaves
        self._least[at] = value
        while at > 1:
            at //= 2
            self._least[at] = min(self._least[2 * at], self._least[2 * at + 1])

    def all(self, bound: int, below: int) -> Iterator[int]:
        """The indices under `below` that have a value of `bound` or less, lowest first."""
        least = self._least[self._leaves : self._leaves + below]
        return (index for index, value in enumerate(least) if value <= bound)

    def first(self, bound: int, below: int) -> int | None:
        """The lowest index under `below` that has a value of `bound` or less."""
        at = 1
        if self._least[at] > bound:
            return None
        while at < self._leaves:
            at = 2 * at if self._least[2 * at] <= bound else 2 * at + 1
        index = at - self._leaves
        return index if index < below else None


class _Watch:
    """Who waits in one batch, from instant to instant."""

    def __init__(
        self,
        batch: BatchStory,
        ready: Mapping[int, int],
        slots: _Slots,
        beside: list[BatchStory],
        shared: SharedLimits,
    ) -> None:
        self._batch = batch
        self._shared = shared
        self._beside = beside
        self._slots = slots
        self._of_all = ready
        self._ready = {call.index: ready.get(id(call), NEVER) for call in batch.calls.values()}
        size = max(batch.calls, default=-1) + 1
        #: Calls that lack only a slot, with the place from which on they do.
        self._startable = _Lowest(size)
        #: Calls without a ticket, and calls that hold one.
        self._queued = _Lowest(size)
        self._held = _Lowest(size)
        self._unticketed = 0
        self._size = size
        #: For each lane that lives the number of its calls that have not ended.
        self._living: dict[int, int] = {}
        self._sealed = False
        self._told: set[tuple[str, int | None]] = set()

    def judged(self, instants: list[int]) -> Iterator[Breach]:
        """What is wrong at the instants before time moves, each wait once."""
        changes = sorted(self._changes(), key=lambda change: change[0])
        over = min(self._batch.cancelled_at, self._batch.left_at)
        at = 0
        while at < len(changes):
            place = bisect_left(instants, changes[at][0])
            if place == len(instants) or instants[place] >= over:
                return
            started = []
            while at < len(changes) and changes[at][0] <= instants[place]:
                _, apply, index = changes[at]
                apply(index)
                if apply == self._start:
                    started.append(index)
                at += 1
            before = instants[place - 1] if place else -1
            passed = self._passed_by_children(before, instants[place]) if self._batch.parent is None else ()
            for found in (*self._at_instant(instants[place], started), *passed):
                if (found.detail, found.call) not in self._told:
                    self._told.add((found.detail, found.call))
                    yield found

    def _changes(self) -> Iterator[tuple[int, Any, int]]:
        batch = self._batch
        for call in batch.calls.values():
            index, began = call.index, _seq(call.started)
            settled = call.settled[0].seq if call.settled else NEVER
            gone = min(began, settled, _seq(call.ended))
            if call.submitted is not None:
                yield call.submitted.seq, self._queue, index
                yield min(_seq(call.placed), gone), self._unqueue, index
            if call.placed is not None:
                yield call.placed.seq, self._hold, index
                yield _seq(call.ended), self._release, index
            if self._ready[index] < gone:
                yield self._ready[index], self._make_ready, index
                yield gone, self._unready, index
            if call.started is not None:
                yield began, self._start, index
        for lane in batch.lanes.values():
            if lane.started is not None:
                yield lane.started.seq, self._begin_lane, lane.index
                yield _seq(lane.merged), self._end_lane, lane.index
        if batch.sealed is not None:
            yield batch.sealed.seq, self._seal, 0
        # A call that waits for a slot also looks when a child starts or ends.
        for place in self._slots.places_inside:
            yield place, self._look, 0

    def _look(self, index: int) -> None:
        """Nothing changes here."""

    def _queue(self, index: int) -> None:
        self._queued.put(index, 0)
        self._unticketed += 1

    def _unqueue(self, index: int) -> None:
        self._queued.put(index, NEVER)
        self._unticketed -= 1

    def _hold(self, index: int) -> None:
        self._held.put(index, 0)
        lane = self._batch.calls[index].lane
        if lane is not None:
            self._living[lane] = self._living.get(lane, 0) + 1

    def _release(self, index: int) -> None:
        self._held.put(index, NEVER)
        lane = self._batch.calls[index].lane
        if lane in self._living:
            self._living[lane] -= 1

    def _make_ready(self, index: int) -> None:
        self._startable.put(index, self._ready[index])

    def _unready(self, index: int) -> None:
        self._startable.put(index, NEVER)

    def _start(self, index: int) -> None:
        """Do nothing: `judged` says which call starts."""

    def _begin_lane(self, index: int) -> None:
        self._living.setdefault(index, 0)

    def _end_lane(self, index: int) -> None:
        self._living.pop(index, None)

    def _seal(self, index: int) -> None:
        self._sealed = True

    def _passed_by_children(self, before: int, instant: int) -> Iterator[Breach]:
        """Ready calls of the outermost batch that a child beside another one took the slot of."""
        for call in self._slots.taking_more(before, instant):
            # A slot that it took since was given away after both of these.
            waiting = self._startable.first(max(before, self._of_all.get(id(call), NEVER)), self._size)
            if waiting is not None and not self._shared.closed(self._batch.calls[waiting], instant):
                text = f"call {call.index} of sub-batch {call.batch.id} took a slot that it was ready for"
                yield Breach(text, self._batch.id, waiting, _seq(call.started))

    def _first_startable(self, instant: int) -> int | None:
        """The lowest call that lacks nothing, a rate and limits that are shared included."""
        lowest = self._startable.first(instant, self._size)
        if lowest is None or not self._shared.closed(self._batch.calls[lowest], instant):
            return lowest
        calls = self._batch.calls
        others = self._startable.all(instant, self._size)
        return next((index for index in others if not self._shared.closed(calls[index], instant)), None)

    def _at_instant(self, instant: int, started: list[int]) -> Iterator[Breach]:
        batch, limit, taken = self._batch, self._slots.limit, self._slots.taken(instant)
        lent = batch.parent is not None and self._slots.children(batch.parent, instant) == 0
        queued = self._queued.first(0, self._size)
        waits = any(told <= instant < heard for told, heard in batch.hearings)
        waits = waits or any(_seq(other.opened) <= instant < other.left_at for other in self._beside)
        if queued is not None and self._held.first(0, queued) is None and not waits:
            yield Breach("expected its lane to start, every call before it has ended", batch.id, queued)
        if limit is None or taken < limit or lent:
            waiting = self._first_startable(instant)
            if waiting is not None:
                free = "its parent's slot" if lent else "a slot"
                text = f"nothing it conflicts with is left and {free} is free ({taken} taken): expected it to run"
                yield Breach(text, batch.id, waiting)
        for index in () if batch.has_slot_policy else started:
            passed = self._startable.first(self._ready[index], index)
            if passed is not None and not self._shared.keeps_back(batch.calls[passed], batch.calls[index]):
                text = f"call {index} got the slot that was call {passed}'s by call_index"
                yield Breach(text, batch.id, passed, _seq(batch.calls[index].started))
        if batch.stopped and batch.stopped[0].seq <= instant:
            return
        for lane, unfinished in self._living.items():
            if unfinished == 0 and (self._sealed or self._unticketed):
                yield batch.breach(f"expected lane {lane} to end, every call of it has")

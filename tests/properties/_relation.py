"""The relation of docs/proof/Judge.v once more in Python, and how a trace is read as steps of it.

`Relation` is what a trace shows of the model: which calls hold tickets, which run, when the next one may start, what
is merged, what a reader has, and when all is over.  Each refusal names the theorem that the step would break.  The
judge that Coq extracts reads the same steps as text (`Steps.lines`); test_judge.py compares the verdicts of the two.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from toolrt.model import READ, WRITE, Claim
from toolrt.trace import Trace, TraceEvent


class Refused(Exception):
    """A step that the model does not have."""

    def __init__(self, theorem: str, why: str) -> None:
        super().__init__(f"{theorem}: {why}")
        self.theorem = theorem


@attrs.frozen
class Step:
    """One step of a batch: its kind is a method of `Relation`, `numbers` and `claims` are what that takes."""

    kind: str
    numbers: tuple[int, ...]
    claims: tuple[Claim, ...] | None = None


@attrs.frozen
class Steps:
    """What one batch did, and how it ended."""

    #: How many calls may run at once; where there is no limit, as many as the batch has.
    limit: int
    #: How many calls were submitted.
    calls: int
    steps: tuple[Step, ...]
    #: The batch was left: no step can follow.
    left: bool
    #: How many results its reader has to have by then; None: it did not read to the end.
    wanted: int | None

    def lines(self) -> list[str]:
        """The text that the judge reads: numbers alone, also for the parts of a resource."""
        numbers: dict[object, int] = {}
        lines = [f"batch {self.limit} {self.calls}"]
        for step in self.steps:
            words = [step.kind, *map(str, step.numbers)]
            for claim in step.claims or ():
                path = ".".join(str(numbers.setdefault(part, len(numbers))) for part in claim.resource)
                words.append(f"{'w' if claim.mode is WRITE else 'r'}{'*' if claim.subtree else ''}:{path}")
            lines.append(" ".join(words))
        return [*lines, f"left {'-' if self.wanted is None else self.wanted}" if self.left else "stopped"]


class Stage(enum.Enum):
    """What has become of a call: one that is awaiting holds tickets and does not know its claims, a queued one does."""

    UNPLACED = "unplaced"
    AWAITING = "awaiting"
    QUEUED = "queued"
    WORKING = "working"
    GONE = "gone"


@attrs.define
class Entry:
    """A call of the batch."""

    claims: Sequence[Claim] = ()
    stage: Stage = Stage.UNPLACED
    #: It has been started, and may have touched what it claims.
    begun: bool = False
    lane: int | None = None
    #: How many modifiers its result has; None while it has no result.
    modifiers: int | None = None


@attrs.define
class Relation:
    """The steps that the model allows, for the calls of one batch."""

    limit: int
    #: The calls, each at the place of its index.
    entries: list[Entry]
    #: The lane that is open, and the modifiers that were applied in it: call and position.
    lane: int = 0
    applied: list[tuple[int, int]] = attrs.field(factory=list)
    #: How many results the reader has.
    handed: int = 0

    def awaits(self, call: int, lane: int, claims: Sequence[Claim]) -> None:
        """The call takes its place with what its claims look at, and says later what it claims."""
        entry = self._entry(call, Stage.UNPLACED)
        self._place(entry, call, lane, claims, Stage.AWAITING)

    def takes(self, call: int, lane: int, claims: Sequence[Claim]) -> None:
        """The call takes its tickets, at once or when it knows its claims."""
        entry = self._entry(call, Stage.UNPLACED, Stage.AWAITING)
        self._place(entry, call, lane, claims, Stage.QUEUED)

    def _place(self, entry: Entry, call: int, lane: int, claims: Sequence[Claim], stage: Stage) -> None:
        _require(lane == self.lane, "batch_is_serial", f"call {call} enters lane {lane}, lane {self.lane} is open")
        late = any(other.begun and _conflict(claims, other.claims) for other in self.entries[call + 1 :])
        _require(not late, "every_run_is_serial", f"call {call} claims what a later call has begun with")
        entry.claims, entry.stage, entry.lane = claims, stage, lane

    def starts(self, call: int) -> None:
        """``Start``: every earlier call with a conflicting claim has ended, and a slot is free."""
        entry = self._entry(call, Stage.QUEUED)
        for earlier, other in enumerate(self.entries[:call]):
            free = other.stage is Stage.GONE or not _conflict(other.claims, entry.claims)
            _require(free, "every_run_is_serial", f"call {call} starts before call {earlier}, which it conflicts with")
        working = sum(other.stage is Stage.WORKING for other in self.entries)
        _require(working < self.limit, "every_run_is_serial", f"call {call} starts without a free slot")
        entry.stage, entry.begun = Stage.WORKING, True

    def pauses(self, call: int) -> None:
        """The call has ended and runs once more: until that ends it keeps its tickets."""
        self._entry(call, Stage.WORKING).stage = Stage.QUEUED

    def ends(self, call: int) -> None:
        """``Finish`` and ``Cut``: a call ends once, and has run or never will."""
        self._entry(call, Stage.AWAITING, Stage.QUEUED, Stage.WORKING).stage = Stage.GONE

    def _entry(self, call: int, *stages: Stage) -> Entry:
        _require(call < len(self.entries), "every_run_is_serial", f"call {call} was never submitted")
        entry = self.entries[call]
        wanted = " or ".join(stage.value for stage in stages)
        text = f"call {call} is {entry.stage.value}, and has to be {wanted}"
        _require(entry.stage in stages, "every_run_is_serial", text)
        return entry

    def settles(self, call: int, modifiers: int) -> None:
        """The call has a result, with so many modifiers: its last one, or another until the reader has it."""
        free = self.handed <= call < len(self.entries)
        _require(free, "results_are_not_taken_back", f"the reader has the result of call {call}, and it changes")
        self.entries[call].modifiers = modifiers

    def applies(self, lane: int, call: int, position: int) -> None:
        """``merge``: the modifiers of the calls that returned, by call and position."""
        what = f"modifier {position} of call {call} is applied"
        there = lane == self.lane and call in self._members() and self.entries[call].stage is Stage.GONE
        _require(there, "merge_is_in_call_order", f"{what} before the call has ended, or outside its lane")
        behind = [one for one in self.applied if one >= (call, position)]
        _require(not behind, "merge_is_in_call_order", f"{what} behind {behind}")
        self.applied.append((call, position))

    def merges(self, lane: int) -> None:
        """The lane is over: each of its calls has ended, and each of their modifiers was applied."""
        _require(lane == self.lane, "batch_is_serial", f"lane {lane} is merged while lane {self.lane} is open")
        members = self._members()
        waits = [call for call, its in members.items() if its.stage in (Stage.AWAITING, Stage.QUEUED)]
        _require(not waits, "some_call_can_go_on", f"lane {lane} is over, and calls {waits} still wait")
        early = [call for call, its in members.items() if its.stage is not Stage.GONE]
        _require(not early, "merge_is_in_call_order", f"lane {lane} is merged while calls {early} have not ended")
        wanted = [(call, at) for call, its in members.items() for at in range(its.modifiers or 0)]
        text = f"lane {lane} applies {self.applied}, its calls returned {wanted}"
        _require(self.applied == wanted, "merge_is_in_call_order", text)
        self.lane, self.applied = lane + 1, []

    def _members(self) -> dict[int, Entry]:
        """The calls of the open lane, in call order."""
        return {call: entry for call, entry in enumerate(self.entries) if entry.lane == self.lane}

    def hands(self, call: int) -> None:
        """``handed``: the reader has the results of the calls before this one, and now its own."""
        text = f"call {self.handed} is next, the reader gets {call}"
        _require(call == self.handed, "results_are_in_call_order", text)
        there = call < len(self.entries) and self.entries[call].modifiers is not None
        _require(there, "results_are_in_call_order", f"call {call} has no result yet")
        self.handed += 1

    def over(self, left: bool, wanted: int | None) -> None:
        """``complete``: every call has ended, and a reader that read to the end has every result."""
        waits = [call for call, its in enumerate(self.entries) if its.stage not in (Stage.UNPLACED, Stage.GONE)]
        _require(not waits, "some_call_can_go_on", f"it is over, and calls {waits} have not ended")
        _require(left, "every_run_ends", "no call is left, and the batch is not over")
        text = f"the reader has {self.handed} of {wanted} results"
        _require(wanted is None or self.handed >= wanted, "every_result_is_handed_over", text)


def _require(holds: bool, theorem: str, why: str) -> None:
    if not holds:
        raise Refused(theorem, why)


def _conflict(some: Sequence[Claim], others: Sequence[Claim]) -> bool:
    return any(one.conflicts_with(other) for one in some for other in others)


def judged(steps: Steps) -> Refused | None:
    """What the relation has against the steps of one batch; None when they are a run of the model."""
    relation = Relation(steps.limit, [Entry() for _ in range(steps.calls)])
    try:
        for step in steps.steps:
            claims = () if step.claims is None else (step.claims,)
            getattr(relation, step.kind)(*step.numbers, *claims)
        relation.over(steps.left, steps.wanted)
    except Refused as refusal:
        return refusal
    return None


def steps_of(trace: Trace) -> Iterator[Steps]:
    """Each batch of a trace as steps of the model, in the order in which they were opened.

    A sub-batch is left out: it borrows slots, which the model does not have.
    """
    for opened in [event.fields for event in trace.events if event.kind == "batch.opened"]:
        if opened["parent"] is None:
            name = opened["batch"]
            mine = [event for event in trace.events if event.fields.get("batch") == name]
            yield _steps(mine, opened["limit"], trace.notes.get("read_to_the_end") == name)


def _steps(events: Sequence[TraceEvent], limit: int | None, read_to_the_end: bool) -> Steps:
    told = Counter((event.kind, event.fields.get("call")) for event in events)
    kinds = [event.kind for event in events]
    # What comes behind a cancel is answered in its slot only: RULES 16.
    until = kinds.index("batch.cancelled") if "batch.cancelled" in kinds else len(kinds)
    calls = kinds.count("call.submitted")
    return Steps(
        calls if limit is None else limit,
        calls,
        tuple(_each(events, told)),
        "batch.left" in kinds,
        kinds[:until].count("call.submitted") if read_to_the_end else None,
    )


def _each(events: Sequence[TraceEvent], told: Counter[tuple[str, int | None]]) -> Iterator[Step]:
    stopping, ended = set[int](), Counter[int]()
    for event in events:
        fields = event.fields
        if event.kind == "claims.awaited":
            yield Step("awaits", (fields["call"], fields["lane"]), tuple(_declared(fields["after"])))
        elif event.kind == "ticket.taken":
            control = _control(event, fields["lane"] in stopping)
            yield Step("takes", (fields["call"], fields["lane"]), (*_declared(fields["claims"]), *control))
            if fields["stops"]:
                stopping.add(fields["lane"])
        elif event.kind == "call.started":
            yield Step("starts", (fields["call"],))
        elif event.kind == "call.ended":
            call = fields["call"]
            ended[call] += 1
            last = ended[call] >= min(told["call.ended", call], 1 + told["call.again", call])
            yield Step("ends" if last else "pauses", (call,))
        elif event.kind == "call.settled":
            yield Step("settles", (fields["call"], fields.get("modifiers") or 0))
        elif event.kind == "state.applied":
            yield Step("applies", (fields["lane"], fields["call"], fields["position"]))
        elif event.kind == "lane.merged":
            yield Step("merges", (fields["lane"],))
        elif event.kind == "result.delivered":
            yield Step("hands", (fields["call"],))


def _declared(claims: Iterable[list[Any]]) -> Iterator[Claim]:
    """Claims on the workspace's table: a table is the first part of a resource."""
    for how, resource, subtree, *slots in claims:
        # A place orders nothing among those that take one, so in the model it is a claim to read.
        yield Claim(("workspace", *resource), READ if how == READ.value or slots else WRITE, subtree)


def _control(event: TraceEvent, behind: bool) -> Iterator[Claim]:
    """A call that may stop the batch writes its lane's control claim; calls `behind` it, which it may stop, read it."""
    if event.fields["stops"]:
        yield Claim(("control",), WRITE)
    elif behind and not event.fields["reads_only"]:
        yield Claim(("control",), READ)

"""The machine-checked proof, and what ties its model to the code.

`Relation` is the relation ``step`` of docs/proof/Ordering.v once more in Python, as far as a trace shows it: which
calls hold tickets, which run, when the next one may start, what is merged, what a reader has, and when all is over.
Each refusal names the theorem that the step would break.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

import attrs
import pytest
from hypothesis import given

from toolrt import testing
from toolrt.invariants import Mix
from toolrt.invariants.mutants import MUTANTS
from toolrt.model import READ, WRITE, Claim
from toolrt.trace import Trace, TraceEvent

PROOF = Path(__file__).parents[2] / "docs" / "proof" / "Ordering.v"

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "proof.md"

#: The theorems that docs/explanation/proof.md speaks of.
THEOREMS = (
    "every_run_is_serial",
    "complete_run_is_serial",
    "cut_calls_change_nothing_else",
    "unbegun_calls_count_as_none",
    "some_call_can_go_on",
    "every_run_ends",
    "merge_ignores_the_order_of_ends",
    "merge_is_in_call_order",
    "merge_ignores_cancelled_calls",
    "merge_is_serial",
    "results_are_in_call_order",
    "results_are_not_taken_back",
    "every_result_is_handed_over",
    "batch_is_serial",
    "claims_keep_lanes_apart",
)

#: Wrong runtimes, and the theorem for which their traces are refused.
BROKEN = {
    "files are not ordered": "every_run_is_serial",
    "readers of files do not wait": "every_run_is_serial",
    "everything is claimed in vain": "every_run_is_serial",
    "stops too late": "every_run_is_serial",
    "no limit": "every_run_is_serial",
    "modifiers as they come": "merge_is_in_call_order",
    "a bad modifier ends the merge": "merge_is_in_call_order",
    "results as they come": "results_are_in_call_order",
    "a cancel silences the reader": "every_result_is_handed_over",
    "forgets who waits": "some_call_can_go_on",
    "waits for more calls": "every_run_ends",
}


#: A claim and the name of the table that it is on.
Ticketed = tuple[str, Claim]


@attrs.define
class Relation:
    """The steps that the model allows, for the calls of one batch."""

    limit: float
    #: The claims of each call that has taken its tickets and has not ended, each with the table that it is on.
    claims: dict[int, list[Ticketed]] = attrs.field(factory=dict)
    #: Those of them whose claims are not known yet: they hold what their claims look at.
    awaited: set[int] = attrs.field(factory=set)
    running: set[int] = attrs.field(factory=set)
    #: The lane of each call that has taken its tickets.
    lanes: dict[int, int] = attrs.field(factory=dict)
    #: The calls that have a result, and how many modifiers those of them have that returned some.
    settled: set[int] = attrs.field(factory=set)
    modifiers: dict[int, int] = attrs.field(factory=dict)
    #: The modifiers that were applied in each lane that is not merged yet: call and position.
    applied: dict[int, list[tuple[int, int]]] = attrs.field(factory=dict)
    #: How many results the reader has.
    handed: int = 0

    def take(self, call: int, lane: int, claims: list[Ticketed]) -> None:
        known = call in self.claims and call not in self.awaited
        assert not known, f"every_run_is_serial: call {call} takes its tickets twice"
        self.awaited.discard(call)
        self.claims[call] = claims
        self.lanes[call] = lane

    def wait(self, call: int, claims: list[Ticketed]) -> None:
        """The call takes its place, and says later what it claims."""
        self.claims.setdefault(call, claims)
        self.awaited.add(call)

    def start(self, call: int) -> None:
        """``Start``: every earlier call with a conflicting claim has ended, and a slot is free."""
        assert call in self.claims, f"every_run_is_serial: call {call} starts without tickets"
        for earlier, theirs in self.claims.items():
            if earlier >= call:
                continue
            conflict = any(s == t and a.conflicts_with(b) for s, a in theirs for t, b in self.claims[call])
            assert not conflict, (
                f"every_run_is_serial: call {call} starts before call {earlier}, which it conflicts with"
            )
        assert len(self.running) < self.limit, f"every_run_is_serial: call {call} starts without a free slot"
        self.running.add(call)

    def end(self, call: int, again: bool) -> None:
        """``Finish`` and ``Cut``: a call ends once, and has run or never will.

        The model has the last run alone of a call that runs `again`: until that ends the call keeps its tickets.
        """
        assert call in self.claims, f"every_run_is_serial: call {call} ends without tickets, or twice"
        self.running.discard(call)
        if not again:
            del self.claims[call]

    def apply(self, lane: int, call: int, position: int) -> None:
        """``merge``: the modifiers of the calls that returned, by call and position."""
        before = self.applied.setdefault(lane, [])
        text = f"merge_is_in_call_order: modifier {position} of call {call} is applied"
        assert call not in self.claims, f"{text} before the call has ended"
        assert not before or before[-1] < (call, position), f"{text} behind {before[-1]}"
        before.append((call, position))

    def merge(self, lane: int) -> None:
        """The lane is over: each of its calls has ended, and each of their modifiers was applied."""
        mine = [call for call, its in self.lanes.items() if its == lane]
        waits = [call for call in mine if call in self.claims and call not in self.running]
        assert not waits, f"some_call_can_go_on: lane {lane} is over, and calls {waits} still wait"
        early = [call for call in mine if call in self.claims]
        assert not early, f"merge_is_in_call_order: lane {lane} is merged while calls {early} have not ended"
        wanted = [(call, at) for call in sorted(mine) for at in range(self.modifiers.get(call, 0))]
        got = self.applied.get(lane, [])
        assert got == wanted, f"merge_is_in_call_order: lane {lane} applies {got}, its calls returned {wanted}"

    def hand(self, call: int) -> None:
        """``handed``: the reader has the results of the calls before this one, and now its own."""
        assert call == self.handed, f"results_are_in_call_order: call {self.handed} is next, the reader gets {call}"
        assert call in self.settled, f"results_are_in_call_order: call {call} has no result yet"
        self.handed += 1

    def over(self, submitted: int, read_to_the_end: bool) -> None:
        """``complete``: every call has ended, and who read to the end has every result."""
        assert not self.claims, f"some_call_can_go_on: it is over, and calls {sorted(self.claims)} have not ended"
        if read_to_the_end:
            text = f"every_result_is_handed_over: the reader has {self.handed} of {submitted} results"
            assert self.handed >= submitted, text


def refused(trace: Trace) -> str | None:
    """What the relation has against a trace; None when each of its batches is a run of the model."""
    for batch in {event.fields["batch"] for event in trace.events if event.kind == "batch.opened"}:
        mine = [event for event in trace.events if event.fields.get("batch") == batch]
        if mine[0].fields["parent"] is not None:
            continue  # a sub-batch borrows slots, which the model does not have
        try:
            _follow(mine, trace.notes.get("read_to_the_end") == batch)
        except AssertionError as error:
            return str(error).partition("\n")[0]
    return None


def _follow(events: Sequence[TraceEvent], read_to_the_end: bool) -> None:
    relation, stopping = Relation(0), set[int]()
    told = Counter((event.kind, event.fields.get("call")) for event in events)
    ended: Counter[int] = Counter()
    for event in events:
        fields = event.fields
        if event.kind == "batch.opened":
            relation = Relation(float("inf") if fields["limit"] is None else fields["limit"])
        elif event.kind == "claims.awaited":
            relation.wait(fields["call"], [*_declared(fields["after"])])
        elif event.kind == "ticket.taken":
            relation.take(
                fields["call"],
                fields["lane"],
                [*_declared(fields["claims"]), *_control(event, fields["lane"] in stopping)],
            )
            if fields["stops"]:
                stopping.add(fields["lane"])
        elif event.kind == "call.started":
            relation.start(fields["call"])
        elif event.kind == "call.ended":
            call = fields["call"]
            ended[call] += 1
            allowed = min(told["call.ended", call], 1 + told["call.again", call])
            relation.end(call, again=ended[call] < allowed)
        elif event.kind == "call.settled":
            relation.settled.add(fields["call"])
            relation.modifiers[fields["call"]] = fields.get("modifiers") or 0
        elif event.kind == "state.applied":
            relation.apply(fields["lane"], fields["call"], fields["position"])
        elif event.kind == "lane.merged":
            relation.merge(fields["lane"])
        elif event.kind == "result.delivered":
            relation.hand(fields["call"])
    waits = sorted(relation.claims)
    if told["batch.left", None]:
        # What comes behind a cancel is answered in its slot only: RULES 16.
        kinds = [event.kind for event in events]
        until = kinds.index("batch.cancelled") if "batch.cancelled" in kinds else len(kinds)
        relation.over(kinds[:until].count("call.submitted"), read_to_the_end)
    elif waits:
        raise AssertionError(f"some_call_can_go_on: calls {waits} wait, and none of them goes on")
    else:
        raise AssertionError("every_run_ends: no call is left, and the batch is not over")


def _declared(claims: Iterable[tuple[str, list[str], bool]]) -> Iterable[Ticketed]:
    for how, resource, subtree in claims:
        yield "workspace", Claim(tuple(resource), READ if how == READ.value else WRITE, subtree)


def _control(event: TraceEvent, behind: bool) -> Iterable[Ticketed]:
    """A call that may stop the batch writes its lane's control claim; calls `behind` it, which it may stop, read it."""
    if event.fields["stops"]:
        yield "control", Claim((), WRITE)
    elif behind and not event.fields["reads_only"]:
        yield "control", Claim((), READ)


@given(mix=testing.tool_mixes(), schedule=testing.schedules())
def test_every_trace_is_a_run_of_the_model(mix: Mix, schedule: list[int]) -> None:
    """What the runtime does, under any schedule, is a sequence of steps that the proof speaks of."""
    assert refused(testing.simulate(mix, schedule).trace) is None


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_runtime_is_no_run_of_the_model(name: str) -> None:
    """It makes a step that the model does not have, or none where the model has one; the theorem is named."""
    mutant = MUTANTS[name]
    random = Random(1)
    schedules = [[random.randrange(4) for _ in range(40)] for _ in range(20)]
    assert not any(_refused(mutant.workload, schedule) for schedule in schedules)
    with mutant.apply():
        found = {(_refused(mutant.workload, schedule) or "").partition(":")[0] for schedule in schedules}
    assert BROKEN[name] in found


def _refused(mix: Mix, schedule: list[int]) -> str | None:
    return refused(testing.simulate(mix, schedule, step_limit=2_000).trace)


def test_page_tells_which_theorem_a_wrong_runtime_breaks() -> None:
    """The table is of the mutants that are tried here."""
    rows = [f"| {name} | `{theorem}` |" for name, theorem in BROKEN.items()]
    table = "\n".join(["| wrong runtime | theorem |", "|---|---|", *rows])
    assert table in PAGE.read_text(encoding="utf-8"), table


def test_the_proof_assumes_nothing() -> None:
    """Each theorem is stated and its assumptions are printed; nothing is admitted or assumed."""
    text = re.sub(r"\(\*.*?\*\)", "", PROOF.read_text(), flags=re.DOTALL)
    assert not re.search(r"\b(Admitted|Axiom|Parameter|Conjecture|admit|Hypothesis)\b", text)
    for theorem in THEOREMS:
        assert re.search(rf"^Theorem {theorem}\b", text, re.MULTILINE)
        assert f"Print Assumptions {theorem}." in text


@pytest.mark.process
@pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed: apt-get install coq")
def test_coq_accepts_the_proof(tmp_path: Path) -> None:
    """Coq checks every proof, and finds no axiom below any theorem."""
    copy = tmp_path / PROOF.name
    copy.write_bytes(PROOF.read_bytes())
    checked = subprocess.run(["coqc", "-q", copy.name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.split("\n").count("Closed under the global context") == len(THEOREMS)
    assert "Axioms:" not in checked.stdout

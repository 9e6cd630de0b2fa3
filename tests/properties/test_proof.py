"""The machine-checked proof, and what ties its model to the code.

`Relation` is the relation ``step`` of docs/proof/Ordering.v once more in Python, as far as a trace shows it: which
calls hold tickets, which run, and when the next one may start.
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
)


#: A claim and the name of the table that it is on.
Ticketed = tuple[str, Claim]


@attrs.define
class Relation:
    """The steps that the model allows, for the calls of one batch."""

    limit: float
    #: The claims of each call that has taken its tickets and has not ended, in the order in which they were taken; each
    #: with the table that it is on.
    claims: dict[int, list[Ticketed]] = attrs.field(factory=dict)
    running: set[int] = attrs.field(factory=set)

    def take(self, call: int, claims: list[Ticketed]) -> None:
        assert call not in self.claims, f"call {call} takes its tickets twice"
        self.claims[call] = claims

    def start(self, call: int) -> None:
        """``Start``: every earlier call with a conflicting claim has ended, and a slot is free."""
        assert call in self.claims, f"call {call} starts without tickets"
        for earlier, theirs in self.claims.items():
            if earlier == call:
                break
            conflict = any(s == t and a.conflicts_with(b) for s, a in theirs for t, b in self.claims[call])
            assert not conflict, f"call {call} starts before call {earlier}, which it conflicts with, has ended"
        assert len(self.running) < self.limit, f"call {call} starts without a free slot"
        self.running.add(call)

    def end(self, call: int, again: bool) -> None:
        """``Finish`` and ``Cut``: a call ends once, and has run or never will.

        The model has the last run alone of a call that runs `again`: until that ends the call keeps its tickets.
        """
        assert call in self.claims, f"call {call} ends without tickets, or twice"
        self.running.discard(call)
        if not again:
            del self.claims[call]


def refused(trace: Trace) -> str | None:
    """What the relation has against a trace; None when each of its batches is a run of the model."""
    for batch in {event.fields["batch"] for event in trace.events if event.kind == "batch.opened"}:
        mine = [event for event in trace.events if event.fields.get("batch") == batch]
        if mine[0].fields["parent"] is not None:
            continue  # a sub-batch borrows slots, which the model does not have
        try:
            _follow(mine)
        except AssertionError as error:
            return str(error).partition("\n")[0]
    return None


def _follow(events: Sequence[TraceEvent]) -> None:
    relation, stopping = Relation(0), set[int]()
    told = Counter((event.kind, event.fields.get("call")) for event in events)
    ended: Counter[int] = Counter()
    for event in events:
        fields = event.fields
        if event.kind == "batch.opened":
            relation = Relation(float("inf") if fields["limit"] is None else fields["limit"])
        elif event.kind == "ticket.taken":
            relation.take(fields["call"], [*_declared(fields["claims"]), *_control(event, fields["lane"] in stopping)])
            if fields["stops"]:
                stopping.add(fields["lane"])
        elif event.kind == "call.started":
            relation.start(fields["call"])
        elif event.kind == "call.ended":
            call = fields["call"]
            ended[call] += 1
            allowed = min(told["call.ended", call], 1 + told["call.again", call])
            relation.end(call, again=ended[call] < allowed)


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


@pytest.mark.parametrize(
    "name",
    [
        "files are not ordered",
        "readers of files do not wait",
        "everything is claimed in vain",
        "no limit",
        "stops too late",
    ],
)
def test_a_mutant_of_the_order_is_no_run_of_the_model(name: str) -> None:
    """A runtime that starts a call too early makes a step that the model does not have."""
    mutant = MUTANTS[name]
    random = Random(1)
    schedules = [[random.randrange(4) for _ in range(40)] for _ in range(20)]
    assert not any(refused(testing.simulate(mutant.workload, schedule).trace) for schedule in schedules)
    with mutant.apply():
        assert any(refused(testing.simulate(mutant.workload, schedule).trace) for schedule in schedules)


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

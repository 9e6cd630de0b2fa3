"""The machine-checked proof, and what ties its model to the code: traces are held against the relation of the model."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest
from hypothesis import given

from tests.properties._relation import judged, steps_of
from toolrt import testing
from toolrt.invariants import Mix
from toolrt.invariants.mutants import MUTANTS
from toolrt.trace import Trace

PROOF = Path(__file__).parents[2] / "docs" / "proof" / "Ordering.v"

JUDGE = PROOF.with_name("Judge.v")

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "proof.md"

#: The theorems that docs/explanation/proof.md speaks of.
THEOREMS = (
    "every_run_is_serial",
    "complete_run_is_serial",
    "cut_calls_change_nothing_else",
    "unbegun_calls_count_as_none",
    "some_call_can_go_on",
    "every_run_ends",
    "runs_with_places_are_serial",
    "some_call_can_go_on_with_places",
    "places_hold",
    "rates_hold",
    "some_call_can_go_on_in_time",
    "merge_ignores_the_order_of_ends",
    "merge_is_in_call_order",
    "merge_ignores_cancelled_calls",
    "merge_is_serial",
    "results_are_in_call_order",
    "results_are_not_taken_back",
    "every_result_is_handed_over",
    "every_batch_is_serial",
    "batch_is_serial",
    "claims_keep_lanes_apart",
)

#: What docs/proof/Judge.v proves of the judge of traces.
OF_THE_JUDGE = (
    "judge_is_the_relation",
    "accepted_traces_are_runs",
    "runs_are_accepted",
    "the_reader_has_a_prefix",
)

PROVED = {PROOF: THEOREMS, JUDGE: OF_THE_JUDGE}

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


def refused(trace: Trace) -> str | None:
    """The theorem that a trace breaks, and how; None when each of its batches is a run of the model."""
    refusals = (judged(steps) for steps in steps_of(trace))
    return next((str(refusal) for refusal in refusals if refusal is not None), None)


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


@pytest.mark.parametrize("path", [PROOF, JUDGE], ids=lambda path: path.stem)
def test_the_proof_assumes_nothing(path: Path) -> None:
    """Each theorem is stated and its assumptions are printed; nothing is admitted or assumed."""
    text = re.sub(r"\(\*.*?\*\)", "", path.read_text(), flags=re.DOTALL)
    assert not re.search(r"\b(Admitted|Axiom|Parameter|Conjecture|admit|Hypothesis)\b", text)
    assert set(re.findall(r"^Print Assumptions (\w+)\.$", text, re.MULTILINE)) == {*PROVED[path]}
    for theorem in PROVED[path]:
        assert re.search(rf"^Theorem {theorem}\b", text, re.MULTILINE)


def test_paper_counts_the_theorems() -> None:
    """What Coq prints for the paper is one line for each."""
    paper = (PROOF.parents[1] / "paper.md").read_text(encoding="utf-8")
    assert f"\n{len(THEOREMS):7} Closed under the global context\n" in paper


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed: apt-get install coq")
def test_coq_accepts_the_proof(tmp_path: Path) -> None:
    """Coq checks every proof, and finds no axiom below any theorem."""
    for path, theorems in PROVED.items():
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        checked = subprocess.run(["coqc", "-q", copy.name], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        assert checked.stdout.split("\n").count("Closed under the global context") == len(theorems)
        assert "Axioms:" not in checked.stdout

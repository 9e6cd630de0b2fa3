"""A sample of what `python -m tests.mutation.run` does, and the page that tells its results."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from tests.invariants._interactions import INTERACTIONS
from tests.invariants._ten_last import TEN_LAST
from tests.invariants._ten_more import TEN_MORE
from tests.mutation import run
from tests.mutation._judges import JUDGES, Bench, bench
from tests.mutation._mutants import CodeMutant, applied_code, mutants_of
from tests.mutation.run import REASONS, judged
from toolrt.invariants import MUTANTS, Mix, Mutant
from toolrt.invariants.script import Scripted, Sleep
from toolrt.order import Machine, Slots
from toolrt.testing._mutation_score import tripped_by

KEPT = Path(__file__).parents[2] / "docs" / "explanation" / "mutation.json"


@pytest.fixture(scope="module")
def judges() -> Bench:
    """A few of the shipped examples, and none of the other properties."""
    return bench(1, 12, (), ())


def _one_of(module: str, start: str) -> CodeMutant:
    return next(one for one in mutants_of(module) if one.function.startswith(start))


@pytest.mark.seldom
def test_mutant_by_machine_is_applied_and_taken_back() -> None:
    """The function runs the mutant's code inside the block, and its own behind it."""
    mutant = _one_of("toolrt.order._slots", "Slots.hand_out")
    before = Slots.hand_out.__code__
    with applied_code(mutant):
        assert Slots.hand_out.__code__ is mutant.code
    assert Slots.hand_out.__code__ is before


def test_every_mutant_has_a_name_of_its_own() -> None:
    """So that a reason, or a survivor, is of one mutant; the same source gives the same names."""
    names = [one.name for one in mutants_of("toolrt.order._slots")]
    assert len(set(names)) == len(names) > 20
    assert names == [one.name for one in mutants_of("toolrt.order._slots")]


@pytest.mark.seldom
def test_sample_of_mutants_by_machine_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each mutant is judged in a process of its own, by the properties that run its function."""
    monkeypatch.setattr(run, "_PATIENCE", 2)
    chosen = bench(0, 0, [one for one in JUDGES if "slot" in one.name], ())
    mutants = [one for one in mutants_of("toolrt.order._slots") if one.function.startswith("LentSlot.")][::5]
    answers = [answer for _, answer in judged(mutants, chosen, jobs=2)]
    assert len(answers) == len(mutants) >= 4
    assert answers.count(None) <= 1


@pytest.mark.seldom
def test_mutant_that_never_ends_is_killed(judges: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop without a checkpoint costs its process, not this one."""
    monkeypatch.setattr(run, "_PATIENCE", 1)
    real = Machine.seal.__code__
    text = "\n" * (real.co_firstlineno - 1) + "def seal(self):\n    while True:\n        pass\n"
    code = compile(text, real.co_filename, "exec")
    inner = next(one for one in code.co_consts if hasattr(one, "co_code")).replace(co_qualname="Machine.seal")
    mutant = CodeMutant("toolrt.order._machine", "Machine.seal", "loops", 0, 1, lambda: inner)
    [(_, answer)] = judged([mutant], judges, jobs=1)
    assert answer == [0, "no end"]


def test_page_shows_the_results_that_are_kept() -> None:
    """The tables are made from the results."""
    root = Path(__file__).parents[2]
    page = runpy.run_path(str(root / ".ci" / "write_mutation.py"))
    text = (root / "docs/explanation/mutation.md").read_text(encoding="utf-8")
    assert page["written"](text, page["tables"]()) == text, "run: python .ci/write_mutation.py"


def test_results_are_of_all_mutants_of_ours() -> None:
    """A mutant that was added since is not passed over in silence."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert set(kept["score"]["mutants"]) == set(MUTANTS), "run: python .ci/write_mutation.py --score 2000 5"


def test_results_are_of_the_ten_that_were_written_last() -> None:
    """Each of them has a score, and is none of ours."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert set(kept["interactions"]["mutants"]) == {mutant.name for mutant in INTERACTIONS}
    for key, ten in {"last": TEN_LAST, "earlier": TEN_MORE}.items():
        names = {mutant.name for mutant in ten}
        assert set(kept[key]["mutants"]) == names
        assert len(names) == 10
        assert not names & set(MUTANTS)


@pytest.mark.parametrize("mutant", TEN_MORE + TEN_LAST, ids=lambda mutant: mutant.name)
def test_runtime_that_was_written_last_is_taken_back(mutant: Mutant) -> None:
    """It breaks what is there, and leaves the runtime as it was."""
    with mutant.apply():
        pass
    assert not tripped_by((Mix([Scripted([Sleep(1)])]), []), replayed=False)


def test_reasons_are_of_mutants_that_are_there() -> None:
    """A mutant that is called equivalent can be made, and its reason is a sentence."""
    reasons = json.loads(REASONS.read_text(encoding="utf-8"))
    modules = {name.split(" ", 1)[0] for name in reasons}
    names = {one.name for module in modules for one in mutants_of(module)}
    # Since Python 3.12 ast.unparse puts other quotes around an f-string.
    assert {name.replace('"', "'") for name in reasons} <= {name.replace('"', "'") for name in names}
    assert all(reason.endswith(".") for reason in reasons.values())

"""The litmus gallery: every program is as it is stated, and a statement that is wrong is noticed."""

from __future__ import annotations

import json

import attrs
import pytest
from trio.lowlevel import checkpoint

from tests._profile import FULL
from toolrt import sim
from toolrt.errors import DefinitionRefused
from toolrt.invariants import LAWS
from toolrt.teaching.litmus import LITMUS, THEMES, Count, Litmus, in_order, method_of, verify
from toolrt.teaching.litmus._litmus import DESCRIBED, gallery
from toolrt.teaching.litmus._verify import MOST

LOST_UPDATE = LITMUS["lost_update_3x1"]


@pytest.mark.drawn(40)
@pytest.mark.parametrize("name", LITMUS)
def test_program_is_as_stated(name: str) -> None:
    """Every outcome that is stated comes, no other does, and the counts are those stated.

    Programs with more than 2,000 schedules are run once for each class only, where not all schedules are asked for.
    """
    found = verify(LITMUS[name], MOST if FULL else 2_000)
    assert found.ok, found.problems
    assert set(found.seen) == LITMUS[name].outcomes


@pytest.mark.drawn(8)
@pytest.mark.parametrize("name", [litmus.name for litmus in THEMES["the laws"]])
def test_reduction_has_every_outcome_of_a_batch(name: str) -> None:
    """Running one execution of each class finds the same outcomes as running every schedule."""
    litmus, seen = LITMUS[name], set()

    def note(execution: sim.Execution) -> bool:
        seen.add(litmus.read(execution))
        return True

    assert sim.explore(litmus.program, sim.DPOR(), note).complete
    assert seen == litmus.outcomes


def test_order_and_tracking_are_the_programs_own() -> None:
    """Each setting decides: in another order there are more outcomes, and without tracking more classes."""
    passes, plain = LITMUS["passes"], LITMUS["plain_two_keys"]
    assert verify(attrs.evolve(passes, order="any", interleavings=None)).problems[0] == "unexpected outcome 2"
    assert verify(attrs.evolve(plain, track=False)).problems == ("6 classes, expected 1 (enumerated)",)


def test_moment_is_asked_wherever_its_program_runs() -> None:
    """The check of a moment needs nothing but the program, so a replay and a game see it too."""
    moment = LITMUS["eventually_met"]
    answers = {moment.read(sim.run(moment.program, sim.Choices(choices))) for choices in ([], [0, 0, 1])}
    assert answers == moment.outcomes
    assert "async def visit" in moment.source


def test_names_are_different() -> None:
    """No program hides another."""
    assert len(LITMUS) == sum(map(len, THEMES.values())) > 30


#: Law 14 is about two processes, and no schedule shows it.
_NO_PAIR = {"same_schedule_same_trace"}


@pytest.mark.parametrize("law", [law for law in LAWS if law not in _NO_PAIR])
def test_law_is_kept_and_broken(law: str) -> None:
    """Each law has a batch that keeps it under every schedule, and the same with a mutant, which does not."""
    stories = {litmus.name: litmus for litmus in THEMES["the laws"] if litmus.story.endswith(f"Law {law}.")}
    kept = [name for name, litmus in stories.items() if not litmus.wrong and len(litmus.right) == 1]
    broken = [name for name, litmus in stories.items() if litmus.wrong]
    assert kept
    assert broken == [f"{name}_mutant" for name in kept]


def test_unexpected_outcome_fails() -> None:
    """An outcome that is not stated is named."""
    found = verify(attrs.evolve(LOST_UPDATE, wrong={1}))
    assert found.problems == ("unexpected outcome 2",)
    assert found.failure is not None


def test_missing_outcome_fails() -> None:
    """An outcome that is stated and never comes is named."""
    assert verify(attrs.evolve(LOST_UPDATE, wrong={0, 1, 2})).problems == ("missing outcome 0",)


@pytest.mark.parametrize("stated", [89, 91])
def test_interleavings_are_counted(stated: int) -> None:
    """A count that is one off is noticed."""
    found = verify(attrs.evolve(LOST_UPDATE, interleavings=Count(stated, "a guess")))
    assert found.problems == (f"90 schedules, expected {stated} (a guess)",)


@pytest.mark.parametrize("stated", [35, 37])
def test_classes_are_counted(stated: int) -> None:
    """A count of classes that is one off is noticed."""
    found = verify(attrs.evolve(LOST_UPDATE, classes=Count(stated)))
    assert found.problems == (f"36 classes, expected {stated} (enumerated)",)


def test_search_that_was_cut_short_verifies_nothing() -> None:
    """A program with many more schedules than may be run is not as stated, whatever was seen."""
    found = verify(attrs.evolve(LOST_UPDATE, interleavings=Count(40), classes=None), most=40)
    assert found.problems == ("more than 80 schedules, or not all of them: incomplete(schedules=80)",)
    found = verify(attrs.evolve(LOST_UPDATE, classes=Count(15)), most=15)
    assert found.problems == ("more than 30 classes, or not all of them: incomplete(traces=30)",)


def test_large_program_is_sampled() -> None:
    """With more schedules than may be run, a sample shows every outcome, and an argument that there is no other."""
    proven = attrs.evolve(LOST_UPDATE, classes=None, proof="somebody reads last")
    assert method_of(proven, most=50) == "sampled"
    found = verify(proven, most=50)
    assert (found.ok, found.executions) == (True, 1_000)
    assert verify(attrs.evolve(proven, wrong={0, 1, 2}), most=50).problems == ("missing outcome 0",)
    assert not verify(attrs.evolve(LOST_UPDATE, classes=None), most=50).ok


def test_program_of_few_classes_is_run_once_for_each() -> None:
    """With too many schedules and few classes, the outcomes are those of the classes."""
    found = verify(LOST_UPDATE, most=50)
    assert (found.ok, found.method, found.executions, found.classes) == (True, "every class", 36, 36)
    assert verify(attrs.evolve(LOST_UPDATE, wrong={0, 1, 2}), most=50).problems == ("missing outcome 0",)
    assert verify(attrs.evolve(LOST_UPDATE, wrong={1}), most=50).problems == ("unexpected outcome 2",)


@pytest.mark.parametrize("most", [0, True, 1.5])
def test_bad_number_of_executions_is_refused(most: object) -> None:
    """Nothing is run for it."""
    with pytest.raises(DefinitionRefused):
        verify(LOST_UPDATE, most)  # type: ignore[arg-type]


@pytest.mark.parametrize(("right", "wrong"), [((), ()), ({1}, {1})])
def test_outcomes_are_right_or_wrong(right: set[int], wrong: set[int]) -> None:
    """An outcome cannot be both, and a program has one."""
    with pytest.raises(DefinitionRefused):
        Litmus("bad", "A story.", checkpoint, right, wrong)  # type: ignore[arg-type]


def test_failure_is_the_bug() -> None:
    """The failure that comes with it ends in an outcome that is the bug, and has a simplest schedule."""
    failure = verify(LITMUS["dining_2"]).failure
    assert failure is not None
    assert failure.minimal.short == "main main.0 main.1*2 main.0"
    assert failure.explain().startswith("lock inversion: eat (main.0) waits for Lock forks[1], held by eat (main.1); ")


def test_program_without_a_bug_has_no_failure() -> None:
    """Where nothing can go wrong there is nothing to show."""
    assert verify(LITMUS["store_buffering"]).failure is None


def test_verification_does_not_change_when_its_failure_is_simplified() -> None:
    """Looking for a simpler schedule runs the program again, which is no part of the count."""
    found = verify(LOST_UPDATE)
    before = dict(found.seen)
    assert found.failure is not None
    assert found.failure.minimal
    assert found.seen == before == {1: 48, 2: 36, 3: 6}


def test_verification_is_json() -> None:
    """A machine can read it; outcomes that are no numbers are texts."""
    shown = json.loads(json.dumps(verify(LITMUS["store_buffering"]).to_json()))
    assert shown["ok"] is True
    assert [entry["outcome"] for entry in shown["outcomes"]] == ["(0, 1)", "(1, 0)", "(1, 1)"]


def test_outcomes_are_in_one_order() -> None:
    """Numbers by size, then texts."""
    assert in_order({"b", 10, 2, "a"}) == [2, 10, "a", "b"]


@pytest.mark.parametrize("name", LITMUS)
def test_program_is_shown(name: str) -> None:
    """It has a story of whole sentences, and a source."""
    litmus = LITMUS[name]
    assert litmus.story.endswith((".", ")"))
    assert "async def" in litmus.source or "Mix(" in litmus.source


def test_source_says_what_a_program_was_made_with() -> None:
    """The numbers that tell programs of one make apart come first."""
    assert LITMUS["lost_update_3x2"].source.startswith("rounds = 2\ntasks = 3\nasync def program() -> int:\n")


def test_gallery_and_its_file_name_the_same_programs() -> None:
    """What the file describes is made, and a program that it does not have is refused."""
    assert set(DESCRIBED) == {name.removesuffix("_mutant") for name in LITMUS}
    with pytest.raises(DefinitionRefused, match=r"programs of gallery\.txt, got 'absent'"):
        gallery(absent=LITMUS["lock_2"].program)

"""The mutants: each is caught by its law, and each law catches one that no other law could have caught."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings

from tests._profile import FULL
from toolrt import sim
from toolrt.errors import DefinitionRefused, LawBroken
from toolrt.invariants import LAWS, MUTANTS, Mix, Mutant, Table, Violation, law, patched, require, simulate, table
from toolrt.invariants.script import AppendFile, Scripted
from toolrt.invariants.workloads import WORKLOADS
from toolrt.order import ClaimTable
from toolrt.testing import schedules

#: Schedules of each workload.
_FEW = 12 if FULL else 3


@cache
def _tried(name: str) -> Table:
    """The table of one mutant, a few schedules of its workload."""
    return table(_FEW, mutants=[MUTANTS[name]], workloads=[])


@pytest.mark.drawn(19)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught_by_its_law(name: str) -> None:
    """The law that a mutant names trips on it."""
    tried = _tried(name)
    assert tried.rows[0].caught, str(tried)


@pytest.mark.parametrize("name", LAWS)
def test_law_catches_a_mutant_alone(name: str) -> None:
    """No law's place could be taken by the others: one of its mutants trips no other, laws 7 and 15 apart."""
    assert any(_tried(mutant.name).rows[0].alone for mutant in MUTANTS.values() if mutant.law == name)


def test_no_law_trips_on_the_runtime_as_it_is() -> None:
    """There is no false alarm."""
    tried = table(_FEW, mutants=[])
    assert not tried.false_alarms, str(tried)


def test_table_is_the_same_for_the_same_seed() -> None:
    """The table is a value of its seed."""
    few = [MUTANTS["files are not ordered"]]
    assert str(table(4, 7, few, workloads=[])) == str(table(4, 7, few, workloads=[]))


def test_table_is_json() -> None:
    """A machine can read it."""
    assert json.loads(json.dumps(_tried("answers twice").to_json()))["survivors"] == []


def test_mutant_of_a_users_own_is_tried() -> None:
    """Users add mutants, and a law of their own to catch them."""

    @law("no_files", "No file is touched.")
    def no_files(trace):  # type: ignore[no-untyped-def]
        return [f"{event.fields['file']} was touched" for event in trace.of_kind("file.mutation_began")]

    mine = Mutant(
        "idle", "no_files", "Nothing is broken.", lambda: patched(ClaimTable, "take", lambda take: take), _ONE
    )
    tried = table(3, mutants=[mine], laws={**LAWS, "no_files": no_files}, workloads=[])
    assert tried.rows[0].tripped["no_files"] == 3
    assert tried.ok


def test_mutant_that_no_law_catches_survives() -> None:
    """A mutant whose law sees nothing is named."""
    idle = Mutant(
        "idle", "batch_ends", "Nothing is broken.", lambda: patched(ClaimTable, "take", lambda take: take), _ONE
    )
    tried = table(2, mutants=[idle], workloads=[])
    assert [mutant.name for mutant in tried.survivors] == ["idle"]
    assert not tried.ok
    assert "SURVIVED" in str(tried)


def test_mutant_that_crashes_is_told_from_one_that_no_law_sees() -> None:
    """A mutant whose executions all end by an error survives for another reason: its author reads which."""

    def crashes(take):  # type: ignore[no-untyped-def]
        raise_it = RuntimeError("no tickets left")
        return lambda *arguments, **options: (_ for _ in ()).throw(raise_it)

    mine = Mutant("crashes", "mine", "No ticket is given.", lambda: patched(ClaimTable, "take", crashes), _ONE)
    tried = table(2, mutants=[mine], laws={"mine": law("mine", "It holds.")(lambda trace: [])}, workloads=[])
    assert list(tried.rows[0].errors) == ["RuntimeError: no tickets left"]
    assert "crashes: 2 of 2 executions ended by RuntimeError: no tickets left" in str(tried).splitlines()


def test_false_alarm_says_how_to_see_it_and_what_it_means() -> None:
    """Each law's first false alarm is shown once, and its schedule runs it again."""
    wrong = law("wrong", "Nothing is submitted.")(
        lambda trace: [str(event) for event in trace.of_kind("call.submitted")]
    )
    tried = table(3, mutants=[], laws={"wrong": wrong}, workloads=[_ONE])
    alarm = tried.false_alarms[0]
    assert wrong(simulate(alarm.mix, alarm.schedule).trace)
    assert str(tried).count("run it again: toolrt.invariants.simulate(mix, schedule)") == 1
    assert (
        "A false alarm: the law asks for what the runtime does not promise (mend the law), or it found a bug."
        in str(tried)
    )


def test_law_of_ones_own_without_a_mutant_is_named() -> None:
    """A law that no mutant is meant for may catch nothing at all."""
    idle = law("idle", "It holds.")(lambda trace: [])
    told = "laws without a mutant, which nothing tests: idle. Write an invariants.Mutant for each."
    assert told in str(table(1, mutants=[], laws={**LAWS, "idle": idle}, workloads=[]))
    assert told not in str(table(1, mutants=[], workloads=[]))


def test_mutant_of_a_law_that_is_not_there_is_refused() -> None:
    """A mutant must name a law."""
    lost = Mutant("lost", "no_such_law", "", lambda: patched(ClaimTable, "take", lambda take: take), _ONE)
    with pytest.raises(DefinitionRefused, match="no_such_law"):
        table(1, mutants=[lost])


def test_patching_what_is_not_there_is_refused() -> None:
    """A mutant of a runtime that has moved on says so, and changes nothing."""
    with pytest.raises(DefinitionRefused, match="gone"), patched(ClaimTable, "gone", lambda before: before):
        pass


def test_patching_ends_with_its_block() -> None:
    """After the block the runtime is as it was."""
    before = ClaimTable.take
    with patched(ClaimTable, "take", lambda take: None):
        assert ClaimTable.take is None
    assert ClaimTable.take is before


@pytest.mark.seldom
def test_failing_example_prints_mix_schedule_and_sentence() -> None:
    """What a failing property prints can be pasted back, and is as small as it gets."""
    mutant = MUTANTS["files are not ordered"]

    @settings(max_examples=60, database=None, derandomize=True)
    @given(schedule=schedules())
    def broken(schedule: list[int]) -> None:
        execution = simulate(mutant.workload, schedule)
        only = {"same_file_in_call_order": LAWS["same_file_in_call_order"]}
        require(execution.trace, only, f"mix: {mutant.workload!r}\nschedule: {schedule}")

    with mutant.apply(), pytest.raises(LawBroken) as caught:
        broken()
    text = str(caught.value)
    assert LAWS["same_file_in_call_order"].sentence in text
    assert "Mix([Scripted([AppendFile('f', 'a')]), Scripted([AppendFile('f', 'b')])])" in text
    assert isinstance(caught.value.violations[0], Violation)


def test_exploring_a_mutant_finds_a_minimal_schedule() -> None:
    """The explorer takes a mix's check as it is, and explains."""
    mutant = MUTANTS["files are not ordered"]
    mutant.workload.oracle()
    with mutant.apply():
        report = sim.explore(mutant.workload.program(), sim.Random(sim.RandomWalk(seed=1), 40), mutant.workload.check)
        assert report.verdict is sim.FAIL
        assert "same_file_in_call_order" in report.failures[0].explain()


@pytest.mark.parametrize("mix", WORKLOADS, ids=range(len(WORKLOADS)))
def test_mix_is_pasted_back(mix: Mix) -> None:
    """The `repr` of a mix is the mix."""
    from toolrt.invariants import script

    assert eval(repr(mix), {"Mix": Mix, **vars(script)}) == mix


_ONE = Mix([Scripted([AppendFile("f", "a")])])

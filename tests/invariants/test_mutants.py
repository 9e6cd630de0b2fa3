"""The mutants: each is caught by its law, and each law catches one that no other law could have caught."""

from __future__ import annotations

import json

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


@pytest.fixture(scope="module")
def whole() -> Table:
    """The whole table, a few schedules of each workload."""
    return table(executions=12 if FULL else 3)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught_by_its_law(whole: Table, name: str) -> None:
    """The law that a mutant names trips on it."""
    row = next(row for row in whole.rows if row.mutant.name == name)
    assert row.caught, str(whole)


@pytest.mark.parametrize("name", LAWS)
def test_law_catches_a_mutant_alone(whole: Table, name: str) -> None:
    """No law's place could be taken by the others: one of its mutants trips no other, laws 7 and 15 apart."""
    assert name not in whole.shadowed, str(whole)


def test_no_law_trips_on_the_runtime_as_it_is(whole: Table) -> None:
    """There is no false alarm."""
    assert whole.ok, str(whole)


def test_table_is_the_same_for_the_same_seed() -> None:
    """The table is a value of its seed."""
    few = [MUTANTS["files are not ordered"]]
    assert str(table(4, 7, few, workloads=[])) == str(table(4, 7, few, workloads=[]))


def test_table_is_json(whole: Table) -> None:
    """A machine can read it."""
    assert json.loads(json.dumps(whole.to_json()))["ok"] is True


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

"""The tables of docs/explanation/head-to-head.md are those of the results, and small rows come out as they are kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks.head_to_head import page
from tests.benchmarks.head_to_head.hunt import ALL, FAILED, HUNTS, SAMPLE, UNDECIDED, by_toolrt
from tests.benchmarks.head_to_head.programs import PROGRAMS, buggy, correct


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """What is kept."""
    return page.kept()


def test_page_has_the_tables_of_the_results(results: dict[str, Any]) -> None:
    """Each between its marks, and no other text there."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.written(text, results) == text, "run python -m tests.benchmarks.head_to_head --page"
    for name, table in page.tables(results).items():
        assert f"<!-- {name}: begin -->\n{table}\n<!-- {name}: end -->" in text, name


def test_every_row_has_every_program(results: dict[str, Any]) -> None:
    """No cell is missing, and none is of a program or a row that went."""
    assert list(results["rows"]) == list(HUNTS)
    for row, found in results["rows"].items():
        assert set(found["programs"]) == set(PROGRAMS), row
        for name, hunts in found["programs"].items():
            seeds = results["seeds"] if page.draws(row) and PROGRAMS[name].wrong else 1
            assert len(hunts) == seeds, (row, name)


def test_half_of_the_programs_or_more_have_a_correct_counterpart() -> None:
    """So that wrong verdicts of both kinds can be seen."""
    assert 15 <= len(buggy()) <= 25
    assert len(correct()) >= len(buggy()) / 2


def test_toolrt_has_no_wrong_verdict(results: dict[str, Any]) -> None:
    """It neither passes a wrong program by a complete search nor fails a correct one; and each proof is complete."""
    for row, found in results["rows"].items():
        if page.tool_of(row) == "toolrt":
            assert not any(page.wrong_verdicts(found["programs"]).values()), row
    for row in ("toolrt DPOR", "toolrt DPOR, tracked"):
        assert {results["rows"][row]["programs"][name][0]["said"] for name in correct()} == {ALL}


@pytest.mark.parametrize("row", ["toolrt DPOR", "toolrt DPOR, tracked", "toolrt Bounded(2)", "toolrt Portfolio"])
@pytest.mark.parametrize("name", ["account", "deadlock01", "bluetooth", "sync01", "sleepers", "rooms"])
def test_toolrt_finds_what_is_kept(results: dict[str, Any], row: str, name: str) -> None:
    """After as many executions."""
    kept = results["rows"][row]["programs"][name][0]
    assert HUNTS[row](PROGRAMS[name], 1, results["executions"], 60.0) == (kept["executions"], FAILED)
    assert kept["said"] == FAILED


@pytest.mark.parametrize("name", [name for name in correct() if not name.startswith("bounded_buffer")])
def test_toolrt_proves_what_is_kept(results: dict[str, Any], name: str) -> None:
    """In as many executions."""
    kept = results["rows"]["toolrt DPOR, tracked"]["programs"][name][0]
    assert HUNTS["toolrt DPOR, tracked"](PROGRAMS[name], 1, 1_000, 60.0) == (kept["executions"], ALL)


@pytest.mark.parametrize("name", ["account, locked", "sync01, under the lock", "aba, with a version"])
def test_every_schedule_of_a_correct_program_passes(name: str) -> None:
    """Without a reduction, too."""
    every = by_toolrt(lambda sim, seed, n: sim.Exhaustive(), ALL)
    _, said = every(PROGRAMS[name], 0, 20_000, 60.0)
    assert said == ALL


@pytest.mark.parametrize("row", ["trio loop", "trio loop with pauses"])
def test_loops_find_a_deadlock_and_pass_a_correct_program(row: str) -> None:
    """A deadlock ends by the virtual clock."""
    executions, said = HUNTS[row](PROGRAMS["deadlock01"], 1, 100, 60.0)
    assert said == FAILED
    assert executions <= 100
    assert HUNTS[row](PROGRAMS["deadlock01, in order"], 1, 20, 60.0) == (20, SAMPLE)


def test_a_search_that_its_budget_ended_claims_nothing() -> None:
    """Its verdict is INCONCLUSIVE."""
    assert HUNTS["toolrt DPOR"](PROGRAMS["reorder_10"], 1, 50, 60.0) == (50, UNDECIDED)


def test_wrong_verdicts_are_seen() -> None:
    """A wrong program that holds, one whose search was cut, and a correct one that fails."""
    programs = {
        "account": [{"said": "all", "executions": 1}],
        "rooms": [{"said": "cut", "executions": 9}],
        "poll": [{"said": FAILED, "executions": 3}],
        "stack": [{"said": FAILED, "executions": 2}],
        "stack, locked": [{"said": "all", "executions": 4}],
    }
    assert page.wrong_verdicts(programs) == {"holds": ["account"], "holds, cut": ["rooms"], "fails": ["poll"]}
    cells = {name: page.cell(PROGRAMS[name].wrong, hunts) for name, hunts in programs.items()}
    assert cells == {
        "account": "**holds** 1",
        "rooms": "**holds**, cut 9",
        "poll": "**fails** 3",
        "stack": "2",
        "stack, locked": "4 all",
    }

"""Searches that leave the corner of the simplest schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests._profile import FULL
from tests.sim._corners import answers_all, handover
from tests.sim._divided import fine, reduced
from tests.sim._programs import OPERATIONS, THINGS, program_of
from toolrt import sim
from toolrt.errors import DefinitionRefused

_RANDOM = sim.DPOR(branches="random", seed=1)

# ---------------------------------------------------------------- DPOR with random branches


@pytest.mark.parametrize("order", ["any", "trio"])
@pytest.mark.parametrize(
    ("name", "arguments"), [("lost_update", (3, 1)), ("reorder", (3,)), ("dining", (3,)), ("bounded_buffer", (2, 1))]
)
def test_random_branches_have_one_execution_of_each_trace(
    programs: Any, name: str, arguments: tuple[int, ...], order: Literal["any", "trio"]
) -> None:
    """Run to the end it shows what depth-first shows: the same claim, counts and outcomes."""
    program, check = getattr(programs, name)(*arguments)
    one, other = (sim.explore(program, strategy, check, order=order) for strategy in (sim.DPOR(), _RANDOM))
    assert reduced(one) == reduced(other)


def _programs() -> st.SearchStrategy[Any]:
    operation = st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, THINGS - 1))
    task = st.lists(operation, min_size=1, max_size=3 if FULL else 2).map(tuple)
    return st.lists(st.tuples(st.sampled_from([None, None, 0, 1]), task), min_size=2, max_size=3).map(tuple)


@pytest.mark.seldom
@settings(max_examples=500 if FULL else 8)
@given(_programs(), st.integers(0, 99))
def test_random_branches_reduce_generated_programs_alike(spec: Any, seed: int) -> None:
    """Law: whatever the seed, as many executions as depth-first, and the same outcomes."""
    program = program_of(spec)
    one = sim.explore(program, sim.DPOR(), fine, 200)
    if one.complete and "traces=" in one.claim:
        other = sim.explore(program, sim.DPOR(branches="random", seed=seed), fine)
        assert (one.claim, one.outcomes.keys()) == (other.claim, other.outcomes.keys())


def test_random_branches_take_cancels_and_clocks_by_their_own_rule(programs: Any) -> None:
    """What need not happen is tried where it always was."""
    program, check = programs.lost_update(2, 1)
    for actors in ({"cancel_at": "any"}, {"clock": "explored"}):
        one, other = (sim.explore(program, strategy, check, **actors) for strategy in (sim.DPOR(), _RANDOM))
        assert reduced(one) == reduced(other)


def test_random_branches_are_gone_on_with(programs: Any, tmp_path: Path) -> None:
    """Sittings, and workers, share it as they share `DPOR`."""
    program, _ = programs.lost_update(3, 1)
    path = tmp_path / "search"
    sittings = 0
    while not sittings or path.exists():
        report = sim.explore(program, _RANDOM, fine, 15, checkpoint=path)
        sittings += 1
    assert (sittings, report.claim) == (3, "exhaustive(traces=36)")


def test_seed_decides_which_come_first(programs: Any) -> None:
    """The same seed, the same executions; and a budget that ends it says how many traces there were."""
    program, _ = programs.reorder(4)

    def first(seed: int) -> list[tuple[int, ...]]:
        seen: list[tuple[int, ...]] = []
        report = sim.explore(
            program, sim.DPOR(branches="random", seed=seed), lambda each: bool(seen.append(each.choices) or True), 20
        )
        assert report.claim == "incomplete(traces=20)"
        return seen

    assert first(1) == first(1) != first(2)


def test_random_branches_leave_the_first_corner(programs: Any) -> None:
    """Depth-first finds nothing in 100 executions, and has seen one outcome."""
    program, check = programs.reorder(6)
    assert sim.explore(program, sim.DPOR(), check, 100).failed == 0
    assert sim.explore(program, sim.DPOR(branches="random"), check, 100).failed > 0


# ---------------------------------------------------------------- Hybrid


def test_hybrid_finds_what_depth_first_does_not() -> None:
    """The sample finds it; what comes around it fails more often than a sample of as many."""
    assert sim.explore(handover, sim.DPOR(), answers_all, 200).failed == 0
    hybrid = sim.explore(handover, sim.Hybrid(200), answers_all)
    assert hybrid.failed > sim.explore(handover, sim.Portfolio(200), answers_all).failed > 0
    assert hybrid.claim.startswith("sampled(n=")
    assert "reduced=" in hybrid.claim


def test_hybrid_counts_every_execution() -> None:
    """Those of the sample, those that shrink, and those of the reduction: no more than it was given."""
    judged: list[int] = []

    def check(execution: sim.Execution) -> bool:
        judged.append(execution.index)
        return answers_all(execution)

    report = sim.explore(handover, sim.Hybrid(150), check)
    assert report.executions == 150
    assert judged[:150] == list(range(150))


def test_hybrid_that_runs_every_trace_says_so(programs: Any) -> None:
    """A failure more or less: the reduction around it is the whole one."""
    for arguments, verdict in (((2, 1), sim.FAIL), ((1, 2), sim.PASS)):
        program, check = programs.lost_update(*arguments)
        report = sim.explore(program, sim.Hybrid(200), check)
        traces = sim.explore(program, sim.DPOR(), check).executions
        assert report.verdict is verdict
        assert report.claim.startswith(f"exhaustive(traces={traces}) beside sampled(n=")
        assert report.complete


def test_hybrid_that_finds_nothing_is_a_sample(programs: Any) -> None:
    """Half of it is drawn, half of it reduced from many places: PASS, for a sample of that size."""
    program, _ = programs.reorder(5)
    report = sim.explore(program, sim.Hybrid(60), fine)
    assert (report.verdict, report.complete, report.executions) == (sim.PASS, False, 60)
    assert report.claim.startswith("sampled(n=30, reduced=30, distinct=")


def test_hybrid_is_not_divided() -> None:
    """It learns from each execution for the next."""
    with pytest.raises(DefinitionRefused, match="cannot be divided"):
        sim.explore(handover, sim.Hybrid(10), jobs=2)

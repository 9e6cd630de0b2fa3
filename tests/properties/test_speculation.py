"""Every law holds with early runs, and a batch has the outcome that it has without them.

Drawn batches have barriers and pure calls behind them, which read what the barriers change, and what they do not.
"""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt import sim
from toolrt.invariants import require
from toolrt.invariants.script import (
    Action,
    AddCell,
    ChangeState,
    OverwriteState,
    Pause,
    ReadCell,
    ReadFile,
    Refuse,
    SeeState,
    Sleep,
    WriteFile,
)
from toolrt.testing import Mix, Scripted, schedules, simulate, tool_mixes

_SLEEP = st.builds(Sleep, st.sampled_from([1.0, 2.0, 3.0]))
_KEY = st.sampled_from("xy")
_TEXT = st.sampled_from("pq")
_READS: st.SearchStrategy[Action] = st.one_of(
    st.just(ReadCell("a")), st.just(ReadFile("f")), st.builds(SeeState, _KEY), st.just(ReadCell("b"))
)
_ENDS: st.SearchStrategy[Action] = st.one_of(
    st.builds(ChangeState, _KEY, _TEXT), st.builds(OverwriteState, _KEY, _TEXT), st.just(Pause()), st.just(Refuse())
)
_CHANGES: st.SearchStrategy[Action] = st.one_of(
    st.builds(AddCell, st.just("a"), _TEXT),
    st.builds(WriteFile, st.just("f"), _TEXT),
    st.builds(ChangeState, _KEY, _TEXT),
    st.just(Pause()),
)
_PURE = st.builds(
    lambda read, sleep, more, says: Scripted([read, sleep, *more], says, pure=True),
    _READS,
    _SLEEP,
    st.lists(_READS | _ENDS, max_size=2),
    st.sampled_from(["claims", "claims", "claims", "nothing"]),
)
_BARRIERS = st.builds(
    lambda sleep, change, stops: Scripted([sleep, change], "nothing", stops=stops),
    _SLEEP,
    _CHANGES,
    st.sampled_from([False, False, True]),
)
_CALLS = _PURE | _PURE | _BARRIERS
_MIXES = st.builds(
    Mix,
    st.builds(lambda first, rest: [first, *rest], _BARRIERS, st.lists(_CALLS, min_size=1, max_size=4)),
    lanes=st.sampled_from(["by_claims", "by_safety", "parallel", "serial"]),
    limit=st.sampled_from([10, 2, 3, None]),
    delays=st.lists(st.sampled_from([0.0, 1.0]), max_size=3),
    reader=st.sampled_from(["eager", "slow", "none"]),
    files=st.just({"f": "start "}),
    state=st.just({"x": "0"}),
    speculate=st.just(True),
)


def _outcome(execution: sim.Execution) -> object:
    """How the calls ended, with what, what the files hold, and the final state."""
    [left] = [one for one in execution.trace.events if one.kind == "batch.left"]
    return execution.value, left.fields["results"], left.fields["state"]


@given(mix=_MIXES, schedule=schedules())
def test_every_law_holds_with_early_runs(mix: Mix, schedule: list[int]) -> None:
    """All laws, the oracle and the true serial run among them."""
    execution = simulate(mix, schedule, replayed=True)
    require(execution.trace, None, f"mix: {mix!r}\nschedule: {schedule}")
    assert execution.error is None


@given(mix=tool_mixes(cancel=True) | tool_mixes(), schedule=schedules())
def test_every_law_holds_with_early_runs_in_any_mix(mix: Mix, schedule: list[int]) -> None:
    """The batches of the laws' own tests: cancels, stops, timeouts, approvals, sub-batches."""
    execution = simulate(attrs.evolve(mix, speculate=True), schedule)
    require(execution.trace, None, f"mix: {mix!r}\nschedule: {schedule}")
    assert execution.error is None


@given(mix=_MIXES, schedule=schedules())
def test_outcome_is_the_same_with_early_runs(mix: Mix, schedule: list[int]) -> None:
    """Results, files and state are those of the same batch without them, under other schedules, too."""
    early = simulate(mix, schedule)
    assert _outcome(early) == _outcome(simulate(attrs.evolve(mix, speculate=False)))


@pytest.mark.parametrize("cell", ["a", "b"])
def test_every_law_holds_in_every_trace_with_early_runs(cell: str) -> None:
    """Exhaustively, for a barrier and a call that reads what it changes, or does not."""
    barrier = Scripted([AddCell("a", "p")], "nothing")
    mix = Mix([barrier, Scripted([ReadCell(cell), Pause()], pure=True)], speculate=True, reader="none")
    report = sim.explore(mix.program(), sim.DPOR(), mix.check)
    assert report.verdict is sim.Verdict.PASS, report
    assert "exhaustive" in str(report)

"""A mix with one call changed, run again under the schedule that was recorded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from toolrt import invariants, sim, testing
from toolrt.errors import DefinitionRefused, ScheduleRefused
from toolrt.invariants import Mix
from toolrt.invariants.script import AppendFile, ReadFile, Scripted, Sleep

_TWO = Mix([Scripted([AppendFile("f", "a")]), Scripted([AppendFile("f", "b")])])
_MIX = Mix([*_TWO.calls, Scripted([ReadFile("g")])], delays=[0, 1])


@pytest.mark.seldom
@given(mix=testing.tool_mixes(max_calls=3, without=["approvals"]), choices=testing.schedules(max_size=20))
def test_mix_that_was_not_changed_goes_as_recorded(mix: Mix, choices: list[int]) -> None:
    """The same mix under its own schedule is the same execution, byte for byte."""
    recorded = invariants.simulate(mix, choices)
    again = invariants.rerun(mix, recorded)
    assert again.strayed is None
    assert again.left == ()
    assert again.same == len(recorded.choices)
    assert again.execution.trace == recorded.trace
    assert again.violations == tuple(invariants.check(recorded.trace))


@pytest.mark.seldom
@given(mix=testing.tool_mixes(min_calls=2, max_calls=3, without=["approvals"]), choices=testing.schedules(max_size=20))
def test_mix_without_a_call_keeps_the_laws_under_any_old_schedule(mix: Mix, choices: list[int]) -> None:
    """Whatever becomes of the schedule, the laws hold; where they part is told or they do not part."""
    recorded = invariants.simulate(mix, choices)
    again = invariants.rerun(mix.without_call(0), recorded.schedule)
    assert again.violations == ()
    assert (again.strayed is None) == (again.execution.schedule.tasks == recorded.schedule.tasks)


def test_what_came_of_it_is_told_in_words() -> None:
    """How much was followed, where they part, how it ended, and what the laws say."""
    recorded = invariants.simulate(_MIX, [0, 1, 1])
    edited = _MIX.with_call(1, does=[AppendFile("f", "b"), Sleep(1), AppendFile("g", "c")])
    again = invariants.rerun(edited, recorded.schedule.short)
    text = str(again)
    assert f"{again.same} of {len(recorded.choices)} recorded steps went as they were" in text
    assert f"they part at step {again.same}: " in text
    assert "it ended: ok ok ok; f='ab', g='c'" in text
    assert "no law is broken" in text
    assert 0 < again.same < len(recorded.choices)


def test_broken_runtime_is_seen_under_the_followed_schedule() -> None:
    """The laws look at the new execution: what was recorded on a broken runtime breaks the edited mix too."""
    edited = _TWO.with_call(0, does=[AppendFile("f", "a"), ReadFile("f")])
    with invariants.MUTANTS["files are not ordered"].apply():
        found = sim.explore(_TWO.program(), sim.Random(sim.RandomWalk(seed=1), 50), _TWO.check).failures[0]
        again = invariants.rerun(edited, found.execution)
    assert "same_file_in_call_order" in {violation.law for violation in again.violations}
    assert "law same_file_in_call_order does not hold" in str(again)
    assert invariants.rerun(edited, found.execution).violations == ()


def test_calls_are_replaced_added_and_taken_out() -> None:
    """Everything else of the mix stays, and the mix itself stays as it was."""
    put = Scripted([AppendFile("g", "z")])
    assert _MIX.with_call(0, put).calls == (put, *_MIX.calls[1:])
    assert _MIX.with_call(3, put).calls == (*_MIX.calls, put)
    assert _MIX.with_call(1, timeout=2.0).calls[1] == Scripted([AppendFile("f", "b")], timeout=2.0)
    assert _MIX.with_call(0, put, timeout=2.0).calls[0] == Scripted([AppendFile("g", "z")], timeout=2.0)
    assert _MIX.without_call(1).calls == (_MIX.calls[0], _MIX.calls[2])
    assert (_MIX.without_call(1).delays, _MIX.without_call(2).delays) == ((0,), (0, 1))
    assert len(_MIX.calls) == 3


@pytest.mark.parametrize("index", [-1, 4, True, "0", None])
def test_place_without_a_call_is_refused(index: Any) -> None:
    """The error says which places there are."""
    with pytest.raises(DefinitionRefused, match="0 to 3"):
        _MIX.with_call(index, Scripted())
    with pytest.raises(DefinitionRefused, match="0 to 2"):
        _MIX.without_call(index)


def test_what_cannot_be_done_is_refused() -> None:
    """A field that calls do not have, a place behind the last without a call, no mix, no schedule."""
    with pytest.raises(DefinitionRefused, match="timeout"):
        _MIX.with_call(0, timeot=2.0)
    with pytest.raises(DefinitionRefused, match="0 to 2"):
        _MIX.with_call(3, timeout=2.0)
    with pytest.raises(DefinitionRefused, match="a Mix"):
        invariants.rerun([Scripted()], "main")  # type: ignore[arg-type]
    with pytest.raises(ScheduleRefused):
        invariants.rerun(_MIX, 3)  # type: ignore[arg-type]


def test_followed_schedule_is_no_replay() -> None:
    """An exact replay of the edited mix refuses what `rerun` follows as far as it goes."""
    recorded = invariants.simulate(_MIX, [0, 1, 1])
    edited = _MIX.without_call(0)
    with pytest.raises(Exception, match="replay diverged"):
        sim.replay(edited.program(), recorded.schedule)
    assert invariants.rerun(edited, recorded).execution.error is None

"""What the strategies draw: simplest first, everything reachable, nothing that a knob has turned off."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from tests._profile import FULL
from toolrt.errors import DefinitionRefused
from toolrt.model import Outcome
from toolrt.testing import Mix, Scripted, completion_orders, schedules, simulate, tool_mixes

PATIENT = settings(max_examples=2_000, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
QUICK = settings(PATIENT, phases=[Phase.generate])  # what is found is not shrunk


def _drawn_with(outcome: Outcome, how: settings) -> Mix:
    return find(
        tool_mixes(cancel=True), lambda drawn: outcome.value in (simulate(drawn).value or Mix()).outcomes, settings=how
    )


@pytest.mark.seldom
@pytest.mark.parametrize("outcome", Outcome)
def test_mixes_reach_every_outcome(outcome: Outcome) -> None:
    """Each of the eight outcomes is drawn."""
    _drawn_with(outcome, QUICK)


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.parametrize("outcome", Outcome if FULL else [Outcome.NOT_STARTED])
def test_mixes_with_an_outcome_shrink_to_few_calls(outcome: Outcome) -> None:
    """What fails is shown by a small mix."""
    mix = _drawn_with(outcome, PATIENT)
    # Three at best.  What is found first depends on the constants that Hypothesis reads from the package's source, and
    # four is the fewest from which its shrinker has not come down to three.
    assert len(mix.calls) <= 4


@pytest.mark.seldom
def test_simplest_mix_is_one_call_that_does_nothing() -> None:
    """What everything shrinks to."""
    mix = find(tool_mixes(), lambda mix: True, settings=PATIENT)
    assert len(mix.calls) == 1
    assert mix.calls[0].does == ()
    assert (mix.lanes, mix.limit, mix.reader, mix.cancel_after) == ("by_claims", 10, "eager", None)


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("feature", "seen"),
    [
        ("files", lambda call: any("File" in type(action).__name__ for action in call.does)),
        ("state", lambda call: any("State" in type(action).__name__ for action in call.does)),
        ("failures", lambda call: any(type(action).__name__ in ("Fail", "Refuse") for action in call.does)),
        ("shields", lambda call: any(type(action).__name__ == "Shield" for action in call.does)),
        ("timeouts", lambda call: call.timeout is not None),
        ("stops", lambda call: call.stops),
        ("approvals", lambda call: call.approval is not None),
        ("invalid", lambda call: call.invalid is not None),
        ("sub_batches", lambda call: bool(call.sub_batches)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mix_is_without_the_feature_that_is_named(feature: str, seen: Any) -> None:
    """Nothing of the kind is drawn where it is left out; where it is not, it is."""

    @settings(PATIENT, max_examples=60)
    @given(mix=tool_mixes(without=[feature]))
    def never(mix: Mix) -> None:
        assert not any(seen(call) for call in mix.calls)

    never()
    find(tool_mixes(), lambda mix: any(seen(call) for call in mix.calls), settings=QUICK)


@settings(PATIENT, max_examples=60)
@given(mix=tool_mixes(lanes=["serial"], without=["limits", "streaming"], readers=["none"], min_calls=2, max_calls=3))
def test_knobs_choose_what_they_name(mix: Mix) -> None:
    """Policies, readers and sizes are those asked for."""
    assert (mix.lanes, mix.limit, mix.delays, mix.reader) == ("serial", 10, (), "none")
    assert 2 <= len(mix.calls) <= 3


def test_unknown_policy_is_refused() -> None:
    """A name that is no policy is a mistake at once."""
    with pytest.raises(DefinitionRefused, match="by_magic"):
        find(tool_mixes(lanes=["by_magic"]), lambda mix: True, settings=PATIENT)


def test_unknown_feature_is_refused() -> None:
    """A name that no feature has is a mistake at once, and those that there are stand in it."""
    with pytest.raises(DefinitionRefused, match=r"without.*names of files, state, .*got 'magic'"):
        find(tool_mixes(without=["magic"]), lambda mix: True, settings=PATIENT)


@settings(PATIENT, max_examples=60)
@given(data=st.data(), mix=tool_mixes())
def test_completion_orders_fit_their_mix(data: st.DataObject, mix: Mix) -> None:
    """One rank for each call."""
    order = data.draw(completion_orders(mix))
    assert len(order) == len(mix.calls)
    assert all(0 <= rank < max(1, len(order)) for rank in order)


def test_completion_orders_have_ties() -> None:
    """Two calls may end in one instant."""
    mix = Mix([Scripted()] * 3)
    assert find(completion_orders(mix), lambda order: len(set(order)) == 2, settings=PATIENT)
    assert find(completion_orders(mix), lambda order: order == [2, 1, 0], settings=PATIENT) == [2, 1, 0]


def test_simplest_schedule_is_empty() -> None:
    """What every schedule shrinks to."""
    assert find(schedules(), lambda schedule: True, settings=PATIENT) == []

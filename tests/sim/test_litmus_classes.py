"""The classes that the litmus gallery states, counted by brute force."""

from __future__ import annotations

import pytest
from _traces import count_traces, reduced

from toolrt.invariants.litmus import LITMUS, THEMES

#: So many schedules can be compared step by step with each other.
_FEW = 500

_COUNTED = [
    name
    for name, litmus in LITMUS.items()
    if litmus.classes is not None and litmus.interleavings is not None and litmus.interleavings.number <= _FEW
]


# The runtime's steps withhold some of what decides; what is run then is a bound.
_BOUNDED = [
    litmus.name
    for litmus in THEMES["the laws"]
    if litmus.interleavings is not None and litmus.interleavings.number <= _FEW // 2
]


@pytest.mark.parametrize("name", _BOUNDED)
def test_bound_of_classes_is_no_less_than_the_oracles(name: str) -> None:
    """A claim of at most so many traces has run no fewer than there are, and every outcome."""
    litmus = LITMUS[name]
    counted = count_traces(litmus.program)
    report, search, outcomes = reduced(litmus.program)
    assert outcomes == counted.outcomes
    assert report.complete
    assert search.traces >= len(counted.traces)


@pytest.mark.parametrize("name", _COUNTED)
def test_classes_are_those_of_the_oracle(name: str) -> None:
    """Running every schedule and telling traces apart pair by pair gives the number that is stated."""
    litmus = LITMUS[name]
    counted = count_traces(litmus.program)
    assert (counted.schedules, len(counted.traces)) == (litmus.interleavings.number, litmus.classes.number)
    assert all(len(outcomes) == 1 for outcomes in counted.traces.values())

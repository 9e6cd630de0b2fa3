"""The classes that the litmus gallery states, counted by brute force."""

from __future__ import annotations

import pytest

from tests.sim._traces import count_traces, reduced
from toolrt.teaching.litmus import LITMUS, THEMES

#: So many schedules can be compared step by step with each other.
_FEW = 500

_COUNTED = [
    name
    for name, litmus in LITMUS.items()
    if litmus.classes is not None and litmus.interleavings is not None and litmus.interleavings.number <= _FEW
]


# The oracle takes a wake-up of the reader that finds nothing for a difference, and the reduction does not: there are
# more classes by the one than by the other.
_BOUNDED = [
    litmus.name
    for litmus in THEMES["the laws"]
    if litmus.interleavings is not None and litmus.interleavings.number <= _FEW // 2
]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", _BOUNDED)
def test_reduction_of_a_laws_program_misses_nothing(name: str) -> None:
    """It has every outcome that some schedule has, and what the oracle takes for one class ends in one way."""
    litmus = LITMUS[name]
    counted = count_traces(litmus.program)
    report, search, outcomes = reduced(litmus.program)
    assert report.complete
    assert outcomes == counted.outcomes
    assert 1 <= search.traces <= counted.schedules
    assert all(len(ways) == 1 for ways in counted.traces.values())


@pytest.mark.drawn(25)
@pytest.mark.parametrize("name", _COUNTED)
def test_classes_are_those_of_the_oracle(name: str) -> None:
    """Running every schedule and telling traces apart pair by pair gives the number that is stated."""
    litmus = LITMUS[name]
    counted = count_traces(litmus.program, **litmus.settings)
    assert (counted.schedules, len(counted.traces)) == (litmus.interleavings.number, litmus.classes.number)
    assert all(len(outcomes) == 1 for outcomes in counted.traces.values())

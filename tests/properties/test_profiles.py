"""A run of the tests can fail for a reason that no run before it saw, and can be repeated."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

drawn: list[list[int]] = []


@settings(max_examples=5, database=None, suppress_health_check=list(HealthCheck))
@given(numbers=st.lists(st.integers(), min_size=3))
def draw(numbers: list[int]) -> None:
    """Note what is drawn."""
    drawn.append(numbers)


def test_every_run_draws_from_a_seed_of_its_own(pytestconfig: pytest.Config) -> None:
    """No profile draws the same for ever, and the seed is in the header and in the workers of xdist."""
    assert not settings.default.derandomize  # type: ignore[attr-defined]
    seed = pytestconfig.getoption("--hypothesis-seed")
    assert seed is not None
    assert getattr(pytestconfig, "workerinput", {"hypothesis_seed": seed})["hypothesis_seed"] == seed


def test_same_seed_draws_the_same() -> None:
    """What the header prints repeats the run."""
    draw()
    first = drawn.copy()
    drawn.clear()
    draw()
    assert drawn == first

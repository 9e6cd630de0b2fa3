"""A run of the tests can fail for a reason that no run before it saw, and can be repeated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

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


def test_seldom_tests_are_drawn_by_the_seed_and_run_where_they_are_few(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fifth of them is in a reduced run, another one with another seed; all are where there are few, or in full."""
    conftest = next(each for each in pytestconfig.pluginmanager.get_plugins() if hasattr(each, "_FEW"))
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "ci")

    def kept(number: int, seed: str) -> list[str]:
        def marker(name: str) -> object:
            return name if name == "seldom" else None

        items: list[Any] = [Mock(nodeid=f"t::{at}", get_closest_marker=marker) for at in range(number)]
        hook = SimpleNamespace(pytest_deselected=lambda items: None)
        config = SimpleNamespace(option=SimpleNamespace(hypothesis_seed=seed), hook=hook)
        conftest.pytest_collection_modifyitems(config, items)
        return [item.nodeid for item in items]

    assert len(kept(95, "1")) == 19
    assert kept(90, "1") == kept(90, "1") != kept(90, "2")
    assert len(kept(conftest._FEW, "1")) == conftest._FEW
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "full")
    assert len(kept(90, "1")) == 90

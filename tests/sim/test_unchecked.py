"""An exploration that judged nothing does not say PASS; a check may answer with a text."""

from __future__ import annotations

import pathlib

import pytest
from trio.lowlevel import checkpoint

from tests.sim._programs import lost_update
from toolrt import sim, testing
from toolrt.errors import DefinitionRefused


@pytest.mark.parametrize("jobs", [1, 2])
def test_several_outcomes_that_nothing_judged_are_no_pass_in_words(jobs: int) -> None:
    """The report's text begins with how many there are, and that nothing was checked."""
    report = sim.explore(lost_update, sim.Exhaustive(), jobs=jobs)
    assert str(report).startswith("2 outcomes, nothing was checked: exhaustive(")
    assert "PASS" not in str(report)
    assert "PASS" not in repr(report)
    # No execution had an error: that is what the verdict says without a check.
    assert report.verdict is sim.PASS
    assert not report.checked


def test_one_outcome_or_a_check_is_told_as_before() -> None:
    """One outcome leaves nothing open; with a check the verdict is the check's."""
    assert str(sim.explore(checkpoint, sim.Exhaustive())).startswith("PASS: ")
    report = sim.explore(lost_update, sim.Exhaustive(), lambda execution: True)
    assert report.checked
    assert str(report).startswith("PASS: ")


@pytest.mark.parametrize("jobs", [1, 2])
def test_text_is_the_violation(jobs: int) -> None:
    """A check may return what is wrong in words; an empty text is no complaint."""

    def check(execution: sim.Execution) -> str:
        return "" if execution.value == 2 else f"lost one: {execution.value}"

    report = sim.explore(lost_update, sim.Exhaustive(), check, jobs=jobs)
    assert report.verdict is sim.FAIL
    assert report.failures[0].violations == ("lost one: 1",)
    assert "violation: lost one: 1" in report.failures[0].explain()
    assert sim.explore(checkpoint, sim.Exhaustive(), lambda execution: "").verdict is sim.PASS
    with pytest.raises(DefinitionRefused, match="a text"):
        sim.explore(checkpoint, sim.Exhaustive(), lambda execution: b"bytes")


def test_text_is_the_violation_of_a_test_too(tmp_path: pathlib.Path) -> None:
    """The decorator shows the text, not its letters."""

    @testing.explored(strategy="exhaustive", check=lambda execution: "money is lost")
    async def test_it() -> None:
        await checkpoint()

    with pytest.raises(AssertionError, match="violation: money is lost"):
        test_it()

"""All laws, under the explorer's own mixture of samplers."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests._profile import FULL
from toolrt import sim, testing
from toolrt.invariants import Mix
from toolrt.invariants.workloads import WORKLOADS

#: Executions of each workload, and of each drawn mix.
EACH = 1_000 if FULL else 60


@pytest.mark.drawn(4)
@pytest.mark.parametrize("mix", WORKLOADS, ids=range(len(WORKLOADS)))
def test_workload_keeps_all_laws_under_portfolio(mix: Mix) -> None:
    """PCT, POS, URW and random walks find no schedule that breaks one."""
    report = sim.explore(mix.program(), sim.Portfolio(EACH), mix.check)
    assert report.verdict is sim.PASS, report.failures[0].explain()


@pytest.mark.seldom
@pytest.mark.slow
@given(mix=testing.tool_mixes())
def test_mixes_keep_all_laws_under_portfolio(mix: Mix) -> None:
    """Hypothesis draws what runs, the portfolio how."""
    report = sim.explore(mix.program(), sim.Portfolio(10), mix.check)
    assert not report.failures, report.failures[0].explain()

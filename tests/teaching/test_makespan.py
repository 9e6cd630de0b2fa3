"""How long batches take: what the definitions say holds of every batch, and the page has the figures that come out."""

from __future__ import annotations

import itertools
import random
import runpy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests._profile import FULL
from toolrt.errors import DefinitionRefused
from toolrt.model import READ, WRITE, Claim
from toolrt.order import LaneChoice, LanePolicy, PolicyCall, by_claims, by_safety, parallel, serial
from toolrt.teaching import lab

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "makespan.md"
WRITE_PAGE = ROOT / ".ci" / "write_makespan.py"


class Pairs:
    """As `by_claims`, but no lane has more than two calls."""

    def place(self, call: PolicyCall, lane: tuple[PolicyCall, ...]) -> LaneChoice:
        if not by_claims(call.tool, call.input):
            return LaneChoice.ALONE
        return LaneChoice.OPEN if len(lane) >= 2 else LaneChoice.JOIN


_RIGHT = (by_claims, by_safety, parallel, serial, Pairs())
_CLAIMS = st.builds(
    Claim,
    st.sampled_from([("a",), ("a", "1"), ("a", "2"), ("b", "1")]),
    st.sampled_from([READ, WRITE]),
    st.just(True),
)
_CALLS = st.builds(
    lab.TimedCall,
    st.just("call"),
    st.integers(1, 8).map(float),
    st.lists(_CLAIMS, max_size=2).map(tuple),
    st.sampled_from([True, True, True, False]),
)
_BATCHES = st.lists(_CALLS, min_size=1, max_size=7)


def _serial_sum(calls: list[lab.TimedCall]) -> float:
    return sum(call.seconds for call in calls)


@settings(max_examples=30)
@given(calls=_BATCHES, policy=st.sampled_from(_RIGHT), limit=st.sampled_from([None, 1, 2, 3]))
def test_makespan_is_between_critical_path_and_serial_sum(
    calls: list[lab.TimedCall], policy: LanePolicy, limit: int | None
) -> None:
    """Critical path <= length of the policy's order <= makespan <= serial sum; conflicting calls never overlap."""
    ran = lab.ran_under(calls, policy, limit)
    length = lab.length(calls, lab.order_of(calls, policy))
    assert lab.critical_path(calls) <= length <= ran.makespan <= _serial_sum(calls)
    assert ran.overlapping(calls) == []


@settings(max_examples=30)
@given(calls=_BATCHES, policy=st.sampled_from(_RIGHT))
def test_makespan_without_a_limit_is_the_length_of_the_policys_order(
    calls: list[lab.TimedCall], policy: LanePolicy
) -> None:
    """Nothing waits for anything else: law 6."""
    assert lab.ran_under(calls, policy).makespan == lab.length(calls, lab.order_of(calls, policy))


@settings(max_examples=20)
@given(calls=_BATCHES, limit=st.integers(1, 4))
def test_makespan_with_slots_is_within_grahams_bound(calls: list[lab.TimedCall], limit: int) -> None:
    """At most the work shared by the slots, and (1 - 1/m) of the length of the order."""
    length = lab.length(calls, lab.order_of(calls, by_claims))
    most = _serial_sum(calls) / limit + (1 - 1 / limit) * length
    assert lab.ran_under(calls, by_claims, limit).makespan <= most + 1e-9


@settings(max_examples=20)
@given(calls=_BATCHES)
def test_makespan_of_serial_is_the_serial_sum_and_of_no_order_the_longest_call(calls: list[lab.TimedCall]) -> None:
    """The two ends; where nothing conflicts the critical path is the longest call, too."""
    assert lab.ran_under(calls, serial).makespan == _serial_sum(calls)
    at_once = lab.ran_under(calls, None)
    assert at_once.makespan == max(call.seconds for call in calls)
    assert bool(at_once.overlapping(calls)) == any(lab.conflicts(calls))
    if not any(lab.conflicts(calls)):
        assert at_once.makespan == lab.critical_path(calls)


@settings(max_examples=20)
@given(calls=_BATCHES)
def test_order_of_by_claims_is_within_that_of_by_safety_and_serial(calls: list[lab.TimedCall]) -> None:
    """What claims allow is never less: the order of the conflicts is in it, and it is in the others."""
    pairs = [lab.conflicts(calls), *(lab.order_of(calls, policy) for policy in (by_claims, by_safety, serial))]
    for less, more in itertools.pairwise(pairs):
        assert all(some <= all_ for some, all_ in zip(less, more, strict=True))


@pytest.mark.parametrize("name", lab.WORKLOADS)
def test_workload_draws_the_same_batches_by_seed(name: str) -> None:
    """The same seed gives the same calls, another one gives others; sums of durations are exact."""
    workload = lab.WORKLOADS[name]
    first = [workload.batch(number) for number in range(20)]
    assert first == [workload.batch(number) for number in range(20)]
    assert first != [workload.batch(number, seed=1) for number in range(20)]
    assert all((64 * call.seconds).is_integer() for calls in first for call in calls)


def test_retail_has_the_fifteen_tools() -> None:
    """As many as tau-bench's retail domain has, each under one name."""
    assert len({tool.name for tool in lab.WORKLOADS["retail"].tools}) == 15


def test_makespans_repeat_by_seed() -> None:
    """The rows are a function of the arguments."""
    workload = lab.random_mixes(0.2, calls=4)
    rows = lab.makespans(workload, batches=3, seed=5)
    assert rows == lab.makespans(workload, batches=3, seed=5)
    assert {row["policy"] for row in rows} == {"by_claims", "by_safety", "serial", lab.AT_ONCE}
    assert len(rows) == 12


@pytest.mark.parametrize("batches", [0, True, 1.5])
def test_makespans_refuse_what_is_no_number_of_batches(batches: int) -> None:
    """The error says what was expected."""
    with pytest.raises(DefinitionRefused, match="whole number, 1 or more"):
        lab.makespans(lab.WORKLOADS["files"], batches=batches)


def test_spread_has_the_true_median_in_most_intervals() -> None:
    """A 95 % interval of samples of a known distribution contains its median in most of 100 samples."""
    draw = random.Random(0)
    rows = [{"sample": sample, "x": draw.random()} for sample in range(100) for _ in range(40)]
    found = lab.spread(rows, "x", by=["sample"], resamples=200)
    covered = sum(row["low"] <= 0.5 <= row["high"] for row in found)
    assert 88 <= covered <= 100
    assert all(row["low"] <= row["median"] <= row["high"] for row in found)
    assert all(row["high"] - row["low"] < 0.5 for row in found)


@pytest.mark.seldom
def test_page_has_a_table_that_comes_out_again() -> None:
    """The quickest of them; the full profile has all."""
    page = PAGE.read_text(encoding="utf-8")
    assert runpy.run_path(str(WRITE_PAGE))["written"](page, "slots") == page, "run: python .ci/write_makespan.py"


@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason="half a minute: the full profile makes all tables again")
def test_page_has_the_figures_that_come_out() -> None:
    """All tables and the picture are those that ``python .ci/write_makespan.py`` writes."""
    page, made = PAGE.read_text(encoding="utf-8"), runpy.run_path(str(WRITE_PAGE))
    assert made["written"](page) == page, "run: python .ci/write_makespan.py"
    assert made["PICTURE"].read_text(encoding="utf-8") == made["picture"](), "run: python .ci/write_makespan.py"

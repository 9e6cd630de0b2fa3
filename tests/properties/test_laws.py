"""Each law of the design holds for every mix of calls and every schedule; the tests are named as the laws.

Each test draws mixes that its law has something to say of, and holds each execution against all laws.  What fails
prints the mix, the schedule (both shrunk, both to be pasted back) and the violated sentence.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolrt import sim
from toolrt.invariants import LAWS, require
from toolrt.invariants.script import Scripted, Sleep, UseTool
from toolrt.testing import Mix, completion_orders, schedules, simulate, tool_mixes

READS = Scripted([UseTool("read_file", {"path": "a.txt"})])


def holds(law: str, mix: Mix, schedule: list[int], **how: Any) -> sim.Execution:
    """Run the mix under the schedule and hold it against the law, then against the others.

    An execution that breaks off breaks law 13.
    """
    execution = simulate(mix, schedule, **how)
    where = f"mix: {mix!r}\nschedule: {schedule}\n{how or ''}"
    require(execution.trace, {law: LAWS[law]}, where)
    require(execution.trace, LAWS, where)
    assert execution.error is None, f"{execution.error!r}\n{where}"
    return execution


@given(mix=tool_mixes(cancel=True, crash=True) | tool_mixes(), schedule=schedules())
def test_answered_once(mix: Mix, schedule: list[int]) -> None:
    """Every call is answered once."""
    holds("answered_once", mix, schedule)


@given(mix=tool_mixes(readers=["eager", "slow"]), schedule=schedules())
def test_results_in_call_order(mix: Mix, schedule: list[int]) -> None:
    """Results are in call order, and each is delivered as soon as all before it are."""
    holds("results_in_call_order", mix, schedule)


@given(data=st.data(), mix=tool_mixes(without=["files"]), schedule=schedules())
def test_modifiers_in_call_order(data: st.DataObject, mix: Mix, schedule: list[int]) -> None:
    """Modifiers merge in call order, whatever the order in which calls finish."""
    order = data.draw(completion_orders(mix), label="completion order")
    holds("modifiers_in_call_order", mix, schedule, completion_order=order)


@given(mix=tool_mixes(without=["state"], min_calls=2), schedule=schedules())
def test_same_file_in_call_order(mix: Mix, schedule: list[int]) -> None:
    """Mutations of one file happen in call_index order, and never overlap."""
    holds("same_file_in_call_order", mix, schedule)


@given(mix=tool_mixes(min_calls=2), schedule=schedules())
def test_exclusive_alone(mix: Mix, schedule: list[int]) -> None:
    """An exclusive call overlaps nothing."""
    holds("exclusive_alone", mix, schedule)


@given(mix=tool_mixes(min_calls=2), schedule=schedules())
def test_no_needless_wait(mix: Mix, schedule: list[int]) -> None:
    """Calls that do not conflict never wait for each other."""
    holds("no_needless_wait", mix, schedule)


@given(data=st.data(), mix=tool_mixes(), schedule=schedules())
def test_same_as_oracle(data: st.DataObject, mix: Mix, schedule: list[int]) -> None:
    """Every schedule, and every completion order, ends like the oracle."""
    order = data.draw(st.none() | completion_orders(mix), label="completion order")
    holds("same_as_oracle", mix, schedule, completion_order=order)


@given(mix=tool_mixes(cancel=True), schedule=schedules())
def test_same_as_oracle_as_far_as_a_cancel_let_it(mix: Mix, schedule: list[int]) -> None:
    """With a cancel, what had finished is as the oracle has it, and every file is one of its versions."""
    holds("same_as_oracle", mix, schedule)


@given(mix=tool_mixes(readers=["eager", "slow"], cancel=True) | tool_mixes(), schedule=schedules())
def test_progress_at_once(mix: Mix, schedule: list[int]) -> None:
    """Progress flows at once and never blocks."""
    holds("progress_at_once", mix, schedule)


@given(mix=tool_mixes(min_calls=2, without=["state"]), schedule=schedules())
def test_failure_contained(mix: Mix, schedule: list[int]) -> None:
    """A failure stays with its call."""
    holds("failure_contained", mix, schedule)


@given(mix=tool_mixes(cancel=True, crash=True), schedule=schedules())
def test_cancel_truthful(mix: Mix, schedule: list[int]) -> None:
    """Cancel is prompt and truthful."""
    holds("cancel_truthful", mix, schedule)


@given(mix=tool_mixes(min_calls=2), schedule=schedules())
def test_timeout_own_time(mix: Mix, schedule: list[int]) -> None:
    """A timeout counts the call's own execution, never its waiting."""
    holds("timeout_own_time", mix, schedule)


@example(mix=Mix([READS], lanes="by_safety", beside=[Scripted([Sleep(1)])] * 2, deadline=1.25), schedule=[])
@given(mix=tool_mixes(cancel=True) | tool_mixes(), schedule=schedules())
def test_nothing_left(mix: Mix, schedule: list[int]) -> None:
    """Nothing is left behind."""
    holds("nothing_left", mix, schedule)


@given(mix=tool_mixes(cancel=True) | tool_mixes(), schedule=schedules())
def test_batch_ends(mix: Mix, schedule: list[int]) -> None:
    """The batch ends."""
    holds("batch_ends", mix, schedule)


@given(mix=tool_mixes(cancel=True) | tool_mixes(), schedule=schedules())
def test_same_schedule_same_trace(mix: Mix, schedule: list[int]) -> None:
    """Same schedule, same trace: byte for byte."""
    holds("same_schedule_same_trace", mix, schedule, replayed=True)


@given(mix=tool_mixes(lanes=["by_claims"], min_calls=2), schedule=schedules())
def test_same_as_serial(mix: Mix, schedule: list[int]) -> None:
    """By claims is as one at a time: results, files and state of a serial run."""
    holds("same_as_serial", mix, schedule)


@given(mix=tool_mixes(lanes=["by_claims"], cancel=True, without=["files"]), schedule=schedules())
def test_same_as_serial_as_far_as_a_cancel_let_it(mix: Mix, schedule: list[int]) -> None:
    """With a cancel, what had finished is as in the serial run."""
    holds("same_as_serial", mix, schedule)


@given(
    mix=tool_mixes(min_calls=2, without=["files", "failures", "timeouts", "shields", "invalid"]),
    schedule=schedules(),
)
def test_no_write_lost(mix: Mix, schedule: list[int]) -> None:
    """No write of state is lost in silence: it stands, or its call is refused."""
    holds("no_write_lost", mix, schedule)


@pytest.mark.slow
@settings(max_examples=max(5, settings.default.max_examples // 5))
@given(mix=tool_mixes(max_calls=4), seed=st.integers(0, 2**16))
def test_laws_under_the_explorer(mix: Mix, seed: int) -> None:
    """All laws at once, many schedules of one mix in one Trio run."""
    report = sim.explore(mix.program(), sim.Random(sim.RandomWalk(seed=seed), 20), check=mix.check)
    assert report.verdict is sim.PASS, f"{mix!r}\n{report.failures[0].explain()}"


@given(mix=tool_mixes(cancel=True) | tool_mixes(min_calls=2), schedule=schedules())
def test_claims_hold(mix: Mix, schedule: list[int]) -> None:
    """A ticket covers what its call touches when it runs."""
    holds("claims_hold", mix, schedule)


def test_every_law_has_a_property() -> None:
    """A law without a property test of its name is not tested."""
    names = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert set(LAWS) <= names


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_laws_are_numbered_as_in_the_design(law: Any) -> None:
    """The names stand in the order of their numbers."""
    assert list(LAWS)[law.number - 1] == law.name

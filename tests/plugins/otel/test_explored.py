"""Telemetry decides nothing, and what it tells is well formed: for every mix of calls and every schedule."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs
import pytest
import trio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import toolrt
from tests._profile import FULL
from tests.plugins.otel._observed import (
    Exported,
    Keeper,
    Raising,
    outcomes_of_results,
    outcomes_of_spans,
    reported,
    told_as_reported,
    wrong_with,
    wrong_with_spans,
)
from toolrt import Registry, Runtime, ToolCall, ToolContext, sim
from toolrt.invariants.script import AppendFile, Fail, Pause, ReadFile, Say, Scripted, Sleep
from toolrt.plugins.otel import Counts, JsonLines, OtelMetrics, OtelSpans, Telemetry
from toolrt.testing import Mix, schedules, tool_mixes

MIXES = tool_mixes(cancel=True) | tool_mixes()

PROPERTY = settings(
    max_examples=500 if FULL else 30,
    derandomize=not FULL,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def ran(program: Callable[[], Awaitable[Any]], schedule: Sequence[int]) -> sim.Execution:
    return sim.run(program, sim.Choices(schedule), step_limit=20_000)


class Nowhere:
    """A text stream that keeps nothing."""

    def write(self, text: str) -> int:
        return len(text)


def everything() -> Telemetry:
    """All sinks there are."""
    exported = Exported()
    return Telemetry(Keeper(), Counts(), JsonLines(Nowhere()), OtelSpans(exported.provider), OtelMetrics())  # type: ignore[arg-type]


@pytest.mark.seldom
@PROPERTY
@given(mix=MIXES, schedule=schedules())
def test_observed_execution_is_the_same_execution(mix: Mix, schedule: list[int]) -> None:
    """Results, state, files, schedule and trace, with all its steps and accesses, are those without telemetry."""
    telemetry = everything()
    with_it, without = ran(mix.program(telemetry), schedule), ran(mix.program(), schedule)
    assert telemetry.failures == (0,) * len(telemetry.sinks)
    assert (with_it.value, repr(with_it.error)) == (without.value, repr(without.error))
    assert with_it.schedule == without.schedule
    assert with_it.trace == without.trace


@pytest.mark.seldom
@PROPERTY
@example(mix=Mix([Scripted([Sleep(3.0)], sync=True, thread=True)], cancel_after=1.0, reader="none"), schedule=[])
@given(mix=MIXES, schedule=schedules())
def test_what_is_told_is_well_formed(mix: Mix, schedule: list[int]) -> None:
    """What begins ends, once and in order, whatever is cancelled, skipped or timed out meanwhile."""
    keeper = Keeper()
    ran(mix.program(keeper), schedule)
    assert wrong_with(keeper.told) == []


@pytest.mark.seldom
@PROPERTY
@given(mix=MIXES, schedule=schedules())
def test_what_is_told_is_what_the_probe_reports(mix: Mix, schedule: list[int]) -> None:
    """A trace and telemetry of one execution say the same, at the same times and in the same order."""
    keeper = Keeper()
    execution = ran(mix.program(keeper), schedule)
    assert told_as_reported(keeper.told) == reported(execution.trace)


@pytest.mark.seldom
@PROPERTY
@given(mix=MIXES, schedule=schedules())
def test_spans_are_well_formed(mix: Mix, schedule: list[int]) -> None:
    """Every span has ended once, inside its parent, with its call's outcome; the same schedule, the same spans."""
    texts = []
    for _ in range(2):
        exported = Exported()
        telemetry = Telemetry(OtelSpans(exported.provider))
        execution = ran(mix.program(telemetry), schedule)
        assert telemetry.failures == (0,)
        assert wrong_with_spans(exported.spans()) == []
        assert outcomes_of_spans(exported.spans()) == outcomes_of_results(execution.trace)
        texts.append([span.to_json() for span in exported.spans()])
    assert texts[0] == texts[1]


@pytest.mark.seldom
@PROPERTY
@given(mix=MIXES, schedule=schedules())
def test_counts_are_those_of_the_results(mix: Mix, schedule: list[int]) -> None:
    """Calls by outcome, and progress, are counted as the results have them; nothing of a batch is kept after it."""
    counts = Counts()
    execution = ran(mix.program(counts), schedule)
    results = [event.fields for event in execution.trace.of_kind("batch.left")]
    outcomes = [result["outcome"] for fields in results for result in fields["results"]]
    assert counts.count("toolrt.calls") == len(outcomes)
    for outcome in set(outcomes):
        assert counts.count("toolrt.calls", outcome=outcome) == outcomes.count(outcome)
    assert counts.count("toolrt.progress.dropped") == sum(sum(fields["dropped"]) for fields in results)
    assert counts.count("toolrt.lanes") == len(execution.trace.of_kind("lane.started"))
    assert counts.distribution("toolrt.call.duration").count == len(execution.trace.of_kind("call.started"))
    assert counts._batches == {}


_SMALL = {
    "one file": Mix([Scripted([AppendFile("f", "a")]), Scripted([ReadFile("f")]), Scripted([AppendFile("f", "b")])]),
    "one slot": Mix([Scripted([Pause()]), Scripted([Pause(), Say("here")]), Scripted([Pause()])], limit=1),
    "a stop": Mix([Scripted([Pause(), Fail("broken")], stops=True), Scripted([Pause()]), Scripted([Pause()])]),
    "approvals": Mix([Scripted([Pause()], approval="allow", approval_after=0.0), Scripted([Pause()], approval="deny")]),
}


@pytest.mark.seldom
@pytest.mark.parametrize("name", list(_SMALL))
def test_exploration_is_the_same_exploration(name: str) -> None:
    """DPOR, which swaps steps by what they touch, finds the same executions whether or not they are observed."""
    mix = _SMALL[name]
    without = sim.explore(mix.program(), strategy=sim.DPOR(), max_executions=60)
    with_it = sim.explore(mix.program(everything()), strategy=sim.DPOR(), max_executions=60)
    assert with_it.executions == without.executions
    assert (with_it.claim, with_it.outcomes) == (without.claim, without.outcomes)


# Spans of tools' own


@attrs.frozen
class Work:
    """What one tool does: sleeps, and blocks, in nurseries or not, with what stands in them."""

    #: Seconds, or a block's content.
    parts: tuple[float | Work, ...]
    #: In a block: it runs in a child task.
    child: bool = False
    #: It raises at its end.
    fails: bool = False


WORK = st.recursive(
    st.builds(Work, st.lists(st.sampled_from([0.0, 1.0, 2.0]), max_size=2).map(tuple)),
    lambda inner: st.builds(
        Work, st.lists(st.sampled_from([0.0, 1.0]) | inner, max_size=3).map(tuple), st.booleans(), st.booleans()
    ),
    max_leaves=5,
)


async def perform(ctx: ToolContext, tracer: Any, work: Work) -> None:
    """Do it, each block in a span of `ctx.telemetry`, and in one made through OpenTelemetry itself."""
    async with trio.open_nursery() as nursery:
        for part in work.parts:
            if isinstance(part, Work):
                if part.child:
                    nursery.start_soon(block, ctx, tracer, part)
                else:
                    await block(ctx, tracer, part)
            else:
                await trio.sleep(part)
    if work.fails:
        raise ValueError("it fails")


async def block(ctx: ToolContext, tracer: Any, work: Work) -> None:
    with ctx.telemetry.span("block", {"parts": len(work.parts)}):
        now = trio.current_time()
        span = tracer.start_span("own", start_time=round(now * 1e9))
        ctx.telemetry.event("begun")
        try:
            await perform(ctx, tracer, work)
        finally:
            span.end(round(trio.current_time() * 1e9))


@PROPERTY
@given(
    works=st.lists(WORK, min_size=1, max_size=4),
    cancel_after=st.none() | st.sampled_from([0.0, 1.0, 2.5]),
    timeout=st.none() | st.sampled_from([0.5, 1.0, 3.0]),
    limit=st.sampled_from([1, 2, 10]),
    schedule=schedules(),
)
def test_spans_of_tools_stand_in_their_calls(
    works: list[Work], cancel_after: float | None, timeout: float | None, limit: int, schedule: list[int]
) -> None:
    """Whatever a tool begins, in nurseries too, ends inside it, though it is cancelled, fails or times out."""
    exported, keeper = Exported(), Keeper()
    tracer = exported.provider.get_tracer("tests")

    @toolrt.tool(safe=True, timeout=timeout)
    async def work(ctx: ToolContext, index: int) -> None:
        await perform(ctx, tracer, works[index])

    telemetry = Telemetry(keeper, OtelSpans(exported.provider))
    runtime = Runtime(Registry([work]), limit=limit, telemetry=telemetry)

    async def program() -> None:
        with trio.move_on_after(float("inf") if cancel_after is None else cancel_after):
            await runtime.run([ToolCall(f"c{index}", "work", {"index": index}) for index in range(len(works))])

    execution = ran(program, schedule)
    assert execution.error is None
    assert telemetry.failures == (0, 0)
    assert wrong_with(keeper.told) == []
    assert wrong_with_spans(exported.spans()) == []
    by_id = {span.context.span_id: span for span in exported.spans()}
    for span in exported.spans():
        if span.name == "own":
            assert by_id[span.parent.span_id].name == "block"


# Mutants: what these properties must catch


@pytest.mark.seldom
@PROPERTY
@given(mix=MIXES, schedule=schedules())
def test_observer_that_raises_changes_nothing(mix: Mix, schedule: list[int]) -> None:
    """Not one result, step or access, whether it is told by a runtime or by `Telemetry`."""
    without = ran(mix.program(), schedule)
    for observer in (Raising(), Telemetry(Raising(), keeper := Keeper())):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with_it = ran(mix.program(observer), schedule)
        assert with_it.value == without.value
        assert with_it.trace == without.trace
    assert wrong_with(keeper.told) == []

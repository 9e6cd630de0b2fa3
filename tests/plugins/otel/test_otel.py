"""The OpenTelemetry sinks against the SDK's in-memory exporters: in production, and simulated."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode
from trio.testing import MockClock

import toolrt
from tests.plugins.otel._observed import Exported, tree, wrong_with_spans
from toolrt import WRITE, Claim, Registry, Runtime, ToolCall, ToolContext, ToolOutput, sim
from toolrt.errors import MissingExtra
from toolrt.plugins.otel import Counts, OtelMetrics, OtelSpans, Telemetry

Program = Callable[[], Any]


def in_production(program: Program) -> None:
    trio.run(program, clock=MockClock(autojump_threshold=0))


def simulated(program: Program) -> None:
    execution = sim.run(program)
    assert execution.error is None, execution.error


both_ways = pytest.mark.parametrize("run", [in_production, simulated])


@pytest.fixture
def exported() -> Exported:
    return Exported()


@pytest.fixture
def telemetry(exported: Exported) -> Telemetry:
    return Telemetry(OtelSpans(exported.provider))


def asked(*names: str, **input: Any) -> list[ToolCall]:
    return [ToolCall(f"c{index}", name, input) for index, name in enumerate(names)]


def only(spans: Sequence[ReadableSpan], name: str) -> ReadableSpan:
    [span] = [span for span in spans if span.name == name]
    return span


@toolrt.tool(claims=[Claim("file", WRITE)])
async def write(ctx: ToolContext) -> str:
    await trio.sleep(1)
    return "done"


@toolrt.tool
async def alone(ctx: ToolContext) -> None:
    await trio.sleep(2)


@both_ways
def test_spans_form_the_tree_of_the_batch(run: Any, exported: Exported, telemetry: Telemetry) -> None:
    """Batch, lanes, calls, waits; the same in production and simulated."""
    runtime = Runtime(Registry([write, alone]), telemetry=telemetry)
    run(lambda: runtime.run(asked("write", "write", "alone", "nosuchtool")))
    assert tree(exported.spans()) == [
        [
            "toolrt.batch",
            "toolrt.wait lane",
            ["toolrt.lane", "execute_tool write", ["execute_tool write", "toolrt.wait claims"]],
            "execute_tool (unknown)",
            ["toolrt.lane", "execute_tool alone"],
        ]
    ]
    assert wrong_with_spans(exported.spans()) == []
    assert telemetry.failures == (0,)


def test_simulated_spans_have_virtual_times(exported: Exported, telemetry: Telemetry) -> None:
    """Nanoseconds since the execution began."""
    runtime = Runtime(Registry([write, alone]), telemetry=telemetry)
    simulated(lambda: runtime.run(asked("write", "write", "alone")))
    times = [(span.name, span.start_time, span.end_time) for span in exported.spans()]
    second = 1_000_000_000
    assert times == [
        ("toolrt.wait claims", 0, second),
        ("execute_tool write", 0, second),
        ("execute_tool write", 0, 2 * second),
        ("toolrt.lane", 0, 2 * second),
        ("toolrt.wait lane", 0, 2 * second),
        ("execute_tool alone", 2 * second, 4 * second),
        ("toolrt.lane", 2 * second, 4 * second),
        ("toolrt.batch", 0, 4 * second),
    ]


def test_times_in_production_are_those_of_the_day(exported: Exported, telemetry: Telemetry) -> None:
    """The batch stands inside a span that was made around it, by OpenTelemetry's own clock."""
    tracer = exported.provider.get_tracer("tests")

    async def program() -> None:
        with tracer.start_as_current_span("around"):
            await trio.lowlevel.checkpoint()
            await Runtime(Registry([write]), telemetry=telemetry).run([])

    trio.run(program)
    around, batch = only(exported.spans(), "around"), only(exported.spans(), "toolrt.batch")
    # The two clocks are read one after the other; a day's clock may be set meanwhile, not by a minute.
    assert abs((batch.start_time or 0) - (around.start_time or 0)) < 60e9


@both_ways
def test_spans_of_a_tool_are_children_of_its_call(run: Any, exported: Exported, telemetry: Telemetry) -> None:
    """Those made through OpenTelemetry itself, in the tool and in a nursery of its; blocks of `ctx` between."""
    tracer = exported.provider.get_tracer("tests")

    async def child(name: str) -> None:
        with tracer.start_as_current_span(name):
            await trio.sleep(1)

    @toolrt.tool(safe=True)
    async def work(ctx: ToolContext, name: str) -> None:
        with tracer.start_as_current_span(f"{name} own"):
            await trio.sleep(1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child, f"{name} child")
        with ctx.telemetry.span(f"{name} block"):
            await child(f"{name} inside")
        await child(f"{name} own after")

    runtime = Runtime(Registry([work]), telemetry=telemetry)
    calls = [ToolCall(name, "work", {"name": name}) for name in "ab"]
    run(lambda: runtime.run(calls))
    [batch] = tree(exported.spans())
    expected = [
        [
            "execute_tool work",
            [f"{name} block", f"{name} inside"],
            [f"{name} own", f"{name} child"],
            f"{name} own after",
        ]
        for name in "ab"
    ]
    # Spans that the tool made itself have times of their own, so those of one call may stand in another order.
    found = [
        [call[0], *sorted(call[1:], key=lambda one: one if isinstance(one, str) else one[0])] for call in batch[1][1:]
    ]
    assert found == expected


@both_ways
def test_spans_of_a_sync_tool_are_children_of_its_call(run: Any, exported: Exported, telemetry: Telemetry) -> None:
    """Also in its worker thread."""
    tracer = exported.provider.get_tracer("tests")

    @toolrt.tool(safe=True)
    def work(ctx: ToolContext) -> None:
        with ctx.telemetry.span("block"), tracer.start_as_current_span("own"):
            ctx.telemetry.event("here", {"n": 1})

    runtime = Runtime(Registry([work]), telemetry=telemetry)
    run(lambda: runtime.run(asked("work")))
    assert tree(exported.spans()) == [["toolrt.batch", ["toolrt.lane", ["execute_tool work", ["block", "own"]]]]]
    [event] = only(exported.spans(), "block").events
    assert (event.name, dict(event.attributes or {})) == ("here", {"n": 1})


def test_sink_that_does_not_make_the_call_current_is_caught(
    exported: Exported, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests above see it."""
    monkeypatch.setattr(telemetry.sinks[0]._context, "attach", lambda context: None)  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="one more item: 'own'"):
        test_spans_of_a_sync_tool_are_children_of_its_call(in_production, exported, telemetry)


@both_ways
def test_batch_is_a_child_of_the_callers_span(run: Any, exported: Exported, telemetry: Telemetry) -> None:
    """And its context, baggage too, reaches the tools; after the batch the caller's span is current as before."""
    tracer = exported.provider.get_tracer("tests")
    seen = []

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        seen.append(baggage.get_baggage("user"))

    async def program() -> None:
        token = context.attach(baggage.set_baggage("user", "me"))
        with tracer.start_as_current_span("mine") as mine:
            await Runtime(Registry([work]), telemetry=telemetry).run(asked("work", "work"))
            assert trace.get_current_span() is mine
        context.detach(token)

    run(program)
    assert seen == ["me", "me"]
    [mine] = tree(exported.spans())
    assert mine[0] == "mine"
    assert mine[1][0] == "toolrt.batch"


@both_ways
def test_spans_of_an_approval_check_are_children_of_the_wait_for_it(
    run: Any, exported: Exported, telemetry: Telemetry
) -> None:
    """The check is a task of its own; what it lets through is not a child of it."""
    tracer = exported.provider.get_tracer("tests")

    async def check(request: toolrt.ApprovalRequest) -> toolrt.Allow:
        with tracer.start_as_current_span("asking"):
            await trio.sleep(1)
        return toolrt.Allow()

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        with tracer.start_as_current_span("own"):
            await trio.sleep(1)

    runtime = Runtime(Registry([work]), approve=check, telemetry=telemetry)
    run(lambda: runtime.run(asked("work")))
    call = tree(exported.spans())[0][1][1]
    assert sorted(map(str, call)) == sorted(map(str, ["execute_tool work", ["toolrt.wait approval", "asking"], "own"]))


@both_ways
def test_sub_batch_is_a_child_of_its_call(run: Any, exported: Exported, telemetry: Telemetry) -> None:
    """Inside the span that its tool has open."""

    @toolrt.tool
    async def many(ctx: ToolContext) -> None:
        with ctx.telemetry.span("block"):
            await ctx.run(asked("write", "write"))

    runtime = Runtime(Registry([many, write]), telemetry=telemetry)
    run(lambda: runtime.run(asked("many")))
    inner = ["toolrt.batch", ["toolrt.lane", "execute_tool write", ["execute_tool write", "toolrt.wait claims"]]]
    assert tree(exported.spans()) == [["toolrt.batch", ["toolrt.lane", ["execute_tool many", ["block", inner]]]]]
    assert [one for one in wrong_with_spans(exported.spans()) if "no parent" not in one] == []


def test_wait_is_linked_to_whom_it_is_for(exported: Exported, telemetry: Telemetry) -> None:
    """To the spans of the calls whose tickets were in the way."""
    runtime = Runtime(Registry([write]), telemetry=telemetry)
    simulated(lambda: runtime.run(asked("write", "write")))
    wait = only(exported.spans(), "toolrt.wait claims")
    first = next(span for span in exported.spans() if span.name == "execute_tool write")
    assert [link.context.span_id for link in wait.links] == [first.context.span_id]


def test_span_says_how_its_call_ended(exported: Exported, telemetry: Telemetry) -> None:
    """Outcome, sizes and the error's type; an error's status has no words, and no exception is recorded."""

    @toolrt.tool(safe=True)
    async def work(ctx: ToolContext, how: str) -> Any:
        if how == "raise":
            raise LookupError("private words")
        if how == "sleep":
            await trio.sleep(60)
        return ToolOutput(error="private words") if how == "refuse" else "text"

    runtime = Runtime(Registry([work]), timeout=1, telemetry=telemetry)
    calls = [ToolCall(how, "work", {"how": how}) for how in ("return", "raise", "refuse", "sleep")]
    simulated(lambda: runtime.run([*calls, ToolCall("bad", "work", {})]))
    found = {}
    for span in exported.spans():
        attributes = dict(span.attributes or {})
        if "gen_ai.tool.call.id" in attributes:
            found[attributes["gen_ai.tool.call.id"]] = span.status.status_code, attributes.get("error.type"), attributes
            assert span.status.description is None
            assert all(event.name == "call.started" for event in span.events)
    assert {key: value[:2] for key, value in found.items()} == {
        "return": (StatusCode.UNSET, None),
        "raise": (StatusCode.ERROR, "LookupError"),
        "refuse": (StatusCode.ERROR, "error"),
        "sleep": (StatusCode.ERROR, "timed_out"),
        "bad": (StatusCode.ERROR, "invalid"),
    }
    shown = found["return"][2]
    assert (shown["toolrt.outcome"], shown["toolrt.content.type"], shown["toolrt.content.size"]) == ("ok", "text", 4)
    assert shown["gen_ai.operation.name"] == "execute_tool"


def test_call_that_is_skipped_when_it_has_ended_is_called_skipped(exported: Exported, telemetry: Telemetry) -> None:
    """A finished read behind a call that stops the batch: what the model was told is what its span says."""

    @toolrt.tool(stops_batch=True, claims=[Claim("a", WRITE)])
    async def stop(ctx: ToolContext) -> None:
        await trio.sleep(2)
        raise ValueError

    @toolrt.tool(claims=[Claim("b", toolrt.READ)])
    async def read(ctx: ToolContext) -> str:
        return "read"

    runtime = Runtime(Registry([stop, read]), telemetry=telemetry)
    simulated(lambda: runtime.run(asked("stop", "read")))
    span = only(exported.spans(), "execute_tool read")
    assert dict(span.attributes or {})["toolrt.outcome"] == "skipped"
    assert "toolrt.content.size" not in (span.attributes or {})
    assert span.end_time == 0
    assert "batch.stopped" in [event.name for event in only(exported.spans(), "toolrt.batch").events]


def test_block_of_a_tool_outside_a_batch_is_a_span(exported: Exported, telemetry: Telemetry) -> None:
    """A child of whatever span is current."""
    tracer = exported.provider.get_tracer("tests")
    ctx = ToolContext.standalone(".", telemetry=telemetry)
    with tracer.start_as_current_span("mine"), ctx.telemetry.span("block"):
        ctx.telemetry.event("here")
    assert tree(exported.spans()) == [["mine", "block"]]
    assert [event.name for event in only(exported.spans(), "block").events] == ["here"]
    assert telemetry.failures == (0,)
    assert telemetry.sinks[0]._alone == {}  # type: ignore[attr-defined]


@both_ways
def test_metrics_are_those_of_counts(run: Any) -> None:
    """The same numbers, under the same names, through OpenTelemetry's API."""
    reader = InMemoryMetricReader()
    counts = Counts()
    telemetry = Telemetry(OtelMetrics(MeterProvider([reader], shutdown_on_exit=False)), counts)

    @toolrt.tool(safe=True)
    async def talk(ctx: ToolContext) -> None:
        ctx.progress("hello")
        raise ValueError

    runtime = Runtime(Registry([write, alone, talk]), telemetry=telemetry)
    run(lambda: runtime.run(asked("write", "write", "talk", "alone", "nosuchtool")))
    data = reader.get_metrics_data()
    assert data is not None
    found: dict[str, float] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.data.data_points:
            amount = point.count if isinstance(point, HistogramDataPoint) else point.value  # type: ignore[union-attr]
            found[metric.name] = found.get(metric.name, 0) + amount
            if dict(point.attributes or {}) == {"gen_ai.tool.name": "write", "toolrt.outcome": "ok"}:
                assert amount == 2
    expected = {}
    for name, numbers in counts.snapshot().items():
        expected[name] = sum(number["count"] for number in numbers)
    assert found == expected
    assert found["toolrt.calls"] == 5
    assert telemetry.failures == (0, 0)


def test_without_a_provider_nothing_is_kept_and_nothing_fails() -> None:
    """The API alone: no span records, and tools see one as current all the same."""
    telemetry = Telemetry(OtelSpans(), OtelMetrics())
    runtime = Runtime(Registry([write]), telemetry=telemetry)
    in_production(lambda: runtime.run(asked("write", "write")))
    assert telemetry.failures == (0, 0)


@pytest.mark.parametrize("sink", [OtelSpans, OtelMetrics])
def test_missing_package_is_named_with_its_extra(sink: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sink is made, not where the first batch runs."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtra, match=r"toolrt\[otel\]"):
        sink()


@pytest.mark.process
def test_package_is_imported_by_who_wants_it_alone() -> None:
    """Neither toolrt nor its telemetry imports OpenTelemetry."""
    program = "import sys, toolrt, toolrt.plugins.otel; sys.exit('opentelemetry' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)

"""The still pictures: the same bytes for the same trace, in the form that each reader expects."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.view import _traces as traces
from toolrt import sim, view
from toolrt.errors import DefinitionRefused
from toolrt.trace import Access, Step, Trace

GOLDEN = Path(__file__).parent / "golden"

PICTURES: dict[str, Callable[[], str]] = {
    "batch.txt": lambda: view.text(traces.recorded("batch")),
    "batch-time-60.txt": lambda: view.text(traces.recorded("batch"), scale="time", width=60),
    "batch-tasks.txt": lambda: view.text(traces.recorded("batch"), by="tasks", width=200),
    "batch-tasks-40.txt": lambda: view.text(traces.recorded("batch"), by="tasks", width=40),
    "lost.txt": lambda: view.text(traces.recorded("lost")),
    "batch-lanes.txt": lambda: view.lanes(traces.recorded("batch")),
    "batch-lanes-40.txt": lambda: view.lanes(traces.recorded("batch"), width=40),
    "batch.svg": lambda: view.svg(traces.recorded("batch"), title="Six calls"),
    "lost.svg": lambda: view.svg(traces.recorded("lost"), title="A lost update"),
    "batch.mmd": lambda: view.mermaid(traces.recorded("batch")),
    "lost.mmd": lambda: view.mermaid(traces.recorded("lost")),
    "batch.chrome.json": lambda: view.chrome(traces.recorded("batch")) + "\n",
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_as_it_was(name: str) -> None:
    """Each picture of a trace that is kept is, byte for byte, the one that is kept (TOOLRT_RENEW=1 keeps a new one)."""
    drawn = PICTURES[name]()
    if os.environ.get("TOOLRT_RENEW"):
        (GOLDEN / name).write_text(drawn, encoding="utf-8")
    assert drawn == (GOLDEN / name).read_text(encoding="utf-8")


def test_pictures_of_a_failure_say_what_its_story_says() -> None:
    """They come from the execution made again, with the plain objects seen; the reader need not ask for details."""

    async def program() -> int:
        stock = {"tea": 0}

        async def add() -> None:
            seen = stock["tea"]
            await trio.lowlevel.checkpoint()
            stock["tea"] = seen + 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add)
            nursery.start_soon(add)
        return stock["tea"]

    failure = sim.explore(program, sim.DPOR(), lambda execution: execution.value == 2, track=True).failures[0]
    untracked = sim.explore(program, None, lambda execution: execution.value == 2, 50).failures[0]
    for one in (failure, untracked, failure.execution):
        drawn = view.text(one)
        assert "reads stock['tea'] = 0" in drawn
        assert "writes stock['tea'] 1 -> 1" in drawn
        assert "stock['tea'] 1 -&gt; 1" in html.unescape(view.svg(one)).replace("->", "-&gt;")
        assert "stock['tea'] 1 -> 1" in view.chrome(one)
        assert "stock[#39;tea#39;]" in view.mermaid(one)


def test_svg_is_a_picture_in_a_notebook() -> None:
    """As an image with a name: its style stays in it, and a title of a user's cannot break out."""
    drawn = view.svg(traces.recorded("batch"), title='six "calls" <b>')
    shown = drawn._repr_html_()
    assert shown.startswith('<img alt="six &quot;calls&quot; &lt;b&gt;" src="data:image/svg+xml;base64,')
    assert base64.b64decode(shown.split("base64,")[1].removesuffix('">')) == drawn.encode()


def test_lanes_show_what_each_lane_gave() -> None:
    """The calls of a lane, its progress, its results and its modifiers in call order, in a line each."""

    @toolrt.tool(safe=True, schema=None)
    async def ask(ctx: toolrt.ToolContext, seconds: float) -> toolrt.ToolOutput:
        ctx.progress("asking")
        await trio.sleep(seconds)
        return toolrt.ToolOutput("ok", modifiers=[lambda state: state.set("last", seconds), lambda state: 1 / 0])

    @toolrt.tool(schema=None)
    async def alone(ctx: toolrt.ToolContext) -> None:
        """Give nothing."""

    async def program() -> None:
        calls = [toolrt.ToolCall(name, "ask", {"seconds": seconds}) for name, seconds in (("a", 2), ("b", 1))]
        await toolrt.Runtime(toolrt.Registry([ask, alone])).run([*calls, toolrt.ToolCall("c", "alone")])

    drawn = view.lanes(sim.run(program), width=160)
    assert "+-- progress updates: 1 from [0], 1 from [1]\n" in drawn
    assert "+-- final results: [0] ok, [1] ok\n" in drawn
    assert "merged at 2 s: [0].0, [0].1 raised, [1].0, [1].1 raised\n" in drawn
    assert "lane 1, exclusive" in drawn


def test_lanes_of_a_batch_that_was_cut_off_say_so() -> None:
    """A lane that never merged is shown as that, and a call without a result, too."""
    recorded = traces.recorded("batch")
    ran = next(event.seq for event in recorded.events if event.kind == "call.started")
    drawn = view.lanes(
        Trace([(None, e.time, e.task, e.kind, e.fields) for e in recorded.events[: ran + 1]], (), {}), width=160
    )
    assert "[0] no result, [1] no result, [2] no result" in drawn
    assert "queued modifiers: the lane did not end" in drawn


# ---------------------------------------------------------------------- what can be drawn

_DRAWN: list[Callable[..., str]] = [view.text, view.lanes, view.svg, view.chrome, view.mermaid]


@pytest.mark.parametrize("draw", [*_DRAWN, view.show])
def test_what_has_no_trace_is_refused(draw: Callable[..., Any]) -> None:
    """Every picture wants a trace, or what has one."""
    with pytest.raises(DefinitionRefused, match="a Trace, or what has one"):
        draw("execution")


@pytest.mark.parametrize("draw", _DRAWN)
@pytest.mark.parametrize("name", ["batch", "lost", "live", "empty", "large"])
def test_every_picture_can_be_drawn(draw: Callable[..., str], name: str) -> None:
    """Of a batch, of a plain program, of what just ran, of nothing at all, of a thousand events."""
    trace = {"live": traces.live_batch, "empty": Trace, "large": lambda: traces.large(100)}.get(
        name, lambda: traces.recorded(name)
    )()
    assert draw(trace) == draw(Trace.from_json(trace.to_json()))


def test_execution_and_failure_are_drawn_like_their_traces() -> None:
    """Whatever has a trace may be given for it: a failure for the one that is made again with lines and values."""
    report = sim.explore(traces.lost_update, sim.Exhaustive(), lambda execution: execution.value == 2)
    failure = report.failures[0]
    assert view.text(failure) == view.text(failure.execution) == view.text(failure.detailed())
    execution = sim.run(traces.lost_update)
    assert view.text(execution) == view.text(execution.trace)


@pytest.mark.parametrize("draw", [view.text, view.svg, view.mermaid])
def test_calls_of_a_trace_without_any_are_refused(draw: Callable[..., str]) -> None:
    """Asked for calls where there are none, a picture says what there is instead."""
    with pytest.raises(DefinitionRefused, match="has no calls"):
        draw(traces.recorded("lost"), by="calls")
    with pytest.raises(DefinitionRefused, match='"calls", "tasks" or None'):
        draw(traces.recorded("lost"), by="lanes")


@pytest.mark.parametrize("draw", [view.text, view.svg])
def test_unknown_scale_is_refused(draw: Callable[..., str]) -> None:
    """A scale is one of two."""
    with pytest.raises(DefinitionRefused, match='"order" or "time"'):
        draw(traces.recorded("batch"), scale="seconds")


# ---------------------------------------------------------------------- hostile traces

_TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["</svg><script>", "]]>", '"', "a\nb", "\x1b[31m", "\ud800", "\u2028", "#;%%", "{}", "x" * 5_000]),
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=4,
)
_KINDS = ["batch.opened", "call.submitted", "lane.started", "ticket.taken", "call.started", "progress.sent"]
_KINDS += ["file.read", "file.mutation_ended", "call.settled", "call.ended", "result.delivered", "lane.merged"]
_KEYS = st.sampled_from(
    ["batch", "call", "lane", "limit", "claims", "outcome", "file", "ok", "number", "state", "name", "input"]
)


@st.composite
def _odd_traces(draw: st.DrawFn) -> Trace:
    steps = []
    for index in range(draw(st.integers(0, 3))):
        task = draw(_TEXTS)
        accesses = (Access((draw(_TEXTS), draw(st.integers(0, 2))), draw(st.booleans())),)
        steps.append(Step(index, task, (task,), 0, accesses, 0.0, tuple(range(index))))
    events = []
    for number in range(draw(st.integers(0, 8))):
        fields = {"batch": draw(st.sampled_from(["b", "c"])), "call": draw(st.integers(0, 2)), "lane": 0}
        fields |= draw(st.dictionaries(_KEYS, _JSON, max_size=3))
        step = draw(st.sampled_from(range(len(steps)))) if steps and draw(st.booleans()) else None
        kind = draw(st.sampled_from(_KINDS) | _TEXTS)
        events.append((step, float(number), draw(_TEXTS), kind, fields))
    return Trace(events, steps, {"ended": draw(_TEXTS)}, {"details": draw(_JSON)})


@given(trace=_odd_traces())
def test_trace_from_elsewhere_is_drawn_whatever_is_in_it(trace: Trace) -> None:
    """No trace breaks a picture, or gets out of the form that it is drawn in."""
    ElementTree.fromstring(view.svg(trace, title="\ud800<"))
    json.loads(view.chrome(trace))
    for line in view.mermaid(trace).splitlines()[1:]:
        assert re.fullmatch(r"    (participant \w+( as .*)?|note over \w+: .*|\w+(->>|-->>|-\))\w+: .*)", line), line
    for line in view.text(trace).split("\n"):
        assert all(each.isprintable() or unicodedata.category(each) == "Zs" for each in line)
    page = view.show(trace, trace, title="\ud800").html
    page.encode()
    assert page.count("</script>") == 2


# ---------------------------------------------------------------------- Chrome's trace events

_SCHEMA = {
    "type": "object",
    "required": ["traceEvents", "displayTimeUnit"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["ph", "pid", "tid"],
                "properties": {
                    "ph": {"enum": ["B", "E", "M", "C", "i", "s", "f"]},
                    "ts": {"type": "number", "minimum": 0},
                    "pid": {"type": "integer"},
                    "tid": {"type": "integer"},
                    "name": {"type": "string"},
                    "args": {"type": "object"},
                },
                "allOf": [
                    {"if": {"properties": {"ph": {"const": "M"}}}, "else": {"required": ["ts"]}},
                    {"if": {"properties": {"ph": {"const": "E"}}}, "else": {"required": ["name"]}},
                    {"if": {"properties": {"ph": {"enum": ["s", "f"]}}}, "then": {"required": ["id", "cat"]}},
                    {
                        "if": {"properties": {"ph": {"const": "i"}}},
                        "then": {"properties": {"s": {"enum": ["g", "p", "t"]}}},
                    },
                    {
                        "if": {"properties": {"ph": {"const": "C"}}},
                        "then": {"properties": {"args": {"additionalProperties": {"type": "number", "minimum": 0}}}},
                    },
                ],
            },
        },
    },
}


@pytest.mark.parametrize("name", ["batch", "lost", "large"])
def test_chrome_events_are_of_the_format(name: str) -> None:
    """Each event has what its phase asks for; time never goes back; on each thread, ends match begins."""
    trace = traces.large(50) if name == "large" else traces.recorded(name)
    document = json.loads(view.chrome(trace))
    jsonschema_rs.validator_for(_SCHEMA).validate(document)
    events = [event for event in document["traceEvents"] if event["ph"] != "M"]
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    begun: dict[tuple[int, int], int] = {}
    slices = 0
    for event in events:
        thread = event["pid"], event["tid"]
        if event["ph"] == "B":
            begun[thread] = begun.get(thread, 0) + 1
            slices += 1
        if event["ph"] == "E":
            begun[thread] -= 1
            assert begun[thread] >= 0
    assert slices
    assert set(begun.values()) == {0}


def test_chrome_arrows_begin_and_end_in_slices() -> None:
    """An arrow has both ends, in order, each while a slice of its thread lasts: viewers drop it otherwise."""
    events = json.loads(view.chrome(traces.recorded("lost")))["traceEvents"]
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts
    assert starts.keys() == ends.keys()
    for arrow in (*starts.values(), *ends.values()):
        mine = [event for event in events if event.get("tid") == arrow["tid"] and event["ph"] in "BE"]
        assert sum({"B": 1, "E": -1}[event["ph"]] for event in mine if event["ts"] <= arrow["ts"]) == 1
    assert all(starts[arrow]["ts"] < ends[arrow]["ts"] for arrow in starts)


def test_chrome_time_of_a_recording_is_its_own() -> None:
    """A recording's seconds become microseconds, from its first event on."""
    trace = traces.large(10)
    events = json.loads(view.chrome(trace))["traceEvents"]
    last = max(event["ts"] for event in events if "ts" in event)
    assert last == pytest.approx((trace.events[-1].time - trace.events[0].time) * 1e6)


# ---------------------------------------------------------------------- Mermaid


def test_mermaid_says_how_much_it_leaves_out() -> None:
    """A diagram that nobody could read is cut."""
    text = view.mermaid(traces.large(400))
    assert len(text.splitlines()) < 2_000
    assert re.search(r"note over reader: [\d,]+ more messages are not shown", text)


def test_svg_says_how_much_it_leaves_out() -> None:
    """A picture has at most a thousand rows, whatever they are."""
    assert "more calls are not shown" in view.svg(traces.large(1_100))
    assert "more are not shown" in view.svg(traces.large(1_100), by="tasks")

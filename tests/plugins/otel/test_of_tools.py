"""What tools tell an observer of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

import pytest
import trio

import toolrt
from tests.plugins.otel._observed import Keeper, wrong_with
from tests.plugins.otel._observed_batches import REGISTRY, run, told
from toolrt import MemoryDisk, Registry, Runtime, Services, ToolCall, ToolContext, Workspace
from toolrt.model import SILENT


def test_tool_tells_events_and_spans_of_its_own() -> None:
    """With their call, their name, and their place among the spans that are open."""

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        with ctx.telemetry.span("outer", {"files": 2}):
            ctx.telemetry.event("missed", {"path": "a.py", "odd": ["x"], "n": 1.5, "none": None})
            with ctx.telemetry.span("inner"):
                pass
        ctx.telemetry.event("done")

    keeper = told(("work", {}), tools=[work])
    own = [
        (kind, fields["name"], fields.get("span"), fields.get("parent"), fields.get("fields"))
        for kind, fields in keeper.told
        if kind.startswith(("span", "tool"))
    ]
    assert own == [
        ("span.began", "outer", 0, None, {"files": 2}),
        ("tool.event", "missed", 0, None, {"path": "a.py", "odd": "list", "n": 1.5, "none": None}),
        ("span.began", "inner", 1, 0, {}),
        ("span.ended", "inner", 1, None, None),
        ("span.ended", "outer", 0, None, None),
        ("tool.event", "done", None, None, {}),
    ]


def test_span_that_is_left_by_an_exception_says_its_type() -> None:
    """And lets it through."""

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        with ctx.telemetry.span("outer"):
            raise KeyError("secret")

    keeper = Keeper()
    outcome = run(Runtime(Registry([work]), telemetry=keeper), ("work", {}))
    assert outcome.results[0].error == "KeyError: 'secret'"
    assert [(fields["error"], fields["left_open"]) for fields in keeper.of("span.ended")] == [("KeyError", False)]


def test_span_that_is_open_when_its_call_ends_ends_with_it() -> None:
    """And what a tool tells after that is not told: nothing is told of a call that has ended."""
    kept: list[Any] = []

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        span = ctx.telemetry.span("open")
        span.__enter__()
        kept.extend([ctx, span])

    keeper = told(("work", {}), tools=[work])
    before = len(keeper.told)
    ctx, span = kept
    span.__exit__(None, None, None)
    ctx.telemetry.event("late")
    with ctx.telemetry.span("late"):
        pass
    assert len(keeper.told) == before
    assert [fields["left_open"] for fields in keeper.of("span.ended")] == [True]
    assert wrong_with(keeper.told) == []


def test_nothing_is_told_of_a_call_that_has_ended_while_its_batch_goes_on() -> None:
    """Also where somebody else has kept its context."""
    kept: list[ToolContext] = []

    @toolrt.tool
    async def first(ctx: ToolContext) -> None:
        kept.append(ctx)

    @toolrt.tool
    async def second(ctx: ToolContext) -> None:
        kept[0].telemetry.event("late")
        with kept[0].telemetry.span("late"):
            ctx.telemetry.event("in time")

    keeper = told(("first", {}), ("second", {}), tools=[first, second])
    assert [(fields["call"], fields["name"]) for fields in keeper.of("tool.event", "span.began")] == [(1, "in time")]
    assert wrong_with(keeper.told) == []


@pytest.mark.parametrize(
    "fields", [None, {}, 7, "text", [("a", 1)], {1: 2}, {"a": object()}, {str(n): n for n in range(1000)}]
)
def test_tool_may_tell_anything(fields: Any) -> None:
    """What no field can be is told by its type; nothing raises, and nothing is boundless."""

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        ctx.telemetry.event(fields, fields)
        with ctx.telemetry.span(fields, fields):
            pass

    keeper = Keeper()
    outcome = run(Runtime(Registry([work]), telemetry=keeper), ("work", {}))
    assert outcome.results[0].ok
    assert all(len(told["fields"]) <= 32 for told in keeper.of("tool.event", "span.began"))
    assert wrong_with(keeper.told) == []


def test_worker_threads_tell_too() -> None:
    """A sync tool's thread: in order, with its call, one thing at a time."""
    together = threading.Barrier(2, timeout=60)

    @toolrt.tool(safe=True)
    def work(ctx: ToolContext) -> None:
        together.wait()
        for _ in range(100):
            with ctx.telemetry.span("outer"), ctx.telemetry.span("inner"):
                ctx.telemetry.event("here")

    keeper = Keeper()
    outcome = trio.run(
        Runtime(Registry([work]), telemetry=keeper).run, [ToolCall("a", "work", {}), ToolCall("b", "work", {})]
    )
    assert all(result.ok for result in outcome.results)
    assert wrong_with(keeper.told) == []
    assert all(
        fields["parent"] == (fields["span"] - 1 if fields["span"] % 2 else None) for fields in keeper.of("span.began")
    )
    assert len(keeper.of("tool.event")) == 200


def test_observer_is_told_one_thing_at_a_time() -> None:
    """Whatever tools' threads tell meanwhile."""
    overlaps = []

    class Alone:
        inside = 0

        def event(self, kind: str, fields: Mapping[str, Any]) -> None:
            self.inside += 1
            os.sched_yield()
            if self.inside != 1:
                overlaps.append(kind)
            self.inside -= 1

    @toolrt.tool(safe=True)
    def talk(ctx: ToolContext) -> None:
        for _ in range(300):
            ctx.telemetry.event("here")

    @toolrt.tool(safe=True)
    async def pause(ctx: ToolContext) -> None:
        await trio.lowlevel.checkpoint()

    runtime = Runtime(Registry([talk, pause]), telemetry=Alone())
    calls = [ToolCall(f"c{index}", "pause" if index % 50 else "talk", {}) for index in range(300)]
    trio.run(runtime.run, calls)
    assert overlaps == []


def test_file_tools_tell_which_files_changed() -> None:
    """By paths relative to the workspace, and without anybody asking for events."""
    keeper = Keeper()
    workspace = Workspace(MemoryDisk({"src/a.py": "one\n"}))
    runtime = Runtime(Registry(workspace.tools()), telemetry=keeper)
    outcome = run(
        runtime,
        ("read_file", {"path": "src/a.py"}),
        ("edit_file", {"path": "src/a.py", "old": "one", "new": "two"}),
        ("write_file", {"path": "b.txt", "content": "x"}),
    )
    assert [result.ok for result in outcome.results] == [True] * 3
    changed = [(fields["call"], fields["path"], fields["change"]) for fields in keeper.of("file.changed")]
    assert sorted(changed) == [(1, "src/a.py", "modified"), (2, "b.txt", "created")]


def test_event_of_a_kind_of_ones_own_is_told_by_its_type() -> None:
    """What it holds is content."""

    class Odd(toolrt.Event):
        pass

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        ctx.emit(Odd())
        ctx.emit("no event")  # type: ignore[arg-type]

    keeper = told(("work", {}), tools=[work])
    assert [fields["type"] for fields in keeper.of("event.emitted")] == ["Odd", "str"]


def test_service_that_fails_between_lanes_is_told_without_its_text() -> None:
    """Its name, and the type of what it raised."""

    def follow(changes: toolrt.LaneChanges) -> None:
        raise OSError("/home/me/secret")

    keeper = Keeper()
    services = Services(after_lane=[follow], telemetry=keeper)
    run(Runtime(REGISTRY, services=services), ("alone", {}))
    assert [fields["error"] for fields in keeper.of("service.failed")] == ["OSError"]
    assert "secret" not in str(keeper.told)


async def test_tool_outside_a_batch_tells_too() -> None:
    """Under the session's name; where nobody observes, it may tell all the same."""
    keeper = Keeper()
    ctx = ToolContext.standalone(".", session_id="mine", telemetry=keeper)
    with ctx.telemetry.span("block"):
        ctx.telemetry.event("here")
    assert [(kind, fields["batch"], fields["name"]) for kind, fields in keeper.told] == [
        ("span.began", "mine", "block"),
        ("tool.event", "mine", "here"),
        ("span.ended", "mine", "block"),
    ]
    silent = ToolContext.standalone(".").telemetry
    assert silent is SILENT
    with silent.span("block"):
        silent.event("here")


def test_isolated_part_of_a_call_tells_as_its_call() -> None:
    """It has a working directory and budgets of its own, and the same telemetry."""

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        with ctx.telemetry.span("outer"):
            ctx.isolate(working_dir="src").telemetry.event("here")

    keeper = told(("work", {}), tools=[work])
    assert [(fields["call"], fields["span"]) for fields in keeper.of("tool.event")] == [(0, 0)]


def test_telemetry_is_there_where_nobody_observes() -> None:
    """It does nothing."""

    @toolrt.tool
    async def work(ctx: ToolContext) -> bool:
        with ctx.telemetry.span("block", {"a": 1}):
            ctx.telemetry.event("here", {"a": 1})
        return ctx.telemetry is SILENT

    assert run(Runtime(Registry([work])), ("work", {})).results[0].content is True

"""What an observer of a runtime is told, in production, and what becomes of one that misbehaves."""

from __future__ import annotations

import gc
import re
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from _observed import Keeper, wrong_with
from trio.testing import MockClock

import toolrt
from toolrt import WRITE, Claim, MemoryDisk, Registry, Runtime, Services, ToolCall, ToolContext, Workspace, sim
from toolrt.errors import DefinitionRefused, ObserverWarning
from toolrt.invariants.workloads import WORKLOADS
from toolrt.model import SILENT
from toolrt.services.telemetry import Counts, Telemetry


@toolrt.tool(safe=True)
async def sleep(ctx: ToolContext, seconds: float = 1.0) -> str:
    await trio.sleep(seconds)
    return "slept"


@toolrt.tool(claims=[Claim("file", WRITE)])
async def write(ctx: ToolContext, seconds: float = 1.0) -> bytes:
    await trio.sleep(seconds)
    return b"12345"


@toolrt.tool
async def alone(ctx: ToolContext) -> dict[str, int]:
    return {"a": 1}


@toolrt.tool(safe=True)
async def broken(ctx: ToolContext) -> None:
    raise LookupError("nothing there")


REGISTRY = Registry([sleep, write, alone, broken])


def run(runtime: Runtime, *calls: tuple[str, dict[str, Any]]) -> toolrt.BatchOutcome:
    """Run the calls in a clock that jumps."""
    asked = [ToolCall(f"c{index}", name, input) for index, (name, input) in enumerate(calls)]
    return trio.run(runtime.run, asked, clock=MockClock(autojump_threshold=0))


def in_short(told: list[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Kind, call or lane, and what a wait is for."""
    words = [(kind, fields.get("call", fields.get("lane")), fields.get("why")) for kind, fields in told]
    return [" ".join(str(word) for word in one if word is not None) for one in words]


def test_batch_is_told_from_its_opening_to_its_end() -> None:
    """Each thing when it happens: lanes, calls and waits in between."""
    keeper = Keeper()
    run(Runtime(REGISTRY, telemetry=keeper), ("write", {}), ("write", {}), ("alone", {}), ("nosuchtool", {}))
    assert in_short(keeper.told) == [
        "batch.opened",
        "call.submitted 0",
        "call.submitted 1",
        "call.submitted 2",
        "wait.began 2 lane",
        "call.submitted 3",
        "call.settled 3",
        "lane.began 0",
        "call.joined 0",
        "call.joined 1",
        "wait.began 1 claims",
        "call.started 0",
        "call.settled 0",
        "call.ended 0",
        "wait.ended 1 claims",
        "call.started 1",
        "call.settled 1",
        "call.ended 1",
        "state.merged 0",
        "lane.ended 0",
        "lane.began 1",
        "wait.ended 2 lane",
        "call.joined 2",
        "call.started 2",
        "call.settled 2",
        "call.ended 2",
        "state.merged 1",
        "lane.ended 1",
        "batch.ended",
    ]
    assert wrong_with(keeper.told) == []


def test_sizes_and_types_are_told_and_no_content() -> None:
    """Of what a tool gave: how much it is. Of what it raised: its type, and how long the text is."""
    keeper = Keeper()
    run(Runtime(REGISTRY, telemetry=keeper), ("sleep", {}), ("write", {}), ("broken", {}), ("alone", {}))
    settled = {fields["call"]: fields for fields in keeper.of("call.settled")}
    shown = [
        [settled[call][name] for name in ("outcome", "content", "size", "error", "error_size")] for call in range(4)
    ]
    assert shown == [
        ["ok", "text", 5, None, None],
        ["ok", "bytes", 5, None, None],
        ["error", None, None, "LookupError", len("LookupError: nothing there")],
        ["ok", "mapping", 1, None, None],
    ]


def test_content_that_does_not_know_its_size_fails_no_call() -> None:
    """Its type is told."""

    class Odd(dict[str, int]):
        def __len__(self) -> int:
            raise ValueError("how should I know")

    @toolrt.tool
    async def work(ctx: ToolContext) -> Odd:
        return Odd()

    keeper = Keeper()
    assert run(Runtime(Registry([work]), telemetry=keeper), ("work", {})).results[0].ok
    assert [(fields["content"], fields["size"]) for fields in keeper.of("call.settled")] == [("Odd", None)]


def test_name_of_a_tool_that_is_not_there_is_not_told() -> None:
    """The model made it up: it may be anything."""
    keeper = Keeper()
    run(Runtime(REGISTRY, telemetry=keeper), ("my password is 123", {}))
    assert keeper.of("call.submitted")[0]["tool"] is None
    assert "password" not in str(keeper.told)


def test_wait_names_whom_it_is_for() -> None:
    """By call_index, or by batch and call_index where it is another batch's."""
    keeper = Keeper()
    runtime = Runtime(REGISTRY, telemetry=keeper)

    async def two() -> None:
        async with trio.open_nursery() as nursery, runtime.open_batch(batch_id="first") as first:
            first.submit(ToolCall("a", "write", {}))
            first.submit(ToolCall("b", "write", {}))
            await trio.sleep(0.5)
            nursery.start_soon(runtime.run, [ToolCall("c", "write", {})])
            await trio.testing.wait_all_tasks_blocked()
            first.seal()

    trio.run(two, clock=MockClock(autojump_threshold=0))
    assert [fields["blocked_by"] for fields in keeper.of("wait.began")] == [[0], ["first#1"]]


def test_waiting_for_a_slot_is_told() -> None:
    """From the instant in which nothing else is missing until one is free; who gets one at once never waits."""
    keeper = Keeper()
    run(Runtime(REGISTRY, limit=2, telemetry=keeper), *[("sleep", {"seconds": 1 + index}) for index in range(4)])
    began = keeper.of("batch.opened")[0]["time"]
    waits = [
        (kind, fields["call"], fields["why"], round((fields["time"] - began) / 1e9))
        for kind, fields in keeper.told
        if kind.startswith("wait")
    ]
    assert waits == [
        ("wait.began", 2, "slot", 0),
        ("wait.began", 3, "slot", 0),
        ("wait.ended", 2, "slot", 1),
        ("wait.ended", 3, "slot", 2),
    ]


def test_call_that_takes_over_a_slot_does_not_wait_for_one() -> None:
    """The slot of whom it waited for is free in the same instant."""
    keeper = Keeper()
    run(Runtime(REGISTRY, limit=1, telemetry=keeper), ("write", {}), ("write", {}))
    assert [fields["why"] for fields in keeper.of("wait.began")] == ["claims"]


def test_waiting_for_approval_is_told_where_it_takes_time() -> None:
    """With its answer; a check that answers at once makes nobody wait."""

    async def slow(request: toolrt.ApprovalRequest) -> toolrt.Deny:
        await trio.sleep(2)
        return toolrt.Deny("no")

    keeper = Keeper()
    run(Runtime(REGISTRY, approve=slow, telemetry=keeper), ("sleep", {}))
    run(Runtime(REGISTRY, approve=lambda _: toolrt.Allow(), telemetry=keeper), ("sleep", {}))
    assert [fields["why"] for fields in keeper.of("wait.began")] == ["approval"]
    assert [fields["answer"] for fields in keeper.of("approval.answered")] == ["deny", "allow"]


def test_late_lane_is_waited_for_only_while_another_one_runs() -> None:
    """A call whose lane is the next one to run does not wait for it."""
    keeper = Keeper()

    async def streamed() -> None:
        async with Runtime(REGISTRY, telemetry=keeper).open_batch() as batch:
            batch.submit(ToolCall("a", "alone", {}))
            await trio.testing.wait_all_tasks_blocked()
            batch.submit(ToolCall("b", "alone", {}))
            await trio.testing.wait_all_tasks_blocked()
            batch.submit(ToolCall("c", "sleep", {}))
            await trio.testing.wait_all_tasks_blocked()
            batch.submit(ToolCall("d", "alone", {}))

    trio.run(streamed, clock=MockClock(autojump_threshold=0))
    assert [(fields["call"], fields["why"]) for fields in keeper.of("wait.began")] == [(3, "lane")]


def test_progress_is_counted_when_the_batch_is_over() -> None:
    """How many messages were sent, and how many nobody read."""

    @toolrt.tool(safe=True)
    async def talk(ctx: ToolContext) -> None:
        for _ in range(3):
            ctx.progress("secret")

    keeper = Keeper()
    run(Runtime(Registry([talk, sleep]), telemetry=keeper), ("talk", {}), ("sleep", {}))
    assert [(fields["call"], fields["sent"], fields["dropped"]) for fields in keeper.of("progress.counted")] == [
        (0, 3, 3)
    ]


def test_sub_batch_is_told_inside_its_call() -> None:
    """By the number of its parent's batch and its call; it ends before that call does."""

    @toolrt.tool
    async def many(ctx: ToolContext) -> int:
        return len((await ctx.run([ToolCall("x", "sleep", {}), ToolCall("y", "write", {})])).results)

    keeper = Keeper()
    run(Runtime(Registry([many, sleep, write]), telemetry=keeper), ("sleep", {}), ("many", {}))
    above = [fields["parent"] for fields in keeper.of("batch.opened")]
    assert above == [None, {"batch": "batch-1", "number": 1, "call": 1}]
    assert wrong_with(keeper.told) == []


def test_batch_of_another_runtime_inside_a_tool_has_the_call_above_it() -> None:
    """Where both are told to one observer; else it has nobody above."""
    keeper, other = Keeper(), Keeper()
    inner = [Runtime(Registry([sleep]), telemetry=keeper), Runtime(Registry([sleep]), telemetry=other)]

    @toolrt.tool
    async def outside(ctx: ToolContext) -> None:
        for runtime in inner:
            await runtime.run([ToolCall("x", "sleep", {})])

    run(Runtime(Registry([outside]), telemetry=keeper), ("outside", {}))
    assert [fields["parent"] for fields in keeper.of("batch.opened")][1] == {"batch": "batch-1", "number": 1, "call": 0}
    assert [fields["parent"] for fields in other.of("batch.opened")] == [None]


def test_batches_of_two_runtimes_have_numbers_of_their_own() -> None:
    """Their ids may be the same."""
    keeper = Keeper()
    for runtime in (Runtime(REGISTRY, telemetry=keeper), Runtime(REGISTRY, telemetry=keeper)):
        run(runtime, ("sleep", {}))
    assert [(fields["batch"], fields["number"]) for fields in keeper.of("batch.opened")] == [
        ("batch-1", 1),
        ("batch-1", 2),
    ]


def test_one_runtime_is_told_and_not_the_process() -> None:
    """Two runtimes at once: an observer hears of its own alone."""
    keepers = [Keeper(), Keeper()]
    runtimes = [Runtime(REGISTRY, telemetry=keepers[0]), Runtime(REGISTRY, telemetry=keepers[1]), Runtime(REGISTRY)]

    async def all_at_once() -> None:
        async with trio.open_nursery() as nursery:
            for runtime in runtimes:
                nursery.start_soon(runtime.run, [ToolCall("a", "sleep", {})])

    trio.run(all_at_once, clock=MockClock(autojump_threshold=0))
    assert [keeper.kinds().count("batch.opened") for keeper in keepers] == [1, 1]


def test_recording_and_telemetry_work_at_once() -> None:
    """Whichever begins first, and also where the recording begins or ends in the middle of a batch."""
    keeper = Keeper()
    runtime = Runtime(REGISTRY, telemetry=keeper)
    calls = [ToolCall("a", "write", {}), ToolCall("b", "write", {})]

    async def recorded_in_part() -> list[str]:
        async with runtime.open_batch() as batch:
            batch.submit(calls[0])
            await trio.testing.wait_all_tasks_blocked()
            with toolrt.record() as recorder:
                batch.submit(calls[1])
            batch.seal()
        return [event.kind for event in recorder.trace().events]

    assert "call.submitted" in trio.run(recorded_in_part, clock=MockClock(autojump_threshold=0))
    assert wrong_with(keeper.told) == []
    with toolrt.record() as recorder:
        run(runtime, ("write", {}))
    assert len(recorder.trace().of_kind("batch.left")) == 1
    assert keeper.kinds().count("batch.ended") == 2


def test_simulation_has_virtual_times() -> None:
    """From 0, to the nanosecond, and a simulation inside a recording disturbs neither."""
    keeper = Keeper()
    runtime = Runtime(REGISTRY, telemetry=keeper)

    async def program() -> None:
        await trio.sleep(0.1)
        await runtime.run([ToolCall("a", "sleep", {"seconds": 0.2})])

    sim.run(program)
    assert keeper.of("batch.opened")[0]["time"] == 100_000_000
    assert keeper.of("batch.ended")[0]["time"] == 300_000_000


@pytest.fixture(scope="module")
def reference() -> dict[str, set[str]]:
    """The fields of every kind, as docs/reference/events.md lists them."""
    text = Path(__file__).parents[2].joinpath("docs", "reference", "events.md").read_text(encoding="utf-8")
    section = text[text.index("## What an observer is told") :]
    found: dict[str, set[str]] = {}
    for row in re.findall(r"^\| (`[^|]+) \| ([^|]*) \|", section, re.MULTILINE):
        kinds, fields = (re.findall(r"`([^`]+)`", cell) for cell in row)
        for kind in kinds:
            found[kind] = {name for cell in fields for name in cell.split(", ")}
    return found


def test_reference_lists_every_kind_and_field(reference: dict[str, set[str]]) -> None:
    """Of what the workloads of the laws, and what tools tell, give: no more and no less than the page says."""

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        with ctx.telemetry.span("block"):
            ctx.telemetry.event("here")
        ctx.emit(toolrt.FileChanged("a"))
        ctx.emit(toolrt.DirectoryChanged("a"))
        ctx.emit(toolrt.OutputChunk(0, "text"))
        ctx.emit(toolrt.Diagnostics("a"))
        ctx.emit(toolrt.Event())

    def follow(changes: toolrt.LaneChanges) -> None:
        raise OSError

    keeper = Keeper()
    for mix in WORKLOADS:
        sim.run(mix.program(keeper), sim.RandomWalk(1))
    run(Runtime(Registry([work]), services=Services(after_lane=[follow]), telemetry=keeper), ("work", {}))
    common = {"time", "batch", "number"}
    told: dict[str, set[str]] = {}
    for kind, fields in keeper.told:
        told.setdefault(kind, set()).update(set(fields) - common)
    for kind in ("wait.began", "wait.ended"):
        told[kind] -= {"blocked_by"}
    for kind in ("span.began", "span.ended"):
        told[kind] |= {"parent", "fields", "error", "left_open"}
    assert told == {kind: fields for kind, fields in reference.items() if "toolrt." not in kind and kind[0] != "."}


# What tools tell


def test_tool_tells_events_and_spans_of_its_own() -> None:
    """With their call, their name, and their place among the spans that are open."""

    @toolrt.tool
    async def work(ctx: ToolContext) -> None:
        with ctx.telemetry.span("outer", {"files": 2}):
            ctx.telemetry.event("missed", {"path": "a.py", "odd": ["x"], "n": 1.5, "none": None})
            with ctx.telemetry.span("inner"):
                pass
        ctx.telemetry.event("done")

    keeper = Keeper()
    run(Runtime(Registry([work]), telemetry=keeper), ("work", {}))
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

    keeper = Keeper()
    run(Runtime(Registry([work]), telemetry=keeper), ("work", {}))
    told = len(keeper.told)
    ctx, span = kept
    span.__exit__(None, None, None)
    ctx.telemetry.event("late")
    with ctx.telemetry.span("late"):
        pass
    assert len(keeper.told) == told
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

    keeper = Keeper()
    run(Runtime(Registry([first, second]), telemetry=keeper), ("first", {}), ("second", {}))
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
            time.sleep(0)  # others may run now
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

    keeper = Keeper()
    run(Runtime(Registry([work]), telemetry=keeper), ("work", {}))
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

    keeper = Keeper()
    run(Runtime(Registry([work]), telemetry=keeper), ("work", {}))
    assert [(fields["call"], fields["span"]) for fields in keeper.of("tool.event")] == [(0, 0)]


def test_telemetry_is_there_where_nobody_observes() -> None:
    """It does nothing."""

    @toolrt.tool
    async def work(ctx: ToolContext) -> bool:
        with ctx.telemetry.span("block", {"a": 1}):
            ctx.telemetry.event("here", {"a": 1})
        return ctx.telemetry is SILENT

    assert run(Runtime(Registry([work])), ("work", {})).results[0].content is True


# Observers that misbehave


class Failing:
    """Raises at every `kind`, or at everything."""

    def __init__(self, kind: str | None = None) -> None:
        self.kind = kind

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        if self.kind in (None, kind):
            raise RuntimeError("private words")


def test_observer_that_raises_is_counted_and_warned_of_once() -> None:
    """The warning says who and at what, and not the words; every call goes on."""
    observer = Failing()
    runtime = Runtime(REGISTRY, telemetry=observer)
    with pytest.warns(ObserverWarning) as caught:
        outcome = run(runtime, ("sleep", {}), ("write", {}))
    assert [result.ok for result in outcome.results] == [True, True]
    assert len(caught) == 1
    assert str(caught[0].message) == (
        "telemetry: Failing raised RuntimeError when it was told of batch.opened; no call was touched. "
        "What it raises from now on is only counted."
    )
    assert runtime.telemetry_failures == Runtime(REGISTRY, telemetry=observer).telemetry_failures > 10


def test_warning_that_is_an_error_fails_no_call() -> None:
    """Where warnings are errors: it is counted all the same."""
    runtime = Runtime(REGISTRY, telemetry=Failing())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(runtime, ("sleep", {})).results[0].ok
    assert runtime.telemetry_failures > 5


def test_sink_that_raises_keeps_nothing_from_the_others() -> None:
    """Before and behind it; each has its own count."""
    before, behind = Keeper(), Keeper()
    telemetry = Telemetry(before, Failing("call.started"), behind)
    with pytest.warns(ObserverWarning):
        run(Runtime(REGISTRY, telemetry=telemetry), ("sleep", {}), ("sleep", {}))
    assert before.told == behind.told
    assert telemetry.failures == (0, 2, 0)
    assert wrong_with(before.told) == []


def test_closing_closes_every_sink() -> None:
    """Also behind one whose closing raises; those without a close are left alone."""
    closed = []

    class Closing(Keeper):
        def close(self) -> None:
            closed.append(self)
            raise ValueError("cannot close")

    sinks = [Closing(), Keeper(), Closing()]
    with pytest.warns(ObserverWarning), Telemetry(*sinks) as telemetry:
        pass
    assert closed == [sinks[0], sinks[2]]
    assert telemetry.failures == (1, 0, 1)


def test_observer_that_cannot_be_referred_to_weakly_is_told_too() -> None:
    """And one that cannot be hashed, or says it equals another."""

    class Slotted:
        __slots__ = ("told",)
        __hash__ = None  # type: ignore[assignment]

        def __init__(self) -> None:
            self.told: list[str] = []

        def event(self, kind: str, fields: Mapping[str, Any]) -> None:
            self.told.append(kind)

        def __eq__(self, other: object) -> bool:
            return True

    observer = Slotted()
    run(Runtime(REGISTRY, telemetry=observer), ("sleep", {}))
    assert observer.told[-1] == "batch.ended"


def test_observer_is_kept_by_nobody() -> None:
    """What is kept of it goes with it."""
    from toolrt.runtime import _observer

    gc.collect()
    before = len(_observer._desks)
    keeper = Keeper()
    run(Runtime(REGISTRY, telemetry=keeper), ("sleep", {}))
    assert len(_observer._desks) == before + 1
    del keeper
    gc.collect()
    assert len(_observer._desks) == before


@pytest.mark.parametrize("telemetry", [7, "text", Counts, object()])
def test_what_is_no_observer_is_refused(telemetry: Any) -> None:
    """By the runtime, by `Services` and by `Telemetry`, before anything runs."""
    with pytest.raises(DefinitionRefused, match="event"):
        Runtime(REGISTRY, telemetry=telemetry)
    with pytest.raises(DefinitionRefused, match="event"):
        Telemetry(telemetry)


def test_telemetry_refuses_what_cannot_be() -> None:
    """A root that is none; a secret so short that it stands in everything, and the refusal does not say which."""
    with pytest.raises(DefinitionRefused, match="root"):
        Telemetry(root=7)  # type: ignore[arg-type]
    with pytest.raises(DefinitionRefused) as refused:
        Telemetry(secrets=["xyz"])
    assert "xyz" not in str(refused.value)


def test_counts_refuse_names_that_nothing_has() -> None:
    """And say which there are."""
    with pytest.raises(DefinitionRefused, match=r"toolrt\.calls"):
        Counts().count("calls")
    with pytest.raises(DefinitionRefused, match=r"toolrt\.call\.wait"):
        Counts().distribution("toolrt.calls")


def test_counts_add_up() -> None:
    """By tool, outcome and reason, with how long it took."""
    counts = Counts()
    runtime = Runtime(REGISTRY, limit=1, telemetry=Telemetry(counts))
    run(runtime, ("write", {"seconds": 2}), ("write", {"seconds": 4}), ("broken", {}), ("nosuchtool", {}))
    assert counts.count("toolrt.calls") == 4
    assert counts.count("toolrt.calls", tool="write", outcome="ok") == 2
    assert counts.count("toolrt.calls", tool="broken", outcome="error") == 1
    assert counts.count("toolrt.calls", tool="(unknown)", outcome="invalid") == 1
    duration = counts.distribution("toolrt.call.duration", tool="write")
    assert (duration.count, duration.total, duration.least, duration.most) == (2, 6.0, 2.0, 4.0)
    assert sum(duration.classes) == 2
    assert counts.distribution("toolrt.call.wait", why="claims").total == 2.0
    assert counts.distribution("toolrt.call.wait", why="approval").least is None
    assert counts.snapshot()["toolrt.batch.duration"][0]["total"] == 6.0

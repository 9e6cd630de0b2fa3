"""What an observer of a runtime is told of batches, in production."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

import toolrt
from tests.plugins.otel._observed import Keeper, wrong_with
from tests.plugins.otel._observed_batches import REGISTRY, in_short, run, sleep, told, write
from toolrt import Registry, Runtime, Services, ToolCall, ToolContext, sim
from toolrt.invariants.workloads import WORKLOADS


def test_batch_is_told_from_its_opening_to_its_end() -> None:
    """Each thing when it happens: lanes, calls and waits in between."""
    keeper = told(("write", {}), ("write", {}), ("alone", {}), ("nosuchtool", {}))
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
    keeper = told(("sleep", {}), ("write", {}), ("broken", {}), ("alone", {}))
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
    keeper = told(("my password is 123", {}))
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
    keeper = told(*[("sleep", {"seconds": 1 + index}) for index in range(4)], limit=2)
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
    keeper = told(("write", {}), ("write", {}), limit=1)
    assert [fields["why"] for fields in keeper.of("wait.began")] == ["claims"]


def test_waiting_for_approval_is_told_where_it_takes_time() -> None:
    """With its answer; a plain check is waited for, too, since it runs in a thread."""

    async def slow(request: toolrt.ApprovalRequest) -> toolrt.Deny:
        await trio.sleep(2)
        return toolrt.Deny("no")

    keeper = Keeper()
    run(Runtime(REGISTRY, approve=slow, telemetry=keeper), ("sleep", {}))
    run(Runtime(REGISTRY, approve=lambda _: toolrt.Allow(), telemetry=keeper), ("sleep", {}))
    assert [fields["why"] for fields in keeper.of("wait.began")] == ["approval", "approval"]
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

    keeper = told(("talk", {}), ("sleep", {}), tools=[talk, sleep])
    assert [(fields["call"], fields["sent"], fields["dropped"]) for fields in keeper.of("progress.counted")] == [
        (0, 3, 3)
    ]


def test_sub_batch_is_told_inside_its_call() -> None:
    """By the number of its parent's batch and its call; it ends before that call does."""

    @toolrt.tool
    async def many(ctx: ToolContext) -> int:
        return len((await ctx.run([ToolCall("x", "sleep", {}), ToolCall("y", "write", {})])).results)

    keeper = told(("sleep", {}), ("many", {}), tools=[many, sleep, write])
    above = [fields["parent"] for fields in keeper.of("batch.opened")]
    assert above == [None, {"batch": keeper.of("batch.opened")[0]["batch"], "number": 1, "call": 1}]
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
    outer, inside = keeper.of("batch.opened")
    assert inside["parent"] == {"batch": outer["batch"], "number": 1, "call": 0}
    assert [fields["parent"] for fields in other.of("batch.opened")] == [None]


def test_batches_of_two_runtimes_have_numbers_of_their_own() -> None:
    """Though their ids begin alike."""
    keeper = Keeper()
    for runtime in (Runtime(REGISTRY, telemetry=keeper), Runtime(REGISTRY, telemetry=keeper)):
        run(runtime, ("sleep", {}))
    opened = keeper.of("batch.opened")
    assert [fields["number"] for fields in opened] == [1, 2]
    assert all(fields["batch"].startswith("batch-1-") for fields in opened)


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
    text = Path(__file__).parents[3].joinpath("docs", "reference", "events.md").read_text(encoding="utf-8")
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

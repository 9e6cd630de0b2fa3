"""The second seed: a bridge page, in Japanese, on the runtime that executes tool calls.

Rules.  One test for each sentence that says what such a runtime does; the docstring quotes it in English.  Its
ToolExecutionBatch is a `Lane` here, its TrackedTool what `submit` gives, its MessageUpdate an update of the batch, and
its context the `State`.  Public names only: the inside may change, and these tests stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

import toolrt
from tests.contract._every import Overlap, calls_of, every, streamed
from toolrt import (
    MemoryDisk,
    Outcome,
    Progress,
    Registry,
    ResultReady,
    Runtime,
    State,
    StateMerged,
    Status,
    ToolCall,
    ToolContext,
    ToolOutput,
    Workspace,
    partition,
    sim,
)

LONGEST = 3


def append(key: str, what: Any) -> Callable[[State], State]:
    """A context modifier: it adds to a list that calls share."""
    return lambda state: state.set(key, (*state.get(key, ()), what))


def tools(inside: Overlap | None = None) -> Registry:
    """One safe tool and one that is not; both change the state, and the schedule chooses how long they take."""

    async def work(ctx: ToolContext, what: str) -> ToolOutput:
        if inside is not None:
            inside.enter(ctx.call_index)
        ctx.progress(f"{what} begins")
        await trio.sleep(1 + sim.choose(LONGEST))
        ctx.progress(f"{what} ends")
        if inside is not None:
            inside.leave(ctx.call_index)
        return ToolOutput(f"{what} saw {ctx.state.get('done', ())}", modifiers=[append("done", what)])

    @toolrt.tool(safe=True)
    async def look(ctx: ToolContext, what: str) -> ToolOutput:
        """Read something."""
        return await work(ctx, what)

    @toolrt.tool()
    async def change(ctx: ToolContext, what: str) -> ToolOutput:
        """Change something."""
        return await work(ctx, what)

    return Registry([look, change])


def named(text: str) -> list[ToolCall]:
    """Calls by letters: a small letter looks, a capital changes."""
    return calls_of(*[("look" if letter.islower() else "change", {"what": letter}) for letter in text])


# What a dispatch map already does


async def test_tool_has_a_schema_a_call_is_dispatched_and_its_result_comes_back(autojump_clock: Any) -> None:
    """A call is checked against its tool's schema, runs its handler, and its result has the call's id.

    Seed: "s02 rightly teaches: tool schema, dispatch map, and the way of tool_result back into the main loop."
    """

    @toolrt.tool(safe=True)
    async def add(ctx: ToolContext, one: int, other: int) -> int:
        """Add two numbers."""
        return one + other

    registry = Registry([add])
    schema = registry["add"].schema
    assert isinstance(schema, dict)
    assert schema["properties"].keys() == {"one", "other"}
    calls = calls_of(("add", {"one": 1, "other": 2}), ("add", {"one": "x", "other": 2}), ("none", {}))
    results = (await Runtime(registry).run(calls)).results
    assert [(result.call_id, result.outcome) for result in results] == [
        ("toolu_0", Outcome.OK),
        ("toolu_1", Outcome.INVALID),
        ("toolu_2", Outcome.INVALID),
    ]
    assert results[0].content == 3


# The questions of the page


def test_which_tools_may_run_in_parallel_is_decided_before_anything_runs() -> None:
    """The plan says which calls share a lane, and nothing has run.

    Seed: "Which tools can run in parallel? Which must run serially?"
    """
    lanes = partition(named("abCde"), tools(), policy=toolrt.by_safety)
    assert [(lane.safe, [call.input["what"] for call in lane.calls]) for lane in lanes] == [
        (True, ["a", "b"]),
        (False, ["C"]),
        (True, ["d", "e"]),
    ]


def test_slow_tool_shows_progress_before_its_result() -> None:
    """Each call's first message arrives while the call runs.

    Seed: "Should a slow tool give progress on its way?"
    """

    async def program() -> Any:
        async with Runtime(tools()).open_batch() as batch:
            calls = [batch.submit(call) for call in named("ab")]
            batch.seal()
            first = await anext(aiter(batch))
            assert isinstance(first, Progress)
            is_running = calls[first.call_index].status is Status.EXECUTING
        return is_running

    assert every(program) is True


def test_results_are_in_the_order_of_the_calls_whatever_finishes_first() -> None:
    """Both the stream and the outcome have them in call order.

    Seed: "Are results returned in order of completion, or in the original order?" / "Results are written back
    in a stable order."
    """

    async def program() -> Any:
        runtime = Runtime(tools())
        updates = await streamed(runtime, *named("abcD"))
        return tuple(update.result.call_index for update in updates if isinstance(update, ResultReady))

    assert every(program) == (0, 1, 2, 3)


def test_tool_execution_changes_the_shared_context_safely() -> None:
    """Calls that run side by side change the state, and no duration decides how it ends.

    Seed: "Does a tool's execution change the shared context? How are parallel changes merged safely?"
    """

    async def program() -> Any:
        return (await Runtime(tools()).run(named("abc"))).state["done"]

    assert every(program) == ("a", "b", "c")


# Concurrency safe


def test_concurrency_safe_calls_run_beside_each_other() -> None:
    """Three safe calls are inside at once; one that is not safe is alone.

    Seed: "Concurrency safe means: it may run at the same time as others of its kind without harm to shared
    state."
    """

    async def program() -> tuple[int, int]:
        together, alone = Overlap(), Overlap()
        await Runtime(tools(together), lanes=toolrt.by_safety).run(named("abc"))
        await Runtime(tools(alone), lanes=toolrt.by_safety).run(named("ABC"))
        return together.most, alone.most

    assert every(program) == (3, 1)


def test_read_only_tools_are_safe_and_writing_ones_are_not() -> None:
    """By safety reads share a lane, and each write has one of its own.

    Seed: "Read-only tools are often safe: read_file, search tools. Tools that write often are not: write_file,
    edit_file, tools that change shared app state."
    """
    registry = Registry(Workspace(MemoryDisk({"a.txt": "x"})).tools())
    calls = calls_of(
        ("read_file", {"path": "a.txt"}),
        ("search", {"pattern": "x"}),
        ("write_file", {"path": "b.txt", "content": ""}),
        ("edit_file", {"path": "a.txt", "old": "x", "new": "y"}),
    )
    lanes = partition(calls, registry, policy=toolrt.by_safety)
    assert [(lane.safe, len(lane.calls)) for lane in lanes] == [(True, 2), (False, 1), (False, 1)]


def test_safety_may_depend_on_the_input() -> None:
    """`safe` is asked with the call's input, and a tool whose `safe` raises is not safe.

    Seed: "Step 1: is_concurrency_safe(tool_name, tool_input) -> bool"
    """

    @toolrt.tool(safe=lambda input: {"GET": True, "POST": False}[input["method"]])
    async def request(ctx: ToolContext, method: str) -> None:
        """Ask a server."""

    calls = calls_of(*[("request", {"method": method}) for method in ("GET", "GET", "POST", "PUT", "GET")])
    lanes = partition(calls, Registry([request]), policy=toolrt.by_safety)
    assert [(lane.safe, len(lane.calls)) for lane in lanes] == [(True, 2), (False, 1), (False, 1), (True, 1)]


# Progress message


def test_progress_says_what_a_tool_does_now() -> None:
    """Messages of a call arrive in order, before its result, and name the call.

    Seed: "A progress message is an update that shows upstream what a tool is doing now, though it has not
    ended."
    """

    async def program() -> Any:
        updates = await streamed(Runtime(tools()), *named("ab"))
        told: dict[int, list[Any]] = {0: [], 1: []}
        for update in updates:
            if isinstance(update, Progress):
                assert update.call_id == f"toolu_{update.call_index}"
                told[update.call_index].append(update.message)
            elif isinstance(update, ResultReady):
                told[update.result.call_index].append("result")
        return tuple(map(tuple, told.values()))

    assert every(program) == (("a begins", "a ends", "result"), ("b begins", "b ends", "result"))


# Context modifiers


def test_context_modifier_changes_more_than_the_text() -> None:
    """A tool changes a queue of notifications, the status of jobs, and a setting, beside its text result.

    Seed: "Some tools change the shared runtime context beside their text result: they update the notification
    queue, the status of running tools, app state."
    """

    @toolrt.tool(safe=True)
    async def start(ctx: ToolContext, job: str) -> ToolOutput:
        """Start a job."""
        await trio.sleep(1 + sim.choose(LONGEST))
        return ToolOutput(
            f"{job} runs",
            modifiers=[
                append("notifications", f"{job} was started"),
                lambda state: state.set("jobs", {**state.get("jobs", {}), job: "running"}),
                lambda state: state.set("mode", f"watch {job}"),
            ],
        )

    async def program() -> str:
        calls = calls_of(*[("start", {"job": job}) for job in ("build", "test")])
        done = await Runtime(Registry([start])).run(calls, State({"mode": "ask"}))
        keys = ("notifications", "jobs", "mode")
        return repr([[result.content for result in done.results], *[done.state[key] for key in keys]])

    assert every(program) == repr(
        [
            ["build runs", "test runs"],
            ("build was started", "test was started"),
            {"build": "running", "test": "running"},
            "watch test",
        ]
    )


# The model to have in mind


def test_parallel_is_not_all_at_once() -> None:
    """Calls run in the lanes of the plan, one lane after the other, and never more than the limit.

    Seed: "To parallelise is not to run everything together." / "tool_use blocks; partition by concurrency
    safety; choose a parallel or a serial lane; emit progress where needed; write results back in a stable
    order; merge queued context modifiers."
    """

    async def program() -> Any:
        inside, order = Overlap(), []
        runtime = Runtime(tools(inside), lanes=toolrt.by_safety, limit=2)
        for update in await streamed(runtime, *named("abCde")):
            if isinstance(update, StateMerged):
                order.append((update.lane, update.state["done"]))
        return inside.most, tuple(order)

    assert every(program) == (
        2,
        ((0, ("a", "b")), (1, ("a", "b", "C")), (2, ("a", "b", "C", "d", "e"))),
    )


def test_shared_context_is_not_rewritten_in_order_of_completion() -> None:
    """Calls of one lane see the state as of its start, whichever has finished; the next lane sees all of it.

    Seed: "The shared context is not rewritten at will in order of completion."
    """

    async def program() -> Any:
        done = await Runtime(tools()).run(named("abCd"))
        return tuple(result.content for result in done.results)

    assert every(program) == (
        "a saw ()",
        "b saw ()",
        "C saw ('a', 'b')",
        "d saw ('a', 'b', 'C')",
    )


# Records


def test_batch_record_has_its_safety_and_its_calls() -> None:
    """A lane says whether it is safe and which calls it has, in call order.

    Seed: "batch = {is_concurrency_safe: True, blocks: [tool_use_1, tool_use_2, tool_use_3]}" / "Tools are not
    always handled one at a time: the runtime first divides them into execution batches."
    """
    calls = named("abc")
    (lane,) = partition(calls, tools())
    assert (lane.index, lane.safe, list(lane.calls)) == (0, True, calls)


def test_tracked_tool_goes_through_its_four_states() -> None:
    """The record of a call is queued, executing, completed and yielded, in that order and no other.

    Seed: "status: queued / executing / completed / yielded"
    """

    async def program() -> tuple[str, ...]:
        seen: list[str] = []
        async with Runtime(tools()).open_batch() as batch:
            call = batch.submit(named("A")[0])
            seen.append(call.status.value)
            batch.seal()

            async def look() -> None:
                for _ in range(40):
                    seen.append(call.status.value)
                    await trio.sleep(0.1)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(look)
                await trio.sleep(LONGEST + 0.5)
                async for _ in batch:
                    seen.append(call.status.value)
                nursery.cancel_scope.cancel()
        seen.append(call.status.value)
        return tuple(dict.fromkeys(seen))

    assert every(program) == ("queued", "executing", "completed", "yielded")
    assert [status.value for status in Status] == ["queued", "executing", "completed", "yielded"]


def test_tracked_tool_has_the_fields_of_the_page() -> None:
    """The record has id, name, status, safety, pending progress, results and modifiers.

    Seed: "tracked_tool = {id, name, status, is_concurrency_safe, pending_progress, results, context_modifiers}"
    """

    async def program() -> None:
        async with Runtime(tools()).open_batch() as batch:
            call = batch.submit(named("a")[0])
            assert (call.call_id, call.name, call.call_index, call.safe) == ("toolu_0", "look", 0, True)
            assert (call.status, call.results, list(call.modifiers)) == (Status.QUEUED, [], [])
            assert (list(call.pending_progress), call.progress_count, call.ran) == ([], 0, None)
            await trio.sleep(LONGEST + 1)
            assert call.status is Status.COMPLETED
            assert list(call.pending_progress) == ["a begins", "a ends"]
            assert [result.content for result in call.results] == ["a saw ()"]
            assert len(call.modifiers) == 1
            batch.seal()
            async for _ in batch:
                pass
            assert (list(call.pending_progress), call.progress_count) == ([], 2)
            assert call.ran is not None
            assert call.waited == 0

    every(program)


def test_runtime_can_say_what_waits_runs_is_done_and_has_been_seen() -> None:
    """At any instant the records answer the page's four questions.

    Seed: "With this the runtime can answer: what is waiting, what is running, what has completed, what has
    already given progress."
    """

    @toolrt.tool(safe=True)
    async def wait(ctx: ToolContext, seconds: int) -> None:
        """Wait."""
        ctx.progress("waits")
        await trio.sleep(seconds)

    async def program() -> Any:
        async with Runtime(Registry([wait]), limit=2).open_batch() as batch:
            calls = [batch.submit(call) for call in calls_of(*[("wait", {"seconds": n}) for n in (1, 9, 9, 9)])]
            batch.seal()
            first = await anext(aiter(batch))
            await trio.sleep(2)
            statuses = tuple(call.status.value for call in calls)
            progress = tuple(call.progress_count for call in calls)
            waits = tuple(tuple(call.waits_for) for call in calls)
            assert isinstance(first, Progress)
            batch.cancel("enough")
        return statuses, progress, waits

    assert every(program) == (
        ("completed", "executing", "executing", "queued"),
        (1, 1, 1, 0),
        ((), (), (), ("slot",)),
    )


def test_updates_are_of_two_kinds() -> None:
    """What is shown at once and what changes the context arrive as different updates, the second with the new state.

    Seed: "update = {message, new_context}" / "In a complete runtime updates are usually of two kinds: message
    updates to show upstream at once, and internal context updates to merge later."
    """

    async def program() -> Any:
        return tuple(type(update).__name__ for update in await streamed(Runtime(tools()), *named("AB")))

    one = ("Progress", "Progress", "ResultReady", "StateMerged")
    assert every(program) == one + one


def test_modifiers_are_queued_and_merged_in_the_original_order() -> None:
    """The merge of a safe lane names its modifiers by call and position, in call order.

    Seed: "Not: a tool that ends first changes the shared context first. But: modifiers are queued, and merged
    at the end in the original order of the tools." / "queued_context_modifiers = {toolu_01: [modify_ctx_a],
    toolu_02: [modify_ctx_b]}"
    """

    @toolrt.tool(safe=True)
    async def two(ctx: ToolContext, what: str) -> ToolOutput:
        """Change two things."""
        await trio.sleep(1 + sim.choose(LONGEST))
        return ToolOutput("", modifiers=[append("done", f"{what}0"), append("done", f"{what}1")])

    async def program() -> Any:
        calls = calls_of(*[("two", {"what": what}) for what in "ab"])
        (merged,) = [
            update for update in await streamed(Runtime(Registry([two])), *calls) if isinstance(update, StateMerged)
        ]
        return merged.applied, merged.state["done"], merged.rejected

    assert every(program) == (((0, 0), (0, 1), (1, 0), (1, 1)), ("a0", "a1", "b0", "b1"), ())


# The smallest way to build it


def test_calls_are_partitioned_before_they_run() -> None:
    """What runs is what the plan says: lanes in order, each call in its own.

    Seed: "Step 2: partition before execution; run a safe batch concurrently, any other serially."
    """

    async def program() -> Any:
        registry = tools()
        calls = named("abCDe")
        planned = [[call.call_id for call in lane.calls] for lane in partition(calls, registry)]
        found: dict[int, list[str]] = {}
        lane: list[str] = []
        for update in await streamed(Runtime(registry), *calls):
            if isinstance(update, ResultReady):
                lane.append(update.result.call_id)
            elif isinstance(update, StateMerged):
                found[update.lane], lane = lane, []
        return planned == list(found.values())

    assert every(program) is True


def test_parallel_lane_gives_progress_first() -> None:
    """Every message of a lane that was sent before the first result is read before it.

    Seed: "Step 3: in a parallel lane let progress out first."
    """

    @toolrt.tool(safe=True)
    async def say(ctx: ToolContext) -> None:
        """Say something, then work."""
        ctx.progress("I work")
        await trio.sleep(1 + sim.choose(2))

    async def program() -> Any:
        updates = await streamed(Runtime(Registry([say])), *calls_of(("say", {}), ("say", {})))
        return tuple(type(update).__name__ for update in updates[:3])

    assert every(program) == ("Progress", "Progress", "ResultReady")


def test_context_is_merged_in_a_stable_order() -> None:
    """The state at the end is that of the modifiers in call order, call by call and each call's in its own order.

    Seed: "Step 4: merge the context in a stable order: for each tool in original batch order, for each of its
    modifiers, context = modifier(context)."
    """

    async def program() -> Any:
        done = await Runtime(tools()).run(named("cabBA"))
        return done.state["done"]

    assert every(program) == tuple("cabBA")


# The picture


@pytest.mark.parametrize("policy", [toolrt.by_safety, toolrt.by_claims])
def test_safe_batch_has_progress_results_and_queued_modifiers(policy: Any) -> None:
    """A safe lane: calls at once, progress, results in order, one merge at the end.

    Seed: "safe batch: concurrent execution; progress updates, final results, queued context modifiers"
    """

    async def program() -> Any:
        inside = Overlap()
        updates = await streamed(Runtime(tools(inside), lanes=policy), *named("abc"))
        kinds = [type(update).__name__ for update in updates]
        return inside.most, kinds.count("StateMerged"), kinds[-1], kinds.count("Progress"), kinds.count("ResultReady")

    assert every(program) == (3, 1, "StateMerged", 6, 3)


@pytest.mark.parametrize("policy", [toolrt.by_safety, toolrt.by_claims])
def test_exclusive_batch_has_a_direct_result_and_a_direct_context_update(policy: Any) -> None:
    """An exclusive call's result and its state follow each other at once, before the next call starts.

    Seed: "exclusive batch: serial execution; direct result, direct context update"
    """

    async def program() -> Any:
        runtime = Runtime(tools(), lanes=policy)
        updates = [update for update in await streamed(runtime, *named("AB")) if not isinstance(update, Progress)]
        return tuple(
            update.result.content if isinstance(update, ResultReady) else update.state["done"] for update in updates
        )

    assert every(program) == ("A saw ()", ("A",), "B saw ('A',)", ("A", "B"))

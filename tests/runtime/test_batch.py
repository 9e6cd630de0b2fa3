"""A batch: submission, updates, leaving."""

from __future__ import annotations

import gc
import re
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests.runtime._tools import Diary, call, opener, outcomes, runtime, setting
from toolrt import Progress, ResultReady, State, StateMerged, ToolCall, ToolContext, ToolOutput, sim
from toolrt.errors import BatchClosed, DefinitionRefused


def kinds(updates: list[Any]) -> list[str]:
    """Updates in short: P1, R0, M0."""
    short = []
    for update in updates:
        if isinstance(update, Progress):
            short.append(f"P{update.call_index}")
        elif isinstance(update, ResultReady):
            short.append(f"R{update.result.call_index}")
        else:
            assert isinstance(update, StateMerged)
            short.append(f"M{update.lane}")
    return short


async def read_all(batch: toolrt.Batch) -> list[Any]:
    return [update async for update in batch]


@pytest.mark.parametrize("pause", [0, 0.5, 10])
async def test_batch_lanes_do_not_depend_on_when_the_model_speaks(
    pause: float, autojump_clock: trio.testing.MockClock
) -> None:
    """A lane is closed by a call that cannot join it, never by idleness."""
    diary = Diary()
    rt = runtime(diary.tool("s", 1, safe=True), diary.tool("x", 1))
    async with rt.open_batch() as batch:
        for name in "ssxss":
            batch.submit(call(name))
            await trio.sleep(pause)
    assert [tracked.lane for tracked in batch.calls] == [0, 0, 1, 2, 2]


async def test_batch_refuses_what_is_no_call() -> None:
    """Only a ToolCall can be submitted; the batch is unchanged."""
    rt = runtime(Diary().tool("a", safe=True))
    async with rt.open_batch() as batch:
        with pytest.raises(DefinitionRefused, match="ToolCall"):
            batch.submit({"name": "a"})  # type: ignore[arg-type]
    assert batch.outcome.results == ()
    with pytest.raises(DefinitionRefused, match=r"a list of toolrt\.ToolCall"):
        await rt.run(None)  # type: ignore[arg-type]


async def test_batch_without_calls_is_over_at_once() -> None:
    """Nothing to do gives nothing back, and the state as it was."""
    state = State({"k": 1})
    done = await runtime().run([], state)
    assert done.results == ()
    assert done.state == state


async def test_batch_ids_count_up() -> None:
    """The default id has a counter of the runtime, and an ending that no other process gives; a given one is kept."""
    rt = runtime()
    async with rt.open_batch() as first, rt.open_batch() as second, rt.open_batch(batch_id="mine") as third:
        pass
    assert re.fullmatch(r"batch-1-[0-9a-f]{6}", first.batch_id)
    assert re.fullmatch(r"batch-2-[0-9a-f]{6}", second.batch_id)
    assert third.batch_id == "mine"
    others = [(await runtime().run([])).batch_id for _ in range(3)]
    assert len({first.batch_id, *others}) == 4


def test_batch_ids_are_the_same_in_every_execution() -> None:
    """A simulation has no other process to differ from."""

    async def program() -> str:
        return (await runtime().run([])).batch_id

    assert {sim.run(program).value for _ in range(2)} == {"batch-1"}


async def test_batch_outcome_is_known_when_it_is_over() -> None:
    """Asking before is refused."""
    async with runtime().open_batch() as batch:
        with pytest.raises(BatchClosed, match="not over"):
            _ = batch.outcome
    assert batch.outcome.results == ()


async def test_batch_cannot_be_entered_twice() -> None:
    """A batch is one response."""
    async with runtime().open_batch() as batch:
        pass
    with pytest.raises(BatchClosed, match="entered before"):
        async with batch:
            pass


async def test_batch_lets_the_blocks_exception_out_as_it_is(autojump_clock: trio.testing.MockClock) -> None:
    """Leaving by an exception cancels the batch and re-raises that exception, in no group."""
    diary = Diary()
    rt = runtime(diary.tool("a", 100, safe=True))
    with pytest.raises(ValueError, match="mine"):
        async with rt.open_batch() as batch:
            batch.submit(call("a"))
            await trio.sleep(1)
            raise ValueError("mine")
    assert outcomes(batch.outcome.results) == ["interrupted"]
    assert trio.current_time() == 1


async def test_progress_after_the_result_is_dropped() -> None:
    """A task that outlives its call in another nursery cannot speak for it any more."""

    async def late(ctx: ToolContext, release: trio.Event) -> None:
        await release.wait()
        ctx.progress("late")

    release = trio.Event()
    async with trio.open_nursery() as outside:

        @toolrt.tool(safe=True)
        async def leaky(ctx: ToolContext) -> str:
            outside.start_soon(late, ctx, release)
            return "done"

        async with runtime(leaky).open_batch() as batch:
            batch.submit(call("leaky"))
            await trio.testing.wait_all_tasks_blocked()
            release.set()
            await trio.testing.wait_all_tasks_blocked()
            batch.seal()
            updates = await read_all(batch)
    assert kinds(updates) == ["R0", "M0"]
    assert batch.calls[0].results[0].progress_dropped == 1


async def test_modifier_that_raises_changes_nothing_and_is_named() -> None:
    """The merge goes on behind it."""

    def broken(state: State) -> State:
        raise RuntimeError("no")

    @toolrt.tool(safe=True)
    async def odd(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(
            1,
            modifiers=[lambda s: s.set("a", 1), broken, lambda s: 7, lambda s: s.set("b", 2)],  # type: ignore[list-item, return-value]
        )

    async with runtime(odd).open_batch() as batch:
        batch.submit(call("odd"))
        batch.seal()
        (merge,) = [update async for update in batch if isinstance(update, StateMerged)]
    assert merge.state == State({"a": 1, "b": 2})
    assert merge.applied == ((0, 0), (0, 3))
    assert [(one.call_index, one.call_id, one.position) for one in merge.rejected] == [(0, "odd", 1), (0, "odd", 2)]
    assert merge.rejected[0].error == "RuntimeError: no"


async def test_modifiers_of_an_error_output_apply_and_of_an_exception_do_not() -> None:
    """Modifiers belong to calls that returned."""

    @toolrt.tool(safe=True)
    async def told(ctx: ToolContext) -> ToolOutput:
        return ToolOutput("seen", modifiers=[lambda state: state.set("told", True)], error="exit status 2")

    @toolrt.tool(safe=True)
    async def raised(ctx: ToolContext) -> ToolOutput:
        ToolOutput(modifiers=[lambda state: state.set("raised", True)])
        raise ValueError("no")

    done = await runtime(told, raised).run([call("told"), call("raised")])
    assert outcomes(done.results) == ["error", "error"]
    assert done.results[0].content == "seen"
    assert done.state == State({"told": True})


async def test_batch_is_recorded_whatever_its_tools_give_back() -> None:
    """Content that holds itself, or whose text cannot be made, is no trouble for an observer."""

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    endless: list[Any] = []
    endless.append(endless)

    @toolrt.tool(safe=True, schema=None)
    async def give(ctx: ToolContext, what: Any = None) -> Any:
        return [endless, Broken(), {1, 2}, float("nan"), what]

    with toolrt.record() as recorder:
        done = await runtime(give).run(
            [call("give"), ToolCall("1", "give", {"what": endless})], State({"odd": endless})
        )
    assert outcomes(done.results) == ["ok", "invalid"]
    recorder.trace().to_json()


async def test_a_batch_that_is_over_is_freed_without_the_garbage_collector() -> None:
    """No circle of references is left in it, however it ended: a process with many batches need not search for them."""
    diary = Diary()
    inner = call("safe"), call("alone")
    tools = diary.tool("safe", safe=True), diary.tool("alone"), diary.tool("late", 1, timeout=0.01)
    rt = runtime(*tools, opener(*inner), setting("sets", "key", 1))
    calls = [call(name) for name in ("safe", "safe", "opens", "sets", "sets", "unknown", "late", "alone")]

    async def use(cancels: bool) -> None:
        await rt.run(calls)
        async with rt.open_batch() as batch:
            for one in calls:
                batch.submit(one)
            if cancels:
                batch.cancel("enough")
            batch.seal()
            assert len(await read_all(batch)) > len(calls)
        assert not any(tracked.cancel() for tracked in batch.calls)

    await use(False)
    gc.collect()
    gc.disable()
    try:
        for cancels in (False, True):
            await use(cancels)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = {type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith("toolrt.")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    # What a tool read of the state knows the state that it was shown, and that knows it.
    assert left <= {"StateReads", "WatchedState"}

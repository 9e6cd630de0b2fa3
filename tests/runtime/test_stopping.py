"""Cancel and stop: prompt, truthful, and nothing left."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests.runtime._tools import WRITE, Diary, call, claims, outcomes, runtime
from toolrt import State, ToolContext, ToolOutput


async def test_cancel_from_outside_leaves_a_complete_outcome(autojump_clock: trio.testing.MockClock) -> None:
    """An enclosing scope's cancel is the same, and the scope sees it."""
    diary = Diary()
    file = claims(("f", WRITE))
    rt = runtime(diary.tool("runs", 9, claims=file), diary.tool("waits", 1, claims=file))
    with trio.move_on_after(1) as scope:
        async with rt.open_batch() as batch:
            batch.submit(call("runs"))
            batch.submit(call("waits"))
            batch.seal()
            async for _ in batch:
                pass
    assert scope.cancelled_caught
    assert outcomes(batch.outcome.results) == ["interrupted", "not_started"]
    assert not rt.tables[0].busy


@pytest.mark.parametrize("moment", [0.5, 1.5, 2.5])
async def test_cancel_of_one_batch_lets_another_go_on(moment: float, autojump_clock: trio.testing.MockClock) -> None:
    """Tickets of a cancelled batch leave as if they had never been there."""
    diary = Diary()
    file = claims(("f", WRITE))
    rt = runtime(diary.tool("a", 1, claims=file), diary.tool("b", 1, claims=file), diary.tool("c", 1, claims=file))
    finished: list[float] = []

    async def other() -> None:
        await rt.run([call("c")])
        finished.append(trio.current_time())

    async with trio.open_nursery() as nursery, rt.open_batch() as batch:
        batch.submit(call("a"))
        batch.submit(call("b"))
        await trio.sleep(0.1)
        nursery.start_soon(other)
        await trio.sleep(moment - 0.1)
        batch.cancel("x")
    assert finished == [{0.5: 1.5, 1.5: 2.5, 2.5: 3.0}[moment]]
    assert not rt.tables[0].busy


async def test_stop_names_the_lowest_failed_call(autojump_clock: trio.testing.MockClock) -> None:
    """An earlier call that fails later skips those that a later one had skipped."""

    @toolrt.tool(safe=True, stops_batch=True)
    async def fails(ctx: ToolContext) -> None:
        await trio.sleep(1)
        raise ValueError

    rt = runtime(fails, Diary().tool("a", safe=True))
    done = await rt.run([call("fails"), toolrt.ToolCall("1", "fails", []), call("a")])
    assert outcomes(done.results) == ["error", "skipped", "skipped"]
    assert all("call 0" in str(result.error) for result in done.results[1:])


async def test_stop_then_cancel_keeps_its_precedence() -> None:
    """Whichever came first decides for calls submitted after both."""
    rt = runtime(Diary().tool("guard", stops_batch=True), Diary().tool("a", safe=True))
    async with rt.open_batch() as batch:
        batch.submit(toolrt.ToolCall("1", "guard", {"x": 1}))
        batch.cancel("x")
        batch.submit(call("a"))
    assert outcomes(batch.outcome.results) == ["invalid", "skipped"]


async def test_stop_by_input() -> None:
    """`stops_batch` may look at the input; one that fails stops."""

    @toolrt.tool(safe=True, stops_batch=lambda input: input["strict"])
    async def check(ctx: ToolContext, strict: bool) -> None:
        raise ValueError

    rt = runtime(check, Diary().tool("a", safe=True))
    lenient = await rt.run([call("check", strict=False), call("a")])
    strict = await rt.run([call("check", strict=True), call("a")])
    broken = await rt.run([call("check"), call("a")])
    assert [outcomes(done.results)[1] for done in (lenient, strict, broken)] == ["ok", "skipped", "skipped"]


def pressing(delay: float) -> None:
    """Press Ctrl-C in `delay` seconds, where Trio cannot tell a task that it was meant for."""

    async def press() -> None:
        await trio.sleep(delay)
        signal.raise_signal(signal.SIGINT)

    trio.lowlevel.spawn_system_task(press)


@pytest.mark.parametrize("way", ["run", "leave", "read", "exclusive"])
def test_interrupt_of_the_program_comes_out_bare_and_answers_every_call(way: str) -> None:
    """A real Ctrl-C while a batch is driven, left or read is a KeyboardInterrupt in no group."""
    diary = Diary()
    batches: list[toolrt.Batch] = []

    async def main() -> None:
        rt = runtime(diary.tool("a", 60, safe=way != "exclusive"), diary.tool("b", 60))
        pressing(0.01)
        if way in {"run", "exclusive"}:
            await rt.run([call("a"), call("b")])
        async with rt.open_batch() as batch:
            batches.append(batch)
            batch.submit(call("a"))
            batch.submit(call("b"))
            if way == "read":
                async for _ in batch:
                    pass

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert diary.lines == ["a+", "a-"]
    for batch in batches:
        assert outcomes(batch.outcome.results) == ["interrupted", "not_started"]


async def test_cancel_from_outside_is_a_bare_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever waits for `run` or leaves a block sees trio.Cancelled, in no group."""
    rt = runtime(Diary().tool("a", 9, safe=True))
    seen: list[type[BaseException]] = []
    for streaming in (False, True):
        with trio.move_on_after(1):
            try:
                if streaming:
                    async with rt.open_batch() as batch:
                        batch.submit(call("a"))
                else:
                    await rt.run([call("a")])
            except BaseException as error:
                seen.append(type(error))
                raise
    assert seen == [trio.Cancelled, trio.Cancelled]


async def test_cancel_from_outside_does_not_lose_the_blocks_own_exception(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What the block raises while it is cancelled comes out as it is."""
    rt = runtime(Diary().tool("a", 9, safe=True))
    with trio.move_on_after(1), pytest.raises(ValueError, match="mine"):
        async with rt.open_batch() as batch:
            batch.submit(call("a"))
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("mine")


async def test_interrupt_in_a_tool_is_not_lost_in_the_blocks_own_nursery() -> None:
    """The block may wait in a nursery of its own; the KeyboardInterrupt still comes out, and alone."""

    @toolrt.tool(safe=True)
    async def pressed(ctx: ToolContext) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        async with runtime(pressed).open_batch() as batch:
            batch.submit(call("pressed"))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                nursery.start_soon(trio.sleep_forever)


@pytest.mark.parametrize("error", [GeneratorExit, asyncio.CancelledError, BaseException])
async def test_odd_exceptions_of_a_tool_stay_with_its_call(error: type[BaseException]) -> None:
    """Only Ctrl-C and exits end a batch."""

    @toolrt.tool(safe=True)
    async def odd(ctx: ToolContext) -> None:
        raise error

    done = await runtime(odd, Diary().tool("a")).run([call("odd"), call("a")])
    assert outcomes(done.results) == ["error", "ok"]


async def test_interrupt_beside_a_cancellation_is_not_swallowed(autojump_clock: trio.testing.MockClock) -> None:
    """A tool whose nursery raises a cancellation and a KeyboardInterrupt lets the KeyboardInterrupt out."""

    @toolrt.tool(safe=True)
    async def both(ctx: ToolContext) -> None:
        async def pressed() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise KeyboardInterrupt

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pressed)
            nursery.start_soon(trio.sleep_forever)

    with pytest.raises(KeyboardInterrupt):
        async with runtime(both).open_batch() as batch:
            batch.submit(call("both"))
            await trio.sleep(1)
            batch.cancel("x")
    assert outcomes(batch.outcome.results) == ["interrupted"]


@pytest.mark.parametrize("reads", [False, True])
async def test_interrupt_in_a_modifier_loses_that_one_alone(reads: bool) -> None:
    """Ctrl-C in one modifier: the others of the lane apply, and telemetry hears of one rejected modifier."""

    @toolrt.tool(safe=True, schema=None)
    async def counts(ctx: ToolContext, interrupted: bool) -> ToolOutput:
        if reads:
            ctx.state.get("other")

        def count(state: State) -> State:
            if interrupted:
                raise KeyboardInterrupt
            return state.set("n", state.get("n", 0) + 1)

        return ToolOutput(1, modifiers=[count])

    heard: list[Any] = []

    class Hears:
        def event(self, kind: str, fields: Any) -> None:
            if "rejected" in fields:
                heard.append(fields["rejected"])

    rt = runtime(counts, telemetry=Hears())
    with pytest.raises(KeyboardInterrupt):
        async with rt.open_batch() as batch:
            for index in range(3):
                batch.submit(call("counts", interrupted=index == 2))  # the last: what comes up earlier would cancel it
    assert batch.outcome.state == State({"n": 2})
    assert outcomes(batch.outcome.results) == ["ok"] * 3
    assert heard == [1]
    assert not rt.tables[0].busy

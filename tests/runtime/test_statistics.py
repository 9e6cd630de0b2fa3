"""What a runtime says of what runs and waits in it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from toolrt import WRITE, Allow, Claim, Registry, Runtime, ToolCall, aio, tool

_ON_F = (Claim(("file", "f"), WRITE),)


@tool(claims=_ON_F)
async def write(ctx: Any) -> None:
    await trio.sleep(1)


@tool(safe=True)
async def look(ctx: Any) -> None:
    await trio.sleep(1)


@tool
async def alone(ctx: Any) -> None:
    await trio.sleep(1)


@tool(claims=_ON_F)
async def outer(ctx: Any) -> None:
    await ctx.run([ToolCall("i", "write", {})])


def _calls(*names: str) -> list[ToolCall]:
    return [ToolCall(str(number), name, {}) for number, name in enumerate(names)]


async def test_who_runs_who_waits_and_for_whom(autojump_clock: Any) -> None:
    """Calls of both batches, by name, with what they wait for and claim."""
    runtime = Runtime(Registry([write, look, alone]), limit=2)
    async with runtime.open_batch(batch_id="one") as one, runtime.open_batch(batch_id="two") as two:
        for call in _calls("write", "look", "write", "look", "alone"):
            one.submit(call)
        await trio.sleep(0.1)
        two.submit(_calls("write")[0])
        await trio.sleep(0.1)
        seen = runtime.statistics()
        assert (seen.batches, seen.running, seen.queued) == (2, 2, 4)
        assert seen.held == {"one#0": _ON_F, "one#1": ()}
        assert seen.waits_for == {"one#2": ("one#0",), "one#3": ("slot",), "one#4": ("lane",), "two#0": ("one#2",)}
        one.seal()
        two.seal()
    assert runtime.statistics() == type(seen)(0, 0, 0, {}, {})


async def test_a_question_and_a_sub_batch_are_told(autojump_clock: Any) -> None:
    """An approval is waited for; a sub-batch is a batch of its own."""

    async def approve(request: Any) -> Allow:
        await trio.sleep(1)
        return Allow()

    asked = Runtime(Registry([look]), approve=approve)
    async with asked.open_batch(batch_id="a") as batch:
        batch.submit(_calls("look")[0])
        batch.seal()
        await trio.sleep(0.5)
        assert asked.statistics().waits_for == {"a#0": ("approval",)}
    nested = Runtime(Registry([outer, write]))
    async with nested.open_batch(batch_id="a") as batch:
        batch.submit(_calls("outer")[0])
        batch.seal()
        await trio.sleep(0.5)
        seen = nested.statistics()
        assert (seen.batches, seen.running) == (2, 2)


async def test_nothing_is_kept_of_a_batch_that_was_cancelled_or_refused(autojump_clock: Any) -> None:
    """Nor of one that was never entered."""
    runtime = Runtime(Registry([write]))
    with trio.move_on_after(0.5):
        await runtime.run(_calls("write", "write"))
    runtime.open_batch()  # never entered
    async with runtime.open_batch() as batch:
        with pytest.raises(Exception, match="entered before"):
            await batch.__aenter__()
        assert runtime.statistics().batches == 1
    assert runtime.statistics().batches == 0


def test_batches_of_asyncio_are_of_the_same_runtime() -> None:
    """Also where the door adapts the approval check."""
    import asyncio

    runtime = Runtime(Registry([write]), approve=lambda request: Allow())

    async def main() -> None:
        running = asyncio.ensure_future(aio.run(runtime, _calls("write")))
        await asyncio.sleep(0.2)
        assert runtime.statistics().batches == 1
        running.cancel()
        await asyncio.wait([running])
        assert runtime.statistics().batches == 0

    asyncio.run(main())

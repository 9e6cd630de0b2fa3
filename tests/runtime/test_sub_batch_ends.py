"""How a sub-batch ends: by a timeout, a cancel or a stop around it, and with the call that opened it (RULE 20)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import toolrt
from tests.runtime._tools import READ, WRITE, Diary, call, claims, outcomes, runtime
from toolrt import ToolContext, sim
from toolrt.errors import BatchClosed
from toolrt.invariants import require


def _guarded(kept: list[Any], **options: Any) -> toolrt.Tool:
    """A tool that opens a sub-batch and keeps its outcome, however it ends."""

    async def body(ctx: ToolContext) -> None:
        batch = ctx.open_batch()
        try:
            async with batch:
                batch.submit(call("leaf"))
                batch.submit(call("leaf"))
                batch.seal()
        finally:
            kept.append(outcomes(batch.outcome.results))

    return toolrt.tool(name="opens", claims=claims(("f", WRITE)), **options)(body)


@pytest.mark.parametrize(("interrupt", "child", "ended"), [("cancel", "interrupted", 1), ("finish", "ok", 9)])
def test_stop_ends_the_children_of_what_follows(interrupt: Any, child: str, ended: float) -> None:
    """A read that is skipped while its sub-batch runs ends with it, unless it may finish; nobody hears of it."""
    kept: list[Any] = []
    leaf = Diary().tool("leaf", 9, claims=claims(("f", READ)))

    @toolrt.tool(claims=claims(("g", READ)), stops_batch=True)
    async def breaks(ctx: ToolContext) -> None:
        await trio.sleep(1)
        raise ValueError("broken")

    async def body(ctx: ToolContext) -> None:
        async with ctx.open_batch() as batch:
            batch.submit(call("leaf"))
            batch.seal()
            kept.append(batch)

    opens = toolrt.tool(name="opens", claims=claims(("f", READ)), interrupt=interrupt)(body)

    async def program() -> Any:
        kept.clear()
        outcome = await runtime(leaf, breaks, opens).run([call("breaks"), call("opens")])
        return outcomes(outcome.results), outcomes(kept[0].outcome.results), trio.current_time()

    execution = sim.run(program)
    require(execution.trace)
    assert execution.value == (["error", "skipped"], [child], ended)


def test_shielded_parent_starts_no_child_after_a_cancel() -> None:
    """A tool that goes on after a cancel may; calls of the batch that was cancelled do not start any more."""
    kept: list[Any] = []
    leaf = Diary().tool("leaf", 1, safe=True)

    @toolrt.tool(safe=True)
    async def opens(ctx: ToolContext) -> None:
        with trio.CancelScope(shield=True):
            kept.append(outcomes((await ctx.run([call("leaf")] * 2)).results))
            kept.append(outcomes((await ctx.run([call("leaf")])).results))

    async def program() -> Any:
        kept.clear()
        async with runtime(leaf, opens, limit=1).open_batch() as batch:
            batch.submit(call("opens"))
            await trio.sleep(0.5)
            batch.cancel()
        return kept

    execution = sim.run(program)
    require(execution.trace)
    assert execution.value == [["interrupted", "not_started"], ["not_started"]]


def test_tool_that_leaves_a_sub_batch_open_ends_when_that_has() -> None:
    """What runs in a task of somebody else is cancelled with the call, and keeps its claims until it has ended."""
    diary = Diary()
    slow = diary.tool("slow", 5, claims=claims(("f", WRITE)), interrupt="finish")
    after = diary.tool("after", claims=claims(("f", WRITE)))

    async def program() -> list[str]:
        diary.lines.clear()
        async with trio.open_nursery() as background:

            async def body(ctx: ToolContext) -> str:
                background.start_soon(ctx.run, [call("slow"), call("slow")])
                await trio.sleep(1)
                return "gone"

            opens = toolrt.tool(name="opens", claims=claims(("f", WRITE)))(body)
            outcome = await runtime(slow, after, opens).run([call("opens"), call("after")])
            assert outcomes(outcome.results) == ["ok", "ok"]
            diary.note(f"{trio.current_time():g} s")
            background.cancel_scope.cancel()
        return list(diary.lines)

    execution = sim.run(program)
    assert execution.error is None, execution.error
    require(execution.trace)
    assert execution.value == ["slow+", "slow-", "after+", "after-", "5 s"]


async def test_context_of_a_call_that_has_ended_opens_nothing() -> None:
    """Its claims are another's by then."""
    kept: list[ToolContext] = []

    @toolrt.tool(safe=True)
    async def leaks(ctx: ToolContext) -> None:
        kept.append(ctx)
        kept.append(ctx.open_batch())  # type: ignore[arg-type]

    await runtime(leaks).run([call("leaks")])
    with pytest.raises(BatchClosed, match="call 0 is not running"):
        await kept[0].run([])
    with pytest.raises(BatchClosed, match="has ended"):
        async with kept[1]:  # type: ignore[attr-defined]
            pass

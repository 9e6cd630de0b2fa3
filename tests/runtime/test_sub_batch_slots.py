"""Calls of a sub-batch that run in threads: at a limit, and when they cannot be stopped (RULE 20)."""

from __future__ import annotations

import threading

import trio
import trio.testing

import toolrt
from tests.runtime._tools import WRITE, call, claims, outcomes, runtime
from toolrt import ToolContext


async def test_sync_children_run_in_threads() -> None:
    """As outside; at a limit of one, one at a time."""
    started, go_on = threading.Event(), threading.Event()
    meanwhile: list[str] = []
    threads: list[str] = []

    @toolrt.tool(safe=True)
    def leaf(ctx: ToolContext) -> None:
        threads.append(threading.current_thread().name)
        started.set()
        go_on.wait(60)

    @toolrt.tool(safe=True)
    async def opens(ctx: ToolContext) -> list[str]:
        async with ctx.open_batch() as batch:
            batch.submit(call("leaf"))
            batch.submit(call("leaf"))
            batch.seal()
            await trio.to_thread.run_sync(started.wait, 60)
            await trio.testing.wait_all_tasks_blocked()
            meanwhile.extend(one.status.value for one in batch.calls)
            go_on.set()
        return outcomes(batch.outcome.results)

    (result,) = (await runtime(leaf, opens, limit=1).run([call("opens")])).results
    assert result.content == ["ok", "ok"]
    assert meanwhile == ["executing", "queued"]
    assert threading.main_thread().name not in threads


async def test_thread_of_a_child_keeps_the_parents_claims() -> None:
    """A child that cannot be stopped is waited for: who comes next starts when it has ended."""
    started, go_on = threading.Event(), threading.Event()
    lines: list[str] = []

    @toolrt.tool(claims=claims(("f", WRITE)))
    def stuck(ctx: ToolContext) -> None:
        started.set()
        go_on.wait(60)
        lines.append("stuck")

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def after(ctx: ToolContext) -> None:
        lines.append("after")

    inside: list[toolrt.Batch] = []

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def opens(ctx: ToolContext) -> None:
        with trio.CancelScope() as scope:
            async with ctx.open_batch() as batch:
                inside.append(batch)
                batch.submit(call("stuck"))
                batch.seal()
                await trio.to_thread.run_sync(started.wait, 60)
                scope.cancel()

    async with runtime(stuck, after, opens).open_batch() as batch:
        batch.submit(call("opens"))
        batch.submit(call("after"))
        batch.seal()
        while not (inside and inside[0].calls and inside[0].calls[0].results):  # noqa: ASYNC110  nobody else tells
            await trio.lowlevel.checkpoint()
        assert lines == []
        go_on.set()
    assert outcomes(batch.outcome.results) == ["ok", "ok"]
    (result,) = inside[0].outcome.results
    assert result.outcome is toolrt.Outcome.INTERRUPTED
    assert "its thread cannot be stopped and still runs" in str(result.error)
    assert lines == ["stuck", "after"]


async def test_sync_parent_opens_a_sub_batch_from_its_thread() -> None:
    """By Trio's own way back; one slot is enough, and a timeout of the parent ends its children."""

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def leaf(ctx: ToolContext, forever: bool) -> str:
        if forever:
            await trio.sleep_forever()
        return "leaf"

    @toolrt.tool(claims=claims(("f", WRITE)))
    def opens(ctx: ToolContext, forever: bool) -> list[str]:
        return outcomes(trio.from_thread.run(ctx.run, [call("leaf", forever=forever)]).results)

    (result,) = (await runtime(leaf, opens, limit=1).run([call("opens", forever=False)])).results
    assert result.content == ["ok"]
    slow = toolrt.tool(name="slow", claims=claims(("f", WRITE)), timeout=0.05)(opens.function)
    (result,) = (await runtime(leaf, slow, limit=1).run([call("slow", forever=True)])).results
    assert result.outcome is toolrt.Outcome.TIMED_OUT

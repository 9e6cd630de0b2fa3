"""Where the calls of a sub-batch run: on the slot their parent lends, on free ones, and in threads (RULE 20)."""

from __future__ import annotations

import threading

import pytest
import trio
import trio.testing

import toolrt
from tests.runtime._tools import WRITE, Diary, call, claims, opener, outcomes, runtime
from toolrt import ToolContext, sim
from toolrt.invariants import require


@pytest.mark.parametrize(("limit", "seconds"), [(1, 6), (2, 3), (3, 2), (6, 1), (10, 1)])
def test_parent_lends_its_slot_and_takes_free_ones(limit: int, seconds: float) -> None:
    """Two parents of three children each, a second each: as many run at once as there are slots."""
    diary = Diary()
    leaf = diary.tool("leaf", 1, safe=True)
    calls = [call("leaf")] * 3

    async def program() -> float:
        rt = runtime(leaf, opener(*calls, safe=True), limit=limit)
        await rt.run([call("opens"), call("opens")])
        return trio.current_time()

    report = sim.explore(program, sim.Portfolio(20), lambda execution: require(execution.trace))
    assert report.verdict is sim.PASS, report.failures[0].explain()
    assert report.outcomes == {seconds: 20}


def test_other_calls_come_before_further_children() -> None:
    """A slot that is free goes to a call of the outermost batch that is ready; children wait for what is left."""
    diary = Diary()

    def child(name: str) -> toolrt.Tool:
        return diary.tool(name, 1, safe=True)

    tools = [child("c0"), child("c1"), diary.tool("other", 1, safe=True)]
    opens = opener(call("c0"), call("c1"), safe=True)

    async def program() -> str:
        diary.lines.clear()
        await runtime(*tools, opens, limit=2).run([call("opens"), call("other")])
        return [line for line in diary.lines if line.endswith("+")][-1]

    report = sim.explore(program, sim.Portfolio(60), lambda execution: require(execution.trace))
    assert report.verdict is sim.PASS, report.failures[0].explain()
    assert report.outcomes == {"c1+": 60}


def test_slot_of_a_child_that_ends_goes_to_another_call() -> None:
    """When one of two children ends, what is left of them needs the parent's slot only."""
    diary = Diary()
    tools = [diary.tool("short", 1, safe=True), diary.tool("long", 3, safe=True), diary.tool("late", 1, safe=True)]
    opens = opener(call("short"), call("long"), safe=True)

    async def program() -> None:
        async with runtime(*tools, opens, limit=2).open_batch() as batch:
            batch.submit(call("opens"))
            await trio.sleep(0.5)
            batch.submit(call("late"))
            batch.seal()
            async for _ in batch:
                pass
            assert [round(one.waited or 0, 3) for one in batch.calls] == [0, 0.5]

    execution = sim.run(program)
    assert execution.error is None, execution.error
    require(execution.trace)


@pytest.mark.parametrize("limit", [1, 2, None])
def test_two_sub_batches_of_one_parent_share_its_order_and_its_slot(limit: int | None) -> None:
    """Their calls order among each other as the lanes took their tickets; one of them can always run."""
    diary = Diary()
    leaves = [diary.tool(name, 1, claims=claims(("f", WRITE))) for name in ("one", "two")]

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def opens(ctx: ToolContext) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ctx.run, [call("one")] * 2)
            nursery.start_soon(ctx.run, [call("two")] * 2)

    async def program() -> int:
        diary.most = 0
        await runtime(*leaves, opens, limit=limit).run([call("opens")])
        return diary.most

    report = sim.explore(program, sim.Portfolio(30), lambda execution: require(execution.trace))
    assert report.verdict is sim.PASS, report.failures[0].explain()
    assert report.outcomes == {1: 30}


# Threads


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

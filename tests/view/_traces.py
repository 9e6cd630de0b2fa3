"""Traces to draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio

import toolrt
from toolrt import sim
from toolrt.trace import Trace

DATA = Path(__file__).parent / "data"


def recorded(name: str) -> Trace:
    """Give a trace that was kept as a file, so that pictures of it do not change with the runtime."""
    return Trace.from_json((DATA / f"{name}.json").read_text(encoding="utf-8"))


async def lost_update() -> int:
    """Two tasks add one each; when both read before either writes, one addition is lost."""
    cell = sim.Cell(0, name="x")

    async def add() -> None:
        seen = cell.get()
        await trio.lowlevel.checkpoint()
        cell.set(seen + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    return cell.get()


async def deadlock() -> None:
    """Two tasks take two locks in opposite order."""
    one, other = trio.Lock(), trio.Lock()

    async def both(first: trio.Lock, second: trio.Lock) -> None:
        async with first:
            await trio.lowlevel.checkpoint()
            async with second:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(both, one, other)
        nursery.start_soon(both, other, one)


def lost_and_kept() -> tuple[Trace, Trace]:
    """Give a schedule that loses an addition, and the nearest that does not."""
    report = sim.explore(lost_update, sim.Exhaustive(), lambda execution: execution.value == 2)
    failing, passing = report.failures[0].compared
    assert passing is not None
    return failing, passing


async def batch_of_calls() -> toolrt.BatchOutcome:
    """Six calls: two on one counter, one alone, one that reports progress, one that fails, one that is invalid."""

    @toolrt.tool(claims=lambda input, state: [toolrt.Claim(("counter", input["name"]), toolrt.WRITE)], schema=None)
    async def bump(ctx: toolrt.ToolContext, name: str) -> toolrt.ToolOutput:
        """Add one."""
        await trio.sleep(2)
        return toolrt.ToolOutput("ok", modifiers=[lambda state: state.set("total", state["total"] + 1)])

    @toolrt.tool(safe=True, schema=None)
    async def count(ctx: toolrt.ToolContext, to: int) -> str:
        """Say a number each second."""
        for number in range(to):
            ctx.progress(number)
            await trio.sleep(1)
        return "done"

    @toolrt.tool(schema=None)
    async def alone(ctx: toolrt.ToolContext) -> str:
        """Run alone."""
        await trio.sleep(1)
        raise ValueError("no")

    calls = [
        toolrt.ToolCall("a", "bump", {"name": "x"}),
        toolrt.ToolCall("b", "bump", {"name": "x"}),
        toolrt.ToolCall("c", "count", {"to": 3}),
        toolrt.ToolCall("d", "alone", {}),
        toolrt.ToolCall("e", "count", {"to": 1}),
        toolrt.ToolCall("f", "nothing", {}),
    ]
    runtime = toolrt.Runtime(toolrt.Registry([bump, count, alone]), limit=2)
    return await runtime.run(calls, toolrt.State({"total": 0}))


def live_batch() -> Trace:
    """Give the trace of `batch_of_calls` under the simplest schedule."""
    execution = sim.run(batch_of_calls, sim.Choices())
    assert execution.error is None
    return execution.trace


def large(calls: int) -> Trace:
    """Give a recording of `calls` calls, ten events each, ten at a time."""
    events: list[tuple[int | None, float, str, str, dict[str, Any]]] = []
    clock = iter(range(10_000_000))

    def add(kind: str, task: str = "main", **fields: Any) -> None:
        events.append((None, next(clock) / 1000, task, kind, {"batch": "b", **fields}))

    add("batch.opened", policy="by_claims", limit=10, state={"values": {}, "fields": {}}, parent=None)
    for call in range(calls):
        add("call.submitted", call=call, call_id=f"id{call}", name="work", input={"path": f"file{call}.txt"})
    add("lane.started", lane=0, shared=True, calls=[], state={"values": {}, "fields": {}})
    for call in range(calls):
        claims = [["write", ["file", f"file{call % 50}.txt"], False]]
        add("ticket.taken", call=call, lane=0, shared=True, claims=claims, stops=False, reads_only=False)
    for first in range(0, calls, 10):
        some = range(first, min(calls, first + 10))
        for call in some:
            add("call.started", f"main.{call}", call=call, lane=0, thread=False, timeout=None, interrupt="cancel")
        for number in range(3):
            for call in some:
                add("progress.sent", f"main.{call}", call=call, number=number, accepted=True)
        for call in some:
            add("file.mutation_ended", f"main.{call}", call=call, file=f"file{call % 50}.txt", version="0a", ok=True)
            add("call.settled", f"main.{call}", call=call, outcome="ok", content="done", error=None, modifiers=0)
            add("call.ended", f"main.{call}", call=call)
        for call in some:
            add("result.delivered", call=call, outcome="ok")
    add("lane.merged", lane=0, state={"values": {}, "fields": {}}, applied=[], rejected=[])
    return Trace(events, (), {"ended": "returned"})

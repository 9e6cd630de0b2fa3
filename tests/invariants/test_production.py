"""The laws on traces of production runs: wall time, real threads, Trio's own scheduler."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from toolrt import Registry, Runtime, ToolCall
from toolrt.invariants import check
from toolrt.invariants.mixes._world import World
from toolrt.invariants.workloads import WORKLOADS
from toolrt.model import State
from toolrt.trace import Trace


def run_recorded(program: Any, *arguments: Any) -> Trace:
    """The trace of one production run, with a clock that jumps where nothing can run."""
    with toolrt.record() as recorder:
        trio.run(program, *arguments, clock=trio.testing.MockClock(autojump_threshold=0))
    return recorder.trace()


@pytest.mark.parametrize("number", range(len(WORKLOADS)))
def test_workloads_keep_the_laws_outside_the_simulator(number: int) -> None:
    """What holds in a simulation holds under Trio's own scheduler, sync tools in real threads."""
    mix = WORKLOADS[number]

    async def program() -> None:
        world = World(mix.calls, mix.files)
        approve = world.approve if mix.approves else None
        runtime = Runtime(world.registry(), getattr(toolrt, mix.lanes), mix.limit, approve)
        async with runtime.open_batch(State(mix.state), batch_id="mix") as batch:
            for call in world.calls():
                batch.submit(call)
            batch.seal()
            async for _ in batch:
                pass

    for _ in range(5):
        assert check(run_recorded(program)) == []


def test_thread_that_cannot_be_stopped_keeps_its_claims() -> None:
    """A sync tool that outlives its timeout: its result says so, and who conflicts with it waits for its end."""
    release = threading.Event()
    order: list[str] = []

    @toolrt.tool(claims=[toolrt.Claim("x", toolrt.WRITE)], timeout=0.01)
    def stubborn(ctx: Any) -> None:
        release.wait()
        order.append("stubborn")

    @toolrt.tool(claims=[toolrt.Claim("x", toolrt.WRITE)])
    async def after(ctx: Any) -> None:
        order.append("after")

    async def program() -> None:
        async with Runtime(Registry([stubborn, after])).open_batch() as batch:
            for name in ("stubborn", "after"):
                batch.submit(ToolCall(name, name))
            batch.seal()
            update = await anext(aiter(batch))
            assert update.result.outcome is toolrt.Outcome.TIMED_OUT
            assert "thread" in update.result.error
            assert order == []
            release.set()

    with toolrt.record() as recorder:
        trio.run(program)
    trace = recorder.trace()
    assert order == ["stubborn", "after"]
    assert check(trace) == []
    assert [event.fields["thread"] for event in trace.of_kind("call.started")] == [True, False]

"""Mixes of calls run through the door for asyncio, on virtual time, and recorded for the laws.

Trio's clock goes on only when neither the event loop nor its guest has anything to do, so that an order of completion
that is given in virtual seconds is the order that happens.
"""

import asyncio
from collections.abc import Sequence
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any

import attrs
import trio
import trio.testing
from trio._core._run import GLOBAL_RUN_CONTEXT

from toolrt import Batch, Registry, Runtime, State, Tool, aio
from toolrt.interop import record
from toolrt.invariants.mixes import _mix, _world
from toolrt.testing import Mix

#: What a script does in the call's own Trio task.
_ON_TRIO = (_world.LeaveOpen, _world.FailWhenCancelled)


def on_asyncio(mix: Mix, turns: Sequence[int], asyncio_tools: bool) -> Any:
    """Run the mix, awaited by asyncio, and give what the laws are held against.

    Args:
        mix: what to run.
        turns: how many turns of the event loop each tool takes before its script.
        asyncio_tools: whether the tools await asyncio.
    """

    async def main() -> Any:
        clock = trio.testing.MockClock()
        started = trio.lowlevel.start_guest_run
        trio.lowlevel.start_guest_run = partial(started, clock=clock)  # type: ignore[assignment]
        try:
            await aio.call(trio.lowlevel.checkpoint)
        finally:
            trio.lowlevel.start_guest_run = started
        with record() as recorder:
            task = asyncio.ensure_future(_run(mix, turns, asyncio_tools))
            while not task.done():
                await _advance(clock)
        return SimpleNamespace(trace=recorder.trace(), value=await task)

    return _mix.judged(mix, asyncio.run(main()))


async def _advance(clock: trio.testing.MockClock) -> None:
    """Let one turn of the loop go by, and let time pass if nothing else can happen."""
    await asyncio.sleep(0)
    loop: Any = asyncio.get_running_loop()
    if loop._ready or GLOBAL_RUN_CONTEXT.runner.guest_tick_scheduled:
        return
    statistics = trio.lowlevel.current_statistics()
    woken = asyncio.Event()
    if statistics.seconds_to_next_deadline < float("inf"):
        clock.jump(max(0, statistics.seconds_to_next_deadline))
    trio.lowlevel.current_trio_token().run_sync_soon(woken.set)
    await woken.wait()


async def _run(mix: Mix, turns: Sequence[int], asyncio_tools: bool) -> Any:
    world = mix._world()
    registry = world.registry()
    if asyncio_tools:
        scripts = world._by_name
        registry = Registry([_on_loop(tool, scripts.get(tool.name), turns) for tool in registry])
    options: dict[str, Any] = {"slots": mix.slots, "limits": mix._limits()}
    runtime = Runtime(registry, mix.lane_policy, mix.limit, world.approve if mix.approves else None, **options)
    batch = aio.open_batch(runtime, State(mix.state), batch_id="mix", deadline=mix.deadline)
    leave = asyncio.ensure_future(_drive(mix, world, batch))
    if mix.cancel_after is not None:
        ended = asyncio.ensure_future(aio.call(trio.sleep, mix.cancel_after))
        await asyncio.wait([leave, ended], return_when=asyncio.FIRST_COMPLETED)
        if leave.done():
            ended.cancel()
        else:
            _mix.cancel(batch, mix, leave.cancel)
    await asyncio.wait([leave])
    return _mix.ending(world, batch.outcome, not leave.cancelled() and leave.result())


async def _drive(mix: Mix, world: Any, batch: aio.AsyncioBatch) -> bool:
    async with batch:
        submitting = asyncio.ensure_future(_submit(mix, world, batch))
        try:
            if mix.reader != "none":
                async for _ in batch:
                    if mix.reader == "slow":
                        await aio.call(trio.sleep, _mix.SLOW_READER)
            await submitting
        finally:
            submitting.cancel()
    return mix.reader != "none"


async def _submit(mix: Mix, world: Any, batch: Batch) -> None:
    delays = dict(enumerate(mix.delays))
    for index, call in enumerate(world.calls()):
        if delays.get(index):
            await aio.call(trio.sleep, delays[index])
        batch.submit(call)
    batch.seal()


def _on_loop(tool: Tool, script: Any, turns: Sequence[int]) -> Tool:
    if not tool.is_async or script is None or any(isinstance(action, _ON_TRIO) for action in script.does):
        return tool
    written = tool.function
    index = sum(map(ord, tool.name))

    @wraps(written)
    async def on_loop(*args: Any, **named: Any) -> Any:
        answers = []

        async def kept() -> None:
            answers.append(await written(*args, **named))

        for _ in range(turns[index % len(turns)]):
            await asyncio.sleep(0)
        try:
            await aio.call(kept)
        except asyncio.CancelledError:  # noqa: ASYNC103
            if not answers:  # else the script has told that it returned
                raise
        return answers[0]

    return attrs.evolve(tool, function=aio.on_loop(on_loop))

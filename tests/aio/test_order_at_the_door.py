"""Batches of several asyncio tasks: the order of their first steps, and tools that have not begun."""

import asyncio
import sys
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.aio.test_laws import OF_A_TRACE
from toolrt import Claim, Mode, Outcome, Registry, Runtime, Tool, ToolCall, ToolOutput, aio, tool
from toolrt.interop import record
from toolrt.invariants import check
from toolrt.trace import Trace


def _both(landed: list[int]) -> Runtime:
    def claims(input: dict[str, Any], state: object) -> list[Claim]:
        return [Claim(("k",), Mode.WRITE)]

    @aio.tool(claims=claims)
    async def put(ctx: Any, i: int) -> None:
        landed.append(i)
        await asyncio.sleep(0)

    @tool(claims=claims)
    async def put_in_trio(ctx: Any, i: int) -> None:
        landed.append(i)
        await trio.lowlevel.checkpoint()

    return Runtime(Registry([put, put_in_trio]))


async def _by(way: str, runtime: Runtime, i: int) -> None:
    call = ToolCall(str(i), "put_in_trio" if "trio" in way else "put", {"i": i})
    if "open" in way:
        async with aio.open_batch(runtime) as batch:
            batch.submit(call)
            batch.seal()
            async for _ in batch:
                pass
        outcome = batch.outcome
    else:
        outcome = await aio.run(runtime, [call])
    assert outcome.results[0].outcome is Outcome.OK


WAYS = st.lists(st.sampled_from(["run", "run trio", "open", "open trio"]), max_size=8)


@given(first=WAYS, then=WAYS, eager=st.booleans())
def test_batches_of_asyncio_tasks_have_the_order_of_their_first_steps(
    first: list[str], then: list[str], eager: bool
) -> None:
    """Calls that conflict across batches take effect in the order in which their coroutines first ran."""
    landed: list[int] = []

    async def main() -> None:
        if eager and sys.version_info >= (3, 12):
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        runtime = _both(landed)
        await asyncio.gather(*(_by(way, runtime, i) for i, way in enumerate(first)))
        await asyncio.gather(*(_by(way, runtime, i) for i, way in enumerate(then, len(first))))

    asyncio.run(main())
    assert landed == list(range(len(first) + len(then)))


@pytest.mark.parametrize("steps", range(8))
def test_an_asyncio_tool_is_not_started_until_its_first_line(steps: int) -> None:
    """A cancel that comes before the tool's first line leaves the call NOT_STARTED, and any later one INTERRUPTED.

    The trace says that it started where it did, so the laws hold.
    """
    begun = []

    @aio.tool(safe=True)
    async def wait(ctx: Any) -> None:
        begun.append(True)
        await asyncio.Event().wait()

    async def main() -> tuple[Outcome, Trace]:
        with record() as recorder:
            async with aio.open_batch(Runtime(Registry([wait]))) as batch:
                batch.submit(ToolCall("c", "wait", {}))
                for _ in range(steps):
                    await asyncio.sleep(0)
                batch.cancel("enough")
            return batch.outcome.results[0].outcome, recorder.trace()

    outcome, trace = asyncio.run(main())
    assert outcome is (Outcome.INTERRUPTED if begun else Outcome.NOT_STARTED)
    assert sum(event.kind == "call.started" for event in trace.events) == len(begun)
    assert check(trace, OF_A_TRACE) == []


@pytest.mark.parametrize("ends", ["time", "loop"])
def test_an_asyncio_tool_that_fails_before_its_first_line_is_told_as_one_that_started(ends: str) -> None:
    """Its time is up, or no task can be made for it: its outcome says that it may have done something."""

    @aio.tool(safe=True, timeout=1e-9 if ends == "time" else None)
    async def wait(ctx: Any) -> None:
        await asyncio.Event().wait()

    def no_task(loop: object, coroutine: Any, **options: Any) -> Any:
        coroutine.close()
        raise ValueError("no task")

    async def main() -> tuple[Outcome, Trace]:
        with record() as recorder:
            async with aio.open_batch(Runtime(Registry([wait]))) as batch:
                if ends == "loop":
                    asyncio.get_running_loop().set_task_factory(no_task)
                batch.submit(ToolCall("c", "wait", {}))
                batch.seal()
                async for _ in batch:
                    pass
                asyncio.get_running_loop().set_task_factory(None)
            return batch.outcome.results[0].outcome, recorder.trace()

    outcome, trace = asyncio.run(main())
    assert outcome is (Outcome.TIMED_OUT if ends == "time" else Outcome.ERROR)
    assert sum(event.kind == "call.started" for event in trace.events) == 1
    assert check(trace, OF_A_TRACE) == []


async def _cancelled_after(steps: int, used: Tool, calls: list[ToolCall]) -> Trace:
    """The trace of a batch of `calls` that is cancelled after so many turns of asyncio's loop."""
    with record() as recorder:
        async with aio.open_batch(Runtime(Registry([used]))) as batch:
            for call in calls:
                batch.submit(call)
            batch.seal()
            for _ in range(steps):
                await asyncio.sleep(0)
            batch.cancel("enough")
        return recorder.trace()


def test_an_asyncio_tool_that_runs_again_has_started() -> None:
    """A cancel that comes before the first line of its second run does not make it one that never started."""
    begun: list[str] = []

    @aio.tool(safe=True, pure=True)
    async def add(ctx: Any, text: str) -> ToolOutput:
        begun.append(text)
        todos = (*ctx.state.get("todos", ()), text)
        await asyncio.sleep(0)
        return ToolOutput(todos, modifiers=[lambda state: state.set("todos", todos)])

    calls = [ToolCall(text, "add", {"text": text}) for text in "ab"]
    ran = set()
    for steps in range(40):
        begun.clear()
        assert check(asyncio.run(_cancelled_after(steps, add, calls)), OF_A_TRACE) == []
        ran.add("".join(sorted(begun)))  # which of the two begins first, Trio draws
    assert {"", "ab", "abb"} <= ran


def test_an_asyncio_tool_that_finishes_has_started_before_a_cancel_or_not_at_all() -> None:
    """One that a cancel finds in front of its first line gets there all the same, so it has started before."""

    @aio.tool(safe=True, interrupt="finish")
    async def look(ctx: Any) -> None:
        await asyncio.sleep(0)

    started = set()
    for steps in range(20):
        trace = asyncio.run(_cancelled_after(steps, look, [ToolCall("c", "look", {})]))
        assert check(trace, OF_A_TRACE) == []
        started.add(any(event.kind == "call.started" for event in trace.events))
    assert started == {False, True}


def test_an_asyncio_tool_that_awaits_trio_is_told_which_decorator_it_needs() -> None:
    """The error of a wrong await names the decorator of Trio's tools."""

    @aio.tool(safe=True)
    async def wrong(ctx: Any) -> None:
        await trio.lowlevel.checkpoint()

    async def main() -> str | None:
        return (await aio.run(Runtime(Registry([wrong])), [ToolCall("c", "wrong", {})])).results[0].error

    assert "made with @toolrt.tool;" in (asyncio.run(main()) or "")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_an_eager_tool_finds_asyncio_running() -> None:
    """The first step of an eager task sees asyncio, not the Trio run that asked for it."""
    sniffio = pytest.importorskip("sniffio")

    @aio.tool(safe=True)
    async def which(ctx: Any) -> str:
        return str(sniffio.current_async_library())

    async def main() -> Any:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        return (await aio.run(Runtime(Registry([which])), [ToolCall("c", "which", {})])).results[0].content

    assert asyncio.run(main()) == "asyncio"

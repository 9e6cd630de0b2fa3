"""Who waits for Trio's I/O, timers and threads: the event loop, and Trio's own thread where the loop cannot."""

import asyncio
from typing import Any

import pytest
import trio

from toolrt import Registry, Runtime, ToolCall, aio, tool


@tool(safe=True)
async def timer(ctx: Any) -> str:
    """Wait for a deadline of Trio's."""
    await trio.sleep(0.002)
    return "timer"


@tool(safe=True)
def thread(ctx: Any) -> str:
    """Run in a worker thread, which wakes Trio when it has ended."""
    return "thread"


@tool(safe=True)
async def sockets(ctx: Any) -> str:
    """Wait for data that another Trio task sends, and for Trio to be idle."""
    left, right = trio.socket.socketpair()
    with left, right:
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def send() -> None:
                await trio.testing.wait_all_tasks_blocked()
                await right.send(b"sockets")

            return (await left.recv(10)).decode()


@aio.tool(safe=True)
async def host(ctx: Any) -> str:
    """Wait in asyncio."""
    await asyncio.sleep(0.001)
    return "host"


class _LoopWithoutReaders(asyncio.SelectorEventLoop):
    def add_reader(self, *args: Any) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("kind", [asyncio.SelectorEventLoop, _LoopWithoutReaders, "uvloop"])
def test_trio_waits_in_a_thread_only_where_the_loop_watches_no_descriptors(kind: Any, monkeypatch: Any) -> None:
    """All kinds of waits come to their end in both ways, one after the other and together."""
    if kind == "uvloop":
        kind = pytest.importorskip("uvloop", reason="uvloop is not installed").new_event_loop
    waits = 0

    def counting(*args: Any, **named: Any) -> None:
        nonlocal waits
        waits += 1
        start(*args, **named)

    start = trio._core._run.start_thread_soon  # type: ignore[attr-defined]
    monkeypatch.setattr(trio._core._run, "start_thread_soon", counting)  # type: ignore[attr-defined]
    tools = [timer, thread, sockets, host]
    runtime = Runtime(Registry(tools))
    calls = [ToolCall(one.name, one.name) for one in tools]

    async def main() -> list[Any]:
        alone = [(await aio.run(runtime, [call])).results[0].content for call in calls]
        together = (await aio.run(runtime, calls)).results
        return [*alone, *(result.content for result in together)]

    with asyncio.Runner(loop_factory=kind) as runner:
        assert runner.run(main()) == [one.name for one in tools] * 2
    assert (waits > 0) is (kind is _LoopWithoutReaders)


class _PlainHandle:
    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.cancel = timer.cancel


class _LoopOfPlainHandles(asyncio.SelectorEventLoop):
    """Gives for every instant what uvloop gives for one that has passed: a handle that does not tell it."""

    def call_at(self, *args: Any, **named: Any) -> Any:
        return _PlainHandle(super().call_at(*args, **named))


def test_deadline_that_has_passed_when_trio_names_it_is_kept() -> None:
    """The loop gives no timer for it; the next deadline is compared with it all the same."""
    told: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        for seconds in (0.003, 0.002, 0.001):
            asyncio.create_task(aio.call(trio.sleep, seconds))  # noqa: RUF006  they end before the loop does
            await asyncio.sleep(0)
        await aio.call(trio.sleep, 0.004)

    with asyncio.Runner(loop_factory=_LoopOfPlainHandles) as runner:
        runner.run(main())
    assert told == []

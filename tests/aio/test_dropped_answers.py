"""An answer that an approval check gives late is closed once its batch waits for it no more."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from typing import Any

import trio

import toolrt
from toolrt import Outcome, Registry, Runtime, ToolCall, ToolContext, aio


@toolrt.tool
async def nothing(ctx: ToolContext) -> None:
    """Nothing."""


def _checked(begun: threading.Event, go_on: threading.Event) -> Any:
    async def later() -> bool:
        return True

    def approve(request: toolrt.ApprovalRequest) -> Any:
        begun.set()
        assert go_on.wait(10)
        return later()

    return approve


def test_answer_of_a_check_whose_batch_was_cancelled_is_closed() -> None:
    """On Trio and on asyncio no coroutine is left that was never awaited."""
    for on_asyncio in (False, True):
        begun, go_on = threading.Event(), threading.Event()
        runtime = Runtime(Registry([nothing]), approve=_checked(begun, go_on))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")

            async def on_trio(runtime: Runtime = runtime, begun: Any = begun, go_on: Any = go_on) -> Any:
                async with runtime.open_batch() as batch:
                    batch.submit(ToolCall("a", "nothing", {}))
                    await trio.to_thread.run_sync(begun.wait, 10)
                    batch.cancel("it takes too long")
                    go_on.set()
                return batch.outcome.results

            async def in_asyncio(runtime: Runtime = runtime, begun: Any = begun, go_on: Any = go_on) -> Any:
                async with aio.open_batch(runtime) as batch:
                    batch.submit(ToolCall("a", "nothing", {}))
                    await asyncio.to_thread(begun.wait, 10)
                    batch.cancel("it takes too long")
                    go_on.set()
                return batch.outcome.results

            [result] = asyncio.run(in_asyncio()) if on_asyncio else trio.run(on_trio)
            assert result.outcome is Outcome.NOT_STARTED
            gc.collect()
        assert [str(one.message) for one in said if "never awaited" in str(one.message)] == []

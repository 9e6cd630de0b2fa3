"""Thread tools that returned as their batch was cancelled."""

import threading
from typing import Any

import pytest
import trio
import trio.lowlevel

from toolrt import Outcome, Registry, Runtime, ToolCall, tool


def test_a_thread_that_returned_as_the_cancel_came_is_ok() -> None:
    """A tool whose thread has returned keeps its result, though Trio had not taken note of it at the cancel."""
    started, go_on = threading.Event(), threading.Event()

    @tool(safe=True)
    def add(ctx: Any, a: int, b: int) -> int:
        started.set()
        go_on.wait()
        return a + b

    async def main() -> tuple[Outcome, Any]:
        async with Runtime(Registry([add])).open_batch() as batch:
            batch.submit(ToolCall("c", "add", {"a": 1, "b": 2}))
            batch.seal()
            while not started.is_set():
                await trio.lowlevel.checkpoint()
            go_on.set()
            while not trio.lowlevel.current_statistics().run_sync_soon_queue_size:
                pass  # until the thread has told that it ended, without letting Trio hear of it
            batch.cancel("enough")
        return batch.outcome.results[0].outcome, batch.outcome.results[0].content

    assert trio.run(main) == (Outcome.OK, 3)


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("returns", (Outcome.OK, 3, None)),
        ("raises", (Outcome.ERROR, None, "ValueError: no sum")),
        ("answers lazily", (Outcome.ERROR, None, "TypeError")),
        ("times out", (Outcome.TIMED_OUT, None, "could not be stopped and ran on")),
    ],
)
def test_a_thread_that_ended_before_its_result_was_seen_says_how(way: str, expected: Any) -> None:
    """The batch waits for the thread, so what the model reads is never that it still runs."""
    started, go_on = threading.Event(), threading.Event()

    @tool(safe=True, timeout=0.01 if way == "times out" else None)
    def add(ctx: Any) -> Any:
        started.set()
        go_on.wait(60)
        if way == "raises":
            raise ValueError("no sum")
        return (number for number in range(3)) if way == "answers lazily" else 3

    async def main() -> tuple[Outcome, Any, str | None]:
        async with Runtime(Registry([add])).open_batch() as batch:
            batch.submit(ToolCall("c", "add"))
            batch.seal()
            await trio.to_thread.run_sync(started.wait)
            if way != "times out":
                batch.cancel("enough")
            await trio.sleep(0.05)
            go_on.set()
        result = batch.outcome.results[0]
        return result.outcome, result.content, result.error

    outcome, content, error = trio.run(main)
    assert (outcome, content) == expected[:2]
    assert error is None if expected[2] is None else expected[2] in str(error)


def test_a_result_that_was_seen_while_its_thread_ran_stays() -> None:
    """A reader that was told of the interrupt finds the same in the outcome."""
    started, go_on = threading.Event(), threading.Event()

    @tool(safe=True)
    def add(ctx: Any) -> int:
        started.set()
        go_on.wait(60)
        return 3

    async def main() -> tuple[Outcome, Outcome]:
        async with Runtime(Registry([add])).open_batch() as batch:
            batch.submit(ToolCall("c", "add"))
            batch.seal()
            await trio.to_thread.run_sync(started.wait)
            batch.cancel("enough")
            told: Any = await batch.__anext__()
            go_on.set()
        return told.result.outcome, batch.outcome.results[0].outcome

    assert trio.run(main) == (Outcome.INTERRUPTED, Outcome.INTERRUPTED)

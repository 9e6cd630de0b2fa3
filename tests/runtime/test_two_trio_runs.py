"""A claim table belongs to one Trio run at a time: threads that share a runtime or a workspace are refused in words."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests.runtime._tools import WRITE, call, claims, outcomes, runtime
from toolrt import Registry, Runtime, ToolCall, ToolContext, Workspace
from toolrt.errors import BatchClosed
from toolrt.workspace import MemoryDisk

WORDS = r"another Trio run, in another thread, has a batch open on the same claim table.*of its own"


def _in_thread(function: Callable[[], Any]) -> Any:
    """What `function` gives in a thread of its own; what it raises is raised here."""
    answers: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue()

    def body() -> None:
        try:
            answers.put((function(), None))
        except BaseException as error:
            answers.put((None, error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    value, error = answers.get_nowait()
    if error is not None:
        raise error
    return value


@toolrt.tool(claims=claims(("f", WRITE)))
async def writes(ctx: ToolContext) -> str:
    """Writes."""
    await trio.lowlevel.checkpoint()
    return "written"


def _one_runtime() -> tuple[Runtime, Runtime, ToolCall]:
    given = runtime(writes)
    return given, given, call("writes")


def _one_workspace() -> tuple[Runtime, Runtime, ToolCall]:
    workspace = Workspace(MemoryDisk({"a": "1"}))
    first, second = (Runtime(Registry(workspace.tools())) for _ in range(2))
    return first, second, call("read_file", path="a")


@pytest.mark.parametrize("shared", [_one_runtime, _one_workspace])
@pytest.mark.parametrize("streaming", [False, True])
async def test_second_run_is_refused_while_a_batch_is_open(shared: Any, streaming: bool) -> None:
    """In `run` and in `open_batch`; the first goes on, and when it is left the second is let in."""
    first, second, one = shared()

    async def streamed() -> Any:
        async with second.open_batch() as batch:
            batch.submit(one)
        return batch.outcome

    def other() -> Any:
        return trio.run(streamed) if streaming else trio.run(second.run, [one])

    async with first.open_batch() as batch:
        with pytest.raises(BatchClosed, match=WORDS):
            _in_thread(other)
        batch.submit(one)
    assert outcomes(batch.outcome.results) == ["ok"]
    assert outcomes(_in_thread(other).results) == ["ok"]
    assert outcomes((await first.run([one])).results) == ["ok"]


async def test_run_sync_is_refused_beside_a_trio_program() -> None:
    """It takes turns with others of its kind; a Trio program that has a batch open keeps it out."""
    given = runtime(writes)
    async with given.open_batch():
        with pytest.raises(BatchClosed, match=WORDS):
            _in_thread(lambda: toolrt.run_sync(given, [call("writes")]))
    assert outcomes(_in_thread(lambda: toolrt.run_sync(given, [call("writes")])).results) == ["ok"]


def test_sub_batch_of_another_run_is_an_error_of_its_call() -> None:
    """A tool in a thread that starts a Trio run of its own may not lend its claims there."""

    @toolrt.tool(claims=claims(("f", WRITE)))
    def nested(ctx: ToolContext) -> Any:
        return trio.run(ctx.run, [call("writes")])

    done = trio.run(runtime(nested, writes).run, [call("nested"), call("writes")])
    assert outcomes(done.results) == ["error", "ok"]
    assert "another Trio run" in str(done.results[0].error)


def test_run_that_never_left_its_batch_keeps_nobody_out() -> None:
    """What a run that is over has left is thrown away, and the next one is let in."""
    given = runtime(writes)

    async def careless() -> None:
        batch = await given.open_batch().__aenter__()
        batch.submit(call("writes"))

    async def main() -> None:
        with pytest.raises(BaseExceptionGroup, match="nursery"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(careless)
        await trio.testing.wait_all_tasks_blocked()

    trio.run(main)
    assert outcomes(trio.run(given.run, [call("writes")]).results) == ["ok"]
    assert not given.tables[0].busy

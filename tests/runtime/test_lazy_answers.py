"""An answer is a value: what was never awaited is refused and closed; a tool that waits for itself is refused."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import trio

import toolrt
from tests.runtime._tools import WRITE, Diary, call, claims, outcomes, runtime
from toolrt import Batch, State, ToolContext, ToolOutput, sim
from toolrt.model import Allow


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    """Nothing is left that was never awaited."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", RuntimeWarning)
        yield
        gc.collect()
    assert [str(one.message) for one in seen] == []


async def _forgets(*_: Any) -> Any:
    raise AssertionError("it was awaited")


def test_authors_functions_that_forget_to_answer_are_closed() -> None:
    """A lambda that gives a coroutine where an answer is needed counts as one that failed."""

    async def body(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(1, modifiers=[_forgets])  # type: ignore[list-item]

    options: list[dict[str, Any]] = [
        {"safe": lambda input: _forgets()},
        {"stops_batch": lambda input: _forgets()},
        {"claims": lambda input, state: _forgets()},
    ]
    for given in (
        *(runtime(toolrt.tool(name="t", **option)(body)) for option in options),
        runtime(toolrt.tool(name="t")(body), lanes=lambda tool, input: _forgets()),
    ):
        done = trio.run(given.run, [call("t"), call("t")])
        assert outcomes(done.results) == ["ok", "ok"]
        assert done.state == State()


async def _leaves(batch: Batch) -> None:
    await batch.__aexit__(None, None, None)


async def _reads(batch: Batch) -> None:
    async for _ in batch:
        pass


async def _reads_one(batch: Batch) -> None:
    await batch.__anext__()


async def _reads_in_a_nursery(batch: Batch) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_reads, batch)


async def _runs(batch: Batch) -> None:
    await batch.run([])


async def _enters(batch: Batch) -> None:
    async with batch:
        pass


WAITING = [_leaves, _reads, _reads_one, _reads_in_a_nursery, _runs, _enters]


@pytest.mark.parametrize("around", ["own", "sub-batch", "thread"])
@pytest.mark.parametrize("waits", WAITING)
def test_tool_that_waits_for_its_own_batch_is_refused(waits: Any, around: str) -> None:
    """By itself, from inside a sub-batch, and from a worker thread; the batch goes on and ends."""
    batches: list[Batch] = []

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def waiting(ctx: ToolContext) -> None:
        await waits(batches[-1])

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def opens(ctx: ToolContext) -> None:
        (result,) = (await ctx.run([call("waiting")])).results
        raise ValueError(result.error)

    @toolrt.tool(claims=claims(("f", WRITE)))
    def threaded(ctx: ToolContext) -> None:
        trio.from_thread.run(waits, batches[-1])

    given = runtime(waiting, opens, threaded, Diary().tool("b", claims=claims(("f", WRITE))))
    name = {"own": "waiting", "sub-batch": "opens", "thread": "threaded"}[around]

    async def program() -> list[Any]:
        async with given.open_batch() as batch:
            batches.append(batch)
            batch.submit(call(name))
            batch.submit(call("b"))
        return list(batch.outcome.results)

    # A deadlock ends a simulation; a thread is for Trio itself, with a real clock that only a hang would reach.
    results = trio.run(program) if around == "thread" else sim.run(program).value
    assert outcomes(results) == ["error", "ok"]
    assert "BatchClosed" in results[0].error
    assert not given.tables[0].busy


async def test_sub_batch_is_read_by_the_tool_that_opened_it() -> None:
    """Reading and leaving what one has opened oneself is what batches are for."""
    leaf = Diary().tool("leaf", claims=claims(("f", WRITE)))

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def opens(ctx: ToolContext) -> int:
        count = 0
        async with ctx.open_batch() as batch:
            batch.submit(call("leaf"))
            batch.seal()
            async for _ in batch:
                count += 1
        return count

    done = await runtime(opens, leaf, approve=lambda request: Allow()).run([call("opens")])
    assert done.results[0].content == 2


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_modifier_for_an_answer_is_an_error(wrapped: bool) -> None:
    """A function that stands where the content belongs is refused: it would be lost without a word."""

    def change(state: State) -> State:
        return state.set("changed", True)

    @toolrt.tool(safe=True)
    async def changes(ctx: ToolContext) -> Any:
        return ToolOutput(change) if wrapped else change

    done = await runtime(changes).run([call("changes")])
    assert outcomes(done.results) == ["error"]
    assert "ToolOutput(content, modifiers=[...])" in done.results[0].error
    assert "changed" not in done.state

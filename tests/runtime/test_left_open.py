"""A tool that leaves something open in its task: its call is an ERROR, and the others keep their results (law 9)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

import toolrt
from tests.runtime._tools import WRITE, Diary, call, claims, outcomes, runtime
from toolrt import ToolContext, sim

KEPT: list[Any] = []

#: Trio warns of a generator that is dropped, as of any other.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")


async def _busy(ctx: ToolContext) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        yield


def test_scope_around_the_batch_that_a_tool_closes_hangs_nothing() -> None:
    """Trio says that the caller's stack is corrupted; the batch is complete all the same, and its tickets are back."""
    scopes: list[trio.CancelScope] = []
    batches: list[toolrt.Batch] = []

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def closes(ctx: ToolContext) -> None:
        scopes[-1].__exit__(None, None, None)

    given = runtime(closes, Diary().tool("leaf", claims=claims(("f", WRITE))))

    async def program() -> None:
        with trio.CancelScope() as scope:
            scopes.append(scope)
            async with given.open_batch() as batch:
                batches.append(batch)
                batch.submit(call("closes"))
                batch.submit(call("leaf"))

    with pytest.raises(RuntimeError, match="corrupted"):
        trio.run(program)
    assert outcomes(batches[0].outcome.results)[0] == "error"
    assert not given.tables[0].busy
    assert outcomes(trio.run(given.run, [call("leaf")]).results) == ["ok"]


def test_batch_of_another_runtime_that_is_left_open_is_left() -> None:
    """Its calls are answered, and its table is free for the next batch."""
    leaf = Diary().tool("leaf", 9, claims=claims(("g", WRITE)))
    other = runtime(leaf)

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def careless(ctx: ToolContext) -> None:
        batch = await other.open_batch().__aenter__()
        KEPT.append(batch)
        batch.submit(call("leaf"))
        await trio.sleep(1)

    async def program() -> Any:
        KEPT.clear()
        done = await runtime(careless).run([call("careless")])
        return outcomes(done.results), outcomes(KEPT[0].outcome.results), other.tables[0].busy

    assert sim.run(program).value == (["error"], ["interrupted"], False)


def test_private_names_of_trio_are_there() -> None:
    """The self-test: a Trio whose internals moved fails here, not in the middle of a batch."""
    from toolrt.runtime._left_open import TRIO_NAMES

    found: dict[str, Any] = {}

    async def program() -> None:
        manager = trio.open_nursery()
        async with manager as nursery:
            task = trio.lowlevel.current_task()
            found.update(Task=task, CancelStatus=task._cancel_status, Nursery=nursery, NurseryManager=manager)
            missing = {
                (kind, name) for kind, names in TRIO_NAMES.items() for name in names if not hasattr(found[kind], name)
            }
            assert missing == set()

    trio.run(program)

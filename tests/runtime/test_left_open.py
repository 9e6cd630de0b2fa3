"""A tool that leaves something open in its task: its call is an ERROR, and the others keep their results (law 9)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trio

import toolrt
from tests.runtime._tools import WRITE, Diary, call, claims, outcomes, runtime
from toolrt import Runtime, ToolContext, ToolOutput, sim
from toolrt.invariants import require

KEPT: list[Any] = []

#: Trio warns of a generator that is dropped, as of any other.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")


async def _nursery(ctx: ToolContext) -> None:
    nursery = await trio.open_nursery().__aenter__()
    nursery.start_soon(trio.sleep_forever)


async def _empty_nursery(ctx: ToolContext) -> None:
    KEPT.append(await trio.open_nursery().__aenter__())


async def _scope(ctx: ToolContext) -> None:
    trio.CancelScope().__enter__()


async def _cancelled_scope(ctx: ToolContext) -> None:
    trio.CancelScope(deadline=0).__enter__()
    await trio.sleep(5)


async def _many(ctx: ToolContext) -> None:
    trio.CancelScope().__enter__()
    outer = await trio.open_nursery().__aenter__()
    trio.CancelScope(shield=True).__enter__()
    inner = await trio.open_nursery().__aenter__()
    outer.start_soon(trio.sleep_forever)
    inner.start_soon(trio.sleep_forever)
    trio.CancelScope().__enter__()


async def _raising(ctx: ToolContext) -> None:
    await _nursery(ctx)
    raise ValueError("and more")


async def _failing_child(ctx: ToolContext) -> None:
    async def fails() -> None:
        raise KeyError("child")

    nursery = await trio.open_nursery().__aenter__()
    nursery.start_soon(fails)
    await trio.sleep(5)


async def _sub_batch(ctx: ToolContext) -> None:
    batch = await ctx.open_batch().__aenter__()
    KEPT.append(batch)
    batch.submit(call("leaf"))
    await trio.sleep(0.1)


async def _busy(ctx: ToolContext) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        yield


async def _batch_of_a_generator(ctx: ToolContext) -> AsyncIterator[None]:
    with trio.CancelScope():
        async with ctx.open_batch() as batch:
            batch.submit(call("leaf"))
            yield


async def _generator(ctx: ToolContext) -> None:
    KEPT.append(_busy(ctx))
    await anext(KEPT[-1])


async def _dropped_generator(ctx: ToolContext) -> None:
    async for _ in _busy(ctx):
        break


async def _generator_with_a_batch(ctx: ToolContext) -> None:
    KEPT.append(_batch_of_a_generator(ctx))
    await anext(KEPT[-1])


async def _context_manager(ctx: ToolContext) -> None:
    KEPT.append(contextlib.asynccontextmanager(_busy)(ctx))
    await KEPT[-1].__aenter__()
    raise ValueError("and more")


async def _modifying(ctx: ToolContext) -> ToolOutput:
    trio.CancelScope().__enter__()
    return ToolOutput("done", modifiers=[lambda state: state.set("changed", True)])


CARELESS: dict[str, tuple[Callable[[ToolContext], Awaitable[Any]], str]] = {
    "nursery": (_nursery, "a nursery"),
    "empty nursery": (_empty_nursery, "a nursery"),
    "scope": (_scope, "a cancel scope"),
    "cancelled scope": (_cancelled_scope, "a cancel scope"),
    "many": (_many, "a nursery"),
    "raising": (_raising, "and more"),
    "failing child": (_failing_child, "child"),
    "sub-batch": (_sub_batch, "batch-1/1.1"),
    "generator": (_generator, "a nursery"),
    "dropped generator": (_dropped_generator, "a nursery"),
    "generator with a batch": (_generator_with_a_batch, "batch-1/1.1"),
    "context manager": (_context_manager, "and more"),
    "modifying": (_modifying, "a cancel scope"),
}

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "timed": {"timeout": 60.0},
    "finishes": {"interrupt": "finish"},
    "exclusive": {"claims": None},
}


def _runtime(name: str, options: str) -> Runtime:
    body, _ = CARELESS[name]
    given = {"claims": claims(("f", WRITE)), **OPTIONS[options]}
    careless = toolrt.tool(name="careless", **given)(body)
    diary = Diary()
    return runtime(
        diary.tool("before", 1, safe=True),
        diary.tool("after", 1, claims=claims(("f", WRITE))),
        diary.tool("leaf", 9, claims=claims(("f", WRITE))),
        careless,
    )


CALLS = [call("before"), call("careless"), call("after")]


@pytest.mark.parametrize("options", sorted(OPTIONS))
@pytest.mark.parametrize("name", sorted(CARELESS))
def test_what_a_tool_leaves_open_is_the_error_of_its_call(name: str, options: str) -> None:
    """All laws hold; the error says what was left open; nothing of it runs on; the state is as if it had not run."""

    async def program() -> Any:
        KEPT.clear()
        given = _runtime(name, options)
        done = await given.run(CALLS)
        again = await given.run(CALLS[:1])
        return outcomes(done.results), done.results[1].error, done.state.get("changed"), outcomes(again.results)

    execution = sim.run(program)
    require(execution.trace)
    words, error, changed, again = execution.value
    assert (words, changed, again) == (["ok", "error", "ok"], None, ["ok"])
    assert CARELESS[name][1] in error
    assert "open" in error


@pytest.mark.parametrize("name", sorted(CARELESS))
def test_the_same_on_trio_itself(name: str) -> None:
    """No clock of ours and no simulator: Trio finds no stack corrupted, and no table keeps a ticket."""
    given = _runtime(name, "plain")
    done = trio.run(given.run, CALLS[1:2])
    assert outcomes(done.results) == ["error"]
    assert not given.tables[0].busy
    for one in KEPT:
        if isinstance(one, toolrt.Batch):
            assert outcomes(one.outcome.results) in (["interrupted"], ["not_started"])
    KEPT.clear()


def test_scope_of_another_tool_is_not_closed() -> None:
    """A tool that leaves the scope another tool is in fails by itself; the other one is not touched."""
    shared: list[trio.CancelScope] = []

    @toolrt.tool(safe=True)
    async def owner(ctx: ToolContext) -> str:
        with trio.CancelScope() as scope:
            shared.append(scope)
            await trio.sleep(2)
        return "mine"

    @toolrt.tool(safe=True)
    async def thief(ctx: ToolContext) -> None:
        await trio.sleep(1)
        shared[-1].__exit__(None, None, None)

    execution = sim.run(lambda: runtime(owner, thief).run([call("owner"), call("thief"), call("owner")]))
    assert outcomes(execution.value.results) == ["ok", "error", "ok"]


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

"""Tools that run batches on each other's runtimes: a call that would close a circle is refused, and all batches end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

import toolrt
from tests.runtime._tools import WRITE, Diary, call, claims, outcomes, runtime
from toolrt import Claim, Limits, Registry, Runtime, ToolContext, Workspace, sim
from toolrt.workspace import MemoryDisk

F = claims(("f", WRITE))


def _goes(name: str, to: Callable[[], Runtime], what: str, **options: Any) -> toolrt.Tool:
    """A tool that waits, runs a call on another runtime, and answers with how that ended."""

    async def body(ctx: ToolContext) -> list[Any]:
        await trio.sleep(1)
        (result,) = (await to().run([call(what)])).results
        return [result.outcome.value, result.error]

    return toolrt.tool(name=name, **{"claims": F, **options})(body)


def _ring(size: int, **options: Any) -> list[Runtime]:
    """Runtimes in a row: the tool `go` of each runs `leaf` on the next one."""
    ring: list[Runtime] = []
    for place in range(size):
        following = lambda place=place: ring[(place + 1) % size]  # noqa: E731
        ring.append(runtime(_goes("go", following, "leaf"), Diary().tool("leaf", claims=F), **options))
    return ring


async def _all_at_once(ring: list[Runtime], what: str = "go") -> list[Any]:
    found: list[Any] = [None] * len(ring)

    async def one(place: int) -> None:
        found[place] = (await ring[place].run([call(what)])).results[0]

    async with trio.open_nursery() as nursery:
        for place in range(len(ring)):
            nursery.start_soon(one, place)
    assert not any(given.tables[0].busy for given in ring)
    return found


def _assert_one_is_refused(results: list[Any]) -> None:
    assert outcomes(results) == ["ok"] * len(results)
    words = sorted(result.content[0] for result in results)
    assert words == ["invalid"] + ["ok"] * (len(results) - 1)
    (error,) = [result.content[1] for result in results if result.content[1]]
    assert "would never start: it waits for call 0 (" in error


@pytest.mark.parametrize("size", [2, 3, 5])
def test_circle_of_runtimes_is_refused(size: int) -> None:
    """The call that would close it is INVALID and names who waits for whom; the others run as if it had not come."""
    execution = sim.run(lambda: _all_at_once(_ring(size)))
    assert execution.error is None
    _assert_one_is_refused(execution.value)


@pytest.mark.parametrize("way", ["a batch on another runtime", "a sub-batch of an owner"])
@pytest.mark.parametrize("limits", [{"limit": 1}, {"tools": {("go", "leaf"): 1}}])
def test_circle_of_a_ticket_and_a_shared_limit_is_refused(way: str, limits: dict[str, Any]) -> None:
    """A tool has the limit and waits for a ticket of a call that waits for the limit: its own call is refused."""

    async def main() -> list[Any]:
        shared = Limits(**limits)
        inner = Runtime(Registry([Diary().tool("leaf", claims=F)]), limits=shared)

        async def body(ctx: ToolContext) -> list[Any]:
            await trio.sleep(2)
            calls = [call("leaf")]
            (result,) = (await (inner.run(calls) if "another" in way else ctx.run(calls))).results
            return [result.outcome.value, result.error]

        alone = {"safe": True} if "another" in way else {}
        outer = Runtime(Registry([toolrt.tool(name="go", **alone)(body), *inner.registry]), limits=shared)
        other = inner if "another" in way else outer
        found: list[Any] = [None] * 2

        async def one(place: int, of: Runtime, what: str) -> None:
            await trio.sleep(place)
            found[place] = (await of.run([call(what)], owner=place)).results[0]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, 0, outer, "go")
            nursery.start_soon(one, 1, other, "leaf")
        assert not any(shared.statistics().values())
        return found

    execution = sim.run(main)
    assert execution.error is None
    went, leaf = execution.value
    assert outcomes([went, leaf]) == ["ok", "ok"]
    outcome, error = went.content
    assert outcome == "invalid"
    assert "it would never start: it waits for call 0 (leaf)" in error


@pytest.mark.seldom
def test_circle_is_refused_under_every_schedule() -> None:
    """Whatever the order is, two runtimes end."""

    async def program() -> None:
        results = await _all_at_once(_ring(2))
        words = sorted(result.content[0] for result in results)
        assert words in (["invalid", "ok"], ["ok", "ok"])

    report = sim.explore(program, strategy=sim.DPOR(), max_executions=400)
    assert not report.failures


def test_circle_through_two_workspaces_is_refused() -> None:
    """Whose tables they are makes no difference."""
    ring: list[Runtime] = []
    for place in range(2):
        workspace = Workspace(MemoryDisk({"a": "1"}))
        going = _goes(
            "go", lambda place=place: ring[1 - place], "leaf", claims=[Claim((), WRITE, subtree=True)], owner=workspace
        )
        leaf = toolrt.tool(name="leaf", claims=[Claim("f", WRITE)], owner=workspace)(Diary().tool("leaf").function)
        ring.append(Runtime(Registry([*workspace.tools(), going, leaf])))
    _assert_one_is_refused(sim.run(lambda: _all_at_once(ring)).value)


@pytest.mark.parametrize("depth", [1, 2])
def test_circle_through_sub_batches_is_refused(depth: int) -> None:
    """The claims that are waited for may be those of a call around a sub-batch."""
    ring: list[Runtime] = []

    def nesting(name: str, inner: str) -> toolrt.Tool:
        async def body(ctx: ToolContext) -> Any:
            return (await ctx.run([call(inner)])).results[0].content

        return toolrt.tool(name=name, claims=F)(body)

    for place in range(2):
        tools = [_goes("go", lambda place=place: ring[1 - place], "leaf"), Diary().tool("leaf", claims=F)]
        tools += [nesting("around", "go"), nesting("further", "around")]
        ring.append(runtime(*tools))
    _assert_one_is_refused(sim.run(lambda: _all_at_once(ring, "around" if depth == 1 else "further")).value)


def test_circle_over_a_slot_is_refused() -> None:
    """A call that only lacks a slot keeps its ticket: calls behind it wait for the calls that hold the slots."""
    first: list[Runtime] = []
    second = runtime(_goes("go", lambda: first[0], "leaf"), Diary().tool("leaf", claims=F))
    going = _goes("go", lambda: second, "leaf", claims=claims(("slot", WRITE)))
    first.append(runtime(going, Diary().tool("leaf", claims=F), limit=1))

    async def program() -> Any:
        found: dict[str, Any] = {}

        async def holds_the_slot() -> None:
            found["first"] = (await first[0].run([call("go"), call("leaf")])).results

        async def wants_the_ticket() -> None:
            found["second"] = (await second.run([call("go")])).results

        async with trio.open_nursery() as nursery:
            nursery.start_soon(holds_the_slot)
            nursery.start_soon(wants_the_ticket)
        return found["first"][0].content[0], found["first"][1].outcome.value, found["second"][0].content[0]

    assert sorted(sim.run(program).value) == ["invalid", "ok", "ok"]


def test_circle_of_a_streaming_batch_is_refused() -> None:
    """A call that joins an open lane is held against the graph, too, and so is one of a later lane."""
    ring: list[Runtime] = []

    def streaming(place: int) -> toolrt.Tool:
        async def streams(ctx: ToolContext) -> list[str]:
            async with ring[1 - place].open_batch() as batch:
                batch.submit(call("free"))
                await trio.sleep(1)
                batch.submit(call("leaf"))
                batch.submit(call("alone"))
            return outcomes(batch.outcome.results)

        return toolrt.tool(name="go", claims=F)(streams)

    for place in range(2):
        leaf, alone = Diary().tool("leaf", claims=F), Diary().tool("alone")
        ring.append(runtime(streaming(place), leaf, alone, Diary().tool("free", safe=True)))
    found = sorted(result.content for result in sim.run(lambda: _all_at_once(ring)).value)
    assert found[1] == ["ok", "ok", "ok"]
    assert found[0] == ["ok", "invalid", "invalid"]


@pytest.mark.parametrize("threaded", [False, True])
def test_waiting_that_ends_is_not_refused(threaded: bool) -> None:
    """A tool that waits on another runtime for calls that end by themselves gets its answer."""
    other = runtime(Diary().tool("slow", 0.01 if threaded else 5, claims=F), Diary().tool("leaf", claims=F))
    going = _goes("go", lambda: other, "leaf")

    @toolrt.tool(name="thread", claims=F)
    def thread(ctx: ToolContext) -> list[Any]:
        (result,) = trio.from_thread.run(other.run, [call("leaf")]).results
        return [result.outcome.value]

    first = runtime(going, thread)

    async def program() -> Any:
        found: list[Any] = []

        async def one(given: Runtime, what: str) -> None:
            found.extend((await given.run([call(what)] * 2)).results)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, other, "slow")
            nursery.start_soon(one, first, "thread" if threaded else "go")
            nursery.start_soon(one, other, "leaf")
        return outcomes(found), [result.content[0] for result in found if isinstance(result.content, list)]

    value = trio.run(program) if threaded else sim.run(program).value
    assert value == (["ok"] * 6, ["ok"] * 2)

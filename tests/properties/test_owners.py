"""Batches of several owners on one claim table: undeclared is alone within an owner, and owners meet in claims."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import toolrt
from toolrt import READ, WRITE, Claim, ToolCall, ToolContext, invariants, sim
from toolrt.errors import DefinitionRefused, UndeclaredWarning
from toolrt.order._tickets import ClaimTable
from toolrt.runtime._run import BatchRun

KEYS = "xy"
#: What tools say that they touch; "undeclared" says nothing.
SAID: dict[str, Any] = {
    "undeclared": {},
    "safe": {"safe": True},
    "alone": {"claims": [Claim("x", WRITE)], "alone": True},
    "everything": {"claims": [toolrt.EVERYTHING]},
    **{f"writes {key}": {"claims": [Claim(key, WRITE)]} for key in KEYS},
    **{f"reads {key}": {"claims": [Claim(key, READ)]} for key in KEYS},
}


class World:
    """What runs at one time, and what must not."""

    def __init__(self) -> None:
        self.running: list[tuple[Any, str, str]] = []
        self.wrong: list[str] = []

    def tools(self) -> list[toolrt.Tool]:
        return [self._tool(name, said) for name, said in SAID.items()]

    def _tool(self, name: str, said: dict[str, Any]) -> toolrt.Tool:
        @toolrt.tool(name=name, schema=None, **said)
        async def work(ctx: ToolContext, owner: Any, seconds: int, inside: Any = ()) -> None:
            mine = (owner, name, ctx.batch_id)
            for other in self.running:
                if not mine[2].startswith(f"{other[2]}/") and self._must_not_meet(mine, other):
                    self.wrong.append(f"{mine} beside {other}")
            self.running.append(mine)
            try:
                await trio.sleep(seconds)
                async with trio.open_nursery() as nursery:
                    for calls in inside:
                        nursery.start_soon(ctx.run, [_call(at, owner, *one) for at, one in enumerate(calls)])
            finally:
                self.running.remove(mine)

        return work

    @staticmethod
    def _must_not_meet(mine: tuple[Any, str, str], other: tuple[Any, str, str]) -> bool:
        if mine[0] == other[0] and "undeclared" in (mine[1], other[1]):
            return True
        pairs = [SAID[name].get("claims", []) for _, name, _ in (mine, other)]
        return any(one.conflicts_with(another) for one in pairs[0] for another in pairs[1])


def _call(at: int, owner: Any, name: str, seconds: int, *inside: Any) -> ToolCall:
    return ToolCall(str(at), name, {"owner": owner, "seconds": seconds, "inside": inside[0] if inside else ()})


LEAVES = st.tuples(st.sampled_from(list(SAID)), st.integers(0, 2))
#: Tools that open sub-batches, all of them at once.
PARENTS = st.recursive(
    LEAVES,
    lambda calls: st.tuples(
        st.sampled_from(["undeclared", "everything", "writes x"]),
        st.integers(0, 1),
        st.lists(st.lists(calls, min_size=1, max_size=2), max_size=2),
    ),
    max_leaves=5,
)
BATCHES = st.lists(
    st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 2), st.lists(PARENTS, min_size=1, max_size=3)),
    min_size=1,
    max_size=4,
)


def _program(batches: Any) -> Any:
    async def main() -> list[str]:
        world = World()
        runtime = toolrt.Runtime(toolrt.Registry(world.tools()))

        async def converse(owner: str, late: int, calls: Any) -> None:
            await trio.sleep(late)
            asked = [_call(at, owner, *one) for at, one in enumerate(calls)]
            done = await runtime.run(asked, owner=owner)
            assert all(result.outcome is toolrt.Outcome.OK for result in done.results), done.results

        async with trio.open_nursery() as nursery:
            for batch in batches:
                nursery.start_soon(converse, *batch)
        return world.wrong

    return main


@pytest.mark.seldom
@settings(max_examples=2 * settings.default.max_examples)
@given(batches=BATCHES, seed=st.integers(0, 2**16))
def test_undeclared_is_alone_within_its_owner_and_claims_order_all(batches: Any, seed: int) -> None:
    """Every batch ends, under any schedule and in any mix with sub-batches, and the laws hold."""
    report = sim.explore(
        _program(batches),
        sim.Random(sim.RandomWalk(seed=seed), 6),
        check=lambda execution: execution.value == [] and not invariants.check(execution.trace),
    )
    assert not report.failures, report.failures[0].explain()


@pytest.mark.parametrize("waits", [{}, {"claims_after": [Claim("x", READ)]}])
def test_child_that_waits_inside_holds_nothing_outside(waits: dict[str, Any]) -> None:
    """An undeclared child may open a sub-batch of its own, while a call of another sub-batch waits for that child."""

    @toolrt.tool(schema=None, claims=lambda input, state: [Claim("x", WRITE)], **waits)
    async def take(ctx: ToolContext) -> None:
        await trio.sleep(1)

    @toolrt.tool(schema=None)
    async def inner(ctx: ToolContext) -> str:
        await trio.sleep(2)
        done = await ctx.run([ToolCall("i", "take")])
        return str(done.results[0].outcome)

    @toolrt.tool(schema=None)
    async def outer(ctx: ToolContext) -> list[Any]:
        answers: list[Any] = []

        async def run(name: str) -> None:
            answers.extend((await ctx.run([ToolCall(name, name)])).results)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, "inner")
            await trio.sleep(1)
            nursery.start_soon(run, "take")
        return [(result.name, result.outcome.value, result.content) for result in answers]

    runtime = toolrt.Runtime(toolrt.Registry([take, inner, outer]))
    execution = sim.run(lambda: runtime.run([ToolCall("o", "outer")], owner="ann"))
    assert execution.value is not None, execution.error
    assert execution.value.results[0].content == [("inner", "ok", "ok"), ("take", "ok", None)]


def _overlap(owners: list[Any], **said: Any) -> bool:
    """Whether two calls of one tool, each in a batch of its own, run at one time."""
    together: list[int] = []
    now = 0

    @toolrt.tool(schema=None, **said)
    async def work(ctx: ToolContext) -> None:
        nonlocal now
        now += 1
        together.append(now)
        await trio.sleep(1)
        now -= 1

    async def main() -> None:
        runtime = toolrt.Runtime(toolrt.Registry([work]))
        async with trio.open_nursery() as nursery:
            for owner in owners:

                async def one(owner: Any = owner) -> None:
                    await runtime.run([ToolCall("a", "work")], owner=owner)

                nursery.start_soon(one)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndeclaredWarning)
        sim.run(main)
    return max(together) > 1


def test_owners_do_not_wait_for_each_others_undeclared_tools() -> None:
    """Calls of one owner wait; without owners all wait."""
    assert _overlap(["ann", "bob"])
    assert not _overlap(["ann", "ann"])
    assert not _overlap([None, None])
    assert not _overlap(["ann", "bob"], claims=[Claim("x", WRITE)])
    assert not _overlap(["ann", "bob"], claims=[Claim("x", WRITE)], alone=True)


def test_wait_for_an_undeclared_tool_of_another_batch_is_told_once() -> None:
    """By a warning that names both calls; with owners there is none."""

    @toolrt.tool(schema=None)
    async def work(ctx: ToolContext) -> None:
        await trio.lowlevel.checkpoint()

    runtime = toolrt.Runtime(toolrt.Registry([work]))

    async def main(*owners: Any) -> None:
        async with trio.open_nursery() as nursery:
            for owner in owners:
                nursery.start_soon(lambda owner=owner: runtime.run([ToolCall("a", "work")], owner=owner))

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        trio.run(main, "ann", "bob")
        assert not seen
        trio.run(main, None, None, None)
        trio.run(main, None, None, None)
    [told] = seen
    assert isinstance(told.message, UndeclaredWarning)
    assert "call 0 (work)" in str(told.message)
    assert "owner=" in str(told.message)


def test_lane_that_waits_for_its_owners_other_batch_is_cancelled_at_once() -> None:
    """Its calls have not started, and those behind it get their turn."""

    @toolrt.tool(schema=None)
    async def work(ctx: ToolContext, seconds: float) -> None:
        await trio.sleep(seconds)

    runtime = toolrt.Runtime(toolrt.Registry([work]))

    async def main() -> list[str]:
        found = []

        async def one(seconds: float, after: float) -> None:
            async with runtime.open_batch(owner="ann") as batch:
                batch.submit(ToolCall("a", "work", {"seconds": seconds}))
                batch.seal()
                await trio.sleep(after)
                if after == 1:
                    batch.cancel("enough")
                    found.append(f"{trio.current_time()}")
            found.append(f"{batch.outcome.results[0].outcome.value} {trio.current_time()}")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, 5, 0)
            await trio.sleep(0.5)
            nursery.start_soon(one, 5, 1)
            await trio.sleep(0.1)
            nursery.start_soon(one, 2, 0)
        return found

    execution = sim.run(main)
    assert execution.value == ["1.5", "not_started 1.5", "ok 5.0", "ok 7.0"]


def test_owner_that_is_no_key_is_refused() -> None:
    """Nothing was run."""
    runtime = toolrt.Runtime(toolrt.Registry([]))
    with pytest.raises(DefinitionRefused, match="owner"):
        trio.run(lambda: runtime.run([], owner=[]))


@pytest.mark.parametrize("wrong", ["every owner has a table of its own for each batch", "lanes do not wait"])
def test_wrong_owners_are_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By law 5, in a fixed mix."""
    if wrong == "lanes do not wait":

        async def at_once(*args: Any) -> None:
            await trio.lowlevel.checkpoint()

        monkeypatch.setattr(BatchRun, "_wait_turn", at_once)
    else:
        monkeypatch.setattr(ClaimTable, "of_owner", lambda self, owner: ClaimTable("ann"))
    batches = [("ann", 0, [("undeclared", 2)]), ("ann", 1, [("undeclared", 2)])]
    trace = sim.run(_program(batches)).trace
    assert "exclusive_alone" in [found.law for found in invariants.check(trace)]

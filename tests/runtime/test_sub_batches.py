"""Sub-batches: calls that a tool runs inside its own claims, with a state of their own (RULE 20)."""

from __future__ import annotations

import re
from typing import Any

import pytest
import trio

import toolrt
from tests.runtime._tools import READ, WRITE, Diary, call, claims, opener, outcomes, runtime
from toolrt import Claim, Registry, Runtime, State, ToolContext, ToolOutput
from toolrt.errors import BatchClosed, DefinitionRefused
from toolrt.model import ApprovalRequest, BatchOutcome, Progress, ToolCall
from toolrt.workspace import MemoryDisk, Workspace


@pytest.mark.parametrize(
    ("parent", "child", "held", "wanted"),
    [
        ([("f", READ)], [("f", WRITE)], "holds read f", "claims write f"),
        ([("f", WRITE)], [("g", READ)], "holds write f", "claims read g"),
        ([], [("g", READ)], "holds nothing", "claims read g"),
        ([("f", WRITE)], None, "holds write f", "claims write everything"),
    ],
)
async def test_child_that_is_not_covered_is_invalid(parent: Any, child: Any, held: str, wanted: str) -> None:
    """It is refused before it runs, and the text names both claims and both calls."""
    kept: list[BatchOutcome] = []
    diary = Diary()
    leaf = diary.tool("leaf", claims=None if child is None else claims(*child))
    opens = opener(call("leaf"), kept=kept, claims=claims(*parent))
    await runtime(leaf, opens).run([call("opens")])
    (result,) = kept[0].results
    assert result.outcome is toolrt.Outcome.INVALID
    assert held in str(result.error)
    assert wanted in str(result.error)
    assert re.search(r"call 0 of batch batch-1\S* \(opens\)", str(result.error))
    assert diary.lines == []


@pytest.mark.parametrize("streams", [False, True])
async def test_child_that_is_not_covered_stops_what_follows(streams: bool) -> None:
    """INVALID stops the sub-batch where the tool asks for it, also where it joins a lane that runs."""
    found: list[str] = []
    bad = Diary().tool("bad", claims=claims(("g", WRITE)), stops_batch=True)
    good = Diary().tool("good", 1, safe=True)

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def opens(ctx: ToolContext) -> None:
        async with ctx.open_batch() as batch:
            for one in (call("good"), call("bad"), call("good")):
                batch.submit(one)
                if streams:
                    await trio.sleep(0.25)
        found.extend(outcomes(batch.outcome.results))

    await runtime(bad, good, opens).run([call("opens")])
    assert found == ["ok", "invalid", "skipped"]


async def test_exclusive_child_runs_beside_no_child_of_another_sub_batch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A tool may open two sub-batches at once; a child that claims nothing waits, too."""
    diary = Diary()

    @toolrt.tool(schema=None)
    async def two(ctx: ToolContext) -> None:
        async with trio.open_nursery() as nursery:
            for name in ("safe", "child", "safe"):
                nursery.start_soon(ctx.run, [call(name)])

    await runtime(diary.tool("child", 2), diary.tool("safe", 3, safe=True), two).run([call("two")])
    alone = diary.lines.index("child+")
    assert diary.lines[alone + 1] == "child-"
    assert diary.lines[:alone].count("safe+") == diary.lines[:alone].count("safe-")


async def test_child_that_declares_nothing_needs_a_parent_that_runs_alone() -> None:
    """A policy of one's own may put the parent beside others: then the child is refused, in words."""
    kept: list[BatchOutcome] = []
    parent = opener(call("child"), kept=kept)
    rt = Runtime(Registry([Diary().tool("child"), parent]), lanes=lambda tool, input: tool.name == parent.name)
    await rt.run([call(parent.name)])
    assert outcomes(kept[0].results) == ["invalid"]
    assert "runs alone" in str(kept[0].results[0].error)


async def test_approval_that_narrows_the_parent_narrows_its_children() -> None:
    """What the parent may touch is what its approval left."""
    kept: list[BatchOutcome] = []

    def approve(request: ApprovalRequest) -> Any:
        return toolrt.Allow(within=(Claim("f", READ),)) if request.name == "opens" else True

    leaf = Diary().tool("leaf", claims=claims(("f", WRITE)))
    opens = opener(call("leaf"), kept=kept, claims=claims(("f", WRITE)))
    await runtime(leaf, opens, approve=approve).run([call("opens")])
    assert "holds read f" in str(kept[0].results[0].error)


async def test_children_of_another_workspace_are_not_covered() -> None:
    """Not even by an exclusive parent, which holds nothing there."""
    one, other = Workspace(MemoryDisk({"a.txt": ""})), Workspace(MemoryDisk({"a.txt": ""}))
    texts: list[str | None] = []

    @toolrt.tool(owner=one)
    async def opens(ctx: ToolContext) -> None:
        calls = [call("write_file", path="a.txt", content="x")]
        for workspace in (one, other):
            outcome = await ctx.run(calls, registry=Registry(workspace.tools()))
            texts.append(outcome.results[0].error)

    await Runtime(Registry([opens])).run([call("opens")])
    assert texts[0] is None
    assert "those resources have another owner" in str(texts[1])
    assert one.snapshot() == {"a.txt": b"x"}
    assert other.snapshot() == {"a.txt": b""}


async def test_registry_of_the_sub_batch_is_the_one_given() -> None:
    """`ctx.registry` has the runtime's tools; a sub-batch may have others, which nobody else sees."""
    seen: list[Any] = []
    leaf = Diary().tool("leaf", claims=claims(("f", WRITE)))

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def opens(ctx: ToolContext) -> None:
        seen.append(ctx.registry.names if ctx.registry is not None else None)
        seen.append(outcomes((await ctx.run([call("leaf")])).results))
        seen.append(outcomes((await ctx.run([call("leaf")], registry=Registry([leaf]))).results))

    await runtime(opens).run([call("opens")])
    assert seen == [("opens",), ["invalid"], ["ok"]]


# State


async def test_modifiers_that_failed_are_not_handed_on() -> None:
    """What was rejected in the sub-batch is not tried again outside."""

    def fails(state: State) -> State:
        raise ValueError("no")

    @toolrt.tool(safe=True)
    async def leaf(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(None, modifiers=[fails, lambda state: state.set("x", 1)])

    @toolrt.tool(safe=True)
    async def opens(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(None, modifiers=(await ctx.run([call("leaf")])).modifiers)

    async with runtime(leaf, opens).open_batch() as batch:
        batch.submit(call("opens"))
        batch.seal()
        merges = [update async for update in batch if isinstance(update, toolrt.StateMerged)]
    assert merges[0].applied == ((0, 0),)
    assert merges[0].rejected == ()


# Approval, progress


async def test_progress_of_children_is_the_parents_to_hand_on() -> None:
    """Nothing of a sub-batch reaches the outer reader by itself."""

    @toolrt.tool(safe=True)
    async def leaf(ctx: ToolContext) -> None:
        ctx.progress("from inside")

    @toolrt.tool(safe=True)
    async def opens(ctx: ToolContext, hand_on: bool) -> int:
        async with ctx.open_batch() as batch:
            batch.submit(call("leaf"))
            batch.seal()
            async for update in batch:
                if hand_on and isinstance(update, Progress):
                    ctx.progress(update.message)
        return batch.outcome.results[0].progress_dropped

    async with runtime(leaf, opens).open_batch() as batch:
        batch.submit(call("opens", hand_on=False))
        batch.submit(call("opens", hand_on=True))
        batch.seal()
        seen = [update async for update in batch if isinstance(update, Progress)]
    assert [(one.call_index, one.message) for one in seen] == [(1, "from inside")]
    assert [result.content for result in batch.outcome.results] == [0, 0]


# What is refused


async def test_standalone_context_opens_nothing() -> None:
    """Outside a batch there is nothing to run inside of."""
    with pytest.raises(BatchClosed, match="not running"):
        await ToolContext.standalone(None).run([call("leaf")])


async def test_wrong_arguments_are_refused() -> None:
    """Each says what was expected."""
    errors: list[str] = []

    @toolrt.tool(safe=True)
    async def opens(ctx: ToolContext) -> None:
        for bad in (
            lambda: ctx.open_batch(state={}),  # type: ignore[arg-type]
            lambda: ctx.open_batch(registry=[]),  # type: ignore[arg-type]
            lambda: ctx.open_batch(expected_reads=0),
            lambda: ctx.open_batch(batch_id=1),  # type: ignore[arg-type]
        ):
            with pytest.raises(DefinitionRefused) as caught:
                bad()
            errors.append(str(caught.value))
        with pytest.raises(DefinitionRefused, match="ToolCall"):
            await ctx.run(["leaf"])  # type: ignore[list-item]

    (result,) = (await runtime(opens).run([call("opens")])).results
    assert result.error is None
    assert ["State" in errors[0], "Registry" in errors[1], "1 or more" in errors[2], "string" in errors[3]] == [
        True
    ] * 4


# isolate()


@pytest.mark.parametrize("said", [{"claims": lambda input, state: [Claim("x", WRITE)]}, {"safe": True}])
async def test_child_that_a_policy_puts_alone_needs_its_own_claims(said: dict[str, Any]) -> None:
    """A declared tool that the lane policy puts alone needs no more from its parent than what it claims."""

    @toolrt.tool(schema=None, **said)
    async def leaf(ctx: ToolContext) -> str:
        return "done"

    @toolrt.tool(schema=None, claims=lambda input, state: [Claim("x", WRITE)])
    async def parent(ctx: ToolContext) -> Any:
        outcome = await ctx.run([ToolCall("child", "leaf", {})])
        return outcome.results[0].content

    runtime = Runtime(Registry([leaf, parent]), lanes=lambda tool, input: tool.name != "leaf")
    outcome = await runtime.run([ToolCall("call", "parent", {})])
    assert outcome.results[0].content == "done", outcome.results

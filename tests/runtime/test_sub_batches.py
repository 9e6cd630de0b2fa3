"""Sub-batches: calls that a tool runs inside its own claims and slot (RULE 20)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
from _tools import READ, WRITE, Diary, call, claims, outcomes, runtime, setting

import toolrt
from toolrt import Claim, Registry, Runtime, State, ToolCall, ToolContext, ToolOutput, sim
from toolrt.errors import BatchClosed, DefinitionRefused
from toolrt.invariants import require
from toolrt.model import ApprovalRequest, BatchOutcome, Progress
from toolrt.runtime._inside import DEEPEST
from toolrt.workspace import MemoryDisk, Workspace


def opener(*calls: ToolCall, name: str = "opens", kept: list[Any] | None = None, **options: Any) -> toolrt.Tool:
    """A tool that runs these calls as a sub-batch and answers with how they ended."""

    async def body(ctx: ToolContext) -> list[str]:
        outcome = await ctx.run(calls)
        if kept is not None:
            kept.append(outcome)
        return outcomes(outcome.results)

    return toolrt.tool(name=name, **options)(body)


async def test_children_run_inside_the_parents_claims() -> None:
    """What `runtime.run` would wait for for ever, `ctx.run` does, and results come in call order."""
    diary = Diary()
    a = diary.tool("a", 1, claims=claims(("f", WRITE)))
    b = diary.tool("b", claims=claims(("f", READ)))
    opens = opener(call("b"), call("a"), call("b"), claims=claims(("f", WRITE)))
    (result,) = (await runtime(a, b, opens).run([call("opens")])).results
    assert result.content == ["ok", "ok", "ok"]
    assert diary.lines == ["b+", "b-", "a+", "a-", "b+", "b-"]


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
    assert "call 0 of batch batch-1 (opens)" in str(result.error)
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


async def test_exclusive_parent_covers_all() -> None:
    """Also children that declare nothing; they run alone, one after the other."""
    diary = Diary()
    opens = opener(call("a"), call("b"))
    (result,) = (await runtime(diary.tool("a", 1), diary.tool("b", 1), opens).run([call("opens")])).results
    assert result.content == ["ok", "ok"]
    assert diary.lines == ["a+", "a-", "b+", "b-"]


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


# Slots


@pytest.mark.parametrize(("limit", "seconds"), [(1, 6), (2, 4), (3, 3), (10, 2)])
def test_parent_lends_its_slot_and_takes_free_ones(limit: int, seconds: float) -> None:
    """Two parents of three children each, a second each: at a limit of one, one child runs at once."""
    diary = Diary()
    leaf = diary.tool("leaf", 1, safe=True)
    calls = [call("leaf")] * 3

    async def program() -> float:
        rt = runtime(leaf, opener(*calls, safe=True), limit=limit)
        await rt.run([call("opens"), call("opens")])
        return trio.current_time()

    execution = sim.run(program)
    assert execution.error is None
    require(execution.trace)
    assert execution.value <= seconds
    assert execution.value >= 6 / limit


def test_other_calls_come_before_further_children() -> None:
    """A slot that is free goes to a call of the outermost batch that is ready; children wait for what is left."""
    diary = Diary()

    def child(name: str) -> toolrt.Tool:
        return diary.tool(name, 1, safe=True)

    tools = [child("c0"), child("c1"), diary.tool("other", 1, safe=True)]
    opens = opener(call("c0"), call("c1"), safe=True)

    async def program() -> str:
        diary.lines.clear()
        await runtime(*tools, opens, limit=2).run([call("opens"), call("other")])
        return [line for line in diary.lines if line.endswith("+")][-1]

    report = sim.explore(program, sim.Portfolio(60), lambda execution: require(execution.trace))
    assert report.verdict is sim.PASS, report.failures[0].explain()
    assert report.outcomes == {"c1+": 60}


def test_slot_of_a_child_that_ends_goes_to_another_call() -> None:
    """When one of two children ends, what is left of them needs the parent's slot only."""
    diary = Diary()
    tools = [diary.tool("short", 1, safe=True), diary.tool("long", 3, safe=True), diary.tool("late", 1, safe=True)]
    opens = opener(call("short"), call("long"), safe=True)

    async def program() -> None:
        async with runtime(*tools, opens, limit=2).open_batch() as batch:
            batch.submit(call("opens"))
            await trio.sleep(0.5)
            batch.submit(call("late"))
            batch.seal()
            async for _ in batch:
                pass
            assert [round(one.waited or 0, 3) for one in batch.calls] == [0, 0.5]

    execution = sim.run(program)
    assert execution.error is None, execution.error
    require(execution.trace)


@pytest.mark.parametrize("limit", [1, 2, None])
def test_two_sub_batches_of_one_parent_share_its_order_and_its_slot(limit: int | None) -> None:
    """Their calls order among each other as the lanes took their tickets; one of them can always run."""
    diary = Diary()
    leaves = [diary.tool(name, 1, claims=claims(("f", WRITE))) for name in ("one", "two")]

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def opens(ctx: ToolContext) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ctx.run, [call("one")] * 2)
            nursery.start_soon(ctx.run, [call("two")] * 2)

    async def program() -> int:
        diary.most = 0
        await runtime(*leaves, opens, limit=limit).run([call("opens")])
        return diary.most

    report = sim.explore(program, sim.Portfolio(30), lambda execution: require(execution.trace))
    assert report.verdict is sim.PASS, report.failures[0].explain()
    assert report.outcomes == {1: 30}


# Nesting


def nesting(depth: int) -> toolrt.Tool:
    """A tool that opens a sub-batch of itself, so deep."""

    async def body(ctx: ToolContext, left: int) -> Any:
        if not left:
            return "bottom"
        (result,) = (await ctx.run([call("nest", left=left - 1)])).results
        return result.content if result.error is None else result.error

    return toolrt.tool(name="nest", claims=[Claim("f", WRITE)], schema=None)(body)


async def test_nesting_is_bounded() -> None:
    """So deep it works, with one slot; one deeper is refused, and says why."""
    rt = runtime(nesting(DEEPEST), limit=1)
    results = (await rt.run([call("nest", left=DEEPEST), call("nest", left=DEEPEST + 1)])).results
    assert results[0].content == "bottom"
    assert f"{DEEPEST} sub-batches are open around it" in str(results[1].content)


# State


async def test_state_of_a_sub_batch_is_its_own() -> None:
    """It starts from the parent's; what children make of it is handed on by the parent alone, in call order."""
    tools = [setting("one", "x", 1, safe=True), setting("two", "x", 2, safe=True)]
    seen: list[Any] = []

    @toolrt.tool(safe=True)
    async def opens(ctx: ToolContext, hand_on: bool) -> ToolOutput:
        outcome = await ctx.run([call("one"), call("two")])
        seen.append((ctx.state["x"], outcome.state["x"]))
        return ToolOutput(None, modifiers=outcome.modifiers if hand_on else ())

    rt = runtime(*tools, opens)
    kept = await rt.run([call("opens", hand_on=False)], State({"x": 0}))
    handed_on = await rt.run([call("opens", hand_on=True)], State({"x": 0}))
    assert seen == [(0, 2), (0, 2)]
    assert (kept.state["x"], handed_on.state["x"]) == (0, 2)


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


async def test_approval_is_asked_for_children_with_their_parent() -> None:
    """The check sees the chain of calls around each; a child that is denied is its parent's to tell."""
    asked: list[Any] = []

    def approve(request: ApprovalRequest) -> bool:
        names = []
        parent = request.parent
        while parent is not None:
            names.append((parent.batch_id, parent.call_index, parent.call_id, parent.name))
            parent = parent.parent
        asked.append((request.name, names))
        return request.name != "leaf"

    leaf = Diary().tool("leaf", claims=claims(("f", WRITE)))
    inner = opener(call("leaf"), name="inner", claims=claims(("f", WRITE)))
    outer = opener(call("inner"), name="outer", claims=claims(("f", WRITE)))
    (result,) = (await runtime(leaf, inner, outer, approve=approve).run([call("outer")])).results
    assert result.content == ["ok"]
    around = ("batch-1", 0, "outer", "outer")
    assert asked == [
        ("outer", []),
        ("inner", [around]),
        ("leaf", [("batch-1/0.1", 0, "inner", "inner"), around]),
    ]


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


# Ending


def _guarded(kept: list[Any], **options: Any) -> toolrt.Tool:
    """A tool that opens a sub-batch and keeps its outcome, however it ends."""

    async def body(ctx: ToolContext) -> None:
        batch = ctx.open_batch()
        try:
            async with batch:
                batch.submit(call("leaf"))
                batch.submit(call("leaf"))
                batch.seal()
        finally:
            kept.append(outcomes(batch.outcome.results))

    return toolrt.tool(name="opens", claims=claims(("f", WRITE)), **options)(body)


def test_timeout_of_the_parent_ends_its_children() -> None:
    """One child is interrupted, the other never starts, and the parent has timed out."""
    kept: list[Any] = []
    leaf = Diary().tool("leaf", 1, claims=claims(("f", WRITE)))

    async def program() -> Any:
        kept.clear()
        outcome = await runtime(leaf, _guarded(kept, timeout=0.5)).run([call("opens")])
        return outcomes(outcome.results), kept[0]

    execution = sim.run(program)
    require(execution.trace)
    assert execution.value == (["timed_out"], ["interrupted", "not_started"])


@pytest.mark.parametrize("inside", [False, True])
def test_cancel_of_the_batch_ends_children(inside: bool) -> None:
    """From inside or outside; a cancel of a batch is one of all that is open in it."""
    kept: list[Any] = []
    leaf = Diary().tool("leaf", 1, claims=claims(("f", WRITE)))

    async def program() -> Any:
        kept.clear()
        batch = runtime(leaf, _guarded(kept)).open_batch()
        with trio.move_on_after(0.5 if inside else 9) as scope:
            async with batch:
                batch.submit(call("opens"))
                batch.seal()
                await trio.sleep(0.25)
                if not inside:
                    batch.cancel("enough")
        assert scope.cancelled_caught is inside
        return outcomes(batch.outcome.results), kept[0], trio.current_time()

    execution = sim.run(program)
    require(execution.trace)
    assert execution.value == (["interrupted"], ["interrupted", "not_started"], 0.5 if inside else 0.25)


def test_parent_that_may_finish_lets_its_children_finish() -> None:
    """`interrupt="finish"` is for all that a call does."""
    kept: list[Any] = []
    leaf = Diary().tool("leaf", 1, claims=claims(("f", WRITE)))

    async def program() -> Any:
        kept.clear()
        async with runtime(leaf, _guarded(kept, interrupt="finish")).open_batch() as batch:
            batch.submit(call("opens"))
            await trio.sleep(0.5)
            batch.cancel()
        return outcomes(batch.outcome.results), kept[0]

    execution = sim.run(program)
    require(execution.trace)
    assert execution.value == (["ok"], ["ok", "ok"])


@pytest.mark.parametrize(("interrupt", "child", "ended"), [("cancel", "interrupted", 1), ("finish", "ok", 9)])
def test_stop_ends_the_children_of_what_follows(interrupt: Any, child: str, ended: float) -> None:
    """A read that is skipped while its sub-batch runs ends with it, unless it may finish; nobody hears of it."""
    kept: list[Any] = []
    leaf = Diary().tool("leaf", 9, claims=claims(("f", READ)))

    @toolrt.tool(claims=claims(("g", READ)), stops_batch=True)
    async def breaks(ctx: ToolContext) -> None:
        await trio.sleep(1)
        raise ValueError("broken")

    async def body(ctx: ToolContext) -> None:
        async with ctx.open_batch() as batch:
            batch.submit(call("leaf"))
            batch.seal()
            kept.append(batch)

    opens = toolrt.tool(name="opens", claims=claims(("f", READ)), interrupt=interrupt)(body)

    async def program() -> Any:
        kept.clear()
        outcome = await runtime(leaf, breaks, opens).run([call("breaks"), call("opens")])
        return outcomes(outcome.results), outcomes(kept[0].outcome.results), trio.current_time()

    execution = sim.run(program)
    require(execution.trace)
    assert execution.value == (["error", "skipped"], [child], ended)


def test_shielded_parent_starts_no_child_after_a_cancel() -> None:
    """A tool that goes on after a cancel may; calls of the batch that was cancelled do not start any more."""
    kept: list[Any] = []
    leaf = Diary().tool("leaf", 1, safe=True)

    @toolrt.tool(safe=True)
    async def opens(ctx: ToolContext) -> None:
        with trio.CancelScope(shield=True):
            kept.append(outcomes((await ctx.run([call("leaf")] * 2)).results))
            kept.append(outcomes((await ctx.run([call("leaf")])).results))

    async def program() -> Any:
        kept.clear()
        async with runtime(leaf, opens, limit=1).open_batch() as batch:
            batch.submit(call("opens"))
            await trio.sleep(0.5)
            batch.cancel()
        return kept

    execution = sim.run(program)
    require(execution.trace)
    assert execution.value == [["interrupted", "not_started"], ["not_started"]]


def test_tool_that_leaves_a_sub_batch_open_ends_when_that_has() -> None:
    """What runs in a task of somebody else is cancelled with the call, and keeps its claims until it has ended."""
    diary = Diary()
    slow = diary.tool("slow", 5, claims=claims(("f", WRITE)), interrupt="finish")
    after = diary.tool("after", claims=claims(("f", WRITE)))

    async def program() -> list[str]:
        diary.lines.clear()
        async with trio.open_nursery() as background:

            async def body(ctx: ToolContext) -> str:
                background.start_soon(ctx.run, [call("slow"), call("slow")])
                await trio.sleep(1)
                return "gone"

            opens = toolrt.tool(name="opens", claims=claims(("f", WRITE)))(body)
            outcome = await runtime(slow, after, opens).run([call("opens"), call("after")])
            assert outcomes(outcome.results) == ["ok", "ok"]
            diary.note(f"{trio.current_time():g} s")
            background.cancel_scope.cancel()
        return list(diary.lines)

    execution = sim.run(program)
    assert execution.error is None, execution.error
    require(execution.trace)
    assert execution.value == ["slow+", "slow-", "after+", "after-", "5 s"]


async def test_context_of_a_call_that_has_ended_opens_nothing() -> None:
    """Its claims are another's by then."""
    kept: list[ToolContext] = []

    @toolrt.tool(safe=True)
    async def leaks(ctx: ToolContext) -> None:
        kept.append(ctx)
        kept.append(ctx.open_batch())  # type: ignore[arg-type]

    await runtime(leaks).run([call("leaks")])
    with pytest.raises(BatchClosed, match="call 0 is not running"):
        await kept[0].run([])
    with pytest.raises(BatchClosed, match="has ended"):
        async with kept[1]:  # type: ignore[attr-defined]
            pass


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
        with pytest.raises(DefinitionRefused):
            await ctx.run(["leaf"])  # type: ignore[list-item]

    (result,) = (await runtime(opens).run([call("opens")])).results
    assert result.error is None
    assert ["State" in errors[0], "Registry" in errors[1], "1 or more" in errors[2], "string" in errors[3]] == [
        True
    ] * 4


async def test_ctrl_c_in_a_child_leaves_all_batches() -> None:
    """It is nobody's failure: both batches end, and it comes out where the outermost is left."""

    @toolrt.tool(safe=True)
    async def leaf(ctx: ToolContext) -> None:
        raise KeyboardInterrupt

    rt = runtime(leaf, opener(call("leaf"), safe=True))
    with pytest.raises(KeyboardInterrupt):
        await rt.run([call("opens")])


# isolate()


async def test_isolated_context_has_a_directory_and_budget_of_its_own() -> None:
    """Same call, claims, services and registry; another state and read budget."""
    seen: list[Any] = []

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def opens(ctx: ToolContext) -> None:
        apart = ctx.isolate(working_dir="src", context_budget=100_000)
        seen.append((str(apart.state.working_dir), apart.state.context_budget, apart.read_budget))
        seen.append((str(ctx.state.working_dir), ctx.state.context_budget, ctx.read_budget))
        seen.append((apart.claims == ctx.claims, apart.call_id == ctx.call_id, apart.registry is ctx.registry))
        seen.append(ctx.isolate().state == ctx.state)

    state = State(working_dir="docs", context_budget=50_000)
    await runtime(opens).run([call("opens")], state)
    assert seen == [("src", 100_000, 20_000), ("docs", 50_000, 10_000), (True, True, True), True]


async def test_isolated_sub_batches_change_nobodys_directory() -> None:
    """A `change_dir` inside is seen by what follows inside, and by nobody else."""
    workspace = Workspace(MemoryDisk({"a/x.txt": "of a", "b/x.txt": "of b"}))
    seen: list[Any] = []

    @toolrt.tool(owner=workspace)
    async def opens(ctx: ToolContext) -> None:
        for directory in ("a", "b"):
            calls = [call("change_dir", path=directory), call("read_file", path="x.txt")]
            outcome = await ctx.isolate().run(calls)
            seen.append("of " + directory in outcome.results[1].content)
        seen.append(ctx.state.working_dir)

    outcome = await Runtime(Registry([*workspace.tools(), opens])).run([call("opens")])
    assert outcome.results[0].error is None
    assert seen == [True, True, None]
    assert outcome.state.working_dir is None


# Threads


async def test_sync_children_run_in_threads() -> None:
    """As outside; at a limit of one, one at a time."""
    running: list[int] = []
    most: list[int] = []

    @toolrt.tool(safe=True)
    def leaf(ctx: ToolContext) -> str:
        running.append(1)
        most.append(len(running))
        running.pop()
        return threading.current_thread().name

    kept: list[BatchOutcome] = []
    opens = opener(call("leaf"), call("leaf"), kept=kept, safe=True)
    (result,) = (await runtime(leaf, opens, limit=1).run([call("opens")])).results
    assert result.content == ["ok", "ok"]
    assert set(most) == {1}
    assert all(one.content != threading.main_thread().name for one in kept[0].results)


async def test_thread_of_a_child_keeps_the_parents_claims() -> None:
    """A child that cannot be stopped is waited for: who comes next starts when it has ended."""
    started, go_on = threading.Event(), threading.Event()
    lines: list[str] = []

    @toolrt.tool(claims=claims(("f", WRITE)))
    def stuck(ctx: ToolContext) -> None:
        started.set()
        go_on.wait(60)
        lines.append("stuck")

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def after(ctx: ToolContext) -> None:
        lines.append("after")

    inside: list[toolrt.Batch] = []

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def opens(ctx: ToolContext) -> None:
        with trio.CancelScope() as scope:
            async with ctx.open_batch() as batch:
                inside.append(batch)
                batch.submit(call("stuck"))
                batch.seal()
                await trio.to_thread.run_sync(started.wait, 60)
                scope.cancel()

    async with runtime(stuck, after, opens).open_batch() as batch:
        batch.submit(call("opens"))
        batch.submit(call("after"))
        batch.seal()
        while not (inside and inside[0].calls and inside[0].calls[0].result):  # noqa: ASYNC110  nobody else tells
            await trio.lowlevel.checkpoint()
        assert lines == []
        go_on.set()
    assert outcomes(batch.outcome.results) == ["ok", "ok"]
    (result,) = inside[0].outcome.results
    assert result.outcome is toolrt.Outcome.INTERRUPTED
    assert "its thread cannot be stopped and still runs" in str(result.error)
    assert lines == ["stuck", "after"]


async def test_sync_parent_opens_a_sub_batch_from_its_thread() -> None:
    """By Trio's own way back; one slot is enough, and a timeout of the parent ends its children."""

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def leaf(ctx: ToolContext, forever: bool) -> str:
        if forever:
            await trio.sleep_forever()
        return "leaf"

    @toolrt.tool(claims=claims(("f", WRITE)))
    def opens(ctx: ToolContext, forever: bool) -> list[str]:
        return outcomes(trio.from_thread.run(ctx.run, [call("leaf", forever=forever)]).results)

    (result,) = (await runtime(leaf, opens, limit=1).run([call("opens", forever=False)])).results
    assert result.content == ["ok"]
    slow = toolrt.tool(name="slow", claims=claims(("f", WRITE)), timeout=0.05)(opens.function)
    (result,) = (await runtime(leaf, slow, limit=1).run([call("slow", forever=True)])).results
    assert result.outcome is toolrt.Outcome.TIMED_OUT

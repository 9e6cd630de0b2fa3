"""Early runs of pure tools: when they begin, what they may do, when their answer holds, and that they leave nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from toolrt import (
    READ,
    Claim,
    MemoryDisk,
    Progress,
    Registry,
    ResultReady,
    Runtime,
    State,
    Tool,
    ToolCall,
    ToolContext,
    ToolOutput,
    Workspace,
    sim,
    tool,
)
from toolrt.errors import DefinitionRefused
from toolrt.model import BatchOutcome
from toolrt.workspace import held


class Shop:
    """Two cells, a barrier that changes one of them after two seconds, and when the tools ran."""

    def __init__(self, changes: str = "b") -> None:
        self.cells = {name: sim.Cell(0, name=name) for name in "ab"}
        self.began: list[float] = []
        self.barrier = tool(name="barrier", schema=None)(self._barrier)
        self._changes = changes

    async def _barrier(self, ctx: ToolContext) -> None:
        await trio.sleep(2)
        self.cells[self._changes].set(self.cells[self._changes].get() + 1)

    async def look(self, ctx: ToolContext) -> int:
        """Look at cell a, and take three seconds."""
        self.began.append(trio.current_time())
        seen = self.cells["a"].get()
        ctx.progress(f"saw {seen}")
        await trio.sleep(3)
        return seen


def _looks(shop: Shop, **options: Any) -> Tool:
    return tool(name="look", schema=None, **{"pure": True, "claims": [Claim("a", READ)], **options})(shop.look)


def _calls(*names: str) -> list[ToolCall]:
    return [ToolCall(str(at), name, {}) for at, name in enumerate(names)]


def _ran(
    tools: Callable[[], list[Tool]], *names: str, state: State | None = None, **settings: Any
) -> tuple[BatchOutcome, float]:
    """The outcome of calls of these names, and how long they took."""

    async def program() -> tuple[BatchOutcome, float]:
        runtime = Runtime(Registry(tools()), **{"speculate": True, "limit": None, **settings})
        return await runtime.run(_calls(*names), state), trio.current_time()

    execution = sim.run(program)
    assert execution.error is None, execution.error
    found: tuple[BatchOutcome, float] = execution.value
    return found


def _contents(outcome: BatchOutcome) -> list[Any]:
    return [result.content for result in outcome.results]


@pytest.mark.parametrize(
    ("changes", "speculate", "began", "took", "seen"),
    [("b", False, [2.0], 5.0, 0), ("b", True, [0.0], 3.0, 0), ("a", True, [0.0, 2.0], 5.0, 1)],
)
def test_pure_call_runs_before_the_barrier_and_again_if_what_it_read_has_changed(
    changes: str, speculate: bool, began: list[float], took: float, seen: int
) -> None:
    """Off by default; the answer is that of a run in turn, and comes sooner where the early run holds."""
    shop = Shop(changes)
    outcome, seconds = _ran(lambda: [shop.barrier, _looks(shop)], "barrier", "look", speculate=speculate)
    assert (shop.began, seconds, _contents(outcome)) == (began, took, [None, seen])


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({"pure": False}, {}),
        ({"timeout": 9.0}, {}),
        ({"interrupt": "finish"}, {}),
        ({"claims": lambda input, state: [Claim("a", READ)], "claims_after": [Claim("b", READ)]}, {}),
        ({}, {"timeout": 9.0}),
        ({}, {"approve": lambda request: True}),
        ({}, {"limit": 1}),
    ],
)
def test_call_that_an_early_run_could_change_runs_in_turn(options: Any, settings: Any) -> None:
    """No early run where a timeout, an approval or a late claim decides, and none without a free slot."""
    shop = Shop()
    _ran(lambda: [shop.barrier, _looks(shop, **options)], "barrier", "look", **settings)
    assert shop.began == [2.0]


def test_early_run_shows_progress_in_turn() -> None:
    """Nothing is shown before the barrier's result; then the progress, then the result."""

    async def program() -> list[Any]:
        shop, shown = Shop(), []
        runtime = Runtime(Registry([shop.barrier, _looks(shop)]), speculate=True)
        async with runtime.open_batch() as batch:
            for call in _calls("barrier", "look"):
                batch.submit(call)
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    shown.append((trio.current_time(), update.message))
                elif isinstance(update, ResultReady):
                    shown.append((trio.current_time(), update.result.call_index))
        return shown

    assert sim.run(program).value == [(2.0, 0), (3.0, "saw 0"), (3.0, 1)]


def test_early_runs_keep_to_the_free_slots() -> None:
    """Two beside the barrier, where three calls may run; one that ends makes room for the next."""
    shop, running, most = Shop(), 0, 0

    async def slow(ctx: ToolContext) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await trio.sleep(1)
        finally:
            running -= 1

    tools = [shop.barrier, tool(schema=None, pure=True, safe=True)(slow)]
    _, seconds = _ran(lambda: tools, "barrier", *["slow"] * 4, limit=3)
    assert most == 2
    assert seconds == 2.0


def test_stale_early_run_ends_in_the_calls_turn() -> None:
    """It is not waited for, and takes no time beside the second run."""
    shop, ended = Shop("a"), []

    async def looks(ctx: ToolContext) -> int:
        seen = shop.cells["a"].get()
        try:
            await trio.sleep(9)
        finally:
            ended.append(trio.current_time())
        return seen

    outcome, _ = _ran(lambda: [shop.barrier, tool(schema=None, pure=True)(looks)], "barrier", "looks")
    assert _contents(outcome) == [None, 1]
    assert ended == [2.0, 11.0]


def test_claims_that_are_others_in_turn_make_an_early_run_useless() -> None:
    """The context tells a tool its claims."""

    async def changes(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(None, modifiers=(lambda state: state.set("x", "2"),))

    async def tells(ctx: ToolContext) -> str:
        return str(ctx.claims[0].resource)

    claims = {"claims": lambda input, state: [Claim(("thing", state.get("x", "1")), READ)]}
    tools = [tool(schema=None)(changes), tool(schema=None, pure=True, **claims)(tells)]
    assert _contents(_ran(lambda: tools, "changes", "tells")[0]) == [None, "('thing', '2')"]


def test_early_run_gives_way_to_a_call_that_needs_its_slot() -> None:
    """Two slots, and two calls that may run: the early run ends, and its tool runs in turn."""
    shop = Shop()

    async def work(ctx: ToolContext) -> None:
        await trio.sleep(1)

    tools = [tool(schema=None, safe=True)(work), shop.barrier, _looks(shop)]
    _, seconds = _ran(lambda: tools, "barrier", "work", "work", "barrier", "look", limit=2)
    assert shop.began == [0.0, 5.0]
    assert seconds == 8.0


def test_effect_of_a_tool_that_only_says_it_is_pure_is_refused_early() -> None:
    """It has its effect once, in its turn, and what it returned early counts for nothing."""
    shop, refused = Shop(), []

    async def lies(ctx: ToolContext) -> int:
        try:
            shop.cells["a"].set(shop.cells["a"].get() + 1)
        except DefinitionRefused as error:
            refused.append(str(error))
        return shop.cells["a"].get()

    outcome, _ = _ran(lambda: [shop.barrier, tool(schema=None, pure=True)(lies)], "barrier", "lies")
    assert _contents(outcome) == [None, 1]
    assert shop.cells["a"].get() == 1
    assert ["no effect but its content and modifiers" in text for text in refused] == [True]


@pytest.mark.parametrize("through", ["its context", "the runtime"])
def test_batch_of_an_early_run_is_refused(through: str) -> None:
    """It runs once, in the call's turn."""
    shop, ran = Shop(), []

    async def bump(ctx: ToolContext) -> int:
        ran.append(trio.current_time())
        return len(ran)

    async def parent(ctx: ToolContext) -> list[Any]:
        opener = ctx if through == "its context" else Runtime(Registry([tool(schema=None)(bump)]))
        return _contents(await opener.run(_calls("bump")))

    tools = [shop.barrier, tool(schema=None, pure=True)(parent), tool(schema=None)(bump)]
    outcome, _ = _ran(lambda: tools, "barrier", "parent")
    assert _contents(outcome) == [None, [1]]
    assert ran == [2.0]


def test_cancel_ends_early_runs_and_their_calls_have_not_started() -> None:
    """The outcome says so, and nothing runs on."""
    shop, ended = Shop(), []

    async def endless(ctx: ToolContext) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time())

    async def program() -> Any:
        runtime = Runtime(Registry([shop.barrier, tool(schema=None, pure=True)(endless)]), speculate=True)
        async with runtime.open_batch() as batch:
            for call in _calls("barrier", "endless"):
                batch.submit(call)
            await trio.sleep(1)
            batch.cancel("enough")
        return [result.outcome.value for result in batch.outcome.results], trio.current_time()

    assert sim.run(program).value == (["interrupted", "not_started"], 1.0)
    assert ended == [1.0]


def test_stop_leaves_no_early_run_to_wait_for() -> None:
    """The skipped call's early run ends with the batch."""

    async def fails(ctx: ToolContext) -> None:
        await trio.sleep(2)
        raise ValueError("no")

    async def endless(ctx: ToolContext) -> None:
        await trio.sleep_forever()

    tools = [tool(schema=None, stops_batch=True)(fails), tool(schema=None, pure=True)(endless)]
    outcome, seconds = _ran(lambda: tools, "fails", "endless")
    assert [result.outcome.value for result in outcome.results] == ["error", "skipped"]
    assert seconds == 2.0


def test_early_run_that_fails_or_leaves_something_open_is_useless() -> None:
    """The tool runs again in its turn, and that is its answer."""
    shop, tries = Shop(), []

    async def fails_first(ctx: ToolContext) -> str:
        tries.append("fails")
        if len(tries) == 1:
            raise ValueError("too early")
        return "in turn"

    async def leaves_open(ctx: ToolContext) -> str:
        await trio.open_nursery().__aenter__()
        return "never"

    tools = [shop.barrier, tool(schema=None, pure=True)(fails_first), tool(schema=None, pure=True)(leaves_open)]
    outcome, _ = _ran(lambda: tools, "barrier", "fails_first", "leaves_open")
    assert _contents(outcome)[1] == "in turn"
    assert "left a nursery open" in str(outcome.results[2].error)


def test_modifiers_of_an_early_run_hold_only_on_the_very_state_that_it_saw() -> None:
    """One that hands on the state that it was given would undo what a barrier changed."""
    began = []

    async def changes(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(None, modifiers=(lambda state: state.set("x", 1),))

    async def hands_on(ctx: ToolContext) -> ToolOutput:
        began.append(ctx.state.get("z"))
        old = ctx.state
        return ToolOutput(None, modifiers=(lambda state: old.set("y", 2),))

    tools = [tool(schema=None)(changes), tool(schema=None, pure=True)(hands_on)]
    outcome, _ = _ran(lambda: tools, "changes", "hands_on", state=State({"x": 0}))
    assert dict(outcome.state) == {"x": 1, "y": 2}
    assert len(began) == 2


def test_stale_write_of_an_early_run_is_found() -> None:
    """What an early run read of the state counts for law 16, as if the tool had read it in turn."""
    shop = Shop()

    async def adds(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(None, modifiers=(lambda state: state.set("x", state.get("x") + 10),))

    async def overwrites(ctx: ToolContext) -> ToolOutput:
        seen = ctx.state.get("x")
        return ToolOutput(None, modifiers=(lambda state: state.set("x", seen + 1),))

    tools = [
        shop.barrier,
        tool(schema=None, safe=True)(adds),
        tool(schema=None, safe=True, pure=True)(overwrites),
    ]
    outcome, _ = _ran(lambda: tools, "barrier", "adds", "overwrites", state=State({"x": 0}))
    assert outcome.state["x"] == 11


@pytest.mark.parametrize(("writes", "seen", "times"), [("other.txt", "old", 1), ("a.txt", "new", 2)])
def test_file_that_an_early_run_read_is_looked_at_again(writes: str, seen: str, times: int) -> None:
    """It runs again where a barrier wrote the file, and a read that holds counts as seen."""
    ran = []

    def tools() -> list[Tool]:
        workspace = Workspace(MemoryDisk({"a.txt": "old", "other.txt": "old"}))

        @tool(schema=None, owner=workspace)
        async def writer(ctx: ToolContext) -> None:
            await trio.sleep(1)
            identity = workspace.identify(writes, ctx.state)
            await workspace.files.revise(ctx, identity, lambda before: b"new")

        @tool(schema=None, pure=True, owner=workspace, claims=lambda _, state: workspace.claims("a.txt", state, READ))
        async def reader(ctx: ToolContext) -> str:
            ran.append(trio.current_time())
            identity = held(workspace, ctx, "a.txt", READ)
            return (await workspace.files.read(ctx, identity)).content.decode()

        return [writer, reader]

    outcome, _ = _ran(tools, "writer", "reader")
    assert _contents(outcome) == [None, seen]
    assert len(ran) == times


def test_pure_tool_that_changes_a_file_is_refused_early() -> None:
    """It changes it once, in its turn."""
    shop = Shop()
    workspace = Workspace(MemoryDisk({"a.txt": "old"}))

    async def writes(ctx: ToolContext) -> None:
        await workspace.files.revise(ctx, workspace.identify("a.txt", ctx.state), lambda before: (before or b"") + b"!")

    tools = [shop.barrier, tool(schema=None, pure=True, owner=workspace)(writes)]
    outcome, _ = _ran(lambda: tools, "barrier", "writes")
    assert outcome.results[1].error is None
    assert workspace.snapshot() == {"a.txt": b"old!"}


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_speculate_is_a_bool(value: Any) -> None:
    """The error says what was expected."""
    with pytest.raises(DefinitionRefused, match="True or False"):
        Runtime(Registry([]), speculate=value)

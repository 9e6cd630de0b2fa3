"""What a tool leaves open in its task, in any mix: its call is the ERROR that says so, and nothing else changes."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.runtime._tools import WRITE, Diary, call, claims, outcomes, runtime
from toolrt import ToolContext, ToolOutput, sim
from toolrt.invariants import check
from toolrt.runtime._left_open import _DEEPEST, _MOST, check_answer

#: Trio warns of a generator that is dropped, as of any other.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"claims": claims(("f", WRITE))},
    "timed": {"claims": claims(("f", WRITE)), "timeout": 60.0},
    "finishes": {"claims": claims(("f", WRITE)), "interrupt": "finish"},
    "exclusive": {"claims": None},
}


async def _fails() -> None:
    raise KeyError("child")


async def _busy(ctx: ToolContext) -> AsyncIterator[None]:
    with trio.CancelScope():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            yield


async def _raising(ctx: ToolContext) -> AsyncIterator[None]:
    try:
        async with trio.open_nursery():
            yield
    finally:
        raise LookupError("outside")


async def _raising_inside(ctx: ToolContext) -> AsyncIterator[None]:
    async with trio.open_nursery():
        try:
            yield
        finally:
            raise LookupError("inside")


async def _with_a_batch(ctx: ToolContext) -> AsyncIterator[None]:
    async with ctx.open_batch() as batch:
        batch.submit(call("leaf"))
        yield


GENERATORS = {
    "generator": _busy,
    "raising generator": _raising,
    "generator that raises inside": _raising_inside,
    "generator with a batch": _with_a_batch,
}
#: What some of them raise where they are closed.
RAISED = {"raising generator": "outside", "generator that raises inside": "inside"}
SCOPES = ("scope", "shield", "cancelled scope")
ENTERED = (*SCOPES, "nursery", "empty nursery", "failing nursery", "batch", *GENERATORS)
ENDS = ("returns", "raises", "sleeps", "modifies")


class Careless:
    """A tool that enters these, one inside the other, and leaves none."""

    def __init__(self, what: list[str], ends: str) -> None:
        self._what, self._ends = what, ends
        self.kept: list[Any] = []

    async def body(self, ctx: ToolContext) -> Any:
        for one in self._what:
            await self._enter(one, ctx)
        if self._ends == "sleeps":
            await trio.sleep(5)
        if self._ends == "raises":
            raise ValueError("and more")
        modifiers = [lambda state: state.set("changed", True)] if self._ends == "modifies" else []
        return ToolOutput("done", modifiers=modifiers)

    async def _enter(self, one: str, ctx: ToolContext) -> None:
        if one in SCOPES:
            trio.CancelScope(shield=one == "shield", deadline=0 if one == "cancelled scope" else 1e9).__enter__()
        elif one in GENERATORS:
            self.kept.append(GENERATORS[one](ctx))
            await anext(self.kept[-1])
        elif one == "batch":
            batch = await ctx.open_batch().__aenter__()
            self.kept.append(batch)
            batch.submit(call("leaf"))
        else:
            nursery = await trio.open_nursery().__aenter__()
            self.kept.append(nursery)
            if one == "nursery":
                nursery.start_soon(trio.sleep_forever)
            elif one == "failing nursery":
                nursery.start_soon(_fails)

    @property
    def said(self) -> str:
        """What its call says was left open: the innermost first, batches last."""
        found = ["a cancel scope" if one in SCOPES else "a nursery" for one in reversed(self._what)]
        batches = [one for one in self._what if "batch" in one]
        found += [f"batch batch-1/1.{number}" for number in range(1, len(batches) + 1)]
        return f"the tool left {', '.join(dict.fromkeys(found))} open"

    @property
    def came_up(self) -> set[str]:
        """What came up besides; as in any program, what closing a generator raises takes the place of the rest."""
        found = {"and more"} if self._ends == "raises" else set()
        for one in reversed(self._what):
            if one == "failing nursery":
                found.add("child")
            elif one in RAISED:
                found = {RAISED[one]}
        return found

    @property
    def closes_cancelled(self) -> bool:
        """Whether a generator is closed inside what is cancelled: its Cancelled, which is caught, is what comes up."""
        cancelled = [place for place, one in enumerate(self._what) if one in ("cancelled scope", "failing nursery")]
        return any(one in GENERATORS for one in self._what[min(cancelled, default=len(self._what)) :])


@given(
    what=st.lists(st.sampled_from(ENTERED), min_size=1, max_size=4),
    ends=st.sampled_from(ENDS),
    options=st.sampled_from(sorted(OPTIONS)),
)
def test_what_is_left_open_is_closed_and_said(what: list[str], ends: str, options: str) -> None:
    """The error names all of it; no task of it runs on, and the state is as if the call had not run."""
    careless = Careless(what, ends)
    diary = Diary()
    file = claims(("f", WRITE))

    async def program() -> Any:
        tool = toolrt.tool(name="careless", **OPTIONS[options])(careless.body)
        before, after = diary.tool("before", 1, safe=True), diary.tool("after", 1)
        tools = runtime(before, tool, diary.tool("behind", 1, claims=file), after, diary.tool("leaf", 9, claims=file))
        done = await tools.run([call("before"), call("careless"), call("behind"), call("after")])
        return done, tools.tables[0].busy, len(diary.running)

    execution = sim.run(program)
    assert check(execution.trace) == []
    done, busy, running = execution.value
    assert outcomes(done.results) == ["ok", "error", "ok", "ok"]
    assert (done.state.get("changed"), busy, running) == (None, False, 0)
    error = done.results[1].error
    assert careless.said in error
    for one in careless.kept:
        if isinstance(one, AsyncGenerator):
            assert one.ag_frame is None, "it is closed, in the task that entered it"
        elif isinstance(one, toolrt.Batch) and not any("cancelled" in other or "failing" in other for other in what):
            assert "call 1 of batch batch-1 has ended" in str(one.outcome.results[0].error)
    came_up = {words for words in ("and more", "child", *RAISED.values()) if words in error}
    assert came_up == careless.came_up or (careless.closes_cancelled and came_up < careless.came_up)


@pytest.mark.parametrize("what", ENTERED)
def test_the_same_on_trio_itself(what: str) -> None:
    """No clock of ours and no simulator: Trio finds no stack corrupted, and no table keeps a ticket."""
    careless = Careless([what], "returns")
    diary = Diary()
    leaf = diary.tool("leaf", 9, claims=claims(("f", WRITE)))
    tools = runtime(toolrt.tool(name="careless", **OPTIONS["plain"])(careless.body), diary.tool("before"), leaf)
    _, result = trio.run(tools.run, [call("before"), call("careless")]).results
    assert result.outcome.value == "error"
    assert careless.said in re.sub(r"batch-1-\w+", "batch-1", str(result.error))
    assert not tools.tables[0].busy


@given(options=st.sampled_from(sorted(OPTIONS)), depth=st.integers(0, 2), seconds=st.integers(0, 2))
def test_scope_of_another_call_that_a_tool_leaves_is_its_own_error(options: str, depth: int, seconds: int) -> None:
    """Both tasks are where they were: the one whose scope it was keeps its result."""
    shared: list[trio.CancelScope] = []

    @toolrt.tool(safe=True)
    async def owner(ctx: ToolContext) -> str:
        with trio.CancelScope() as scope:
            shared.append(scope)
            await trio.sleep(3)
        return "mine"

    async def thief(ctx: ToolContext) -> None:
        await trio.sleep(1)
        for _ in range(depth):
            trio.CancelScope().__enter__()
        shared[-1].__exit__(None, None, None)
        await trio.sleep(seconds)

    given = {**OPTIONS["plain" if options == "exclusive" else options]}
    tool = toolrt.tool(name="thief", **given)(thief)
    execution = sim.run(lambda: runtime(owner, tool).run([call("owner"), call("thief")]))
    assert outcomes(execution.value.results) == ["ok", "error"]
    assert check(execution.trace) == []


async def _coroutine() -> int:
    return 1


LAZY: dict[str, Callable[[], Any]] = {
    "coroutine": _coroutine,
    "generator": lambda: (one for one in ()),
    "async generator": lambda: _busy(None),  # type: ignore[arg-type]
    "function": lambda: len,
    "partial": lambda: functools.partial(len),
}
#: Around one value, so deep that it is looked through.
AROUND: dict[str, Callable[[Any], Any]] = {
    "list": lambda one: [0, one],
    "tuple": lambda one: (one, None),
    "dict": lambda one: {"a": "text", "b": one},
    "set": lambda one: {1, one} if isinstance(one, Awaitable) else [one],
    "frozenset": lambda one: frozenset([one]) if isinstance(one, Awaitable) else (one,),
    "others": lambda one: [[], {}, [1, [2]], one],
}


@given(
    lazy=st.sampled_from([*LAZY, None]),
    around=st.lists(st.sampled_from(sorted(AROUND)), max_size=5),
    before=st.sampled_from([0, 3, 500]),
    options=st.sampled_from(["plain", "timed", "sync"]),
    wrapped=st.booleans(),
)
def test_answer_that_is_not_a_value_is_refused(
    lazy: str | None, around: list[str], before: int, options: str, wrapped: bool
) -> None:
    """However deep it stands in the answer, to five levels, and behind hundreds of other values; a value is not."""
    made: list[Any] = []

    def answer() -> Any:
        if lazy is not None:
            made.append(LAZY[lazy]())
        value: Any = made[-1] if made else "value"
        for one in around:
            value = AROUND[one](value)
        if around and before and type(value) is list:
            value = [*range(before), *value]
        return ToolOutput(value) if wrapped else value

    async def waits(ctx: ToolContext) -> Any:
        return answer()

    def at_once(ctx: ToolContext) -> Any:
        return answer()

    timed = {"timeout": 60.0} if options == "timed" else {}
    tool = toolrt.tool(name="answers", safe=True, **timed)(at_once if options == "sync" else waits)
    execution = sim.run(lambda: runtime(tool).run([call("answers")]))
    [result] = execution.value.results
    if lazy is None:
        assert (result.outcome.value, result.error) == ("ok", None)
    elif lazy in ("function", "partial"):
        assert (result.outcome.value == "error") == (not around)
    else:
        assert result.outcome.value == "error"
        assert f"a {lazy} in it" in result.error or "returned an awaitable" in result.error
        # Closing an async generator takes a step of its own, and it has not begun.
        assert lazy == "async generator" or closed(made[-1])


def closed(lazy: Any) -> bool:
    """Whether nothing can be asked of a generator or a coroutine any more."""
    return (lazy.gi_frame if hasattr(lazy, "gi_frame") else lazy.cr_frame) is None


@given(depth=st.integers(0, 7), before=st.sampled_from([0, 1, 500, 998, 999, 1000, 1001]))
def test_answer_is_looked_through_five_deep_and_for_a_thousand_values(depth: int, before: int) -> None:
    """As the module says; what stands deeper or further on is not looked for."""
    value: Any = [*range(before), (one for one in ())]
    for _ in range(depth):
        value = [value]
    looked_at = depth + before + 1  # the lists around it are values, too
    if depth < _DEEPEST and looked_at <= _MOST:
        with pytest.raises(TypeError, match="a generator in it"):
            check_answer(value)
    else:
        check_answer(value)

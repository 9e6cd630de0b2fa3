"""What comes up while calls are submitted: every call is answered, and no parent waits for what will never run."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

import toolrt
import toolrt.errors
from tests.runtime._tools import WRITE, Diary, call, claims, outcomes, runtime
from toolrt import Registry, Runtime, State, ToolCall, ToolContext, sim


class _Unspeakable:
    """A name whose text cannot be made."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class _Leaving:
    """A value that exits when it is looked at."""

    def __repr__(self) -> str:
        raise SystemExit(3)


class _UnspeakableText(str):
    """The same, as a kind of text, which cannot be looked up either."""

    __slots__ = ()

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__

    def __hash__(self) -> int:
        raise ValueError("no hash")


def _exits(*_: Any) -> Any:
    raise SystemExit(3)


def _interrupts(*_: Any) -> Any:
    raise KeyboardInterrupt


ASKED: dict[str, dict[str, Any]] = {
    "safe": {"safe": _exits},
    "stops_batch": {"safe": True, "stops_batch": _exits},
    "claims": {"claims": _exits},
}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("asked", sorted(ASKED))
def test_exit_while_a_tool_submits_goes_out(asked: str, streaming: bool) -> None:
    """A `safe`, `stops_batch` or `claims` that exits inside a sub-batch ends both batches, and no task waits."""
    leaf = toolrt.tool(name="leaf", **ASKED[asked])(Diary().tool("leaf").function)

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def parent(ctx: ToolContext) -> None:
        if streaming:
            async with ctx.open_batch() as batch:
                batch.submit(call("leaf"))
        else:
            await ctx.run([call("leaf")])

    async def program() -> bool:
        given = runtime(leaf, parent)
        with pytest.raises(SystemExit):
            await given.run([call("parent")])
        return given.tables[0].busy

    assert sim.run(program).value is False


@pytest.mark.parametrize("raised", [_exits, _interrupts])
async def test_policy_that_exits_ends_the_batch(raised: Any, autojump_clock: trio.testing.MockClock) -> None:
    """A lane policy of one's own that exits leaves no call without an answer."""
    given = Runtime(Registry([Diary().tool("a")]), lanes=raised)
    with trio.fail_after(9), pytest.raises((SystemExit, KeyboardInterrupt)):
        await given.run([call("a")])
    batch = given.open_batch()
    with trio.fail_after(9), pytest.raises((SystemExit, KeyboardInterrupt)):
        async with batch:
            batch.submit(call("a"))
    assert outcomes(batch.outcome.results) == ["not_started"]


async def test_exit_that_is_caught_around_submit_hangs_no_reader(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The call has its result at once, so a reader does not wait for it; the exit goes out with the block."""
    given = runtime(Diary().tool("a", safe=_exits))
    read: list[str] = []
    with trio.fail_after(9), pytest.raises(SystemExit):
        async with given.open_batch() as batch:
            with pytest.raises(SystemExit):
                batch.submit(call("a"))
            assert outcomes(batch.calls[0].results) == ["not_started"]
            async for update in batch:
                read.append(type(update).__name__)


@pytest.mark.parametrize(
    ("name", "word"),
    [(_Unspeakable(), "invalid"), (_UnspeakableText("no"), "invalid"), (_UnspeakableText("leaf"), "ok")],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_name_without_a_text_is_answered(name: Any, word: str, recorded: bool) -> None:
    """It is the answer of that call, in a batch and in a sub-batch; the calls beside it run."""
    leaf = Diary().tool("leaf", safe=True)
    calls = [call("leaf"), ToolCall("x", name), call("leaf")]

    @toolrt.tool
    async def parent(ctx: ToolContext) -> list[str]:
        return outcomes((await ctx.run(calls)).results)

    async def program() -> Any:
        given = runtime(leaf, parent)
        with trio.fail_after(9):
            done = await given.run(calls)
            return outcomes(done.results), (await given.run([call("parent")])).results[0].content, given.tables[0].busy

    value = sim.run(program).value if recorded else trio.run(program)
    expected = ["ok", word, "ok"]
    assert value == (expected, expected, False)


@pytest.mark.parametrize("streaming", [False, True])
def test_failure_while_a_batch_opens_hangs_no_parent(streaming: bool) -> None:
    """A batch that fails as it is entered was never open: the tool that opened it ends."""
    leaf = Diary().tool("leaf")

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def parent(ctx: ToolContext) -> None:
        state = State({"bad": _Leaving()})
        if streaming:
            async with ctx.open_batch(state) as batch:
                batch.submit(call("leaf"))
        else:
            await ctx.run([call("leaf")], state)

    async def program() -> Any:
        given = runtime(leaf, parent)
        with trio.fail_after(9), pytest.raises(SystemExit):
            await given.run([call("parent")])
        return given.tables[0].busy

    assert sim.run(program).value is False


def test_result_that_exits_when_looked_at_leaves_no_ticket() -> None:
    """The recording of a result may raise; the call's tickets go back all the same."""

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def leaving(ctx: ToolContext) -> Any:
        return _Leaving()

    async def program() -> Any:
        given = runtime(leaving, Diary().tool("b", claims=claims(("f", WRITE))))
        with trio.fail_after(9), pytest.raises(SystemExit):
            await given.run([call("leaving")])
        with trio.fail_after(9):
            return outcomes((await given.run([call("b")])).results), given.tables[0].busy

    assert sim.run(program).value == (["ok"], False)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("kind", ["batch.opened", "call.submitted", "call.started", "call.settled", "call.ended"])
async def test_observer_that_exits_breaks_no_bookkeeping(
    kind: str, error: type[BaseException], autojump_clock: trio.testing.MockClock
) -> None:
    """What an observer raises is counted, whatever it is, and decides nothing."""

    class Exits:
        def event(self, what: str, fields: Any) -> None:
            if what == kind:
                raise error

    leaf = Diary().tool("leaf", claims=claims(("f", WRITE)))

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def parent(ctx: ToolContext) -> list[str]:
        return outcomes((await ctx.run([call("leaf")])).results)

    given = runtime(leaf, parent, telemetry=Exits())
    with pytest.warns(toolrt.errors.ObserverWarning), trio.fail_after(9):
        done = await given.run([call("parent"), call("leaf")])
    assert [result.content for result in done.results] == [["ok"], "leaf"]
    assert given.telemetry_failures > 0
    assert not given.tables[0].busy

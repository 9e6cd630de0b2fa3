"""How a call ends: the eight outcomes, timeouts, threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests.runtime._tools import Diary, call, claims, outcomes, runtime
from toolrt import WRITE, Claim, ClaimTable, Outcome, ToolCall, ToolContext


@toolrt.tool(safe=True)
async def add(ctx: ToolContext, a: int, b: int = 1) -> int:
    """Add."""
    return a + b


async def test_call_of_an_unknown_tool_is_invalid_and_names_the_nearest() -> None:
    """The text names the tool, what was expected and got."""
    (result,) = (await runtime(add).run([ToolCall("1", "ad", {"a": 1})])).results
    assert result.outcome is Outcome.INVALID
    assert result.error == (
        "invalid call of tool 'ad': name: expected the name of a tool (the nearest are add), got 'ad'"
    )


async def test_call_of_a_tool_like_no_other_is_told_how_many_there_are() -> None:
    """Twenty are named, the rest counted."""
    some = [toolrt.tool(name=f"tool_{place}", safe=True)(lambda ctx: None) for place in range(23)]
    (result,) = (await runtime(*some).run([ToolCall("1", "zzz", {})])).results
    assert result.error is not None
    assert "there are tool_0, " in result.error
    assert "tool_19 and 3 more), got 'zzz'" in result.error


@pytest.mark.parametrize(
    ("input", "error"),
    [
        ({}, "input.a: expected a value (it is required), got nothing"),
        ({"a": 1, "c": 2}, "input.c: expected no such field, got field c"),
        ({"a": "1"}, "input.a: expected integer, got string '1'"),
        ({"a": True}, "input.a: expected integer, got boolean True"),
        ([1], "input: expected object, got array"),
        ("{", "input: expected object, got string '{'"),
        (None, "input: expected object, got null"),
    ],
)
async def test_call_with_bad_input_is_invalid_and_says_where(input: Any, error: str) -> None:
    """Missing, extra or wrongly typed fields, and input that is no object."""
    (result,) = (await runtime(add).run([ToolCall("1", "add", input)])).results
    assert result.outcome is Outcome.INVALID
    assert result.error == f"invalid call of tool 'add': {error}"


async def test_call_error_text_survives_an_exception_whose_text_cannot_be_made() -> None:
    """An exception with a broken __str__ is still an answer."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    @toolrt.tool(safe=True)
    async def bad(ctx: ToolContext) -> None:
        raise Broken

    (result,) = (await runtime(bad).run([call("bad")])).results
    assert result.error == "Broken: (its text cannot be made: RuntimeError)"


async def test_timeout_of_the_runtime_is_the_default(autojump_clock: trio.testing.MockClock) -> None:
    """A tool that names none gets the runtime's."""
    diary = Diary()
    done = await runtime(diary.tool("a", 5, safe=True), diary.tool("b", 5, safe=True, timeout=9), timeout=1).run(
        [call("a"), call("b")]
    )
    assert outcomes(done.results) == ["timed_out", "ok"]


async def test_sync_tool_that_overruns_answers_at_once_and_keeps_its_claims_until_it_ends() -> None:
    """The result says that the thread still runs; the next call on its file waits for its end."""
    release = threading.Event()
    order: list[str] = []

    @toolrt.tool(claims=claims(("f", WRITE)), timeout=0.01)
    def stuck(ctx: ToolContext) -> None:
        release.wait(30)
        ctx.progress("too late")
        order.append("stuck ends")

    @toolrt.tool(claims=claims(("f", WRITE)))
    async def follows(ctx: ToolContext) -> None:
        order.append("follows")

    async with runtime(stuck, follows).open_batch() as batch:
        batch.submit(call("stuck"))
        batch.submit(call("follows"))
        batch.seal()
        first = await batch.__anext__()
        assert first.result.outcome is Outcome.TIMED_OUT  # type: ignore[union-attr]
        assert "still runs" in str(first.result.error)  # type: ignore[union-attr]
        assert batch.calls[1].waits_for == [0]
        release.set()
    assert order == ["stuck ends", "follows"]
    assert outcomes(batch.outcome.results) == ["timed_out", "ok"]
    assert batch.calls[0].results[0].progress_dropped == 1


async def test_sync_tool_that_returns_an_awaitable_is_an_error() -> None:
    """A coroutine that nobody awaits is no answer."""

    async def inner() -> None: ...

    @toolrt.tool(safe=True)
    def odd(ctx: ToolContext) -> Any:
        return inner()

    (result,) = (await runtime(odd).run([call("odd")])).results
    assert result.outcome is Outcome.ERROR
    assert "async def" in str(result.error)


async def test_keyboard_interrupt_in_a_tool_ends_the_batch_and_comes_out_bare() -> None:
    """Ctrl-C is not the tool's failure; every call is answered all the same."""

    @toolrt.tool(safe=True)
    async def pressed(ctx: ToolContext) -> None:
        await trio.testing.wait_all_tasks_blocked()
        raise KeyboardInterrupt

    diary = Diary()
    with pytest.raises(KeyboardInterrupt):
        async with runtime(pressed, diary.tool("a", 100, safe=True), diary.tool("x")).open_batch() as batch:
            for name in ("a", "pressed", "x"):
                batch.submit(call(name))
            await trio.sleep_forever()
    assert outcomes(batch.outcome.results) == ["interrupted", "interrupted", "not_started"]


async def test_tool_that_raises_cancelled_by_itself_is_interrupted_alone() -> None:
    """A stray Cancelled of nobody's scope does not take the batch with it."""
    stolen: list[BaseException] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as cancelled:
            stolen.append(cancelled)
            raise

    @toolrt.tool(safe=True)
    async def odd(ctx: ToolContext) -> None:
        raise stolen[0]

    done = await runtime(odd, add).run([call("odd"), call("add", a=1)])
    assert outcomes(done.results) == ["interrupted", "ok"]


class _Owner:
    """Owns what tools touch, and says in its own words what went wrong."""

    def __init__(self, *words: str) -> None:
        self.claim_table = ClaimTable("owner")
        self.words = list(words)

    def describe_error(self, error: BaseException) -> str:
        return self.words[0]


async def _fails(owner: Any, how: str) -> tuple[toolrt.BatchOutcome, str]:
    """What is said of a tool whose exception, or whose modifier's, has a secret in its text."""

    def modifier(state: toolrt.State) -> toolrt.State:
        raise ValueError("secret")

    @toolrt.tool(owner=owner, claims=[Claim("x", WRITE)], timeout=1)
    async def tool(ctx: ToolContext) -> Any:
        if how == "modifier":
            return toolrt.ToolOutput("x", modifiers=[modifier])
        if how == "error":
            raise ValueError("secret")
        try:
            await trio.sleep_forever()
        except trio.Cancelled as cancelled:
            raise BaseExceptionGroup("both", [cancelled, ValueError("secret")]) from None

    said: list[Any] = []
    approve = (lambda request: 1 / 0) if how == "approval" else None
    async with runtime(tool, approve=approve).open_batch() as batch:
        batch.submit(call("tool"))
        batch.seal()
        if how == "interrupted":
            await trio.sleep(0.5)
            batch.cancel("x")
        async for update in batch:
            said += [update.rejected] if isinstance(update, toolrt.StateMerged) else [update]
    return batch.outcome, repr(said)


@pytest.mark.parametrize("how", ["error", "timed_out", "interrupted", "modifier", "approval"])
async def test_call_error_is_told_in_the_words_of_the_tools_owner(
    how: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Whoever owns what a tool touches decides what of an exception may be shown, wherever it shows."""
    _, said = await _fails(_Owner("all is lost"), how)
    assert "all is lost" in said
    assert "secret" not in said
    assert "division" not in said


async def test_call_error_of_an_owner_without_words_is_the_exceptions_type() -> None:
    """An owner that fails to say it gives nothing away."""
    outcome, said = await _fails(_Owner(), "error")
    assert outcome.results[0].error == "ValueError"
    assert "secret" not in said

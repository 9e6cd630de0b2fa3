"""``run_sync``: the way in for sync and asyncio callers."""

import asyncio
from typing import Any

import pytest
import trio

from toolrt import Claim, Mode, Outcome, Registry, Runtime, State, ToolCall, ToolOutput, tool
from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.interop import run_sync


@tool(safe=True)
async def echo(ctx: Any, text: str) -> str:
    """Give the text back."""
    await trio.lowlevel.checkpoint()
    return text


@tool(claims=(Claim("count", Mode.WRITE),))
async def count(ctx: Any) -> ToolOutput:
    """Count in the state."""
    return ToolOutput("ok", modifiers=[lambda state: state.set("n", state["n"] + 1)])


def test_run_sync_gives_the_outcome() -> None:
    """Results in call order, and the state they leave."""
    calls = [ToolCall("a", "echo", {"text": "x"}), ToolCall("b", "count"), ToolCall("c", "count")]
    done = run_sync(Runtime(Registry([echo, count])), calls, State({"n": 0}))
    assert [result.content for result in done.results] == ["x", "ok", "ok"]
    assert done.state["n"] == 2


def test_run_sync_starts_from_the_empty_state_by_default() -> None:
    """As `Runtime.run` does."""
    assert run_sync(Runtime(Registry([echo])), []).state == State()


async def test_run_sync_is_refused_inside_trio() -> None:
    """It says what to write instead."""
    with pytest.raises(MisuseError, match=r"await runtime\.run"):
        run_sync(Runtime(Registry([echo])), [])


async def test_run_sync_is_refused_in_a_thread_of_trio() -> None:
    """The run it belongs to would be stalled, or wait for it for ever."""
    with pytest.raises(MisuseError, match=r"trio\.from_thread\.run"):
        await trio.to_thread.run_sync(run_sync, Runtime(Registry([echo])), [])


def test_run_sync_in_a_sync_tool_is_an_error_of_that_call() -> None:
    """A tool that calls its own runtime does not hang."""

    @tool
    def nested(ctx: Any) -> None:
        run_sync(runtime, [])

    runtime = Runtime(Registry([nested]))
    result = run_sync(runtime, [ToolCall("a", "nested")]).results[0]
    assert result.outcome is Outcome.ERROR
    assert result.error is not None
    assert "MisuseError" in result.error


def test_run_sync_refuses_what_is_no_call() -> None:
    """As `Runtime.run` does; nothing was run."""
    with pytest.raises(DefinitionRefused):
        run_sync(Runtime(Registry([echo])), ["echo"])  # type: ignore[list-item]


def test_run_sync_serves_asyncio_through_threads() -> None:
    """Many at once on one runtime: each gets its own answers."""
    runtime = Runtime(Registry([echo]))

    async def ask(text: str) -> Any:
        done = await asyncio.to_thread(run_sync, runtime, [ToolCall("a", "echo", {"text": text})] * 3)
        return [result.content for result in done.results]

    async def main() -> list[Any]:
        return await asyncio.gather(*(ask(str(number)) for number in range(8)))

    assert asyncio.run(main()) == [[str(number)] * 3 for number in range(8)]

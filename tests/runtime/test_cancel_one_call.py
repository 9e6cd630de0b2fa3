"""One call is cancelled; the others go on as if it had never been asked for, or had been done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from toolrt import WRITE, Claim, Registry, Runtime, State, ToolCall, ToolOutput, tool
from toolrt.errors import BatchClosed, DefinitionRefused
from toolrt.invariants import check
from toolrt.order import CallState
from toolrt.sim import PASS, explore

_ON_F = (Claim(("file", "f"), WRITE),)


def _call(name: str, **input: Any) -> ToolCall:
    return ToolCall(f"id-{name}", name, input)


def _registry(done: list[str], started: list[str] | None = None) -> Registry:
    @tool(claims=lambda input, state: _ON_F)
    async def write(ctx: Any, text: str, seconds: float = 1.0) -> ToolOutput:
        if started is not None:
            started.append(text)
        await trio.sleep(seconds)
        done.append(text)
        return ToolOutput(text, modifiers=[lambda state: state.set("last", text)])

    @tool
    async def alone(ctx: Any, text: str) -> str:
        await trio.sleep(1)
        done.append(text)
        return text

    @tool(safe=True, stops_batch=True)
    async def gate(ctx: Any) -> str:
        await trio.sleep(10)
        return "open"

    @tool(claims=lambda input, state: _ON_F, interrupt="finish")
    async def finishes(ctx: Any) -> str:
        await trio.sleep(2)
        done.append("finished")
        return "finished"

    @tool(claims=lambda input, state: _ON_F, timeout=1.0)
    async def slow(ctx: Any) -> str:
        await trio.sleep(5)
        return "never"

    return Registry([write, alone, gate, finishes, slow])


async def test_one_that_waits_never_starts_and_those_behind_take_its_place(autojump_clock: Any) -> None:
    """Its tickets go back at the cancel, and its result says why."""
    done: list[str] = []
    async with Runtime(_registry(done)).open_batch() as batch:
        for text in "abc":
            batch.submit(_call("write", text=text))
        batch.seal()
        await trio.sleep(0.5)
        assert batch.cancel_call(1, "the user changed their mind") is True
        assert batch.calls[1].status == "completed"
        assert batch.calls[2].waits_for == [0]
    assert done == ["a", "c"]
    results = batch.outcome.results
    assert [one.outcome.value for one in results] == ["ok", "not_started", "ok"]
    assert results[1].error == "not started: the call was cancelled (the user changed their mind)"
    assert batch.outcome.state["last"] == "c"


async def test_an_exclusive_call_that_is_cancelled_leaves_an_empty_lane(autojump_clock: Any) -> None:
    """The lanes before and behind it run."""
    done: list[str] = []
    async with Runtime(_registry(done)).open_batch() as batch:
        for name, text in (("write", "a"), ("alone", "b"), ("write", "c")):
            batch.submit(_call(name, text=text))
        batch.seal()
        assert batch.calls[1].state is CallState.PLACED
        assert batch.cancel_call(1)
    assert done == ["a", "c"]


async def test_a_call_that_would_stop_the_batch_stops_nothing_when_it_is_cancelled(autojump_clock: Any) -> None:
    """A cancel is no failure of the tool's."""
    done: list[str] = []
    async with Runtime(_registry(done)).open_batch() as batch:
        batch.submit(_call("gate"))
        batch.submit(_call("write", text="a"))
        batch.seal()
        await trio.sleep(1)
        assert batch.cancel_call(0)
    assert [one.outcome.value for one in batch.outcome.results] == ["interrupted", "ok"]


async def test_an_approval_that_is_waited_for_is_not_needed_any_more(autojump_clock: Any) -> None:
    """The check is cancelled with the call."""
    left: list[str] = []

    async def approve(request: Any) -> Any:
        try:
            await trio.sleep(100)
        finally:
            left.append(request.name)

    done: list[str] = []
    async with Runtime(_registry(done), approve=approve).open_batch() as batch:
        batch.submit(_call("write", text="a"))
        batch.seal()
        await trio.sleep(1)
        assert batch.cancel_call(0)
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert left == ["write"]
    assert batch.outcome.results[0].outcome.value == "not_started"
    assert trio.current_time() < 50


@pytest.mark.parametrize("index", [-1, 1, True, "0", None])
async def test_an_index_of_no_call_is_refused(index: Any) -> None:
    """So is a reason that is no text; the batch goes on."""
    async with Runtime(_registry([])).open_batch() as batch:
        batch.submit(_call("write", text="a", seconds=0))
        with pytest.raises(DefinitionRefused, match="the call_index of one of its 1 call, got"):
            batch.cancel_call(index)
        with pytest.raises(DefinitionRefused, match="reason"):
            batch.cancel_call(0, None)  # type: ignore[arg-type]
    assert batch.outcome.results[0].outcome.value == "ok"


async def test_a_call_that_runs_without_a_block_is_refused_in_words(autojump_clock: Any) -> None:
    """A parent in `Runtime.run` has no scope of its own."""
    said: list[str] = []

    @tool(safe=True)
    async def outer(ctx: Any) -> str:
        async with ctx.open_batch() as inner:
            with pytest.raises(BatchClosed, match="open it with open_batch") as refused:
                inner.parent.cancel()
            said.append(str(refused.value))
        return "went on"

    outcome = await Runtime(Registry([outer])).run([_call("outer")])
    assert outcome.results[0].content == "went on"
    assert said


async def test_from_inside_a_tool_of_the_same_batch(autojump_clock: Any) -> None:
    """A sibling cancels one that waits for a file."""
    batches: list[Any] = []
    done: list[str] = []

    @tool(safe=True)
    async def cancels(ctx: Any) -> bool:
        return bool(batches[0].cancel_call(1, "by a sibling"))

    async with Runtime(Registry([*_registry(done), cancels])).open_batch() as batch:
        batches.append(batch)
        batch.submit(_call("cancels"))
        batch.submit(_call("write", text="a"))
        batch.submit(_call("write", text="b"))
        batch.seal()
    assert batch.outcome.results[0].content is True
    assert done == ["b"]


def _program(steps: int, cut: int) -> Callable[[], Awaitable[Any]]:
    async def program() -> Any:
        done: list[str] = []
        started: list[str] = []
        async with Runtime(_registry(done, started), limit=2).open_batch(State({"last": "none"})) as batch:
            for text in "abcd":
                batch.submit(_call("write", text=text, seconds=0))
            batch.seal()
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            changed = batch.cancel_call(cut, "drawn")
        outcomes = [one.outcome.value for one in batch.outcome.results]
        assert [one for place, one in enumerate(outcomes) if place != cut] == ["ok"] * 3
        assert changed == (outcomes[cut] != "ok")
        whole = [text for place, text in enumerate("abcd") if place != cut or outcomes[cut] == "ok"]
        assert done == whole
        assert batch.outcome.state["last"] == whole[-1]
        assert outcomes[cut] != "not_started" or "abcd"[cut] not in started
        return outcomes[cut]

    return program


@pytest.mark.drawn(3)
@pytest.mark.parametrize("cut", range(4))
@pytest.mark.parametrize("steps", [0, 3, 9])
def test_at_every_instant_the_others_end_as_without_it_or_with_it_whole(steps: int, cut: int) -> None:
    """No law breaks, and the files are those of one of the two batches."""
    report = explore(_program(steps, cut), max_executions=150, check=lambda execution: check(execution.trace))
    assert report.verdict is PASS, report

"""Complaints about ids, progress, limits, approvals and threads: rows 56 to 64 of the research on peers.

Row 63 is about MCP clients and has its tests where those are.
"""

from __future__ import annotations

import threading
from typing import Any

import trio

from toolrt import WRITE, Claim, Progress, ResultReady, ToolCall, ToolOutput, ToolResult
from toolrt.model import Outcome


def test_no_call_is_skipped_for_its_id(everywhere: Any, kit: Any) -> None:
    """56. huggingface/smolagents #2683: calls with missing or equal ids were silently skipped."""

    async def program() -> Any:
        ran = []

        async def body(ctx: Any) -> int:
            ran.append(ctx.call_index)
            await trio.sleep(2 - ctx.call_index % 2)
            return int(ctx.call_index)

        calls = [ToolCall("", "t"), ToolCall("x", "t"), ToolCall("x", "t"), ToolCall("", "t")]
        done = await kit.runtime(kit.tool("t", body, safe=True)).run(calls)
        return sorted(ran), [(result.call_id, result.content) for result in done.results]

    assert everywhere(program) == ([0, 1, 2, 3], [("", 0), ("x", 1), ("x", 2), ("", 3)])


def test_no_error_hits_a_sibling_of_the_same_name(everywhere: Any, kit: Any) -> None:
    """57. NousResearch/hermes-agent #93251, #84698: results of four calls or more were lost, errors keyed by name hit a
    valid sibling.
    """

    async def program() -> Any:
        async def body(ctx: Any) -> int:
            await trio.sleep(ctx.call_index % 3)
            if ctx.call_index == 2:
                raise RuntimeError("only I")
            return int(ctx.call_index)

        calls = [*kit.calls(*["t"] * 5), ToolCall("id-1", "t", "no object")]
        done = await kit.runtime(kit.tool("t", body, safe=True)).run(calls)
        return kit.outcomes(done.results), [result.content for result in done.results]

    assert everywhere(program) == (["ok", "ok", "error", "ok", "ok", "invalid"], [0, 1, None, 3, 4, None])


def test_no_tool_answers_for_a_sibling(everywhere: Any, kit: Any) -> None:
    """58. langchain-ai/langgraph #7989: a tool could return a result bound to a sibling's call id."""

    async def program() -> Any:
        async def forge(ctx: Any) -> ToolOutput:
            return ToolOutput(ToolResult("id-1", 1, "honest", Outcome.OK, "forged"))

        runtime = kit.runtime(kit.tool("forge", forge, safe=True), kit.sleeping("honest", 1))
        first, second = (await runtime.run(kit.calls("forge", "honest"))).results
        return first.call_id, first.call_index, second.call_id, second.content

    assert everywhere(program) == ("id-0", 0, "id-1", "honest")


def test_no_progress_lacks_its_call(everywhere: Any, kit: Any) -> None:
    """59. zed-industries/codex-acp #154 and others: without the call in a message outputs crossed, ends were lost."""

    async def program() -> Any:
        async def talk(ctx: Any) -> None:
            for part in range(3):
                ctx.progress(f"{ctx.call_index}.{part}")
                await trio.sleep(1)

        lines: dict[int, list[str]] = {0: [], 1: []}
        async with kit.runtime(kit.tool("talk", talk, safe=True)).open_batch() as batch:
            for call in (ToolCall("same", "talk"), ToolCall("same", "talk")):
                batch.submit(call)
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    assert update.message.startswith(f"{update.call_index}.")
                    lines[update.call_index].append(update.message)
                elif isinstance(update, ResultReady):
                    lines[update.result.call_index].append("end")
        return lines

    assert everywhere(program) == {0: ["0.0", "0.1", "0.2", "end"], 1: ["1.0", "1.1", "1.2", "end"]}


def test_no_fan_out_goes_beyond_the_limit(everywhere: Any, kit: Any) -> None:
    """60. aaif-goose/goose #9136: unbounded fan-out ended in an out-of-memory kill."""

    async def program() -> Any:
        running = most = 0

        async def body(ctx: Any) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await trio.sleep(1)
            running -= 1

        await kit.runtime(kit.tool("t", body, safe=True), limit=4).run(kit.calls(*["t"] * 40))
        return most, trio.current_time()

    assert everywhere(program, 8) == (4, 10)


def test_no_pending_approval_stops_what_needs_none(everywhere: Any, kit: Any) -> None:
    """61. mastra-ai/mastra #9704: with parallel calls, an agent that waited for a person could not be resumed."""

    async def program() -> Any:
        async def approve(request: Any) -> bool:
            if request.name == "asks":
                await trio.sleep(3600)
            return True

        runtime = kit.runtime(kit.sleeping("asks", 1), kit.sleeping("free", 1), approve=approve, limit=1)
        ended = {}
        async with runtime.open_batch() as batch:
            calls = [batch.submit(call) for call in kit.calls("asks", "free", "free")]
            batch.seal()
            await trio.sleep(10)
            ended = {call.call_index: call.status.value for call in calls}
            assert calls[0].waits_for == ["approval"]
        return ended, kit.outcomes(batch.outcome.results)

    assert everywhere(program) == ({0: "queued", 1: "completed", 2: "completed"}, ["ok", "ok", "ok"])


async def test_no_sync_tool_blocks_its_siblings(kit: Any) -> None:
    """62. openai/openai-agents-python #2386: a sync tool blocked every parallel sibling."""
    sibling_ran = threading.Event()

    def waits(ctx: Any) -> bool:
        return sibling_ran.wait()

    async def runs(ctx: Any) -> None:
        sibling_ran.set()

    runtime = kit.runtime(kit.tool("waits", waits, safe=True), kit.tool("runs", runs, safe=True))
    done = await runtime.run(kit.calls("waits", "runs"))
    assert kit.outcomes(done.results) == ["ok", "ok"]


def test_no_waiting_call_holds_a_slot(everywhere: Any, kit: Any) -> None:
    """64. vllm-project/agentic-api PR #214: who waited for a lock held a slot, an ordered window blocked results."""

    async def program() -> Any:
        edit = kit.sleeping("edit", 2, safe=False, claims=[Claim("f", WRITE)])
        free = kit.sleeping("free", 1)
        runtime = kit.runtime(edit, free, limit=2)
        async with runtime.open_batch() as batch:
            for call in kit.calls("edit", "edit", "edit", "free", "free"):
                batch.submit(call)
            batch.seal()
            await trio.sleep(2.5)
            ended = [call.call_index for call in batch.calls if call.results]
        return ended, trio.current_time()

    assert everywhere(program) == ([0, 3, 4], 6)

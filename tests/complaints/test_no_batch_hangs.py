"""Complaints about hangs and about cancelling: rows 44 to 55 of the research on peers."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio

from toolrt import READ, WRITE, Claim, Outcome


def test_no_answer_reaches_another_call_than_the_one_asked_about(everywhere: Any, kit: Any) -> None:
    """44. langchain-ai/langgraph #6624, #6533: of parallel questions one came up, answers reached the wrong tool."""

    async def program() -> Any:
        asked = []

        async def approve(request: Any) -> Any:
            asked.append(request.call_index)
            await trio.sleep(3 - request.call_index)
            return {"who": f"answer {request.call_index}"}

        async def body(ctx: Any, who: str = "nobody") -> str:
            return who

        runtime = kit.runtime(kit.tool("ask", body, safe=True), approve=approve)
        done = await runtime.run(kit.calls("ask", "ask", "ask"))
        return sorted(asked), [result.content for result in done.results]

    assert everywhere(program) == ([0, 1, 2], ["answer 0", "answer 1", "answer 2"])


def test_no_cancelled_tool_blocks_the_stream(everywhere: Any, kit: Any) -> None:
    """45. microsoft/autogen #7956: cancelling a tool in flight left the stream waiting for ever."""

    async def program() -> Any:
        runtime = kit.runtime(kit.sleeping("forever", float("inf")))
        seen = []
        async with runtime.open_batch() as batch, trio.open_nursery() as nursery:
            for call in kit.calls("forever", "forever"):
                batch.submit(call)
            batch.seal()

            async def cancel() -> None:
                await trio.sleep(1)
                batch.cancel("enough")

            nursery.start_soon(cancel)
            async for update in batch:
                seen.append(type(update).__name__)
        return seen, trio.current_time()

    assert everywhere(program) == (["ResultReady", "ResultReady", "StateMerged"], 1)


def test_no_stalled_tool_hangs_the_batch(everywhere: Any, kit: Any) -> None:
    """46. strands-agents/harness-sdk #4403: a stalled tool hung for ever and the executor never looked at cancel."""

    async def program() -> Any:
        stalled, good = kit.sleeping("stalled", float("inf")), kit.sleeping("good", 1)
        done = await kit.runtime(stalled, good, timeout=5).run(kit.calls("stalled", "good"))
        outcomes = kit.outcomes(done.results)
        with trio.move_on_after(3) as scope:
            await kit.runtime(stalled, good).run(kit.calls("stalled", "good"))
        return outcomes, scope.cancelled_caught, trio.current_time()

    assert everywhere(program) == (["timed_out", "ok"], True, 8)


def test_no_call_that_is_cancelled_by_itself_hangs_the_rest(everywhere: Any, kit: Any) -> None:
    """47. vybestack/llxprt-code #2099: cancelling one of several parallel calls hung the subagent."""

    async def program() -> Any:
        async def gives_up(ctx: Any) -> str:
            with trio.CancelScope() as scope:
                scope.cancel()
                await trio.sleep_forever()
            return "gave up"

        runtime = kit.runtime(kit.tool("one", gives_up, safe=True), kit.sleeping("other", 2))
        done = await runtime.run(kit.calls("other", "one", "other"))
        return kit.outcomes(done.results)

    assert everywhere(program) == ["ok", "ok", "ok"]


@pytest.mark.parametrize("answers", [(0, 0, 0), (3, 2, 1), (1, 3, 2), (2, 2, 2)])
def test_no_batch_of_approved_edits_waits_for_ever(everywhere: Any, kit: Any, answers: tuple[int, ...]) -> None:
    """48. github/copilot-cli #569: parallel edits and rapid approvals waited "until the end of time"."""

    async def program() -> Any:
        async def approve(request: Any) -> bool:
            await trio.sleep(answers[request.call_index])
            return True

        edits = [kit.sleeping(name, 1, safe=False, claims=[Claim("file", WRITE)]) for name in "abc"]
        done = await kit.runtime(*edits, approve=approve).run(kit.calls("a", "b", "c"))
        return kit.outcomes(done.results)

    assert everywhere(program) == ["ok", "ok", "ok"]


def test_no_tool_starts_after_a_cancel_while_it_waits_for_a_resource(everywhere: Any, kit: Any) -> None:
    """49. OpenHands/software-agent-sdk #4777: a tool that waited for a resource started after the cancel."""

    async def program() -> Any:
        started = []

        async def hold(ctx: Any) -> None:
            started.append(ctx.call_index)
            await trio.sleep(5)

        runtime = kit.runtime(kit.tool("hold", hold, claims=[Claim("lock", WRITE)], interrupt="finish"))
        async with runtime.open_batch() as batch:
            for call in kit.calls("hold", "hold", "hold"):
                batch.submit(call)
            batch.seal()
            await trio.sleep(1)
            batch.cancel("enough")
        return started, kit.outcomes(batch.outcome.results)

    assert everywhere(program) == ([0], ["ok", "not_started", "not_started"])


def test_no_call_runs_that_was_cancelled_while_it_was_checked(everywhere: Any, kit: Any) -> None:
    """50. agentscope-ai/agentscope #2767: cancelled in a middleware, a safe tool was executed all the same."""

    async def program() -> Any:
        ran = []

        async def approve(request: Any) -> bool:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
            return True

        async def body(ctx: Any) -> None:
            ran.append(ctx.call_index)

        runtime = kit.runtime(kit.tool("safe", body, safe=True), approve=approve)
        async with runtime.open_batch() as batch:
            batch.submit(*kit.calls("safe"))
            batch.seal()
            await trio.sleep(1)
            batch.cancel("enough")
        return ran, kit.outcomes(batch.outcome.results)

    assert everywhere(program) == ([], ["not_started"])


async def test_no_sync_tool_outlives_its_batch(kit: Any) -> None:
    """51. google/adk-python #2425: a sync tool ran on after the cancel, and its call had no response."""
    running, release = threading.Event(), threading.Event()
    ended = []

    def stubborn(ctx: Any) -> None:
        running.set()
        release.wait()
        ended.append(ctx.call_index)

    runtime = kit.runtime(kit.tool("stubborn", stubborn, safe=True))
    async with runtime.open_batch() as batch:
        batch.submit(*kit.calls("stubborn"))
        batch.seal()
        await trio.to_thread.run_sync(running.wait)
        batch.cancel("enough")
        update = await anext(aiter(batch))
        assert update.result.outcome is Outcome.INTERRUPTED
        assert "thread" in update.result.error
        assert ended == []
        release.set()
    assert ended == [0]
    assert len(batch.outcome.results) == 1


@pytest.mark.parametrize("after", [0, 0.5, 1, 1.5, 2, 4])
def test_no_call_lacks_a_result_after_an_interrupt(everywhere: Any, kit: Any, after: float) -> None:
    """52 to 54. openai/codex #394, anthropics/claude-code #1894 and #9346, LionSR/TeXRA #7163: an interrupt left
    calls without a result, and the session could not go on.
    """

    async def program() -> Any:
        slow = kit.sleeping("slow", 2)
        edit = kit.sleeping("edit", 1, safe=False, claims=[Claim("f", WRITE)])
        read = kit.sleeping("read", 1, safe=False, claims=[Claim("f", READ)])
        runtime = kit.runtime(slow, edit, read, kit.sleeping("alone", 1, safe=False), limit=2)
        names = ["slow", "edit", "read", "nobody", "alone", "edit", "slow"]
        # A quarter off, so that no call ends in the instant of the cancel.
        with trio.move_on_after(after + 0.25):
            async with runtime.open_batch() as batch:
                for call in kit.calls(*names):
                    batch.submit(call)
                batch.seal()
        results = batch.outcome.results
        assert [(r.call_index, r.call_id, r.name) for r in results] == [(i, f"id-{i}", n) for i, n in enumerate(names)]
        return kit.outcomes(results)

    assert {"not_started", "interrupted"} & set(everywhere(program))


def test_no_running_tool_is_reported_as_never_started(everywhere: Any, kit: Any) -> None:
    """55. anthropics/claude-code #86001: an interrupted tool that had written was reported as "not written"."""

    async def program() -> Any:
        written = []

        async def write(ctx: Any) -> None:
            written.append(ctx.call_index)
            await trio.sleep(10)

        runtime = kit.runtime(kit.tool("write", write, claims=[Claim("f", WRITE)]))
        async with runtime.open_batch() as batch:
            for call in kit.calls("write", "write"):
                batch.submit(call)
            batch.seal()
            await trio.sleep(1)
            batch.cancel("enough")
        first, second = batch.outcome.results
        assert "effects may have landed" in first.error
        return written, first.outcome.value, second.outcome.value

    assert everywhere(program) == ([0], "interrupted", "not_started")

"""Complaints about the order of results and about what a failure does: rows 31 to 43 of the research on peers."""

from __future__ import annotations

import json
from typing import Any

import trio

from toolrt import Deny, ResultReady, ToolCall, invariants, sim


async def delivered(batch: Any) -> list[int]:
    """The call_index of each result, in the order the reader was handed them."""
    return [update.result.call_index async for update in batch if isinstance(update, ResultReady)]


def test_no_result_is_serialised_in_completion_order(everywhere: Any, kit: Any) -> None:
    """31. vercel/ai #16567: results in completion order broke the prompt cache."""

    async def program() -> Any:
        runtime = kit.runtime(kit.sleeping("slow", 3), kit.sleeping("quick", 1))
        done = await runtime.run(kit.calls("slow", "quick", "slow", "quick"))
        return [(result.call_index, result.call_id, result.content) for result in done.results]

    expected = [(0, "id-0", "slow"), (1, "id-1", "quick"), (2, "id-2", "slow"), (3, "id-3", "quick")]
    assert everywhere(program) == expected


def test_no_stream_collects_in_completion_order(everywhere: Any, kit: Any) -> None:
    """32. strands-agents/harness-sdk #2112: the concurrent executor collected in completion order."""

    async def program() -> Any:
        runtime = kit.runtime(*(kit.sleeping(f"t{seconds}", seconds) for seconds in (3, 1, 2)))
        async with runtime.open_batch() as batch:
            for call in kit.calls("t3", "t1", "t2"):
                batch.submit(call)
            batch.seal()
            return await delivered(batch)

    assert everywhere(program) == [0, 1, 2]


def test_no_byte_of_the_answer_depends_on_timing(everywhere: Any, kit: Any) -> None:
    """33. langchain-ai/open-swe PR #2198: two swapped results made 25,274 tokens be filled in again."""

    async def program() -> Any:
        runtime = kit.runtime(kit.sleeping("a", 1), kit.sleeping("b", 1), kit.failing("c", "no"))
        done = await runtime.run(kit.calls("a", "b", "c", "a", "nobody"))
        return json.dumps([result.to_json() for result in done.results])

    everywhere(program)


def test_no_blocked_call_jumps_ahead(everywhere: Any, kit: Any) -> None:
    """34. earendil-works/pi #3468: the result of a later call that was blocked came before those of earlier ones."""

    async def program() -> Any:
        def approve(request: Any) -> Any:
            return Deny("blocked") if request.name == "blocked" else True

        runtime = kit.runtime(kit.sleeping("slow", 5), kit.sleeping("blocked", 0), approve=approve)
        async with runtime.open_batch() as batch:
            for call in kit.calls("slow", "blocked", "nobody"):
                batch.submit(call)
            batch.seal()
            order = await delivered(batch)
        return order, kit.outcomes(batch.outcome.results)

    assert everywhere(program) == ([0, 1, 2], ["ok", "denied", "invalid"])


def test_no_replay_differs_from_its_run(kit: Any) -> None:
    """35. zenml-io/kitaru #306: the order differed from run to run, so nothing could be replayed or cached."""

    async def program() -> Any:
        runtime = kit.runtime(*(kit.sleeping(name, 1) for name in "abc"))
        return kit.outcomes((await runtime.run(kit.calls("a", "b", "c"))).results)

    for seed in range(20):
        execution = sim.run(program, sim.RandomWalk(seed=seed))
        again = sim.replay(program, execution.schedule)
        assert again.trace.to_json() == execution.trace.to_json()


def test_no_benign_failure_cancels_its_siblings(everywhere: Any, kit: Any) -> None:
    """36. anthropics/claude-code #64346, #22264: one benign failure cancelled 26 siblings."""

    async def program() -> Any:
        runtime = kit.runtime(kit.failing("bad", "exit 1"), kit.sleeping("good", 2), limit=None)
        done = await runtime.run(kit.calls("good", "bad", *["good"] * 10))
        return kit.outcomes(done.results)

    assert everywhere(program, 15) == ["ok", "error"] + ["ok"] * 10


def test_no_error_is_collateral(everywhere: Any, kit: Any) -> None:
    """37. anthropics/claude-code #64237: 78 % of the errors of a session were collateral cancellations."""

    async def program() -> Any:
        tools = [kit.failing("raises", "x", 1), kit.sleeping("late", 9, timeout=2), kit.sleeping("good", 3)]
        done = await kit.runtime(*tools).run(kit.calls("raises", "good", "late", "good", "nobody", "good"))
        return kit.outcomes(done.results)

    assert everywhere(program) == ["error", "ok", "timed_out", "ok", "invalid", "ok"]


def test_no_skipped_call_looks_like_an_interrupted_one(everywhere: Any, kit: Any) -> None:
    """38. anthropics/claude-code #64047: a sibling's cancellation could not be told from a user's interrupt."""

    async def program() -> Any:
        tools = [
            kit.failing("stops", "x", 1, stops_batch=True),
            kit.sleeping("runs", 9),
            kit.sleeping("waits", 1, safe=False),
        ]
        skipped = await kit.runtime(*tools).run(kit.calls("stops", "waits"))
        async with kit.runtime(*tools).open_batch() as batch:
            for call in kit.calls("runs", "waits"):
                batch.submit(call)
            batch.seal()
            await trio.sleep(1)
            batch.cancel("the user said so")
        return kit.outcomes(skipped.results), kit.outcomes(batch.outcome.results)

    assert everywhere(program) == (["error", "skipped"], ["interrupted", "not_started"])


def test_no_generic_text_replaces_the_error(everywhere: Any, kit: Any) -> None:
    """39. anthropics/claude-code #25773: "sibling tool call errored" stood where the real error belonged."""

    async def program() -> Any:
        tools = [kit.failing("bad", "disk full at /x", stops_batch=True), kit.sleeping("next", 1, safe=False)]
        first, second = (await kit.runtime(*tools).run(kit.calls("bad", "next"))).results
        return first.error, second.error

    own, skipped = everywhere(program)
    assert "disk full at /x" in own
    assert "call 0" in skipped
    assert "bad" in skipped


def test_no_sibling_is_left_running_after_an_error(everywhere: Any, kit: Any) -> None:
    """40. pydantic/pydantic-ai PR #4502: after an exception the siblings ran on as orphans."""

    async def program() -> Any:
        finished: list[str] = []

        async def good(ctx: Any) -> None:
            await trio.sleep(5)
            finished.append("good")

        runtime = kit.runtime(kit.failing("bad", "x"), kit.tool("good", good, safe=True))
        await runtime.run(kit.calls("bad", "good", "good"))
        seen = list(finished)
        await trio.sleep(100)
        return seen, seen == finished

    assert everywhere(program) == (["good", "good"], True)


def test_no_finished_sibling_is_dropped(everywhere: Any, kit: Any) -> None:
    """41. pydantic/pydantic-ai #6370: what finished siblings had done was dropped when one was deferred or failed."""

    async def program() -> Any:
        change = kit.changing("change", lambda state: state.set("done", state.get("done", 0) + 1))
        runtime = kit.runtime(change, kit.failing("bad", "retry me", 2))
        done = await runtime.run(kit.calls("change", "bad", "change"))
        return done.state["done"], kit.outcomes(done.results)

    assert everywhere(program) == (2, ["ok", "error", "ok"])


def test_no_unknown_name_breaks_the_batch(everywhere: Any, kit: Any) -> None:
    """42. run-llama/llama_index PR #22298: an unknown tool name was a KeyError, and the siblings leaked."""

    async def program() -> Any:
        runtime = kit.runtime(kit.sleeping("lookup", 1))
        calls = [
            ToolCall("1", "lookup"),
            ToolCall("2", "lookpu"),
            ToolCall("3", "lookup", "no object"),
            ToolCall("4", "lookup"),
        ]
        results = (await runtime.run(calls)).results
        return kit.outcomes(results), results[1].error

    outcomes, error = everywhere(program)
    assert outcomes == ["ok", "invalid", "invalid", "ok"]
    assert "lookpu" in error
    assert "lookup" in error


def test_no_failure_discards_the_results_of_others(kit: Any) -> None:
    """43. huggingface/smolagents PR #2554: one failure discarded every result of the batch."""

    async def program() -> Any:
        runtime = kit.runtime(kit.sleeping("good", 1), kit.failing("bad", "x"))
        done = await runtime.run(kit.calls("good", "bad", "good"))
        return [result.content for result in done.results]

    for seed in range(20):
        execution = sim.run(program, sim.RandomWalk(seed=seed))
        assert execution.value == ["good", None, "good"]
        assert invariants.check(execution.trace) == []

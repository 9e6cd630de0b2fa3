"""Tools of MCP servers that are programs: calls, crashes and restarts, and what no server should say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from tests.plugins.mcp._mcp import OF_PROGRAMS, calls_of, connected, item_of, outcome, proper, rough, run
from toolrt import Outcome, Progress, Registry, Runtime
from toolrt.plugins import mcp

pytestmark = OF_PROGRAMS


@pytest.mark.seldom
@pytest.mark.process
def test_proper_server_answers_in_call_order_with_progress() -> None:
    """Schema, text, errors, pictures by size, and progress in the order in which it was made."""

    async def use(tools: mcp.McpTools) -> tuple[Any, Any]:
        seen = []
        runtime = Runtime(Registry(tools))
        async with runtime.open_batch() as batch:
            for call in calls_of(
                ("x__add", {"a": 1, "b": 2}),
                ("x__add", {"a": 1, "b": "2"}),
                ("x__put", {"key": "k", "value": "v"}),
                ("x__get", {"key": "k"}),
                ("x__fail", {}),
                ("x__picture", {}),
            ):
                batch.submit(call)
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    seen.append((update.call_index, update.message))
        return batch.outcome, seen

    done, seen = connected(proper(trusted=True), use)
    assert [(result.outcome, result.content or result.error) for result in done.results] == [
        (Outcome.OK, "3"),
        (Outcome.INVALID, "invalid call of tool 'x__add': input.b: expected integer, got string '2'"),
        (Outcome.OK, "kept"),
        (Outcome.OK, "v"),
        (Outcome.ERROR, "there is no such thing"),
        (Outcome.OK, "look:\n[image/png, 5 bytes]"),
    ]
    assert seen == [(0, {"progress": step, "total": 3, "message": f"step {step}"}) for step in range(3)]


@pytest.mark.seldom
@pytest.mark.process
def test_cancelled_call_is_told_to_the_server_and_the_session_goes_on() -> None:
    """The server hears of a cancel and of a time limit; the same process answers the next call."""

    async def use(tools: mcp.McpTools) -> tuple[Any, ...]:
        runtime = Runtime(Registry(tools))
        async with runtime.open_batch() as batch:
            batch.submit(calls_of(("x__nap", {"seconds": 1000}))[0])
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    batch.cancel("enough")
        heard = "(nothing)"
        while heard == "(nothing)":
            # The protocol gives no word of when a cancel has arrived.
            heard = (await run(tools, ("x__get", {"key": "cancelled"}))).results[0].content
        late = await Runtime(Registry(tools), timeout=0.05).run(calls_of(("x__nap", {"seconds": 1000})))
        after = await run(tools, ("x__add", {"a": 2, "b": 2}))
        return batch.outcome.results[0], heard, late.results[0], after.results[0].content, tools.servers["x"].starts

    cancelled, heard, late, after, starts = connected(proper(timeout=None), use)
    assert cancelled.outcome is Outcome.INTERRUPTED
    assert "effects may have landed" in cancelled.error
    assert (heard, late.outcome, after, starts) == ("yes", Outcome.TIMED_OUT, "4", 1)


@pytest.mark.process
def test_tools_own_time_limit_is_the_servers() -> None:
    """A server's calls have the limit that it was given."""
    done = outcome(rough(timeout=0.2), ("r__echo", {"seconds": 1000}))
    assert done.results[0].outcome is Outcome.TIMED_OUT


@pytest.mark.process
@pytest.mark.parametrize("half", [False, True], ids=["between messages", "in the middle of one"])
def test_crash_fails_all_that_runs_and_the_next_call_finds_a_new_server(half: bool) -> None:
    """Calls that wait for a server that dies end as ERROR, none of them twice; the next starts it anew."""

    async def use(tools: mcp.McpTools) -> Any:
        waiting: list[Any] = []

        async def wait() -> None:
            waiting.extend((await run(tools, ("r__echo", {"seconds": 1000}))).results)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            done = await run(
                tools, ("r__echo", {"text": "a"}), ("r__crash", {"half": half}), ("r__echo", {"text": "b"})
            )
        return waiting + list(done.results), tools.servers["r"]

    results, status = connected(rough(), use)
    lost = (Outcome.ERROR, "MCP server 'r': the connection was lost while the call ran; effects may have landed")
    assert [(result.outcome, result.error or result.content) for result in results] == [
        lost,
        (Outcome.OK, "a"),
        lost,
        (Outcome.OK, "b"),
    ]
    assert (status.starts, status.ended) == (2, None)


@pytest.mark.process
@pytest.mark.parametrize(
    ("trusted", "tool", "sent"),
    [(True, "r__crash_safely", 2), (True, "r__crash", 1), (False, "r__crash_safely", 1), (False, "r__crash", 1)],
)
def test_only_what_a_trusted_server_calls_idempotent_is_sent_twice(
    tmp_path: Path, trusted: bool, tool: str, sent: int
) -> None:
    """And never more than that."""
    file = tmp_path / "calls"
    done = outcome(rough(trusted=trusted), (tool, {"file": str(file)}))
    assert done.results[0].outcome is Outcome.ERROR
    assert len(file.read_text()) == sent


@pytest.mark.process
def test_idempotent_call_is_answered_by_the_new_server(tmp_path: Path) -> None:
    """The second time it is answered, and nobody is the wiser."""
    done = outcome(rough(trusted=True), ("r__crash_safely", {"file": str(tmp_path / "calls"), "until": 2}))
    assert (done.results[0].outcome, done.results[0].content) == (Outcome.OK, "call 2")


@pytest.mark.seldom
@pytest.mark.process
def test_server_that_crashes_in_a_row_is_given_up(tmp_path: Path) -> None:
    """So many restarts without an answered call, and no more; an answered call counts from the beginning."""

    async def use(tools: mcp.McpTools) -> list[str]:
        return [str((await run(tools, ("r__crash", {}))).results[0].error) for _ in range(4)]

    errors = connected(rough(restarts=2), use)
    assert all("connection was lost while the call ran" in error for error in errors[:3])
    assert (
        errors[3]
        == "MCP server 'r': it was lost 3 times in a row and is given up, the last time: it ended with exit status 3"
    )

    async def between(tools: mcp.McpTools) -> list[Outcome]:
        done = await run(tools, *[("r__crash", {}), ("r__echo", {})] * 4)
        return [result.outcome for result in done.results]

    assert connected(rough(restarts=1), between) == [Outcome.ERROR, Outcome.OK] * 4


NOISY = {
    "garbage": {"garbage": ["hello", "{", "[]", "{}", '{"jsonrpc": "1.0"}', "\x00\x7f", "null"]},
    "garbage all the time": {"noise": ["DEBUG: answering", '{"jsonrpc": "2.0", "id": 99, "result": {}}']},
    "a flood of errors": {"stderr": 200},
    "requests of its own": {"noise": ['{"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {}}']},
    "answers to nobody": {"noise": ['{"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "m"}}']},
    "cancels of nothing": {
        "noise": ['{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}']
    },
}


@pytest.mark.process
@pytest.mark.parametrize("configuration", NOISY.values(), ids=NOISY)
def test_noise_is_dropped_and_calls_are_answered(configuration: dict[str, Any]) -> None:
    """What is no answer to a call changes none."""
    done = outcome(rough(configuration), ("r__echo", {"text": "a"}), ("r__echo", {"text": "b"}))
    assert [result.content for result in done.results] == ["a", "b"]


@pytest.mark.process
def test_error_output_is_read_and_its_end_kept() -> None:
    """However much it is."""

    async def use(tools: mcp.McpTools) -> mcp.McpServerStatus:
        while tools.servers["r"].stderr_bytes < 100 * 65536:
            await trio.lowlevel.checkpoint()
        return tools.servers["r"]

    status = connected(rough({"stderr": 100}), use)
    assert (len(status.stderr), status.stderr_bytes) == (8192, 100 * 65536)


@pytest.mark.process
def test_server_that_does_not_read_holds_up_no_cancel() -> None:
    """What it is sent is queued: a cancelled call is left, however much is waiting to be read."""

    async def use(tools: mcp.McpTools) -> list[Outcome]:
        runtime = Runtime(Registry(tools), timeout=0.2)
        done = await runtime.run(calls_of(*[("r__echo", {"text": "x" * 1_000_000})] * 3))
        return [result.outcome for result in done.results]

    assert connected(rough({"deaf": True}, timeout=None), use) == [Outcome.TIMED_OUT] * 3


@pytest.mark.seldom
@pytest.mark.process
def test_server_that_never_reads_loses_its_connection() -> None:
    """Beyond 16 MiB; what waits is an ERROR."""

    async def use(tools: mcp.McpTools) -> tuple[Any, str | None]:
        done = await Runtime(Registry(tools)).run(calls_of(("r__echo", {"text": "x" * 17_000_000})))
        while tools.servers["r"].ended is None:
            await trio.lowlevel.checkpoint()
        return done.results[0].error, tools.servers["r"].ended

    error, ended = connected(rough({"deaf": True}), use)
    assert "the connection was lost while the call ran" in error
    assert ended == "it does not read what it is sent"


def test_nothing_that_is_sent_is_waited_for() -> None:
    """Neither a call nor the word of its cancel waits for a server that does not read."""
    from mcp.types import JSONRPCNotification

    from toolrt.plugins.mcp._stdio import _Lines, _Outgoing
    from toolrt.processes import ProgramNotes

    async def main() -> float:
        lines = _Lines(cast(Any, None), ProgramNotes())
        outgoing = _Outgoing(lines.conversation)
        message = item_of(JSONRPCNotification(jsonrpc="2.0", method="x" * 100_000))
        with trio.fail_after(1000):
            for _ in range(100):
                await outgoing.send(message)
        assert lines.conversation.problem is None
        lines.incoming.close()
        lines._said.close()
        return trio.current_time()

    assert trio.run(main, clock=trio.testing.MockClock(rate=0, autojump_threshold=0)) == 0.0

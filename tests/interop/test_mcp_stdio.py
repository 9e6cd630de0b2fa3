"""Tools of MCP servers that are programs, proper ones and others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from _mcp import calls_of, command_lines, connected, outcome, processes, proper, rough, run

from toolrt import Outcome, Progress, Registry, Runtime, partition
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.interop import mcp
from toolrt.processes import _supervised

pytestmark = [
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.skipif(os.name != "posix", reason="servers are started on POSIX systems"),
]


def _tool(name: str = "echo", schema: object = None, **annotations: bool) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema or {"type": "object"}, "annotations": annotations}


def _says(*messages: object) -> tuple[str, dict[str, Any]]:
    return "r__say", {"messages": list(messages)}


def _result(**fields: Any) -> dict[str, Any]:
    return {"id": "$id", "result": fields}


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


def test_tools_own_time_limit_is_the_servers() -> None:
    """A server's calls have the limit that it was given."""
    done = outcome(rough(timeout=0.2), ("r__echo", {"seconds": 1000}))
    assert done.results[0].outcome is Outcome.TIMED_OUT


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


def test_idempotent_call_is_answered_by_the_new_server(tmp_path: Path) -> None:
    """The second time it is answered, and nobody is the wiser."""
    done = outcome(rough(trusted=True), ("r__crash_safely", {"file": str(tmp_path / "calls"), "until": 2}))
    assert (done.results[0].outcome, done.results[0].content) == (Outcome.OK, "call 2")


def test_server_that_crashes_in_a_row_is_given_up(tmp_path: Path) -> None:
    """So many restarts without an answered call, and no more; an answered call counts from the beginning."""

    async def use(tools: mcp.McpTools) -> list[str]:
        return [str((await run(tools, ("r__crash", {}))).results[0].error) for _ in range(4)]

    errors = connected(rough(restarts=2), use)
    assert all("connection was lost while the call ran" in error for error in errors[:3])
    assert errors[3] == "MCP server 'r': it was lost 3 times in a row and is given up"

    async def between(tools: mcp.McpTools) -> list[Outcome]:
        done = await run(tools, *[("r__crash", {}), ("r__echo", {})] * 4)
        return [result.outcome for result in done.results]

    assert connected(rough(restarts=1), between) == [Outcome.ERROR, Outcome.OK] * 4


REFUSED = {
    "no program": (mcp.McpServer("r", ["no-such-program"]), "there is no program 'no-such-program'"),
    "no directory": (mcp.McpServer("r", [sys.executable], cwd="/no/such"), "no directory '/no/such'"),
    "ends at once": (rough({"exit": 7}), "it ended with exit status 7; the end of its error output: nothing to serve"),
    "never answers": (rough({"initialize": "mute"}, start_timeout=0.5), "it was not ready within 0.5 s"),
    "answers with an error": (
        rough({"initialize": {"error": {"code": -5, "message": "not today"}}}),
        "it answered initialize with an error: not today (code -5)",
    ),
    "answers nonsense": (rough({"initialize": {"result": {"hello": 1}}}), "its answer to initialize is not what"),
    "a protocol nobody knows": (
        rough(
            {
                "initialize": {
                    "result": {
                        "protocolVersion": "1999-01-01",
                        "capabilities": {},
                        "serverInfo": {"name": "r", "version": "1"},
                    }
                }
            }
        ),
        "its answer to initialize is not what",
    ),
    "garbage without end": (rough({"garbage": [["x", 60_000]] * 20}), "that are no messages to its standard output"),
    "a message without end": (
        rough({"initialize": ["x", 17_000_000]}),
        "it sent a message of more than 16,777,216 bytes",
    ),
    "pages without end": (rough({"pages": True, "tools": []}), "it lists its tools on more than 100 pages"),
    "tools without end": (rough({"many": 1001}), "it lists more than 1,000 tools"),
    "two of a name": (rough({"tools": [_tool("a"), _tool("a")]}), "it offers two tools named 'a'"),
    "no schema": (rough({"tools": [{"name": "a"}]}), "its answer to tools/list is not what"),
    "a schema that fetches": (
        rough({"tools": [_tool("a", {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/"}}})]}),
        "tool 'a' of MCP server 'r': its input schema is not used: expected references to itself (#...)",
    ),
    "a name too long": (rough({"tools": [_tool("a" * 64)]}), "expected a name of 1 to 64 letters, digits, _ and -"),
    "a server that is given up while it starts": (
        rough({"garbage": ["x"], "exit": 0}),
        "it ended with exit status 0; 1 lines of its standard output were no messages",
    ),
}


@pytest.mark.parametrize(("server", "said"), REFUSED.values(), ids=REFUSED)
def test_server_that_cannot_be_used_is_refused_with_the_reason(server: mcp.McpServer, said: str) -> None:
    """Nothing is called, everything is ended, and the text says what is wrong and what to do."""
    with pytest.raises(InputRefused) as refused:
        outcome(server)
    assert said in str(refused.value)
    assert "MCP server 'r'" in str(refused.value)


def test_all_servers_are_ended_when_one_cannot_be_used() -> None:
    """The good one too; the fixture counts."""

    async def main() -> None:
        async with mcp.connect([rough(name="a"), rough({"exit": 1}, name="b"), rough({"exit": 2}, name="c")]):
            raise AssertionError

    with pytest.raises(InputRefused, match="MCP server 'b': it ended with exit status 1"):
        trio.run(main)


_ONLY_LATER = {"error": {"code": -32022, "message": "too old", "data": {"supported": ["2026-07-28"]}}}


def test_server_that_knows_only_later_revisions_is_asked_as_they_ask() -> None:
    """Today's handshake first, and the later one where the server says so."""
    later = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **later}
    server = rough({"initialize": _ONLY_LATER, "discover": {"result": discovered}, "later": later})
    assert outcome(server, ("r__echo", {"text": "a"})).results[0].content == "a"
    with pytest.raises(InputRefused, match="its answer to server/discover is not what the protocol says"):
        outcome(rough({"initialize": _ONLY_LATER, "discover": {"result": {}}}))


def test_program_that_cannot_be_started_is_refused() -> None:
    """By the system itself; the fixture counts what was opened for it."""
    with pytest.raises(InputRefused, match=r"it cannot be started: .*Argument list too long"):
        outcome(mcp.McpServer("r", [sys.executable, "x" * 5_000_000]))


def test_input_is_held_against_the_servers_schema_as_deep_as_it_allows() -> None:
    """Deeper is INVALID before anything is checked or sent."""
    into = [{"properties": {"x": {"$ref": "#"}}} for _ in range(3)]
    tool = _tool("echo", {"type": "object", "anyOf": into}, readOnlyHint=True)
    deep: dict[str, Any] = {}
    for _ in range(8):
        deep = {"x": deep}
    done = outcome(rough({"tools": [tool]}), ("r__echo", deep), ("r__echo", {"x": {}, "text": "a"}))
    assert done.results[0].outcome is Outcome.INVALID
    assert "input: expected at most 6 levels of nesting, got more" in str(done.results[0].error)
    assert done.results[1].content == "a"


def test_long_description_is_cut() -> None:
    """What models are told of a tool is bounded."""

    async def use(tools: mcp.McpTools) -> list[int]:
        return [len(tool.description) for tool in tools]

    assert connected(rough({"tools": [{**_tool(), "description": "x" * 20_000}]}), use) == [10_004]


def test_tools_that_changed_and_are_not_told_are_not_called() -> None:
    """Whether they are still what they were is not known."""
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    async def use(tools: mcp.McpTools) -> tuple[Any, Any]:
        await run(tools, _says(changed, _result(content=[])))
        done = await run(tools, ("r__echo", {}))
        return done.results[0].error, tools.changed

    error, heard = connected(rough({"once": True}), use)
    expected = "its tools have changed, and it does not say how: it answered tools/list with an error: no tools"
    assert error == f"MCP server 'r': {expected} (code -32601)"
    assert heard == ("r",)


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


@pytest.mark.parametrize("configuration", NOISY.values(), ids=NOISY)
def test_noise_is_dropped_and_calls_are_answered(configuration: dict[str, Any]) -> None:
    """What is no answer to a call changes none."""
    done = outcome(rough(configuration), ("r__echo", {"text": "a"}), ("r__echo", {"text": "b"}))
    assert [result.content for result in done.results] == ["a", "b"]


def test_error_output_is_read_and_its_end_kept() -> None:
    """However much it is."""

    async def use(tools: mcp.McpTools) -> mcp.ServerStatus:
        while tools.servers["r"].stderr_bytes < 100 * 65536:
            await trio.lowlevel.checkpoint()
        return tools.servers["r"]

    status = connected(rough({"stderr": 100}), use)
    assert (len(status.stderr), status.stderr_bytes) == (8192, 100 * 65536)


WRONG_ANSWERS = {
    "an error": (
        [{"id": "$id", "error": {"code": -32602, "message": "bad"}}],
        "the call with an error: bad (code -32602)",
    ),
    "nonsense": ([_result(content=17)], "its answer to the call is not what the protocol says"),
    "a failure": ([_result(content=[{"type": "text", "text": "no"}], isError=True)], "no"),
    "a failure without words": ([_result(content=[], isError=True)], "the tool failed and says no more"),
}


@pytest.mark.parametrize(("messages", "said"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_answer_that_is_none_is_an_error_of_its_call(messages: list[Any], said: str) -> None:
    """The session goes on."""
    done = outcome(rough(), _says(*messages), ("r__echo", {"text": "b"}))
    assert done.results[0].outcome is Outcome.ERROR
    assert said in str(done.results[0].error)
    assert done.results[1].content == "b"


CONTENT = {
    "texts": ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
    "a picture": ([{"type": "image", "mimeType": "image/png", "data": "AAAA"}], "[image/png, 3 bytes]"),
    "sound": ([{"type": "audio", "mimeType": "audio/wav", "data": "AA=="}], "[audio/wav, 1 byte]"),
    "a link": (
        [{"type": "resource_link", "name": "n", "uri": "file:///x", "size": 1234}],
        "[n: file:///x (1,234 bytes)]",
    ),
    "a file": ([{"type": "resource", "resource": {"uri": "file:///x", "text": "t"}}], "[file:///x]\nt"),
    "bytes": ([{"type": "resource", "resource": {"uri": "file:///x", "blob": "AAA="}}], "[file:///x: 2 bytes]"),
    "nothing": ([], ""),
}


@pytest.mark.parametrize(("blocks", "told"), CONTENT.values(), ids=CONTENT)
def test_content_is_told_in_words(blocks: list[Any], told: str) -> None:
    """Text as it is, everything else by kind and size."""
    assert outcome(rough(), _says(_result(content=blocks))).results[0].content == told


def test_structured_content_is_told_where_there_is_no_text() -> None:
    """As JSON, and once."""
    blocks = [{"type": "text", "text": "one"}]
    done = outcome(
        rough(),
        _says(_result(content=[], structuredContent={"a": [1]})),
        _says(_result(content=blocks, structuredContent={"a": [1]})),
    )
    assert [result.content for result in done.results] == ['{"a":[1]}', "one"]


def test_structured_content_is_held_against_the_servers_own_schema() -> None:
    """What it said its answers are."""
    tool = {**_tool("say"), "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    done = outcome(
        rough({"tools": [tool]}),
        _says(_result(content=[], structuredContent={"n": 1})),
        _says(_result(content=[], structuredContent={"n": "1"})),
    )
    assert done.results[0].content == '{"n":1}'
    assert "answer.n: expected integer, got string '1'" in str(done.results[1].error)


def test_long_answer_loses_its_middle() -> None:
    """Half of the limit from each end."""
    done = outcome(rough(output_limit=10), ("r__echo", {"text": "abcdefghijklmnop"}))
    assert done.results[0].content == "abcde\n[... 6 characters left out ...]\nlmnop"


def test_progress_that_is_none_is_not_passed_on() -> None:
    """Numbers and texts only, of the call that runs only, in their order."""

    async def use(tools: mcp.McpTools) -> list[Any]:
        def told(token: object, **fields: Any) -> dict[str, Any]:
            return {"method": "notifications/progress", "params": {"progressToken": token, **fields}}

        said = _says(
            *(told("$token", progress=number) for number in range(20)),
            told("somebody", progress=1),
            told(["$token"], progress=1),
            told("$token", progress="many", total=True, message=7),
            told("$token", progress=1.5, total=3, message="m"),
            {"method": "notifications/progress"},
            _result(content=[]),
            told("$token", progress=99),
        )
        seen = []
        async with Runtime(Registry(tools)).open_batch() as batch:
            for call in calls_of(said, ("r__echo", {})):
                batch.submit(call)
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    seen.append(update.message)
        return seen

    seen = connected(rough(), use)
    assert seen == [{"progress": number} for number in range(20)] + [{}, {"progress": 1.5, "total": 3, "message": "m"}]


def test_progress_behind_the_answer_is_not_taken() -> None:
    """Though the call itself has not heard of its answer yet: when it does is Trio's choice."""
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

    from toolrt.interop.mcp._sdk import _SdkSession

    session, seen = _SdkSession(), []
    session._running = {"mine": seen.append, "other": seen.append}
    for number, token in enumerate(("mine", "other"), 1):
        params = {"_meta": {"progressToken": token}}
        request = JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call", params=params)
        session.sends(SessionMessage(request))

    def say(token: str, progress: int) -> None:
        params = {"progressToken": token, "progress": progress}
        said = JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params=params)
        assert session.takes(SessionMessage(said))

    say("mine", 1)
    assert not session.takes(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={})))
    say("mine", 2)
    say("other", 3)
    assert seen == [{"progress": 1}, {"progress": 3}]


def test_server_that_does_not_read_holds_up_no_cancel() -> None:
    """What it is sent is queued: a cancelled call is left, however much is waiting to be read."""

    async def use(tools: mcp.McpTools) -> list[Outcome]:
        runtime = Runtime(Registry(tools), timeout=0.2)
        done = await runtime.run(calls_of(*[("r__echo", {"text": "x" * 1_000_000})] * 3))
        return [result.outcome for result in done.results]

    assert connected(rough({"deaf": True}, timeout=None), use) == [Outcome.TIMED_OUT] * 3


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


def test_server_that_closes_its_output_and_stays_is_ended() -> None:
    """It says nothing more, so it is of no use."""
    done = outcome(rough({"close_output": True}), ("r__echo", {}))
    assert done.results[0].outcome is Outcome.ERROR


LEFT = {
    "a child": ["sleep 1000 &"],
    "a session of its own": ["setsid sleep 1000 &"],
    "a daemon": ["(setsid sh -c '(setsid sleep 1000 &)' &)"],
    "one that ignores TERM": ["setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' &"],
}


@pytest.mark.parametrize("children", LEFT.values(), ids=LEFT)
def test_nothing_that_a_server_started_is_left(children: list[str]) -> None:
    """Whatever that does to stay; the fixture counts."""
    done = outcome(rough({"children": children}), ("r__echo", {"text": "a"}))
    assert done.results[0].content == "a"


def test_server_that_ignores_the_end_of_its_input_and_term_is_killed() -> None:
    """And what it started, too; the fixture counts."""
    done = outcome(rough({"children": LEFT["one that ignores TERM"], "stubborn": True}), ("r__echo", {"text": "a"}))
    assert done.results[0].content == "a"


def test_batch_does_not_wait_for_a_server_that_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that died and left what does not end is cleared away behind the batch's back."""
    monkeypatch.setattr(_supervised, "GRACE", 2.0)
    ready = tmp_path / "ready"

    async def use(tools: mcp.McpTools) -> tuple[Any, list[str]]:
        while not ready.exists():  # before that TERM would end the child at once
            await trio.lowlevel.checkpoint()
        done = await run(tools, ("r__crash", {}))
        # It holds the server's output, and takes two seconds to kill: that is not over when the batch is.
        return done.results[0].outcome, [line for line in command_lines() if line.startswith("sh -c trap")]

    deaf = f"setsid sh -c 'trap \"\" TERM; : > {ready}; while :; do sleep 1000; done' &"
    outcome, left = connected(rough({"children": [deaf]}), use)
    assert outcome is Outcome.ERROR
    assert left


def test_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """When the program is killed, its servers and what they started are not left to themselves."""
    program = (
        "import sys, trio; from toolrt.interop import mcp\n"
        "async def main():\n"
        "    env = {'TOOLRT_TEST_OWNER': sys.argv[1]}\n"
        "    async with mcp.connect([mcp.McpServer('r', sys.argv[2:], env=env)]):\n"
        "        print('ready', flush=True)\n"
        "        await trio.sleep_forever()\n"
        "trio.run(main)\n"
    )
    before = processes()
    server = rough({"children": ["setsid sleep 1000 &"], "stubborn": True}).command
    command = [sys.executable, "-c", program, str(os.getpid()), *(server or ())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert len(processes() - before - {process.pid}) >= 3
        process.kill()
    while processes() - before:
        os.sched_yield()


def test_new_server_is_started_when_nothing_of_the_old_one_is_left() -> None:
    """Two of them never run side by side."""

    async def use(tools: mcp.McpTools) -> tuple[set[int], Any, set[int]]:
        before = processes()
        done = await run(tools, ("r__crash", {}), ("r__echo", {"text": "a"}))
        return before, done.results[1].content, processes()

    deaf = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' &"
    before, content, after = connected(rough({"children": [deaf]}), use)
    assert content == "a"
    assert len(before & after) == 0
    assert len(before) >= 3


def test_nothing_that_is_sent_is_waited_for() -> None:
    """Neither a call nor the word of its cancel waits for a server that does not read."""
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCNotification

    from toolrt.interop.mcp._port import Notes
    from toolrt.interop.mcp._stdio import _Lines, _Outgoing

    async def main() -> float:
        lines = _Lines(cast(Any, None), Notes())
        outgoing = _Outgoing(lines.conversation)
        message = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="x" * 100_000))
        with trio.fail_after(1000):
            for _ in range(100):
                await outgoing.send(message)
        assert lines.conversation.problem is None
        lines.incoming.close()
        lines._said.close()
        return trio.current_time()

    assert trio.run(main, clock=trio.testing.MockClock(rate=0, autojump_threshold=0)) == 0.0


def test_cancel_from_outside_leaves_nothing() -> None:
    """Cancelled while it connects, and while a call runs: both are left, with nothing running."""

    async def main() -> None:
        for seconds in (0.0, 0.02, 0.1):
            with trio.move_on_after(seconds):
                async with mcp.connect([rough({"initialize": "mute"}), rough(name="s")]):
                    raise AssertionError
        with trio.move_on_after(0.5) as scope:
            async with mcp.connect([rough({"stubborn": True})]) as tools:
                await run(tools, ("r__echo", {"seconds": 1000}))
        assert scope.cancelled_caught

    trio.run(main)


def test_what_the_block_raises_is_raised_as_it_is() -> None:
    """In no group."""

    async def main() -> None:
        async with mcp.connect([rough()]):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trio.run(main)


def test_what_the_block_raises_is_raised_also_when_it_is_cancelled() -> None:
    """A cancel at the same time does not swallow it."""

    async def main() -> None:
        with trio.CancelScope() as scope:
            async with mcp.connect([rough()]):
                scope.cancel()
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trio.run(main)


def test_changed_tools_are_heard_and_asked_for_anew() -> None:
    """The tools stay what they were until somebody asks; one that is another now is not called as the old one."""
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    first = [_tool("say"), _tool("echo", readOnlyHint=True), _tool("old")]
    second = [_tool("say"), _tool("echo"), _tool("new")]

    async def use(tools: mcp.McpTools) -> Any:
        before = [tool.name for tool in tools]
        await run(tools, _says(changed, _result(content=[])))
        heard = tools.changed
        done = await run(tools, ("r__echo", {}), ("r__old", {}))
        new = await tools.relist()
        names = [tool.name for tool in new]
        return before, heard, done.results, names, await run(new, ("r__echo", {"text": "a"})), tools.changed

    before, heard, results, names, done, after = connected(rough({"lists": [first, second]}, trusted=True), use)
    assert before == ["r__say", "r__echo", "r__old"]
    assert heard == ("r",)
    assert [result.error for result in results] == [
        "MCP server 'r': it offers another tool by the name 'echo' than when it was connected",
        "MCP server 'r': it does not offer 'old' any more",
    ]
    assert names == ["r__say", "r__echo", "r__new"]
    assert done.results[0].content == "a"
    assert after == ()


def test_restarted_server_that_is_another_is_not_believed(tmp_path: Path) -> None:
    """A tool that was read-only and is not after a restart is not called."""
    ask = rough({"lists": [[_tool("crash"), _tool("echo", readOnlyHint=True)], [_tool("echo")]]}, trusted=True)

    async def use(tools: mcp.McpTools) -> Any:
        return (await run(tools, ("r__crash", {}), ("r__echo", {"text": "a"}))).results

    # Each process counts for itself: the new one lists the first again, and is the same.
    assert [result.outcome for result in connected(ask, use)] == [Outcome.ERROR, Outcome.OK]


def test_hints_count_of_trusted_servers_only() -> None:
    """A read-only tool shares a lane where its server is trusted, and runs alone where it is not."""
    tools = [_tool("reads", readOnlyHint=True), _tool("sets", idempotentHint=True, destructiveHint=False), _tool("no")]

    async def lanes(found: mcp.McpTools) -> Any:
        calls = calls_of(*[("r__reads", {})] * 2, ("r__sets", {}), ("r__no", {}))
        plan = [[call.name for call in lane.calls] for lane in partition(calls, Registry(found))]
        return plan, [found.hints(tool.name) for tool in found]

    plan, hints = connected(rough({"tools": tools}, trusted=True), lanes)
    assert plan == [["r__reads", "r__reads"], ["r__sets"], ["r__no"]]
    assert hints == [mcp.Hints(read_only=True), mcp.Hints(idempotent=True, destructive=False), mcp.Hints()]
    plan, hints = connected(rough({"tools": tools}), lanes)
    assert plan == [["r__reads"], ["r__reads"], ["r__sets"], ["r__no"]]
    assert hints == [mcp.Hints()] * 3


def test_names_are_prefixed_and_clashes_refused() -> None:
    """Two servers with one tool are told apart; what would share a name is refused, and can be renamed."""
    tools = {"tools": [_tool("a.b"), _tool("c")]}

    async def names(*servers: mcp.McpServer) -> list[str]:
        async with mcp.connect(servers) as found:
            return [tool.name for tool in found]

    assert trio.run(names, rough(tools, "p"), rough(tools, "q")) == ["p__a_b", "p__c", "q__a_b", "q__c"]
    assert trio.run(names, rough(tools, "p", prefix=""), rough(tools, "q", only=["c"])) == ["a_b", "c", "q__c"]
    renamed = rough(tools, "p", prefix="", rename={"c": "d"})
    assert trio.run(names, renamed, rough(tools, "q", prefix="", only=["c"])) == ["a_b", "d", "c"]
    with pytest.raises(InputRefused, match=re.escape("its name 'a_b' is that of tool 'a.b' of MCP server 'p'")):
        trio.run(names, rough(tools, "p", prefix=""), rough(tools, "q", prefix=""))
    with pytest.raises(InputRefused, match=re.escape("its name 'p__a_b' is that of tool 'a.b'")):
        trio.run(names, rough({"tools": [_tool("a.b"), _tool("a b")]}, "p"))
    with pytest.raises(InputRefused, match=re.escape("only has 'd', and it offers 'a.b', 'c'")):
        trio.run(names, rough(tools, "p", only=["d"]))
    with pytest.raises(DefinitionRefused, match="two servers named 'p'"):
        mcp.connect([rough(tools, "p"), rough(tools, "p")])

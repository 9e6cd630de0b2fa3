"""`mcp.serve`: the laws for any MCP host."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from tests.plugins.mcp._host import (
    HELLO,
    Host,
    call,
    cancelled,
    edits,
    files,
    lines,
    notification,
    request,
    served,
    text,
)
from toolrt import (
    DirectoryChanged,
    File,
    Image,
    Json,
    OutputChunk,
    Permissions,
    Permit,
    Registry,
    Rule,
    Runtime,
    ToolOutput,
    Workspace,
    invariants,
    sim,
    tool,
)
from toolrt.plugins import mcp
from toolrt.plugins.mcp import _serve
from toolrt.services import shell_tool


def recorded() -> tuple[list[Any], list[str]]:
    """Tools that say when they begin and end: `nap` overlaps all, `alone` overlaps nothing."""
    said: list[str] = []

    async def sleep(ctx: Any, name: str, seconds: float) -> str:
        said.append(f"{name} begins")
        for step in range(2):
            ctx.progress(f"{name} step {step}")
            await trio.sleep(seconds / 2)
        said.append(f"{name} ends")
        return name

    @tool(safe=True)
    async def nap(ctx: Any, name: str, seconds: float = 1.0) -> str:
        try:
            return await sleep(ctx, name, seconds)
        except trio.Cancelled:
            said.append(f"{name} interrupted")
            raise

    @tool
    async def alone(ctx: Any, name: str, seconds: float = 1.0) -> str:
        return await sleep(ctx, name, seconds)

    @tool(safe=True, interrupt="finish")
    async def whole(ctx: Any, name: str, seconds: float = 1.0) -> str:
        return await sleep(ctx, name, seconds)

    @tool(safe=True)
    def threaded(ctx: Any, name: str) -> str:
        said.append(name)
        return name

    @tool(safe=True)
    async def fail(ctx: Any) -> ToolOutput:
        return ToolOutput({"half": 1}, error="it broke")

    return [nap, alone, whole, threaded, fail], said


def test_edits_land_in_the_order_of_their_messages_under_every_schedule() -> None:
    """Ten edits of one file, and each needs the one before; others overlap them."""

    async def program() -> str:
        workspace = files(a="<0>", b="<0>")
        async with served(workspace.tools()) as host:
            others = [call(100 + n, "read_file", path="b.txt") for n in range(3)]
            sent = [one for pair in zip(edits("a.txt", 3), others, strict=True) for one in pair]
            await host.send(*sent)
            await host.send(*edits("a.txt", 10)[3:], call("end", "read_file", path="a.txt"))
            answers = {one["id"]: one["result"]["isError"] for one in await host.take(14)}
            assert not any(answers.values()), answers
        return workspace.disk.peek(("a.txt",)).decode()

    report = sim.explore(
        program, sim.Random(sim.RandomWalk(seed=3), 10), lambda execution: invariants.check(execution.trace) or None
    )
    assert report.outcomes == {"<10>": 10}


def test_every_law_holds_where_progress_is_told_and_calls_are_cancelled() -> None:
    """Under every schedule, also across an exclusive call."""

    async def program() -> str:
        tools, said = recorded()
        async with served(tools) as host:
            token = {"progressToken": 1}
            await host.send(*(call(n, "nap", _meta=token, name=f"{n}") for n in range(3)), call(3, "alone", name="x"))
            await host.send(
                cancelled(1), call(4, "nap", _meta=token, name="4"), call(5, "alone", name="5"), cancelled(5)
            )
            await host.send(request("last", "ping"))
            answers: list[str] = []
            while len(answers) < 5:
                answers += [str(one["id"]) for one in await host.take(1) if "id" in one]
        return " ".join(sorted(answers)) + (" and 5" if "5 begins" in said else "")

    report = sim.explore(
        program, sim.Random(sim.RandomWalk(seed=4), 10), lambda execution: invariants.check(execution.trace) or None
    )
    assert not report.failures, report.failures[0].violations
    assert report.outcomes == {"0 2 3 4 last": 10}


async def test_answers_do_not_wait_for_earlier_calls(autojump_clock: Any) -> None:
    """Independent calls overlap, and each is answered as it ends."""
    tools, said = recorded()
    async with served(tools) as host:
        await host.send(*(call(n, "nap", name=str(n), seconds=10 - n) for n in range(3)))
        assert [one["id"] for one in await host.take(3)] == [2, 1, 0]
        assert sorted(said[:3]) == ["0 begins", "1 begins", "2 begins"]
        assert trio.current_time() < 11


async def test_an_exclusive_call_overlaps_nothing(autojump_clock: Any) -> None:
    """It waits for the calls before it, and those behind wait for it."""
    tools, said = recorded()
    async with served(tools) as host:
        await host.send(call(1, "nap", name="a"), call(2, "alone", name="b"), call(3, "nap", name="c"))
        assert [one["id"] for one in await host.take(3)] == [1, 2, 3]
    assert said == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


async def test_an_exclusive_call_waits_for_calls_of_its_own_connection_alone(autojump_clock: Any) -> None:
    """Connections that share tools are owners: one conversation does not hold up another."""
    tools, said = recorded()
    runtime = Runtime(Registry(tools))
    async with served(runtime) as one, served(runtime) as other:
        await one.send(call(1, "alone", name="a"))
        await other.send(call(1, "alone", name="b"))
        await one.take(1)
        await other.take(1)
    assert sorted(said[:2]) == ["a begins", "b begins"]


async def test_a_cancel_interrupts_the_one_call_and_is_not_answered(autojump_clock: Any) -> None:
    """A call that runs is interrupted at once, one that waits never starts, and the others go on."""
    tools, said = recorded()
    async with served(tools) as host:
        await host.send(
            call(1, "nap", name="a", seconds=1000), call(2, "nap", name="b", seconds=4), call(3, "alone", name="c")
        )
        await trio.sleep(1)
        await host.send(
            cancelled(1), cancelled(3), cancelled(3), cancelled("1"), cancelled(99), call(4, "nap", name="d")
        )
        assert [one["id"] for one in await host.take(2)] == [2, 4]
        await host.send(cancelled(2), request(5, "ping"))
        assert (await host.next())["id"] == 5
        assert trio.current_time() < 10
    assert sorted(said[:2]) == ["a begins", "b begins"]
    assert said[2:] == ["a interrupted", "b ends", "d begins", "d ends"]


async def test_a_cancelled_call_that_may_finish_finishes(autojump_clock: Any) -> None:
    """And is not answered."""
    tools, said = recorded()
    async with served(tools) as host:
        await host.send(call(1, "whole", name="a"), call(2, "alone", name="b"))
        await trio.sleep(0.1)
        await host.send(cancelled(1), request(4, "ping"))
        assert [one["id"] for one in await host.take(2)] == [4, 2]
    assert said == ["a begins", "a ends", "b begins", "b ends"]


async def test_a_cancelled_call_of_a_thread_that_waits_never_starts() -> None:
    """As one of an async function."""
    tools, said = recorded()
    async with served(tools) as host:
        await host.send(call(1, "alone", name="a", seconds=0), call(2, "threaded", name="b"), cancelled(2))
        await host.send(call(3, "threaded", name="c"))
        assert [one["id"] for one in await host.take(2)] == [1, 3]
    assert said == ["a begins", "a ends", "c"]


async def test_progress_goes_under_its_token_in_order_and_before_the_answer(autojump_clock: Any) -> None:
    """And only where the host asks for it."""
    tools, _ = recorded()
    async with served(tools) as host:
        await host.send(call(1, "nap", _meta={"progressToken": "t"}, name="a"), call(2, "nap", name="b"))
        told = [one["params"] for one in await host.take(4) if "method" in one]
    assert told == [{"progressToken": "t", "progress": n + 1, "message": f"a step {n}"} for n in range(2)]


SAID: list[tuple[Any, dict[str, Any]]] = [
    ("text", {"message": "text"}),
    ({"message": "half", "progress": 5, "total": 10}, {"message": "half", "progress": 5, "total": 10}),
    ({"done": 5, "of": 10}, {"progress": 5, "total": 10}),
    ({"done": 0.5, "total": 1, "file": "é"}, {"message": '{"file": "é"}', "progress": 0.5, "total": 1}),
    ({"progress": 7, "total": None}, {"progress": 7}),
    ({"offset": 0, "output": "it's\n"}, {"message": "it's\n"}),
    ({"path": "a.py", "message": {"offset": 9, "output": "ok"}}, {"message": "a.py: ok"}),
    ({"path": "a.py", "message": {"done": 1, "of": 2}}, {"message": "a.py: 1 of 2"}),
    ({"files": ["a", None], "ok": True}, {"message": '{"files": ["a", null], "ok": true}'}),
    ({"progress": True, "total": float("inf")}, {"message": '{"progress": true, "total": "inf"}'}),
    ([1, (2,)], {"message": "[1, [2]]"}),
    (0.5, {"message": "0.5"}),
    (None, {"message": "null"}),
    (Path("a/b"), {"message": "a/b"}),
    ({}, {"message": "{}"}),
    ("x" * 2001, {"message": "x" * 2000 + " ..."}),
    (10**5000, {"message": "<int of about 5,000 digits>"}),
    (OutputChunk(0, "written"), {"message": "written"}),
    (DirectoryChanged("src"), {"message": '{"event": "DirectoryChanged", "path": "src"}'}),
]


async def told_of(*values: Any) -> list[dict[str, Any]]:
    """What a host hears of a tool that says this."""

    @tool(safe=True)
    async def says(ctx: Any) -> None:
        for value in values:
            ctx.progress(value)

    async with served([says]) as host:
        await host.send(call(1, "says", _meta={"progressToken": "t"}))
        told = [one["params"] for one in await host.take(len(values))]
        await host.next()
    assert {one.pop("progressToken") for one in told} == {"t"}
    return told


@pytest.mark.parametrize(("value", "told"), SAID, ids=[str(number) for number in range(len(SAID))])
async def test_progress_is_text_and_numbers_whatever_the_value(value: Any, told: dict[str, Any]) -> None:
    """Text as it is, numbers where it has them, and JSON for what is neither."""
    assert await told_of(value) == [{"progress": 1, **told}]


async def test_the_number_of_progress_grows_with_each_message() -> None:
    """As the protocol asks, whatever numbers the tool states: where it states none that is greater, by the least."""
    halves = [{"progress": one, "total": 1} for one in (0.25, 0.5, 0.5, 0.1, 0.75)]
    told = await told_of(*halves[:3], "a word", *halves[3:])
    numbers = [one["progress"] for one in told]
    assert numbers == sorted(set(numbers))
    assert [round(number, 9) for number in numbers] == [0.25, 0.5, 0.5, 0.5, 0.5, 0.75]
    assert {one["total"] for one in told} == {1}
    assert [one["progress"] for one in await told_of("a", "b", {"progress": 2}, {"progress": 3})][:2] == [1, 2]


async def test_failures_are_results_and_mistakes_are_errors(autojump_clock: Any) -> None:
    """What the model can learn from is a result with isError; what only the host can is a JSON-RPC error."""
    tools, _ = recorded()
    async with served(Runtime(Registry(tools), timeout=2.0)) as host:
        for message, expected in (
            (call(1, "fail"), '[error] it broke\n{"half":1}'),
            (
                call(2, "nap", name=3),
                "[invalid] invalid call of tool 'nap': input.name: expected string, got integer 3",
            ),
            (call(3, "nap", name="a", seconds=9), "[timed_out] timed out after 2 s of its own execution"),
        ):
            await host.send(message)
            answer = await host.next()
            assert answer["result"]["isError"]
            assert text(answer).startswith(expected)
        await host.send(call(4, "gone"))
        assert (await host.next())["error"] == {"code": -32602, "message": "there is no tool 'gone'"}


BAD: list[tuple[Any, Any, int]] = [
    (b"{", None, -32700),
    (b"\xff\xfe", None, -32700),
    (b"[" * 5000, None, -32700),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', None, -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', None, -32700),
    (b'"text"', None, -32600),
    ([request(1, "ping")], None, -32600),
    ({"id": 1, "method": "ping"}, None, -32600),
    ({"jsonrpc": "2.0", "id": 7}, 7, -32600),
    ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None, -32600),
    ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None, -32600),
    ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, 1, -32602),
    (request(1, "resources/list"), 1, -32601),
    (request(1, "server/discover"), 1, -32601),
    (request(1, "initialize", protocolVersion="2025-11-25"), 1, -32600),
    (request(1, "tools/list", cursor="x"), 1, -32602),
    (request(1, "tools/call", name=["x"]), 1, -32602),
    (request(1, "tools/call", name="nap", arguments="x"), 1, -32602),
]


async def test_the_server_lives_on_whatever_it_is_sent() -> None:
    """Each bad message has its JSON-RPC error, and what wants no answer gets none."""
    tools, _ = recorded()
    async with served(tools) as host:
        for message, id, code in BAD:
            await host.send(message)
            answer = await host.next()
            assert (answer["id"], answer["error"]["code"]) == (id, code), message
            assert len(answer["error"]["message"]) < 600
        await host.send(
            b"",
            b"  \r",
            notification("notifications/unheard-of"),
            notification("notifications/cancelled"),
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]},
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            request(2, "ping"),
        )
        assert await host.next() == {"jsonrpc": "2.0", "id": 2, "result": {}}


async def test_an_id_goes_back_as_it_came() -> None:
    """Also one that UTF-8 cannot hold, in whichever kind of answer."""
    tools, _ = recorded()
    async with served(tools) as host:
        for id in ("\ud800", "", "ü", -1, 2**60):
            await host.send(json.dumps(request(id, "ping")).encode(), json.dumps(request(id, "x\udc00")).encode())
            assert [one["id"] for one in await host.take(2)] == [id, id]


async def test_nothing_is_offered_before_initialize() -> None:
    """A ping is answered, and an unknown revision is offered the latest that is known."""
    tools, _ = recorded()
    async with served(tools, initialized=False, instructions="Be quick.") as host:
        await host.send(
            request(1, "tools/list"),
            call(2, "threaded", name="x"),
            request(3, "ping"),
            request(4, "initialize"),
            request(5, "initialize", protocolVersion="1999-01-01"),
        )
        answers = await host.take(5)
    assert [one.get("error", {}).get("code") for one in answers] == [-32600, -32600, None, -32602, None]
    assert answers[4]["result"]["protocolVersion"] == "2025-11-25"
    assert answers[4]["result"]["instructions"] == "Be quick."


async def test_an_id_in_use_is_refused_and_the_first_call_goes_on(autojump_clock: Any) -> None:
    """1 and "1" are two ids."""
    tools, said = recorded()
    async with served(tools) as host:
        await host.send(call(1, "nap", name="a"), call(1, "nap", name="b"), call("1", "nap", name="c"))
        first, *others = await host.take(3)
    assert (first["id"], first["error"]["code"]) == (1, -32600)
    assert {one["id"]: text(one) for one in others} == {1: "a", "1": "c"}
    assert "b begins" not in said


async def test_a_message_that_is_too_long_is_refused_and_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """However it comes in pieces; the next one is read."""
    monkeypatch.setattr(_serve, "MESSAGE_MOST", 1000)
    tools, _ = recorded()
    async with served(tools) as host:
        for _piece in range(30):
            await host.stream.send_all(b"x" * 100)
            await trio.testing.wait_all_tasks_blocked()
        await host.send(b"", request(1, "ping"))
        refused, answer = await host.take(2)
    assert (refused["id"], refused["error"]["code"], answer["id"]) == (None, -32600, 1)


async def test_messages_may_come_in_any_pieces() -> None:
    """A byte at a time, and the last without a newline."""
    tools, _ = recorded()
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mcp.serve, Runtime(Registry(tools)), theirs, theirs)
        for byte in lines([HELLO, call("é", "threaded", name="ü")])[:-1]:
            await ours.send_all(bytes([byte]))
        await ours.send_eof()
        host = Host(ours)
        assert (await host.next())["id"] == "hello"
        assert text(await host.next()) == "ü"


async def test_calls_that_came_before_the_end_of_input_still_end(autojump_clock: Any) -> None:
    """Within the time for it; then they are interrupted, those that wait are not run, and all are answered."""
    tools, said = recorded()
    async with served(tools, linger=5.0) as host:
        sent = call(1, "nap", name="a", seconds=3), call(2, "nap", name="b", seconds=50), call(3, "alone", name="c")
        await host.send(*sent)
        await host.stream.send_eof()
        answers = await host.texts(3)
    assert answers[1] == "a"
    assert answers[2].startswith("[interrupted]")
    assert answers[3].startswith("[not_started]")
    assert "c begins" not in said
    assert trio.current_time() < 10


async def test_the_end_of_input_interrupts_what_came_earlier_at_once(autojump_clock: Any) -> None:
    """No call is waited for that the host has left alone."""
    tools, said = recorded()
    async with served(tools) as host:
        await host.send(call(1, "nap", name="a", seconds=1.5), call(2, "alone", name="b"))
        await trio.sleep(1)
        began = trio.current_time()
        await host.stream.send_eof()
        answers = await host.texts(2)
    assert [answers[1].split()[0], answers[2].split()[0]] == ["[interrupted]", "[not_started]"]
    assert said == ["a begins", "a interrupted"]
    assert trio.current_time() == began


async def test_calls_that_came_with_the_end_of_input_may_end_one_after_the_other(autojump_clock: Any) -> None:
    """As many as there are, if one does in every second, and for half a minute at most."""
    tools, _ = recorded()
    async with served(tools) as host:
        await host.send(*(call(n, "alone", name=str(n), seconds=0.7) for n in range(50)))
        await host.stream.send_eof()
        answers = await host.texts(50)
    ends = [*map(str, range(42)), "[interrupted]", *["[not_started]"] * 7]
    assert [answers[n].split()[0] for n in range(50)] == ends


async def test_calls_that_go_on_though_they_are_interrupted_are_reported_as_stuck(autojump_clock: Any) -> None:
    """Once, after a second; who returns from that waits for them."""
    tools, said = recorded()
    async with served(tools, stuck=lambda: said.append(f"stuck at {trio.current_time() - began:g}")) as host:
        await host.send(call(1, "whole", name="a", seconds=100))
        await trio.sleep(1)
        began = trio.current_time()
        await host.stream.send_eof()
        assert await host.texts(1) == {1: "a"}
    assert said == ["a begins", "stuck at 1", "a ends"]


async def test_a_host_that_is_gone_ends_everything(autojump_clock: Any) -> None:
    """As soon as something cannot be sent."""
    tools, said = recorded()
    with trio.fail_after(20):
        async with served(tools, linger=5.0) as host:
            await host.send(call(1, "nap", name="a", seconds=1000), call(2, "nap", name="b", seconds=4))
            await trio.testing.wait_all_tasks_blocked()
            await host.stream.aclose()
    assert sorted(said[:2]) == ["a begins", "b begins"]
    assert said[2:] == ["b ends", "a interrupted"]


async def test_what_waits_to_be_sent_is_bounded_and_nothing_deadlocks(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    """Progress is dropped first, then reading pauses; a host that reads at last gets every answer."""
    monkeypatch.setattr(_serve, "UNSENT_MOST", 20_000)
    monkeypatch.setattr(_serve, "_PROGRESS_UNSENT_MOST", 0)
    tools, _ = recorded()
    to_server, incoming = trio.testing.memory_stream_one_way_pair()
    outgoing, from_server = trio.testing.lockstep_stream_one_way_pair()
    read = Host(trio.StapledStream(to_server, from_server))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mcp.serve, Runtime(Registry(tools)), incoming, outgoing)
        await read.send(HELLO, *(call(n, "nap", _meta={"progressToken": n}, name="x" * 500) for n in range(200)))
        await trio.sleep(1000)
        found = await read.take(201)
        await to_server.aclose()
    assert sorted(one["id"] for one in found[1:]) == list(range(200))


async def test_a_thousand_calls_at_once_are_all_answered() -> None:
    """And those beyond the most are refused as results, with nothing run."""
    tools, said = recorded()
    async with served(tools) as host:
        await host.send(*(call(n, "nap", name=str(n), seconds=0) for n in range(1000)))
        answers = await host.texts(1000)
    assert answers == {n: str(n) for n in range(1000)}
    assert len(said) == 2000


async def test_calls_beyond_the_most_are_refused(monkeypatch: pytest.MonkeyPatch, autojump_clock: Any) -> None:
    """As a result that says to try again."""
    monkeypatch.setattr(_serve, "_CALLS_MOST", 2)
    tools, _ = recorded()
    async with served(tools) as host:
        await host.send(*(call(n, "nap", name=str(n)) for n in range(3)))
        answers = await host.texts(3)
    assert answers == {0: "0", 1: "1", 2: "[not_started] 2 calls are not answered yet: try again"}


async def test_order_state_and_memory_hold_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new batch begins when all is answered, and behind one that is full; the working directory is carried on."""
    monkeypatch.setattr(_serve, "_BATCH_MOST", 4)
    workspace = files(a="<0>")
    async with served(workspace.tools()) as host:
        await host.send(*edits("a.txt", 10))
        assert {one["result"]["isError"] for one in await host.take(10)} == {False}
        await host.send(call(11, "make_dir", path="d"))
        await host.next()
        await host.send(call(12, "change_dir", path="d"))
        await host.next()
        await host.send(call(13, "read_file", path="../a.txt"))
        assert "<10>" in text(await host.next())


async def test_what_is_kept_does_not_grow_with_the_calls() -> None:
    """No object of a call is left once it is answered."""
    tools, _ = recorded()
    async with served(tools) as host:

        async def burst(first: int) -> int:
            await host.send(*(call(n, "nap", name="x", seconds=0) for n in range(first, first + 100)))
            await host.take(100)
            await host.send(request("p", "ping"))
            await host.next()
            gc.collect()
            return len(gc.get_objects())

        await burst(0)
        before = await burst(100)
        for first in range(200, 600, 100):
            after = await burst(first)
        assert after - before < 100


async def test_tools_are_listed_with_what_they_do() -> None:
    """Schema and hints, as the protocol writes them."""
    hints = {"nap": mcp.Hints(read_only=True, open_world=False), "alone": mcp.Hints(idempotent=True)}
    tools, _ = recorded()
    async with served(tools, hints=hints) as host:
        await host.send(request(1, "tools/list"))
        listed = {one["name"]: one for one in (await host.next())["result"]["tools"]}
    assert listed["nap"]["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
    assert listed["alone"]["annotations"] == {
        "readOnlyHint": False,
        "openWorldHint": True,
        "destructiveHint": True,
        "idempotentHint": True,
    }
    assert "annotations" not in listed["fail"]
    assert listed["nap"]["inputSchema"]["required"] == ["name"]


@pytest.mark.process
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are counted in /proc")
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"action": "accept", "content": {"answer": "once"}}, "replaced"),
        ({"action": "accept", "content": {"answer": "no"}}, "said no"),
        ({"action": "accept"}, "said no"),
        ({"action": "decline"}, "said no"),
        ({"action": "cancel"}, "no answer"),
        (None, "no answer"),
    ],
)
async def test_the_host_asks_its_person_before_a_call(result: Any, expected: str, autojump_clock: Any) -> None:
    """The call waits for the answer while others go on, and runs after a clear yes alone."""
    workspace, asked = files(a="<0>", b="b"), mcp.Elicitation({permit.value: permit for permit in Permit})
    approve = Permissions(workspace, [Rule("edit_file", None, "ask")], asked.put, default="allow")
    runtime = Runtime(Registry(workspace.tools()), approve=approve)
    hello = request("hello", "initialize", protocolVersion="2025-11-25", capabilities={"elicitation": {}})
    async with served(runtime, initialized=False, elicitation=asked) as host:
        await host.send(hello, call(2, "read_file", path="b.txt"))
        assert {one["id"] for one in await host.take(2)} == {"hello", 2}
        await host.send(edits("a.txt", 1)[0])
        question = await host.next()
        assert (question["method"], "a.txt" in question["params"]["message"]) == ("elicitation/create", True)
        answer = {"error": {"code": -1, "message": ""}} if result is None else {"result": result}
        await host.send({"jsonrpc": "2.0", "id": question["id"], **answer})
        assert expected in text(await host.next())


async def test_a_question_is_withdrawn_with_its_call_and_a_host_that_cannot_ask_denies(autojump_clock: Any) -> None:
    """A call that waits for a person and is cancelled leaves no question open."""
    workspace = files(a="<0>")
    for capabilities in ({"elicitation": {}}, {}):
        asked = mcp.Elicitation({permit.value: permit for permit in Permit})
        approve = Permissions(workspace, [Rule("edit_file", None, "ask")], asked.put, default="allow")
        runtime = Runtime(Registry(workspace.tools()), approve=approve)
        hello = request("hello", "initialize", protocolVersion="2025-11-25", capabilities=capabilities)
        async with served(runtime, initialized=False, elicitation=asked) as host:
            await host.send(hello, edits("a.txt", 1)[0])
            found = (await host.take(2))[1]
            if not capabilities:
                assert "cannot ask a person" in text(found)
                continue
            await host.send(cancelled(1))
            gone = await host.next()
            assert (gone["method"], gone["params"]) == ("notifications/cancelled", {"requestId": found["id"]})


async def test_a_cancelled_command_ends_with_all_that_it_started(tmp_path: Any) -> None:
    """The whole process group; the next command runs."""
    written = tmp_path / "started"
    async with served([shell_tool(Workspace(tmp_path))]) as host:
        await host.send(call(1, "run_command", command="sleep 300 & echo $! $$ end > started; sleep 300"))
        with trio.fail_after(30):
            while not written.exists() or "end" not in written.read_text():  # noqa: ASYNC110  the command tells nothing
                await trio.sleep(0.01)
        started = [Path("/proc", pid) for pid in written.read_text().split()[:2]]
        assert all(process.exists() for process in started)
        await host.send(cancelled(1), call(2, "run_command", command="echo next"))
        assert text(await host.next()).startswith("next")
        assert not any(process.exists() for process in started)


async def test_host_is_sent_pictures_and_files_as_the_protocol_has_them(autojump_clock: Any) -> None:
    """What it has no form for goes in words."""

    @tool(safe=True)
    async def look(ctx: Any) -> Any:
        return ["look:", Image(b"png", "image/png"), File(b"pdf", "application/pdf", "a b.pdf"), Json({"a": 1})]

    async with served([look]) as host:
        await host.send(call(1, "look"))
        result = (await host.take(1))[0]["result"]
    assert result["content"] == [
        {"type": "text", "text": "look:"},
        {"type": "image", "data": "cG5n", "mimeType": "image/png"},
        {
            "type": "resource",
            "resource": {"uri": "attachment:a%20b.pdf", "mimeType": "application/pdf", "blob": "cGRm"},
        },
        {"type": "text", "text": '{"a":1}'},
    ]
    assert not result["isError"]

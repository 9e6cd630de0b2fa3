"""`HttpApp` with hosts that speak raw HTTP through the simulator's ASGI driver."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import trio

from tests.plugins.mcp._host import HELLO, call, cancelled, edits, files, notification, request
from toolrt import Permissions, Permit, Registry, Rule, Runtime, Workspace, invariants, sim, tool
from toolrt.errors import DefinitionRefused
from toolrt.plugins import mcp
from toolrt.plugins.mcp import _serve_http

TOKEN = "a-token-of-this-test"
HEADERS = {
    "host": "127.0.0.1:8000",
    "authorization": f"Bearer {TOKEN}",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


class WebHost:
    """A host with a session."""

    def __init__(self, client: sim.AsgiDriver, session: str) -> None:
        self.client = client
        self.headers = {**HEADERS, "mcp-session-id": session}

    async def post(self, message: Any) -> list[Any]:
        """The status, and what comes back until the end."""
        response = await self.client.request("POST", "/mcp", headers=self.headers, body=json.dumps(message).encode())
        return [response.status, *messages(response)]

    def stream(self, method: str, message: Any = None) -> Any:
        """A request whose messages are read as they come."""
        body = b"" if message is None else json.dumps(message).encode()
        return self.client.stream(method, "/mcp", headers=self.headers, body=body)


def messages(response: Any) -> list[Any]:
    """The messages of a response that has been read."""
    if response.header("content-type") == "text/event-stream":
        return [json.loads(event.partition(b"data: ")[2]) for event in response.body.split(b"\n\n") if event]
    return [json.loads(response.body)] if response.header("content-type") == "application/json" else []


def app_of(runtime: Any, **options: Any) -> mcp.HttpApp:
    """An application each of whose sessions is served this."""
    return mcp.HttpApp(lambda: mcp.ServedTools(runtime), token=TOKEN, **options)


async def opened(client: sim.AsgiDriver, hello: Any = HELLO) -> WebHost:
    """A session that has begun."""
    response = await client.request("POST", "/mcp", headers=HEADERS, body=json.dumps(hello).encode())
    assert response.status == 200
    host = WebHost(client, response.header("mcp-session-id") or "")
    assert await host.post(notification("notifications/initialized")) == [202]
    return host


@tool(safe=True)
async def nap(ctx: Any, name: str, seconds: float = 1.0) -> str:
    """Say half of it, and sleep."""
    ctx.progress(f"{name} naps")
    await trio.sleep(seconds)
    return name


def answer_of(post: Any) -> str:
    """The text that a call was answered with at the end of its stream."""
    text: str = post[-1]["result"]["content"][0]["text"]
    return text


@pytest.mark.seldom
def test_edits_of_two_sessions_land_and_every_law_holds_under_every_schedule() -> None:
    """Each session's in its order, beside a host that may leave in the middle of anything."""

    async def program() -> str:
        workspace = files(a="<0>", b="<0>")
        runtime = Runtime(Registry([*workspace.tools(), nap]))
        async with sim.asgi(app_of(runtime)) as client:

            async def edit(path: str) -> None:
                host = await opened(client)
                for one in edits(path, 3):
                    status, *told = await host.post(one)
                    assert (status, told[-1]["result"]["isError"]) == (200, False)

            async def leave() -> None:
                host = await opened(client)
                with trio.move_on_after(1):
                    await host.post(call(1, "nap", name="n", seconds=2))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(edit, "a.txt")
                nursery.start_soon(edit, "b.txt")
                nursery.start_soon(leave)
        return "".join(workspace.disk.peek((name,)).decode() for name in ("a.txt", "b.txt"))

    report = sim.explore(
        program, sim.Random(sim.RandomWalk(seed=3), 10), lambda execution: invariants.check(execution.trace) or None
    )
    assert report.outcomes == {"<3><3>": 10}


async def test_a_call_is_a_stream_of_its_progress_and_its_answer_and_the_rest_is_json(autojump_clock: Any) -> None:
    """A call that was cancelled ends its stream without an answer."""
    async with sim.asgi(app_of(Runtime(Registry([nap])))) as client:
        host = await opened(client)
        listed = await client.request(
            "POST", "/mcp", headers=host.headers, body=json.dumps(request(1, "tools/list")).encode()
        )
        assert listed.header("content-type") == "application/json"
        assert [one["name"] for one in messages(listed)[0]["result"]["tools"]] == ["nap"]
        found = await host.post(call(2, "nap", _meta={"progressToken": "t"}, name="a"))
        assert [one.get("method") for one in found[1:]] == ["notifications/progress", None]
        assert answer_of(found) == "a"
        async with trio.open_nursery() as nursery:

            async def nap_on() -> None:
                assert await host.post(call(3, "nap", name="b", seconds=1000)) == [200]

            nursery.start_soon(nap_on)
            await trio.sleep(1)
            assert (await host.post(call(3, "nap", name="c")))[1]["error"]["code"] == -32600
            assert await host.post(cancelled(3)) == [202]
        assert trio.current_time() < 500


@tool(safe=True)
async def count(ctx: Any, name: str, to: int) -> str:
    """Count, a number each second."""
    for number in range(to):
        ctx.progress(f"{name}{number}")
        await trio.sleep(1)
    return f"{name} to {to}"


def counting(id: int, name: str, to: int) -> Any:
    return call(id, "count", _meta={"progressToken": id}, name=name, to=to)


def shown(event: bytes) -> tuple[str, str]:
    """The id of an event, and the text in it."""
    told = json.loads(event.partition(b"data: ")[2])
    text = told["params"]["message"] if "method" in told else answer_of([told])
    return event.partition(b"\n")[0].decode().removeprefix("id: "), text


def test_a_stream_that_broke_is_taken_up_with_what_the_host_missed_and_no_more() -> None:
    """Under every schedule, wherever it broke, beside another stream of the session."""
    whole = ["a0", "a1", "a2", "a to 3"]

    async def program() -> str:
        async with sim.asgi(app_of(Runtime(Registry([count])))) as client, trio.open_nursery() as nursery:
            host = await opened(client)
            nursery.start_soon(host.post, counting(2, "b", 4))
            found: list[tuple[str, str]] = []
            method, message, tries = "POST", counting(1, "a", 3), 0
            while len(found) < len(whole):
                with trio.move_on_after(0.7):
                    async with host.stream(method, message) as response:
                        assert response.status == 200
                        async for some in response:
                            found += map(shown, filter(None, some.split(b"\n\n")))
                if not found:
                    return "left before it had an id"
                await trio.sleep(0.5)  # in which more comes
                host.headers["last-event-id"], method, message, tries = found[-1][0], "GET", None, tries + 1
            assert [text for _, text in found] == whole
            assert len({id for id, _ in found}) == len(whole)
        return f"taken up {min(tries - 1, 2)} times"

    report = sim.explore(
        program, sim.Random(sim.RandomWalk(seed=3), 10), lambda execution: invariants.check(execution.trace) or None
    )
    assert set(report.outcomes) == {"taken up 2 times"}


async def test_what_is_kept_of_a_stream_is_bounded(monkeypatch: pytest.MonkeyPatch, autojump_clock: Any) -> None:
    """What came is given again from any event on; a stream that is open, and an event that is gone, are refused."""
    async with sim.asgi(app_of(Runtime(Registry([count])))) as client, trio.open_nursery() as nursery:
        host = await opened(client)

        async def again(id: str) -> Any:
            response = await client.request("GET", "/mcp", headers={**host.headers, "last-event-id": id})
            return [shown(event)[1] for event in response.body.split(b"\n\n") if event], response.status

        await host.post(counting(1, "a", 2))
        assert await again("2-0") == (["a0", "a1", "a to 2"], 200)
        assert await again("2-2") == (["a to 2"], 200)
        assert await again("2-3") == ([], 200)
        for id in ("7-1", "x", "2-9"):
            assert (await client.request("GET", "/mcp", headers={**host.headers, "last-event-id": id})).status == 400
        nursery.start_soon(host.post, counting(2, "b", 5))
        await trio.sleep(1.5)
        assert (await client.request("GET", "/mcp", headers={**host.headers, "last-event-id": "3-1"})).status == 409
        monkeypatch.setattr(_serve_http, "_KEPT_MOST", 300)
        await trio.sleep(5)
        assert (await client.request("GET", "/mcp", headers={**host.headers, "last-event-id": "2-1"})).status == 400
        host.headers["mcp-protocol-version"] = "2025-11-25"
        async with host.stream("POST", counting(3, "c", 1)) as response:
            assert b"".join([some async for some in response]).startswith(b"id: 4-0\ndata: \n\n")


REFUSED: list[tuple[str, dict[str, str | None], int]] = [
    ("POST", {"host": "evil.example:8000"}, 403),
    ("POST", {"host": "127.0.0.1.evil.example"}, 403),
    ("POST", {"host": None}, 403),
    ("POST", {"origin": "https://evil.example"}, 403),
    ("POST", {"origin": "null"}, 403),
    ("POST", {"authorization": None}, 401),
    ("POST", {"authorization": f"Basic {TOKEN}"}, 401),
    ("POST", {"authorization": "Bearer another-token-of-this-test"}, 401),
    ("POST", {"content-type": "text/plain"}, 415),
    ("POST", {"mcp-protocol-version": "2099-01-01"}, 400),
    ("POST", {"mcp-session-id": None}, 400),
    ("POST", {"mcp-session-id": "gone"}, 404),
    ("GET", {"accept": "application/json"}, 406),
    ("PUT", {}, 405),
]


@pytest.mark.parametrize(("method", "changed", "status"), REFUSED)
async def test_a_request_that_has_no_right_is_refused_and_does_nothing(
    method: str, changed: dict[str, str | None], status: int
) -> None:
    """A web page of another origin, a name that was pointed here, a wrong token, and what the transport forbids."""
    workspace = files(a="<0>")
    app = app_of(Runtime(Registry(workspace.tools())))
    async with sim.asgi(app) as client:
        host = await opened(client)
        # Not by the driver, which gives a request a host.
        headers = [(key.encode(), value.encode()) for key, value in {**host.headers, **changed}.items() if value]
        body = json.dumps(edits("a.txt", 1)[0]).encode()
        received, sent = [{"type": "http.request", "body": body}, {"type": "http.disconnect"}], []

        async def receive() -> dict[str, Any]:
            return received.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        await app({"type": "http", "method": method, "path": "/mcp", "headers": headers}, receive, send)
        assert sent[0]["status"] == status
        assert workspace.disk.peek(("a.txt",)) == b"<0>"


async def test_an_origin_that_was_allowed_may_use_it() -> None:
    """And messages that are none are answered."""
    app = app_of(Runtime(Registry([nap])), origins=["https://good.example"])
    async with sim.asgi(app) as client:
        host = await opened(client)
        host.headers["origin"] = "https://good.example"
        assert await host.post(request(1, "ping")) == [200, {"jsonrpc": "2.0", "id": 1, "result": {}}]
        for message, status in ((["x"], 400), (request(True, "ping"), 400), (request(2, "no/method"), 200)):
            found = await host.post(message)
            assert (found[0], "error" in found[1]) == (status, True)


async def test_the_host_is_asked_on_whichever_stream_is_open(autojump_clock: Any) -> None:
    """On that of the call, and on its GET stream where it has one."""
    workspace = files(a="<0>")

    def served() -> mcp.ServedTools:
        asked = mcp.Elicitation({permit.value: permit for permit in Permit})
        approve = Permissions(workspace, [Rule("edit_file", None, "ask")], asked.put, default="allow")
        return mcp.ServedTools(Runtime(Registry(workspace.tools()), approve=approve), elicitation=asked)

    hello = request("hello", "initialize", protocolVersion="2025-11-25", capabilities={"elicitation": {}})
    async with sim.asgi(mcp.HttpApp(served, token=TOKEN)) as client, trio.open_nursery() as nursery:
        host = await opened(client, hello)

        async def answered(response: Any) -> None:
            async for event in response:
                told = json.loads(event.partition(b"data: ")[2])
                if told.get("method") == "elicitation/create":
                    result = {"action": "accept", "content": {"answer": "once"}}
                    assert await host.post({"jsonrpc": "2.0", "id": told["id"], "result": result}) == [202]

        async def listen() -> None:
            with listening:
                async with host.stream("GET") as response:
                    await answered(response)

        first, second, third = edits("a.txt", 3)
        async with host.stream("POST", first) as response:
            await answered(response)
        listening = trio.CancelScope()
        nursery.start_soon(listen)
        await trio.sleep(1)
        assert len(await host.post(second)) == 2
        listening.cancel()
        await trio.sleep(1)
        async with host.stream("POST", third) as response:
            await answered(response)
        assert workspace.disk.peek(("a.txt",)) == b"<3>"


@contextlib.asynccontextmanager
async def of_roots(roots: Sequence[mcp.Root]) -> AsyncIterator[Runtime]:
    """A runtime on a file that has the roots' names."""
    workspace: Workspace = files(roots=" ".join(root.uri for root in roots))
    yield Runtime(Registry(workspace.tools()))


async def test_calls_wait_for_the_roots_that_the_host_names(autojump_clock: Any) -> None:
    """They are asked for once; a host that has none, or others later, is told so."""
    hello = request("hello", "initialize", protocolVersion="2025-11-25", capabilities={"roots": {}})
    async with sim.asgi(app_of(of_roots)) as client:
        none = await opened(client)
        assert "names no roots" in (await none.post(request(1, "tools/list")))[1]["error"]["message"]
        host = await opened(client, hello)

        async def name(*uris: str) -> None:
            result = {"roots": [{"uri": uri} for uri in uris]}
            assert await host.post({"jsonrpc": "2.0", "id": "roots", "result": result}) == [202]

        async with host.stream("POST", call(1, "read_file", path="roots.txt")) as response:
            told = []
            async for event in response:
                told.append(json.loads(event.partition(b"data: ")[2]))
                if told[-1].get("method") == "roots/list":
                    await name("file:///a", "file:///b")
        assert answer_of(told) == "file:///a file:///b"
        await name("file:///b")
        assert "have changed" in (await host.post(call(2, "read_file", path="roots.txt")))[1]["error"]["message"]


async def test_sessions_end_and_are_bounded(monkeypatch: pytest.MonkeyPatch, autojump_clock: Any) -> None:
    """By DELETE, which interrupts what runs and ends its streams; and the one longest unused goes for a new one."""
    monkeypatch.setattr(_serve_http, "_SESSIONS_MOST", 2)
    async with sim.asgi(app_of(Runtime(Registry([nap])))) as client, trio.open_nursery() as nursery:
        first, second = await opened(client), await opened(client)
        ended: list[Any] = []

        async def nap_on() -> None:
            ended.append(await second.post(call(1, "nap", name="a", seconds=1000)))

        async def listen() -> None:
            async with second.stream("GET") as response:
                ended.extend([event async for event in response])

        nursery.start_soon(nap_on)
        nursery.start_soon(listen)
        await trio.sleep(1)
        third = await opened(client)
        assert await first.post(request(1, "ping")) == [404]
        assert (await third.post(request(1, "ping")))[0] == 200
        assert (await second.client.request("DELETE", "/mcp", headers=second.headers)).status == 204
        await trio.sleep(1)
        assert answer_of(ended[0]).startswith("[interrupted]")
        assert len(ended) == 1
        assert await second.post(request(1, "ping")) == [404]


async def test_a_message_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it has come whole."""
    monkeypatch.setattr(_serve_http, "MESSAGE_MOST", 500)
    async with sim.asgi(app_of(Runtime(Registry([nap])))) as client:
        host = await opened(client)
        assert await host.post(call(1, "nap", name="x" * 500)) == [413]


@pytest.mark.parametrize("token", ["short", "", "x" * 16 + "\n", "ü" * 16])
def test_a_token_that_keeps_no_one_out_is_refused(token: str) -> None:
    """When the application is made."""
    with pytest.raises(DefinitionRefused, match="16 or more"):
        mcp.HttpApp(lambda: mcp.ServedTools(Runtime(Registry([nap]))), token=token)

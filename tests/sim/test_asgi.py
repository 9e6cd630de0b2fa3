"""ASGI applications in memory: Starlette and sse-starlette, with clients that go away at any moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
import trio

from toolrt import sim

pytest.importorskip("starlette", reason="the application under test")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket


def made(log: list[str]) -> Starlette:
    """Give an application that says in `log` what it has done."""

    async def upper(request: Request) -> PlainTextResponse:
        return PlainTextResponse((await request.body()).upper(), headers={"X-Query": request.url.query})

    async def parts() -> AsyncIterator[bytes]:
        try:
            for number in range(3):
                yield b"%d" % number
                await trio.sleep(1)
        finally:
            log.append("closed")

    async def stream(_: Request) -> StreamingResponse:
        return StreamingResponse(parts())

    async def fails(_: Request) -> PlainTextResponse:
        raise LookupError("no such thing")

    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        async for text in socket.iter_text():
            await socket.send_text(text.upper())
        log.append("talked")

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[dict[str, Any]]:
        log.append("up")
        yield {"database": "there"}
        log.append("down")

    routes = [
        Route("/", upper, methods=["POST"]),
        Route("/stream", stream),
        Route("/fails", fails),
        WebSocketRoute("/talk", talk),
    ]
    return Starlette(routes=routes, lifespan=life)


def test_asgi_application_is_driven() -> None:
    """Requests with bodies in parts, streamed responses, web sockets, start and end."""

    async def program() -> list[Any]:
        log: list[str] = []
        async with sim.asgi(made(log)) as client:
            assert client.state == {"database": "there"}
            posted = await client.request("POST", "/?a=1", body=[b"hel", b"lo"], headers={"X-Any": "1"})
            streamed = await client.request("GET", "/stream")
            missing = await client.request("GET", "/nowhere")
            async with client.websocket("/talk") as socket:
                await socket.send("word")
                answer = await socket.receive()
            with pytest.raises(LookupError):
                await client.request("GET", "/fails")
        return [
            (posted.status, posted.body, posted.header("x-query"), posted.is_complete),
            (streamed.status, streamed.body, trio.current_time()),
            missing.status,
            (answer, socket.is_accepted),
            log,
        ]

    execution = sim.run(program)
    if execution.error is not None:
        raise execution.error
    assert execution.value == [
        (200, b"HELLO", "a=1", True),
        (200, b"012", 3.0),
        404,
        ("WORD", True),
        ["up", "closed", "talked", "down"],
    ]


@pytest.mark.seldom
def test_asgi_client_goes_away_at_any_moment() -> None:
    """What the client got is a beginning of the whole, and each beginning comes."""

    async def program() -> tuple[bytes, bool]:
        async with sim.asgi(_counts, disconnects=1) as client:
            response = await client.request("GET", "/")
        return response.body, response.is_disconnected

    report = sim.explore(program, sim.DPOR(), max_executions=2000)
    assert report.verdict is sim.PASS
    assert set(report.outcomes) == {(b"", True), (b"0", True), (b"0", False)}


async def _counts(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"0", "more_body": True})
        await send({"type": "http.response.body"})
        kinds = [(await receive())["type"] for _ in range(2)]
        assert kinds in (["http.request", "http.disconnect"], ["http.disconnect"] * 2)


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
def test_asgi_client_leaves_when_it_wants() -> None:
    """Leaving the block is going away: the application hears of it, and ends."""

    async def program() -> tuple[bytes, float]:
        async with sim.asgi(made([])) as client, client.stream("GET", "/stream") as response:
            async with aclosing(aiter(response)) as parts:
                first = await anext(parts)
            response.disconnect()
        assert response.is_disconnected
        return first, trio.current_time()

    # It hears of it with the next part, a second later.
    assert sim.run(program).value == (b"0", 1.0)


def test_asgi_events_end_with_their_client() -> None:
    """The generator of sse-starlette is closed before the application ends, whenever the client goes."""
    sse = pytest.importorskip("sse_starlette", reason="the application under test")

    async def program() -> bool:
        log: list[str] = []

        async def events() -> AsyncIterator[dict[str, Any]]:
            log.append("begun")
            try:
                for number in range(2):
                    yield {"data": number}
                    await trio.sleep(1)
            finally:
                log.append("closed")

        async def served(_: Request) -> Any:
            return sse.EventSourceResponse(events())

        async with sim.asgi(Starlette(routes=[Route("/", served)]), disconnects=1) as client:
            response = await client.request("GET", "/")
        return log in ([], ["begun", "closed"]) and b"data: 0\r\n\r\ndata: 1\r\n\r\n".startswith(response.body)

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 25), lambda execution: execution.value is True)
    assert report.verdict is sim.PASS


def test_asgi_runs_outside_a_simulation_too() -> None:
    """On plain Trio no client goes away by itself."""

    async def program() -> bytes:
        async with sim.asgi(made([]), disconnects=1) as client:
            return (await client.request("POST", "/", body=b"word")).body

    assert trio.run(program) == b"WORD"

"""Two middlewares and a client that goes away: RuntimeError in starlette.  No toolrt is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import trio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

Message = MutableMapping[str, Any]
SCOPE = {
    "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
    "path": "/", "raw_path": b"/", "query_string": b"", "root_path": "", "scheme": "http", "headers": [],
    "client": ("a", 1), "server": ("b", 2),
}  # fmt: skip


class Saving:
    """A middleware of plain ASGI that saves something before a response starts, as sessions are saved."""

    def __init__(self, app: Callable[..., Awaitable[None]], seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: object, receive: object, send: Callable[[Message], Awaitable[None]]) -> None:
        async def slowly(message: Message) -> None:
            if message["type"] == "http.response.start":
                await trio.sleep(self._seconds)
            await send(message)

        await self._app(scope, receive, slowly)


async def request_and_leave(pause: int, seconds: float = 0) -> None:
    """One request; the client is gone after `pause` checkpoints, or while something is saved for `seconds`."""
    gone = trio.Event()

    async def passed_on(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        return await call_next(request)

    async def home(request: Request) -> Response:
        await trio.lowlevel.checkpoint()
        return PlainTextResponse("hello")

    app = Starlette(
        routes=[Route("/", home)],
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=passed_on),
            *([Middleware(Saving, seconds=seconds)] if seconds else []),
            Middleware(BaseHTTPMiddleware, dispatch=passed_on),
        ],
    )
    asked = False

    async def receive() -> Message:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(app, dict(SCOPE), receive, send)
        for _ in range(pause):
            await trio.lowlevel.checkpoint()
        if seconds:
            await trio.sleep(seconds / 2)
        gone.set()


async def program(pause: int = 1) -> None:
    """At some moment."""
    await request_and_leave(pause)


async def on_plain_trio() -> None:
    """The client leaves while a middleware between the two waits before it passes the response's start on."""
    await request_and_leave(0, seconds=0.1)


if __name__ == "__main__":
    trio.run(on_plain_trio)

"""Drives an ASGI application in memory, as a server and its clients would.

Rules.  The application gets the messages of the ASGI specification 2.4: the body of a request in the pieces it was
given in, ``http.disconnect`` once the client has gone or the response is complete, and OSError from ``send`` after the
client has gone.  It is not cancelled by that.  What it raises is raised in the task that made the request, but for what
comes of that OSError: a server expects it.

A part of a response waits until the client takes it: nothing is buffered.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
)
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any
from urllib.parse import unquote

import trio

from toolrt.errors import DefinitionRefused
from toolrt.sim.programs._chances import choose

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[MutableMapping[str, Any], _Receive, _Send], Awaitable[None]]
_Body = bytes | Iterable[bytes] | AsyncIterable[bytes]
_Headers = Mapping[str, str] | Iterable[tuple[str, str]]


def asgi(app: _App, *, disconnects: int = 0, host: str = "testserver") -> AsgiDriver:
    """Give what drives an ASGI application: a context manager that starts it and shuts it down.

    Args:
        app: an ASGI 3 application, such as one of Starlette's.
        disconnects: how many requests of an execution may lose their client.  Whether one does, and when, are choices
            of the explorer's.
        host: the name of the server, as the application sees it.

    Raises:
        DefinitionRefused: an argument is not what it must be.

    Checkpoint: never (entering and leaving the driver checkpoint).

    Example:
        >>> from toolrt import sim
        >>> async def app(scope, receive, send):
        ...     assert scope["type"] == "http"
        ...     body = (await receive())["body"]
        ...     await send({"type": "http.response.start", "status": 200, "headers": []})
        ...     await send({"type": "http.response.body", "body": body.upper()})
        >>> async def program():
        ...     async with sim.asgi(app) as client:
        ...         response = await client.request("POST", "/", body=b"hello")
        ...     return response.status, response.body
        >>> sim.run(program).value
        (200, b'HELLO')
    """
    if not callable(app):
        raise DefinitionRefused("asgi(app)", "an ASGI application", app)
    if not isinstance(disconnects, int) or isinstance(disconnects, bool) or disconnects < 0:
        raise DefinitionRefused("asgi(disconnects)", "a number of times, 0 or more", disconnects)
    return AsgiDriver(app, disconnects, host)


class _ClientGone(OSError):
    """Raised by ``send`` after the client has gone."""


def _comes_of_leaving(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_comes_of_leaving, error.exceptions))
    return error is not None and (
        isinstance(error, _ClientGone) or _comes_of_leaving(error.__cause__ or error.__context__)
    )


class AsgiResponse:
    """The response to one request."""

    def __init__(self, parts: trio.MemoryReceiveChannel[bytes], exchange: _Exchange) -> None:
        self._parts = parts
        self._exchange = exchange
        #: The status, and the headers in lower case, once the application has begun to answer; 0 and none before.
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        #: What was read of the body.
        self.body = b""
        #: True when the whole body was read.
        self.is_complete = False

    def header(self, name: str) -> str | None:
        """Give the first header of this name, in lower case; None when there is none."""
        return next((value for each, value in self.headers if each == name), None)

    @property
    def is_disconnected(self) -> bool:
        """True when the client has gone."""
        return self._exchange.gone.is_set()

    def disconnect(self) -> None:
        """Let the client go away now.

        Checkpoint: never.
        """
        self._exchange.leave()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            self.body += part
            if part:
                yield part


class _Exchange:
    """One request and its response, or one connection of a web socket, as the application sees it."""

    def __init__(self, app: _App, scope: MutableMapping[str, Any]) -> None:
        self._app = app
        self._scope = scope
        #: Set when the client has gone, and when the response has ended.
        self.gone, self.ended = trio.Event(), trio.Event()
        self.failure: BaseException | None = None
        #: Cancelled when the client has gone: what waits for it need not.
        self.waits: list[trio.CancelScope] = []

    def leave(self) -> None:
        """Let the client go away."""
        self.gone.set()
        for scope in self.waits:
            scope.cancel()

    async def unless_gone(self, operation: Callable[[], Awaitable[Any]]) -> Any:
        """Do something that ends, with None, when the client goes away.

        Checkpoint: always.
        """
        with trio.CancelScope() as scope:
            self.waits.append(scope)
            try:
                if self.gone.is_set():
                    scope.cancel()
                return await operation()
            finally:
                self.waits.remove(scope)
        return None

    async def run(
        self, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
    ) -> None:
        """Run the application, and keep what it raises.

        Checkpoint: as the application does.
        """
        try:
            await self._app(self._scope, receive, send)
        except Exception as error:
            if not _comes_of_leaving(error):
                self.failure = error
        finally:
            self.ended.set()


class AsgiDriver:
    """Makes requests of an ASGI application, inside ``async with``."""

    def __init__(self, app: _App, disconnects: int, host: str) -> None:
        self._app = app
        self._disconnects_left = disconnects
        self._host = host
        self._stack = AsyncExitStack()
        #: What the application keeps between its start and its end; each request gets a copy.
        self.state: dict[str, Any] = {}

    # ------------------------------------------------------------------ start and end

    async def __aenter__(self) -> AsgiDriver:
        self._stack = AsyncExitStack()
        await self._stack.enter_async_context(self._lifespan())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, traceback)  # noqa: ASYNC102  the block's own end

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        scope = {"type": "lifespan", "asgi": _VERSIONS, "state": self.state}
        to_app, from_driver = trio.open_memory_channel[_Message](1)
        started, stopped = trio.Event(), trio.Event()
        told: dict[str, str] = {}
        exchange = _Exchange(self._app, scope)

        async def send(message: _Message) -> None:
            kind = message["type"]
            await trio.lowlevel.checkpoint()
            if kind.endswith(".failed"):
                told[kind] = message.get("message", "")
            (started if kind.startswith("lifespan.startup") else stopped).set()

        async def run() -> None:
            await exchange.run(from_driver.receive, send)
            # An application that does not know of it raises, or returns at once.
            started.set()
            stopped.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await to_app.send({"type": "lifespan.startup"})
            await started.wait()
            if "lifespan.startup.failed" in told:
                raise exchange.failure or RuntimeError(told["lifespan.startup.failed"])
            yield
            if not exchange.ended.is_set():
                await to_app.send({"type": "lifespan.shutdown"})
                await stopped.wait()
                if "lifespan.shutdown.failed" in told:
                    raise exchange.failure or RuntimeError(told["lifespan.shutdown.failed"])

    # ------------------------------------------------------------------ requests

    async def request(self, method: str, path: str, *, headers: _Headers = (), body: _Body = b"") -> AsgiResponse:
        """Make a request, and read the whole response, or what there is of it when the client goes away.

        Args:
            method: such as "GET".
            path: with the query, if there is one.
            headers: of the request.
            body: its bytes, or an iterable, sync or async, of its parts: each is one message.

        Raises:
            Exception: what the application raised.

        Checkpoint: always.
        """
        async with self.stream(method, path, headers=headers, body=body) as response:
            async for _ in response:
                pass
        return response

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, headers: _Headers = (), body: _Body = b""
    ) -> AsyncIterator[AsgiResponse]:
        """Make a request, and give the response when it has begun; iterate over it for the parts of its body.

        When the block is left before the response is complete, the client has gone away; the block waits until the
        application has ended.

        Args:
            method: such as "GET".
            path: with the query, if there is one.
            headers: of the request.
            body: its bytes, or an iterable, sync or async, of its parts: each is one message.

        Raises:
            Exception: what the application raised.

        Checkpoint: always, entering and leaving.
        """
        scope = self._scope("http", path, headers, "http")
        scope["method"] = method.upper()
        exchange = _Exchange(self._app, scope)
        parts, taken = trio.open_memory_channel[bytes](0)
        response = AsgiResponse(taken, exchange)
        begun = trio.Event()
        pieces = _Pieces(body)

        async def receive() -> _Message:
            message = None if exchange.gone.is_set() else await pieces.next()
            if message is not None and not exchange.gone.is_set():
                await trio.lowlevel.checkpoint()
                return message
            with trio.CancelScope() as waits:
                exchange.waits.append(waits)
                if not exchange.gone.is_set() and not response.is_complete:
                    await trio.sleep_forever()
                await trio.lowlevel.checkpoint()
            return {"type": "http.disconnect"}

        async def send(message: _Message) -> None:
            if exchange.gone.is_set():
                await trio.lowlevel.checkpoint()
                raise _ClientGone("the client has gone away")
            if message["type"] == "http.response.start":
                response.status = message["status"]
                response.headers = [(name.decode().lower(), value.decode()) for name, value in message["headers"]]
                begun.set()
                await trio.lowlevel.checkpoint()
            elif message["type"] == "http.response.body":
                await exchange.unless_gone(lambda: parts.send(bytes(message.get("body", b""))))
                if not message.get("more_body", False) and not exchange.gone.is_set():
                    response.is_complete = True
                    parts.close()
                    for waits in exchange.waits:
                        waits.cancel()

        async def run() -> None:
            await exchange.run(receive, send)
            parts.close()
            begun.set()

        async def go_away() -> None:  # noqa: ASYNC124  a task is async
            # One step, at any moment.
            exchange.leave()
            taken.close()
            begun.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            if self._disconnects_left and choose(2):
                self._disconnects_left -= 1
                nursery.start_soon(go_away)
            await begun.wait()
            try:
                yield response
            except trio.ClosedResourceError:
                if not response.is_disconnected:
                    raise
            finally:
                if not response.is_complete:
                    exchange.leave()
        if exchange.failure is not None:
            raise exchange.failure

    @asynccontextmanager
    async def websocket(
        self, path: str, *, headers: _Headers = (), subprotocols: Iterable[str] = ()
    ) -> AsyncIterator[AsgiWebSocket]:
        """Open a web socket, once the application has accepted or refused it; leaving the block closes it.

        Args:
            path: with the query, if there is one.
            headers: of the request.
            subprotocols: those that the client offers.

        Raises:
            Exception: what the application raised.

        Checkpoint: always, entering and leaving.
        """
        scope = self._scope("websocket", path, headers, "ws")
        scope["subprotocols"] = [*subprotocols]
        exchange = _Exchange(self._app, scope)
        client = AsgiWebSocket(exchange)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.serve)  # noqa: ASYNC113  what is waited for below
            if self._disconnects_left and choose(2):
                self._disconnects_left -= 1
                nursery.start_soon(client.go_away)
            await client.answered.wait()
            try:
                yield client
            finally:
                client.close()
        if exchange.failure is not None:
            raise exchange.failure

    def _scope(self, kind: str, path: str, headers: _Headers, scheme: str) -> dict[str, Any]:
        plain, _, query = path.partition("?")
        given = headers.items() if isinstance(headers, Mapping) else headers
        return {
            "type": kind,
            "asgi": _VERSIONS,
            "http_version": "1.1",
            "scheme": scheme,
            "path": unquote(plain),
            "raw_path": plain.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (b"host", self._host.encode()),
                *((name.lower().encode(), value.encode()) for name, value in given),
            ],
            "client": ("testclient", 50_000),
            "server": (self._host, 80),
            "state": dict(self.state),
            "extensions": {},
        }


class AsgiWebSocket:
    """A client's end of a web socket."""

    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange
        self._to_app, self._from_client = trio.open_memory_channel[_Message](1)
        self._to_client, self._from_app = trio.open_memory_channel[str | bytes](0)
        #: Set when the application has accepted or refused it.
        self.answered = trio.Event()
        #: Whether it was accepted, with which subprotocol, and the code that the application has closed it with.
        self.is_accepted = False
        self.subprotocol: str | None = None
        self.close_code: int | None = None

    async def serve(self) -> None:
        """Run the application.

        Checkpoint: as the application does.
        """
        self._to_app.send_nowait({"type": "websocket.connect"})
        await self._exchange.run(self._receive, self._send)
        self._to_client.close()
        self.answered.set()

    async def _receive(self) -> _Message:
        message = await self._exchange.unless_gone(self._from_client.receive)
        return {"type": "websocket.disconnect", "code": 1005} if message is None else message

    async def _send(self, message: _Message) -> None:
        if self._exchange.gone.is_set():
            await trio.lowlevel.checkpoint()
            raise _ClientGone("the client has gone away")
        kind = message["type"]
        if kind == "websocket.send":
            data = message.get("text")
            await self._exchange.unless_gone(lambda: self._to_client.send(message["bytes"] if data is None else data))
            return
        if kind == "websocket.accept":
            self.is_accepted, self.subprotocol = True, message.get("subprotocol")
        else:
            self.close_code = message.get("code", 1000)
            self._to_client.close()
        self.answered.set()
        await trio.lowlevel.checkpoint()

    async def go_away(self) -> None:
        """Close it: one step, at any moment.

        Checkpoint: never.
        """
        self.close()
        self.answered.set()

    def close(self) -> None:
        """Close it from the client's end.

        Checkpoint: never.
        """
        self._exchange.leave()
        self._from_app.close()

    async def send(self, data: str | bytes) -> None:
        """Send `data`: a text or bytes.

        Raises:
            trio.BrokenResourceError: it is closed.

        Checkpoint: always.
        """
        if self._exchange.ended.is_set() or self._exchange.gone.is_set():
            await trio.lowlevel.checkpoint()
            raise trio.BrokenResourceError
        name = "text" if isinstance(data, str) else "bytes"
        await self._exchange.unless_gone(lambda: self._to_app.send({"type": "websocket.receive", name: data}))

    async def receive(self) -> str | bytes:
        """Take what the application has sent.

        Raises:
            trio.EndOfChannel: the application has closed it.
            trio.ClosedResourceError: the client has.

        Checkpoint: always.
        """
        return await self._from_app.receive()


_VERSIONS = {"version": "3.0", "spec_version": "2.4"}


class _Pieces:
    """The body of a request, one message after the other."""

    def __init__(self, body: _Body) -> None:
        # Bytes are one message, the last; of parts each is one, and the end is one more.
        self._whole = body if isinstance(body, bytes) else None
        self._parts: Iterator[bytes] | None = None
        self._later: AsyncIterator[bytes] | None = None
        if isinstance(body, AsyncIterable):
            self._later = aiter(body)
        elif not isinstance(body, bytes):
            self._parts = iter(body)
        self._is_over = False

    async def next(self) -> _Message | None:
        """Give the next message; None when there is none.

        Checkpoint: as the iterable does.
        """
        if self._is_over:
            return None
        piece = self._whole
        if self._parts is not None:
            piece = next(self._parts, None)
        elif self._later is not None:
            piece = await anext(self._later, None)
        self._is_over = self._whole is not None or piece is None
        return {"type": "http.request", "body": piece or b"", "more_body": not self._is_over}

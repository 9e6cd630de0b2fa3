"""Serves MCP hosts by streamable HTTP, as an ASGI application; the conversation is that of `toolrt.plugins.mcp.serve`.

Rules.
    1. Each message is a POST.  It is taken when its body has come whole, without a checkpoint between, so messages take
       their tickets in the order in which their bodies end.  Only a host that waits for no answer between two
       requests leaves that order open.
    2. What is answered at once goes back as one JSON object, and a call as an event stream: its progress, then its
       answer.  Questions to the host go to its GET stream, else to whichever stream is open.
    3. A host that leaves a stream cancels nothing, as the protocol says; what the stream was still to get is dropped.
    4. A request passes three checks before it is looked at: its Host is this machine's loopback, so a name that a web
       page points here is none; its Origin, if it has one, was allowed; its token is the right one.
    5. Sessions are bounded: the one that was used longest ago goes for a new one, unless it has something to do.

Limits.  A stream that broke is not taken up again (``Last-Event-ID``), and JSON-RPC batches are refused, as the
revisions of the protocol after 2025-03-26 do.
"""

from __future__ import annotations

import hmac
import math
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from typing import Any

import attrs
import trio

from toolrt.errors import DefinitionRefused
from toolrt.plugins.mcp._outbox import News, Outbox, as_json
from toolrt.plugins.mcp._serve import (
    INVALID_REQUEST,
    MESSAGE_MOST,
    REVISIONS,
    UNSENT_MOST,
    Id,
    MessageRefused,
    ServedConnection,
    ServedTools,
    message_of,
    request_id,
)

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]

#: Sessions of one application.
_SESSIONS_MOST = 100
#: Characters that a token has at least: it keeps out what else runs on this machine.
_TOKEN_LEAST = 16

_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?")
_SESSION = "mcp-session-id"
_JSON, _EVENTS = "application/json", "text/event-stream"


class _Answered(Exception):
    """A request is answered with a status and a text."""

    def __init__(self, status: int, why: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(why)
        self.status = status
        self.headers = headers


@attrs.define(eq=False)
class _HostStream:
    """What one request is still to be sent."""

    outbox: Outbox
    #: Whether nothing is added any more: the answer has been, or there will be none.
    is_complete: bool = False


class _Session:
    """One host's conversation, and the streams on which it hears of it."""

    def __init__(self, served: ServedTools) -> None:
        self.connection = ServedConnection(served, self)
        self.news = News()
        #: Of each request that is open, by its id.
        self.streams: dict[Id, _HostStream] = {}
        #: What belongs to no request.
        self.questions = Outbox(self.news)
        #: Whether the host has its GET stream open.
        self.listens = False

    @property
    def is_idle(self) -> bool:
        """Whether the host waits for nothing of it."""
        return not (self.streams or self.listens or self.connection.is_busy)

    @property
    def unsent(self) -> int:
        """Bytes that wait for the host."""
        return self.questions.bytes + sum(one.outbox.bytes for one in self.streams.values())

    def put(self, message: dict[str, Any], of: Id | None, droppable_above: float = math.inf) -> None:
        """See `HostWire.put`; what the host has no stream for is dropped."""
        if of is None:
            self.questions.put(message)
        elif (stream := self.streams.get(of)) is not None and stream.outbox.bytes < droppable_above:
            stream.is_complete = "method" not in message
            stream.outbox.put(message)

    def give_up(self, of: Id) -> None:
        """See `HostWire.give_up`."""
        if of in self.streams:
            self.streams[of].is_complete = True
            self.news.tell()

    async def run(self) -> None:
        """Run its calls until it has ended.

        Checkpoint: always.
        """
        await self.connection.run()
        self.news.tell()


class HttpApp:
    """An ASGI 3 application that serves MCP hosts on this machine by streamable HTTP, at ``/mcp``.

    It runs on Trio, below any server that has a lifespan: Hypercorn does.

    Args:
        served: makes what a new session is served; an `Elicitation` is for one.
        token: what every request has as ``Authorization: Bearer``; 16 characters or more.
        origins: web pages that may use it, such as ``https://example.com``; a request of any other page is refused.

    Raises:
        DefinitionRefused: the token is too short, or no text of visible ASCII.

    Example::

        app = mcp.HttpApp(lambda: mcp.ServedTools(Runtime(registry)), token=secrets.token_urlsafe())
        await hypercorn.trio.serve(app, config)
    """

    def __init__(self, served: Callable[[], ServedTools], *, token: str, origins: Collection[str] = ()) -> None:
        if len(token) < _TOKEN_LEAST or not all("!" <= char <= "~" for char in token):
            raise DefinitionRefused(
                "mcp.HttpApp(token)", f"{_TOKEN_LEAST} or more visible ASCII characters", f"{len(token)} characters"
            )
        self._served = served
        #: As of the argument.
        self.token = token
        self._origins = frozenset(origins)
        #: By id; the one that was used last is last.
        self._sessions: dict[str, _Session] = {}
        #: Runs the sessions' calls; None: the server has not started, or is about to end.
        self._nursery: trio.Nursery | None = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        """Serve a request, or the server's life.

        Checkpoint: always.
        """
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        else:
            try:
                await self._serve(scope, receive, send)
            except _Answered as answered:
                headers = [("content-type", "text/plain; charset=utf-8"), *answered.headers]
                await _respond(send, answered.status, headers, str(answered).encode())
            except MessageRefused as refused:
                status = 400 if refused.of is None else 200
                await _respond(send, status, [("content-type", _JSON)], as_json(refused.message))

    async def _live(self, receive: _Receive, send: _Send) -> None:
        await receive()
        try:
            async with trio.open_nursery() as self._nursery:
                await send({"type": "lifespan.startup.complete"})
                await receive()
                for session in self._sessions.values():
                    session.connection.end()
        finally:
            self._nursery = None
            self._sessions.clear()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self._check(scope["path"], headers)
        if scope["method"] == "POST":
            await self._post(headers, receive, send)
        elif scope["method"] == "GET":
            await self._listen(self._session(headers), headers, receive, send)
        elif scope["method"] == "DELETE":
            session = self._session(headers)
            del self._sessions[headers[_SESSION]]
            session.connection.end()
            session.news.tell()
            await _respond(send, 204, [], b"")
        else:
            raise _Answered(405, "expected POST, GET or DELETE", [("allow", "POST, GET, DELETE")])

    def _check(self, path: str, headers: dict[str, str]) -> None:
        """Refuse a request that is not for this server, or has no right to it."""
        if _LOOPBACK.fullmatch(headers.get("host", "")) is None:
            raise _Answered(403, "expected a Host that is this machine's loopback")
        if "origin" in headers and headers["origin"] not in self._origins:
            raise _Answered(403, "web pages of this Origin may not use the server")
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self.token.encode()):
            raise _Answered(401, "expected Authorization: Bearer and the token", [("www-authenticate", "Bearer")])
        if path != "/mcp":
            raise _Answered(404, "there is /mcp alone")
        if headers.get("mcp-protocol-version", REVISIONS[-1]) not in REVISIONS:
            raise _Answered(400, f"expected an MCP-Protocol-Version of {', '.join(REVISIONS)}")

    def _session(self, headers: dict[str, str]) -> _Session:
        if _SESSION not in headers:
            raise _Answered(400, "expected an Mcp-Session-Id: initialize gives one")
        session = self._sessions.pop(headers[_SESSION], None)
        if session is None:
            raise _Answered(404, "there is no such session any more: initialize again")
        self._sessions[headers[_SESSION]] = session
        return session

    async def _post(self, headers: dict[str, str], receive: _Receive, send: _Send) -> None:
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            raise _Answered(415, f"expected {_JSON}")
        body = await _body(receive)
        if body is None:
            return  # the host left before it had said all
        message = message_of(body)
        if message.get("method") == "initialize" and _SESSION not in headers:
            await self._initialize(message, send)
            return
        session = self._session(headers)
        if session.unsent > UNSENT_MOST:
            raise _Answered(503, "the host reads too little of what it asked for")
        id = request_id(message) if "method" in message else None
        if id is None:
            session.connection.do(message)
            await _respond(send, 202, [], b"")
            return
        if id in session.streams:
            raise MessageRefused(
                INVALID_REQUEST, f"the id {id!r:.100} is that of a request that is not answered yet", id
            )
        stream = session.streams[id] = _HostStream(Outbox(session.news))
        try:
            session.connection.do(message)
            if stream.is_complete and message["method"] != "tools/call":
                await _respond(send, 200, [("content-type", _JSON)], stream.outbox.take()[0])
            else:
                await self._stream(session, stream, receive, send)
        finally:
            del session.streams[id]

    async def _initialize(self, message: dict[str, Any], send: _Send) -> None:
        """Begin a session, and forget it at once if it cannot be."""
        id = request_id(message)
        if id is None:
            raise MessageRefused(INVALID_REQUEST, "expected an id")
        if self._nursery is None:
            raise _Answered(503, "the server is about to end")
        if len(self._sessions) >= _SESSIONS_MOST:
            idle = next((name for name, one in self._sessions.items() if one.is_idle), None)
            if idle is None:
                raise _Answered(503, f"{_SESSIONS_MOST} sessions are in use")
            self._sessions.pop(idle).connection.end()
        session = _Session(self._served())
        stream = session.streams[id] = _HostStream(Outbox(session.news))
        session.connection.do(message)
        del session.streams[id]
        name = secrets.token_urlsafe(24)
        self._sessions[name] = session
        self._nursery.start_soon(session.run)
        await _respond(send, 200, [("content-type", _JSON), (_SESSION, name)], stream.outbox.take()[0])

    async def _listen(self, session: _Session, headers: dict[str, str], receive: _Receive, send: _Send) -> None:
        if _EVENTS not in headers.get("accept", ""):
            raise _Answered(406, f"expected Accept: {_EVENTS}")
        if session.listens:
            raise _Answered(409, "the session has a stream already")
        session.listens = True
        try:
            await self._stream(session, None, receive, send)
        finally:
            session.listens = False
            session.news.tell()

    async def _stream(self, session: _Session, own: _HostStream | None, receive: _Receive, send: _Send) -> None:
        """Send what one request is to be sent, or without one what belongs to none, until its end or the host's."""

        async def leave_with_the_host() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave_with_the_host)
            headers = [("content-type", _EVENTS), ("cache-control", "no-cache, no-transform")]
            await send({"type": "http.response.start", "status": 200, "headers": _encoded(headers)})
            is_over = False
            while not is_over:
                is_over = session.connection.over.is_set() if own is None else own.is_complete
                boxes = [] if own is None else [own.outbox]
                if own is None or not session.listens:
                    boxes.insert(0, session.questions)
                taken = [(box, box.take()) for box in boxes]
                events = b"".join(b"event: message\ndata: " + one + b"\n\n" for _, some in taken for one in some)
                if events:
                    await send({"type": "http.response.body", "body": events, "more_body": True})
                    for box, some in taken:
                        box.sent(some)
                elif not is_over:
                    await session.news.wait()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            nursery.cancel_scope.cancel()


async def _body(receive: _Receive) -> bytes | None:
    """All of a request's body; None: the host left before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > MESSAGE_MOST:
            raise _Answered(413, f"a message of more than {MESSAGE_MOST:,} bytes")
        if not message.get("more_body", False):
            return bytes(body)


async def _respond(send: _Send, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    headers = [*headers, ("content-length", str(len(body)))] if status != 204 else headers
    await send({"type": "http.response.start", "status": status, "headers": _encoded(headers)})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]

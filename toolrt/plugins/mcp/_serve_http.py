"""Serves MCP hosts by streamable HTTP, as an ASGI application; the conversation is that of `toolrt.plugins.mcp.serve`.

Rules.
    1. Each message is a POST.  It is taken when its body has come whole, without a checkpoint between, so messages take
       their tickets in the order in which their bodies end.  Only a host that waits for no answer between two
       requests leaves that order open.
    2. What is answered at once goes back as one JSON object, and a call as an event stream: its progress, then its
       answer.  Questions to the host go to its GET stream, else to whichever stream is open.
    3. A host that leaves a stream cancels nothing, as the protocol says.  It takes the stream up again by a GET with
       ``Last-Event-ID``, and gets what came behind that event, of this stream alone.  A session keeps its latest
       events, up to `_KEPT_MOST` bytes; a host that asks for what is not kept any more is refused.
    4. A request passes three checks before it is looked at: its Host is this machine's loopback, so a name that a web
       page points here is none; its Origin, if it has one, was allowed; its token is the right one.
    5. Sessions are bounded: the one that was used longest ago goes for a new one, unless it has something to do.

Limits.  JSON-RPC batches are refused, as the revisions of the protocol after 2025-03-26 do.
"""

from __future__ import annotations

import hmac
import math
import re
import secrets
from collections import deque
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
    id_in_use,
    message_of,
    request_id,
)

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]

#: Sessions of one application.
_SESSIONS_MOST = 100
#: The first revision whose hosts get an event's id before there is a message.
_PRIMED_FROM = "2025-11-25"
#: Bytes of events that a session keeps for a stream that broke.
_KEPT_MOST = 4 * 1024 * 1024
#: Characters that a token has at least: it keeps out what else runs on this machine.
_TOKEN_LEAST = 16

_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?")
_SESSION = "mcp-session-id"
#: The number of the stream, and that of its event.
_EVENT_ID = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
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

    #: Of the session's streams; 0 is the GET stream, for what belongs to no request.
    number: int
    outbox: Outbox
    #: Whether nothing is added any more: the answer has been, or there will be none.
    is_complete: bool = False
    #: Whether the host has it open.
    is_open: bool = True
    #: How many events it has had.
    events: int = 0


class _Session:
    """One host's conversation, and the streams on which it hears of it."""

    def __init__(self, served: ServedTools) -> None:
        self.connection = ServedConnection(served, self)
        self.news = News()
        #: Of each request that is open, or whose stream broke before its end, by its id.
        self.streams: dict[Id, _HostStream] = {}
        #: What belongs to no request.
        self.general = _HostStream(0, Outbox(self.news), is_open=False)
        self._begun = 0
        #: The latest events: the stream of each, its number there, and itself.
        self._kept: deque[tuple[int, int, bytes]] = deque()
        self._kept_bytes = 0

    @property
    def is_idle(self) -> bool:
        """Whether the host waits for nothing of it."""
        is_heard = self.general.is_open or any(one.is_open for one in self.streams.values())
        return not (is_heard or self.connection.is_busy)

    @property
    def unsent(self) -> int:
        """Bytes that wait for the host."""
        return self.general.outbox.bytes + sum(one.outbox.bytes for one in self.streams.values())

    def begin(self, of: Id) -> _HostStream:
        """The stream of a new request."""
        self._begun += 1
        stream = self.streams[of] = _HostStream(self._begun, Outbox(self.news))
        return stream

    def put(self, message: dict[str, Any], of: Id | None, droppable_above: float = math.inf) -> None:
        """See `HostWire.put`; what the host has no stream for is dropped."""
        if of is None:
            self.general.outbox.put(message)
        elif (stream := self.streams.get(of)) is not None and stream.outbox.bytes < droppable_above:
            stream.is_complete = "method" not in message
            stream.outbox.put(message)
            self.keep(of, stream)

    def give_up(self, of: Id) -> None:
        """See `HostWire.give_up`."""
        if of in self.streams:
            self.streams[of].is_complete = True
            self.keep(of, self.streams[of])
            self.news.tell()

    def keep(self, of: Id, stream: _HostStream) -> None:
        """Keep what a stream was still to be sent, if the host left it, and forget the stream if that was all."""
        if not stream.is_open:
            waiting = stream.outbox.take()
            self.events(stream, waiting)
            stream.outbox.sent(waiting)
            if stream.is_complete and self.streams.get(of) is stream:
                del self.streams[of]

    def events(self, stream: _HostStream, messages: Iterable[bytes]) -> bytes:
        """The next events of a stream, which are kept."""
        made: list[bytes] = []
        for message in messages:
            stream.events += 1
            made.append(b"id: %d-%d\nevent: message\ndata: %s\n\n" % (stream.number, stream.events, message))
            self._kept.append((stream.number, stream.events, made[-1]))
            self._kept_bytes += len(made[-1])
        while self._kept_bytes > _KEPT_MOST:
            self._kept_bytes -= len(self._kept.popleft()[2])
        return b"".join(made)

    def taken_up(self, id: str) -> tuple[_HostStream, bytes]:
        """The stream of an event that the host saw last, and what came behind it.

        Raises:
            _Answered: the host still has it open, or what came is not kept.
        """
        found = _EVENT_ID.fullmatch(id)
        number, last = (int(found[1]), int(found[2])) if found is not None else (0, -1)
        known = [one for one in (self.general, *self.streams.values()) if one.number == number]
        # What ended, and is known by its events alone.
        stream = known[0] if known else _HostStream(number, Outbox(self.news), is_complete=True, is_open=False)
        if stream.is_open:
            raise _Answered(409, "the session has that stream open already")
        kept = {place: event for of, place, event in self._kept if of == number and place >= last}
        if last < 0 or not ({last, last + 1} & kept.keys() or (known and stream.events == last)):
            raise _Answered(400, "what came behind that event is not kept any more")
        return stream, b"".join(event for place, event in kept.items() if place > last)

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
            raise id_in_use(id)
        stream = session.begin(id)
        try:
            session.connection.do(message)
            if stream.is_complete and message["method"] != "tools/call":
                await _respond(send, 200, [("content-type", _JSON)], stream.outbox.take()[0])
            else:
                await self._stream(session, stream, _primer(stream, headers), receive, send)
        except MessageRefused:
            stream.is_complete = True
            raise
        finally:
            stream.is_open = False
            session.keep(id, stream)

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
        stream = session.begin(id)
        session.connection.do(message)
        del session.streams[id]
        name = secrets.token_urlsafe(24)
        self._sessions[name] = session
        self._nursery.start_soon(session.run)
        await _respond(send, 200, [("content-type", _JSON), (_SESSION, name)], stream.outbox.take()[0])

    async def _listen(self, session: _Session, headers: dict[str, str], receive: _Receive, send: _Send) -> None:
        if _EVENTS not in headers.get("accept", ""):
            raise _Answered(406, f"expected Accept: {_EVENTS}")
        if "last-event-id" in headers:
            stream, missed = session.taken_up(headers["last-event-id"])
        elif session.general.is_open:
            raise _Answered(409, "the session has a stream already")
        else:
            stream, missed = session.general, _primer(session.general, headers)
        of = next((id for id, one in session.streams.items() if one is stream), "")
        try:
            await self._stream(session, stream, missed, receive, send)
        finally:
            stream.is_open = False
            if stream is not session.general:
                session.keep(of, stream)
            session.news.tell()

    async def _stream(self, session: _Session, own: _HostStream, events: bytes, receive: _Receive, send: _Send) -> None:
        """Send these events, and what a stream is to be sent, until its end or the host's."""

        async def leave_with_the_host() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        own.is_open = True
        general = session.general
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave_with_the_host)
            headers = [("content-type", _EVENTS), ("cache-control", "no-cache, no-transform")]
            await send({"type": "http.response.start", "status": 200, "headers": _encoded(headers)})
            is_over = False
            while not is_over:
                is_over = session.connection.over.is_set() if own is general else own.is_complete
                boxes = [own.outbox] if own is general or general.is_open else [general.outbox, own.outbox]
                taken = [(box, some) for box in boxes if (some := box.take())]
                events += session.events(own, [one for _, some in taken for one in some])
                if events:
                    try:
                        await send({"type": "http.response.body", "body": events, "more_body": True})
                    finally:
                        for box, some in taken:
                            box.sent(some)
                    events = b""
                elif not is_over:
                    await session.news.wait()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            nursery.cancel_scope.cancel()


def _primer(stream: _HostStream, headers: dict[str, str]) -> bytes:
    """An event without data, which tells the host how to take a stream up that breaks before the first that has some.

    Hosts of earlier revisions take each event for a message.
    """
    knows = headers.get("mcp-protocol-version", "") >= _PRIMED_FROM
    return b"id: %d-%d\ndata: \n\n" % (stream.number, stream.events) if knows else b""


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

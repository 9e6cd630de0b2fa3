"""A session by the official SDK, over any pair of its streams.

Rules.
    1. What a call says while it runs is taken from the stream itself, in the order in which it was said, and before the
       SDK sees it: the SDK starts a task for each such message, and Trio starts tasks in either order (found by
       exploring it: three messages in a row arrive in all six orders).  What comes behind the call's answer is not
       taken: whether the call's own task has run by then is Trio's choice.
    2. A server's answer is not checked by the SDK against the schema that the server states for it: that check has no
       bound.  `toolrt.plugins.mcp._tools` makes it, with one.
    3. The handshake is ``initialize``, which every server of today answers; one that knows only later revisions says
       so, and is asked as they ask.

It imports the SDK, so nothing imports it until a server is connected.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import anyio
import anyio.abc
import attrs
import trio
from pydantic import ValidationError

from toolrt.plugins.mcp._port import CallAnswer, Hints, Offered, Progress, Talk
from toolrt.plugins.mcp._server import McpServer
from toolrt.plugins.mcp._versions import (
    FIRST,
    UNSUPPORTED_REVISION,
    ClientSession,
    SdkError,
    call_request,
    cancel_notification,
    field,
    in_memory,
    message_of,
    types,
)
from toolrt.processes import ProgramNotes
from toolrt.processes._unanswered import Gone, Refused, Unanswered

#: Tools of one server, and pages in which it lists them.
_TOOLS_MOST = 1_000
_PAGES_MOST = 100

#: What a stream raises that was closed.
_CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError)

#: Characters of a server's text that an error shows.
_SHOWN = 2_000


async def hold(streams: tuple[Any, Any], talk: Talk) -> bool:
    """Open a session over these streams, and `talk` until it returns or the other side has closed them.

    Returns:
        Whether the other side has closed them.

    Raises:
        Unanswered: the server does not speak MCP, or none that is known here.
    """
    read, write = streams
    session = _SdkSession()
    client = ClientSession(
        _Tapped(read, session),
        _WatchedStream(write, session),
        client_info=types.Implementation(name="toolrt", version=version("toolrt")),
    )
    async with client:
        session.client = client
        try:
            await client.initialize()
        except SdkError as error:
            if error.error.code != UNSUPPORTED_REVISION:
                raise _refused("initialize", error, session) from None
            try:
                await client.discover()
            except (SdkError, ValidationError, RuntimeError) as second:
                raise _refused("server/discover", second, session) from None
        except (ValidationError, RuntimeError) as error:
            raise _refused("initialize", error, session) from None
        try:
            with session.talking:
                await talk(session)
        finally:
            session.release()
    return session.lost


@attrs.define(eq=False)
class _SdkSession:
    """A session that the SDK speaks."""

    lost: bool = False
    changed: bool = False
    #: Whether it has ended.
    over: bool = False
    #: Cancelled when the other side has closed its stream.
    talking: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    client: Any = attrs.field(init=False)
    #: What each call that runs says is for, by its token; until its answer comes.
    _running: dict[str, Progress] = attrs.field(factory=dict)
    #: The tokens of the calls that were sent, by the id of their request.
    _sent: dict[str, str] = attrs.field(factory=dict)
    _numbers: itertools.count[int] = attrs.field(factory=itertools.count)
    #: The scopes of the calls that wait for an answer; of version 1 alone.
    _waiting: dict[trio.CancelScope, None] = attrs.field(factory=dict)

    async def tools(self) -> tuple[Offered, ...]:
        """See `Session.tools`."""
        found: list[Offered] = []
        cursor: str | None = None
        for _ in range(_PAGES_MOST):
            try:
                page = await self.client.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            except (SdkError, ValidationError, RuntimeError) as error:
                raise _refused("tools/list", error, self) from None
            found.extend(map(offered_of, page.tools))
            if len(found) > _TOOLS_MOST:
                raise Refused(f"it lists more than {_TOOLS_MOST:,} tools")
            cursor = field(page, "next_cursor")
            if cursor is None:
                return tuple(found)
        raise Refused(f"it lists its tools on more than {_PAGES_MOST} pages")

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Progress) -> CallAnswer:
        """See `Session.call`."""
        token = f"toolrt-{next(self._numbers)}"
        self._running[token] = progress
        try:
            result = await self._answer_to(call_request(name, arguments, token))
        except (SdkError, ValidationError, RuntimeError) as error:
            raise _refused("the call", error, self) from None
        except trio.Cancelled:
            if FIRST and not self.over:
                await self._tell_cancelled(token)  # noqa: ASYNC102  shielded, and at most a second
            raise
        finally:
            self._running.pop(token, None)
            self._sent = {number: other for number, other in self._sent.items() if other != token}
        return answer_of(result)

    async def _answer_to(self, request: Any) -> Any:
        if not FIRST:
            return await self.client.send_request(request, types.CallToolResult)
        # Version 1 leaves a request without an answer for ever when its session ends.
        with trio.CancelScope() as scope:
            self._waiting[scope] = None
            try:
                return await self.client.send_request(request, types.CallToolResult)
            finally:
                del self._waiting[scope]
        raise Gone("the connection was lost")

    async def _tell_cancelled(self, token: str) -> None:
        for id in [number for number, other in self._sent.items() if other == token]:
            with trio.move_on_after(1.0, shield=True), contextlib.suppress(*_CLOSED):
                await self.client.send_notification(cancel_notification(int(id)))

    def release(self) -> None:
        """The session ends: no call waits for an answer any more."""
        self.over = True
        for scope in list(self._waiting):
            scope.cancel()

    def takes(self, item: Any) -> bool:
        """Whether a message is for this, and not for the SDK."""
        if isinstance(item, Exception):
            return False
        message = message_of(item)
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._running.pop(self._sent.pop(str(message.id), ""), None)
        if not isinstance(message, types.JSONRPCNotification):
            return False
        method, params = message.method, message.params or {}
        if method == "notifications/tools/list_changed":
            self.changed = True
        elif method == "notifications/progress":
            running = self._running.get(str(params.get("progressToken")))
            if running is not None:
                running(_told(params))
        # Other unasked messages are dropped here; the SDK would start a task for each to drop it.
        return method not in ("notifications/cancelled",)

    def sends(self, item: Any) -> None:
        """A message goes to the server."""
        message = message_of(item)
        if isinstance(message, types.JSONRPCRequest):
            token = ((message.params or {}).get("_meta") or {}).get("progressToken")
            if token in self._running:
                self._sent[str(message.id)] = token

    def lose(self) -> None:
        """The other side has closed its stream."""
        self.lost = True
        self.talking.cancel()


class _Tapped(anyio.abc.ObjectReceiveStream[Any]):
    """A stream of messages for the SDK; a session takes some of them."""

    def __init__(self, inner: Any, session: _SdkSession) -> None:
        self._inner = inner
        self._session = session

    async def receive(self) -> Any:
        try:
            while True:
                item = await self._inner.receive()
                if not self._session.takes(item):
                    return item
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._session.lose()
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        await self._inner.aclose()


class _WatchedStream(anyio.abc.ObjectSendStream[Any]):
    """A stream of messages to the server; a session sees each before it goes."""

    def __init__(self, inner: Any, session: _SdkSession) -> None:
        self._inner = inner
        self._session = session

    async def send(self, item: Any, /) -> None:
        self._session.sends(item)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _told(params: Mapping[str, Any]) -> dict[str, Any]:
    """What a call says of how far it is, and nothing that no progress is."""
    told: dict[str, Any] = {}
    for key in ("progress", "total"):
        value = params.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            told[key] = value
    if isinstance(params.get("message"), str):
        told["message"] = params["message"]
    return told


def answer_of(result: Any) -> CallAnswer:
    """What the SDK's result of a call says."""
    return CallAnswer(
        tuple(block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content),
        field(result, "structured_content"),
        bool(field(result, "is_error")),
    )


def offered_of(tool: Any) -> Offered:
    """What the SDK's description of a tool says."""
    stated = tool.annotations
    said = {
        name: None if stated is None else field(stated, f"{name}_hint")
        for name in ("read_only", "destructive", "idempotent", "open_world")
    }
    return Offered(
        tool.name,
        field(tool, "input_schema"),
        tool.description or tool.title or "",
        Hints(**{name: value for name, value in said.items() if value is not None}),
        field(tool, "output_schema"),
    )


def _refused(what: str, error: Exception, session: _SdkSession) -> Unanswered:
    if isinstance(error, SdkError):
        told: Any = error.error
        if told.code == types.CONNECTION_CLOSED and session.lost:
            return Gone("the connection was lost")
        return Refused(f"it answered {what} with an error: {told.message[:_SHOWN]} (code {told.code})")
    return Refused(f"its answer to {what} is not what the protocol says ({type(error).__name__})")


@attrs.frozen
class InsidePeer:
    """Connects to a server object of the SDK: no program, no pipe, nothing that a simulation could not control.

    The SDK's own transport in memory runs the server as it runs over pipes, message by message, so what is explored
    here is the SDK's session and dispatcher themselves.  Its tools must be ``async def``: a plain function is run in a
    thread.
    """

    #: An ``MCPServer`` (``FastMCP`` in version 1) or a low-level ``Server``.
    _server: Any

    async def serve(self, server: McpServer, talk: Talk, notes: ProgramNotes) -> None:
        """See `Peer.serve`."""
        async with in_memory(self._server) as streams:
            lost = await hold(streams, talk)
        await trio.lowlevel.cancel_shielded_checkpoint()
        if lost:
            notes.ended = "it closed the connection"

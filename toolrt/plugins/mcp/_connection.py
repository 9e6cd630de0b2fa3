"""One MCP server: what it offers now, and calls of its tools.

Rules.
    1. `toolrt.processes._connection` starts the server, and starts it again; a call that waits when the connection is
       lost ends.
    2. A tool is called only while its server offers it as it did when it was connected: same schema, same hints.  A
       server cannot turn a tool that was believed to be read-only into another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import trio

from toolrt.plugins.mcp._port import CallAnswer, Offered, Peer, Progress, Session
from toolrt.plugins.mcp._server import McpServer
from toolrt.processes._connection import Attempt, Connection
from toolrt.processes._unanswered import Gone, Refused, Unanswered, Unsent

_LOST = "the connection was lost while the call ran; effects may have landed"


@attrs.define(eq=False)
class _ListedSession:
    """A session, and what its server offers."""

    session: Session
    #: In the server's order.
    listed: tuple[Offered, ...]
    #: Held by the task that asks what the server offers now.
    listing: trio.Lock = attrs.field(factory=trio.Lock)

    @property
    def lost(self) -> bool:
        return self.session.lost

    async def offers(self) -> tuple[Offered, ...]:
        """What the server offers now.

        Raises:
            Unsent: the tools have changed, and the server does not say how.
        """
        session = self.session
        if session.changed:
            async with self.listing:
                if session.changed:
                    session.changed, known = False, False
                    try:
                        self.listed = await session.tools()
                        known = True
                    except Unanswered as error:
                        raise Unsent(f"its tools have changed, and it does not say how: {error}") from None
                    finally:
                        # A cancelled task leaves the question to the next.
                        session.changed = session.changed or not known
        return self.listed


@attrs.define(eq=False)
class McpConnection(Connection[_ListedSession]):
    """The way to one MCP server."""

    server: McpServer
    _peer: Peer

    async def _serve(self, attempt: Attempt[_ListedSession]) -> None:
        async def talk(session: Session) -> None:
            await attempt.hold(_ListedSession(session, await session.tools()))

        await self._peer.serve(self.server, talk, attempt.notes)

    async def offers(self) -> tuple[Offered, ...]:
        """What the server offers now.

        Raises:
            Unanswered: it cannot be connected, or does not say.
        """
        return await (await self.connected()).offers()

    def ask_anew(self) -> None:
        """Have the server asked what it offers, before anything else is asked of it."""
        if self.last.session is not None:
            self.last.session.session.changed = True

    @property
    def changed(self) -> bool:
        """Whether the server said that its tools are others now."""
        return self.last.session is not None and self.last.session.session.changed

    async def call(self, tool: Offered, arguments: Mapping[str, Any], progress: Progress, *, again: bool) -> CallAnswer:
        """Call a tool.

        Args:
            again: whether a call whose connection was lost is sent a second time.

        Raises:
            Unanswered: there is no answer; the text says why.

        Checkpoint: always.
        """
        try:
            return await self._call_once(tool, arguments, progress)
        except Gone:
            if not again:
                raise
        try:
            return await self._call_once(tool, arguments, progress)
        except Unsent as error:
            raise Gone(f"{_LOST}, and it could not be sent again: {error}") from None

    async def _call_once(self, tool: Offered, arguments: Mapping[str, Any], progress: Progress) -> CallAnswer:
        known = await self.connected()
        offered = {one.name: one for one in await known.offers()}
        _check_same(tool, offered.get(tool.name))
        try:
            answer = await known.session.call(tool.name, arguments, progress)
        except Gone:
            raise Gone(_LOST) from None
        except Refused:
            self.answered()
            raise
        self.answered()
        return answer


def _check_same(known: Offered, now: Offered | None) -> None:
    """Refuse a tool that is not what it was.

    Raises:
        Unsent: the server does not offer it any more, or offers something else by its name.
    """
    if now is None:
        raise Unsent(f"it does not offer {known.name!r} any more")
    if (now.input_schema, now.hints) != (known.input_schema, known.hints):
        raise Unsent(f"it offers another tool by the name {known.name!r} than when it was connected")

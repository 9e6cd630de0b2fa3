"""One language server: its findings, asked for over a connection that lasts.

Rules.
    1. `toolrt.processes._connection` starts the server when a question first needs it, and starts it again.
    2. A question whose connection is lost is asked again, as long as it waits.
    3. Only two wait for the end of a server: a question that needs a new start, and the block that is left.
"""

from __future__ import annotations

from typing import Any

import attrs
import trio

from toolrt.plugins.lsp._port import Channel
from toolrt.plugins.lsp._server import LanguagePeer, LanguageServer
from toolrt.plugins.lsp._session import LanguageAnswer, LanguageSession
from toolrt.processes._connection import Attempt, Connection
from toolrt.processes._unanswered import GivenUp, Gone, Unanswered, Unsent

#: Seconds in which a server that is asked to end has to say that it will.
_LINGER = 1.0


@attrs.define(eq=False)
class LanguageConnection(Connection[LanguageSession]):
    """The way to one language server."""

    server: LanguageServer
    _peer: LanguagePeer
    _root: str
    _wire: Any

    async def _serve(self, attempt: Attempt[LanguageSession]) -> None:
        async def talk(channel: Channel) -> None:
            session = LanguageSession(self.server, self._root, channel, self._wire, attempt.notes)
            try:
                await session.start()
                await attempt.hold(session)
                with trio.move_on_after(_LINGER):
                    await session.stop()
            finally:
                session.end("the connection was lost")

        await self._peer.serve(self.server, self._root, talk, attempt.notes)

    async def findings(self, path: str, text: str) -> LanguageAnswer:
        """What the server finds in the file, whose text this is.

        Raises:
            Unanswered: there is no server to ask, or it did not say, or not in time; the text says why.

        Checkpoint: always.
        """
        with trio.move_on_after(self.server.wait):
            while True:
                try:
                    session = await self.connected()
                    answer = await session.findings(path, text)
                except GivenUp:
                    raise
                except (Gone, Unsent):
                    continue
                self.answered()
                return answer
        raise Unanswered(f"it gave no findings within {self.server.wait:g} s")

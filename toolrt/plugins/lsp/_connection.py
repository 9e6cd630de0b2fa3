"""The way to one server: started when it is first needed, and anew when it was lost.

Rules.
    1. Nothing is started before a question is asked.
    2. A connection that was lost is made anew for the next question, or the one that waits, after a pause that doubles,
       and not while anything of the one before is left.  After so many losses in a row without one answer the server is
       given up.
    3. Starting is no question's own: a question that ends leaves it to go on, for the next.
    4. Only two wait for the end of a server: a question that needs a new start, and the block that is left.
"""

from __future__ import annotations

import math
from typing import Any

import attrs
import trio

from toolrt.errors import error_text
from toolrt.plugins.lsp._port import Channel, LanguageNotes, LanguagePeer, Lost
from toolrt.plugins.lsp._server import LanguageServer
from toolrt.plugins.lsp._session import LanguageAnswer, LanguageSession, NoFindings
from toolrt.processes import pause_before_restart

__all__ = ["LanguageConnection"]

#: Seconds in which a server that is asked to end has to say that it will.
_LINGER = 1.0


@attrs.define(eq=False)
class _Start:
    """One start of the server, and what became of it."""

    notes: LanguageNotes = attrs.field(factory=LanguageNotes)
    #: The session, once it can be used.
    session: LanguageSession | None = None
    #: Within which it has to become usable.
    limit: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    #: Set when there is a session, or will be none.
    settled: trio.Event = attrs.field(factory=trio.Event)
    #: Set when it is to end.
    closing: trio.Event = attrs.field(factory=trio.Event)
    #: Set when nothing of it is left.
    over: trio.Event = attrs.field(factory=trio.Event)


@attrs.define(eq=False)
class LanguageConnection:
    """The way to one server."""

    server: LanguageServer
    _peer: LanguagePeer
    _root: str
    _wire: Any
    _nursery: trio.Nursery
    _attempt: _Start | None = attrs.field(default=None, init=False)
    _lost_in_a_row: int = attrs.field(default=0, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    #: How many times it was started.
    starts: int = attrs.field(default=0, init=False)

    @property
    def notes(self) -> LanguageNotes:
        """What is known of the present connection, or of the last."""
        return LanguageNotes() if self._attempt is None else self._attempt.notes

    @property
    def session(self) -> LanguageSession | None:
        """The connection, where there is one that can be used now."""
        session = None if self._attempt is None or self._attempt.closing.is_set() else self._attempt.session
        return session if session is not None and session.lost is None else None

    async def findings(self, path: str, text: str) -> LanguageAnswer:
        """What the server finds in the file, whose text this is.

        Raises:
            Lost: there is no server to ask; the text says why.
            Unanswered: it did not say, or not in time; the text says why.

        Checkpoint: always.
        """
        with trio.move_on_after(self.server.wait):
            while True:
                session = await self._connected()
                try:
                    answer = await session.findings(path, text)
                except Lost:
                    continue
                self._lost_in_a_row = 0
                return answer
        raise NoFindings(f"it gave no findings within {self.server.wait:g} s")

    def renew(self) -> None:
        """The server is started anew when it is next needed: it cannot be told what has changed.

        Checkpoint: never.
        """
        if self._attempt is not None:
            self._attempt.closing.set()
            if self._attempt.session is None:
                # It has nothing to be asked to end by: who does not speak yet is not waited for.
                self._attempt.limit.cancel()

    def close(self) -> None:
        """End the server; what is left of it ends in the nursery.

        Checkpoint: never.
        """
        self._closed = True
        self.renew()

    async def _connected(self) -> LanguageSession:
        while True:
            attempt = self._attempt
            if attempt is not None:
                if attempt.closing.is_set():
                    await attempt.over.wait()
                else:
                    await attempt.settled.wait()
                    if attempt.session is not None and attempt.session.lost is None:
                        return attempt.session
                    await attempt.over.wait()
                if attempt is not self._attempt:
                    continue
            if self._closed:
                raise Lost("it was closed")
            if self._lost_in_a_row > self.server.restarts:
                ended = (
                    "" if attempt is None or attempt.notes.ended is None else f", the last time: {attempt.notes.ended}"
                )
                raise Lost(f"it was lost {self._lost_in_a_row} times in a row and is given up{ended}")
            self._attempt = attempt = _Start()
            self._nursery.start_soon(self._run, attempt)

    async def _run(self, attempt: _Start) -> None:
        """Connect, and hold the connection until it is lost or closed."""
        limit = attempt.limit

        async def talk(channel: Channel) -> None:
            session = LanguageSession(self.server, self._root, channel, self._wire, attempt.notes)
            attempt.notes.ended = None
            try:
                await session.start()
                limit.deadline = math.inf
                attempt.session = session
                attempt.settled.set()
                await attempt.closing.wait()
                with trio.move_on_after(_LINGER):
                    await session.stop()
            finally:
                session.end("the connection was lost")

        try:
            with trio.move_on_after(pause_before_restart(self._lost_in_a_row)):
                await attempt.closing.wait()
            if not attempt.closing.is_set():
                self.starts += 1
                limit.deadline = trio.current_time() + self.server.start_timeout
                with limit:
                    await self._peer.serve(self.server, self._root, talk, attempt.notes)
                if limit.cancelled_caught and not attempt.closing.is_set():
                    attempt.notes.ended = f"it was not ready within {self.server.start_timeout:g} s"
        except* (Lost, NoFindings) as group:
            attempt.notes.ended = str(_first(group))
        except* Exception as group:
            attempt.notes.ended = f"speaking with it failed ({error_text(_first(group))})"
        finally:
            if not attempt.closing.is_set():
                self._lost_in_a_row += 1
            attempt.settled.set()
            attempt.over.set()


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group

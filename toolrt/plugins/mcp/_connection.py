"""One server, connected as long as it is wanted, and anew when it was lost.

Rules.
    1. A connection is lost when the server ends it, by dying or otherwise; each call that waits for it then ends.
    2. It is made anew for the next call, after a pause that doubles, and not while anything of the one before is left.
       A server that was lost so many times in a row without having answered a call is given up.
    3. A tool is called only while its server offers it as it did when it was connected: same schema, same hints.  A
       server cannot turn a tool that was believed to be read-only into another.
    4. Connecting is not the call's: a call that is cancelled leaves it to go on, for the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import trio

from toolrt.plugins.mcp._port import (
    CallAnswer,
    Gone,
    Notes,
    Offered,
    Peer,
    Progress,
    Refused,
    Session,
    Unanswered,
    Unsent,
)
from toolrt.plugins.mcp._server import McpServer
from toolrt.processes import pause_before_restart

__all__ = ["Connection"]


_LOST = "the connection was lost while the call ran; effects may have landed"


@attrs.define(eq=False)
class _Attempt:
    """One start of the server, and what became of it."""

    notes: Notes = attrs.field(factory=Notes)
    #: The session, once it can be used.
    session: Session | None = None
    #: What the server offers, in its order.
    listed: tuple[Offered, ...] = ()
    #: What was raised while it was connected.
    error: BaseException | None = None
    #: Why there is no session; None: there is one, or there may be yet.
    problem: str | None = None
    #: Set when there is a session, or will be none.
    settled: trio.Event = attrs.field(factory=trio.Event)
    #: Set when nothing of it is left.
    over: trio.Event = attrs.field(factory=trio.Event)
    #: Held by who asks what the server offers now.
    listing: trio.Lock = attrs.field(factory=trio.Lock)


@attrs.define(eq=False)
class Connection:
    """The way to one server."""

    server: McpServer
    _peer: Peer
    _nursery: trio.Nursery
    _attempt: _Attempt | None = attrs.field(default=None, init=False)
    #: How many times in a row it was lost without an answered call.
    _lost_in_a_row: int = attrs.field(default=0, init=False)
    #: How many times it was started.
    starts: int = attrs.field(default=0, init=False)
    _scope: trio.CancelScope | None = attrs.field(default=None, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    @property
    def notes(self) -> Notes:
        """What is known of the present connection, or of the last."""
        return Notes() if self._attempt is None else self._attempt.notes

    @property
    def error(self) -> BaseException | None:
        """What was raised while it was connected, if anything was; for people."""
        return None if self._attempt is None else self._attempt.error

    async def offers(self) -> tuple[Offered, ...]:
        """What the server offers now.

        Raises:
            Unanswered: it cannot be connected, or does not say.
        """
        attempt, session = await self._connected()
        if session.changed:
            await self._list(attempt, session)
        return attempt.listed

    def ask_anew(self) -> None:
        """Have the server asked what it offers, before anything else is asked of it."""
        if self._attempt is not None and self._attempt.session is not None:
            self._attempt.session.changed = True

    @property
    def changed(self) -> bool:
        """Whether the server said that its tools are others now."""
        return self._attempt is not None and self._attempt.session is not None and self._attempt.session.changed

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
        attempt, session = await self._connected()
        if session.changed:
            await self._list(attempt, session)
        _check_same(tool, next((one for one in attempt.listed if one.name == tool.name), None))
        try:
            answer = await session.call(tool.name, arguments, progress)
        except Gone:
            raise Gone(_LOST) from None
        except Refused:
            self._lost_in_a_row = 0
            raise
        self._lost_in_a_row = 0
        return answer

    def close(self) -> None:
        """End the connection; what is left of it ends in the nursery.

        Checkpoint: never.
        """
        self._closed = True
        if self._scope is not None:
            self._scope.cancel()

    async def _list(self, attempt: _Attempt, session: Session) -> None:
        async with attempt.listing:
            if session.changed:
                session.changed, known = False, False
                try:
                    attempt.listed = await session.tools()
                    known = True
                except Unanswered as error:
                    raise Unsent(f"its tools have changed, and it does not say how: {error}") from None
                finally:
                    # Who was cancelled meanwhile leaves the question to the next.
                    session.changed = session.changed or not known

    async def _connected(self) -> tuple[_Attempt, Session]:
        """The present session; a new one where that is lost, which may be lost as well by then."""
        while True:
            attempt = self._attempt
            if attempt is not None:
                if not attempt.settled.is_set():
                    await attempt.settled.wait()
                    if attempt.problem is not None:
                        raise Unsent(attempt.problem)
                session = attempt.session
                if session is None:
                    await attempt.over.wait()
                elif not session.lost:
                    return attempt, session
                await attempt.over.wait()
                if attempt is not self._attempt:
                    continue
            if self._closed:
                raise Unsent("the connection was closed")
            if self._lost_in_a_row > self.server.restarts:
                raise Unsent(f"it was lost {self._lost_in_a_row} times in a row and is given up")
            attempt = self._attempt = _Attempt()
            self.starts += 1
            self._nursery.start_soon(self._run, attempt)
            await attempt.settled.wait()
            if attempt.session is not None:
                return attempt, attempt.session
            raise Unsent(attempt.problem or "the connection was closed")

    async def _run(self, attempt: _Attempt) -> None:
        """Connect, and hold the connection until it is lost or closed."""
        limit = trio.CancelScope()
        try:
            with trio.CancelScope() as self._scope:
                if self._closed:
                    self._scope.cancel()
                await trio.sleep(pause_before_restart(self._lost_in_a_row))
                limit.deadline = trio.current_time() + self.server.start_timeout
                with limit:
                    await self._hold(attempt, limit)
        except* Exception as group:
            attempt.error = group
        finally:
            self._scope = None
            if not self._closed:
                self._lost_in_a_row += 1
            if not attempt.settled.is_set():
                attempt.problem = self._problem(attempt, limit.cancelled_caught)
            attempt.settled.set()
            attempt.over.set()

    async def _hold(self, attempt: _Attempt, limit: trio.CancelScope) -> None:
        async with trio.open_nursery() as nursery:

            async def use(session: Session) -> None:
                attempt.listed = await session.tools()
                limit.deadline = math.inf
                attempt.session = session
                attempt.settled.set()

            await self._peer.serve(self.server, lambda session: nursery.start_soon(use, session), attempt.notes)
            nursery.cancel_scope.cancel()

    def _problem(self, attempt: _Attempt, too_slow: bool) -> str:
        said = None if attempt.error is None else _said(attempt.error)
        if said is not None:
            return said
        if too_slow:
            return f"it was not ready within {self.server.start_timeout:g} s"
        return attempt.notes.ended or "the connection was closed"


def _said(error: BaseException) -> str | None:
    """What is told of why there is no connection; None: only that it was lost."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_said, error.exceptions)), None)
    if isinstance(error, Gone):
        return None
    return str(error) if isinstance(error, Unanswered) else f"connecting failed ({type(error).__name__})"


def _check_same(known: Offered, now: Offered | None) -> None:
    """Refuse a tool that is not what it was.

    Raises:
        Unsent: the server does not offer it any more, or offers something else by its name.
    """
    if now is None:
        raise Unsent(f"it does not offer {known.name!r} any more")
    if (now.input_schema, now.hints) != (known.input_schema, known.hints):
        raise Unsent(f"it offers another tool by the name {known.name!r} than when it was connected")

"""The way to one server: its start, its loss, and its next start.

Rules.
    1. A start belongs to no question: a question that is cancelled leaves it to go on, for the next.
    2. After a loss, a question that needs the server starts it again: after a pause that doubles, and not while
       anything of the one before is left.
    3. A server that was lost more than `restarts` times in a row, without an answer between, is given up.
    4. A program that is no server fails its start, and makes no call fail in any other way: what was raised is kept for
       people (`error`), and a model is given its kind only.

A subclass says how to reach the server (`_serve`), and what a session is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import attrs
import trio

from toolrt._plain import counted
from toolrt.processes._conversation import ProgramNotes
from toolrt.processes._unanswered import GivenUp, Gone, Unanswered, Unsent

#: Seconds before the second restart in a row; the first comes at once, and each later one after twice the pause.
_PAUSE = 0.25
#: Seconds of the longest pause.
_PAUSE_MOST = 5.0

_CLOSED = "the connection was closed"


def pause_before_restart(lost_in_a_row: int) -> float:
    """How many seconds to wait before a server that was lost that often (`lost_in_a_row`) is started again."""
    return 0.0 if lost_in_a_row < 2 else min(_PAUSE * 2 ** min(lost_in_a_row - 2, 64), _PAUSE_MOST)


class _Loseable(Protocol):
    @property
    def lost(self) -> object:
        """Whether the connection is lost, or why."""


SessionT = TypeVar("SessionT", bound=_Loseable)


@attrs.define(eq=False)
class Attempt(Generic[SessionT]):
    """One start of a server, and what became of it."""

    notes: ProgramNotes = attrs.field(factory=ProgramNotes)
    #: The session, once it can be used.
    session: SessionT | None = None
    #: What was raised while it was connected.
    error: BaseException | None = None
    #: When it is over: why, in words for a model.
    problem: str | None = None
    #: Within which it has to become usable.
    limit: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    #: Set when there is a session, or will be none.
    settled: trio.Event = attrs.field(factory=trio.Event)
    #: Set when it is to end.
    closing: trio.Event = attrs.field(factory=trio.Event)
    #: Set when nothing of it is left.
    over: trio.Event = attrs.field(factory=trio.Event)

    async def hold(self, session: SessionT) -> None:
        """Hand out a session that can be used, and return when it is to end.

        Checkpoint: always.
        """
        self.limit.deadline = math.inf
        self.session = session
        self.settled.set()
        await self.closing.wait()


@attrs.define(eq=False)
class Connection(ABC, Generic[SessionT]):
    """The way to one server."""

    #: How many times in a row the server may be lost without an answer and started again.
    _restarts: int
    #: Seconds in which a start has to become usable.
    _start_timeout: float
    _nursery: trio.Nursery
    #: The last start; before the first, one that is over.
    last: Attempt[SessionT] = attrs.field(init=False)
    _lost_in_a_row: int = attrs.field(default=0, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    #: How many times the server was started.
    starts: int = attrs.field(default=0, init=False)

    @last.default
    def _none(self) -> Attempt[SessionT]:
        none: Attempt[SessionT] = Attempt()
        none.settled.set()
        none.over.set()
        return none

    @abstractmethod
    async def _serve(self, attempt: Attempt[SessionT]) -> None:
        """Connect, `Attempt.hold` the session, and return when the connection is lost or closed.

        Nothing of the connection is left on return, and neither when this was cancelled.
        """

    @property
    def session(self) -> SessionT | None:
        """The session, where one can be used now."""
        session = self.last.session
        return None if session is None or session.lost or self.last.closing.is_set() else session

    def answered(self) -> None:
        """The server has answered: earlier losses do not count any more."""
        self._lost_in_a_row = 0

    async def connected(self) -> SessionT:
        """The session; a new one, which may be lost by then, where there is none that can be used.

        Raises:
            GivenUp: the server was lost too often, or the connection was closed.
            Unsent: the start failed; a later one may succeed.

        Checkpoint: if there is no session.
        """
        while True:
            attempt = self._start() if self.last.over.is_set() else self.last
            if not attempt.settled.is_set():
                await attempt.settled.wait()
                if attempt.session is None:
                    raise Unsent(attempt.problem or _CLOSED)
                return attempt.session
            if (session := self.session) is not None:
                return session
            await attempt.over.wait()

    def _start(self) -> Attempt[SessionT]:
        if self._closed:
            raise GivenUp(_CLOSED)
        if self._lost_in_a_row > self._restarts:
            problem = self.last.problem
            last = "" if problem is None else f", the last time: {problem}"
            raise GivenUp(f"it was lost {counted(self._lost_in_a_row, 'time')} in a row and is given up{last}")
        attempt = self.last = Attempt()
        self._nursery.start_soon(self._run, attempt)
        return attempt

    def renew(self) -> None:
        """End the server; the next question starts it again.

        Checkpoint: never.
        """
        self.last.closing.set()
        if self.last.session is None:
            # A server that does not speak yet cannot be asked to end.
            self.last.limit.cancel()

    def close(self) -> None:
        """End the server for good; what is left of it ends in the nursery.

        Checkpoint: never.
        """
        self._closed = True
        self.renew()

    async def _run(self, attempt: Attempt[SessionT]) -> None:
        """Connect, and hold the connection until it is lost or closed."""
        try:
            with trio.move_on_after(pause_before_restart(self._lost_in_a_row)):
                await attempt.closing.wait()
            if not attempt.closing.is_set():
                self.starts += 1
                attempt.limit.deadline = trio.current_time() + self._start_timeout
                with attempt.limit:
                    await self._serve(attempt)
        except* Exception as group:
            attempt.error = group
        finally:
            slow = None
            if not attempt.closing.is_set():
                self._lost_in_a_row += 1
                if attempt.limit.cancelled_caught:
                    slow = f"it was not ready within {self._start_timeout:g} s"
            attempt.problem = _said(attempt.error) or slow or attempt.notes.ended
            attempt.settled.set()
            attempt.over.set()


def _said(error: BaseException | None) -> str | None:
    """The reason that a model reads for the end of a connection; None: only that the connection was lost."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_said, error.exceptions)), None)
    if error is None or isinstance(error, Gone):
        return None
    return str(error) if isinstance(error, Unanswered) else f"speaking with it failed ({type(error).__name__})"


class ServersBlock:
    """A block that connections last for: when it is left, nothing of their servers is left."""

    _connections: Sequence[Connection[Any]] = ()
    _nursery_manager: Any
    _nursery: trio.Nursery

    async def _open_nursery(self) -> trio.Nursery:
        self._nursery_manager = trio.open_nursery()
        self._nursery = await self._nursery_manager.__aenter__()
        return self._nursery

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()
        # The servers' tasks raise nothing, so what the block raised is passed on as it is, not in a group; and they are
        # waited for also when this is cancelled, which is bounded.
        self._nursery.cancel_scope.shield = True
        await self._nursery_manager.__aexit__(None, None, None)  # noqa: ASYNC102

"""Which Trio run a caller of `run_sync` uses: one in its own thread, or one in a service thread that callers share.

Rules.
    1. A claim table is used by one Trio run at a time.  It is held from the moment when a caller may use it until the
       last caller that uses it there has ended.
    2. Callers that share go to the service that holds one of their tables, or to a new one.  Where two services hold
       tables of one caller, the caller waits until one of them has let go.
    3. A caller that has a run of its own waits until none of its tables is held.
    4. Turns are given in the order in which they were asked for: no caller gets a table that an earlier one waits for.
       So a caller with a run of its own waits for those that are there, and for no later ones.

Theory.  A caller takes all its tables at once or none, so no two callers wait for each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import attrs

from toolrt.order import ClaimTable


@attrs.define(eq=False)
class SharedHost:
    """A Trio run that any number of callers may share: a service."""

    #: How many callers have a turn there.
    callers: int = attrs.field(default=0, init=False)

    def rest(self) -> None:
        """The last caller has left."""


@attrs.define(eq=False)
class Turn:
    """One caller's wish for its tables.

    Args:
        tables: what it needs.
        shares: whether it uses a service; if not, a run of its own.
    """

    tables: Sequence[ClaimTable]
    shares: bool
    #: The service, once the turn has come; None: it has not, or the run is the caller's own.
    host: SharedHost | None = attrs.field(default=None, init=False)
    #: The thread of the caller.
    thread: int = attrs.field(factory=threading.get_ident, init=False)
    #: Let go when the turn has come.
    waits: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.waits.acquire()


class TableTurns:
    """The tables that are held, and the callers that wait for some.

    Args:
        service: makes a service for these turns, which starts at its first call.
    """

    def __init__(self, service: Callable[[TableTurns], SharedHost]) -> None:
        self._service = service
        self._lock = threading.Lock()
        #: What holds a table, and how many turns use it there: a service, or the turn of a caller with its own run.
        self._held: dict[ClaimTable, tuple[SharedHost | Turn, int]] = {}
        self._waiting: list[Turn] = []
        #: Services without callers.
        self._resting: list[SharedHost] = []

    def ask(self, turn: Turn) -> None:
        """Put the caller at the end of the line; `Turn.waits` is let go when its turn has come."""
        with self._lock:
            self._waiting.append(turn)
            self._give()

    def leave(self, turn: Turn) -> None:
        """End the turn, or the wait for it."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                for table in turn.tables:
                    host, count = self._held.pop(table)
                    if count > 1:
                        self._held[table] = host, count - 1
                if turn.host is not None:
                    turn.host.callers -= 1
                    if turn.host.callers == 0:
                        self._resting.append(turn.host)
                        turn.host.rest()
            self._give()

    def retire(self, host: SharedHost) -> bool:
        """Whether the service may end: it has no caller, and will have none."""
        with self._lock:
            if host.callers == 0:
                self._resting.remove(host)
            return host.callers == 0

    def held_after_fork(self) -> list[ClaimTable]:
        """In the child process: free the tables of the threads that are gone, and give them."""
        self._lock = threading.Lock()
        mine = threading.get_ident()
        held, self._waiting, self._resting = self._held, [], []
        self._held = {
            table: (host, count)
            for table, (host, count) in held.items()
            if isinstance(host, Turn) and host.thread == mine
        }
        return [table for table in held if table not in self._held]

    def _give(self) -> None:
        """Give a turn to every caller that may have one now."""
        wanted: set[ClaimTable] = set()
        for turn in list(self._waiting):
            if wanted.isdisjoint(turn.tables) and self._may_enter(turn):
                self._waiting.remove(turn)
                turn.waits.release()
            else:
                wanted.update(turn.tables)

    def _may_enter(self, turn: Turn) -> bool:
        """Let the caller in, if it can be."""
        hosts = {self._held[table][0] for table in turn.tables if table in self._held}
        host: SharedHost | Turn = turn
        if turn.shares:
            found = hosts.pop() if hosts else self._resting.pop() if self._resting else self._service(self)
            if isinstance(found, Turn):
                return False
            host = turn.host = found
        if hosts:
            turn.host = None
            return False
        if turn.host is not None:
            turn.host.callers += 1
        for table in turn.tables:
            self._held[table] = host, self._held.get(table, (host, 0))[1] + 1
        return True

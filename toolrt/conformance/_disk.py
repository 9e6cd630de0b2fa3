"""What outlives a process that is killed: the twin of a disk, on which an executor keeps what it goes on by.

Rules.
    1. A record is durable when `commit` returns, and is there whole or not at all.
    2. The process is killed at one of its moments.  From then on each moment raises `Killed`, so nothing that unwinds
       changes anything: to a later process it looks as SIGKILL does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Killed(BaseException):
    """The process is dead; what still runs of it is only unwound."""


class ExecutorDisk:
    """Records that outlive a process, in the order in which they were committed."""

    def __init__(self) -> None:
        self._records: list[Any] = []
        #: How many moments the process has had.
        self.moments = 0
        #: The virtual instant at which the process was killed; None: it lives.
        self.killed_at: float | None = None
        #: Tells the virtual instant.
        self.clock: Callable[[], float] = float
        self._kill_at: int | None = None

    def read(self) -> list[Any]:
        """What was committed, oldest first."""
        return list(self._records)

    def commit(self, record: Any) -> None:
        """Make a record durable; the process may be killed before it and behind it, and then this does not return.

        Args:
            record: any value.

        Checkpoint: never.
        """
        self.moment()
        self._records.append(record)
        self.moment()

    def moment(self) -> None:
        """Let the process be killed here, if it is to be: this and each later moment of it raises `Killed`.

        Checkpoint: never.
        """
        if self.killed_at is None and self.moments == self._kill_at:
            self.killed_at = self.clock()
        if self.killed_at is not None:
            raise Killed
        self.moments += 1

    def begin(self, kill_at: int | None) -> None:
        """Let the next process begin.

        Args:
            kill_at: the number of its moment at which it is killed; None: it is not.
        """
        self.moments, self.killed_at, self._kill_at = 0, None, kill_at

"""Where a journal's records are kept: the port, and its twin in memory.

Rules.
    1. What `commit` was given is durable when it returns: all of it or, where it raises, nothing.
    2. Records of one batch come back in the order in which they were committed.
    3. A batch is *open* from `begin` to `over`.  Records of a batch that is over may be emptied; its id stays used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

#: How many ids of emptied batches stay known.
IDS_MOST = 100_000


@attrs.frozen
class Bounds:
    """How much a store keeps."""

    #: Batches that are over and keep their records; the oldest are emptied first.
    keep: int
    #: Bytes; a batch that would begin above it is refused.
    most_bytes: int


class RecordStore(Protocol):
    """Durable records of batches.  One thread at a time uses it, whichever that is."""

    @property
    def name(self) -> str:
        """What errors call it by."""

    @property
    def blocks(self) -> bool:
        """Whether its methods may block; then they are called in a worker thread."""

    @property
    def running(self) -> dict[str, Exception | None]:
        """The batches that run in this process now, and why nothing more of one is kept; None: it is."""

    @property
    def lock(self) -> threading.Lock:
        """Held by the thread that uses it."""

    def begin(self, batch_id: str, record: str, bounds: Bounds) -> str | None:
        """Begin a batch with its first record; gives why that cannot be: its id is used, or there is no room."""

    def commit(self, records: Sequence[tuple[str, str]]) -> None:
        """Keep records, each with the id of its batch."""

    def over(self, batch_id: str, record: str, bounds: Bounds) -> None:
        """Keep the last record of a batch."""

    def read(self, batch_id: str) -> list[str] | None:
        """The records of a batch; an empty list: it was emptied; None: no batch has that id."""

    def unfinished(self) -> list[str]:
        """The ids of open batches, oldest first."""

    def purge(self, before_ns: int | None, *, unfinished: bool) -> int:
        """Forget batches; gives how many.

        Args:
            before_ns: only those that began before this instant; None: all.
            unfinished: whether open ones go too.
        """

    def close(self) -> None:
        """Let go of what it holds open."""


#: Why a batch cannot begin.
USED, FULL = "used", "full"


@attrs.define(eq=False)
class MemoryRecords:
    """Records in memory: the twin of `SqliteRecords`, for tests and simulations.

    It outlives a journal and a runtime, so a test stops one and goes on with another, as after a crash.
    """

    #: What errors call it by.
    name: str = "memory"
    #: Called with the number of records of each commit before (False) and after (True) they are kept; what it raises
    #: comes out of the commit.  A test lets a crash happen there.
    at_commit: Callable[[int, bool], object] | None = None
    blocks: bool = attrs.field(default=False, init=False)
    running: dict[str, Exception | None] = attrs.field(factory=dict, init=False)
    lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _open: dict[str, list[str]] = attrs.field(factory=dict, init=False)
    _over: dict[str, list[str]] = attrs.field(factory=dict, init=False)

    def _kept(self, records: Sequence[tuple[str, str]]) -> None:
        if self.at_commit is not None:
            self.at_commit(len(records), False)
        for batch_id, record in records:
            self._open[batch_id].append(record)
        if self.at_commit is not None:
            self.at_commit(len(records), True)

    def begin(self, batch_id: str, record: str, bounds: Bounds) -> str | None:
        """See `RecordStore.begin`."""
        if batch_id in self._open or batch_id in self._over:
            return USED
        if sum(len(text) for kept in (self._open, self._over) for texts in kept.values() for text in texts) > (
            bounds.most_bytes
        ):
            return FULL
        self._open[batch_id] = []
        try:
            self._kept([(batch_id, record)])
        finally:
            if not self._open[batch_id]:
                del self._open[batch_id]
        return None

    def commit(self, records: Sequence[tuple[str, str]]) -> None:
        """See `RecordStore.commit`."""
        self._kept(records)

    def over(self, batch_id: str, record: str, bounds: Bounds) -> None:
        """See `RecordStore.over`."""
        if self.at_commit is not None:
            self.at_commit(1, False)
        self._over[batch_id] = [*self._open.pop(batch_id), record]
        full = [one for one, records in self._over.items() if records]
        for one in full[: max(0, len(full) - bounds.keep)]:
            self._over[one] = []
        if self.at_commit is not None:
            self.at_commit(1, True)

    def read(self, batch_id: str) -> list[str] | None:
        """See `RecordStore.read`."""
        found = self._open.get(batch_id, self._over.get(batch_id))
        return None if found is None else list(found)

    def unfinished(self) -> list[str]:
        """See `RecordStore.unfinished`."""
        return list(self._open)

    def purge(self, before_ns: int | None, *, unfinished: bool) -> int:
        """See `RecordStore.purge`; it knows no times, so only None removes something."""
        if before_ns is not None:
            return 0
        count = len(self._over) + (len(self._open) if unfinished else 0)
        self._over.clear()
        if unfinished:
            self._open.clear()
        return count

    def close(self) -> None:
        """See `RecordStore.close`."""

    def copy(self) -> MemoryRecords:
        """Give the same records in a store of their own, as a process finds them that starts after a crash."""
        other = MemoryRecords(self.name)
        other._open = {batch_id: list(records) for batch_id, records in self._open.items()}
        other._over = {batch_id: list(records) for batch_id, records in self._over.items()}
        return other

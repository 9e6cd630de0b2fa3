"""History of a workspace of which some directories are real and some are in memory.

Rules.  What happened to a real directory outlives the process, as it does where nothing is in memory; what happened in
memory ends with it.  One batch may be of both: it is undone as a whole by the process that has seen it, and by a later
one as far as it was of real directories.

Theory.  Nothing moves from one disk to another, and no file has names on two, so the changes of one disk are never in
the way of those of another: of a batch's rows it does not matter which disk's come first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolrt.workspace.change._version import Row
from toolrt.workspace.disk._disk import Entry
from toolrt.workspace.history._history import MemoryStore, digests_of, in_call_order
from toolrt.workspace.journal._journal import Journal

__all__ = ["TwoStores"]

#: What each store gave for the rows it was told of; None: it was told of none.
_Tokens = tuple[object, Any]


class TwoStores:
    """History in a directory of its own, and in memory for what is in memory itself.

    Args:
        lasting: has the rows of entries that are `real`.
        passing: has the others.
        real: whether the entry of this key is on a real disk.
    """

    #: One of the two does.
    blocks = True

    def __init__(self, lasting: Journal, passing: MemoryStore, real: Callable[[Entry], bool]) -> None:
        self._lasting = lasting
        self._passing = passing
        self._real = real
        #: The memory's: several threads may ask.
        self._lock = threading.Lock()

    @property
    def problem(self) -> str | None:
        """Why nothing of it outlives the process; None: what is of real directories does."""
        return self._lasting.problem

    def new_group(self) -> str:
        """See `Store.new_group`."""
        return self._lasting.new_group()

    def begin(self, rows: Sequence[Row], contents: Mapping[bytes, bytes]) -> object:
        """See `Store.begin`."""
        lasting = [row for row in rows if self._real(row.key)]
        passing = [row for row in rows if not self._real(row.key)]
        return (
            self._lasting.begin(lasting, _of(lasting, contents)) if lasting else None,
            self._passing.begin(passing, _of(passing, contents)) if passing else None,
        )

    def end(self, token: _Tokens, landed: bool) -> None:
        """See `Store.end`."""
        lasting, passing = token
        if lasting is not None:
            self._lasting.end(lasting, landed)
        if passing is not None:
            with self._lock:
                self._passing.end(passing, landed)

    def settle(self, tokens: Sequence[_Tokens]) -> None:
        """See `Store.settle`."""
        self._lasting.settle([lasting for lasting, _ in tokens if lasting is not None])
        with self._lock:
            self._passing.settle([passing for _, passing in tokens if passing is not None])

    def rows_of_batch(self, batch_id: str) -> list[Row]:
        """See `Store.rows_of_batch`."""
        with self._lock:
            passing = self._passing.rows_of_batch(batch_id)
        if passing and not self._lasting.has_batch(batch_id):
            return passing  # what the other has is an earlier session's
        return in_call_order([*self._lasting.rows_of_batch(batch_id), *passing])

    def is_whole(self, batch_id: str) -> bool:
        """See `Store.is_whole`."""
        with self._lock:
            passing = self._passing.is_whole(batch_id)
        return passing and self._lasting.is_whole(batch_id)

    def used_by(self, batch_id: str) -> tuple[int, int]:
        """See `Store.used_by`."""
        (rows, size), (more_rows, more_size) = self._lasting.used_by(batch_id), self._passing.used_by(batch_id)
        return rows + more_rows, size + more_size

    def rows_of_file(self, key: Entry) -> tuple[int, list[Row]]:
        """See `Store.rows_of_file`."""
        if self._real(key):
            return self._lasting.rows_of_file(key)
        with self._lock:
            return self._passing.rows_of_file(key)

    def content(self, digest: bytes) -> bytes | None:
        """See `Store.content`."""
        with self._lock:
            found = self._passing.content(digest)
        return self._lasting.content(digest) if found is None else found

    def kept(self) -> list[Row]:
        """See `Store.kept`."""
        with self._lock:
            return [*self._lasting.kept(), *self._passing.kept()]

    def statistics(self) -> dict[str, int]:
        """How much both hold: ``versions`` and ``bytes``."""
        with self._lock:
            passing = self._passing.statistics()
        return {name: count + passing[name] for name, count in self._lasting.statistics().items()}

    def close(self) -> None:
        """See `Journal.close`; what is in memory stays."""
        self._lasting.close()


def _of(rows: Iterable[Row], contents: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Those of `contents` that `rows` speak of."""
    return {digest: contents[digest] for row in rows for digest in digests_of(row) if digest in contents}

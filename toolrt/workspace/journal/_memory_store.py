"""A store of history that lasts as long as the process.

Rules.  A change is kept once it has happened.  The oldest changes go first, but none of the batch that writes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from toolrt import probe
from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._version import ChangeRow
from toolrt.workspace.disk._disk import Entry


class MemoryStore:
    """History that lasts as long as the process.

    Args:
        versions: how many rows it keeps at most.
        size: how many bytes of contents it keeps at most.
    """

    #: Nothing here waits for a disk.
    blocks = False
    #: It is not meant to outlive the process.
    problem = None

    def __init__(self, versions: int, size: int) -> None:
        self._most_rows = versions
        self._most_bytes = size
        #: By serial number, oldest first.
        self._rows: OrderedDict[int, ChangeRow] = OrderedDict()
        self._serial = 0
        self._by_file: dict[Entry, list[int]] = {}
        self._by_batch: dict[str, list[int]] = {}
        self._dropped: dict[Entry, int] = {}
        #: Of each batch: how many rows it wrote, and how many bytes of contents that were new.
        self._used: dict[str, tuple[int, int]] = {}
        #: By digest: the content and how many rows mention it.
        self._contents: dict[bytes, tuple[bytes, int]] = {}
        self._bytes = 0
        #: The groups that have begun and not ended.
        self._groups: set[str | None] = set()

    def begin(self, rows: Sequence[ChangeRow], contents: Mapping[bytes, bytes]) -> object:
        """See `ChangeStore.begin`; keeps nothing until `end`."""
        batch_id = rows[0].batch_id
        refusal = no_room(batch_id, self.used_by(batch_id), self._most_rows, self._most_bytes)
        if refusal is not None and not self.has_begun(rows[0].group):
            raise refusal
        if rows[0].group is not None:
            self._groups.add(rows[0].group)
        return rows, contents

    def has_begun(self, group: str | None) -> bool:
        """Whether a change of this group began here and has not ended."""
        return group in self._groups

    def end(self, token: tuple[Sequence[ChangeRow], Mapping[bytes, bytes]], landed: bool) -> None:
        """Keep what happened; see `ChangeStore.end`."""
        rows, contents = token
        self._groups.discard(rows[0].group)
        if landed:
            for row in rows:
                self._add(row, contents)

    def settle(self, tokens: Sequence[tuple[Sequence[ChangeRow], Mapping[bytes, bytes]]]) -> None:
        """As `end` for each of them."""
        for token in tokens:
            self.end(token, True)

    def _add(self, row: ChangeRow, contents: Mapping[bytes, bytes]) -> None:
        if probe.sink is not None:
            # Two that add to one batch commute; a question about the batch counts as a write.
            probe.sink.access(("files", "batch", row.batch_id), False)
            for key in _keys(row):
                probe.sink.access(("files", "history", *key), True)
        self._rows[self._serial] = row
        self._by_batch.setdefault(row.batch_id, []).append(self._serial)
        for key in _keys(row):
            self._by_file.setdefault(key, []).append(self._serial)
        size = self._bytes
        for digest in row.digests:
            content, count = self._contents.get(digest, (contents.get(digest), 0))
            if content is not None:
                self._contents[digest] = (content, count + 1)
                if not count:
                    self._bytes += len(content)
        used_rows, used_bytes = self._used.get(row.batch_id, (0, 0))
        self._used[row.batch_id] = (used_rows + 1, used_bytes + self._bytes - size)
        self._serial += 1
        while len(self._rows) > self._most_rows or self._bytes > self._most_bytes:
            if next(iter(self._rows.values())).batch_id == row.batch_id:
                break  # a batch does not push out what its own undo needs
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        # Which one goes depends on the order of all mutations, so from here on history is one resource.
        probe.access(("files", "history"), True)
        serial, row = self._rows.popitem(last=False)
        batch = self._by_batch[row.batch_id]
        batch.remove(serial)
        if not batch:
            del self._by_batch[row.batch_id], self._used[row.batch_id]
        for key in _keys(row):
            rows = self._by_file[key]
            rows.remove(serial)
            if rows:
                self._dropped[key] = self._dropped.get(key, 0) + 1
            else:
                # A file without versions has no count: its next ones are numbered from 1.
                del self._by_file[key]
                self._dropped.pop(key, None)
        for digest in row.digests:
            kept = self._contents.get(digest)
            if kept is None:
                continue
            content, count = kept
            if count > 1:
                self._contents[digest] = (content, count - 1)
            else:
                del self._contents[digest]
                self._bytes -= len(content)

    def rows_of_batch(self, batch_id: str) -> list[ChangeRow]:
        """See `ChangeStore.rows_of_batch`."""
        probe.access(("files", "batch", batch_id), True)
        return in_call_order([self._rows[serial] for serial in self._by_batch.get(batch_id, ())])

    def batches(self) -> list[str]:
        """See `ChangeStore.batches`."""
        probe.access(("files", "history"), True)
        return sorted(self._by_batch, key=lambda batch_id: self._by_batch[batch_id][-1])

    def is_whole(self, batch_id: str) -> bool:
        """See `ChangeStore.is_whole`."""
        return self._used.get(batch_id, (0, 0))[0] == len(self._by_batch.get(batch_id, ()))

    def used_by(self, batch_id: str) -> tuple[int, int]:
        """How many rows were written for the batch of this id, and how many bytes of contents that were new."""
        return self._used.get(batch_id, (0, 0))

    def rows_of_file(self, key: Entry) -> tuple[int, list[ChangeRow]]:
        """See `ChangeStore.rows_of_file`."""
        probe.access(("files", "history", *key), False)
        return self._dropped.get(key, 0), [self._rows[serial] for serial in self._by_file.get(key, ())]

    def content(self, digest: bytes) -> bytes | None:
        """See `ChangeStore.content`."""
        kept = self._contents.get(digest)
        return None if kept is None else kept[0]

    def kept(self) -> list[ChangeRow]:
        """See `ChangeStore.kept`."""
        return [row for row in self._rows.values() if row.keeps]

    def statistics(self) -> dict[str, int]:
        """How much it holds: ``versions`` and ``bytes``."""
        probe.access(("files", "history"), True)
        return {"versions": len(self._rows), "bytes": self._bytes}


def in_call_order(rows: Sequence[ChangeRow]) -> list[ChangeRow]:
    """The rows of one batch in an order that does not depend on timing, see `toolrt.workspace.history._history`."""
    return sorted(rows, key=lambda row: row.call_index)


def no_room(batch_id: str, used: tuple[int, int], versions: int, size: int) -> FileProblem | None:
    """The refusal of a change of a batch that has used up the bounds of history: no later part could be undone."""
    if used[0] < versions and used[1] < size:
        return None
    probe.access(("files", "batch", batch_id), True)
    return FileProblem(
        f"batch {batch_id}",
        f"at most {versions} versions and {size} bytes in history, so it can be undone",
        f"{used[0]} versions and {used[1]} bytes already",
        "Nothing was changed; go on in another batch, or raise Limits(versions=, history_bytes=).",
    )


def _keys(row: ChangeRow) -> list[Entry]:
    return [row.key] if row.target_key is None or row.target_key == row.key else [row.key, row.target_key]

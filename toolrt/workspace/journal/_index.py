"""The index of the segments: the changes that they describe, and where their contents are.

Rules.  The index is in memory and is made from the segments.  Each question first reads what was appended since the
last one, by this process or another.  A change is pending until its writer records how it ended; then it stands, or
the index removes it.  A session sees its own pending changes as not made.  It sees those of other sessions as made:
an idle writer records nothing more, and a pending change has nearly always happened.

Theory.  Everything is in the segments, so an index cannot be locked, damaged, out of date or of another version, and
two processes never share one.

Limits.  The first question of a process reads the descriptions of all changes, without their contents, and keeps them:
about 2 KiB of memory for each change (decision 058 has the times).  Where all versions of a file were dropped, its
next ones may be numbered from 1.
"""

from __future__ import annotations

import json
import os
from bisect import insort
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

import attrs

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._version import ChangeRow
from toolrt.workspace.disk._disk import Entry, is_boxed
from toolrt.workspace.disk._real_walk import opened
from toolrt.workspace.journal._segment import SegmentRecord, path_of, records_of, segments_in

K = TypeVar("K")

#: Where a change is described: segment, session, serial number, and its place among those begun together.
Place = tuple[int, str, int, int]


@attrs.define(eq=False)
class _Change:
    """One change, as the index keeps it."""

    #: The number of its record, which is higher than that of any that began earlier; segment, where its record is, its
    #: place in the record.
    order: tuple[int, int, int, int]
    session: str
    serial: int
    #: The segment with the first change of its batch.
    since: int
    batch: str
    #: Its entry, and of a move its target where that is another.
    keys: tuple[Entry, ...]
    #: The description of its record.
    said: bytes
    stands: bool = False

    @property
    def at(self) -> Place:
        """Where it is described."""
        return self.order[1], self.session, self.serial, self.order[3]

    @property
    def row(self) -> ChangeRow:
        """The change itself.

        Raises:
            ValueError: the record is none that toolrt writes.
        """
        try:
            return ChangeRow.from_json(json.loads(self.said)["begun"][2][self.order[3]])
        except (TypeError, LookupError) as error:
            raise ValueError("a change that toolrt does not write") from error


@attrs.define(eq=False)
class _SegmentRead:
    """What was read of one segment."""

    #: The end of what was read, in bytes from the segment's start.
    upto: int = 0
    session: str = ""
    #: Whether its writer went on where it could record nothing.
    blind: bool = False
    changes: list[_Change] = attrs.Factory(list)
    #: How many versions of each entry went with older segments, by the number of that segment.
    dropped: dict[int, dict[Entry, int]] = attrs.Factory(dict)


class SegmentIndex:
    """What the segments in `directory` describe.  Not for use by two threads at once."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._segments: dict[int, _SegmentRead] = {}
        #: The changes by session and serial number; the others in order.
        self._by_writer: dict[tuple[str, int], list[_Change]] = {}
        self._by_key: dict[Entry, list[_Change]] = {}
        self._by_batch: dict[str, list[_Change]] = {}
        #: Of each content the segments that have it, and there its start and its size in bytes.
        self._contents: dict[bytes, dict[int, tuple[int, int]]] = {}

    def read(self, only: Collection[int] | None = None) -> dict[int, int]:
        """Read what the segments have that the index does not; gives where each one ends, by number.

        Args:
            only: the segments to read, always the same; None: all.

        Raises:
            OSError: a segment cannot be read.
            ValueError: a record is none that toolrt writes.
        """
        numbers = segments_in(self._directory) if only is None else sorted(only)
        for number in self._segments.keys() - set(numbers):
            self.forget(number)
        for number in numbers:
            try:
                descriptor = os.open(path_of(self._directory, number), os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                self.forget(number)
                continue
            segment = self._segments.setdefault(number, _SegmentRead())
            try:
                with opened(descriptor):
                    for record in records_of(descriptor, segment.upto):
                        self._add(number, segment, record)
                        segment.upto = record.next_at
            except (TypeError, LookupError, AttributeError) as error:
                raise ValueError("a record that toolrt does not write") from error
        return {number: segment.upto for number, segment in self._segments.items()}

    def _add(self, number: int, segment: _SegmentRead, record: SegmentRecord) -> None:
        said = record.said
        session = segment.session = said.get("session", segment.session)
        segment.blind = said.get("blind", segment.blind)
        if "begun" in said:
            serial, sequence, rows, contents = said["begun"]
            since = said.get("since", number)
            changes = []
            for place, (batch, _, _, key, _, _, _, target_key, *_) in enumerate(rows):
                order = (sequence, number, segment.upto, place)
                keys = tuple(dict.fromkeys(tuple(one) for one in (key, target_key) if one is not None))
                changes.append(_Change(order, session, serial, since, batch, keys, record.text))
            for change in changes:
                for table, name in self._places_of(change):
                    insort(table.setdefault(name, []), change, key=lambda one: one.order)
            segment.changes += changes
            start = record.contents_at
            for digest, size in contents:
                self._contents.setdefault(bytes.fromhex(digest), {})[number] = (start, size)
                start += size
        self.end(session, [(serial, True) for serial in said.get("landed", ())])
        self.end(session, [(serial, False) for serial in said.get("void", ())])
        for session, serial, place, landed in said.get("decided", ()):
            self._end([one for one in self._by_writer.get((session, serial), ()) if one.order[3] == place], landed)
        if "dropped" in said:
            gone, counts = said["dropped"]
            segment.dropped[gone] = {tuple(key): count for key, count in counts}

    def _places_of(self, change: _Change) -> Iterable[tuple[dict[Any, list[_Change]], object]]:
        """The tables that have the change, and under which name."""
        yield self._by_writer, (change.session, change.serial)
        yield self._by_batch, change.batch
        for key in change.keys:
            yield self._by_key, key

    def end(self, session: str, ended: Sequence[tuple[int, bool]]) -> None:
        """Changes of that session happened, or did not."""
        for serial, landed in ended:
            self._end(self._by_writer.get((session, serial), ()), landed)

    def _end(self, changes: Iterable[_Change], landed: bool) -> None:
        for change in list(changes):
            change.stands = landed
            if not landed:
                self._segments[change.order[1]].changes.remove(change)
                for table, name in self._places_of(change):
                    table[name].remove(change)
                    if not table[name]:
                        del table[name]

    def forget(self, number: int) -> None:
        """Forget what that segment has."""
        segment = self._segments.pop(number, None)
        if segment is None:
            return
        for change in segment.changes:
            self._by_writer.pop((change.session, change.serial), None)
        _keep_others(self._by_batch, {change.batch for change in segment.changes}, number)
        _keep_others(self._by_key, {key for change in segment.changes for key in change.keys}, number)
        for digest in [digest for digest, places in self._contents.items() if number in places]:
            del self._contents[digest][number]
            if not self._contents[digest]:
                del self._contents[digest]

    def goes_with(self, number: int) -> list[tuple[Entry, int]]:
        """How many versions of each entry go with that segment, of the entries that have others left.

        Those that went before, and are counted in that segment alone, are among them.
        """
        segment = self._segments[number]
        counts = Counter(key for change in segment.changes if change.stands for key in change.keys)
        for gone, earlier in segment.dropped.items():
            if gone not in self._segments:
                counts.update(earlier)
        return [
            (key, count)
            for key, count in counts.items()
            if any(change.order[1] != number for change in self._by_key.get(key, ()))
        ]

    def _dropped_of(self, key: Entry) -> int:
        counts: dict[int, int] = {}
        for segment in self._segments.values():
            for gone, dropped in segment.dropped.items():
                if gone not in self._segments:
                    counts[gone] = dropped.get(key, 0)
        return sum(counts.values())

    def blind(self) -> list[int]:
        """The segments whose writer went on where it could record nothing."""
        return [number for number, segment in self._segments.items() if segment.blind]

    def pending(self, segments: Iterable[int]) -> list[tuple[Place, ChangeRow]]:
        """The changes in these segments that have no recorded end, oldest first."""
        found = [
            change
            for number in segments
            if number in self._segments
            for change in self._segments[number].changes
            if not change.stands
        ]
        return [(change.at, change.row) for change in sorted(found, key=lambda one: one.order)]

    def next_of(self, at: Place, key: Entry) -> ChangeRow | None:
        """The next change of that entry after the one `at` that place, by any writer."""
        changes = self._by_key.get(key, [])
        later = [place for place, change in enumerate(changes, 1) if change.at == at]
        return changes[later[0]].row if later and later[0] < len(changes) else None

    def rows_of_batch(self, session: str, batch_id: str) -> list[ChangeRow]:
        """See `ChangeStore.rows_of_batch`; `session` is the one that asks.

        Raises:
            FileProblem: another session had a batch of this id, and two of them had one at one time.
        """
        sessions: dict[str, list[_Change]] = {}
        for change in self._batch(session, batch_id):
            sessions.setdefault(change.session, []).append(change)
        resolved = self._resolved(session, batch_id)
        changes = sessions.pop(resolved, [])
        began = min((change.order for change in changes), default=(0, 0, 0, 0))
        if resolved != session and any(one.order > began for others in sessions.values() for one in others):
            raise FileProblem(
                f"batch {batch_id}",
                "a batch of one session",
                "an id that two sessions used at one time",
                "Undo it where it was run.",
            )
        return [change.row for change in changes]

    def batches(self, session: str) -> list[str]:
        """See `ChangeStore.batches`; `session` is the one that asks."""
        found = {batch_id: self._batch(session, batch_id) for batch_id in self._by_batch}
        return sorted((one for one in found if found[one]), key=lambda batch_id: found[batch_id][-1].order)

    def _batch(self, session: str, batch_id: str) -> list[_Change]:
        return [one for one in self._by_batch.get(batch_id, ()) if one.stands or one.session != session]

    def _resolved(self, session: str, batch_id: str) -> str:
        """The session that a batch of this id means: the one that asks, else the last that had one."""
        sessions = [change.session for change in self._batch(session, batch_id)]
        return session if session in sessions or not sessions else sessions[-1]

    def is_whole(self, session: str, batch_id: str) -> bool:
        """See `ChangeStore.is_whole`; `session` is the one that asks."""
        resolved = self._resolved(session, batch_id)
        return all(
            change.since in self._segments for change in self._by_batch.get(batch_id, ()) if change.session == resolved
        )

    def has_batch(self, session: str, batch_id: str) -> bool:
        """Whether that session made changes in that batch."""
        return any(one.stands and one.session == session for one in self._by_batch.get(batch_id, ()))

    def rows_of_file(self, session: str, key: Entry) -> tuple[int, list[ChangeRow]]:
        """See `ChangeStore.rows_of_file`; `session` is the one that asks."""
        rows = [one.row for one in self._by_key.get(key, ()) if one.stands or one.session != session]
        return (self._dropped_of(key) if rows else 0), rows

    def kept(self) -> list[ChangeRow]:
        """See `ChangeStore.kept`."""
        changes = [one for segment in self._segments.values() for one in segment.changes if is_boxed(one.keys[-1])]
        rows = [change.row for change in sorted(changes, key=lambda one: one.order)]
        return [row for row in rows if row.keeps]

    def content_at(self, digest: bytes) -> tuple[int, int, int] | None:
        """Where the newest copy of a content is: segment, start, size."""
        places = self._contents.get(digest)
        if places is None:
            return None
        number = max(places)
        return number, *places[number]

    def counts(self) -> tuple[int, int]:
        """How many changes stand, and how many bytes of contents there are."""
        changes = sum(one.stands for segment in self._segments.values() for one in segment.changes)
        return changes, sum(size for places in self._contents.values() for _, size in places.values())


def _keep_others(table: dict[K, list[_Change]], names: Iterable[K], number: int) -> None:
    """Only changes of other segments than that one are left at these names."""
    for name in names:
        left = [one for one in table.pop(name) if one.order[1] != number]
        if left:
            table[name] = left

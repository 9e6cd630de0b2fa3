"""Stores the history of a workspace: in segments on the disk, or in memory where the disk refuses.

Rules.
    1. A change is recorded before the file is touched, with both contents and in one append.  How it ended is recorded
       with the next change, or at once when no other change is under way: changes that overlap cost one append each,
       and the ends of a batch are on the disk when the batch ends.
    2. The next start decides a change that has no recorded end and no living writer, by what is on the disk.  One
       record says that all changes of a group happened; a group without it is taken back.  The start records what it
       decided.
    3. Changes of a disk in memory are kept in memory, and so are all changes once the state directory refused one.
       What was written before can still be read, and its ends are still recorded.  A group that has begun on the disk
       and cannot be recorded to its end is refused and taken back at once; no other call fails for history.

Theory.  The segments are the truth, and the index is made from them.  No file moves from one disk to another and none
has names on two, so changes of different disks are never in each other's way: a batch of both is the two lists in call
order.  Decision 058 has what a change costs this way, and what it costs in SQLite.

Limits.  Bounds are kept by whole segments, an eighth of the bound each: history holds between seven and nine eighths of
its bound.  Without a disk that syncs (`RealDisk(fsync=True)`), a loss of power may lose the latest versions.  A forked
child begins a session of its own.  A change that another living process has under way is shown as made.  A later
process does not know what was kept in memory.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._mutation import digest_of
from toolrt.workspace.change._version import ChangeRow, contents_of
from toolrt.workspace.disk._disk import Entry
from toolrt.workspace.disk._real_walk import opened
from toolrt.workspace.journal._index import Place, SegmentIndex
from toolrt.workspace.journal._log import SEGMENTS, Log, reason_of
from toolrt.workspace.journal._memory_store import MemoryStore, in_call_order, no_room
from toolrt.workspace.journal._segment import Segment, path_of, segments_in

T = TypeVar("T")

#: A change that has no recorded end: where it is described, and what it is.
Pending = tuple[Place, ChangeRow]

#: What can go wrong with a state directory: the disk refuses, or a record is none that toolrt writes.
_FAILURES = (OSError, ValueError)

#: The number of the change in the log, and what the memory gave for its part; None: no part there.
_Token = tuple[int | None, Any]


class HistoryStore:
    """The history of one workspace, in a directory of its own.

    Args:
        directory: where it is; made when something is written.  None: there is no place for it.
        versions: how many rows it keeps at most, on the disk and in memory each.
        size: how many bytes of contents it keeps at most, on the disk and in memory each.
        sync: whether each append is synced to the disk before it counts.
        lasts: whether the entry of this key is on a real disk, so that its history is to outlive the process; None:
            all entries are.
    """

    #: Its methods read and write files.
    blocks = True

    def __init__(
        self,
        directory: str | None,
        versions: int,
        size: int,
        *,
        sync: bool = False,
        lasts: Callable[[Entry], bool] | None = None,
    ) -> None:
        self._directory = directory or ""
        self._most_rows = versions
        self._most_bytes = size
        self._lasts = lasts or (lambda key: True)
        self._log = Log(self._directory, versions, size, sync)
        self._index = SegmentIndex(self._directory)
        #: What is kept in memory.  Its lock is never held for long, so Trio's thread may wait for it.
        self._memory = MemoryStore(versions, size)
        self._memory_lock = threading.Lock()
        self._finalizer = weakref.finalize(self, self._log.close)
        if directory is None:
            self._log.go_blind("the user's state directory is inside the workspace; name another one")
        elif not _can_be_written(directory):
            self._log.go_blind("the state directory cannot be written")

    @property
    def problem(self) -> str | None:
        """Why all later changes are kept in memory; None: they are not."""
        return self._log.problem

    # What the start finds

    def start(
        self,
        settle: Callable[[Sequence[Pending], HistoryStore], Iterable[tuple[Place, bool]]],
        mend: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take over from writers that are gone.

        Args:
            settle: is given their changes that have no recorded end, oldest first, and decides them.
            mend: is called where history does not know what the writers were about to change: there is no history
                yet, or a writer could not record it.  Says whether all is mended.
        """
        if self.problem is not None or not os.path.isdir(self._directory):
            mend()
            return
        gone: dict[int, Segment] = {}
        try:
            numbers = segments_in(self._directory)
            if not numbers:
                mend()
            for number in numbers:
                segment = Segment.taken(self._directory, number)
                if segment is not None and not segment.settled:
                    gone[number] = segment
                elif segment is not None:
                    segment.close()
            if not gone:
                return
            index = SegmentIndex(self._directory)
            for number, end in index.read(gone).items():
                gone[number].cut(end)
            blind, pending = index.blind(), index.pending(gone)
            if blind and mend():
                for number in blind:
                    gone[number].append({"blind": False})
            if pending:
                self._index.read()  # an end, or the next change of the same file, may be in any segment
                pending = self._index.pending(gone)
            if pending:
                _record(gone, settle(pending, self))
            last = max(gone)
            if gone[last].size < self._most_bytes // SEGMENTS // 2:
                self._log.begin_session(gone[last])
                del gone[last]
            for segment in gone.values():
                if segment.number not in blind:
                    segment.settle()
        except _FAILURES as error:
            self._log.go_blind(reason_of(error))
        finally:
            for segment in gone.values():
                segment.close()

    def next_of(self, at: Place, key: Entry) -> ChangeRow | None:
        """For `settle`: the change of that entry that came after that one, by any writer."""
        return self._index.next_of(at, key)

    def stored(self, digest: bytes) -> bytes | None:
        """For `settle`: the content."""
        return self._content(self._index, digest)

    # Writing

    def begin(self, rows: Sequence[ChangeRow], contents: Mapping[bytes, bytes]) -> _Token:
        """See `ChangeStore.begin`.

        Raises:
            FileProblem: the batch has used up the bounds; or the rows belong to a group that began on the disk, and
                the disk takes no more.
        """
        with self._log.turn():
            self._require_room(rows[0])
            lasting = [row for row in rows if self._lasts(row.key)]
            serial = self._begin_lasting(lasting, contents_of(lasting, contents)) if lasting else None
            passing = [row for row in rows if serial is None or not self._lasts(row.key)]
            if not passing:
                return serial, None
            with self._memory_lock:
                return serial, self._memory.begin(passing, contents_of(passing, contents))

    def _require_room(self, row: ChangeRow) -> None:
        """Refuse a change of a batch that has used up the bounds, unless it is of a group that has begun."""
        used = self._log.batches.get(row.batch_id)
        rows, size = (0, 0) if used is None else (used.rows, used.size)
        with self._memory_lock:
            more_rows, more_size = self._memory.used_by(row.batch_id)
            has_begun = self._memory.has_begun(row.group)
        both = rows + more_rows, size + more_size
        refusal = no_room(row.batch_id, both, self._most_rows, self._most_bytes)
        if refusal is not None and not (has_begun or self._log.has_begun(row.group)):
            raise refusal

    def _begin_lasting(self, rows: Sequence[ChangeRow], contents: Mapping[bytes, bytes]) -> int | None:
        """The number of the change in the log; None: it is to be kept in memory."""
        segments = len(self._log.segments)
        serial = self._log.begin(rows, contents)
        if serial is None:
            if self._log.has_begun(rows[0].group):
                raise self._cut_short()
        elif 0 < segments < len(self._log.segments):
            try:
                self._shrink(self._log.batches[rows[0].batch_id].segment)
            except _FAILURES as error:
                self._log.go_blind(reason_of(error))
        return serial

    def end(self, token: _Token, landed: bool) -> None:
        """See `ChangeStore.end`."""
        serial, passing = token
        if serial is not None:
            self._log.end(serial, landed)
        if passing is not None:
            with self._memory_lock:
                self._memory.end(passing, landed)

    def settle(self, tokens: Sequence[_Token]) -> None:
        """See `ChangeStore.settle`.

        Raises:
            FileProblem: it cannot be recorded; nothing ended.
        """
        with self._log.turn():
            if not self._log.settle([serial for serial, _ in tokens if serial is not None]):
                raise self._cut_short()
        with self._memory_lock:
            self._memory.settle([passing for _, passing in tokens if passing is not None])

    def _cut_short(self) -> FileProblem:
        return FileProblem(
            "history",
            "all changes of one call written down before the first is made",
            f"a state directory that took only some ({self.problem})",
            "What was changed is put back; send the call again.",
            retryable=True,
        )

    def _shrink(self, needed: int) -> None:
        """Drop the oldest segments until the bounds are kept; of this process's none from number `needed` on."""
        sizes: dict[int, int] = {}
        for number in sorted(self._index.read()):
            with contextlib.suppress(FileNotFoundError):
                sizes[number] = os.stat(path_of(self._directory, number)).st_size
        own = {segment.number: segment for segment in self._log.segments}
        for number in list(sizes)[:-1]:
            if sum(sizes.values()) <= self._most_bytes and self._index.counts()[0] <= self._most_rows:
                return
            segment = own.get(number) or Segment.taken(self._directory, number)
            if segment is None or (number in own and number >= needed):
                continue
            with contextlib.suppress(OSError):  # the numbers of later versions count those that go
                self._log.say(more={"dropped": [number, self._index.goes_with(number)]})
            segment.remove()
            self._index.forget(number)
            if segment in self._log.segments:
                self._log.segments.remove(segment)
            del sizes[number]

    # Asking

    def rows_of_batch(self, batch_id: str) -> list[ChangeRow]:
        """See `ChangeStore.rows_of_batch`.

        Raises:
            FileProblem: this session wrote some of them, and they cannot be read any more.
        """

        def found(index: SegmentIndex) -> tuple[bool | None, list[ChangeRow]]:
            session = self._log.session
            return index.has_batch(session, batch_id), index.rows_of_batch(session, batch_id)

        nothing: tuple[bool | None, list[ChangeRow]] = (None, [])
        with self._log.turn():
            own, older = self._asked(found, nothing)
            if own is None and batch_id in self._log.batches:
                raise FileProblem(
                    f"batch {batch_id}",
                    "all that it changed",
                    f"a part: what was written down of it cannot be read any more ({self.problem})",
                    "Nothing was changed.",
                )
            with self._memory_lock:
                newer = self._memory.rows_of_batch(batch_id)
        # Without rows of its own among them, the older ones are an earlier session's.
        return in_call_order([*(older if own or not newer else []), *newer])

    def batches(self) -> list[str]:
        """See `ChangeStore.batches`."""
        nothing: list[str] = []
        with self._log.turn():
            older = self._asked(lambda index: index.batches(self._log.session), nothing)
            with self._memory_lock:
                newer = self._memory.batches()
        return [*(one for one in older if one not in newer), *newer]

    def is_whole(self, batch_id: str) -> bool:
        """See `ChangeStore.is_whole`."""
        with self._log.turn():
            written = self._asked(lambda index: index.is_whole(self._log.session, batch_id), True)
            with self._memory_lock:
                return written and self._memory.is_whole(batch_id)

    def rows_of_file(self, key: Entry) -> tuple[int, list[ChangeRow]]:
        """See `ChangeStore.rows_of_file`."""
        nothing: tuple[int, list[ChangeRow]] = (0, [])
        dropped, older = nothing
        with self._log.turn():
            if self._lasts(key):
                dropped, older = self._asked(lambda index: index.rows_of_file(self._log.session, key), nothing)
            with self._memory_lock:
                forgotten, newer = self._memory.rows_of_file(key)
        if forgotten:  # the oldest of those in memory, so all that came before them
            return dropped + len(older) + forgotten, newer
        return dropped, [*older, *newer]

    def content(self, digest: bytes) -> bytes | None:
        """See `ChangeStore.content`."""
        with self._log.turn():
            with self._memory_lock:
                newer = self._memory.content(digest)
            return self._asked(lambda index: self._content(index, digest), None) if newer is None else newer

    def kept(self) -> list[ChangeRow]:
        """See `ChangeStore.kept`."""
        nothing: list[ChangeRow] = []
        with self._log.turn():
            older = self._asked(lambda index: index.kept(), nothing)
            with self._memory_lock:
                return [*older, *self._memory.kept()]

    def statistics(self) -> dict[str, int]:
        """How much it holds: ``versions`` and ``bytes``."""
        with self._log.turn():
            rows, size = self._asked(lambda index: index.counts(), (0, 0))
            with self._memory_lock:
                newer = self._memory.statistics()
        return {"versions": rows + newer["versions"], "bytes": size + newer["bytes"]}

    def _asked(self, question: Callable[[SegmentIndex], T], nothing: T) -> T:
        """The answer of the segments; `nothing` where there is no history yet, or it cannot be read."""
        self._log.say_ended()
        if not self._log.segments and not os.path.isdir(self._directory):
            return nothing
        try:
            self._index.read()
            self._index.end(self._log.session, self._log.unsaid())
            return question(self._index)
        except _FAILURES as error:
            self._log.go_blind(reason_of(error))
            return nothing

    def _content(self, index: SegmentIndex, digest: bytes) -> bytes | None:
        place = index.content_at(digest)
        if place is None:
            return None
        number, start, size = place
        try:
            with opened(os.open(path_of(self._directory, number), os.O_RDONLY | os.O_CLOEXEC)) as descriptor:
                content = os.pread(descriptor, size, start)
        except FileNotFoundError:
            return None
        return content if digest_of(content) == digest else None

    def close(self) -> None:
        """Record what has ended and close the segments; a later change begins a new session."""
        with self._log.turn():
            self._log.close()


def _record(segments: Mapping[int, Segment], decided: Iterable[tuple[Place, bool]]) -> None:
    """Write what was decided to the segments that have the changes, where each index reads it."""
    said: dict[int, list[list[object]]] = {}
    for (number, *about), landed in decided:
        said.setdefault(number, []).append([*about, landed])
    for number, decisions in said.items():
        segments[number].append({"decided": decisions})


def _can_be_written(directory: str) -> bool:
    """Whether `directory`, or what would have to be made for it, can be."""
    while not os.path.exists(directory):
        above = os.path.dirname(directory)
        if above == directory:
            return False
        directory = above
    return os.path.isdir(directory) and os.access(directory, os.W_OK | os.X_OK)

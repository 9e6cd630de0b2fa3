"""History that outlives the process: segments that are appended to, and an index in SQLite made from them.

Rules.
    1. What is about to happen is written down, contents and all, in one append before the file is touched.  How it
       ended is written together with the next change, or at once when no other change is under way: so changes that
       overlap cost one append each, and the endings of a batch are on the disk when the batch ends.
    2. A change of which nobody said so, and whose writer is gone, is decided by the next start, by what is on the
       disk.  Of a group all changes are said to have happened in one append; a group without it is taken back.  What
       a start decided is written down too.
    3. When the state directory cannot be written, history goes on in memory, and says so; what was written before can
       still be read, and how that ended is still said.  A group that began on the disk and cannot be written to its
       end is refused, and taken back now; nothing else here ever fails a call.
    4. An index that cannot be used never ends history, see `toolrt.workspace.journal._catalogue`.

Theory.  The segments are the truth and the index may be lost (see `toolrt.workspace.journal._sqlite`).  Measured on
10 KiB files: an append costs some 20 microseconds, a commit of the same to SQLite (write-ahead logging, no sync) 130.

Limits.  Bounds are kept by whole segments, an eighth of the bound each: history holds between seven and nine eighths
of what it may.  Without a disk that syncs (`RealDisk(fsync=True)`), a loss of power may lose the latest versions.
A forked child begins a session of its own.  Of what another living process did last, whether it happened is not
known here while it is under way, and it is shown as if it had.  A later process does not know history in memory.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._mutation import digest_of
from toolrt.workspace.change._version import Row
from toolrt.workspace.disk._disk import Entry
from toolrt.workspace.history._history import MemoryStore, in_call_order
from toolrt.workspace.journal._catalogue import Catalogue
from toolrt.workspace.journal._log import SEGMENTS, Log
from toolrt.workspace.journal._segment import Segment, path_of, segments_in
from toolrt.workspace.journal._sqlite import Index, Place

__all__ = ["Journal", "Pending"]

T = TypeVar("T")

#: A change of which nobody said whether it happened: where it is written down, and what it is.
Pending = tuple[Place, Row]

#: What can go wrong with a state directory.
_FAILURES = (OSError, sqlite3.Error, ValueError)


class Journal:
    """The history of one workspace, in a directory of its own.

    Args:
        directory: where it is; made when something is written.  None: there is no place for it.
        versions: how many rows it keeps at most.
        size: how many bytes of contents it keeps at most.
        sync: whether each append is on the disk before it counts.
    """

    #: Its methods read and write files.
    blocks = True

    def __init__(self, directory: str | None, versions: int, size: int, *, sync: bool = False) -> None:
        self._directory = directory or ""
        self._most_rows = versions
        self._most_bytes = size
        self._lock = threading.Lock()
        itself = weakref.ref(self)
        self._log = Log(self._directory, versions, size, sync, lambda number: _shrunk(itself(), number))
        self._catalogue = Catalogue(self._directory)
        #: The groups that began on the disk and have not ended: by their rows' serial numbers.
        self._groups: dict[int, str] = {}
        self._group_count = 0
        #: What came after the state directory could not be written any more; its lock is never held for long.
        self._memory: MemoryStore | None = None
        self._memory_lock = threading.Lock()
        self._problem: str | None = None
        self._finalizer = weakref.finalize(self, self._log.close)
        if directory is None:
            self._fall_back("the user's state directory is inside the workspace; name another one")
        elif not _can_be_written(directory):
            self._fall_back("the state directory cannot be written")

    @property
    def problem(self) -> str | None:
        """Why history is in memory from some point on; None: it is not."""
        return self._problem

    # What the start finds

    def start(
        self,
        settle: Callable[[Sequence[Pending], Journal], Iterable[tuple[Place, bool]]],
        mend: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take over from writers that are gone.

        Args:
            settle: is given what they left undecided, oldest first, and decides it.
            mend: is called where it is not known what writers that are gone were about to change: there is no history
                yet, or they could not write it; says whether all is mended.
        """
        if self._memory is not None or not os.path.isdir(self._directory):
            mend()
            return
        gone: list[Segment] = []
        try:
            numbers = segments_in(self._directory)
            for number in numbers:
                segment = Segment.taken(self._directory, number)
                if segment is not None:
                    gone.append(segment)
            if not numbers:
                mend()
            if not gone:
                return
            ends = self._catalogue.ask(lambda index: index.absorb())
            for segment in gone:
                segment.cut(ends.get(segment.number, segment.size))
            told = {segment.number: segment for segment in gone}
            blind = self._catalogue.ask(lambda index: index.blind(list(told)))
            if blind and mend():
                for number in blind:
                    told[number].append({"blind": False})
            pending = self._catalogue.ask(lambda index: index.pending(list(told)))
            if pending:
                _write_down(told, settle(pending, self))
            last = gone[-1]
            if last.size < self._most_bytes // SEGMENTS // 2:
                self._log.begin_session(last)
                gone.pop()
        except _FAILURES as error:
            self._fall_back(_reason(error))
        finally:
            for segment in gone:
                segment.close()

    def next_of(self, at: Place, key: Entry) -> Row | None:
        """The change of that entry that came after that one, whoever made it."""
        return self._catalogue.ask(lambda index: index.next_of(at, key))

    def stored(self, digest: bytes) -> bytes | None:
        """The content, for who decides."""
        return self._catalogue.ask(lambda index: self._content(index, digest))

    # Writing

    def new_group(self) -> str:
        """See `Store.new_group`; another name in every session."""
        with self._turn():
            self._group_count += 1
            return f"{self._log.session or 'first'}-{self._group_count}"

    def begin(self, rows: Sequence[Row], contents: Mapping[bytes, bytes]) -> object:
        """See `Store.begin`.

        Raises:
            FileProblem: the rows belong to a group that began on the disk, and this is not written down any more.
        """
        with self._turn():
            if self._log.foreign:
                self._log.forget()
                self._catalogue.forget()
                self._groups.clear()
            group = rows[0].group
            if self._memory is None:
                try:
                    serial = self._log.begin(rows, contents)
                except _FAILURES as error:
                    self._fall_back(_reason(error))
                else:
                    if group is not None:
                        self._groups[serial] = group
                    return serial
            self._say()
            if group is not None and group in list(self._groups.values()):
                raise self._cut_short()
            assert self._memory is not None
            return self._memory.begin(rows, contents)

    def end(self, token: Any, landed: bool) -> None:
        """See `Store.end`."""
        if isinstance(token, int):
            self._groups.pop(token, None)
            self._log.end(token, landed)
            self._say_ended()
        elif self._memory is not None:
            with self._memory_lock:
                self._memory.end(token, landed)

    def settle(self, tokens: Sequence[Any]) -> None:
        """See `Store.settle`.

        Raises:
            FileProblem: it cannot be written down; nothing ended.
        """
        serials = [token for token in tokens if isinstance(token, int)]
        with self._turn():
            if serials:
                try:
                    self._log.say(serials)
                except _FAILURES as error:
                    self._fall_back(_reason(error))
                    raise self._cut_short() from None
        for token in tokens:
            if isinstance(token, int):
                self._groups.pop(token, None)
            else:
                self.end(token, True)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """One thread at a time; what other threads ended meanwhile is written down behind it."""
        try:
            with self._lock:
                yield
        finally:
            self._say_ended()

    def _say_ended(self) -> None:
        """Write down how changes ended if none is under way.

        It never waits: the thread that has the lock comes by here when it gives the lock back.  What is written is not
        synced, so it may be lost with the machine's power; then the next start decides as it does after a crash.
        """
        while self._log.all_ended and self._lock.acquire(blocking=False):
            try:
                self._say(sync=False)
            finally:
                self._lock.release()

    def _say(self, sync: bool | None = None) -> None:
        """Write down what has ended, if anything has."""
        try:
            self._log.say(sync=sync)
        except _FAILURES as error:
            self._fall_back(_reason(error))

    def _cut_short(self) -> FileProblem:
        return FileProblem(
            "history",
            "all changes of one call written down before the first is made",
            f"a state directory that took only some ({self._problem})",
            "What was changed is put back; send the call again.",
            retryable=True,
        )

    def _shrink(self, needed: int) -> None:
        """Drop the oldest segments, until the bounds are kept; of this process's none from number `needed` on."""
        held = self._catalogue.ask(lambda index: index.counts()[0])
        numbers = segments_in(self._directory)
        sizes = {number: os.stat(path_of(self._directory, number)).st_size for number in numbers}
        own = {segment.number: segment for segment in self._log.segments}
        for number in numbers[:-1]:
            if sum(sizes.values()) <= self._most_bytes and held <= self._most_rows:
                return
            segment = own.get(number) or Segment.taken(self._directory, number)
            if segment is None or (number in own and number >= needed):
                continue
            held = self._catalogue.ask(partial(_rows_without, segment))
            if segment in self._log.segments:
                self._log.segments.remove(segment)
            del sizes[number]

    # Asking

    def rows_of_batch(self, batch_id: str) -> list[Row]:
        """See `Store.rows_of_batch`.

        Raises:
            FileProblem: this session wrote some of them down, and they cannot be read any more.
        """

        def told(index: Index) -> tuple[bool | None, list[Row]]:
            session = self._log.session
            return index.has_batch(session, batch_id), index.rows_of_batch(session, batch_id)

        nothing: tuple[bool | None, list[Row]] = (None, [])
        with self._turn():
            own, older = self._asked(told, nothing)
            if own is None and batch_id in self._log.batches:
                raise FileProblem(
                    f"batch {batch_id}",
                    "all that it changed",
                    f"a part: what was written down of it cannot be read any more ({self._problem})",
                    "Nothing was changed.",
                )
            newer = self._kept(lambda memory: memory.rows_of_batch(batch_id), nothing[1])
        # Without rows of its own among them, the older ones are an earlier session's.
        return in_call_order([*(older if own or not newer else []), *newer])

    def is_whole(self, batch_id: str) -> bool:
        """See `Store.is_whole`."""
        with self._turn():
            written = self._asked(lambda index: index.is_whole(self._log.session, batch_id), True)
            return written and self._kept(lambda memory: memory.is_whole(batch_id), True)

    def used_by(self, batch_id: str) -> tuple[int, int]:
        """See `Store.used_by`."""
        rows, size = self._log.used_by(batch_id)
        more_rows, more_size = self._kept(lambda memory: memory.used_by(batch_id), (0, 0))
        return rows + more_rows, size + more_size

    def has_batch(self, batch_id: str) -> bool:
        """Whether this session has rows of that batch."""
        with self._turn():
            written = self._asked(lambda index: index.has_batch(self._log.session, batch_id), None)
            if written is None:
                written = batch_id in self._log.batches
            return written or self._kept(lambda memory: bool(memory.rows_of_batch(batch_id)), False)

    def rows_of_file(self, key: Entry) -> tuple[int, list[Row]]:
        """See `Store.rows_of_file`."""
        nothing: tuple[int, list[Row]] = (0, [])
        with self._turn():
            dropped, older = self._asked(lambda index: index.rows_of_file(self._log.session, key), nothing)
            forgotten, newer = self._kept(lambda memory: memory.rows_of_file(key), nothing)
        if forgotten:  # the oldest of those in memory, so all that came before them
            return dropped + len(older) + forgotten, newer
        return dropped, [*older, *newer]

    def content(self, digest: bytes) -> bytes | None:
        """See `Store.content`."""
        with self._turn():
            newer = self._kept(lambda memory: memory.content(digest), None)
            return self._asked(lambda index: self._content(index, digest), None) if newer is None else newer

    def kept(self) -> list[Row]:
        """See `Store.kept`."""
        nothing: list[Row] = []
        with self._lock:
            older = self._asked(lambda index: index.kept(), nothing)
            return [*older, *self._kept(lambda memory: memory.kept(), nothing)]

    def _content(self, index: Index, digest: bytes) -> bytes | None:
        place = index.place_of(digest)
        if place is None:
            return None
        number, start, size = place
        try:
            descriptor = os.open(path_of(self._directory, number), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            content = os.pread(descriptor, size, start)
        finally:
            os.close(descriptor)
        return content if digest_of(content) == digest else None

    def statistics(self) -> dict[str, int]:
        """How much it holds: ``versions`` and ``bytes``."""
        with self._turn():
            rows, size = self._asked(lambda index: index.counts(), (0, 0))
            newer = self._kept(lambda memory: memory.statistics(), {"versions": 0, "bytes": 0})
        return {"versions": rows + newer["versions"], "bytes": size + newer["bytes"]}

    def _asked(self, question: Callable[[Index], T], nothing: T) -> T:
        """What is written down; `nothing` where there is no history yet, or it cannot be read."""
        self._say()
        if not self._log.segments and not os.path.isdir(self._directory):
            return nothing
        unsaid = list(self._log.unsaid())

        def asked(index: Index) -> T:
            if unsaid:
                index.end(self._log.session, unsaid)
            return question(index)

        try:
            return self._catalogue.ask(asked, alone=bool(unsaid))
        except _FAILURES as error:
            self._fall_back(_reason(error))
            return nothing

    def _kept(self, question: Callable[[MemoryStore], T], nothing: T) -> T:
        """What is in memory; `nothing` where nothing has to be."""
        if self._memory is None:
            return nothing
        with self._memory_lock:
            return question(self._memory)

    def _fall_back(self, problem: str) -> None:
        """Go on in memory."""
        if self._memory is None:
            self._problem = f"history is kept in memory: {problem}"
            self._memory = MemoryStore(self._most_rows, self._most_bytes)
            self._log.go_blind()

    def close(self) -> None:
        """Say what has ended, and let everything go; what comes after begins anew."""
        with self._turn():
            self._log.close()
            self._catalogue.close()


def _write_down(segments: Mapping[int, Segment], decided: Iterable[tuple[Place, bool]]) -> None:
    """What was decided is in the segment that has the change: who makes the index anew reads it there."""
    said: dict[int, list[list[object]]] = {}
    for (number, *about), landed in decided:
        said.setdefault(number, []).append([*about, landed])
    for number, decisions in said.items():
        segments[number].append({"decided": decisions})


def _shrunk(journal: Journal | None, needed: int) -> None:
    if journal is not None:
        journal._shrink(needed)


def _rows_without(segment: Segment, index: Index) -> int:
    """How many rows are left once that segment is dropped."""
    index.drop_segment(segment.number, segment.remove)
    return index.counts()[0]


def _reason(error: Exception) -> str:
    """Why, without a path."""
    if isinstance(error, OSError):
        return os.strerror(error.errno or 0)
    return f"{type(error).__name__}: {error}" if isinstance(error, sqlite3.Error) else type(error).__name__


def _can_be_written(directory: str) -> bool:
    """Whether `directory`, or what would have to be made for it, can be."""
    while not os.path.exists(directory):
        above = os.path.dirname(directory)
        if above == directory:
            return False
        directory = above
    return os.path.isdir(directory) and os.access(directory, os.W_OK | os.X_OK)

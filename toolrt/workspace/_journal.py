"""History that outlives the process: segments that are appended to, and an index in SQLite made from them.

Rules.
    1. What is about to happen is written down, contents and all, in one append before the file is touched.  That it
       happened is said together with what is written next, and when the process ends; so a change costs one append.
    2. A change of which nobody said so, and whose writer is gone, is decided by the next start, by what is on the
       disk.  Of a group all changes are said to have happened in one append; a group without it is taken back.
    3. Nothing here ever fails a call.  When the state directory cannot be written, history goes on in memory, and
       says so.

Theory.  The segments are the truth and the index may be lost (see `toolrt.workspace._sqlite`).  Measured on 10 KiB
files: an append costs some 20 microseconds, a commit of the same to SQLite (write-ahead logging, no sync) 130.

Limits.  Bounds are kept by whole segments, an eighth of the bound each: history holds between seven and nine eighths
of what it may.  Without a disk that syncs (`RealDisk(fsync=True)`), a loss of power may lose the latest versions.
A forked child begins a session of its own.  Of what another living process did last, whether it happened is not
known here, and it is shown as if it had.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from toolrt.workspace._disk import Entry
from toolrt.workspace._history import MemoryStore, in_call_order
from toolrt.workspace._mutation import digest_of
from toolrt.workspace._segment import Segment, path_of, segments_in
from toolrt.workspace._sqlite import Index
from toolrt.workspace._version import Row

__all__ = ["Journal", "Pending"]

T = TypeVar("T")

#: How many parts a bound is kept in.
_SEGMENTS = 8

#: A content that one of so many last segments has is not written again.
_RECENT = 4

#: How many contents are known to be there; all are forgotten when there are more.
_KNOWN = 65_536

#: A change of which nobody said whether it happened: its number in the index, and what it is.
Pending = tuple[int, Row]

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
        self._sync = sync
        self._lock = threading.Lock()
        self._index: Index | None = None
        #: The segments this process writes, the last one now; the others wait for nothing but its end.
        self._segments: list[Segment] = []
        #: What has ended and is still to be said: serial number, whether it happened.  Shared with no lock: a deque
        #: takes and gives in one step.
        self._ended: deque[tuple[int, bool]] = deque()
        self._session = ""
        self._serial = 0
        self._groups = 0
        #: By digest: the last segment that was given the content.
        self._known: dict[bytes, int] = {}
        self._memory: MemoryStore | None = None
        self._problem: str | None = None
        self._finalizer = weakref.finalize(self, _close, self._segments, self._ended)
        if directory is None:
            self._fall_back("the user's state directory is inside the workspace; name another one")
        elif not _can_be_written(directory):
            self._fall_back("the state directory cannot be written")

    @property
    def problem(self) -> str | None:
        """Why history is in memory from some point on; None: it is not."""
        return self._problem

    # What the start finds

    def start(self, settle: Callable[[Sequence[Pending], Journal], Iterable[tuple[int, bool]]]) -> None:
        """Take over from writers that are gone; nothing, where there is no history yet.

        Args:
            settle: is given what they left undecided, oldest first, and decides it.
        """
        if self._memory is not None or not os.path.isdir(self._directory):
            return
        gone: list[Segment] = []
        try:
            for number in segments_in(self._directory):
                segment = Segment.taken(self._directory, number)
                if segment is not None:
                    gone.append(segment)
            if not gone:
                return
            ends = self._opened().absorb()
            for segment in gone:
                segment.cut(ends.get(segment.number, segment.size))
            pending = self._opened().pending([segment.number for segment in gone])
            if pending:
                self._opened().settle(list(settle(pending, self)))
            last = gone[-1]
            if last.size < self._most_bytes // _SEGMENTS // 2:
                self._begin_session(gone.pop())
        except _FAILURES as error:
            self._fall_back(_reason(error))
        finally:
            for segment in gone:
                segment.close()

    def next_of(self, id: int, key: Entry) -> Row | None:
        """The change of that entry that came after that one, whoever made it."""
        return self._opened().next_of(id, key)

    def stored(self, digest: bytes) -> bytes | None:
        """The content, for who decides."""
        return self._content(self._opened(), digest)

    # Writing

    def new_group(self) -> str:
        """See `Store.new_group`; another name in every session."""
        with self._lock:
            self._groups += 1
            return f"{self._session or 'first'}-{self._groups}"

    def begin(self, rows: Sequence[Row], contents: Mapping[bytes, bytes]) -> object:
        """See `Store.begin`."""
        with self._lock:
            if self._memory is None:
                try:
                    return self._append(rows, contents)
                except _FAILURES as error:
                    self._fall_back(_reason(error))
            assert self._memory is not None
            return self._memory.begin(rows, contents)

    def _append(self, rows: Sequence[Row], contents: Mapping[bytes, bytes]) -> int:
        segment = self._writable()
        serial = self._serial
        old = segment.number - _RECENT
        fresh = {digest: content for digest, content in contents.items() if self._known.get(digest, -_RECENT) <= old}
        said = self._endings()
        said["begun"] = [
            serial,
            [row.to_json() for row in rows],
            [(digest.hex(), len(content)) for digest, content in fresh.items()],
        ]
        segment.append(said, list(fresh.values()), sync=self._sync)
        segment.rows += len(rows)
        self._serial += 1
        if len(self._known) + len(fresh) > _KNOWN:
            self._known.clear()
        self._known.update(dict.fromkeys(fresh, segment.number))
        return serial

    def end(self, token: Any, landed: bool) -> None:
        """See `Store.end`."""
        if isinstance(token, int):
            self._ended.append((token, landed))
        elif self._memory is not None:
            self._memory.end(token, landed)

    def settle(self, tokens: Sequence[Any]) -> None:
        """See `Store.settle`."""
        for token in tokens:
            self.end(token, True)
        with self._lock:
            self._say_endings()

    def _endings(self) -> dict[str, Any]:
        """What has ended since this was asked last."""
        landed: list[int] = []
        void: list[int] = []
        while self._ended:
            serial, happened = self._ended.popleft()
            (landed if happened else void).append(serial)
        said: dict[str, Any] = {"landed": landed} if landed else {}
        if void:
            said["void"] = void
        return said

    def _say_endings(self) -> None:
        """Write down what has ended, if anything has."""
        if self._memory is None and self._ended and self._segments:
            try:
                self._segments[-1].append(self._endings(), sync=self._sync)
            except _FAILURES as error:
                self._fall_back(_reason(error))

    def _writable(self) -> Segment:
        """The segment to write to now."""
        if self._segments and self._segments[-1].foreign:
            # The parent's: it holds the locks, and what is open here is its own too.
            self._segments.clear()
            self._ended.clear()
            self._index = None
        if not self._segments:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            self._begin_session(Segment.made(self._directory))
        segment = self._segments[-1]
        if segment.size >= self._most_bytes // _SEGMENTS or segment.rows >= max(1, self._most_rows // _SEGMENTS):
            segment = Segment.made(self._directory)
            segment.append({"session": self._session})
            self._segments.append(segment)
            self._shrink()
        return segment

    def _begin_session(self, segment: Segment) -> None:
        self._session = os.urandom(8).hex()
        self._serial = 0
        segment.append({"session": self._session})
        self._segments.append(segment)

    def _shrink(self) -> None:
        """Drop the oldest segments, until the bounds are kept."""
        index = self._opened()
        index.absorb()
        numbers = segments_in(self._directory)
        sizes = {number: os.stat(path_of(self._directory, number)).st_size for number in numbers}
        own = {segment.number: segment for segment in self._segments}
        for number in numbers[:-1]:
            if sum(sizes.values()) <= self._most_bytes and index.counts()[0] <= self._most_rows:
                return
            segment = own.get(number) or Segment.taken(self._directory, number)
            if segment is None:
                continue
            index.drop_segment(number, segment.remove)
            if segment in self._segments:
                self._segments.remove(segment)
            del sizes[number]

    # Asking

    def rows_of_batch(self, batch_id: str) -> list[Row]:
        """See `Store.rows_of_batch`."""
        return self._asked(
            lambda index: in_call_order(index.rows_of_batch(self._session, batch_id)),
            lambda memory: memory.rows_of_batch(batch_id),
            [],
        )

    def has_batch(self, batch_id: str) -> bool:
        """Whether this session has rows of that batch."""
        return self._asked(
            lambda index: index.has_batch(self._session, batch_id),
            lambda memory: bool(memory.rows_of_batch(batch_id)),
            False,
        )

    def rows_of_file(self, key: Entry) -> tuple[int, list[Row]]:
        """See `Store.rows_of_file`."""
        nothing: tuple[int, list[Row]] = (0, [])
        return self._asked(
            lambda index: index.rows_of_file(self._session, key), lambda memory: memory.rows_of_file(key), nothing
        )

    def content(self, digest: bytes) -> bytes | None:
        """See `Store.content`."""
        return self._asked(lambda index: self._content(index, digest), lambda memory: memory.content(digest), None)

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
        rows, size = self._asked(
            lambda index: index.counts(),
            lambda memory: (memory.statistics()["versions"], memory.statistics()["bytes"]),
            (0, 0),
        )
        return {"versions": rows, "bytes": size}

    def _asked(self, question: Callable[[Index], T], instead: Callable[[MemoryStore], T], nothing: T) -> T:
        """What the index says once it knows everything, or the memory where history is there; `nothing` at first."""
        with self._lock:
            if self._memory is None:
                self._say_endings()
            if self._memory is None:
                try:
                    if not self._segments and not os.path.isdir(self._directory):
                        return nothing
                    index = self._opened()
                    index.absorb()
                    return question(index)
                except _FAILURES as error:
                    self._fall_back(_reason(error))
            assert self._memory is not None
            return instead(self._memory)

    def _opened(self) -> Index:
        if self._index is None:
            self._index = Index(self._directory)
        return self._index

    def _fall_back(self, problem: str) -> None:
        """Go on in memory."""
        self._problem = f"history is kept in memory: {problem}"
        self._memory = MemoryStore(self._most_rows, self._most_bytes)

    def close(self) -> None:
        """Say what has ended, and let everything go; what comes after begins anew."""
        with self._lock:
            _close(self._segments, self._ended)
            if self._index is not None:
                self._index.close()
                self._index = None


def _close(segments: list[Segment], ended: deque[tuple[int, bool]]) -> None:
    """The process ends, or nobody has the history any more."""
    landed: list[int] = []
    void: list[int] = []
    while ended:
        serial, happened = ended.popleft()
        (landed if happened else void).append(serial)
    if segments and not segments[-1].foreign and (landed or void):
        with contextlib.suppress(OSError):
            segments[-1].append({"landed": landed, "void": void})
    while segments:
        segments.pop().close()


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

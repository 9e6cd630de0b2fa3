"""Writes this process's segments one after another, and how the changes in them ended.

Rules.  An intended change is one record.  That it happened, or did not, is recorded with the next change, or when no
change is under way.  For that a segment keeps room behind its last record (`toolrt.workspace.journal._segment`), so it
can be recorded when the disk is full.  An end counts as recorded once it is written; until then each record and each
question tries again.  A segment has all contents of its own changes, so one that is dropped takes none from others.

The order of all changes, of every writer, is a sequence and no time: a clock may be set back.  A writer takes the next
number by appending one byte to a file that all of them share; the file's length there is the number.

A log that the disk refuses once goes blind: it begins no more changes, and what has begun still ends here.

Limits.  Where a state directory refuses even records that fit into the room (a broken disk, one that became
read-only), ends are not recorded, and the next start decides (`toolrt.workspace.journal._recovery`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from toolrt.workspace.change._version import ChangeRow
from toolrt.workspace.journal._segment import Segment

#: How many segments share a bound.
SEGMENTS = 8

#: How many contents the log remembers to have written to a segment; with more it forgets all.
_KNOWN = 65_536

#: How many batches the log remembers the use of.
_MOST_BATCHES = 100_000

#: The file whose length is the number of the last change of any writer, and by how much a session goes ahead in it: a
#: loss of power may have cut it short by what was not on the disk yet.
_SEQUENCE = "sequence.log"
_AHEAD = 1 << 20

#: Bytes of a record that says how one change ended; as many once more for a record that the writer goes blind.
_ROOM = 64


@attrs.define
class _Used:
    """What one batch has written."""

    #: The number of the segment that has its first rows; 0: none yet.
    segment: int = 0
    rows: int = 0
    size: int = 0


class Log:
    """The segments in `directory` that this process writes.  All but `end` is to be called inside `turn`.

    Args:
        directory: where they are; made when something is written.
        versions: how many rows all segments have at most; a segment has an eighth.
        size: how many bytes they have at most.
        sync: whether each append is synced to the disk before it counts.
    """

    def __init__(self, directory: str, versions: int, size: int, sync: bool) -> None:
        self._directory = directory
        self._most_rows = max(1, versions // SEGMENTS)
        self._most_bytes = size // SEGMENTS
        self._sync = sync
        self._lock = threading.Lock()
        #: The last one is written to; the others stay locked until the end.
        self.segments: list[Segment] = []
        #: Names the writer of all records until the next `begin_session`.
        self.session = ""
        #: What each batch has written, the batch that wrote last at the end.
        self.batches: dict[str, _Used] = {}
        #: Why later changes are not written here; None: they are.  And whether that is still to be recorded.
        self.problem: str | None = None
        self._blind_unsaid = False
        #: The groups of changes that began here and have not ended, by serial number.
        self._groups: dict[int, str] = {}
        self._serial = 0
        #: The open file that gives each change its number; None: not opened in this session.
        self._sequence: int | None = None
        #: How many changes have begun and have no recorded end.
        self._open = 0
        #: What has ended: serial number, whether it happened.  Threads share it without a lock: a deque takes and
        #: gives in one step.
        self._ended: deque[tuple[int, bool]] = deque()
        #: The same, taken out of it and not recorded.
        self._unsaid: list[tuple[int, bool]] = []
        #: The contents that the last segment has.
        self._known: set[bytes] = set()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """One thread at a time; afterwards it records the changes that other threads ended meanwhile."""
        try:
            with self._lock:
                yield
        finally:
            self._say_if_idle()

    @property
    def foreign(self) -> bool:
        """Whether the open segments belong to the process that this one was forked from."""
        return bool(self.segments) and self.segments[-1].foreign

    def begin(self, rows: Sequence[ChangeRow], contents: Mapping[bytes, bytes]) -> int | None:
        """Record an intended change; gives the number that `end` wants, or None: the disk refuses, or did."""
        if self.foreign:
            self._forget()
        if self.problem is None:
            try:
                return self._begin(rows, contents)
            except OSError as error:
                self.go_blind(reason_of(error))
        self.say_ended()
        return None

    def _begin(self, rows: Sequence[ChangeRow], contents: Mapping[bytes, bytes]) -> int:
        used = self.batches.get(rows[0].batch_id) or _Used()
        segment = self._writable()
        fresh = {digest: content for digest, content in contents.items() if digest not in self._known}
        said = self._endings()
        said["begun"] = [
            self._serial,
            self._next_number(),
            [row.to_json() for row in rows],
            [(digest.hex(), len(content)) for digest, content in fresh.items()],
        ]
        if used.segment not in (0, segment.number):
            said["since"] = used.segment
        left = self._open + 1 - len(self._unsaid)
        size = segment.size
        segment.append(said, list(fresh.values()), keep=_ROOM * (left + 1), sync=self._sync)
        segment.rows += len(rows)
        used.segment = used.segment or segment.number
        used.rows += len(rows)
        used.size += segment.size - size
        self.batches.pop(rows[0].batch_id, None)
        self.batches[rows[0].batch_id] = used
        self._said(left)
        serial, group = self._serial, rows[0].group
        self._serial += 1
        if group is not None:
            self._groups[serial] = group
        if len(self._known) + len(fresh) > _KNOWN:
            self._known.clear()
        self._known.update(fresh)
        if len(self.batches) > _MOST_BATCHES:
            del self.batches[next(iter(self.batches))]
        return serial

    def has_begun(self, group: str | None) -> bool:
        """Whether a change of this group began here and has not ended."""
        return group is not None and group in list(self._groups.values())

    def end(self, serial: int, landed: bool) -> None:
        """The change happened, or did not; that is recorded now if no change is under way.  For any thread."""
        self._groups.pop(serial, None)
        self._ended.append((serial, landed))
        self._say_if_idle()

    def settle(self, serials: Sequence[int]) -> bool:
        """All of these changes happened; False: that cannot be recorded, and nothing ended."""
        try:
            if serials:
                self.say(serials)
        except OSError as error:
            self.go_blind(reason_of(error))
            return False
        for serial in serials:
            self._groups.pop(serial, None)
        return True

    def _say_if_idle(self) -> None:
        """Record how changes ended if none is under way.

        It never waits: the thread that has the lock comes by here when it gives the lock back.  Without the lock the
        numbers may be wrong, and that thread looks at them again.  The record is not synced, so a loss of power may
        lose it; then the next start decides as it does after a crash.
        """
        while self._ended and self._open <= len(self._unsaid) + len(self._ended) and self._lock.acquire(blocking=False):
            try:
                self.say_ended(sync=False)
            finally:
                self._lock.release()

    def say_ended(self, sync: bool | None = None) -> None:
        """Record what has ended, if anything has; a disk that refuses is asked again later."""
        try:
            self.say(sync=sync)
        except OSError as error:
            self.go_blind(reason_of(error))

    def unsaid(self) -> list[tuple[int, bool]]:
        """The ends that are not recorded yet."""
        while self._ended:
            self._unsaid.append(self._ended.popleft())
        return self._unsaid

    def say(
        self, landed: Sequence[int] = (), *, more: Mapping[str, Any] | None = None, sync: bool | None = None
    ) -> None:
        """Record what has ended, and with it that all of `landed` happened.

        Args:
            more: to be recorded with it.
            sync: whether it is synced to the disk before it counts; None: as every other record.

        Raises:
            OSError: it could not be written; `landed` did not end, and the other ends are tried again later.
        """
        said = self._endings(landed) | dict(more or {})
        if self._blind_unsaid:
            said["blind"] = True
        if not said:
            return
        if not self.segments or self.foreign:
            if landed:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return
        left = self._open - len(self._unsaid) - len(landed)
        sync = self._sync if sync is None else sync
        self.segments[-1].append(said, keep=_ROOM * (left + (self.problem is None)), sync=sync)
        self._said(left)
        self._blind_unsaid = False

    def go_blind(self, problem: str) -> None:
        """Begin no more changes; the next start cannot know where those will be, and that is recorded once possible."""
        if self.problem is None:
            self.problem = f"history is kept in memory: {problem}"
            self._blind_unsaid = True
            with contextlib.suppress(OSError):
                self.say()

    def _endings(self, more: Sequence[int] = ()) -> dict[str, Any]:
        landed = [*(serial for serial, happened in self.unsaid() if happened), *more]
        void = [serial for serial, happened in self._unsaid if not happened]
        return {name: serials for name, serials in (("landed", landed), ("void", void)) if serials}

    def _said(self, left: int) -> None:
        self._unsaid.clear()
        self._open = left

    def _writable(self) -> Segment:
        """The segment to write to."""
        if not self.segments:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            self.begin_session(Segment.made(self._directory))
        segment = self.segments[-1]
        if segment.size >= self._most_bytes or segment.rows >= self._most_rows:
            segment = Segment.made(self._directory)
            self._open_with(segment, _ROOM * (self._open + 1))
        return segment

    def _next_number(self) -> int:
        """The number of a change that begins now: higher than that of any that has begun."""
        if self._sequence is None:
            path = os.path.join(self._directory, _SEQUENCE)
            self._sequence = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with contextlib.suppress(BlockingIOError):  # another session begins now, and goes ahead for both
                fcntl.flock(self._sequence, fcntl.LOCK_EX | fcntl.LOCK_NB)  # or two could make it shorter
                os.ftruncate(self._sequence, os.fstat(self._sequence).st_size + _AHEAD)
                fcntl.flock(self._sequence, fcntl.LOCK_UN | fcntl.LOCK_NB)
        os.write(self._sequence, b"\0")
        return os.lseek(self._sequence, 0, os.SEEK_CUR)

    def _close_sequence(self) -> None:
        if self._sequence is not None:
            os.close(self._sequence)
            self._sequence = None

    def begin_session(self, segment: Segment) -> None:
        """Write to that segment in a new session."""
        self._close_sequence()
        self.session = os.urandom(8).hex()
        self._serial = self._open = 0
        self._open_with(segment, _ROOM)

    def _open_with(self, segment: Segment, keep: int) -> None:
        try:
            segment.append({"session": self.session}, keep=keep, sync=self._sync)
        except BaseException:
            if not segment.size:
                segment.remove()
            raise
        self.segments.append(segment)
        self._known.clear()

    def _forget(self) -> None:
        """Leave the open segments to the process that this one was forked from: it holds their locks."""
        self.segments.clear()
        self.batches.clear()
        self._groups.clear()
        self._ended.clear()
        self._unsaid.clear()

    def close(self) -> None:
        """Record what has ended, as far as possible, and close the segments; a later change begins anew."""
        with contextlib.suppress(OSError):
            self.say()
        while self.segments:
            self.segments.pop().close()
        self._close_sequence()
        self._ended.clear()
        self._unsaid.clear()


def reason_of(error: Exception) -> str:
    """Why a state directory is not written or read any more, without a path."""
    return os.strerror(error.errno or 0) if isinstance(error, OSError) else type(error).__name__

"""What this process writes of history: its segments, one after another, and what has become of what was begun.

Rules.  What is about to happen is one record.  That it happened, or did not, is said with the next one, or when all
that was begun has ended; for that room is kept behind the last record (see `toolrt.workspace.journal._segment`), so
that it can be said when the disk is full.  It counts as said only once it is written, and is tried again until then.
A segment has all contents that its own changes speak of, so one that is dropped takes none from others.

Limits.  A state directory that refuses even what there is room for (a broken disk, one that became read-only) is not
told how things ended; the next start decides, see `toolrt.workspace.journal._recovery`.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from toolrt.workspace.change._version import Row
from toolrt.workspace.journal._segment import Segment

__all__ = ["Log"]

#: How many parts a bound is kept in.
SEGMENTS = 8

#: How many contents are known to be in the segment; all are forgotten when there are more.
_KNOWN = 65_536

#: How many batches are known by what they have written.
_MOST_BATCHES = 100_000

#: Bytes in which it can be said how one change has ended, in a record of its own; and once more, for what else there
#: is to say.
_ROOM = 64


@attrs.define
class _Used:
    """What one batch has written."""

    #: The number of the segment that has its first rows; 0: none yet.
    segment: int = 0
    rows: int = 0
    size: int = 0


class Log:
    """The segments in `directory` that this process writes.  Not for use by two threads at once, but for `end`.

    Args:
        directory: where they are; made when something is written.
        versions: how many rows all segments have at most; a segment has an eighth.
        size: how many bytes they have at most.
        sync: whether each append is on the disk before it counts.
        grown: is called when there is a new segment, with the number of the first that the batch it is made for needs.
    """

    def __init__(self, directory: str, versions: int, size: int, sync: bool, grown: Callable[[int], None]) -> None:
        self._directory = directory
        self._most_rows = max(1, versions // SEGMENTS)
        self._most_bytes = size // SEGMENTS
        self._sync = sync
        self._grown = grown
        #: The last one is written now; the others wait for nothing but the end.
        self.segments: list[Segment] = []
        #: Names all that is written until the next `begin_session`.
        self.session = ""
        #: The batches that it has rows of, those that wrote last, oldest first.
        self.batches: dict[str, _Used] = {}
        #: Whether what comes after is not written here any more, and whether that is still to be said.
        self.blind = False
        self._blind_unsaid = False
        self._serial = 0
        #: How many changes were begun of which is not said yet how they ended.
        self._open = 0
        #: What has ended: serial number, whether it happened.  Shared with no lock: a deque takes and gives in one
        #: step.
        self._ended: deque[tuple[int, bool]] = deque()
        #: The same, taken out of it and not written yet.
        self._unsaid: list[tuple[int, bool]] = []
        #: The contents that the last segment has.
        self._known: set[bytes] = set()

    @property
    def foreign(self) -> bool:
        """Whether what is open here belongs to the process that this one was forked from."""
        return bool(self.segments) and self.segments[-1].foreign

    def begin(self, rows: Sequence[Row], contents: Mapping[bytes, bytes]) -> int:
        """Write down what is about to happen; gives the number that `end` wants.

        Raises:
            OSError: nothing was written.
        """
        used = self.batches.get(rows[0].batch_id) or _Used()
        segment = self._writable(used)
        fresh = {digest: content for digest, content in contents.items() if digest not in self._known}
        said = self._endings()
        said["begun"] = [
            self._serial,
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
        self._serial += 1
        if len(self._known) + len(fresh) > _KNOWN:
            self._known.clear()
        self._known.update(fresh)
        if len(self.batches) > _MOST_BATCHES:
            del self.batches[next(iter(self.batches))]
        return self._serial - 1

    def end(self, serial: int, landed: bool) -> None:
        """What was begun happened, or did not.  Writes nothing, and may be called in any thread."""
        self._ended.append((serial, landed))

    @property
    def all_ended(self) -> bool:
        """Whether something has ended since anything was written, and nothing that was begun is under way.

        Without the lock it may be wrong while another thread has it; that thread asks again when it gives it back.
        """
        return bool(self._ended) and self._open <= len(self._unsaid) + len(self._ended)

    def unsaid(self) -> list[tuple[int, bool]]:
        """What has ended and is not written yet."""
        while self._ended:
            self._unsaid.append(self._ended.popleft())
        return self._unsaid

    def say(self, landed: Sequence[int] = (), *, sync: bool | None = None) -> None:
        """Write down what has ended, and with it that all of `landed` happened.

        Args:
            sync: whether it is on the disk before it counts; None: as everything else.

        Raises:
            OSError: it could not be written; `landed` did not end, the rest is said another time.
        """
        said = self._endings(landed)
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
        self.segments[-1].append(said, keep=_ROOM * (left + (not self.blind)), sync=sync)
        self._said(left)
        self._blind_unsaid = False

    def go_blind(self) -> None:
        """What comes after is not written here, so a later start does not know where it was; said once it can be."""
        if not self.blind:
            self.blind = self._blind_unsaid = True
            with contextlib.suppress(OSError):
                self.say()

    def _endings(self, more: Sequence[int] = ()) -> dict[str, Any]:
        landed = [*(serial for serial, happened in self.unsaid() if happened), *more]
        void = [serial for serial, happened in self._unsaid if not happened]
        return {name: serials for name, serials in (("landed", landed), ("void", void)) if serials}

    def _said(self, left: int) -> None:
        self._unsaid.clear()
        self._open = left

    def used_by(self, batch_id: str) -> tuple[int, int]:
        """How many rows and bytes were written for that batch."""
        used = self.batches.get(batch_id)
        return (0, 0) if used is None else (used.rows, used.size)

    def _writable(self, used: _Used) -> Segment:
        """The segment to write to now, for a batch that has written so much."""
        if not self.segments:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            self.begin_session(Segment.made(self._directory))
        segment = self.segments[-1]
        if segment.size >= self._most_bytes or segment.rows >= self._most_rows:
            segment = Segment.made(self._directory)
            self._open_with(segment, _ROOM * (self._open + 1))
            self._grown(used.segment or segment.number)
        return segment

    def begin_session(self, segment: Segment) -> None:
        """Write to that segment, in a session of its own."""
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

    def forget(self) -> None:
        """Leave what is open to the process that this one was forked from: it holds the locks."""
        self.segments.clear()
        self.batches.clear()
        self._ended.clear()
        self._unsaid.clear()

    def close(self) -> None:
        """Say what has ended, as far as that can be written, and let everything go; what comes after begins anew."""
        with contextlib.suppress(OSError):
            self.say()
        while self.segments:
            self.segments.pop().close()
        self._ended.clear()
        self._unsaid.clear()

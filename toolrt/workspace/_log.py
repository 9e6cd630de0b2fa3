"""What this process writes of history: its segments, one after another, and what has become of what was begun.

Rules.  What is about to happen is one record.  That it happened, or did not, is said with the next one; for that room
is kept behind the last record (see `toolrt.workspace._segment`), so that it can be said when the disk is full.  It
counts as said only once it is written, and is tried again until then.  A segment has all contents that its own changes
speak of, so one that is dropped takes none from others.

Limits.  A state directory that refuses even what there is room for (a broken disk, one that became read-only) is not
told how things ended; the next start decides, see `toolrt.workspace._recovery`.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolrt.workspace._segment import Segment
from toolrt.workspace._version import Row

__all__ = ["Log"]

#: How many parts a bound is kept in.
SEGMENTS = 8

#: How many contents are known to be in the segment; all are forgotten when there are more.
_KNOWN = 65_536

#: Bytes in which it can be said how one change has ended, in a record of its own; and once more, for what else there
#: is to say.
_ROOM = 64


class Log:
    """The segments in `directory` that this process writes.  Not for use by two threads at once, but for `end`.

    Args:
        directory: where they are; made when something is written.
        versions: how many rows all segments have at most; a segment has an eighth.
        size: how many bytes they have at most.
        sync: whether each append is on the disk before it counts.
        grown: is called when there is a new segment.
    """

    def __init__(self, directory: str, versions: int, size: int, sync: bool, grown: Callable[[], None]) -> None:
        self._directory = directory
        self._most_rows = max(1, versions // SEGMENTS)
        self._most_bytes = size // SEGMENTS
        self._sync = sync
        self._grown = grown
        #: The last one is written now; the others wait for nothing but the end.
        self.segments: list[Segment] = []
        #: Names all that is written until the next `begin_session`.
        self.session = ""
        #: The batches that it has rows of, the last ones, oldest first.
        self.batches: dict[str, None] = {}
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
        segment = self._writable()
        fresh = {digest: content for digest, content in contents.items() if digest not in self._known}
        said = self._endings()
        said["begun"] = [
            self._serial,
            [row.to_json() for row in rows],
            [(digest.hex(), len(content)) for digest, content in fresh.items()],
        ]
        left = self._open + 1 - len(self._unsaid)
        segment.append(said, list(fresh.values()), keep=_ROOM * (left + 1), sync=self._sync)
        segment.rows += len(rows)
        self._said(left)
        self._serial += 1
        if len(self._known) + len(fresh) > _KNOWN:
            self._known.clear()
        self._known.update(fresh)
        for row in rows:
            self.batches[row.batch_id] = None
        if len(self.batches) > self._most_rows * SEGMENTS:
            del self.batches[next(iter(self.batches))]
        return self._serial - 1

    def end(self, serial: int, landed: bool) -> None:
        """What was begun happened, or did not.  Never blocks, and may be called in any thread."""
        self._ended.append((serial, landed))

    def unsaid(self) -> list[tuple[int, bool]]:
        """What has ended and is not written yet."""
        while self._ended:
            self._unsaid.append(self._ended.popleft())
        return self._unsaid

    def say(self, landed: Sequence[int] = ()) -> None:
        """Write down what has ended, and with it that all of `landed` happened.

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
        self.segments[-1].append(said, keep=_ROOM * (left + (not self.blind)), sync=self._sync)
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

    def _writable(self) -> Segment:
        """The segment to write to now."""
        if not self.segments:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            self.begin_session(Segment.made(self._directory))
        segment = self.segments[-1]
        if segment.size >= self._most_bytes or segment.rows >= self._most_rows:
            segment = Segment.made(self._directory)
            self._open_with(segment, _ROOM * (self._open + 1))
            self._grown()
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

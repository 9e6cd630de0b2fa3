"""Reads and writes a segment: a file of history with one writer and one system call for each record.

Rules.  A segment is a sequence of records; a record is a head, a description in JSON, and contents.  The writer of a
segment holds a lock on it (flock) while it lives, so a segment that can be locked has lost its writer.  A record that
was cut off, by a crash or a full disk, is the last one and counts as never written.

A writer may keep room behind the last record, as zeros, which are no record.  A record that fits into this room needs
no more of the disk, so it can be written when the disk is full.

Theory.  This is write-ahead logging with the contents in the log: the intended change is in the operating system's
hands before the file is touched, for the price of one append.  The index can be made from the segments at any time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

#: Mark, checksum of the description, its length, length of the contents.
_HEAD = struct.Struct("<4sIIQ")
_MARK = b"trt1"

#: Bytes that are read of a record at once: head and description of nearly all.
_READ = 1024

#: Made once: `json.dumps` with options makes an encoder at every call.
_encoded = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

_decoded = json.JSONDecoder().decode

_PREFIX, _SUFFIX = "segment-", ".log"


@attrs.frozen
class SegmentRecord:
    """One record as it is read."""

    #: Its description, read and as it stands there.
    said: dict[str, Any]
    text: bytes
    #: Where its contents begin, and where the next record does, in bytes from the segment's start.
    contents_at: int
    next_at: int


def segments_in(directory: str) -> list[int]:
    """The numbers of the segments there, in order."""
    found = []
    for name in os.listdir(directory):
        middle = name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        if name == f"{_PREFIX}{middle}{_SUFFIX}" and middle.isdecimal():
            found.append(int(middle))
    return sorted(found)


def path_of(directory: str, number: int) -> str:
    """Where the segment of this number is."""
    return os.path.join(directory, f"{_PREFIX}{number:08d}{_SUFFIX}")


def records_of(descriptor: int, start: int) -> Iterator[SegmentRecord]:
    """The whole records of the open segment from `start` on."""
    end = os.fstat(descriptor).st_size
    while start + _HEAD.size <= end:
        block = os.pread(descriptor, _READ, start)
        if len(block) < _HEAD.size:
            return
        mark, checksum, said_size, contents_size = _HEAD.unpack_from(block)
        contents_at = start + _HEAD.size + said_size
        following = contents_at + contents_size
        if mark != _MARK or following > end:
            return
        if contents_at > start + len(block):
            block += os.pread(descriptor, contents_at - start - len(block), start + len(block))
        text = block[_HEAD.size : contents_at - start]
        if zlib.crc32(text) != checksum:
            return
        yield SegmentRecord(_decoded(text.decode("ascii")), text, contents_at, following)
        start = following


def _head(said: dict[str, Any], behind: int) -> bytes:
    """A record without its contents, which have that many bytes."""
    text = _encoded(said).encode("ascii")
    return _HEAD.pack(_MARK, zlib.crc32(text), len(text), behind) + text


#: The record at the end of a segment whose changes all have a recorded end.
_SETTLED = _head({"settled": True}, 0)


class Segment:
    """A segment that this process writes."""

    def __init__(self, directory: str, number: int, descriptor: int, size: int) -> None:
        self.directory = directory
        self.number = number
        self.size = size
        #: How many records with changes were written to it here.
        self.rows = 0
        #: How many bytes of zeros are behind `size`.
        self._kept = 0
        #: The open file; -1 once it is closed.
        self.descriptor = descriptor
        self._pid = os.getpid()

    @classmethod
    def made(cls, directory: str) -> Segment:
        """A new one, behind all that are there.

        Raises:
            OSError: the directory cannot be written.
        """
        number = max(segments_in(directory), default=0) + 1
        while True:
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                descriptor = os.open(path_of(directory, number), flags, 0o600)
            except FileExistsError:
                number += 1
                continue
            if _is_locked(descriptor):
                return cls(directory, number, descriptor, 0)
            number += 1  # a start of another process took it as one without a writer, and keeps it

    @classmethod
    def taken(cls, directory: str, number: int) -> Segment | None:
        """A segment that has lost its writer; None: the writer lives, or the segment is gone.

        Raises:
            OSError: it cannot be opened.
        """
        try:
            descriptor = os.open(path_of(directory, number), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        if not _is_locked(descriptor):
            return None
        found = os.fstat(descriptor)
        if found.st_nlink == 0:
            os.close(descriptor)
            return None
        return cls(directory, number, descriptor, found.st_size)

    @property
    def foreign(self) -> bool:
        """Whether it was opened by the process that this one was forked from."""
        return self._pid != os.getpid()

    @property
    def settled(self) -> bool:
        """Whether its last record is that of `settle`."""
        return os.pread(self.descriptor, len(_SETTLED), max(0, self.size - len(_SETTLED))) == _SETTLED

    def settle(self) -> None:
        """Record that a start has nothing to decide here, so that no later one reads it; a full disk may refuse it."""
        with contextlib.suppress(OSError):
            self.append({"settled": True})

    def cut(self, size: int) -> None:
        """Remove what is behind `size`: a record that was cut off."""
        if size < self.size:
            os.ftruncate(self.descriptor, size)
            self.size = size

    def append(
        self, said: dict[str, Any], contents: Sequence[bytes] = (), *, keep: int = 0, sync: bool = False
    ) -> None:
        """Write one record; or nothing, if the disk refuses.

        Args:
            keep: how many bytes of room to keep behind it, for later records on a full disk.
            sync: whether it is synced to the disk before this returns.

        Raises:
            OSError: it could not be written; the room kept before is still there.
        """
        behind = sum(map(len, contents))
        head = _head(said, behind)
        blocks = [head, *contents, bytes(keep)]
        size = len(head) + behind
        try:
            written = os.pwritev(self.descriptor, blocks, self.size)
            if written < size + keep:
                rest = memoryview(b"".join(blocks))
                while written < size + keep:
                    step = os.pwrite(self.descriptor, rest[written:], self.size + written)
                    if not step:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    written += step
            if sync:
                os.fsync(self.descriptor)
        except OSError:
            if self._kept:
                os.pwrite(self.descriptor, bytes(self._kept), self.size)
            os.ftruncate(self.descriptor, self.size + self._kept)
            raise
        self.size += size
        # Zeros that were behind the shorter room stay there.
        self._kept = max(keep, self._kept - size)

    def remove(self) -> None:
        """The segment is gone, and closed."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path_of(self.directory, self.number))
        self.close()

    def close(self) -> None:
        """Close it, without its room; the next start may take it."""
        if self.descriptor >= 0:
            if self._kept and not self.foreign:
                with contextlib.suppress(OSError):
                    os.ftruncate(self.descriptor, self.size)
            os.close(self.descriptor)
            self.descriptor = -1


def _is_locked(descriptor: int) -> bool:
    """Lock the open segment for this process; where another has it, and on an error, close it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    except BaseException:
        os.close(descriptor)
        raise
    return True

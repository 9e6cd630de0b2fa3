"""One real file or socket that a program has open.

Rules.  A read takes what the last wait has found, and no more: bytes that arrive later are for the next wait.
"""

from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Callable
from typing import Any

from toolrt.probe import Resource
from toolrt.sim.programs.real._polls import STREAMS, kind_of, what_is_there

_NO_BLOCKING = "no wait has found anything yet"


class RealFile:
    """A real file or socket.

    Args:
        fd: its descriptor.
        name: what the explorer calls it, the same in every schedule.
    """

    def __init__(self, fd: int, name: Resource) -> None:
        self.fd = fd
        self.name = name
        self.identity = identity_of(fd)
        self._kind = kind_of(fd)
        # What a wait has found and no read has taken: so many bytes, or other things; and the end.
        self._found = 0
        self._has_ended = False
        #: True while an answer may be expected: something was sent since the last one.
        self.is_owed = False
        #: True when enough time was given to that answer.
        self.has_had_time = False
        #: The waits for it, by what they are for: "r" or "w".
        self.waits: dict[str, Any] = {}
        #: What was read, each read by its length and the sum of its bytes.
        self.reads: list[tuple[int, int]] = []

    @property
    def can_be_read(self) -> bool:
        """Whether a read gives what a wait has found."""
        return bool(self._found) or self._has_ended

    @property
    def has_ended(self) -> bool:
        """Whether the other end sends no more."""
        return self._has_ended

    def look(self) -> None:
        """Take note of what there is to read, now that there is something."""
        if self._kind == STREAMS:
            self._found, self._has_ended = what_is_there(self.fd)
        else:
            self._found = 1
        self.is_owed = False

    def read(self, operation: Callable[..., Any], target: Any, *args: Any) -> Any:
        """Read what was found.

        Raises:
            BlockingIOError: nothing was.
        """
        if not self.can_be_read:
            raise BlockingIOError(_NO_BLOCKING)
        name = operation.__name__
        if self._found and self._kind == STREAMS and name in ("recv", "read") and args:
            args = (min(args[0], self._found), *args[1:])
        try:
            result = operation(target, *args)
        except BlockingIOError:
            self._found, self._has_ended = 0, False
            raise
        first = result[0] if isinstance(result, tuple) else result
        count = first if isinstance(first, int) else len(first) if isinstance(first, bytes) else 1
        flags = args[1] if len(args) > 1 and name == "recv" else 0
        if not flags & socket.MSG_PEEK:
            self._found = max(0, self._found - count) if self._kind == STREAMS else 0
            if isinstance(first, bytes):
                self.reads.append((count, zlib.crc32(first)))
        return result

    def sends(self) -> None:
        """Take note that something is sent."""
        self.is_owed, self.has_had_time = True, False


def identity_of(fd: int) -> tuple[int, int]:
    """Give what tells an open file or socket from the next one with its descriptor."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino

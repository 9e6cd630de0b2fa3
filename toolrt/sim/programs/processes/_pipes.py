"""Pipes between a program and its children, in memory.

Rules.  A pipe holds 65,536 bytes.  A write of up to 4,096 bytes is whole or waits; of a longer one, what fits is
written.  When nothing can read any more, a write fails with EPIPE; when nothing can write, a read gives what is left,
then nothing: as Linux does it.

Their file descriptors stand in the table of the network in memory, so that Trio waits for both in one way.
"""

from __future__ import annotations

import errno
import os
from typing import Any

import trio

from toolrt.probe import Resource
from toolrt.sim.programs.network._endpoints import Endpoint, failed, would_block
from toolrt.sim.programs.network._links import touch
from toolrt.sim.programs.network._pipes import BytePipe
from toolrt.sim.programs.network._state import NETWORKS

_CAPACITY = 65_536
_ATOMIC = 4_096


class ChildFile(Endpoint):
    """An open file of a child: this one is the null device, or a file of the operating system.

    Args:
        name: what the explorer calls it.
        fd: the descriptor of the operating system, which is the program's; None: the null device.
    """

    def __init__(self, name: Resource, fd: int | None = None) -> None:
        net = NETWORKS.current()
        super().__init__(net, net.here(), 0, 0, 0, name)
        self._fd = fd

    def is_ready(self, what: str) -> bool:
        return True

    def read(self, most: int) -> bytes:
        """Give what there is, up to so many bytes; nothing at the end."""
        touch(self.name, True)
        return b"" if self._fd is None else os.read(self._fd, most)

    def write(self, data: Any) -> int:
        """Write `data`, or a part of it; say how much."""
        touch(self.name, True)
        return len(data) if self._fd is None else os.write(self._fd, data)

    def closed(self) -> None:
        """Do nothing: the file is the program's."""


class PipeEnd(ChildFile):
    """One end of a pipe.

    Args:
        pipe: what is between the two.
        reads: whether it is the end that is read from.
    """

    def __init__(self, pipe: BytePipe, reads: bool) -> None:
        super().__init__((*pipe.name, "reads" if reads else "writes"))
        self._pipe = pipe
        self._reads = reads
        self.other: PipeEnd = self

    def is_ready(self, what: str) -> bool:
        pipe = self._pipe
        touch(pipe.name, False)
        if what == "r":
            return bool(pipe.data) or pipe.ended
        return pipe.room() >= _ATOMIC or pipe.is_shut

    def read(self, most: int) -> bytes:
        if not self._reads:
            raise failed(errno.EBADF)
        pipe = self._pipe
        touch(pipe.name, bool(pipe.data))
        if not pipe.data:
            if pipe.ended:
                return b""
            raise would_block()
        taken = bytes(pipe.data[:most])
        del pipe.data[:most]
        self.other.wake("w")
        return taken

    def write(self, data: Any) -> int:
        if self._reads:
            raise failed(errno.EBADF)
        pipe = self._pipe
        touch(pipe.name, True)
        if pipe.is_shut:
            raise failed(errno.EPIPE)
        room, length = pipe.room(), len(data)
        if (length and not room) or room < length <= _ATOMIC:
            raise would_block()
        count = min(length, room)
        pipe.data += data[:count]
        self.other.wake("r")
        return count

    def closed(self) -> None:
        pipe = self._pipe
        touch(pipe.name, True)
        if self._reads:
            pipe.is_shut = True
            self.other.wake("w")
        else:
            pipe.ended = True
            self.other.wake("r")


def name_new(kind: str) -> Resource:
    """Name something that the running step makes, the same in every schedule."""
    return NETWORKS.current().name_new(kind)


def memory_pipe() -> tuple[int, int]:
    """Make a pipe; give the descriptors of the end that is read from, and of the other."""
    pipe = BytePipe(name_new("pipe"), _CAPACITY)
    reads, writes = PipeEnd(pipe, True), PipeEnd(pipe, False)
    reads.other, writes.other = writes, reads
    return descriptor(reads), descriptor(writes)


def descriptor(end: ChildFile) -> int:
    """Give a new file descriptor for an open file of a child."""
    return NETWORKS.current().descriptor(end)


def end_of(fd: object) -> ChildFile | None:
    """Give what a descriptor stands for; None: it is not one of these."""
    end = NETWORKS.fds.get(fd) if isinstance(fd, int) else None
    return end if isinstance(end, ChildFile) else None


class PipeOS:
    """Stands in for `os` where Trio reads, writes and closes pipes."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def read(self, fd: int, most: int) -> bytes:
        """Read from a pipe."""
        end = end_of(fd)
        data: bytes = self._real.read(fd, most) if end is None else end.read(most)
        return data

    def write(self, fd: int, data: Any) -> int:
        """Write to a pipe."""
        end = end_of(fd)
        count: int = self._real.write(fd, data) if end is None else end.write(data)
        return count

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        end = end_of(fd)
        if end is None:
            self._real.close(fd)
        else:
            del NETWORKS.fds[fd]
            end.release()


class PipeHolder:
    """Stands in for what holds the descriptor of a Trio stream.  A stream that is dropped leaves its pipe open.

    Args:
        fd: that descriptor.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self.fd == -1

    def close(self) -> None:
        """Close it, and wake the tasks that wait for it."""
        if not self.closed:
            fd, self.fd = self.fd, -1
            if end_of(fd) is not None:
                trio.lowlevel.notify_closing(fd)
                PipeOS(os).close(fd)

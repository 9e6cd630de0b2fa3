"""What Trio asks of the operating system, on a platform that has none of it: Python in a browser (Emscripten).

Rules.
    1. It is loaded where ``sys.platform`` is "emscripten", by ``import toolrt`` and before Trio.  On any other platform
       nothing here is used, and Trio is as it was installed.
    2. Trio's own code runs, unedited.  It takes its I/O manager for Linux, which needs an ``epoll``, a pair of sockets
       that wakes the loop, and a wake-up descriptor for signals.  Those three stand here, in memory.
    3. Only the ends of such pairs can become ready.  To wait for any other descriptor, to wait when nothing can ever
       wake the loop, and to start a thread (as Trio does to start a child process) is refused in words.

Theory.  A simulation needs no I/O: time is virtual, and its network, its processes and its files are in memory.  What
is left is the byte with which Trio wakes itself at the end of a run.  See docs/explanation/trio-in-a-browser.md.

Limits.  There are no threads and no processes.  Plain ``trio.run`` works, too: its sleep blocks the page's worker.
"""

from __future__ import annotations

import errno
import itertools
import select
import signal
import socket
import sys
import threading
import time
from typing import Any

# The numbers are Linux's.
_CONSTANTS = {"EPOLLIN": 1, "EPOLLOUT": 4, "EPOLLERR": 8, "EPOLLHUP": 16, "EPOLLONESHOT": 1 << 30}

#: Seconds that Trio hands to `poll` where no deadline is set.
_NO_DEADLINE = 24 * 60 * 60

# Far above the descriptors of files, so that one cannot be taken for the other.
_descriptors = itertools.count(1 << 20)
_ends: dict[int, _End] = {}


def has_threads() -> bool:
    """Whether this Python can start threads."""
    return sys.platform != "emscripten"


def prepare_trio() -> None:
    """Put the stand-ins in place, and import Trio."""
    stand_ins: list[tuple[Any, dict[str, Any]]] = [
        (select, {"epoll": Epoll, **_CONSTANTS}),
        (socket, {"socketpair": socketpair, "SO_REUSEADDR": 2, "AF_UNIX": 1}),
        (signal, {"set_wakeup_fd": _set_wakeup_fd}),
        (threading, {"_start_joinable_thread": _start_thread}),
    ]
    for module, names in stand_ins:
        for name, value in names.items():
            setattr(module, name, value)
    # Trio's own `socket` has what is public in this one.
    socket.__all__ += ["AF_UNIX", "SO_REUSEADDR"]
    # Trio imports it, and it looks for a library by the platform's name.
    import ctypes  # noqa: F401

    platform = sys.platform
    # As on Linux, but for `pidfd_open`, which Trio would look for in the C library.
    sys.platform = "android"
    try:
        import trio  # noqa: F401
    finally:
        sys.platform = platform


class Epoll:
    """The part of ``select.epoll`` that Trio uses, for the ends of pairs that `socketpair` made."""

    def __init__(self) -> None:
        self._wanted: dict[int, int] = {}

    def register(self, fd: int | _End, flags: int) -> None:
        """Wait for a descriptor."""
        number = _number(fd)
        if number in self._wanted:
            raise FileExistsError(errno.EEXIST, "the descriptor is registered already")
        if number not in _ends:
            raise OSError(
                errno.ENOTSUP,
                f"Python in a browser has no I/O: nothing can be waited for on descriptor {number}; in a simulation, "
                "use toolrt.sim.Network or trio's memory channels",
            )
        self._wanted[number] = flags

    def modify(self, fd: int | _End, flags: int) -> None:
        """Wait for something else of a descriptor."""
        if _number(fd) not in self._wanted:
            raise FileNotFoundError(errno.ENOENT, "the descriptor is not registered")
        self._wanted[_number(fd)] = flags

    def unregister(self, fd: int | _End) -> None:
        """Wait for a descriptor no more."""
        if self._wanted.pop(_number(fd), None) is None:
            raise FileNotFoundError(errno.ENOENT, "the descriptor is not registered")

    def poll(self, timeout: float, maxevents: int) -> list[tuple[int, int]]:
        """Give what is ready, or sleep for `timeout` seconds and give nothing.

        Raises:
            RuntimeError: nothing is ready, and no deadline is set: it would wait for ever.
        """
        found = [(number, ready) for number, flags in self._wanted.items() if (ready := flags & _readiness(number))]
        for number, _ in found:
            if self._wanted[number] & _CONSTANTS["EPOLLONESHOT"]:
                self._wanted[number] = 0
        if not found and not 0 <= timeout < _NO_DEADLINE:
            raise RuntimeError(
                "this Trio program would wait for ever: Python in a browser has neither I/O nor threads, so nothing "
                "can wake it; run it with toolrt.sim, which reports the deadlock"
            )
        if not found and timeout:
            time.sleep(timeout)
        return found[:maxevents]

    def close(self) -> None:
        """Forget all descriptors."""
        self._wanted.clear()


class _End:
    """One end of a pair of sockets; what is sent lies in the other end's buffer."""

    def __init__(self) -> None:
        self._fd = next(_descriptors)
        self.buffer = bytearray()
        self.other = self
        _ends[self._fd] = self

    def fileno(self) -> int:
        """Give the descriptor; -1 when it is closed, as a socket does."""
        return self._fd

    def send(self, data: bytes) -> int:
        """Give the other end some bytes."""
        self.other.buffer += data
        return len(data)

    def recv(self, size: int) -> bytes:
        """Take what the other end has sent.

        Raises:
            BlockingIOError: there is nothing.
        """
        if not self.buffer:
            raise BlockingIOError(errno.EAGAIN, "nothing was sent")
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken

    def setblocking(self, flag: bool) -> None:
        """Do nothing: an end never blocks."""

    def setsockopt(self, *option: int) -> None:
        """Do nothing: an end has no limits to set."""

    def close(self) -> None:
        """Close it; it can be closed twice."""
        _ends.pop(self._fd, None)
        self._fd = -1


def socketpair(*_: int) -> tuple[_End, _End]:
    """Give two ends that are connected with each other."""
    one, other = _End(), _End()
    one.other, other.other = other, one
    return one, other


def _set_wakeup_fd(fd: int, *, warn_on_full_buffer: bool = True) -> int:
    """Do nothing, and say that none was set: signals reach a program in a browser between two of its steps."""
    return -1


def _start_thread(*_: Any, **__: Any) -> None:
    """Refuse it in words: Python's own are "can't start new thread"."""
    raise RuntimeError("Python in a browser has no threads, and so no child processes: do it in a task")


def _number(fd: int | _End) -> int:
    return fd if isinstance(fd, int) else fd.fileno()


def _readiness(number: int) -> int:
    end = _ends.get(number)
    if end is None:
        return 0
    return _CONSTANTS["EPOLLOUT"] | (_CONSTANTS["EPOLLIN"] if end.buffer else 0)

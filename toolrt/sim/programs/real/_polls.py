"""What the operating system is asked about a descriptor, and how long it may take to answer."""

from __future__ import annotations

import _socket
import os
import select
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress

from toolrt.sim._trio_internals._decided import real_monotonic, real_sleep

#: What a socket or file carries: bytes, messages, or connections to be accepted.
STREAMS, MESSAGES, LISTENS = "bytes", "messages", "connections"

# What is asked for, and what ends a stream.
_EVENTS = {"r": "POLLIN", "w": "POLLOUT"}
_ENDED = getattr(select, "POLLRDHUP", 0) | getattr(select, "POLLHUP", 0) | getattr(select, "POLLERR", 0)

#: Bytes that arrive in several parts are one part when no pause between them is longer, in real seconds.
PAUSE = 0.02

# So often Ctrl-C is looked for.
_SECONDS_BETWEEN_LOOKS = 0.1


def kind_of(fd: int) -> str:
    """Say what a descriptor carries."""
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        return STREAMS
    found = _socket.socket(fileno=fd)
    try:
        if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return LISTENS
        return STREAMS if found.type == socket.SOCK_STREAM else MESSAGES
    finally:
        found.detach()


def poll(
    wanted: Mapping[int, str], seconds: float, is_interrupted: Callable[[], bool] = lambda: False
) -> dict[int, int]:
    """Wait until a descriptor can do what is wanted of it, for so many real seconds; give those that can.

    Args:
        wanted: "r", "w" or both, by descriptor.
        seconds: how long.
        is_interrupted: says whether to wait no longer.
    """
    poller = select.poll()
    for fd, what in wanted.items():
        poller.register(fd, sum(getattr(select, _EVENTS[each]) for each in what) | getattr(select, "POLLRDHUP", 0))
    end = real_monotonic() + seconds
    while True:
        left = end - real_monotonic()
        found = dict(poller.poll(max(0.0, min(left, _SECONDS_BETWEEN_LOOKS)) * 1_000))
        if found or left <= 0 or is_interrupted():
            return found


def what_is_there(fd: int) -> tuple[int, bool]:
    """Give how many bytes of a stream have arrived, once they have stopped to arrive; and whether it has ended."""
    import fcntl
    import termios

    before = -1
    while True:
        has_ended = bool(poll({fd: "r"}, 0).get(fd, 0) & _ENDED)
        count = bytearray(4)
        with suppress(OSError):
            fcntl.ioctl(fd, termios.FIONREAD, count)
        there = int.from_bytes(count, "little")
        if has_ended or there == before:
            # A socket that can be read and has no bytes is at its end.
            return there, has_ended or not there
        before = there
        real_sleep(PAUSE)

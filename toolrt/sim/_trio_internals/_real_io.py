"""Lets a program's waits for real files and sockets be seen to end when the explorer chooses.

Rules.  Trio's own code runs.  What is replaced is where it waits, what it calls on a socket before it waits, and where
it closes a descriptor.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import trio

from toolrt.sim._trio_internals._children import pipes
from toolrt.sim._trio_internals._replacements import Replacements

_run: Any = trio._core._run
_socket: Any = sys.modules["trio._socket"]

_WAITS = {"wait_readable": "r", "wait_writable": "w"}


class RealIO(Protocol):
    """The real files and sockets of a program."""

    def waits_for(self, fd: int, what: str) -> Awaitable[None]:
        """Give an awaitable that waits until a descriptor can be read ("r") or written ("w")."""

    def reading(self, fd: int, operation: Callable[..., Any]) -> Callable[..., Any]:
        """Make an operation read only what a wait has found."""

    def writing(self, fd: int, operation: Callable[..., Any]) -> Callable[..., Any]:
        """Make an operation that writes known."""

    def connects(self, fd: int) -> None:
        """Take note that a socket is about to be connected."""

    def closes(self, fd: int) -> None:
        """Wake the tasks that wait for a descriptor which is about to be closed."""


#: Gives those of the execution, where a step of the program uses a descriptor, or a socket, that is left real.
Sees = Callable[[Any], RealIO | None]


def replace_real_io(replacements: Replacements, sees: Sees) -> None:
    """Ask what `sees` gives where Trio would ask the operating system."""
    replace = replacements.replace
    manager, holder = _run.TheIOManager, _socket._SocketType
    real_helper, real_connect, real_notify = holder._nonblocking_helper, holder.connect, manager.notify_closing

    @functools.wraps(real_helper)
    async def helper(self: Any, wait: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        if (real_io := sees(self._sock)) is not None:
            made = real_io.reading if wait.__name__ == "wait_readable" else real_io.writing
            function = made(self._sock.fileno(), function)
        return await real_helper(self, wait, function, *args, **kwargs)

    @functools.wraps(real_connect)
    async def connect(self: Any, address: Any) -> None:
        if (real_io := sees(self._sock)) is not None:
            real_io.connects(self._sock.fileno())
        await real_connect(self, address)

    @functools.wraps(real_notify)
    def notify_closing(self: Any, fd: Any) -> None:
        if (real_io := sees(fd)) is not None:
            real_io.closes(fd if isinstance(fd, int) else fd.fileno())
        real_notify(self, fd)

    replace(holder, "_nonblocking_helper", helper)
    replace(holder, "connect", connect)
    replace(manager, "notify_closing", notify_closing)
    for name, what in _WAITS.items():
        real = manager.__dict__[name]

        async def wait(self: Any, fd: Any, real: Any = real, what: str = what) -> None:
            if (real_io := sees(fd)) is not None:
                await real_io.waits_for(fd if isinstance(fd, int) else fd.fileno(), what)
            else:
                await real(self, fd)

        replace(manager, name, functools.wraps(real)(wait))
    if pipes is not None:
        replace(pipes, "os", _StreamOS(pipes.__dict__["os"], sees))


class _StreamOS:
    """Stands in for `os` where Trio reads and writes the descriptors of streams."""

    def __init__(self, real: Any, sees: Sees) -> None:
        self._real = real
        self._sees = sees

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def read(self, fd: int, most: int) -> bytes:
        """Read from a descriptor."""
        read = self._real.read
        if (real_io := self._sees(fd)) is not None:
            read = real_io.reading(fd, read)
        data: bytes = read(fd, most)
        return data

    def write(self, fd: int, data: Any) -> int:
        """Write to a descriptor."""
        write = self._real.write
        if (real_io := self._sees(fd)) is not None:
            write = real_io.writing(fd, write)
        count: int = write(fd, data)
        return count

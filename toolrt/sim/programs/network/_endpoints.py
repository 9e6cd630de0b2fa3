"""What the operating system calls a socket, which one or several `socket.socket` objects share.

Rules.  Every error is the one that Linux gives, with its number.  No operation waits: what would block raises
BlockingIOError, and a task that waits is woken when it might go on.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from abc import ABC, abstractmethod
from typing import Any, Protocol

from toolrt.probe import Resource
from toolrt.sim.programs.network._faults import Faults
from toolrt.sim.programs.network._links import Host, Links, touch

#: A (host, port) pair, such a pair with what IPv6 adds, or a path.
Address = Any

_LINGER = struct.Struct("ii")

# Options that are on or off, whatever number is set.
_SWITCHES = frozenset(
    {
        (socket.SOL_SOCKET, socket.SO_REUSEADDR),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        (socket.SOL_SOCKET, socket.SO_BROADCAST),
        (socket.SOL_SOCKET, socket.SO_OOBINLINE),
        (socket.SOL_SOCKET, getattr(socket, "SO_REUSEPORT", socket.SO_REUSEADDR)),
        (socket.IPPROTO_TCP, socket.TCP_NODELAY),
        (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY),
    }
)


def failed(number: int) -> OSError:
    """Give the exception of an error of the operating system."""
    return OSError(number, os.strerror(number))


def would_block() -> OSError:
    """Give the exception of an operation that cannot be done at once."""
    return failed(errno.EAGAIN)


class NetworkParts(Protocol):
    """The network that a socket is in."""

    #: How many bytes fit into one direction of a connection.
    buffer: int
    links: Links
    faults: Faults
    #: The `Addresses`, which find sockets.
    addresses: Any

    def descriptor(self, endpoint: Endpoint) -> int:
        """Give a new file descriptor for a socket."""

    def wake_writers(self) -> None:
        """Wake the tasks that wait for room at another socket of datagrams."""


class Endpoint(ABC):
    """One socket of the operating system.

    Args:
        net: the execution's network.
        host: the machine it is on.
        name: what the explorer calls it, the same in every schedule.
    """

    #: Names the table of ports.
    protocol = ""
    #: The number of the protocol that 0 stands for.
    default_proto = 0

    def __init__(self, net: NetworkParts, host: Host, family: int, kind: int, proto: int, name: Resource) -> None:
        self.net = net
        self.host = host
        self.family = family
        self.kind = kind
        self.proto = proto
        self.name = name
        self.options: dict[tuple[int, int], int] = {}
        self.linger = b"\0" * _LINGER.size
        #: The addresses of both ends; None while there is none.
        self.local: Address = None
        self.remote: Address = None
        #: The error that the next operation raises, or 0.
        self.error = 0
        #: How many sockets share it.
        self.sockets = 1
        #: The tasks that wait, by file descriptor and by what for: "r" or "w".
        self.waiting: dict[tuple[int, str], Any] = {}
        #: The file that a Unix socket is bound to, as device and number.
        self.file: tuple[int, int] | None = None

    # ------------------------------------------------------------------ waiting

    @abstractmethod
    def is_ready(self, what: str) -> bool:
        """Say whether it can be read ("r") or written ("w")."""

    def wake(self, *what: str) -> None:
        """Wake the tasks that wait until it can be read or written."""
        for waits in [*self.waiting]:
            if waits[1] in what:
                waiter = self.waiting.pop(waits)
                touch(waiter.left_by_cancelling, True)
                self.net.links.run.wake(waiter.task)

    # ------------------------------------------------------------------ options

    def getsockopt(self, level: int, option: int) -> int:
        """Give the number that an option is set to."""
        touch(self.name, option == socket.SO_ERROR and bool(self.error))
        if level == socket.SOL_SOCKET:
            if option == socket.SO_ERROR:
                self.error, error = 0, self.error
                return error
            fixed = {
                socket.SO_TYPE: self.kind,
                getattr(socket, "SO_DOMAIN", None): self.family,
                getattr(socket, "SO_PROTOCOL", None): self.proto or self.default_proto,
                socket.SO_ACCEPTCONN: int(self.is_listening),
            }
            if option in fixed:
                return fixed[option]
            if option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                return self.options.get((level, option), self.net.buffer)
        return self.options.get((level, option), 0)

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        """Set an option to a number, or to bytes that hold one."""
        touch(self.name, True)
        if level == socket.SOL_SOCKET and option == socket.SO_LINGER:
            if isinstance(value, int) or len(value) < _LINGER.size:
                raise failed(errno.EINVAL)
            self.linger = bytes(value[: _LINGER.size])
            return
        if not isinstance(value, int):
            if len(value) < 4:
                if (level, option) in _SWITCHES:
                    raise failed(errno.EINVAL)
                # A name, or nothing.
                return
            value = int.from_bytes(value[:4], "little")
        self.options[level, option] = int(bool(value)) if (level, option) in _SWITCHES else value

    @property
    def is_listening(self) -> bool:
        """True for a socket that others may connect to."""
        return False

    @property
    def resets_at_once(self) -> bool:
        """True when it is to be closed without waiting for what was sent."""
        on, seconds = _LINGER.unpack(self.linger)
        return bool(on) and seconds == 0

    def option(self, level: int, option: int) -> int:
        """Give an option that the network itself looks at."""
        return self.options.get((level, option), 0)

    # ------------------------------------------------------------------ addresses

    def bind(self, address: Address) -> None:
        """Give it an address of its own."""
        touch(self.name, True)
        if self.local is not None:
            raise failed(errno.EINVAL)
        self.net.addresses.bind(self, address)

    def sockname(self) -> Address:
        """Give its own address."""
        touch(self.name, False)
        if self.local is not None:
            return self.local
        return {socket.AF_INET: ("0.0.0.0", 0), socket.AF_INET6: ("::", 0, 0, 0)}.get(self.family, "")  # type: ignore[call-overload]

    def peername(self) -> Address:
        """Give the other end's address."""
        touch(self.name, False)
        if self.remote is None:
            raise failed(errno.ENOTCONN)
        return self.remote

    # ------------------------------------------------------------------ what a kind does not have

    def listen(self, backlog: int) -> None:
        """Let others connect to it."""
        raise failed(errno.EOPNOTSUPP)

    def accept(self) -> tuple[Endpoint, Address]:
        """Give the next connection."""
        raise failed(errno.EOPNOTSUPP)

    def connect(self, address: Address) -> None:
        """Choose the other end."""
        raise failed(errno.EOPNOTSUPP)

    def shutdown(self, how: int) -> None:
        """End one direction, or both."""
        raise failed(errno.EOPNOTSUPP)

    def receive(self, most: int, flags: int) -> tuple[bytes, int, Address]:
        """Give what has arrived, with flags, and with the sender's address where there is one for each."""
        raise failed(errno.EOPNOTSUPP)

    def send(self, data: bytes, flags: int, address: Address) -> int:
        """Send `data`, or as much of it as fits; say how much that was."""
        raise failed(errno.EOPNOTSUPP)

    def release(self) -> None:
        """Let go of it: one of the sockets that share it was closed."""
        touch(self.name, True)
        self.sockets -= 1
        if not self.sockets:
            self.closed()

    def closed(self) -> None:
        """End it: no socket has it any more."""
        self.net.addresses.release(self)

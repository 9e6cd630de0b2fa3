"""Datagrams: UDP, and Unix sockets of that type.

Rules.  A datagram arrives whole or not at all.  One for which no socket waits, or for which there is no room, is lost;
a connected socket hears that there is none, with its next operation.  One of a Unix socket is never lost: its sender
waits while too much of what it sent is unread, or while there is no room where it is connected.
"""

from __future__ import annotations

import errno
import socket
from collections import deque

from toolrt.probe import Resource
from toolrt.sim.programs.network._endpoints import Address, Endpoint, NetworkParts, failed, would_block
from toolrt.sim.programs.network._links import Host, touch

# The longest that fits into a packet.
_LONGEST = 65_507


class Datagrams(Endpoint):
    """A socket of datagrams."""

    protocol = "udp"

    def __init__(self, net: NetworkParts, host: Host, family: int, kind: int, proto: int, name: Resource) -> None:
        super().__init__(net, host, family, kind, proto, name)
        self._is_unix = family == socket.AF_UNIX
        #: What arrived, from where, and the Unix socket that sent it.
        self._arrived: deque[tuple[bytes, Address, Datagrams | None]] = deque()
        self._unread = 0
        #: How many bytes of what it sent wait unread in Unix sockets.
        self._sent = 0
        self._shut_read = self._shut_write = False
        # What waits for the rest of its datagram.
        self._begun = b""
        #: The other end of a pair.
        self.pair: Datagrams | None = None

    @property
    def _queue(self) -> Resource:
        return (*self.name, "queue")

    @property
    def _is_full(self) -> bool:
        """Say whether its buffer is full of what it sent to Unix sockets, and they have not read."""
        touch((*self.name, "sent"), False)
        return self._sent >= (self.option(socket.SOL_SOCKET, socket.SO_SNDBUF) or self.net.buffer)

    def is_ready(self, what: str) -> bool:
        touch(self.name, False)
        if what == "w":
            target = self._unix_target() if self._is_unix else None
            if target is not None:
                touch(target._queue, False)
            return not self._is_full and (target is None or target._unread < self.net.buffer)
        touch(self._queue, False)
        return bool(self._arrived) or bool(self.error) or self._shut_read

    def _unix_target(self) -> Datagrams | None:
        if self.pair is not None or self.remote is None:
            return self.pair
        found = self.net.addresses.at_path(self.remote)
        return found if isinstance(found, Datagrams) else None

    def connect(self, address: Address) -> None:
        touch(self.name, True)
        if self._is_unix:
            if self.net.addresses.at_path(address) is None:
                raise failed(errno.ECONNREFUSED)
            self.remote = address
            return
        self.net.addresses.route(self, address)
        source = self.net.addresses.source(self, address)
        if self.local is None:
            self.net.addresses.bind_any(self, source)
        elif self.local[0] in ("0.0.0.0", "::"):
            self.local = (source, *self.local[1:])
        self.remote = self.net.addresses.with_host(address)

    def shutdown(self, how: int) -> None:
        touch(self.name, True)
        if self.remote is None and self.pair is None:
            raise failed(errno.ENOTCONN)
        self._shut_read = self._shut_read or how in (socket.SHUT_RD, socket.SHUT_RDWR)
        self._shut_write = self._shut_write or how in (socket.SHUT_WR, socket.SHUT_RDWR)
        self.wake("r", "w")

    def receive(self, most: int, flags: int) -> tuple[bytes, int, Address]:
        touch(self.name, bool(self.error))
        touch(self._queue, bool(self._arrived))
        self._raise_error()
        if not self._arrived:
            if self._shut_read:
                return b"", 0, None
            raise would_block()
        data, address, sender = self._arrived[0]
        if not flags & socket.MSG_PEEK:
            self._arrived.popleft()
            was_full = self._unread >= self.net.buffer
            self._unread -= len(data)
            if _read(sender, len(data)) or was_full:
                self.net.wake_writers()
        return data[:most], socket.MSG_TRUNC if len(data) > most else 0, address

    def send(self, data: bytes, flags: int, address: Address) -> int:
        touch(self.name, bool(self.error))
        self._raise_error()
        if self._shut_write:
            raise failed(errno.EPIPE)
        if self._is_unix:
            return self._send_to_path(data, address)
        count, data = len(data), self._begun + data
        self._begun = data if flags & socket.MSG_MORE else b""
        if self._begun:
            return count
        remote = self.remote if address is None else address
        if remote is None:
            raise failed(errno.EDESTADDRREQ)
        if len(data) > _LONGEST:
            raise failed(errno.EMSGSIZE)
        if remote[0] == "255.255.255.255" and not self.option(socket.SOL_SOCKET, socket.SO_BROADCAST):
            raise failed(errno.EACCES)
        host = self.net.addresses.route(self, remote)
        if self.local is None:
            self.net.addresses.bind_any(self)
        source = self.local
        if source[0] in ("0.0.0.0", "::"):
            source = (self.net.addresses.source(self, remote), *source[1:])
        to = self.net.addresses.with_host(remote)
        fault = self.net.faults.of_datagram(self.host, host)
        if fault.loses:
            return count
        place = ("port", host.name, self.protocol, to[1])
        self.net.links.send(
            self.host, host, place, lambda: self._reach(host, to, source, data), fault.delay, may_be_lost=True
        )
        return count

    def _reach(self, host: Host, to: Address, source: Address, data: bytes) -> None:
        target = self.net.addresses.receiver(host, self, to, source)
        if isinstance(target, Datagrams):
            if target.remote is None or target.remote[:2] == source[:2]:
                target._take(data, source, None)
        elif self.remote is not None and self.sockets:
            self.net.links.send(host, self.host, self.name, self._hear)

    def _hear(self) -> None:
        """Hear that nothing waits for datagrams there."""
        touch(self.name, True)
        self.error = errno.ECONNREFUSED
        self.wake("r", "w")

    def _take(self, data: bytes, source: Address, sender: Datagrams | None) -> bool:
        touch(self._queue, True)
        if self._unread >= self.net.buffer:
            return False
        self._arrived.append((data, source, sender))
        self._unread += len(data)
        self.wake("r")
        return True

    def _send_to_path(self, data: bytes, address: Address) -> int:
        if address is None and self.pair is None and self.remote is None:
            raise failed(errno.ENOTCONN)
        target = self.net.addresses.at_path(address) if address is not None else self._unix_target()
        if not isinstance(target, Datagrams):
            raise failed(errno.ECONNREFUSED)
        if not target.sockets:
            raise failed(errno.ECONNREFUSED)
        if self._is_full or not target._take(data, self.local, self):
            raise would_block()
        touch((*self.name, "sent"), True)
        self._sent += len(data)
        return len(data)

    def _raise_error(self) -> None:
        error, self.error = self.error, 0
        if error:
            raise failed(error)

    def closed(self) -> None:
        super().closed()
        touch(self._queue, True)
        if self._is_unix:
            for data, _, sender in self._arrived:
                _read(sender, len(data))
            self._arrived.clear()
            self.net.wake_writers()


def _read(sender: Datagrams | None, size: int) -> bool:
    """Free so many bytes of the buffer of `sender`; say whether it was full."""
    if sender is None:
        return False
    was_full = sender._is_full
    touch((*sender.name, "sent"), True)
    sender._sent -= size
    return was_full

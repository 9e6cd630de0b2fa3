"""Streams of bytes: TCP, and Unix sockets of that type.

Rules.  A connection is two pipes of bounded size.  A send that does not fit moves what does.  Closing a socket with
bytes unread, or with a linger time of 0, resets the connection; else the other end reads what was sent, then the end.

A connection that finds the queue of its listener full waits until there is room, as a handshake that is repeated does.
"""

from __future__ import annotations

import errno
import socket
from collections import deque
from functools import partial
from typing import Any

from toolrt.probe import Resource
from toolrt.sim.programs.network._endpoints import Address, Endpoint, NetworkParts, failed, would_block
from toolrt.sim.programs.network._links import Host, touch
from toolrt.sim.programs.network._pipes import BytePipe

_UNCONNECTED, _LISTENING, _CONNECTING, _CONNECTED, _BROKEN = "unconnected", "listening", "connecting", "connected", ""


class Stream(Endpoint):
    """One end of a connection, or what listens for them."""

    protocol = "tcp"

    def __init__(self, net: NetworkParts, host: Host, family: int, kind: int, proto: int, name: Resource) -> None:
        super().__init__(net, host, family, kind, proto, name)
        self._phase = _UNCONNECTED
        self._is_unix = family == socket.AF_UNIX
        self._inbox = self._outbox = BytePipe((*name, "nothing"), 0)
        self._peer: Stream | None = None
        self._shut_read = self._was_refused = False
        self._is_confirmed = True
        # Of a listener: connections to be accepted, those that wait for room, and how many there may be.
        self._queue: deque[Stream] = deque()
        self._pending: deque[Stream] = deque()
        self._backlog = 0

    # ------------------------------------------------------------------ waiting

    def is_ready(self, what: str) -> bool:
        touch(self.name, False)
        if self._phase == _LISTENING:
            touch((*self.name, "queue"), False)
            return what == "r" and bool(self._queue)
        if self._phase == _CONNECTING:
            return False
        if self._phase != _CONNECTED or self.error:
            return True
        if what == "r":
            touch(self._inbox.name, False)
            return bool(self._inbox.data) or self._inbox.ended or self._shut_read
        touch(self._outbox.name, False)
        return self._outbox.room() > 0 or self._outbox.is_shut or (self._is_unix and self._peer is None)

    # ------------------------------------------------------------------ listening

    @property
    def is_listening(self) -> bool:
        return self._phase == _LISTENING

    def listen(self, backlog: int) -> None:
        touch(self.name, True)
        if self._phase not in (_UNCONNECTED, _LISTENING):
            raise failed(errno.EINVAL)
        if self.local is None:
            if self._is_unix:
                raise failed(errno.EINVAL)
            self.net.addresses.bind_any(self)
        self.net.addresses.check_listening(self)
        self._phase = _LISTENING
        self._backlog = max(0, backlog)
        self._admit()

    def accept(self) -> tuple[Endpoint, Address]:
        touch(self.name, False)
        if self._phase != _LISTENING:
            raise failed(errno.EINVAL)
        touch((*self.name, "queue"), bool(self._queue))
        if not self._queue:
            raise would_block()
        accepted = self._queue.popleft()
        self._admit()
        return accepted, accepted.remote

    def _admit(self) -> None:
        """Let those in for whom there is room now."""
        while self._pending and len(self._queue) <= self._backlog:
            self._pending.popleft()._arrive(self)

    # ------------------------------------------------------------------ connecting

    def connect(self, address: Address) -> None:
        touch(self.name, True)
        if self._phase == _CONNECTING:
            raise failed(errno.EALREADY)
        if self._phase == _CONNECTED and not self._is_confirmed:
            # Linux tells once that a connection which was begun has been made.
            self._is_confirmed = True
            return
        if self._phase in (_CONNECTED, _LISTENING):
            raise failed(errno.EISCONN)
        if self._was_refused:
            self._was_refused = False
            raise failed(self.error or errno.ECONNABORTED)
        if self._is_unix:
            self._connect_file(address)
            return
        host = self.net.addresses.route(self, address)
        if self.local is None:
            self.net.addresses.bind_any(self, self.net.addresses.source(self, address))
        elif self.local[0] in ("0.0.0.0", "::"):
            self.local = (self.net.addresses.source(self, address), *self.local[1:])
        self.remote = self.net.addresses.with_host(address)
        self._phase = _CONNECTING
        self.error = 0
        self.net.links.send(self.host, host, self.name, lambda: self._reach(host))
        raise failed(errno.EINPROGRESS)

    def _reach(self, host: Host) -> None:
        """Get to the host that is to be connected to."""
        listener = self.net.addresses.listener(host, self)
        if listener is None:
            if host is self.host:
                self.net.addresses.refuse_real(self)
            self.net.links.send(host, self.host, self.name, self._refuse)
        else:
            self._arrive(listener)

    def _arrive(self, listener: Stream) -> None:
        """Get to a listener."""
        touch((*listener.name, "queue"), True)
        if self._phase != _CONNECTING:
            return
        if len(listener._queue) > listener._backlog:
            listener._pending.append(self)
            return
        server = Stream(self.net, listener.host, listener.family, self.kind, self.proto, (*self.name, "accepted"))
        server.options.update(listener.options)
        server.local, server.remote = self.remote, self.local
        server.sockets = 0
        _join(self, server, "in", "out")
        # This end does not know of it yet.
        self._phase = _CONNECTING
        listener._queue.append(server)
        listener.wake("r")
        self.net.links.send(listener.host, self.host, self.name, self._establish)

    def _establish(self) -> None:
        if self._phase == _CONNECTING:
            touch(self.name, True)
            self._phase, self._is_confirmed = _CONNECTED, False
            self.wake("w", "r")

    def _refuse(self) -> None:
        if self._phase == _CONNECTING:
            touch(self.name, True)
            self._phase, self.error, self.remote = _UNCONNECTED, errno.ECONNREFUSED, None
            self._was_refused = True
            self.wake("w", "r")

    def _connect_file(self, address: Address) -> None:
        listener = self.net.addresses.at_path(address)
        if not isinstance(listener, Stream):
            raise failed(errno.ECONNREFUSED if listener is None else errno.EPROTOTYPE)
        if not listener.is_listening:
            raise failed(errno.ECONNREFUSED)
        touch((*listener.name, "queue"), True)
        if len(listener._queue) > listener._backlog:
            raise would_block()
        server = Stream(self.net, self.host, self.family, self.kind, self.proto, (*self.name, "accepted"))
        server.local, self.remote, server.remote = listener.local, listener.local, self.local or ""
        server.sockets = 0
        _join(self, server, "in", "out")
        listener._queue.append(server)
        listener.wake("r")

    def peername(self) -> Address:
        if self._phase != _CONNECTED:
            touch(self.name, False)
            raise failed(errno.ENOTCONN)
        return super().peername()

    # ------------------------------------------------------------------ bytes

    def receive(self, most: int, flags: int) -> tuple[bytes, int, Address]:
        touch(self.name, bool(self.error))
        if self._phase in (_UNCONNECTED, _LISTENING) and not self.error:
            raise failed(errno.EINVAL if self._is_unix else errno.ENOTCONN)
        if self._phase == _CONNECTING:
            raise would_block()
        pipe = self._inbox
        touch(pipe.name, bool(pipe.data))
        if not pipe.data:
            if pipe.ended and not self._is_unix:
                return b"", 0, None
            if self.error:
                self._raise_error()
            if pipe.ended or self._shut_read or self._phase != _CONNECTED or not most:
                return b"", 0, None
            raise would_block()
        there = min(most, len(pipe.data))
        if there and not flags & socket.MSG_PEEK:
            there = self.net.faults.part_of(there, pipe.records.ends_within(there))
        taken = bytes(pipe.data[:there])
        if not flags & socket.MSG_PEEK:
            del pipe.data[:there]
            pipe.records.taken(there)
            peer = self._peer
            if there and peer is not None:
                peer.wake("w")
        return taken, 0, None

    def send(self, data: bytes, flags: int, address: Address) -> int:
        touch(self.name, bool(self.error))
        if self._phase == _UNCONNECTED and not self.error:
            raise failed(errno.ENOTCONN if self._is_unix else errno.EPIPE)
        if self._phase == _LISTENING:
            raise failed(errno.ENOTCONN if self._is_unix else errno.EPIPE)
        if self._phase == _CONNECTING:
            raise would_block()
        if self.error and not self._is_unix:
            self._raise_error()
        pipe, peer = self._outbox, self._peer
        touch(pipe.name, True)
        if pipe.is_shut or self._phase != _CONNECTED or (self._is_unix and peer is None):
            raise failed(errno.EPIPE)
        room = pipe.room()
        if peer is None or peer._shut_read:
            room = pipe.size
        if data and room <= 0:
            raise would_block()
        count = min(len(data), room)
        if peer is None or not count:
            if count:
                # It was closed there, and answers that it knows of no such connection.
                self.net.links.send(self.host, self.host, self.name, lambda: self.reset(errno.EPIPE))
            return count
        fault = self.net.faults.of_stream(self.host, peer.host)
        if fault.resets:
            peer.reset(errno.ECONNRESET)
            self.reset(errno.ECONNRESET)
            self._raise_error()
        count = self.net.faults.part_of(count, () if pipe.records.carries(data) else None)
        sent = data[:count]
        pipe.underway += count

        def arrive() -> None:
            pipe.underway -= count
            pipe.records.add(sent)
            pipe.data += sent
            peer._has_got_bytes()

        self._put(arrive, fault.delay)
        return count

    def _has_got_bytes(self) -> None:
        pipe = self._inbox
        if (self.sockets == 0 and self._phase == _BROKEN) or (self._shut_read and self._is_unix):
            pipe.data.clear()
        else:
            self.wake("r")

    def _put(self, arrive: Any, delay: float = 0.0) -> None:
        """Send something to the other end, behind all that was sent before."""
        pipe, peer = self._outbox, self._peer
        assert peer is not None
        when = self.net.links.send(self.host, peer.host, pipe.name, arrive, delay, not_before=pipe.last_arrival)
        pipe.last_arrival = max(pipe.last_arrival, when)

    def _raise_error(self) -> None:
        error, self.error = self.error, 0
        raise failed(error)

    # ------------------------------------------------------------------ the end

    def shutdown(self, how: int) -> None:
        touch(self.name, True)
        if self._phase == _LISTENING and how in (socket.SHUT_RD, socket.SHUT_RDWR):
            self._close_listener()
            self._phase = _UNCONNECTED
            self.wake("r", "w")
            return
        if self._phase != _CONNECTED:
            if self._is_unix and self._phase == _UNCONNECTED:
                return
            raise failed(errno.ENOTCONN)
        if how in (socket.SHUT_WR, socket.SHUT_RDWR):
            self._send_end()
        if how in (socket.SHUT_RD, socket.SHUT_RDWR):
            touch(self._inbox.name, True)
            self._shut_read = True
            if self._is_unix and self._peer is not None:
                # The other end of a Unix socket knows at once.
                self._inbox.is_shut = True
                self._peer.wake("w")
        self.wake("r", "w")

    def _send_end(self) -> None:
        pipe, peer = self._outbox, self._peer
        touch(pipe.name, True)
        if pipe.is_shut:
            return
        pipe.is_shut = True
        if peer is None:
            return

        def arrive() -> None:
            pipe.ended = True
            peer.wake("r", "w")

        self._put(arrive)

    def reset(self, error: int) -> None:
        """Break the connection from the other end."""
        if self._phase not in (_CONNECTED, _CONNECTING):
            return
        touch(self.name, True)
        touch(self._inbox.name, True)
        touch(self._outbox.name, True)
        was_ended = self._inbox.ended
        self._phase, self._peer = _BROKEN, None
        self._inbox.is_shut = self._outbox.is_shut = True
        self.error = errno.EPIPE if was_ended and error == errno.ECONNRESET else error
        self.wake("r", "w")

    def closed(self) -> None:
        super().closed()
        if self._phase == _LISTENING:
            self._close_listener()
        elif self._phase in (_CONNECTED, _CONNECTING):
            self._leave()
        self._phase = _BROKEN

    def _leave(self) -> None:
        """End a connection from this end."""
        peer, unread = self._peer, bool(self._inbox.data)
        touch(self._inbox.name, True)
        touch(self._outbox.name, True)
        if peer is None:
            return
        if unread or (self.resets_at_once and not self._is_unix):

            def arrive() -> None:
                if self._is_unix:
                    peer.error, peer._inbox.ended = errno.ECONNRESET, True
                    peer._peer = None
                    peer.wake("r", "w")
                else:
                    peer.reset(errno.ECONNRESET)

            self._put(arrive)
        else:
            self._send_end()

            def gone() -> None:
                peer._peer = None
                peer.wake("w")
                peer._inbox.ended = True

            self._put(gone)
        self._peer = None

    def _close_listener(self) -> None:
        touch((*self.name, "queue"), True)
        for server in self._queue:
            client = server._peer
            server._peer, server._phase = None, _BROKEN
            if client is None:
                continue
            if self._is_unix:
                client._inbox.ended, client._peer, client.error = True, None, errno.ECONNRESET
                client.wake("r", "w")
            else:
                arrive = partial(client.reset, errno.ECONNRESET)
                self.net.links.send(self.host, client.host, client.name, arrive)
        self._queue.clear()
        for client in self._pending:
            self.net.links.send(self.host, client.host, client.name, client._refuse)
        self._pending.clear()


def _join(first: Stream, second: Stream, inwards: str, outwards: str) -> None:
    """Connect two ends."""
    size = first.net.buffer
    first._inbox = second._outbox = BytePipe((*first.name, inwards), size)
    first._outbox = second._inbox = BytePipe((*first.name, outwards), size)
    first._peer, second._peer = second, first
    first._phase = second._phase = _CONNECTED


def connect_pair(first: Stream, second: Stream) -> None:
    """Connect two ends that nothing listens for."""
    first.local = first.remote = second.local = second.remote = ""
    _join(first, second, "in", "out")

"""Names, addresses, ports and files: where a socket is found.

Rules.  A port that the network picks follows from the name of the socket, not from what others did before; so do
descriptors.  A Unix socket has its file on the real disk, which goes away with the execution; what two programs see of
it (that it exists, its mode, that it was unlinked) is what they would see anyway.
"""

from __future__ import annotations

import _socket
import errno
import os
import socket
import stat
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals._decided import SOCKETS
from toolrt.sim.programs.network._endpoints import Address, Endpoint, failed
from toolrt.sim.programs.network._links import Host, touch

# The ports that Linux picks from.
_FIRST_PORT, _PORTS = 32_768, 28_232

_ANY = ("0.0.0.0", "::")
_V4_IN_V6 = "::ffff:"
_LONGEST_PATH = 107

# All Unix sockets that have an address: what theirs is called, a file in a new directory say, differs each time.
_PATHS = ("Unix sockets",)


class Addresses:
    """The addresses of one execution's network.

    Args:
        hosts: the machines that there are.
        refuse: ends the execution, which would go to a machine that there is not; None: such a machine is not reached.
    """

    def __init__(self, hosts: Iterable[Host], refuse: Any) -> None:
        self.hosts = {host.name: host for host in hosts}
        self._refuse = refuse
        # Unix sockets by device and number of their file, and those without one by name.
        self._files: dict[tuple[int, int], Endpoint] = {}
        self._abstract: dict[str | bytes, Endpoint] = {}
        # The files that were made, to be removed.
        self._made: dict[tuple[int, int], str | bytes] = {}

    # ------------------------------------------------------------------ binding

    def bind(self, endpoint: Endpoint, address: Address) -> None:
        """Give a socket the address that its program asks for.

        Raises:
            OSError: it is in use, or not one of this machine's.
        """
        if endpoint.family == socket.AF_UNIX:
            self._bind_path(endpoint, address)
            return
        host, port = address[0] or "0.0.0.0", address[1]
        if not endpoint.host.owns(_plain(host)):
            raise failed(errno.EADDRNOTAVAIL)
        if port == 0:
            self.bind_any(endpoint, host)
            return
        self._check_free(endpoint, host, port)
        self._register(endpoint, host, port)

    def bind_any(self, endpoint: Endpoint, host: str | None = None) -> None:
        """Give a socket a port that the network picks."""
        if host is None:
            host = "::" if endpoint.family == socket.AF_INET6 else "0.0.0.0"
        first = zlib.crc32(repr(endpoint.name).encode())
        for number in range(_PORTS):
            port = _FIRST_PORT + (first + number) % _PORTS
            touch(("port", endpoint.host.name, endpoint.protocol, port), True)
            if not endpoint.host.bound.get((endpoint.protocol, port)):
                self._register(endpoint, host, port)
                return
        raise failed(errno.EADDRINUSE)

    def _register(self, endpoint: Endpoint, host: str, port: int) -> None:
        touch(("port", endpoint.host.name, endpoint.protocol, port), True)
        endpoint.host.bound.setdefault((endpoint.protocol, port), []).append(endpoint)
        endpoint.local = (host, port) if endpoint.family == socket.AF_INET else (host, port, 0, 0)

    def _check_free(self, endpoint: Endpoint, host: str, port: int) -> None:
        touch(("port", endpoint.host.name, endpoint.protocol, port), False)
        for other in endpoint.host.bound.get((endpoint.protocol, port), ()):
            if not _overlap(endpoint, host, other):
                continue
            if _both(endpoint, other, getattr(socket, "SO_REUSEPORT", -1)):
                continue
            if _both(endpoint, other, socket.SO_REUSEADDR) and not other.is_listening:
                continue
            raise failed(errno.EADDRINUSE)

    def check_listening(self, endpoint: Endpoint) -> None:
        """Raise OSError when another socket listens at a socket's address."""
        if endpoint.family == socket.AF_UNIX:
            return
        host, port = endpoint.local[:2]
        for other in endpoint.host.bound.get((endpoint.protocol, port), ()):
            if (
                other is not endpoint
                and other.is_listening
                and _overlap(endpoint, host, other)
                and not _both(endpoint, other, getattr(socket, "SO_REUSEPORT", -1))
            ):
                raise failed(errno.EADDRINUSE)

    def release(self, endpoint: Endpoint) -> None:
        """Let go of a socket's address."""
        if endpoint.family == socket.AF_UNIX:
            if endpoint.file is not None:
                touch(_PATHS, True)
                self._files.pop(endpoint.file, None)
            elif endpoint.local and self._abstract.get(endpoint.local) is endpoint:
                touch(_PATHS, True)
                del self._abstract[endpoint.local]
        elif endpoint.local is not None:
            place = endpoint.protocol, endpoint.local[1]
            if endpoint in (bound := endpoint.host.bound.get(place, [])):
                touch(("port", endpoint.host.name, *place), True)
                bound.remove(endpoint)

    # ------------------------------------------------------------------ Unix sockets

    def _bind_path(self, endpoint: Endpoint, path: Any) -> None:
        path = os.fspath(path)
        if path[:1] in ("\0", b"\0"):
            name = os.fsencode(path)
            touch(_PATHS, True)
            if name in self._abstract:
                raise failed(errno.EADDRINUSE)
            self._abstract[name] = endpoint
            endpoint.local = name
            return
        if len(os.fsencode(path)) > _LONGEST_PATH:
            raise OSError("AF_UNIX path too long")
        try:
            os.mknod(path, stat.S_IFSOCK | 0o777)
        except FileExistsError:
            raise failed(errno.EADDRINUSE) from None
        except OSError as error:
            raise failed(error.errno or errno.EACCES) from None
        status = os.stat(path)
        endpoint.file = status.st_dev, status.st_ino
        touch(_PATHS, True)
        self._files[endpoint.file], self._made[endpoint.file] = endpoint, os.path.abspath(path)
        endpoint.local = path if isinstance(path, str) else os.fsdecode(path)

    def at_path(self, path: Any) -> Endpoint | None:
        """Give the Unix socket at a path; None when it was closed.

        Raises:
            OSError: there is no such file.
            NotSimulated: a real one is there, and the program has declared no network of its own.
        """
        path = os.fspath(path)
        if path[:1] in ("\0", b"\0"):
            name = os.fsencode(path)
            touch(_PATHS, False)
            found = self._abstract.get(name)
        else:
            touch(_PATHS, False)
            try:
                status = os.stat(path)
            except OSError as error:
                raise failed(error.errno or errno.ENOENT) from None
            found = self._files.get((status.st_dev, status.st_ino))
        if found is None and self._refuse is not None and _is_real(path):
            self._refuse(_real_server("Unix socket"))
        return found

    def remove_files(self) -> None:
        """Remove the files of Unix sockets that are still there."""
        for file, path in self._made.items():
            with suppress(OSError):
                status = os.lstat(path)
                if (status.st_dev, status.st_ino) == file:
                    os.unlink(path)
        self._made.clear()

    # ------------------------------------------------------------------ finding others

    def with_host(self, address: Address) -> Address:
        """Give an address with the loopback address in the place of any address."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address[0], address[0])
        return (host, *address[1:]) if ":" not in host or len(address) == 4 else (host, *address[1:], 0, 0)[:4]

    def source(self, endpoint: Endpoint, address: Address) -> str:
        """Give the address of its own that a socket sends from to `address`."""
        host = _plain(self.with_host(address)[0])
        if host.startswith("127.") or host == "::1":
            own = "127.0.0.1" if host.startswith("127.") else "::1"
        elif endpoint.host.owns(host):
            own = host
        else:
            own = endpoint.host.address6 if ":" in host else endpoint.host.address
        return _V4_IN_V6 + own if endpoint.family == socket.AF_INET6 and ":" not in own else own

    def route(self, endpoint: Endpoint, address: Address) -> Host:
        """Give the machine that has an address.

        Raises:
            OSError: no machine has it.
        """
        host = _plain(address[0])
        if endpoint.host.owns(host) or host == "255.255.255.255":
            return endpoint.host
        for other in self.hosts.values():
            if host in (other.address, other.address6):
                return other
        if self._refuse is not None:
            self._refuse(NotSimulated(f"reach {host}", "say which machines there are: with sim.Network(hosts=[...])"))
        raise failed(errno.ENETUNREACH)

    def refuse_real(self, client: Endpoint) -> None:
        """Refuse a connection that nothing of the program waits for, where a real server of this machine does.

        Raises:
            NotSimulated: one does, and the program has declared no network of its own.
        """
        if self._refuse is not None and _is_taken(client):
            self._refuse(_real_server(f"port {client.remote[1]}"))

    def listener(self, host: Host, client: Endpoint) -> Any:
        """Give what listens on `host` for a connection to the address a client wants; None: nothing does."""
        return self._bound_to(host, client, client.remote, lambda other: other.is_listening)

    def receiver(self, host: Host, sender: Endpoint, to: Address, source: Address) -> Endpoint | None:
        """Give the socket on `host` that datagrams to an address go to: one that is connected to `source` first."""
        return self._bound_to(
            host, sender, to, lambda other: other.remote is not None and other.remote[:2] == source[:2]
        ) or self._bound_to(host, sender, to, lambda other: other.remote is None)

    def _bound_to(self, host: Host, sender: Endpoint, to: Address, fits: Any) -> Endpoint | None:
        port = to[1]
        touch(("port", host.name, sender.protocol, port), False)
        wanted = _plain(to[0])
        inexact = None
        for other in host.bound.get((sender.protocol, port), ()):
            own = _plain(other.local[0])
            if not fits(other) or not _speaks(other, wanted):
                continue
            if own == wanted:
                return other  # type: ignore[no-any-return]
            if own in _ANY:
                inexact = inexact or other
        return inexact


def _plain(host: str) -> str:
    """Give an address of IPv4 that is written as one of IPv6 as what it is."""
    return host[len(_V4_IN_V6) :] if host.startswith(_V4_IN_V6) else host


def _speaks(endpoint: Endpoint, host: str) -> bool:
    """Say whether a socket takes what is sent to an address of this kind."""
    if endpoint.family == socket.AF_INET:
        return ":" not in host
    return ":" in host or not endpoint.option(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)


def _overlap(endpoint: Endpoint, host: str, other: Endpoint) -> bool:
    """Say whether something could be sent to both a socket that is to have the address `host` and another one."""
    mine, theirs = _plain(host), _plain(other.local[0])
    if mine in _ANY and theirs in _ANY and endpoint.family != other.family:
        six = endpoint if endpoint.family == socket.AF_INET6 else other
        return not six.option(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    if mine in _ANY:
        return _speaks(endpoint, theirs)
    if theirs in _ANY:
        return _speaks(other, mine)
    return mine == theirs


def _both(first: Endpoint, second: Endpoint, option: int) -> bool:
    level = socket.SOL_SOCKET
    return bool(first.option(level, option)) and bool(second.option(level, option))


def _real_server(where: str) -> NotSimulated:
    remedy = f'start it inside the simulated program, or say sim.leave_real("{SOCKETS}")'
    return NotSimulated(f"connect to a real server ({where})", remedy)


def _is_real(path: str | bytes) -> bool:
    """Say whether a real Unix socket is at a path, without a word to it."""
    probe = _socket.socket(socket.AF_UNIX, _socket.SOCK_DGRAM)
    try:
        probe.connect(path)
    except OSError as error:
        # A stream is there; a file whose socket was closed refuses the connection.
        return error.errno == errno.EPROTOTYPE
    finally:
        probe.close()
    return True


def _is_taken(client: Endpoint) -> bool:
    """Say whether a real socket of this machine listens on the address that a client wants."""
    probe = _socket.socket(client.family, _socket.SOCK_STREAM)
    try:
        # So that only what listens is in the way, not what is left of a connection.
        probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        probe.bind(client.remote)
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    finally:
        probe.close()
    return False

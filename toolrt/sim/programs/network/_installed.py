"""Puts the network in the place of the operating system's, for the steps of simulated programs."""

from __future__ import annotations

import errno
import functools
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals._decided import SOCKETS
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._seam import OwnRun
from toolrt.sim._trio_internals._sockets import SocketRun, replace_sockets
from toolrt.sim.programs.network._datagrams import Datagrams
from toolrt.sim.programs.network._endpoints import failed
from toolrt.sim.programs.network._resolver import Resolver, addresses_of, names_of
from toolrt.sim.programs.network._sockets import SimulatedSocket, become_simulated, endpoint_of, opened
from toolrt.sim.programs.network._state import HOST, NETWORKS, refuse, sockets_are_real
from toolrt.sim.programs.network._streams import Stream, connect_pair
from toolrt.sim.programs.network._tls_sockets import wrapped
from toolrt.sim.programs.network._waiting import close_waits, wait_until_ready

# These see by themselves whether a socket is real.
_BOTH = ("__init__", "dup")

_CONNECTION = NotSimulated(
    "use a connection of multiprocessing",
    f'use Pipe(duplex=False), which needs no socket, or say sim.leave_real("{SOCKETS}")',
)


class NetworkStandIn:
    """Stands under every simulation."""

    #: The type of its sockets.
    plain: type = SimulatedSocket

    def __init__(self) -> None:
        #: Looks names up for Trio.
        self.resolver = Resolver()

    def begin(self) -> None:
        """Begin another execution."""
        NETWORKS.begin()

    @contextmanager
    def installed(self, own_run: OwnRun) -> Iterator[None]:
        """Stand under `socket` and `trio.socket` inside the block, in the steps of the program's tasks."""

        def resolves() -> bool:
            return own_run.in_step() is not None and not sockets_are_real()

        replacements = Replacements()

        def replace(holder: Any, name: str, stand_in: Callable[..., Any]) -> None:
            """Let a step of the program call `stand_in`, and all else the real one."""
            real = holder.__dict__[name]

            @functools.wraps(real)
            def either(*args: Any, **kwargs: Any) -> Any:
                is_mine = own_run.in_step() is not None and (name in _BOTH or not sockets_are_real())
                return (stand_in if is_mine else real)(*args, **kwargs)

            replacements.replace(holder, name, either)

        def wrap_socket(context: Any, sock: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(sock, SimulatedSocket):
                return wrapped(SimulatedSocket, context, sock, *args, **kwargs)
            return super(ssl.SSLContext, context)._wrap_socket(sock, *args, **kwargs)  # type: ignore[misc]

        before, NETWORKS.run = NETWORKS.run, SocketRun(own_run)
        # OpenSSL's own is in the class below; a simulation may be under way in whose check this one begins.
        around = ssl.SSLContext.__dict__.get("_wrap_socket")
        setattr(ssl.SSLContext, "_wrap_socket", wrap_socket)  # noqa: B010
        try:
            _replace_library(replace)
            replace_sockets(replacements, self, resolves)
            yield
        finally:
            if around is None:
                delattr(ssl.SSLContext, "_wrap_socket")
            else:
                setattr(ssl.SSLContext, "_wrap_socket", around)  # noqa: B010
            replacements.put_back()
            self.begin()
            NETWORKS.run = before

    # ------------------------------------------------------------------ what Trio asks

    def has(self, sock: Any) -> bool:
        """Say whether a socket is of the network."""
        return isinstance(sock, SimulatedSocket)

    def method(self, name: str) -> Callable[..., Any]:
        """Give the method of this name, unbound."""
        method: Callable[..., Any] = getattr(SimulatedSocket, name)
        return method

    def is_readable(self, sock: Any) -> bool:
        """Say whether a read would not block."""
        return endpoint_of(sock).is_ready("r")

    def waits_for(self, fd: int, what: str) -> Awaitable[None] | None:
        """Give an awaitable that waits for a descriptor; None: it is not of the network."""
        endpoint = NETWORKS.fds.get(fd)
        return None if endpoint is None else wait_until_ready(endpoint, fd, what)

    def count_waiting(self) -> tuple[int, int]:
        """Give how many tasks wait to read, and how many to write."""
        waits = [what for endpoint in {*NETWORKS.fds.values()} for _, what in endpoint.waiting]
        return waits.count("r"), waits.count("w")

    def closes(self, fd: int) -> bool:
        """Wake the tasks that wait for a descriptor; False: it is not of the network."""
        endpoint = NETWORKS.fds.get(fd)
        if endpoint is not None:
            close_waits(endpoint, fd)
        return endpoint is not None


def _replace_library(replace: Callable[..., None]) -> None:
    """Replace what the standard library has."""
    real_init, real_dup, real_gethostname = socket.socket.__init__, socket.dup, socket.gethostname

    def init(made: Any, family: Any = -1, type: Any = -1, proto: Any = -1, fileno: Any = None) -> None:
        if fileno not in NETWORKS.fds and (fileno is not None or sockets_are_real()):
            real_init(made, family, type, proto, fileno)
        else:
            become_simulated(made, NETWORKS.current(), family, type, proto, fileno)

    def dup(fd: int) -> int:
        endpoint = NETWORKS.fds.get(fd)
        if endpoint is None:
            return real_dup(fd)
        endpoint.sockets += 1
        return endpoint.net.descriptor(endpoint)

    def by_name(name: Any) -> str:
        return str(addresses_of(NETWORKS.current(), name, 0, socket.AF_INET)[0][4][0])

    def by_address(address: str) -> tuple[str, list[str], list[str]]:
        return names_of(NETWORKS.current(), (address, 0), socket.NI_NAMEREQD)[0], [], [address]

    # It reads and writes descriptors where no socket is in the way; slow to import, so it may not be there.
    connections: Any = sys.modules.get("multiprocessing.connection")
    if connections is not None:
        real_connection = connections._ConnectionBase.__init__

        def connection(made: Any, handle: int, *args: Any, **kwargs: Any) -> None:
            if handle in NETWORKS.fds:
                refuse(_CONNECTION)
            real_connection(made, handle, *args, **kwargs)

        replace(connections._ConnectionBase, "__init__", connection)
    replace(socket.socket, "__init__", init)
    replace(socket, "dup", dup)
    replace(socket, "socketpair", _pair)
    replace(socket, "getaddrinfo", lambda *args, **kwargs: addresses_of(NETWORKS.current(), *args, **kwargs))
    replace(socket, "getnameinfo", lambda address, flags: names_of(NETWORKS.current(), address, flags))
    replace(socket, "gethostbyname", by_name)
    replace(socket, "gethostbyname_ex", lambda name: (name, [], [by_name(name)]))
    replace(socket, "gethostbyaddr", by_address)
    replace(socket, "gethostname", lambda: HOST.get() or real_gethostname())


def _pair(family: Any = None, type: Any = socket.SOCK_STREAM, proto: int = 0) -> tuple[socket.socket, socket.socket]:
    net = NETWORKS.current()
    first, second = (net.open(int(socket.AF_UNIX if family is None else family), int(type), proto) for _ in range(2))
    if first.family != socket.AF_UNIX:
        raise failed(errno.EOPNOTSUPP)
    if isinstance(first, Stream) and isinstance(second, Stream):
        connect_pair(first, second)
    elif isinstance(first, Datagrams) and isinstance(second, Datagrams):
        first.pair, second.pair = second, first
    return opened(net, first), opened(net, second)

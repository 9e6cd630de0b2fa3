"""The network of one execution."""

from __future__ import annotations

import errno
import socket
import zlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NoReturn

from toolrt.errors import NotSimulated
from toolrt.probe import Resource
from toolrt.sim._trio_internals._decided import SOCKETS
from toolrt.sim._trio_internals._seam import OwnRun
from toolrt.sim._trio_internals._sockets import SocketRun
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.programs.network._addresses import Addresses
from toolrt.sim.programs.network._datagrams import Datagrams
from toolrt.sim.programs.network._endpoints import Endpoint, failed
from toolrt.sim.programs.network._faults import Faults
from toolrt.sim.programs.network._links import Host, Links
from toolrt.sim.programs.network._settings import NetworkSettings
from toolrt.sim.programs.network._streams import Stream

#: The name of the machine that the running task is on; None: the first.
HOST: ContextVar[str | None] = ContextVar("toolrt simulated host", default=None)

# File descriptors of the network begin here: no descriptor of the operating system's is that high.
_FIRST_FD, _FDS = 1 << 24, 1 << 28

_KINDS: dict[tuple[int, int], tuple[Any, int]] = {
    (socket.AF_INET, socket.SOCK_STREAM): (Stream, socket.IPPROTO_TCP),
    (socket.AF_INET6, socket.SOCK_STREAM): (Stream, socket.IPPROTO_TCP),
    (socket.AF_UNIX, socket.SOCK_STREAM): (Stream, 0),
    (socket.AF_INET, socket.SOCK_DGRAM): (Datagrams, socket.IPPROTO_UDP),
    (socket.AF_INET6, socket.SOCK_DGRAM): (Datagrams, socket.IPPROTO_UDP),
    (socket.AF_UNIX, socket.SOCK_DGRAM): (Datagrams, 0),
}

_FLAGS = socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC


def refuse(refusal: NotSimulated) -> NoReturn:
    """End the execution, whatever the program does with what is raised."""
    scheduler = current_scheduler()
    if scheduler is not None:
        scheduler.refuse(refusal)
    raise refusal


class NetworkState:
    """Hosts, links and sockets of one execution.

    Args:
        settings: what it is like.
        fds: the endpoints of every network of this execution, by file descriptor.
        is_declared: False for the one that stands there unless the program says otherwise.
        run: the Trio run it is in.
    """

    def __init__(self, settings: NetworkSettings, fds: dict[int, Endpoint], is_declared: bool, run: SocketRun) -> None:
        self.settings = settings
        self.is_declared = is_declared
        self.buffer = settings.buffer
        self.fds = fds
        hosts = [Host(name, number) for number, name in enumerate(settings.hosts, 1)]
        self.links = Links(run, settings.latency_between)
        self.addresses = Addresses(hosts, None if is_declared else refuse)
        self.faults = Faults(settings, self.links)
        self._first = hosts[0]
        self._outside = 0

    def here(self) -> Host:
        """Give the machine that the running task is on."""
        name = HOST.get()
        return self._first if name is None else self.addresses.hosts.get(name, self._first)

    def name_new(self, kind: str) -> Resource:
        """Name something that the running step makes, the same in every schedule."""
        scheduler = current_scheduler()
        made = None if scheduler is None else scheduler.roster.name_thing()
        if made is None:
            self._outside += 1
            return (kind, "outside", self._outside)
        return (kind, *made)

    def open(self, family: int, kind: int, proto: int) -> Endpoint:
        """Make a socket.

        Raises:
            OSError: there is none of this kind.
        """
        kind &= ~_FLAGS
        found = _KINDS.get((family, kind))
        if found is None:
            if family not in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
                raise failed(errno.EAFNOSUPPORT)
            if kind not in [*socket.SocketKind]:
                raise failed(errno.EINVAL)
            refuse(
                NotSimulated(
                    "use a socket of this type",
                    f'the network has streams and datagrams; or say sim.leave_real("{SOCKETS}")',
                )
            )
        made, only = found
        if proto not in (0, only):
            raise failed(errno.EPROTONOSUPPORT)
        endpoint: Endpoint = made(self, self.here(), family, kind, proto, self.name_new("socket"))
        endpoint.default_proto = only
        return endpoint

    def descriptor(self, endpoint: Endpoint) -> int:
        """Give a new file descriptor for a socket."""
        fd = _FIRST_FD + zlib.crc32(repr(endpoint.name).encode()) % _FDS
        while fd in self.fds:
            fd += 1
        self.fds[fd] = endpoint
        return fd

    def wake_writers(self) -> None:
        """Wake the tasks that wait for room at another socket of datagrams."""
        for endpoint in self._endpoints():
            if isinstance(endpoint, Datagrams) and endpoint.family == socket.AF_UNIX:
                endpoint.wake("w")

    def _endpoints(self) -> Iterator[Any]:
        return iter([*dict.fromkeys(self.fds.values())])

    def end(self) -> None:
        """Let nothing arrive any more, and leave no file."""
        self.links.over = True
        self.addresses.remove_files()


class Networks:
    """The networks of the execution that runs now: a default one, and those that the program enters."""

    def __init__(self) -> None:
        #: The Trio run they are in.
        self.run = SocketRun(OwnRun())
        #: The endpoints of all of them, by file descriptor.
        self.fds: dict[int, Endpoint] = {}
        self._states: list[NetworkState] = []
        self._entered: list[NetworkState] = []

    def begin(self) -> None:
        """Begin another execution."""
        if self._states:
            for state in self._states:
                state.end()
            self._states, self._entered, self.fds = [], [], {}

    @property
    def is_declared(self) -> bool:
        """Whether the program has entered one."""
        return bool(self._entered) and self._entered[-1].is_declared

    def current(self) -> NetworkState:
        """Give the network that sockets are made in now."""
        if not self._entered:
            self.enter(_DEFAULT, is_declared=False)
        return self._entered[-1]

    def of(self, settings: NetworkSettings) -> NetworkState | None:
        """Give the network of these settings; None where the program has entered none."""
        return next((state for state in reversed(self._entered) if state.settings is settings), None)

    def enter(self, settings: NetworkSettings, is_declared: bool = True) -> None:
        """Have sockets made in a network of these settings."""
        state = NetworkState(settings, self.fds, is_declared, self.run)
        self._states.append(state)
        self._entered.append(state)

    def leave(self, settings: NetworkSettings) -> None:
        """Have sockets made in it no longer."""
        state = self.of(settings)
        if state is not None:
            self._entered.remove(state)


_DEFAULT = NetworkSettings()

#: The networks of this process: one thread simulates at a time.
NETWORKS = Networks()


def sockets_are_real() -> bool:
    """Say whether sockets that the running step makes are the operating system's: the program has left them real."""
    scheduler = current_scheduler()
    return scheduler is not None and f"real {SOCKETS}" in scheduler.record.caveats and not NETWORKS.is_declared

"""Lets sockets of a network in memory be Trio's: what wraps them, waits for them, and looks names up.

Rules.  Trio's own code runs, with its own checkpoints: what is replaced is the function of the operating system that it
calls, and where a task waits for that.  A time at which something arrives stands among Trio's deadlines.
"""

from __future__ import annotations

import functools
import socket
import sys
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, Protocol

import attrs
import trio

from toolrt.probe import Resource
from toolrt.sim._trio_internals._replacements import Replacements

_run: Any = trio._core._run
_socket: Any = sys.modules["trio._socket"]

#: As they are outside of a simulation, for rooms that are loaded while a program runs.
real_getaddrinfo, real_getnameinfo = socket.getaddrinfo, socket.getnameinfo


class MemorySockets(Protocol):
    """The sockets of a network in memory."""

    #: Looks names up, as `trio.abc.HostnameResolver` says.
    resolver: Any
    #: The type of those that are of no subclass of the program's.
    plain: Any

    def has(self, sock: Any) -> bool:
        """Say whether `sock` is one of them."""

    def method(self, name: str) -> Callable[..., Any]:
        """Give the method of this name, unbound."""

    def is_readable(self, sock: Any) -> bool:
        """Say whether a read would not block."""

    def waits_for(self, fd: int, what: str) -> Any:
        """Give an awaitable that waits until a descriptor can be read ("r") or written ("w"); None: not one of them."""

    def count_waiting(self) -> tuple[int, int]:
        """Give how many tasks wait to read, and how many to write."""

    def closes(self, fd: int) -> bool:
        """Wake the tasks that wait for a descriptor which is about to be closed; False: not one of them."""


def replace_sockets(replacements: Replacements, sockets: MemorySockets, is_mine: Callable[[], bool]) -> None:
    """Let Trio take `sockets` for the operating system's, where `is_mine` says that a step of the program runs."""
    _replace_methods(replacements, sockets)
    _replace_waits(replacements, sockets)
    own = _OwnResolver(_socket._resolver, sockets.resolver, is_mine)
    replacements.replace(_socket, "_resolver", own)
    for holder in (_socket, sys.modules["trio.socket"]):
        real: Any = holder.__dict__["set_custom_hostname_resolver"]

        def set_resolver(hostname_resolver: Any, real: Any = real) -> Any:
            before = real(hostname_resolver)
            return None if before is sockets.resolver else before

        replacements.replace(holder, "set_custom_hostname_resolver", functools.wraps(real)(set_resolver))


def _name_of(function: Any) -> str:
    """Name a method of the standard library's socket, also where a tool that watches calls has put its own there."""
    names = (name for name in dir(socket.socket) if getattr(socket.socket, name, None) is function)
    name: str = function.__name__
    return name if getattr(socket.socket, name, None) is not None else next(names, name)


def _replace_methods(replacements: Replacements, sockets: MemorySockets) -> None:
    holder = _socket._SocketType
    real_init, real_helper = holder.__init__, holder._nonblocking_helper
    real_bind, real_is_readable = holder.bind, holder.is_readable

    @functools.wraps(real_init)
    def init(self: Any, sock: Any) -> None:
        if not sockets.has(sock):
            real_init(self, sock)
            return
        if type(sock) is not sockets.plain:  # a subclass, such as `ssl.SSLSocket`
            raise TypeError(f"expected object of type 'socket.socket', not '{type(sock).__name__}'")
        self._sock = sock
        sock.setblocking(False)
        self._did_shutdown_SHUT_WR = False

    @functools.wraps(real_helper)
    async def helper(self: Any, wait: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        if sockets.has(self._sock):
            function = sockets.method(_name_of(function))
        return await real_helper(self, wait, function, *args, **kwargs)

    @functools.wraps(real_bind)
    async def bind(self: Any, address: Any) -> None:
        if not sockets.has(self._sock):
            await real_bind(self, address)
            return
        # Trio binds a Unix socket in a thread, because the disk may be slow.
        address = await self._resolve_address_nocp(address, local=True)
        await trio.lowlevel.checkpoint()
        self._sock.bind(address)

    @functools.wraps(real_is_readable)
    def is_readable(self: Any) -> bool:
        return sockets.is_readable(self._sock) if sockets.has(self._sock) else bool(real_is_readable(self))

    for name, value in (
        ("__init__", init),
        ("_nonblocking_helper", helper),
        ("bind", bind),
        ("is_readable", is_readable),
    ):
        replacements.replace(holder, name, value)


def _replace_waits(replacements: Replacements, sockets: MemorySockets) -> None:
    manager = _run.TheIOManager
    for name, what in (("wait_readable", "r"), ("wait_writable", "w")):
        real = manager.__dict__[name]

        async def wait(self: Any, fd: Any, real: Any = real, what: str = what) -> None:
            waiting = sockets.waits_for(fd if isinstance(fd, int) else fd.fileno(), what)
            await (real(self, fd) if waiting is None else waiting)

        replacements.replace(manager, name, functools.wraps(real)(wait))
    real_notify = manager.notify_closing

    @functools.wraps(real_notify)
    def notify_closing(self: Any, fd: Any) -> None:
        if not sockets.closes(fd if isinstance(fd, int) else fd.fileno()):
            real_notify(self, fd)

    replacements.replace(manager, "notify_closing", notify_closing)
    real_statistics = manager.statistics

    @functools.wraps(real_statistics)
    def statistics(self: Any) -> Any:
        counts = real_statistics(self)
        if not hasattr(counts, "tasks_waiting_read"):
            return counts
        reading, writing = sockets.count_waiting()
        return attrs.evolve(
            counts,
            tasks_waiting_read=counts.tasks_waiting_read + reading,
            tasks_waiting_write=counts.tasks_waiting_write + writing,
        )

    replacements.replace(manager, "statistics", statistics)


class _OwnResolver:
    """Stands in for the variable of Trio's that holds a program's own resolver."""

    def __init__(self, real: Any, resolver: Any, is_mine: Callable[[], bool]) -> None:
        self._real = real
        self._resolver = resolver
        self._is_mine = is_mine

    def get(self, default: Any = None) -> Any:
        """Give the program's own, or else the network's."""
        found = self._real.get(None)
        return self._resolver if found is None and self._is_mine() else found

    def set(self, value: Any) -> Any:
        """Set the program's own."""
        return self._real.set(value)


class SocketRun:
    """The Trio run that sockets are in, as they see it: also from a worker thread that has the turn.

    Args:
        own_run: the run under control.
    """

    def __init__(self, own_run: Any) -> None:
        self._own_run = own_run

    def now(self) -> float:
        """Give virtual time, in seconds."""
        now: float = self._own_run.mine().runner.clock.now
        return now

    def deadlines(self) -> Any:
        """Give what Trio keeps deadlines in."""
        return self._own_run.mine().runner.deadlines

    def wake(self, task: Any, *value: Any) -> None:
        """Make a parked task runnable."""
        self._own_run.mine().runner.reschedule(task, *value)


class Arrivals:
    """Stands among Trio's deadlines for the earliest of some arrivals; Trio takes it for a cancel scope.

    Args:
        run: the run it happens in.
        arrive: is called when time gets there, with that time.
        changes: gives what will have changed by a time.
    """

    #: It is in no tree of scopes.
    _cancel_status = None
    cancel_called = False

    def __init__(
        self, run: SocketRun, arrive: Callable[[float], None], changes: Callable[[float], Iterator[Resource]]
    ) -> None:
        self._run = run
        self._arrive = arrive
        self._changes = changes
        self._registered_deadline = inf

    def register(self, deadline: float) -> None:
        """Have time stop at `deadline`, in virtual seconds; infinite: nowhere."""
        before = self._registered_deadline
        if before == deadline:
            return
        deadlines = self._run.deadlines()
        self._registered_deadline = deadline
        if before != inf:
            deadlines.remove(before, self)
        if deadline != inf:
            deadlines.add(deadline, self)

    def cancel(self, *_: object) -> None:
        """Let arrive what is due: Trio says that this deadline has come."""
        deadline = self._registered_deadline
        self.register(inf)
        self._arrive(deadline)

    def _cancel(self, *_: object, **__: object) -> None:
        self.cancel()

    def written_when_due(self) -> Iterator[Resource]:
        """Give what changes when time gets there."""
        return self._changes(self._registered_deadline)

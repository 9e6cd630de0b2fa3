"""What stands in for `socket.socket` in a program.

Rules.  A socket that a step of a program makes becomes one of these in its ``__init__``: its type is still a
`socket.socket`.  What would block raises BlockingIOError where the socket does not block, as Trio's do not; where it
does, a worker thread waits, and a task is refused, because nothing else could run until the end of time.
"""

from __future__ import annotations

import errno
import socket
import sys
import warnings
from collections.abc import Callable, Iterable
from math import inf
from operator import index
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import trio

from toolrt import probe
from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals._decided import SOCKETS
from toolrt.sim._trio_internals._lent import lent
from toolrt.sim.programs.network._endpoints import Endpoint, failed
from toolrt.sim.programs.network._resolver import numeric_address
from toolrt.sim.programs.network._state import NetworkState, refuse
from toolrt.sim.programs.network._waiting import wait_until_ready

_BLOCKS = NotSimulated("block on a socket", "use trio.socket: no other task could run meanwhile")


class _KeptOfSocket:
    """What one socket object has: kept apart, because the class in C has no room for more."""

    __slots__ = ("endpoint", "fd", "inheritable", "last", "net", "timeout")

    def __init__(self, net: NetworkState, endpoint: Endpoint, fd: int) -> None:
        self.net = net
        #: None once it was closed; `last` is what it was then.
        self.endpoint: Endpoint | None = endpoint
        self.last = endpoint
        self.fd = fd
        self.timeout: float | None = socket.getdefaulttimeout()
        self.inheritable = False


_kept: WeakKeyDictionary[socket.socket, _KeptOfSocket] = WeakKeyDictionary()


def become_simulated(
    made: socket.socket, net: NetworkState, family: int = -1, type: int = -1, proto: int = -1, fileno: Any = None
) -> None:
    """Make one of `net`'s of a socket that is being made."""
    if fileno is None:
        endpoint = net.open(
            int(socket.AF_INET if family == -1 else family),
            int(socket.SOCK_STREAM if type == -1 else type),
            0 if proto == -1 else proto,
        )
        fd = net.descriptor(endpoint)
    else:
        endpoint, fd = net.fds[fileno], fileno
    _become(made, net, endpoint, fd)


def _become(made: socket.socket, net: NetworkState, endpoint: Endpoint, fd: int) -> None:
    cls = made.__class__
    try:
        made.__class__ = (
            SimulatedSocket
            if cls in (socket.socket, SimulatedSocket)
            else _type(cls.__name__, (cls, SimulatedSocket), {"__slots__": ()})
        )
    except TypeError:
        refuse(NotSimulated(f"use a {cls.__name__}", "give the program a plain socket, or a Trio stream"))
    _kept[made] = _KeptOfSocket(net, endpoint, fd)
    for slot in ("_io_refs", "_closed"):
        setattr(made, slot, 0)


_type: Any = type


def opened(net: NetworkState, endpoint: Endpoint) -> socket.socket:
    """Give a new socket for an endpoint."""
    made = socket.socket.__new__(socket.socket)
    _become(made, net, endpoint, net.descriptor(endpoint))
    return made


def endpoint_of(made: socket.socket) -> Endpoint:
    """Give what the operating system would call the socket.

    Raises:
        OSError: it was closed.
    """
    kept = _kept[made]
    _touch_open(kept, write=False)
    if kept.endpoint is None:
        raise failed(errno.EBADF)
    return kept.endpoint


def _touch_open(kept: _KeptOfSocket, *, write: bool) -> None:
    """Report a look at whether the socket is open, or that it closes."""
    if probe.implied is not None:
        probe.implied((*kept.last.name, "open"), write)


def _bytes(data: Any) -> bytes:
    if isinstance(data, str):
        raise TypeError(f"a bytes-like object is required, not '{_type(data).__name__}'")
    return bytes(memoryview(data).cast("B"))


class SimulatedSocket(socket.socket):
    """A `socket.socket` of the network in memory."""

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An accepted or copied socket is of this class from the start.
        super().__init__(*args, **kwargs)

    def _done(self, what: str, operation: Callable[..., Any]) -> Any:
        """Do an operation for which the socket has to be readable ("r") or writable ("w")."""
        while True:
            try:
                return operation(endpoint_of(self))
            except BlockingIOError:
                if _kept[self].timeout == 0:
                    raise
            self._block(what)

    def _block(self, what: str) -> None:
        """Block a worker thread, and nothing else, until the operation may be done."""
        kept, endpoint, holder = _kept[self], endpoint_of(self), lent.here()
        if holder is None:
            refuse(_BLOCKS)
        has_timed_out = False

        async def wait() -> None:
            nonlocal has_timed_out
            with trio.move_on_after(inf if kept.timeout is None else kept.timeout) as scope:
                await wait_until_ready(endpoint, kept.fd, what)
            has_timed_out = scope.cancelled_caught

        holder.hand_over(wait, lambda: endpoint.is_ready(what))
        if has_timed_out:
            raise TimeoutError("timed out")

    # ------------------------------------------------------------------ what it is

    @property
    def family(self) -> Any:
        """Its address family."""
        return socket.AddressFamily(_kept[self].last.family)

    @property
    def type(self) -> Any:
        """Its type."""
        return socket.SocketKind(_kept[self].last.kind)

    @property
    def proto(self) -> int:
        """Its protocol."""
        return _kept[self].last.proto

    @property
    def timeout(self) -> float | None:
        """How long it blocks, in seconds."""
        return _kept[self].timeout

    def fileno(self) -> int:
        kept = _kept.get(self)
        if kept is None:
            return -1
        _touch_open(kept, write=False)
        return -1 if kept.endpoint is None else kept.fd

    def getsockname(self) -> Any:
        return endpoint_of(self).sockname()

    def getpeername(self) -> Any:
        return endpoint_of(self).peername()

    def get_inheritable(self) -> bool:
        return _kept[self].inheritable

    def set_inheritable(self, inheritable: bool) -> None:
        _kept[self].inheritable = bool(inheritable)

    def getblocking(self) -> bool:
        return _kept[self].timeout != 0

    def gettimeout(self) -> float | None:
        return _kept[self].timeout

    def setblocking(self, flag: bool) -> None:
        endpoint_of(self)
        _kept[self].timeout = None if flag else 0.0

    def settimeout(self, value: float | None) -> None:
        _kept[self].timeout = value

    def getsockopt(self, level: int, optname: int, buflen: int = 0) -> Any:
        endpoint = endpoint_of(self)
        if (level, optname) == (socket.SOL_SOCKET, socket.SO_LINGER) and buflen:
            return endpoint.linger[:buflen]
        value = endpoint.getsockopt(level, optname)
        return value.to_bytes(4, sys.byteorder, signed=value < 0)[:buflen] if buflen else value

    def setsockopt(self, level: int, optname: int, value: Any, optlen: int | None = None) -> None:
        if value is None:
            value = bytes(optlen or 0)
        elif not isinstance(value, int):
            value = _bytes(value)
        endpoint_of(self).setsockopt(level, optname, value)

    # ------------------------------------------------------------------ connections

    def bind(self, address: Any) -> None:
        endpoint_of(self).bind(self._resolved(address))

    def listen(self, backlog: int = 128) -> None:
        endpoint_of(self).listen(backlog)

    def accept(self) -> tuple[socket.socket, Any]:
        endpoint, address = self._done("r", lambda own: own.accept())
        endpoint.sockets += 1
        return opened(_kept[self].net, endpoint), address

    def connect(self, address: Any) -> None:
        endpoint, address = endpoint_of(self), self._resolved(address)
        try:
            endpoint.connect(address)
        except BlockingIOError:
            if _kept[self].timeout == 0:
                raise
            if not endpoint.is_ready("w"):
                self._block("w")
            if error := endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise failed(error) from None

    def connect_ex(self, address: Any) -> int:
        try:
            self.connect(address)
        except OSError as error:
            return error.errno or errno.EINVAL
        return 0

    def _resolved(self, address: Any) -> Any:
        return numeric_address(_kept[self].net, endpoint_of(self).family, address)

    def shutdown(self, how: int) -> None:
        if how not in (socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR):
            raise failed(errno.EINVAL)
        endpoint_of(self).shutdown(how)

    def dup(self) -> Any:
        endpoint, kept = endpoint_of(self), _kept[self]
        endpoint.sockets += 1
        copy = opened(kept.net, endpoint)
        copy.settimeout(kept.timeout)
        return copy

    def _let_go(self) -> Endpoint | None:
        kept = _kept.get(self)
        if kept is None or kept.endpoint is None:
            return None
        _touch_open(kept, write=True)
        endpoint, kept.endpoint = kept.endpoint, None
        return endpoint

    def detach(self) -> int:
        fd = self.fileno()
        setattr(self, "_closed", True)  # noqa: B010
        self._let_go()
        return fd

    def _real_close(self, _ss: object = None) -> None:
        kept, endpoint = _kept.get(self), self._let_go()
        if kept is not None and endpoint is not None:
            kept.net.fds.pop(kept.fd, None)
            endpoint.release()

    def __del__(self) -> None:
        kept = _kept.get(self)
        if kept is None or kept.endpoint is None or kept.net.links.over:
            return
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
        self._real_close()

    # ------------------------------------------------------------------ reading

    def _received(self, name: str, most: int, flags: int) -> tuple[bytes, int, Any]:
        most = index(most)
        if most < 0:
            raise ValueError(f"negative buffersize in {name}")
        return self._done("r", lambda own: own.receive(most, flags))  # type: ignore[no-any-return]

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        return self._received("recv", bufsize, flags)[0]

    def recvfrom(self, bufsize: int, flags: int = 0) -> tuple[bytes, Any]:
        data, _, address = self._received("recvfrom", bufsize, flags)
        return data, address

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer).cast("B")
        if nbytes > len(view):
            raise ValueError("buffer too small for requested bytes")
        data, _, _ = self._received("recv_into", nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data)

    def recvfrom_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> tuple[int, Any]:
        view = memoryview(buffer).cast("B")
        if nbytes > len(view):
            raise ValueError("nbytes is greater than the length of the buffer")
        data, _, address = self._received("recvfrom_into", nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data), address

    def recvmsg(self, bufsize: int, ancbufsize: int = 0, flags: int = 0) -> Any:
        data, told, address = self._received("recvmsg", bufsize, flags)
        return data, [], told, address

    def recvmsg_into(self, buffers: Iterable[Any], ancbufsize: int = 0, flags: int = 0) -> Any:
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        data, told, address = self._received("recvmsg_into", sum(map(len, views)), flags)
        place = 0
        for view in views:
            part = data[place : place + len(view)]
            view[: len(part)] = part
            place += len(part)
        return len(data), [], told, address

    # ------------------------------------------------------------------ writing

    def send(self, data: Any, flags: int = 0) -> int:
        return self._sent(_bytes(data), flags, None)

    def _sent(self, data: bytes, flags: int, address: Any) -> int:
        return self._done("w", lambda own: own.send(data, flags, address))  # type: ignore[no-any-return]

    def sendall(self, data: Any, flags: int = 0) -> None:
        left = _bytes(data)
        while left:
            left = left[self._sent(left, flags, None) :]

    def sendto(self, data: Any, *more: Any) -> int:
        *flags, address = more
        return self._sent(_bytes(data), flags[0] if flags else 0, self._resolved(address))

    def sendmsg(self, buffers: Iterable[Any], ancdata: Iterable[Any] = (), flags: int = 0, address: Any = None) -> int:
        if [*ancdata]:
            refuse(
                NotSimulated(
                    "send more than bytes through a socket",
                    f'send what they stand for, or say sim.leave_real("{SOCKETS}")',
                )
            )
        whole = b"".join(map(_bytes, buffers))
        return self._sent(whole, flags, None if address is None else self._resolved(address))

    def sendmsg_afalg(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise failed(errno.EOPNOTSUPP)


SimulatedSocket.__name__, SimulatedSocket.__qualname__ = "socket", "socket"
SimulatedSocket.__module__ = "socket"

"""What stands in for the parts of the world outside that a program uses: one table.

Rules.
    1. A stand-in is entered when a step of the program first uses one of its names, or when a room above asks for it.
       It stays until the Trio run is over.  So a program without sockets never loads the network.
    2. Until then a *gate* stands in the place of each name, and afterwards it leads to what the stand-in has there.  It
       stays where it is: what the program has put over it meanwhile stays over the stand-in, too.
    3. A stand-in hears of each execution that begins.  It decides at each call whether the code that runs is a step
       of the program; any other code meets what is real.
    4. While one is entered, no step is under way: what its modules do as they are loaded is none of the program's.
"""

from __future__ import annotations

import functools
import importlib
import os
import queue
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol

from toolrt.sim._trio_internals._children import children
from toolrt.sim._trio_internals._lent import lent, thread_cache
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._seam import OwnRun

_socket: Any = sys.modules["trio._socket"]


class StandIn(Protocol):
    """Stands in for something while simulations run."""

    def begin(self) -> None:
        """Begin another execution."""

    def installed(self, own_run: OwnRun) -> AbstractContextManager[None]:
        """Stand there inside the block, in the run under control."""


class _Row(NamedTuple):
    """A stand-in, and when a program needs it."""

    #: The module that has it, in `toolrt.sim.programs`, and its class.
    module: str
    name: str
    #: The names that need it, separated by spaces, by the module or class that has them.
    gates: tuple[tuple[Any, str], ...] = ()
    #: Another one, which it stands over.
    over: str | None = None


_NAMES_OF_HOSTS = "getaddrinfo getnameinfo gethostbyname gethostbyname_ex gethostbyaddr gethostname"


@functools.cache
def _table() -> dict[str, _Row]:
    """Give all of them, by room; not before Trio was found to have the names."""
    return {
        # Sockets, and names of hosts.
        "network": _Row(
            "network._installed",
            "NetworkStandIn",
            (
                (socket.socket, "__init__"),
                (socket, f"dup socketpair {_NAMES_OF_HOSTS}"),
                (_socket, "_resolver set_custom_hostname_resolver"),
                (sys.modules["trio.socket"], "set_custom_hostname_resolver"),
            ),
        ),
        # Child processes: where Trio makes pipes to one, and where it has a thread start it.
        "processes": _Row(
            "processes._installed",
            "ProcessStandIn",
            ((children, "trio create_pipe_to_child_stdin create_pipe_from_child_output"),),
            # Its pipes are waited for as sockets are.
            over="network",
        ),
        # Files and sockets that a program leaves real.
        "real": _Row("real._installed", "RealStandIn", over="processes"),
        # Worker threads, those that the program starts itself, and steps that block the loop until one has gone on.
        "threads": _Row(
            "threads._hooks",
            "ThreadStandIn",
            (
                (thread_cache.ThreadCache, "start_thread_soon"),
                (threading.Thread, "start"),
                (threading.Condition, "wait"),
                (queue, "SimpleQueue"),
                *([(os, "waitpid")] if hasattr(os, "pidfd_open") else []),
            ),
        ),
    }


class StandIns:
    """The stand-ins of one Trio run: those that its programs have needed.

    Args:
        own_run: that run, which is under control.
    """

    def __init__(self, own_run: OwnRun) -> None:
        self._own_run = own_run
        self._stack = ExitStack()
        self._entered: dict[str, StandIn] = {}
        self._gates: dict[str, list[_Gate]] = {room: [] for room in _table()}

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Let programs enter what they need, inside the block."""
        replacements = Replacements()
        with self._stack:
            self._stack.callback(replacements.put_back)
            for room, row in _table().items():
                opens = functools.partial(self._opens, room)
                self._gates[room] = [
                    _Gate(holder, name, opens) for holder, names in row.gates for name in names.split()
                ]
            gates = [gate for gates in self._gates.values() for gate in gates]
            replacements.replace_all([(gate.holder, gate.name, gate.stands_there) for gate in gates])
            yield

    def begin(self) -> None:
        """Begin another execution."""
        for stand_in in self._entered.values():
            stand_in.begin()

    def enter(self, room: str) -> None:
        """Have the stand-in of a room stand there from now on, and what it stands over."""
        if room in self._entered:
            return
        row = _table()[room]
        if row.over is not None:
            self.enter(row.over)
        seam = self._own_run.mine()
        assert seam is not None
        with lent.given_back(), seam.between_steps():
            module = importlib.import_module(f"toolrt.sim.programs.{row.module}")
            stand_in: StandIn = getattr(module, row.name)()
            stand_in.begin()
            with _open(self._gates[room]):
                self._stack.enter_context(stand_in.installed(self._own_run))
            self._entered[room] = stand_in

    def _opens(self, room: str) -> bool:
        """Enter the stand-in of a room where a step of the program runs, unless it is there; say whether it is."""
        if room not in self._entered:
            # Before the run has begun, no step of the program runs.
            if self._own_run.seam is None or self._own_run.in_step() is None:
                return False
            self.enter(room)
        return True


class _Gate:
    """Leads to what is real, or to what a stand-in has in its place.

    Args:
        holder: has the name.
        name: a function's, a method's or a class's; or that of an object whose attributes are asked for.
        opens: says at each use whether the stand-in is there, and enters it where it is needed.
    """

    def __init__(self, holder: Any, name: str, opens: Callable[[], bool]) -> None:
        self.holder = holder
        self.name = name
        self.real: Any = holder.__dict__[name]
        #: What the stand-in has there.
        self.behind: Any = self.real
        self._opens = opens
        self.stands_there: Any = self._function() if callable(self.real) else _Attributes(self)

    def target(self) -> Any:
        """Give what this use of the name is of."""
        return self.behind if self._opens() else self.real

    def _function(self) -> Callable[..., Any]:
        # A class has attributes of its own, which are not the function's.
        @functools.wraps(self.real, updated=())
        def gate(*args: Any, **kwargs: Any) -> Any:
            return self.target()(*args, **kwargs)

        return gate


class _Attributes:
    """Stands there as an object whose attributes are asked for."""

    def __init__(self, gate: _Gate) -> None:
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gate.target(), name)


@contextmanager
def _open(gates: list[_Gate]) -> Iterator[None]:
    """Have what is real stand in the place of each gate inside the block, and take what stands there at its end."""
    over = [(gate, gate.holder.__dict__[gate.name]) for gate in gates]
    for gate in gates:
        setattr(gate.holder, gate.name, gate.real)
    try:
        yield
    finally:
        for gate, before in over:
            gate.behind = gate.holder.__dict__[gate.name]
            setattr(gate.holder, gate.name, before)

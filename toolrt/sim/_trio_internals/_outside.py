"""Refuses library calls that would leave a simulation: sockets, subprocesses, other event loops.

Rules.  Only what is the library's own is refused: a stand-in in its place is what a refusal asks
for.  What stays in the process (files, a database in one, an address that is a number) is not refused.

Limits.  A function that was imported from its module beforehand is met where it needs another one: that which connects
makes a socket.  Code in C that asks the operating system itself is not met.
"""

from __future__ import annotations

import _socket
import _thread
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

__all__ = ["Refusal", "refusals"]


class Refusal(NamedTuple):
    """One name that a simulated step must not call."""

    #: The module or class that has it.
    holder: Any
    #: The name there.
    name: str
    #: What a program does that calls it.
    action: str
    #: Says of a call's arguments that it stays in the process; None: no call does.
    stays: Callable[..., bool] | None = None


def _is_number(host: object, port: object = None, *others: int, flags: int = 0, **_: object) -> bool:
    """Say whether an address is not looked up; of what may follow it by position the fourth are the flags."""
    return host is None or bool((others[3] if len(others) > 3 else flags) & socket.AI_NUMERICHOST)


_THREAD = "start a thread"
_PROCESS = "start a subprocess"
_LOOKUP = "look up a host"
_LOOP = "start an event loop of its own"

# `socket.socketpair` has opened both of the operating system's before it makes the first socket of one.
_NAMES: tuple[tuple[Any, str, str, str, Callable[..., bool] | None], ...] = (
    (socket.socket, "__init__", "use a socket", "", None),
    (_socket, "socketpair", "use a socket", "", None),
    (socket, "getaddrinfo", _LOOKUP, "socket.getaddrinfo", _is_number),
    (socket, "gethostbyname", _LOOKUP, "socket.gethostbyname", None),
    (socket, "gethostbyname_ex", _LOOKUP, "socket.gethostbyname_ex", None),
    (socket, "gethostbyaddr", _LOOKUP, "socket.gethostbyaddr", None),
    *(
        (holder, name, _THREAD, f"_thread.{name.removeprefix('_')}", None)
        for holder in (_thread, threading)
        for name in ("start_new_thread", "start_new", "start_joinable_thread")
        for name in ((name,) if holder is _thread else (f"_{name}",))
    ),
    (subprocess.Popen, "__init__", _PROCESS, "subprocess.Popen", None),
    *(
        (os, name, _PROCESS, f"os.{name}", None)
        for name in ("system", "fork", "forkpty", "posix_spawn", "posix_spawnp")
    ),
)

# A platform need not have all of them.
_REFUSALS = tuple(
    (Refusal(holder, name, f"{action} ({called})" if called else action, stays), vars(holder)[name])
    for holder, name, action, called, stays in _NAMES
    if name in vars(holder)
)

# Imported by programs that use them, and slow to import.
_LATER = (
    ("multiprocessing.process", "BaseProcess", "start", f"{_PROCESS} (multiprocessing)"),
    ("asyncio.events", None, "new_event_loop", f"{_LOOP} (asyncio)"),
    ("asyncio", None, "new_event_loop", f"{_LOOP} (asyncio)"),
)


def refusals() -> Iterator[Refusal]:
    """Give every name that is to be refused now."""
    for refusal, real in _REFUSALS:
        current = vars(refusal.holder).get(refusal.name)
        # A simulation may be under way in whose check this one begins.
        if getattr(current, "refuses", current) is real:
            yield refusal
    for module, owner, name, action in _LATER:
        holder: Any = sys.modules.get(module)
        if owner is not None:
            holder = getattr(holder, owner, None)
        # A module that another thread is importing may not have it yet.
        if holder is not None and getattr(vars(holder).get(name), "__module__", None) in ("asyncio.events", module):
            yield Refusal(holder, name, action)

"""Refuses library calls that would leave a simulation: subprocesses, other event loops, the system's sockets, an exit.

Rules.  Only what is the library's own is refused: a stand-in in its place is what a refusal asks
for.  What stays in the process (files, a database in one) is not refused.

Limits.  A function that was imported from its module beforehand is met where it needs another one.  Code in C that
asks the operating system itself is not met.
"""

from __future__ import annotations

import _socket
import _thread
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

#: The module or class that has a name which a simulated step must not call, the name, one of the kinds below, and what
#: a program does that calls it.
Refusal = tuple[Any, str, str, str]

#: What a program does that leaves a simulation.  A fork would be one of the simulation itself.
SOCKET = "use a socket"
THREAD = "start a thread"
PROCESS = "start a subprocess"
FORK = "fork"
LOOP = "start an event loop of its own"
END = "end the process"

_NAMES: tuple[tuple[Any, str, str, str], ...] = (
    (_socket, "socketpair", SOCKET, ""),
    *(
        (holder, name, THREAD, f"_thread.{name.removeprefix('_')}")
        for holder in (_thread, threading)
        for name in ("start_new_thread", "start_new", "start_joinable_thread")
        for name in ((name,) if holder is _thread else (f"_{name}",))
    ),
    (subprocess.Popen, "__init__", PROCESS, "subprocess.Popen"),
    *((os, name, PROCESS, f"os.{name}") for name in ("system", "posix_spawn", "posix_spawnp")),
    *((os, name, FORK, f"os.{name}") for name in ("fork", "forkpty")),
    *((os, name, END, f"os.{name}") for name in ("_exit", "abort", "execv", "execve")),
)


def _refusal(holder: Any, name: str, kind: str, called: str) -> Refusal:
    words = PROCESS if kind is FORK else kind
    return holder, name, kind, f"{words} ({called})" if called else words


# A platform need not have all of them.
_REFUSALS = tuple((_refusal(*row), vars(row[0])[row[1]]) for row in _NAMES if row[1] in vars(row[0]))

# Imported by programs that use them, and slow to import.
_LATER = (
    ("multiprocessing.process", "BaseProcess", "start", FORK, "multiprocessing"),
    ("multiprocessing.forkserver", None, "ensure_running", FORK, "multiprocessing"),
    ("asyncio.events", None, "new_event_loop", LOOP, "asyncio"),
    ("asyncio", None, "new_event_loop", LOOP, "asyncio"),
)


def refusals() -> Iterator[Refusal]:
    """Give every name that is to be refused now."""
    for refusal, real in _REFUSALS:
        holder, name, *_ = refusal
        current = vars(holder).get(name)
        # A simulation may be under way in whose check this one begins.
        if getattr(current, "refuses", current) is real:
            yield refusal
    for module, owner, name, kind, called in _LATER:
        holder = sys.modules.get(module)
        if owner is not None:
            holder = getattr(holder, owner, None)
        # A module that another thread is importing may not have it yet.
        if holder is not None and getattr(vars(holder).get(name), "__module__", None) in ("asyncio.events", module):
            yield _refusal(holder, name, kind, called)

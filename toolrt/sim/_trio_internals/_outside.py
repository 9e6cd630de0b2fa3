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
from typing import Any, NamedTuple


class Refusal(NamedTuple):
    """One name that a simulated step must not call."""

    #: The module or class that has it.
    holder: Any
    #: The name there.
    name: str
    #: What a program does that calls it.
    action: str


_THREAD = "start a thread"
_PROCESS = "start a subprocess"
_LOOP = "start an event loop of its own"
_END = "end the process"

_NAMES: tuple[tuple[Any, str, str, str], ...] = (
    (_socket, "socketpair", "use a socket", ""),
    *(
        (holder, name, _THREAD, f"_thread.{name.removeprefix('_')}")
        for holder in (_thread, threading)
        for name in ("start_new_thread", "start_new", "start_joinable_thread")
        for name in ((name,) if holder is _thread else (f"_{name}",))
    ),
    (subprocess.Popen, "__init__", _PROCESS, "subprocess.Popen"),
    *((os, name, _PROCESS, f"os.{name}") for name in ("system", "fork", "forkpty", "posix_spawn", "posix_spawnp")),
    *((os, name, _END, f"os.{name}") for name in ("_exit", "abort", "execv", "execve")),
)

# A platform need not have all of them.
_REFUSALS = tuple(
    (Refusal(holder, name, f"{action} ({called})" if called else action), vars(holder)[name])
    for holder, name, action, called in _NAMES
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

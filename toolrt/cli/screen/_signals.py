"""Signals that end a command or stop it for a while, besides Ctrl-C.

Rules.  SIGTERM (a supervisor, a container that is stopped) and SIGHUP (the terminal is gone) do what Ctrl-C does, and
the exit code says which it was, 128 and its number.  One that is ignored when the command begins, as under nohup, stays
so.  Before Ctrl-Z stops the process, the painter gives the terminal back.

Limits.  Where SIGINT is ignored, as in the background of a shell script, the other two end a command at once, but for a
batch that runs.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from toolrt.cli._exit import Exit

_CODES = {"SIGTERM": Exit.TERMINATED, "SIGHUP": Exit.HUNG_UP}

#: The signal that asked the command to end; None: none did, or it was Ctrl-C.
_asked: str | None = None


def who_interrupts() -> str:
    """What an interrupt is: ``Ctrl-C``, or the name of the signal that was taken as one."""
    return "Ctrl-C" if _asked is None else _asked


def code_of_interrupt() -> Exit:
    """How a command ends that was interrupted."""
    return Exit.INTERRUPTED if _asked is None else _CODES[_asked]


@contextmanager
def taken_as_interrupts() -> Iterator[None]:
    """What asks to end is taken as Ctrl-C inside; only in the main thread."""
    global _asked
    _asked = None
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    own = os.getpid()

    def interrupt(number: int, frame: FrameType | None) -> None:
        global _asked
        if os.getpid() != own or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):
            # A process that was forked from this one, or one without a handler for SIGINT.
            _do_by_default(number)
            return
        _asked = _asked or signal.Signals(number).name
        signal.raise_signal(signal.SIGINT)

    taken = [number for name in _CODES if (number := getattr(signal, name, None)) is not None]
    taken = [number for number in taken if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def before_a_stop(leave: Callable[[], object]) -> Callable[[], object]:
    """Have `leave` called before Ctrl-Z stops this process; gives what takes that back."""
    stops = getattr(signal, "SIGTSTP", None)
    in_main = threading.current_thread() is threading.main_thread()
    if stops is None or not in_main or signal.getsignal(stops) is not signal.SIG_DFL:
        return _nothing
    own = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        if os.getpid() == own:
            leave()
        _do_by_default(number)
        signal.signal(number, stop)

    signal.signal(stops, stop)
    return lambda: signal.signal(stops, signal.SIG_DFL)


def _do_by_default(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _nothing() -> None:
    """There is nothing to take back."""

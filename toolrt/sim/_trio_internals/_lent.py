"""Says which thread has the turn of the task that stands for it.

Rules.  A simulation is one thread at a time: while a step waits for a worker thread, that thread runs in its place.
What it asks of the simulation is asked by the task of that step; what it asks of Trio is asked by no task.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from _thread import get_ident
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

#: Where Trio has the ways from threads to its loop, and what starts threads.
threads: Any = sys.modules["trio._threads"]
thread_cache: Any = sys.modules["trio._core._thread_cache"]


class Holder(Protocol):
    """What stands for a worker thread in a simulation."""

    #: The task whose steps are the thread's.
    task: Any

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass, from within the thread."""

    def hand_over(
        self, waits: Callable[[], Awaitable[object]] = ..., is_ready: Callable[[], bool] | None = None
    ) -> None:
        """Let the thread wait, from within it, as the task that stands for it does in `waits`."""


class Lent:
    """The turn that a worker thread has, one for the whole process."""

    __slots__ = ("blocks", "holder", "thread")

    def __init__(self) -> None:
        #: The number of the thread that has the turn; 0: none has.
        self.thread = 0
        #: What stands for it.
        self.holder: Holder | None = None
        #: A step blocks the loop: lets a thread go on meanwhile, and says whether there was one.
        self.blocks: Callable[[], bool] = lambda: False

    def here(self) -> Holder | None:
        """Give what stands for this thread, if it has the turn."""
        return self.holder if self.thread and self.thread == get_ident() else None

    @contextlib.contextmanager
    def given_back(self) -> Iterator[None]:
        """Let no thread have the turn inside the block: nothing reports in its name."""
        thread, self.thread = self.thread, 0
        try:
            yield
        finally:
            self.thread = thread


lent = Lent()


def name_os_thread(thread: threading.Thread, name: str | None) -> None:
    """Let the operating system call a thread by its name, too, as Trio does where it can."""
    if name is not None and thread_cache.set_os_thread_name:
        with contextlib.suppress(Exception):
            thread_cache.set_os_thread_name(thread.ident, name)

"""Record a production run as the same trace that the simulator makes.

Rules.  Time is in seconds since the recording began: Trio's own clock while Trio runs (so a mock clock is followed),
else the process's monotonic one.  A task is named by its path, as in a simulation: ``main``, and for every other
task its parent's path and a number, counted in the order in which the recording met them.  Nothing in a trace is
an ``id()``.

Limits.  One recording sees events; accesses and steps exist only in a simulation.  Of two recordings, one inside
the other, the inner one sees what happens while it lasts.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from toolrt import probe
from toolrt.errors import MisuseError
from toolrt.trace import Recorder, recording


@contextmanager
def record() -> Iterator[Recorder]:
    """Record everything that happens inside the block; ``recorder.trace()`` gives it, any time.

    Raises:
        MisuseError: inside a simulation, whose execution has a trace already; nothing was changed.

    Example::

        with toolrt.record() as recorder:
            toolrt.run_sync(runtime, calls)
        violations = toolrt.invariants.check(recorder.trace())
    """
    if probe.threads_inline:
        raise MisuseError("record() was called inside a simulation: its trace is `execution.trace`")
    with recording(_Clock().now, _Paths().current) as recorder:
        yield recorder


class _Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._token: trio.lowlevel.TrioToken | None = None
        # What Trio's clock of the current run says where this clock says zero.
        self._zero = 0.0
        if trio.lowlevel.in_trio_run():
            self._follow(0.0)

    def now(self) -> float:
        if not trio.lowlevel.in_trio_run():
            return time.perf_counter() - self._began
        if trio.lowlevel.current_trio_token() is not self._token:
            self._follow(time.perf_counter() - self._began)
        return trio.current_time() - self._zero

    def _follow(self, elapsed: float) -> None:
        """Go on by the clock of the Trio run that this is called in."""
        self._token = trio.lowlevel.current_trio_token()
        self._zero = trio.current_time() - elapsed


class _Paths:
    """Names tasks by where they come from."""

    def __init__(self) -> None:
        self._paths: weakref.WeakKeyDictionary[trio.lowlevel.Task, str] = weakref.WeakKeyDictionary()
        self._children: weakref.WeakKeyDictionary[trio.lowlevel.Task, int] = weakref.WeakKeyDictionary()

    def current(self) -> str:
        if not trio.lowlevel.in_trio_task():  # also in an asyncio task beside a guest Trio run
            return "outside"
        return self._path(trio.lowlevel.current_task())

    def _path(self, task: trio.lowlevel.Task) -> str:
        known = self._paths.get(task)
        if known is not None:
            return known
        # From the task up to the first one with a name, and back down: no recursion, however deep the nest.
        unnamed = [task]
        nursery = task.parent_nursery
        while nursery is not None and nursery.parent_task not in self._paths:
            unnamed.append(nursery.parent_task)
            nursery = nursery.parent_task.parent_nursery
        above = None if nursery is None else nursery.parent_task
        for one in reversed(unnamed):
            self._paths[one] = self._named(one, above)
            above = one
        return self._paths[task]

    def _named(self, task: trio.lowlevel.Task, parent: trio.lowlevel.Task | None) -> str:
        if parent is None:
            return "trio"
        number = self._children.get(parent, 0)
        self._children[parent] = number + 1
        above = self._paths[parent]
        if above == "trio":
            # Trio's root task has the program's first task as a child, beside system tasks that report nothing.
            return "main" if number == 0 else f"system.{number - 1}"
        return f"{above}.{number}"

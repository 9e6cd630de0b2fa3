"""A wait for a real file or socket.

Rules.
    1. It is an actor: each of its steps looks whether what the task waits for has come, in real time, while virtual
       time stands still.  When it has, the step wakes the task.
    2. A look takes as long as an answer may take, where one may be expected; else a moment.  Where nothing has come it
       is made again after the program has sent anything, and when nothing else can run.
"""

from __future__ import annotations

from typing import Protocol

import trio
from trio.lowlevel import Abort, Task

from toolrt.probe import Resource
from toolrt.sim._trio_internals._things import OUTSIDE
from toolrt.sim.programs.network._links import touch
from toolrt.sim.programs.real._opened import RealFile


class WaitsOf(Protocol):
    """The real files and sockets of an execution, for one of its waits."""

    def has_come(self, wait: RealWait) -> bool:
        """Say whether what it waits for has come, after a while."""

    def wake(self, task: Task) -> None:
        """Make a parked task runnable."""

    def forget(self, wait: RealWait) -> None:
        """Take note that it is over."""


class RealWait:
    """A wait for a real file or socket; the ``custom_sleep_data`` of the task meanwhile.

    Args:
        files: all of the execution.
        file: what it is for.
        what: until it can be read ("r") or written ("w").
    """

    #: No step that blocks the loop waits for it.
    can_go_on = False

    def __init__(self, files: WaitsOf, file: RealFile, what: str) -> None:
        self._files = files
        self.file = file
        self.what = what
        #: What changes when its task waits no longer.
        self.left_by_cancelling: Resource = (*file.name, "waits", what)
        #: When the task is cancelled, if nothing comes, in virtual seconds.
        self.deadline = trio.current_effective_deadline()
        #: The task that waits.
        self.task = trio.lowlevel.current_task()
        self._life = trio.CancelScope()
        self._own: Task | None = None

    @property
    def is_parked(self) -> bool:
        """Whether it has looked, and nothing had come."""
        return self._own is not None

    def all_report(self, _: object) -> bool:
        """Say that all it does is reported."""
        return True

    @trio.lowlevel.enable_ki_protection
    async def act(self) -> None:
        """Look until it has come, or its task waits no longer."""
        try:
            with self._life:
                while not self._life.cancel_called:
                    if self.what == "r":
                        touch(OUTSIDE, False)
                    if self._files.has_come(self):
                        self._end()
                        return
                    self._own = trio.lowlevel.current_task()
                    await trio.lowlevel.wait_task_rescheduled(self._unpark)
        finally:
            self._own = None
            self._files.forget(self)

    def _unpark(self, _: object) -> Abort:
        self._own = None
        return Abort.SUCCEEDED

    def look_again(self) -> None:
        """Let it look again."""
        own, self._own = self._own, None
        if own is not None:
            self._files.wake(own)

    def _end(self) -> None:
        touch(self.left_by_cancelling, True)
        del self.file.waits[self.what]
        self._files.wake(self.task)

    def leave(self) -> None:
        """End it: its task waits no longer."""
        self.file.waits.pop(self.what, None)
        self._life.cancel()

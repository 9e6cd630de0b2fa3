"""The real files and sockets of one execution.

Rules.
    1. Before the program sends something, other connections have a moment to answer what was sent on them before: a
       server then handles one request after the other, in the order of the schedule.
    2. When nothing else can run, all waits are looked at together.  One that no answer ends within
       `toolrt.sim.thread_seconds` ends the execution, undecided; unless no answer is expected, and time can move.
"""

from __future__ import annotations

from collections.abc import Awaitable
from math import inf
from typing import Any

import outcome
import trio
from trio.lowlevel import Abort, Task

from toolrt.errors import RealTimeout
from toolrt.probe import Resource
from toolrt.sim._paths import REAL
from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim._trio_internals._things import OUTSIDE
from toolrt.sim.engine._scheduler import Scheduler
from toolrt.sim.programs.network._links import touch
from toolrt.sim.programs.real._opened import RealFile, identity_of
from toolrt.sim.programs.real._polls import PAUSE, poll
from toolrt.sim.programs.real._waits import RealWait

# Of the time that a real operation may take, these parts are given to an answer that is expected while others can run,
# and to that of another server before something is sent.
_PATIENCE, _MOMENT = 0.1, 0.01


RealRead = tuple[Resource, int, int, int]


class RealFiles:
    """Those that one execution has used.

    Args:
        seam: the Trio run that it is in.
        scheduler: the execution.
    """

    def __init__(self, seam: Seam, scheduler: Scheduler) -> None:
        self._seam = seam
        self._scheduler = scheduler
        self._open: dict[int, RealFile] = {}
        self._closed: list[RealFile] = []
        self._waits: dict[RealWait, None] = {}
        # How often something was sent, and that number when time was last let pass without an answer.
        self._sent = 0
        self._silent_since = -1

    def of(self, fd: int) -> RealFile:
        """Give the file or socket of a descriptor."""
        found = self._open.get(fd)
        if found is None or found.identity != identity_of(fd):
            found = self._open[fd] = RealFile(fd, ("real", *(self._scheduler.roster.name_thing() or ("outside",))))
        return found

    def wake(self, task: Task) -> None:
        """Make a parked task runnable."""
        self._seam.wake(task)

    def forget(self, wait: RealWait) -> None:
        """Take note that a wait is over."""
        self._waits.pop(wait, None)
        self._scheduler.roster.threads.pop(trio.lowlevel.current_task(), None)

    @property
    def _limit(self) -> float:
        return self._scheduler.record.thread_seconds

    # ------------------------------------------------------------------ waiting

    def waits_for(self, fd: int, what: str) -> Awaitable[None]:
        """Give an awaitable that waits until a descriptor can be read ("r") or written ("w")."""
        return self._wait(self.of(fd), what)

    async def _wait(self, file: RealFile, what: str) -> None:
        touch((*file.name, "waits", what), True)
        if what in file.waits:
            raise trio.BusyResourceError("another task is already reading / writing this fd")
        await trio.lowlevel.checkpoint_if_cancelled()
        wait = file.waits[what] = RealWait(self, file, what)
        self._waits[wait] = None
        wait.task.custom_sleep_data = wait
        task = self._scheduler.roster.begin_thread(wait.act, "a wait for something real", REAL)
        self._scheduler.record.threads[task] = wait

        def abort(_: object) -> Abort:
            wait.leave()
            return Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def has_come(self, wait: RealWait) -> bool:
        """Say whether what a wait is for has come, after a while."""
        # What can be written is no answer: the other end reads first, and may be the program's own.
        is_owed = wait.what == "r" and wait.file.is_owed
        return self._find([wait], self._limit * _PATIENCE if is_owed else PAUSE)

    def _find(self, waits: list[RealWait], seconds: float) -> bool:
        """Say whether what one of some waits is for comes within so many real seconds."""
        wanted: dict[int, str] = {}
        for wait in waits:
            wanted[wait.file.fd] = wanted.get(wait.file.fd, "") + wait.what
        with self._seam.between_steps():
            found = poll(wanted, seconds, lambda: self._seam.is_interrupted)
            for wait in waits:
                if wait.file.fd in found and wait.what == "r":
                    wait.file.look()
        return bool(found)

    def rests(self) -> bool:
        """Look at all waits, because nothing else can run; say whether something has happened."""
        waits = [wait for wait in self._waits if wait.is_parked]
        if not waits:
            return False
        deadline = self._seam.next_deadline()
        self._scheduler.roster.origin = -1
        if deadline == inf or self._seam.has_idle_waiters():
            # A task that waits until nothing else can run does not wait for what is real.
            is_expected = not self._seam.has_idle_waiters()
        else:
            is_expected = any(wait.file.is_owed or wait.deadline <= deadline for wait in waits)
        if not is_expected and self._silent_since == self._sent:
            return False
        seconds = self._limit * (1 if is_expected else _PATIENCE)
        if self._find(waits, seconds):
            for wait in waits:
                wait.look_again()
            return True
        if is_expected:
            remedy = "let the other end answer, or give it more with sim.thread_seconds"
            self._scheduler.refuse(RealTimeout("a real file or socket for more than", seconds, remedy))
            return True
        self._silent_since = self._sent
        return False

    # ------------------------------------------------------------------ what the program does

    def reading(self, fd: int, operation: Any) -> Any:
        """Make an operation read only what a wait has found."""
        file = self.of(fd)

        def read(target: Any, *args: Any) -> Any:
            touch(file.name, True)
            return file.read(operation, target, *args)

        return read

    def writing(self, fd: int, operation: Any) -> Any:
        """Make an operation that writes known."""
        file = self.of(fd)

        def write(target: Any, *args: Any, **kwargs: Any) -> Any:
            touch(file.name, True)
            self._changes(file)
            result = operation(target, *args, **kwargs)
            file.sends()
            return result

        return write

    def connects(self, fd: int) -> None:
        """Take note that a socket is about to be connected."""
        self._changes(self.of(fd))

    def signals(self) -> None:
        """Take note that a process is about to be sent a signal: it may end of it, or answer."""
        self._changes(None)

    def _changes(self, file: RealFile | None) -> None:
        """Let others have their answers before the world outside is changed."""
        touch(OUTSIDE, True)
        self._sent += 1
        owed = {
            each.fd: "r"
            for each in self._open.values()
            if each is not file and each.is_owed and not each.has_had_time and not each.can_be_read
        }
        with self._seam.between_steps():
            for fd in owed:
                poll({fd: "r"}, self._limit * _MOMENT)
                self._open[fd].has_had_time = True
        for wait in [*self._waits]:
            if wait.is_parked:
                wait.look_again()

    def reads(self) -> tuple[RealRead, ...]:
        """Give all that was read: which file or socket, which of its reads, how many bytes, and their sum."""
        files = (*self._closed, *self._open.values())
        return tuple(sorted((file.name, number, *read) for file in files for number, read in enumerate(file.reads)))

    def closes(self, fd: int) -> None:
        """Wake the tasks that wait for a descriptor which is about to be closed."""
        file = self.of(fd)
        del self._open[fd]
        self._closed.append(file)
        if not file.has_ended:
            self._changes(file)
        for wait in [*file.waits.values()]:
            touch(wait.left_by_cancelling, True)
            wait.leave()
            error = trio.ClosedResourceError("another task closed this fd")
            self._seam.runner.reschedule(wait.task, outcome.Error(error))

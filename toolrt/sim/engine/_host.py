"""Runs the jobs of a driver, in as many Trio runs as that takes.

Rules.  A *driver* is a generator: it yields a `Job`, is sent the `Execution`, and so on until it returns.  It is
called outside the Trio run, in the caller's thread, so it may do anything, even simulate something else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

from toolrt.errors import DefinitionRefused, NotSimulated, StuckStep
from toolrt.sim._trio_internals._decided import CLOCKS, FILES, PROCESSES, RANDOM, SOCKETS
from toolrt.sim._trio_internals._reports import Reports
from toolrt.sim._trio_internals._required import check_supported
from toolrt.sim._trio_internals._seam import is_host_of_guest
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._executions import Executions
from toolrt.sim.engine._job import Driver, Job, Jobs
from toolrt.sim.engine._scheduler import Scheduler
from toolrt.sim.engine._watchdog import watched

T = TypeVar("T")

# The names replaced in Trio and the probe's sink are the process's: one thread simulates at a time.
_turn = threading.RLock()

_current: list[Executions] = []

# What `leave_real` takes.
_KINDS = (RANDOM, CLOCKS, PROCESSES, FILES, SOCKETS)


def simulate(driver: Driver[T]) -> T:
    """Do the jobs of `driver` until it returns.

    Raises:
        UnsupportedTrio: Trio's internals are not those this was written for.
        NotSimulated: a Trio loop is running in this thread.
        KeyboardInterrupt: Ctrl-C; the execution is ended first.

    What the driver raises, and what a policy raises once the driver lets it pass, is raised as it is.
    """
    # Before anything else: an old Trio lacks what the lines below ask it.
    check_supported()
    if is_host_of_guest():
        raise NotSimulated(
            "start in the thread of a Trio run in guest mode",
            "call toolrt.sim before that run begins or after it has ended, or in a process of its own",
        )
    if trio.lowlevel.in_trio_run():
        raise NotSimulated(
            "start another simulation, or be simulated from inside a running Trio loop",
            "call toolrt.sim from a sync test or function (def, not async def)",
        )
    with _turn:
        # The driver is asked for its first job before anything is replaced: it may refuse its arguments.
        jobs, reports = Jobs(driver), Reports()
        try:
            jobs.advance(None)
            while jobs.answer is None:
                _current.append(Executions(jobs, reports))
                try:
                    _current[-1].run()
                finally:
                    _current.pop()
        finally:
            reports.hand_on()
        answer: T = jobs.answer.unwrap()
    return answer


def execute(job: Job) -> Execution:
    """Do one job."""

    def driver() -> Driver[Execution]:
        return (yield job)

    return simulate(driver())


@contextmanager
def bounded(seconds: float | None) -> Iterator[None]:
    """Let no execution inside the block run for longer than `seconds` from now, in wall time; None: no limit."""
    if seconds is None:
        yield
        return

    def give_up(error: StuckStep) -> None:
        if _current and (scheduler := _current[-1].scheduler) is not None:
            scheduler.force_end(error)

    def end_after_step(seconds: float) -> None:
        if _current and (scheduler := _current[-1].scheduler) is not None:
            scheduler.end_after_step(seconds)

    with watched(seconds, give_up, end_after_step):
        yield


def current_scheduler() -> Scheduler | None:
    """Give the execution this thread is in, if it is in one."""
    if not _current:
        return None
    executions = _current[-1]
    return executions.scheduler if executions.own.mine() is not None else None


def enter_stand_in(room: str) -> None:
    """Have the stand-in of a room of `toolrt.sim.programs` stand there from now on.

    Outside an execution nothing happens.

    Checkpoint: never.
    """
    if current_scheduler() is not None and (stand_ins := _current[-1].stand_ins) is not None:
        stand_ins.enter(room)


def run_with(clock: trio.testing.MockClock) -> None:
    """Have the program's mock clock tell and move virtual time, as one does that `trio.run` is given.

    Outside an execution nothing happens.

    Checkpoint: never.
    """
    if current_scheduler() is not None:
        _current[-1].run_with(clock)


def leave_real(*kinds: str) -> None:
    """Leave random numbers, clocks, child processes, files or sockets to the machine until the execution has ended.

    An execution decides the first two: ``random``, ``secrets``, ``uuid`` and ``os.urandom`` give the numbers of one
    stream, which its schedule names, and ``time`` and ``datetime`` tell virtual time.  A child process that no
    `Process` declares is refused; a real one runs to its end, once its input is closed, while virtual time stands
    still, and when its output and its end are seen is a choice; with "files", too, the program may talk to it
    meanwhile.  With "sockets", those that are made outside a `Network` block are the operating system's; with "files",
    a task may wait for a pipe or a device.  What such a wait is for is waited for in real time, while virtual time
    stands still, and when its end is seen is a choice; it may take `thread_seconds`.  What is real differs from one
    execution to the next, so a program in which it decides something gets INCONCLUSIVE.

    Args:
        kinds: "random", "clocks", "processes", "files", "sockets"; none is the first two.

    Raises:
        DefinitionRefused: a kind is none of them.
        NotSimulated: this code is in no execution.

    Checkpoint: never.
    """
    unknown = [kind for kind in kinds if kind not in _KINDS]
    if unknown:
        raise DefinitionRefused("leave_real()", f"some of {', '.join(_KINDS)}", unknown[0])
    scheduler = current_scheduler()
    if scheduler is None:
        raise NotSimulated("be asked to leave anything real from outside of it", "call it in the program")
    real = frozenset(kinds or (RANDOM, CLOCKS))
    scheduler.record.caveats.update(f"real {kind}" for kind in real)
    _current[-1].decided.leave_real(real)
    if real & {PROCESSES, FILES, SOCKETS}:
        enter_stand_in("real")

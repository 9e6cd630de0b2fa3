"""Puts children in memory in the place of the operating system's, for the steps of simulated programs.

Rules.  Trio's own code runs, with its own checks and checkpoints.  What is replaced is where it makes pipes, where it
has a thread start a process, and where it waits for its end.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import trio

from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals import PROCESSES, STAND_INS, Replacements, Seam, process_names
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.engine._scheduler import Scheduler
from toolrt.sim.programs.network._endpoints import failed
from toolrt.sim.programs.network._state import refuse
from toolrt.sim.programs.processes._child import ScriptedPopen, start
from toolrt.sim.programs.processes._declared import DECLARED, words_of
from toolrt.sim.programs.processes._pipes import PipeHolder, PipeOS, end_of, memory_pipe
from toolrt.sim.programs.processes._real import RealCommand

__all__ = ["ProcessStandIn"]


class ProcessStandIn:
    """Stands in for Trio's ways to child processes."""

    def begin(self) -> None:
        """Begin another execution."""
        DECLARED.clear()

    @contextmanager
    def installed(self, mine: Callable[[], Seam | None]) -> Iterator[None]:
        """Stand there inside the block.

        Args:
            mine: gives the seam of the run under control, where this thread is in it.
        """
        replacements, names = Replacements(), process_names()
        replace, module = replacements.replace, names.module

        def here() -> Seam | None:
            seam = mine()
            return seam if seam is not None and seam.owns(seam.current_task()) else None

        try:
            replace(module, "trio", _ThreadsOf(here))
            replace(module, "os", PipeOS(os))
            replace(module, "wait_child_exiting", _waits(module.__dict__["wait_child_exiting"]))
            if "pidfd_open" in module.__dict__:
                replace(module, "pidfd_open", _without_scripted(module.__dict__["pidfd_open"]))
            if names.streams is not None:
                streams = names.streams
                replace(module, "create_pipe_to_child_stdin", _pipes(module.create_pipe_to_child_stdin, here, 1))
                replace(module, "create_pipe_from_child_output", _pipes(module.create_pipe_from_child_output, here, 0))
                replace(streams, "os", PipeOS(os))
                replace(streams, "_FdHolder", _holds(streams.__dict__["_FdHolder"]))
            yield
        finally:
            replacements.put_back()
            self.begin()


def _script_for(command: Any, scheduler: Scheduler) -> Callable[..., Any] | None:
    """Give what answers for a command; None: nothing does."""
    words = words_of(command)
    for process in reversed(DECLARED):
        if words and process.answers_for(words[0]):
            return process.script
    if f"real {PROCESSES}" in scheduler.record.caveats:
        return RealCommand(command, scheduler)
    return None


class _ThreadsOf:
    """Stands in for the module `trio` where a thread would start a child."""

    def __init__(self, here: Callable[[], Seam | None]) -> None:
        self._here = here

    def __getattr__(self, name: str) -> Any:
        return getattr(trio, name)

    @property
    def to_thread(self) -> _ThreadsOf:
        """What runs a function in a thread."""
        return self

    async def run_sync(self, function: Any, *args: Any, **options: Any) -> Any:
        """Start the child that `function` would start, or refuse it."""
        seam, scheduler = self._here(), current_scheduler()
        if seam is None or scheduler is None:
            return await trio.to_thread.run_sync(function, *args, **options)
        (command,) = function.args
        words, script = words_of(command), _script_for(command, scheduler)
        if script is None:
            name = os.path.basename(words[0]) if words else ""
            refuse(
                NotSimulated(
                    "start a subprocess",
                    f'declare it: with sim.Process("{name}", script), or say sim.leave_real("{PROCESSES}")',
                )
            )
        return await start(seam, scheduler, script, words, command, function.keywords)


def _waits(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    async def wait_child_exiting(process: Any) -> None:
        popen = process._proc
        await (popen.wait_until_exited() if isinstance(popen, ScriptedPopen) else real(process))

    return wait_child_exiting


def _without_scripted(real: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(real)
    def pidfd_open(pid: int, flags: int) -> int:
        if pid >= 1 << 23:
            raise failed(errno.ESRCH)
        return real(pid, flags)

    return pidfd_open


def _pipes(real: Callable[..., Any], here: Callable[[], Seam | None], ours: int) -> Callable[..., Any]:
    """Make what makes a pipe; `ours` is the end that the program has: 0 reads, 1 writes."""

    @functools.wraps(real)
    def create_pipe() -> Any:
        if here() is None:
            return real()
        ends = memory_pipe()
        return trio.lowlevel.FdStream(ends[ours]), ends[1 - ours]

    return create_pipe


def _holds(real: type) -> Callable[[int], Any]:
    @functools.wraps(real, updated=())
    def hold(fd: int) -> Any:
        return real(fd) if end_of(fd) is None else PipeHolder(fd)

    return hold


STAND_INS.append(ProcessStandIn())

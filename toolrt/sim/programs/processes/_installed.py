"""Puts children in memory in the place of the operating system's, for the steps of simulated programs.

Rules.  Trio's own code runs, with its own checks and checkpoints.  What is replaced is where it makes pipes, where it
has a thread start a process, and where it waits for its end.  In a program that leaves processes and files real, and
declares no process, all of these are real: what a wait has found, and when, is `toolrt.sim.programs.real`'s.
"""

from __future__ import annotations

import errno
import functools
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from typing import Any

import trio

from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals._children import children, pipes
from toolrt.sim._trio_internals._decided import FILES, PROCESSES
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._seam import OwnRun, Seam
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.engine._scheduler import Scheduler
from toolrt.sim.programs.network._endpoints import failed
from toolrt.sim.programs.network._state import refuse
from toolrt.sim.programs.processes._child import ScriptedPopen, start
from toolrt.sim.programs.processes._declared import DECLARED, words_of
from toolrt.sim.programs.processes._pipes import PipeHolder, PipeOS, end_of, memory_pipe
from toolrt.sim.programs.processes._real import RealCommand
from toolrt.sim.programs.processes._signals import by_number

# The real children of the execution, to be ended with it, and what Trio has open to see their end.
_STARTED: list[subprocess.Popen[bytes]] = []
_OPENED: list[FileIO] = []


def _are_real() -> bool:
    """Say whether children are started, and their pipes used, as the operating system has them."""
    scheduler = current_scheduler()
    return scheduler is not None and not DECLARED and {f"real {PROCESSES}", f"real {FILES}"} <= scheduler.record.caveats


class ProcessStandIn:
    """Stands in for Trio's ways to child processes."""

    def begin(self) -> None:
        """Begin another execution."""
        DECLARED.clear()
        for child in _STARTED:
            if child.poll() is None:
                child.kill()
                child.wait()
        _STARTED.clear()
        for file in _OPENED:
            file.close()
        _OPENED.clear()

    @contextmanager
    def installed(self, own_run: OwnRun) -> Iterator[None]:
        """Stand there inside the block."""
        replacements = Replacements()
        replace, module, here = replacements.replace, children, own_run.in_step
        try:
            replace(module, "trio", _ThreadsOf(here))
            replace(module, "os", PipeOS(os))
            replace(module, "wait_child_exiting", _waits(module.__dict__["wait_child_exiting"]))
            if "pidfd_open" in module.__dict__:
                replace(module, "pidfd_open", _without_scripted(module.__dict__["pidfd_open"]))
                replace(module, "FileIO", _opened)
            replace(subprocess.Popen, "_execute_child", _noted(vars(subprocess.Popen)["_execute_child"], here))
            for name in {"kill", "killpg", "getpgid"}.intersection(vars(os)):
                replace(os, name, by_number(name, here))
            if pipes is not None:
                replace(module, "create_pipe_to_child_stdin", _pipes(module.create_pipe_to_child_stdin, here, 1))
                replace(module, "create_pipe_from_child_output", _pipes(module.create_pipe_from_child_output, here, 0))
                replace(pipes, "os", PipeOS(os))
                replace(pipes, "_FdHolder", _holds(pipes.__dict__["_FdHolder"]))
            yield
        finally:
            replacements.put_back()
            self.begin()


def _noted(real: Callable[..., None], here: Callable[[], Seam | None]) -> Callable[..., None]:
    """Have a real child that a step starts without Trio end with its execution, too."""

    @functools.wraps(real)
    def execute_child(popen: subprocess.Popen[bytes], *args: Any) -> None:
        real(popen, *args)
        if here() is not None:
            _STARTED.append(popen)

    return execute_child


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
        if _are_real():
            await trio.lowlevel.cancel_shielded_checkpoint()
            with seam.between_steps():
                _STARTED.append(function(*args))
            return _STARTED[-1]
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
        if isinstance(popen, ScriptedPopen):
            await popen.wait_until_exited()
        elif _are_real() and hasattr(os, "pidfd_open"):
            # Trio would wait in a thread, in C.
            descriptor = os.pidfd_open(popen.pid)
            try:
                await trio.lowlevel.wait_readable(descriptor)
            finally:
                os.close(descriptor)
        else:
            await real(process)

    return wait_child_exiting


def _opened(fd: int) -> FileIO:
    """Give what Trio has open to see the end of a child; a task that would close it may be ended before that."""
    _OPENED.append(FileIO(fd))
    return _OPENED[-1]


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
        if here() is None or _are_real():
            return real()
        ends = memory_pipe()
        return trio.lowlevel.FdStream(ends[ours]), ends[1 - ours]

    return create_pipe


def _holds(real: type) -> Callable[[int], Any]:
    @functools.wraps(real, updated=())
    def hold(fd: int) -> Any:
        return real(fd) if end_of(fd) is None else PipeHolder(fd)

    return hold

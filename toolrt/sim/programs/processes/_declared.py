"""`sim.Process`: what answers for a command in a simulation.

Rules.  Inside its block, a program that starts the command gets a child which the script runs.  Of two with one name,
the one that was entered last answers.  Outside a simulation entering it does nothing: the program runs real commands.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._host import current_scheduler, enter_stand_in
from toolrt.sim.programs._chances import choose
from toolrt.sim.programs.processes._child import ChildProcess

_Plain = bytes | Iterable[bytes]


class Process:
    """What a command does in a simulation.  A context manager: inside the block, the command is this one.

    A program starts it with `trio.run_process`, `trio.lowlevel.open_process`, or AnyIO's functions of these names.

    Args:
        name: the command's first word, such as "git": all of it, or its last part where it is a path.
        script: an async function that is the process.  It gets a `ChildProcess`, reads and writes its streams, and
            returns the exit code (None: 0; negative: a signal ended it).  None: the process writes what is given
            below, and ends.
        stdout: what it writes.  Bytes arrive whole or in two parts; several bytes objects are as many writes.
        stderr: the same for its other stream, which it writes to when `stdout` is written.
        returncode: its exit code.

    The script runs as an actor beside the program's tasks, at any moment; time is virtual in it.

    Raises:
        DefinitionRefused: an argument is not what it must be.

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def upper(child):
        ...     async for chunk in child.stdin:
        ...         await child.stdout.send_all(chunk.upper())
        >>> async def program():
        ...     with sim.Process("upper", upper):
        ...         done = await trio.run_process(["upper"], stdin=b"hello", capture_stdout=True)
        ...     return done.stdout
        >>> sim.explore(program, max_executions=20).outcomes
        {b'HELLO': 20}
    """

    def __init__(
        self,
        name: str,
        script: Callable[[ChildProcess], Awaitable[int | None]] | None = None,
        *,
        stdout: _Plain = b"",
        stderr: _Plain = b"",
        returncode: int = 0,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise DefinitionRefused("Process(name)", "the first word of a command", name)
        if script is not None and not callable(script):
            raise DefinitionRefused("Process(script)", "an async function, or None", script)
        if not isinstance(returncode, int) or isinstance(returncode, bool):
            raise DefinitionRefused("Process(returncode)", "a number", returncode)
        outputs = [output if isinstance(output, bytes | str) else tuple(output) for output in (stdout, stderr)]
        for what, output in zip(("stdout", "stderr"), outputs, strict=True):
            if not isinstance(output, bytes) and not (
                isinstance(output, tuple) and all(isinstance(each, bytes) for each in output)
            ):
                raise DefinitionRefused(f"Process({what})", "bytes, or several of them", output)
        if script is not None and (any(outputs) or returncode):
            raise DefinitionRefused("Process(script)", "either a script, or stdout, stderr and returncode", script)
        self.name = name
        self._outputs: list[Any] = outputs
        self._returncode = returncode
        #: Says what the process does.
        self.script = script or self._write

    def __enter__(self) -> Process:
        if current_scheduler() is not None:
            enter_stand_in("processes")
            DECLARED.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        for place in reversed(range(len(DECLARED))):
            if DECLARED[place] is self:
                del DECLARED[place]
                return

    async def _write(self, child: ChildProcess) -> int:
        for stream, output in zip((child.stdout, child.stderr), self._outputs, strict=True):
            for chunk in _parts(output) if isinstance(output, bytes) else output:
                await stream.send_all(chunk)
        return self._returncode

    def answers_for(self, word: str) -> bool:
        """Say whether it is the command of this first word."""
        return self.name in (word, os.path.basename(word))


#: Those that the execution which runs now has entered, the last one last.
DECLARED: list[Process] = []


def _parts(data: bytes) -> tuple[bytes, ...]:
    """Choose how `data` is written: whole, the first byte alone, or the last one alone."""
    cuts = sorted({1, len(data) - 1}) if len(data) > 1 else []
    chosen = choose(1 + len(cuts)) if cuts else 0
    if chosen:
        return data[: cuts[chosen - 1]], data[cuts[chosen - 1] :]
    return (data,) if data else ()


def words_of(command: Any) -> tuple[str, ...]:
    """Give a command word by word."""
    if isinstance(command, str | bytes):
        return tuple(shlex.split(os.fsdecode(command)))
    if isinstance(command, os.PathLike):
        return (os.fsdecode(command),)
    return tuple(os.fsdecode(word) for word in command)

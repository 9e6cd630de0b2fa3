"""Real commands: each under a supervisor of its own, of which nothing is left.

Rules.
    1. A command runs below a supervisor (`toolrt.services._supervisor`), which ends when nothing of the command
       lives; only then does `RealShell.run` return, be it at the command's end, its time limit or a cancel.
    2. The supervisor ends the command when its input ends: so it does when this process dies.
    3. What comes out is handed on as it comes, and nobody waits for a pipe that somebody still holds.
    4. It has no input, no terminal, and the environment that `toolrt.services._environment` states.

Limits.  Linux: all that a command started, in whatever session or group.  Other POSIX systems: its process group.
Windows: none.  A command that kills its own supervisor cuts its processes loose: then those with the mark in their
environment are found and killed, and one that has dropped the mark as well is not.  This orders and ends processes; it
is no sandbox: a command can do all that this process's user can.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, NotSimulated
from toolrt.services._command import Command, Ended
from toolrt.services._environment import environment_of, outside
from toolrt.workspace import FileProblem, RealDisk

__all__ = ["RealShell"]

_SUPERVISOR = str(Path(__file__).with_name("_supervisor.py"))

#: Seconds between TERM and KILL.
_GRACE = 0.5

#: Seconds after which a supervisor that does not end is given up; it gives its own processes up before.
_GIVEN_UP = 30.0

#: Bytes read at once: what a pipe holds.
_CHUNK = 64 * 1024

#: Bytes of a command: Linux takes 128 KiB in one argument.
_LONGEST = 100_000

#: The name in the environment of all that a command starts.
_MARK = "TOOLRT_COMMAND"


class RealShell:
    """Runs commands in the directory of `disk`.

    Args:
        disk: where the workspace's files are; commands change them past it.
        shell: the program and its arguments, the command's text is put behind them; None: bash, else sh.
        environment: what commands are told beside what is stated (see the how-to page).

    Raises:
        DefinitionRefused: there is no such program, or this system is Windows.
    """

    def __init__(
        self, disk: RealDisk, *, shell: Sequence[str] | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        if os.name != "posix" or not sys.executable:
            raise DefinitionRefused("a RealShell", "a POSIX system and a Python program to start", sys.platform)
        self._root = disk.root
        self._shell = _default_shell() if shell is None else list(shell)
        if not self._shell or not os.path.isabs(self._shell[0]) or shutil.which(self._shell[0]) is None:
            raise DefinitionRefused("RealShell(shell)", "the absolute path of a program, and arguments", shell)
        self._environment = environment_of(environment or {})
        self._environment_outside = outside(self._environment, disk.root)

    async def run(self, command: Command, output: Callable[[bytes], None]) -> Ended:
        """Run `command`; see `Shell.run`.

        Raises:
            NotSimulated: a simulation runs.

        Checkpoint: always.
        """
        if probe.threads_inline:
            raise NotSimulated(
                "run a real command",
                "give shell_tool a double that answers as the command would: shell=services.RecordedShell({...})",
            )
        _check_text(command.text)
        mark = secrets.token_hex(16)
        environment = self._environment_outside if command.reads else self._environment
        directory = "/".join((self._root.rstrip("/"), *command.directory)) or "/"
        process = await trio.lowlevel.open_process(
            [sys.executable, "-I", "-S", "-B", _SUPERVISOR, str(_GRACE), directory, *self._shell, command.text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, "PWD": directory, _MARK: mark},
            start_new_session=True,
        )
        return await _supervised(process, command.timeout, mark, output)


async def _supervised(process: trio.Process, seconds: float, mark: str, output: Callable[[bytes], None]) -> Ended:
    """Read what the command says until its supervisor has ended, which is told to end at the limit or a cancel."""
    control, out, status = (
        cast(trio.lowlevel.FdStream, stream) for stream in (process.stdin, process.stdout, process.stderr)
    )
    said = bytearray()
    readers = trio.CancelScope(shield=True)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read_both, out, output, status, said.extend, readers)
            try:
                with trio.move_on_after(seconds) as limit:
                    await process.wait()
            finally:
                control.close()
                with trio.move_on_after(_GIVEN_UP, shield=True):
                    await process.wait()
                _drain(status, said.extend)
                if process.returncode is None or b"done" not in said.split(b"\n"):
                    with trio.move_on_after(_GIVEN_UP, shield=True):
                        await _cut_loose(process, mark, said)
                readers.cancel()
        _drain(out, output)
        _drain(status, said.extend)
    finally:
        out.close()
        status.close()
    return _told(said, limit.cancelled_caught)


async def _read_both(
    out: trio.abc.ReceiveStream,
    hand_on: Callable[[bytes], object],
    status: trio.abc.ReceiveStream,
    note: Callable[[bytes], object],
    scope: trio.CancelScope,
) -> None:
    with scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, out, hand_on)
            nursery.start_soon(_read, status, note)


async def _read(stream: trio.abc.ReceiveStream, hand_on: Callable[[bytes], object]) -> None:
    while chunk := await stream.receive_some(_CHUNK):
        hand_on(bytes(chunk))


def _drain(stream: trio.lowlevel.FdStream, hand_on: Callable[[bytes], object]) -> None:
    """Hand on what is in the pipe now.

    Whoever wrote has ended, so it is all there; a pipe that was given to somebody outside is not waited for.
    """
    with contextlib.suppress(OSError):
        while chunk := os.read(stream.fileno(), _CHUNK):
            hand_on(chunk)


def _told(said: bytearray, timed_out: bool) -> Ended:
    """What the supervisor said came of the command."""
    words = [line.split() for line in said.decode("ascii", "replace").splitlines()]
    known = {line[0]: line[1:] for line in words if line}
    if "refused" in known:
        raise FileProblem(
            "the working directory", "a directory that can be entered", "none", "Nothing was run. Change to another."
        )
    if "started" not in known:
        raise FileProblem("the shell", "a process to be started", "none", "Nothing was run. Send the call again.")
    # A command that cut itself loose was killed, whatever it was about to exit with.
    status = int(known["exit"][0]) if "exit" in known else -signal.SIGKILL
    return Ended(None if timed_out else status, "swept" in known, "stuck" in known)


async def _cut_loose(process: trio.Process, mark: str, said: bytearray) -> None:
    """End what a supervisor left that was itself killed, or that has to be."""
    if process.returncode is None:
        process.kill()
        await process.wait()
        said += b"\nstuck\n"
    if await trio.to_thread.run_sync(_kill_marked, mark):
        said += b"\nswept\n"


def _kill_marked(mark: str) -> bool:
    """Kill every process that has `mark` in its environment; whether there was one."""
    wanted = f"{_MARK}={mark}".encode()
    killed = False
    # What forks while it is looked for is found the next time.
    for _ in range(100):
        found = [pid for pid in _all_processes() if _has_mark(pid, wanted)]
        if not found:
            break
        killed = True
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    return killed


def _all_processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _has_mark(pid: int, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return wanted in file.read().split(b"\0")
    except OSError:
        return False


def _default_shell() -> list[str]:
    """Give bash without its start-up files, which commands are usually written for; else sh."""
    bash = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin")
    return ["/bin/sh", "-c"] if bash is None else [bash, "--noprofile", "--norc", "-c"]


def _check_text(text: str) -> None:
    """Refuse what cannot be given to a shell."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise FileProblem("command", "whole characters", "half a surrogate pair", "Nothing was run.") from None
    if "\0" in text:
        raise FileProblem("command", "a text without NUL", "one with a NUL character", "Nothing was run.")
    if size > _LONGEST:
        remedy = "Nothing was run. Write it to a file, and run that."
        raise FileProblem("command", f"at most {_LONGEST} bytes", f"{size} bytes", remedy)

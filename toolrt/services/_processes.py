"""Runs real commands, each under a supervisor of its own, and leaves none of their processes behind.

Rules.
    1. A command runs below a supervisor (`toolrt.processes`): `RealShell.run` returns when nothing of it lives, be it
       at the command's end, its time limit or a cancel.
    2. Output is handed on as it comes; the shell never waits for a pipe that another process still holds.
    3. It has no input, no terminal, and the environment that `toolrt.services._environment` states.

    4. With a sandbox (`toolrt.services._sandbox`) it is restricted before it begins, or it does not begin.

Limits.  Those of `toolrt.processes._supervised`; without a sandbox a command can do all that this process's user can.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence

import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, NotSimulated
from toolrt.processes import Supervised, drain
from toolrt.services._command import Command, Ended
from toolrt.services._environment import environment_of, outside
from toolrt.services._sandbox import Sandbox, rights_of
from toolrt.workspace import Disk, FileProblem, path_on, real_disks

#: Bytes read at once: what a pipe holds.
_CHUNK = 64 * 1024

#: Bytes of a command: Linux takes 128 KiB in one argument.
_LONGEST = 100_000


class RealShell:
    """Runs commands in the directory of `disk`.

    Args:
        disk: where the workspace's files are; commands change them past it.
        shell: the program and its arguments, the command's text is put behind them; None: bash, else sh.
        environment: variables of commands beside the fixed ones (see the how-to page).
        sandbox: what commands may reach; True: the workspace and the system's programs; False: all that this user can.

    Raises:
        DefinitionRefused: there is no such program, this system is Windows, or its kernel has no such sandbox.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        shell: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
        sandbox: Sandbox | bool = False,
    ) -> None:
        if os.name != "posix" or not sys.executable:
            raise DefinitionRefused("a RealShell", "a POSIX system and a Python program to start", sys.platform)
        if not real_disks(disk):
            raise DefinitionRefused("RealShell(disk)", "a RealDisk, or several", disk)
        self._disk = disk
        self._shell = _default_shell() if shell is None else list(shell)
        if not self._shell or not os.path.isabs(self._shell[0]) or shutil.which(self._shell[0]) is None:
            raise DefinitionRefused("RealShell(shell)", "the absolute path of a program, and arguments", shell)
        self._environment = environment_of(environment or {})
        self._sandbox = rights_of(sandbox, disk, self._environment)
        self._environment_outside = self._environment
        for root in (disk.root, *disk.mounts.values()):
            self._environment_outside = outside(self._environment_outside, root)

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
        environment = self._environment_outside if command.reads else self._environment
        directory = path_on(self._disk, command.directory)
        argv = [*self._shell, command.text]
        if not self._sandbox:
            supervised = await Supervised.start(argv, directory=directory, environment=environment)
            return await _followed(supervised, command.timeout, output)
        own = await trio.to_thread.run_sync(_own_directory)
        try:
            environment = {**environment, "HOME": own, "TMPDIR": own}
            sandbox = [f"w{own}", *self._sandbox]
            supervised = await Supervised.start(argv, directory=directory, environment=environment, sandbox=sandbox)
            return await _followed(supervised, command.timeout, output)
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(functools.partial(shutil.rmtree, own, ignore_errors=True))


async def _followed(supervised: Supervised, seconds: float, output: Callable[[bytes], None]) -> Ended:
    """Hand on what the command writes until nothing of it runs; at the limit or a cancel it is ended."""
    out = supervised.stdout
    readers = trio.CancelScope(shield=True)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, out, output, readers)
            try:
                with trio.move_on_after(seconds) as limit:
                    await supervised.wait()
            finally:
                halted = await supervised.end()  # noqa: ASYNC102  shielded and bounded
                readers.cancel()
        rest = bytearray()
        drain(out, rest)
        if rest:
            output(bytes(rest))
    finally:
        supervised.close()
    if halted.refused == "directory":
        raise FileProblem(
            "the working directory", "a directory that can be entered", "none", "Nothing was run. Change to another."
        )
    if halted.refused == "sandbox":
        expected = "its directories, and a kernel that allows it"
        raise FileProblem("the sandbox", expected, "a refusal", "Nothing was run.")
    if halted.refused is not None:
        raise FileProblem("the shell", "a process to be started", "none", "Nothing was run. Send the call again.")
    return Ended(None if limit.cancelled_caught else halted.status, halted.swept, halted.stuck, halted.confined)


def _own_directory() -> str:
    """Make the empty directory of one command."""
    return os.path.realpath(tempfile.mkdtemp(prefix="toolrt-command-"))


async def _read(stream: trio.abc.ReceiveStream, hand_on: Callable[[bytes], object], scope: trio.CancelScope) -> None:
    with scope:
        while chunk := await stream.receive_some(_CHUNK):
            hand_on(bytes(chunk))


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

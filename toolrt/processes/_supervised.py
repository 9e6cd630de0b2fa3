"""A program and all that it starts, below a supervisor of its own.

Rules.
    1. A program runs below a supervisor (`toolrt.processes._supervisor`), which ends when nothing of the program lives;
       only then does `Supervised.wait` return.
    2. The supervisor ends the program when its own input ends: so it does when this process dies.
    3. `Supervised.end` is bounded: what does not end is killed, what cannot be killed is given up, and it says so.

Limits.  Linux: all that a program started, in whatever session or group.  Other POSIX systems: its process group.
Windows: none.  A program that kills its own supervisor cuts its processes loose: then those with the mark in their
environment are found and killed, and one that has dropped the mark as well is not.  Without a sandbox
(`toolrt.processes._sandbox`) a program can do all that this process's user can.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import attrs
import trio

_SUPERVISOR = str(Path(__file__).with_name("_supervisor.py"))

#: Seconds between TERM and KILL.
GRACE = 0.5

#: Seconds after which a supervisor that does not end is given up; it gives its own processes up before.
_GIVEN_UP = 30.0

#: Bytes read at once: what a pipe holds.
_CHUNK = 64 * 1024

#: The name in the environment of all that a program starts.
_MARK = "TOOLRT_COMMAND"


@attrs.frozen
class Halted:
    """What came of a program; nothing of it runs any more, unless it is `stuck`."""

    #: Why it was never started: "directory", which it could not enter, "sandbox", which could not be put up, or
    #: "system"; None: it was.
    refused: str | None
    #: What it exited with; below 0: the signal that ended it.
    status: int
    #: Whether processes that it had left running were ended.
    swept: bool
    #: Whether some could not be ended, though they were killed.
    stuck: bool
    #: The restrictions of its sandbox, by name; none: it had no sandbox.
    confined: tuple[str, ...] = ()

    @property
    def story(self) -> str:
        """How it ended, as the end of a sentence that begins with the program."""
        if self.refused is not None:
            return f"it could not be started ({self.refused})"
        if self.status >= 0:
            return f"it ended with exit status {self.status}"
        try:
            return f"it was ended by {signal.Signals(-self.status).name}"
        except ValueError:
            return f"it was ended by signal {-self.status}"


def program_at(name: str, directory: str, search: str | None) -> str | None:
    """The absolute path of the program `name` in `search`, or from `directory` if it has a slash; or None."""
    if os.path.dirname(name):
        found = shutil.which(os.path.join(directory, name))
    else:
        found = shutil.which(name, path=search)
    return None if found is None else os.path.abspath(found)


@attrs.define(eq=False)
class Supervised:
    """A program that was started; who starts one has to `end` it."""

    #: What the program reads; None: it has no input.
    stdin: trio.lowlevel.FdStream | None
    #: What it writes: both its outputs, where it has no input.
    stdout: trio.lowlevel.FdStream
    #: Its other output; None where that goes to `stdout`.
    stderr: trio.lowlevel.FdStream | None
    _process: trio.Process
    _mark: str
    #: What the supervisor has said.
    _said: bytearray = attrs.field(factory=bytearray, init=False)

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        spoken_to: bool = False,
        sandbox: Sequence[str] = (),
    ) -> Supervised:
        """Start the program.

        Args:
            argv: the program's absolute path, and its arguments.
            directory: where it starts; a real path.
            environment: all its variables.
            spoken_to: whether it has an input, and an error output of its own.
            sandbox: what it is restricted to, see `toolrt.processes._sandbox.confine`; empty: it is not restricted.

        Raises:
            OSError: no process could be started; nothing is left.

        Checkpoint: always.
        """
        mark = secrets.token_hex(16)
        ours: list[int] = []
        theirs: list[int] = []
        try:
            for flows_in in (True, False, False) if spoken_to else ():
                read, write = os.pipe()
                ours.append(write if flows_in else read)
                theirs.append(read if flows_in else write)
            process = await trio.lowlevel.open_process(
                [
                    *(sys.executable, "-I", "-S", "-B", _SUPERVISOR, str(GRACE), directory),
                    *(",".join(map(str, theirs)) or "-", str(len(sandbox)), *sandbox),
                    *argv,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL if spoken_to else subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environment, "PWD": directory, _MARK: mark},
                start_new_session=True,
                pass_fds=theirs,
            )
        except BaseException:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        if spoken_to:
            stdin, stdout, stderr = map(trio.lowlevel.FdStream, ours)
            return cls(stdin, stdout, stderr, process, mark)
        return cls(None, cast(trio.lowlevel.FdStream, process.stdout), None, process, mark)

    async def wait(self) -> None:
        """Wait until nothing of the program runs, by itself or because it was ended.

        Checkpoint: always.
        """
        await self._process.wait()

    async def wait_exited(self) -> None:
        """Wait until the program itself has ended; what it started may still run, and is being ended.

        Not while `end` runs.

        Checkpoint: always.
        """
        status = cast(trio.lowlevel.FdStream, self._process.stderr)
        await trio.lowlevel.checkpoint()
        while not any(line.startswith(b"exit ") for line in self._said.split(b"\n")[:-1]):
            chunk = await status.receive_some(_CHUNK)
            if not chunk:
                break
            self._said += chunk

    async def end(self) -> Halted:
        """Nothing of the program runs on return, unless it cannot be ended; what came of it.

        What it wrote can still be read; `close` gives the streams back.

        Checkpoint: always.  It cannot be cancelled, and takes a minute and a half at most; well below a second and a
        half where what runs obeys KILL.
        """
        process = self._process
        control, status = cast(trio.abc.AsyncResource, process.stdin), cast(trio.lowlevel.FdStream, process.stderr)
        cast(trio.lowlevel.FdStream, control).close()
        said = self._said
        swept = stuck = False
        try:
            with trio.move_on_after(_GIVEN_UP, shield=True):
                await process.wait()
            drain(status, said)
            if process.returncode is None or b"done" not in said.split(b"\n"):
                with trio.move_on_after(_GIVEN_UP, shield=True):
                    stuck, swept = await self._cut_loose()
                drain(status, said)
        finally:
            status.close()
        words = [line.split() for line in said.decode("ascii", "replace").splitlines()]
        known = {line[0]: line[1:] for line in words if line}
        refused = None
        if "refused" in known:
            refused = known["refused"][1]
        elif "started" not in known:
            refused = "system"
        confined = tuple(known.get("confined", ()))
        # What cut itself loose was killed, whatever it was about to exit with.
        exited = int(known["exit"][0]) if "exit" in known else -signal.SIGKILL
        return Halted(refused, exited, swept or "swept" in known, stuck or "stuck" in known, confined)

    async def _cut_loose(self) -> tuple[bool, bool]:
        """End what a supervisor left that was itself killed, or that has to be; whether it was stuck, and swept."""
        stuck = self._process.returncode is None
        if stuck:
            self._process.kill()
            await self._process.wait()
        return stuck, await trio.to_thread.run_sync(_kill_marked, self._mark)

    def close(self) -> None:
        """Give the streams back.

        Checkpoint: never.
        """
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()


def drain(stream: trio.lowlevel.FdStream, into: bytearray) -> None:
    """Take what is in the pipe `stream` now, and put it behind what `into` has.

    The writer has ended, so all its output is in the pipe.  Another process may still hold it; this does not wait.
    """
    with contextlib.suppress(OSError):
        while chunk := os.read(stream.fileno(), _CHUNK):
            into += chunk


# A process without any environment is looked at so often, a thousandth of a second apart.
_LOOKS = 20


def _kill_marked(mark: str) -> bool:
    """Kill every process that has `mark` in its environment; whether there was one."""
    wanted = f"{_MARK}={mark}".encode()
    killed = False
    looks: Counter[int] = Counter()
    # What forks while it is looked for is found the next time.
    for _ in range(100):
        marks = {pid: _has_mark(pid, wanted) for pid in _all_processes()}
        found = [pid for pid, has in marks.items() if has]
        # One that is beginning another program shows nothing for a moment.
        unclear = [pid for pid, has in marks.items() if has is None and looks[pid] < _LOOKS]
        if not found and not unclear:
            break
        killed = killed or bool(found)
        looks.update(unclear)
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            time.sleep(0.001)
    return killed


def _all_processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _has_mark(pid: int, wanted: bytes) -> bool | None:
    """Say whether a process has the mark; None: it shows no environment, as while it begins another program."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            shown = file.read()
    except OSError:
        return False
    return wanted in shown.split(b"\0") if shown else None

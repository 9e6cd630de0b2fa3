"""A real command that answers for a child process.

Rules.  The command is started when the child begins, and is run to its end once the program has closed its standard
input: in one step, in real time, while virtual time stands still.  Then the child writes what the command wrote, and
ends as it did: when the program sees that is the explorer's choice.

Limits.  A command that answers before its input has ended, or that a signal is to end, is not met: to the program it
looks like one that waits.
"""

from __future__ import annotations

import subprocess
from typing import Any

from toolrt.errors import RealTimeout
from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim._trio_internals._things import OUTSIDE
from toolrt.sim.engine._scheduler import Scheduler
from toolrt.sim.programs.network._links import touch
from toolrt.sim.programs.processes._child import ChildProcess
from toolrt.sim.programs.processes._pipes import end_of


class RealCommand:
    """The script of a child that is a real command.

    Args:
        command: what is run.
        scheduler: the execution.
    """

    def __init__(self, command: Any, scheduler: Scheduler) -> None:
        self._command = command
        self._scheduler = scheduler
        self._popen: Any = None
        self._seam: Any = None
        self._reads = False

    def begin(self, seam: Seam, options: Any) -> None:
        """Start it.

        Raises:
            OSError: it cannot be started.
        """
        piped = {
            name: subprocess.PIPE for name in ("stdin", "stdout", "stderr") if end_of(options.get(name)) is not None
        }
        self._reads = "stdin" in piped
        if "stdout" in piped and options.get("stderr") == options["stdout"]:
            piped["stderr"] = subprocess.STDOUT
        self._seam = seam
        touch(OUTSIDE, True)
        with seam.between_steps():
            self._popen = subprocess.Popen(self._command, **{**options, **piped})

    async def __call__(self, child: ChildProcess) -> int:
        given = [chunk async for chunk in child.stdin] if self._reads else []
        outputs = self._finish(b"".join(given))
        for stream, data in zip((child.stdout, child.stderr), outputs, strict=True):
            if data:
                await stream.send_all(data)
        return int(self._popen.returncode)

    def _finish(self, given: bytes) -> tuple[bytes | None, bytes | None]:
        seconds = self._scheduler.record.thread_seconds
        touch(OUTSIDE, True)
        with self._seam.between_steps():
            try:
                written: tuple[bytes | None, bytes | None] = self._popen.communicate(
                    given if self._reads else None, seconds
                )
            except subprocess.TimeoutExpired:
                pass
            else:
                return written
        raise RealTimeout("a real process for more than", seconds, "give it more with sim.thread_seconds")

    def end(self) -> None:
        """Kill it, if it has not ended, and close its pipes."""
        if self._popen is not None:
            with self._seam.between_steps(), self._popen:
                self._popen.kill()

"""Writes the summary of a pytest that C code keeps for ever, and then ends it: a process of its own.

Rules.  Its standard input is a pipe.  pytest writes a line of JSON for each report, as a test begins and as the session
ends.  Where a step keeps the whole process, a thread in C of that process writes the stacks of its threads into the
same pipe.  If no report follows them within a second, the summary is written to what was pytest's standard output, and
pytest is killed.  When pytest is gone in another way, a summary is written, too, unless the session had ended.

It needs the standard library alone, and is no child of pytest's: a suite may wait for any child of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

# Wall seconds for which the stacks may be followed by a sign of life.
_GRACE = 1.0

# Frames that stand between pytest and the test, or in what the test calls.
_NOT_THE_PROGRAMS = re.compile(r"[/\\](site-packages|lib[/\\]python\d[^/\\]*|toolrt)[/\\]")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)


def begin() -> TextIO:
    """Start the process, which writes to the standard output that this process has now; give what to write lines to."""
    reads, writes = os.pipe()
    subprocess.run(
        [sys.executable, "-S", "-E", __file__, str(os.getpid())], stdin=reads, pass_fds=(reads,), check=True, timeout=60
    )
    os.close(reads)
    return os.fdopen(writes, "w", buffering=1, encoding="utf-8")


class _HeardOf:
    """What was heard of a pytest."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.failed: list[str] = []
        self.running = ""
        self.is_over = False
        #: The stacks of its threads, as they were written so far.
        self.stacks = ""

    def hear(self, line: str) -> None:
        """Take in a line of a report, or of the stacks."""
        if not line.startswith("{"):
            self.stacks += line
            return
        self.stacks = ""
        said: dict[str, Any] = json.loads(line)
        self.is_over = said.get("ends", False)
        self.running = said.get("begins", self.running)
        if outcome := said.get("outcome"):
            self.outcomes[outcome] += 1
            self.failed += [said["test"]] if outcome == "failed" else []

    def summary(self) -> str:
        """Say which test ended the process, at which line, and what came of those before it."""
        frames = _FRAME.findall(self.stacks)
        own = next((frame for frame in frames if not _NOT_THE_PROGRAMS.search(frame[0])), None)
        place = f" at {Path(own[0]).name}:{own[1]} ({own[2]})" if own else ""
        why = (
            f"did not end, and stood{place} in C code that neither looks for signals nor lets another thread run"
            if self.stacks
            else "ended the process"
        )
        counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(self.outcomes.items())) or "none"
        lines = [
            "",
            " explored schedules ".center(80, "="),
            f"{self.running} {why}.",
            f"Tests before it: {counts}.  Those after it were not run: under pytest-xdist (-n 1) they are.",
            *(f"FAILED {test}" for test in self.failed),
            f"FAILED {self.running}",
        ]
        return "\n".join(lines) + "\n"


def _listen(pid: int) -> None:
    session, left = _HeardOf(), b""
    while True:
        waits = _GRACE if session.stacks else None
        if not select.select([0], [], [], waits)[0]:
            break
        more = os.read(0, 1 << 16)
        if not more:
            break
        *lines, left = (left + more).split(b"\n")
        for line in lines:
            session.hear(line.decode("utf-8", "replace") + "\n")
        if session.is_over:
            return
    with contextlib.suppress(OSError):
        os.write(1, session.summary().encode())
    with contextlib.suppress(ProcessLookupError):
        if session.stacks:
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    # pytest waits for this process, and for no other.
    if not os.fork():
        os.setsid()
        _listen(int(sys.argv[1]))
    os._exit(0)

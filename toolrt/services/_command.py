"""A command to run, what came of it, and who runs it: the port between the shell tool and the system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import attrs

from toolrt.workspace import Entry


@attrs.frozen
class Command:
    """One command, as a shell is given it."""

    #: What the shell reads.
    text: str
    #: The names that lead to the directory it starts in, from the workspace's root; empty is the root.
    directory: Entry
    #: Seconds of its own execution after which it is ended.
    timeout: float
    #: Whether it was recognised as one that only reads: then programs inside the workspace are not found by name.
    reads: bool = False


@attrs.frozen
class Ended:
    """How a command ended; nothing of it runs any more, unless it is `stuck`."""

    #: What it exited with; below 0: the signal that ended it; None: it was ended at its time limit.
    status: int | None
    #: Whether processes that it had left running were ended.
    swept: bool = False
    #: Whether some could not be ended, though they were killed.
    stuck: bool = False
    #: The restrictions of its sandbox that held, by name (`toolrt.processes._sandbox`); none: it had no sandbox.
    confined: tuple[str, ...] = ()


@runtime_checkable
class Shell(Protocol):
    """Runs commands: `RealShell`, or a double such as `RecordedShell`."""

    async def run(self, command: Command, output: Callable[[bytes], None]) -> Ended:
        """Run `command` and hand its output on as it comes.

        Nothing of it runs any more on return, and neither when it was cancelled.

        Raises:
            FileProblem: it could not be started; nothing was run.

        Checkpoint: always.
        """
        ...

"""A shell that starts nothing: it answers from a record, as the command once did."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.processes import check_recorded_seconds, spread
from toolrt.services._command import Command, Ended


def _bytes(output: object) -> object:
    return output.encode() if isinstance(output, str) else output


def _chunks(output: object) -> tuple[object, ...]:
    return tuple(map(_bytes, output)) if isinstance(output, list | tuple) else (_bytes(output),)


@attrs.frozen
class Recorded:
    """What one command did."""

    #: What it wrote: a text, bytes, or several that came one after the other.
    output: tuple[bytes, ...] = attrs.field(default=(), converter=_chunks)
    #: What it exited with; below 0: the signal that ended it.
    status: int = 0
    #: Seconds that it took, spread over its output, which begins at once; a command that takes longer than its
    #: limit is ended there.
    seconds: float = attrs.field(default=0.0)
    #: Whether it left processes behind, which were ended.
    swept: bool = False

    @seconds.validator
    def _check_seconds(self, _: object, seconds: object) -> None:
        check_recorded_seconds("Recorded(seconds)", seconds)

    @output.validator
    def _check_output(self, _: object, output: tuple[object, ...]) -> None:
        if not all(isinstance(chunk, bytes) for chunk in output):
            raise DefinitionRefused("Recorded(output)", "a text, bytes, or a list of them", output)


class RecordedShell:
    r"""Answers each command as recorded: for simulations and tests, where no process is started.

    Args:
        answers: for each command's text (without a leading ``cd DIR &&``), or for the pair of directory and text,
            what it did: a `Recorded`, or its output alone.  The directory is relative to the workspace's root;
            ``"."`` is the root itself.

    Example::

        shell = RecordedShell({"pytest -q": Recorded("1 failed\n", status=1, seconds=2.0), ("src", "ls"): "app.py\n"})
        tool = shell_tool(workspace, shell=shell)
    """

    def __init__(self, answers: Mapping[str | tuple[str, str], Recorded | str | bytes]) -> None:
        self._answers = {
            key: answer if isinstance(answer, Recorded) else Recorded(answer) for key, answer in answers.items()
        }

    async def run(self, command: Command, output: Callable[[bytes], None]) -> Ended:
        """Answer as recorded; see `Shell.run`.

        Raises:
            InputRefused: nothing is recorded for it.

        Checkpoint: always.
        """
        directory = "/".join(command.directory) or "."
        answer = self._answers.get((directory, command.text), self._answers.get(command.text))
        if answer is None:
            known = ", ".join(sorted(repr(key) for key in self._answers)) or "nothing"
            raise InputRefused(
                f"run_command({command.text!r}) in {directory}",
                f"expected a recorded command, recorded are: {known}",
                "Add what it does to the RecordedShell.",
            )
        if probe.sink is not None:
            # All commands of one lane that only read may change places; others run alone.
            probe.sink.access(("recorded shell",), False)
        with trio.move_on_after(command.timeout) as limit:
            await spread(answer.output or (b"",), answer.seconds, output)
        return Ended(None if limit.cancelled_caught else answer.status, answer.swept)

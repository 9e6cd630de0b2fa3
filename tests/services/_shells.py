"""Calls of run_command, and what the fixtures are."""

from __future__ import annotations

from collections.abc import Callable

from toolrt import BatchOutcome, ToolCall, ToolResult

#: Gives the processes that are still in the workspace's directory, by number.
Left = Callable[[], list[int]]

#: Runs commands as one batch.
Run = Callable[..., BatchOutcome]

#: Runs one command.
Answer = Callable[..., ToolResult]


def calls_of(*inputs: object) -> list[ToolCall]:
    """Calls of ``run_command``; a text is the command."""
    return [
        ToolCall(str(index), "run_command", input if isinstance(input, dict) else {"command": input})
        for index, input in enumerate(inputs)
    ]

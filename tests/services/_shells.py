"""Calls of run_command, and what the fixtures are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

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


def small_tree(tmp_path: Path) -> Path:
    """A directory with two files in it, and a directory beside it."""
    root = tmp_path.resolve() / "work"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "src" / "app.py").write_text("import os\n")
    (root.parent / "outside").mkdir()
    return root


def processes_in(root: Path) -> list[int]:
    """The processes whose directory is in `root`, by number."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and Path(os.readlink(f"/proc/{name}/cwd")).is_relative_to(root):
                found.append(int(name))
        except OSError:
            continue
    return found

"""Indexes of small trees, and questions about them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import trio

from toolrt import Outcome, Registry, Runtime, State, ToolCall, ToolResult, Workspace
from toolrt.plugins.code import CodeIndex

#: Longer ago than the time step of any file system: what is read then may be kept.
LONG_AGO = 1_000_000_000


def tree_in(tmp_path: Path) -> Path:
    """A tree of two modules, changed long ago."""
    root = tmp_path.resolve() / "work"
    root.mkdir()
    write(root / "a.py", "from b import g\n\n\ndef f():\n    g()\n")
    write(root / "b.py", "def g():\n    return 1\n")
    return root


def write(path: Path, text: str | bytes) -> None:
    """A file that was changed long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (LONG_AGO, LONG_AGO))


def index_of(root: Path, **more: Any) -> CodeIndex:
    """An index of a tree, kept beside it."""
    state_dir = root.parent / "state"
    return CodeIndex(Workspace(root, state_dir=state_dir), state_dir=state_dir, **more)


def ask(code: CodeIndex, tool: str, /, **input: Any) -> str:
    """What one call of a tool says, that succeeds."""
    result = asked(code, tool, **input)
    assert result.outcome is Outcome.OK, result
    return str(result.content)


def asked(code: CodeIndex, tool: str, /, **input: Any) -> ToolResult:
    """What comes of one call of a tool."""
    runtime = Runtime(Registry([*code.workspace.tools(), *code.tools()]))
    [result] = trio.run(runtime.run, [ToolCall("id", tool, input)], State()).results
    return result

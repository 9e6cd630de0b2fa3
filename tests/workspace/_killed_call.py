"""A process that deletes ``d``, or undoes that, and is killed before one of the system calls it makes.

It kills itself before a system call of a given number, of those that look at files and change them, and ends with 0
where there are fewer.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import trio

from tests._forked import forked
from toolrt import Registry, Runtime, ToolCall, Workspace
from toolrt.workspace import Limits

CALLS = [
    *("open", "write", "pwrite", "pwritev", "fstat", "lstat", "listdir", "mkdir", "rmdir", "unlink", "rename"),
    *("fchmod", "fchown", "utime", "readlink", "access"),
]

LIMITS = Limits(history_bytes=64 * 1024)


def killed_at(root: Path, state: Path, what: str, batch: str, number: int) -> bool:
    """Whether the process got as far as that call, and was killed."""
    process = forked(_run_to_the_kill, str(root), str(state), what, batch, number)
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _run_to_the_kill(root: str, state: str, what: str, batch: str, left: int) -> None:
    os.environ["TOOLRT_STATE_DIR"] = state
    workspace = Workspace(root, limits=LIMITS)

    def wrapped(call: Any) -> Any:
        def made(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return call(*arguments, **more)

        return made

    async def delete() -> None:
        calls = [
            ToolCall("1", "write_file", {"path": "first", "content": "1"}),
            ToolCall("2", "delete_path", {"path": "d", "recursive": True}),
        ]
        async with Runtime(Registry(workspace.tools())).open_batch(batch_id=batch) as opened:
            for call in calls:
                opened.submit(call)
            opened.seal()
            async for _ in opened:
                pass

    async def undo() -> None:
        await workspace.history.undo(batch)

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))
    trio.run(delete if what == "delete" else undo)
    os._exit(0)

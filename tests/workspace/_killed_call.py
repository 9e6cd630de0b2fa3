"""A process that deletes ``d``, or undoes that, and is killed before one of the system calls it makes.

Run as a program:

    python _killed_call.py ROOT STATE delete|undo BATCH NUMBER

It kills itself before system call NUMBER, of those that look at files and change them, and ends with 0 where there are
fewer.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import trio

from toolrt import Registry, Runtime, ToolCall, Workspace
from toolrt.workspace import Limits

CALLS = [
    *("open", "write", "pwrite", "pwritev", "fstat", "lstat", "listdir", "mkdir", "rmdir", "unlink", "rename"),
    *("fchmod", "fchown", "utime", "readlink", "access"),
]

LIMITS = Limits(history_bytes=64 * 1024)


def killed_at(root: Path, state: Path, what: str, batch: str, number: int) -> bool:
    """Whether the process got as far as that call, and was killed."""
    command = [sys.executable, __file__, str(root), str(state), what, batch, str(number)]
    ended = subprocess.run(command, check=False)
    assert ended.returncode in (0, -signal.SIGKILL)
    return ended.returncode != 0


def main(root: str, state: str, what: str, batch: str, number: str) -> None:
    os.environ["TOOLRT_STATE_DIR"] = state
    workspace = Workspace(root, limits=LIMITS)
    left = int(number)

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


if __name__ == "__main__":
    main(*sys.argv[1:])

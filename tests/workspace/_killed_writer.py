"""A process that is killed in the midst of a change: in place behind a recovery copy, or of a new file.

Run as a program:

    python _killed_writer.py ROOT STATE DIRECTORY NAME MODE

MODE is ``in-place`` (NAME has several names) or ``new``.  It kills itself once half of the content is written.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import trio

from toolrt.workspace import RealDisk

OLD, NEW = b"old " * 5_000, b"new content " * 4_000


def left_by(root: Path, state: Path, name: str, mode: str) -> str:
    """The name of the disk's own that the killed process left beside the file."""
    directory = (root / name).parent
    before = set(os.listdir(directory))
    above = str(directory.relative_to(root))
    ended = subprocess.run([sys.executable, __file__, str(root), str(state), above, Path(name).name, mode], check=False)
    assert ended.returncode == -signal.SIGKILL
    (left,) = {one for one in os.listdir(directory) if one.startswith(".toolrt-")} - before
    return left


def main(root: str, state: str, above: str, name: str, mode: str) -> None:
    os.environ["TOOLRT_STATE_DIR"] = state
    entry = (*(part for part in above.split("/") if part != "."), name)
    directory = os.path.join(root, above)
    really = os.write
    suffix = ".undo" if mode == "in-place" else ".tmp"

    def write(descriptor: int, content: Any) -> int:
        if any(one.startswith(".toolrt-") and one.endswith(suffix) for one in os.listdir(directory)):
            really(descriptor, bytes(content)[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return really(descriptor, content)

    os.write = write
    trio.run(lambda: RealDisk(root).revise(entry, 1_000_000, lambda before: NEW))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A page that tells its reader what to write and what to run, walked as the reader would."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")
_CHANGED = re.compile(r"# (\w+\.py), changed: (.+) -> (.+)\n")


def walked(page: Path, directory: Path, run: Callable[[str], str]) -> int:
    """Write the files of a page into `directory`, change them where it says so, run its commands, compare its outputs.

    A block of Python that begins with the name of a file is written to it.  Each line of a block called ``output`` is
    in what the commands of the block before printed, in order; other lines may stand between.

    Args:
        page: of Markdown.
        directory: where the files go.
        run: runs a block of commands, and gives what it printed.

    Returns: how many blocks of commands there were.
    """
    output, commands = "", 0
    for language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python" and (changed := _CHANGED.match(block)):
            file = directory / changed[1]
            before = file.read_text(encoding="utf-8")
            assert changed[2] in before
            file.write_text(before.replace(changed[2], changed[3]), encoding="utf-8")
        elif language == "python" and (named := _FILE.match(block)):
            (directory / named[1]).write_text(block, encoding="utf-8")
        elif language == "sh":
            output = run(block.strip())
            commands += 1
        elif language == "output":
            place = 0
            for line in block.splitlines():
                found = output.find(line.strip() if line.startswith(("PASS", "1 ")) else line, place)
                assert found >= 0, f"{line!r} is not, or not there, in:\n{output}"
                place = found
    return commands

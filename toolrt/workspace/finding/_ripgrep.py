"""Asks ripgrep, where it is installed, which files of a real directory may contain a text.

Rules.  ripgrep names candidates and decides nothing.  A file that it leaves out is text and does not have the pattern
in any encoding that a search reads; a file that it names is read and searched as without ripgrep.  A file that is not
UTF-8 text is always named, because the search reads it or reports that it cannot.  Large files (`SIZE_LIMIT`) are not
passed to it.  So answers are the same where it is missing, fails, or has another version, and no content is shown that
did not come through the disk port, which follows no link.

Limits.  It compares bytes, so a search that ignores case runs without it.  It follows no link but opens files by their
paths, so it may look into a file that is swapped for a link at that moment.  That result is dropped, because the port
refuses the link.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Set

import trio

from toolrt.workspace.change._mutation import SIZE_LIMIT
from toolrt.workspace.disk._disk import Entry

#: A line of UTF-8 without NUL.
_TEXT = r"^[^\x00]*$"

_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


@functools.cache
def program() -> str | None:
    """Where ripgrep is, or None; the ``search`` extra installs it beside Python."""
    return shutil.which("rg") or shutil.which("rg", path=sysconfig.get_path("scripts"))


async def candidates(directory: str, literal: str) -> Set[Entry] | None:
    """The files below `directory` that may have `literal`, as the names that lead to them; None: it cannot be told.

    Of files with more than `SIZE_LIMIT` bytes it says nothing.

    Checkpoint: always.
    """
    rg = program()
    if rg is None or not await _is_ripgrep(rg):
        await trio.lowlevel.checkpoint()
        return None
    command = [rg, "--no-config", "--no-messages", "--files-with-matches", "--null", "--max-filesize", str(SIZE_LIMIT)]
    # All files there are, whatever ignore files say: those of another program's taste must not decide.
    command += ["--no-ignore", "--hidden", "--glob", "!.git", "--text", "--encoding", "none"]
    found: set[Entry] = set()
    for wanted in (["--regexp", _any_encoding(literal)], ["--invert-match", "--regexp", _TEXT]):
        code, said = await _run([*command, *wanted, "."], directory)
        if code not in (0, 1):
            return None
        paths = (os.fsdecode(path) for path in said.split(b"\0") if path)
        found.update(tuple(part for part in path.split("/") if part != ".") for path in paths)
    return found


#: For each program called ``rg``, once it was asked for its version: whether it is ripgrep.  Other programs have the
#: name too.
_known: dict[str, bool] = {}


async def _is_ripgrep(program: str) -> bool:
    if program not in _known:
        code, said = await _run([program, "--version"], "/")
        _known[program] = code == 0 and said.startswith(b"ripgrep ")
    return _known[program]


async def _run(command: list[str], directory: str) -> tuple[int | None, bytes]:
    """What a program ended with and wrote; None where it could not be started."""
    try:
        done = await trio.run_process(
            command, cwd=directory, stdin=b"", capture_stdout=True, stderr=subprocess.DEVNULL, check=False
        )
    except OSError:
        return None, b""
    return done.returncode, done.stdout


def _any_encoding(literal: str) -> str:
    """An expression for the bytes of `literal` in each encoding that a search reads."""
    encoded = (literal.encode(encoding, "surrogatepass") for encoding in _ENCODINGS)
    return "|".join("(?-u:" + "".join(f"\\x{byte:02x}" for byte in one) + ")" for one in dict.fromkeys(encoded))

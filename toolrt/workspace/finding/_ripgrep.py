"""Asks ripgrep, where it is installed, which files of a real directory may contain what is searched for.

Rules.  ripgrep names candidates and decides nothing.  It looks for a factor of the search (`_factor`), so a file that
it leaves out is text and has no match; a file that it names is read and searched as without ripgrep.  A file that is
not UTF-8 text is always named, because the search reads it or reports that it cannot: UTF-16 with its mark among
them.  So answers are the same where it is missing, fails, or has another version, and no content is shown that did not
come through the disk port, which follows no link.

Theory.  Text and factor are looked for in one pass: a second process that looks for lines that are no text takes as
long again.  To see what is no text takes ripgrep longer than to find a text.  So files that it found to be text, and
those that a search found to be none, are remembered by their times (`KnownFiles`).  Later passes look for the factor
alone, and what is no text is not read again.

Limits.  ripgrep follows no link but opens files by their paths, so it may look into a file that is swapped for a link
at that moment.  That result is dropped, because the port refuses the link.  A file system whose times do not tell of
each change is believed, as it is for listings.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence, Set

import trio

from toolrt.workspace.change._mutation import SIZE_LIMIT
from toolrt.workspace.disk._disk import Entry
from toolrt.workspace.disk._real import RealDisk
from toolrt.workspace.finding._factor import Factor

#: The characters of UTF-8 by the bytes that they have: the first byte, and what the second and the others may be.
_FORMS = (
    (r"[\xC2-\xDF]", r"[\x80-\xBF]", 0),
    (r"\xE0", r"[\xA0-\xBF]", 1),
    (r"[\xE1-\xEC\xEE\xEF]", r"[\x80-\xBF]", 1),
    (r"\xED", r"[\x80-\x9F]", 1),
    (r"\xF0", r"[\x90-\xBF]", 2),
    (r"[\xF1-\xF3]", r"[\x80-\xBF]", 2),
    (r"\xF4", r"[\x80-\x8F]", 2),
)
_NEXT = r"[\x80-\xBF]"


def _no_text() -> str:
    """An expression for a line that has a NUL, or is no UTF-8: whole characters, and then what begins none."""
    whole = [rf"{first}{second}{_NEXT}{{{more}}}" for first, second, more in _FORMS]
    broken = [r"[\x00\x80-\xC1\xF5-\xFF]"]
    for first, second, more in _FORMS:
        broken.append(rf"{first}(?:[^{second[1:-1]}]|$)")
        broken += [rf"{first}{second}{_NEXT}{{{n}}}(?:[^\x80-\xBF]|$)" for n in range(more)]
    return rf"(?-u)^(?:[\x01-\x7F]|{'|'.join(whole)})*(?:{'|'.join(broken)})"


#: Of so many files one may be unknown, for ripgrep to be asked about the others alone.
_UNKNOWN_ONE_IN = 4

#: How many files are remembered; all are forgotten when there are more.  One takes about 300 bytes.
_REMEMBERED_MOST = 200_000

#: What a factor must tell before ripgrep is asked: one in some hundred places of ordinary text has it.
_BITS_LEAST = 7


@functools.cache
def program() -> str | None:
    """Where ripgrep is, or None; the ``search`` extra installs it beside Python."""
    return shutil.which("rg") or shutil.which("rg", path=sysconfig.get_path("scripts"))


def can_help(factor: Factor) -> bool:
    """Whether ripgrep is worth asking for this factor, if the program of that name is ripgrep."""
    return program() is not None and factor.bits >= _BITS_LEAST


class KnownFiles:
    """What is known of files that a search comes to, and that did not change since: which are text, and which are none.

    It looks at each file when it is made: in a worker thread, and before ripgrep or the search reads them.

    Args:
        disk: remembers them.
        base: the directory that is searched.
        files: the files, by the names that lead to them from there.
    """

    def __init__(self, disk: RealDisk, base: Entry, files: Sequence[Entry]) -> None:
        self._files = files
        self._known = disk.looked_into
        self._settled_before = disk.now_ns() - disk.time_step_ns
        self._stamps = disk.stamps(base, files)
        as_known = {one: self._known[stamp] for one, stamp in self._stamps.items() if stamp in self._known}
        #: Why those are not searched that are known to be no text, and the others that are known.
        self.reasons = {one: reason for one, reason in as_known.items() if reason}
        self._texts = as_known.keys() - self.reasons.keys()
        #: Whether so many are known that all others may be read.
        self.are_most = _UNKNOWN_ONE_IN * (len(files) - len(as_known)) < len(files)

    def to_read(self, named: Set[Entry]) -> list[Entry]:
        """The files that a search has to read, or to tell of, where ripgrep named these; for a worker thread.

        Where ripgrep was asked for all that is no text, what it looked into and did not name is remembered as text.
        """
        if self.are_most:
            left_out = self._texts - named
            return [one for one in self._files if one not in left_out]
        found: list[Entry] = []
        for one in self._files:
            stamp = self._stamps.get(one)
            if one in named or (stamp is not None and stamp[0] > SIZE_LIMIT):
                found.append(one)
            else:
                self.remember(one, "")
        return found

    def remember(self, one: Entry, reason: str) -> None:
        """That is why the file is not searched, "" for text; unless it changed less than a time step before."""
        stamp = self._stamps.get(one)
        if stamp is not None and max(stamp[-2:]) < self._settled_before:
            if len(self._known) >= _REMEMBERED_MOST:
                self._known.clear()
            self._known[stamp] = reason


async def candidates(directory: str, factor: Factor, *, texts_alone: bool = False) -> Set[Entry] | None:
    """The files below `directory` that may have what has `factor`, by the names that lead to them; None: any may.

    Of files with more than `SIZE_LIMIT` bytes it says nothing.

    Args:
        texts_alone: what is no text need not be named.

    Checkpoint: always.
    """
    rg = program()
    if rg is None or not await _is_ripgrep(rg):
        await trio.lowlevel.checkpoint()
        return None
    command = [rg, "--no-config", "--no-messages", "--files-with-matches", "--null", "--max-filesize", str(SIZE_LIMIT)]
    # All files there are, whatever ignore files say: those of another program's taste must not decide.
    command += ["--no-ignore", "--hidden", "--glob", "!.git", "--text", "--encoding", "none"]
    command += ["--regexp", factor.expression(lambda number: f"\\x{{{number:x}}}")]
    command += ["."] if texts_alone else ["--regexp", _no_text(), "."]
    code, said = await _run(command, directory)
    if code not in (0, 1):
        return None
    paths = (os.fsdecode(path) for path in said.split(b"\0") if path)
    return {tuple(part for part in path.split("/") if part != ".") for path in paths}


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

r"""Reads a unified diff, and applies it to a text.

Rules.  A patch names each file once, and changes, creates, deletes, renames or copies it.  A hunk's old lines must be
in the file: where the hunk says, else at exactly one other place after the hunk before it; nothing is left out or
guessed.  A hunk has as many lines as its header says.  What is not about text (modes of existing files, links,
binary content) is refused rather than passed over.

Theory.  Lines are compared with their ends first, so that a patch which changes line ends does what it says; and where
that finds nothing, without them, for models are shown ``\r\n`` and answer ``\n``.  Then a new line takes the end of the
one it replaces, else of the one before it, and the file's last line has an end if it had one.

Why not a library (measured with whatthepatch 1.0.7, the tried one): it gives lines without their ends, so that
``\r\n``, a last newline and ``\ No newline at end of file`` are lost; it splits lines at U+2028; it takes hunks whose
counts are wrong, and no hunk that has drifted.

Limits.  A hunk needs an old line, unless the file is empty: where a bare insertion belongs, nothing would confirm.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NoReturn

import attrs

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.names._naming import meant_path, unquoted
from toolrt.workspace.text._text import lines_of, nearest

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NOTHING = "/dev/null"
_MARK = "\ufeff"

#: The kinds of file that a patch may create: git's mode of a plain file, and of one that may be executed.
_EXECUTABLE = "100755"
_PLAIN = ("100644", _EXECUTABLE)


@attrs.frozen
class HunkLine:
    """One line of a hunk."""

    #: " " is in both texts, "-" in the old one, "+" in the new one.
    sign: str
    #: The line without the LF that ends it; a CR before that is part of it.
    text: str
    #: Whether an LF ends it; False where the patch says that the file has none at its end.
    ended: bool = True


@attrs.frozen
class Hunk:
    """A run of lines, and what becomes of them."""

    #: The line of the old file, from 1, at which it begins; 0 in an empty file.
    start: int
    #: Its lines.
    lines: tuple[HunkLine, ...]
    #: The line of the patch, from 1, that its header is on.
    at: int

    @property
    def old(self) -> list[HunkLine]:
        """The lines that must be there."""
        return [line for line in self.lines if line.sign != "+"]


@attrs.frozen
class FilePatch:
    """What a patch does to one file."""

    #: The file it starts from, or None: it creates one.
    source: str | None
    #: The file it ends as, or None: it deletes one.
    target: str | None
    #: What becomes of the lines, from the top.
    hunks: tuple[Hunk, ...]
    #: Whether the source stays as it is.
    copies: bool = False
    #: Whether what it creates may be executed.
    executable: bool = False

    @property
    def verb(self) -> Literal["created", "deleted", "copied", "renamed", "changed"]:
        """What it does, in a word."""
        if self.source is None:
            return "created"
        if self.target is None:
            return "deleted"
        if self.copies:
            return "copied"
        return "renamed" if self.source != self.target else "changed"


@functools.lru_cache(2)  # a call asks for its claims before it runs
def parsed_patch(text: str) -> tuple[FilePatch, ...]:
    """The parts of a patch, one for each file, in its order.

    Raises:
        FileProblem: it is no unified diff, or asks for something that no part of it can mean; says on which line.
    """
    parts = tuple(_PatchReader(text).parts())
    if not parts:
        raise FileProblem("patch", "a unified diff", "no part of one", "Begin each file with --- and +++ lines.")
    return parts


@attrs.define
class _Section:
    """What was read of one file's part."""

    #: The line that it began on.
    at: int
    #: The names of the ``diff --git`` line, if they could be told.
    named: tuple[str, str] | None = None
    #: The names of the ``---`` and ``+++`` lines.
    old: str | None = None
    new: str | None = None
    #: The names of the rename or copy lines.
    moved_from: str | None = None
    moved_to: str | None = None
    copies: bool = False
    creates: bool = False
    executable: bool = False
    deletes: bool = False
    hunks: list[Hunk] = attrs.field(factory=list)

    def part(self) -> FilePatch:
        if self.moved_from is not None or self.moved_to is not None:
            if self.moved_from is None or self.moved_to is None:
                _refuse(self.at, "both names of a file that is renamed or copied", "one of them")
            return FilePatch(self.moved_from, self.moved_to, tuple(self.hunks), self.copies)
        if self.old is None and self.new is None and self.named is not None:
            self.old = _NOTHING if self.creates else self.named[0]
            self.new = _NOTHING if self.deletes else self.named[1]
            if not (self.creates or self.deletes):
                _refuse(self.at, "a change of the file's lines", "none")
        if self.old is None or self.new is None:
            _refuse(self.at, "the file's names, on --- and +++ lines", "none, or one of them")
        source, target = _without_prefixes(self.old, self.new)
        if source is None and target is None:
            _refuse(self.at, "a file's name", "/dev/null twice")
        if source is not None and target is not None:
            if source != target:
                _refuse(
                    self.at,
                    "one name on both lines, --- and +++",
                    "two names",
                    'To rename, write "rename from" and "rename to" lines.',
                )
            if not self.hunks:
                _refuse(self.at, "a hunk", "none")
        return FilePatch(source, target, tuple(self.hunks), executable=self.executable)


def _without_prefixes(old: str, new: str) -> tuple[str | None, str | None]:
    """The names without git's ``a/`` and ``b/``, which stand on both or on neither; None for no file."""
    prefixed = (old == _NOTHING or old.startswith("a/")) and (new == _NOTHING or new.startswith("b/"))
    cut = 2 if prefixed else 0
    return (None if old == _NOTHING else old[cut:]), (None if new == _NOTHING else new[cut:])


def _refuse(line: int, expected: str, got: str, remedy: str = "Send the patch again as a unified diff.") -> NoReturn:
    raise FileProblem(f"patch line {line}", expected, got, f"Nothing was changed. {remedy}")


class _PatchReader:
    """Reads a patch line by line."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        if self._lines[-1] == "":
            self._lines.pop()
        #: The next line's index.
        self._at = 0

    def parts(self) -> Iterator[FilePatch]:
        section: _Section | None = None
        while self._at < len(self._lines):
            line = self._lines[self._at].removesuffix("\r")
            if line.startswith("diff --git "):
                if section is not None:
                    yield section.part()
                section = _Section(self._at + 1, named=_git_names(line.removeprefix("diff --git ")))
            elif line.startswith("--- ") and self._follows("+++ "):
                if section is None or section.old is not None:
                    if section is not None:
                        yield section.part()
                    section = _Section(self._at + 1)
                section.old = _name(line[4:])
                section.new = _name(self._lines[self._at + 1].removesuffix("\r")[4:])
                self._at += 1
            elif line.startswith("@@") and section is not None:
                if section.old is None and section.moved_to is None:
                    _refuse(self._at + 1, "the file's names, on --- and +++ lines", "a hunk")
                section.hunks.append(self._hunk(line))
                continue
            elif line.startswith("@@"):
                _refuse(self._at + 1, "the file's names, on --- and +++ lines", "a hunk")
            elif section is not None:
                self._extended(section, line)
            self._at += 1
        if section is not None:
            yield section.part()

    def _follows(self, beginning: str) -> bool:
        return self._at + 1 < len(self._lines) and self._lines[self._at + 1].startswith(beginning)

    def _extended(self, section: _Section, line: str) -> None:
        """A line between two parts, or one of git's own header."""
        word, _, rest = line.partition(" ")
        for key, field in (("rename", "renamed"), ("copy", "copied")):
            if line.startswith((f"{key} from ", f"{key} to ")):
                end, _, name = rest.partition(" ")
                setattr(section, "moved_from" if end == "from" else "moved_to", _name(name, ends_at_tab=False))
                section.copies = field == "copied"
                return
        if line.startswith(("new file mode ", "deleted file mode ")):
            mode = line.rsplit(" ", 1)[1]
            if mode not in _PLAIN:
                _refuse(self._at + 1, "a regular file", "the mode of something else", "Leave it away.")
            section.creates, section.deletes = word == "new", word == "deleted"
            section.executable = section.creates and mode == _EXECUTABLE
        elif line.startswith(("old mode ", "new mode ")):
            _refuse(self._at + 1, "a change of text", "a change of mode", "Leave it away: modes are not changed.")
        elif line.startswith(("GIT binary patch", "Binary files ")):
            _refuse(self._at + 1, "a change of text", "a binary patch", "Leave it away.")
        elif section.hunks and line[:1] in (" ", "+", "-", "\\") and line != "-- ":
            hunk = section.hunks[-1]
            _refuse(
                self._at + 1,
                f"the end of the hunk at patch line {hunk.at}, which by its header is complete",
                "more lines",
                "Count the lines in the @@ line again.",
            )

    def _hunk(self, line: str) -> Hunk:
        """The hunk whose header is here; afterwards the reader is behind it."""
        at = self._at + 1
        header = _HUNK.match(line)
        if header is None:
            _refuse(at, "a hunk's header such as @@ -1,3 +1,4 @@", "another line that begins with @@")
        start = int(header[1])
        old, new = int(header[2] or 1), int(header[4] or 1)
        lines: list[HunkLine] = []
        self._at += 1
        while old > 0 or new > 0:
            if self._at >= len(self._lines):
                self._too_short(at, old, new)
            line = self._lines[self._at]
            # A program that strips spaces at line ends also strips the one that stands for an empty line.
            sign, text = (line[0], line[1:]) if line.strip("\r") else (" ", line)
            if sign == "\\":
                self._end_of_file(lines)
            elif sign in " +-":
                old -= sign != "+"
                new -= sign != "-"
                if old < 0 or new < 0:
                    self._too_short(at, old, new)
                lines.append(HunkLine(sign, text))
            else:
                self._too_short(at, old, new)
            self._at += 1
        if self._at < len(self._lines) and self._lines[self._at].startswith("\\"):
            self._end_of_file(lines)
            self._at += 1
        return Hunk(start, tuple(lines), at)

    def _end_of_file(self, lines: list[HunkLine]) -> None:
        if not lines:
            _refuse(self._at + 1, "a line of the file before it", "none")
        lines[-1] = attrs.evolve(lines[-1], ended=False)

    def _too_short(self, at: int, old: int, new: int) -> NoReturn:
        _refuse(
            self._at + 1,
            f"the hunk at patch line {at} to go on ({old} old and {new} new lines are missing, by its header)",
            "something else",
            "Count the lines in the @@ line again.",
        )


def _name(text: str, *, ends_at_tab: bool = True) -> str:
    """The name on a header line: unquoted, without the time that some write behind it."""
    if text.startswith('"'):
        end = re.match(r'"((?:[^"\\]|\\.)*)"', text)
        if end is not None:
            return unquoted(end[1])
    return meant_path(text.partition("\t")[0] if ends_at_tab else text)


def _git_names(rest: str) -> tuple[str, str] | None:
    """Both names of a ``diff --git`` line, or None where they cannot be told apart."""
    quoted = re.fullmatch(r'("(?:[^"\\]|\\.)*"|\S+) ("(?:[^"\\]|\\.)*"|\S+)', rest)
    if quoted is not None:
        return _name(quoted[1]), _name(quoted[2])
    # Unquoted names may have spaces; they are the same, so the space between them is the middle one.
    middle = len(rest) // 2
    old, new = rest[:middle], rest[middle + 1 :]
    return (old, new) if old[2:] == new[2:] and rest[middle : middle + 1] == " " else None


# Making the new text


def patched(path: str, text: str, hunks: Sequence[Hunk]) -> str:
    """`text` with all of `hunks` made.

    Raises:
        FileProblem: some hunk's old lines are nowhere, or at several places; says which.
    """
    if not hunks:
        return text
    exact = _ExactLines(text)
    spots = _places(exact, hunks)
    if isinstance(spots, _Failure):
        loose = _LooseLines(text)
        spots = _places(loose, hunks)
        if isinstance(spots, _Failure):
            raise spots.problem(path, text)
        return loose.made(hunks, spots)
    return exact.made(hunks, spots)


@attrs.frozen
class _Failure:
    """A hunk that has no place."""

    hunk: Hunk
    number: int
    #: The lines, from 1, of the places that it may have; none, or several.
    candidates: tuple[int, ...]
    #: The line, from 1, at which its lines are, before the end of the hunk before it; None: they are nowhere.
    passed: int | None = None

    def problem(self, path: str, text: str) -> FileProblem:
        old = self.hunk.old
        where = f"the lines of hunk {self.number} (patch line {self.hunk.at})"
        if not old:
            return FileProblem(
                path,
                f"a line of the file in hunk {self.number} (patch line {self.hunk.at})",
                "none, and the file is not empty",
                "Give some lines around the new ones.",
            )
        if self.candidates:
            shown = ", ".join(str(line) for line in self.candidates)
            return FileProblem(
                path,
                f"{where} at line {self.hunk.start}, or at one other place",
                f"several others (lines {shown}{', ...' if len(self.candidates) > 1 else ''})",
                "Give more lines around them, or the right line number.",
            )
        if self.passed is not None:
            return FileProblem(
                path,
                f"{where} behind those of the hunk before it",
                f"at line {self.passed}, before they end",
                "Nothing was changed. Give the hunks in the order of their lines, each line in one of them.",
            )
        return FileProblem(
            path, f"{where} in the file", "0 places", nearest(text, "\n".join(line.text for line in old))
        )


class _ExactLines:
    """A text as lines that end with LF alone, compared with their ends."""

    def __init__(self, text: str) -> None:
        parts = text.split("\n")
        self.lines = [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
        self.keys = self.lines

    @staticmethod
    def key(line: HunkLine) -> str:
        """What `line` is among `keys`."""
        return f"{line.text}\n" if line.ended else line.text

    def made(self, hunks: Sequence[Hunk], spots: Sequence[int]) -> str:
        """The new text, with each hunk at its spot."""
        pieces: list[str] = []
        done = 0
        for hunk, spot in zip(hunks, spots, strict=True):
            pieces += self.lines[done:spot]
            pieces += [self.key(line) for line in hunk.lines if line.sign != "-"]
            done = spot + len(hunk.old)
        pieces += self.lines[done:]
        return "".join(pieces)


class _LooseLines:
    """A text as lines of any end, compared without it; nor does a byte order mark count."""

    def __init__(self, text: str) -> None:
        self._mark = _MARK if text.startswith(_MARK) else ""
        self.lines = lines_of(text[len(self._mark) :])
        self.keys = [line.rstrip("\r\n") for line in self.lines]
        ends = [line[len(key) :] for line, key in zip(self.lines, self.keys, strict=True)]
        #: The end that most lines have, the first of them if several are equally frequent.
        self._usual = max(dict.fromkeys(filter(None, ends)), key=ends.count, default="\n")

    @staticmethod
    def key(line: HunkLine) -> str:
        """What `line` is among `keys`."""
        return line.text.rstrip("\r").removeprefix(_MARK)

    def made(self, hunks: Sequence[Hunk], spots: Sequence[int]) -> str:
        """The new text, with each hunk at its spot."""
        pieces: list[str] = []
        done = 0
        for hunk, spot in zip(hunks, spots, strict=True):
            pieces += self.lines[done:spot]
            pieces += self._new(hunk, spot, pieces[-1] if pieces else "")
            done = spot + len(hunk.old)
        pieces += self.lines[done:]
        # A line that was the last, and is no more, gets an end.
        whole = [piece if piece.endswith(("\n", "\r")) else piece + self._usual for piece in pieces[:-1]]
        return self._mark + "".join(whole + pieces[-1:])

    def _new(self, hunk: Hunk, spot: int, before: str) -> Iterator[str]:
        """The lines that stand there then, each with its end."""
        end = self._end_of(before)
        given_up: list[str] = []
        unended = any(not line.ended for line in hunk.old)
        for line in hunk.lines:
            if line.sign == "+":
                # Where the patch says that the old last line had no end, it says so of the new one too.
                own = given_up.pop(0) if given_up else end
                if unended:
                    own = own or self._usual
                yield self.key(line) + (own if line.ended else "")
                continue
            there = self.lines[spot]
            end = self._end_of(there)
            spot += 1
            if line.sign == "-":
                given_up.append(end)
            else:
                given_up.clear()
                yield there

    def _end_of(self, line: str) -> str:
        return line[len(line.rstrip("\r\n")) :] if line else self._usual


def _places(text: _ExactLines | _LooseLines, hunks: Sequence[Hunk]) -> list[int] | _Failure:
    """The index of the line at which each hunk begins."""
    spots: list[int] = []
    least, drift = 0, 0
    for number, hunk in enumerate(hunks, 1):
        wanted = [text.key(line) for line in hunk.old]
        if not wanted:
            if text.keys:
                return _Failure(hunk, number, ())
            spots.append(0)
            continue
        expected = hunk.start - 1 + drift
        # A line without an end can only be the last.
        at_end = not all(line.ended for line in hunk.lines)
        if at_end:
            least = max(least, len(text.keys) - len(wanted))
        if not (expected >= least and text.keys[expected : expected + len(wanted)] == wanted):
            found = _found(text.keys, wanted, least)
            if len(found) != 1:
                passed = [] if found or at_end else _found(text.keys, wanted, 0)
                return _Failure(hunk, number, tuple(spot + 1 for spot in found), passed[0] + 1 if passed else None)
            drift += found[0] - expected
            expected = found[0]
        spots.append(expected)
        least = expected + len(wanted)
    return spots


def _found(lines: Sequence[str], wanted: Sequence[str], least: int) -> list[int]:
    """The first two places of `wanted` in `lines` from `least` on (Knuth, Morris and Pratt, 1977)."""
    borders = [0] * len(wanted)
    length = 0
    for index in range(1, len(wanted)):
        while length and wanted[index] != wanted[length]:
            length = borders[length - 1]
        length += wanted[index] == wanted[length]
        borders[index] = length
    found: list[int] = []
    length = 0
    for index in range(least, len(lines)):
        while length and lines[index] != wanted[length]:
            length = borders[length - 1]
        length += lines[index] == wanted[length]
        if length == len(wanted):
            found.append(index - length + 1)
            if len(found) == 2:
                break
            length = borders[length - 1]
    return found

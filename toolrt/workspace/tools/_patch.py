r"""Reads a patch: a unified diff, the ``*** Begin Patch`` form, or search and replace blocks.

Rules.  A patch changes, creates, deletes, renames or copies files.  All its lines between the first header and the end
of a hunk are read; nothing is left out or guessed.  A header whose counts do not fit its hunk's lines is not trusted,
nor is the line that it names: the lines are then taken up to the next header.  Of modes it tells whether a file may be
executed; links and binary content are refused rather than passed over.

Theory.  Models write diffs from memory: the lines are right more often than the numbers.  So a hunk is complete where
its counts say so and nothing of it follows; else its lines alone decide (`toolrt.workspace.tools._hunks`).

Why not a library (measured with whatthepatch 1.0.7, the tried one): it gives lines without their ends, so that
``\r\n``, a last newline and ``\ No newline at end of file`` are lost; it splits lines at U+2028; it takes hunks whose
counts are wrong, and no hunk that has drifted.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import NoReturn

import attrs

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.names._naming import meant_path, unquoted
from toolrt.workspace.text._text import lf_lines
from toolrt.workspace.tools._hunks import BARE, FilePatch, Hunk, HunkLine, Hunks

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NOTHING = "/dev/null"

#: The kinds of file that a patch may create: git's mode of a plain file, and of one that may be executed.
_EXECUTABLE = "100755"
_PLAIN = ("100644", _EXECUTABLE)

#: Git's line that names what a file had, where that is not nothing.
_HAD_LINES = re.compile(r"index (?!0+\.|e69de29|473a0f4)[0-9a-f]{7,}\.\.")

#: The lines of the ``*** Begin Patch`` form.
_STARRED = re.compile(
    r"\*\*\* ((?:Begin Patch|End Patch|End of File)(?=\s*$)|(?:Update File|Add File|Delete File|Move to):(.+)$)"
)

#: The lines around the two halves of a search and replace block.
_SEARCH = re.compile(r"[<-][<-]{4,8} (?:SEARCH|ORIGINAL)[ \t]*$")
#: A line that names the file of the hunks below it, as Markdown and answers have it; and the word before the name.
_TITLE_WORD = re.compile(r"(?:File|Filename|Index):[* ]*")
_TITLE = re.compile(rf"(?! )[#* ]*(?:{_TITLE_WORD.pattern}\S.*|`[^`\n]+`[*: \t]*)\r?$")
#: The beginnings of lines that may tell a name, each with the line end before it.  Their first characters are looked at
#: first: most lines of a patch have another, and a search for this holds up all threads.
_HEADER = re.compile(
    rf"\n(?=[-+drc*#FI`<])(?:\+\+\+ |diff --git |rename |copy |\*\*\* |{_TITLE.pattern}|{_SEARCH.pattern[:-1]}\r?$)",
    re.MULTILINE,
)
_DIVIDER = re.compile(r"={5,9}[ \t]*$")
_REPLACE = re.compile(r"[>+]{5,9} (?:REPLACE|UPDATED)[ \t]*$")
_PLACE = re.compile(r":(?:start|end)_line:\s*\d+$|-{5,9}$")

#: What tells the two texts of one file apart.
_WHICH = "original|modified|old|new|before|after|updated"

#: What stands before the names on ``---`` and ``+++`` lines, where the two differ in it alone: such a word, or what
#: git's ``diff.mnemonicPrefix`` puts there: of a commit, the index, an object, the working tree, two files.
_PREFIX = re.compile(rf"(?:[ciow12]|{_WHICH})/(.+)", re.DOTALL)

#: What stands behind them then: a word, or a time.
_ASIDE = re.compile(rf" +(?:\((?:{_WHICH})\)|\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d\S*(?: [+-]\d{{4}})?)$")

#: How many parts of one patch may be about one file: each is made on what those before it left.
_TURNS_MOST = 100


@functools.lru_cache(2)  # a call asks for its claims before it runs
def parsed_patch(text: str) -> tuple[FilePatch, ...]:
    """The parts of a patch, one for each file, in its order; parts that change one file are joined.

    Raises:
        FileProblem: it is no patch, or asks for something that no part of it can mean; says on which line.
    """
    parts = _joined(_PatchReader(text).parts())
    if not parts:
        raise FileProblem("patch", "a unified diff", "no part of one", "Begin each file with --- and +++ lines.")
    return parts


@functools.lru_cache(2)
def names_in(text: str) -> tuple[str, ...]:
    """All names that the parts of a patch may have, and maybe others: found by its header lines, not by its hunks.

    It takes a millisecond for each megabyte, where `parsed_patch` takes a hundred times as long.
    """
    text = f"\n{text}\n"
    names: dict[str | None, None] = {}
    moved: list[str] = []
    written: set[str] = set()
    block: str | None = None
    for found in _HEADER.finditer(text):
        at = found.start()
        line = text[at + 1 : text.find("\n", at + 1)].removesuffix("\r")
        kind = line.partition(" ")[0]
        if kind == "+++":
            old = text[text.rfind("\n", 0, at) + 1 : at].removesuffix("\r")
            if old.startswith("--- "):
                both = _name(old[4:]), _name(line[4:])
                names.update(dict.fromkeys(_ends_named(*both)))
                written.update(both)
        elif kind == "diff":
            both = _git_names(line.removeprefix("diff --git ")) or ("", "")
            for ends in (both, (both[0], _NOTHING), (_NOTHING, both[1])):
                names.update(dict.fromkeys(_ends_named(*ends)))
            written.update(both)
        elif kind in ("rename", "copy"):
            moved.append(_name(line.split(" ", 2)[-1], ends_at_tab=False))
        elif (starred := _STARRED.match(line)) is not None:
            names[starred[2] and _name(starred[2].strip(), ends_at_tab=False)] = None
        elif _SEARCH.match(line) is not None:
            block = _named_before(_lines_up_from(text, at + 1), block) or block
            names[block] = None
        else:
            names[_name(_titled(line), ends_at_tab=False)] = None
    # One that another line writes too has git's prefix, perhaps.
    names.update(dict.fromkeys([*moved, *(name[2:] for name in moved if name in written)]))
    return tuple(name for name in names if name)


def _lines_up_from(text: str, end: int) -> Iterator[str]:
    """The lines before the one that begins at `end`, the last first."""
    while end > 0:
        begin = text.rfind("\n", 0, end - 1) + 1
        yield text[begin : end - 1]
        end = begin


def _named_before(lines: Iterable[str], block_name: str | None) -> str | None:
    """The file that the lines before a search and replace block name, the last line first; None: they name none.

    Args:
        block_name: the file of the block before, if there is one.
    """
    plain = (line.strip() for line in lines)
    name = _name(_titled(next((line for line in plain if line and not line.startswith("```")), "")), ends_at_tab=False)
    # A sentence names no file: the block before it does.
    return name if name and (block_name is None or not re.search(r"\s", name)) else None


def _titled(line: str) -> str:
    """The name on a line, as it stands there, without the marks of Markdown and the word before it."""
    line = line.lstrip("#").strip().strip("*").removesuffix(":").strip()
    word = _TITLE_WORD.match(line)
    return line if word is None else line[word.end() :]


def _joined(parts: Iterator[FilePatch]) -> tuple[FilePatch, ...]:
    """The parts; one that changes a file which an earlier one changed is joined to that."""
    found: list[FilePatch] = []
    places: dict[str | None, int] = {}
    for part in parts:
        place = places.get(part.source)
        if part.verb != "changed" or place is None:
            if part.verb == "changed":
                places[part.source] = len(found)
            found.append(part)
            continue
        earlier = found[place]
        turn = earlier.hunks[-1].turn + 1 if earlier.hunks else 0
        if turn >= _TURNS_MOST:
            raise FileProblem("patch", f"at most {_TURNS_MOST} parts for one file", "more", "Send several patches.")
        # Its line numbers may be those before or after the earlier part: it is placed by its lines alone.
        for hunk in part.hunks:
            earlier.hunks.append(attrs.evolve(hunk, turn=turn, start=None))
        if part.executable is not None:
            found[place] = attrs.evolve(earlier, executable=part.executable)
    return tuple(found)


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
    executable: bool | None = None
    deletes: bool = False
    #: Whether git says that the file had lines.
    had_lines: bool = False
    #: Whether it is of the ``*** Begin Patch`` form: names have no prefixes, and a file is deleted as it is.
    starred: bool = False
    hunks: Hunks = attrs.field(factory=Hunks)
    #: How many lines more the file has by all of them, and the last line that one of them begins at.
    grown: int = 0
    furthest: int = 0

    def add(self, hunk: Hunk) -> None:
        """The next hunk."""
        self.hunks.append(hunk)
        self.grown += _growth(hunk)
        self.furthest = max(self.furthest, hunk.start or 0)

    def grown_above(self, start: int) -> int:
        """How many lines more the file has by the hunks that begin at or before line `start`."""
        if start >= self.furthest:
            return self.grown
        return sum(_growth(hunk) for hunk in self.hunks if hunk.start is None or hunk.start <= start)

    def part(self) -> FilePatch:
        if not self.had_lines and not any(hunk.old for hunk in self.hunks):
            # What goes before the first line of a file is for an empty one, as far as the patch tells.
            for index, hunk in enumerate(self.hunks):
                self.hunks[index] = attrs.evolve(hunk, start=hunk.start or None)
        if self.moved_from is not None or self.moved_to is not None:
            if self.moved_from is None or self.moved_to is None:
                _refuse(self.at, "both names of a file that is renamed or copied", "one of them")
            names = self._moved(self.moved_from, self.moved_to)
            return FilePatch(*names, self.hunks, self.copies, self.executable)
        if self.old is None and self.new is None and self.named is not None:
            self.old, self.new = self.named
            if not (self.creates or self.deletes or self.executable is not None):
                _refuse(self.at, "a change of the file's lines", "none")
        if self.old is None or self.new is None:
            _refuse(self.at, "the file's names, on --- and +++ lines", "none, or one of them")
        old, new = _NOTHING if self.creates else self.old, _NOTHING if self.deletes else self.new
        source, target = _ends_named(old, new, self.starred)
        if self.named is not None and _NOTHING in (old, new) and (old in self.named or new in self.named):
            # One name does not tell whether a/ or b/ is a prefix; the two of git's line do.
            both = _ends_named(*self.named)
            if both[0] == both[1]:
                source, target = (None if name == _NOTHING else both[0] for name in (old, new))
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
            if not self.hunks and self.executable is None:
                _refuse(self.at, "a hunk", "none")
        whole = self.starred and target is None
        return FilePatch(source, target, self.hunks, executable=self.executable, whole=whole)

    def _moved(self, old: str, new: str) -> tuple[str, str]:
        """The names of rename or copy lines, which have no prefixes: they do where another line has the same names."""
        if (old, new) in (self.named, (self.old, self.new)) and old.startswith("a/") and new.startswith("b/"):
            return old[2:], new[2:]
        return old, new

    def begins_bare(self, line: str) -> bool:
        """Whether a hunk without a header begins with that line, which follows."""
        may_begin = None not in (self.old, self.new) and not self.hunks and not (self.starred and self.new == _NOTHING)
        return may_begin and (line[:1] in ("+", "-", " ") or (self.starred and line.strip() != ""))


def _ends_named(old: str, new: str, plain: bool = False) -> tuple[str | None, str | None]:
    """The names that the ``---`` and ``+++`` lines of one file mean, without git's ``a/`` and ``b/``; None for no file.

    The prefixes stand on both names or on neither; where they stand on one, the other has to be the name itself.
    """
    if not plain and _NOTHING not in (old, new):
        if old.startswith("a/") and new == old[2:]:
            old = new
        elif new.startswith("b/") and old == new[2:]:
            new = old
        elif old != new and (was := _PREFIX.match(old)) and (now := _PREFIX.match(new)) and was[1] == now[1]:
            return was[1], was[1]
    prefixed = (old == _NOTHING or old.startswith("a/")) and (new == _NOTHING or new.startswith("b/"))
    cut = 2 if prefixed and not plain else 0
    source, target = (None if name == _NOTHING else name[cut:] for name in (old, new))
    if source is not None and target is not None and source != target:
        return _ASIDE.sub("", source), _ASIDE.sub("", target)
    return source, target


def _refuse(line: int, expected: str, got: str, remedy: str = "Send the patch again as a unified diff.") -> NoReturn:
    raise FileProblem(f"patch line {line}", expected, got, f"Nothing was changed. {remedy}")


class _PatchReader:
    """Reads a patch line by line."""

    def __init__(self, text: str) -> None:
        self._lines = tuple([line.removesuffix("\n") for line in lf_lines(text)])
        self._leave_markdown()
        #: The next line's index.
        self._at = 0
        #: Where the last search and replace block ended, and the file that it named.
        self._block_end = 0
        self._block_name: str | None = None

    def parts(self) -> Iterator[FilePatch]:
        section: _Section | None = None
        while self._at < len(self._lines):
            line = self._line(self._at)
            starred = _STARRED.match(line)
            if section is not None and self._begins_another(section):
                yield section.part()
                section = None
            if line.startswith("diff --git "):
                section = _Section(self._at + 1, named=_git_names(line.removeprefix("diff --git ")))
            elif self._names_at(self._at):
                if section is None:
                    section = _Section(self._at + 1)
                if not section.starred:
                    section.old = _name(line[4:])
                    section.new = _name(self._line(self._at + 1)[4:])
                self._at += 1
            elif starred is not None:
                section = self._starred(starred, section)
            elif _SEARCH.match(line):
                yield self._block()
                continue
            elif line.startswith("@@"):
                if section is None or (section.old is None and section.moved_to is None):
                    _refuse(self._at + 1, "the file's names, on --- and +++ lines", "a hunk")
                section.add(self._hunk(line, section))
                continue
            elif section is not None and section.begins_bare(line):
                section.add(self._by_structure(self._at + 1, self._at, ()))
                continue
            elif section is not None:
                self._extended(section, line)
            self._at += 1
        if section is not None:
            yield section.part()

    def _line(self, index: int) -> str:
        return self._lines[index].removesuffix("\r")

    def _titles(self) -> Iterator[tuple[int, tuple[int, str]]]:
        """The hunks whose file a line names, with nothing but empty lines and the fence that opens between.

        Gives the index of each, and of that line, and the name.
        """
        lines = self._lines
        for above, line in enumerate(lines):
            if line[:1] in "#*FI`" and _TITLE.match(line) is not None:
                below = (at for at in range(above + 1, len(lines)) if lines[at].strip())
                index = next((at for at in below if not lines[at].startswith("```")), above)
                if lines[index].startswith("@@"):
                    yield index, (above, _titled(line))

    def _leave_markdown(self) -> None:
        """End the patch where a fence around it closes; what stands up to the next is left out.

        Below a line that names the file of a hunk a header of the ``*** Begin Patch`` form stands for it.
        """
        lines = list(self._lines)
        titles = dict(self._titles())
        fences = [index for index, line in enumerate(lines) if line.startswith("```")]
        if fences and not any(map(self._ends_hunk, range(fences[0]))):
            for closing, opening in itertools.pairwise([*fences[1:], len(lines)]):
                between = lines[closing + 1 : opening]
                begins = opening + 1 in titles or (opening + 1 < len(lines) and self._begins_file(opening + 1))
                closes = (opening == len(lines) or begins) and self._line(closing).rstrip() == "```"
                if closes and not any(re.match(r"\+|@@|diff |---|\*\*\* |-\S|<{5}", line) for line in between):
                    lines[closing : opening + 1] = ["*** End Patch"] * len(lines[closing : opening + 1])
        for index, (above, name) in titles.items():
            lines[above:index] = [*["*** End Patch"] * (index - above - 1), f"*** Update File: {name}"]
        self._lines = tuple(lines)

    def _names_at(self, index: int) -> bool:
        """Whether the ``---`` and ``+++`` lines of a file are there."""
        lines = self._lines
        return index + 1 < len(lines) and lines[index].startswith("--- ") and lines[index + 1].startswith("+++ ")

    def _begins_another(self, section: _Section) -> bool:
        """Whether the line here is none of `section`, but begins another or ends the patch."""
        line = self._line(self._at)
        starred = _STARRED.match(line)
        if starred is not None:
            return starred[1].partition(":")[0] not in ("End of File", "Move to")
        if self._names_at(self._at):
            return bool(section.hunks) or (section.old is not None and not section.starred)
        return line.startswith("diff --git ") or _SEARCH.match(line) is not None

    def _starred(self, line: re.Match[str], section: _Section | None) -> _Section | None:
        """A line of the ``*** Begin Patch`` form; the section that it begins, or goes on with."""
        word, name = line[1].partition(":")[0], line[2] and _name(line[2].strip(), ends_at_tab=False)
        if word == "End of File":
            if section is not None and section.hunks:
                section.hunks[-1] = attrs.evolve(section.hunks[-1], ends_file=True)
            return section
        if word == "Move to":
            if section is None or not section.starred or section.hunks or section.old in (None, _NOTHING):
                _refuse(self._at + 1, "*** Move to: directly below *** Update File:", "it elsewhere")
            section.moved_from, section.moved_to = section.old, name
            section.new = name
            return section
        if name is None:
            return None
        old = _NOTHING if word == "Add File" else name
        new = _NOTHING if word == "Delete File" else name
        return _Section(self._at + 1, old=old, new=new, starred=True)

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
            section.executable = mode == _EXECUTABLE if section.creates else None
        elif line.startswith(("old mode ", "new mode ")):
            mode = line.rsplit(" ", 1)[1]
            if mode not in _PLAIN:
                _refuse(self._at + 1, f"a mode of {' or '.join(_PLAIN)}", "another", "Leave it away.")
            if word == "new":
                section.executable = mode == _EXECUTABLE
        elif _HAD_LINES.match(line) is not None:
            section.had_lines = True
        elif line.startswith(("GIT binary patch", "Binary files ")):
            _refuse(self._at + 1, "a change of text", "a binary patch", "Leave it away.")
        elif section.hunks and line.strip() and line[0] in " +-\\" and line != "-- ":
            hunk = section.hunks[-1]
            _refuse(
                self._at + 1,
                f"the end of the hunk at patch line {hunk.at}",
                "more lines behind others that are none of it",
                "Give each line of a hunk its sign.",
            )

    # Hunks

    def _hunk(self, line: str, section: _Section) -> Hunk:
        """The next hunk of `section`, whose header is here; afterwards the reader is behind it."""
        at = self._at + 1
        self._at += 1
        header = _HUNK.match(line)
        if header is not None:
            counted = self._counted(at, header, section)
            return counted or self._by_structure(at, self._at, ())
        anchors = [_anchor(line)]
        while self._at < len(self._lines) and self._line(self._at).startswith("@@"):
            if _HUNK.match(self._line(self._at)):
                break
            anchors.append(_anchor(self._line(self._at)))
            self._at += 1
        return self._by_structure(at, self._at, tuple(filter(None, anchors)))

    def _counted(self, at: int, header: re.Match[str], section: _Section) -> Hunk | None:
        """The hunk, where its lines are as many as its header says and no more follow; None: they are not."""
        start, old_count = int(header[1]), int(header[2] or 1)
        old, new = old_count, int(header[4] or 1)
        lines: list[HunkLine] = []
        index = self._at
        while old > 0 or new > 0:
            if index >= len(self._lines) or self._next_file_at(index):
                return None
            line = self._lines[index]
            # A program that strips spaces at line ends also strips the one that stands for an empty line.
            line = line if line.strip("\r") else f" {line}"
            if line.startswith("\\ ") and lines:
                lines[-1] = lines[-1].removesuffix("\n")
            elif line[0] in " +-":
                old -= line[0] != "+"
                new -= line[0] != "-"
                lines.append(f"{line}\n")
            else:
                return None
            if old < 0 or new < 0:
                return None
            index += 1
        if index < len(self._lines) and self._lines[index].startswith("\\ "):
            lines[-1:] = [last.removesuffix("\n") for last in lines[-1:]]
            index += 1
        if self._goes_on(index):
            return None
        self._at = index
        # What is only put in is confirmed by the two line numbers alone: they have to say the same place.
        follows = old_count > 0 or int(header[3]) == start + 1 + section.grown_above(start)
        return Hunk(start if follows else None, tuple(lines), at)

    def _next_file_at(self, index: int) -> bool:
        """Whether another file's part begins here, and no removed line that looks like its first."""
        if not self._names_at(index) or index + 2 >= len(self._lines) or not self._lines[index + 2].startswith("@@"):
            return False
        old, new = _name(self._line(index)[4:]), _name(self._line(index + 1)[4:])
        source, target = _ends_named(old, new)
        return source is None or target is None or source == target

    def _goes_on(self, index: int) -> bool:
        """Whether lines follow that can only be the hunk's."""
        while index < len(self._lines) and not self._lines[index].strip():
            index += 1
        if index >= len(self._lines) or self._ends_hunk(index) or self._line(index).rstrip() == "--":
            return False
        return self._lines[index][0] in " +-\\"

    def _ends_hunk(self, index: int) -> bool:
        line = self._line(index)
        return line.startswith("@@") or self._begins_file(index) or _SEARCH.match(line) is not None

    def _begins_file(self, index: int) -> bool:
        line = self._line(index)
        return line.startswith("diff --git ") or self._names_at(index) or _STARRED.match(line) is not None

    def _by_structure(self, at: int, index: int, anchors: tuple[str, ...]) -> Hunk:
        """The lines up to the next header; those without a sign are context.  The reader goes on behind them."""
        lines: list[HunkLine] = []
        while index < len(self._lines) and not self._ends_hunk(index):
            line = self._lines[index]
            if self._is_signature(index):
                index = len(self._lines)
            elif line.startswith("\\ "):
                if not lines:
                    _refuse(index + 1, "a line of the file before it", "none")
                lines[-1] = lines[-1].removesuffix("\n")
            else:
                lines.append(f"{'' if line[:1] in ('+', '-', ' ') else BARE}{line}\n")
            index += 1
        self._at = index
        # Empty lines before the next header are more often the writer's than the file's.
        while lines and lines[-1][0] == BARE and not lines[-1][1:].strip():
            lines.pop()
        # One between new lines alone is new as they are.
        if lines and lines[0][0] == "+" and all(line[0] == "+" or line == f"{BARE}\n" for line in lines):
            lines = [f"+{line[1:]}" for line in lines]
        if not any(line[0] in "+-" for line in lines):
            _refuse(at, "a hunk with lines that begin with + or -", "none", "Give the lines below its @@ line.")
        return Hunk(None, tuple(lines), at, anchors)

    def _is_signature(self, index: int) -> bool:
        """Whether what is left is the end of a mail that git wrote: two dashes and its version."""
        left = [line.strip() for line in self._lines[index : index + 5] if line.strip()]
        return len(left) == 2 and left[0] == "--" and re.fullmatch(r"\d+(\.\w+)+", left[1]) is not None

    # Search and replace blocks

    def _block(self) -> FilePatch:
        """The block whose first line is here; afterwards the reader is behind it."""
        at = self._at + 1
        name = self._block_file()
        halves: list[list[str]] = [[]]
        first = self._at + 1
        if first < len(self._lines) and self._line(first).startswith((":start_line:", ":end_line:")):
            # The text decides where it belongs, not the lines that are named.
            while first < len(self._lines) and _PLACE.match(self._line(first)):
                first += 1
        for index in range(first, len(self._lines)):
            line = self._line(index)
            if _REPLACE.match(line):
                break
            if _DIVIDER.match(line):
                halves.append([])
            elif _SEARCH.match(line):
                _refuse(index + 1, "the end of the block before another begins", "its beginning")
            else:
                halves[-1].append(self._lines[index])
        else:
            _refuse(at, "a block that ends with >>>>>>> REPLACE", "one that goes on")
        if len(halves) != 2:
            got = "none" if len(halves) == 1 else f"{len(halves) - 1}"
            _refuse(at, "one ======= line in a block", got, "Send such a change as a unified diff.")
        self._at = self._block_end = index + 1
        self._block_name = name
        old, new = halves
        if not old:
            return FilePatch(None, name, Hunks([Hunk(0, tuple(_signed("+", new)), at)]))
        if old == new:
            _refuse(at, "a text that replaces another", "the same text")
        return FilePatch(name, name, Hunks([Hunk(None, tuple(_differing(old, new)), at)]))

    def _block_file(self) -> str:
        """The file that the block at this line is about: the last line before it names it, or the block before."""
        between = reversed(self._lines[self._block_end : self._at])
        name = _named_before(between, self._block_name)
        if name is not None:
            return name
        if self._block_name is None:
            _refuse(self._at + 1, "the name of a file on the line before the block", "none")
        return self._block_name


def _growth(hunk: Hunk) -> int:
    """How many lines more the file has by it."""
    return sum((line[0] == "+") - (line[0] == "-") for line in hunk.lines)


def _anchor(line: str) -> str:
    """What a header without numbers says: a line above the hunk."""
    return line.strip().removeprefix("@@").removesuffix("@@").strip()


def _signed(sign: str, lines: list[str]) -> list[HunkLine]:
    return [f"{sign}{line}\n" for line in lines]


def _differing(old: list[str], new: list[str]) -> Iterator[HunkLine]:
    """The lines of a hunk that makes `new` of `old`; what both have is context."""
    if len(old) * len(new) > 250_000:
        yield from (*_signed("-", old), *_signed("+", new))
        return
    for kind, first, end, new_first, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from _signed(" ", old[first:end])
            continue
        yield from (*_signed("-", old[first:end]), *_signed("+", new[new_first:new_end]))


def _name(text: str, *, ends_at_tab: bool = True) -> str:
    """The name on a header line: without quotes or backticks, and without the time that some write behind it."""
    if text[:1] == "`" == text.rstrip()[-1:]:
        text = text.strip().strip("`")
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

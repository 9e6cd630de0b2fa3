r"""Splits text into lines and replaces a part of it without touching the rest.

Rules.  A text outside what an edit replaces never changes: not its byte order mark, not its line ends, not whether
the last line has one.  A line ends with ``\n``, ``\r\n`` or ``\r``, and with nothing else.  Of several edits each is
made on what those before it left, and all are made or none.

Theory.  Models are shown ``\r\n`` and often answer ``\n``.  So an old text that is nowhere as it stands is looked
for a second time with any line end matching any other, and what replaces it takes the line ends of what it
replaces, in order; and in a file whose every line ends with ``\r\n``, new lines do too.
"""

from __future__ import annotations

import difflib
import io
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice, takewhile

import attrs

from toolrt._plain import counted
from toolrt.workspace._problem import FileProblem

LINE_END = re.compile(r"\r\n|\n|\r")
_LONE = re.compile(r"(?<!\r)\n|\r(?!\n)")

#: How many places a refusal names.
PLACES_NAMED = 10

#: How many lines, and how many characters of each, are compared to find the ones nearest to a text that is not
#: there.  From 200 characters on difflib leaves frequent ones out, and with them the likeness.
_LINES_COMPARED = 2000
_CHARACTERS_COMPARED = 199


#: Characters that are taken for one another where text is copied by hand, or by a model.
_ALIKE = {
    ord(other): kind
    for kind, others in (("'", '"`´‘’‚‛“”„‟«»'), ("-", "‐‑‒–—−"), (" ", "\u00a0\u202f"))
    for other in others
}


@attrs.frozen
class Edit:
    """One replacement of a text by another."""

    #: What is replaced; it is there exactly once, unless `all`.
    old: str
    #: What stands there then.
    new: str
    #: Whether every place of `old` is meant.
    all: bool = False
    #: Of several places of `old` the one that begins on this line, from 1, is meant; None: there is one place.
    line: int | None = None


@attrs.frozen
class EditResult:
    """What an edit made."""

    #: The whole new text.
    text: str
    #: How many places were replaced.
    count: int
    #: The line, from 1, of each of the first of them.
    lines: tuple[int, ...]


def lines_of(text: str) -> list[str]:
    """The lines of `text` with their ends; joined they are `text` again, and empty text has none."""
    lines: list[str] = []
    start = 0
    for end in LINE_END.finditer(text):
        lines.append(text[start : end.end()])
        start = end.end()
    if start < len(text):
        lines.append(text[start:])
    return lines


def lf_lines(text: str) -> tuple[str, ...]:
    """The lines of `text` where LF alone ends one; with their ends, as `lines_of` gives them.

    As a tuple, because Python's garbage collector stops going through one of texts; it goes on with a list.
    """
    return tuple([line for line in io.StringIO(text)])  # noqa: C416  other threads may run between two of them


def check_range(path: str, offset: int | None, limit: int | None, tail: int | None) -> None:
    """Refuse a range of lines that cannot be meant, whatever the file has.

    Raises:
        FileProblem: a number is below 1, or `tail`, how many lines at the end, comes with another one.
    """
    for name, value in (("offset", offset), ("limit", limit), ("tail", tail)):
        if value is not None and value < 1:
            raise FileProblem(path, f"{name} of 1 or more", shown_number(value), "Lines are counted from 1.")
    if tail is not None and not (offset is None and limit is None):
        raise FileProblem(path, "tail alone", "offset or limit as well", "Leave tail away, or them.")


def slice_of(path: str, text: str, offset: int | None, limit: int | None) -> str:
    """`limit` lines of `text` from line `offset` on, counted from 1; None: from the first, to the last.

    Raises:
        FileProblem: `offset` is past the last line.
    """
    if offset is None and limit is None:
        return text
    lines = lines_of(text)
    first = 1 if offset is None else offset
    if first > max(1, len(lines)):
        raise FileProblem(
            path,
            f"offset of at most {max(1, len(lines))}",
            shown_number(first),
            f"It has {counted(len(lines), 'line')}.",
        )
    return "".join(lines[first - 1 : None if limit is None else first - 1 + limit])


def shown_number(value: int) -> str:
    """A number that a caller gave, as a refusal shows it."""
    # Python refuses to print an integer of more than 4,300 digits.
    return str(value) if abs(value) < 10**20 else "a huge number"


def numbered(text: str, first: int) -> str:
    """`text` with each line's number and a tab before it; the first line has the number `first`."""
    return "".join(f"{number}\t{line}" for number, line in enumerate(lines_of(text), first))


def line_ends(text: str, start: int = 0, end: int | None = None) -> int:
    """How many line ends there are from `start` on and before `end`; neither place splits a CRLF."""
    count, lone = text.count("\n", start, end), text.count("\r", start, end)
    return count + lone - (text.count("\r\n", start, end) if lone else 0)


def line_count(text: str) -> int:
    """How many lines `lines_of` gives."""
    return line_ends(text) + (text != "" and text[-1] not in "\r\n")


def check_edit(path: str, edit: Edit, where: str = "") -> None:
    """Refuse an edit that cannot be meant, whatever the file has.

    Raises:
        FileProblem: its old text is empty, or its new one is the same; `where` says which edit.
    """
    if not edit.old:
        raise FileProblem(path, f"an old text{where}", "an empty one", "Use write_file to write a whole file.")
    if edit.old == edit.new:
        raise FileProblem(path, f"a new text{where}", "the old one", "Give the text as it should become.")
    if edit.all and edit.line is not None:
        raise FileProblem(path, f"all or a line{where}", "both", "Leave one of them away.")


def edited_in_turn(path: str, text: str, edits: Sequence[Edit], exactly: bool = False) -> tuple[str, list[EditResult]]:
    """`text` after all of `edits`, each made on what those before it left, and what each did; `exactly`: as `edited`.

    Raises:
        FileProblem: as `edited`; says which edit, and that none was made.
    """
    made: list[EditResult] = []
    for number, edit in enumerate(edits, 1):
        line = None if edit.line is None else _moved(edit.line, edits, made)
        try:
            made.append(edited(path, text, edit.old, edit.new, edit.all, exactly, line))
        except FileProblem as problem:
            which = f"{problem.expected} (edit {number} of {len(edits)})"
            raise FileProblem(path, which, problem.got, f"No edit was made. {problem.remedy}") from None
        text = made[-1].text
    return text, made


def _moved(line: int, edits: Sequence[Edit], made: Sequence[EditResult]) -> int:
    """Where the line of that number is after the edits that were `made`; numbers are those before the first of them.

    0, which is no line, where an edit changed so many places that their lines are not known.
    """
    for edit, result in zip(edits, made, strict=False):
        grown = line_ends(edit.new) - line_ends(edit.old)
        if grown and result.count > len(result.lines):
            return 0
        # The lines of several places are those before any of them was replaced.
        line += grown * sum(1 for above in result.lines if above < line)
    return line


def edited(
    path: str, text: str, old: str, new: str, every: bool, exactly: bool = False, line: int | None = None
) -> EditResult:
    """`text` with its one place of `old`, or with `every` all of them from the left, replaced by `new`.

    Of several places the one that begins on `line` is taken.  Where `old` is nowhere, places that differ from it in
    line ends alone are taken.  Where it has to stand `exactly`, neither is so.

    Raises:
        FileProblem: `old` is nowhere, or at several places without `every`; says how many and on which lines.
    """
    places = _Matches(text, old, loosely=False)
    # Places that overlap count when one is wanted, for either may be meant.
    first = list(islice(places.spans(overlapping=not every), PLACES_NAMED + 1))
    if not first and not exactly:
        places = _Matches(text, old, loosely=True)
        first = list(islice(places.spans(overlapping=not every), PLACES_NAMED + 1))
    if not first:
        raise FileProblem(path, "old at exactly one place", "0 places", nearest(text, old))
    if len(first) > 1 and line is not None and not exactly:
        spans = list(places.spans(overlapping=True))
        numbers = _line_numbers(text, [start for start, _ in spans])
        there = [span for span, number in zip(spans, numbers, strict=True) if number == line]
        if len(there) == 1:
            return EditResult(places.replaced(new, there), 1, (line,))
    lines = tuple(_line_numbers(text, [start for start, _ in first[:PLACES_NAMED]]))
    if len(first) > 1 and not every:
        count = len(first) if len(first) <= PLACES_NAMED else max(len(first), places.count())
        raise FileProblem(
            path,
            "old at exactly one place" if line is None or exactly else f"old at exactly one place of line {line}",
            f"{count} places ({shown_lines(lines, count)})",
            "Give more of the text around the one you mean, or set all to replace every one.",
        )
    return EditResult(places.replaced(new), 1 if len(first) == 1 else places.count(), lines)


def shown_lines(lines: Sequence[int], count: int) -> str:
    """The first of so many lines, as a refusal names them."""
    return f"lines {', '.join(map(str, lines[:PLACES_NAMED]))}{', ...' if count > PLACES_NAMED else ''}"


class _Matches:
    """The places of `old` in a text that begin and end between no two halves of a CRLF.

    Args:
        loosely: whether any line end matches any other.
    """

    def __init__(self, text: str, old: str, *, loosely: bool) -> None:
        self._text = text
        self._loosely = loosely
        self._searched, self._old = (LINE_END.sub("\n", one) if loosely else one for one in (text, old))
        self._may_split = "\r" in self._searched
        # Where each line begins, in the text and in what is searched.
        ends = list(LINE_END.finditer(text)) if loosely else []
        self._starts = [0, *(end.end() for end in ends)]
        shift = accumulate((len(end[0]) - 1 for end in ends), initial=0)
        self._searched_starts = [start - more for start, more in zip(self._starts, shift, strict=True)]

    def spans(self, *, overlapping: bool) -> Iterator[tuple[int, int]]:
        """Start and end of each place, from the left."""
        start = self._searched.find(self._old)
        while start >= 0:
            end = start + len(self._old)
            whole = not self._may_split or not (_splits(self._searched, start) or _splits(self._searched, end))
            if whole:
                yield self._in_text(start), self._in_text(end)
            start = self._searched.find(self._old, end if whole and not overlapping else start + 1)

    def _in_text(self, at: int) -> int:
        line = bisect_right(self._searched_starts, at) - 1
        return self._starts[line] + at - self._searched_starts[line]

    def count(self) -> int:
        """How many places there are that do not overlap."""
        if not self._may_split:
            return self._searched.count(self._old)
        return sum(1 for _ in self.spans(overlapping=False))

    def replaced(self, new: str, spans: Iterable[tuple[int, int]] | None = None) -> str:
        """The text with `new` at these places; None: at each that does not overlap one before it."""
        if self._loosely:
            return _joined(self._text, spans or self.spans(overlapping=False), lambda there: _with_ends_of(there, new))
        if not self._may_split and spans is None:
            return self._text.replace(self._old, new)
        # New lines end with CRLF where all others do.
        mixes = "\r\n" not in self._text or _LONE.search(self._text) is not None
        given = new if not self._may_split or mixes else _LONE.sub("\r\n", new)
        return _joined(self._text, spans or self.spans(overlapping=False), lambda _: given)


def _joined(text: str, spans: Iterable[tuple[int, int]], replacement: Callable[[str], str]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        pieces += (text[done:start], replacement(text[start:end]))
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def _splits(text: str, at: int) -> bool:
    """Whether `at` is between the two halves of a CRLF."""
    return text[at - 1 : at + 1] == "\r\n" if at > 0 else False


def _with_ends_of(place: str, new: str) -> str:
    """`new` with the line ends of `place`, in order; where `new` has more, the last one again."""
    ends = LINE_END.findall(place)
    given = iter(ends)
    return LINE_END.sub(lambda _: next(given, ends[-1]), new)


def _line_numbers(text: str, starts: list[int]) -> list[int]:
    """The line, from 1, of each of `starts`, which ascend and split no CRLF."""
    numbers: list[int] = []
    line, done = 1, 0
    for start in starts:
        line, done = line + line_ends(text, done, start), start
        numbers.append(line)
    return numbers


def nearest(text: str, wanted: str) -> str:
    """Where in `text` the lines are that `wanted`, which is not there, may mean; a sentence for the model."""
    searched = [line.strip() for line in lines_of(wanted)]
    skipped = next((index for index, line in enumerate(searched) if line), len(searched))
    searched = searched[skipped:]
    if not searched:
        return "No line is near to its first line; read the file again."
    lines = [line.strip() for line in LINE_END.split(text)]
    places = [index for index, line in enumerate(lines) if line == searched[0]][:PLACES_NAMED]
    if places:
        # The place that agrees for longest, the first of them if there are several.
        best = max(places, key=lambda index: (_agreeing(lines, index, searched), -index))
        agreeing = _agreeing(lines, best, searched)
        if agreeing == len(searched):
            return _other_spaces(lines_of(text), lines_of(wanted)[skipped:], best)
        there = f"is: {_short(lines[best + agreeing])}" if best + agreeing < len(lines) else "is past the end"
        return (
            f"Nearest to its first line: line {best + 1}: {_short(lines[best])}; but line {best + agreeing + 1} "
            f"{there}, where the text wanted has: {_short(searched[agreeing])}"
        )
    folded, looked_for = [_folded(line) for line in lines], [_folded(line) for line in searched]
    for index, line in enumerate(folded):
        if line == looked_for[0] and _agreeing(folded, index, looked_for) == len(looked_for):
            other = next(at for at, line in enumerate(searched, index) if line != lines[at])
            return (
                f"Line {index + 1} has it with other quotation marks, dashes or spaces: line {other + 1} is: "
                f"{_short(lines[other])}"
            )
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines[:_LINES_COMPARED], 1):
        numbers.setdefault(_short(line), number)
    near = difflib.get_close_matches(_short(searched[0]), [line for line in numbers if line], n=3, cutoff=0.6)
    if near:
        shown = "; ".join(f"line {numbers[line]}: {line}" for line in near)
        return f"Nearest to its first line: {shown}"
    return "No line is near to its first line; read the file again."


def _other_spaces(lines: Sequence[str], wanted: Sequence[str], index: int) -> str:
    """Says that `wanted` is at that index with other white space, and what that is where it begins a line."""
    begins = f"Line {index + 1} has it with other spaces or tabs around its lines: "
    for number, (line, other) in enumerate(zip(lines[index:], wanted, strict=False), index + 1):
        there, here = _indentation(line), _indentation(other)
        if there != here and line.strip():
            return f"{begins}line {number} begins with {_spaces(there)}, the text wanted has {_spaces(here)} there."
    return f"{begins}read it again."


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _spaces(indentation: str) -> str:
    runs = re.findall(r" +|\t+", indentation)
    return " and ".join(counted(len(run), "tab" if run[0] == "\t" else "space") for run in runs) or "none"


def _folded(line: str) -> str:
    """The line with one kind of quotation mark, dash and space."""
    return " ".join(line.translate(_ALIKE).split())


def _agreeing(lines: list[str], index: int, searched: list[str]) -> int:
    """How many of `searched` the lines from `index` on are like, one after another."""
    pairs = zip(lines[index : index + len(searched)], searched, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _short(line: str) -> str:
    return line[:_CHARACTERS_COMPARED]

r"""Text as it is: decoding, lines, and replacing a part without touching the rest.

Rules.  A file's bytes outside what an edit replaces never change: not its byte order mark, not its line ends, not
whether the last line has one.  Text is UTF-8; anything else is refused, never guessed at.  A line ends with
``\n``, ``\r\n`` or ``\r``, and with nothing else.

Theory.  Models are shown ``\r\n`` and often answer ``\n``.  So an old text that is nowhere as it stands is looked
for a second time with any line end matching any other, and what replaces it takes the line ends of what it
replaces, in order; and in a file whose every line ends with ``\r\n``, new lines do too.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice
from typing import Protocol

import attrs

from toolrt.workspace._problem import FileProblem

__all__ = ["Edited", "decoded", "edited", "encoded", "lines_of", "slice_of"]

_LINE_END = re.compile(r"\r\n|\n|\r")
_LONE = re.compile(r"(?<!\r)\n|\r(?!\n)")

#: How many places a refusal names.
_PLACES_NAMED = 10

#: How many lines, and how many characters of each, are compared to find the ones nearest to a text that is not
#: there.  From 200 characters on difflib leaves frequent ones out, and with them the likeness.
_LINES_COMPARED = 2000
_CHARACTERS_COMPARED = 199


@attrs.frozen
class Edited:
    """What an edit made."""

    #: The whole new text.
    text: str
    #: How many places were replaced.
    count: int
    #: The line, from 1, of each of the first of them.
    lines: tuple[int, ...]


def decoded(path: str, content: bytes) -> str:
    """The text of `content`, byte order mark included, so that `encoded` gives the same bytes.

    Raises:
        FileProblem: it is not text; says its size.
    """
    nul = content.find(b"\0")
    if nul < 0:
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            got = f"{len(content)} bytes that are not UTF-8 (at byte {error.start})"
    else:
        got = f"{len(content)} bytes of binary data (NUL at byte {nul})"
    raise FileProblem(path, "UTF-8 text", got, "Files that are not text are not read or edited.")


def encoded(path: str, text: str, what: str) -> bytes:
    """The bytes of `text`.

    Raises:
        FileProblem: it has half a surrogate pair or a NUL character, so it could not be read back; `what` says
            whose text it is.
    """
    if "\0" in text:
        raise FileProblem(path, f"text as {what}", "a NUL character in it", "Only text is written.")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FileProblem(
            path,
            f"Unicode text as {what}",
            f"half a surrogate pair at character {error.start}",
            "Use whole characters.",
        ) from None


def lines_of(text: str) -> list[str]:
    """The lines of `text` with their ends; joined they are `text` again, and empty text has none."""
    lines: list[str] = []
    start = 0
    for end in _LINE_END.finditer(text):
        lines.append(text[start : end.end()])
        start = end.end()
    if start < len(text):
        lines.append(text[start:])
    return lines


def slice_of(path: str, text: str, offset: int | None, limit: int | None) -> str:
    """`limit` lines of `text` from line `offset` on, counted from 1; None: from the first, to the last.

    Raises:
        FileProblem: `offset` or `limit` is below 1, or `offset` is past the last line.
    """
    for name, value in (("offset", offset), ("limit", limit)):
        if value is not None and value < 1:
            raise FileProblem(path, f"{name} of 1 or more", str(value), "Lines are counted from 1.")
    if offset is None and limit is None:
        return text
    lines = lines_of(text)
    first = 1 if offset is None else offset
    if first > max(1, len(lines)):
        raise FileProblem(path, f"offset of at most {max(1, len(lines))}", str(first), f"It has {len(lines)} lines.")
    return "".join(lines[first - 1 : None if limit is None else first - 1 + limit])


def edited(path: str, text: str, old: str, new: str, every: bool) -> Edited:
    """`text` with its one place of `old`, or with `every` all of them from the left, replaced by `new`.

    Raises:
        FileProblem: `old` is nowhere, or at several places without `every`; says how many and on which lines.
    """
    places: _Places = _Exact(text, old)
    if next(places.spans(overlapping=True), None) is None:
        places = _Loose(text, old)
    # Places that overlap count when one is wanted, for either may be meant.
    first = list(islice(places.spans(overlapping=not every), _PLACES_NAMED + 1))
    if not first:
        raise _nowhere(path, text, old)
    lines = tuple(_line_numbers(text, [start for start, _ in first[:_PLACES_NAMED]]))
    if len(first) > 1 and not every:
        count = len(first) if len(first) <= _PLACES_NAMED else max(len(first), places.count())
        named = ", ".join(str(line) for line in lines) + (", ..." if count > _PLACES_NAMED else "")
        raise FileProblem(
            path,
            "old at exactly one place",
            f"{count} places (lines {named})",
            "Give more of the text around the one you mean, or set all to replace every one.",
        )
    return Edited(places.replaced(new), places.count(), lines)


class _Places(Protocol):
    """The places of a text in another."""

    def spans(self, *, overlapping: bool) -> Iterator[tuple[int, int]]:
        """Start and end of each place, from the left."""

    def count(self) -> int:
        """How many places there are that do not overlap."""

    def replaced(self, new: str) -> str:
        """The text with `new` at each place that does not overlap one before it."""


class _Exact:
    """The places of `old` as it stands, that begin and end between no two halves of a CRLF."""

    def __init__(self, text: str, old: str) -> None:
        self._text = text
        self._old = old
        self._may_split = "\r" in text

    def spans(self, *, overlapping: bool) -> Iterator[tuple[int, int]]:
        start = self._text.find(self._old)
        while start >= 0:
            end = start + len(self._old)
            whole = not self._may_split or not (_splits(self._text, start) or _splits(self._text, end))
            if whole:
                yield start, end
            start = self._text.find(self._old, end if whole and not overlapping else start + 1)

    def count(self) -> int:
        if not self._may_split:
            return self._text.count(self._old)
        return sum(1 for _ in self.spans(overlapping=False))

    def replaced(self, new: str) -> str:
        if not self._may_split:
            return self._text.replace(self._old, new)
        given = new if _mixes(self._text) else _LONE.sub("\r\n", new)
        return _joined(self._text, self.spans(overlapping=False), lambda _: given)


class _Loose:
    """The places of `old` with any line end matching any other."""

    def __init__(self, text: str, old: str) -> None:
        self._text = text
        self._flat = _Exact(_LINE_END.sub("\n", text), _LINE_END.sub("\n", old))
        # Where each line begins, in the text and with one character for each line end.
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
        shift = accumulate((len(end[0]) - 1 for end in _LINE_END.finditer(text)), initial=0)
        self._flat_starts = [start - more for start, more in zip(self._starts, shift, strict=True)]

    def spans(self, *, overlapping: bool) -> Iterator[tuple[int, int]]:
        for start, end in self._flat.spans(overlapping=overlapping):
            yield self._place(start), self._place(end)

    def _place(self, flat: int) -> int:
        line = bisect_right(self._flat_starts, flat) - 1
        return self._starts[line] + flat - self._flat_starts[line]

    def count(self) -> int:
        return self._flat.count()

    def replaced(self, new: str) -> str:
        return _joined(self._text, self.spans(overlapping=False), lambda place: _with_ends_of(place, new))


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


def _mixes(text: str) -> bool:
    """Whether `text` has a line end other than CRLF, or none at all."""
    return "\r\n" not in text or _LONE.search(text) is not None


def _with_ends_of(place: str, new: str) -> str:
    """`new` with the line ends of `place`, in order; where `new` has more, the last one again."""
    ends = _LINE_END.findall(place)
    given = iter(ends)
    return _LINE_END.sub(lambda _: next(given, ends[-1]), new)


def _line_numbers(text: str, starts: list[int]) -> list[int]:
    """The line, from 1, of each of `starts`, which ascend and split no CRLF."""
    numbers: list[int] = []
    line, done = 1, 0
    for start in starts:
        line += sum(1 for _ in _LINE_END.finditer(text, done, start))
        done = start
        numbers.append(line)
    return numbers


def _nowhere(path: str, text: str, old: str) -> FileProblem:
    wanted = next((line.strip() for line in lines_of(old) if line.strip()), "")[:_CHARACTERS_COMPARED]
    numbered: dict[str, int] = {}
    for number, line in enumerate(islice(_LINE_END.split(text), _LINES_COMPARED), 1):
        numbered.setdefault(line.strip()[:_CHARACTERS_COMPARED], number)
    near = difflib.get_close_matches(wanted, [line for line in numbered if line], n=3, cutoff=0.6) if wanted else []
    if near:
        shown = "; ".join(f"line {numbered[line]}: {line}" for line in near)
        remedy = f"Nearest to its first line: {shown}"
    else:
        remedy = "No line is near to its first line; read the file again."
    return FileProblem(path, "old at exactly one place", "0 places", remedy)

r"""What a patch does to files, and the text that its hunks make.

Rules.
    1. A hunk's old lines decide where it belongs.  A hunk whose header is complete and right belongs at the line that
       the header names, else at the one other place of its lines.  Any other hunk needs exactly one place in the file.
       Several places are a refusal that names them: none is guessed.
    2. Lines are compared with their ends first; where some hunk has no place so, without their ends; then without white
       space at their ends; then with context lines that lost the space that stands for "unchanged".
    3. Context is never written: what a hunk does not change stays as the file has it.
    4. Hunks of one part are about one text.  They may stand in any order and show the same context, but no line is
       changed by two.  A later part of the same file is about what the earlier parts left.

Theory.  Comparing with ends first lets a patch change line ends; comparing without them helps models, which are shown
``\r\n`` and answer ``\n``.  Then a new line takes the end of the one it replaces, else of the one before it, and the
file's last line has an end if it had one.  A weaker comparison only ever adds places.  So one place among the weaker
ones is the right place, if the file has the lines that were meant at all.

Limits.  A hunk without an old line is made only where its header counts right and all hunks before it stood at their
lines: nothing in the text confirms it.  One that is to go before the first line needs git's word, or another hunk, that
the file has lines: many a patch calls a file empty that is not.
"""

from __future__ import annotations

import functools
import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, Literal

import attrs

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._mutation import step_aside
from toolrt.workspace.text._encoding import MARK
from toolrt.workspace.text._text import PLACES_NAMED, lf_lines, lines_of, nearest, shown_lines

#: How many hunks are looked at between two turns of other threads: about a millisecond.
_AT_ONCE = 200


#: One line of a hunk: its sign, and then the line with its LF, or without one where the file has none at its end.  " "
#: is in both texts, "-" in the old one, "+" in the new one; `BARE` is context that the patch has without a sign.
HunkLine = str
BARE = "~"


@attrs.frozen
class Hunk:
    """A run of lines, and what becomes of them."""

    #: The line of the old file, from 1, at which it begins; without old lines, the line that it follows; None: the
    #: patch does not say so, or its header does not fit.
    start: int | None
    #: Its lines.
    lines: tuple[HunkLine, ...]
    #: The line of the patch, from 1, that its header is on.
    at: int
    #: Lines that stand somewhere above it, the outermost first, such as ``class A:`` and ``def f(self):``.
    anchors: tuple[str, ...] = ()
    #: Whether its last old line is the file's last.
    ends_file: bool = False
    #: Which part of its file it belongs to; it is made on what the parts before that left.
    turn: int = 0

    @property
    def old(self) -> list[HunkLine]:
        """The lines that must be there."""
        return [line for line in self.lines if line[0] != "+"]

    @property
    def ended(self) -> bool:
        """Whether an LF ends each of its lines."""
        return all(line[-1] == "\n" for line in self.lines)

    @property
    def leading(self) -> int:
        """How many lines of context it begins with."""
        return sum(1 for _ in takewhile(_is_context, self.lines))

    @property
    def trailing(self) -> int:
        """How many lines of context it ends with."""
        return sum(1 for _ in takewhile(_is_context, reversed(self.lines)))


def _is_context(line: HunkLine) -> bool:
    return line[0] in (" ", BARE)


class Hunks:
    """Hunks in order, each made anew when it is looked at.

    They are kept as plain tuples of texts and numbers, which Python's garbage collector stops going through.  50,000
    of them as objects would make it hold the interpreter for tens of milliseconds, each time it looks at all it has.
    Among many, other threads get their turns.
    """

    def __init__(self, hunks: Iterable[Hunk] = ()) -> None:
        self._rows: list[tuple[Any, ...]] = []
        for hunk in hunks:
            self.append(hunk)

    def append(self, hunk: Hunk) -> None:
        """One more, at the end."""
        if len(self._rows) % _AT_ONCE == _AT_ONCE - 1:
            step_aside()
        self._rows.append(attrs.astuple(hunk, recurse=False))

    def ordered(self, numbers: Iterable[int]) -> Hunks:
        """Those of these numbers, in their order."""
        found = Hunks()
        found._rows = [self._rows[number] for number in numbers]
        return found

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Hunk]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Hunk:
        if index % _AT_ONCE == _AT_ONCE - 1:
            step_aside()
        return Hunk(*self._rows[index])

    def __setitem__(self, index: int, hunk: Hunk) -> None:
        self._rows[index] = attrs.astuple(hunk, recurse=False)


@attrs.frozen
class FilePatch:
    """What a patch does to one file."""

    #: The file it starts from, or None: it creates one.
    source: str | None
    #: The file it ends as, or None: it deletes one.
    target: str | None
    #: What becomes of the lines; by ascending turns.
    hunks: Hunks
    #: Whether the source stays as it is.
    copies: bool = False
    #: Whether the file may be executed then; None: as before, and what it creates may not.
    executable: bool | None = None
    #: Whether it deletes the file whatever it has.
    whole: bool = False

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


def patched(path: str, text: str, hunks: Hunks, exactly: bool = False) -> str:
    """`text` with all of `hunks` made.

    Args:
        exactly: whether each hunk's lines have to be at one place, and where it says; `text` is not what it was made
            from.

    Raises:
        FileProblem: some hunk's old lines are nowhere, or at several places; says which.
    """
    for _, some in groupby(hunks, lambda hunk: hunk.turn):
        part = Hunks(some)
        lines: _ExactLines | _LooseLines = _ExactLines(text)
        placed = _placed(lines, part, exactly)
        if isinstance(placed, _Failure):
            lines = _LooseLines(text)
            placed = _placed(lines, part, exactly)
        if isinstance(placed, _Failure):
            raise placed.problem(path, text)
        text = lines.made(placed)
    return text


#: The index of the line at which each hunk begins, and the hunks, from the top.
_Placed = tuple[list[int], Hunks]


@attrs.frozen
class _Failure:
    """A hunk that has no place."""

    hunk: Hunk
    number: int
    #: The lines, from 1, of the places that it may have; none, or several.
    candidates: tuple[int, ...] = ()
    #: The line, from 1, of a line that another hunk changes as well; None: there is no such line.
    shared: int | None = None
    #: The line, from 1, of its only place, which is above the line that it should follow; None: it is not so.
    above: int | None = None

    def problem(self, path: str, text: str) -> FileProblem:
        old = self.hunk.old
        where = f"the lines of hunk {self.number} (patch line {self.hunk.at})"
        if self.shared is not None:
            return FileProblem(
                path,
                f"{where} apart from what other hunks change",
                f"line {self.shared} in two hunks",
                "Nothing was changed. Change each line in one hunk.",
            )
        if not old:
            return FileProblem(
                path,
                f"a line of the file in hunk {self.number} (patch line {self.hunk.at})",
                "none, and the file is not empty",
                "Give some lines around the new ones.",
            )
        if self.above is not None:
            return FileProblem(
                path,
                f"{where} below {self.hunk.anchors[-1]!r}",
                f"at line {self.above}, above it",
                "Nothing was changed. Correct the @@ line.",
            )
        if self.candidates:
            start = "" if self.hunk.start is None else f"line {self.hunk.start}, or at "
            other = "several" if self.hunk.start is None else "several others"
            return FileProblem(
                path,
                f"{where} at {start}one {'other ' if start else ''}place",
                f"{other} ({shown_lines(self.candidates, len(self.candidates))})",
                "Give more lines around them, or the right line number."
                if start
                else "Nothing was changed. Give more lines around the one you mean.",
            )
        return FileProblem(path, f"{where} in the file", "0 places", nearest(text, "\n".join(map(_text, old))))


class _Layer:
    """One way to compare the lines of a hunk with those of a text.

    Args:
        keys: what is compared, of each line of the text.
        key: what is compared, of a line of a hunk.
    """

    def __init__(self, keys: Sequence[str], key: Callable[[HunkLine], str]) -> None:
        self.keys = tuple(keys)
        self.key = key

    def wanted(self, hunk: Hunk) -> tuple[str, ...]:
        """What is compared of the lines that must be there."""
        return tuple([self.key(line) for line in hunk.old])

    def stands(self, wanted: tuple[str, ...], at: int) -> bool:
        """Whether `wanted` is at that index."""
        return at >= 0 and self.keys[at : at + len(wanted)] == wanted

    def found(self, wanted: tuple[str, ...], first: int = 0, end: int | None = None) -> list[int]:
        """The first places of `wanted` between these indices, one more than a refusal names."""
        end = len(self.keys) if end is None else end
        rarest = min(range(len(wanted)), key=lambda index: len(self._spots.get(wanted[index], ())))
        spots = self._spots.get(wanted[rarest], ())
        if len(spots) * len(wanted) > 4 * len(self.keys):
            return _searched(self.keys, wanted, max(first, 0), end)
        places = (spot - rarest for spot in spots)
        within = (at for at in places if first <= at <= end - len(wanted) and self.stands(wanted, at))
        return list(itertools.islice(within, PLACES_NAMED + 1))

    @functools.cached_property
    def _spots(self) -> dict[str, array[int]]:
        """Where each line is.  A list for each would be a work for Python's garbage collector, as `Hunks` says."""
        spots: dict[str, array[int]] = {}
        for index, key in enumerate(self.keys):
            if key in spots:
                spots[key].append(index)
            else:
                spots[key] = array("L", (index,))
        return spots


class _ExactLines:
    """A text as lines that end with LF alone, compared with their ends."""

    def __init__(self, text: str) -> None:
        self.lines = lf_lines(text)
        self.layers = [_Layer(self.lines, _exactly)]
        #: The first and the last index at which lines may be put in: behind a byte order mark, and behind a line's end.
        self.insert_least = int(text.startswith(MARK))
        self.insert_most = len(self.lines) - (text != "" and text[-1] != "\n")

    def made(self, placed: _Placed) -> str:
        """The new text, with each hunk at its place."""
        pieces: list[str] = []
        done = 0
        for spot, hunk in zip(*placed, strict=True):
            pieces += self.lines[done:spot]
            old = iter(self.lines[spot : spot + len(hunk.old)])
            for line in hunk.lines:
                there = _exactly(line) if line[0] == "+" else next(old)
                if line[0] != "-":
                    pieces.append(there)
            done = spot + len(hunk.old)
        pieces += self.lines[done:]
        return "".join(pieces)


def _exactly(line: HunkLine) -> str:
    return line[1:]


class _LooseLines:
    """A text as lines of any end, compared without it; nor does a byte order mark count."""

    def __init__(self, text: str) -> None:
        self._mark = MARK if text.startswith(MARK) else ""
        self.lines = lines_of(text[len(self._mark) :])
        keys = [line.rstrip("\r\n") for line in self.lines]
        trimmed = [_trimmed(line) for line in self.lines]
        ends = [line[len(key) :] for line, key in zip(self.lines, keys, strict=True)]
        #: The end that most lines have, the first of them if several are equally frequent.
        self._usual = max(dict.fromkeys(filter(None, ends)), key=ends.count, default="\n")
        self.layers = [
            _Layer(keys, _without_end),
            _Layer(trimmed, lambda line: _trimmed(_without_end(line))),
            # The first space of context may be the line's own, and no sign.
            _Layer(trimmed, lambda line: _trimmed(line if line[0] == " " else line[1:])),
        ]
        self.insert_least, self.insert_most = 0, len(self.lines)

    def made(self, placed: _Placed) -> str:
        """The new text, with each hunk at its place."""
        pieces: list[str] = []
        done = 0
        for spot, hunk in zip(*placed, strict=True):
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
        unended = any(line[-1] != "\n" for line in hunk.old)
        for line in hunk.lines:
            if line[0] == "+":
                # Where the patch says that the old last line had no end, it says so of the new one too.
                own = given_up.pop(0) if given_up else end
                if unended:
                    own = own or self._usual
                yield _without_end(line) + (own if line[-1] == "\n" else "")
                continue
            there = self.lines[spot]
            end = self._end_of(there)
            spot += 1
            if line[0] == "-":
                given_up.append(end)
            else:
                given_up.clear()
                yield there

    def _end_of(self, line: str) -> str:
        return line[len(line.rstrip("\r\n")) :] if line else self._usual


def _text(line: HunkLine) -> str:
    return line[1:].removesuffix("\n")


def _without_end(line: HunkLine) -> str:
    return _text(line).rstrip("\r").removeprefix(MARK)


def _trimmed(text: str) -> str:
    return text.rstrip(" \t\r\n")


def _placed(text: _ExactLines | _LooseLines, hunks: Hunks, exactly: bool) -> _Placed | _Failure:
    """The hunks with their places, from the top."""
    numbers = range(len(hunks))
    starts = [hunk.start for hunk in hunks]
    order = sorted(numbers, key=lambda number: starts[number] or 0) if None not in starts else numbers
    spots: dict[int, int] = {}
    least, drift = 0, 0
    for number in order:
        hunk = hunks[number]
        spot: int | _Failure | None
        if exactly:
            spot = _only_place(text.layers[0], hunk)
        elif not hunk.old:
            spot = _insertion(text, hunk, least, drift)
        elif hunk.start is None:
            spot = _by_content(text.layers, hunk)
        else:
            spot = _by_number(text.layers, hunk, least, drift)
            if isinstance(spot, int) and spot >= least:
                least, drift = spot + len(hunk.old), spot - (hunk.start - 1)
        if spot is None or isinstance(spot, _Failure):
            return attrs.evolve(spot or _Failure(hunk, 0), number=number + 1)
        spots[number] = spot
    return _apart(spots, hunks)


def _insertion(text: _ExactLines | _LooseLines, hunk: Hunk, least: int, drift: int) -> int | None:
    """Where lines go that the patch puts in between two others; None: nothing confirms it."""
    count = len(text.lines)
    if not count:
        return 0
    start = hunk.start
    if start is None or drift or not max(least, text.insert_least) <= start <= text.insert_most:
        return None
    return None if start < count and not hunk.ended else start


def _first(layer: _Layer, hunk: Hunk, size: int) -> int:
    """The first index at which a hunk may begin: a line without an end can only be the last."""
    at_end = hunk.ends_file or not hunk.ended
    return len(layer.keys) - size if at_end else 0


def _only_place(layer: _Layer, hunk: Hunk) -> int | None:
    """The one place of a hunk's lines, which is where its header says; None: there is none such."""
    wanted = layer.wanted(hunk)
    found = layer.found(wanted) if wanted else []
    at = found[0] if len(found) == 1 and found[0] >= _first(layer, hunk, len(wanted)) else None
    return at if hunk.start is None or at == hunk.start - 1 else None


def _by_number(layers: Sequence[_Layer], hunk: Hunk, least: int, drift: int) -> int | _Failure | None:
    """Where a hunk belongs whose header says a line; None: nowhere."""
    assert hunk.start is not None
    for layer in layers:
        wanted = layer.wanted(hunk)
        first = _first(layer, hunk, len(wanted))
        after = max(least, first)
        expected = hunk.start - 1 + drift
        if expected >= after and layer.stands(wanted, expected):
            return expected
        found = layer.found(wanted, after) or layer.found(wanted, first)
        if found:
            return found[0] if len(found) == 1 else _Failure(hunk, 0, tuple(spot + 1 for spot in found))
    return None


def _by_content(layers: Sequence[_Layer], hunk: Hunk) -> int | _Failure | None:
    """Where a hunk belongs whose header says no line, or cannot be trusted; None: nowhere."""
    for layer in layers:
        wanted = layer.wanted(hunk)
        found = layer.found(wanted, _first(layer, hunk, len(wanted)))
        if not found:
            continue
        below = _below(layer.keys, hunk.anchors)
        if len(found) > 1 and below is not None:
            first, end, outer = below
            found = layer.found(wanted, first, end) or layer.found(wanted, first, outer) or found
        if len(found) > 1:
            return _Failure(hunk, 0, tuple(spot + 1 for spot in found))
        if below is not None and found[0] + len(wanted) <= below[0]:
            return _Failure(hunk, 0, above=found[0] + 1)
        return found[0]
    return None


def _below(lines: Sequence[str], anchors: Sequence[str]) -> tuple[int, int, int] | None:
    """Where the last of `anchors` is, where its block ends, by indentation, and where the block around it ends.

    None: one of them is at no place, or at several.
    """
    first, end, outer = 0, len(lines), len(lines)
    for anchor in anchors:
        found = [index for index in range(first, end) if lines[index].strip() == anchor]
        if not found:
            found = [index for index in range(first, end) if lines[index].strip().startswith(anchor)]
        if len(found) != 1:
            return None
        first, outer = found[0], end
        depth = _indentation(lines[first])
        inner = range(first + 1, end)
        end = next((index for index in inner if lines[index].strip() and _indentation(lines[index]) <= depth), end)
    return (first, end, outer) if anchors else None


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _apart(spots: Mapping[int, int], hunks: Hunks) -> _Placed | _Failure:
    """The hunks from the top, without the context that two of them show; fails where two change the same lines.

    Args:
        spots: the index of the line at which each begins, by its number.
        hunks: all of them.
    """
    order = sorted(spots, key=lambda number: spots[number] + hunks[number].leading)
    begins, placed = [spots[number] for number in order], hunks.ordered(order)
    for index in range(1, len(order)):
        hunk, later, spot = placed[index - 1], placed[index], begins[index]
        overlap = begins[index - 1] + len(hunk.old) - spot
        if overlap <= 0:
            continue
        lead = min(overlap, later.leading)
        tail = overlap - lead
        kept = hunk.lines[: len(hunk.lines) - tail]
        border = (*kept[-1:], *later.lines[lead : lead + 1])
        # Which of two insertions at one place comes first, neither says.
        if tail > hunk.trailing or [line[0] for line in border] == ["+", "+"]:
            return _Failure(later, order[index] + 1, shared=spot + lead + 1)
        placed[index - 1] = attrs.evolve(hunk, lines=kept)
        begins[index], placed[index] = spot + lead, attrs.evolve(later, lines=later.lines[lead:])
    return begins, placed


def _searched(lines: Sequence[str], wanted: Sequence[str], first: int, end: int) -> list[int]:
    """The first places of `wanted` in `lines` between two indices, found as characters of a string: in linear time."""
    letters = {line: chr(number) for number, line in enumerate(dict.fromkeys(wanted), 1)}
    text, looked_for = ("".join([letters.get(line, "\0") for line in some]) for some in (lines[first:end], wanted))
    found: list[int] = []
    at = text.find(looked_for)
    while at >= 0 and len(found) <= PLACES_NAMED:
        found.append(first + at)
        at = text.find(looked_for, at + 1)
    return found

"""Finds the lines of a text that match a search."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import attrs

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._mutation import step_aside
from toolrt.workspace.finding._factor import BEYOND_ASCII, Characters, Factor, FactorOfSequence
from toolrt.workspace.finding._regex import RegexRefused, expressions
from toolrt.workspace.text._encoding import MARK
from toolrt.workspace.text._text import LINE_END, line_ends, lines_of

#: A byte order mark, as it stands or as it is escaped.
_MARK_MEANT = re.compile(r"\ufeff|\\ufeff|\\U0000feff", re.IGNORECASE)

#: How many characters are looked at, and whole lines more, between two turns of other threads.
_CHARACTERS_AT_ONCE = 128 * 1024


@attrs.frozen
class SearchPattern:
    """What is searched for."""

    #: Whether a line has it, or the first line of several.
    matches: Callable[[str], bool]
    #: What every line has which has it, or its first line; None: nothing is known of it.
    factor: Factor | None
    #: Whether it has a byte order mark.
    marked: bool
    #: What the lines behind that one have, where it goes over several.
    following: tuple[SearchPattern, ...] = ()
    #: Whether it ends with a line's end: nothing is wanted of the last line but that it begins.
    ends_line: bool = False
    #: Where a line that has it may be in a text from one place on and before another: a place in the line; -1: nowhere.
    first: Callable[[str, int, int], int] = attrs.field(init=False, eq=False)

    @first.default
    def _first_of_factor(self) -> Callable[[str, int, int], int]:
        if self.factor is None:
            return lambda text, start, end: start if start < end else -1
        texts = self.factor.literals
        if len(texts) == 1:
            return lambda text, start, end: text.find(texts[0], start, end)
        search = self.factor.compiled().search
        # Most texts have it nowhere.  To see that in lower case takes a fifth of what the expression takes.
        # Of bytes, letters of ASCII alone become lower case: in other texts `str.lower` takes three times as long.
        lower_literal = self.factor.lower_literal.encode()
        exact = not any(one.beyond for sequence in self.factor.sequences for one in sequence)
        lower = functools.lru_cache(maxsize=1)(lambda text: text.encode("utf-8", "surrogatepass").lower())

        def first(text: str, start: int, end: int) -> int:
            # To look for each of some texts takes a tenth of what the expression takes.
            if texts and start == 0 and not any(map(text.__contains__, texts)):
                return -1
            if lower_literal and text.isascii() and lower(text).find(lower_literal, start, end) < 0:
                return -1
            # Bytes of another text are at other places, so only its first part is answered for, by the whole.
            if lower_literal and exact and start == 0 and lower_literal not in lower(text):
                return -1
            found = search(text, start, end)
            return -1 if found is None else found.start()

        return first

    @property
    def rarest_factor(self) -> Factor | None:
        """What every text has which has it: the factor of any of its lines."""
        known = [one.factor for one in (self, *self.following) if one.factor is not None]
        return max(known, key=lambda factor: factor.bits, default=None)


def wanted_in(pattern: str, literal: bool, ignore_case: bool) -> SearchPattern:
    """What `pattern` stands for.

    Raises:
        FileProblem: it stands for nothing that could be searched for.
    """
    if not pattern:
        raise FileProblem("pattern", "a text or a regular expression", "an empty one", "Say what to search for.")
    marked = _MARK_MEANT.search(pattern) is not None
    if literal:
        texts = LINE_END.split(pattern)
        tests: list[Callable[[str, str], bool]] = [str.__contains__]
        if len(texts) > 1:
            tests = [str.endswith, *[str.__eq__] * (len(texts) - 2), str.startswith]
        first, *others = (_of_text(text, test, ignore_case, marked) for text, test in zip(texts, tests, strict=True))
        return attrs.evolve(first, following=tuple(others), ends_line=len(texts) > 1 and not texts[-1])
    try:
        found = expressions(pattern, ignore_case)
    except RegexRefused as refusal:
        raise FileProblem(
            "pattern", "a regular expression that is known here", f"one that is not: {refusal}",
            "Set literal to search for the text itself.",
        ) from None  # fmt: skip
    first, *others = (SearchPattern(one.matches, one.factor, marked) for one in found)
    return attrs.evolve(first, following=tuple(others), ends_line=bool(others) and found[-1].begins_alone)


def _of_text(text: str, test: Callable[[str, str], bool], ignore_case: bool, marked: bool) -> SearchPattern:
    """What is searched for by a test of a line and a plain text."""
    if ignore_case:
        folded = text.casefold()
        return SearchPattern(lambda line: test(line.casefold(), folded), _in_any_case(folded), marked)
    return SearchPattern(lambda line: test(line, text), Factor.of(text) if text else None, marked)


def _in_any_case(folded: str) -> Factor | None:
    """What every text has that is `folded` or has it once it is folded itself."""
    sequence = FactorOfSequence()
    for one in folded:
        known = "".join(dict.fromkeys((one, one.upper()))) if one.isascii() else ""
        sequence.character(Characters(known, True))
    # One character beyond ASCII may be folded into several.
    best = sequence.best()
    return None if best is None else Factor.any_of((best, Factor(((BEYOND_ASCII,),))))


class LineFound(NamedTuple):
    """One line of a file."""

    #: From 1.
    number: int
    #: Without its end.
    text: str
    #: Whether it has what is wanted; else it stands near one that has.
    matches: bool = True


def with_context(text: str, found: list[LineFound], around: int) -> list[LineFound]:
    """The lines found in `text`, and up to `around` lines before and behind each."""
    if not found or not around:
        return found
    lines = lines_of(text)
    shown = {one.number: one for one in found}
    for one in found:
        for number in range(max(1, one.number - around), min(len(lines), one.number + around) + 1):
            if number not in shown:
                shown[number] = LineFound(number, lines[number - 1].rstrip("\r\n").removeprefix(MARK), False)
    return [shown[number] for number in sorted(shown)]


def matching_lines(text: str, wanted: SearchPattern, most: int) -> list[LineFound]:
    """The first `most` lines that have what is wanted: number, from 1, and text without its end.

    Where that goes over several lines all of them are given, and the last match whole.  A line begins behind a byte
    order mark, which is neither matched nor shown, unless the pattern has one itself.

    Raises:
        FileProblem: the search makes too much work.
        trio.Cancelled: as `step_aside`, in a long text.
    """
    found: list[LineFound] = []
    # Line ends are counted up to `counted`, and only when a line is found.
    start = counted = 0
    number = 1
    try:
        for end in _ends_of_parts(text):
            if start:
                step_aside()
            while len(found) < most and (at := wanted.first(text, start, end)) >= 0:
                if text.startswith("\r\n", at - 1):
                    at -= 1
                # The line that it is in.
                begin = max(start, text.rfind("\n", start, at) + 1, text.rfind("\r", start, at) + 1)
                after = LINE_END.search(text, at)
                stop = len(text) if after is None else after.start()
                shown = text[begin:stop].removeprefix(MARK)
                if wanted.matches(text[begin:stop] if wanted.marked else shown) and (
                    lines := _with_following(text, shown, after, wanted)
                ):
                    number, counted = number + line_ends(text, counted, begin), begin
                    known = found[-1].number if found else 0
                    found += [LineFound(n, line) for n, line in enumerate(lines, number) if n > known]
                start = len(text) if after is None else after.end()
            start = max(start, end)
    except RegexRefused as refusal:
        raise FileProblem(
            "pattern", "a regular expression that can be searched for", f"one that cannot: {refusal}",
            "Use a simpler one, or search in fewer files.",
        ) from None  # fmt: skip
    return found


def _with_following(text: str, first: str, after: re.Match[str] | None, wanted: SearchPattern) -> list[str]:
    """The line `first` and the lines behind it, up to the last that belongs to the match; none if they do not match."""
    lines, begin = [first], 0
    for one in wanted.following:
        if after is None:
            return []
        begin = after.end()
        after = LINE_END.search(text, begin)
        lines.append(text[begin : len(text) if after is None else after.start()])
        if not one.matches(lines[-1]):
            return []
    return lines[:-1] if wanted.ends_line or begin == len(text) else lines


def _ends_of_parts(text: str) -> Iterator[int]:
    """The ends of the parts of a text that are searched at once, each behind a line's end but the last."""
    start = 0
    while len(text) - start > _CHARACTERS_AT_ONCE:
        end = LINE_END.search(text, start + _CHARACTERS_AT_ONCE)
        if end is None:
            break
        start = end.end()
        yield start
    yield len(text)

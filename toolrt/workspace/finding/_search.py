"""Finds the lines of a text that match a search."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import attrs

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.finding._regex import Expression, RegexRefused

_LINE_END = re.compile(r"\r\n|\n|\r")

#: How many lines are looked at between two questions whether to go on.
_LINES_AT_ONCE = 2000


@attrs.frozen
class SearchPattern:
    """What is searched for."""

    #: Whether a line has it.
    matches: Callable[[str], bool]
    #: A text that every line has which has it, or "".
    literal: str


def wanted_in(pattern: str, literal: bool, ignore_case: bool) -> SearchPattern:
    """What `pattern` stands for.

    Raises:
        FileProblem: it stands for nothing that could be searched for.
    """
    if not pattern:
        raise FileProblem("pattern", "a text or a regular expression", "an empty one", "Say what to search for.")
    if literal:
        if _LINE_END.search(pattern):
            raise FileProblem("pattern", "a text of one line", "one of several", "Lines are searched one by one.")
        if ignore_case:
            folded = pattern.casefold()
            return SearchPattern(lambda line: folded in line.casefold(), "")
        return SearchPattern(lambda line: pattern in line, pattern)
    try:
        expression = Expression(pattern, ignore_case)
    except RegexRefused as refusal:
        raise FileProblem(
            "pattern", "a regular expression that is known here", f"one that is not: {refusal}",
            "Set literal to search for the text itself.",
        ) from None  # fmt: skip
    return SearchPattern(expression.matches, expression.literal)


#: What a text may begin with, and no reader sees.
_MARK = "\ufeff"


def matching_lines(
    text: str, wanted: SearchPattern, most: int, still_wanted: Callable[[], object]
) -> list[tuple[int, str]]:
    """The first `most` lines that have what is wanted: number, from 1, and text without its end.

    A line begins behind a byte order mark, which is neither matched nor shown, unless the pattern has one itself.

    Args:
        still_wanted: asked now and then; what it raises is raised.

    Raises:
        FileProblem: the search makes too much work.
    """
    if wanted.literal and wanted.literal not in text:
        return []
    found: list[tuple[int, str]] = []
    try:
        for number, line in enumerate(_lines(text), 1):
            if number % _LINES_AT_ONCE == 0:
                still_wanted()
            shown = line.removeprefix(_MARK)
            if (not wanted.literal or wanted.literal in line) and wanted.matches(
                line if _MARK in wanted.literal else shown
            ):
                found.append((number, shown))
                if len(found) == most:
                    break
    except RegexRefused as refusal:
        raise FileProblem(
            "pattern", "a regular expression that can be searched for", f"one that cannot: {refusal}",
            "Use a simpler one, or search in fewer files.",
        ) from None  # fmt: skip
    return found


def _lines(text: str) -> Iterator[str]:
    start = 0
    for end in _LINE_END.finditer(text):
        yield text[start : end.start()]
        start = end.end()
    if start < len(text):
        yield text[start:]

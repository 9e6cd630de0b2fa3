"""A file's text in pieces to be searched, and what a word is in code.

Rules.  A piece begins where a symbol does, and has at most `_LINES` lines.  A word in camelCase is also the words it is
made of; one with underscores is anyway, as SQLite's tokens end there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from toolrt.plugins.code._facts import Facts

#: The most lines of a piece.
_LINES = 60

#: The most characters of a line that are searched.
_LINE_LONGEST = 1000

_ANY = re.compile(r"[A-Za-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")


@attrs.frozen
class Piece:
    """Some lines of a file."""

    #: The first and the last, from 1.
    line: int
    end_line: int
    #: The symbol that begins there, by its ordinal; -1: none does.
    symbol: int
    #: The symbol's name with those of what it is in, or "".
    names: str
    #: The text.
    body: str
    #: What the words of the text in camelCase are made of.
    parts: str


def split_words(text: str) -> str:
    """The parts of the words in camelCase, in lower case, with blanks between."""
    words = dict.fromkeys(_ANY.findall(text))
    mixed = [word for word in words if not (word.islower() or word[1:].islower() or word.isupper())]
    return " ".join(" ".join(parts).lower() for word in mixed if len(parts := _HUMP.split(word)) > 1)


def words_of(name: str) -> list[str]:
    """The words of a name, camelCase and underscores split, in lower case."""
    return [word for part in _WORD.findall(name) for word in " ".join(_HUMP.split(part)).lower().split()]


def pieces_of(facts: Facts, text: str) -> Iterator[Piece]:
    """The pieces of a file, in order."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    starts: dict[int, int] = {}
    for symbol in facts.symbols:
        starts.setdefault(symbol.line, symbol.ordinal)
    begin, ordinal = 1, starts.get(1, -1)
    for number in range(1, len(lines) + 1):
        following = number + 1
        if following > len(lines) or following in starts or following - begin >= _LINES:
            body = "\n".join(line[:_LINE_LONGEST] for line in lines[begin - 1 : number])
            names = facts.symbols[ordinal].qualified if ordinal >= 0 else ""
            if body.strip():
                yield Piece(begin, number, ordinal, f"{names} {split_words(names)}".strip(), body, split_words(body))
            begin, ordinal = following, starts.get(following, -1)

"""Which symbol a place in a file is in, and texts of nodes."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from toolrt.plugins.code._facts import MODULE

if TYPE_CHECKING:
    from tree_sitter import Node

#: How many characters of a signature are kept.
_SIGNATURE_LONGEST = 400


#: What a body begins with, at the end of what stands before it.
_OPENING = re.compile(r"(?:\s*(?:=>|[{=:;]))+\Z")


class Nesting:
    """The bodies of symbols, added in the order of their beginnings; each lies in another or beside it."""

    def __init__(self) -> None:
        #: Where the innermost body changes, and which it is from there on; `MODULE` stands first.
        self._starts: list[int] = [0]
        self._inside: list[int] = [MODULE]
        #: The bodies that are open at the end of what was added: their ends and ordinals, the innermost last.
        self._open: list[tuple[int, int]] = []

    def add(self, start: int, end: int, ordinal: int) -> None:
        """The body of a symbol, from `start` to before `end`, in bytes."""
        self._close(start)
        self._change(start, ordinal)
        self._open.append((end, ordinal))

    def current(self, start: int) -> int:
        """The symbol whose body a place is in that lies behind the beginnings of all bodies so far."""
        self._close(start)
        return self._open[-1][1] if self._open else MODULE

    def seal(self) -> None:
        """No body comes any more."""
        while self._open:
            self._close(self._open[-1][0])

    def enclosing(self, place: int) -> int:
        """The ordinal of the innermost symbol whose body that byte is in; ask when all are added."""
        return self._inside[bisect_right(self._starts, place) - 1]

    def _close(self, upto: int) -> None:
        while self._open and self._open[-1][0] <= upto:
            end, _ = self._open.pop()
            self._change(end, self._open[-1][1] if self._open else MODULE)

    def _change(self, at: int, ordinal: int) -> None:
        if self._starts[-1] == at:
            self._inside[-1] = ordinal
        elif at > self._starts[-1]:
            self._starts.append(at)
            self._inside.append(ordinal)


def text_of(content: bytes, node: Node) -> str:
    """The text of a node; what is no UTF-8 is U+FFFD."""
    return content[node.start_byte : node.end_byte].decode("utf-8", "replace")


def last_line(node: Node) -> int:
    """The last line that has something of a node, from 1."""
    row, column = node.end_point
    return max(node.start_point.row, row if column else row - 1) + 1


def one_line(content: bytes) -> str:
    """A declaration in one line, cut where it is long."""
    text = " ".join(content[: 4 * _SIGNATURE_LONGEST].decode("utf-8", "replace").split())
    text = _OPENING.sub("", text)
    return text if len(text) <= _SIGNATURE_LONGEST else text[:_SIGNATURE_LONGEST] + "..."

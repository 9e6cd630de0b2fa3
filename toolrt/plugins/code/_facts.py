"""What is known of one file, and of it alone: its symbols, calls, imports and the names it binds.

Rules.  Facts are a function of a file's content and language.  What a name means in another file is never among them:
so a change of one file makes the facts of no other file wrong, and nothing that is kept can be stale.

Theory.  An *expression* is a text that says no more than what resolving needs: names, ``.attribute``, ``()`` for a
call whatever its arguments, ``[]`` for a subscript, ``*`` behind what is iterated, ``|`` between alternatives, ``@``
before an annotation (then it stands for a value of that type), ``{}`` behind what a list, a tuple or a set holds,
``{:}`` behind a value of a dictionary, ``?`` for what is not known.
``await self.pool[key].get(1)`` is ``self.pool[].get()``.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

#: Stands for the file itself where a symbol's ordinal stands.
MODULE = -1


class Symbol(NamedTuple):
    """Something that a file defines under a name."""

    #: Its place among the file's symbols, from 0, in the order of the text.
    ordinal: int
    #: Its own name.
    name: str
    #: With the names of what it is in: ``Files.read``.
    qualified: str
    #: What it is: "function", "method", "class", "interface", ...
    kind: str
    #: The ordinal of the symbol it is in, or `MODULE`.
    parent: int
    #: Its first and its last line, from 1; decorators and the like are part of it.
    line: int
    end_line: int
    #: The same in bytes.
    start: int
    end: int
    #: What stands before its body, in one line.
    signature: str
    #: The line of the name itself, from 1.
    named_at: int
    #: What it inherits from or implements, as expressions.
    bases: tuple[str, ...] = ()
    #: What calling it gives, as an expression; "" is not known.
    returns: str = ""
    #: The marks on it that decide what it means (``property``, ``static``), as they are written.
    marks: tuple[str, ...] = ()


class Call(NamedTuple):
    """One place where something is called."""

    #: The ordinal of the symbol whose body it is in, or `MODULE`.
    caller: int
    #: What is called, as an expression.
    callee: str
    #: The last name of it; "" where it has none.
    name: str
    #: Where that name stands: the line from 1, the column from 0 in bytes.
    line: int
    column: int


class Import(NamedTuple):
    """One name that a file has from elsewhere, or one file that it includes."""

    #: The ordinal of the symbol whose body it is in, or `MODULE`.
    scope: int
    #: The name that it binds; "*" is all names, "" none.
    bound: str
    #: The module or file, as it is written.
    module: str
    #: The name in that module; "" is the module itself.
    name: str
    #: How many levels up a relative one begins; 0 is not relative.
    level: int
    #: The line, from 1.
    line: int


class Binding(NamedTuple):
    """A name that is given a value."""

    #: The ordinal of the symbol whose body it is in, or `MODULE`.
    scope: int
    #: The name: ``x``, or ``self.x``.
    target: str
    #: The value, as an expression.
    value: str


class Facts(NamedTuple):
    """All that is known of one file."""

    #: Its language; "" is none that is known here.
    language: str
    #: How many lines it has.
    lines: int
    symbols: tuple[Symbol, ...] = ()
    calls: tuple[Call, ...] = ()
    imports: tuple[Import, ...] = ()
    bindings: tuple[Binding, ...] = ()
    #: Why it is not known as well as it could be; "" where it is.
    note: str = ""


def last_names(expression: str) -> set[str]:
    """The last names of an expression's alternatives, whatever is taken out of them by subscripts and loops."""
    return {part.rpartition(".")[2].rstrip("*[]{:}") for part in expression.split("|")}


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def to_text(facts: Facts) -> str:
    """The facts as JSON."""
    return _encode(facts)


def from_text(text: str) -> Facts:
    """The same facts."""
    language, lines, symbols, calls, imports, bindings, note = json.loads(text)
    return Facts(
        language,
        lines,
        tuple(_symbol(row) for row in symbols),
        tuple(Call._make(row) for row in calls),
        tuple(Import._make(row) for row in imports),
        tuple(Binding._make(row) for row in bindings),
        note,
    )


def _symbol(row: list[Any]) -> Symbol:
    row[11], row[13] = tuple(row[11]), tuple(row[13])
    return Symbol._make(row)

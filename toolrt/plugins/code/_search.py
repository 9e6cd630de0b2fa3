"""Search over symbols and text, and all places where a name stands.

Rules.  A query's words are looked for as they are and as what they are made of: ``getUserName``, ``get_user_name``
and ``get user name`` find each other.  Pieces that have all words count; where none has, those that have some.  A
piece is a *definition* where the name of the symbol that begins in it has a word of the query, and else a *usage*.
The rank is BM25 (Robertson and Zaragoza 2009) as SQLite's FTS5 computes it, names counting ten times; of equals the
first by path and line.  With vectors, both ranks are joined by reciprocal rank fusion (Cormack et al., SIGIR 2009).
"""

from __future__ import annotations

import math
import re
import sqlite3
from array import array
from collections.abc import Sequence

import attrs

from toolrt.plugins.code._graph import innermost
from toolrt.plugins.code._pieces import words_of
from toolrt.plugins.code._tree import SourceTree

#: How many pieces a search ranks.
_PIECES = 200

#: What the columns count: names, path, text, parts of words.
_WEIGHTS = "10.0, 3.0, 1.0, 1.0"

#: Of reciprocal rank fusion.
_FUSION = 60

_QUERY_WORD = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")

#: How many words of a query count.
_WORDS_MOST = 32


@attrs.frozen
class Hit:
    """One piece of what was found."""

    #: Whether it defines something whose name has a word of the query.
    is_definition: bool
    path: str
    #: Of a definition the line of the name, else the line that has most words of the query.
    line: int
    #: The symbol that begins there or that it is in; "" is none.
    name: str
    kind: str
    #: The signature of a definition, else the line.
    text: str
    #: How good it is: larger is better.
    score: float


@attrs.frozen
class Reference:
    """One place where a name stands."""

    #: "definition", "import", "call", or "use" for any other.
    kind: str
    path: str
    line: int
    #: The symbol it is in; "" is none.
    inside: str
    text: str


@attrs.frozen
class References:
    """The places where a name stands."""

    places: tuple[Reference, ...]
    #: Whether there are more.
    cut_short: bool


@attrs.frozen
class Sought:
    """A query's words."""

    #: Each word, as it is and as the words it is made of.
    words: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, query: str) -> Sought:
        """The words of `query`, each once."""
        found: dict[str, tuple[str, ...]] = {}
        for match in _QUERY_WORD.finditer(query):
            parts = tuple(words_of(match[0]))
            if parts:
                found.setdefault(match[0].lower(), parts)
        return cls(tuple(found.items())[:_WORDS_MOST])

    def expression(self, joined: str) -> str:
        """The query in FTS5's language."""
        alternatives = []
        for word, parts in self.words:
            forms = dict.fromkeys((_quoted(word), _quoted(" ".join(parts)), _quoted("".join(parts))))
            alternatives.append(f"({' OR '.join(forms)})")
        return joined.join(alternatives)

    @property
    def parts(self) -> frozenset[str]:
        """What all words are made of."""
        return frozenset(part for _, parts in self.words for part in parts)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def searched(
    connection: sqlite3.Connection, tree: SourceTree, query: str, below: str, limit: int, vector: Sequence[float] | None
) -> list[Hit]:
    """The best `limit` hits below the directory or file `below` ("" is all).

    Args:
        vector: the query's; None: there are none.
    """
    sought = Sought.of(query)
    ranks: dict[int, float] = {}
    paths: dict[int, str] = {row.id: path for path, row in tree.files.items() if is_below(path, below)}
    if sought.words:
        for joined in (" AND ", " OR "):
            statement = (
                "SELECT text.rowid, piece.file FROM text JOIN piece ON piece.id = text.rowid"
                " JOIN file ON file.id = piece.file WHERE text MATCH :words"
                " AND (:below = '' OR file.path = :below OR substr(file.path, 1, :length) = :below || '/')"
                f" ORDER BY round(bm25(text, {_WEIGHTS}), 9), file.path, piece.line LIMIT {_PIECES}"
            )
            given = {"words": sought.expression(joined), "below": below, "length": len(below) + 1}
            found = connection.execute(statement, given).fetchall()
            for rank, (piece, file) in enumerate(found):
                if file in paths:
                    ranks.setdefault(piece, 1 / (_FUSION + rank + 1))
            if ranks:
                break
    if vector is not None:
        for rank, piece in enumerate(_nearest(connection, vector, paths)):
            ranks[piece] = ranks.get(piece, 0.0) + 1 / (_FUSION + rank + 1)
    scored = []
    for piece, score in ranks.items():
        row = connection.execute(
            "SELECT file.path, piece.line, piece.symbol FROM piece JOIN file ON file.id = piece.file"
            " WHERE piece.id = ?",
            (piece,),
        ).fetchone()
        if row is not None:
            path, line, ordinal = row
            exact = _named_so(tree, sought, path, ordinal)
            scored.append((-score * (1 + exact), path, line, piece, ordinal if exact else -1))
    scored.sort()
    unique: dict[tuple[str, int], Hit] = {}
    for score, path, line, piece, ordinal in scored:
        hit = _hit(connection, tree, sought, (path, line, piece, ordinal), -score)
        unique.setdefault((hit.path, hit.line), hit)
        if len(unique) == limit:
            break
    return list(unique.values())


def is_below(path: str, below: str) -> bool:
    """Whether the file is that directory or file, or below it; "" is the root."""
    return not below or path == below or path.startswith(f"{below}/")


def _named_so(tree: SourceTree, sought: Sought, path: str, ordinal: int) -> float:
    """How much of a symbol's name and of the query are the same, up to 1; 0 where nothing is, or there is no symbol."""
    symbols = tree.facts(path).symbols if ordinal >= 0 else ()
    if not 0 <= ordinal < len(symbols):
        return 0.0
    own = words_of(symbols[ordinal].name)
    if "".join(own) in sought.parts:
        return 1 / len(sought.parts)
    return len(sought.parts.intersection(own)) / max(len(set(own)), len(sought.parts), 1)


def _hit(
    connection: sqlite3.Connection, tree: SourceTree, sought: Sought, found: tuple[str, int, int, int], score: float
) -> Hit:
    """A piece as it is shown: of the symbol it defines, or the line that has most words of the query."""
    path, first, piece, ordinal = found
    symbols = tree.facts(path).symbols
    if ordinal >= 0:
        symbol = symbols[ordinal]
        return Hit(True, path, symbol.named_at, symbol.qualified, symbol.kind, symbol.signature, score)
    row = connection.execute("SELECT body FROM text WHERE rowid = ?", (piece,)).fetchone()
    lines = ("" if row is None else row[0]).split("\n")
    best, best_words = 0, -1
    for number, line in enumerate(lines):
        words = len(sought.parts.intersection(words_of(line)))
        if words > best_words:
            best, best_words = number, words
    inside = innermost(symbols, first + best)
    return Hit(False, path, first + best, "" if inside is None else inside.qualified, "", lines[best].strip(), score)


def _nearest(connection: sqlite3.Connection, vector: Sequence[float], paths: dict[int, str]) -> list[int]:
    """The pieces whose vectors point most as `vector` does, the best first."""
    wanted = array("f", vector)
    length = math.sqrt(sum(number * number for number in wanted)) or 1.0
    scored: list[tuple[float, str, int, int]] = []
    query = "SELECT piece.id, piece.file, piece.line, vector.numbers FROM vector JOIN piece ON piece.id = vector.piece"
    for piece, file, line, numbers in connection.execute(query):
        if file not in paths:
            continue
        own = array("f", numbers)
        if len(own) != len(wanted):
            continue
        product = sum(map(float.__mul__, own, wanted))
        scored.append((-round(product / length, 6), paths[file], line, piece))
    scored.sort()
    return [piece for _, _, _, piece in scored[:_PIECES]]


# References


def references(connection: sqlite3.Connection, tree: SourceTree, name: str, below: str, limit: int) -> References:
    """The places where the word `name` stands, by path and line; at most `limit`."""
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    tokens = re.findall(r"[^\W_]+", name)
    if not tokens:
        return References((), False)
    statement = (
        "SELECT file.path, piece.line, text.body FROM text JOIN piece ON piece.id = text.rowid"
        " JOIN file ON file.id = piece.file WHERE text MATCH ? ORDER BY file.path, piece.line"
    )
    found: list[Reference] = []
    where: dict[int, str] = {}
    current = ""
    for path, first, body in connection.execute(statement, (f"body : {_quoted(name)}",)):
        if path not in tree.files or not is_below(path, below):
            continue
        if path != current:
            current, where = path, _kinds(tree, path, name)
        for number, line in enumerate(body.split("\n"), first):
            if word.search(line) is None:
                continue
            if len(found) == limit:
                return References(tuple(found), True)
            inside = innermost(tree.facts(path).symbols, number)
            qualified = "" if inside is None else inside.qualified
            found.append(Reference(where.get(number, "use"), path, number, qualified, line.strip()))
    return References(tuple(found), False)


def _kinds(tree: SourceTree, path: str, name: str) -> dict[int, str]:
    facts = tree.facts(path)
    kinds: dict[int, str] = {call.line: "call" for call in facts.calls if call.name == name}
    for one in facts.imports:
        if name in (one.name, one.bound, one.module.rpartition(".")[2]):
            kinds[one.line] = "import"
    for symbol in facts.symbols:
        if symbol.name == name:
            kinds[symbol.named_at] = "definition"
    return kinds

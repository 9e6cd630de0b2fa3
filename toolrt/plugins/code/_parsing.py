"""Parsing within bounds: a tree and what a query finds in it, or None.

Rules.  No content makes this endless or large: a file above `PARSED_MOST` bytes, a large one of long lines, or one with
too many operators in a statement is not parsed; a parse ends after so much work that no ordinary file makes; a query
looks no deeper than `_DEEPEST`, and at no tree with an error that is too wide.  Work is counted, not timed: whether a
file is parsed follows from its content.  A Python file of at most `PYTHON_MOST` bytes that Python compiles is parsed,
however long its lines are and whatever operators it has.

Theory.  tree-sitter says now and then that it is at work, about once for a hundred of its steps: in 1,285 files of
installed packages and system headers some 5 times for a thousand bytes, at most 17 times.  It asks for the text piece
by piece, and again when it looks back: less than 9 times for each piece there.  A query is quadratic in the depth of a
tree (100,000 nested calls took 111 s without a bound) and in how many nodes an error has directly below it, because
only there they are a plain list (100,000 braces took 21 s).

A file that ends in the middle of an expression of many operators, all wrong where they stand, takes memory
that is quadratic in their number, all of it in one step at the end (tree-sitter 0.26.1; 6,000 bytes took 1.4 GB).
In Python these are ``*`` behind another binary operator, as in ``/*``, which Python's syntax has nowhere; of 6,000
other units of up to four tokens none took more than 31 MB.  So they stand only in what is wrong, or in a comment or a
text, and there the parser is shown blanks in their place.

Behind an indented block the grammar of Python looks through all comments that follow for each of them, which is
quadratic in how many they are (20,000 lines took 86 s).  Where a parse ends for being too much work, comments that
have a line of their own become blanks, and the file is parsed again.

In brackets it takes a line that is indented less for the end of a block, where no closing bracket could stand.  Where a
tree has an error, the file is parsed again with its brackets in one line each, up to the next error: without one that
tree counts.

Limits.  Within these bounds the worst that was found takes some nine seconds, and in Python above `PARSED_MOST` some
forty seconds and 1.3 GB (ordinary Python of that size: 2 seconds and 130 MB), in a worker thread; the skeleton that
``read_file`` answers with has the smaller bound (``tests/benchmarks/code.py --only hostile``).  Memory is bounded
against the operators for which that was found, not against every content that could be made for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolrt.plugins.code._languages import Grammar, Language, grammar_of

if TYPE_CHECKING:
    import tree_sitter

#: The most bytes of a file that is parsed, and of one in Python.
PARSED_MOST = 256 * 1024
PYTHON_MOST = 4 * 1024 * 1024

#: From how many bytes on the lines of a file may not be long, and how many bytes a line may have then, on average.
#: What a program wrote in one line takes a parser up to 50 microseconds a byte, and ordinary code 0.3.
_LONG_FROM = 64 * 1024
_LINE_LONGEST = 300

#: How many operators one statement may have of those that pile up where they are wrong; 1,000 of them take 400 MB.
_PILED_MOST = 400
_PILING_UP = re.compile(rb"=>|<-|[*/%<]+")
#: What begins or ends a comment, or a line of one, where that is no operator.
_COMMENTS = re.compile(rb"/\*|\*/|//|^[ \t]*\*+(?=\s)", re.MULTILINE)
#: What a line ends or begins with that goes on with the statement of the line before it.
_GOES_ON = frozenset(b"*/%<>=-([")
#: What piles up in Python.
_WRONG_IN_PYTHON = re.compile(rb"(?<=[|&^%/<>@+~-])[\s*]*\*")
#: Carriage returns that end a line for Python, and not for the parser.
_RETURNS = re.compile(rb"\r(?!\n)")
#: Lines of Python that are a comment, or are in a text that goes on behind them: no end of one, and no continuation.
_COMMENT_LINES = re.compile(rb"(?<!\\\n)(?<!\\\r\n)^[ \t]*#(?:(?!\"\"\"|''')[^\\\n])*$", re.MULTILINE)

#: What tells the lines of Python that are in brackets: texts, comments, brackets, and ends of lines.
_BRACKETED = re.compile(
    rb'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\Z)|\'\'\'(?:[^\'\\]++|\\.|\'(?!\'\'))*+(?:\'\'\'|\Z)'
    rb'|"(?:[^"\\\n]++|\\.)*+"?|\'(?:[^\'\\\n]++|\\.)*+\'?|#[^\n]*|[\[\](){}\n]',
    re.DOTALL,
)

#: How deep below the root a query looks.
_DEEPEST = 400

#: How many nodes may be directly below an error.
_WIDEST_ERROR = 2000

#: How many reports a parse may make up to a place: these, and one for so many bytes before it.  Python that compiles
#: makes at most one for 16 bytes (``x`` and a line's end, a million times).
_REPORTS = 1500
_BYTES_PER_REPORT = 15

#: For how many a report counts that is made after an error.
_AFTER_ERROR = 2

#: How many bytes the parser is handed at a time, and how often it may ask: so often, and so often for each piece.
_PIECE = 2048
_ASKED = 200
_ASKED_PER_PIECE = 20


class Grammars:
    """The grammars of one thread, loaded as they are needed."""

    def __init__(self) -> None:
        self._grammars: dict[str, Grammar] = {}

    def of(self, language: Language) -> Grammar:
        """The grammar of that language.

        Raises:
            MissingExtra: the ``code`` extra is not installed.
        """
        grammar = self._grammars.get(language.name)
        if grammar is None:
            grammar = self._grammars[language.name] = grammar_of(language)
        return grammar


def parsed(grammar: Grammar, content: bytes) -> tree_sitter.Tree | None:
    """The tree of `content`; None: it is too large, or too much work."""
    size = len(content)
    if grammar.language == "python":
        if size > PYTHON_MOST:
            return None
        content = _WRONG_IN_PYTHON.sub(lambda found: found[0].replace(b"*", b" "), _RETURNS.sub(b"\n", content))
        tree = _parsed(grammar, content)
        fewer = content if tree else _COMMENT_LINES.sub(lambda found: b" " * len(found[0]), content)
        tree = tree if fewer == content else _parsed(grammar, fewer)
        if tree is None or not tree.root_node.has_error:
            return tree
        joined = _with_joined_brackets(content)
        again = None if joined == content else _parsed(grammar, joined, flawless=True)
        return tree if again is None or again.root_node.has_error else again
    if size > PARSED_MOST or (size > _LONG_FROM and size > _LINE_LONGEST * (content.count(b"\n") + 1)):
        return None
    if _piles_up(content, grammar.language):
        return None
    return _parsed(grammar, content)


def _with_joined_brackets(content: bytes) -> bytes:
    """Python with blanks in place of the comments and the ends of lines that are in brackets; as many bytes."""
    depth = 0

    def joined(found: re.Match[bytes]) -> bytes:
        nonlocal depth
        text = found[0]
        if text in b"([{":
            depth += 1
        elif text in b")]}":
            depth = max(0, depth - 1)
        elif depth and text[:1] in b"#\n":
            return b" " * len(text)
        return text

    return _BRACKETED.sub(joined, content)


def _parsed(grammar: Grammar, content: bytes, *, flawless: bool = False) -> tree_sitter.Tree | None:
    """The same, without a look at the content before it is parsed; `flawless` where an error ends it."""
    reports = 0
    asks_left = _ASKED + _ASKED_PER_PIECE * (len(content) // _PIECE + 1)

    def enough(place: int, has_error: bool) -> bool:
        nonlocal reports
        reports += _AFTER_ERROR if has_error else 1
        return (has_error and flawless) or reports > _REPORTS + place // _BYTES_PER_REPORT or asks_left < 0

    def piece(offset: int, _: object) -> bytes:
        nonlocal asks_left
        asks_left -= 1
        # From there on the file ends here, whatever is asked for, and what is made of it is dropped.
        return content[offset : offset + _PIECE] if asks_left >= 0 else b""

    try:
        tree = grammar.parser.parse(piece, progress_callback=enough)
    except ValueError:
        grammar.parser.reset()
        return None
    return None if asks_left < 0 or _is_wide(tree.root_node) else tree


def _piles_up(content: bytes, language: str) -> bool:
    """Whether a statement, as far as lines tell, has too many operators."""
    if len(_PILING_UP.findall(content)) <= _PILED_MOST:
        return False
    if language != "ruby":
        content = _COMMENTS.sub(b" ", content)
    count, goes_on = 0, False
    for line in content.split(b"\n"):
        text = line.strip()
        if text:
            count = len(_PILING_UP.findall(text)) + (count if goes_on or text[0] in _GOES_ON else 0)
            if count > _PILED_MOST:
                return True
            goes_on = text[-1] in _GOES_ON
    return False


def _is_wide(root: tree_sitter.Node) -> bool:
    """Whether an error in the tree is too wide for a query."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.has_error:
            if node.is_error and node.child_count > _WIDEST_ERROR:
                return True
            pending += [child for child in node.children if child.has_error]
    return False


def captures(grammar: Grammar, tree: tree_sitter.Tree) -> dict[str, list[tree_sitter.Node]]:
    """What the query captures, by name."""
    return _cursor(grammar).captures(tree.root_node)


def matches(grammar: Grammar, tree: tree_sitter.Tree) -> list[dict[str, list[tree_sitter.Node]]]:
    """What each match of the query captures."""
    return [found for _, found in _cursor(grammar).matches(tree.root_node)]


def _cursor(grammar: Grammar) -> tree_sitter.QueryCursor:
    import tree_sitter

    cursor = tree_sitter.QueryCursor(grammar.query)
    cursor.set_max_start_depth(_DEEPEST)
    return cursor

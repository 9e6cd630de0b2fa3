"""The languages that are known here: by which names their files go, and who parses them.

Rules.  A file's name alone decides its language.  A grammar is loaded when the first file of its language is met.

What is asked of a tree stands in `queries`, in tree-sitter's query language.  Captures say what a node is, whatever the
language:

- ``def.KIND``: a symbol of that kind; with it ``name``, and ``body`` where it has one (else the signature is all of
  it).  ``scope`` is what symbols are in without being one (Rust's ``impl``).
- ``based`` and ``base``: a symbol, and something that it inherits from or implements.
- ``call``: what is called, or for some languages the node of the call.
- ``import``: a node that says where names come from.

Patterns are separated by empty lines: one that a version of a grammar does not know is left out alone, which the tests
of that language notice.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

import attrs

from toolrt.errors import MissingExtra

if TYPE_CHECKING:
    import tree_sitter


_QUERIES = resources.files("toolrt.plugins.code").joinpath("queries")


@attrs.frozen
class Language:
    """One language."""

    #: What it is called.
    name: str
    #: The endings of its files, dot included.
    endings: tuple[str, ...]
    #: The package of its grammar, and the function in it.
    package: str
    function: str
    #: What is asked of a tree.
    query: str
    #: Languages whose files may call each other have one family.
    family: str = ""

    @property
    def related(self) -> str:
        """The family, or the language itself."""
        return self.family or self.name


def _language(
    name: str, *endings: str, asked: Sequence[str] = (), package: str = "", function: str = "language", family: str = ""
) -> Language:
    """A language whose grammar and query are called as it is, unless said otherwise; `asked` are files in `queries`."""
    texts = [_QUERIES.joinpath(f"{one}.scm").read_text(encoding="utf-8") for one in asked or [name]]
    return Language(name, endings, package or f"tree_sitter_{name}", function, "\n".join(texts), family)


_SCRIPT = ("script", "typescript")
_C_SOURCES = (".cc", ".cpp", ".cxx", ".c++")
_C_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".h++", ".ipp", ".inl")

#: By name.
LANGUAGES = {
    language.name: language
    for language in (
        _language("python", ".py", ".pyi"),
        _language("javascript", ".js", ".jsx", ".mjs", ".cjs", asked=("script", "javascript"), family="javascript"),
        _language(
            "typescript", ".ts", ".mts", ".cts", asked=_SCRIPT, function="language_typescript", family="javascript"
        ),
        _language(
            "tsx", ".tsx", asked=_SCRIPT, package="tree_sitter_typescript", function="language_tsx", family="javascript"
        ),
        _language("go", ".go"),
        _language("rust", ".rs"),
        _language("java", ".java"),
        _language("c", ".c", family="c"),
        # A header may be either's; the grammar of C++ reads both.
        _language("cpp", *_C_SOURCES, *_C_HEADERS, asked=("c", "cpp"), family="c"),
        _language("ruby", ".rb", ".rake", ".gemspec"),
    )
}

_BY_ENDING = {ending: language for language in LANGUAGES.values() for ending in language.endings}


def language_of(path: str) -> Language | None:
    """The language of the file at `path`, by its name, or None: none that is known here."""
    name = path.rpartition("/")[2]
    return _BY_ENDING.get(f".{name.rpartition('.')[2].lower()}") if "." in name else None


@attrs.frozen
class Grammar:
    """What parses a language's files; not for use by two threads at once."""

    parser: tree_sitter.Parser
    query: tree_sitter.Query
    #: The language's name.
    language: str


def grammar_of(language: Language) -> Grammar:
    """A grammar of one's own.

    Raises:
        MissingExtra: the ``code`` extra is not installed.
    """
    try:
        import tree_sitter
    except ImportError:
        raise MissingExtra(f"reading {language.name}", "code") from None
    loaded, query = _loaded(language.name)
    return Grammar(tree_sitter.Parser(loaded), query, language.name)


@functools.cache
def _loaded(name: str) -> tuple[tree_sitter.Language, tree_sitter.Query]:
    import tree_sitter

    language = LANGUAGES[name]
    try:
        package = importlib.import_module(language.package)
    except ImportError:
        raise MissingExtra(f"reading {language.name}", "code") from None
    loaded = tree_sitter.Language(getattr(package, language.function)())
    return loaded, _query(loaded, language.query)


def _query(loaded: tree_sitter.Language, source: str) -> tree_sitter.Query:
    """The query, without the patterns for what this version of the grammar does not have."""
    import tree_sitter

    patterns: Sequence[str] = [pattern for pattern in source.split("\n\n") if pattern.strip()]
    kept = []
    for pattern in patterns:
        try:
            tree_sitter.Query(loaded, pattern)
        except tree_sitter.QueryError:
            continue
        kept.append(pattern)
    return tree_sitter.Query(loaded, "\n".join(kept))

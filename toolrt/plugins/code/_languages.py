"""The languages that are known here: by which names their files go, and who parses them.

Rules.  A file's name alone decides its language.  A grammar is loaded when the first file of its language is met.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from toolrt.errors import MissingExtra
from toolrt.plugins.code import _queries

if TYPE_CHECKING:
    import tree_sitter


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


#: By name.
LANGUAGES = {
    language.name: language
    for language in (
        Language("python", (".py", ".pyi"), "tree_sitter_python", "language", _queries.PYTHON),
        Language(
            "javascript",
            (".js", ".jsx", ".mjs", ".cjs"),
            "tree_sitter_javascript",
            "language",
            _queries.JAVASCRIPT,
            "javascript",
        ),
        Language(
            "typescript",
            (".ts", ".mts", ".cts"),
            "tree_sitter_typescript",
            "language_typescript",
            _queries.TYPESCRIPT,
            "javascript",
        ),
        Language("tsx", (".tsx",), "tree_sitter_typescript", "language_tsx", _queries.TYPESCRIPT, "javascript"),
        Language("go", (".go",), "tree_sitter_go", "language", _queries.GO),
        Language("rust", (".rs",), "tree_sitter_rust", "language", _queries.RUST),
        Language("java", (".java",), "tree_sitter_java", "language", _queries.JAVA),
        Language("c", (".c",), "tree_sitter_c", "language", _queries.C, "c"),
        # A header may be either's; the grammar of C++ reads both.
        Language(
            "cpp",
            (".cc", ".cpp", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".h++", ".ipp", ".inl"),
            "tree_sitter_cpp",
            "language",
            _queries.CPP,
            "c",
        ),
        Language("ruby", (".rb", ".rake", ".gemspec"), "tree_sitter_ruby", "language", _queries.RUBY),
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

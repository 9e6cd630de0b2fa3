"""The facts of any file."""

from __future__ import annotations

import io
import tokenize
from encodings import aliases, normalize_encoding

from toolrt.plugins.code._declared import declared_facts
from toolrt.plugins.code._facts import Facts
from toolrt.plugins.code._languages import Language
from toolrt.plugins.code._parsing import Grammars
from toolrt.plugins.code._python import python_facts


def in_utf8(language: Language | None, content: bytes) -> bytes:
    """The content of a file in UTF-8: of one in Python that names its encoding, as Python reads it; else as it is."""
    if language is None or language.name != "python" or b"coding" not in content[:4096]:
        return content
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        plain = normalize_encoding(encoding).lower()
        # Only names from a fixed list are looked up: some codecs that Python knows take time that is quadratic.
        known = aliases.aliases.get(plain, plain) in aliases.aliases.values()
        return content.decode(encoding).encode() if known and not encoding.startswith("utf-8") else content
    except (SyntaxError, UnicodeError, LookupError):
        return content


def facts_of(grammars: Grammars, language: Language | None, content: bytes) -> Facts:
    """What is known of a file with this content, in UTF-8; of one in no known language, how many lines it has.

    Raises:
        MissingExtra: the ``code`` extra is not installed.
    """
    lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    if language is None:
        return Facts("", lines)
    grammar = grammars.of(language)
    if language.name == "python":
        return python_facts(grammar, content, lines)
    return declared_facts(language, grammar, content, lines)

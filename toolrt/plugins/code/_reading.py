"""The facts of any file."""

from __future__ import annotations

from toolrt.plugins.code._declared import declared_facts
from toolrt.plugins.code._facts import Facts
from toolrt.plugins.code._languages import Language
from toolrt.plugins.code._parsing import Grammars
from toolrt.plugins.code._python import python_facts


def facts_of(grammars: Grammars, language: Language | None, content: bytes) -> Facts:
    """What is known of a file with this content; of one in no known language, how many lines it has.

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

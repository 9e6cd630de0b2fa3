"""Skeletons: a file's signatures, each with its line, in place of its text.

Rules.  A skeleton follows from the path's ending, the text and the room alone.  Where not all signatures fit, the
innermost ones go first, and it says how many.  A file in no known language, one that cannot be parsed, and one without
symbols get their beginning and their end, with a count of what was left out (`toolrt.workspace.head_and_tail`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from toolrt.plugins.code._facts import MODULE, Facts, Symbol
from toolrt.plugins.code._languages import language_of
from toolrt.plugins.code._parsing import PARSED_MOST, Grammars
from toolrt.plugins.code._reading import facts_of
from toolrt.workspace import estimated_tokens, head_and_tail

_local = threading.local()


def grammars_of_thread() -> Grammars:
    """The grammars of the running thread."""
    grammars: Grammars | None = getattr(_local, "grammars", None)
    if grammars is None:
        grammars = _local.grammars = Grammars()
    return grammars


def skeleton(path: str, text: str, budget: int) -> str:
    """The signatures of a file, for ``Workspace(root, skeleton=code.skeleton)``.

    Args:
        path: the file's name; its ending says the language.
        text: all of it.
        budget: how many tokens the answer may have, as `toolrt.workspace.estimated_tokens` counts them.

    Raises:
        MissingExtra: the ``code`` extra is not installed.

    Checkpoint: never.

    Example::

        workspace = Workspace("path/to/repo", skeleton=plugins.code.skeleton)
    """
    language = language_of(path)
    if language is None or len(text) > PARSED_MOST:
        return head_and_tail(path, text, budget)
    facts = facts_of(grammars_of_thread(), language, text.encode("utf-8", "replace"))
    if not facts.symbols:
        return head_and_tail(path, text, budget)
    total = estimated_tokens(text)
    for deepest in range(_depth(facts.symbols), -1, -1):
        lines, left_out = outline(facts, deepest)
        gone = f" {left_out} inner ones are left out." if left_out else ""
        head = (
            f"[{path} has {facts.lines} lines, about {total} tokens; this read may answer {budget}. These are its "
            f"{language.name} signatures, each with its first line.{gone} Read what you need with offset and limit.]"
        )
        made = "\n".join((head, *lines, ""))
        if estimated_tokens(made) <= budget:
            return made
    return head_and_tail(path, text, budget)


def outline(facts: Facts, deepest: int | None = None) -> tuple[list[str], int]:
    """The signatures, a line each, and how many are left out that lie deeper than `deepest`."""
    width = len(str(facts.lines))
    depths = _depths(facts.symbols)
    lines = [
        f"{symbol.line:>{width}}  {'  ' * depth}{symbol.signature}"
        for symbol, depth in zip(facts.symbols, depths, strict=True)
        if deepest is None or depth <= deepest
    ]
    return lines, len(facts.symbols) - len(lines)


def _depth(symbols: Sequence[Symbol]) -> int:
    return max(_depths(symbols))


def _depths(symbols: Sequence[Symbol]) -> list[int]:
    depths: list[int] = []
    for symbol in symbols:
        depths.append(0 if symbol.parent == MODULE else depths[symbol.parent] + 1)
    return depths

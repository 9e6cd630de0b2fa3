r"""Text from outside, made fit for a terminal.

Rules.  A tool's output, a path and a model's input are data: no character of them may move the cursor, change a
colour, reverse the line or pretend to be a line of ours.  What a terminal would act on is shown as Python would
write it, ``\x1b``; a space of any width stays, a tab becomes spaces.
"""

from __future__ import annotations

import unicodedata

#: Longer lines are cut; the terminal wraps what is left.
_LINE = 500

_TAB = "    "


def on_one_line(text: str, width: int = _LINE) -> str:
    """`text` as one line of at most `width` characters; line breaks are written out."""
    # Nothing behind the cut is looked at: the text may have megabytes.
    shown = _escaped(text[: width + 1].replace("\t", _TAB))
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def shown_lines(text: str, most: int) -> tuple[list[str], int]:
    """The first `most` lines of `text`, each as `on_one_line` gives it, and how many were left out."""
    lines = text.removesuffix("\n").split("\n", most)
    rest = lines[most].count("\n") + 1 if len(lines) > most else 0
    return [on_one_line(line.removesuffix("\r")) for line in lines[:most]], rest


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if _is_harmless(character) else _written(character) for character in text)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _written(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")

"""The words of the gallery that a newcomer may not know, and what they mean.

Rules.  A word that the documentation's glossary has means the same there, in the same sentence.  Trio's words are
explained as far as the programs use them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import resources

#: Each word, the other forms in which texts have it, and its meaning.
_WORDS = [
    [cell.strip() for cell in row.split(" | ")]
    for row in resources.files("toolrt.teaching.play").joinpath("words.txt").read_text(encoding="utf-8").splitlines()
]


def words_in(texts: Iterable[str]) -> list[list[str]]:
    """Give each word that is in `texts`, by its forms: the word, its forms with ``|`` between, its meaning."""
    text = "\n".join(texts)
    found = []
    for word, others, meaning in _WORDS:
        forms = "|".join(filter(None, (word, others)))
        if re.search(rf"\b(?:{forms})\b", text, re.IGNORECASE):
            found.append([word, forms, meaning])
    return found

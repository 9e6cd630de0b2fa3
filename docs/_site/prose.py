"""The words of a Markdown page, without its code."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["outside_code"]

#: A fenced block, or a span of code within a paragraph.
_CODE = re.compile(r"^(```+|~~~+).*?^\1|(?<!`)(`+)(?!`)(?:[^\n]|\n(?!\n))*?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The page `text` with `change` made to all that stands between its code."""
    parts, end = [], 0
    for code in _CODE.finditer(text):
        parts += [change(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, change(text[end:])])

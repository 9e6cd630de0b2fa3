"""Examples of pages that can be tried in the playground.

Rules.  An example with ``<!-- try it -->`` below it is a program by itself.  One with ``<!-- try it with what is above
-->`` goes on from the page's Python above it, which its program has, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["examples", "with_links"]

_BLOCK = re.compile(r"^```python\n((?:(?!^```).)*)^```\n", re.MULTILINE | re.DOTALL)
_TRY_IT = re.compile(_BLOCK.pattern + r"\n?<!-- try it( with what is above)? -->", _BLOCK.flags)


def examples(text: str) -> list[str]:
    """Give the program of each example of a page that can be tried."""
    return [_program(text, found) for found in _TRY_IT.finditer(text)]


def with_links(text: str, link: Callable[[str], str]) -> str:
    """Give the page with a link in place of each mark; `link` makes one of a program."""

    def linked(found: re.Match[str]) -> str:
        return f"```python\n{found[1]}```\n\n{link(_program(text, found))}"

    return _TRY_IT.sub(linked, text)


def _program(text: str, found: re.Match[str]) -> str:
    above = _BLOCK.findall(text[: found.start()]) if found[2] else []
    return "\n\n".join([*above, found[1]])

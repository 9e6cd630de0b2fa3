"""Values and texts of a trace, made short enough to look at.

Rules.  A text that is cut says how many characters are left out; so does a list, and an object, that is.  This
module escapes nothing: each format does that itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from toolrt.trace import plain

#: Of a text so many characters are shown.
MOST_TEXT = 400

#: Of a list or an object so many members are shown, and so many levels.
_MOST_MEMBERS = 50
_MOST_LEVELS = 8


def short_text(text: str, most: int = MOST_TEXT) -> str:
    """Give `text`, or its beginning and how many characters are left out."""
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,} characters)"


def short(value: Any, levels: int = _MOST_LEVELS) -> Any:
    """Give a JSON value whose texts, lists and objects are short."""
    if isinstance(value, str):
        return short_text(value)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        # A number that a browser cannot hold exactly is shown as it is written.
        return value if abs(value) < 2**53 else short_text(_digits(value), 60)
    if levels == 0:
        return "…"
    if isinstance(value, list | tuple):
        members = [short(member, levels - 1) for member in value[:_MOST_MEMBERS]]
        return members if len(value) <= _MOST_MEMBERS else [*members, f"… (+{len(value) - _MOST_MEMBERS:,})"]
    if isinstance(value, Mapping):
        items = list(value.items())
        kept = {short_text(str(key), 80): short(member, levels - 1) for key, member in items[:_MOST_MEMBERS]}
        if len(items) > _MOST_MEMBERS:
            kept["…"] = f"+{len(items) - _MOST_MEMBERS:,}"
        return kept
    return short(plain(value), levels)


def _digits(number: int) -> str:
    # Python refuses to write thousands of digits.
    return str(number) if number.bit_length() < 4_000 else hex(number)


def one_line(text: str, most: int = 60) -> str:
    """Give `text` as one line of at most `most` characters, with everything written out that a terminal acts on."""
    cut = text[: most + 1]
    written = "".join(
        each
        if each.isprintable() or unicodedata.category(each) == "Zs"
        else each.encode("unicode_escape", "backslashreplace").decode("ascii")
        for each in cut
    )
    return written if len(written) <= most else f"{written[: most - 1]}…"

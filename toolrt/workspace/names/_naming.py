r"""Decides how a file's name is shown, and what a shown name means.

Rules.  Most names are shown as they are.  A part of a path that could deceive is quoted as git quotes names: in double
quotes, with ``\n``, ``\t``, ``\"``, ``\\`` and three octal digits for each other byte (``"caf\351"``, ``"a\nb"``).
Such are:
    - names with bytes that are no UTF-8 (half a surrogate pair in Python), with control characters, or with characters
      that cannot be seen or that turn the line around;
    - names that look like the beginning of an answer's line (``a.py:10: x``);
    - names that begin with a double quote;
    - the first name of a path that looks like a note (``(3 more)``).
A path that begins with ``~`` is shown with ``./`` before it.

`meant_path` undoes this, also in a path that was put together from such names (``d/"a\nb"``), or that is quoted as a
whole, as git does (``"d/a\nb"``).  Quotes without a backslash between them are part of the name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_ESCAPES = {'"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LETTERS = {character: f"\\{letter}" for letter, character in _ESCAPES.items()}

_ESCAPE = re.compile(r'\\([0-3][0-7]{2}|["\\abfnrtv])')

#: A quoted part of a path, or several parts.
_QUOTED = re.compile(r'(?:(?<=/)|^)"((?:[^"\\]|\\(?:[0-3][0-7]{2}|["\\abfnrtv]))*)"(?=/|\Z)')

#: What an answer has behind a path: a line's number.
_LIKE_A_LINE = re.compile(r":\d+:? ")

#: A path of printable characters is shown as it is if it has none of these, and begins with none of those.
_MAY_DECEIVE, _DECEIVES_FIRST = re.compile('[":]').search, ("(", "~")


def shown_path(path: str) -> str:
    """A relative `path` as answers, errors and screens show it: one line that UTF-8 can encode; see `meant_path`."""
    return shown_at(path.split("/"))


def shown_at(entry: Sequence[str]) -> str:
    """As `shown_path`, for the names that lead to a file; none are the workspace's root."""
    path = "/".join(entry)
    if path.isprintable() and path and not path.startswith(_DECEIVES_FIRST) and _MAY_DECEIVE(path) is None:
        return path
    parts = [shown_part(name) for name in entry]
    if path.startswith("(") and path.endswith(")"):
        parts[0] = _quoted(entry[0])
    if entry and entry[0] == "~":
        parts.insert(0, ".")
    return "/".join(parts) or "."


def shown_part(name: str) -> str:
    """As `shown_path`, for one name in a listing."""
    plain = name.isprintable() or all(map(_is_harmless, name))
    if plain and not name.startswith('"') and (":" not in name or _LIKE_A_LINE.search(name) is None):
        return name
    return _quoted(name)


def _quoted(name: str) -> str:
    return f'"{"".join(map(_written, name))}"'


def meant_path(text: str) -> str:
    """The path that was shown as `text`, or one that a model wrote in that way; any other text is itself."""
    if '"' not in text or "\\" not in text:
        return text
    return _QUOTED.sub(lambda quoted: unquoted(quoted[1]) if "\\" in quoted[1] else quoted[0], text)


def encodable(text: str) -> str:
    r"""The `text` with each half of a surrogate pair written out (``\udce9``), so that UTF-8 can encode it."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _written(character: str) -> str:
    known = _LETTERS.get(character)
    if known is not None:
        return known
    if character not in ":(" and _is_harmless(character):
        return character
    try:
        encoded = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        encoded = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in encoded)


def unquoted(text: str) -> str:
    """What stands between two quotes, without its escapes."""
    # Bytes are quoted, so they are put together first.
    pieces, done = bytearray(), 0
    for escape in _ESCAPE.finditer(text):
        pieces += text[done : escape.start()].encode("utf-8", "surrogatepass")
        found = escape[1]
        pieces += _ESCAPES[found].encode() if found in _ESCAPES else bytes([int(found, 8)])
        done = escape.end()
    pieces += text[done:].encode("utf-8", "surrogatepass")
    return pieces.decode("utf-8", "surrogateescape")

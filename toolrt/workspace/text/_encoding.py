"""Encodes and decodes text, and recognises the marks that name a file's encoding.

Rules.  A file that begins with the byte order mark of UTF-8, UTF-16 or UTF-32 has that encoding; any other is
UTF-8 unless the caller names one.  Nothing is guessed.  The mark is part of the text (U+FEFF, its first character),
so a text that is written back gives the same bytes.  A text is taken for one only when encoding it again gives
exactly the bytes it was read from: so no edit can change what it did not touch.

Theory.  The marks of UTF-32 LE and UTF-16 LE begin alike; the longer one is tried first, as a text that begins
with NUL is none of ours.

Limits.  Encodings that keep a state between characters (UTF-7, ISO-2022) are not among those that can be named: an
edit in such a text may change what the bytes after it mean.
"""

from __future__ import annotations

import codecs
import functools
from encodings import aliases, normalize_encoding

from toolrt._plain import counted
from toolrt.workspace._problem import FileProblem

#: The byte order mark, as it is in a text.
MARK = "\ufeff"

#: The encoding of a file without a byte order mark, unless the caller names another.
DEFAULT = "utf-8"

#: The encodings that a byte order mark tells, the longer mark first.  UTF-8's mark changes nothing: it is UTF-8.
_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

#: What each of these marks begins with: most files have none of them.
_FIRST = tuple(mark[:2] for mark, _ in _MARKS)

#: Names that Python knows and that are no encoding of a text file: codecs between bytes, escapes, what depends on
#: the machine, and those with a state.
_NOT_FOR_FILES = {
    "base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec", "zlib_codec", "mbcs", "oem",
    "utf_7", "hz", "iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_2004", "iso2022_jp_3",
    "iso2022_jp_ext", "iso2022_kr",
}  # fmt: skip

_KNOWN = frozenset(aliases.aliases.values()) - _NOT_FOR_FILES

#: The encodings that write a mark of their own accord; here the mark is the text's, so the order must be named.
_ORDERED = {"utf_16": "utf_16_le", "utf_32": "utf_32_le"}


def encoding_of(content: bytes) -> str | None:
    """The encoding that the byte order mark of `content` tells, or None: there is none, or it is UTF-8's."""
    if not content.startswith(_FIRST):
        return None
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    return None


def named(path: str, encoding: str | None) -> str | None:
    """The encoding that a caller named, as Python knows it; None for None.

    Raises:
        FileProblem: there is no such encoding for files.
    """
    if encoding is None:
        return None
    found = _found(encoding) if len(encoding) <= 40 else None
    if found is None:
        raise FileProblem(
            path,
            "the name of a text encoding",
            repr(encoding[:40]),
            "Use one such as utf-8, utf-16-le, latin-1, cp1252, shift_jis, gb18030, or leave encoding away.",
        )
    return found


@functools.lru_cache(maxsize=128)
def _found(encoding: str) -> str | None:
    # Only names from a fixed list ever reach Python's own look-up, which remembers all it was ever asked for.
    if not encoding.isascii():
        return None
    plain = normalize_encoding(encoding).lower()
    known = aliases.aliases.get(plain, plain)
    return _ORDERED.get(known, known).replace("_", "-") if known in _KNOWN else None


def decoded(path: str, content: bytes, encoding: str | None = None) -> str:
    """The text of `content`, byte order mark included, so that `encoded` gives the same bytes.

    Args:
        path: the file, for messages.
        encoding: as `named` gave it; None is what the mark says, else UTF-8.

    Raises:
        FileProblem: it is not text in that encoding; says its size.
    """
    used = encoding or encoding_of(content) or DEFAULT
    shown = used.upper()
    try:
        text = content.decode(used)
    except UnicodeDecodeError as error:
        nul = content.find(b"\0")
        if used == DEFAULT and nul >= 0:
            got = f"{counted(len(content), 'byte')} of binary data (NUL at byte {nul})"
        else:
            got = f"{counted(len(content), 'byte')} that are not {shown} (at byte {error.start})"
    else:
        if "\0" in text:
            got = f"{counted(len(content), 'byte')} of binary data (NUL at byte {content.find(bytes(1))})"
        elif used != DEFAULT and not _returns(text, used, content):
            got = f"{counted(len(content), 'byte')} that {shown} cannot give back exactly"
        else:
            return text
    remedy = (
        "Files that are not text are not read or edited; if it is text, name its encoding (encoding='cp1252', say)."
    )
    raise FileProblem(path, f"{shown} text", got, remedy)


def _returns(text: str, encoding: str, content: bytes) -> bool:
    try:
        return text.encode(encoding) == content
    except UnicodeEncodeError:
        return False


def encoded(path: str, text: str, what: str, encoding: str | None = None) -> bytes:
    """The bytes of `text`.

    Raises:
        FileProblem: it has a NUL character, or one that the encoding does not have, such as half a surrogate pair,
            so it could not be read back; `what` says whose text it is.
    """
    used = encoding or DEFAULT
    if "\0" in text:
        raise FileProblem(path, f"text as {what}", "a NUL character in it", "Only text is written.")
    try:
        return text.encode(used)
    except UnicodeEncodeError as error:
        if "\ud800" <= text[error.start] <= "\udfff":
            raise FileProblem(
                path,
                f"Unicode text as {what}",
                f"half a surrogate pair at character {error.start}",
                "Use whole characters.",
            ) from None
        raise FileProblem(
            path,
            f"{used.upper()} text as {what}, as the file is",
            f"{text[error.start]!r} at character {error.start}, which that encoding does not have",
            "Use characters that it has.",
        ) from None

"""What an exception's text may show of the machine: nothing above the workspace and nothing beside it.

Rules.  A path inside the workspace is shown relative to its root; any other absolute path, any that begins with ``~``
and any that climbs out by ``..`` becomes "the path".  An `OSError` is told by its reason and, if that is inside, its
file.  What is left of a text is shown as it is: it is how a model finds out what it did wrong.

Limits.  A text does not say where a path ends.  One in quotes ends with them; any other that may not be shown ends
at the line's end or at a colon, semicolon or comma with a space behind it, so a reason that follows is kept, and a
name that has such a mark in it is cut there.  A path on the web (``https://``) is left alone.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable

from toolrt.workspace._problem import UNSHOWN, FileProblem

__all__ = ["describe_error", "without_private_paths"]

#: What a path that is not in quotes goes on to, where it must not be shown.
_TO_ITS_END = r"(?:(?![:;,](?:\s|$))[^\n'\"`])*"

#: Where a path begins that may not be shown, unless it turns out to be inside.
_BEGIN = (
    r"(?:[A-Za-z][A-Za-z0-9+.\-]*:/)?/(?=[^\s/])|(?:[A-Za-z][A-Za-z0-9+.\-]*:)/{2,}|~[\w.\-]*/|[A-Za-z]:\\|\\\\(?=\w)"
)

#: A relative path that nothing else can be meant by.
_PLAIN = re.compile(r"[\w.\-]+(?:/[\w.\-]*)*(?=[,;:)]?$)")


def describe_error(root: str, error: BaseException, homes: Iterable[str] = ()) -> str:
    """An exception in one line, as `toolrt.errors.error_text` has it, without what a model must not see.

    Args:
        root: the workspace's own absolute path.
        homes: other places that are known to be private, wherever in a text they stand.
    """
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe_error(root, member, homes) for member in error.exceptions)
    name = type(error).__name__
    if isinstance(error, FileProblem):
        return f"{name}: {error}"
    try:
        text = _text_of(root, error, homes)
    except Exception as broken:
        text = f"(its text cannot be made: {type(broken).__name__})"
    return f"{name}: {text}" if text else name


def _text_of(root: str, error: BaseException, homes: Iterable[str]) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return without_private_paths(root, str(error), homes)
    text = without_private_paths(root, str(error.strerror), homes)
    names = [name for name in (error.filename, error.filename2) if isinstance(name, str | bytes | os.PathLike)]
    shown = [_shown(root, os.fsdecode(name)) for name in names]
    return f"{text}: {' -> '.join(shown)}" if shown else text


def without_private_paths(root: str, text: str, homes: Iterable[str] = ()) -> str:
    """The `text` with paths inside `root` relative to it, and no other path of the machine, nor of `homes`."""
    private = {place.rstrip("/") for place in (root, *homes)}
    # Longest first: of two that begin alike, the root must be found before the home it is in.
    known = "|".join(re.escape(place) for place in sorted(private, key=lambda place: (-len(place), place)) if place)
    anywhere = f"(?P<known>{known})(?![\\w.\\-])|" if known else ""
    pattern = re.compile(
        r"(?P<web>\bhttps?://\S*)"
        r"|(?P<quote>['\"`])(?P<quoted>(?:"
        + _BEGIN
        + r"|(?:(?!(?P=quote))[^\n])*?\.\./)(?:(?!(?P=quote))[^\n])*)(?P=quote)"
        r"|" + anywhere + r"(?<![\w./\\~\-])(?!(?<=<)/[\w:\-]+>)(?P<bare>" + _BEGIN + r")"
        r"|(?<![\w./~\-])(?P<climbing>(?:[^\s'\"`:;,=(<>\[{|]*/)?\.\./)",
    )
    shown: list[str] = []
    at = 0
    while (found := pattern.search(text, at)) is not None:
        shown.append(text[at : found.start()])
        at = found.end()
        if found["web"]:
            shown.append(found["web"])
        elif found["quote"]:
            shown.append(f"{found['quote']}{_shown(root, found['quoted'])}{found['quote']}")
        else:
            path, at = _unquoted(root, text, found.start())
            shown.append(path)
    return "".join(shown) + text[at:]


def _unquoted(root: str, text: str, begin: int) -> tuple[str, int]:
    """What to show for the path that begins at `begin`, and where the text goes on."""
    root = root.rstrip("/")
    # The root may have a space in it; what is below it ends where any word does.
    below = begin + len(root) if root and text.startswith(root, begin) else begin
    token = re.compile(r"[^\s'\"`]*").match(text, below)
    word = text[begin : token.end()] if token else ""
    if word == root or word.startswith(root + "/"):
        # Only the root is taken away: whatever the path's end is, all of it is inside.
        if ".." not in word.split("/"):
            return ("", begin + len(root) + 1) if word.startswith(root + "/") else (".", begin + len(root))
    elif word.startswith(root) and not re.match(r"[\w.\-]", word[len(root)]):
        return ".", begin + len(root)
    elif (plain := _PLAIN.match(word)) is not None and not _climbs(plain.group()):
        return plain.group(), begin + plain.end()
    end = re.compile(_TO_ITS_END).match(text, begin)
    return UNSHOWN, max(end.end() if end else begin, begin + 1)


def _climbs(path: str) -> bool:
    normal = posixpath.normpath(path)
    return normal == ".." or normal.startswith("../")


def _shown(root: str, path: str) -> str:
    """One whole path: relative to the root if it is inside."""
    if not path.startswith("/"):
        private = re.match(_BEGIN, path) is not None or path.startswith("~") or _climbs(path)
        return UNSHOWN if private else path
    normal, root = posixpath.normpath(path), posixpath.normpath(root)
    if normal == root:
        return "."
    inside = normal.startswith(root.rstrip("/") + "/")
    return posixpath.relpath(normal, root) if inside else UNSHOWN

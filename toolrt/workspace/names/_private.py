"""Removes from an exception's text every path above or beside the workspace.

Rules.  A path inside the workspace is shown relative to its root, one below a mount behind the mount's name; any other
absolute path, any that begins with ``~`` and any that climbs out by ``..`` becomes "the path".  An `OSError` shows
its reason and, if that is inside, its file.  What is left of a text is shown as it is: it is how a model finds out what
it did wrong.

The file tools need none of this: what they say is made from names in the workspace and from numbers of errors.  It is
for texts that others made: exceptions of tools that a program adds to a workspace, messages of language servers, what
telemetry gets.

Limits.  No such text can be promised to be without private paths.  A text does not say where a path ends.  One in
quotes ends with them; any other that may not be shown ends at the line's end or at a colon, semicolon or comma with a
space behind it, so a reason that follows is kept, and a name that has such a mark in it is cut there.  A path on the
web (``https://``) is left alone.  A path that follows a word at once is found behind an option of one letter
(``-I/usr/include``), and elsewhere if the workspace, a mount or a home is above it; not one that is a single name, such
as ``/data``, which ``src/data`` is not.  Behind a letter that is not of ASCII, as of a script that parts no words, it
is found if it begins as paths of machines do (``/home/``, ``/srv/``).
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

from toolrt.workspace._problem import UNSHOWN, FileProblem
from toolrt.workspace.disk._disk import NO_MOUNTS
from toolrt.workspace.names._naming import encodable, shown_path

#: What a path that is not in quotes goes on to, where it must not be shown.
_TO_ITS_END = r"(?:(?![:;,](?:\s|$))[^\n'\"`])*"

#: Where a path begins that may not be shown, unless it turns out to be inside; JSON may have a backslash before each
#: slash.
_BEGIN = "|".join(
    (
        r"(?:\\?/)+(?=[^\s/])",
        r"(?:[A-Za-z][A-Za-z0-9+.\-]*:/)?/(?=[^\s/])",
        r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)/{2,}",
        r"~[\w.\-]*/",
        r"[A-Za-z]:\\",
        r"\\\\(?=\w)",
    )
)

#: What a path may not follow: the name, or the path, that it would be a part of.
_ALONE = r"(?<![\w./\\~\-])"

#: The directories that machines have at the top (Filesystem Hierarchy Standard 3.0, and those of macOS).
_TOPS = (
    "Applications|Library|Network|System|Users|Volumes|bin|boot|cores|dev|etc|home|lib|lib32|lib64|media|mnt|nix|opt|"
    "private|proc|root|run|sbin|srv|sys|tmp|usr|var|workspace|workspaces"
)

#: What it may follow at once: an option of one letter.
_OPTION = _ALONE + r"-[A-Za-z]"

#: The root and the mounts, the longest path first: each path without a slash at its end, and what it is called.
_Places = Sequence[tuple[str, str]]

#: A relative path that nothing else can be meant by.
_PLAIN = re.compile(r"[\w.\-]+(?:/[\w.\-]*)*(?=[,;:)]?$)")


def describe_error(
    root: str, error: BaseException, homes: Iterable[str] = (), mounts: Mapping[str, str] = NO_MOUNTS
) -> str:
    """An exception in one line, as `toolrt.errors.error_text` has it, without what a model must not see.

    Args:
        root: the workspace's own absolute path.
        homes: other places that are known to be private, wherever in a text they stand.
        mounts: the absolute paths of its mounts, by name.
    """
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe_error(root, member, homes, mounts) for member in error.exceptions)
    name = type(error).__name__
    if isinstance(error, FileProblem):
        return f"{name}: {error}"
    try:
        text = _text_of(root, error, homes, mounts)
    except Exception as broken:
        text = f"(its text cannot be made: {type(broken).__name__})"
    return encodable(f"{name}: {text}" if text else name)


def _text_of(root: str, error: BaseException, homes: Iterable[str], mounts: Mapping[str, str]) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return without_private_paths(root, str(error), homes, mounts)
    text = without_private_paths(root, str(error.strerror), homes, mounts)
    names = [name for name in (error.filename, error.filename2) if isinstance(name, str | bytes | os.PathLike)]
    places = _places(root, mounts)
    shown = [shown_path(_shown(places, os.fsdecode(name))) for name in names]
    return f"{text}: {' -> '.join(shown)}" if shown else text


def without_private_paths(
    root: str, text: str, homes: Iterable[str] = (), mounts: Mapping[str, str] = NO_MOUNTS
) -> str:
    """The `text` with paths of the workspace relative to it, and no other path of the machine, nor of `homes`.

    Args:
        root: the workspace's own absolute path.
        homes: other places that are known to be private, wherever in a text they stand.
        mounts: the absolute paths of its mounts, by name.
    """
    places = _places(root, mounts)
    private = {place.rstrip("/") for place in (root, *mounts.values(), *homes)}
    # Longest first: of two that begin alike, the root must be found before the home it is in.
    known = sorted((place for place in private if place), key=lambda place: (-len(place), place))
    deep = "|".join(re.escape(place) for place in known if place.count("/") > 1)
    flat = "|".join(re.escape(place) for place in known if place.count("/") == 1)
    pattern = re.compile(
        r"(?P<web>\bhttps?://\S*)"
        r"|(?P<quote>['\"`])(?P<quoted>(?:"
        + _BEGIN
        + r"|(?:(?!(?P=quote))[^\n])*?\.\./)(?:(?!(?P=quote))[^\n])*)(?P=quote)|"
        + (f"(?:{deep})(?![\\w.\\-])|" if deep else "")
        + (f"(?:(?<![\\w.\\-])|(?<={_OPTION}))(?:{flat})(?![\\w.\\-])|" if flat else "")
        + rf"(?:{_ALONE}|(?<={_OPTION}))(?!(?<=<)/[\w:\-]+>)(?:{_BEGIN})"
        rf"|(?<=[^\x00-\x7F])/(?=(?:{_TOPS})/)"
        r"|(?<![\w./~\-])(?:[^\s'\"`:;,=(<>\[{|]*/)?\.\./",
    )
    shown: list[str] = []
    at = 0
    while (found := pattern.search(text, at)) is not None:
        shown.append(text[at : found.start()])
        at = found.end()
        if found["web"]:
            shown.append(found["web"])
        elif found["quote"]:
            shown.append(f"{found['quote']}{_shown(places, found['quoted'])}{found['quote']}")
        else:
            path, at = _unquoted(places, text, found.start())
            shown.append(path)
    return "".join(shown) + text[at:]


def _places(root: str, mounts: Mapping[str, str]) -> _Places:
    if not mounts:
        return ((root.rstrip("/"), ""),)
    found = [(root.rstrip("/"), ""), *((path.rstrip("/"), name) for name, path in mounts.items())]
    return sorted(found, key=lambda place: (-len(place[0]), place))


def _unquoted(places: _Places, text: str, begin: int) -> tuple[str, int]:
    """What to show for the path that begins at `begin`, and where the text goes on."""
    if text.startswith("//", begin):
        begin += _slashes_at(text, begin) - 1
    for root, name in places:
        if not text.startswith(root, begin):
            continue
        # The root may have a space in it; what is below it ends where any word does.
        end = begin + len(root)
        below = _word_at(text, end)
        if below.startswith("/"):
            if ".." in below.split("/"):
                break
            # Only the root is taken away: whatever the path's end is, all of it is inside.
            return f"{name}/" if name else "", end + _slashes_at(text, end)
        if root and not re.match(r"[\w.\-]", below):
            return name or ".", end
    else:
        plain = _PLAIN.match(_word_at(text, begin))
        if plain is not None and not _climbs(plain.group()):
            return plain.group(), begin + plain.end()
    found = re.compile(_TO_ITS_END).match(text, begin)
    return UNSHOWN, max(found.end() if found else begin, begin + 1)


def _slashes_at(text: str, begin: int) -> int:
    end = begin
    while text.startswith("/", end):
        end += 1
    return end - begin


def _word_at(text: str, begin: int) -> str:
    found = re.compile(r"[^\s'\"`]*").match(text, begin)
    return found.group() if found else ""


def _climbs(path: str) -> bool:
    normal = posixpath.normpath(path)
    return normal == ".." or normal.startswith("../")


def _shown(places: _Places, path: str) -> str:
    """One whole path: from the root if it is inside."""
    if path.startswith("\\/"):
        path = path.replace("\\/", "/")
    if path.startswith("//"):
        path = path[_slashes_at(path, 0) - 1 :]
    if not path.startswith("/"):
        private = re.match(_BEGIN, path) is not None or path.startswith("~") or _climbs(path)
        return UNSHOWN if private else path
    normal = posixpath.normpath(path)
    for root, name in places:
        root = posixpath.normpath(root or "/").rstrip("/")
        if normal == (root or "/"):
            return name or "."
        if normal.startswith(f"{root}/"):
            return posixpath.join(name, normal[len(root) + 1 :])
    return UNSHOWN

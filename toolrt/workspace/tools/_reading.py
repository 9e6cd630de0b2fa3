"""The tools that read one file or one directory."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from functools import partial

from toolrt._plain import counted
from toolrt.model import READ, Image
from toolrt.model._content import picture_type
from toolrt.workspace._problem import FileProblem, from_os_error
from toolrt.workspace.change._held import FileAccess, held, missing
from toolrt.workspace.change._mutation import SIZE_LIMIT, in_thread
from toolrt.workspace.change._revision import CallContext
from toolrt.workspace.disk._disk import Entry, Kind, Snapshot, Stat
from toolrt.workspace.names._at_once import first_names
from toolrt.workspace.names._identity import Wanted
from toolrt.workspace.names._naming import shown_part
from toolrt.workspace.rules._withholding import Withholding, withheld_note, withholding
from toolrt.workspace.text._budget import estimated_tokens, fitted, last_page, page, tokens_of
from toolrt.workspace.text._encoding import MARK, decoded, named
from toolrt.workspace.text._text import check_range, line_count, numbered, slice_of
from toolrt.workspace.tools._large_file import CHARACTERS_MOST, LargeFile
from toolrt.workspace.tools._notebook import parts_of_notebook

#: How many names a listing shows, and of how many levels.
LISTED_MOST = 2000
_DEPTH_MOST = 20


async def read_file(
    workspace: FileAccess,
    ctx: CallContext,
    path: str,
    offset: int | None = None,
    limit: int | None = None,
    line_numbers: bool = False,
    encoding: str | None = None,
    tail: int | None = None,
) -> str | Image | list[str | Image]:
    """Read a text file and return it exactly as it is; a whole PNG, JPEG, GIF or WebP file is shown as a picture, and
    a whole notebook (.ipynb) as its cells, with what they printed and drew.

    path is relative to the working directory, or absolute. With offset (the first line, counted from 1) or
    limit (how many lines) only those lines are returned, with tail only the last so many: of a file of any size, where
    a whole one has at most 10 MiB. With line_numbers each line begins with its number and a tab; these are not part of
    the file. Text is UTF-8, or UTF-16 or UTF-32 with a byte order mark (which is not shown), or what encoding names.
    What is too long is shown in part, and its first line says which lines are left out and how to read them.
    """
    identity = held(workspace, ctx, path, READ)
    chosen = named(identity.path, encoding)
    check_range(identity.path, offset, limit, tail)

    share, most = getattr(ctx, "read_budget", None), getattr(ctx, "max_result", None)
    if most is not None:
        share = min(tokens_of(most), tokens_of(most) if share is None else share)
    whole = offset is None and limit is None and tail is None
    if not whole and identity.found is not None and identity.found.size > SIZE_LIMIT:
        large = LargeFile(workspace, identity, chosen, CHARACTERS_MOST if most is None else min(most, CHARACTERS_MOST))
        return await _lines_of_large(large, identity.path, offset or 1, limit, tail, line_numbers)

    def rendered(found: Snapshot) -> str | Image | tuple[str | Image, ...]:
        if whole and chosen is None and picture_type(found.content) is not None:
            return Image(found.content)
        text = decoded(identity.path, found.content, chosen).removeprefix(MARK)
        if whole and not line_numbers and identity.entry[-1].endswith(".ipynb"):
            parts = parts_of_notebook(text)
            size = sum(estimated_tokens(one) for one in parts or () if isinstance(one, str))
            if parts is not None and (share is None or size <= share):
                return parts if len(parts) > 1 else parts[0]
        first = offset or 1
        if tail is not None:
            first = max(1, line_count(text) - tail + 1)
        text = slice_of(identity.path, text, None if whole else first, limit)
        shown = numbered(text, first) if line_numbers else text
        if whole:
            return fitted(identity.path, text, shown, share, workspace.skeleton, workspace.tokens)
        if most is None:
            return shown
        return page(identity.path, shown, first, most) if tail is None else last_page(identity.path, shown, most)

    # A file that is shown in part says how to read the rest, by the name that was asked for.
    part = (identity.path, offset, limit, tail, line_numbers, chosen, share if whole else most)
    shown = await workspace.files.read_as(ctx, identity, part, rendered)
    return list(shown) if isinstance(shown, tuple) else shown


async def _lines_of_large(
    large: LargeFile, path: str, first: int, limit: int | None, tail: int | None, line_numbers: bool
) -> str:
    """Some lines of a file that is too large to be read as a whole."""
    if tail is None:
        text = (await large.lines(first, limit)).removeprefix(MARK)
        return page(path, numbered(text, first) if line_numbers else text, first, large.most, more=limit is None)
    text, count = await large.last_lines(tail)
    text = text.removeprefix(MARK)
    shown = numbered(text, await large.count() - count + 1) if line_numbers else text
    return last_page(path, shown, large.most)


async def list_dir(workspace: FileAccess, ctx: CallContext, path: str = ".", depth: int = 1) -> str:
    """List what is in a directory, one name a line, sorted.

    path is relative to the working directory, or absolute. A directory's name ends with a slash, a file's is
    followed by its size. With a greater depth the directories in it are listed too, below their names, so many
    levels: the nearer ones first, and none whose names would be too many (use glob for those) or that is a .git.
    """
    if not 1 <= depth <= _DEPTH_MOST:
        raise FileProblem("depth", f"1 to {_DEPTH_MOST}", "another number", "Say how many levels to list.")
    identity = held(workspace, ctx, path, READ, Wanted.DIRECTORY, subtree=True)
    if identity.found is None:
        raise missing(identity)
    rules = withholding(workspace.disk, ctx, identity)
    listed: dict[Entry, list[tuple[str, Stat]]] = {}
    #: Why a directory is not listed.
    unlisted: dict[Entry, str] = {}
    count = withheld = 0
    level = [identity.entry]
    for _ in range(depth):
        for entry in level:
            try:
                # Of each name it is asked whether it is withheld.
                names, found = await first_names(workspace.disk, entry, LISTED_MOST if rules is None else sys.maxsize)
            except OSError as error:
                is_missing = isinstance(error, FileNotFoundError)
                if not listed:
                    raise (missing(identity) if is_missing else from_os_error(identity.path, error)) from None
                if not is_missing:  # else it went meanwhile, by another program
                    unlisted[entry] = "it cannot be read"
                continue
            if listed and count + found > LISTED_MOST:
                unlisted[entry] = counted(found, "name")
                continue
            kept = await in_thread(partial(_sifted, rules, entry, names), blocks=len(names) > LISTED_MOST)
            withheld += len(names) - len(kept)
            count += found - (len(names) - len(kept))
            listed[entry] = kept
        below = ((entry, one) for entry in level for one in listed.get(entry, ()))
        level = [(*entry, name) for entry, (name, stat) in below if stat.kind is Kind.DIRECTORY and name != ".git"]

    def lines_of(entry: Entry, indentation: str) -> Iterator[str]:
        for name, stat in listed[entry]:
            inside = (*entry, name)
            note = f" ({unlisted[inside]})" if inside in unlisted else ""
            yield f"{indentation}{shown_entry(name, stat)}{note}"
            if inside in listed:
                yield from lines_of(inside, f"{indentation}  ")

    lines = list(itertools.islice(lines_of(identity.entry, ""), LISTED_MOST))
    if count > len(lines):
        lines.append(f"({count - len(lines)} more names are not shown; use glob)")
    if withheld:
        lines.append(f"({withheld_note(withheld)})")
    return "\n".join(lines) or f"{identity.path} is empty"


def _sifted(rules: Withholding | None, entry: Entry, names: list[tuple[str, Stat]]) -> list[tuple[str, Stat]]:
    """Those of the names in a directory that may be shown."""
    return [one for one in names if rules is None or rules.why((*entry, one[0]), one[1]) is None]


def shown_entry(name: str, stat: Stat) -> str:
    """A name and what it is, as a listing shows them; never where a link leads, which may be outside."""
    if stat.kind is Kind.DIRECTORY:
        return f"{shown_part(name)}/"
    if stat.kind is Kind.FILE:
        return f"{shown_part(name)} ({stat.size} bytes)"
    return f"{shown_part(name)} ({stat.kind.value})"

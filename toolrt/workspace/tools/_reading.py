"""The tools that read one file or one directory."""

from __future__ import annotations

from toolrt.model import READ, Image
from toolrt.model._content import picture_type
from toolrt.workspace._problem import from_os_error
from toolrt.workspace.change._held import FileAccess, held, missing
from toolrt.workspace.change._revision import CallContext
from toolrt.workspace.disk._disk import Kind, Snapshot, Stat, is_own
from toolrt.workspace.names._identity import Wanted
from toolrt.workspace.names._naming import shown_part
from toolrt.workspace.rules._withholding import withheld_note, withholding
from toolrt.workspace.text._budget import fitted, page, tokens_of
from toolrt.workspace.text._encoding import decoded, named
from toolrt.workspace.text._text import numbered, slice_of

#: How many names a listing shows.
LISTED_MOST = 2000


async def read_file(
    workspace: FileAccess,
    ctx: CallContext,
    path: str,
    offset: int | None = None,
    limit: int | None = None,
    line_numbers: bool = False,
    encoding: str | None = None,
) -> str | Image:
    """Read a text file and return it exactly as it is; a whole PNG, JPEG, GIF or WebP file is shown as a picture.

    path is relative to the working directory, or absolute. With offset (the first line, counted from 1) or
    limit (how many lines) only those lines are returned. With line_numbers each line begins with its number and
    a tab; these are not part of the file. Text of at most 10 MiB is read: UTF-8, or UTF-16 or UTF-32 with a byte
    order mark, or what encoding names. What is too long is shown in part, and its first line says which lines are left
    out and how to read them.
    """
    identity = held(workspace, ctx, path, READ)
    chosen = named(identity.path, encoding)

    share, most = getattr(ctx, "read_budget", None), getattr(ctx, "max_result", None)
    if most is not None:
        share = min(tokens_of(most), tokens_of(most) if share is None else share)
    whole = offset is None and limit is None

    def rendered(found: Snapshot) -> str | Image:
        if whole and chosen is None and picture_type(found.content) is not None:
            return Image(found.content)
        text = slice_of(identity.path, decoded(identity.path, found.content, chosen), offset, limit)
        shown = numbered(text, offset or 1) if line_numbers else text
        if whole:
            return fitted(identity.path, text, shown, share, workspace.skeleton, workspace.tokens)
        return shown if most is None else page(identity.path, shown, offset or 1, most)

    # A file that is shown in part says how to read the rest, by the name that was asked for.
    part = (identity.path, offset, limit, line_numbers, chosen, share if whole else most)
    return await workspace.files.read_as(ctx, identity, part, rendered)


async def list_dir(workspace: FileAccess, ctx: CallContext, path: str = ".") -> str:
    """List what is in a directory, one name a line, sorted.

    path is relative to the working directory, or absolute. A directory's name ends with a slash, a file's is
    followed by its size; what is below the directories is not listed (use glob for that).
    """
    identity = held(workspace, ctx, path, READ, Wanted.DIRECTORY, subtree=True)
    if identity.found is None:
        raise missing(identity)
    try:
        listed = await workspace.disk.names(identity.entry)
    except FileNotFoundError:
        raise missing(identity) from None
    except OSError as error:
        raise from_os_error(identity.path, error) from None
    listed = [(name, stat) for name, stat in listed if not is_own(name)]
    rules, withheld = withholding(workspace.disk, ctx, identity), 0
    if rules is not None:
        allowed = [(name, stat) for name, stat in listed if rules.why((*identity.entry, name), stat) is None]
        withheld, listed = len(listed) - len(allowed), allowed
    lines = [shown_entry(name, stat) for name, stat in listed]
    if len(lines) > LISTED_MOST:
        lines[LISTED_MOST:] = [f"({len(lines) - LISTED_MOST} more names are not shown; use glob)"]
    if withheld:
        lines.append(f"({withheld_note(withheld)})")
    return "\n".join(lines) or f"{identity.path} is empty"


def shown_entry(name: str, stat: Stat) -> str:
    """A name and what it is, as a listing shows them; never where a link leads, which may be outside."""
    if stat.kind is Kind.DIRECTORY:
        return f"{shown_part(name)}/"
    if stat.kind is Kind.FILE:
        return f"{shown_part(name)} ({stat.size} bytes)"
    return f"{shown_part(name)} ({stat.kind.value})"

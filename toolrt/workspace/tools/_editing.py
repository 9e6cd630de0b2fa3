"""The tools that change the text of one file.

Rules.  What depends on a file's content is decided on what is there once every earlier call that may change it has
ended.  A file keeps its encoding and its byte order mark; a new one is UTF-8 unless the call names an encoding.
"""

from __future__ import annotations

import codecs
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolrt._plain import counted
from toolrt.model import WRITE
from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._held import FileAccess, held, missing
from toolrt.workspace.change._revision import CallContext, Revised
from toolrt.workspace.names._identity import Identity
from toolrt.workspace.text._encoding import MARK, decoded, encoded, encoding_of, named
from toolrt.workspace.text._text import Edit, EditResult, check_edit, edited, edited_in_turn

#: How many edits one call may ask for.
_EDITS_MOST = 1000


async def write_file(
    workspace: FileAccess, ctx: CallContext, path: str, content: str, encoding: str | None = None
) -> str:
    """Write a text file: create it, or replace all it has by content, exactly as given.

    path is relative to the working directory, or absolute. Missing directories are created. At most 10 MiB. A
    file with a UTF-16 or UTF-32 byte order mark keeps its encoding; any other is UTF-8, or what encoding names.
    """
    identity = held(workspace, ctx, path, WRITE)
    chosen = named(identity.path, encoding)
    encoded(identity.path, content, "content", chosen)
    revised = await workspace.files.revise(
        ctx, identity, lambda before: written(identity.path, before, content, "content", chosen)
    )
    done = "created" if revised.before is None else "replaced"
    return f"{done} {identity.path} ({counted(len(revised.after or b''), 'byte')}){noted_others([(identity, revised)])}"


def noted_others(changes: Sequence[tuple[Identity, Revised]]) -> str:
    """What an answer says of those among these files that another program changed, or has names of; often nothing."""
    joined = [identity.path for identity, revised in changes if revised.joined]
    noted = ""
    if joined:
        which = "the file" if len(changes) == 1 else ", ".join(joined)
        noted = f". Another program had changed {which} since it was last seen here: what it changed is kept"
    paths = [identity.path for identity, revised in changes if revised.parted]
    if not paths:
        return noted
    own = "this is a file of its own" if len(paths) == 1 else "these are files of their own"
    return (
        f"{noted}. {', '.join(paths)} had other names (hard links) outside the workspace, or not found in it: those "
        f"keep the old content, and {own} now"
    )


async def edit_file(
    workspace: FileAccess,
    ctx: CallContext,
    path: str,
    old: str,
    new: str,
    all: bool = False,
    encoding: str | None = None,
    line: int | None = None,
) -> str:
    """Replace old by new in a text file and leave the rest of it exactly as it is.

    path is relative to the working directory, or absolute. old must be in the file at exactly one place, unless
    all is true: then every place is replaced. Of several places line names the one that begins on it. Line ends of
    the file are kept. If another program changed the file since it was last seen, the edit is made in what stands
    there now if old is at exactly one place of it.
    Text of at most 10 MiB is edited: UTF-8, or UTF-16 or UTF-32 with a byte order mark, or what encoding names.
    """
    identity = held(workspace, ctx, path, WRITE)
    shown, edit = identity.path, Edit(old, new, all, line)
    check_edit(shown, edit)
    (made,), parted = await _edited(
        workspace,
        ctx,
        identity,
        encoding,
        [edit],
        lambda text, exactly: [edited(shown, text, old, new, all, exactly, line)],
    )
    if made.count == 1:
        return f"replaced 1 place in {shown} (line {_lines(made)}){parted}"
    return f"replaced {made.count} places in {shown} (lines {_lines(made)}){parted}"


async def multi_edit(
    workspace: FileAccess, ctx: CallContext, path: str, edits: list[Edit], encoding: str | None = None
) -> str:
    """Make several edits in one text file, in the order given: all of them, or none.

    path is relative to the working directory, or absolute. Each edit replaces old by new as edit_file does, in
    what the edits before it left; with all it replaces every place. line counts as before the call. If any edit
    fails the file stays as it was.
    """
    identity = held(workspace, ctx, path, WRITE)
    wanted = _as_edits(identity.path, edits)
    made, parted = await _edited(
        workspace,
        ctx,
        identity,
        encoding,
        wanted,
        lambda text, exactly: edited_in_turn(identity.path, text, wanted, exactly)[1],
    )
    shown = "; ".join(f"{one.count} at line{'s' if one.count > 1 else ''} {_lines(one)}" for one in made)
    places = sum(one.count for one in made)
    return f"replaced {places} place{'s' if places > 1 else ''} in {identity.path} ({shown}){parted}"


def _as_edits(path: str, edits: Sequence[Edit | Mapping[str, Any]]) -> list[Edit]:
    """The edits; where the input was checked without the ``schema`` extra, each is still a mapping."""
    found = [one if isinstance(one, Edit) else Edit(**one) for one in edits]
    if not 1 <= len(found) <= _EDITS_MOST:
        raise FileProblem(path, f"1 to {_EDITS_MOST} edits", f"{len(found)} edits", "Nothing was changed.")
    for number, edit in enumerate(found, 1):
        check_edit(path, edit, f" in edit {number} of {len(found)}")
    return found


async def _edited(
    workspace: FileAccess,
    ctx: CallContext,
    identity: Identity,
    encoding: str | None,
    edits: Sequence[Edit],
    make: Callable[[str, bool], list[EditResult]],
) -> tuple[list[EditResult], str]:
    """The file is as `make` makes it, whose last result has its text; gives that and what else the answer is to say.

    Where another program has changed the file, each old text has to stand exactly, and at one place.
    """
    path = identity.path
    chosen = named(path, encoding)
    one_place_each = True
    for edit in edits:
        encoded(path, edit.new, "new")
        one_place_each = one_place_each and not edit.all
    made: list[EditResult] = []

    def change(before: bytes | None, exactly: bool = False) -> bytes:
        if before is None:
            raise missing(identity)
        used = chosen or encoding_of(before)
        made[:] = make(decoded(path, before, used), exactly)
        return encoded(path, made[-1].text, "the result", used)

    again = functools.partial(change, exactly=True) if one_place_each else None
    revised = await workspace.files.revise(ctx, identity, change, again)
    return made, noted_others([(identity, revised)])


def _lines(made: EditResult) -> str:
    return ", ".join(map(str, made.lines)) + (", ..." if made.count > len(made.lines) else "")


def written(path: str, before: bytes | None, text: str, what: str, encoding: str | None) -> bytes:
    """The bytes of a file whose whole text is to be `text`, where `before` stands.

    A file keeps its byte order mark, which readers are not shown; and a new one gets one where only that tells its
    encoding.
    """
    marked = None if before is None else encoding_of(before)
    used = encoding or marked
    wide = used is not None and used.startswith(("utf-16", "utf-32"))
    if used in (None, "utf-8") and before is not None and before.startswith(codecs.BOM_UTF8):
        return encoded(path, text if text.startswith(MARK) else MARK + text, what, used)
    if wide and not text.startswith(MARK) and (before is None or marked == used):
        text = MARK + text
    return encoded(path, text, what, used)

"""The tools that find files by name and by content.

Rules.  The answer depends on the files alone, not on which programs are installed, nor on the order in which a disk
lists names.  Links are not followed, so each file is found once, under its own name.  Files that ``.gitignore`` leaves
out are left out, and so is ``.git``; ``.gitignore`` files above the directory count too, and are claimed.  Every path
shown is relative to the working directory, so the other tools take it as it is.

Theory.  A search reads many files and the model sees only some lines of them.  So a search does not mark a file as
seen: it bypasses the freshness memory and the caches of the file service.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Any

from toolrt.model import READ, Claim, State
from toolrt.workspace._problem import FileProblem, from_os_error
from toolrt.workspace.change._held import FileAccess, held, looked_up, missing
from toolrt.workspace.change._mutation import in_thread
from toolrt.workspace.change._revision import CallContext
from toolrt.workspace.disk._disk import DEEPEST, Disk, Entry, Kind, Stat
from toolrt.workspace.disk._real import RealDisk
from toolrt.workspace.finding._ripgrep import KnownFiles, can_help, candidates
from toolrt.workspace.finding._search import SearchPattern, wanted_in
from toolrt.workspace.finding._search_file import FileSearch, noted
from toolrt.workspace.finding._walk import VISITED_MOST, PathsSought, Walk, ignored_above
from toolrt.workspace.names._at_once import at_once, goes_at_once
from toolrt.workspace.names._identity import Identity, Wanted, identify
from toolrt.workspace.names._mounts import located, path_on
from toolrt.workspace.names._naming import shown_path
from toolrt.workspace.rules._ignore import RULES_MOST
from toolrt.workspace.rules._withholding import withheld_note, withholding
from toolrt.workspace.text._encoding import named
from toolrt.workspace.text._text import shown_number

#: How many files `glob` shows.
_GLOBBED_MOST = 1000

#: How many lines a search shows at most, whatever its limit.
_LINES_MOST = 10_000

#: How many lines around a match a search shows at most, and what it can show of the matches.
_CONTEXT_MOST = 100
_SHOWN = ("lines", "files", "counts")

#: From how many files on ripgrep is asked which of the rest to read: what takes longer than starting it.
_RIPGREP_FROM = 200


def claims_of_walk(workspace: FileAccess, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
    """What a walk claims: READ on all below its directory, and on each ``.gitignore`` above it."""
    identity = identify(workspace.disk, input["path"], state.working_dir, Wanted.DIRECTORY)
    claims = dict.fromkeys(identity.claims(READ, subtree=True))
    if not input["ignored"] and identity.key is not None:
        for depth in range(len(identity.entry)):
            path = path_on(workspace.disk, (*identity.entry[:depth], ".gitignore"))
            claims.update(dict.fromkeys(identify(workspace.disk, path, None, Wanted.ENTRY).claims(READ)))
    return tuple(claims)


async def glob(workspace: FileAccess, ctx: CallContext, pattern: str, path: str = ".", ignored: bool = False) -> str:
    """Find files by a pattern for their paths and return them, one a line, sorted.

    The pattern is matched against each path below path: * is any part of a name, ** any number of directories, ?
    one character, [a-z] one of a set, {a,b} either. So **/*.py is every Python file and *.py those directly in
    path. What .gitignore leaves out is not found, unless ignored is true. Directories are not returned.
    """
    base = held(workspace, ctx, path, READ, Wanted.DIRECTORY, subtree=True)
    if base.found is None:
        raise missing(base)
    sought = PathsSought.of(pattern, "pattern")
    names, _, notes = await _walked(workspace, ctx, base, ignored, sought, files_alone=False)
    found = list(map(_path_below(workspace, ctx, base), names[:_GLOBBED_MOST]))
    if len(names) > len(found):
        notes.insert(0, f"{len(names) - len(found)} more are not shown; use a narrower pattern")
    return "\n".join([*(found or ["no file matches"]), *noted(notes)])


async def search(
    workspace: FileAccess,
    ctx: CallContext,
    pattern: str,
    path: str = ".",
    glob: str | None = None,
    literal: bool = False,
    ignore_case: bool = False,
    ignored: bool = False,
    limit: int = 200,
    encoding: str | None = None,
    context: int = 0,
    show: str = "lines",
) -> str:
    r"""Search the lines of text files for a regular expression and return each match as path:line: text.

    path is a directory, searched with all below it, or one file. glob narrows the files by a pattern as the glob
    tool takes; one without a slash is for names at any depth (*.py). With literal the pattern is a plain text; with
    ignore_case upper and lower case are one. The expression may have sets, groups, |, repeats, \d \w \s \b \p{L}, ^
    and $, but no references and no looking around. \n outside of groups goes on to the next line; nothing else does. At
    most limit matching lines are returned.
    With context that many lines around each are shown too, as path-line- text (not of files above 10 MiB). show is
    lines, or files (the paths of those with a match) or counts (each path with its number of matching lines). Files
    are read as UTF-8, or as their byte order mark says, or else as encoding names (latin-1, shift_jis); what cannot be
    read so is named at the end. What .gitignore leaves out is not searched, unless ignored is true.
    """
    base = looked_up(workspace, ctx, path, READ, Wanted.DIRECTORY, subtree=True)
    if base.found is None or base.found.kind is not Kind.FILE or base.key is None:
        if base.problem is not None:
            raise base.problem
        if base.found is None:
            raise missing(base)
    sought = wanted_in(pattern, literal, ignore_case)
    if not 1 <= limit <= _LINES_MOST:
        raise FileProblem("limit", f"1 to {_LINES_MOST}", shown_number(limit), "Say how many lines to show at most.")
    if not 0 <= context <= _CONTEXT_MOST:
        raise FileProblem(
            "context", f"0 to {_CONTEXT_MOST}", shown_number(context), "Say how many lines around a match to show."
        )
    if show not in _SHOWN:
        raise FileProblem("show", "lines, files or counts", repr(show[:40]), "Say what to show of the matches.")
    names = PathsSought.of("**" if glob is None else glob, "glob", names_alone=True)
    around = context if show == "lines" else 0
    path_below = _path_below(workspace, ctx, base)
    used = named("encoding", encoding)
    found = FileSearch(workspace, ctx, base, sought, used, path_below, limit, around, show)
    if base.found.kind is Kind.FILE:
        problem = await found.add(workspace.disk, (), base.found)
        if problem is not None:
            raise problem
        return found.answer([])
    files, stats, notes = await _walked(workspace, ctx, base, ignored, names, files_alone=True)
    await found.add_all(files[:_RIPGREP_FROM], stats)
    rest = files[_RIPGREP_FROM:]
    if rest and found.wants_more:
        wanted, known = await _that_may_have(workspace, base, sought, rest)
        await found.add_all(wanted, stats, None if encoding is not None else known)
    return found.answer(notes)


async def _that_may_have(
    workspace: FileAccess, base: Identity, sought: SearchPattern, files: list[Entry]
) -> tuple[list[Entry], KnownFiles | None]:
    """Those of the files that may have what is sought, by ripgrep, and what is known; all where it cannot help."""
    disk, below = located(workspace.disk, base.entry)
    factor = sought.rarest_factor
    if factor is None or not can_help(factor) or not isinstance(disk, RealDisk) or not goes_at_once(workspace.disk):
        return files, None
    if workspace.disk.mounts and not base.entry:
        return files, None  # it would not see what is mounted
    real = disk
    known = await in_thread(lambda: KnownFiles(real, below, files))
    named = await candidates(path_on(disk, below), factor, texts_alone=known.are_most)
    return (files, None) if named is None else (await in_thread(lambda: known.to_read(named)), known)


def _notes(walk: Walk) -> list[str]:
    notes = []
    if walk.withheld:
        notes.append(withheld_note(walk.withheld))
    if walk.unreadable:
        notes.append(f"{walk.unreadable} directories could not be read")
    if walk.too_deep:
        notes.append(f"{walk.too_deep} directories, more than {DEEPEST} deep, were not looked into")
    if walk.unread_rules:
        notes.append(
            f"{walk.unread_rules} .gitignore patterns beyond the first {RULES_MOST} with wildcards do not count"
        )
    if walk.cut_short:
        notes.append(f"only the first {VISITED_MOST} names were looked at; give a path further down")
    return notes


async def _walked(
    workspace: FileAccess, ctx: CallContext, base: Identity, all_files: bool, sought: PathsSought, files_alone: bool
) -> tuple[list[Entry], Mapping[Entry, Stat], list[str]]:
    """The names of what matches below the directory, looks at them, and notes on the others."""
    withheld = withholding(workspace.disk, ctx, base)

    async def walked(disk: Disk) -> tuple[list[Entry], Mapping[Entry, Stat], list[str]]:
        ignored = None if all_files else await ignored_above(disk, base.entry)
        walk = Walk(disk, base.entry, ignored, sought, withheld)
        return await walk.names(files_alone), walk.stats, _notes(walk)

    try:
        return await at_once(workspace.disk, walked)
    except FileNotFoundError:
        raise missing(base) from None
    except OSError as error:
        raise from_os_error(base.path, error) from None


def _path_below(workspace: FileAccess, ctx: CallContext, base: Identity) -> Callable[[Entry], str]:
    """Shows the path of what is at some names below the directory: relative to the working directory."""
    here = identify(workspace.disk, ".", ctx.state.working_dir, Wanted.DIRECTORY)
    way = posixpath.relpath("/" + "/".join(base.entry), "/" + "/".join(here.entry))
    return lambda names: shown_path("/".join(names if way == "." and names else (way, *names)))

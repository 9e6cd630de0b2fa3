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
from collections.abc import Mapping, Sequence, Set
from typing import Any

import attrs

from toolrt import probe
from toolrt.model import READ, Claim, State
from toolrt.workspace._problem import FileProblem, from_os_error
from toolrt.workspace.change._held import FileAccess, held, looked_up, missing
from toolrt.workspace.change._mutation import SIZE_LIMIT
from toolrt.workspace.change._revision import CallContext
from toolrt.workspace.disk._disk import DEEPEST, Entry, Kind
from toolrt.workspace.disk._real import RealDisk
from toolrt.workspace.finding._ripgrep import candidates
from toolrt.workspace.finding._search import SearchPattern, wanted_in
from toolrt.workspace.finding._search_file import UnsearchedFiles, lines_of_file
from toolrt.workspace.finding._walk import VISITED_MOST, Found, Walk, ignored_above
from toolrt.workspace.names._identity import Identity, KeysBelow, Wanted
from toolrt.workspace.names._mounts import located, path_on
from toolrt.workspace.names._naming import meant_path, shown_path
from toolrt.workspace.rules._ignore import RULES_MOST
from toolrt.workspace.rules._patterns import Glob, PatternRefused, braces_expanded
from toolrt.workspace.rules._withholding import withheld_note, withholding
from toolrt.workspace.text._encoding import named

#: How many files `glob` shows.
_GLOBBED_MOST = 1000

#: How many characters of a line `search` shows.
_CHARACTERS_SHOWN = 300

#: How many lines a search shows at most, whatever its limit.
_LINES_MOST = 10_000

#: From how many files on ripgrep is asked which of the rest to read: what takes longer than starting it.
_RIPGREP_FROM = 200

#: How long a pattern for names may be.
_PATTERN_LONGEST = 1000


def claims_of_walk(workspace: FileAccess, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
    """What a walk claims: READ on all below its directory, and on each ``.gitignore`` above it."""
    identity = workspace.identify(input["path"], state, Wanted.DIRECTORY)
    claims = dict.fromkeys(identity.claims(READ, subtree=True))
    if not input["ignored"] and identity.key is not None:
        for depth in range(len(identity.entry)):
            path = path_on(workspace.disk, (*identity.entry[:depth], ".gitignore"))
            claims.update(dict.fromkeys(workspace.identify(path, None, Wanted.ENTRY).claims(READ)))
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
    patterns = _Patterns.of(pattern, "pattern")
    walk = await _walk(workspace, ctx, base, ignored, patterns)
    found: list[str] = []
    more = 0
    paths = _ShownPaths(workspace, ctx, base)
    while (one := await _next(walk, base)) is not None:
        if one.stat.kind is not Kind.DIRECTORY and patterns.match(one.names):
            if len(found) < _GLOBBED_MOST:
                found.append(paths.path(one.names))
            else:
                more += 1
    notes = _notes(walk)
    if more:
        notes.insert(0, f"{more} more are not shown; use a narrower pattern")
    if not found:
        return "\n".join(["no file matches", *_noted(notes)])
    return "\n".join([*found, *_noted(notes)])


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
) -> str:
    r"""Search the lines of text files for a regular expression and return each match as path:line: text.

    path is a directory, searched with all below it, or one file. glob narrows the files by a pattern as the glob
    tool takes; one without a slash is for names at any depth (*.py). With literal the pattern is a plain text; with
    ignore_case upper and lower case are one. The expression may have sets, groups, |, repeats, \d \w \s \b, ^ and
    $, but no references and no looking around. At most limit lines are returned. Files are read as UTF-8, or as their
    byte order mark says, or else as encoding names (latin-1, shift_jis); what cannot be read so is named at the end.
    What .gitignore leaves out is not searched, unless ignored is true.
    """
    base = looked_up(workspace, ctx, path, READ, Wanted.DIRECTORY, subtree=True)
    if base.found is None or base.found.kind is not Kind.FILE or base.key is None:
        if base.problem is not None:
            raise base.problem
        if base.found is None:
            raise missing(base)
    sought = wanted_in(pattern, literal, ignore_case)
    if not 1 <= limit <= _LINES_MOST:
        raise FileProblem("limit", f"1 to {_LINES_MOST}", _number(limit), "Say how many lines to show at most.")
    names = None if glob is None else _Patterns.of(glob, "glob", names_alone=True)
    chosen = named("encoding", encoding)
    paths = _ShownPaths(workspace, ctx, base)
    unsearched = UnsearchedFiles(lambda entry: paths.path(entry[len(base.entry) :]))
    if base.found.kind is Kind.FILE:
        lines = await lines_of_file(workspace, ctx, base, sought, limit + 1, chosen, unsearched)
        if isinstance(lines, FileProblem):
            raise lines
        return _answer(
            [f"{paths.path(())}:{number}: {_cut(line)}" for number, line in lines], limit, unsearched.notes()
        )
    walk = await _walk(workspace, ctx, base, ignored, names)
    found: list[str] = []
    keys = KeysBelow(workspace.disk, base)
    may_have: Set[Entry] | None = None
    searched = 0
    while len(found) <= limit and (one := await _next(walk, base)) is not None:
        if one.stat.kind is not Kind.FILE or not (names is None or names.match(one.names)):
            continue
        if may_have is not None and one.stat.size <= SIZE_LIMIT and one.names not in may_have:
            continue
        searched += 1
        if searched == _RIPGREP_FROM:
            may_have = await _candidates(workspace, base, sought)
        identity = keys.identity(one.names, one.stat)
        lines = await lines_of_file(workspace, ctx, identity, sought, limit + 1 - len(found), chosen, unsearched)
        if not isinstance(lines, FileProblem):
            found += [f"{paths.path(one.names)}:{number}: {_cut(line)}" for number, line in lines]
    return _answer(found, limit, [*unsearched.notes(), *_notes(walk)])


async def _candidates(workspace: FileAccess, base: Identity, sought: SearchPattern) -> Set[Entry] | None:
    """The files that may have what is sought, by ripgrep; None where it cannot help: then all may."""
    disk, below = located(workspace.disk, base.entry)
    if probe.threads_inline or not sought.literal or not isinstance(disk, RealDisk):
        return None
    if workspace.disk.mounts and not base.entry:
        return None  # it would not see what is mounted
    return await candidates(path_on(disk, below), sought.literal)


def _answer(found: list[str], limit: int, notes: list[str]) -> str:
    if len(found) > limit:
        del found[limit:]
        notes = [f"only the first {limit} lines are shown; search for something narrower", *notes]
    return "\n".join([*(found or ["no line matches"]), *_noted(notes)])


def _number(value: int) -> str:
    return str(value) if abs(value) < 10**20 else "a huge number"


def _cut(line: str) -> str:
    line = line if len(line) <= _CHARACTERS_SHOWN else f"{line[:_CHARACTERS_SHOWN]} ..."
    return line if line.isprintable() else line.translate(_OTHER_LINE_ENDS)


#: What some programs take for the end of a line, though here it is none: an answer has one line for each match.
_OTHER_LINE_ENDS = {ord(end): repr(end)[1:-1] for end in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"}


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


def _noted(notes: list[str]) -> list[str]:
    return [f"({note})" for note in notes]


@attrs.frozen
class _Patterns:
    """Patterns for paths; a path matches if one of them does."""

    _globs: tuple[Glob, ...]

    @classmethod
    def of(cls, pattern: str, name: str, *, names_alone: bool = False) -> _Patterns:
        """What `pattern` stands for, braces included.

        Args:
            name: the parameter it is.
            names_alone: a pattern without a slash is for names at any depth.

        Raises:
            FileProblem: it cannot match any file below a directory.
        """
        why = ""
        pattern = meant_path(pattern)
        if not pattern:
            why = "an empty one"
        elif len(pattern) > _PATTERN_LONGEST:
            why = f"one of {len(pattern)} characters, and {_PATTERN_LONGEST} are the most"
        elif pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
            why = "one that leads elsewhere"
        elif pattern.endswith("/"):
            why = "one for directories"
        elif names_alone and "/" not in pattern:
            pattern = f"**/{pattern}"
        if not why:
            try:
                return cls(tuple(Glob.of(one) for one in braces_expanded(pattern)))
            except PatternRefused as refusal:
                why = str(refusal)
        raise FileProblem(name, "a pattern for paths below path, such as **/*.py", why, "Give path for the directory.")

    def match(self, names: Sequence[str]) -> bool:
        """Whether one of them matches."""
        return any(glob.matches(names) for glob in self._globs)

    def may_match_below(self, names: Sequence[str]) -> bool:
        """Whether something below the directory of these names may match."""
        for glob in self._globs:
            state = glob.start
            for name in names:
                state = glob.step(state, name)
            if state:
                return True
        return False


async def _walk(
    workspace: FileAccess, ctx: CallContext, base: Identity, all_files: bool, patterns: _Patterns | None
) -> Walk:
    ignored = None if all_files else await ignored_above(workspace.disk, base.entry)
    withheld = withholding(workspace.disk, ctx, base)
    if patterns is None:
        return Walk(workspace.disk, base.entry, ignored, lambda names: True, withheld)
    return Walk(workspace.disk, base.entry, ignored, patterns.may_match_below, withheld, patterns.match)


async def _next(walk: Walk, base: Identity) -> Found | None:
    try:
        return await walk.next()
    except FileNotFoundError:
        raise missing(base) from None
    except OSError as error:
        raise from_os_error(base.path, error) from None


class _ShownPaths:
    """Paths as they are shown: relative to the working directory."""

    def __init__(self, workspace: FileAccess, ctx: CallContext, base: Identity) -> None:
        here = workspace.identify(".", ctx.state, Wanted.DIRECTORY)
        self._base = posixpath.relpath("/" + "/".join(base.entry), "/" + "/".join(here.entry))

    def path(self, names: Entry) -> str:
        """What leads to `names` below the directory."""
        return shown_path("/".join(names if self._base == "." and names else (self._base, *names)))

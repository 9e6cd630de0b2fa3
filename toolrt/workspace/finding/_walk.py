"""Walks a tree, name by name in sorted order, without following links.

Rules.  A directory is yielded before its content.  The walk does not enter what ``.gitignore`` leaves out.  It skips an
entry that vanishes or is swapped for a link meanwhile.  It counts directories that may not be read and directories
deeper than any name may lead.  It never yields the disk's own temporary files.  It leaves out entries that the call's
approval withholds, and counts those that it would have yielded.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Sequence

import attrs
import trio

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._mutation import in_thread
from toolrt.workspace.disk._disk import DEEPEST, Disk, Entry, Kind, Stat
from toolrt.workspace.disk._listings import Listing
from toolrt.workspace.names._at_once import listing
from toolrt.workspace.names._naming import meant_path
from toolrt.workspace.rules._ignore import IGNORE_FILE, Ignored, IgnoreFile
from toolrt.workspace.rules._patterns import Glob, PatternRefused, braces_expanded
from toolrt.workspace.rules._patterns import State as GlobState
from toolrt.workspace.rules._withholding import Withholding

#: What says whether a name is looked for; None: each is.
NameTest = Callable[[str], object] | None

#: How far each of several patterns has come.
_States = tuple[GlobState, ...]

#: What is still to be handed out: the names that lead to a directory, one name of a directory in it or several that
#: are none; what was listed there, what is left out there, and how far patterns have come after that one name.
_Pending = tuple[Entry, str | list[str], Listing, Ignored | None, _States]

#: What every walk leaves out.
_GIT = frozenset((".git",))

#: What an error says where a name leads to no directory any more.
_NO_DIRECTORY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)

#: How many names one walk looks at: a tree larger than this is to be walked in parts.
VISITED_MOST = 200_000

#: How many names are looked at between two checkpoints.
_NAMES_AT_ONCE = 64

#: How many names of one directory are asked about in one call of C: a few milliseconds, in which no other thread runs.
_ASKED_AT_ONCE = 8192

#: From how many bytes on a ``.gitignore`` is parsed in a worker thread.
_LONG_IGNORE = 64 * 1024

#: How large a ``.gitignore`` may be, in bytes; a larger one counts for nothing.
_IGNORE_LIMIT = 1024 * 1024

#: How long a pattern for names may be.
_PATTERN_LONGEST = 1000


@attrs.frozen
class PathsSought:
    """Patterns for the paths that are looked for; a path matches if one of them does."""

    _globs: tuple[Glob, ...]
    #: What matches a name in a directory after which the patterns have come so far (None: each name does).
    _matchers: dict[_States, NameTest] = attrs.field(factory=dict, init=False, eq=False)

    @classmethod
    def of(cls, pattern: str, name: str, *, names_alone: bool = False) -> PathsSought:
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

    @property
    def start(self) -> _States:
        """How far the patterns have come where the walk begins."""
        return tuple(glob.start for glob in self._globs)

    def after(self, states: _States, name: str) -> _States:
        """How far they have come in the directory `name` there; if none has, nothing below it matches."""
        return tuple([glob.step(state, name) for glob, state in zip(self._globs, states, strict=True)])

    def matcher(self, states: _States) -> NameTest:
        """What says whether a name matches in a directory after which they have come so far; None: each does."""
        if states not in self._matchers:
            self._matchers[states] = self._matcher(states)
        return self._matchers[states]

    def _matcher(self, states: _States) -> NameTest:
        expressions: list[str] = []
        for glob, state in zip(self._globs, states, strict=True):
            last = glob.last_names(state)
            if last is None:
                return None
            expressions += [one.pattern for one in last]
        if not expressions:
            return lambda name: False
        return re.compile("|".join(expressions), re.DOTALL).match


class Walk:
    """A walk through all that is below one directory.

    Args:
        disk: whose it is.
        base: the directory.
        ignored: what is left out there, by the files above it; None leaves out ``.git`` alone.
        sought: the paths that are looked for; None: all.
        withholding: leaves out what the call may not touch; None: nothing.
        looks: whether each name is looked at; where something is withheld it is in any case.
    """

    def __init__(
        self,
        disk: Disk,
        base: Entry,
        ignored: Ignored | None,
        sought: PathsSought | None = None,
        withholding: Withholding | None = None,
        *,
        looks: bool = False,
    ) -> None:
        self._disk = disk
        self._base = base
        self._ignored = ignored
        self._sought = PathsSought.of("**", "sought") if sought is None else sought
        self._withholding = withholding
        self._looks = looks or withholding is not None
        # The last one comes next.
        self._pending: list[_Pending] = []
        self._visited = 0
        #: What looks showed at the names that `names` gave, where the disk looked at them.
        self.stats: dict[Entry, Stat] = {}
        #: How many directories could not be read.
        self.unreadable = 0
        #: How many names were withheld; what is below a directory that was is not counted.
        self.withheld = 0
        #: How many were too deep to be entered.
        self.too_deep = 0
        #: How many patterns of the ``.gitignore`` files that speak of one directory count for nothing, at most.
        self.unread_rules = 0
        #: Whether the walk ended because it looked at `VISITED_MOST` names.
        self.cut_short = False

    async def names(self, files_alone: bool) -> list[Entry]:
        """The names from here that lead to what matches and is no directory, in order; for a walk that has not begun.

        Args:
            files_alone: whether only files are looked for.

        Raises:
            OSError: the directory itself cannot be listed.

        Checkpoint: when a directory is entered, and among many names.
        """
        found: list[Entry] = []
        await self._enter((), self._ignored, self._sought.start)
        while self._pending and not self.cut_short:
            above, some, listed, ignored, states = self._pending.pop()
            if isinstance(some, str):
                await self._descend((*above, some), ignored, states)
            else:
                stats = listed.stats
                if stats:
                    self.stats.update(((*above, name), stats[name]) for name in some)
                passed = listed.special if files_alone else ()
                found += [(*above, name) for name in some if name not in passed]
        return found

    async def _descend(self, names: Entry, ignored: Ignored | None, states: _States) -> None:
        """Enter a directory below the first one."""
        if len(self._base) + len(names) >= DEEPEST:
            self.too_deep += 1
            return
        try:
            await self._enter(names, None if ignored is None else ignored.enter(names[-1]), states)
        except OSError as error:
            self.unreadable += error.errno not in _NO_DIRECTORY

    async def _enter(self, names: Entry, ignored: Ignored | None, states: _States) -> None:
        entry = (*self._base, *names)
        if self._looks:
            listed = Listing.of(await self._disk.names(entry))
        else:
            listed = await listing(self._disk, entry)
        if ignored is not None and listed.has_file(IGNORE_FILE):
            ignored = await including_file(self._disk, entry, ignored)
            self.unread_rules = max(self.unread_rules, ignored.unread)
        self._visited += len(listed)
        listed = _not_left_out(listed, ignored)
        matches = self._sought.matcher(states)
        kept = [name for some in _in_parts(listed.others) for name in (filter(matches, some) if matches else some)]
        kept = sorted([*kept, *listed.directories]) if listed.directories else kept
        if self._withholding is not None:
            kept = await self._allowed(names, kept, listed, self._withholding, states)
        self._push(names, kept, listed, ignored, states)
        self.cut_short = self._visited > VISITED_MOST

    async def _allowed(
        self, names: Entry, kept: list[str], listed: Listing, withholding: Withholding, states: _States
    ) -> list[str]:
        """Those of the names in a directory that the call may touch; the others are counted."""
        allowed: list[str] = []
        for number, name in enumerate(kept, 1):
            if number % _NAMES_AT_ONCE == 0 and trio.lowlevel.in_trio_task():
                await trio.lowlevel.checkpoint()
            stat = listed.stats[name]
            if withholding.why((*self._base, *names, name), stat) is None:
                allowed.append(name)
            else:
                self.withheld += stat.kind is not Kind.DIRECTORY or any(self._sought.after(states, name))
        return allowed

    def _push(self, names: Entry, kept: list[str], listed: Listing, ignored: Ignored | None, states: _States) -> None:
        """These names in a directory come next: directories alone, and what is between two of them together."""
        begin = len(self._pending)
        directories = frozenset(listed.directories)
        run: list[str] = []
        for name in kept if directories else ():
            if name not in directories:
                run.append(name)
            elif any(below := self._sought.after(states, name)):
                self._pending += [(names, run, listed, None, ()), (names, name, listed, ignored, below)]
                run = []
        self._pending.append((names, run if directories else kept, listed, None, ()))
        self._pending[begin:] = reversed(self._pending[begin:])


def _in_parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The names, so many in each part that one call of C may ask about them all."""
    return (names[at : at + _ASKED_AT_ONCE] for at in range(0, len(names), _ASKED_AT_ONCE))


def _not_left_out(listed: Listing, ignored: Ignored | None) -> Listing:
    """The listing without what is left out; it is kept beside the listing while the ignore files say the same."""
    if listed.filtered is not None and listed.filtered[0] == ignored:
        return listed.filtered[1]
    # Most names are no business of any pattern: which are is asked of all of them together.
    asked = set(_GIT)
    if ignored is not None:
        for some in (*_in_parts(listed.directories), *_in_parts(listed.others)):
            asked |= ignored.may_leave_out(some)
    left_out = {
        name
        for some in (listed.directories, listed.others)
        for name in some
        if name in asked and (ignored is None or ignored.leaves_out(name, some is listed.directories))
    }
    shown = listed.without(left_out) if left_out else listed
    listed.filtered = ignored, shown
    return shown


async def including_file(disk: Disk, entry: Entry, ignored: Ignored) -> Ignored:
    """Return `ignored` with the ``.gitignore`` of the directory at `entry` added, if there is a readable one."""
    try:
        found = await disk.read((*entry, IGNORE_FILE), _IGNORE_LIMIT)
    except OSError:
        return ignored
    large = len(found.content) >= _LONG_IGNORE and trio.lowlevel.in_trio_task()
    return ignored.including(await in_thread(lambda: IgnoreFile.of(found.content), blocks=large))


async def ignored_above(disk: Disk, base: Entry) -> Ignored:
    """The patterns that the ``.gitignore`` files of `disk` above `base` apply to the content of `base`.

    If they leave out `base` itself, they are ignored: a caller that names a directory wants its content.

    Checkpoint: always.
    """
    ignored = Ignored()
    for depth, name in enumerate(base):
        ignored = await including_file(disk, base[:depth], ignored)
        if ignored.leaves_out(name, True):
            return Ignored()
        ignored = ignored.enter(name)
    return ignored

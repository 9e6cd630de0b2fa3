"""Walks a tree, name by name in sorted order, without following links.

Rules.  A directory is yielded before its content.  The walk does not enter what ``.gitignore`` leaves out.  It skips an
entry that vanishes or is swapped for a link meanwhile.  It counts directories that may not be read and directories
deeper than any name may lead.  It never yields the disk's own temporary files.  It leaves out entries that the call's
approval withholds, and counts those that it would have yielded.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from toolrt.workspace.change._mutation import in_thread
from toolrt.workspace.disk._disk import DEEPEST, Disk, Entry, Kind, Stat, is_own
from toolrt.workspace.rules._ignore import IGNORE_FILE, Ignored, IgnoreFile
from toolrt.workspace.rules._withholding import Withholding

#: How many names one walk looks at: a tree larger than this is to be walked in parts.
VISITED_MOST = 200_000

#: How many names are looked at between two checkpoints.
_NAMES_AT_ONCE = 64

#: From how many bytes on a ``.gitignore`` is parsed in a worker thread.
_LONG_IGNORE = 64 * 1024

#: How large a ``.gitignore`` may be, in bytes; a larger one counts for nothing.
_IGNORE_LIMIT = 1024 * 1024


@attrs.frozen
class Found:
    """One name below the directory that is walked."""

    #: The names that lead to it from there.
    names: tuple[str, ...]
    #: What stands there.
    stat: Stat


@attrs.frozen
class _Pending:
    """A name that is still to be handed out, and for a directory what is known before it is entered."""

    found: Found
    ignored: Ignored | None


class Walk:
    """A walk through all that is below one directory.

    Args:
        disk: whose it is.
        base: the directory.
        ignored: what is left out there, by the files above it; None leaves out ``.git`` alone.
        enters: whether the directory of these names, from `base`, is worth entering.
        withholding: leaves out what the call may not touch; None: nothing.
        counts: whether a withheld name that is no directory is one of those that are looked for.
    """

    def __init__(
        self,
        disk: Disk,
        base: Entry,
        ignored: Ignored | None,
        enters: Callable[[tuple[str, ...]], bool],
        withholding: Withholding | None = None,
        counts: Callable[[tuple[str, ...]], bool] = lambda names: True,
    ) -> None:
        self._disk = disk
        self._base = base
        self._enters = enters
        self._withholding = withholding
        self._counts = counts
        # The last one comes next.
        self._pending: list[_Pending] = []
        self._ignored = ignored
        self._began = False
        self._visited = 0
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

    async def next(self) -> Found | None:
        """The next name, or None at the end.

        Raises:
            OSError: the directory itself cannot be listed.

        Checkpoint: when a directory is entered, and among many names.
        """
        if not self._began:
            self._began = True
            await self._enter((), self._ignored)
        if not self._pending or self.cut_short:
            return None
        one = self._pending.pop()
        names = one.found.names
        if one.found.stat.kind is Kind.DIRECTORY and self._enters(names):
            if len(self._base) + len(names) >= DEEPEST:
                self.too_deep += 1
                return one.found
            try:
                await self._enter(names, one.ignored)
            except PermissionError:
                self.unreadable += 1
            except OSError:
                pass  # it is no directory any more
        return one.found

    async def _enter(self, names: tuple[str, ...], ignored: Ignored | None) -> None:
        entry = (*self._base, *names)
        listed = [(name, stat) for name, stat in await self._disk.names(entry) if not is_own(name)]
        if ignored is not None and any(name == IGNORE_FILE and stat.kind is Kind.FILE for name, stat in listed):
            ignored = await including_file(self._disk, entry, ignored)
        self.unread_rules = max(self.unread_rules, 0 if ignored is None else ignored.unread)
        for number, (name, stat) in enumerate(reversed(listed), 1):
            if number % _NAMES_AT_ONCE == 0 and trio.lowlevel.in_trio_task():
                await trio.lowlevel.checkpoint()
            is_directory = stat.kind is Kind.DIRECTORY
            if (name == ".git") if ignored is None else ignored.leaves_out(name, is_directory):
                continue
            if self._withholding is not None and self._withholding.why((*entry, name), stat) is not None:
                if (self._enters if is_directory else self._counts)((*names, name)):
                    self.withheld += 1
                continue
            below = ignored.enter(name) if ignored is not None and is_directory else None
            self._pending.append(_Pending(Found((*names, name), stat), below))
        self._visited += len(listed)
        self.cut_short = self._visited > VISITED_MOST


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

"""Records what a removal is about to delete: the entry, and everything below it.

Rules.  Everything is looked at first, the deepest first.  Nothing is removed if another program has changed a file
since this workspace last saw it, or if a directory is not empty and may not go with its content.

Limits.  What another program puts there between this look and the removal, or later through a directory that it has
open, is lost.  A tree more than 256 directories deep is refused.
"""

from __future__ import annotations

import errno

import attrs

from toolrt._plain import counted
from toolrt.workspace._problem import FileProblem, changed_since
from toolrt.workspace.change._freshness import Freshness
from toolrt.workspace.change._mutation import standing_at
from toolrt.workspace.change._revision import CallContext, row_of
from toolrt.workspace.change._version import ChangeRow
from toolrt.workspace.disk._disk import DEEPEST, Disk, Entry, Kind, Stat
from toolrt.workspace.names._identity import Identity
from toolrt.workspace.names._mounts import path_on
from toolrt.workspace.names._naming import shown_at


@attrs.define
class Removal:
    """What one call is going to remove.

    Args:
        disk: where it is.
        seen: what this workspace last saw of each file.
        room: how many bytes of contents history may keep for the way back; what was found is taken off.
        most_rows: how many removals it may list, though always one.
    """

    disk: Disk
    seen: Freshness
    ctx: CallContext
    room: int
    most_rows: int
    #: The removals, each after those of all that is below it.
    rows: list[ChangeRow] = attrs.field(factory=list, init=False)
    #: What was found in the files and links, by digest, as far as there was room.
    contents: dict[bytes, bytes] = attrs.field(factory=dict, init=False)
    #: Whether history can put back all of it so far; once it cannot, only files that were seen are read.
    fits: bool = attrs.field(default=True, init=False)

    async def gather(self, identity: Identity, recursive: bool) -> Stat | None:
        """Write down what stands at that `identity`, and below it if `recursive`; gives what a look at a file showed.

        Raises:
            FileProblem: a directory is not empty and not to be removed with what it has, or a file is not what it was
                seen to be.
            OSError: nothing stands there, or the disk refused.

        Checkpoint: always.
        """
        return await self._add(identity.key or (), identity.entry, recursive)

    async def _add(self, key: Entry, entry: Entry, recursive: bool) -> Stat | None:
        found = await standing_at(self.disk, entry, content=self.fits)
        expected = None if found.stat is None else self.seen.expected(key, found.stat)
        if not self.fits and expected is not None:
            found = await standing_at(self.disk, entry)
        standing, content = found.standing, found.content
        if standing is None:
            raise FileNotFoundError(errno.ENOENT, "nothing there")
        if standing.kind is not Kind.DIRECTORY and content is None:
            self.fits = False
        if content is not None and standing.digest is not None:
            if standing.digest not in self.contents:
                self.room -= len(content)
                self.contents[standing.digest] = content
            if standing.kind is Kind.FILE and expected is not None and standing.digest not in expected:
                raise changed_since(shown_at(entry))
        if standing.kind is Kind.DIRECTORY:
            names = await self.disk.names(entry)
            if names and not recursive:
                raise FileProblem(
                    shown_at(entry),
                    "an empty directory",
                    f"one with {counted(len(names), 'name')} in it",
                    "Use recursive=true.",
                )
            if names and len(entry) >= DEEPEST:
                raise FileProblem(
                    shown_at(entry[:1]), f"at most {DEEPEST} directories deep", "more", "Nothing was removed."
                )
            folding = self.disk.folds(path_on(self.disk, entry))
            for name, _ in names:
                await self._add((*key, folding.fold(name)), (*entry, name), True)
        self.rows.append(row_of(self.ctx, key, entry, standing, None, self.disk.now_ns()))
        self.fits = self.fits and self.room >= 0 and len(self.rows) <= max(1, self.most_rows)
        if not self.fits:
            self.contents.clear()  # all of it is kept aside
        return None if standing.kind is Kind.DIRECTORY else found.stat

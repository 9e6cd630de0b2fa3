"""Directories that a group of changes makes on the way to its files, and takes back if a part of it fails.

Rules.  What is missing on the way to a file is a change of its own, of whichever call finds it so.  Calls with files
below one missing directory are not ordered: whichever comes first makes it.  Until the group of that one is complete
nobody relies on the directory: others wait, and then find it there for good, or make it.

Theory.  Who waits has nothing in the making, and who makes waits for nobody here: so no circle can form.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import trio

from toolrt import probe
from toolrt.workspace.change._mutation import problem_of
from toolrt.workspace.change._revision import CallContext, row_of
from toolrt.workspace.change._version import Row, Standing
from toolrt.workspace.disk._disk import Disk, Entry, Kind
from toolrt.workspace.names._mounts import path_on
from toolrt.workspace.names._naming import shown_at

__all__ = ["PendingDirectories"]


class PendingDirectories:
    """The directories on the way to one workspace's files that are missing, and those that may yet be taken back."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: Those that may be taken back, by key.
        self._groups: dict[Entry, trio.Event] = {}

    def missing(self, ctx: CallContext, key: Entry, entry: Entry) -> list[Row]:
        """What is to be written down for the directories on the way to `entry`, and itself, that are not there.

        Raises:
            FileProblem: one of them cannot be looked at.
        """
        rows: list[Row] = []
        for depth in range(1, len(entry) + 1):
            try:
                self._disk.lstat(path_on(self._disk, entry[:depth]))
            except FileNotFoundError:
                made = Standing(Kind.DIRECTORY)
                rows.append(row_of(ctx, key[:depth], entry[:depth], None, made, self._disk.now_ns()))
            except OSError as error:
                raise problem_of(shown_at(entry[:depth]), error) from None
        return rows

    def missing_for(self, ctx: CallContext, rows: Iterable[Row]) -> Iterator[Row]:
        """The same for the directories on the way to what `rows` put somewhere.

        Raises:
            FileProblem: as `missing`.
        """
        for row in rows:
            if row.target is not None and row.target_key is not None:
                yield from self.missing(ctx, row.target_key, row.target[:-1])
            elif row.after is not None:
                yield from self.missing(ctx, row.key, row.entry[:-1])

    async def settled(self, *keys: Entry) -> None:
        """No directory on the way to any of these keys may be taken back; nor is there an instant until one may.

        Checkpoint: if one may be.
        """
        while (group := self._above(keys)) is not None:
            await group.wait()

    @contextlib.contextmanager
    def of(self, directories: Sequence[Entry]) -> Iterator[None]:
        """Others wait while these, which are missing and settled, are made or taken back."""
        group = trio.Event()
        for key in directories:
            self._touch(key, write=True)
            self._groups[key] = group
        try:
            yield
        finally:
            for key in directories:
                self._touch(key, write=True)
                del self._groups[key]
            group.set()

    def _above(self, keys: Sequence[Entry]) -> trio.Event | None:
        for key in keys:
            for depth in range(1, len(key)):
                self._touch(key[:depth], write=False)
                group = self._groups.get(key[:depth])
                if group is not None:
                    return group
        return None

    def _touch(self, key: Entry, *, write: bool) -> None:
        if probe.sink is not None:
            probe.sink.access(("files", "making", *key), write)

"""Pending directories: those that a change set makes on the way to its files, and removes again if a part of it fails.

Rules.  A missing directory on the way to a file is a change of the first call that finds it missing.  Calls with files
below one missing directory are not ordered: the first to arrive makes it.  Until its change set is complete no other
call relies on the directory: others wait, and then either find it committed or make it.

Theory.  A waiter never owns pending directories and an owner never waits, so this cannot deadlock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import trio

from toolrt import probe
from toolrt.workspace._problem import from_os_error
from toolrt.workspace.change._revision import CallContext, row_of
from toolrt.workspace.change._version import ChangeRow, EntryState
from toolrt.workspace.disk._disk import Disk, Entry, Kind
from toolrt.workspace.names._mounts import path_on
from toolrt.workspace.names._naming import shown_at


class PendingDirectories:
    """Which parent directories of one workspace's files are missing, and which may still be removed again."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: Those that may still be removed again, by key, each with an event that ends the wait.
        self._groups: dict[Entry, trio.Event] = {}

    def missing(self, ctx: CallContext, key: Entry, entry: Entry) -> list[ChangeRow]:
        """What is to be written down for the directories on the way to `entry`, and itself, that are not there.

        Raises:
            FileProblem: one of them cannot be looked at.
        """
        rows: list[ChangeRow] = []
        for depth in range(1, len(entry) + 1):
            try:
                self._disk.lstat(path_on(self._disk, entry[:depth]))
            except FileNotFoundError:
                made = EntryState(Kind.DIRECTORY)
                rows.append(row_of(ctx, key[:depth], entry[:depth], None, made, self._disk.now_ns()))
            except OSError as error:
                raise from_os_error(shown_at(entry[:depth]), error) from None
        return rows

    async def settled(self, *keys: Entry) -> None:
        """On return no parent directory of these keys is pending.

        There is no checkpoint between the check and the return.

        Checkpoint: if one is pending.
        """
        while (group := self._above(keys)) is not None:
            await group.wait()

    @contextlib.contextmanager
    def of(self, directories: Sequence[Entry]) -> Iterator[None]:
        """Other calls wait while these directories, which are missing and not pending, are made or removed again."""
        group = trio.Event()
        directories = list(dict.fromkeys(directories))  # an undo may make one twice
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

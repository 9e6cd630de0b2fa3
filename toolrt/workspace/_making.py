"""Directories that a group of changes makes on the way to its files, and takes back if a part of it fails.

Rules.  Calls with files below one missing directory are not ordered: whichever comes first makes it.  Until the group
of that one is complete nobody relies on the directory: others wait, and then find it there for good, or make it.

Theory.  Who waits has nothing in the making, and who makes waits for nobody here: so no circle can form.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import trio

from toolrt import probe
from toolrt.workspace._disk import Entry

__all__ = ["Making"]


class Making:
    """The directories of one workspace that may yet be taken back, by key."""

    def __init__(self) -> None:
        self._groups: dict[Entry, trio.Event] = {}

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

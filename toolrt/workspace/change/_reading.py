"""Reads files for tools: from the disk, or from what an earlier read left in the cache.

Rules.  The answer does not depend on the cache (see `toolrt.workspace.change._cache`).  A file that was read, or
answered from the cache, counts as seen; one that was only searched does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import trio

from toolrt import probe
from toolrt.events import FileRead, observer
from toolrt.model import WRITE, Claim
from toolrt.workspace._problem import from_os_error
from toolrt.workspace.change._cache import Cache, CachedEntry, stamp_of
from toolrt.workspace.change._freshness import Freshness
from toolrt.workspace.change._limits import Limits
from toolrt.workspace.change._mutation import SIZE_LIMIT, aside, digest_of, os_errors, quick_digest
from toolrt.workspace.change._revision import CallContext
from toolrt.workspace.change._version import ChangeRow
from toolrt.workspace.disk._disk import Disk, Entry, Kind, Snapshot, Stat
from toolrt.workspace.names._identity import Identity
from toolrt.workspace.names._mounts import path_on, stat_or_none

T = TypeVar("T")

#: From this size on what is made of a content (lines, a skeleton) is made in a worker thread: some milliseconds.
_LONG = 128 * 1024


class CachedReader:
    """Reads the files of one workspace, through a cache.

    Args:
        disk: where they are.
        limits: how much is kept.
    """

    def __init__(self, disk: Disk, limits: Limits) -> None:
        self._disk = disk
        #: Remembers what readers saw, and what changes left.
        self._seen = Freshness(limits.seen)
        self._stored: Cache[bytes] = Cache("stored", limits.stored, limits.stored_bytes)
        self._cached: Cache[Any] = Cache("cached", limits.cached, limits.cached_bytes)

    async def read(self, ctx: CallContext, identity: Identity) -> Snapshot:
        """The file of that `identity` as it is.

        Raises:
            FileProblem: it is missing, too large, no file, or cannot be read.

        Checkpoint: always.
        """
        snapshot, digest, _ = await self._read(ctx, identity)
        self._tell_read(ctx, identity, digest)
        return snapshot

    async def read_as(
        self, ctx: CallContext, identity: Identity, part: tuple[Any, ...], render: Callable[[Snapshot], T]
    ) -> T:
        """What `render` makes of the file of that `identity`; it may be one it made before, of the same content.

        Args:
            part: what of the file is wanted, and how: with the file, all that `render` depends on.
            render: gives a text, or another value that is never changed, of the content alone (its look may have
                changed since); a long one is rendered in a worker thread.  What it raises is raised.

        Raises:
            FileProblem: as `read`.

        Checkpoint: always.
        """
        served = await self._served(ctx, identity, self._cached, part)
        if served is not None:
            self._seen.saw(identity.key or (), identity.found, served[0].digest)
            self._tell_read(ctx, identity, served[0].digest)
            made: T = served[0].value
            return made
        self._cached.miss()
        snapshot, digest, settled = await self._read(ctx, identity)
        self._tell_read(ctx, identity, digest)
        value = await aside(self._disk, len(snapshot.content), lambda: render(snapshot), large=_LONG)
        if settled and identity.key is not None:
            size = len(value) if isinstance(value, str | bytes) else len(snapshot.content)
            self._cached.keep(identity.key, CachedEntry(stamp_of(snapshot.stat), digest, value, size), part)
        return value

    async def scan(self, ctx: CallContext, identity: Identity) -> Snapshot:
        """The file of that `identity` as it is, for a tool that shows no more than parts of it, as a search does.

        The file does not count as seen: a change by another program that only a search has met is still a conflict.

        Raises:
            FileProblem: as `read`.

        Checkpoint: always.
        """
        served = await self._served(ctx, identity, self._stored)
        if served is not None:
            self._tell_read(ctx, identity, served[0].digest)
            return Snapshot(served[0].value, served[1])
        with os_errors(identity.path):
            snapshot = await self._disk.read(identity.entry, SIZE_LIMIT)
        if probe.sink is not None:
            self._tell_read(ctx, identity, digest_of(snapshot.content))
        return snapshot

    def _drop(self, row: ChangeRow) -> None:
        """Keep nothing of what `row` changed."""
        for key in (row.key, row.target_key):
            if key is not None:
                self._drop_below(key)

    def _drop_below(self, key: Entry) -> None:
        """Keep nothing of what stands there and below it."""
        self._stored.drop(key)
        self._cached.drop(key)

    def statistics(self) -> dict[str, dict[str, int]]:
        """How much is remembered and how often it served: ``seen``, ``stored`` contents, ``cached`` answers."""
        return {
            "seen": self._seen.statistics(),
            "stored": self._stored.statistics(),
            "cached": self._cached.statistics(),
        }

    async def _read(self, ctx: CallContext, identity: Identity) -> tuple[Snapshot, bytes, bool]:
        """The file, its digest, and whether it may be kept: it is old enough, and no file of this call's."""
        key = identity.key or ()
        served = await self._served(ctx, identity, self._stored)
        if served is not None:
            self._seen.saw(key, identity.found, served[0].digest)
            return Snapshot(served[0].value, served[1]), served[0].digest, True
        self._stored.miss()
        # Before the read, or a change during it could look as old as what was read.
        now = self._disk.now_ns()
        try:
            snapshot = await self._disk.read(identity.entry, SIZE_LIMIT)
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                self._seen.saw(key, identity.found, None)
            raise from_os_error(identity.path, error) from None
        digest = await quick_digest(self._disk, snapshot.content)
        self._seen.saw(key, identity.found, digest)
        settled = now - snapshot.stat.changed_ns > self._disk.time_step_ns and not _writes(ctx, key)
        if settled:
            self._stored.keep(
                key, CachedEntry(stamp_of(snapshot.stat), digest, snapshot.content, len(snapshot.content))
            )
        return snapshot, digest, settled

    async def _served(
        self, ctx: CallContext, identity: Identity, cache: Cache[T], part: tuple[Any, ...] | None = None
    ) -> tuple[CachedEntry[T], Stat] | None:
        """What is kept of the file, if it is what the disk has, and what the disk shows.

        Checkpoint: if something is kept: else the disk has one.
        """
        if self._trusted(ctx, identity, cache, part) is None:
            return None
        await trio.lowlevel.checkpoint()
        served = self._trusted(ctx, identity, cache, part)
        if served is not None:
            cache.hit(identity.key or (), part)
        return served

    def _trusted(
        self, ctx: CallContext, identity: Identity, cache: Cache[T], part: tuple[Any, ...] | None
    ) -> tuple[CachedEntry[T], Stat] | None:
        key = identity.key or ()
        kept = cache.find(key, part)
        if kept is None or _writes(ctx, key):
            return None
        stat = stat_or_none(self._disk, path_on(self._disk, identity.entry))
        if stat is not None and stat.kind is Kind.FILE and stamp_of(stat) == kept.stamp:
            return kept, stat
        cache.drop(key)
        return None

    def _tell_read(self, ctx: CallContext, identity: Identity, digest: bytes) -> None:
        if observer.records:
            observer.tell(FileRead(ctx.batch_id, ctx.call_index, identity.event_name, digest.hex()[:12]))


def _writes(ctx: CallContext, key: Entry) -> bool:
    """Whether the call itself may have changed the file, by whatever means."""
    wanted = Claim(("file", *key), WRITE)
    return any(claim.mode is WRITE and claim.covers(wanted) for claim in ctx.claims)

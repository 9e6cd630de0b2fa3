"""The operations on files that every file tool uses: reads and changes, with freshness, history and events.

Rules.
    1. The caller has claimed the file, and has checked that its name still means it (`held`).
    2. A change is computed from what stands there at that moment, once, and is either the whole of the file or
       nothing.  Several files are read, checked and computed before one of them is written; if one of them cannot
       be, what was written is put back, after a crash by the next start.
    3. A change meets what this workspace last saw of the file, or it is a conflict and nothing is changed.
    4. Every change that landed is a version in the workspace's history.
    5. What is answered does not depend on what is cached.

Events (`toolrt.probe`).  ``file.read`` as content is read; ``file.mutation_began`` before the first touch of a file
that is to change and ``file.mutation_ended`` after the last, whatever happened between.  ``file`` is the file's key
as a path below the root, so all its names are one; ``version`` is the first 12 hex digits of the content's SHA-256,
or None where there is no file or its content is not known.

Parts.  `Files` is a `CachedReader`, which reads.  `Files.revise` is one change of one file in four steps, *read, check,
write, record*; `Revising` is what is known of it.  A `ChangeSet` is several changes that happen together.
`PendingDirectories` has the directories that it is making, `Removal` what a removal takes away.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import attrs
import trio

from toolrt.workspace._problem import FileProblem, changed_since
from toolrt.workspace.change._freshness import Freshness
from toolrt.workspace.change._keeping import make_room
from toolrt.workspace.change._limits import Limits
from toolrt.workspace.change._mutation import (
    SIZE_LIMIT,
    ChangeSet,
    aside,
    blocks,
    digest_of,
    in_thread,
    number_of,
    os_errors,
    standing_at,
)
from toolrt.workspace.change._pending import PendingDirectories
from toolrt.workspace.change._reading import CachedReader
from toolrt.workspace.change._removal import Removal
from toolrt.workspace.change._revision import (
    CallContext,
    Change,
    Mutation,
    MutationResult,
    PlannedChange,
    Revised,
    intended,
    note_change,
    origin_of,
    row_of,
)
from toolrt.workspace.change._version import ChangeRow, ChangeStore, EntryState
from toolrt.workspace.disk._disk import Disk, Entry, InPlace, Kind, Snapshot, Stat
from toolrt.workspace.disk._disk_errors import Changed, Unsynced
from toolrt.workspace.names._identity import Identity
from toolrt.workspace.names._mounts import as_on_disk, path_on, stat_or_none

#: Looked up once: an attribute of an enumeration costs as much as a call.
_FILE = Kind.FILE

#: From how many bytes on what becomes of a file is computed in a worker thread: a patch of it may have many hunks.
_LARGE = 256 * 1024


@attrs.define(eq=False)
class Revising:
    """What is to become of one file, and what is known of it so far."""

    _ctx: CallContext
    identity: Identity
    #: What is made of the content found; and of one that another program has changed, None: that is refused.
    _change: Change
    _again: Change | None
    #: The digests that the file may have; None: any.
    _expected: tuple[bytes | None, ...] | None
    #: Whether a file with several names is written in place.
    in_place: InPlace
    #: The content found, and the content that is to be.
    before: bytes | None = attrs.field(default=None, init=False)
    after: bytes | None = attrs.field(default=None, init=False)
    #: The digests of both, as far as they are known.
    digests: tuple[bytes | None, bytes | None] = attrs.field(default=(None, None), init=False)
    #: Whether another program had changed the file, and `again` made something of that.
    joined: bool = attrs.field(default=False, init=False)
    #: Whether the name shares a file with others, and is to have one of its own.
    parted: bool = attrs.field(default=False, init=False)
    #: The row for history; None: nothing is to change.
    row: ChangeRow | None = attrs.field(default=None, init=False)

    def check(self, there: Snapshot | None, now_ns: int, mode: int | None = None) -> None:
        """What was found may be changed, and what is to be is known.

        It may run in a worker thread: it reports nothing to the probe and touches only this call's data.

        Args:
            there: the file that was found; None: nothing was.
            now_ns: what the disk's clock says.
            mode: the permission bits that it is to have; None: those that it has, or what a new file gets.

        Raises:
            FileProblem: another program changed the file since this workspace last saw it, or it would be too large.
        """
        path, change = self.identity.path, self._change
        found = self.before = None if there is None else there.content
        digest = None if found is None else digest_of(found)
        self.digests = digest, digest
        if self._expected is not None and digest not in self._expected:
            if self._again is None or found is None:
                raise changed_since(path)
            change, self.joined = self._again, True
        try:
            after = self.after = change(found)
        except FileProblem as problem:
            if not self.joined:
                raise
            raise changed_since(path) from problem
        has_mode = there is None or mode is None or mode == there.stat.mode
        if after == found and has_mode:
            return
        if after is not None and len(after) > SIZE_LIMIT:
            raise FileProblem(
                path, f"at most {SIZE_LIMIT} bytes", f"{len(after)} bytes", "Split it into several files."
            )
        self.digests = digest, None if after is None else digest_of(after)
        was = becomes = None
        if there is not None:
            number, links = number_of(there.stat), there.stat.links
            was = EntryState(_FILE, digest, there.stat.mode, number, links)
            stays = links > 1 and self.in_place(there.stat)
            self.parted = links > 1 and not stays and after is not None
            if after is not None:
                mode = there.stat.mode if mode is None else mode
                becomes = EntryState(_FILE, self.digests[1], mode, number if stays else None, links)
        elif after is not None:
            becomes = EntryState(_FILE, self.digests[1], mode)
        self.row = row_of(self._ctx, self.identity.key or (), self.identity.entry, was, becomes, now_ns)

    def contents(self) -> dict[bytes, bytes]:
        """Both contents, by digest."""
        both = zip(self.digests, (self.before, self.after), strict=True)
        return {digest: content for digest, content in both if digest is not None and content is not None}

    def record(self, told: MutationResult, seen: Freshness, *, landed: bool) -> None:
        """The events know how it ended; and if it `landed`, so does the memory of what was last seen."""
        told.digest, told.landed = self.digests[landed], landed
        if landed:
            seen.saw(self.identity.key or (), self.identity.found, self.digests[1], own=True)

    def revised(self) -> Revised:
        """What it made of the file."""
        return Revised(self.before, self.after, self.parted, self.joined)


class Files(CachedReader):
    """The files of one workspace, as its tools read and change them.  Get it from `Workspace.files`."""

    def __init__(self, disk: Disk, store: ChangeStore, limits: Limits, keep_hard_links: bool = False) -> None:
        super().__init__(disk, limits)
        self._store = store
        self._limits = limits
        self._pending = PendingDirectories(disk)
        #: What is kept aside together has a bound: one removal after the other asks what there is.
        self._keeping = trio.Lock()
        self._keeps_hard_links = keep_hard_links

    async def revise(
        self, ctx: CallContext, identity: Identity, change: Change, again: Change | None = None
    ) -> Revised:
        """The file of that `identity` has what `change` makes of what stood there; missing directories are made.

        `change` is called once, possibly in a worker thread; what it raises is raised, and the file is as it was.
        If it gives what stood there, nothing is written.

        Args:
            change: what is made of the file as this workspace last saw it, or where it never did.
            again: what is made of it where another program has changed it since.  What that refuses, and None, is
                refused as such a change.

        Raises:
            FileProblem: another program changed the file since this workspace last saw it, the new content is too
                large, or the disk refused; the file is as it was.

        Checkpoint: always.
        """
        if identity.found is None:
            await self._pending.settled(identity.key or ())
            if self._pending.missing(ctx, identity.key or (), identity.entry[:-1]):
                return (await self.revise_all(ctx, [(identity, change, again)]))[0]
        work = await self._revising(ctx, identity, change, again)
        token: object = None

        def begin(there: Snapshot | None) -> bytes | None:
            nonlocal token
            work.check(there, self._disk.now_ns())
            if work.row is not None and work.after is not None:
                intended(ctx, [work.row])
                token = self._store.begin([work.row], work.contents())
            return None if token is None else work.after

        # Read, check and write are one operation of the disk, so that nothing comes between them.
        with Mutation(ctx, [work.identity], work.identity.path) as (told,):
            landed = False
            try:
                await self._disk.revise(work.identity.entry, SIZE_LIMIT, begin, work.in_place)
                landed = work.row is None or token is not None
            except Unsynced:
                landed = True
                raise
            finally:
                if token is not None:
                    self._store.end(token, landed)
                work.record(told, self._seen, landed=landed)
                if not landed:
                    self._drop_below(work.identity.key or ())
                elif work.row is not None:
                    self._changed(ctx, work.row)
            if work.row is not None and not landed:  # the file is to go, which is another operation of the disk
                await self._carry_out(ctx, [self._as_on_disk(work.row)], work.contents())
                work.record(told, self._seen, landed=True)
        return work.revised()

    async def revise_all(
        self, ctx: CallContext, revisions: Sequence[PlannedChange], modes: Mapping[Entry, int] | None = None
    ) -> list[Revised]:
        """As `revise` for several files, all or nothing: all are read, checked and computed before one is written.

        No file may be named twice.

        Args:
            revisions: each file, and what is made of it.
            modes: the permission bits of files that are to have others than they have, or than a new file gets.

        Raises:
            FileProblem: as `revise`, of any of them; all files are as they were.

        Checkpoint: always.
        """
        works = [await self._revising(ctx, *revision) for revision in revisions]
        identities = [work.identity for work in works]
        require_different(identities)
        shown = ", ".join(identity.path for identity in identities)
        rows: list[ChangeRow] = []
        contents: dict[bytes, bytes] = {}
        with self._doubted(identities), Mutation(ctx, identities, shown) as told:
            for work, one in zip(works, told, strict=True):
                there: Snapshot | None = None
                with os_errors(work.identity.path), contextlib.suppress(FileNotFoundError):
                    there = await self._disk.read(work.identity.entry, SIZE_LIMIT)
                mode = None if modes is None else modes.get(work.identity.entry)
                size = 0 if there is None else len(there.content)
                await aside(self._disk, size, partial(work.check, there, self._disk.now_ns(), mode), large=_LARGE)
                one.digest = work.digests[0]
                if work.row is not None:
                    contents.update(work.contents())
                    rows.append(self._as_on_disk(work.row) if work.after is None else work.row)
            created = [work.identity for work in works if work.row is not None and work.before is None]
            await self._carry_out(ctx, rows, contents, created)
            for work, one in zip(works, told, strict=True):
                work.record(one, self._seen, landed=True)
        return [work.revised() for work in works]

    async def make_dirs(self, ctx: CallContext, identity: Identity) -> bool:
        """A directory stands at that `identity`, and at each part of the way; says whether one was made.

        Raises:
            FileProblem: something else stands on the way, or the disk refused; nothing was made.

        Checkpoint: always.
        """
        await self._pending.settled(identity.key or ())
        rows = self._pending.missing(ctx, identity.key or (), identity.entry)
        if not rows:
            with os_errors(identity.path):
                await self._disk.make_dirs(identity.entry)
            return False
        with Mutation(ctx, [identity], identity.path) as (told,), self._pending.of([row.key for row in rows]):
            done = await self._carry_out(ctx, rows, {})
            told.landed = True
        return bool(done)

    async def remove(self, ctx: CallContext, identity: Identity, recursive: bool = False) -> None:
        """Nothing stands at that `identity` any more; of a link only the link is removed.

        Args:
            recursive: whether a directory may be removed with all it has; else it must be empty.

        Raises:
            FileProblem: nothing was there, a directory is not empty, another program changed a file since this
                workspace last saw it, or the disk refused; nothing was removed.

        Checkpoint: always.
        """
        with self._doubted([identity]), Mutation(ctx, [identity], identity.path) as (told,):
            identity = attrs.evolve(identity, entry=as_on_disk(self._disk, identity.entry))
            limits = self._limits
            found = Removal(self._disk, self._seen, ctx, limits.history_bytes // 4, limits.versions // 16)
            stat = await found.gather(identity, recursive)
            rows, store = found.rows, self._store
            if not found.fits:
                await self._keep(ctx, identity, rows[-1])
                told.landed = True
                return

            def begin() -> object:
                intended(ctx, rows)
                return store.begin(rows, found.contents)

            token = await in_thread(begin, blocks=store.blocks)
            landed = False
            try:
                if recursive and len(rows) > 1:
                    await self._disk.remove_tree(identity.entry)
                else:
                    await self._disk.remove(identity.entry, stat)
                landed = True
            except Unsynced:
                landed = True
                raise
            finally:
                store.end(token, landed)
                if landed:
                    self._changed(ctx, rows[-1])
                    self._seen.moved(identity.key or (), None)
                    self._seen.saw(identity.key or (), identity.found, None, own=True)
            told.landed = True

    async def _keep(self, ctx: CallContext, identity: Identity, row: ChangeRow) -> None:
        """Nothing stands at that `identity` any more; all of it is kept aside.

        Raises:
            FileProblem: it cannot be kept; nothing was removed.
        """
        try:
            async with self._keeping:
                size = (await self._disk.survey(identity.entry, contents=False)).size
                await make_room(self._disk, self._store, row.batch_id, row.path, size, self._limits)
                kept = self._disk.kept_for(identity.entry)
                before = None if row.before is None else attrs.evolve(row.before, digest=None)
                removal = attrs.evolve(row, before=before, target=kept, target_key=kept)
                await self._carry_out(ctx, [removal], {})
        except (Changed, Unsynced):
            raise
        except OSError as error:
            raise FileProblem(
                identity.path,
                "a place on its own disk to keep it, because it is too large for history",
                os.strerror(error.errno or 0).lower(),
                "Nothing was removed; delete it in parts, or outside of toolrt.",
            ) from None
        self._seen.saw(identity.key or (), identity.found, None, own=True)

    async def move(self, ctx: CallContext, source: Identity, target: Identity) -> None:
        """What stood at `source` stands at `target`, where nothing stood; missing directories are made.

        Raises:
            FileProblem: nothing is at `source`, something is at `target`, `target` is inside `source`, or the disk
                refused; nothing was moved.

        Checkpoint: always.
        """
        with Mutation(ctx, [*dict.fromkeys([source.event_name, target.event_name])], target.path) as told:
            with os_errors(source.path):
                standing = (await standing_at(self._disk, source.entry, content=False)).standing
                if standing is None:
                    raise FileNotFoundError(errno.ENOENT, "nothing there")
            moved = attrs.evolve(
                self._as_on_disk(row_of(ctx, source.key or (), source.entry, standing, None, self._disk.now_ns())),
                target_key=target.key,
                target=target.entry,
            )
            try:
                await self._carry_out(ctx, [moved], {}, [target])
            except FileExistsError:
                raise FileProblem(
                    target.path,
                    "a name that is free",
                    "one that is taken",
                    "Nothing was moved; delete what is there first, or move to another name.",
                ) from None
            for one in told:
                one.landed = True

    async def carry_out(
        self, ctx: CallContext, rows: Sequence[ChangeRow], contents: Mapping[bytes, bytes]
    ) -> list[ChangeRow]:
        """All that `rows` say happened, with `contents` by digest, or nothing; gives those that did something.

        For history, which makes such rows: what stands there is compared with them, not with what was last seen.

        Raises:
            FileProblem: as `revise_all`.

        Checkpoint: always.
        """
        batch_id, call_index, call_id = origin_of(ctx)
        own = [
            attrs.evolve(row, batch_id=batch_id, call_index=call_index, call_id=call_id, time_ns=self._disk.now_ns())
            for row in rows
        ]
        names = list(dict.fromkeys("/".join(key) for row in own for key, _ in row.ends))
        with Mutation(ctx, names, ", ".join(sorted({row.path for row in own}))) as told:
            await self._pending.settled(*(row.ends[-1][0] for row in own))
            made = [row.key for row in own if row.makes_directory]
            brought = [row.target_key for row in own if row.target_key is not None and not row.keeps]
            puts = [row.ends[-1] for row in own if not row.keeps and (row.target is not None or row.after is not None)]
            needing = [(key, entry[:-1]) for key, entry in puts if not _among(key[:-1], made, brought)]
            for row in (row for key, above in needing for row in self._pending.missing(ctx, key, above)):
                if not _among(row.key, made, brought):
                    raise FileProblem(
                        row.path, "the directory that was there", "none by now", "Nothing was changed; make it first."
                    )
            with self._pending.of(made):
                done = await self._carry_out(ctx, own, contents)
            left = {"/".join(row.key): row.after for row in own if row.target is None}
            for name, one in zip(names, told, strict=True):
                standing = left.get(name)
                one.digest, one.landed = (None if standing is None else standing.digest), True
        for row in done:
            if row.target is None and (row.after is None or row.after.kind is Kind.FILE):
                # What history has put at an entry is what this workspace saw there last.
                stat = stat_or_none(self._disk, path_on(self._disk, row.entry))
                self._seen.saw(row.key, stat, None if row.after is None else row.after.digest, own=True)
        return done

    @contextlib.contextmanager
    def _doubted(self, identities: Sequence[Identity]) -> Iterator[None]:
        """Where a change is refused, what is kept of its files goes: it may be what the refused call was shown."""
        try:
            yield
        except (FileProblem, OSError):
            for identity in identities:
                self._drop_below(identity.key or ())
            raise

    async def stays_one(self, stat: Stat) -> bool:
        """Whether the file of that look, which has several names, is written in place: then all its names change.

        So it is if all of them are found in the workspace, and where the workspace keeps hard links.

        Args:
            stat: the look at that file.

        Checkpoint: if the names are looked for on a real disk.
        """
        if self._keeps_hard_links:
            return True
        return len(await in_thread(lambda: self._disk.names_of(stat), blocks=blocks(self._disk))) >= stat.links

    async def _revising(
        self, ctx: CallContext, identity: Identity, change: Change, again: Change | None = None
    ) -> Revising:
        """One change of one file; where its name is to part from others it is known by that name alone."""
        found = identity.found
        expected = self._seen.expected(identity.key or (), found)
        stays: Stat | None = None
        if found is not None and identity.shared:
            if await self.stays_one(found):
                stays = found
            else:
                identity = attrs.evolve(identity, found=None)

        def in_place(stat: Stat) -> bool:
            if self._keeps_hard_links:
                return True
            return stays is not None and (number_of(stat), stat.links) == (number_of(stays), stays.links)

        return Revising(ctx, identity, change, again, expected, in_place)

    def _as_on_disk(self, row: ChangeRow) -> ChangeRow:
        """The change with its file's name as it is to come back."""
        with os_errors(row.path):
            return attrs.evolve(row, entry=as_on_disk(self._disk, row.entry))

    async def _carry_out(
        self,
        ctx: CallContext,
        rows: Sequence[ChangeRow],
        contents: Mapping[bytes, bytes],
        created: Sequence[Identity] = (),
    ) -> list[ChangeRow]:
        """All of `rows` happened, and before them the missing directories above what is `created` were made."""
        await self._pending.settled(*(identity.key or () for identity in created))
        made: dict[Entry, ChangeRow] = {}
        for identity in created:
            for row in self._pending.missing(ctx, identity.key or (), identity.entry[:-1]):
                made.setdefault(row.key, row)
        rows = [*made.values(), *rows]
        with self._pending.of([*made]):
            if getattr(ctx, "has_journal", False):
                await in_thread(lambda: intended(ctx, rows), blocks=True)
            changes = ChangeSet(self._disk, rows, contents, lambda row: self._changed(ctx, row))
            return await changes.carry_out(self._store)

    def _changed(self, ctx: CallContext, row: ChangeRow) -> None:
        """A row was carried out, or taken back."""
        self._drop(row)
        note_change(ctx, row)
        if row.target_key is not None:
            self._seen.moved(row.key, row.target_key)


def _among(directory: Entry, made: Sequence[Entry], brought: Sequence[Entry]) -> bool:
    """Whether `directory` is one of those made, or comes with what is brought by a move."""
    return directory in made or any(directory[: len(key)] == key for key in brought)


def require_different(
    identities: Iterable[Identity], got: str = "one that is named twice", remedy: str = "Nothing was changed."
) -> None:
    """Refuse a change that touches one file twice, whatever names it uses."""
    names: set[str] = set()
    for identity in identities:
        if identity.event_name in names:
            raise FileProblem(identity.path, "each file once", got, remedy)
        names.add(identity.event_name)

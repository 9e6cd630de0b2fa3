"""Shows every version of every file that a workspace changed, restores one, and undoes a batch.

Rules.  Each mutation that landed is a version of its file, also one by a restore or an undo.  `undo` puts back exactly
what a batch changed, all of it or nothing.  It refuses where another batch or program has changed one of those files
since, or between two of the batch's own changes.  What an earlier undo took back is left as it is.  It removes a
directory that the batch made, unless that holds something else by now.  Restore and undo take claims as any mutation
does, behind every call that was ordered before.

Theory.  The calls of a batch change one file in call order, and different files in any order; so the versions of a
batch are taken back by call, the last first, which is one of the orders they may have happened in and the same one
every time.

Limits.  History is bounded: the oldest versions go first, and what went cannot be put back.  A batch that lost some is
not undone at all, and one that has used up the bounds by itself changes no more.  A file of more than 10 MiB, and what
is neither file, directory nor link, leaves a version without content when it is removed.  A name that was removed from
a file with several comes back as a file of its own.  A session is one workspace and its life.  A batch id means this
session's batch, else the newest with this id; two concurrent ones raise.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import attrs
import trio

from toolrt import probe
from toolrt.model import WRITE, Claim, State, covers
from toolrt.order import ClaimTable
from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._files import Files
from toolrt.workspace.change._mutation import blocks, in_thread, os_errors, standing_at
from toolrt.workspace.change._revision import CallContext, origin_of, row_of
from toolrt.workspace.change._version import ChangeRow, ChangeStore, EntryState, Version
from toolrt.workspace.disk._disk import Disk, Entry, Kind
from toolrt.workspace.history._undo import NamesLeft, elsewhere, names_left, not_taken_back, planned
from toolrt.workspace.history._versions import content_between, standing_at_version, version_of
from toolrt.workspace.names._at_once import at_once
from toolrt.workspace.names._identity import Identity, Wanted, identify
from toolrt.workspace.names._naming import shown_at

_T = TypeVar("_T")

#: How often the claims of an undo are taken anew because the batch went on meanwhile.
_MOST_TRIES = 100


@attrs.frozen
class Undone:
    """What an undo or a restore did."""

    #: The batch that its own versions belong to; undoing that does it again.
    batch_id: str = attrs.field(eq=False)
    #: The files and directories that are other now, relative to the workspace's root, sorted.
    paths: tuple[str, ...]
    #: Those of them that had names outside the workspace, or that were not found: these keep what they had, and the
    #: path has a file of its own now.
    parted: tuple[str, ...] = ()
    #: Those of them that are files or links of this process's making: nothing was there, so owner, times and extended
    #: attributes are those of a new one.
    made_anew: tuple[str, ...] = ()
    #: The files and directories that an earlier undo of a part of the batch had put back; sorted.
    already: tuple[str, ...] = ()


@attrs.frozen
class _UndoRequest:
    """Stands for a call where none is: an undo or a restore from outside any batch."""

    batch_id: str
    claims: tuple[Claim, ...]
    state: State = attrs.field(factory=State)
    call_index: int = 0
    call_id: str | None = None
    #: The other calls of its batch, as calls that wait for it ask: it has none.
    siblings: None = None


class History:
    """The versions of one workspace's files.  Get it from `Workspace.history`."""

    def __init__(self, disk: Disk, claim_table: ClaimTable, files: Files, store: ChangeStore) -> None:
        self._disk = disk
        self._claim_table = claim_table
        self._files = files
        self._store = store
        #: How many undos and restores there were, to name their batches.
        self._requests = 0

    @property
    def store(self) -> ChangeStore:
        """Where it is kept."""
        return self._store

    @property
    def persistent(self) -> bool:
        """Whether it outlives the process; what is of a mount in memory never does."""
        return self._store.blocks and self._store.problem is None

    @property
    def problem(self) -> str | None:
        """Why it is kept in memory although it should outlive the process; None: it is kept where it should be."""
        return self._store.problem

    async def versions(self, path: str, state: State | None = None) -> list[Version]:
        """The versions of what `path` names in `state`, oldest first.  What is still running is not waited for.

        Of a link they are its own, as when it was moved; or else those of the file that it leads to.

        Raises:
            FileProblem: the name is outside the workspace, or is no name.

        Checkpoint: always.
        """
        await trio.lowlevel.checkpoint()
        _, key, dropped, rows = await self._named(path, state)
        return [version_of(dropped + place, row, key) for place, row in enumerate(rows, 1)]

    async def _named(self, path: str, state: State | None) -> tuple[Identity, Entry, int, list[ChangeRow]]:
        """What `path` names, its key, how many of its rows were dropped, and those that are left."""
        for wanted in (Wanted.ENTRY, Wanted.FILE):
            identity = self._meant(path, state, wanted)
            key = _key(identity)
            dropped, rows = await self._ask(partial(self._store.rows_of_file, key))
            if rows or identity.found is None or identity.found.kind is not Kind.SYMLINK:
                break
        return identity, key, dropped, rows

    def _meant(self, path: str, state: State | None, wanted: Wanted) -> Identity:
        return identify(self._disk, path, None if state is None else state.working_dir, wanted)

    async def changed_by(self, batch_id: str) -> tuple[str, ...]:
        """The files and directories that a batch changed so far, relative to the workspace's root, sorted.

        Empty where it changed none, or none that history still knows of.

        Checkpoint: always.
        """
        await trio.lowlevel.checkpoint()
        return _paths_of(await self._ask(lambda: self._store.rows_of_batch(batch_id)))

    async def batches(self) -> tuple[str, ...]:
        """The ids of the batches that changed files, as far as history knows of them; the newest first.

        Checkpoint: always.
        """
        await trio.lowlevel.checkpoint()
        return tuple(reversed(await self._ask(self._store.batches)))

    async def changes(
        self, batch_id: str, *, call_index: int | None = None, path: str | None = None
    ) -> tuple[Version, ...]:
        """The changes that a batch made, in call order, numbered from 1: what `undo` of the same arguments takes back,
        but for what an earlier one took back.

        Args:
            batch_id: the batch, see `BatchOutcome.batch_id`.
            call_index: only those of this call, counted from 0; None: of all calls.
            path: only those of the file of this name, see `undo`; None: of all files.

        Raises:
            FileProblem: as `undo`.

        Checkpoint: always.
        """
        await trio.lowlevel.checkpoint()
        rows = await self._rows(batch_id, call_index, path)
        return tuple(version_of(number, row, row.key) for number, row in enumerate(rows, 1))

    async def content(self, digest: str) -> bytes | None:
        """The content of a file, or the text of a link, whose `Version.before` or `after` is `digest`; None: not kept.

        Checkpoint: always.
        """
        await trio.lowlevel.checkpoint()
        return await self._content(bytes.fromhex(digest))

    async def restore(
        self, path: str, version: int, state: State | None = None, *, ctx: CallContext | None = None
    ) -> Undone:
        """The file at `path`, as `state` has it, has what `version` gave it; 0: what was there before the first.

        Nothing is there if nothing was.  That is a new version, so nothing is lost.

        Args:
            ctx: the call that does it, if one does; its claims must cover the file.  Otherwise claims are taken.

        Raises:
            FileProblem: there is no such version, its content is not kept, another program changed the file since
                this workspace last saw it, or the disk refused; nothing was changed.

        Checkpoint: always.
        """
        await trio.lowlevel.checkpoint()
        identity, key, dropped, rows = await self._named(path, state)
        wanted = standing_at_version(identity.path, key, version, dropped, rows)
        content: bytes | None = None
        if wanted is not None:
            digest = wanted.digest
            if digest is None and wanted.kind is Kind.FILE:
                digest = await content_between(key, version - dropped, rows, self._rows_of)
            content = None if digest is None else await self._content(digest)
            if digest is None or content is None:
                raise _not_kept(identity.path, f"version {version}")
            wanted = attrs.evolve(wanted, digest=digest)

        async def put(owner: CallContext) -> Undone:
            now = self._meant(path, state, identity.wanted)
            if now.problem is not None:
                raise now.problem
            if now.key != key or not all(covers(owner.claims, claim) for claim in now.claims(WRITE)):
                raise _moved_on(now.path)
            changed, parted = await self._put(owner, now, wanted, content)
            made_anew = changed and wanted is not None and (now.found is None or now.found.kind is not wanted.kind)
            paths = [(now.path,) if applies else () for applies in (changed, parted, made_anew)]
            return Undone(origin_of(owner)[0], *paths)

        if ctx is not None:
            return await put(ctx)
        request = self._request("restore", identity.claims(WRITE))
        async with _turn(self._claim_table, request):
            return await put(request)

    async def _put(
        self, owner: CallContext, now: Identity, wanted: EntryState | None, content: bytes | None
    ) -> tuple[bool, bool]:
        """Put it there; says whether something is other now, and whether it has parted from names elsewhere."""
        files, links = self._files, (None if wanted is None else wanted.kind) is Kind.SYMLINK
        if now.found is not None and now.found.kind not in (Kind.FILE, Kind.SYMLINK):
            raise FileProblem(now.path, "a file or a link to replace", now.found.kind.value, "Nothing was changed.")
        if now.found is not None and now.found.kind is Kind.FILE and links:
            raise FileProblem(
                now.path,
                "nothing where a link is to be put back",
                "a file",
                "Nothing was changed; delete the file first.",
            )
        if not links and (now.found is None or now.found.kind is Kind.FILE):
            # A file that is there keeps the mode that it has.
            mode = None if wanted is None or now.found is not None else wanted.mode
            modes = {} if mode is None else {now.entry: mode}
            [revised] = await files.revise_all(owner, [(now, lambda found: content, None)], modes)
            return revised.before != revised.after, revised.parted
        with os_errors(now.path):
            found = await standing_at(self._disk, now.entry)
        if found.standing == wanted:
            return False, False
        rows = [
            row_of(owner, now.key or (), now.entry, before, after, 0)
            for before, after in ((found.standing, None), (None, wanted))
            if before != after
        ]
        pairs = ((found.standing, found.content), (wanted, content))
        contents = {one.digest: text for one, text in pairs if one is not None and one.digest and text is not None}
        return bool(await files.carry_out(owner, rows, contents)), False

    async def _rows_of(self, key: Entry) -> Sequence[ChangeRow]:
        return (await self._ask(lambda: self._store.rows_of_file(key)))[1]

    async def undo(
        self,
        batch_id: str,
        *,
        call_index: int | None = None,
        path: str | None = None,
        ctx: CallContext | None = None,
    ) -> Undone:
        """What the batch changed is as it was before it; or, where that cannot be, everything stays.

        What an undo of one call or one file took back is left, whatever came there since; where nothing else is, it is
        refused.

        Args:
            call_index: only what this call of the batch changed, counted from 0; None: what any call did.
            path: only what the batch did to the file of this name, relative to the workspace's root, and to what it was
                before the batch moved it; None: all files.
            ctx: the call that does it, if one does; its claims must cover everything the batch changed.

        Raises:
            FileProblem: the batch is not known, or a file is not as the batch left it (or the call, if one is named),
                or what stood there is not kept; names the files.  Nothing was changed.

        Checkpoint: always.
        """
        await trio.lowlevel.checkpoint()
        for _ in range(_MOST_TRIES):
            rows = await self._rows(batch_id, call_index, path)
            left, claims = await self._needed(rows)
            if ctx is not None:
                if not all(covers(ctx.claims, claim) for claim in claims):
                    raise FileProblem(
                        f"undo {batch_id}",
                        "claims on all that the batch changed",
                        "a call that holds others",
                        "Undo it outside of a call, or in one that is exclusive.",
                    )
                return await self._undo(ctx, rows, left)
            request = self._request("undo", claims)
            async with _turn(self._claim_table, request):
                left, needed = await self._needed(rows)
                if await self._rows(batch_id, call_index, path) == rows and needed == claims:
                    return await self._undo(request, rows, left)
        raise FileProblem(f"undo {batch_id}", "a batch that is over", "one that goes on", "Undo it once it is over.")

    def _request(self, what: str, claims: tuple[Claim, ...]) -> _UndoRequest:
        probe.access(("files", "requests"), True)
        self._requests += 1
        return _UndoRequest(probe.unique(what, self._requests), claims)

    async def _needed(self, rows: Sequence[ChangeRow]) -> tuple[NamesLeft, tuple[Claim, ...]]:
        """The names that are left of the files that `rows` changed, and what is needed to take them back."""

        def found() -> tuple[NamesLeft, tuple[Claim, ...]]:
            left = names_left(self._disk, rows)
            return left, self._claims(rows, left)

        return await in_thread(found, blocks=blocks(self._disk))

    async def _undo(self, owner: CallContext, rows: Sequence[ChangeRow], left: NamesLeft) -> Undone:
        plan_of = partial(planned, stays_one=self._files.stays_one, left=left)
        standing, refused = rows, None
        try:
            plan = await at_once(self._disk, lambda disk: plan_of(disk, rows))
        except FileProblem as problem:
            refused = problem
        if refused is not None:
            standing = await self._ask(lambda: not_taken_back(rows, lambda key: self._store.rows_of_file(key)[1]))
            if len(standing) == len(rows):
                raise refused
            if not standing:
                raise _put_back(", ".join(_paths_of(rows)))
            plan = await at_once(self._disk, lambda disk: plan_of(disk, standing))
        written = [row for row in plan if row.target is None]
        contents = await self._contents_of(written)
        lost = [
            row.path
            for row in written
            if row.after is not None
            and row.after.kind is not Kind.DIRECTORY
            and (row.after.kind not in (Kind.FILE, Kind.SYMLINK) or row.after.digest not in contents)
        ]
        if lost:
            raise _not_kept(", ".join(sorted(lost)), "what stood there")
        done = await self._files.carry_out(owner, plan, contents)
        parted = [row for row in done if row.parted]
        made_anew = [row for row in done if row.before is None and row.after is not None and not row.makes_directory]
        already = {*rows}.difference(standing)
        return Undone(owner.batch_id, *map(_paths_of, (done, parted, made_anew, already)))

    async def _contents_of(self, rows: Sequence[ChangeRow]) -> dict[bytes, bytes]:
        """What `rows` found and left, by digest, as far as it is kept; asked for in one thread."""
        wanted = dict.fromkeys(digest for row in rows for digest in row.digests)
        found = await self._ask(lambda: [(digest, self._store.content(digest)) for digest in wanted])
        return {digest: content for digest, content in found if content is not None}

    async def _content(self, digest: bytes) -> bytes | None:
        return await self._ask(lambda: self._store.content(digest))

    async def _rows(self, batch_id: str, call_index: int | None, path: str | None) -> list[ChangeRow]:
        """The changes of a batch, of one call or of one file; never none."""
        rows, whole = await self._ask(lambda: (self._store.rows_of_batch(batch_id), self._store.is_whole(batch_id)))
        if not rows:
            raise FileProblem(
                f"undo {batch_id}", "a batch that changed files", "none of this id", "See Workspace.history.versions."
            )
        if not whole:
            raise FileProblem(
                f"undo {batch_id}",
                "all that the batch changed",
                "a part: history was full, and the batch's first versions went for later ones",
                "Nothing was changed; restore single files, or raise Limits(versions=, history_bytes=).",
            )
        if call_index is not None:
            rows = [row for row in rows if row.call_index == call_index]
        if path is not None:
            rows = _of_file(rows, _key(self._meant(path, None, Wanted.ENTRY)))
        if not rows:
            raise FileProblem(f"undo {batch_id}", "changes of what was named", "none", "See Workspace.history.changes.")
        return rows

    def _claims(self, rows: Sequence[ChangeRow], left: NamesLeft) -> tuple[Claim, ...]:
        """What is needed to take back `rows`."""
        claims: dict[Claim, None] = {}
        for names in left.values():
            for _, entry in names:
                other = identify(self._disk, f"./{shown_at(entry)}", None, Wanted.ENTRY)
                claims.update(dict.fromkeys(other.claims(WRITE)))
        changed = {key for row in rows for key in (row.key, row.target_key) if key is not None}
        for row in rows:
            for key, entry in row.ends:
                identity = identify(self._disk, f"./{shown_at(entry)}", None, Wanted.ENTRY)
                if identity.key != key:
                    if not any(key[:depth] in changed for depth in range(1, len(key))):
                        raise elsewhere(row.path)
                    # What the batch itself has made of a directory on the way is taken back before the way is needed.
                    through = tuple(key[:depth] for depth in range(1, len(key)))
                    identity = Identity(key, entry, None, through, None, Wanted.ENTRY)
                standing = row.before or row.after
                plain = standing is not None and standing.kind is Kind.FILE and row.target is None
                claims.update(dict.fromkeys(identity.claims(WRITE, subtree=not plain)))
        return tuple(claims)

    async def _ask(self, question: Callable[[], _T]) -> _T:
        return await in_thread(question, blocks=self._store.blocks)

    def statistics(self) -> dict[str, int]:
        """How much it holds: ``versions`` and ``bytes``.  May block."""
        return self._store.statistics()


@contextlib.asynccontextmanager
async def _turn(table: ClaimTable, request: _UndoRequest) -> AsyncIterator[None]:
    """A ticket of `request`, held inside the block, which is entered when it is first in line."""
    turn = trio.Event()
    ticket = table.take(request.claims, request, lambda _: turn.set())
    try:
        if not ticket.ready:
            await turn.wait()
        yield
    finally:
        ticket.release()


def _of_file(rows: Sequence[ChangeRow], key: Entry) -> list[ChangeRow]:
    """Those of `rows` that changed the file that has `key` after them, else the one that had it before, by any name."""
    name, found = key, []
    for row in rows:
        if row.key == name and row.target_key is not None:
            name = row.target_key
        elif key in (row.key, row.target_key):
            name = key
    for row in reversed(rows):
        if name == row.key and row.target_key is not None and not row.keeps:
            break  # another file had the name before
        if name in (row.key, row.target_key):
            found.append(row)
            name = row.key
    return found[::-1]


def _paths_of(rows: Iterable[ChangeRow]) -> tuple[str, ...]:
    return tuple(sorted({shown_at(entry) for row in rows for _, entry in row.ends}))


def _key(identity: Identity) -> Entry:
    if identity.key is None:
        raise identity.problem or _moved_on(identity.path)
    return identity.key


def _not_kept(path: str, what: str) -> FileProblem:
    return FileProblem(path, f"the content of {what}", "none that was kept", "It cannot be put back from history.")


def _put_back(paths: str) -> FileProblem:
    return FileProblem(
        paths, "a change of the batch that stands", "none: earlier undos took all back", "Nothing was changed."
    )


def _moved_on(path: str) -> FileProblem:
    return FileProblem(
        path, "the file this name meant before", "another one by now", "Nothing was changed.", retryable=True
    )

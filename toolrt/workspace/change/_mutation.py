"""Carries out changes of files: a single one, or a set that happens as a whole or not at all.

Rules.  History records a change before the disk is touched, and records after it that it happened.  A change is applied
only if what stands there is what the change expects.  If a part of a set fails or is cancelled, its earlier parts are
taken back in reverse order; a file that another program has changed in the meantime stays as it is.  Files that are
written one after the other are written at the same time, as none of them depends on another.  Making a directory
that exists succeeds, and removing one that holds other files leaves it.

Theory.  A change is a row with what stood there and what is to stand there, so its inverse is a row too: rollback, undo
and recovery after a crash are one operation.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import attrs
import trio

from toolrt import probe
from toolrt.workspace._problem import FileProblem, changed_since, from_os_error
from toolrt.workspace.change._version import ChangeRow, ChangeStore, EntryState, Number, contents_of
from toolrt.workspace.disk._disk import Disk, Entry, InPlace, Kind, Snapshot, Stat, Survey
from toolrt.workspace.disk._disk_errors import Unsynced
from toolrt.workspace.disk._memory import MemoryDisk
from toolrt.workspace.names._mounts import path_on

T = TypeVar("T")

#: The most bytes of a file that is read whole or written: 10 MiB, about 2.5 million tokens, more than any context.
SIZE_LIMIT = 10 * 1024 * 1024

#: From this size on a digest is worth a worker thread: about a millisecond.
_LARGE = 1024 * 1024

#: How many files of one set are written at a time.
_WORKING = 16

_MISSING = (errno.ENOENT, errno.ENOTDIR)


def digest_of(content: bytes) -> bytes:
    """What stands for a content: its SHA-256."""
    return hashlib.sha256(content).digest()


async def in_thread(work: Callable[[], T], *, blocks: bool = True) -> T:
    """Do `work` in a worker thread if it `blocks`; in place otherwise, in a simulation, and where this is one.

    Checkpoint: if it blocks.
    """
    if probe.threads_inline or not blocks or not trio.lowlevel.in_trio_task():
        return work()
    return await trio.to_thread.run_sync(work, abandon_on_cancel=False)


def step_aside() -> None:
    """Give Trio's thread its turn in the middle of long work in a thread of `in_thread`; elsewhere it does nothing.

    Without it Trio's thread waits 5 ms for each of its turns, and often for two of them.

    Raises:
        trio.Cancelled: the task that waits for the work is cancelled; let it through.
    """
    if not trio.lowlevel.in_trio_task():
        with contextlib.suppress(RuntimeError):  # this is no thread of Trio's
            trio.from_thread.check_cancelled()
            time.sleep(0)


def blocks(disk: Disk) -> bool:
    """Whether what reads `disk` may block."""
    return not isinstance(disk, MemoryDisk)


async def aside(disk: Disk, size: int, work: Callable[[], T], *, large: int) -> T:
    """What `work` makes of a content of `size` bytes, without holding up Trio's thread for long.

    A content of at least `large` bytes is worth a worker thread; one on a disk in memory never is.

    Checkpoint: if it is worth one.
    """
    return await in_thread(work, blocks=size >= large and blocks(disk))


async def quick_digest(disk: Disk, content: bytes) -> bytes:
    """The digest, without holding up Trio's thread for long."""
    return await aside(disk, len(content), lambda: digest_of(content), large=_LARGE)


@attrs.frozen
class InspectedEntry:
    """What stands at a name, looked at closely."""

    #: What it is; None: nothing is there.
    standing: EntryState | None
    #: The content of a file or the text of a link, as far as it can be kept.
    content: bytes | None = None
    #: What a look showed.
    stat: Stat | None = None


def number_of(stat: Stat) -> Number:
    """What all names of a file have in common."""
    return stat.device, stat.inode


async def standing_at(disk: Disk, entry: Entry, *, content: bool = True) -> InspectedEntry:
    """What stands at `entry`.

    Args:
        content: whether a file is to be read.

    Raises:
        OSError: as `Disk.look` and `Disk.read`, except that nothing is there.

    Checkpoint: always.
    """
    with contextlib.suppress(OSError):
        # A file, most often; what is none is looked at, which also tells the error.
        if content:
            snapshot = await disk.read(entry, SIZE_LIMIT)
            digest = await quick_digest(disk, snapshot.content)
            standing = EntryState(Kind.FILE, digest, snapshot.stat.mode, number_of(snapshot.stat))
            return InspectedEntry(standing, snapshot.content, snapshot.stat)
    try:
        stat = await disk.look(entry)
        if stat.kind is Kind.SYMLINK:
            text = disk.readlink(path_on(disk, entry)).encode(errors="surrogateescape")
            return InspectedEntry(EntryState(Kind.SYMLINK, digest_of(text)), text, stat)
    except OSError as error:
        if error.errno in _MISSING:
            return InspectedEntry(None)
        raise
    return InspectedEntry(
        EntryState(stat.kind, None, stat.mode, number_of(stat) if stat.kind is Kind.FILE else None), None, stat
    )


@attrs.define
class ChangeSet:
    """Rows that are carried out on one disk: all of them, or none."""

    disk: Disk
    #: The changes, in order.
    rows: Sequence[ChangeRow]
    #: What is to be written, and what was there before, by digest.
    contents: Mapping[bytes, bytes]
    #: Called with every row that was carried out, or taken back.
    changed: Callable[[ChangeRow], None] = lambda row: None

    async def carry_out(self, store: ChangeStore) -> list[ChangeRow]:
        """All rows happened, in order, and `store` has them; gives those that did something.

        Raises:
            FileProblem, OSError, trio.Cancelled: one of them could not be done; all is as it was, except what another
                program changed meanwhile, which a `FileProblem` names.

        Checkpoint: always.
        """
        done: list[tuple[ChangeRow, object]] = []
        rows = self.rows
        if len(rows) > 1:
            group = f"{rows[0].batch_id} {rows[0].call_index}"
            rows = [attrs.evolve(row, group=group) for row in rows]
        try:
            for some in self._at_once(rows):
                await self._apply_all(some, store, done)
            with trio.CancelScope(shield=True):
                await in_thread(lambda: store.settle([token for _, token in done]), blocks=store.blocks)
        except BaseException as error:
            with trio.CancelScope(shield=True):
                stayed = await self.take_back([row for row, _ in done])
            for row, token in reversed(done):
                store.end(token, row.path in stayed)
            if stayed and isinstance(error, FileProblem | OSError):
                raise FileProblem(  # noqa: ASYNC104  in place of an error that is no Cancelled
                    ", ".join(stayed),
                    "to put back what was changed before a later change failed",
                    "what another writer has made of it since",
                    "That stays; read the files again.",
                ) from error
            raise
        return [row for row, _ in done]

    def _at_once(self, rows: Sequence[ChangeRow]) -> list[list[ChangeRow]]:
        """The rows in parts, one after the other; those of one part write different files, so their order is free.

        In a simulation and on a disk in memory each row is a part, as nothing is gained.
        """
        parts: list[list[ChangeRow]] = []
        written: set[Entry] = set()
        many = blocks(self.disk) and not probe.threads_inline
        for row in rows:
            plain = many and row.target is None and _is_plain(row.before) and _is_plain(row.after)
            if not plain or not written or row.key in written:
                parts.append([])
                written = set()
            if plain:
                written.add(row.key)
            parts[-1].append(row)
        return parts

    async def _apply_all(
        self, rows: Sequence[ChangeRow], store: ChangeStore, done: list[tuple[ChangeRow, object]]
    ) -> None:
        """Do the rows of one part; the first that fails ends the others, and some of these may have happened."""
        if len(rows) == 1:
            await self._apply(rows[0], store, done)
            return
        left, failed = iter(rows), list[Exception]()

        async def work() -> None:
            try:
                for row in left:
                    await self._apply(row, store, done)
            except (FileProblem, OSError) as error:
                failed.append(error)
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for _ in range(min(_WORKING, len(rows))):
                nursery.start_soon(work)
        if failed:
            raise failed[0]

    async def take_back(self, done: Sequence[ChangeRow]) -> list[str]:
        """Take back the rows `done`, the last first; gives the paths that another program has changed since.

        Checkpoint: always.
        """
        stayed: list[str] = []
        for row in reversed(done):
            try:
                await self._apply(row.inverse(), None, [])
            except Unsynced:
                continue
            except (FileProblem, OSError):
                stayed.append(row.path)
        return stayed

    async def _apply(self, row: ChangeRow, store: ChangeStore | None, done: list[tuple[ChangeRow, object]]) -> None:
        """Do one row, and say so in `done` if there was anything to do."""
        #: The row as history has it, and the token that it gave; empty until it is written down.
        begun: list[tuple[ChangeRow, object]] = []

        def begin(now: ChangeRow = row) -> None:
            begun.append((now, None if store is None else store.begin([now], contents_of([now], self.contents))))

        def begin_kept(found: Survey) -> None:
            if row.before is not None and row.before.digest not in (None, found.digest):
                raise changed_since(row.path)
            standing = EntryState(found.kind, found.digest, found.mode, found.number, size=found.size)
            begin(attrs.evolve(row, before=standing))

        async def begin_aside() -> None:
            await in_thread(begin, blocks=store is not None and store.blocks)

        went = True
        try:
            if row.target is not None and row.keeps:
                await self.disk.keep(row.entry, row.target, begin_kept)
            elif row.target is not None:
                await begin_aside()
                await self.disk.move(row.entry, row.target)
            elif row.after is not None and row.after.kind is Kind.FILE:
                await self._write(row, begin)
            elif row.after is not None:
                await self._make(row, begin_aside)
            else:
                went = await self._remove(row, begin_aside)
        except BaseException as error:
            went = isinstance(error, Unsynced)
            raise
        finally:
            for now, token in begun:
                if went:
                    done.append((now, token))
                    self.changed(now)
                elif store is not None:
                    store.end(token, False)

    async def _write(self, row: ChangeRow, begin: Callable[[], None]) -> None:
        """Give a file its content, if what is there is what should be."""
        after = row.after
        if after is None or after.digest is None or after.digest not in self.contents:
            raise FileProblem(row.path, "a content to write", "one that was not kept", "It is as it was.")
        wanted = self.contents[after.digest]
        expected = None if row.before is None else row.before.digest

        def change(found: Snapshot | None) -> bytes:
            if (None if found is None else digest_of(found.content)) != expected:
                raise changed_since(row.path)
            begin()
            return wanted

        await self.disk.revise(row.entry, SIZE_LIMIT, change, _as_told(row))
        if row.before is None or row.before.mode != after.mode:
            await self._set_mode(row.entry, after.mode)

    async def _make(self, row: ChangeRow, begin: Callable[[], Awaitable[None]]) -> None:
        """Make a directory that is not there, or a link."""
        found = (await standing_at(self.disk, row.entry, content=False)).standing
        if row.after is not None and row.after.kind is Kind.DIRECTORY:
            if found is None or found.kind is not Kind.DIRECTORY:
                await begin()
                await self.disk.make_dirs(row.entry)
                await self._set_mode(row.entry, row.after.mode)
            return
        text = None if row.after is None or row.after.digest is None else self.contents.get(row.after.digest)
        if found is not None:
            raise changed_since(row.path)
        if row.after is None or row.after.kind is not Kind.SYMLINK or text is None:
            raise FileProblem(row.path, "to put back what stood there", "what cannot be made again", "It stays away.")
        await begin()
        await self.disk.make_link(row.entry, text.decode(errors="surrogateescape"))

    async def _set_mode(self, entry: Entry, mode: int | None) -> None:
        """Give what was just made the mode it had, if it had one and may have it: its content stands in any case."""
        if mode is not None:
            with trio.CancelScope(shield=True), contextlib.suppress(OSError):
                await self.disk.set_mode(entry, mode)

    async def _remove(self, row: ChangeRow, begin: Callable[[], Awaitable[None]]) -> bool:
        """Remove a file, a link or an empty directory, if it is what should be there; says whether it went."""
        if row.before is None:
            return False
        is_directory = row.before.kind is Kind.DIRECTORY
        found = await standing_at(self.disk, row.entry, content=not is_directory)
        if is_directory:
            gone = found.standing is None or found.standing.kind is not Kind.DIRECTORY
            if gone or await self.disk.names(row.entry):
                return False
        elif found.standing != row.before:
            raise changed_since(row.path)
        await begin()
        try:
            await self.disk.remove(row.entry, None if is_directory else found.stat)
        except OSError as error:
            if is_directory and error.errno in (errno.ENOTEMPTY, errno.ENOENT) and not isinstance(error, Unsynced):
                return False
            raise
        return True


def _is_plain(standing: EntryState | None) -> bool:
    """Whether it is a file with one name."""
    return standing is not None and standing.kind is Kind.FILE and standing.links == 1


def _as_told(row: ChangeRow) -> InPlace:
    """A file is written in place where the row says that it was, or is to be; and never by more names than it says."""
    before, after = row.before, row.after
    if before is None or after is None or after.number is None or after.number != before.number:
        return lambda stat: False
    links = max(before.links, after.links)
    return lambda stat: number_of(stat) == after.number and stat.links <= links


class os_errors:  # noqa: N801  a context manager
    """An error of the disk becomes a refusal that says nothing it should not."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, OSError):
            raise from_os_error(self._path, error) from None

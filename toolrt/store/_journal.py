"""The journal of a runtime: what a later process needs to go on with a batch."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import attrs
import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, JournalFailed, JournalRefused, ToolrtError
from toolrt.model import ToolCall
from toolrt.store._codec import Codec
from toolrt.store._kept import KeptBatch
from toolrt.store._records import Bounds, RecordStore

T = TypeVar("T")

_CODEC = Codec()


@attrs.define(eq=False)
class _Group:
    """Records that are committed together."""

    records: list[tuple[str, str]] = attrs.field(factory=list)
    done: trio.Event = attrs.field(factory=trio.Event)
    error: BaseException | None = None


@attrs.define(eq=False)
class _Writing:
    """The groups of one Trio run: the one that gathers, and the one that was committed last or is now."""

    gathering: _Group = attrs.field(factory=_Group)
    last: _Group | None = None


#: What one Trio run writes, by the journal's store.
_WRITING: trio.lowlevel.RunVar[dict[int, tuple[RecordStore, _Writing]]] = trio.lowlevel.RunVar("toolrt journal")


class Journal:
    """Keeps the batches of a runtime in one file, so that a later process goes on where this one was stopped.

    ``Runtime(registry, journal=Journal(path))``: before a call starts its intent is on the disk, and before its result
    is handed out the result is.  `Runtime.resume` goes on with a batch.  One process at a time has the file open;
    journals of one process on one path share it.

    It holds what models asked for and tools answered: only its owner may read the file, and ``toolrt purge`` or the
    bounds below remove what is over.

    Args:
        path: the file, such as ``"~/.local/state/agent/journal.db"``; it and its directory are made with the first
            batch.  A `MemoryRecords` keeps all in memory instead, for tests.
        codec: carries contents, states and modifiers; None: what JSON has, with bytes, tuples, sets, paths, dates and
            the parts of an answer.
        keep: how many batches that are over keep their records, 0 or more.  Of older ones only the id stays, so that
            it is not used twice.
        most_bytes: how large the file may become; above it a new batch is refused.

    Raises:
        DefinitionRefused: an argument cannot work.

    Example::

        runtime = toolrt.Runtime(registry, journal=toolrt.Journal("journal.db"))
        for batch_id in await runtime.journal.unfinished():
            outcome = await runtime.resume(batch_id)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | RecordStore,
        *,
        codec: Codec | None = None,
        keep: int = 1000,
        most_bytes: int = 1 << 30,
    ) -> None:
        if isinstance(path, str | os.PathLike):
            from toolrt.store._sqlite import opened

            name = os.path.expanduser(os.fspath(path))
            self.store: RecordStore = opened(name)
        elif hasattr(path, "commit") and hasattr(path, "begin"):
            self.store = path
        else:
            raise DefinitionRefused("Journal(path)", "a path, or a MemoryRecords", path)
        if codec is not None and not isinstance(codec, Codec):
            raise DefinitionRefused("Journal(codec)", "a toolrt.store.Codec or None", codec)
        for what, value in (("keep", keep), ("most_bytes", most_bytes)):
            if type(value) is not int or value < 0:
                raise DefinitionRefused(f"Journal({what})", "a whole number, 0 or more", value)
        self.codec = _CODEC if codec is None else codec
        self.bounds = Bounds(keep, most_bytes)

    @property
    def name(self) -> str:
        """The file, as errors call it."""
        return self.store.name

    async def unfinished(self) -> list[str]:
        """The ids of the batches that have begun and are not over, oldest first; those that run now are left out.

        Raises:
            JournalRefused: another process has the file open, or it is no journal.
            JournalFailed: the disk refuses.

        Checkpoint: always.
        """
        found = await self.ask(lambda store: store.unfinished())
        return [batch_id for batch_id in found if batch_id not in self.store.running]

    async def calls(self, batch_id: str) -> list[ToolCall]:
        """What a model asked for in a batch, in call order: of a streamed reply, as far as it came.

        With the results of `Runtime.resume` that is what a conversation goes on with.

        Raises:
            JournalRefused: there is no such batch, or its records were removed; or as `unfinished`.
            JournalFailed: as `unfinished`.

        Checkpoint: always.
        """
        return (await self.read(batch_id)).tool_calls(self.codec)

    async def read(self, batch_id: str) -> KeptBatch:
        """What there is of a batch.

        Args:
            batch_id: the batch.

        Raises:
            JournalRefused, JournalFailed: as `calls`.

        Checkpoint: always.
        """
        kept = await self.find(batch_id)
        if kept is None:
            why = f"the journal {self.name} has no batch of this id"
            raise JournalRefused(f"batch {batch_id}", why, "`await journal.unfinished()` gives those that it has.")
        return kept

    async def find(self, batch_id: str) -> KeptBatch | None:
        """What there is of a batch; None: the journal has none of this id.

        Args:
            batch_id: the batch.

        Raises:
            JournalRefused: its records were removed; or as `unfinished`.
            JournalFailed: as `unfinished`.

        Checkpoint: always.
        """
        records = await self.ask(lambda store: store.read(batch_id))
        if records is None:
            return None
        if records:
            return KeptBatch.read(batch_id, records)
        why = "it is over, and its records were removed (Journal(keep=), or toolrt purge)"
        raise JournalRefused(f"batch {batch_id}", why, "Raise Journal(keep=) to keep more.")

    async def ask(self, question: Callable[[RecordStore], T]) -> T:
        """What the store answers.

        Args:
            question: is given the store, and asks it in a worker thread.

        Raises:
            JournalRefused, JournalFailed: as `unfinished`.

        Checkpoint: always.
        """
        if self.store.blocks and not probe.threads_inline:
            return await trio.to_thread.run_sync(lambda: self.ask_now(question), abandon_on_cancel=False)
        if probe.sink is not None:
            probe.sink.access(("journal", self.name), True)
        with trio.CancelScope(shield=True):
            found = self.ask_now(question)
            await trio.lowlevel.checkpoint()
        return found

    def ask_now(self, question: Callable[[RecordStore], T]) -> T:
        """What the store answers, at once, in whatever thread this is; it may block.

        Args:
            question: as of `ask`.

        Raises:
            JournalRefused, JournalFailed: as `unfinished`.

        Checkpoint: never.
        """
        with self.store.lock:
            try:
                return question(self.store)
            except ToolrtError:
                raise
            except Exception as error:
                raise JournalFailed(self.name, f"{type(error).__name__}: {error}") from error

    async def commit(self, records: list[tuple[str, str]]) -> None:
        """The `records`, each with its batch's id, are durable; those that come meanwhile share the next commit.

        A cancel waits for it.

        Raises:
            JournalRefused, JournalFailed: as `unfinished`; nothing was kept, and nothing that comes later of these
                batches will be: what is durable is what came first.

        Checkpoint: always.
        """
        writing = _writing_of(self.store)
        group = writing.gathering
        leads = not group.records
        group.records += records
        with trio.CancelScope(shield=True):
            if not leads:
                await group.done.wait()
            else:
                if writing.last is not None:
                    await writing.last.done.wait()
                writing.gathering, writing.last = _Group(), group
                try:
                    await self.ask(lambda store: _commit(store, group.records))
                except BaseException as error:  # noqa: ASYNC103  raised below, in every task of the group
                    group.error = error
                finally:
                    group.done.set()
        if group.error is not None:
            raise group.error
        self._refuse_cut(records)

    def _commit_now(self, records: list[tuple[str, str]]) -> None:
        """The same as `commit`, at once and in whatever thread this is; it may block."""
        self.ask_now(lambda store: _commit(store, records))
        self._refuse_cut(records)

    def _refuse_cut(self, records: list[tuple[str, str]]) -> None:
        """Refuse records of a batch of which the disk refused earlier ones: they were not kept."""
        for batch_id, _ in records:
            error = self.store.running.get(batch_id)
            if error is not None:
                raise JournalFailed(self.name, f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Let go of the file, so that another process may open it; what is asked later opens it again."""
        self.ask_now(lambda store: store.close())

    def __repr__(self) -> str:
        return f"Journal({self.name!r})"


def _commit(store: RecordStore, records: list[tuple[str, str]]) -> None:
    """Keep `records`, but none of a batch of which the store has refused earlier ones."""
    wanted = [one for one in records if store.running.get(one[0]) is None]
    try:
        store.commit(wanted)
    except Exception as error:
        store.running.update({batch_id: error for batch_id, _ in wanted if batch_id in store.running})
        raise


def _writing_of(store: RecordStore) -> _Writing:
    try:
        known = _WRITING.get()
    except LookupError:
        known = {}
        _WRITING.set(known)
    _, writing = known.setdefault(id(store), (store, _Writing()))
    return writing

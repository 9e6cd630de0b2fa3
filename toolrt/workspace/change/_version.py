"""The rows of history: the changes of one mutation, as they are stored and as they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from toolrt.workspace.disk._disk import Entry, Kind, is_boxed, is_plain
from toolrt.workspace.names._naming import shown_at

#: The device and the number of a file there: the same for all its names.
Number = tuple[int, int]


@attrs.frozen
class EntryState:
    """What stands at a name."""

    #: What it is.
    kind: Kind
    #: The SHA-256 of a file's content, or of a link's text; None: there is none, or it is not known.
    digest: bytes | None = None
    #: Permission bits of a file or directory; None: what a new one gets.
    mode: int | None = attrs.field(default=None, eq=False)
    #: A file's number as it was found, and as it was left where it was written in place; None: another one, or it is
    #: not known.  That a change has left the number says that all names of the file have changed.
    number: Number | None = attrs.field(default=None, eq=False)
    #: How many names the file had as it was found, or as it was written in place.
    links: int = attrs.field(default=1, eq=False)
    #: Bytes of all files in what was kept aside.
    size: int = attrs.field(default=0, eq=False)


_DIRECTORY = Kind.DIRECTORY


@attrs.frozen
class ChangeRow:
    """One change of one entry, made by one call; or the move of one entry, with all below it."""

    #: The batch of the call that made it.
    batch_id: str
    #: The call's place in the batch.
    call_index: int
    #: The id the model gave the call; None: not known.
    call_id: str | None
    #: The entry: its folded parts, and the parts as they are spelled.
    key: Entry
    entry: Entry
    #: What stood there before; None: nothing.
    before: EntryState | None
    #: What stands there now; None: nothing.
    after: EntryState | None
    #: Of a move: where it went, folded and as it is spelled.
    target_key: Entry | None = None
    target: Entry | None = None
    #: The group it belongs to, that is undone as a whole if it does not become complete: the call that makes it.  None:
    #: it stands alone.
    group: str | None = None
    #: When, in nanoseconds of the disk's clock.
    time_ns: int = 0

    @property
    def path(self) -> str:
        """The entry below the root, as messages show it; of what was kept aside, where it comes back."""
        return shown_at(self.target if self.gives_back and self.target is not None else self.entry)

    @property
    def keeps(self) -> bool:
        """Whether it is a removal, of what is kept aside at its target."""
        return self.target is not None and is_boxed(self.target)

    @property
    def gives_back(self) -> bool:
        """Whether it puts back what was kept aside: such a row is a move."""
        return self.target is not None and is_boxed(self.entry)

    @property
    def ends(self) -> list[tuple[Entry, Entry]]:
        """The entries of the tree that it changes, each with its key: without what is kept aside."""
        ends = [(self.key, self.entry)]
        if self.target_key is not None and self.target is not None:
            ends.append((self.target_key, self.target))
        return [(key, entry) for key, entry in ends if not is_boxed(entry)]

    @property
    def makes_directory(self) -> bool:
        """Whether it puts a directory where nothing stood."""
        return self.target is None and self.before is None and self.after is not None and self.after.kind is _DIRECTORY

    @property
    def parted(self) -> bool:
        """Whether the name shared a file with names elsewhere, and has a file of its own since."""
        before, after = self.before, self.after
        return before is not None and after is not None and before.links > 1 and after.number is None

    @property
    def digests(self) -> list[bytes]:
        """What stood there and what stands there, as far as its content is known."""
        return [standing.digest for standing in (self.before, self.after) if standing is not None and standing.digest]

    def inverse(self) -> ChangeRow:
        """What takes it back."""
        if self.target is None or self.target_key is None:
            return attrs.evolve(self, before=self.after, after=self.before)
        return attrs.evolve(self, key=self.target_key, entry=self.target, target_key=self.key, target=self.entry)

    def to_json(self) -> list[Any]:
        """The row as plain values, in the order of its fields."""
        return [_to_json(value) for value in attrs.astuple(self, recurse=False)]

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> ChangeRow:
        """The row that gave these values.

        Raises:
            ValueError: they are no row; also where a part of an entry is no plain name, and might lead out of the root.
        """
        batch_id, call_index, call_id, key, entry, before, after, target_key, target, group, time_ns = values
        if not all(is_plain(parts) for parts in (key, entry, target_key or (), target or ())):
            raise ValueError("an entry with a part that is no plain name")
        states = _state_from_json(before), _state_from_json(after)
        there, spelled = (None if parts is None else tuple(parts) for parts in (target_key, target))
        return cls(batch_id, call_index, call_id, tuple(key), tuple(entry), *states, there, spelled, group, time_ns)


def contents_of(rows: Iterable[ChangeRow], contents: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Those of `contents` that `rows` mention, by digest."""
    return {digest: contents[digest] for row in rows for digest in row.digests if digest in contents}


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, EntryState):
        return value
    told: list[Any] = [value.kind.name, None if value.digest is None else value.digest.hex(), value.mode]
    if value.number is not None:
        told += [*value.number, value.links, *([value.size] if value.size else ())]
    return told


def _state_from_json(told: Sequence[Any] | None) -> EntryState | None:
    if told is None:
        return None
    kind, digest, mode, *rest = told
    number = (rest[0], rest[1]) if rest else None
    return EntryState(Kind[kind], None if digest is None else bytes.fromhex(digest), mode, number, *rest[2:])


@attrs.frozen
class Version:
    """A file's version: what one mutation made of it."""

    #: Counts the mutations of this name from 1; 0 in `History.restore` is what was there before the first.
    number: int
    #: The file, relative to the workspace's root.
    path: str
    #: The batch and the call that made it.
    batch_id: str
    call_index: int
    call_id: str | None
    #: What was done: ``created``, ``changed``, ``removed``, or ``moved`` with where from or to.
    action: str
    #: The SHA-256 of the content before and after, in hex; None: there was none, or it was not kept.
    before: str | None
    after: str | None
    #: When, in nanoseconds of the disk's clock.
    time_ns: int


class ChangeStore(Protocol):
    """Where history is kept."""

    @property
    def blocks(self) -> bool:
        """Whether its methods may block; then all but `end` may be called in a worker thread, and should be."""

    @property
    def problem(self) -> str | None:
        """Why it does not outlive the process although it should; None: it does, or is not meant to."""

    def begin(self, rows: Sequence[ChangeRow], contents: Mapping[bytes, bytes]) -> object:
        """Write down what is about to happen; gives what `end` wants, never None.

        Raises:
            FileProblem: its batch has used up the bounds, so that no later part of it could be undone; or it belongs
                to a group that was begun where nothing can be written any more.
        """

    def end(self, token: Any, landed: bool) -> None:
        """It happened, or it did not.  Never waits for another thread; to be called in Trio's thread."""

    def settle(self, tokens: Sequence[Any]) -> None:
        """All of them happened; that is known from one moment on, to a later start too.

        Raises:
            FileProblem: that cannot be written down, so they are to be taken back.
        """

    def rows_of_batch(self, batch_id: str) -> list[ChangeRow]:
        """What happened in the batch of this id, in order: this session's, or else the last that had one.

        Raises:
            FileProblem: it is not this session's, and two had one at one time; or it cannot be read any more.
        """

    def batches(self) -> list[str]:
        """The ids of the batches that it has changes of, the one with the newest change last."""

    def is_whole(self, batch_id: str) -> bool:
        """Whether nothing of what `rows_of_batch` gives was dropped."""

    def rows_of_file(self, key: Entry) -> tuple[int, list[ChangeRow]]:
        """How many rows of this entry were dropped, and those that are left, in order."""

    def content(self, digest: bytes) -> bytes | None:
        """The content; None: it is not kept."""

    def kept(self) -> list[ChangeRow]:
        """The removals whose things were kept aside, oldest first, also those that were taken back since."""

    def statistics(self) -> dict[str, int]:
        """How much it holds."""

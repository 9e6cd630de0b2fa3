"""One change of one file by one call: the content found, the content made of it, and the record for history.

Rules.  The change is computed once, from the content that stands there when the call's ticket is first in line.  A file
that differs from what this workspace last saw is a conflict, and a result that is too large is refused, before anything
is done.  `Revising.run` may run in a worker thread: it reports nothing to the probe and touches only its own call's
data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from toolrt.events import MutationBegan, MutationEnded, observer
from toolrt.model import Claim, Event, FileChange, FileChanged, State
from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._mutation import SIZE_LIMIT, changed_since, digest_of, number_of
from toolrt.workspace.change._version import ChangeRow, ChangeStore, EntryState
from toolrt.workspace.disk._disk import Entry, InPlace, Kind, Snapshot
from toolrt.workspace.names._identity import Identity
from toolrt.workspace.names._naming import shown_at

#: What makes a file's new content from what stands there; None: no file, before or after.
Change = Callable[[bytes | None], bytes | None]


#: Looked up once: an attribute of an enumeration costs as much as a call.
_FILE, _DIRECTORY, _MODIFIED = Kind.FILE, Kind.DIRECTORY, FileChange.MODIFIED


class CallContext(Protocol):
    """What the file services use of the `ToolContext` that the runtime gives a tool."""

    @property
    def batch_id(self) -> str:
        """The batch the call belongs to."""

    @property
    def call_index(self) -> int:
        """The call's place in it."""

    @property
    def state(self) -> State:
        """The state as of the lane's start."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the call holds."""


@attrs.frozen
class Revised:
    """What a change made of a file."""

    #: What was there; None: nothing.
    before: bytes | None
    #: What is there now; None: nothing.
    after: bytes | None
    #: Whether the file had names outside the workspace, or that were not found: they keep what they had, and this one
    #: has a file of its own now.
    parted: bool = False
    #: Whether another program had changed the file since it was last seen: that is kept, and this change stands in it.
    joined: bool = False


def row_of(
    ctx: CallContext, key: Entry, entry: Entry, before: EntryState | None, after: EntryState | None, now_ns: int
) -> ChangeRow:
    """A change of one entry, made by this call now."""
    return ChangeRow(*origin_of(ctx), key, entry, before, after, time_ns=now_ns)


def origin_of(ctx: CallContext) -> tuple[str, int, str | None]:
    """The batch, the place in it and the id of the call that a version is kept under.

    A change by a call of a sub-batch counts as its outermost call's, so that undoing that call's batch takes it back.
    """
    origin: tuple[str, int, str | None] | None = getattr(ctx, "origin", None)
    return (ctx.batch_id, ctx.call_index, getattr(ctx, "call_id", None)) if origin is None else origin


def note_change(ctx: CallContext, row: ChangeRow) -> None:
    """Report that `row` happened, as the event `FileChanged`."""
    note = getattr(ctx, "note", None)
    if note is None:
        return
    standing = row.after or row.before
    change = _MODIFIED
    directory = standing is not None and standing.kind is _DIRECTORY
    if row.keeps or row.gives_back:
        ((_, entry),) = row.ends
        note(FileChanged, shown_at(entry), FileChange.DELETED if row.keeps else FileChange.CREATED, None, directory)
        return
    if row.target is not None:
        change = FileChange.MOVED
    elif row.before is None:
        change = FileChange.CREATED
    elif row.after is None:
        change = FileChange.DELETED
    target = None if row.target is None else shown_at(row.target)
    note(FileChanged, row.path, change, target, directory)


def noted(ctx: object, kind: type[Event], *values: Any) -> None:
    """Say that an event of this `kind`, made of `values`, happened, where the context hands such things on."""
    note = getattr(ctx, "note", None)
    if note is not None:
        note(kind, *values)


def noted_no_change(ctx: object) -> None:
    """Say that a call that runs alone changes no file, where the context wants to know."""
    changes_no_file = getattr(ctx, "changes_no_file", None)
    if changes_no_file is not None:
        changes_no_file()


class Revising:
    """One change of one file, from the content found to the record in history."""

    def __init__(
        self,
        store: ChangeStore,
        ctx: CallContext,
        identity: Identity,
        change: Change,
        expected: tuple[bytes | None, ...] | None,
        in_place: InPlace,
        now_ns: Callable[[], int],
        again: Change | None = None,
    ) -> None:
        self._store = store
        self._ctx = ctx
        self.identity = identity
        self._change = change
        self._again = again
        #: Whether another program had changed the file, and `again` made something of that.
        self.joined = False
        self._expected = expected
        self.in_place = in_place
        self._now_ns = now_ns
        self._token: object = None
        self.before: bytes | None = None
        self.after: bytes | None = None
        #: The digests of both, as far as they are known.
        self.digests: list[bytes | None] = [None, None]
        #: The row for history; None: nothing is to change.
        self.row: ChangeRow | None = None
        #: Whether the file is to go, which is another operation.
        self.removes = False

    def run(self, found: Snapshot | None) -> bytes | None:
        """What the disk is to write, or None for nothing; may run in a worker thread."""
        after = self.compute(found)
        if self.row is None or self.removes:
            return None
        contents: dict[bytes, bytes] = {}
        found_as, left_as = self.digests
        if found_as is not None and self.before is not None:
            contents[found_as] = self.before
        if left_as is not None and after is not None:
            contents[left_as] = after
        self._token = self._store.begin([self.row], contents)
        return after

    def compute(self, there: Snapshot | None, mode: int | None = None) -> bytes | None:
        """The content that is to be, of what was found.

        Args:
            there: the file that was found; None: nothing was.
            mode: a new file's permission bits; None: what one gets.
        """
        identity = self.identity
        found = None if there is None else there.content
        self.before = found
        digest = None if found is None else digest_of(found)
        self.digests = [digest, digest]
        change = self._change
        if self._expected is not None and digest not in self._expected:
            if self._again is None or found is None:
                raise changed_since(identity.path)
            change, self.joined = self._again, True
        try:
            self.after = after = change(found)
        except FileProblem as problem:
            if not self.joined:
                raise
            raise changed_since(identity.path) from problem
        if after == found:
            return after
        if after is not None and len(after) > SIZE_LIMIT:
            raise FileProblem(
                identity.path, f"at most {SIZE_LIMIT} bytes", f"{len(after)} bytes", "Split it into several files."
            )
        self.removes = after is None
        self.digests = [digest, None if after is None else digest_of(after)]
        number, in_place, links = None, None, 1
        if there is not None:
            mode, number, links = there.stat.mode, number_of(there.stat), there.stat.links
            in_place = number if links > 1 and self.in_place(there.stat) else None
        self.row = row_of(
            self._ctx,
            identity.key or (),
            identity.entry,
            None if found is None else EntryState(_FILE, digest, mode, number, links),
            None if after is None else EntryState(_FILE, self.digests[1], mode, in_place, links),
            self._now_ns(),
        )
        return after

    def end(self, *, landed: bool) -> None:
        """Say whether it happened, if it was written down."""
        if self._token is not None:
            self._store.end(self._token, landed)
            self._token = None


@attrs.define
class MutationResult:
    """What is known of a file while it is being changed, for the event that ends it."""

    #: The digest of the content that is there; None: there is none, or it is not known.
    digest: bytes | None = None
    #: Whether the change landed.
    landed: bool = False


class MutationEvents:
    """Reports that mutations of these files begin, and how they ended."""

    __slots__ = ("_ctx", "_names", "_told")

    def __init__(self, ctx: CallContext, names: Sequence[str]) -> None:
        self._ctx = ctx
        self._names = names
        self._told = [MutationResult() for _ in names]

    def __enter__(self) -> list[MutationResult]:
        if observer.records:
            for name in self._names:
                observer.tell(MutationBegan(self._ctx.batch_id, self._ctx.call_index, name))
        return self._told

    def __exit__(self, *_: object) -> None:
        if observer.records:
            for name, one in zip(self._names, self._told, strict=True):
                version = None if one.digest is None else one.digest.hex()[:12]
                observer.tell(MutationEnded(self._ctx.batch_id, self._ctx.call_index, name, version, one.landed))

"""What changes of files have in common: the call that makes one, its row for history, the events that it reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol

import attrs

from toolrt.events import MutationBegan, MutationEnded, observer
from toolrt.model import Claim, Event, FileChange, FileChanged, State
from toolrt.workspace._problem import from_os_error
from toolrt.workspace.change._version import ChangeRow, EntryState
from toolrt.workspace.disk._disk import Entry, Kind
from toolrt.workspace.names._identity import Identity
from toolrt.workspace.names._naming import shown_at

#: What makes a file's new content from what stands there; None: no file, before or after.
Change = Callable[[bytes | None], bytes | None]

#: A file, what is made of it, and what is made of it where another program has changed it; None: that is refused.
PlannedChange = tuple[Identity, Change, Change | None]


#: Looked up once: an attribute of an enumeration costs as much as a call.
_DIRECTORY, _MODIFIED = Kind.DIRECTORY, FileChange.MODIFIED


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
    standing = row.after or row.before
    directory = standing is not None and standing.kind is _DIRECTORY
    entry, target, change = row.entry, None, _MODIFIED
    if row.target is None:
        if row.before is None:
            change = FileChange.CREATED
        elif row.after is None:
            change = FileChange.DELETED
    elif row.keeps or row.gives_back:
        ((_, entry),) = row.ends
        change = FileChange.DELETED if row.keeps else FileChange.CREATED
    else:
        change, target = FileChange.MOVED, shown_at(row.target)
    noted(ctx, FileChanged, shown_at(entry), change, target, directory)


def intended(ctx: object, rows: Sequence[ChangeRow]) -> None:
    """What the call is about to change is durable, where its batch has a journal; for any thread, and it may block."""
    if getattr(ctx, "has_journal", False):
        ctx.about_to([row.to_json() for row in rows])  # type: ignore[attr-defined]


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


@attrs.define
class MutationResult:
    """What is known of a file while it is being changed, for the event that ends it."""

    #: The digest of the content that is there; None: there is none, or it is not known.
    digest: bytes | None = None
    #: Whether the change landed.
    landed: bool = False


class Mutation:
    """A change of files, as others meet it.

    It reports that the change of each file begins, and how it ended; and an error of the disk becomes a refusal.

    Args:
        files: what events call each file, or its identity.
        path: what a refusal names.
    """

    __slots__ = ("_ctx", "_files", "_path", "_told")

    def __init__(self, ctx: CallContext, files: Sequence[Identity | str], path: str) -> None:
        self._ctx = ctx
        self._files = files
        self._path = path
        self._told = [MutationResult() for _ in files]

    def __enter__(self) -> list[MutationResult]:
        if observer.records:
            for name in self._names():
                observer.tell(MutationBegan(self._ctx.batch_id, self._ctx.call_index, name))
        return self._told

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if observer.records:
            for name, one in zip(self._names(), self._told, strict=True):
                version = None if one.digest is None else one.digest.hex()[:12]
                observer.tell(MutationEnded(self._ctx.batch_id, self._ctx.call_index, name, version, one.landed))
        if isinstance(error, OSError):
            raise from_os_error(self._path, error) from None

    def _names(self) -> list[str]:
        return [file if isinstance(file, str) else file.event_name for file in self._files]

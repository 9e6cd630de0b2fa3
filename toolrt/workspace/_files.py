"""What every file tool goes through: reading and changing files, with all that has to happen around it.

Rules.  Who calls has claimed the file, and has looked again that its name still means it (`Workspace.identify`).
A change is computed from what stands there at that moment, once, and is either the whole of the file or nothing.

Events (`toolrt.probe`).  ``file.read`` as content is read; ``file.mutation_began`` before the first touch of a file
that is to change and ``file.mutation_ended`` after the last, whatever happened between.  ``file`` is the file's key
as a path below the root, so all its names are one; ``version`` is the first 12 hex digits of the content's SHA-256,
or None where there is no file or its content is not known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import attrs

from toolrt import probe
from toolrt.model import Claim, State
from toolrt.workspace._disk import Stat
from toolrt.workspace._identity import Identity
from toolrt.workspace._problem import FileProblem, from_os_error

if TYPE_CHECKING:
    from toolrt.workspace._workspace import Workspace

__all__ = ["SIZE_LIMIT", "CallContext", "Change", "Files", "Revised", "Snapshot"]

#: The most bytes of a file that is read or written: 10 MiB, about 2.5 million tokens, more than any context.
SIZE_LIMIT = 10 * 1024 * 1024

#: What makes a file's new content from what stands there; None: no file, before or after.
Change = Callable[[bytes | None], bytes | None]


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
class Snapshot:
    """A file as it was at one moment."""

    #: All it had.
    content: bytes
    #: What a look at it showed.
    stat: Stat


@attrs.frozen
class Revised:
    """What a change made of a file."""

    #: What was there; None: nothing.
    before: bytes | None
    #: What is there now; None: nothing.
    after: bytes | None


@attrs.define
class _Mutation:
    """What is known of a file while it is being changed."""

    #: The content that is there, or None as long as it is not known.
    content: bytes | None = None
    #: Whether the new content landed.
    landed: bool = False


class Files:
    """The files of one workspace, as its tools read and change them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def read(self, ctx: CallContext, identity: Identity) -> Snapshot:
        """The file as it is.

        Raises:
            FileProblem: it is missing, too large, no file, or cannot be read.

        Checkpoint: always.
        """
        disk = self._workspace.disk
        with _os_errors(identity):
            content = await disk.read(identity.entry, SIZE_LIMIT)
            stat = disk.lstat("/".join((disk.root.rstrip("/"), *identity.entry)))
        if probe.sink is not None:
            fields = {"batch": ctx.batch_id, "call": ctx.call_index, "file": identity.event_name}
            probe.sink.event("file.read", {**fields, "version": _version(content)})
        return Snapshot(content, stat)

    async def revise(self, ctx: CallContext, identity: Identity, change: Change) -> Revised:
        """The file has the content that `change` makes of what stood there; missing directories are made.

        `change` is called once, possibly in a worker thread; what it raises is raised, and the file is as it was.

        Raises:
            FileProblem: somebody else changed the file since this workspace last saw it, the new content is too
                large, or the disk refused; the file is as it was.

        Checkpoint: always.
        """
        disk = self._workspace.disk
        with _mutation(ctx, identity) as mutation, _os_errors(identity):
            before: bytes | None = None
            with suppress(FileNotFoundError):
                before = mutation.content = await disk.read(identity.entry, SIZE_LIMIT)
            after = change(before)
            if after is None:
                raise NotImplementedError("to come with the disk's remove")
            _require_size(identity, after)
            if identity.parent_missing:
                await disk.make_dirs(identity.entry[:-1])
            await disk.replace(identity.entry, after)
            mutation.content, mutation.landed = after, True
        return Revised(before, after)

    async def revise_all(self, ctx: CallContext, revisions: Sequence[tuple[Identity, Change]]) -> list[Revised]:
        """As `revise` for several files, all or nothing: all are read, checked and computed before one is written.

        No file may be named twice.

        Raises:
            FileProblem: as `revise`, of any of them; all files are as they were.

        Checkpoint: always.
        """
        return [await self.revise(ctx, identity, change) for identity, change in revisions]

    async def make_dirs(self, ctx: CallContext, identity: Identity) -> bool:
        """A directory stands there, and at each part of the way; says whether one was made.

        Raises:
            FileProblem: something else stands on the way, or the disk refused.

        Checkpoint: always.
        """
        with _os_errors(identity):
            await self._workspace.disk.make_dirs(identity.entry)
        return identity.found is None

    async def remove(self, ctx: CallContext, identity: Identity, recursive: bool = False) -> None:
        """Nothing stands there any more; of a link only the link is removed.

        Args:
            recursive: whether a directory may be removed with all it has; else it must be empty.

        Raises:
            FileProblem: nothing was there, a directory is not empty, somebody else changed the file since this
                workspace last saw it, or the disk refused; nothing was removed.

        Checkpoint: always.
        """
        raise NotImplementedError("to come with the disk's remove")

    async def move(self, ctx: CallContext, source: Identity, target: Identity) -> None:
        """What stood at `source` stands at `target`, where nothing stood; missing directories are made.

        Raises:
            FileProblem: nothing is at `source`, something is at `target`, `target` is inside `source`, or the disk
                refused; nothing was moved.

        Checkpoint: always.
        """
        raise NotImplementedError("to come with the disk's move")


@contextmanager
def _os_errors(identity: Identity) -> Iterator[None]:
    """An error of the disk becomes a refusal that says nothing it should not."""
    try:
        yield
    except OSError as error:
        raise from_os_error(identity.path, error) from None


@contextmanager
def _mutation(ctx: CallContext, identity: Identity) -> Iterator[_Mutation]:
    """Report that a mutation begins, and how it ended."""
    mutation = _Mutation()
    where = {"batch": ctx.batch_id, "call": ctx.call_index, "file": identity.event_name}
    if probe.sink is not None:
        probe.sink.event("file.mutation_began", where)
    try:
        yield mutation
    finally:
        if probe.sink is not None:
            version = None if mutation.content is None else _version(mutation.content)
            probe.sink.event("file.mutation_ended", {**where, "version": version, "ok": mutation.landed})


def _version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _require_size(identity: Identity, content: bytes) -> None:
    if len(content) > SIZE_LIMIT:
        raise FileProblem(
            identity.path, f"at most {SIZE_LIMIT} bytes", f"{len(content)} bytes", "Split it into several files."
        )

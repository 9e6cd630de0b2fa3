"""The file tools that a model is given.

Rules.  A tool claims the file its name means when the call is ordered, and looks again first thing when it runs:
a name that means another file by then is a retryable error, and nothing is touched (RULE 18).  What depends on a
file's content is decided in the body, on what is there once every earlier call that may change it has ended.

Events (`toolrt.probe`).  ``file.read`` as the content is read; ``file.mutation_began`` before the first touch of
a file that is to change and ``file.mutation_ended`` after the last, whatever happened between.  ``file`` is the
file's key as a path below the root, so all its names are one; ``version`` is the first 12 hex digits of the
content's SHA-256, or None where the content is not known (a mutation that failed before it read any).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from toolrt import probe
from toolrt.model import READ, WRITE, Claim, Mode, State, Tool, covers, tool
from toolrt.workspace._encoding import decoded, encoded
from toolrt.workspace._identity import Identity
from toolrt.workspace._problem import FileProblem, from_os_error
from toolrt.workspace._text import edited, slice_of

if TYPE_CHECKING:
    from toolrt.workspace._workspace import Workspace

__all__ = ["SIZE_LIMIT", "CallContext", "file_tools"]

#: The most bytes of a file that the tools read or write: 10 MiB, about 2.5 million tokens, more than any context.
SIZE_LIMIT = 10 * 1024 * 1024


class CallContext(Protocol):
    """What the file tools use of the `ToolContext` that the runtime gives them."""

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


@attrs.define
class _Mutation:
    """What is known of a file while it is being changed."""

    #: The content that is there, or None as long as it is not known.
    content: bytes | None = None
    #: Whether the new content landed.
    landed: bool = False


def file_tools(workspace: Workspace) -> list[Tool]:
    """The tools that read and change the files of `workspace`."""

    def claiming(mode: Mode) -> Callable[[Mapping[str, Any], State], tuple[Claim, ...]]:
        return lambda input, state: workspace.claims(input["path"], state, mode)

    @tool(safe=True, claims=claiming(READ), owner=workspace)
    async def read_file(ctx: CallContext, path: str, offset: int | None = None, limit: int | None = None) -> str:
        """Read a text file and return it exactly as it is.

        path is relative to the working directory, or absolute. With offset (the first line, counted from 1) or
        limit (how many lines) only those lines are returned. Only UTF-8 text of at most 10 MiB is read.
        """
        identity = _held(workspace, ctx, path, READ)
        with _os_errors(identity):
            content = (await workspace.disk.read(identity.entry, SIZE_LIMIT)).content
        if probe.sink is not None:
            fields = {"batch": ctx.batch_id, "call": ctx.call_index, "file": identity.event_name}
            probe.sink.event("file.read", {**fields, "version": _version(content)})
        return slice_of(identity.path, decoded(identity.path, content), offset, limit)

    @tool(claims=claiming(WRITE), owner=workspace)
    async def write_file(ctx: CallContext, path: str, content: str) -> str:
        """Write a text file: create it, or replace all it has by content, exactly as given.

        path is relative to the working directory, or absolute. Missing directories are created. At most 10 MiB.
        """
        identity = _held(workspace, ctx, path, WRITE)
        new = encoded(identity.path, content, "content")
        _require_size(identity, new)
        with _mutation(ctx, identity) as mutation, _os_errors(identity):
            if identity.parent_missing:
                await workspace.disk.make_dirs(identity.entry[:-1])
            await workspace.disk.revise(identity.entry, sys.maxsize - 1, lambda _: new)
            mutation.content, mutation.landed = new, True
        done = "created" if identity.found is None else "replaced"
        return f"{done} {identity.path} ({len(new)} bytes)"

    @tool(claims=claiming(WRITE), owner=workspace)
    async def edit_file(ctx: CallContext, path: str, old: str, new: str, all: bool = False) -> str:
        """Replace old by new in a text file and leave the rest of it exactly as it is.

        path is relative to the working directory, or absolute. old must be in the file at exactly one place,
        unless all is true: then every place is replaced. Line ends of the file are kept. Only UTF-8 text of at
        most 10 MiB is edited.
        """
        identity = _held(workspace, ctx, path, WRITE)
        if not old:
            raise FileProblem(identity.path, "an old text", "an empty one", "Use write_file to write a whole file.")
        if old == new:
            raise FileProblem(identity.path, "a new text", "the old one", "Give the text as it should become.")
        encoded(identity.path, new, "new")
        with _mutation(ctx, identity) as mutation, _os_errors(identity):
            mutation.content = (await workspace.disk.read(identity.entry, SIZE_LIMIT)).content
            result = edited(identity.path, decoded(identity.path, mutation.content), old, new, all)
            content = encoded(identity.path, result.text, "the result")
            _require_size(identity, content)
            await workspace.disk.revise(identity.entry, SIZE_LIMIT, lambda _: content)
            mutation.content, mutation.landed = content, True
        lines = ", ".join(str(line) for line in result.lines) + (", ..." if result.count > len(result.lines) else "")
        if result.count == 1:
            return f"replaced 1 place in {identity.path} (line {lines})"
        return f"replaced {result.count} places in {identity.path} (lines {lines})"

    return [read_file, write_file, edit_file]


def _held(workspace: Workspace, ctx: CallContext, path: str, mode: Mode) -> Identity:
    """What `path` means now, which is what it meant when the call was ordered.

    Raises:
        FileProblem: it means something else by now, or no file that a tool may use.
    """
    identity = workspace.identify(path, ctx.state)
    if not all(covers(ctx.claims, claim) for claim in identity.claims(mode)):
        raise FileProblem(
            identity.path,
            "the file this name meant when the call was ordered",
            "another one by now",
            "Nothing was changed; send the call again.",
            retryable=True,
        )
    if identity.problem is not None:
        raise identity.problem
    return identity


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

"""Looks again, as the first step of every file tool, at what the names in its claims mean.

Rules.  A tool claims what its names mean when the call is ordered, and looks again when it starts to run.  If a name
means something else by then, the call fails with a retryable error and touches nothing (RULE 18).

Theory.  A reader of a file claims its name and not what is below it.  Where no file stands, a call that makes one below
the name turns it into a directory and is not ordered with the reader.  So the reader's error does not say which of the
two it found, nothing or a directory.  A writer is ordered with all calls that go through its name, so its error does.
"""

from __future__ import annotations

from typing import Protocol

from toolrt.model import READ, Mode, covers
from toolrt.order import ClaimTable
from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._files import Files
from toolrt.workspace.change._revision import CallContext
from toolrt.workspace.disk._disk import Disk
from toolrt.workspace.names._identity import Identity, Wanted, identify
from toolrt.workspace.text._budget import Skeleton, TokenCount


class FileAccess(Protocol):
    """What file tools and permissions use of a `Workspace`."""

    #: See `Workspace`.
    skeleton: Skeleton
    tokens: TokenCount

    @property
    def disk(self) -> Disk:
        """Where the files are."""

    @property
    def claim_table(self) -> ClaimTable:
        """The order of all calls that touch these files."""

    @property
    def files(self) -> Files:
        """Reads and changes them."""


def looked_up(
    workspace: FileAccess,
    ctx: CallContext,
    path: str,
    mode: Mode,
    wanted: Wanted = Wanted.FILE,
    subtree: bool = False,
) -> Identity:
    """What `path` means now, which is what it meant when the call was ordered; it may have a `problem`.

    Raises:
        FileProblem: it means something else by now.
    """
    identity = identify(workspace.disk, path, ctx.state.working_dir, wanted)
    claims = identity.claims(mode, subtree)
    if claims != ctx.claims and not all(covers(ctx.claims, claim) for claim in claims):
        raise FileProblem(
            identity.path,
            f"{wanted.value.replace('an ', 'the ').replace('a ', 'the ')} this name meant when the call was ordered",
            "another one by now",
            "Nothing was changed; send the call again.",
            retryable=True,
        )
    return identity


def held(
    workspace: FileAccess,
    ctx: CallContext,
    path: str,
    mode: Mode,
    wanted: Wanted = Wanted.FILE,
    subtree: bool = False,
) -> Identity:
    """What `path` means in `workspace` now, which is what it meant when the call was ordered, and a tool may use it.

    The first thing that a file tool does: what it claimed may be another file's by now (RULE 18).

    Args:
        ctx: the call's context, which tells what it holds.
        path: the name as the model gave it.
        mode: as in the tool's claims, and so are `wanted` and `subtree`.

    Raises:
        FileProblem: it means something else by now, or nothing that a tool may use; nothing was touched.

    Checkpoint: never.
    """
    identity = looked_up(workspace, ctx, path, mode, wanted, subtree)
    if mode is READ and wanted is Wanted.FILE and identity.key is not None and not identity.is_there:
        raise FileProblem(
            identity.path,
            "a file",
            "none: nothing of that name, or a directory",
            "Check the name, list the directory, or create the file with write_file.",
        )
    if identity.problem is not None:
        raise identity.problem
    return identity


def missing(identity: Identity) -> FileProblem:
    """Nothing is there, where something must be."""
    remedies = {
        Wanted.FILE: "Check the name, or create the file with write_file.",
        Wanted.DIRECTORY: "Check the name, or make the directory with make_dir.",
        Wanted.ENTRY: "Check the name.",
    }
    return FileProblem(identity.path, identity.wanted.value, "nothing of that name", remedies[identity.wanted])

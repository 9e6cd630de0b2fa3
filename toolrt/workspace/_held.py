"""What a file tool does before anything else: looks again what its names mean.

Rules.  A tool claims what its names mean when the call is ordered, and looks again first thing when it runs: a name
that means something else by then is a retryable error, and nothing is touched (RULE 18).  Where a file stood and none
does by then, the error says that and no more: what stands there instead is not claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from toolrt.model import Mode, covers
from toolrt.workspace._files import CallContext
from toolrt.workspace._identity import Identity, Wanted
from toolrt.workspace._problem import FileProblem

if TYPE_CHECKING:
    from toolrt.workspace._workspace import Workspace

__all__ = ["held", "looked_up", "missing"]


def looked_up(
    workspace: Workspace,
    ctx: CallContext,
    path: str,
    mode: Mode,
    wanted: Wanted = Wanted.FILE,
    subtree: bool = False,
) -> Identity:
    """What `path` means now, which is what it meant when the call was ordered; it may have a `problem`.

    Raises:
        FileProblem: it means something else by now, or no file any more.
    """
    identity = workspace.identify(path, ctx.state, wanted)
    claims = identity.claims(mode, subtree)
    if claims == ctx.claims:
        return identity
    beyond = [claim for claim in claims if not covers(ctx.claims, claim)]
    if beyond and beyond[0] is claims[0] and covers(ctx.claims, attrs.evolve(claims[0], subtree=subtree)):
        raise FileProblem(identity.path, "the file that stood there", "none by now", "Check the name.")
    if beyond:
        raise FileProblem(
            identity.path,
            f"{wanted.value.replace('an ', 'the ').replace('a ', 'the ')} this name meant when the call was ordered",
            "another one by now",
            "Nothing was changed; send the call again.",
            retryable=True,
        )
    return identity


def held(
    workspace: Workspace,
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

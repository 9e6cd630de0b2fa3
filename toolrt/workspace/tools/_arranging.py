"""The tools that change what names mean: make, move, delete, and the working directory."""

from __future__ import annotations

from pathlib import PurePosixPath

from toolrt.model import READ, WRITE, Change, DirectoryChanged, State, ToolOutput
from toolrt.workspace._problem import FileProblem, from_os_error
from toolrt.workspace.change._held import FileAccess, held, missing
from toolrt.workspace.change._revision import CallContext, noted, noted_no_change
from toolrt.workspace.disk._disk import Kind
from toolrt.workspace.names._identity import Wanted
from toolrt.workspace.rules._withholding import refuse_withheld


async def make_dir(workspace: FileAccess, ctx: CallContext, path: str) -> str:
    """Make a directory, and the missing ones on the way to it; one that is there already is fine.

    path is relative to the working directory, or absolute.
    """
    identity = held(workspace, ctx, path, WRITE, Wanted.DIRECTORY)
    made = await workspace.files.make_dirs(ctx, identity)
    return f"made {identity.path}" if made else f"{identity.path} is there already"


async def move_path(workspace: FileAccess, ctx: CallContext, source: str, target: str) -> str:
    """Move or rename a file, a directory with all that is in it, or a symbolic link itself.

    source and target are relative to the working directory, or absolute. target is the new name itself, also for a
    move into another directory, and nothing may be there yet; missing directories on the way to it are made.
    """
    moved = held(workspace, ctx, source, WRITE, Wanted.ENTRY, subtree=True)
    to = held(workspace, ctx, target, WRITE, Wanted.ENTRY, subtree=True)
    if moved.found is None:
        raise missing(moved)
    await refuse_withheld(workspace.disk, ctx, moved, to)
    await workspace.files.move(ctx, moved, to)
    return f"moved {moved.path} to {to.path}"


async def delete_path(workspace: FileAccess, ctx: CallContext, path: str, recursive: bool = False) -> str:
    """Delete a file, an empty directory, or a symbolic link itself.

    path is relative to the working directory, or absolute. With recursive a directory is deleted with all that is
    in it.
    """
    identity = held(workspace, ctx, path, WRITE, Wanted.ENTRY, subtree=True)
    if identity.found is None:
        raise missing(identity)
    await refuse_withheld(workspace.disk, ctx, identity)
    await workspace.files.remove(ctx, identity, recursive)
    return f"deleted {identity.path}"


async def change_dir(workspace: FileAccess, ctx: CallContext, path: str) -> ToolOutput:
    """Change the working directory, which relative paths of later calls start from.

    path is relative to the working directory so far, or absolute; "/" is the machine's, not the workspace's.
    """
    identity = held(workspace, ctx, path, READ, Wanted.DIRECTORY)
    try:
        # The name was followed on its parts; that no link stands there by now only the disk can say.
        found = await workspace.disk.look(identity.entry)
    except FileNotFoundError:
        raise missing(identity) from None
    except OSError as error:
        raise from_os_error(identity.path, error) from None
    if found.kind is not Kind.DIRECTORY:
        raise FileProblem(identity.path, "a directory", found.kind.value, "Name a directory.")
    working_dir = PurePosixPath(*identity.entry) if identity.entry else None
    noted(ctx, DirectoryChanged, identity.path)
    noted_no_change(ctx)
    return ToolOutput(
        f"the working directory is {identity.path}",
        modifiers=(Change.call(_entered, working_dir),),
    )


def _entered(state: State, working_dir: PurePosixPath | None) -> State:
    return state.replace(working_dir=working_dir)

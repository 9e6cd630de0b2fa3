"""A workspace: a tree of files, the order in which calls touch them, and the tools that do."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from toolrt.errors import DefinitionRefused
from toolrt.model import Claim, Mode, Services, State, Tool
from toolrt.order import ClaimTable
from toolrt.workspace.change._files import Files
from toolrt.workspace.change._limits import Limits
from toolrt.workspace.disk._disk import Disk, Entry, Kind, is_box
from toolrt.workspace.disk._real import RealDisk
from toolrt.workspace.history._history import History
from toolrt.workspace.journal._recovery import opened_store
from toolrt.workspace.names._identity import Identity, Wanted, identify
from toolrt.workspace.names._mounts import MountedDisk, path_on
from toolrt.workspace.names._private import describe_error
from toolrt.workspace.text._budget import Skeleton, TokenCount, estimated_tokens, head_and_tail
from toolrt.workspace.tools._tools import file_tools

#: The most bytes of a file that a snapshot holds itself; of a larger one it holds the digest.
SNAPSHOT_LIMIT = 1024 * 1024


class Workspace:
    """The files below one directory, or several, with one order for all calls that touch them.

    All batches and runtimes that use one workspace share its claim table (RULES 8 and 9): calls that touch one file are
    ordered wherever they come from.  Nothing outside the directories is ever read or
    written, by whatever name it is reached: a file inside that has names outside as well (hard links) parts from them
    when it is changed, unless `keep_hard_links` says otherwise.

    Args:
        root: an existing directory on the real disk; or a disk, such as `MemoryDisk`: then the workspace is all
            below the disk's own root.
        mounts: more directories, or disks, that belong to it, by the name at which each stands at the root: files of
            ``{"docs": "/srv/docs"}`` are ``docs/...``, and have their own absolute paths as well.  Real directories and
            disks in memory may stand side by side: then the history of each is where it would be alone, and of a batch
            that changed both a later process undoes what was of real ones.
        limits: how much is remembered; None: see `Limits`.
        state_dir: where the history of directories on the real disk is kept, in a directory of its own; None: in
            ``$TOOLRT_STATE_DIR``, else in the user's state directory.
        skeleton: what ``read_file`` shows of a file that is over its share of the context: a function of the path, the
            text and the tokens it may have.  One that fails, or gives more, is replaced by `head_and_tail`.
        tokens: counts the tokens of a text; by default they are estimated, see `estimated_tokens`.
        keep_hard_links: whether a change of a file goes to all its names, wherever they stand.  By default it does if
            all of them are found in the workspace; else the changed name has a file of its own afterwards, and the
            answer says so.

    Raises:
        InputRefused: there is no directory at `root`, or where one is mounted from.
        DefinitionRefused: `root` is neither a path nor a disk, or `skeleton` or `tokens` is no function; a mount's name
            is no name or taken, or one of the directories contains another.

    Example::

        workspace = Workspace(MemoryDisk({"a.txt": "one"}))
        registry = Registry(workspace.tools())
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | Disk,
        *,
        mounts: Mapping[str, str | os.PathLike[str] | Disk] | None = None,
        limits: Limits | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        skeleton: Skeleton = head_and_tail,
        tokens: TokenCount = estimated_tokens,
        keep_hard_links: bool = False,
    ) -> None:
        disk = _disk_at("Workspace", root)
        if mounts is not None:
            if not isinstance(mounts, Mapping):
                raise DefinitionRefused("Workspace(mounts)", "directories by name", mounts)
            others = {name: _disk_at(f"mount {name!r}", where) for name, where in mounts.items()}
            if others:
                disk = MountedDisk(disk, others)
        for name, function in (("skeleton", skeleton), ("tokens", tokens)):
            if not callable(function):
                raise DefinitionRefused(f"Workspace({name})", "a function", function)
        #: What shortens a file that is over its share, and what counts tokens.
        self.skeleton = skeleton
        self.tokens = tokens
        #: Where the files are.
        self.disk: Final[Disk] = disk
        #: The order of all calls that touch these files.
        self.claim_table: Final[ClaimTable] = ClaimTable()
        #: How much it remembers.
        self.limits: Final[Limits] = Limits() if limits is None else limits
        store, left_alone = opened_store(disk, state_dir, self.limits.versions, self.limits.history_bytes)
        #: Names like toolrt's own (`is_own`) that the start met and that this user's toolrt did not make.  A repository
        #: brought them along, or a program left them that had another private state directory.  They are neither read
        #: nor deleted, and tools do not show them; a person may delete them.
        self.left_alone: Final[tuple[str, ...]] = left_alone
        #: What every file tool goes through; use it in a tool of your own too.
        self.files: Final[Files] = Files(disk, store, self.limits, keep_hard_links)
        #: The versions of its files: to see, to restore, to undo.
        self.history: Final[History] = History(disk, self.claim_table, self.files, store)

    @cached_property
    def services(self) -> Services:
        """What its tools are given by the runtime: these files and their history."""
        return Services(files=self.files, history=self.history)

    def tools(self) -> list[Tool]:
        """The tools of this workspace, from ``read_file`` to ``change_dir``; always the same objects."""
        return list(self._tools)

    @cached_property
    def _tools(self) -> list[Tool]:
        return file_tools(self)

    def identify(self, path: str, state: State | None = None, wanted: Wanted = Wanted.FILE) -> Identity:
        """What `path` means now.

        Args:
            path: a name as a model gives it: relative to the state's working directory, absolute, or below ``~``.
            state: None is the empty state, whose working directory is the root.
            wanted: what it is to mean: a file, a directory, or whatever stands there, to be moved or deleted.

        Returns: never raises for a name, however wrong; see `Identity.problem`.

        Checkpoint: never.
        """
        return identify(self.disk, path, None if state is None else state.working_dir, wanted)

    def claims(
        self, path: str, state: State, mode: Mode, *, wanted: Wanted = Wanted.FILE, subtree: bool = False
    ) -> tuple[Claim, ...]:
        """What a tool of your own claims to read (`READ`) or change (`WRITE`) the file that `path` means.

        Looks at the disk and opens nothing; the file's own claim is first.  A name that no tool may use claims
        only READ, and your tool must refuse it: see `Identity.problem`.

        Args:
            wanted: what the name is to mean.
            subtree: whether all below it is meant too: to list, search, move or delete a directory.  Who moves
                claims both ends so.

        Checkpoint: never.

        Example::

            @tool(claims=lambda input, state: workspace.claims(input["path"], state, WRITE), owner=workspace)
            async def sort_lines(ctx, path: str) -> str: ...
        """
        return self.identify(path, state, wanted).claims(mode, subtree)

    def claims_after(self, path: str, state: State, *, wanted: Wanted = Wanted.FILE) -> tuple[Claim, ...]:
        """What `claims` looks at for `path`: the ``claims_after`` of a tool of your own whose claims are made by it.

        Without it, a call of your tool ends as an error that may be retried where an earlier call of its batch moves
        or deletes something that the name leads through.

        Args:
            wanted: as for `claims`.

        Checkpoint: never.

        Example::

            @tool(
                claims=lambda input, state: workspace.claims(input["path"], state, WRITE),
                claims_after=lambda input, state: workspace.claims_after(input["path"], state),
                owner=workspace,
            )
            async def sort_lines(ctx, path: str) -> str: ...
        """
        return self.identify(path, state, wanted).looks_at()

    def describe_error(self, error: BaseException) -> str:
        """The `error` of a tool that works on these files, without paths that a model must not see.

        The runtime asks this for tools that this workspace owns: paths inside it become relative to its root, all
        other paths of the machine "the path".

        Checkpoint: never.
        """
        homes = () if self.disk.home is None else (self.disk.home,)
        return describe_error(self.disk.root, error, homes, self.disk.mounts)

    def snapshot(self) -> dict[str, bytes | str]:
        """Everything in the workspace, by path relative to its root, to compare with another time or another disk.

        A file has its bytes, or above 1 MiB ``sha256:`` and their digest; a symbolic link has ``->``, a space
        and its text; anything else has its kind; a directory is there only if it is empty, with a slash at its end.
        What is kept aside of removals is left out.

        Raises:
            OSError: something cannot be read, or vanished meanwhile.

        Checkpoint: never; it blocks.
        """
        content: dict[str, bytes | str] = {}
        self._add_to(content, ())
        return content

    def _add_to(self, content: dict[str, bytes | str], entry: Entry) -> None:
        for name in self.disk.listdir(path_on(self.disk, entry)):
            if is_box(name):
                continue
            below = (*entry, name)
            path, shown = path_on(self.disk, below), "/".join(below)
            kind = self.disk.lstat(path).kind
            if kind is Kind.DIRECTORY:
                before = len(content)
                self._add_to(content, below)
                if len(content) == before:
                    content[f"{shown}/"] = ""
            elif kind is Kind.FILE:
                found = self.disk.peek(below)
                large = len(found) > SNAPSHOT_LIMIT
                content[shown] = f"sha256:{hashlib.sha256(found).hexdigest()}" if large else found
            elif kind is Kind.SYMLINK:
                content[shown] = f"-> {self.disk.readlink(path)}"
            else:
                content[shown] = kind.value


def _disk_at(what: str, root: object) -> Disk:
    if isinstance(root, str | os.PathLike):
        return RealDisk(root)
    if isinstance(root, Disk):
        return root
    raise DefinitionRefused(what, "a directory's path or a disk", root)

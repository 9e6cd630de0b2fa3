"""The twin at rest: what it is planted with, how it is copied, and what a look shows."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from typing import Self

import attrs
import trio

from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.workspace.disk._disk import EXACT, NO_MOUNTS, Entry, Folding, Kind, Stat, failure, is_box, is_own, parts_of
from toolrt.workspace.disk._memory_tree import READ, NodeTree, checked_parts
from toolrt.workspace.disk._nodes import (
    Branch,
    Directory,
    File,
    HardLink,
    Node,
    Other,
    Planted,
    Special,
    Symlink,
    User,
    copied,
)
from toolrt.workspace.disk._real import RealDisk

__all__ = ["COPY_LIMIT", "DiskAtRest", "Fault"]

#: Called before each elementary effect with its name and the entry's path below the root; an OSError that it raises
#: is what the disk does instead.  The names: "read", "look", "list"; "write" (a file of the disk's own), "overwrite"
#: (a file in place, twice), "move", "remove", "make directory", "make link", "set mode".
Fault = Callable[[str, str], None]

#: The most bytes `MemoryDisk.copy_of` copies unless told otherwise: 256 MiB.
COPY_LIMIT = 256 * 1024 * 1024


class DiskAtRest:
    """What a `MemoryDisk` is before anybody works on it; the same arguments."""

    def __init__(
        self,
        content: Mapping[str, Planted] | None = None,
        *,
        root: str = "/workspace",
        home: str | None = None,
        fold: Folding = EXACT,
        fault: Fault | None = None,
        user: User | None = None,
        capacity: int | None = None,
    ) -> None:
        if not root.startswith("/") or ".." in parts_of(root):
            raise DefinitionRefused("MemoryDisk's root", "an absolute path without ..", root)
        self._root = "/" + "/".join(part for part in parts_of(root) if part != ".")
        self._below = parts_of(self._root)
        self._home = home
        self._fault = fault
        self._tree = NodeTree(Branch(fold, 0o755, 1), self._below, fold == EXACT, user, capacity)
        self._planted_directory(self._below)
        later: dict[str, HardLink] = {}
        for path, what in (content or {}).items():
            if isinstance(what, HardLink):
                later[path] = what
            else:
                self.put(path, what)
        for path, link in later.items():
            self.put(path, link)

    @classmethod
    def copy_of(
        cls,
        path: str | os.PathLike[str],
        *,
        limit: int = COPY_LIMIT,
        home: str | None = None,
        fault: Fault | None = None,
    ) -> Self:
        """A twin of the real directory `path` as it is now, mounted where the real one is; `path` is only read.

        Links are kept as they are, hard links among the copied files too; pipes, sockets and devices are left
        out.

        Args:
            limit: the most bytes to copy.
            home: the directory that ``~`` means there; None: it means nothing.
            fault: what may fail, as of `MemoryDisk`.

        Raises:
            InputRefused: there is no directory at `path`, it has more than `limit` bytes of files, or a file
                cannot be read.
        """
        real = RealDisk(path)
        disk = cls(root=real.root, home=home, fold=real.folds(real.root), fault=fault)
        room = limit
        known: dict[tuple[int, int], str] = {}
        pending: list[Entry] = [()]
        while pending:
            entry = pending.pop()
            for name in real.listdir(_path_of(real.root, entry)):
                if is_box(name):
                    continue  # what is kept aside is of no use without its history
                below = (*entry, name)
                shown = "/".join(below)
                try:
                    found = real.lstat(_path_of(real.root, below))
                    if found.kind is Kind.SYMLINK:
                        disk.put(shown, Symlink(real.readlink(_path_of(real.root, below))))
                    elif found.kind is Kind.DIRECTORY:
                        disk.put(shown, Directory(real.folds(_path_of(real.root, below)), found.mode))
                        pending.append(below)
                    elif found.kind is Kind.FILE:
                        room -= found.size
                        if room < 0:
                            raise InputRefused(
                                f"copy of {os.fspath(path)!r}",
                                f"expected at most {limit} bytes of files, got more (at {shown})",
                                "Copy a smaller directory, or raise limit.",
                            )
                        disk._copy_file(below, found, real, known)
                except OSError as error:
                    raise InputRefused(
                        f"copy of {os.fspath(path)!r}",
                        f"{shown} cannot be read ({os.strerror(error.errno or 0)})",
                        "Make it readable, or copy another directory.",
                    ) from None
        return disk

    def copy(self) -> Self:
        """Another disk with the same content; what happens to one does not show in the other."""
        made = self.crashed()
        made._fault = self._fault
        return made

    def crashed(self) -> Self:
        """Another disk, as this one would be found after a crash now: what was being done is left as it is.

        It has no faults; whoever worked on this one is dead there, so `recover` mends what he left.
        """
        made = type(self)(root=self._root, home=self._home)
        made._tree = attrs.evolve(self._tree, top=copied(self._tree.top, {}))
        return made

    def put(self, path: str, what: Planted, *, mode: int = 0o644, owner: tuple[int, int] | None = None) -> None:
        """`what` stands at `path`, in place of whatever did; missing directories are made.

        For setting up, and for playing somebody else who changes the disk: it happens at once, at any time, and
        nothing binds it.

        Args:
            path: relative to the root, or absolute.
            mode: permission bits of a file or a special file.
            owner: the numbers of its user and its group; None: who works on the disk.

        Raises:
            DefinitionRefused: a file or link stands where a directory is needed, or a hard link's target is no
                file.

        Checkpoint: never.
        """
        parts = self._parts(path)
        if self._below[: len(parts)] == parts:
            raise DefinitionRefused("MemoryDisk.put", "a path that is not the root or above it", path)
        parent = self._planted_directory(parts[:-1])
        key = parent.folding.fold(parts[-1])
        uid, gid = self._tree.owner() if owner is None else owner
        node: Node
        if isinstance(what, str | bytes):
            content = what.encode() if isinstance(what, str) else what
            now = self.now_ns()
            node = File(content, mode, self._tree.next_inode(), uid, gid, mtime_ns=now, ctime_ns=now)
        elif isinstance(what, Directory):
            folding = parent.folding if what.fold is None else what.fold
            self._tree.exact = self._tree.exact and folding == EXACT
            node = Branch(folding, what.mode, self._tree.next_inode(), uid, gid)
        elif isinstance(what, Symlink):
            node = Other(Kind.SYMLINK, what.target, self._tree.next_inode(), uid, gid)
        elif isinstance(what, Special):
            node = Other(what.kind, "", self._tree.next_inode(), uid, gid, mode)
        elif isinstance(what, HardLink):
            node = self._planted_link(path, what)
        else:
            raise DefinitionRefused(
                f"MemoryDisk content at {path!r}", "text, bytes, Directory, Symlink, HardLink or Special", what
            )
        self._tree.unnamed(parent, key, self.now_ns())
        parent.names[key] = (parts[-1], node)
        self._tree.touch(parts, write=True)
        self._tree.touch_list(parts[:-1], made=True)

    def drop(self, path: str) -> None:
        """Nothing stands at `path`; a directory goes with all that is in it.  As `put`, it plays somebody else.

        Raises:
            FileNotFoundError: nothing stood there.

        Checkpoint: never.
        """
        parts, parent, key = self._named(path)
        self._tree.unnamed(parent, key, self.now_ns())
        self._tree.touch(parts, write=True)
        self._tree.touch_list(parts[:-1], made=True)

    def chmod(self, path: str, mode: int) -> None:
        """What stands at `path` has the permission bits `mode`.  As `put`, it plays somebody else.

        Raises:
            FileNotFoundError: nothing stands there.

        Checkpoint: never.
        """
        parts, parent, key = self._named(path)
        node = parent.names[key][1]
        if not isinstance(node, Other):
            node.mode = mode
        self._tree.touch(parts, write=True)
        if isinstance(node, File):
            node.changed(self.now_ns())
            self._tree.touch_content(parts, node, write=True)

    @property
    def root(self) -> str:
        """The path of the directory all entries are below."""
        return self._root

    @property
    def mounts(self) -> Mapping[str, str]:
        """None: it has one root."""
        return NO_MOUNTS

    @property
    def home(self) -> str | None:
        """What ``~`` stands for, or None."""
        return self._home

    @property
    def time_step_ns(self) -> int:
        """One nanosecond: two changes at one moment of the virtual clock show the same time."""
        return 1

    def now_ns(self) -> int:
        """The virtual clock's time; 0 where no Trio runs."""
        try:
            return int(trio.current_time() * 1_000_000_000)
        except RuntimeError:
            return 0

    def lstat(self, path: str) -> Stat:
        """What `path` is, links not followed; see `Disk.lstat`."""
        parts = checked_parts(path)
        self._tree.touch_way(parts)
        return self._tree.stat(self._tree.find(parts))

    def readlink(self, path: str) -> str:
        """The text of the symbolic link at `path`; see `Disk.readlink`."""
        parts = checked_parts(path)
        self._tree.touch_way(parts)
        node = self._tree.find(parts)
        if not isinstance(node, Other) or node.kind is not Kind.SYMLINK:
            raise failure(errno.EINVAL)
        return node.target

    def listdir(self, path: str) -> list[str]:
        """The names in the directory at `path`, sorted; see `Disk.listdir`."""
        parts = checked_parts(path)
        self._tree.touch_way(parts)
        self._tree.touch_list(parts, made=False)
        node = self._tree.find(parts)
        if not isinstance(node, Branch):
            raise failure(errno.ENOTDIR)
        self._tree.require(node, READ)
        return sorted(name for name, _ in node.names.values())

    def folds(self, path: str) -> Folding:
        """Which spellings the directory at `path` takes for the same name; see `Disk.folds`."""
        parts = parts_of(path)
        self._tree.touch_way(parts)
        try:
            node = self._tree.find(parts)
        except OSError:
            return EXACT
        return node.folding if isinstance(node, Branch) else EXACT

    def names_of(self, stat: Stat) -> int:
        """How many names of a file stand below the root; see `Disk.names_of`."""
        found = 0
        pending = [self._tree.find(self._below)] if stat.device == self._tree.device else []
        while pending:
            above = pending.pop()
            for name, node in above.names.values() if isinstance(above, Branch) else ():
                if isinstance(node, Branch):
                    pending.append(node)
                elif node.inode == stat.inode and not is_own(name):
                    self._tree.stat(node)  # which reports that its names were looked at
                    found += 1
        return found

    # Planting

    def _parts(self, path: str) -> Entry:
        parts = parts_of(path)
        if "." in parts or ".." in parts:
            raise DefinitionRefused("a path on a MemoryDisk", "one without . and ..", path)
        return parts if path.startswith("/") else (*self._below, *parts)

    def _named(self, path: str) -> tuple[Entry, Branch, str]:
        parts = self._parts(path)
        node: Node | None = self._tree.top
        for part in parts[:-1]:
            node = node.names.get(node.folding.fold(part), ("", None))[1] if isinstance(node, Branch) else None
        if not isinstance(node, Branch) or not parts or node.folding.fold(parts[-1]) not in node.names:
            raise failure(errno.ENOENT, parts)
        return parts, node, node.folding.fold(parts[-1])

    def _planted_link(self, path: str, what: HardLink) -> File:
        try:
            parts, above, key = self._named(what.target)
            found = above.names[key][1]
        except OSError:
            found = None
        if not isinstance(found, File):
            raise DefinitionRefused(f"the hard link {path!r}", "a target that is a file", what.target)
        found.links += 1
        found.changed(self.now_ns())
        found.shared = True
        self._tree.touch_content(parts, found, write=True)
        return found

    def _planted_directory(self, parts: Entry) -> Branch:
        """The directory at `parts`, made if it is missing."""
        node = self._tree.top
        for depth, part in enumerate(parts):
            key = node.folding.fold(part)
            if key not in node.names:
                uid, gid = self._tree.owner()
                node.names[key] = (part, Branch(node.folding, 0o755, self._tree.next_inode(), uid, gid))
                self._tree.touch(parts[: depth + 1], write=True)
                self._tree.touch_list(parts[:depth], made=True)
            below = node.names[key][1]
            if not isinstance(below, Branch):
                raise DefinitionRefused("MemoryDisk content", "a directory at every part of a path", "/".join(parts))
            node = below
        return node

    def _copy_file(self, entry: Entry, found: Stat, real: RealDisk, known: dict[tuple[int, int], str]) -> None:
        identity = (found.device, found.inode)
        shown = "/".join(entry)
        if identity in known:
            self.put(shown, HardLink(known[identity]))
            return
        self.put(shown, real.peek(entry), mode=found.mode)
        known[identity] = shown


def _path_of(root: str, entry: Entry) -> str:
    return "/".join((root.rstrip("/"), *entry)) or "/"

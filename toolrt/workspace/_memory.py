"""The twin: a disk in memory that behaves as the real one does.

Rules.  Every asynchronous operation is a chain of elementary effects (look at a file, write a temporary one, move
it, make a directory), and before each of them there is one checkpoint, so a simulation can let anything happen
there.  Each effect reports the entries it touched: ``("disk", "src", "a.txt")``, the parts folded and relative to
the root; ``("disk", "/")`` for all that lies outside the root; ``("disk", "/file", "7")`` for the content of file
number 7 where it has several names.  Nothing depends on time, on chance, or on the order of a set.

Theory.  Two steps may be swapped when they touch no common entry, or both only look.  To make a name in a
directory is a "read" of the directory's list, ``("disk", "src", "/")``, and to list it is a "write": so makers
commute with each other and not with who lists, which is all that the order of steps can change.

Limits.  Permission bits are kept, and bind nobody (as for root).  Times are counts of changes.  A directory that
somebody else moves while a file in it is being replaced is an error here; the real disk, which holds the directory
open, replaces the file where it now is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping

import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.workspace._disk import (
    EXACT,
    NAME_MAX,
    PATH_MAX,
    Entry,
    Folding,
    Kind,
    NotRegular,
    Stat,
    TooLarge,
    failure,
    parts_of,
)
from toolrt.workspace._nodes import (
    Branch,
    Directory,
    File,
    HardLink,
    Node,
    Other,
    Planted,
    Special,
    Symlink,
    copied,
    files_of,
)
from toolrt.workspace._real import RealDisk

__all__ = ["COPY_LIMIT", "Fault", "MemoryDisk"]


#: Called before each elementary effect with its name ("read", "write", "move", "make directory") and the
#: file's path below the root; an OSError it raises is what the disk does instead.
Fault = Callable[[str, str], None]

#: The most bytes `MemoryDisk.copy_of` copies unless told otherwise: 256 MiB.
COPY_LIMIT = 256 * 1024 * 1024


class MemoryDisk:
    """A disk in memory, with directories, symbolic and hard links, permission bits and folding of names.

    Args:
        content: what is there, by path: relative to the root, or absolute for what lies elsewhere on the disk.
            Text, bytes, `Directory`, `Symlink`, `HardLink`, `Special`.  Directories on the way are made.
        root: the absolute path of the directory a workspace works in.
        home: what ``~`` stands for; None: nothing.
        fold: how its directories fold names, where `Directory.fold` does not say otherwise.
        fault: is asked before each elementary effect and may raise an `OSError`; see `Fault`.

    Raises:
        DefinitionRefused: `root` is not absolute, or something in `content` cannot stand where it should.

    Example::

        disk = MemoryDisk({"a.txt": "one", "src": Directory(), "b.txt": Symlink("a.txt")})
    """

    def __init__(
        self,
        content: Mapping[str, Planted] | None = None,
        *,
        root: str = "/workspace",
        home: str | None = None,
        fold: Folding = EXACT,
        fault: Fault | None = None,
    ) -> None:
        if not root.startswith("/") or ".." in parts_of(root):
            raise DefinitionRefused("MemoryDisk's root", "an absolute path without ..", root)
        self._root = "/" + "/".join(part for part in parts_of(root) if part != ".")
        self._below = parts_of(self._root)
        self._home = home
        self._fault = fault
        self._inodes = 1
        self._top = Branch(fold, 0o755, self._inodes)
        # Whether no directory folds: then an entry's parts are its key, which saves looking each of them up.
        self._exact = fold == EXACT
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
    ) -> MemoryDisk:
        """A twin of the real directory `path` as it is now, mounted where the real one is; `path` is only read.

        Links are kept as they are, hard links among the copied files too; pipes, sockets and devices are left
        out.

        Args:
            limit: the most bytes to copy.

        Raises:
            InputRefused: there is no directory at `path`, it has more than `limit` bytes of files, or a file
                cannot be read.
        """
        real = RealDisk(path)
        disk = cls(root=real.root, home=home, fold=real.folds(real.root), fault=fault)
        room = limit
        known: dict[tuple[int, int], File] = {}
        pending: list[Entry] = [()]
        while pending:
            entry = pending.pop()
            for name in real.listdir(_path_of(real.root, entry)):
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

    def copy(self) -> MemoryDisk:
        """Another twin with the same content; what happens to one does not show in the other."""
        made = MemoryDisk(root=self._root, home=self._home, fault=self._fault)
        made._inodes = self._inodes
        made._top = copied(self._top, {})
        made._exact = self._exact
        return made

    def put(self, path: str, what: Planted, *, mode: int = 0o644) -> None:
        """`what` stands at `path`, in place of whatever did; missing directories are made.

        For setting up, and for playing somebody else who changes the disk: it happens at once, at any time.

        Args:
            path: relative to the root, or absolute.
            mode: permission bits of a file.

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
        node: Node
        if isinstance(what, str | bytes):
            node = File(what.encode() if isinstance(what, str) else what, mode, self._next_inode())
        elif isinstance(what, Directory):
            folding = parent.folding if what.fold is None else what.fold
            self._exact = self._exact and folding == EXACT
            node = Branch(folding, what.mode, self._next_inode())
        elif isinstance(what, Symlink):
            node = Other(Kind.SYMLINK, what.target, self._next_inode())
        elif isinstance(what, Special):
            node = Other(what.kind, "", self._next_inode())
        elif isinstance(what, HardLink):
            try:
                found = self._find(self._parts(what.target))
            except OSError:
                found = None
            if not isinstance(found, File):
                raise DefinitionRefused(f"the hard link {path!r}", "a target that is a file", what.target)
            found.links += 1
            self._touch(self._parts(what.target), write=True)
            node = found
        else:
            raise DefinitionRefused(
                f"MemoryDisk content at {path!r}", "text, bytes, Directory, Symlink, HardLink or Special", what
            )
        self._unlink(parent, key)
        parent.names[key] = (parts[-1], node)
        self._touch(parts, write=True)
        self._touch_list(parts[:-1], made=True)

    def remove(self, path: str) -> None:
        """Nothing stands at `path`; a directory goes with all that is in it.

        Raises:
            FileNotFoundError: nothing stood there.

        Checkpoint: never.
        """
        parts = self._parts(path)
        parent = self._find(parts[:-1])
        key = parent.folding.fold(parts[-1]) if isinstance(parent, Branch) and parts else ""
        if not isinstance(parent, Branch) or key not in parent.names:
            raise failure(errno.ENOENT, parts)
        self._unlink(parent, key)
        self._touch(parts, write=True)
        self._touch_list(parts[:-1], made=True)

    @property
    def root(self) -> str:
        """The path of the directory all entries are below."""
        return self._root

    @property
    def home(self) -> str | None:
        """What ``~`` stands for, or None."""
        return self._home

    def lstat(self, path: str) -> Stat:
        """What `path` is, links not followed; see `Disk.lstat`."""
        parts = _checked_parts(path)
        self._touch(parts, write=False)
        return self._stat(self._find(parts))

    def readlink(self, path: str) -> str:
        """The text of the symbolic link at `path`; see `Disk.readlink`."""
        parts = _checked_parts(path)
        self._touch(parts, write=False)
        node = self._find(parts)
        if not isinstance(node, Other) or node.kind is not Kind.SYMLINK:
            raise failure(errno.EINVAL, parts)
        return node.target

    def listdir(self, path: str) -> list[str]:
        """The names in the directory at `path`, sorted; see `Disk.listdir`."""
        parts = _checked_parts(path)
        self._touch_list(parts, made=False)
        node = self._find(parts)
        if not isinstance(node, Branch):
            raise failure(errno.ENOTDIR, parts)
        return sorted(name for name, _ in node.names.values())

    def folds(self, path: str) -> Folding:
        """Which spellings the directory at `path` takes for the same name; see `Disk.folds`."""
        try:
            node = self._find(parts_of(path))
        except OSError:
            return EXACT
        return node.folding if isinstance(node, Branch) else EXACT

    def peek(self, entry: Entry) -> bytes:
        """The content of the file at `entry`; see `Disk.peek`."""
        file = self._file(entry)
        self._touch_content(entry, file, write=False)
        return file.content

    async def read(self, entry: Entry, limit: int) -> bytes:
        """The content of the regular file at `entry`, at most `limit` bytes; see `Disk.read`."""
        await self._effect("read", entry)
        self._touch((*self._below, *entry), write=False)
        file = self._file(entry)
        self._touch_content(entry, file, write=False)
        if len(file.content) > limit:
            raise TooLarge(len(file.content), limit)
        return file.content

    async def replace(self, entry: Entry, content: bytes) -> None:
        """The file at `entry` has exactly `content`; see `Disk.replace`."""
        await self._effect("write", entry)
        parts = (*self._below, *entry)
        self._touch(parts, write=False)
        directory = self._entered(entry[:-1])
        before = self._file_or_none(entry)
        if before is not None and before.links > 1:
            before.content = bytes(content)
            before.mtime_ns += 1
            self._touch_content(entry, before, write=True)
            return
        temporary = self._free_name(directory, entry[-1])
        beside = (*parts[:-1], temporary)
        written = File(bytes(content), 0o644 if before is None else before.mode, self._next_inode())
        directory.names[temporary] = (temporary, written)
        self._touch(beside, write=True)
        self._touch_list(parts[:-1], made=True)
        try:
            await self._effect("move", entry)
            # What stands there may have changed at the checkpoint.  As rename(2) does: a link or a special file
            # is replaced itself, a directory is not.
            directory = self._entered(entry[:-1])
            key = directory.folding.fold(entry[-1])
            name, now = directory.names.get(key, (entry[-1], None))
            if isinstance(now, Branch):
                raise failure(errno.EISDIR, entry)
            if isinstance(now, File):
                written.mtime_ns = now.mtime_ns + 1
            self._unlink(directory, key)
            directory.names[key] = (name, written)
            self._touch(parts, write=True)
        finally:
            directory.names.pop(temporary, None)
            self._touch(beside, write=True)
            self._touch_list(parts[:-1], made=True)

    async def make_dirs(self, entry: Entry) -> None:
        """A directory stands at `entry`; see `Disk.make_dirs`."""
        if not entry:
            await trio.lowlevel.checkpoint()
        for depth in range(1, len(entry) + 1):
            made = entry[:depth]
            await self._effect("make directory", made)
            parts = (*self._below, *made)
            directory = self._entered(made[:-1])
            key = directory.folding.fold(made[-1])
            self._touch(parts, write=key not in directory.names)
            if key in directory.names:
                self._entered(made)
            else:
                directory.names[key] = (made[-1], Branch(directory.folding, 0o755, self._next_inode()))
                self._touch_list(parts[:-1], made=True)

    async def _effect(self, name: str, entry: Entry) -> None:
        """The instant before an elementary effect: anything may happen here, a fault too."""
        await trio.lowlevel.checkpoint()
        if self._fault is not None:
            self._fault(name, "/".join(entry))

    def _next_inode(self) -> int:
        self._inodes += 1
        return self._inodes

    def _parts(self, path: str) -> Entry:
        parts = parts_of(path)
        if "." in parts or ".." in parts:
            raise DefinitionRefused("a path on a MemoryDisk", "one without . and ..", path)
        return parts if path.startswith("/") else (*self._below, *parts)

    def _planted_directory(self, parts: Entry) -> Branch:
        """The directory at `parts`, made if it is missing."""
        node = self._top
        for depth, part in enumerate(parts):
            key = node.folding.fold(part)
            if key not in node.names:
                node.names[key] = (part, Branch(node.folding, 0o755, self._next_inode()))
                self._touch(parts[: depth + 1], write=True)
            below = node.names[key][1]
            if not isinstance(below, Branch):
                raise DefinitionRefused("MemoryDisk content", "a directory at every part of a path", "/".join(parts))
            node = below
        return node

    def _copy_file(self, entry: Entry, found: Stat, real: RealDisk, known: dict[tuple[int, int], File]) -> None:
        identity = (found.device, found.inode)
        if identity in known:
            parent = self._planted_directory((*self._below, *entry[:-1]))
            parent.names[parent.folding.fold(entry[-1])] = (entry[-1], known[identity])
            known[identity].links += 1
            return
        self.put("/".join(entry), real.peek(entry), mode=found.mode)
        known[identity] = self._file(entry)

    def _find(self, parts: Entry) -> Node:
        """What stands at `parts`; no link is followed."""
        node: Node = self._top
        for part in parts:
            if not isinstance(node, Branch):
                raise failure(errno.ENOTDIR, parts)
            found = node.names.get(node.folding.fold(part))
            if found is None:
                raise failure(errno.ENOENT, parts)
            node = found[1]
        return node

    def _entered(self, entry: Entry) -> Branch:
        """The directory at `entry`, reached as the real disk reaches it."""
        node: Node = self._find(self._below)
        for depth, part in enumerate(entry):
            if not isinstance(node, Branch):
                break
            self._touch((*self._below, *entry[: depth + 1]), write=False)
            _check_name(part, entry)
            found = node.names.get(node.folding.fold(part))
            if found is None:
                raise failure(errno.ENOENT, entry)
            node = found[1]
            if isinstance(node, Other) and node.kind is Kind.SYMLINK:
                raise failure(errno.ELOOP, entry)
        if not isinstance(node, Branch):
            raise failure(errno.ENOTDIR, entry)
        return node

    def _file_or_none(self, entry: Entry) -> File | None:
        """The regular file at `entry`, or None for nothing."""
        if not entry:
            raise failure(errno.EISDIR, entry)
        directory = self._entered(entry[:-1])
        _check_name(entry[-1], entry)
        found = directory.names.get(directory.folding.fold(entry[-1]))
        if found is None:
            return None
        node = found[1]
        if isinstance(node, Branch):
            raise failure(errno.EISDIR, entry)
        if isinstance(node, Other):
            raise failure(errno.ELOOP, entry) if node.kind is Kind.SYMLINK else NotRegular(node.kind)
        return node

    def _file(self, entry: Entry) -> File:
        file = self._file_or_none(entry)
        if file is None:
            raise failure(errno.ENOENT, entry)
        return file

    def _free_name(self, directory: Branch, name: str) -> str:
        """A temporary name that is free: the same in every execution, and another for every target."""
        serial = 0
        while True:
            candidate = directory.folding.fold(f".toolrt-{serial}-{name[:40]}.tmp")
            if candidate not in directory.names:
                return candidate
            serial += 1

    def _unlink(self, directory: Branch, key: str) -> None:
        before = directory.names.pop(key, None)
        if before is not None:
            for file in files_of(before[1]):
                file.links -= 1

    def _stat(self, node: Node) -> Stat:
        if isinstance(node, File):
            return Stat(Kind.FILE, node.mode, len(node.content), node.mtime_ns, node.inode, 1, node.links)
        if isinstance(node, Other):
            return Stat(node.kind, 0o777, len(node.target.encode(errors="surrogateescape")), 0, node.inode, 1, 1)
        return Stat(Kind.DIRECTORY, node.mode, 0, 0, node.inode, 1, 2)

    def _touch(self, parts: Entry, *, write: bool) -> None:
        """Report an access to the entry at `parts`, counted from the top."""
        if probe.sink is not None:
            probe.sink.access(self._resource(parts), write)

    def _touch_list(self, parts: Entry, *, made: bool) -> None:
        """Report an access to a directory's list of names; see the module's theory."""
        if probe.sink is not None:
            resource = self._resource(parts)
            probe.sink.access(resource if resource == _OUTSIDE else (*resource, "/"), not made)

    def _touch_content(self, entry: Entry, file: File, *, write: bool) -> None:
        """Report an access to a file's content."""
        self._touch((*self._below, *entry), write=write)
        if file.links > 1 and probe.sink is not None:
            probe.sink.access(("disk", "/file", str(file.inode)), write)

    def _resource(self, parts: Entry) -> probe.Resource:
        """The name of the entry at `parts` as accesses report it."""
        folded = parts if self._exact else self._folded(parts)
        depth = len(self._below)
        own = self._below if self._exact else self._folded(self._below)
        return ("disk", *folded[depth:]) if folded[:depth] == own else _OUTSIDE

    def _folded(self, parts: Entry) -> Entry:
        node: Node | None = self._top
        folding = self._top.folding
        keys: list[str] = []
        for part in parts:
            if isinstance(node, Branch):
                folding = node.folding
                found = node.names.get(folding.fold(part))
                node = found[1] if found is not None else None
            keys.append(folding.fold(part))
        return tuple(keys)


_OUTSIDE: probe.Resource = ("disk", "/")


def _path_of(root: str, entry: Entry) -> str:
    return "/".join((root.rstrip("/"), *entry)) or "/"


def _check_name(name: str, entry: Entry) -> None:
    if 4 * len(name) > NAME_MAX and len(os.fsencode(name)) > NAME_MAX:
        raise failure(errno.ENAMETOOLONG, entry)


def _checked_parts(path: str) -> Entry:
    parts = parts_of(path)
    # A character is at most four bytes, so a short path needs no closer look.
    if 4 * len(path) > NAME_MAX and (
        len(os.fsencode(path)) > PATH_MAX or any(len(os.fsencode(part)) > NAME_MAX for part in parts)
    ):
        raise failure(errno.ENAMETOOLONG, parts)
    return parts

"""The twin: a disk in memory that behaves as the real one does.

Rules.  Every asynchronous operation is a chain of elementary effects (look at a file, write a temporary one, move
it, make a directory), and before each of them there is one checkpoint, so a simulation can let anything happen
there: other tasks, a fault, a crash.  Once a change can be seen the rest of its chain is shielded from cancels, as a
worker thread is.  Each effect reports what it touched (`_memory_tree`).  Nothing depends on the wall clock, on
chance, or on the order of a set.

Theory.  Between two effects the disk is as a crash would leave it; `MemoryDisk.crashed` is that disk, and its
`recover` does what the real one's does.

Limits.  Errors and their order are Linux's.  Directories, links and special files have no times; there are no ACLs,
no attributes, no mount points.  Permission above the root binds as below it.  A file that is written in place is
shown half written at one moment, where the real one has a moment for each block.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Self

import attrs
import trio

from toolrt.errors import DefinitionRefused
from toolrt.workspace.disk._disk import (
    BOXED,
    COPY,
    EXACT,
    KEPT,
    NO_MOUNTS,
    PARTIAL,
    PATH_MAX,
    Change,
    Entry,
    Folding,
    InPlace,
    Kind,
    Revision,
    Snapshot,
    Stat,
    Survey,
    is_boxed,
    parts_of,
)
from toolrt.workspace.disk._disk_errors import Changed, Inseparable, NotRegular, TooLarge, failure, require_below_root
from toolrt.workspace.disk._memory_keep import put_in_box, surveyed
from toolrt.workspace.disk._memory_planting import plant, plant_copy, planted_directory, set_planted_mode, uproot
from toolrt.workspace.disk._memory_recover import recover, strangers
from toolrt.workspace.disk._memory_tree import READ, SEARCH, SET_GROUP, WRITE, NodeTree, checked_parts, now_ns
from toolrt.workspace.disk._nodes import (
    Branch,
    FileNode,
    HardLink,
    Other,
    Planted,
    RecoveryCopy,
    User,
    copied,
    nodes_of,
)
from toolrt.workspace.disk._real import RealDisk

#: Called before each elementary effect with its name and the entry's path below the root; an OSError that it raises
#: is what the disk does instead.  The names: "read", "look", "list"; "write" (a file of the disk's own), "overwrite"
#: (a file in place, twice), "move", "remove", "make directory", "make link", "set mode".
Fault = Callable[[str, str], None]

#: The most bytes `MemoryDisk.copy_of` copies unless told otherwise: 256 MiB.
COPY_LIMIT = 256 * 1024 * 1024

#: The mode bits that a new file or directory does not get.
_UMASK = 0o022

#: The bytes of a recovery copy's head.
_HEAD = 4096


class MemoryDisk:
    """A disk in memory, with directories, symbolic and hard links, permission bits and folding of names.

    Args:
        content: what is there, by path: relative to the root, or absolute for what lies elsewhere on the disk.
            Text, bytes, `Directory`, `Symlink`, `HardLink`, `Special`.  Directories on the way are made.
        root: the absolute path of the directory a workspace works in.
        home: what ``~`` stands for; None: nothing.
        fold: how its directories fold names, where `Directory.fold` does not say otherwise.
        fault: is asked before each elementary effect and may raise an `OSError`; see `Fault`.
        user: is bound by permission bits and owns new files; None: root, which they do not bind.
        capacity: how many bytes its files may have, each counted in whole blocks of 4 KiB; None: any number.

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
        planted_directory(self._tree, self._below)
        # Hard links last: their targets are planted by then.
        for path, what in sorted((content or {}).items(), key=lambda item: isinstance(item[1], HardLink)):
            self.put(path, what)

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
        plant_copy(disk._tree, real, os.fspath(path), limit)
        return disk

    def copy(self) -> Self:
        """Another disk with the same content; what happens to one does not show in the other."""
        made = self.crashed()
        made._fault = self._fault
        return made

    def crashed(self) -> Self:
        """Another disk, as this one would be found after a crash now: what was being done is left as it is.

        It has no faults; every writer on this one is dead there, so `recover` mends what they left.
        """
        made = type(self)(root=self._root, home=self._home)
        made._tree = attrs.evolve(self._tree, top=copied(self._tree.top, {}))
        return made

    def put(self, path: str, what: Planted, *, mode: int = 0o644, owner: tuple[int, int] | None = None) -> None:
        """`what` stands at `path`, in place of whatever did; missing directories are made.

        For setting up, and for simulating another program that changes the disk: it happens at once, at any time,
        and no permission binds it.

        Args:
            path: relative to the root, or absolute.
            mode: permission bits of a file or a special file.
            owner: the numbers of its user and its group; None: the disk's user.

        Raises:
            DefinitionRefused: a file or link stands where a directory is needed, or a hard link's target is no
                file.

        Checkpoint: never.
        """
        plant(self._tree, path, what, mode, owner)

    def drop(self, path: str) -> None:
        """Nothing stands at `path`; a directory goes with all that is in it.  As `put`, it simulates another program.

        Raises:
            FileNotFoundError: nothing stood there.

        Checkpoint: never.
        """
        uproot(self._tree, path)

    def chmod(self, path: str, mode: int) -> None:
        """What stands at `path` has the permission bits `mode`.  As `put`, it simulates another program.

        Raises:
            FileNotFoundError: nothing stands there.

        Checkpoint: never.
        """
        set_planted_mode(self._tree, path, mode)

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
        return now_ns()

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

    def names_of(self, stat: Stat) -> list[Entry]:
        """The names of a file that stand below the root; see `Disk.names_of`."""
        return self._tree.names_of(stat)

    def peek(self, entry: Entry) -> bytes:
        """The content of the file at `entry`; see `Disk.peek`."""
        return self._read(entry, None).content

    def recover(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """What dead writers left is gone; see `Disk.recover`."""
        return recover(self._tree, directories)

    def strangers(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """Names like the disk's own that it did not make; see `Disk.strangers`."""
        return strangers(self._tree, directories)

    async def look(self, entry: Entry) -> Stat:
        """What stands at `entry`; see `Disk.look`."""
        await self._effect("look", entry)
        return self._tree.stat(self._tree.standing(entry)[1] if entry else self._tree.entered(()))

    async def names(self, entry: Entry) -> list[tuple[str, Stat]]:
        """The names in the directory at `entry`; see `Disk.names`."""
        await self._effect("list", entry)
        directory = self._tree.entered(entry)
        parts = (*self._below, *entry)
        self._tree.touch_list(parts, made=False)
        # Opening the root to list it looks up "." in it.
        self._tree.require(directory, READ if entry else READ | SEARCH, entry)
        if directory.names:
            self._tree.require(directory, SEARCH, entry)
        found = sorted(directory.names.values(), key=lambda named: named[0])
        for name, _ in found:
            self._tree.touch((*parts, name), write=False)
        return [(name, self._tree.stat(node)) for name, node in found]

    async def read(self, entry: Entry, limit: int) -> Snapshot:
        """The regular file at `entry`; see `Disk.read`."""
        await self._effect("read", entry)
        return self._read(entry, limit)

    async def read_part(self, entry: Entry, start: int, size: int) -> Snapshot:
        """A part of the regular file at `entry`; see `Disk.read_part`."""
        await self._effect("read", entry)
        whole = self._read(entry, None)
        return Snapshot(whole.content[start : start + size], whole.stat)

    async def revise(self, entry: Entry, limit: int, change: Change, in_place: InPlace | None = None) -> Revision:
        """The file at `entry` has what `change` makes of it; see `Disk.revise`."""
        await self._effect("read", entry)
        require_below_root(entry, errno.EISDIR)
        self._tree.touch((*self._below, *entry), write=False)
        above = self._tree.entered(entry[:-1])
        file = self._tree.file_or_none(above, entry)
        before = None if file is None else self._snapshot(entry, file, limit)
        seen = _FoundFile(entry, above, file, 0 if file is None else file.changes)
        content = change(before)
        if content is None:
            return Revision(before, before)
        content = bytes(content)
        if file is not None:
            self._tree.require(file, WRITE, entry)
        several = file is not None and file.links > 1
        if file is not None and several:
            stat = self._tree.stat(file)
            stays = len(self.names_of(stat)) >= stat.links if in_place is None else in_place(stat)
            if not stays and not self._tree.may_give(file):
                raise Inseparable
        else:
            stays = file is not None and not self._tree.may_give(file)
        if file is not None and stays:
            await self._write_in_place(seen, file, content)
        else:
            file = await self._swap_in(seen, content)
        return Revision(before, Snapshot(content, self._tree.stat(file)))

    async def make_dirs(self, entry: Entry) -> None:
        """A directory stands at `entry`; see `Disk.make_dirs`."""
        if not entry:
            await trio.lowlevel.checkpoint()
        for depth in range(1, len(entry) + 1):
            made = entry[:depth]
            await self._effect("make directory", made)
            above = self._tree.entered(made[:-1])
            if self._tree.named(above, made[-1], made) is not None:
                self._tree.entered(made)
                continue
            self._tree.require(above, WRITE | SEARCH, made)
            mode = 0o777 & ~_UMASK | above.mode & SET_GROUP
            branch = Branch(above.folding, mode, self._tree.next_inode(), *self._tree.new_owner(above))
            self._tree.add(above, made, branch)

    async def make_link(self, entry: Entry, text: str) -> None:
        """A symbolic link stands at `entry`; see `Disk.make_link`."""
        await self._effect("make link", entry)
        require_below_root(entry, errno.EEXIST)
        if not text or len(os.fsencode(text)) > PATH_MAX:
            raise failure(errno.ENAMETOOLONG if text else errno.ENOENT, entry)
        above = self._tree.entered(entry[:-1])
        if self._tree.named(above, entry[-1], entry) is not None:
            raise failure(errno.EEXIST, entry)
        self._tree.require(above, WRITE | SEARCH, entry)
        link = Other(Kind.SYMLINK, text, self._tree.next_inode(), *self._tree.new_owner(above))
        self._tree.add(above, entry, link)

    async def set_mode(self, entry: Entry, mode: int) -> None:
        """The file or directory at `entry` has these permission bits; see `Disk.set_mode`."""
        await self._effect("set mode", entry)
        require_below_root(entry, errno.EBUSY)
        node = self._tree.standing(entry)[1]
        if isinstance(node, Other):
            raise failure(errno.ELOOP, entry) if node.kind is Kind.SYMLINK else NotRegular(node.kind)
        self._tree.require(node, READ, entry)
        user = self._tree.user
        if user is not None and user.uid != node.uid:
            raise failure(errno.EPERM, entry)
        # Only a member of a group may grant the right to run as that group.
        node.mode = mode if user is None or node.gid in user.gids else mode & ~SET_GROUP
        self._tree.touch((*self._below, *entry), write=True)
        if isinstance(node, FileNode):
            node.changed(self.now_ns())
            self._tree.touch_content((*self._below, *entry), node, write=True)

    async def remove(self, entry: Entry, expected: Stat | None = None) -> None:
        """Nothing stands at `entry`; see `Disk.remove`."""
        await self._effect("remove", entry)
        require_below_root(entry, errno.EBUSY)
        above, node = self._tree.standing(entry)
        if expected is not None and self._tree.stat(node) != expected:
            raise Changed
        self._tree.require_removable(above, node, entry)
        if isinstance(node, Branch):
            self._tree.touch_list((*self._below, *entry), made=False)
            if node.names:
                raise failure(errno.ENOTEMPTY, entry)
        self._tree.take_away(above, entry)

    async def remove_tree(self, entry: Entry) -> None:
        """Nothing stands at `entry`, whatever did; see `Disk.remove_tree`."""
        await self._effect("move", entry)
        require_below_root(entry, errno.EBUSY)
        above, node = self._tree.standing(entry)
        if not isinstance(node, Branch):
            self._tree.require_removable(above, node, entry)
            self._tree.take_away(above, entry)
            return
        self._tree.require_all_removable(node, entry)
        self._tree.require_removable(above, node, entry)
        aside = self._tree.free_name(above, entry[-1], PARTIAL)
        node.held = True
        self._tree.rename(above, entry, above, (*entry[:-1], aside))
        node.made_as = (above.inode, aside)
        try:
            await self._effect("remove", entry, shielded=True)
        except OSError:
            node.held = False
        else:
            self._tree.take_away(above, (*entry[:-1], aside))

    def kept_for(self, entry: Entry) -> Entry:
        """A new entry for what is to be kept; see `Disk.kept_for`."""
        require_below_root(entry, errno.EBUSY)
        root = self._tree.entered(())
        told = hashlib.sha256("/".join(entry).encode(errors="surrogateescape")).hexdigest()[:16]
        return (self._tree.free_name(root, told, KEPT), BOXED)

    async def survey(self, entry: Entry, *, contents: bool = True) -> Survey:
        """What stands at `entry` with all that is in it; see `Disk.survey`."""
        await self._effect("read", entry)
        return surveyed(self._tree, entry, contents=contents)

    async def keep(self, entry: Entry, kept: Entry, begin: Callable[[Survey], None]) -> None:
        """What stood at `entry` is kept at `kept`; see `Disk.keep`."""
        await self._effect("read", entry)
        found = surveyed(self._tree, entry)
        await self._effect("move", entry)
        if surveyed(self._tree, entry).number != found.number:
            raise Changed
        put_in_box(self._tree, entry, kept, lambda: begin(found))

    async def move(self, source: Entry, target: Entry) -> None:
        """What stood at `source` stands at `target`; see `Disk.move`."""
        await self._effect("move", source)
        require_below_root(source, errno.EBUSY)
        require_below_root(target, errno.EEXIST)
        here, there = self._tree.entered(source[:-1]), self._tree.entered(target[:-1])
        self._tree.require(here, SEARCH, source)
        self._tree.require(there, SEARCH, target)
        node = self._tree.standing(source)[1]
        self._tree.touch((*self._below, *target), write=False)
        other = self._tree.named(there, target[-1], target)
        if other is not None:
            key = there.folding.fold(target[-1])
            if here is not there or key != here.folding.fold(source[-1]) or there.names[key][0] == target[-1]:
                raise failure(errno.EEXIST, target)
        if any(below is there for below in nodes_of(node)):
            raise failure(errno.EINVAL, source)
        self._tree.require_removable(here, node, source)
        self._tree.require(there, WRITE | SEARCH, target)
        if isinstance(node, Branch) and here is not there:
            self._tree.require(node, WRITE, source)
        self._tree.rename(here, source, there, target)
        if is_boxed(source):
            self._tree.take_away(self._tree.entered(source[:-2]), source[:-1])

    async def _effect(self, name: str, entry: Entry, *, shielded: bool = False) -> None:
        """The instant before an elementary effect: anything may happen here, a fault too."""
        if shielded:
            await trio.lowlevel.cancel_shielded_checkpoint()
        else:
            await trio.lowlevel.checkpoint()
        if self._fault is not None:
            self._fault(name, "/".join(entry))

    # Files

    def _read(self, entry: Entry, limit: int | None) -> Snapshot:
        require_below_root(entry, errno.EISDIR)
        self._tree.touch((*self._below, *entry), write=False)
        file = self._tree.file_or_none(self._tree.entered(entry[:-1]), entry)
        if file is None:
            raise failure(errno.ENOENT, entry)
        return self._snapshot(entry, file, limit)

    def _snapshot(self, entry: Entry, file: FileNode, limit: int | None) -> Snapshot:
        self._tree.require(file, READ, entry)
        self._tree.touch_content((*self._below, *entry), file, write=False)
        if limit is not None and len(file.content) > limit:
            raise TooLarge(len(file.content), limit)
        return Snapshot(file.content, self._tree.stat(file))

    async def _swap_in(self, seen: _FoundFile, content: bytes) -> FileNode:
        """Write a file of our own and move it to its place."""
        await self._effect("write", seen.entry)
        self._require_there(seen)
        with self._own(seen, content) as (name, written):
            if seen.file is not None:
                written.mode, written.uid, written.gid = seen.file.mode, seen.file.uid, seen.file.gid
            await self._effect("move", seen.entry)
            self._require_same(seen)
            written.held = False
            self._tree.rename(seen.above, (*seen.entry[:-1], name), seen.above, seen.entry)
        return written

    async def _write_in_place(self, seen: _FoundFile, file: FileNode, content: bytes) -> None:
        """Give `file` new content behind a recovery copy; on an error put the old content back."""
        old, mode = file.content, file.mode
        await self._effect("write", seen.entry)
        self._require_there(seen)
        with self._own(seen, bytes(_HEAD) + old + content) as (name, copy):
            await self._effect("overwrite", seen.entry)
            self._require_same(seen)
            copy.saved = RecoveryCopy(seen.entry[-1], file.inode, old, content)
            whole = name.removesuffix(PARTIAL) + COPY
            self._tree.rename(seen.above, (*seen.entry[:-1], name), seen.above, (*seen.entry[:-1], whole))
            copy.made_as = (seen.above.inode, whole)
            half = len(content) // 2
            try:
                self._tree.overwrite(seen.entry, file, content[:half] + old[half:])
                await self._effect("overwrite", seen.entry, shielded=True)
                self._tree.overwrite(seen.entry, file, content)
                await self._effect("remove", seen.entry, shielded=True)
            except BaseException:
                self._tree.overwrite(seen.entry, file, old)
                raise
            finally:
                self._tree.take_away(seen.above, (*seen.entry[:-1], whole))
            user = self._tree.user
            if user is None or user.uid == file.uid:
                # Only a member of a group may grant the right to run as that group.
                file.mode = mode if user is None or file.gid in user.gids else mode & ~SET_GROUP

    @contextmanager
    def _own(self, seen: _FoundFile, content: bytes) -> Iterator[tuple[str, FileNode]]:
        """A file of the disk's own beside `seen`, which is gone at the end unless it was renamed."""
        above, entry = seen.above, seen.entry
        self._tree.require(above, WRITE | SEARCH, entry)
        self._tree.require_room(len(content), 0, entry)
        name = self._tree.free_name(above, entry[-1], PARTIAL)
        mode, inode, owner, now = 0o666 & ~_UMASK, self._tree.next_inode(), self._tree.new_owner(above), self.now_ns()
        file = FileNode(content, mode, inode, *owner, mtime_ns=now, ctime_ns=now, held=True)
        file.made_as = (above.inode, name)
        beside = (*entry[:-1], name)
        self._tree.add(above, beside, file)
        try:
            yield name, file
        finally:
            if above.names.get(above.folding.fold(name), ("", None))[1] is file:
                self._tree.take_away(above, beside)

    def _require_there(self, seen: _FoundFile) -> None:
        """Refuse a directory that is not the one that was looked into."""
        if self._tree.entered(seen.entry[:-1]) is not seen.above:
            raise Changed

    def _require_same(self, seen: _FoundFile) -> None:
        """Refuse what is not what was read."""
        self._require_there(seen)
        self._tree.touch((*self._below, *seen.entry), write=False)
        now = self._tree.named(seen.above, seen.entry[-1], seen.entry)
        if now is not seen.file or (seen.file is not None and seen.file.changes != seen.changes):
            raise Changed


@attrs.frozen
class _FoundFile:
    """A file as `revise` found it."""

    entry: Entry
    above: Branch
    #: None: nothing was there.
    file: FileNode | None
    changes: int

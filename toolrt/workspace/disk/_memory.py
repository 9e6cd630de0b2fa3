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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import attrs
import trio

from toolrt.workspace.disk._disk import (
    BOXED,
    COPY,
    DEEPEST,
    KEPT,
    OWN,
    PARTIAL,
    PATH_MAX,
    Change,
    Changed,
    Entry,
    InPlace,
    Inseparable,
    Kind,
    NotRegular,
    Revision,
    Snapshot,
    Stat,
    Survey,
    TooLarge,
    failure,
    is_own,
)
from toolrt.workspace.disk._memory_rest import COPY_LIMIT, DiskAtRest, Fault
from toolrt.workspace.disk._memory_tree import READ, SEARCH, WRITE
from toolrt.workspace.disk._nodes import Branch, File, Node, Other, RecoveryCopy, files_of, nodes_of
from toolrt.workspace.disk._real_keep import IGNORING, tree_digest
from toolrt.workspace.disk._real_recover import mixture

__all__ = ["COPY_LIMIT", "Fault", "MemoryDisk"]

#: The mode bits that a new file or directory does not get.
_UMASK = 0o022

#: A file's bits that let others run it as its owner, or in its group; the latter, on a directory, gives its group to
#: what is made in it.
_SET_USER, _SET_GROUP = 0o4000, 0o2000

#: The bytes of a recovery copy's head.
_HEAD = 4096


class MemoryDisk(DiskAtRest):
    """A disk in memory, with directories, symbolic and hard links, permission bits and folding of names.

    Args:
        content: what is there, by path: relative to the root, or absolute for what lies elsewhere on the disk.
            Text, bytes, `Directory`, `Symlink`, `HardLink`, `Special`.  Directories on the way are made.
        root: the absolute path of the directory a workspace works in.
        home: what ``~`` stands for; None: nothing.
        fold: how its directories fold names, where `Directory.fold` does not say otherwise.
        fault: is asked before each elementary effect and may raise an `OSError`; see `Fault`.
        user: whom permission bits bind, and whom what is made belongs to; None: they bind nobody, as root.
        capacity: how many bytes its files may have, each counted in whole blocks of 4 KiB; None: any number.

    Raises:
        DefinitionRefused: `root` is not absolute, or something in `content` cannot stand where it should.

    Example::

        disk = MemoryDisk({"a.txt": "one", "src": Directory(), "b.txt": Symlink("a.txt")})
    """

    def peek(self, entry: Entry) -> bytes:
        """The content of the file at `entry`; see `Disk.peek`."""
        return self._read(entry, None).content

    def recover(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """What dead writers left is gone; see `Disk.recover`."""
        done: list[str] = []
        for entry in self._directories(()) if directories is None else sorted(set(directories)):
            try:
                above = self._tree.entered(entry)
                self._tree.require(above, READ | SEARCH, entry)
            except OSError:
                continue
            self._tree.touch_list((*self._below, *entry), made=False)
            for name, node in sorted(above.names.values(), key=lambda found: found[0]):
                if isinstance(node, Other) or node.held or node.made_as != (above.inode, name):
                    continue
                if not name.endswith((PARTIAL, COPY)):
                    continue
                if not self._may_remove(above, node, (*entry, name)):
                    continue
                mended = name
                if isinstance(node, File) and name.endswith(COPY):
                    put_back = self._put_back(above, entry, node.saved)
                    if put_back is None:
                        continue
                    mended = put_back or name
                self._take_away(above, (*entry, name))
                done.append("/".join((*entry, mended)))
        return sorted(done)

    def strangers(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """Names like the disk's own that it did not make; see `Disk.strangers`."""
        found: list[str] = []
        for entry in self._directories(()) if directories is None else sorted(set(directories)):
            try:
                above = self._tree.entered(entry)
                self._tree.require(above, READ | SEARCH, entry)
            except OSError:
                continue
            self._tree.touch_list((*self._below, *entry), made=False)
            for name, node in above.names.values():
                ours = not isinstance(node, Other) and node.made_as == (above.inode, name)
                if is_own(name) and not ours:
                    found.append("/".join((*entry, name)))
        return sorted(found)

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
        # Who opens the root to list it looks up "." in it.
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
        if not entry:
            raise failure(errno.EISDIR, entry)
        self._tree.touch((*self._below, *entry), write=False)
        above = self._tree.entered(entry[:-1])
        file = self._tree.file_or_none(above, entry)
        before = None if file is None else self._snapshot(entry, file, limit)
        seen = _Seen(entry, above, file, 0 if file is None else file.changes)
        content = change(before)
        if content is None:
            return Revision(before, before)
        content = bytes(content)
        if file is not None:
            self._tree.require(file, WRITE, entry)
        several = file is not None and file.links > 1
        if file is not None and several:
            stat = self._tree.stat(file)
            stays = self.names_of(stat) >= stat.links if in_place is None else in_place(stat)
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
            parts = (*self._below, *made)
            above = self._tree.entered(made[:-1])
            if self._tree.named(above, made[-1], made) is not None:
                self._tree.entered(made)
                continue
            self._tree.touch(parts, write=True)
            self._tree.require(above, WRITE | SEARCH, made)
            uid, gid = self._new_owner(above)
            mode = 0o777 & ~_UMASK | above.mode & _SET_GROUP
            branch = Branch(above.folding, mode, self._tree.next_inode(), uid, gid)
            above.names[above.folding.fold(made[-1])] = (made[-1], branch)
            self._tree.touch_list(parts[:-1], made=True)

    async def make_link(self, entry: Entry, text: str) -> None:
        """A symbolic link stands at `entry`; see `Disk.make_link`."""
        await self._effect("make link", entry)
        if not entry:
            raise failure(errno.EEXIST, entry)
        if not text or len(os.fsencode(text)) > PATH_MAX:
            raise failure(errno.ENAMETOOLONG if text else errno.ENOENT, entry)
        parts = (*self._below, *entry)
        above = self._tree.entered(entry[:-1])
        if self._tree.named(above, entry[-1], entry) is not None:
            raise failure(errno.EEXIST, entry)
        self._tree.touch(parts, write=True)
        self._tree.require(above, WRITE | SEARCH, entry)
        uid, gid = self._new_owner(above)
        link = Other(Kind.SYMLINK, text, self._tree.next_inode(), uid, gid)
        above.names[above.folding.fold(entry[-1])] = (entry[-1], link)
        self._tree.touch_list(parts[:-1], made=True)

    async def set_mode(self, entry: Entry, mode: int) -> None:
        """The file or directory at `entry` has these permission bits; see `Disk.set_mode`."""
        await self._effect("set mode", entry)
        if not entry:
            raise failure(errno.EBUSY, entry)
        node = self._tree.standing(entry)[1]
        if isinstance(node, Other):
            raise failure(errno.ELOOP, entry) if node.kind is Kind.SYMLINK else NotRegular(node.kind)
        self._tree.require(node, READ, entry)
        user = self._tree.user
        if user is not None and user.uid != node.uid:
            raise failure(errno.EPERM, entry)
        # Nobody gives away the right to run as a group that he is not in.
        node.mode = mode if user is None or node.gid in user.gids else mode & ~_SET_GROUP
        self._tree.touch((*self._below, *entry), write=True)
        if isinstance(node, File):
            node.changed(self.now_ns())
            self._tree.touch_content((*self._below, *entry), node, write=True)

    async def remove(self, entry: Entry, expected: Stat | None = None) -> None:
        """Nothing stands at `entry`; see `Disk.remove`."""
        await self._effect("remove", entry)
        if not entry:
            raise failure(errno.EBUSY, entry)
        above, node = self._tree.standing(entry)
        if expected is not None and self._tree.stat(node) != expected:
            raise Changed
        self._tree.require_removable(above, node, entry)
        if isinstance(node, Branch):
            self._tree.touch_list((*self._below, *entry), made=False)
            if node.names:
                raise failure(errno.ENOTEMPTY, entry)
        self._take_away(above, entry)

    async def remove_tree(self, entry: Entry) -> None:
        """Nothing stands at `entry`, whatever did; see `Disk.remove_tree`."""
        await self._effect("move", entry)
        if not entry:
            raise failure(errno.EBUSY, entry)
        above, node = self._tree.standing(entry)
        if not isinstance(node, Branch):
            self._tree.require_removable(above, node, entry)
            self._take_away(above, entry)
            return
        self._require_all_removable(node, entry)
        self._tree.require_removable(above, node, entry)
        aside = self._free_name(above, entry[-1], PARTIAL)
        node.held = True
        self._rename(above, entry, above, (*entry[:-1], aside))
        node.made_as = (above.inode, aside)
        try:
            await self._effect("remove", entry, shielded=True)
        except OSError:
            node.held = False
        else:
            self._take_away(above, (*entry[:-1], aside))

    def kept_for(self, entry: Entry) -> Entry:
        """A new entry for what is to be kept; see `Disk.kept_for`."""
        if not entry:
            raise failure(errno.EBUSY, entry)
        root = self._tree.entered(())
        told = hashlib.sha256("/".join(entry).encode(errors="surrogateescape")).hexdigest()[:16]
        return (self._free_name(root, told, KEPT), BOXED)

    async def survey(self, entry: Entry) -> Survey:
        """What stands at `entry` with all that is in it; see `Disk.survey`."""
        await self._effect("read", entry)
        return self._surveyed(entry)

    async def keep(self, entry: Entry, kept: Entry, begin: Callable[[Survey], None]) -> None:
        """What stood at `entry` is kept at `kept`; see `Disk.keep`."""
        await self._effect("read", entry)
        surveyed = self._surveyed(entry)
        await self._effect("move", entry)
        if self._surveyed(entry).number != surveyed.number:
            raise Changed
        above, node = self._tree.standing(entry)
        area = self._tree.entered(kept[:-2])
        self._tree.require(area, WRITE | SEARCH, entry)
        if kept[-2] in area.names:
            raise failure(errno.EEXIST, entry)
        shared = {id(file): file for file in files_of(node) if file.links > 1}
        self._tree.require_room(sum(len(file.content) for file in shared.values()), 0, entry)
        if isinstance(node, Branch):
            self._tree.require(node, WRITE, entry)  # it gets another directory above it, the box
        begin(surveyed)
        uid, gid = self._new_owner(area)
        box = Branch(area.folding, 0o700, self._tree.next_inode(), uid, gid, made_as=(area.inode, kept[-2]))
        for name in IGNORING:
            box.names[name] = (name, File(b"*\n", 0o600, self._tree.next_inode(), uid, gid, mtime_ns=self.now_ns()))
        area.names[area.folding.fold(kept[-2])] = (kept[-2], box)
        self._tree.touch((*self._below, *kept[:-1]), write=True)
        self._tree.touch_list((*self._below, *kept[:-2]), made=True)
        self._rename(above, entry, box, kept)
        self._part(box, kept)

    async def give_back(self, kept: Entry, entry: Entry) -> None:
        """What is kept at `kept` stands at `entry`; see `Disk.give_back`."""
        await self.move(kept, entry)
        area = self._tree.entered(kept[:-2])
        self._take_away(area, kept[:-1])

    def _surveyed(self, entry: Entry) -> Survey:
        if not entry:
            raise failure(errno.EBUSY, entry)
        above, node = self._tree.standing(entry)
        if isinstance(node, Branch):
            self._require_all_removable(node, entry)
        self._tree.require(above, WRITE | SEARCH, entry)
        digest, size = self._digest(node, entry)
        stat = self._tree.stat(node)
        return Survey(stat.kind, stat.mode, digest, size, (stat.device, stat.inode))

    def _digest(self, node: Node, entry: Entry) -> tuple[bytes, int]:
        self._tree.touch((*self._below, *entry), write=False)
        if isinstance(node, File):
            self._tree.require(node, READ, entry)
            self._tree.touch_content((*self._below, *entry), node, write=False)
            return hashlib.sha256(node.content).digest(), len(node.content)
        if isinstance(node, Other):
            text = os.fsencode(node.target) if node.kind is Kind.SYMLINK else node.kind.name.encode()
            return hashlib.sha256(text).digest(), 0
        self._tree.require(node, READ, entry)
        self._tree.touch_list((*self._below, *entry), made=False)
        parts, size = [], 0
        for name, below in node.names.values():
            digest, more = self._digest(below, (*entry, name))
            stat = self._tree.stat(below)
            parts.append((os.fsencode(name), stat.kind, stat.mode, digest))
            size += more
        return tree_digest(parts), size

    def _part(self, above: Branch, entry: Entry) -> None:
        """No other name leads to a file that is kept."""
        for key, (name, node) in list(above.names.items()):
            if isinstance(node, Branch):
                self._part(node, (*entry, name))
            elif isinstance(node, File) and node.links > 1:
                copy = attrs.evolve(node, inode=self._tree.next_inode(), links=1, shared=False, changes=0)
                self._tree.touch_content((*self._below, *entry, name), node, write=True)
                self._tree.unnamed(above, key, self.now_ns())
                above.names[key] = (name, copy)

    async def move(self, source: Entry, target: Entry) -> None:
        """What stood at `source` stands at `target`; see `Disk.move`."""
        await self._effect("move", source)
        if not source:
            raise failure(errno.EBUSY, source)
        if not target:
            raise failure(errno.EEXIST, target)
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
        self._rename(here, source, there, target)

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
        if not entry:
            raise failure(errno.EISDIR, entry)
        self._tree.touch((*self._below, *entry), write=False)
        file = self._tree.file_or_none(self._tree.entered(entry[:-1]), entry)
        if file is None:
            raise failure(errno.ENOENT, entry)
        return self._snapshot(entry, file, limit)

    def _snapshot(self, entry: Entry, file: File, limit: int | None) -> Snapshot:
        self._tree.require(file, READ, entry)
        self._tree.touch_content((*self._below, *entry), file, write=False)
        if limit is not None and len(file.content) > limit:
            raise TooLarge(len(file.content), limit)
        return Snapshot(file.content, self._tree.stat(file))

    async def _swap_in(self, seen: _Seen, content: bytes) -> File:
        """Write a file of our own and move it to its place."""
        await self._effect("write", seen.entry)
        self._require_there(seen)
        with self._own(seen, content) as (name, written):
            if seen.file is not None:
                written.mode, written.uid, written.gid = seen.file.mode, seen.file.uid, seen.file.gid
            await self._effect("move", seen.entry)
            self._require_same(seen)
            written.held = False
            self._rename(seen.above, (*seen.entry[:-1], name), seen.above, seen.entry)
        return written

    async def _write_in_place(self, seen: _Seen, file: File, content: bytes) -> None:
        """Give `file` new content behind a recovery copy; on an error put the old content back."""
        old, mode = file.content, file.mode
        await self._effect("write", seen.entry)
        self._require_there(seen)
        with self._own(seen, bytes(_HEAD) + old + content) as (name, copy):
            await self._effect("overwrite", seen.entry)
            self._require_same(seen)
            copy.saved = RecoveryCopy(seen.entry[-1], file.inode, old, content)
            whole = name.removesuffix(PARTIAL) + COPY
            self._rename(seen.above, (*seen.entry[:-1], name), seen.above, (*seen.entry[:-1], whole))
            copy.made_as = (seen.above.inode, whole)
            half = len(content) // 2
            try:
                self._overwrite(seen, file, content[:half] + old[half:])
                await self._effect("overwrite", seen.entry, shielded=True)
                self._overwrite(seen, file, content)
                await self._effect("remove", seen.entry, shielded=True)
            except BaseException:
                self._overwrite(seen, file, old)
                raise
            finally:
                self._take_away(seen.above, (*seen.entry[:-1], whole))
            user = self._tree.user
            if user is None or user.uid == file.uid:
                # Nobody gives away the right to run as a group that he is not in.
                file.mode = mode if user is None or file.gid in user.gids else mode & ~_SET_GROUP

    def _overwrite(self, seen: _Seen, file: File, content: bytes) -> None:
        self._tree.require_room(len(content), len(file.content), seen.entry)
        file.content = content
        file.mtime_ns = self.now_ns()
        file.changed(file.mtime_ns)
        user = self._tree.user
        if user is not None:
            # Who writes takes away the bits that let others run it as its owner.
            file.mode &= ~_SET_USER
            if file.mode & 0o010 or file.gid not in user.gids:
                file.mode &= ~_SET_GROUP
        self._tree.touch_content((*self._below, *seen.entry), file, write=True)

    @contextmanager
    def _own(self, seen: _Seen, content: bytes) -> Iterator[tuple[str, File]]:
        """A file of the disk's own beside `seen`, which is gone at the end unless it was renamed."""
        above, entry = seen.above, seen.entry
        self._tree.require(above, WRITE | SEARCH, entry)
        self._tree.require_room(len(content), 0, entry)
        name = self._free_name(above, entry[-1], PARTIAL)
        uid, gid = self._new_owner(above)
        mode, inode, now = 0o666 & ~_UMASK, self._tree.next_inode(), self.now_ns()
        file = File(content, mode, inode, uid, gid, mtime_ns=now, ctime_ns=now, held=True)
        file.made_as = (above.inode, name)
        beside = (*entry[:-1], name)
        above.names[above.folding.fold(name)] = (name, file)
        self._tree.touch((*self._below, *beside), write=True)
        self._tree.touch_list((*self._below, *entry[:-1]), made=True)
        try:
            yield name, file
        finally:
            if above.names.get(above.folding.fold(name), ("", None))[1] is file:
                self._take_away(above, beside)

    def _require_there(self, seen: _Seen) -> None:
        """Refuse a directory that is not the one that was looked into."""
        if self._tree.entered(seen.entry[:-1]) is not seen.above:
            raise Changed

    def _require_same(self, seen: _Seen) -> None:
        """Refuse what is not what was read."""
        self._require_there(seen)
        self._tree.touch((*self._below, *seen.entry), write=False)
        now = self._tree.named(seen.above, seen.entry[-1], seen.entry)
        if now is not seen.file or (seen.file is not None and seen.file.changes != seen.changes):
            raise Changed

    def _put_back(self, above: Branch, entry: Entry, saved: RecoveryCopy | None) -> str | None:
        """Make whole the file that a recovery copy is of; see `_real_recover`."""
        if saved is None:
            return ""
        names = sorted(name for name, _ in above.names.values())
        for name in (saved.name, *names):
            key = above.folding.fold(name)
            file = above.names.get(key, ("", None))[1]
            if not isinstance(file, File) or file.inode != saved.inode:
                continue
            if file.content in (saved.old, saved.new):
                return ""
            if not self._tree.allows(file, READ | WRITE) or not mixture(file.content, saved.old, saved.new):
                return None
            self._overwrite(_Seen((*entry, name), above, file, 0), file, saved.old)
            return name
        return None

    # Names

    def _rename(self, here: Branch, source: Entry, there: Branch, target: Entry) -> None:
        """Move a name, in place of whatever stands at `target`."""
        node = here.names.pop(here.folding.fold(source[-1]))[1]
        key = there.folding.fold(target[-1])
        # A name that is taken over stays as it was spelled.
        name = there.names[key][0] if key in there.names else target[-1]
        self._tree.unnamed(there, key, self.now_ns())
        there.names[key] = (name, node)
        if isinstance(node, File):
            node.changed(self.now_ns())
        for entry in (source, target):
            self._tree.touch((*self._below, *entry), write=True)
            self._tree.touch_list((*self._below, *entry[:-1]), made=True)

    def _take_away(self, above: Branch, entry: Entry) -> None:
        self._tree.unnamed(above, above.folding.fold(entry[-1]), self.now_ns())
        self._tree.touch((*self._below, *entry), write=True)
        self._tree.touch_list((*self._below, *entry[:-1]), made=True)

    def _require_all_removable(self, node: Branch, entry: Entry) -> None:
        """Refuse a tree in which something may not be removed."""
        self._tree.touch_list((*self._below, *entry), made=False)
        self._tree.require(node, READ, entry)
        if not node.names:
            return
        self._tree.require(node, WRITE | SEARCH, entry)
        if len(entry) >= DEEPEST:
            raise failure(errno.ENAMETOOLONG, entry)
        for name, below in sorted(node.names.values(), key=lambda named: named[0]):
            self._tree.touch((*self._below, *entry, name), write=False)
            self._tree.require_removable(node, below, entry)
            if isinstance(below, Branch):
                self._require_all_removable(below, (*entry, name))

    def _may_remove(self, above: Branch, node: File | Branch, entry: Entry) -> bool:
        """Whether a dead writer's name can be taken away by us."""
        try:
            if isinstance(node, Branch):
                self._require_all_removable(node, entry)
            elif not (self._tree.allows(node, READ) or self._tree.allows(node, WRITE)):
                return False
            self._tree.require_removable(above, node, entry)
        except OSError:
            return False
        return True

    def _new_owner(self, above: Branch) -> tuple[int, int]:
        uid, gid = self._tree.owner()
        return uid, above.gid if above.mode & _SET_GROUP else gid

    def _free_name(self, above: Branch, name: str, suffix: str) -> str:
        """A name of the disk's own that is free: the same in every execution, and another for every target."""
        serial = 0
        while True:
            candidate = above.folding.fold(f"{OWN}{serial}-{name[:40]}{suffix}")
            if candidate not in above.names:
                return candidate
            serial += 1

    def _directories(self, entry: Entry) -> Iterator[Entry]:
        """Every directory from `entry` on that can be looked into."""
        yield entry
        try:
            directory = self._tree.entered(entry)
            self._tree.require(directory, READ | SEARCH, entry)
        except OSError:
            return
        for name, node in list(directory.names.values()):
            if isinstance(node, Branch):
                yield from self._directories((*entry, name))


@attrs.frozen
class _Seen:
    """A file as `revise` found it."""

    entry: Entry
    above: Branch
    #: None: nothing was there.
    file: File | None
    changes: int

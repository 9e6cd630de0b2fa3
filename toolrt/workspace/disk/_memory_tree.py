"""The tree of nodes of the disk in memory: reaching entries, permissions, accesses, and the elementary changes.

Rules.  An entry is reached as the real disk reaches it: part by part from the top, through directories that the user
may search, following no link.  Checks come in Linux's order, so an operation that breaks several rules raises the same
errno as on Linux.

Each look and each change is reported to `toolrt.probe`: ``("disk", "src", "a.txt")`` for an entry, the parts folded
and relative to the root; ``("disk", "src", "/")`` for a directory's list of names; ``("disk", "/file", "7")`` for
file number 7 where it has, or once had, several names; ``("disk", "/room")`` for the room left where that is
bounded; ``("disk", "/")`` for all that lies outside the root.

Theory.  Two steps may be swapped when they touch no common resource, or both only read it.  A step through a directory
reads that directory's entry, so it depends on any step that moves or removes it.  Making or removing a name counts as a
"read" of the directory's list, and listing counts as a "write".  So makers commute with each other but not with a
listing, which is the only step that can see their order.
"""

from __future__ import annotations

import errno
import functools
import os
import zlib

import attrs
import trio

from toolrt import probe
from toolrt.workspace.disk._disk import DEEPEST, NAME_MAX, OWN, PATH_MAX, Entry, Kind, Stat, is_own, parts_of
from toolrt.workspace.disk._disk_errors import NotRegular, failure
from toolrt.workspace.disk._nodes import Branch, FileNode, Node, Other, User, files_of

#: What may be asked for, as permission bits say it.
READ, WRITE, SEARCH = 4, 2, 1

#: Of a directory: only owners remove what is in it.
_STICKY = 0o1000

#: A file's bits that let others run it as its owner, or in its group; the latter, on a directory, gives its group to
#: what is made in it.
SET_USER, SET_GROUP = 0o4000, 0o2000

#: A file takes whole blocks of this size, and an empty one none (as on tmpfs).
BLOCK = 4096

_OUTSIDE: probe.Resource = ("disk", "/")
_ROOM: probe.Resource = ("disk", "/room")


@attrs.define(eq=False)
class NodeTree:
    """The nodes of a `MemoryDisk`."""

    top: Branch
    #: The parts of the root's path.
    below: Entry
    #: Whether no directory folds: then an entry's parts are its key, which saves looking each of them up.
    exact: bool
    #: The user that permission bits bind; None: they bind no user.
    user: User | None
    #: How many bytes of files it holds; None: any number.
    capacity: int | None
    #: The highest number given to a node.
    inodes: int = 1

    @functools.cached_property
    def device(self) -> int:
        """The disk's number: two at different roots have two, in every process the same."""
        return zlib.crc32("/".join(self.below).encode(errors="surrogateescape"))

    def next_inode(self) -> int:
        """A number that no node has had."""
        self.inodes += 1
        return self.inodes

    def owner(self) -> tuple[int, int]:
        """The user and group that own new nodes."""
        return (0, 0) if self.user is None else (self.user.uid, self.user.gids[0])

    # Reaching

    def find(self, parts: Entry) -> Node:
        """What stands at `parts`, counted from the top; no link is followed."""
        node: Node = self.top
        for part in parts:
            if not isinstance(node, Branch):
                raise failure(errno.ENOTDIR)
            self.require(node, SEARCH)
            found = node.names.get(node.folding.fold(part))
            if found is None:
                raise failure(errno.ENOENT)
            node = found[1]
        return node

    def entered(self, entry: Entry) -> Branch:
        """The directory at `entry`, reached as the real disk reaches it."""
        node = self.find(self.below)
        for depth, part in enumerate(entry):
            assert isinstance(node, Branch)
            self.touch((*self.below, *entry[: depth + 1]), write=False)
            found = self.named(node, part, entry)
            if found is None:
                raise failure(errno.ENOENT, entry)
            node = found
            if isinstance(node, Other) and node.kind is Kind.SYMLINK:
                raise failure(errno.ELOOP, entry)
            if not isinstance(node, Branch):
                raise failure(errno.ENOTDIR, entry)
        if not isinstance(node, Branch):
            raise failure(errno.ENOTDIR, entry)
        return node

    def named(self, directory: Branch, name: str, entry: Entry) -> Node | None:
        """What stands at `name` in `directory`; `entry` is what an error names."""
        self.require(directory, SEARCH, entry)
        if 4 * len(name) > NAME_MAX and len(os.fsencode(name)) > NAME_MAX:
            raise failure(errno.ENAMETOOLONG, entry)
        found = directory.names.get(directory.folding.fold(name))
        return None if found is None else found[1]

    def standing(self, entry: Entry) -> tuple[Branch, Node]:
        """The directory that `entry` is in, and what stands there; not for the root."""
        self.touch((*self.below, *entry), write=False)
        above = self.entered(entry[:-1])
        node = self.named(above, entry[-1], entry)
        if node is None:
            raise failure(errno.ENOENT, entry)
        return above, node

    def file_or_none(self, above: Branch, entry: Entry) -> FileNode | None:
        """The regular file at `entry`, which is in `above`; None for nothing."""
        node = self.named(above, entry[-1], entry)
        if isinstance(node, Branch):
            raise failure(errno.EISDIR, entry)
        if isinstance(node, Other):
            raise failure(errno.ELOOP, entry) if node.kind is Kind.SYMLINK else NotRegular(node.kind)
        return node

    def names_of(self, stat: Stat) -> list[Entry]:
        """The names of a file that stand below the root."""
        found: list[Entry] = []
        pending: list[tuple[Entry, Node | None]] = [((), self.find(self.below))] if stat.device == self.device else []
        while pending:
            entry, above = pending.pop()
            for name, node in above.names.values() if isinstance(above, Branch) else ():
                if isinstance(node, Branch):
                    pending.append(((*entry, name), node))
                elif node.inode == stat.inode and not is_own(name):
                    self.stat(node)  # which reports that its names were looked at
                    found.append((*entry, name))
        return found

    # Permission

    def allows(self, node: Node, wanted: int) -> bool:
        """Whether the user may do what the bits `wanted` say with `node`."""
        user = self.user
        if user is None or isinstance(node, Other):
            return True
        if node.uid == user.uid:
            granted = node.mode >> 6
        elif node.gid in user.gids:
            granted = node.mode >> 3
        else:
            granted = node.mode
        return granted & wanted == wanted

    def require(self, node: Node, wanted: int, entry: Entry | None = None) -> None:
        """Refuse what the user may not do."""
        if self.user is not None and not self.allows(node, wanted):
            raise failure(errno.EACCES, entry)

    def require_removable(self, above: Branch, node: Node, entry: Entry) -> None:
        """Raise unless the user may take `node` out of `above`."""
        self.require(above, WRITE | SEARCH, entry)
        if above.mode & _STICKY and self.user is not None and self.user.uid not in (above.uid, node.uid):
            raise failure(errno.EPERM, entry)

    def may_give(self, file: FileNode) -> bool:
        """Whether the user may give a new file the owner that `file` has."""
        return self.user is None or (file.uid == self.user.uid and file.gid in self.user.gids)

    # Room

    def require_room(self, size: int, now: int, entry: Entry) -> None:
        """Refuse what there is no room for: a file of `size` bytes in the place of one of `now`."""
        if self.capacity is None:
            return
        if probe.sink is not None:
            probe.sink.access(_ROOM, True)
        used = sum(_blocks(len(file.content)) for file in {file.inode: file for file in files_of(self.top)}.values())
        if (used - _blocks(now) + _blocks(size)) * BLOCK > self.capacity and size > now:
            raise failure(errno.ENOSPC, entry)

    # Looks and accesses

    def stat(self, node: Node) -> Stat:
        """What a look at `node` shows."""
        if isinstance(node, FileNode):
            if node.shared and probe.sink is not None:
                probe.sink.access(_file(node), False)
            times = node.mtime_ns, node.ctime_ns
            return Stat(Kind.FILE, node.mode, len(node.content), *times, node.inode, self.device, node.links)
        if isinstance(node, Other):
            return Stat(node.kind, node.mode, len(os.fsencode(node.target)), 0, 0, node.inode, self.device, 1)
        return Stat(Kind.DIRECTORY, node.mode, 0, 0, 0, node.inode, self.device, 2)

    def touch(self, parts: Entry, *, write: bool) -> None:
        """Report an access to the entry at `parts`, counted from the top."""
        if probe.sink is not None:
            probe.sink.access(self._resource(parts), write)

    def touch_way(self, parts: Entry) -> None:
        """Report a look at `parts` and at each directory on the way."""
        if probe.sink is not None:
            first = len(self.below)
            for depth in range(min(first + 1, len(parts)), len(parts) + 1):
                self.touch(parts[:depth], write=False)

    def touch_list(self, parts: Entry, *, made: bool) -> None:
        """Report an access to a directory's list of names; see the module's theory."""
        if probe.sink is not None:
            resource = self._resource(parts)
            probe.sink.access(resource if resource == _OUTSIDE else (*resource, "/"), not made)

    def touch_name(self, parts: Entry) -> None:
        """Report that a name came to be at `parts`, or went."""
        self.touch(parts, write=True)
        self.touch_list(parts[:-1], made=True)

    def touch_content(self, parts: Entry, file: FileNode, *, write: bool) -> None:
        """Report an access to a file's content."""
        self.touch(parts, write=write)
        if file.shared and probe.sink is not None:
            probe.sink.access(_file(file), write)

    def unnamed(self, directory: Branch, key: str) -> None:
        """Take a name out of `directory`, if it is there; the files behind it have one name less from now on."""
        before = directory.names.pop(key, None)
        if before is not None:
            for file in files_of(before[1]):
                file.links -= 1
                file.changed(now_ns())
                if file.shared and probe.sink is not None:
                    probe.sink.access(_file(file), True)
            if self.capacity is not None and probe.sink is not None:
                probe.sink.access(_ROOM, True)

    # Changing

    def rename(self, here: Branch, source: Entry, there: Branch, target: Entry) -> None:
        """Move a name, in place of whatever stands at `target`."""
        node = here.names.pop(here.folding.fold(source[-1]))[1]
        key = there.folding.fold(target[-1])
        # A name that is taken over stays as it was spelled.
        name = there.names[key][0] if key in there.names else target[-1]
        self.unnamed(there, key)
        there.names[key] = (name, node)
        if isinstance(node, FileNode):
            node.changed(now_ns())
        for entry in (source, target):
            self.touch_name((*self.below, *entry))

    def add(self, above: Branch, entry: Entry, node: Node) -> None:
        """`node` stands at the name `entry` in the directory `above`, where nothing stood."""
        above.names[above.folding.fold(entry[-1])] = (entry[-1], node)
        self.touch_name((*self.below, *entry))

    def take_away(self, above: Branch, entry: Entry) -> None:
        """Remove the name `entry` from the directory `above`."""
        self.unnamed(above, above.folding.fold(entry[-1]))
        self.touch_name((*self.below, *entry))

    def require_all_removable(self, node: Branch, entry: Entry) -> None:
        """Refuse a tree in which something may not be removed."""
        self.touch_list((*self.below, *entry), made=False)
        self.require(node, READ, entry)
        if not node.names:
            return
        self.require(node, WRITE | SEARCH, entry)
        if len(entry) >= DEEPEST:
            raise failure(errno.ENAMETOOLONG, entry)
        for name, below in sorted(node.names.values(), key=lambda named: named[0]):
            self.touch((*self.below, *entry, name), write=False)
            self.require_removable(node, below, entry)
            if isinstance(below, Branch):
                self.require_all_removable(below, (*entry, name))

    def new_owner(self, above: Branch) -> tuple[int, int]:
        """The user and group of a node that is made in `above`."""
        uid, gid = self.owner()
        return uid, above.gid if above.mode & SET_GROUP else gid

    def free_name(self, above: Branch, name: str, suffix: str) -> str:
        """A name of the disk's own that is free: the same in every execution, and another for every target."""
        serial = 0
        while True:
            candidate = above.folding.fold(f"{OWN}{serial}-{name[:40]}{suffix}")
            if candidate not in above.names:
                return candidate
            serial += 1

    def overwrite(self, entry: Entry, file: FileNode, content: bytes) -> None:
        """Give `file` new content in place."""
        self.require_room(len(content), len(file.content), entry)
        file.content = content
        file.mtime_ns = now_ns()
        file.changed(file.mtime_ns)
        user = self.user
        if user is not None:
            # A write clears the bits that let others run the file as its owner.
            file.mode &= ~SET_USER
            if file.mode & 0o010 or file.gid not in user.gids:
                file.mode &= ~SET_GROUP
        self.touch_content((*self.below, *entry), file, write=True)

    def _resource(self, parts: Entry) -> probe.Resource:
        """The name of the entry at `parts` as accesses report it."""
        folded = parts if self.exact else self._folded(parts)
        depth = len(self.below)
        own = self.below if self.exact else self._folded(self.below)
        return ("disk", *folded[depth:]) if folded[:depth] == own else _OUTSIDE

    def _folded(self, parts: Entry) -> Entry:
        node: Node | None = self.top
        folding = self.top.folding
        keys: list[str] = []
        for part in parts:
            if isinstance(node, Branch):
                folding = node.folding
                found = node.names.get(folding.fold(part))
                node = found[1] if found is not None else None
            keys.append(folding.fold(part))
        return tuple(keys)


def now_ns() -> int:
    """The virtual clock's time; 0 where no Trio runs."""
    try:
        return int(trio.current_time() * 1_000_000_000)
    except RuntimeError:
        return 0


def _file(file: FileNode) -> probe.Resource:
    return ("disk", "/file", str(file.inode))


def _blocks(size: int) -> int:
    return -(-size // BLOCK)


def checked_parts(path: str) -> Entry:
    """The parts of an absolute path that is not too long."""
    parts = parts_of(path)
    # A character is at most four bytes, so a short path needs no closer look.
    if 4 * len(path) > NAME_MAX and (
        len(os.fsencode(path)) > PATH_MAX or any(len(os.fsencode(part)) > NAME_MAX for part in parts)
    ):
        raise failure(errno.ENAMETOOLONG)
    return parts

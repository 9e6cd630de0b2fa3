"""Fills a disk in memory: content, changes from outside, and a copy of a real directory.

Planting happens at once, at any time, and no permission binds it.
"""

from __future__ import annotations

import errno
import os

from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.workspace.disk._disk import EXACT, Entry, Kind, Stat, is_box, parts_of, path_below
from toolrt.workspace.disk._disk_errors import failure
from toolrt.workspace.disk._memory_tree import NodeTree, now_ns
from toolrt.workspace.disk._nodes import Branch, Directory, FileNode, HardLink, Node, Other, Planted, Special, Symlink
from toolrt.workspace.disk._real import RealDisk


def plant(tree: NodeTree, path: str, what: Planted, mode: int = 0o644, owner: tuple[int, int] | None = None) -> None:
    """See `MemoryDisk.put`."""
    parts = _parts(tree, path)
    if tree.below[: len(parts)] == parts:
        raise DefinitionRefused("MemoryDisk.put", "a path that is not the root or above it", path)
    parent = planted_directory(tree, parts[:-1])
    key = parent.folding.fold(parts[-1])
    owner = tree.owner() if owner is None else owner
    node: Node
    if isinstance(what, str | bytes):
        content = what.encode() if isinstance(what, str) else what
        now = now_ns()
        node = FileNode(content, mode, tree.next_inode(), *owner, mtime_ns=now, ctime_ns=now)
    elif isinstance(what, Directory):
        folding = parent.folding if what.fold is None else what.fold
        tree.exact = tree.exact and folding == EXACT
        node = Branch(folding, what.mode, tree.next_inode(), *owner)
    elif isinstance(what, Symlink):
        node = Other(Kind.SYMLINK, what.target, tree.next_inode(), *owner)
    elif isinstance(what, Special):
        node = Other(what.kind, "", tree.next_inode(), *owner, mode)
    elif isinstance(what, HardLink):
        node = _planted_link(tree, path, what)
    else:
        raise DefinitionRefused(
            f"MemoryDisk content at {path!r}", "text, bytes, Directory, Symlink, HardLink or Special", what
        )
    tree.unnamed(parent, key)
    parent.names[key] = (parts[-1], node)
    tree.touch_name(parts)


def uproot(tree: NodeTree, path: str) -> None:
    """See `MemoryDisk.drop`."""
    parts, parent, key = _named(tree, path)
    tree.unnamed(parent, key)
    tree.touch_name(parts)


def set_planted_mode(tree: NodeTree, path: str, mode: int) -> None:
    """See `MemoryDisk.chmod`."""
    parts, parent, key = _named(tree, path)
    node = parent.names[key][1]
    if not isinstance(node, Other):
        node.mode = mode
    tree.touch(parts, write=True)
    if isinstance(node, FileNode):
        node.changed(now_ns())
        tree.touch_content(parts, node, write=True)


def plant_copy(tree: NodeTree, real: RealDisk, given: str, limit: int) -> None:
    """See `MemoryDisk.copy_of`.

    Args:
        given: how the caller named the directory.
    """
    room = limit
    known: dict[tuple[int, int], str] = {}
    pending: list[Entry] = [()]
    while pending:
        entry = pending.pop()
        for name in real.listdir(path_below(real.root, entry)):
            if is_box(name):
                continue  # what is kept aside is of no use without its history
            below = (*entry, name)
            shown = "/".join(below)
            try:
                found = real.lstat(path_below(real.root, below))
                if found.kind is Kind.SYMLINK:
                    plant(tree, shown, Symlink(real.readlink(path_below(real.root, below))))
                elif found.kind is Kind.DIRECTORY:
                    plant(tree, shown, Directory(real.folds(path_below(real.root, below)), found.mode))
                    pending.append(below)
                elif found.kind is Kind.FILE:
                    room -= found.size
                    if room < 0:
                        raise InputRefused(
                            f"copy of {given!r}",
                            f"expected at most {limit} bytes of files, got more (at {shown})",
                            "Copy a smaller directory, or raise limit.",
                        )
                    _copy_file(tree, below, found, real, known)
            except OSError as error:
                raise InputRefused(
                    f"copy of {given!r}",
                    f"{shown} cannot be read ({os.strerror(error.errno or 0)})",
                    "Make it readable, or copy another directory.",
                ) from None


def _parts(tree: NodeTree, path: str) -> Entry:
    parts = parts_of(path)
    if "." in parts or ".." in parts:
        raise DefinitionRefused("a path on a MemoryDisk", "one without . and ..", path)
    return parts if path.startswith("/") else (*tree.below, *parts)


def _named(tree: NodeTree, path: str) -> tuple[Entry, Branch, str]:
    parts = _parts(tree, path)
    node: Node | None = tree.top
    for part in parts[:-1]:
        node = node.names.get(node.folding.fold(part), ("", None))[1] if isinstance(node, Branch) else None
    if not isinstance(node, Branch) or not parts or node.folding.fold(parts[-1]) not in node.names:
        raise failure(errno.ENOENT, parts)
    return parts, node, node.folding.fold(parts[-1])


def _planted_link(tree: NodeTree, path: str, what: HardLink) -> FileNode:
    try:
        parts, above, key = _named(tree, what.target)
        found = above.names[key][1]
    except OSError:
        found = None
    if not isinstance(found, FileNode):
        raise DefinitionRefused(f"the hard link {path!r}", "a target that is a file", what.target)
    found.links += 1
    found.changed(now_ns())
    found.shared = True
    tree.touch_content(parts, found, write=True)
    return found


def planted_directory(tree: NodeTree, parts: Entry) -> Branch:
    """The directory at `parts`, made if it is missing."""
    node = tree.top
    for depth, part in enumerate(parts):
        key = node.folding.fold(part)
        if key not in node.names:
            node.names[key] = (part, Branch(node.folding, 0o755, tree.next_inode(), *tree.owner()))
            tree.touch(parts[: depth + 1], write=True)
            tree.touch_list(parts[:depth], made=True)
        below = node.names[key][1]
        if not isinstance(below, Branch):
            raise DefinitionRefused("MemoryDisk content", "a directory at every part of a path", "/".join(parts))
        node = below
    return node


def _copy_file(tree: NodeTree, entry: Entry, found: Stat, real: RealDisk, known: dict[tuple[int, int], str]) -> None:
    identity = (found.device, found.inode)
    shown = "/".join(entry)
    if identity in known:
        plant(tree, shown, HardLink(known[identity]))
        return
    plant(tree, shown, real.peek(entry), mode=found.mode)
    known[identity] = shown

"""Keeps removed entries of the disk in memory aside; see `_real_keep`."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable

import attrs

from toolrt.workspace.disk._disk import Entry, Kind, Survey
from toolrt.workspace.disk._disk_errors import failure, require_below_root
from toolrt.workspace.disk._memory_tree import READ, SEARCH, WRITE, NodeTree, now_ns
from toolrt.workspace.disk._nodes import Branch, FileNode, Node, Other, files_of
from toolrt.workspace.disk._real_keep import IGNORING, tree_digest


def surveyed(tree: NodeTree, entry: Entry, *, contents: bool = True) -> Survey:
    """See `Disk.survey`."""
    require_below_root(entry, errno.EBUSY)
    above, node = tree.standing(entry)
    if isinstance(node, Branch):
        tree.require_all_removable(node, entry)
    tree.require(above, WRITE | SEARCH, entry)
    digest, size = _digest(tree, node, entry, contents)
    stat = tree.stat(node)
    return Survey(stat.kind, stat.mode, digest, size, (stat.device, stat.inode))


def put_in_box(tree: NodeTree, entry: Entry, kept: Entry, begin: Callable[[], None]) -> None:
    """What stands at `entry` is kept at `kept`; `begin` is called once nothing can fail any more."""
    above, node = tree.standing(entry)
    area = tree.entered(kept[:-2])
    tree.require(area, WRITE | SEARCH, entry)
    if kept[-2] in area.names:
        raise failure(errno.EEXIST, entry)
    shared = {id(file): file for file in files_of(node) if file.links > 1}
    tree.require_room(sum(len(file.content) for file in shared.values()), 0, entry)
    if isinstance(node, Branch):
        tree.require(node, WRITE, entry)  # it gets another directory above it, the box
    begin()
    owner = tree.new_owner(area)
    box = Branch(area.folding, 0o700, tree.next_inode(), *owner, made_as=(area.inode, kept[-2]))
    for name in IGNORING:
        box.names[name] = (name, FileNode(b"*\n", 0o600, tree.next_inode(), *owner, mtime_ns=now_ns()))
    tree.add(area, kept[:-1], box)
    tree.rename(above, entry, box, kept)
    _part(tree, box, kept)


def _digest(tree: NodeTree, node: Node, entry: Entry, contents: bool) -> tuple[bytes, int]:
    tree.touch((*tree.below, *entry), write=False)
    if isinstance(node, FileNode):
        tree.require(node, READ, entry)
        tree.touch_content((*tree.below, *entry), node, write=False)
        if not contents:
            return b"", len(node.content)
        return hashlib.sha256(node.content).digest(), len(node.content)
    if isinstance(node, Other):
        text = os.fsencode(node.target) if node.kind is Kind.SYMLINK else node.kind.name.encode()
        return hashlib.sha256(text).digest(), 0
    tree.require(node, READ, entry)
    tree.touch_list((*tree.below, *entry), made=False)
    parts, size = [], 0
    for name, below in node.names.values():
        digest, more = _digest(tree, below, (*entry, name), contents)
        stat = tree.stat(below)
        parts.append((os.fsencode(name), stat.kind, stat.mode, digest))
        size += more
    return tree_digest(parts), size


def _part(tree: NodeTree, above: Branch, entry: Entry) -> None:
    """No other name leads to a file that is kept."""
    for key, (name, node) in list(above.names.items()):
        if isinstance(node, Branch):
            _part(tree, node, (*entry, name))
        elif isinstance(node, FileNode) and node.links > 1:
            copy = attrs.evolve(node, inode=tree.next_inode(), links=1, shared=False, changes=0)
            tree.touch_content((*tree.below, *entry, name), node, write=True)
            tree.unnamed(above, key)
            above.names[key] = (name, copy)

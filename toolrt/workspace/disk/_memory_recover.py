"""Recovers, at the start of a disk in memory, the names that dead writers left; see `_real_recover`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolrt.workspace.disk._disk import COPY, PARTIAL, Entry, is_own
from toolrt.workspace.disk._memory_tree import READ, SEARCH, WRITE, NodeTree
from toolrt.workspace.disk._nodes import Branch, FileNode, Other, RecoveryCopy
from toolrt.workspace.disk._real_recover import mixture


def recover(tree: NodeTree, directories: Iterable[Entry] | None = None) -> list[str]:
    """What dead writers left is gone; see `Disk.recover`."""
    done: list[str] = []
    for entry, above in _opened(tree, directories):
        for name, node in sorted(above.names.values(), key=lambda found: found[0]):
            if isinstance(node, Other) or node.held or node.made_as != (above.inode, name):
                continue
            if not name.endswith((PARTIAL, COPY)):
                continue
            if not _may_remove(tree, above, node, (*entry, name)):
                continue
            mended = name
            if isinstance(node, FileNode) and name.endswith(COPY):
                put_back = _put_back(tree, above, entry, node.saved)
                if put_back is None:
                    continue
                mended = put_back or name
            tree.take_away(above, (*entry, name))
            done.append("/".join((*entry, mended)))
    return sorted(done)


def strangers(tree: NodeTree, directories: Iterable[Entry] | None = None) -> list[str]:
    """Names like the disk's own that it did not make; see `Disk.strangers`."""
    found: list[str] = []
    for entry, above in _opened(tree, directories):
        for name, node in above.names.values():
            ours = not isinstance(node, Other) and node.made_as == (above.inode, name)
            if is_own(name) and not ours:
                found.append("/".join((*entry, name)))
    return sorted(found)


def _may_remove(tree: NodeTree, above: Branch, node: FileNode | Branch, entry: Entry) -> bool:
    """Whether a dead writer's name can be taken away by us."""
    try:
        if isinstance(node, Branch):
            tree.require_all_removable(node, entry)
        elif not (tree.allows(node, READ) or tree.allows(node, WRITE)):
            return False
        tree.require_removable(above, node, entry)
    except OSError:
        return False
    return True


def _put_back(tree: NodeTree, above: Branch, entry: Entry, saved: RecoveryCopy | None) -> str | None:
    """Make whole the file that a recovery copy is of; see `_real_recover`."""
    if saved is None:
        return ""
    names = sorted(name for name, _ in above.names.values())
    for name in (saved.name, *names):
        key = above.folding.fold(name)
        file = above.names.get(key, ("", None))[1]
        if not isinstance(file, FileNode) or file.inode != saved.inode:
            continue
        if file.content in (saved.old, saved.new):
            return ""
        if not tree.allows(file, READ | WRITE) or not mixture(file.content, saved.old, saved.new):
            return None
        tree.overwrite((*entry, name), file, saved.old)
        return name
    return None


def _opened(tree: NodeTree, directories: Iterable[Entry] | None) -> Iterator[tuple[Entry, Branch]]:
    """These directories, or all, that can be looked into."""
    pending: list[Entry] = [()] if directories is None else sorted(set(directories), reverse=True)
    while pending:
        entry = pending.pop()
        try:
            above = tree.entered(entry)
            tree.require(above, READ | SEARCH, entry)
        except OSError:
            continue
        tree.touch_list((*tree.below, *entry), made=False)
        yield entry, above
        if directories is None:
            below = [(*entry, name) for name, node in above.names.values() if isinstance(node, Branch)]
            pending += reversed(below)

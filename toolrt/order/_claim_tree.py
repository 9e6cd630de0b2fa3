"""A tree of claims that finds what a new claim conflicts with, without comparing it with all others.

Rules.
    1. Claims that may be held together and have the same predecessors form a group; it lives until the last of its
       tickets has ended.  Claims that take a place of one resource form one as readers do: to all others they write.
    2. A node remembers only what a newcomer must still wait for: the last writer and the readers since.  Waiting for
       these means waiting for all before them.
    3. A node that names nothing any more is removed.

Theory.  The tree has a node for each part of a resource's path.  n claims that do not conflict cost O(n), n claims on
one resource cost O(n), and so do subtree readers that alternate with writers below them, because such a reader looks
only at the writers since the reader before it.

Limits.  Rule 2 holds while every group ends after its predecessors.  Who lets one leave before its turn has to see to
the newcomers itself: see `toolrt.order._tickets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolrt.model import READ, WRITE, Claim

#: Stands for the children of a node that has none; never changed.
_NO_CHILDREN: dict[Any, Any] = {}


class _Node:
    """One part of a resource's path, while a living claim names it or something below."""

    __slots__ = ("children", "parent", "part", "path", "reads", "subtree_reads", "subtree_write", "write")

    def __init__(self, parent: _Node | None, part: Any) -> None:
        self.parent = parent
        self.part = part
        #: The whole path, for a node that some claim has named; None for one that only leads there.
        self.path: tuple[Any, ...] | None = None
        self.children: dict[Any, _Node] = _NO_CHILDREN
        #: Exact claims: the last writer, and the readers that came after it.
        self.write: Group | None = None
        self.reads: Group | None = None
        #: The same for claims on the whole subtree; several when one of them could not be shared.
        self.subtree_write: Group | None = None
        self.subtree_reads: tuple[Group, ...] = ()

    def is_empty(self) -> bool:
        """Whether it names nothing."""
        return not (self.children or self.write or self.reads or self.subtree_write or self.subtree_reads)

    def groups(self) -> Iterator[Group]:
        """The groups that this node remembers."""
        for group in (self.write, self.reads, self.subtree_write, *self.subtree_reads):
            if group is not None:
                yield group

    def nodes(self) -> Iterator[_Node]:
        """The node itself and every one below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def groups_below(self) -> Iterator[Group]:
        """Every group at this node and below it."""
        for node in self.nodes():
            yield from node.groups()


#: Stand for what most groups have none of; never changed.
_NO_PREDECESSORS: set[Any] = set()
_NONE: list[Any] = []


class Group:
    """Claims that are granted and end together: one writer; or readers, or holders of places, of one past."""

    # Most groups are one writer that nothing else happens to, so the rest stands on the class.

    #: The node that remembers it; None once something that waits for it has taken its place.
    node: _Node | None = None
    #: The groups it waits for; empty means granted.
    predecessors: set[Group] = _NO_PREDECESSORS
    #: The groups that wait for it.
    dependents: list[Group] = _NONE
    #: For subtree readers: the writers below that were ordered behind it.
    since: list[Group] = _NONE
    #: Whether its ticket also writes below this subtree, without waiting for it.
    unshared: bool = False
    #: Whether all its tickets ended before its turn.
    ghost: bool = False
    #: Of a ghost: the groups before it, computed at the first question.
    before: list[Group] | None = None

    def __init__(self, claim: Claim, serial: int) -> None:
        self.claim = claim
        self.serial = serial
        #: The tickets that hold this claim and have not ended; the tree looks into none of them.
        self.tickets: dict[Any, None] = {}
        #: Whether another of its kind may still join: nothing has been ordered behind it.
        self.open = claim.mode is READ or claim.slots is not None
        if claim.subtree:
            self.since = []

    def add_dependent(self, group: Group) -> None:
        if self.dependents is _NONE:
            self.dependents = [group]
        else:
            self.dependents.append(group)


def by_serial(group: Group) -> int:
    """The key that sorts groups by when they came."""
    return group.serial


class ClaimTree:
    """The claims of one table that living tickets hold, by resource."""

    def __init__(self) -> None:
        #: The groups whose tickets have not all ended, in the order in which they came.
        self.living: dict[Group, None] = {}
        #: The number of the next group.
        self.serial = 0
        self._root = _Node(None, None)
        #: The nodes that living claims have named, by path: no walk where no subtree is claimed.
        self._nodes: dict[tuple[Any, ...], _Node] = {(): self._root}
        #: How many living groups claim a subtree.
        self._subtrees = 0

    def count_nodes(self) -> int:
        """How many nodes there are below the root."""
        return max(sum(1 for _ in self._root.nodes()) - 1, len(self._nodes) - 1)

    def predecessors(self, claim: Claim, unshared: bool) -> tuple[Group | None, dict[Group, None]]:
        """The group that the claim joins, or None, and the groups that it waits for.

        Args:
            claim: a newcomer; nothing is changed.
            unshared: whether it needs a group to itself.
        """
        wait: dict[Group, None] = {}
        if not self.living:
            return None, wait
        writes = claim.mode is WRITE
        if self._subtrees or claim.subtree:
            node = self._root
            for part in claim.resource:
                if node.subtree_write is not None:
                    wait[node.subtree_write] = None
                if writes and node.subtree_reads:
                    wait.update(dict.fromkeys(node.subtree_reads))
                child = node.children.get(part)
                if child is None:
                    return None, wait
                node = child
            if node.subtree_write is not None:
                wait[node.subtree_write] = None
            if claim.subtree:
                return self._subtree_predecessors(node, claim, unshared, wait)
        else:
            named = self._nodes.get(claim.resource)
            if named is None:
                return None, wait
            node = named
        if not writes and node.reads is not None and node.reads.open:
            return node.reads, {}
        if node.write is not None:
            if claim.slots is not None and node.write.open:
                return node.write, {}
            if claim.slots is None or node.write.claim.slots is None:
                wait[node.write] = None
            # Else what has closed that group stands between the two, and is waited for.
        if writes:
            if node.reads is not None:
                wait[node.reads] = None
            if node.subtree_reads:
                wait.update(dict.fromkeys(node.subtree_reads))
        return None, wait

    def _subtree_predecessors(
        self, node: _Node, claim: Claim, unshared: bool, wait: dict[Group, None]
    ) -> tuple[Group | None, dict[Group, None]]:
        if node.is_empty():
            return None, wait
        if claim.mode is WRITE:
            wait.update(dict.fromkeys(node.groups_below()))
            return None, wait
        if not node.subtree_reads:
            wait.update((group, None) for group in node.groups_below() if group.claim.mode is WRITE)
            return None, wait
        latest = node.subtree_reads[-1]
        if latest.open and not unshared:
            return latest, {}
        if latest.open:
            wait.update(dict.fromkeys(sorted(latest.predecessors, key=by_serial)))
        for group in node.subtree_reads:
            # A group in `since` waits for `group` and, through it, for every writer before it.
            wait.update((writer, None) for writer in group.since if writer in self.living)
            if group.unshared:
                wait.update(dict.fromkeys(sorted(group.predecessors, key=by_serial)))
        return None, wait

    def enter(self, claim: Claim, unshared: bool, predecessors: dict[Group, None]) -> Group:
        """A new group for the claim, which waits for its `predecessors`; newcomers wait for it."""
        group = Group(claim, self.serial)
        if unshared:
            group.unshared = True
        self.serial += 1
        self.living[group] = None
        if predecessors:
            group.predecessors = set(predecessors)
            for predecessor in predecessors:
                predecessor.add_dependent(group)
                predecessor.open = False
        writes = claim.mode is WRITE
        named = None if self._subtrees else self._nodes.get(claim.resource)
        node = self._named(claim.resource, group if writes else None) if named is None else named
        if claim.subtree:
            self._subtrees += 1
        group.node = node
        if not claim.subtree:
            if writes:
                if node.subtree_reads:
                    _order_behind(node.subtree_reads, group)
                node.write, node.reads = group, None
            else:
                node.reads = group
        elif writes:
            if not node.is_empty():
                self._absorb(node)
            node.write = node.reads = None
            node.subtree_reads = ()
            node.subtree_write = group
        else:
            node.subtree_reads = (*(reader for reader in node.subtree_reads if reader.open), group)
        return group

    def _named(self, resource: tuple[Any, ...], writer: Group | None) -> _Node:
        """The node of `resource`, made if need be; a `writer` is ordered behind the subtree readers on the way."""
        node = self._root
        for part in resource:
            if writer is not None and node.subtree_reads:
                _order_behind(node.subtree_reads, writer)
            child = node.children.get(part)
            if child is None:
                child = _Node(node, part)
                if node.children is _NO_CHILDREN:
                    node.children = {}
                node.children[part] = child
            node = child
        if node is not self._root:
            node.path = resource
            self._nodes[resource] = node
        return node

    def _absorb(self, top: _Node) -> None:
        """A subtree writer takes the place of everything at `top` and below it."""
        for node in top.nodes():
            for group in node.groups():
                group.node = None
            if node.path is not None and node is not top:
                self._nodes.pop(node.path, None)
        top.children = _NO_CHILDREN

    def forget(self, group: Group) -> None:
        """Take a group out that has ended."""
        del self.living[group]
        if group.claim.subtree:
            self._subtrees -= 1
        node = group.node
        if node is None:
            return
        if group is node.write:
            node.write = None
        elif group is node.reads:
            node.reads = None
        elif group is node.subtree_write:
            node.subtree_write = None
        else:
            node.subtree_reads = tuple(reader for reader in node.subtree_reads if reader is not group)
        self._prune(node)

    def _prune(self, node: _Node) -> None:
        """Remove `node`, and those above it, that name nothing any more."""
        parent = node.parent
        while parent is not None:
            if node.children or node.write or node.reads or node.subtree_write or node.subtree_reads:
                return
            # A subtree writer may have taken this node out of the tree, and another one may be in its place.
            if parent.children.get(node.part) is not node:
                return
            del parent.children[node.part]
            if node.path is not None and self._nodes.get(node.path) is node:
                del self._nodes[node.path]
            node, parent = parent, parent.parent


def _order_behind(readers: tuple[Group, ...], writer: Group) -> None:
    for reader in readers:
        reader.open = False
        reader.since.append(writer)

"""Tickets: who touches what, in the order they asked.

Rules.
    1. `ClaimTable.take` is synchronous.  The order of the calls to it is the order of everything.
    2. A ticket waits for every earlier ticket that it conflicts with, and for nothing else.
    3. A ticket waits for earlier tickets only, so no cycle can form and no deadlock is possible.
    4. A ticket that ends before its turn leaves as if it had never been there.

Theory.  This is deterministic locking: the requests of a transaction enter the lock queues in a preset order
before any transaction runs (Thomson et al., "Calvin", SIGMOD 2012; Gelashvili et al., "Block-STM", PPoPP
2023).  Claims that may be held together and have the same predecessors form a *group*; a group that waits
counts its predecessors, and the one whose end brings the count to zero grants it.  Groups hang on a tree that
has a node for each part of a resource's path.  A node remembers only what a newcomer must still wait for: the
last writer and the readers since.  So n claims that do not conflict cost O(n), n claims on one resource cost
O(n), and so do subtree readers that alternate with writers below them, because such a reader looks only at
the writers since the reader before it.

Limits.  A ticket that ends before its turn (denied, cancelled while waiting) breaks the shortcut that "waiting
for the last one means waiting for all before it".  While such a *ghost* still has its place, newcomers are
held against every living group: O(living) each, exact all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import Any

from toolrt import probe
from toolrt.errors import InternalError
from toolrt.model import READ, WRITE, Claim

__all__ = ["ClaimTable", "Ticket", "give_back"]


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
        self.write: _Group | None = None
        self.reads: _Group | None = None
        #: The same for claims on the whole subtree; several when one of them could not be shared.
        self.subtree_write: _Group | None = None
        self.subtree_reads: tuple[_Group, ...] = ()

    def is_empty(self) -> bool:
        return not (self.children or self.write or self.reads or self.subtree_write or self.subtree_reads)

    def groups(self) -> Iterator[_Group]:
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

    def groups_below(self) -> Iterator[_Group]:
        """Every group at this node and below it."""
        for node in self.nodes():
            yield from node.groups()


#: Stand for what most groups have none of; never changed.
_NO_PREDECESSORS: set[Any] = set()
_NOBODY: list[Any] = []


class _Group:
    """Claims that are granted and end together: one writer, or readers with the same predecessors."""

    # Most groups are one writer that nothing else happens to, so the rest stands on the class.

    #: The node that remembers it; None once something that waits for it has taken its place.
    node: _Node | None = None
    #: The groups it waits for; empty means granted.
    predecessors: set[_Group] = _NO_PREDECESSORS
    #: The groups that wait for it.
    dependents: list[_Group] = _NOBODY
    #: For subtree readers: the writers below that were ordered behind it.
    since: list[_Group] = _NOBODY
    #: Whether its ticket also writes below this subtree, without waiting for it.
    unshared: bool = False
    #: Whether all its tickets ended before its turn; then also what stands before it, once somebody asked.
    ghost: bool = False
    before: list[_Group] | None = None

    def __init__(self, claim: Claim, serial: int) -> None:
        self.claim = claim
        self.serial = serial
        #: The tickets that hold this claim and have not ended.
        self.tickets: dict[Ticket, None] = {}
        #: Whether another reader may still join: nothing has been ordered behind it.
        self.open = claim.mode is READ
        if claim.subtree:
            self.since = []

    def add_dependent(self, group: _Group) -> None:
        if self.dependents is _NOBODY:
            self.dependents = [group]
        else:
            self.dependents.append(group)


class Ticket:
    """A call's place in the order, for all its claims at once.

    Make one with `ClaimTable.take`; give it back with `release`, exactly once.
    """

    __slots__ = ("_groups", "_missing", "_on_ready", "_serial", "owner", "released", "table")

    def __init__(self, table: ClaimTable, serial: int, owner: Any, on_ready: Callable[[Any], None] | None) -> None:
        #: The table it belongs to.
        self.table = table
        self._serial = serial
        self._groups: tuple[_Group, ...] = ()
        self._missing = 0
        self._on_ready = on_ready
        #: Whoever took it.
        self.owner = owner
        #: Whether it has been given back.
        self.released = False

    @property
    def ready(self) -> bool:
        """Whether nothing earlier stands in its way any more."""
        return self._missing == 0

    def release(self) -> None:
        """Give the ticket back; whoever waited only for it is told before this returns, in the order they asked.

        Raises:
            InternalError: it was given back before.
        """
        _tell(self.table._end((self,)))

    def implies(self) -> None:
        """Tell an explorer that what happens now comes after all that the ticket waited for."""
        if probe.implied is not None:
            for resource, write in self.table.touched(self):
                probe.implied(resource, write)

    def waits_for(self) -> list[Any]:
        """The owners of the tickets it waits for, each once, in the order they asked."""
        found: dict[int, Any] = {}
        for group in self._groups:
            for predecessor in sorted(group.predecessors, key=_serial):
                for ticket in predecessor.tickets:
                    found.setdefault(id(ticket), ticket.owner)
        return list(found.values())


def _serial(group: _Group) -> int:
    return group.serial


def _ticket_serial(ticket: Ticket) -> int:
    return ticket._serial


class ClaimTable:
    """The order of all claims on one owner's resources.

    It knows claims, never files: what a resource is belongs to its owner (a workspace, or a runtime).

    Args:
        name: names the table in what the probe reports.
    """

    def __init__(self, name: str = "claims") -> None:
        self.name = name
        self._root = _Node(None, None)
        self._serial = 0
        self._living: dict[_Group, None] = {}
        self._ghosts = 0
        #: The nodes that living claims have named, by path: no walk where no subtree is claimed.
        self._nodes: dict[tuple[Any, ...], _Node] = {(): self._root}
        #: How many living groups claim a subtree.
        self._subtrees = 0

    @property
    def busy(self) -> bool:
        """Whether somebody holds a ticket, or waits with one."""
        return bool(self._living)

    def statistics(self) -> dict[str, int]:
        """How much the table holds: ``groups``, ``waiting`` groups, ``ghosts`` and ``nodes`` below the root.

        All are 0 when every ticket has been given back.
        """
        nodes = max(sum(1 for _ in self._root.nodes()) - 1, len(self._nodes) - 1)
        waiting = sum(1 for group in self._living if group.predecessors)
        return {"groups": len(self._living), "waiting": waiting, "ghosts": self._ghosts, "nodes": nodes}

    def take(self, claims: Sequence[Claim], owner: Any = None, on_ready: Callable[[Any], None] | None = None) -> Ticket:
        """Take a ticket for all of `claims`, behind every earlier ticket that conflicts with one of them.

        Args:
            claims: what will be touched; none at all gives a ticket that is ready.
            owner: whom the ticket is for.
            on_ready: called with `owner` when the ticket becomes ready; not when it is ready at once.

        Ordering: tickets that conflict come in the order of the calls of this, and of nothing else.
        """
        ticket = Ticket(self, self._serial, owner, on_ready)
        if len(claims) == 1 and not self._ghosts:
            # The same as below, for what is by far the most common.
            claim = claims[0]
            group, predecessors = self._remembered_predecessors(claim, False)
            if group is None:
                group = self._enter(claim, False, predecessors)
            group.tickets[ticket] = None
            ticket._groups = (group,)
            if group.predecessors:
                ticket._missing = 1
        else:
            # All predecessors are looked up before anything is entered, so that a ticket never waits for itself.
            look = self._predecessors if self._ghosts else self._remembered_predecessors
            planned = []
            for claim, unshared in _reduced(claims):
                joined, predecessors = look(claim, unshared)
                planned.append((claim, unshared, joined, predecessors))
            groups = []
            for claim, unshared, joined, predecessors in planned:
                group = self._enter(claim, unshared, predecessors) if joined is None else joined
                group.tickets[ticket] = None
                groups.append(group)
                if group.predecessors:
                    ticket._missing += 1
            ticket._groups = tuple(groups)
        if probe.sink is not None:
            self._report(ticket)
        return ticket

    def release(self, tickets: Iterable[Ticket]) -> None:
        """Give several tickets back as one step: see `Ticket.release`.

        Cheaper than one at a time when many of them are still waiting.
        """
        _tell(self._end(tickets))

    def _end(self, tickets: Iterable[Ticket]) -> list[Ticket]:
        """Take tickets out of the order; gives those that become ready, in the order they asked."""
        ended: list[_Group] = []
        ghosts: list[_Group] = []
        for ticket in tickets:
            if ticket.released:
                raise InternalError(f"a ticket of {ticket.owner!r} was given back twice")
            ticket.released = True
            for group in ticket._groups:
                del group.tickets[ticket]
                if group.tickets:
                    continue
                if group.predecessors:
                    group.ghost = True
                    ghosts.append(group)
                else:
                    ended.append(group)
            if probe.sink is not None:
                self._report(ticket)
        ready: list[Ticket] = []
        if ghosts:
            self._ghosts += len(ghosts)
            self._bypass(ghosts, ready)
        for group in ended:  # grows while ghosts come to their turn
            self._forget(group)
            for dependent in group.dependents:
                if group not in dependent.predecessors:
                    continue
                dependent.predecessors.remove(group)
                if not dependent.predecessors:
                    self._granted(dependent, ready, ended)
        if len(ready) > 1:
            ready.sort(key=_ticket_serial)
        return ready

    # Entering

    def _predecessors(self, claim: Claim, unshared: bool) -> tuple[_Group | None, dict[_Group, None]]:
        """The group to join, or None, and the groups to wait for."""
        joined, wait = self._remembered_predecessors(claim, unshared)
        if self._ghosts and (joined is None or joined.ghost):
            joined = None
            wait = {group: None for group in self._living if not group.ghost and group.claim.conflicts_with(claim)}
        return joined, wait

    def _remembered_predecessors(self, claim: Claim, unshared: bool) -> tuple[_Group | None, dict[_Group, None]]:
        writes = claim.mode is WRITE
        wait: dict[_Group, None] = {}
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
            wait[node.write] = None
        if writes:
            if node.reads is not None:
                wait[node.reads] = None
            if node.subtree_reads:
                wait.update(dict.fromkeys(node.subtree_reads))
        return None, wait

    def _subtree_predecessors(
        self, node: _Node, claim: Claim, unshared: bool, wait: dict[_Group, None]
    ) -> tuple[_Group | None, dict[_Group, None]]:
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
            wait.update(dict.fromkeys(sorted(latest.predecessors, key=_serial)))
        for group in node.subtree_reads:
            # Whoever is in `since` waits for `group` and, through it, for every writer before it.
            wait.update((writer, None) for writer in group.since if writer in self._living)
            if group.unshared:
                wait.update(dict.fromkeys(sorted(group.predecessors, key=_serial)))
        return None, wait

    def _enter(self, claim: Claim, unshared: bool, predecessors: dict[_Group, None]) -> _Group:
        group = _Group(claim, self._serial)
        if unshared:
            group.unshared = True
        self._serial += 1
        self._living[group] = None
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

    def _named(self, resource: tuple[Any, ...], writer: _Group | None) -> _Node:
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

    # Ending

    def _granted(self, group: _Group, ready: list[Ticket], ended: list[_Group]) -> None:
        if group.ghost:
            self._ghosts -= 1
            ended.append(group)
            return
        for ticket in group.tickets:
            ticket._missing -= 1
            if ticket._missing == 0:
                ready.append(ticket)

    def _forget(self, group: _Group) -> None:
        del self._living[group]
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

    def _bypass(self, ghosts: list[_Group], ready: list[Ticket]) -> None:
        """Let whoever waited behind `ghosts` wait for what it really conflicts with instead.

        A group that waits directly for a ghost looks at what stands before the ghost.  What it does not conflict
        with there, it no longer stands behind: that is *lost* to it, and those behind it, who relied on it, have
        to look there themselves.  Groups are taken in the order of asking, so what is lost is known in time.
        """
        lost: dict[_Group, list[_Group]] = {}
        waiting = {group.serial: group for ghost in ghosts for group in ghost.dependents}
        serials = list(waiting)
        heapify(serials)
        while serials:
            group = waiting.pop(heappop(serials))
            if group.ghost or not group.predecessors:
                continue
            self._look_behind(group, lost)
            if group in lost:
                for dependent in group.dependents:
                    if dependent.serial not in waiting:
                        waiting[dependent.serial] = dependent
                        heappush(serials, dependent.serial)
            if not group.predecessors:
                self._granted(group, ready, [])

    def _look_behind(self, group: _Group, lost: dict[_Group, list[_Group]]) -> None:
        """Replace the ghosts among the predecessors of `group`, and note what is lost to it."""
        gone = [other for other in group.predecessors if other.ghost]
        group.predecessors.difference_update(gone)
        stack = [ancestor for other in gone for ancestor in _before(other)]
        for other in group.predecessors:
            stack += lost.get(other, ())
        seen = set(group.predecessors)
        while stack:
            other = stack.pop()
            if other in seen or other not in self._living or not other.tickets.keys().isdisjoint(group.tickets):
                continue
            seen.add(other)
            stack += lost.get(other, ())
            if other.claim.conflicts_with(group.claim):
                group.predecessors.add(other)
                other.add_dependent(group)
                continue
            lost.setdefault(group, []).append(other)
            if other.claim.mode is WRITE:
                # It stands for the other claims of its ticket too: an unshared reader ends with its writer.
                for ticket in other.tickets:
                    stack += ticket._groups
            for ancestor in other.predecessors:
                stack += _before(ancestor) if ancestor.ghost else (ancestor,)

    def touched(self, ticket: Ticket) -> Iterator[tuple[probe.Resource, bool]]:
        """What taking a ticket, or giving it back, touches."""
        for group in ticket._groups:
            yield ("ticket", self.name, *group.claim.resource), group.claim.mode is WRITE

    def _report(self, ticket: Ticket) -> None:
        for resource, write in self.touched(ticket):
            probe.access(resource, write)


def _before(ghost: _Group) -> list[_Group]:
    """The nearest groups before `ghost` that are no ghosts; kept, so that a long row of ghosts is walked once."""
    found: dict[_Group, None] = {}
    seen: set[_Group] = set()
    stack = list(ghost.predecessors if ghost.before is None else ghost.before)
    while stack:
        other = stack.pop()
        if not other.ghost:
            found[other] = None
        elif other not in seen:
            seen.add(other)
            stack += other.predecessors if other.before is None else other.before
    ghost.before = list(found)
    return ghost.before


def _tell(ready: Iterable[Ticket]) -> None:
    for ticket in ready:
        if ticket._on_ready is not None and not ticket.released:
            ticket._on_ready(ticket.owner)


def give_back(tickets: Sequence[Ticket], order: Callable[[Any], int]) -> None:
    """Give tickets of whatever tables back as one step.

    Whoever becomes ready is told after all of them are out of the order, by the `order` of the owners.
    """
    by_table: dict[ClaimTable, list[Ticket]] = {}
    for ticket in tickets:
        by_table.setdefault(ticket.table, []).append(ticket)
    ready = [ticket for table, mine in by_table.items() for ticket in table._end(mine)]
    if len(by_table) > 1:
        ready.sort(key=lambda ticket: order(ticket.owner))
    _tell(ready)


def _order_behind(readers: tuple[_Group, ...], writer: _Group) -> None:
    for reader in readers:
        reader.open = False
        reader.since.append(writer)


def _reduced(claims: Sequence[Claim]) -> list[tuple[Claim, bool]]:
    """The claims without those another one covers, each with whether its group must not be shared.

    A subtree reader that also writes below that subtree would wait for itself in a shared group.
    """
    strongest: dict[tuple[tuple[Any, ...], bool], Claim] = {}
    wide = False
    for claim in claims:
        subtree = claim.subtree
        wide = wide or subtree
        key = claim.resource, subtree
        if key not in strongest or claim.mode is WRITE:
            strongest[key] = claim
    if not wide:
        return list(zip(strongest.values(), repeat(False)))
    subtrees = {resource: claim.mode for (resource, subtree), claim in strongest.items() if subtree}
    kept = []
    unshared = set()
    for (resource, subtree), claim in strongest.items():
        covered = False
        for depth in range(len(resource) + (not subtree)):
            mode = subtrees.get(resource[:depth])
            if mode is WRITE or (mode is READ and claim.mode is READ):
                covered = True
            elif mode is READ:
                unshared.add(resource[:depth])
        if not covered:
            kept.append(claim)
    # Unshared readers enter first, so that the writes of the same ticket close them to newcomers.
    marked = [(claim, claim.subtree and claim.resource in unshared) for claim in kept]
    return sorted(marked, key=lambda pair: not pair[1])

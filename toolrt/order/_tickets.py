"""Tickets: for each resource, the queue of the calls that touch it, in the order in which they asked.

Rules.
    1. `ClaimTable.take` is synchronous.  The order of the calls to it is the order of everything.
    2. A ticket waits for every earlier ticket that it conflicts with, and for nothing else.
    3. A ticket waits for earlier tickets only, so no cycle can form and no deadlock is possible.
    4. A ticket that ends before its turn leaves as if it had never been there.
    5. A ticket that takes a place of a resource (`Claim.slots`) waits, besides, while as many tickets before it are
       left as there are places: see `toolrt.order._capacity`.
    6. A ticket may be *open*: what it is to hold is not known before it is granted what it holds now.  Until its owner
       has closed it, every later ticket waits outside the order, and enters behind what it holds in the end.

Theory.  This is deterministic locking: the requests of a transaction enter the lock queues in a preset order
before any transaction runs (Thomson et al., "Calvin", SIGMOD 2012; Gelashvili et al., "Block-STM", PPoPP
2023).  Claims that are granted and end together form a group; a group that waits counts its predecessors, and the
one whose end brings the count to zero grants it.  Which they are is found in a tree of resources (`ClaimTree`).
An open ticket is a dependent transaction: its read set is looked at before its write set is known (Calvin, 3.2.1).  It
keeps its place because nothing later is in the tree while it is open, so rule 3 still holds and it is never restarted.

Limits.  A ticket that ends before its turn (denied, cancelled while waiting) breaks the shortcut that "waiting
for the last one means waiting for all before it".  While such a *ghost* still has its place, newcomers are
held against every living group: O(living) each, exact all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import Any
from weakref import WeakValueDictionary

from toolrt import probe
from toolrt.errors import InternalError
from toolrt.model import READ, WRITE, Claim
from toolrt.model._claim import agree, two_capacities_text
from toolrt.order._capacity import Capacity
from toolrt.order._claim_tree import ClaimTree, Group, by_serial
from toolrt.order._rates import Rates

#: Of so many resources a table remembers how many places they have, at most.
_SAID_MOST = 10_000


class Ticket:
    """A call's place in the order, for all its claims at once.

    Make one with `ClaimTable.take`; give it back with `release`, exactly once.
    """

    __slots__ = ("_groups", "_on_ready", "_outside", "_serial", "missing", "open", "owner", "released", "table")

    def __init__(
        self, table: ClaimTable, serial: int, owner: Any, on_ready: Callable[[Any], None] | None, is_open: bool
    ) -> None:
        #: The table it belongs to.
        self.table = table
        self._serial = serial
        self._groups: tuple[Group, ...] = ()
        #: How many of its claims something earlier still stands in the way of.
        self.missing = 0
        self._on_ready = on_ready
        #: The owner: the call that took it.
        self.owner = owner
        #: Whether it has been given back.
        self.released = False
        #: What it will claim, while it waits outside the order; None once it is in it.
        self._outside: Sequence[Claim] | None = None
        #: Whether what it is to hold is not known yet.
        self.open = is_open

    @property
    def ready(self) -> bool:
        """Whether nothing earlier stands in its way any more."""
        return self.missing == 0

    def release(self) -> None:
        """Give the ticket back; those that waited only for it are ready on return, in the order they asked.

        Raises:
            InternalError: it was given back before.
        """
        ready = self.table._end((self,))
        if ready:
            _tell(ready)

    def implies(self) -> None:
        """Tell an explorer that what happens now comes after all that the ticket waited for."""
        if probe.implied is not None:
            for resource, write in self.table.touched(self):
                probe.implied(resource, write)

    def waits_for(self) -> list[Any]:
        """The owners of the tickets it waits for, each once, in the order they asked; then of those in its places."""
        found = {id(owner): owner for owner in self.behind()}
        for capacity in self._capacities:
            for ticket in capacity.before(self)[: capacity.slots]:
                found.setdefault(id(ticket.owner), ticket.owner)
        return list(found.values())

    def behind(self) -> list[Any]:
        """The owners of the tickets that must all have ended before it is granted, each once."""
        found: dict[int, Any] = {}
        if self._outside is not None and self.table._open is not None:
            return [self.table._open.owner]
        for group in self._groups:
            for predecessor in sorted(group.predecessors, key=by_serial):
                for ticket in predecessor.tickets:
                    found.setdefault(id(ticket), ticket.owner)
        return list(found.values())

    def counts(self) -> list[tuple[list[Any], int]]:
        """How many of those before it may be left when it gets each place that it waits for.

        Returns: for each place the owners before it, and that number.
        """
        before = [(capacity.before(self), capacity.slots - 1) for capacity in self._capacities]
        return [([ticket.owner for ticket in tickets], most) for tickets, most in before if tickets]

    @property
    def _capacities(self) -> Sequence[Capacity[Ticket]]:
        return self.table._counted.get(self, ())


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
        self._tree = ClaimTree()
        #: How many tickets were taken.
        self._taken = 0
        #: How many batches were opened by those whose calls it orders: no two of them have one number.
        self._batches = 0
        #: How many groups that ended before their turn still have their place.
        self._ghosts = 0
        #: The ticket whose claims are not known yet, and those that wait for it outside the order.
        self._open: Ticket | None = None
        self._outside: dict[Ticket, None] = {}
        #: The run of an event loop whose batches take tickets here, and how many of them are open; None: no run.
        self.tenure: tuple[object, int] | None = None
        #: Whether it was told that a call waits for an undeclared tool of another batch: once is enough.
        self.told = False
        #: Where the lanes of batches of one owner order themselves, while there are such batches.
        self._owners: WeakValueDictionary[Hashable, ClaimTable] = WeakValueDictionary()
        self._owned = 0
        #: The places of resources, while a ticket has one; and for each ticket that takes some, whose they are.
        self._capacities: dict[tuple[Any, ...], Capacity[Ticket]] = {}
        self._counted: dict[Ticket, tuple[Capacity[Ticket], ...]] = {}
        #: How many places each resource has, and who said so first, while batches are open: see `disagrees`.
        self._said: dict[tuple[Any, ...], tuple[Claim, str]] = {}
        #: Of a sub-batch: the resources where its parent has one place to lend, however many there are.
        self.one_place: frozenset[tuple[Any, ...]] = frozenset()
        #: When calls started that claim a rate, where their runtime has no `Limits`.
        self._rates = Rates()

    def of_owner(self, owner: Hashable) -> ClaimTable:
        """The table in which the lanes of the batches of `owner` order themselves, as long as one refers to it."""
        found = self._owners.get(owner)
        if found is None:
            self._owned += 1
            name = owner if isinstance(owner, str) else f"owner {self._owned}"
            found = self._owners[owner] = ClaimTable(f"{name} in {self.name}")
        return found

    def clear(self) -> None:
        """Forget every ticket: the calls that took them are gone, and will give none back."""
        self._tree = ClaimTree()
        self._ghosts = 0
        self._open = None
        self._outside = {}
        self._owners.clear()
        self._capacities = {}
        self._counted = {}
        self._said = {}

    def disagrees(self, claims: Sequence[Claim], who: str) -> str | None:
        """Why a call may not have `claims`: they give a resource another number of places than a call before it.

        The first call in the order says how many there are, until no batch is open.  One that is refused says nothing.

        Args:
            claims: its claims.
            who: names the call.

        Returns: None: they agree with all that was said.
        """
        mine: dict[tuple[Any, ...], tuple[Claim, str]] = {}
        for claim in claims:
            if claim.slots is None:
                continue
            other, said = self._said.get(claim.resource) or mine.setdefault(claim.resource, (claim, who))
            if not agree(other, claim):
                return two_capacities_text(claim, other, said)
        for resource, (claim, _) in mine.items():
            self._said[resource] = claim, who
        while len(self._said) > _SAID_MOST:
            del self._said[next(iter(self._said))]
        return None

    @property
    def busy(self) -> bool:
        """Whether a ticket is held or waits."""
        return bool(self._tree.living) or self._open is not None

    def delays(self, claims: Sequence[Claim]) -> bool:
        """Whether a ticket for `claims`, taken now, would have to wait."""
        if self._open is not None:
            return True
        if not self._tree.living:
            return False
        for claim in claims:
            joined, wait = self._predecessors(claim if claim.slots is None else _as_writer(claim, ()), False)
            if wait or (joined is not None and joined.predecessors):
                return True
            if claim.slots is not None and claim.resource in self._capacities:
                return self._capacities[claim.resource].is_full
        return False

    def statistics(self) -> dict[str, int]:
        """How much the table holds: ``groups``, ``waiting`` groups, ``ghosts`` and ``nodes`` below the root.

        All are 0 when every ticket has been given back.
        """
        groups = self._tree.living
        waiting = sum(1 for group in groups if group.predecessors)
        nodes = self._tree.count_nodes()
        return {"groups": len(groups), "waiting": waiting, "ghosts": self._ghosts, "nodes": nodes}

    def take(
        self,
        claims: Sequence[Claim],
        owner: Any = None,
        on_ready: Callable[[Any], None] | None = None,
        is_open: bool = False,
    ) -> Ticket:
        """Take a ticket for all of `claims`, behind every earlier ticket that conflicts with one of them.

        Args:
            claims: what will be touched; none at all gives a ticket that is ready.
            owner: whom the ticket is for.
            on_ready: called with `owner` when the ticket becomes ready; not when it is ready at once.
            is_open: whether it is to hold other claims once it is ready: see `close`.

        Ordering: tickets that conflict come in the order of the calls of this, and of nothing else.
        """
        ticket = Ticket(self, self._taken, owner, on_ready, is_open)
        self._taken += 1
        if self._open is not None:
            ticket._outside = claims
            ticket.missing = 1
            self._outside[ticket] = None
        else:
            self._enter(ticket, claims)
        return ticket

    def close(self, ticket: Ticket, claims: Sequence[Claim], still_open: bool = False) -> None:
        """Let an open `ticket`, which is ready, hold `claims` at its place in the order; it may have to wait again.

        Those that wait for it stay outside the order until `go_on`; or longer, if the ticket is `still_open`.
        """
        for group in ticket._groups:
            del group.tickets[ticket]
            if not group.tickets:
                self._tree.forget(group)
        if ticket in self._counted:
            # It had its places, and those behind it are outside the order: none of them waits for one.
            self._leave_capacities(ticket)
        ticket.open = still_open
        self._enter(ticket, claims)

    def go_on(self) -> None:
        """Let those enter the order that waited outside it for a ticket which is open no more."""
        ready: list[Ticket] = []
        self._let_enter(ready)
        _tell(ready)

    def _let_enter(self, ready: list[Ticket]) -> None:
        if self._open is not None and not (self._open.open and not self._open.released):
            self._open = None
        while self._outside and self._open is None:
            ticket = next(iter(self._outside))
            del self._outside[ticket]
            claims, ticket._outside = ticket._outside or (), None
            ticket.missing = 0
            self._enter(ticket, claims)
            if ticket.missing == 0:
                ready.append(ticket)

    def _enter(self, ticket: Ticket, claims: Sequence[Claim]) -> None:
        """Give the ticket its place in the order, behind all that is in it."""
        tree = self._tree
        if ticket.open:
            self._open = ticket
        if len(claims) == 1 and not self._ghosts and claims[0].slots is None:
            # The same as below, for what is by far the most common.
            claim = claims[0]
            group, predecessors = tree.predecessors(claim, False)
            if group is None:
                group = tree.enter(claim, False, predecessors)
            group.tickets[ticket] = None
            ticket._groups = (group,)
            if group.predecessors:
                ticket.missing = 1
        else:
            # All predecessors are looked up before anything is entered, so that a ticket never waits for itself.
            look = self._predecessors if self._ghosts else tree.predecessors
            planned = []
            for claim, unshared in _reduced(claims):
                joined, predecessors = look(claim, unshared)
                planned.append((claim, unshared, joined, predecessors))
            groups = []
            for claim, unshared, joined, predecessors in planned:
                group = tree.enter(claim, unshared, predecessors) if joined is None else joined
                group.tickets[ticket] = None
                groups.append(group)
                if group.predecessors:
                    ticket.missing += 1
                if claim.slots is not None:
                    self._take_place(ticket, claim)
            ticket._groups = tuple(groups)
        if probe.sink is not None:
            self._report(ticket)

    def _take_place(self, ticket: Ticket, claim: Claim) -> None:
        capacity = self._capacities.get(claim.resource)
        if capacity is None:
            slots = 1 if claim.resource in self.one_place else claim.slots
            assert slots is not None
            capacity = self._capacities[claim.resource] = Capacity(slots)
        self._counted[ticket] = (*self._counted.get(ticket, ()), capacity)
        if not capacity.enter(ticket):
            ticket.missing += 1

    def _leave_capacities(self, ticket: Ticket) -> list[Ticket]:
        """Give the ticket's places to those that wait for them; gives those that lack nothing any more."""
        ready = []
        for capacity in self._counted.pop(ticket):
            following = capacity.leave(ticket)
            if following is not None:
                following.missing -= 1
                if following.missing == 0:
                    ready.append(following)
        for resource in [group.claim.resource for group in ticket._groups if group.claim.slots is not None]:
            if self._capacities[resource].is_empty:
                del self._capacities[resource]
        return ready

    def release(self, tickets: Iterable[Ticket]) -> None:
        """Give several tickets back as one step: see `Ticket.release`.

        Cheaper than one at a time when many of them are still waiting.
        """
        _tell(self._end(tickets))

    def _end(self, tickets: Iterable[Ticket]) -> list[Ticket]:
        """Take tickets out of the order; gives those that become ready, in the order they asked."""
        ended: list[Group] = []
        ghosts: list[Group] = []
        ready: list[Ticket] = []
        tickets = tuple(tickets)
        known: set[Ticket] = set()
        for ticket in tickets:  # before any of them is taken out
            if ticket.released or ticket in known:
                raise InternalError(f"a ticket of {ticket.owner!r} was given back twice")
            known.add(ticket)
        for ticket in tickets:
            ticket.released = True
            if self._counted and ticket in self._counted:
                ready += self._leave_capacities(ticket)
            if ticket._outside is not None:
                del self._outside[ticket]
                ticket._outside = None
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
        if ghosts:
            self._ghosts += len(ghosts)
            self._bypass(ghosts, ready)
        for group in ended:  # grows while ghosts come to their turn
            self._tree.forget(group)
            for dependent in group.dependents:
                if group not in dependent.predecessors:
                    continue
                dependent.predecessors.remove(group)
                if not dependent.predecessors:
                    self._granted(dependent, ready, ended)
        if self._open is not None and self._open.released:
            self._let_enter(ready)
        if len(ready) > 1:
            ready.sort(key=_ticket_serial)
        return ready

    def _granted(self, group: Group, ready: list[Ticket], ended: list[Group]) -> None:
        if group.ghost:
            self._ghosts -= 1
            ended.append(group)
            return
        for ticket in group.tickets:
            ticket.missing -= 1
            if ticket.missing == 0:
                ready.append(ticket)

    # Ghosts

    def _predecessors(self, claim: Claim, unshared: bool) -> tuple[Group | None, dict[Group, None]]:
        """The group to join, or None, and the groups to wait for."""
        joined, wait = self._tree.predecessors(claim, unshared)
        if self._ghosts and (joined is None or joined.ghost):
            joined = None
            wait = {group: None for group in self._tree.living if not group.ghost and group.claim.conflicts_with(claim)}
        return joined, wait

    def _bypass(self, ghosts: list[Group], ready: list[Ticket]) -> None:
        """Let the groups that waited behind `ghosts` wait for what they really conflict with instead.

        A group that waits directly for a ghost looks at what stands before the ghost.  What it does not conflict
        with there, it no longer stands behind: that is *lost* to it, and those behind it, who relied on it, have
        to look there themselves.  Groups are taken in the order of asking, so what is lost is known in time.
        """
        lost: dict[Group, list[Group]] = {}
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

    def _look_behind(self, group: Group, lost: dict[Group, list[Group]]) -> None:
        """Replace the ghosts among the predecessors of `group`, and note what is lost to it."""
        gone = [other for other in group.predecessors if other.ghost]
        group.predecessors.difference_update(gone)
        stack = [ancestor for other in gone for ancestor in _before(other)]
        for other in group.predecessors:
            stack += lost.get(other, ())
        seen = set(group.predecessors)
        living = self._tree.living
        while stack:
            other = stack.pop()
            if other in seen or other not in living or not other.tickets.keys().isdisjoint(group.tickets):
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


def _before(ghost: Group) -> list[Group]:
    """The nearest groups before `ghost` that are no ghosts; kept, so that a long row of ghosts is walked once."""
    found: dict[Group, None] = {}
    seen: set[Group] = set()
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


def next_batch(tables: Sequence[ClaimTable]) -> int:
    """The number of a new batch on `tables`, from 1 on: another one for each batch on any of them."""
    number = 1 + max(table._batches for table in tables)
    for table in tables:
        table._batches = number
    return number


def enter_tables(tables: Sequence[ClaimTable], run: object, is_over: Callable[[Any], bool]) -> ClaimTable | None:
    """Let a batch of `run` take tickets in `tables` until `leave_tables`.

    One run at a time, because the code that gives a ticket back starts the call that waited for it.  The caller keeps
    other threads out meanwhile.

    Args:
        run: stands for the run of an event loop, by its identity.
        is_over: whether another run has ended.  What that has left in a table is thrown away.

    Returns: a table that belongs to another run, and nothing was changed; None: the batch may take tickets.
    """
    for table in tables:
        if table.tenure is not None and table.tenure[0] is not run and not is_over(table.tenure[0]):
            return table
    for table in tables:
        holder, batches = table.tenure or (run, 0)
        if holder is not run:
            table.clear()
            batches = 0
        table.tenure = run, batches + 1
    return None


def leave_tables(tables: Sequence[ClaimTable], run: object) -> None:
    """Give back the `tables` that `enter_tables` took for a batch of `run`; the caller keeps other threads out."""
    for table in tables:
        holder, batches = table.tenure or (None, 0)
        if holder is run:
            table.tenure = (run, batches - 1) if batches > 1 else None
            if batches <= 1:
                table._said = {}  # the next batch may say anew how many places a resource has


def give_back(tickets: Sequence[Ticket], order: Callable[[Any], int]) -> None:
    """Give tickets of whatever tables back as one step.

    Tickets that become ready are notified after all of these have left the table, by the `order` of their owners.
    """
    by_table: dict[ClaimTable, list[Ticket]] = {}
    for ticket in tickets:
        by_table.setdefault(ticket.table, []).append(ticket)
    ready = [ticket for table, mine in by_table.items() for ticket in table._end(mine)]
    if len(by_table) > 1:
        ready.sort(key=lambda ticket: order(ticket.owner))
    _tell(ready)


def _reduced(claims: Sequence[Claim]) -> list[tuple[Claim, bool]]:
    """The claims without those another one covers, each with whether its group must not be shared.

    A subtree reader that also writes below that subtree would wait for itself in a shared group.  A place of a resource
    that the ticket claims as such, too, is no place: no other call may have one beside it.
    """
    if any(claim.slots is not None for claim in claims):
        plain = [claim for claim in claims if claim.slots is None]
        claims = [claim if claim.slots is None else _as_writer(claim, plain) for claim in claims]
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


def _as_writer(claim: Claim, plain: Sequence[Claim]) -> Claim:
    """A claim that takes a place, as the tree has it: to claims that take none it writes, whatever its mode."""
    alone = any(claim.conflicts_with(one) for one in plain)
    return Claim(claim.resource, WRITE, slots=None if alone else claim.slots)

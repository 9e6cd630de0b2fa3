"""The rules of tickets in quadratic time, beside the tables that keep them fast.

A ticket waits for each earlier one that it conflicts with, while as many earlier ones take a place of a resource as
that has, and for nothing else.  Where one is open, all later ones
wait outside.  `Beside` lets the tables and this model go through the same events, and compares them after each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from tests.order._choices import Choices
from toolrt.model import READ, WRITE, Claim
from toolrt.order import ClaimTable, Ticket, give_back

_PARTS = "ab"

#: What tables are asked whether they would delay.
_ASKED = [
    Claim(resource, mode, subtree)
    for resource in ((), ("a",), ("a", "b"), ("c",))
    for mode in (READ, WRITE)
    for subtree in (False, True)
] + [Claim(resource, slots=1 + len(resource)) for resource in (("a",), ("a", "b"), ("c",))]


def some_claims(choices: Choices) -> tuple[Claim, ...]:
    """Claims on a small tree, so that they meet often."""
    return tuple(_claim(choices) for _ in range(choices.one_of((1, 1, 1, 2, 2, 3, 0))))


def _claim(choices: Choices) -> Claim:
    resource = tuple(choices.one_of(_PARTS) for _ in range(choices.one_of((1, 1, 2, 2, 3, 0))))
    if choices.one_in(3):
        return Claim(resource, choices.one_of((WRITE, READ)), slots=1 + len(resource))
    return Claim(resource, choices.one_of((WRITE, READ)), choices.one_in(3))


def conflict(some: Sequence[Claim], others: Sequence[Claim]) -> bool:
    """Whether calls with these claims must not overlap."""
    return any(mine.conflicts_with(theirs) for mine in some for theirs in others)


def places(claims: Sequence[Claim]) -> list[Claim]:
    """The places that a ticket takes: none of a resource that it claims as such, too."""
    plain = [claim for claim in claims if claim.slots is None]
    return [claim for claim in claims if claim.slots is not None and not conflict([claim], plain)]


@attrs.define
class Row:
    """One ticket, as the rules have it."""

    owner: int
    claims: tuple[Claim, ...]
    open: bool
    #: Whether it waits for its place in the order until an open one is closed.
    outside: bool


class TableModel:
    """The tickets of one table that have not ended, in the order in which they asked."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        #: The open ticket that others wait for; it stays so until `go_on`, or until it ends.
        self.open: Row | None = None

    def row(self, owner: int) -> Row:
        return next(row for row in self.rows if row.owner == owner)

    def take(self, owner: int, claims: tuple[Claim, ...], is_open: bool) -> None:
        row = Row(owner, claims, is_open, outside=self.open is not None)
        self.rows.append(row)
        if is_open and not row.outside:
            self.open = row

    def end(self, owners: Sequence[int]) -> None:
        self.rows = [row for row in self.rows if row.owner not in owners]
        if self.open is not None and self.open not in self.rows:
            self.go_on()

    def close(self, owner: int, claims: tuple[Claim, ...], still_open: bool) -> None:
        row = self.row(owner)
        row.claims, row.open = claims, still_open

    def go_on(self) -> None:
        if self.open is not None and (not self.open.open or self.open not in self.rows):
            self.open = None
        for row in self.rows:
            if self.open is None and row.outside:
                row.outside = False
                self.open = row if row.open else None

    def before(self, row: Row) -> list[Row]:
        """The earlier ones that it conflicts with."""
        earlier = self.rows[: self.rows.index(row)]
        return [other for other in earlier if not other.outside and conflict(other.claims, row.claims)]

    def in_places(self, row: Row) -> list[Row]:
        """The earlier ones that have the places for which it waits."""
        earlier = [other for other in self.rows[: self.rows.index(row)] if not other.outside]
        found: list[Row] = []
        for claim in places(row.claims):
            holders = [other for other in earlier if claim.resource in {one.resource for one in places(other.claims)}]
            found += holders[: claim.slots] if len(holders) >= (claim.slots or 0) else []
        return found

    def ready(self) -> set[int]:
        return {row.owner for row in self.rows if not (row.outside or self.before(row) or self.in_places(row))}

    def delays(self, claims: Sequence[Claim]) -> bool:
        asked = Row(-1, tuple(claims), open=False, outside=False)
        return self.open is not None or any(conflict(row.claims, claims) for row in self.rows) or self._is_full(asked)

    def _is_full(self, asked: Row) -> bool:
        self.rows.append(asked)
        found = bool(self.in_places(asked))
        self.rows.remove(asked)
        return found


class Beside:
    """Some tables and their models.

    Args:
        count: how many tables.
    """

    def __init__(self, count: int) -> None:
        self.pairs = [(ClaimTable(str(number)), TableModel()) for number in range(count)]
        #: The living tickets of each owner.
        self.tickets: dict[int, list[Ticket]] = {}
        #: Who was told that a ticket is ready, with the number of its table.
        self.told: list[tuple[int, int]] = []
        self._next = 0

    def take(self, choices: Choices) -> None:
        """A call takes a ticket in one table, or in all."""
        owner, self._next = self._next, self._next + 1
        is_open = choices.one_in(8)
        mine = self.tickets[owner] = []
        for number, (table, model) in enumerate(self.pairs[: choices.one_of((1, len(self.pairs)))]):
            claims = some_claims(choices)

            def tell(owner: int, number: int = number) -> None:
                self.told.append((owner, number))

            with self._tells(changed=False):
                mine.append(table.take(claims, owner, tell, is_open))
                model.take(owner, claims, is_open)
            assert mine[-1].ready == (owner in model.ready())

    def end(self, choices: Choices) -> None:
        """Some calls end as one step; mostly those whose turn it is, sometimes those that still wait."""
        early = choices.one_in(3)
        pool = [owner for owner, mine in self.tickets.items() if early or all(one.ready for one in mine)]
        if not pool:
            return
        chosen = choices.some_of(pool, 4) if choices.one_in(2) else [choices.one_of(pool)]
        mine = [ticket for owner in chosen for ticket in self.tickets.pop(owner)]
        with self._tells():
            for _, model in self.pairs:
                model.end(chosen)
            if len(mine) == 1:
                mine[0].release()
            elif len({ticket.table for ticket in mine}) == 1 and choices.one_in(2):
                mine[0].table.release(mine)
            else:
                give_back(mine, int)
        assert all(ticket.released for ticket in mine)

    def close(self, choices: Choices) -> None:
        """The claims of an open call whose turn it is are known; or it looks at something else, and stays open."""
        for owner, mine in self.tickets.items():
            if mine[0].open and all(ticket.ready for ticket in mine):
                still = choices.one_in(3)
                for ticket in mine:
                    claims = some_claims(choices)
                    with self._tells(changed=False):
                        ticket.table.close(ticket, claims, still)
                        self.pairs[int(ticket.table.name)][1].close(owner, claims, still)
                for table, model in self.pairs:
                    with self._tells():
                        table.go_on()
                        model.go_on()
                return

    def clear(self) -> None:
        """Those who took the tickets are gone."""
        self.tickets.clear()
        self.pairs = [(table, TableModel()) for table, _ in self.pairs]
        for table, _ in self.pairs:
            table.clear()

    def look(self) -> None:
        """Compare all that can be asked."""
        for table, model in self.pairs:
            mine = {owner: one for owner, some in self.tickets.items() for one in some if one.table is table}
            assert {owner for owner, ticket in mine.items() if ticket.ready} == model.ready()
            placed = [row for row in model.rows if not row.outside]
            held = {claim for row in placed for claim in row.claims}
            assert table.busy == bool(held or model.open)
            for claim in _ASKED:
                assert table.delays([claim]) == model.delays([claim])
            for owner, ticket in mine.items():
                self._waits(model, mine, owner, ticket)
            found = table.statistics()
            assert (found["groups"] > 0) == bool(held), "a ghost goes when all that it waited for has ended"
            assert found["groups"] - found["ghosts"] <= sum(len(row.claims) for row in placed)
            assert (found["waiting"] > found["ghosts"]) == any(map(model.before, placed))
            assert bool(table._capacities) == any(places(row.claims) for row in placed)
            if not found["ghosts"]:
                paths = {claim.resource[:depth] for claim in held for depth in range(1, 1 + len(claim.resource))}
                assert found["nodes"] <= len(paths), "a node that no claim leads to was kept"

    def _waits(self, model: TableModel, mine: dict[int, Ticket], owner: int, ticket: Ticket) -> None:
        row, waits = model.row(owner), ticket.waits_for()
        assert len(set(waits)) == len(waits), "it names one twice"
        if row.outside:
            assert model.open is not None
            assert waits == [model.open.owner]
            return
        blockers = {other.owner for other in model.before(row)}
        holders = {other.owner for other in model.in_places(row)}
        assert (blockers | holders).issuperset(waits), "it waits for one that it does not conflict with"
        assert holders <= set(waits)
        seen, todo = set[int](), list(waits)
        while todo:
            other = todo.pop()
            if other not in seen:
                seen.add(other)
                todo += mine[other].waits_for()
        assert blockers <= seen, "it does not wait for one that it conflicts with"

    def _ready(self) -> set[tuple[int, int]]:
        return {(owner, number) for number, (_, model) in enumerate(self.pairs) for owner in model.ready()}

    @contextmanager
    def _tells(self, changed: bool = True) -> Iterator[None]:
        """What happens in the block tells those that it makes ready, each once, in the order in which they asked."""
        before, told = self._ready(), len(self.told)
        yield
        now = self.told[told:]
        assert [owner for owner, _ in now] == sorted(owner for owner, _ in now), "the table tells them in another order"
        assert sorted(now) == (sorted(self._ready() - before) if changed else [])

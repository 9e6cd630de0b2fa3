"""Tickets against the sentence they implement: wait for every earlier conflict, and for nothing else."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests._profile import FULL
from toolrt.errors import InternalError
from toolrt.model import EVERYTHING, READ, WRITE, Claim
from toolrt.order import ClaimTable

CLEAN = {"groups": 0, "waiting": 0, "ghosts": 0, "nodes": 0}


def claims() -> st.SearchStrategy[Claim]:
    """Claims on a small tree, so that they meet often."""
    part = st.sampled_from("ab")
    return st.builds(
        Claim,
        resource=st.lists(part, max_size=3).map(tuple),
        mode=st.sampled_from([READ, WRITE]),
        subtree=st.booleans(),
    )


@attrs.define
class _Model:
    """The rule itself, in quadratic time."""

    living: dict[int, tuple[Claim, ...]] = attrs.field(factory=dict)

    def ready(self) -> set[int]:
        return {
            number
            for number, mine in self.living.items()
            if not any(
                a.conflicts_with(b)
                for earlier, theirs in self.living.items()
                if earlier < number
                for a in theirs
                for b in mine
            )
        }


@pytest.mark.slow
@settings(max_examples=400 if FULL else 80)
@given(data=st.data())
def test_tickets_wait_for_earlier_conflicts_and_nothing_else(data: st.DataObject) -> None:
    """After every take and release, exactly the tickets without an earlier living conflict are ready."""
    table = ClaimTable()
    model = _Model()
    tickets: dict[int, Any] = {}
    told: set[int] = set()
    for number in range(data.draw(st.integers(1, 14), label="tickets")):
        for _ in range(data.draw(st.integers(0, 2), label="releases")):
            if tickets:
                _release_some(data, table, model, tickets)
                assert {n for n, ticket in tickets.items() if ticket.ready} == model.ready()
        mine = tuple(data.draw(st.lists(claims(), min_size=1, max_size=3), label="claims"))
        tickets[number] = table.take(mine, number, told.add)
        model.living[number] = mine
        if tickets[number].ready:
            told.add(number)
        assert {n for n, ticket in tickets.items() if ticket.ready} == model.ready()
    while tickets:
        _release_some(data, table, model, tickets)
        assert {n for n, ticket in tickets.items() if ticket.ready} == model.ready()
        assert model.ready() <= told
    assert table.statistics() == CLEAN


def _release_some(data: st.DataObject, table: ClaimTable, model: _Model, tickets: dict[int, Any]) -> None:
    # Mostly those whose turn it is, sometimes those that still wait (a denied or cancelled call).
    ready = sorted(model.ready())
    pool = sorted(tickets) if data.draw(st.integers(0, 3), label="any") == 0 else ready
    chosen = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2, unique=True), label="who")
    table.release([tickets[number] for number in chosen])
    for number in chosen:
        del tickets[number], model.living[number]


def test_ticket_release_tells_in_the_order_of_asking() -> None:
    """Those that one release makes ready are told in the order in which they took their tickets."""
    table = ClaimTable()
    told: list[int] = []
    first = table.take([EVERYTHING], 0, told.append)
    for number, name in enumerate("cab", start=1):
        table.take([Claim(name, WRITE)], number, told.append)
    first.release()
    assert told == [1, 2, 3]


def test_ticket_given_back_twice_is_a_bug_of_ours() -> None:
    """A ticket is given back exactly once."""
    ticket = ClaimTable().take([Claim("a", WRITE)], "call 0")
    ticket.release()
    with pytest.raises(InternalError, match="given back twice"):
        ticket.release()


def test_ticket_names_whom_it_waits_for() -> None:
    """`waits_for` gives the owners in the way, in the order they asked."""
    table = ClaimTable()
    table.take([Claim("a", WRITE)], "first")
    table.take([Claim("b", READ)], "second")
    assert table.take([Claim("a", READ), Claim("b", WRITE)], "third").waits_for() == ["first", "second"]


def test_ticket_ready_at_once_is_not_told() -> None:
    """`on_ready` is for tickets that had to wait."""
    told: list[str] = []
    ClaimTable().take([Claim("a", WRITE)], "only", told.append)
    assert told == []


@pytest.mark.parametrize("pattern", ["apart", "one", "readers-and-writers", "one writer, many readers"])
def test_ticket_registration_looks_at_a_bounded_number_of_groups(pattern: str) -> None:
    """The edges between groups grow with the number of tickets, not with its square (RULES 10)."""
    edges = {n: _edges(pattern, n) for n in (100, 400)}
    assert edges[400] <= 4 * edges[100] + 8


def _edges(pattern: str, n: int) -> int:
    table = ClaimTable()
    for number in range(n):
        if pattern == "apart":
            claim = Claim(("file", str(number)), WRITE)
        elif pattern == "one":
            claim = Claim(("file", "one"), WRITE)
        elif pattern == "one writer, many readers":
            claim = Claim(("file",), READ, subtree=True) if number else EVERYTHING
        elif number % 2:
            claim = Claim(("file", str(number)), WRITE)
        else:
            claim = Claim(("file",), READ, subtree=True)
        table.take([claim], number)
    return sum(len(group.predecessors) for group in table._tree.living)

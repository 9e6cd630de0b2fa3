"""Tickets against the sentence they implement: wait for every earlier conflict, and for nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.order._choices import Choices, choices
from tests.order._table_model import Beside
from toolrt.errors import InternalError
from toolrt.model import EVERYTHING, READ, WRITE, Claim
from toolrt.order import ClaimTable, enter_tables, leave_tables, next_batch

CLEAN = {"groups": 0, "waiting": 0, "ghosts": 0, "nodes": 0}


@pytest.mark.seldom
@settings(max_examples=4 * settings.default.max_examples)
@given(choices=choices(300))
def test_tickets_wait_for_earlier_conflicts_and_nothing_else(choices: Choices) -> None:
    """Whatever is taken, ends, ends too early or is known late: tables and rules say the same after each step."""
    tables = Beside(choices.one_of((1, 2)))
    steps = (tables.take, tables.take, tables.take, tables.end, tables.end, tables.close)
    while choices.more:
        if choices.one_in(60):
            tables.clear()
        choices.one_of(steps)(choices)
        tables.look()
    while tables.tickets:
        tables.end(choices)
        tables.close(choices)
        tables.look()
    assert [table.statistics() for table, _ in tables.pairs] == [CLEAN] * len(tables.pairs)


@settings(max_examples=2 * settings.default.max_examples)
@given(choices=choices(80))
def test_tables_belong_to_one_run_of_an_event_loop_at_a_time(choices: Choices) -> None:
    """Until its last batch has left, or the run is over; then what it left in them is thrown away."""
    tables = [ClaimTable(str(number)) for number in range(3)]
    runs, over = [object() for _ in range(3)], set[int]()
    held: dict[ClaimTable, list[object]] = {table: [] for table in tables}
    numbers = dict.fromkeys(tables, 0)
    while choices.more:
        run, some = choices.one_of(runs), choices.some_of(tables, 3)
        if choices.one_in(6):
            over.add(id(run))
        if choices.one_in(3):
            leave_tables(some, run)
            for table in some:
                held[table] = held[table][1:] if held[table][:1] == [run] else held[table]
            continue
        taken = [
            table for table in some if held[table] and held[table][0] is not run and id(held[table][0]) not in over
        ]
        assert enter_tables(some, run, lambda one: id(one) in over) is (taken[0] if taken else None)
        for table in some if not taken else ():
            gone = bool(held[table]) and held[table][0] is not run
            held[table] = [run] if gone else [*held[table], run]
            assert not (gone and table.busy), "it holds what another run has left"
            if choices.one_in(3):
                table.take([Claim("a", WRITE)])
        if not taken:
            number = next_batch(some)
            assert number == 1 + max(numbers[table] for table in some)
            numbers.update(dict.fromkeys(some, number))
        assert [table.tenure for table in tables] == [(held[t][0], len(held[t])) if held[t] else None for t in tables]


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

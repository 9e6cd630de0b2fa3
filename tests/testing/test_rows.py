"""Rows of two conflicting calls that meet: what is counted, for whom, and what pytest says of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests._rows import RowWatch, known_pairs, verdict
from tests.testing.conftest import Inner, ended
from toolrt import sim
from toolrt.invariants.script import AddCells, Pause
from toolrt.order import CallRecord, CallState
from toolrt.testing import Mix, Scripted

SUITE = """
from hypothesis import given, settings
from toolrt.testing import schedules, simulate, tool_mixes

@settings(max_examples=20, derandomize=True, database=None, deadline=None)
@given(tool_mixes(), schedules())
def test_one(mix, schedule):
    simulate(mix, schedule)

@settings(max_examples=20, derandomize=True, database=None, deadline=None)
@given(tool_mixes(cancel=True), schedules())
def test_other(mix, schedule):
    simulate(mix, schedule)
"""


def watched(mix: Mix) -> RowWatch:
    """Watch one execution of the mix."""
    with RowWatch() as watch:
        sim.run(mix.program(), sim.Choices([]))
    return watch


def two(one: str, other: str) -> Mix:
    """Two calls, and each writes cells."""
    return Mix([Scripted([Pause(), AddCells(one, "x")]), Scripted([AddCells(other, "y")])])


def test_later_call_waits_while_the_earlier_one_runs() -> None:
    """Of two writers of one cell the later is granted once the earlier has ended, and stands before that."""
    pairs = set(watched(two("a", "a")).pairs)
    assert {"earlier spawned start | placed take", "later waiting grant | finishing end"} <= pairs
    assert not any(pair.startswith("later spawned start | running") for pair in pairs)
    assert pairs <= known_pairs()


def test_a_call_inside_the_subtree_of_another_conflicts() -> None:
    """The claims decide, not their names."""
    assert watched(two("a/b", "a")).pairs


@pytest.mark.parametrize("mix", [two("a", "b"), Mix([Scripted([], says="safe")] * 2)], ids=["apart", "safe"])
def test_calls_without_conflicting_tickets_do_not_meet(mix: Mix) -> None:
    """Rows are counted, pairs are not."""
    watch = watched(mix)
    assert watch.batches == 1
    assert watch.rows["spawned start"] == 2
    assert not watch.pairs


def test_what_is_watched_is_as_it_was() -> None:
    """Behind its block nothing is patched, and records that were made inside have their states."""
    before = dict(vars(CallRecord))
    with RowWatch() as watch:
        mix = two("a", "a")
        outcome = sim.run(mix.program(), sim.Choices([])).value
    assert dict(vars(CallRecord)) == before
    assert CallRecord.state is CallState.PLACED
    counted = watch.pairs.copy()
    assert sim.run(mix.program(), sim.Choices([])).value == outcome
    assert watch.pairs == counted


def test_verdict_names_what_was_not_reached() -> None:
    """A row has a line, with all rows that it did not meet; what was never met before is named as well."""
    every = sorted(known_pairs())
    first, *rest = verdict({*every[1:], "later waiting grant | running return"}, 7)
    row, other = every[0].split(" | ")
    assert first == f"rows x rows reached: {len(every) - 1} of {len(every)}, by 7 batches"
    assert rest == ["  not known before: later waiting grant | running return", f"  not reached: {row} | {other}"]


@pytest.mark.seldom
def test_pytest_says_what_was_reached(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with one process and with two: what the workers reached is added."""
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", root, prepend=os.pathsep)
    asked = ("-p", "tests._rows")
    # In a process of its own, too: Hypothesis draws constants of the modules that a process has imported.
    alone = ended(inner(SUITE, *asked, fresh=True), 0, "rows of mixes", "rows x rows reached: ")
    shared = ended(inner(SUITE, *asked, "-p", "xdist", "-n", "2", fresh=True), 0, "rows of mixes")
    said = [[line for line in text.splitlines() if line.startswith("rows x rows")] for text in (alone, shared)]
    assert said[0] == said[1]
    # Of the 40 some have another batch beside them; one that is cut before its first call comes goes through no row.
    assert said[0][0].endswith("by 51 batches")

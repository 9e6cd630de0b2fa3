"""Experiments on searches: what is counted is so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from toolrt import sim, view
from toolrt.errors import DefinitionRefused
from toolrt.teaching import lab
from toolrt.teaching.litmus import LITMUS

_LOST = LITMUS["lost_update_2x1"]


def _cells(calls: int) -> Callable[[], Any]:
    """A program of so many tasks, of two steps each, on one cell."""

    async def program() -> int:
        cell = sim.Cell(0, name="x")

        async def add() -> None:
            seen = cell.get()
            await trio.lowlevel.checkpoint()
            cell.set(seen + 1)

        async with trio.open_nursery() as nursery:
            for _ in range(calls):
                nursery.start_soon(add)
        return cell.get()

    return program


def test_schedules_to_a_bug_are_those_that_a_search_runs() -> None:
    """For each policy and seed: the place of the first failure in the very same sample."""
    rows = lab.schedules_to_bug(_LOST.program, _LOST.check, tries=4, most=50, seed=7)
    names = list(dict.fromkeys(row["policy"] for row in rows))
    assert names == ["random walk", "PCT, depth 2", "PCT, depth 3", "POS", "URW"]
    assert [row["seed"] for row in rows[:4]] == [7, 8, 9, 10]
    for row in rows[:4]:
        report = sim.explore(_LOST.program, sim.Random(sim.RandomWalk(seed=row["seed"]), 50), _LOST.check)
        assert row["schedules"] == report.failures[0].execution.index + 1
    assert rows == lab.schedules_to_bug(_LOST.program, _LOST.check, tries=4, most=50, seed=7)
    assert len({row["schedules"] for row in rows}) > 1


def test_try_that_finds_nothing_says_that_it_gave_up() -> None:
    """A program that cannot fail runs as many schedules as it may; one that never succeeds runs one."""
    policies = {"walk": lambda seed: sim.RandomWalk(seed=seed)}
    [row] = lab.schedules_to_bug(_LOST.program, lambda execution: True, policies, tries=1, most=9)
    assert row == {"policy": "walk", "seed": 0, "schedules": 9, "gave_up": True}

    async def fails() -> None:
        raise ValueError("no")

    assert lab.schedules_to_bug(fails, None, policies, tries=1)[0]["schedules"] == 1

    def complains(execution: sim.Execution) -> None:
        assert execution.value == 3

    assert lab.schedules_to_bug(_LOST.program, complains, policies, tries=1)[0]["gave_up"] is False


def test_classes_and_schedules_are_counted_as_they_grow() -> None:
    """Two and three tasks of two steps: 6 and 90 schedules; the numbers of classes are those of the gallery."""
    rows = lab.classes_against_calls(_cells, [2, 3], most=200)
    assert [(row["calls"], row["what"], row["number"], row["how"]) for row in rows] == [
        (2, "schedules", 6, "enumerated"),
        (2, "classes", LITMUS["lost_update_2x1"].classes.number, "enumerated"),
        (3, "schedules", 90, "enumerated"),
        (3, "classes", LITMUS["lost_update_3x1"].classes.number, "enumerated"),
    ]


def test_what_is_too_large_is_estimated_or_left_open() -> None:
    """Four tasks have 2,520 schedules and hundreds of classes: with 20 executions nobody counts them."""
    schedules, classes = lab.classes_against_calls(_cells, [4], most=20, samples=400)
    assert (schedules["how"], classes["how"]) == ("estimated", "more than 20")
    assert 1_000 < schedules["number"] < 6_000
    assert classes["number"] is None


def test_collected_executions_are_those_of_the_exploration() -> None:
    """In its order, and no others, also when a failure of the report is simplified afterwards."""
    seen: list[tuple[int, ...]] = []

    def check(execution: sim.Execution) -> bool:
        seen.append(execution.choices)
        return execution.value == 2

    found = lab.collect(_LOST.program, sim.Exhaustive(), check)
    first = [execution.choices for execution in found.executions]
    assert first == seen
    assert (len(first), found.report.failed, found.report.verdict) == (6, 4, sim.FAIL)
    found.report.failures[-1].explain()
    assert len(seen) > 6
    assert [execution.choices for execution in found.executions] == first
    assert len(lab.collect(_LOST.program, sim.Exhaustive(), max_executions=2).executions) == 2


def test_collected_details_are_those_of_each_execution() -> None:
    """The same schedules, run once more with what cells held."""
    found = lab.collect(_LOST.program, sim.Exhaustive(), details=True)
    assert [execution.choices for execution in found.executions] == [
        execution.choices for execution in lab.collect(_LOST.program, sim.Exhaustive()).executions
    ]
    assert all("details" in execution.trace.notes for execution in found.executions)
    assert "counter = 1" in view.slider(found.executions).html


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2", None])
def test_numbers_that_are_none_are_refused(number: Any) -> None:
    """Before anything is run."""
    with pytest.raises(DefinitionRefused, match="tries"):
        lab.schedules_to_bug(_LOST.program, tries=number)
    with pytest.raises(DefinitionRefused, match="most"):
        lab.schedules_to_bug(_LOST.program, most=number)
    with pytest.raises(DefinitionRefused, match="most"):
        lab.classes_against_calls(_cells, [2], most=number)


@pytest.mark.parametrize("policies", [{}, {"a": 3}, [sim.Fifo]])
def test_policies_that_are_none_are_refused(policies: Any) -> None:
    """They are functions of a seed, by name."""
    with pytest.raises(DefinitionRefused, match="policies"):
        lab.schedules_to_bug(_LOST.program, _LOST.check, policies)

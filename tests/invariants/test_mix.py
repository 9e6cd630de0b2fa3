"""Mixes, scripted calls and one simulated run."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from toolrt import sim
from toolrt.errors import DefinitionRefused, ReplayDiverged
from toolrt.invariants import Mix, check, simulate
from toolrt.invariants.script import AddCell, AppendFile, ReadCell, ReadFile, Scripted, Shield, Sleep, WriteFile
from toolrt.model import READ, WRITE, Claim

TWO = Mix([Scripted([Sleep(1), AppendFile("f", "a")], says="claims"), Scripted([AppendFile("f", "b")])])


def test_claims_of_a_script_cover_what_it_does() -> None:
    """Each cell and file once, WRITE where it may change."""
    call = Scripted([ReadCell("a"), AddCell("b", "x"), ReadFile("f"), WriteFile("f", "y")])
    assert call.claims == (
        Claim(("cell", "a"), READ),
        Claim(("cell", "b"), WRITE),
        Claim(("file", "f"), WRITE),
    )


def test_simulate_notes_oracle_and_files() -> None:
    """The trace carries what law 7 needs."""
    execution = simulate(TWO)
    assert execution.trace.notes["files"] == {"f": "ab"}
    assert execution.trace.notes["oracle"]["files"] == {"f": "ab"}
    assert execution.trace.notes["oracle"]["versions"] == {"f": [None, "a", "ab"]}
    assert check(execution.trace) == []


def test_simulate_takes_choices_and_schedules() -> None:
    """A list of numbers, a schedule, its short form: the same run."""
    execution = simulate(TWO, [1, 0, 2, 1])
    assert simulate(TWO, execution.schedule).choices == execution.choices
    assert simulate(TWO, execution.schedule.short).choices == execution.choices
    assert simulate(TWO, list(execution.choices)).choices == execution.choices


def test_simulate_refuses_a_schedule_of_another_program() -> None:
    """A schedule is replayed exactly or not at all."""
    schedule = simulate(TWO).schedule
    with pytest.raises(ReplayDiverged):
        simulate(Mix([Scripted()]), schedule)


def test_completion_order_decides_when_calls_end() -> None:
    """Ranks are ends; equal ranks are a tie."""
    mix = Mix([Scripted([Sleep(9)], says="safe")] * 3)
    execution = simulate(mix, completion_order=[2, 0, 2])
    ends = {event.fields["call"]: event.time for event in execution.trace.of_kind("call.ended")}
    assert ends == {0: 3, 1: 1, 2: 3}


def test_call_that_lasts_keeps_its_shields() -> None:
    """Only sleeps are replaced, where the first one stood."""
    assert Scripted([Shield(2), Sleep(1), Sleep(1)]).lasting(5) == Scripted([Shield(2), Sleep(5)])
    assert Scripted([Shield(2)]).lasting(5) == Scripted([Sleep(5), Shield(2)])
    assert Scripted([Shield(2), Sleep(1)]).seconds == 3


@pytest.mark.parametrize("ranks", [[0], [0, -1], [0, 1, 2], 5, ["a", 0], "01", [0.5, 0], [True, 0]], ids=repr)
def test_completion_order_that_does_not_fit_is_refused(ranks: Any) -> None:
    """One rank for each call, a whole number, 0 or more."""
    with pytest.raises(DefinitionRefused, match="2 ranks"):
        TWO.with_completion_order(ranks)
    with pytest.raises(DefinitionRefused, match="2 ranks"):
        simulate(TWO, completion_order=ranks)


@pytest.mark.parametrize("schedule", [[-1], [0, True], ["a"], 5], ids=repr)
def test_schedule_of_what_are_no_choices_is_refused(schedule: Any) -> None:
    """Small numbers, 0 or more; a text is a schedule in its short form."""
    with pytest.raises(DefinitionRefused, match="0 or more"):
        simulate(TWO, schedule)


@pytest.mark.parametrize("mix", [None, [], "mix"], ids=repr)
def test_what_is_no_mix_is_refused(mix: Any) -> None:
    """Only a mix is simulated."""
    with pytest.raises(DefinitionRefused, match="expected a Mix"):
        simulate(mix)


@pytest.mark.parametrize(
    ("field", "expected", "values"),
    [
        ("calls", "Scripted calls", [5, None]),
        ("lanes", "by_claims, by_safety, parallel, serial", ["foo", None, ["serial"]]),
        ("limit", "1 or more, or None", [0, -1, True, 1.5, "1"]),
        ("delays", "virtual seconds", [5, [-1], [True], ["a"], [math.inf], [math.nan]]),
        ("cancel_after", "virtual seconds, 0 or more, or None", [-1, True, "a", math.nan, math.inf]),
        ("reader", "eager, slow, none", ["foo", None]),
        ("files", "texts by name", [5, {"a": 1}, {1: "a"}, ["a"]]),
        ("state", "texts by name", [5, {"a": 1}]),
    ],
)
def test_mix_refuses_what_a_field_cannot_be(field: str, expected: str, values: list[Any]) -> None:
    """When it is made, in the words of the house."""
    for value in values:
        with pytest.raises(DefinitionRefused, match=re.escape(expected)) as caught:
            Mix(**{"calls": [Scripted()], field: value})
        assert caught.value.what == f"Mix({field})"


def test_mix_takes_what_a_field_can_be() -> None:
    """The least of each."""
    mix = Mix([], "serial", None, [0, 0.5], 0, False, "none", {"a": ""}, {"b": ""})
    assert (mix.limit, mix.delays, mix.cancel_after) == (None, (0, 0.5), 0)
    assert Mix([Scripted()], limit=1).limit == 1


def test_what_is_no_call_and_no_action_is_refused() -> None:
    """A mix holds scripted calls, a scripted call holds actions."""
    with pytest.raises(DefinitionRefused):
        Mix(["nothing"])  # type: ignore[list-item]
    with pytest.raises(DefinitionRefused):
        Scripted([Sleep])  # type: ignore[list-item]


def test_ending_is_counted_by_the_explorer() -> None:
    """Each execution has a world of its own, and a value that can be counted."""
    report = sim.explore(TWO.program(), sim.Random(sim.RandomWalk(seed=0), 10), check=TWO.check)
    assert report.verdict is sim.PASS
    assert [str(ending) for ending in report.outcomes] == ["ok ok; f='ab'"]

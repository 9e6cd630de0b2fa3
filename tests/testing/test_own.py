"""A policy, a law and a mutant of a user's own, made as the pages say, through explorer, census, table and pictures.

Nothing here is imported from a module whose name begins with an underscore.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import Phase, find, given, settings

import toolrt
from toolrt import LaneChoice, PolicyCall, invariants, sim, testing, view
from toolrt.errors import DefinitionRefused, PolicyRefused
from toolrt.invariants.script import AppendFile, ChangeState, Scripted, SeeState, Sleep, SubBatch
from toolrt.order import Machine
from toolrt.trace import Trace

Lane = tuple[PolicyCall, ...]


@attrs.frozen
class PerLane:
    """At most so many calls share a lane."""

    most: int = 2
    gives_up: tuple[str, ...] = ()

    def place(self, call: PolicyCall, lane: Lane) -> LaneChoice:
        if not toolrt.by_claims(call.tool, call.input):
            return LaneChoice.ALONE
        return LaneChoice.JOIN if len(lane) < self.most else LaneChoice.OPEN


@attrs.frozen
class Together:
    """All calls share one lane, which does not end like a serial run."""

    gives_up: tuple[str, ...] = ()

    def place(self, call: PolicyCall, lane: Lane) -> bool:
        return True


class Shared:
    """Counts for all batches together, which it must not."""

    def __init__(self) -> None:
        self.count = 0

    def place(self, call: PolicyCall, lane: Lane) -> bool:
        self.count += 1
        return self.count % 2 == 0


def last_first(ready: Sequence[PolicyCall]) -> PolicyCall:
    """The ready call of the highest call_index."""
    return ready[-1]


def not_ready(ready: Sequence[PolicyCall]) -> Any:
    """No call at all."""
    return None


def by_letter(tool: toolrt.Tool, input: Any) -> bool:
    """A policy of two arguments: it sees no lane."""
    return tool.name in ("tool0", "tool1")


@invariants.law("two_per_lane", "No lane has more than two calls.")
def two_per_lane(trace: Trace) -> Iterator[str]:
    calls = Counter((event.fields["batch"], event.fields["lane"]) for event in trace.of_kind("ticket.taken"))
    yield from (f"lane {lane} of {batch} has {count}" for (batch, lane), count in calls.items() if count > 2)


def forgets_to_open(place: Callable[..., None]) -> Callable[..., None]:
    return lambda self, call, shared, opens=False: place(self, call, shared)


def str_of(lanes: Any) -> str:
    """The same in every process."""
    return getattr(lanes, "__name__", repr(lanes))


QUICK = settings(max_examples=5, database=None, deadline=None, phases=[Phase.generate])
LAWS = {**invariants.LAWS, "two_per_lane": two_per_lane}
THREE = [Scripted([Sleep(1), AppendFile(name, "x")]) for name in "abc"]
STALE = [Scripted([ChangeState("x", "a")], says="nothing"), Scripted([SeeState("x")], says="nothing")]
MUTANT = invariants.Mutant(
    "forgets to open",
    "two_per_lane",
    "A call that opens a lane joins the one before.",
    lambda: invariants.patched(Machine, "place", forgets_to_open),
    invariants.Mix(THREE, lanes=PerLane()),
)


def explored(mix: invariants.Mix, n: int = 3, **laws: Any) -> sim.Report:
    return sim.explore(mix.program(), sim.Random(sim.RandomWalk(seed=1), n), mix.check)


def test_this_test_and_the_pages_use_public_names_alone() -> None:
    """What a user can do without looking inside."""
    root = Path(__file__).parents[2]
    pages = [root / "docs" / "how-to" / f"own-{what}.md" for what in ("policy", "law", "mutant")]
    for page in (*pages, Path(__file__)):
        assert not re.findall(r"^(?:from|import) toolrt\S*\._", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("lanes", [PerLane(1), PerLane(), by_letter, toolrt.serial, "parallel"], ids=str_of)
@pytest.mark.parametrize("slots", [None, last_first])
def test_own_policy_is_explored(lanes: Any, slots: Any) -> None:
    """All laws hold, and the report names what was left out."""
    mix = invariants.Mix(THREE, lanes=lanes, slots=slots, limit=1)
    report = explored(mix)
    assert report.verdict is sim.PASS
    assert any("last_first" in what for what in report.leaves_out) is (slots is not None)
    assert ("Left out: " in str(report)) is bool(report.leaves_out)


def test_broken_law_that_is_not_declared_is_a_failure() -> None:
    """One that is declared is skipped, and only that one."""
    assert explored(invariants.Mix(STALE, lanes=Together(), state={"x": "0"})).verdict is sim.FAIL
    declared = invariants.Mix(STALE, lanes=Together(("same_as_serial",)), state={"x": "0"})
    report = explored(declared)
    assert report.verdict is sim.PASS
    assert report.leaves_out == ("same_as_serial, which the lane policy Together gives up",)
    other = invariants.Mix(STALE, lanes=Together(("two_per_lane",)), state={"x": "0"})
    assert explored(other).verdict is sim.FAIL
    verdicts = invariants.verdicts(invariants.simulate(declared).trace)
    assert [law for law, said in verdicts.items() if said is invariants.LawVerdict.GIVEN_UP] == ["same_as_serial"]


def test_own_law_is_given_up_in_batches_of_the_policy_that_says_so() -> None:
    """In a sub-batch as in the batch around it; under another policy the law counts."""
    inside = [Scripted([SubBatch(THREE)])]
    for calls in (THREE, inside):
        for gives_up, laws in (((), ["two_per_lane"]), (("two_per_lane",), [])):
            trace = invariants.simulate(invariants.Mix(calls, lanes=PerLane(9, gives_up))).trace
            assert [found.law for found in invariants.check(trace, LAWS)] == laws


@pytest.mark.seldom
def test_census_takes_policies_and_names_what_they_give_up() -> None:
    """Every trace of every batch of two calls of two kinds, one slot for both."""
    kinds = [invariants.KINDS[name] for name in ("writes the cell", "says something")]
    census = invariants.exhaust(invariants.all_batches(2, kinds, lanes=PerLane(1), slots=last_first, limit=1), LAWS)
    assert census.ok
    assert "left out: the call order of slots" in str(census)
    batches = list(invariants.all_batches(2, STALE, lanes=Together()))
    assert {alarm.violation.law for alarm in invariants.exhaust(batches).alarms} == {"same_as_serial"}
    batches = [attrs.evolve(mix, lanes=Together(("same_as_serial",))) for mix in batches]
    declared = invariants.exhaust(batches)
    assert declared.ok
    assert declared.to_json()["left_out"] == ["same_as_serial, which the lane policy Together gives up"]
    with pytest.raises(DefinitionRefused, match="same_as_seriel"):
        invariants.exhaust([attrs.evolve(batches[0], lanes=Together(("same_as_seriel",)))])


@pytest.mark.seldom
def test_own_mutant_is_caught_by_the_own_law_alone() -> None:
    """By the table, by the explorer and by the census; unbroken, none trips."""
    mix = MUTANT.workload
    table = invariants.table(2, mutants=[MUTANT], laws=LAWS, workloads=[mix])
    assert table.ok
    assert table.rows[0].alone
    batch = next(invariants.all_batches(3, [Scripted([AppendFile("f", "x")])], lanes=PerLane()))
    batch.oracle()
    batch.serial()
    with MUTANT.apply():
        assert invariants.exhaust([batch], LAWS).alarms[0].violation.law == "two_per_lane"
        assert "lane 1" not in view.lanes(invariants.simulate(mix))
    assert invariants.exhaust([batch], LAWS).ok


def test_pictures_name_the_policies() -> None:
    """Text, SVG and page."""
    execution = invariants.simulate(invariants.Mix(THREE, lanes=PerLane(), slots=last_first, limit=1))
    assert "partition: PerLane, slots last_first" in view.lanes(execution)
    assert "PerLane, slots last_first" in view.text(execution)
    assert "PerLane, slots last_first" in view.show(execution).html


@settings(max_examples=15, deadline=None)
@given(mix=testing.tool_mixes(lanes=[PerLane(), PerLane(1), by_letter], slots=[last_first, None], max_calls=4))
def test_random_batches_keep_all_laws_under_own_policies(mix: invariants.Mix) -> None:
    """Whatever is drawn."""
    assert not isinstance(mix.lanes, str)
    assert mix.check(invariants.simulate(mix)) == []


@pytest.mark.parametrize("lanes", [PerLane(), toolrt.by_safety])
def test_strategy_takes_one_policy(lanes: Any) -> None:
    """As it takes several."""
    mix = find(testing.tool_mixes(lanes=lanes), lambda mix: True, settings=QUICK)
    assert mix.lanes in (lanes, getattr(lanes, "__name__", ""))


@pytest.mark.parametrize("lanes", [5, PerLane, [PerLane], "by_luck", []], ids=str_of)
def test_strategy_refuses_what_is_no_policy(lanes: Any) -> None:
    """With what was expected."""
    with pytest.raises(DefinitionRefused, match=r"tool_mixes\(lanes\).*expected"):
        find(testing.tool_mixes(lanes=lanes), lambda mix: True, settings=QUICK)


def test_mix_of_own_policies_is_a_value() -> None:
    """Equal and pasteable; toolrt's own policies stand by name."""
    mix = invariants.Mix(THREE, lanes=PerLane(), slots=last_first)
    assert mix == invariants.Mix(THREE, lanes=PerLane(2), slots=last_first)
    assert "lanes=PerLane(most=2, gives_up=())" in repr(mix)
    assert "slots=last_first" in repr(mix)
    assert "lanes=by_letter" in repr(invariants.Mix(THREE, lanes=by_letter))
    assert invariants.Mix(THREE, lanes=toolrt.by_safety).lanes == "by_safety"
    assert " at 0x" not in repr(invariants.Mix([], lanes=Shared()))


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("lanes", PerLane, DefinitionRefused),
        ("lanes", 5, DefinitionRefused),
        ("lanes", Together(("batch_ends",)), DefinitionRefused),
        ("lanes", Shared(), PolicyRefused),
        ("slots", 5, DefinitionRefused),
        ("slots", PerLane, DefinitionRefused),
    ],
)
def test_wrong_policy_is_refused_when_the_mix_is_made(field: str, value: Any, error: type[Exception]) -> None:
    """Before anything is run, with what was expected."""
    with pytest.raises(error, match="expected"):
        invariants.Mix(THREE, **{field: value})


def test_slot_policy_that_fails_fails_the_exploration() -> None:
    """It is an error of the execution; every call has its result all the same."""
    report = explored(invariants.Mix(THREE, slots=not_ready, limit=1), 1)
    assert report.verdict is sim.FAIL
    group = report.failures[0].error
    assert isinstance(group, ExceptionGroup)
    (error,) = group.exceptions
    assert isinstance(error, PolicyRefused)
    assert len(error.outcome.results) == 3

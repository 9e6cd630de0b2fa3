"""The teaching runtime: as short as its page says, and it keeps the laws that the page says it keeps."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt import sim
from toolrt.errors import DefinitionRefused
from toolrt.invariants import LAWS, Mix, executed_by
from toolrt.invariants.script import (
    AddCell,
    AppendFile,
    BreakState,
    ChangeState,
    Fail,
    Pause,
    ReadCell,
    ReadFile,
    Refuse,
    Say,
    Scripted,
    SeeState,
    Sleep,
    SubBatch,
    WriteFile,
)
from toolrt.testing import schedules

PAGE = Path(__file__).parents[2] / "docs/explanation/teaching-runtime.md"
TEXT = PAGE.read_text(encoding="utf-8")
#: The first block of the page, and nothing else of it.
SOURCE = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[0]
#: Law, what to change, and into what: the rows of the page's table.
CHANGES = re.findall(r"^\| `(\w+)` \| `([^|]+)` \| `([^|]+)` \|$", TEXT, re.MULTILINE)


def runtime(source: str) -> Callable[..., Any]:
    """The runtime that a source text makes."""
    namespace: dict[str, Any] = {}
    exec(compile(source, PAGE.name, "exec"), namespace)
    found: Callable[..., Any] = namespace["run_tools"]
    return found


#: Something for every law to look at.
BUSY = Mix(
    [
        Scripted([Say("begun"), Sleep(2), Say("half"), ChangeState("x", "a"), ChangeState("x", "b")], says="safe"),
        Scripted([Sleep(1), BreakState(), ChangeState("x", "c"), SeeState("x")], says="safe"),
        Scripted([Fail("no network")], says="safe"),
        Scripted([AppendFile("f", "first "), Sleep(1)]),
        Scripted([AppendFile("f", "second")]),
        Scripted([ReadFile("f"), SeeState("x")], says="safe"),
        Scripted(invalid="unknown"),
        Scripted([AddCell("a", "1"), Refuse("not this")], says="nothing"),
    ],
    lanes="by_safety",
    limit=None,
    state={"x": "0"},
)


def test_runtime_is_about_sixty_lines() -> None:
    """Of code: what is longer is not read in ten minutes. It knows Trio, and nothing of toolrt."""
    code = [line for line in SOURCE.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(code) <= 60
    assert re.findall(r"^(?:import|from) (\S+)", SOURCE, re.MULTILINE) == ["trio"]


def test_every_law_holds_in_every_schedule_of_a_busy_batch() -> None:
    """Progress, failures, an unknown tool, bad modifiers, files: under many schedules, one end, and no violation."""
    report = sim.explore(executed_by(runtime(SOURCE), BUSY), sim.Portfolio(60), BUSY.check)
    assert report.verdict is sim.PASS, report.failures[0].violations
    assert len(report.outcomes) == 1


_SAFE = st.lists(
    st.one_of(
        st.builds(Sleep, st.sampled_from([0.0, 1.0, 2.0])),
        st.sampled_from(
            [Pause(), Say("so"), SeeState("x"), BreakState(), Fail(), Refuse("no"), ReadFile("f"), ReadCell("a")]
        ),
        st.builds(ChangeState, st.sampled_from("xy"), st.sampled_from("ab")),
    ),
    max_size=4,
)
_ANY = st.lists(
    st.one_of(
        _SAFE.map(lambda found: found[0] if found else Pause()),
        st.builds(AppendFile, st.sampled_from("fg"), st.sampled_from("ab")),
        st.builds(WriteFile, st.sampled_from("fg"), st.sampled_from("ab")),
        st.builds(AddCell, st.sampled_from("ab"), st.sampled_from("ab")),
    ),
    max_size=3,
)
_CALLS = st.lists(
    st.one_of(
        st.builds(Scripted, _SAFE, says=st.just("safe")),
        st.builds(Scripted, _ANY, says=st.sampled_from(["claims", "nothing"])),
        st.just(Scripted(invalid="unknown")),
        st.builds(Scripted, _SAFE, says=st.just("safe"), call_id=st.just("twice")),
    ),
    max_size=5,
)


@given(calls=_CALLS, schedule=schedules())
def test_every_law_holds_for_any_batch(calls: list[Scripted], schedule: list[int]) -> None:
    """Whatever the calls do, and in whatever order their steps are made."""
    mix = Mix(calls, lanes="by_safety", limit=None, state={"x": "0"})
    execution = sim.run(executed_by(runtime(SOURCE), mix), sim.Choices(schedule))
    assert mix.check(execution) == []


@pytest.mark.parametrize(("law", "before", "after"), CHANGES, ids=[law for law, _, _ in CHANGES])
def test_changed_line_breaks_the_law_beside_it(law: str, before: str, after: str) -> None:
    """Each row of the page's table is a mutant, and its law, checked by itself, catches it."""
    assert SOURCE.count(before) == 1
    broken = runtime(SOURCE.replace(before, after))
    report = sim.explore(
        executed_by(broken, BUSY), sim.Portfolio(20), lambda execution: BUSY.check(execution, {law: LAWS[law]})
    )
    assert report.verdict is sim.FAIL
    assert {violation.law for violation in report.failures[0].violations} == {law}


def test_page_has_a_change_for_every_law_it_claims() -> None:
    """Nine laws: all but those on cancels, timeouts, stops, what is left, replays, claims and stale writes."""
    assert [law for law, _, _ in CHANGES] == [
        law
        for law in LAWS
        if law
        not in {
            "failure_contained",
            "cancel_truthful",
            "timeout_own_time",
            "nothing_left",
            "same_schedule_same_trace",
            "same_as_serial",
            "no_write_lost",
            "claims_hold",
        }
    ]


_LOSSES = {
    "answered_once": Mix([Scripted([Sleep(2)], says="safe")], lanes="by_safety", cancel_after=1, cancel_outside=True),
    "timeout_own_time": Mix([Scripted([Sleep(2)], says="safe", timeout=1)], lanes="by_safety"),
    "failure_contained": Mix([Scripted([Fail()], stops=True), Scripted(says="safe")], lanes="by_safety"),
    "no_needless_wait": Mix([Scripted([Sleep(1)], says="safe")] * 3, lanes="by_safety", limit=2),
}


@pytest.mark.parametrize("law", _LOSSES)
def test_law_that_it_does_not_keep_is_seen_broken(law: str) -> None:
    """Cancels, timeouts, stops and limits: the page says that it knows none, and toolrt's own runtime does."""
    mix = _LOSSES[law]
    assert law in {violation.law for violation in mix.check(sim.run(executed_by(runtime(SOURCE), mix)))}
    assert mix.check(sim.run(mix.program())) == []


@pytest.mark.parametrize(
    ("mix", "wanted"),
    [
        (Mix([]), 'lanes="by_safety"'),
        (Mix([Scripted()], lanes="by_safety", delays=[1]), "no delays"),
        (Mix([Scripted()], lanes="by_safety", reader="slow"), "an eager reader"),
        (Mix([Scripted()], lanes="by_safety", cancel_after=1), "no cancel from inside"),
        (Mix([Scripted(approval="deny")], lanes="by_safety"), "no approvals"),
        (Mix([Scripted([SubBatch([Scripted()])])], lanes="by_safety"), "no sub-batches"),
        (Mix([Scripted(invalid="input")], lanes="by_safety"), "input that fits"),
        (Mix([Scripted(says="by input")], lanes="by_safety"), "by input"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mix_that_such_a_runtime_cannot_know_is_refused(mix: Mix, wanted: str) -> None:
    """What its interface has no place for is refused before anything runs."""
    with pytest.raises(DefinitionRefused, match=wanted):
        executed_by(runtime(SOURCE), mix)


def test_answer_in_another_calls_slot_is_seen() -> None:
    """Also where both calls answer alike: an answer knows whose it is."""
    swapped = SOURCE.replace("for tool in tracked], context", "for tool in reversed(tracked)], context")
    mix = Mix([Scripted(says="safe")] * 2, lanes="by_safety")
    found = mix.check(sim.run(executed_by(runtime(swapped), mix)), {"answered_once": LAWS["answered_once"]})
    assert {violation.call for violation in found} == {0, 1}

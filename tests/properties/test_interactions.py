"""Runtimes that are wrong only where features meet: a batch of their own shows each, and random batches find it."""

from __future__ import annotations

from typing import Any

import pytest

from tests._profile import FULL
from tests.invariants._interactions import INTERACTIONS
from toolrt.invariants import Mutant, check, simulate
from toolrt.invariants.script import (
    AddCell,
    AddCells,
    ChangeState,
    FollowCell,
    LeaveOpen,
    OverwriteState,
    ReadCell,
    Scripted,
    Shield,
    Sleep,
    SubBatch,
)
from toolrt.runtime._approval import Approval
from toolrt.testing import Mix, mutation_score


@pytest.mark.parametrize("mutant", INTERACTIONS, ids=lambda mutant: mutant.name)
def test_batch_of_its_own_shows_it(mutant: Mutant) -> None:
    """Its law trips, and none on the runtime as it is."""
    assert check(simulate(mutant.workload).trace) == []
    mutant.workload.oracle()
    with mutant.apply():
        broken = {found.law for found in check(simulate(mutant.workload).trace)}
    assert mutant.law in broken


@pytest.mark.seldom
@pytest.mark.slow
def test_random_batches_find_all_of_them() -> None:
    """Within 3,000; those that take longest in the full run only.  docs/explanation/mutation.md has five seeds."""
    rare = ("who leaves the line", "everything is no key", "late is not asked", "absence is no read")
    score = mutation_score(3_000, [one for one in INTERACTIONS if FULL or not one.name.startswith(rare)], seeds=[0])
    assert score.ok, score


def test_approval_that_is_asked_for_twice_breaks_the_first_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is an event, so the law sees it also where the answer is the same."""
    ask = Approval.ask

    def twice(approval: Any, call: Any) -> None:
        ask(approval, call)
        call.state = type(call.state).UNAPPROVED
        ask(approval, call)

    mix = Mix([Scripted([AddCell("a", "x")], approval="allow", approval_after=1.0)])
    assert check(simulate(mix).trace) == []
    monkeypatch.setattr(Approval, "ask", twice)
    assert "answered_once" in {found.law for found in check(simulate(mix).trace)}


@pytest.mark.parametrize("schedule", [[], [1] * 40])
def test_late_call_that_a_denial_lets_in_is_asked_for_once(schedule: list[int]) -> None:
    """Its claims become known while the calls before it are let in; a person would see the question twice."""
    mix = Mix(
        [
            Scripted([AddCell("t/a", "p"), Sleep(1.0)]),
            Scripted([FollowCell("t/a", "r")], says="after"),
            Scripted([AddCells("t", "q")], approval="deny"),
            Scripted([FollowCell("t/b", "q")], says="after"),
        ]
    )
    trace = simulate(mix, schedule).trace
    for kind in ("approval.asked", "ticket.taken"):
        assert [event.fields["call"] for event in trace.events if event.kind == kind] == [0, 1, 2, 3]
    assert check(trace) == []


#: Batches on which a law tripped though the runtime was right.
RIGHT = {
    "a lane that is split where claims become known": Mix(
        [
            Scripted([AddCell("t/a", "q"), Sleep(1.0)]),
            Scripted([FollowCell("t/a", "p"), Sleep(1.0)], says="after"),
            Scripted([AddCells("", "r"), OverwriteState("y", "r")]),
            Scripted([AddCell("a", "s"), OverwriteState("y", "r")]),
        ]
    ),
    "a cancel before the lane behind a split begins": Mix(
        [
            Scripted([AddCell("t/a", "q"), Sleep(1.0)]),
            Scripted([FollowCell("t/a", "p"), Sleep(3.0)], says="after"),
            Scripted([AddCells("", "r"), OverwriteState("y", "r")]),
        ],
        cancel_after=2.0,
    ),
    "stale by a call that is stale no more": Mix(
        [
            Scripted([Sleep(2.0), OverwriteState("y", "p")], says="safe"),
            Scripted([ChangeState("x", "q"), OverwriteState("y", "q")], says="safe"),
            Scripted([OverwriteState("x", "p")], says="safe"),
        ],
        cancel_after=1.0,
    ),
    "a pure call that was to run again when a cancel came": Mix(
        [
            Scripted([Sleep(2.0), OverwriteState("x", "a", True)]),
            Scripted([Sleep(2.0), OverwriteState("x", "b")], pure=True),
        ],
        cancel_after=2.0,
    ),
    "a call that leaves its lane when its claims become known": Mix(
        [
            Scripted([AddCell("a", "p"), OverwriteState("x", "a", True)]),
            Scripted([FollowCell("a", "q"), OverwriteState("x", "b", True)], says="after"),
        ]
    ),
    "a sub-batch that is left open when the time was over in a shield": Mix(
        [Scripted([Shield(3.0), LeaveOpen("batch")], says="safe", timeout=1.5)]
    ),
    "a sub-batch behind one that is left open": Mix(
        [Scripted([LeaveOpen("batch"), SubBatch([Scripted([ReadCell("a")])])])]
    ),
    "a call that is cancelled alone, with a thread inside it": Mix(
        [Scripted([SubBatch([Scripted([Sleep(3.0), AddCell("b", "q"), Sleep(1.0)], sync=True, thread=True)])])],
        cancel_after=1.25,
        cancel_call=0,
    ),
    "a pure call that runs again is approved already": Mix(
        [
            Scripted([ChangeState("z", "p")], says="safe", approval="allow"),
            Scripted([OverwriteState("z", "p")], approval="allow", pure=True),
        ]
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_runtime_breaks_no_law(name: str) -> None:
    """Random mixes had not reached these."""
    for schedule in ([], [1, 0, 2, 0, 3, 3, 3, 3, 1, 0]):
        execution = simulate(RIGHT[name], schedule)
        assert execution.error is None
        assert check(execution.trace) == []

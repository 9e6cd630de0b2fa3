"""A batch is stopped before and after each commit, and resumed, and stopped again while it is resumed."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from tests.store._crashes import CALLS, OUTCOMES, World, first, later, wrong
from toolrt import ToolCall
from toolrt.order import CallRecord
from toolrt.runtime._journal import BatchJournal

#: More than a batch has moments.
MOST = 200


def run(*processes: Any) -> Any:
    """Run processes one after the other, each in a Trio run of its own."""
    found = None
    for process, world, crash_at in processes:
        found = trio.run(process, world, crash_at, clock=trio.testing.MockClock(autojump_threshold=0))
    return found


def problems(calls: list[ToolCall], second: bool) -> list[str]:
    """Stop a batch at each moment, and with `second` stop its resumption at each moment; gives what went wrong."""
    whole = run((first, World(calls=calls), None))
    found: list[str] = []
    for crash_at in range(MOST):
        again = 0
        while True:
            world = World(calls=calls)
            if run((first, world, crash_at)) is not None:
                assert crash_at > 2 * len(calls), "the batch must have this many moments"
                return found
            if world.records.read("b") is None:  # it crashed before it began
                break
            if second and run((later, world, again)) is not None:
                second_ended = True
            else:
                second_ended = not second
            outcome = run((later, world, None))
            found += [f"{crash_at}, {again}: {problem}" for problem in wrong(world, outcome, whole)]
            if second_ended or found:
                break
            again += 1
    raise AssertionError("a batch never ends without a crash")


def test_batches_without_a_crash_have_all_outcomes() -> None:
    """The batch that is stopped below has each outcome that needs no cancel, and its effects happen once."""
    world = World()
    outcome = run((first, world, None))
    assert [result.outcome for result in outcome.results] == OUTCOMES
    assert set(world.effects.values()) == {1}
    assert len(world.delivered) == len(CALLS)
    assert run((later, world, None)) == outcome, "resuming a batch that is over gives its outcome again"


def test_no_effect_is_lost_or_twice_at_any_crash_point() -> None:
    """Before and after each commit: no effect twice, none lost, results in call order, and as delivered before."""
    assert problems(CALLS, second=False) == []


@pytest.mark.seldom
def test_no_effect_is_lost_or_twice_at_two_crash_points() -> None:
    """The same where the process that resumes the batch is stopped, too, at each of its moments."""
    assert problems([CALLS[0], CALLS[1], CALLS[8]], second=True) == []


async def starts_unseen(journal: BatchJournal, call: CallRecord) -> None:
    """A mutant: what is to be durable before a call starts is written with what it returns."""
    journal._shared.notes.append(["start", [*journal._place, call.call_index]])


async def delivers_first(journal: BatchJournal, call: CallRecord, value: Any) -> Any:
    """A mutant: a result is handed out, and written at the end of the batch."""
    return value


def test_an_intent_that_is_written_late_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that writes an intent after the start lets an effect happen twice."""
    monkeypatch.setattr(BatchJournal, "intend", starts_unseen)
    assert any("twice" in problem for problem in problems([CALLS[0]], second=False))


def test_a_result_that_is_written_late_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that writes a result after it was handed out gives another one later."""
    monkeypatch.setattr(BatchJournal, "returned", delivers_first)
    assert any("delivered ok, then interrupted" in problem for problem in problems(CALLS[4:5], second=False))

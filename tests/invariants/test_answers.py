"""Laws 1 to 3 on traces written by hand: silent on a good one, and on a bad one only the law in question speaks."""

from __future__ import annotations

from typing import Any

import pytest


def finished(made: Any) -> Any:
    """Both calls run at once and end well."""
    made.start(0)
    made.start(1)
    made.wait(1)
    for call in (0, 1):
        made.settle(call)
        made.end(call)
    return made


def test_good_trace_breaks_no_law(simple: Any, broken: Any) -> None:
    """Everything in its place is no violation."""
    made = finished(simple())
    made.ask()
    made.deliver(0)
    made.ask()
    made.deliver(1)
    made.merge()
    made.ask()
    made.merge_delivered()
    made.ask()
    made.leave()
    assert broken(made) == {}


def test_answered_once_misses_a_result(simple: Any, broken: Any) -> None:
    """A call without a result is named."""
    made = finished(simple())
    made.merge()
    made.results.pop()
    made.leave()
    found = broken(made)
    assert list(found) == ["answered_once"]
    assert "expected 2 results" in found["answered_once"][0]


@pytest.mark.parametrize(
    ("field", "value"), [("call_id", "id1"), ("name", "other"), ("call_index", 1), ("outcome", "error")]
)
def test_answered_once_sees_a_wrong_slot(simple: Any, broken: Any, field: str, value: Any) -> None:
    """Neither id, name, index nor outcome may be another's."""
    made = finished(simple())
    made.merge()
    made.results[0] = {**made.results[0], field: value}
    made.leave()
    found = broken(made)
    assert list(found) == ["answered_once"]
    assert repr(value) in found["answered_once"][0]


def test_answered_once_sees_a_second_answer(simple: Any, broken: Any) -> None:
    """A second answer is one too many."""
    made = finished(simple())
    made.settle(1, "ok")
    made.merge()
    made.leave()
    assert broken(made) == {"answered_once": ["expected one answer, got ok, then ok"]}


def test_answered_once_allows_a_skip_after_a_stop(tape: Any, broken: Any) -> None:
    """What follows a stop is discarded, though it had finished."""
    made = tape()
    made.submit(0, 1)
    made.event("batch.sealed")
    made.begin(0, 1)
    made.take(0, stops=True)
    made.take(1, ("read", "x"), reads_only=True)
    made.start(0)
    made.start(1)
    made.settle(1)
    made.end(1)
    made.wait(1)
    made.settle(0, "error")
    made.event("batch.stopped", by=0)
    made.settle(1, "skipped", "skipped: call 0 failed")
    made.end(0)
    made.merge()
    made.leave()
    assert broken(made) == {}


@pytest.mark.parametrize(("outcome", "error"), [("ok", "but"), ("lost", "why")])
def test_answered_once_sees_an_outcome_that_is_none(simple: Any, broken: Any, outcome: str, error: str) -> None:
    """There are eight outcomes, and all but OK say why."""
    made = finished(simple())
    made.raw = [event for event in made.raw if event[3] != "call.settled" or event[4]["call"] != 0]
    made.settle(0, outcome, error)
    made.merge()
    made.leave()
    assert "answered_once" in broken(made)


def test_results_in_call_order_sees_another_order(simple: Any, broken: Any) -> None:
    """Result 1 before result 0 is out of order."""
    made = finished(simple())
    for call in (1, 0):
        made.ask()
        made.deliver(call)
    made.merge()
    made.leave()
    found = broken(made)
    assert list(found) == ["results_in_call_order"]
    assert "expected the result of call 0 next, got that of call 1" in found["results_in_call_order"]


def test_results_in_call_order_sees_a_late_delivery(simple: Any, broken: Any) -> None:
    """A result that was ready while the reader waited is late a second later."""
    made = simple()
    made.ask()
    made.start(0)
    made.start(1)
    made.settle(0)
    made.end(0)
    made.wait(1)
    made.settle(1)
    made.end(1)
    made.deliver(0)
    made.ask()
    made.deliver(1)
    made.merge()
    made.leave()
    found = broken(made)
    assert list(found) == ["results_in_call_order"]
    assert "at 0 s" in found["results_in_call_order"][0]


def test_results_in_call_order_does_not_time_a_production_run(simple: Any, broken: Any) -> None:
    """In wall time, late cannot be told from slow."""
    made = simple(virtual=False)
    made.ask()
    finished(made)
    made.wait(1)
    made.deliver(0)
    made.ask()
    made.deliver(1)
    made.merge()
    made.leave()
    assert broken(made) == {}


def test_results_in_call_order_sees_a_merge_too_early(simple: Any, broken: Any) -> None:
    """The merge follows the lane's last result."""
    made = finished(simple())
    made.merge()
    made.ask()
    made.deliver(0)
    made.ask()
    made.merge_delivered()
    made.ask()
    made.deliver(1)
    made.leave()
    found = broken(made)
    assert list(found) == ["results_in_call_order"]
    assert "before its merge" in found["results_in_call_order"][0]


def test_results_in_call_order_sees_what_is_kept_from_a_reader(simple: Any, broken: Any) -> None:
    """A reader that read to the end has seen everything."""
    made = finished(simple())
    made.ask()
    made.deliver(0)
    made.merge()
    made.ask()
    made.leave()
    assert "results_in_call_order" in broken(made)


def test_modifiers_in_call_order_sees_another_order(simple: Any, broken: Any) -> None:
    """Call 1 before call 0 is the wrong order."""
    made = finished(simple())
    made.merge((1, 0), (0, 0))
    made.leave()
    assert broken(made) == {
        "modifiers_in_call_order": ["expected modifiers by call and position, got [0, 0] after [1, 0]"]
    }


def test_modifiers_in_call_order_sees_those_of_a_failed_call(running: Any, broken: Any) -> None:
    """Only calls that returned have modifiers."""
    made = running()
    made.settle(0)
    made.settle(1, "timed_out")
    made.end(0, 1)
    made.merge((0, 0), (1, 0))
    made.leave()
    assert "modifiers of calls that returned" in broken(made)["modifiers_in_call_order"][0]


def test_modifiers_in_call_order_sees_a_lost_modifier(running: Any, broken: Any) -> None:
    """Each modifier is applied or rejected, once."""
    made = running()
    made.settle(0, modifiers=2)
    made.settle(1, modifiers=0)
    made.end(0, 1)
    made.merge((0, 0))
    made.leave()
    assert "expected its 2 modifiers" in broken(made)["modifiers_in_call_order"][0]


def test_modifiers_in_call_order_sees_a_merge_while_a_call_runs(running: Any, broken: Any) -> None:
    """A lane's modifiers apply at its end."""
    made = running()
    made.settle(0)
    made.end(0)
    made.merge((0, 0))
    made.settle(1)
    made.end(1)
    made.leave()
    assert "call 1 was still running" in broken(made)["modifiers_in_call_order"][0]


def test_modifiers_in_call_order_sees_a_state_from_nowhere(simple: Any, broken: Any) -> None:
    """A lane starts from what the one before it merged."""
    made = finished(simple())
    made.merge(state={"values": {"x": 1}})
    made.next_lane()
    made.begin(state={"values": {}})
    made.merge(state={"values": {"x": 1}})
    made.leave(state={"values": {"x": 1}})
    assert "lane 1 starts from" in broken(made)["modifiers_in_call_order"][0]

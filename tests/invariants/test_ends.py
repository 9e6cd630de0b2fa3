"""Laws 7 to 14 on traces written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.invariants._tapes import over
from toolrt.invariants import trace_digest


@pytest.fixture
def stopping(tape: Any) -> Any:
    """A call that stops the batch, a reader and a writer behind it; call 0 has failed."""
    made = tape()
    made.submit(0, 1, 2)
    made.event("batch.sealed")
    made.begin(0, 1, 2)
    made.take(0, stops=True)
    made.take(1, ("read", "x"), reads_only=True)
    made.take(2, ("write", "y"))
    made.start(0)
    made.start(1)
    made.wait(1)
    made.settle(0, "error")
    return made


# Law 7


def test_same_as_oracle_sees_another_result(running: Any, broken: Any) -> None:
    """The oracle says something else."""
    made = over(running(), 0, 1)
    other = {"call_index": 0, "outcome": "error", "content": None, "error": "no"}
    made.notes["oracle"] = {"results": [other], "state": {"values": {}}, "files": {}}
    assert broken(made) == {"same_as_oracle": ["outcome: expected 'error', got 'ok'"]}


def test_same_as_oracle_sees_another_state_and_other_files(running: Any, broken: Any) -> None:
    """State and files count as results do."""
    made = over(running(), 0, 1)
    made.notes |= {"oracle": {"results": [], "state": {"values": {"x": 1}}, "files": {"f": "a"}}, "files": {"f": "b"}}
    found = broken(made)
    assert list(found) == ["same_as_oracle"]
    assert len(found["same_as_oracle"]) == 2


def test_same_as_oracle_compares_finished_calls_after_a_cancel(running: Any, broken: Any) -> None:
    """What a cancel cut short is not compared, and a file may be any of the oracle's versions."""
    made = running()
    made.settle(0)
    made.end(0)
    made.event("batch.cancelled", reason="x", outside=False)
    made.settle(1, "interrupted")
    made.end(1)
    made.merge()
    made.leave()
    results = [{"call_index": call, "outcome": "ok", "content": None, "error": None} for call in (0, 1)]
    oracle = {
        "results": results,
        "state": {"values": {"y": 2}},
        "files": {"f": "ab"},
        "versions": {"f": ["", "a", "ab"]},
    }
    made.notes |= {"oracle": oracle, "files": {"f": "a"}}
    assert broken(made) == {}
    made.notes["files"] = {"f": "b"}
    assert list(broken(made)) == ["same_as_oracle"]


# Law 8


def test_progress_at_once_is_content(running: Any, broken: Any) -> None:
    """Sent, heard at once, and the result after it."""
    made = running()
    made.ask()
    made.say(0, 0)
    made.hear(0, 0)
    made.ask()
    assert broken(over(made, 0, 1)).keys() <= {"results_in_call_order"}


@pytest.mark.parametrize("numbers", [(1, 0), (0, 0)])
def test_progress_at_once_sees_another_order(running: Any, broken: Any, numbers: tuple[int, int]) -> None:
    """Messages of one call come in order, each once."""
    made = running()
    made.say(0, 0)
    made.say(0, 1)
    for number in numbers:
        made.ask()
        made.hear(0, number)
    assert any("in order" in detail for detail in broken(over(made, 0, 1))["progress_at_once"])


def test_progress_at_once_sees_a_late_message(running: Any, broken: Any) -> None:
    """The reader waited, and was told a second later."""
    made = running()
    made.ask()
    made.say(0, 0)
    made.wait(1)
    made.hear(0, 0)
    assert list(broken(over(made, 0, 1))) == ["progress_at_once"]


def test_progress_at_once_sees_a_message_after_the_result(running: Any, broken: Any) -> None:
    """After its result a call is silent."""
    made = running()
    made.say(0, 0)
    made.settle(0)
    made.end(0)
    made.ask()
    made.deliver(0)
    made.ask()
    made.hear(0, 0)
    found = broken(over(made, 1))["progress_at_once"]
    assert any("delivered after the result" in detail for detail in found)


def test_progress_at_once_keeps_nothing_for_a_late_reader(running: Any, broken: Any) -> None:
    """A reader that comes when the batch is over gets its results, and the count of what was dropped."""
    made = running()
    made.say(0, 0)
    over(made, 0, 1, dropped=[1, 0])
    for call in (0, 1):
        made.ask()
        made.deliver(call)
    made.ask()
    made.merge_delivered()
    assert broken(made) == {}


def test_progress_at_once_sees_a_needless_drop(running: Any, broken: Any) -> None:
    """There was room."""
    made = running()
    made.ask()
    made.say(0, 0, accepted=False)
    assert "although only 0" in broken(over(made, 0, 1))["progress_at_once"][0]


def test_progress_at_once_sees_a_drop_nobody_counted(running: Any, broken: Any) -> None:
    """What is dropped is counted."""
    made = running()
    made.say(0, 0)
    assert broken(over(made, 0, 1, dropped=[1, 0])) == {}
    made = running()
    made.say(0, 0)
    assert list(broken(over(made, 0, 1, dropped=[0, 0]))) == ["progress_at_once"]


def test_progress_at_once_sees_messages_of_who_has_not_started(simple: Any, broken: Any) -> None:
    """Only running tools speak."""
    made = simple()
    made.say(0, 0)
    made.start(0)
    made.start(1)
    assert "had not started" in broken(over(made, 0, 1))["progress_at_once"][0]


# Law 9


def test_failure_contained_is_content(stopping: Any, broken: Any) -> None:
    """What follows the stop is skipped, and told by whom."""
    stopping.event("batch.stopped", by=0)
    for call in (1, 2):
        stopping.settle(call, "skipped", "skipped: call 0 (t) failed")
    stopping.end(0, 1, 2)
    stopping.merge()
    stopping.leave()
    assert broken(stopping) == {}


def test_failure_contained_sees_a_missing_stop(stopping: Any, broken: Any) -> None:
    """A tool that asks to stop what follows is obeyed."""
    stopping.end(0)
    stopping.start(2)
    found = broken(over(stopping, 1, 2))
    assert list(found) == ["failure_contained"]
    assert "expected a stop" in found["failure_contained"][0]


def test_failure_contained_sees_effects_behind_a_stop(stopping: Any, broken: Any) -> None:
    """Nothing with effects has started."""
    stopping.start(2)
    stopping.event("batch.stopped", by=0)
    for call in (1, 2):
        stopping.settle(call, "skipped", "skipped: call 0 failed")
    stopping.end(0, 1, 2)
    stopping.merge()
    stopping.leave()
    assert "no later call with effects to start" in broken(stopping)["failure_contained"][0]


def test_failure_contained_sees_who_was_not_skipped(stopping: Any, broken: Any) -> None:
    """All that follows is skipped, finished or not."""
    stopping.event("batch.stopped", by=0)
    stopping.settle(1)
    stopping.settle(2, "skipped", "skipped: call 0 failed")
    stopping.end(0, 1, 2)
    stopping.merge()
    stopping.leave()
    assert broken(stopping) == {"failure_contained": ["call 0 stopped the batch; expected skipped, got ok"]}


def test_failure_contained_sees_a_skip_that_names_nobody(stopping: Any, broken: Any) -> None:
    """The error names the call that failed."""
    stopping.event("batch.stopped", by=0)
    for call in (1, 2):
        stopping.settle(call, "skipped", "a sibling errored")
    stopping.end(0, 1, 2)
    stopping.merge()
    stopping.leave()
    assert "to name call 0" in broken(stopping)["failure_contained"][0]


@pytest.mark.parametrize("outcome", ["interrupted", "not_started", "skipped"])
def test_failure_contained_sees_collateral(running: Any, broken: Any, outcome: str) -> None:
    """A failure that stops nothing leaves the others alone."""
    made = running()
    made.settle(0, "error")
    made.end(0)
    made.settle(1, outcome)
    made.end(1)
    made.merge()
    made.leave()
    assert "failure_contained" in broken(made)


# Law 10


def cancelled(made: Any) -> Any:
    """The batch is cancelled now."""
    made.event("batch.cancelled", reason="x", outside=False)
    return made


def test_cancel_truthful_is_content(simple: Any, broken: Any) -> None:
    """What ran was interrupted, what did not was not started."""
    made = simple(limit=1)
    made.start(0)
    made.wait(1)
    cancelled(made)
    made.settle(1, "not_started")
    made.end(1)
    made.settle(0, "interrupted")
    made.end(0)
    made.merge()
    made.leave()
    assert broken(made) == {}


def test_cancel_truthful_sees_a_late_start(simple: Any, broken: Any) -> None:
    """Nothing starts after a cancel."""
    made = cancelled(simple())
    made.start(0)
    made.settle(0, "interrupted")
    made.settle(1, "not_started")
    made.end(0, 1)
    made.merge()
    made.leave()
    assert broken(made) == {"cancel_truthful": ["started after the batch was cancelled"]}


@pytest.mark.parametrize(("ran", "said"), [(True, "not_started"), (False, "interrupted")])
def test_cancel_truthful_sees_a_lie(simple: Any, broken: Any, ran: bool, said: str) -> None:
    """Effects may have landed, or not: the outcome says which."""
    made = simple()
    if ran:
        made.start(0)
    made.start(1)
    cancelled(made)
    made.settle(0, said)
    made.settle(1, "interrupted")
    made.end(0, 1)
    made.merge()
    made.leave()
    assert list(broken(made)) == ["cancel_truthful"]


def test_cancel_truthful_sees_code_that_runs_on(running: Any, broken: Any) -> None:
    """Nothing of the batch runs once it is left."""
    made = over(running(), 0, 1)
    made.event("tool.effect", call=0, effect="late")
    assert broken(made) == {"cancel_truthful": ["tool.effect after the batch was left"]}


def test_cancel_truthful_sees_a_slow_answer(simple: Any, broken: Any) -> None:
    """What never started is answered at the cancel."""
    made = simple(limit=1)
    made.start(0)
    cancelled(made)
    made.wait(1)
    made.settle(1, "not_started")
    made.end(1)
    made.settle(0)
    made.end(0)
    made.merge()
    made.leave()
    assert "expected its answer at the cancel" in broken(made)["cancel_truthful"][0]


def test_cancel_truthful_sees_who_runs_on(running: Any, broken: Any) -> None:
    """A call that is not said to finish, and does not shield itself, ends at the cancel."""
    made = running()
    for event in made.raw[-2:]:
        event[4]["interrupt"] = "cancel"
    made.event("tool.effect", call=1, effect="shield")
    cancelled(made)
    made.wait(1)
    assert broken(over(made, 0, 1)) == {
        "cancel_truthful": ["expected it to be interrupted at the cancel, 0 s; it went on until 1 s"]
    }


def test_cancel_truthful_sees_half_a_file(running: Any, broken: Any) -> None:
    """A mutation that began has ended when the batch is left."""
    made = running()
    made.event("file.mutation_began", call=0, file="f")
    cancelled(made)
    made.settle(0, "interrupted")
    made.settle(1, "interrupted")
    made.end(0, 1)
    made.merge()
    made.leave()
    assert broken(made) == {"cancel_truthful": ["f: a mutation had begun and never ended"]}


# Law 11


def timed(made: Any, timeout: float | None, ran: float, outcome: str = "timed_out") -> Any:
    """One call with a timeout that runs so long."""
    made.submit(0)
    made.event("batch.sealed")
    made.begin(0)
    made.take(0)
    made.start(0, timeout=timeout)
    made.wait(ran)
    made.settle(0, outcome)
    made.end(0)
    made.merge()
    made.leave()
    return made


def test_timeout_own_time_is_content(tape: Any, broken: Any) -> None:
    """It ran as long as its timeout."""
    assert broken(timed(tape(), 2.0, 2.0)) == {}


@pytest.mark.parametrize(
    ("timeout", "ran", "outcome"),
    [(2.0, 1.0, "timed_out"), (None, 1.0, "timed_out"), (2.0, 3.0, "ok"), (2.0, 3.0, "timed_out")],
)
def test_timeout_own_time_sees_another_time(
    tape: Any, broken: Any, timeout: float | None, ran: float, outcome: str
) -> None:
    """Not earlier, not later, and not without a timeout."""
    assert list(broken(timed(tape(), timeout, ran, outcome))) == ["timeout_own_time"]


def test_timeout_own_time_allows_who_shields_itself(running: Any, broken: Any) -> None:
    """A tool that says so may go on."""
    made = running()
    made.raw[-2][4]["timeout"] = 1.0
    made.event("tool.effect", call=0, effect="shield")
    made.wait(3)
    assert broken(over(made, 0, 1)) == {}


def test_timeout_own_time_allows_a_production_clock_its_slack(tape: Any, broken: Any) -> None:
    """Wall clocks are compared within a hundredth."""
    assert broken(timed(tape(virtual=False), 2.0, 1.995)) == {}
    assert list(broken(timed(tape(virtual=False), 2.0, 1.5))) == ["timeout_own_time"]


def test_timeout_own_time_sees_claims_a_thread_has_lost(tape: Any, broken: Any) -> None:
    """A thread that runs on keeps its claims."""
    made = tape(virtual=False)
    made.submit(0, 1)
    made.event("batch.sealed")
    made.begin(0, 1)
    made.take(0, ("write", "x"))
    made.take(1, ("write", "x"))
    made.start(0, thread=True, timeout=1.0)
    made.wait(1)
    made.settle(0, "timed_out", "its thread cannot be stopped")
    made.start(1)
    made.settle(1)
    made.end(1, 0)
    made.merge()
    made.leave()
    assert "while the thread of call 0" in broken(made)["timeout_own_time"][0]


# Laws 12 to 14


@pytest.mark.parametrize("what", ["tasks", "tickets", "slots", "progress"])
def test_nothing_left_sees_what_is_left(running: Any, broken: Any, what: str) -> None:
    """Everything is counted down to nothing."""
    made = over(running(), 0, 1, left={what: 1})
    assert broken(made) == {"nothing_left": [f"expected no {what} to be left, got 1"]}


def test_nothing_left_sees_a_ticket_and_a_file(running: Any, broken: Any) -> None:
    """Tickets end, temporary files are gone."""
    made = running()
    made.settle(0)
    made.end(0)
    made.settle(1)
    made.merge()
    made.leave()
    made.notes["temp_files"] = [".f.tmp"]
    assert len(broken(made)["nothing_left"]) == 2


@pytest.mark.parametrize("ended", ["Deadlock", "StepLimit"])
def test_batch_ends_sees_an_execution_that_did_not(running: Any, broken: Any, ended: str) -> None:
    """A deadlock and a step limit are no end."""
    made = over(running(), 0, 1)
    made.meta["ended"] = ended
    assert list(broken(made)) == ["batch_ends"]


def test_batch_ends_sees_a_batch_that_is_not_left(running: Any, broken: Any) -> None:
    """Every batch that was opened is left."""
    made = running()
    made.settle(0)
    made.end(0)
    found = broken(made)
    assert list(found) == ["batch_ends"]
    assert "[1]" in found["batch_ends"][0]


def test_same_schedule_same_trace_compares_digests(running: Any, broken: Any) -> None:
    """The digest of another execution is in the notes."""
    made = over(running(), 0, 1)
    made.notes["replay_digest"] = trace_digest(made.trace())
    assert broken(made) == {}
    made.notes["replay_digest"] = "0" * 16
    assert list(broken(made)) == ["same_schedule_same_trace"]

"""The rarer ways to break laws 1 to 3 and 8 to 11, on traces written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.invariants._tapes import over


@pytest.fixture
def two_lanes(tape: Any) -> Callable[..., Any]:
    """Makes a tape of an exclusive call that has been merged, and another one behind it that has ended."""

    def make(thread: bool = False) -> Any:
        made = tape(virtual=False)
        made.submit(0, 1)
        made.event("batch.sealed")
        for call in (0, 1):
            made.begin(call, shared=False)
            made.take(call, shared=False)
            made.start(call, thread=thread)
            made.settle(call)
            if thread:
                made.say(call, 0, accepted=False)
                made.ask()
            made.end(call)
            made.merge()
            made.next_lane()
        made.leave()
        return made

    return make


def says(broken: Any, made: Any, law: str, words: str) -> bool:
    """Whether the law speaks, and of this."""
    return any(words in detail for detail in broken(made).get(law, ()))


def test_answer_to_a_call_nobody_submitted(running: Any, broken: Any) -> None:
    """There is no slot for it."""
    made = running()
    made.event("call.settled", call=7, outcome="ok", content=None, error=None)
    assert says(broken, over(made, 0, 1), "answered_once", "never submitted")


def test_call_that_was_never_settled(running: Any, broken: Any) -> None:
    """A result in the list is no answer if nothing fixed it."""
    made = running()
    made.results[1] |= {"outcome": "ok", "content": None, "error": None}
    made.end(1)
    assert says(broken, over(made, 0), "answered_once", "expected an answer, got none")


def test_reader_is_told_another_outcome(running: Any, broken: Any) -> None:
    """What the reader heard is what the result says."""
    made = running()
    made.settle(0)
    made.end(0)
    made.ask()
    made.event("result.delivered", call=0, outcome="error")
    assert says(broken, over(made, 1), "answered_once", "the reader was told error")


def test_result_before_it_is_settled(running: Any, broken: Any) -> None:
    """Nobody can know it yet."""
    made = running()
    made.ask()
    made.event("result.delivered", call=0, outcome="ok")
    assert says(broken, over(made, 0, 1), "results_in_call_order", "before it was settled")


def test_merge_of_a_lane_twice(running: Any, broken: Any) -> None:
    """Each lane has one merge."""
    made = over(running(), 0, 1)
    for _ in range(2):
        made.ask()
        made.merge_delivered()
    assert says(broken, made, "results_in_call_order", "once, got it again")


def handed(made: Any, *updates: int | str) -> Any:
    """The reader is handed results (numbers) and merges (texts)."""
    for update in updates:
        made.ask()
        if isinstance(update, int):
            made.deliver(update)
        else:
            made.event("merge.delivered", lane=int(update))
    return made


def test_merge_of_an_exclusive_call_is_right_after_its_result(two_lanes: Any, broken: Any) -> None:
    """Nothing comes between them."""
    assert broken(handed(two_lanes(), 0, "0", 1, "1")) == {}
    made = handed(two_lanes(), 0, 1, "0", "1")
    assert says(broken, made, "results_in_call_order", "right after the result of its only call")
    assert says(broken, made, "results_in_call_order", "expected the merge of lane 0 before anything of lane 1")


def test_results_pass_a_lane_that_a_thread_outlives(two_lanes: Any, broken: Any) -> None:
    """Its merge comes when the thread has ended; the results do not wait for it (RULE 15)."""
    assert broken(handed(two_lanes(thread=True), 0, 1, "0", "1")) == {}


def test_merge_that_says_what_did_not_happen(running: Any, broken: Any) -> None:
    """The update lists what was applied."""
    made = running()
    for call in (0, 1):
        made.settle(call)
        made.end(call)
    made.event("lane.merged", lane=0, state={"values": {}}, applied=[[0, 0]], rejected=[])
    made.leave()
    assert says(broken, made, "modifiers_in_call_order", "applied says [[0, 0]], expected []")


def test_modifier_of_a_call_of_another_lane(running: Any, broken: Any) -> None:
    """A lane merges its own."""
    made = running()
    made.submit(2)
    for call in (0, 1, 2):
        made.settle(call)
    made.end(0, 1)
    made.merge((2, 0))
    made.leave()
    assert says(broken, made, "modifiers_in_call_order", "a call that is not in it")


def test_batch_that_ends_with_a_state_of_its_own(running: Any, broken: Any) -> None:
    """The last state is what the lanes merged."""
    made = running()
    for call in (0, 1):
        made.settle(call)
        made.end(call)
    made.merge()
    made.leave(state={"values": {"x": 1}})
    assert list(broken(made)) == ["modifiers_in_call_order"]


@pytest.mark.parametrize(
    ("by", "words"), [(0, "tool does not ask for it"), (1, "did not fail"), (9, "never submitted")]
)
def test_stop_by_somebody_who_cannot(running: Any, broken: Any, by: int, words: str) -> None:
    """A stop is by a call that failed and whose tool says so."""
    made = running()
    made.settle(0, "error")
    made.end(0)
    made.event("batch.stopped", by=by)
    assert says(broken, over(made, 1), "failure_contained", words)


def test_cancel_that_takes_a_result_back(running: Any, broken: Any) -> None:
    """Finished results are kept."""
    made = running()
    made.settle(0)
    made.end(0)
    made.event("batch.cancelled", reason="x", outside=False)
    made.settle(0, "interrupted")
    made.settle(1, "interrupted")
    made.end(1)
    made.merge()
    made.leave()
    assert says(broken, made, "cancel_truthful", "expected that to be kept, got interrupted")


def test_interrupted_before_anybody_cancelled(running: Any, broken: Any) -> None:
    """An interrupt follows a cancel."""
    made = running()
    made.settle(0, "interrupted")
    made.end(0)
    made.event("batch.cancelled", reason="x", outside=False)
    made.settle(1, "interrupted")
    made.end(1)
    made.merge()
    made.leave()
    assert says(broken, made, "cancel_truthful", "interrupted before the batch was cancelled")


def test_cancelled_before_it_ran_and_called_a_failure(simple: Any, broken: Any) -> None:
    """What never started is not_started."""
    made = simple()
    made.event("batch.cancelled", reason="x", outside=False)
    made.settle(0, "error")
    made.settle(1, "not_started")
    made.end(0, 1)
    made.merge()
    made.leave()
    assert says(broken, made, "cancel_truthful", "expected not_started, got error")


def test_timed_out_before_it_started(simple: Any, broken: Any) -> None:
    """Waiting is never counted."""
    made = simple()
    made.start(1)
    made.settle(0, "timed_out")
    made.end(0)
    assert says(broken, over(made, 1), "timeout_own_time", "never started")


def test_thread_that_runs_on_and_does_not_say_so(tape: Any, broken: Any) -> None:
    """The result of a call whose thread cannot be stopped says so; the control claim is held too."""
    made = tape(virtual=False)
    made.submit(0, 1)
    made.event("batch.sealed")
    made.begin(0, 1)
    made.take(0, stops=True)
    made.take(1)
    made.start(0, thread=True, timeout=1.0)
    made.wait(1)
    made.settle(0, "timed_out", "")
    made.start(1)
    made.settle(1)
    made.end(1, 0)
    made.merge()
    made.leave()
    assert says(broken, made, "timeout_own_time", "expected its result to say so")
    assert says(broken, made, "timeout_own_time", "while the thread of call 0")


def test_progress_with_a_number_missing(running: Any, broken: Any) -> None:
    """Messages are numbered from 0."""
    made = running()
    made.say(0, 1)
    assert says(broken, over(made, 0, 1), "progress_at_once", "expected message 0 next")


def test_progress_accepted_after_the_result(running: Any, broken: Any) -> None:
    """Who is done has nothing to say."""
    made = running()
    made.settle(0)
    made.say(0, 0)
    made.end(0)
    assert says(broken, over(made, 1), "progress_at_once", "accepted after the result was fixed")


def test_progress_that_nobody_sent(running: Any, broken: Any) -> None:
    """What is delivered was accepted before."""
    made = running()
    made.ask()
    made.hear(0, 0)
    assert says(broken, over(made, 0, 1), "progress_at_once", "not accepted before")


def test_progress_that_no_reader_was_told(running: Any, broken: Any) -> None:
    """An accepted message comes before its call's result."""
    made = running()
    made.say(0, 0)
    made.settle(0)
    made.end(0)
    made.ask()
    made.deliver(0)
    assert says(broken, over(made, 1), "progress_at_once", "were not delivered by then")

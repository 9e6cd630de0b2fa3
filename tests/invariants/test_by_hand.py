"""Laws on traces written by hand: what each says of a good trace, and of one in which something is wrong.

A trace is a script of `Tape` in `conftest`: statements apart by semicolons, each a verb and what it is of.  A case
names the laws that speak and some of their words; every other law is silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from toolrt.invariants import Mix, check, simulate, trace_digest
from toolrt.invariants.script import Fail, FollowCell, ReadCell, Scripted, Sleep


def case(fact: str, script: str, **speaks: str | Sequence[str]) -> Any:
    """A trace, and for each law that speaks of it: words that are in its details, or a list of all its details."""
    return pytest.param(script, speaks, id=fact)


def in_the_middle(fact: str, script: str, **speaks: str | Sequence[str]) -> Any:
    """A trace that ends before its batches do, which law 13 says of it."""
    return case(fact, script, batch_ends="expected the batch to be left", **speaks)


ANSWERS = [
    case("everything in its place", "two; both; hand 0 1; merge; ask; merge_delivered; ask; leave"),
    case("a result is missing", "two; both; merge; forget; leave", answered_once="expected 2 results"),
    *(
        case(f"a slot with {field}", f"two; both; merge; alter 0 {field}; leave", answered_once=words)
        for field, words in {
            "call_id=id1": "'id1'",
            "name=other": "'other'",
            "call_index=1": "1",
            "outcome=error": "'error'",
        }.items()
    ),
    case(
        "a second answer", "two; both; settle 1; merge; leave", answered_once=["expected one answer, got ok, then ok"]
    ),
    case(
        "a stop discards what had finished",
        "submit 0 1; seal; begin 0 1; take 0 stops=True; take 1 read:x reads_only=True; start 0 1; done 1; wait 1;"
        "settle 0 error; stop 0; skip 1; end 0; merge; leave",
    ),
    *(
        case(
            f"{outcome} is no outcome with {error}",
            f"two; start 0 1; wait 1; end 0; done 1; settle 0 {outcome} {error}; merge; leave",
            answered_once="",
        )
        for outcome, error in (("ok", "but"), ("lost", "why"))
    ),
    case(
        "an answer to a call that was never submitted",
        "running; event call.settled call=7 outcome=ok content=None error=None; over 0 1",
        answered_once="never submitted",
    ),
    case(
        "a result that nothing fixed",
        "running; alter 1 outcome=ok content=None error=None; end 1; over 0",
        answered_once="expected an answer, got none",
    ),
    case(
        "the reader is told another outcome",
        "running; done 0; ask; event result.delivered call=0 outcome=error; over 1",
        answered_once="the reader was told error",
    ),
]

ORDER_OF_RESULTS = [
    case(
        "result 1 before result 0",
        "two; both; hand 1 0; merge; leave",
        results_in_call_order="expected the result of call 0 next, got that of call 1",
    ),
    case(
        "a result a second late",
        "two; ask; start 0 1; done 0; wait 1; done 1; deliver 0; hand 1; merge; leave",
        results_in_call_order="at 0 s",
    ),
    case(
        "wall time does not tell late from slow",
        "tape virtual=False; two; ask; both; wait 1; deliver 0; hand 1; merge; leave",
    ),
    case(
        "a merge before the last result",
        "two; both; merge; hand 0; merged 0; hand 1; leave",
        results_in_call_order="before its merge",
    ),
    case("a result is kept from the reader", "two; both; hand 0; merge; ask; leave", results_in_call_order=""),
    case(
        "a result before it is settled",
        "running; ask; event result.delivered call=0 outcome=ok; over 0 1",
        results_in_call_order="before it was settled",
    ),
    case("a merge twice", "running; over 0 1; merged 0; merged 0", results_in_call_order="once, got it again"),
    case("each merge right after its exclusive call", "two_lanes; hand 0; merged 0; hand 1; merged 1"),
    case(
        "something between an exclusive call and its merge",
        "two_lanes; hand 0 1; merged 0; merged 1",
        results_in_call_order=(
            "right after the result of its only call",
            "expected the merge of lane 0 before anything of lane 1",
        ),
    ),
    case("results pass a lane that a thread outlives", "two_lanes thread=True; hand 0 1; merged 0; merged 1"),
]

MODIFIERS = [
    case(
        "call 1 before call 0",
        "two; both; merge 1:0 0:0; leave",
        modifiers_in_call_order=["expected modifiers by call and position, got [0, 0] after [1, 0]"],
    ),
    case(
        "modifiers of a call that timed out",
        "running; settle 0; settle 1 timed_out; end 0 1; merge 0:0 1:0; leave",
        modifiers_in_call_order="modifiers of calls that returned",
        timeout_own_time="",
    ),
    case(
        "a modifier is lost",
        "running; settle 0 modifiers=2; settle 1 modifiers=0; end 0 1; merge 0:0; leave",
        modifiers_in_call_order="expected its 2 modifiers",
    ),
    case(
        "a merge while a call runs",
        "running; done 0; merge 0:0; done 1; leave",
        modifiers_in_call_order="call 1 was still running",
    ),
    case(
        "a lane starts from a state of its own",
        'two; both; merge state={"values":{"x":1}}; next_lane; begin state={"values":{}};'
        'merge state={"values":{"x":1}}; leave state={"values":{"x":1}}',
        modifiers_in_call_order="lane 1 starts from",
    ),
    case(
        "a merge says what did not happen",
        'running; done 0 1; event lane.merged lane=0 state={"values":{}} applied=[[0,0]] rejected=[]; leave',
        modifiers_in_call_order="applied says [[0, 0]], expected []",
    ),
    case(
        "a modifier of another lane's call",
        "running; submit 2; settle 0; settle 1; settle 2; end 0 1; merge 2:0; leave",
        modifiers_in_call_order="a call that is not in it",
    ),
    case(
        "the batch ends with a state of its own",
        'running; done 0 1; merge; leave state={"values":{"x":1}}',
        modifiers_in_call_order="",
    ),
]

OVERLAPS = [
    case(
        "two mutations of one file overlap",
        "running; opens 0; opens 1; closes 1 b; closes 0 a; over 0 1",
        same_file_in_call_order="one at a time",
    ),
    case(
        "mutations in another order",
        "running; mutate 1; mutate 0; over 0 1",
        same_file_in_call_order="by call 0 after call 1",
    ),
    case("two files have nothing to do with each other", "running; mutate 1; opens 0 g; closes 0 a g; over 0 1"),
    case(
        "a read of what comes later",
        "running; mutate 1 v1; read 0 v1; over 0 1",
        same_file_in_call_order="expected not to see the mutation by call 1",
    ),
    case(
        "a read that misses what came before",
        "running; read 1 v0; mutate 0 v1; over 0 1",
        same_file_in_call_order="read before it had ended",
    ),
    case(
        "a read of what no call wrote",
        "running; mutate 0 v1; read 1 v9; over 0 1",
        same_file_in_call_order="expected version v1",
    ),
    case(
        "a call that runs alone has company",
        "submit 0 1; seal; begin 0 shared=False; take 0 shared=False; start 0; next_lane; begin 1; take 1; start 1;"
        'done 0 1; event lane.merged lane=0 state={"values":{}} applied=[] rejected=[]; merge; leave',
        exclusive_alone="",
    ),
]

WAITS = [
    case("a call that could run", "two; run 0 1; run 1 1; merge; leave", no_needless_wait="a slot is free"),
    case(
        "a wait for a conflict",
        "submit 0 1; seal; begin 0 1; take 0 write:f; take 1 read:f; run 0 1; run 1 1; merge; leave",
    ),
    case("a wait for the limit", "tape limit=1; two; run 0 1; run 1 1; merge; leave"),
    case("a wait for an approval", "two; asked 0 1; allowed 0; run 0 1; allowed 1; run 1 1; merge; leave"),
    case(
        "a slot given out of order",
        "tape limit=1; two; run 1 1; run 0 1; merge; leave",
        no_needless_wait="by call_index",
    ),
    case("more run than may", "tape limit=1; running; over 0 1", no_needless_wait="at most 1"),
    case(
        "a lane starts late",
        "submit 0 1; seal; begin 0; take 0; run 0 1; merge; wait 1; next_lane; begin 1; take 1; run 1 1; merge; leave",
        no_needless_wait="expected its lane to start",
    ),
    case(
        "approval is asked for late",
        "two; asked 0; allowed 0; start 0 1; wait 1; asked 1; over 0 1",
        no_needless_wait="expected approval to be asked at 0 s",
    ),
]

PROGRESS = [
    case("progress is heard at once", "running; ask; say 0 0; hear 0 0; ask; over 0 1", results_in_call_order=""),
    *(
        case(
            f"messages in the order {one} {other}",
            f"running; say 0 0; say 0 1; ask; hear 0 {one}; ask; hear 0 {other}; over 0 1",
            progress_at_once="in order",
        )
        for one, other in ((1, 0), (0, 0))
    ),
    case("a message a second late", "running; ask; say 0 0; wait 1; hear 0 0; over 0 1", progress_at_once=""),
    case(
        "a message after the result",
        "running; say 0 0; done 0; hand 0; ask; hear 0 0; over 1",
        progress_at_once="delivered after the result",
    ),
    case(
        "nothing is kept for a reader that comes late",
        "running; say 0 0; over 0 1 dropped=[1,0]; hand 0 1; merged 0",
    ),
    case(
        "a message is dropped though there is room",
        "running; ask; say 0 0 False; over 0 1",
        progress_at_once="although only 0",
        results_in_call_order="",
    ),
    case("a drop that is counted", "running; say 0 0; over 0 1 dropped=[1,0]"),
    case("a drop that is not counted", "running; say 0 0; over 0 1 dropped=[0,0]", progress_at_once=""),
    case("a call speaks before it starts", "two; say 0 0; start 0 1; over 0 1", progress_at_once="had not started"),
    case("a number is missing", "running; say 0 1; over 0 1", progress_at_once="expected message 0 next"),
    case(
        "a message is accepted after the result",
        "running; settle 0; say 0 0; end 0; over 1",
        progress_at_once="accepted after the result was fixed",
    ),
    case("a message that was never sent", "running; ask; hear 0 0; over 0 1", progress_at_once="not accepted before"),
    case(
        "a message that no reader was told",
        "running; say 0 0; done 0; hand 0; over 1",
        progress_at_once="were not delivered by then",
    ),
]

FAILURES = [
    case("what follows a stop is skipped", "stopping; stop 0; skip 1 2; end 0 1 2; merge; leave"),
    case("a stop that does not come", "stopping; end 0; start 2; over 1 2", failure_contained="expected a stop"),
    case(
        "effects behind a stop",
        "stopping; start 2; stop 0; skip 1 2; end 0 1 2; merge; leave",
        failure_contained="no later call with effects to start",
    ),
    case(
        "a call behind a stop is not skipped",
        "stopping; stop 0; settle 1; skip 2; end 0 1 2; merge; leave",
        failure_contained=["call 0 stopped the batch; expected skipped, got ok"],
    ),
    case(
        "a skip that names no call",
        'stopping; stop 0; settle 1 skipped "a sibling errored"; settle 2 skipped "a sibling errored";'
        "end 0 1 2; merge; leave",
        failure_contained="to name call 0",
    ),
    *(
        case(
            f"a failure that stops nothing leaves another {outcome}",
            f"running; settle 0 error; end 0; settle 1 {outcome}; end 1; merge; leave",
            failure_contained="",
            **more,
        )
        for outcome, more in (("interrupted", {}), ("not_started", {"cancel_truthful": ""}), ("skipped", {}))
    ),
    *(
        case(f"a stop by call {by}", f"running; settle 0 error; end 0; stop {by}; over 1", failure_contained=words)
        for by, words in ((0, "tool does not ask for it"), (1, "did not fail"), (9, "never submitted"))
    ),
]

CANCELS = [
    case(
        "what ran is interrupted, what did not is not started",
        "tape limit=1; two; start 0; wait 1; cancel; settle 1 not_started; end 1; settle 0 interrupted; end 0;"
        "merge; leave",
    ),
    case(
        "a start after a cancel",
        "two; cancel; start 0; settle 0 interrupted; settle 1 not_started; end 0 1; merge; leave",
        cancel_truthful=["started after the batch was cancelled"],
    ),
    case(
        "a call that ran is not_started",
        "running; cancel; settle 0 not_started; settle 1 interrupted; end 0 1; merge; leave",
        cancel_truthful="",
    ),
    case(
        "a call that never ran is interrupted",
        "two; start 1; cancel; settle 0 interrupted; settle 1 interrupted; end 0 1; merge; leave",
        cancel_truthful="",
    ),
    case(
        "code runs on behind the batch",
        "running; over 0 1; event tool.effect call=0 effect=late",
        cancel_truthful=["tool.effect after the batch was left"],
        nothing_left=["it had ended and given its tickets back, and its work goes on"],
    ),
    case(
        "what never started is answered late",
        "tape limit=1; two; start 0; cancel; wait 1; settle 1 not_started; end 1; done 0; merge; leave",
        cancel_truthful="expected its answer at the cancel",
    ),
    case(
        "a call runs on behind a cancel, and another one says that it may",
        "two; start 0 1 interrupt=cancel; event tool.effect call=1 effect=shield; cancel; wait 1; over 0 1",
        cancel_truthful=["expected it to be interrupted at the cancel, 0 s; it went on until 1 s"],
    ),
    case(
        "half a file",
        "running; opens 0; cancel; settle 0 interrupted; settle 1 interrupted; end 0 1; merge; leave",
        cancel_truthful=["f: a mutation had begun and never ended"],
    ),
    case(
        "a cancel takes a result back",
        "running; done 0; cancel; settle 0 interrupted; settle 1 interrupted; end 1; merge; leave",
        cancel_truthful="expected that to be kept, got interrupted",
        answered_once="",
    ),
    case(
        "interrupted before the cancel",
        "running; settle 0 interrupted; end 0; cancel; settle 1 interrupted; end 1; merge; leave",
        cancel_truthful="interrupted before the batch was cancelled",
    ),
    case(
        "cancelled before it ran and called a failure",
        "two; cancel; settle 0 error; settle 1 not_started; end 0 1; merge; leave",
        cancel_truthful="expected not_started, got error",
    ),
]

ONE_CALL = "submit 0; seal; begin 0; take 0; start 0 timeout={}; wait {}; settle 0 {}; end 0; merge; leave"
THREAD = (
    "tape virtual=False; submit 0 1; seal; begin 0 1; take 0 {}; take 1 {}; start 0 thread=True timeout=1.0; wait 1;"
    "settle 0 timed_out {}; start 1; settle 1; end 1 0; merge; leave"
)

TIMEOUTS = [
    case("it ran as long as its timeout", ONE_CALL.format(2.0, 2.0, "timed_out")),
    *(
        case(f"{outcome} after {ran} s of {timeout}", ONE_CALL.format(timeout, ran, outcome), timeout_own_time="")
        for timeout, ran, outcome in (
            (2.0, 1.0, "timed_out"),
            (None, 1.0, "timed_out"),
            (2.0, 3.0, "ok"),
            (2.0, 3.0, "timed_out"),
        )
    ),
    case(
        "a tool that says so may go on",
        "two; start 0 timeout=1.0; start 1; event tool.effect call=0 effect=shield; wait 3; over 0 1",
    ),
    case("a wall clock has its slack", "tape virtual=False; " + ONE_CALL.format(2.0, 1.995, "timed_out")),
    case(
        "a wall clock has no more than that",
        "tape virtual=False; " + ONE_CALL.format(2.0, 1.5, "timed_out"),
        timeout_own_time="",
    ),
    case(
        "a thread has lost its claims",
        THREAD.format("write:x", "write:x", '"its thread cannot be stopped"'),
        timeout_own_time="while the thread of call 0",
        same_file_in_call_order="",
    ),
    case(
        "a thread runs on, and its result does not say so; it holds the control claim too",
        THREAD.format("stops=True", "", '""'),
        timeout_own_time=("expected its result to say so", "while the thread of call 0"),
        failure_contained="",
    ),
    case(
        "timed out before it started",
        "two; start 1; settle 0 timed_out; end 0; over 1",
        timeout_own_time="never started",
    ),
]

ENDS = [
    *(
        case(
            f"{what} are left",
            f'running; over 0 1 left={{"{what}":1}}',
            nothing_left=[f"expected no {what} to be left, got 1"],
        )
        for what in ("tasks", "tickets", "slots", "progress")
    ),
    case(
        "a ticket and a file are left",
        'running; done 0; settle 1; merge; leave; note temp_files [".f.tmp"]',
        nothing_left=("took a ticket and never gave it back", ".f.tmp"),
    ),
    *(
        case(f"it ended by {error}", f"running; over 0 1; ended {error}", batch_ends="")
        for error in ("Deadlock", "StepLimit")
    ),
    case("a batch is not left", "running; done 0", batch_ends="[1]"),
]

#: A child of call 0 runs when call 1 has changed the file.
BEHIND = "parent; ready 0; start 0; outside; start 1; mutate 1 b; inside; "
CHILD_BEHIND = "f: expected mutations by call_index, got one by call 0 after call 1"
SHIELDED = (
    "submit 0; begin 0; take 0; start 0 timeout=1.0; inside; start 0 interrupt=cancel;"
    "event tool.effect call=0 effect=shield; outside; wait 3; settle 0 timed_out"
)

INSIDE = [
    in_the_middle(
        "a child outlives its parent",
        "parent; ready 0; start 0; outside; settle 0; end 0; inside; done 0",
        exclusive_alone="inside call 0 of batch b",
        no_needless_wait="",
    ),
    in_the_middle(
        "two sub-batches of one call are one set of calls, and their parent is no overlap",
        "parent; ready 0; start 0; inside 2; take 0 shared=False; start 0",
        exclusive_alone=["call 0 runs alone: expected nothing beside it, got call 0"],
        no_needless_wait="",
    ),
    in_the_middle(
        "a child changes a file behind a later call", BEHIND + "mutate 0 a", same_file_in_call_order=[CHILD_BEHIND]
    ),
    in_the_middle(
        "a child reads a file behind a later call",
        BEHIND + "read 0 b",
        same_file_in_call_order="expected not to see the mutation by call 1",
    ),
    *(
        in_the_middle(
            f"two running children and another call, of {limit}",
            f"tape limit={limit}; parent; outside; start 1; inside; ready 0 1; start 0 1",
            **more,
        )
        for limit, more in ((1, {"no_needless_wait": "at most"}), (2, {"no_needless_wait": "at most"}), (3, {}))
    ),
    *(
        in_the_middle(
            f"with {limit} slots: {started}{beside}",
            f"tape limit={limit}; parent; ready 0 1; {started}{beside}; wait 1; outside; ask",
            **more,
        )
        for limit, started, beside, more in (
            (1, "", "outside", {"no_needless_wait": "expected it to run"}),
            (2, "start 0; ", "outside; start 1", {}),
            (3, "start 0; ", "outside; start 1", {"no_needless_wait": "expected it to run"}),
            (3, "start 0 1; ", "outside; start 1", {}),
        )
    ),
    *(
        in_the_middle(
            f"children go on behind a cancel, their parent says {interrupt}",
            f"parent {interrupt}; ready 0 1; start 0 interrupt=cancel; outside; cancel; inside;"
            "start 1 interrupt=cancel; wait 1; done 0 1",
            **more,
        )
        for interrupt, more in (
            ("cancel", {"cancel_truthful": ("started after batch b", "it went on until 1 s")}),
            ("finish", {}),
        )
    ),
    in_the_middle("a call ends when a child that shields itself has", SHIELDED),
]

CASES = [
    *ANSWERS,
    *ORDER_OF_RESULTS,
    *MODIFIERS,
    *OVERLAPS,
    *WAITS,
    *PROGRESS,
    *FAILURES,
    *CANCELS,
    *TIMEOUTS,
    *ENDS,
    *INSIDE,
]


@pytest.mark.parametrize(("script", "speaks"), CASES)
def test_trace_written_by_hand_breaks_these_laws(
    tape: Any, broken: Any, script: str, speaks: dict[str, str | Sequence[str]]
) -> None:
    """The laws that the case names speak, in its words, and no other law does."""
    found = broken(tape.played(script))
    assert found.keys() == speaks.keys(), found
    for law, words in speaks.items():
        if isinstance(words, list):
            assert found[law] == words
        for part in (words,) if isinstance(words, str) else words:
            assert any(part in detail for detail in found[law]), found[law]


def test_same_as_oracle_sees_another_result(tape: Any, broken: Any) -> None:
    """The oracle says something else."""
    made = tape.played("running; over 0 1")
    other = {"call_index": 0, "outcome": "error", "content": None, "error": "no"}
    made.notes["oracle"] = {"results": [other], "state": {"values": {}}, "files": {}}
    assert broken(made) == {"same_as_oracle": ["outcome: expected 'error', got 'ok'"]}


def test_same_as_oracle_sees_another_state_and_other_files(tape: Any, broken: Any) -> None:
    """State and files count as results do."""
    made = tape.played("running; over 0 1")
    made.notes |= {"oracle": {"results": [], "state": {"values": {"x": 1}}, "files": {"f": "a"}}, "files": {"f": "b"}}
    found = broken(made)
    assert list(found) == ["same_as_oracle"]
    assert len(found["same_as_oracle"]) == 2


def test_same_as_oracle_compares_finished_calls_after_a_cancel(tape: Any, broken: Any) -> None:
    """What a cancel cut short is not compared, and a file may be any of the oracle's versions."""
    made = tape.played("running; done 0; cancel; settle 1 interrupted; end 1; merge; leave")
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


def test_same_schedule_same_trace_compares_digests(tape: Any, broken: Any) -> None:
    """The digest of another execution is in the notes."""
    made = tape.played("running; over 0 1")
    made.notes["replay_digest"] = trace_digest(made.trace())
    assert broken(made) == {}
    made.notes["replay_digest"] = "0" * 16
    assert list(broken(made)) == ["same_schedule_same_trace"]


def test_no_needless_wait_allows_a_wait_of_late_claims_for_one_that_stops() -> None:
    """Call 2's claims depend on call 0, so its event comes before its lane's tickets; it has to wait for call 1 too."""
    mix = Mix(
        [
            Scripted([ReadCell("b")], says="nothing"),
            Scripted([Sleep(1.0), Fail("s")], says="safe", stops=True),
            Scripted([FollowCell("a", "p")], says="after"),
        ],
        lanes="parallel",
    )
    execution = simulate(mix)
    kinds = [event.kind for event in execution.trace.events if event.fields.get("call") == 2]
    assert "claims.awaited" in kinds
    assert not check(execution.trace)

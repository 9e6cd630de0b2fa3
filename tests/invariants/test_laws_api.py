"""`check`, `require`, `law`, and what a violation says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from trio import lowlevel

from toolrt import sim
from toolrt.errors import DefinitionRefused, LawBroken
from toolrt.invariants import LAWS, LawVerdict, Mix, Violation, check, law, require, simulate, verdicts
from toolrt.invariants.script import Scripted, Sleep
from toolrt.trace import Trace

NAMES = [
    "answered_once",
    "results_in_call_order",
    "modifiers_in_call_order",
    "same_file_in_call_order",
    "exclusive_alone",
    "no_needless_wait",
    "same_as_oracle",
    "progress_at_once",
    "failure_contained",
    "cancel_truthful",
    "timeout_own_time",
    "nothing_left",
    "batch_ends",
    "same_schedule_same_trace",
    "same_as_serial",
    "no_write_lost",
    "claims_hold",
]


def test_laws_are_the_seventeen_in_their_order() -> None:
    """The names and numbers are those of the design."""
    assert list(LAWS) == NAMES
    assert [law.number for law in LAWS.values()] == list(range(1, 18))


def test_laws_are_never_changed() -> None:
    """A law of a user's own is handed to check, not registered."""
    with pytest.raises(TypeError):
        LAWS["mine"] = LAWS["batch_ends"]  # type: ignore[index]


def test_empty_trace_breaks_no_law() -> None:
    """Where nothing happened nothing is wrong."""
    assert check(Trace()) == []


def test_trace_that_was_written_and_read_is_judged_the_same() -> None:
    """A law needs nothing but the trace."""
    execution = simulate(Mix([Scripted([Sleep(1)])] * 2, limit=1), replayed=True)
    again = Trace.from_json(execution.trace.to_json())
    assert check(again) == check(execution.trace) == []
    again.notes["replay_digest"] = "other"
    assert [found.law for found in check(again)] == ["same_schedule_same_trace"]


def test_law_of_a_users_own_is_checked_with_the_others(tape: Any) -> None:
    """A function that gives texts is a law."""

    @law("short", "No batch has more than one call.")
    def short(trace: Trace) -> Any:
        for event in trace.of_kind("call.submitted"):
            if event.fields["call"] > 0:
                yield f"call {event.fields['call']} is one too many"

    made = tape(virtual=False)
    made.submit(0, 1)
    [found] = check(made.trace(), {"short": short})
    assert found == Violation("short", "No batch has more than one call.", "call 1 is one too many")
    assert short.number is None
    assert [v.law for v in check(made.trace(), {**LAWS, "short": short})] == ["batch_ends", "short"]


def test_law_may_give_violations_or_nothing(tape: Any) -> None:
    """What a function of a user's own gives is taken as it comes."""
    mine = Violation("v", "s", "d", "b", 1, 2)
    assert law("v", "s")(lambda trace: [mine])(tape().trace()) == [mine]
    assert law("v", "s")(lambda trace: None)(tape().trace()) == []


def test_law_without_a_sentence_is_refused() -> None:
    """A violation has to say something."""
    with pytest.raises(DefinitionRefused):
        law("name", "")
    with pytest.raises(DefinitionRefused):
        check(Trace(), laws=[LAWS["batch_ends"]])  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["a text", False, True, 3])
def test_law_that_gives_no_texts_is_refused(given: Any) -> None:
    """A first law often gives True or one text, which Python would take apart or trip over."""
    with pytest.raises(DefinitionRefused, match="law mine: expected an iterable of texts, one for each violation"):
        check(Trace(), {"mine": law("mine", "It holds.")(lambda trace: given)})


def test_law_that_raises_is_named() -> None:
    """The error stays what it is, and says in which law it came."""

    @law("mine", "It holds.")
    def mine(trace: Trace) -> Any:
        yield f"{trace.notes['absent']}"

    with pytest.raises(KeyError, match="absent") as caught:
        check(Trace(), {"mine": mine})
    assert caught.value.__notes__ == [
        "law mine raised this. A law yields a text for each violation, and raises nothing."
    ]


def test_law_that_sees_nothing_to_look_at_is_not_checked(tape: Any) -> None:
    """A law over events that the trace has none of has shown nothing."""

    @law("mine", "No message is dropped.", sees=lambda trace: any(trace.of_kind("progress.sent")))
    def mine(trace: Trace) -> Any:
        return [str(event) for event in trace.of_kind("progress.sent") if not event.fields["accepted"]]

    assert verdicts(tape().trace(), {"mine": mine}) == {"mine": LawVerdict.NOT_CHECKED}


def test_violation_says_law_sentence_and_place(tape: Any) -> None:
    """Name, sentence, what was expected and got, where."""
    made = tape(virtual=False)
    made.submit(0)
    [found] = check(made.trace())
    text = str(found)
    assert "batch_ends" in text
    assert LAWS["batch_ends"].sentence in text
    assert "calls without a result: [0]" in text
    assert "batch b" in text
    assert json.loads(json.dumps(found.to_json()))["batch"] == "b"


def test_require_raises_with_all_violations(tape: Any) -> None:
    """Every violation, and the context below them."""
    made = tape()
    made.meta["ended"] = "Deadlock"
    with pytest.raises(LawBroken, match="this mix") as caught:
        require(made.trace(), context="this mix")
    assert len(caught.value.violations) == 2
    require(Trace())


def two_batches(tape: Any) -> tuple[Any, Any]:
    """Two batches whose only calls change one file, up to their starts."""
    first, second = tape(batch="a"), tape(batch="b")
    for made in (first, second):
        made.submit(0)
        made.event("batch.sealed")
        made.begin(0)
        made.take(0, ("write", ["f"]))
    return first, second


def test_batches_of_one_trace_are_judged_by_themselves(tape: Any) -> None:
    """Two batches at one time, and an id that is used again, are not mixed up."""
    first, second = two_batches(tape)
    first.run(0)
    second.run(0)
    for made in (first, second):
        made.merge()
        made.leave()
    mixed = [event for pair in zip(first.raw, second.raw, strict=True) for event in pair]
    assert check(Trace([*mixed, *first.raw])) == []


def test_wait_for_another_batch_is_not_needless(tape: Any) -> None:
    """A ticket waits for an older one, whoever holds it."""
    first, second = two_batches(tape)
    before, waiting = list(first.raw), list(second.raw)
    first.run(0, 1)
    second.wait(1)
    second.run(0, 1)
    for made in (first, second):
        made.merge()
        made.leave()
    rest = first.raw[len(before) :], second.raw[len(waiting) :]
    assert check(Trace([*before, *waiting, *rest[0], *rest[1]])) == []


@pytest.mark.parametrize("trace", [None, "trace", sim.run(lowlevel.checkpoint)], ids=["none", "text", "execution"])
def test_what_is_no_trace_is_refused(trace: Any) -> None:
    """An execution is none, but has one."""
    for judge in (check, require):
        with pytest.raises(
            DefinitionRefused, match=r"expected a trace, such as execution\.trace or recorder\.trace\(\)"
        ):
            judge(trace)

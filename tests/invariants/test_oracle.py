"""The oracle, against answers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from toolrt.invariants import Mix
from toolrt.invariants.script import (
    AddCell,
    AppendFile,
    BreakState,
    ChangeState,
    Fail,
    ReadCell,
    ReadFile,
    Refuse,
    Scripted,
    SeeState,
    Sleep,
)


def answers(mix: Mix) -> list[Any]:
    """Outcome, and content of those that have one."""
    return [
        (result["outcome"], result["content"]) if result["outcome"] == "ok" else result["outcome"]
        for result in mix.oracle()["results"]
    ]


def test_oracle_runs_in_call_order() -> None:
    """Each read sees what lower calls wrote, and no more."""
    mix = Mix([Scripted([ReadCell("a")]), Scripted([AddCell("a", "x")]), Scripted([ReadCell("a")])])
    assert answers(mix) == [("ok", [""]), ("ok", []), ("ok", ["x"])]


@pytest.mark.parametrize(
    ("lanes", "seen"), [("by_claims", ["0", "0", "0a"]), ("serial", ["0", "0a", "0a"]), ("parallel", ["0", "0", "0"])]
)
def test_oracle_follows_the_lanes(lanes: Any, seen: list[str]) -> None:
    """A call sees the state its lane starts with."""
    calls = [
        Scripted([SeeState("x"), ChangeState("x", "a")], says="safe"),
        Scripted([SeeState("x")], says="safe"),
        Scripted([SeeState("x")], says="nothing"),
    ]
    mix = Mix(calls, lanes=lanes, state={"x": "0"})
    assert answers(mix) == [("ok", [value]) for value in seen]
    assert mix.oracle()["state"]["values"] == {"x": "0a"}


def test_oracle_merges_what_returned() -> None:
    """A refusal's modifiers apply, a failure's do not, and one that raises changes nothing."""
    calls = [
        Scripted([ChangeState("x", "a"), Fail()], says="safe"),
        Scripted([ChangeState("x", "b"), Refuse()], says="safe"),
        Scripted([BreakState(), ChangeState("x", "c")], says="safe"),
        Scripted([ChangeState("x", "d"), Sleep(2)], says="safe", timeout=1.5),
    ]
    mix = Mix(calls)
    assert answers(mix) == ["error", "error", ("ok", []), "timed_out"]
    assert mix.oracle()["state"]["values"] == {"x": "bc"}


def test_oracle_stops() -> None:
    """After a failed call that stops the batch everything is skipped, invalid calls too."""
    calls = [
        Scripted([AppendFile("f", "a")]),
        Scripted([Fail()], stops=True),
        Scripted([AppendFile("f", "b")]),
        Scripted(invalid="unknown"),
    ]
    mix = Mix(calls)
    assert answers(mix) == [("ok", []), "error", "skipped", "skipped"]
    assert mix.oracle()["files"] == {"f": "a"}


@pytest.mark.parametrize("invalid", ["unknown", "input"])
def test_oracle_refuses_what_does_not_fit(invalid: Any) -> None:
    """An invalid call breaks no lane, and stops the batch only if its tool is known and says so."""
    calls = [Scripted([SeeState("x"), ChangeState("x", "a")], says="safe"), Scripted(invalid=invalid, stops=True)]
    mix = Mix([*calls, Scripted([SeeState("x")], says="safe")], state={"x": "0"})
    last = ("ok", ["0"]) if invalid == "unknown" else "skipped"
    assert answers(mix) == [("ok", ["0"]), "invalid", last]


def test_oracle_asks_for_approval() -> None:
    """Denied, rewritten, and a check that raises."""
    calls = [
        Scripted([AddCell("a", "x")], approval="deny"),
        Scripted([ReadCell("a")], approval="rewrite", approval_after=3),
        Scripted([ReadCell("a")], approval="raise"),
        Scripted([ReadCell("a")], approval="allow"),
    ]
    assert answers(Mix(calls)) == ["denied", ("ok", ["rewritten", ""]), "denied", ("ok", [""])]


def test_oracle_reads_files_as_they_are() -> None:
    """Files are kept from call to call."""
    mix = Mix([Scripted([AppendFile("f", "b")]), Scripted([ReadFile("f")])], files={"f": "a"})
    assert answers(mix) == [("ok", []), ("ok", ["ab"])]
    assert mix.oracle()["versions"] == {"f": ["a", "ab"]}

"""Laws 5, 13 and 15 ask the serial oracle about every batch of the tree, and believe no trace of itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from toolrt import sim
from toolrt.invariants import Mix, check, simulate
from toolrt.invariants.script import Pause, Scripted, Sleep, SubBatch
from toolrt.model import Tool
from toolrt.trace import Trace

INNER = SubBatch([Scripted([Pause()], says="safe"), Scripted([Pause()], says="safe")])
NESTED = Mix([Scripted([INNER]), Scripted([Sleep(1.0)], says="safe")])


def edited(execution: sim.Execution, edit: Callable[[list[Any]], list[Any]]) -> Trace:
    """The trace of the execution with other events, and its notes."""
    told = json.loads(execution.trace.to_json())
    trace = Trace.from_json(json.dumps({**told, "events": edit(told["events"])}))
    trace.notes.update(execution.trace.notes)
    return trace


def broken(trace: Trace) -> set[str]:
    """The laws that the trace breaks."""
    return {found.law for found in check(trace)}


def test_serial_run_tells_of_every_batch() -> None:
    """Of those inside as well: how they end, and which calls say nothing of what they touch."""
    told = Mix([Scripted([SubBatch([Scripted([], says="nothing")])], says="nothing")]).serial()
    assert told is not None
    assert list(told["tree"]) == ["mix/0.1", "mix"]
    assert [one["alone"] for one in told["tree"].values()] == [[0], [0]]
    assert told["tree"]["mix/0.1"]["results"][0]["outcome"] == "ok"


@pytest.mark.parametrize(
    "mix",
    [
        Mix([Scripted([Sleep(1.0)], says="nothing"), Scripted([Sleep(1.0)], says="safe")]),
        Mix(
            [
                Scripted([SubBatch([Scripted([Sleep(1.0)], says="nothing"), Scripted([Sleep(1.0)], says="safe")])]),
                Scripted([], says="safe"),
            ]
        ),
    ],
    ids=["outermost", "inside"],
)
def test_call_that_says_nothing_is_alone_although_the_runtime_thinks_that_it_is_safe(
    mix: Mix, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace of such a runtime says that both calls share a lane: only the oracle knows better."""
    assert broken(simulate(mix).trace) == set()
    assert mix.serial() is not None
    monkeypatch.setattr(Tool, "is_safe", lambda tool, input: True)
    assert "exclusive_alone" in broken(simulate(mix).trace)


def test_result_inside_is_that_of_the_serial_run() -> None:
    """Also where the call around it does not say so in its own answer."""

    def other(events: list[Any]) -> list[Any]:
        for event in events:
            fields = event[-1] if isinstance(event, list) else event["fields"]
            if fields.get("batch") == "mix/0.1" and "results" in fields:
                fields["results"][1]["content"] = "another"
        return events

    execution = simulate(NESTED)
    assert broken(edited(execution, lambda events: events)) == set()
    assert "same_as_serial" in broken(edited(execution, other))


def test_batch_that_the_serial_run_runs_is_run() -> None:
    """And each of its calls is answered."""

    def without(events: list[Any]) -> list[Any]:
        return [event for event in events if "mix/0.1" not in json.dumps(event)]

    found = [one for one in check(edited(simulate(NESTED), without)) if one.law == "batch_ends"]
    assert [str(one.detail) for one in found] == [
        "expected batch mix/0.1, which the serial run runs, and there is none"
    ]

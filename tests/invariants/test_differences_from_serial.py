"""The differences between `by_claims` and `serial` that are meant: each is so, and no other is let through."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import trio

import toolrt
from toolrt import WRITE, Claim, Registry, Runtime, State, ToolCall, ToolContext, ToolOutput, invariants
from toolrt.invariants import LAWS, LawVerdict, Mix, check, simulate, verdicts
from toolrt.invariants.script import (
    AddCell,
    ChangeState,
    Fail,
    FollowCell,
    OverwriteState,
    ReadCell,
    Say,
    Scripted,
    SeeState,
    Sleep,
    SubBatch,
)
from toolrt.runtime import Rewrite

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "differences-from-serial.md"


def both(tools: list[Any], asked: list[ToolCall], state: State | None = None, **options: Any) -> tuple[Any, Any]:
    """What by claims and serial give on the same calls."""

    def run(policy: Any) -> Any:
        return trio.run(Runtime(Registry(tools), lanes=policy, **options).run, asked, state)

    return run(toolrt.by_claims), run(toolrt.serial)


def words(done: Any) -> list[str]:
    """The outcomes in order."""
    return [result.outcome.value for result in done.results]


def judged(mix: Mix, schedules: int = 6) -> None:
    """Hold some executions of the mix against all laws; its trace has a serial run."""
    for number in range(schedules):
        execution = simulate(mix, [number % 3, number // 3] * 4)
        assert check(execution.trace) == []
        assert verdicts(execution.trace)["same_as_serial"] is LawVerdict.HELD


@toolrt.tool(safe=True)
async def put(ctx: ToolContext, value: int) -> ToolOutput:
    """Sets k."""
    return ToolOutput(None, modifiers=[lambda state: state.set("k", value)])


@toolrt.tool(safe=True)
async def look(ctx: ToolContext) -> Any:
    """What k is."""
    return ctx.state["k"]


def test_snapshot_of_the_state() -> None:
    """A call without a claim on the key sees the state as of its lane's start."""
    asked = [ToolCall("0", "put", {"value": 1}), ToolCall("1", "look", {})]
    claims, serial = both([put, look], asked, State({"k": 0}))
    assert (claims.results[1].content, serial.results[1].content) == (0, 1)
    assert claims.state == serial.state
    judged(Mix([Scripted([ChangeState("x", "a")], says="safe"), Scripted([SeeState("x")], says="safe")]))


def test_stale_write_is_refused() -> None:
    """What serial does, by claims refuses: an error in place of a lost write."""
    mix = Mix([Scripted([OverwriteState("x", text)], says="safe") for text in "ab"], state={"x": "0"})
    execution = simulate(mix)
    assert execution.value.outcomes == ("ok", "error")
    serial = mix.serial()
    assert serial is not None
    assert [result["outcome"] for result in serial["results"]] == ["ok", "ok"]
    judged(mix)


def test_stale_claims_are_refused() -> None:
    """What an earlier call of the lane points elsewhere, a call without `claims_after` may not follow."""
    mix = Mix(
        [Scripted([AddCell("a", "x")]), Scripted([FollowCell("a", "1")]), Scripted([ReadCell("a"), ReadCell("b")])]
    )
    execution = simulate(mix)
    assert execution.value.outcomes == ("ok", "error", "ok")
    serial = mix.serial()
    assert serial is not None
    assert [result["outcome"] for result in serial["results"]] == ["ok", "ok", "ok"]
    judged(mix)


def test_skipped_read_has_run() -> None:
    """The results are equal; only that it ran is not."""
    mix = Mix(
        [Scripted([Sleep(1), Fail()], says="safe", stops=True), Scripted([ReadCell("a"), Say("here")])], reader="eager"
    )
    execution = simulate(mix)
    assert execution.value.outcomes == ("error", "skipped")
    assert [event.fields["call"] for event in execution.trace.of_kind("call.started")] == [0, 1]
    serial = simulate(Mix(mix.calls, lanes="serial"))
    assert serial.value.outcomes == ("error", "skipped")
    assert [event.fields["call"] for event in serial.trace.of_kind("call.started")] == [0]
    judged(mix)


def test_approval_sees_the_lanes_start() -> None:
    """All calls of a lane are asked as it starts."""

    def approve(request: Any) -> Any:
        return True if request.state["k"] == 0 else "k has changed"

    asked = [ToolCall("0", "put", {"value": 1}), ToolCall("1", "put", {"value": 2})]
    claims, serial = both([put], asked, State({"k": 0}), approve=approve)
    assert (words(claims), words(serial)) == (["ok", "ok"], ["ok", "denied"])


def test_rewrite_that_claims_more() -> None:
    """A call may not be rewritten to touch what it holds no ticket for."""

    @toolrt.tool(claims=lambda input, state: [Claim(input["thing"], WRITE)])
    async def touch(ctx: ToolContext, thing: str) -> str:
        return thing

    claims, serial = both(
        [touch], [ToolCall("0", "touch", {"thing": "a"})], approve=lambda request: Rewrite({"thing": "b"})
    )
    assert (words(claims), words(serial)) == (["denied"], ["ok"])


def test_uncovered_child() -> None:
    """A child may not touch what its parent does not claim."""
    mix = Mix([Scripted([SubBatch([Scripted([AddCell("a", "x")])], claimed=False)])])
    execution = simulate(mix)
    assert [event.fields["outcome"] for event in execution.trace.of_kind("call.settled")] == ["invalid", "ok"]
    assert check(execution.trace) == []


def test_page_has_every_difference_and_its_test() -> None:
    """The list may only shrink: one more row needs one more test, and one more than these is refused."""
    rows = re.findall(r"\| `(\w+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rows) <= {
        "snapshot_of_the_state",
        "stale_write_is_refused",
        "stale_claims_are_refused",
        "skipped_read_has_run",
        "approval_sees_the_lanes_start",
        "rewrite_that_claims_more",
        "uncovered_child",
    }
    assert all(f"test_{row}" in globals() for row in rows)


# What is no such difference


def broken(mix: Mix, change: Any) -> list[str]:
    """What law 15 says of a trace whose serial run is changed."""
    execution = simulate(mix)
    assert LAWS["same_as_serial"](execution.trace) == []
    serial = execution.trace.notes["serial"] = dict(execution.trace.notes["serial"])
    change(serial)
    return [found.detail for found in LAWS["same_as_serial"](execution.trace)]


_PLAIN = Mix(
    [Scripted([AddCell("a", "x"), ReadCell("a")]), Scripted([ChangeState("x", "a")], says="safe")],
    files={"f": "start"},
    state={"x": "0"},
)


@pytest.mark.parametrize("part", ["results", "state", "files"])
def test_other_results_state_or_files_break_the_law(part: str) -> None:
    """Each of the three is compared."""

    def change(serial: dict[str, Any]) -> None:
        if part == "results":
            serial[part] = [{**result, "content": "other"} for result in serial[part]]
        elif part == "state":
            serial[part] = {**serial[part], "values": {"x": "other"}}
        else:
            serial[part] = {"f": "other"}

    assert broken(_PLAIN, change)


def test_key_that_both_claim_is_compared() -> None:
    """A call that claims the key sees what an earlier claimant made of it: there nothing may differ."""
    mix = Mix([Scripted([OverwriteState("x", text, True)]) for text in "ab"], state={"x": "0"})

    def change(serial: dict[str, Any]) -> None:
        serial["state"] = {**serial["state"], "values": {"x": "0b"}}

    assert broken(mix, change)


def test_difference_stays_with_what_follows_from_it() -> None:
    """Beside a call that may differ, every other call and key is compared."""
    mix = Mix(
        [
            Scripted([ChangeState("x", "a")], says="safe"),
            Scripted([SeeState("x")], says="safe"),
            Scripted([ChangeState("y", "b")], says="safe"),
        ]
    )

    def change(serial: dict[str, Any]) -> None:
        serial["state"] = {**serial["state"], "values": {"x": "a", "y": "other"}}

    assert broken(mix, change) == ["state y: the serial run leaves 'other', got 'b'"]


def test_trace_without_its_serial_run_is_not_checked() -> None:
    """It is never said to hold."""
    execution = simulate(_PLAIN)
    assert verdicts(execution.trace)["same_as_serial"] is LawVerdict.HELD
    del execution.trace.notes["serial"]
    assert verdicts(execution.trace)["same_as_serial"] == "not checked"
    assert check(execution.trace) == []
    by_safety = simulate(Mix(_PLAIN.calls, lanes="by_safety"))
    assert verdicts(by_safety.trace)["same_as_serial"] == "not checked"


def test_serial_run_is_made_once_for_a_mix() -> None:
    """It costs nothing a schedule."""
    mix = Mix([Scripted([AddCell("a", "x")])])
    assert mix.serial() is mix.serial()
    simulate(mix)
    assert simulate(mix).trace.notes["serial"] is mix.serial()


def test_wrong_plan_is_seen_where_the_oracle_has_it_too() -> None:
    """Law 7 is blind to a plan that is wrong in the runtime and the oracle alike; law 15 is not."""
    mutant = invariants.MUTANTS["state keys share a lane"]
    mix = Mix(mutant.workload.calls, state={"x": "0"})
    with mutant.apply():
        execution = simulate(mix)  # the oracle and the serial run are asked for in here
    assert {found.law for found in check(execution.trace)} == {"same_as_serial"}

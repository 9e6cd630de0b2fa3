"""Approval: each call by itself, exactly what was approved, fail closed."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests.runtime._tools import WRITE, Diary, call, claims, outcomes, runtime
from toolrt import Allow, ApprovalRequest, Claim, Deny, Rewrite, ToolContext


@toolrt.tool(claims=lambda input, state: [Claim(("file", input["path"]), WRITE)])
async def touch(ctx: ToolContext, path: str) -> str:
    """Give back what it was really given."""
    return path


@pytest.mark.parametrize(
    ("answer", "outcome", "error"),
    [
        (True, "ok", None),
        (Allow(), "ok", None),
        (False, "denied", "denied: the approval check said no"),
        ("too risky", "denied", "denied: too risky"),
        (Deny("not now"), "denied", "denied: not now"),
        (None, "denied", "denied: the approval check answered None, which is neither"),
        (1, "denied", "denied: the approval check answered 1, which is neither"),
        ({"path": "a", "x": 1}, "denied", "denied: the rewritten input does not fit: input.x: expected no such field"),
        ({"path": "b"}, "denied", "denied: the rewritten input claims write file/b, the call holds write file/a"),
        (Rewrite({"path": "a"}), "ok", None),
        (
            Allow(within=[Claim(("file", "b"), WRITE)]),
            "denied",
            "denied: the approval narrows the call to write file/b, the call holds write file/a",
        ),
        (toolrt.ToolCall("1", "touch", {"path": "a"}), "ok", None),
    ],
)
@pytest.mark.parametrize("later", [False, True])
async def test_approval_answer(answer: Any, outcome: str, error: str | None, later: bool) -> None:
    """What each answer means, given at once or later."""

    def at_once(request: ApprovalRequest) -> Any:
        return answer

    async def after_a_while(request: ApprovalRequest) -> Any:
        await trio.lowlevel.checkpoint()
        return answer

    rt = runtime(touch, approve=after_a_while if later else at_once)
    (result,) = (await rt.run([call("touch", path="a")])).results
    assert result.outcome.value == outcome
    assert error is None or str(result.error).startswith(error)


async def test_approval_is_not_asked_for_invalid_calls() -> None:
    """It stands between validation and start."""
    asked = []
    rt = runtime(touch, approve=lambda request: asked.append(request.name) or True)
    done = await rt.run([call("touch"), call("nothing"), call("touch", path="a")])
    assert outcomes(done.results) == ["invalid", "invalid", "ok"]
    assert asked == ["touch"]


async def test_approval_denied_at_once_starts_nobody_who_was_not_asked() -> None:
    """A ticket given back by a denial does not let the next call run before its own answer."""
    diary = Diary()
    file = claims(("f", WRITE))

    def approve(request: ApprovalRequest) -> Any:
        async def later() -> bool:
            await trio.lowlevel.checkpoint()
            return False

        return False if request.call_index == 0 else later()

    done = await runtime(diary.tool("a", claims=file), approve=approve).run([call("a"), call("a")])
    assert outcomes(done.results) == ["denied", "denied"]
    assert diary.lines == []


async def test_approval_is_not_awaited_for_a_call_that_was_skipped_meanwhile(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A stop in the step in which the answer was asked for does not wait for it."""

    async def approve(request: ApprovalRequest) -> bool:
        if request.name == "touch":
            await trio.sleep(100)
        return True

    holder: list[toolrt.Batch] = []

    @toolrt.tool(claims=claims(("g", WRITE)), stops_batch=True)
    async def guard(ctx: ToolContext) -> None:
        await trio.sleep(1)
        holder[0].submit(call("touch", path="a"))
        raise ValueError

    async with runtime(guard, touch, approve=approve).open_batch() as batch:
        holder.append(batch)
        batch.submit(call("guard"))
        await trio.sleep(2)
    assert outcomes(batch.outcome.results) == ["error", "skipped"]
    assert trio.current_time() == 2


async def test_approval_that_submits_calls_asks_each_once(autojump_clock: trio.testing.MockClock) -> None:
    """A call that joins while the lane is asked is asked as it joins, and waits for its own ticket."""
    diary = Diary()
    file = claims(("f", WRITE))
    asked: list[int] = []
    holder: list[toolrt.Batch] = []

    async def approve(request: ApprovalRequest) -> bool:
        asked.append(request.call_index)
        if request.call_index == 0:
            holder[0].submit(call("b"))
        return True

    async with runtime(
        diary.tool("a", 1, claims=file), diary.tool("b", 1, claims=file), approve=approve
    ).open_batch() as batch:
        holder.append(batch)
        batch.submit(call("a"))
        await trio.sleep(5)
    assert asked == [0, 1]
    assert diary.lines == ["a+", "a-", "b+", "b-"]


async def test_approval_with_an_odd_answer_denies() -> None:
    """An answer whose text cannot be made, an endless rewrite, an odd exception: a no each time."""

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    endless: dict[str, Any] = {}
    endless["path"] = endless

    def odd(request: ApprovalRequest) -> Any:
        raise BaseException("odd")

    for approve in (lambda request: Broken(), lambda request: endless, odd):
        done = await runtime(touch, Diary().tool("a"), approve=approve).run([call("touch", path="a"), call("a")])
        assert outcomes(done.results) == ["denied", "denied"]


async def test_approval_is_told_what_the_call_holds_and_which_tool_runs() -> None:
    """A check can decide by what a call can touch, not only by what it is called with."""
    seen: list[ApprovalRequest] = []
    for lanes in (toolrt.by_claims, toolrt.serial):
        rt = runtime(touch, approve=lambda request: seen.append(request) or True, lanes=lanes)
        await rt.run([call("touch", path="a")])
    assert [request.claims for request in seen] == [(Claim(("file", "a"), WRITE),), (toolrt.EVERYTHING,)]
    assert all(request.tool is touch for request in seen)


async def test_approval_check_of_a_lane_is_made_once_for_each_lane(autojump_clock: trio.testing.MockClock) -> None:
    """A check that offers one for each lane is asked for it at the lane's first call, also for calls that join."""

    class Counting:
        lanes = 0

        def for_lane(self) -> Any:
            self.lanes += 1
            mine = self.lanes
            return lambda request: f"lane {mine}"

        def __call__(self, request: ApprovalRequest) -> bool:
            raise AssertionError("the lane's own check is asked")

    async with runtime(touch, Diary().tool("alone"), approve=Counting()).open_batch() as batch:
        batch.submit(call("touch", path="a"))
        await trio.sleep(1)
        batch.submit(call("touch", path="b"))
        batch.submit(call("alone"))
        batch.submit(call("touch", path="a"))
    errors = [result.error for result in batch.outcome.results]
    assert errors == ["denied: lane 1", "denied: lane 1", "denied: lane 2", "denied: lane 3"]


async def test_approval_check_that_cannot_be_made_denies() -> None:
    """No check for the lane is a no for each of its calls."""

    class Broken:
        def for_lane(self) -> Any:
            raise RuntimeError("offline")

        def __call__(self, request: ApprovalRequest) -> bool:
            return True

    done = await runtime(touch, approve=Broken()).run([call("touch", path="a"), call("touch", path="b")])
    assert {result.error for result in done.results} == {"denied: the approval check raised RuntimeError: offline"}


def test_call_that_has_all_it_needs_waits_for_nothing() -> None:
    """Between the last grant and its first step a call is queued, and nothing is in its way."""

    async def approve(request: ApprovalRequest) -> bool:
        await trio.lowlevel.checkpoint()
        return True

    async def program() -> list[list[Any]]:
        seen: list[list[Any]] = []
        async with runtime(touch, approve=approve).open_batch() as batch:
            tracked = batch.submit(call("touch", path="a"))
            while tracked.status is toolrt.Status.QUEUED:
                await trio.lowlevel.checkpoint()
                seen.append(tracked.waits_for)
        return seen

    seen = [toolrt.sim.run(program, toolrt.sim.RandomWalk(seed=seed)).value for seed in range(20)]
    assert {text for one in seen for waits in one for text in waits} == {"lane", "approval"}


@pytest.mark.filterwarnings("ignore::toolrt.errors.UndeclaredWarning")
async def test_approval_that_another_batch_overtakes_keeps_its_call(autojump_clock: trio.testing.MockClock) -> None:
    """While one batch's check thinks, another's call runs alone: the first one waits for it, and runs."""

    @toolrt.tool
    async def alone(ctx: ToolContext, asks: int) -> str:
        await trio.sleep(2)
        return f"ended at {trio.current_time():g}"

    async def approve(request: ApprovalRequest) -> bool:
        await trio.sleep(request.input["asks"])
        return True

    shared, results = runtime(alone, approve=approve), {}

    async def one(asks: int) -> None:
        results[asks] = (await shared.run([call("alone", asks=asks)])).results[0]

    async with trio.open_nursery() as nursery:
        for asks in (1, 0):
            nursery.start_soon(one, asks)
    began = trio.current_time() - 4
    assert {asks: result.content for asks, result in results.items()} == {
        0: f"ended at {began + 2:g}",
        1: f"ended at {began + 4:g}",
    }

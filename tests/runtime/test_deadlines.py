"""The deadline of a batch."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import toolrt
from tests.runtime._tools import call
from toolrt import Registry, Runtime, ToolCall, ToolContext, ToolOutput, sim
from toolrt.errors import DefinitionRefused
from toolrt.invariants import require


@toolrt.tool(safe=True)
async def lasts(ctx: ToolContext, seconds: float) -> ToolOutput:
    """Wait, and say so in the state."""
    await trio.sleep(seconds)
    return ToolOutput(seconds, modifiers=[lambda state: state.set(f"{seconds:g}", True)])


@toolrt.tool(safe=True)
async def opens(ctx: ToolContext) -> None:
    """Run two calls; one lasts too long."""
    await ctx.run(CALLS[1:])


@toolrt.tool(safe=True, interrupt="finish")
async def insists(ctx: ToolContext) -> str:
    """Go on whatever is cancelled."""
    await trio.sleep(4)
    return "done"


CALLS = [ToolCall(str(seconds), "lasts", {"seconds": seconds}) for seconds in (1.5, 1, 9)]


def explored(*calls: ToolCall, deadline: float, streamed: bool = False, **options: Any) -> list[Any]:
    """How the calls of one batch end under each schedule, the time at its end, and the keys of its state."""

    async def main() -> Any:
        runtime = Runtime(Registry([lasts, opens, insists]), **options)
        if not streamed:
            outcome = await runtime.run(calls, deadline=deadline)
        else:
            async with runtime.open_batch(deadline=deadline) as batch:
                for one in calls:
                    batch.submit(one)
                await trio.sleep(2 * deadline)
            outcome = batch.outcome
        ends = [f"{one.outcome.value}: {one.error}" if one.error else one.outcome.value for one in outcome.results]
        return ends, trio.current_time(), sorted(outcome.state)

    found: list[Any] = []

    def check(execution: sim.Execution) -> None:
        require(execution.trace)
        found.append(execution.value)

    report = sim.explore(main, strategy=sim.DPOR(), check=check, max_executions=300)
    assert report.verdict is not sim.FAIL
    assert all(value == found[0] for value in found)
    value: list[Any] = found[0]
    return value


WHY = "the batch was cancelled (its deadline of 2 s had passed)"


@pytest.mark.parametrize("deadline", [0, -1, float("inf"), float("nan"), True, "5"])
def test_deadline_is_finite_seconds_above_zero(deadline: Any) -> None:
    """Anything else is refused, and nothing is run."""

    async def main() -> None:
        runtime = Runtime(Registry([lasts]))
        with pytest.raises(DefinitionRefused, match="a batch's deadline: expected finite seconds above 0, or None"):
            runtime.open_batch(deadline=deadline)
        with pytest.raises(DefinitionRefused, match="a batch's deadline"):
            await runtime.run([], deadline=deadline)

    assert sim.run(main).error is None


@pytest.mark.parametrize("streamed", [False, True])
def test_deadline_leaves_each_call_a_true_outcome(streamed: bool) -> None:
    """What returned keeps its result and its modifiers, what runs is interrupted, what waits never starts."""
    ends, now, state = explored(*CALLS[1:], *CALLS, deadline=2, limit=2, streamed=streamed)
    assert ends[0] == "ok"
    assert ends[1].startswith("interrupted: ")
    assert "(its deadline of 2 s had passed); effects may have landed" in ends[1]
    assert ends[2].startswith("interrupted: ")
    assert ends[3:] == [f"not_started: not started: {WHY}"] * 2
    assert (now, state) == (4 if streamed else 2, ["1"])


def test_batch_that_ends_in_time_ends_as_without() -> None:
    """The deadline holds up nothing and leaves nothing behind."""
    assert explored(*CALLS[:2], deadline=60) == (["ok", "ok"], 1.5, ["1", "1.5"])


@pytest.mark.seldom
def test_deadline_is_that_of_sub_batches_too() -> None:
    """The calls of a sub-batch end with their parent; a tool that may finish does."""
    ends, now, _ = explored(call("opens"), call("insists"), deadline=2)
    assert ends[0].startswith("interrupted: ")
    assert (ends[1], now) == ("ok", 4)


def test_deadline_counts_from_the_begin_of_the_batch() -> None:
    """Not from where it was made."""

    async def main() -> float:
        batch = Runtime(Registry([lasts])).open_batch(deadline=2)
        await trio.sleep(5)
        async with batch:
            batch.submit(CALLS[2])
        return trio.current_time()

    assert sim.run(main).value == 7

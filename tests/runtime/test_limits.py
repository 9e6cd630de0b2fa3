"""Limits that batches and runtimes share, and rates."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

import toolrt
from tests.runtime._tools import call
from tests.runtime.test_slots import named
from toolrt import Claim, Limits, Rate, Registry, Runtime, ToolContext, sim
from toolrt.errors import BatchClosed, DefinitionRefused
from toolrt.invariants import Mix, require, simulate
from toolrt.invariants.script import Metered, Scripted, Sleep, SubBatch
from toolrt.order import Machine
from toolrt.order._rates import Rates

SAFE: dict[str, Any] = {"claims": None, "safe": True}
TOOLS = [named("a", **SAFE), named("b", **SAFE)]


async def began(runtime: Runtime, names: str, owner: Any = None) -> list[Any]:
    """When the calls of one batch began, or their errors."""
    outcome = await runtime.run([call(name) for name in names.split()], owner=owner)
    return [one.error if one.content is None else one.content for one in outcome.results]


def explored(main: Callable[[], Awaitable[Any]], judged: bool = True) -> Any:
    """What the program gives, the same under several schedules that keep the laws.

    Batches of two runtimes have the same names, so a trace of both is not `judged`.
    """
    values = []
    for seed in range(5):
        execution = sim.run(main, policy=sim.RandomWalk(seed))
        assert execution.error is None
        if judged:
            require(execution.trace)
        values.append(execution.value)
    assert all(value == values[0] for value in values)
    return values[0]


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2"])
@pytest.mark.parametrize("of", ["limit", "tools", "uses"])
def test_limit_is_a_whole_number_above_zero(of: str, number: Any) -> None:
    """Anything else is refused, with the name of the argument."""
    with pytest.raises(DefinitionRefused, match=rf"Limits\({of}\): expected a whole number, 1 or more, got"):
        Limits(**{of: number if of == "limit" else {"a": number}})


@pytest.mark.parametrize("key", [(), 1, ("a", 2)])
def test_limit_of_tools_names_them(key: Any) -> None:
    """Its key is a name, or a tuple of names."""
    with pytest.raises(DefinitionRefused, match="a tool's name, or a tuple of names"):
        Limits(tools={key: 1})


@pytest.mark.parametrize("per_second", [0, -1, float("inf"), float("nan"), True, "5", None])
def test_rate_is_a_finite_number_above_zero(per_second: Any) -> None:
    """Anything else is refused where the rate is made."""
    with pytest.raises(DefinitionRefused, match="a rate's per_second: expected a finite number above 0, got"):
        Rate("api", per_second=per_second)


def test_runtime_takes_limits_alone() -> None:
    """A number is a batch's: the error says so."""
    with pytest.raises(DefinitionRefused, match="`limit=` is a batch's"):
        Runtime(Registry(TOOLS), limits=3)  # type: ignore[arg-type]


def test_limits_are_shared_by_batches_and_runtimes() -> None:
    """No more run at once than the limit says, whatever batch they are of, and batches take turns."""

    async def main() -> Any:
        limits, found = Limits(2), {}
        runtimes = [Runtime(Registry(TOOLS), limits=limits), Runtime(Registry(TOOLS), limits=limits, limit=None)]

        async def one(number: int) -> None:
            found[number] = await began(runtimes[number % 2], "a a a a")

        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(one, number)
        assert limits.statistics() == {"": 0}
        return sorted(time for times in found.values() for time in times), all(times[0] < 3 for times in found.values())

    times, in_turn = explored(main, judged=False)
    assert times == [at for at in range(6) for _ in range(2)]
    assert in_turn, "a batch waited while another one took more than its turn"


def test_limit_of_a_tool_holds_up_no_other_tool() -> None:
    """A call for which its tool's limit has no room lets later ready calls go; tools may share one limit."""

    async def main() -> Any:
        runtime = Runtime(Registry([*TOOLS, named("c", **SAFE)]), limits=Limits(tools={"a": 1, ("b", "c"): 1}))
        return await began(runtime, "a a b c a")

    assert explored(main) == [0, 1, 0, 1, 2]


def test_call_that_waits_takes_no_share() -> None:
    """One that waits for a file, or for an approval, lets others have its share."""

    async def main() -> Any:
        file = named("file", Claim("f", toolrt.WRITE))
        runtime = Runtime(Registry([file, *TOOLS]), limits=Limits(2))
        return await began(runtime, "file file a")

    assert explored(main) == [0, 1, 0]


@pytest.mark.parametrize("other", [False, True])
def test_calls_inside_a_call_run_in_its_share(other: bool) -> None:
    """With a limit of one a tool can open a batch, of its own runtime or of another that shares the limit."""

    async def main() -> Any:
        limits = Limits(1, tools={"a": 1})
        inner = Runtime(Registry(TOOLS), limits=limits)

        async def body(ctx: ToolContext) -> Any:
            outcome = await (inner if other else ctx).run([call("a"), call("a")])
            return [one.content for one in outcome.results]

        opens = toolrt.tool(name="opens", safe=True)(body)
        return await began(Runtime(Registry([opens, *TOOLS]), limits=limits), "opens a")

    assert explored(main, judged=not other) == [[0, 0], 1]


def test_share_of_a_cancelled_call_goes_on() -> None:
    """A call that is cancelled while it waits is asked no more; one that runs gives its share to another batch."""

    async def main() -> Any:
        runtime = Runtime(Registry(TOOLS), limits=Limits(1))
        async with runtime.open_batch() as first, runtime.open_batch() as second:
            tracked = [first.submit(call("a")) for _ in range(2)]
            await trio.sleep(0.25)
            second.submit(call("b"))
            await trio.sleep(0.25)
            assert tracked[1].cancel()
            assert tracked[0].cancel()
            first.seal()
            second.seal()
        return [one.content for one in (*first.outcome.results, *second.outcome.results)]

    assert explored(main) == [None, None, 0.5]


def test_uses_of_a_conversation_are_counted_in_call_order() -> None:
    """The calls beyond are DENIED and say so; invalid ones do not count, another conversation has its own."""

    async def main() -> Any:
        runtime = Runtime(Registry(TOOLS), limits=(limits := Limits(uses={"a": 2, ("a", "b"): 3})))
        found = [await began(runtime, "a b a a b", "one"), await began(runtime, "a", "two")]
        found.append(await began(runtime, "b", "one"))
        limits.forget("one")
        return [*found, await began(runtime, "b", "one")]

    first, other, again, forgotten = explored(main)
    assert first[:3] == [0, 0, 0]
    assert first[3] == "denied: a conversation may use the tools 'a', 'b' together 3 times, and this is use 4"
    assert first[4].endswith("and this is use 5")
    assert (other, forgotten) == ([1], [2])
    assert again[0].endswith("and this is use 6")


@pytest.mark.parametrize(
    ("per_second", "begins"),
    [(2, [0, 0, 1, 1, 2]), (2.5, [0, 0, 0.8, 0.8, 1.6]), (0.5, [0, 2, 4, 6, 8]), (100, [0, 0, 0, 0, 0])],
)
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("lanes", [toolrt.by_claims, toolrt.serial, toolrt.parallel])
def test_rate_lets_calls_start_by_the_runs_clock(
    per_second: float, begins: list[float], lanes: Any, alone: bool
) -> None:
    """No window has more starts than the rate says, and no call waits longer; under every lane policy."""

    async def body(ctx: ToolContext) -> float:
        return trio.current_time()

    async def main() -> Any:
        tool = toolrt.tool(name="api", claims=[Rate("api", per_second=per_second)], alone=alone)(body)
        return await began(Runtime(Registry([tool]), lanes), "api api api api api")

    assert explored(main) == pytest.approx(begins)


def test_call_that_waits_for_a_rate_holds_no_slot() -> None:
    """With a limit of one, calls of other tools run while it waits; batches and sub-batches share the rate."""

    async def main() -> Any:
        api = named("api", Rate("api", per_second=0.25))

        async def body(ctx: ToolContext) -> Any:
            return (await ctx.run([call("api")])).results[0].content

        opens = toolrt.tool(name="opens", safe=True)(body)
        runtime = Runtime(Registry([api, opens, *TOOLS]), limit=1)
        return [await began(runtime, "api api a b"), await began(runtime, "opens a")]

    assert explored(main) == [[0, 4, 1, 2], [8, 9]]


def test_two_rates_of_one_name_are_an_error_that_names_both() -> None:
    """As for capacities, the later call in call order ends as ERROR."""

    async def main() -> Any:
        tools = [named(f"t{rate}", Rate("api", per_second=rate)) for rate in (2.5, 2.25)]
        return await began(Runtime(Registry(tools)), "t2.5 t2.25")

    first, error = explored(main)
    assert first == 0
    assert "this call claims rate api (2.25 per second), call 0 (t2.5) of batch" in error
    assert "claims rate api (2.5 per second)" in error


@pytest.mark.parametrize("lanes", ["by_claims", "by_safety", "parallel", "serial"])
def test_calls_of_a_sub_batch_need_no_rate_of_their_parent(lanes: str) -> None:
    """A rate is no resource, so a call that claims nothing opens them; the oracles say so, also beside a cancel."""
    inside = SubBatch([Scripted([Metered("a", 0.5)]), Scripted([Metered("a", 2.0)])], claimed=False)
    mix = Mix([Scripted([inside], says="safe"), Scripted([Sleep(4)])], lanes=lanes, cancel_after=3.25)
    trace = simulate(mix).trace
    require(trace)
    assert trace.notes["oracle"]["results"][0]["content"] == [[["ok", []], ["error", None]]]


@pytest.mark.parametrize("lanes", ["by_claims", "parallel"])
def test_calls_inside_two_calls_may_give_a_rate_two_numbers(lanes: str) -> None:
    """They have no order, so neither is an error; each starts by its own number, whichever of them comes first."""
    two, half = [
        Scripted([SubBatch([Scripted([Metered("a", rate)])] * 2, claimed=False)], says="safe") for rate in (2.0, 0.5)
    ]
    mix = Mix([two, Scripted([Metered("a", 0.5)]), half], lanes=lanes)
    for schedule in (None, [1] * 30, [2, 1, 0, 3] * 20):
        require(simulate(mix, schedule).trace)


def test_numbers_of_one_rate_forget_no_start() -> None:
    """Each keeps its own, also where a smaller or a larger one came between, and where many names are known."""
    two, less, four = (Rate("api", per_second=number) for number in (2.0, 1.9, 4.0))
    rates = Rates()
    rates.note([two], 0)
    rates.note([two], 0)
    rates.note([less], rates.next_start([less]))
    assert rates.next_start([two]) == 1, "the smaller number has kept one start alone"
    assert rates.next_start([four]) == -math.inf
    rates.note([four], 0.75)
    assert rates.next_start([four]) == 1, "all four starts count, also those of the other number"
    slow = Rate("slow", per_second=0.01)
    for rate in (slow, Rate("slow", per_second=5), *(Rate(f"other {number}", per_second=1) for number in range(1_000))):
        rates.note([rate], 2)
    assert rates.next_start([slow]) == 102, "it was forgotten after the window of the larger number"


def test_cancel_ends_the_wait_for_a_rate_at_once() -> None:
    """Of the batch, or of the one call that waits: nothing sleeps on for a start that will not come."""

    async def main() -> Any:
        for one in (False, True):
            runtime = Runtime(Registry([named("api", Rate("api", per_second=0.01))]))
            async with runtime.open_batch() as batch:
                tracked = [batch.submit(call("api")) for _ in range(2)]
                batch.seal()
                await trio.sleep(2)
                assert tracked[1].cancel() if one else batch.cancel() is None
        return trio.current_time()

    assert explored(main, judged=False) == 4


def test_limits_belong_to_one_run_at_a_time() -> None:
    """While a batch is open in one Trio run, a batch of another run that shares its limits is refused."""
    limits = Limits(1)

    async def inner() -> None:
        await Runtime(Registry(TOOLS), limits=limits).run([call("a")])

    async def main() -> None:
        async with Runtime(Registry(TOOLS), limits=limits).open_batch():
            with pytest.raises(BatchClosed, match="another Trio run"):
                await trio.to_thread.run_sync(trio.run, inner)

    trio.run(main)


def test_share_of_a_call_that_is_cancelled_before_its_first_step_goes_on() -> None:
    """Between the grant and the first step a cancel may come; under no schedule is the share lost with the call."""

    async def main() -> Any:
        limits = Limits(1)
        runtime = Runtime(Registry(TOOLS), limits=limits)
        async with runtime.open_batch() as batch:
            for _ in range(2):
                batch.submit(call("a"))
            batch.seal()
            await trio.sleep(1)  # the first call ends in this instant, and the second has its share
            batch.cancel()
        return limits.statistics(), len(await began(runtime, "b"))

    for seed in range(20):
        assert sim.run(main, policy=sim.RandomWalk(seed)).value == ({"": 0}, 1)


@pytest.mark.parametrize("claims", [[], [Rate("api", per_second=1)]], ids=["limit", "rate"])
def test_what_a_call_costs_does_not_grow_with_those_that_wait(claims: list[Any], monkeypatch: Any) -> None:
    """Of calls that wait for the same, the first alone is looked at."""
    looks = 0
    opens_at = Machine._opens_at

    def counted(self: Machine, call: Any) -> float:
        nonlocal looks
        looks += 1
        return opens_at(self, call)

    async def main(count: int) -> int:
        nonlocal looks
        looks = 0
        await began(Runtime(Registry([named("a", *claims)]), limits=Limits(1)), "a " * count)
        return looks

    monkeypatch.setattr(Machine, "_opens_at", counted)
    few, many = (sim.run(lambda count=count: main(count)).value for count in (10, 40))
    assert many <= 5 * few

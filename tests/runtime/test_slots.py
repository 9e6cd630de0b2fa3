"""Claims that take one of several places of a resource."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import toolrt
from tests.runtime._tools import READ, WRITE, call
from toolrt import Claim, Registry, Runtime, ToolContext, sim
from toolrt.errors import DefinitionRefused

GPU = Claim("gpu", slots=2)


def named(name: str, *held: Claim, **options: Any) -> toolrt.Tool:
    """A tool that lasts a second and answers with the time at which it began."""

    async def body(ctx: ToolContext) -> float:
        began = trio.current_time()
        await trio.sleep(1)
        return began

    return toolrt.tool(name=name, **{"claims": list(held), **options})(body)


def ended(tools: list[toolrt.Tool], names: str, **options: Any) -> list[Any]:
    """The contents of one batch with a call of each of the tools `names`; of a failed call its error."""

    async def main() -> list[Any]:
        outcome = await Runtime(Registry(tools), **options).run([call(name) for name in names.split()])
        return [
            one.content if one.outcome is toolrt.Outcome.OK else f"{one.outcome.value}: {one.error}"
            for one in outcome.results
        ]

    execution = sim.run(main)
    assert execution.error is None
    found: list[Any] = execution.value
    return found


@pytest.mark.parametrize("slots", [0, -1, True, 1.5, "2"])
def test_slots_are_a_whole_number_above_zero(slots: Any) -> None:
    """Anything else is refused where the claim is made."""
    with pytest.raises(DefinitionRefused, match="a claim's slots: expected a whole number, 1 or more, or None, got"):
        Claim("gpu", slots=slots)


def test_slots_of_a_subtree_are_refused() -> None:
    """Places belong to one resource."""
    with pytest.raises(DefinitionRefused, match="places belong to one resource"):
        Claim("gpu", WRITE, subtree=True, slots=2)


@pytest.mark.parametrize(
    ("claim", "begins"),
    [
        (GPU, [0, 0, 1, 1]),
        (Claim("gpu", READ, slots=2), [0, 0, 1, 1]),
        (Claim("gpu", WRITE), [0, 0, 1, 2]),
        (Claim("gpu", READ), [0, 0, 1, 2]),
        (Claim((), READ, subtree=True), [0, 0, 1, 2]),
        (Claim("other", WRITE), [0, 0, 0, 1]),
    ],
)
def test_claim_beside_places_waits_for_all_or_takes_one(claim: Claim, begins: list[float]) -> None:
    """A claim with slots takes a place, whatever its mode; one without means all places, whatever its mode."""
    assert ended([named("gpu", GPU), named("asks", claim)], "gpu gpu asks gpu") == begins


def test_places_are_granted_in_call_order_whatever_else_a_call_waits_for() -> None:
    """A call that waits for a file keeps its place in the order: the last call may not overtake it."""
    tools = [named("file", Claim("f", WRITE)), named("both", Claim("f", WRITE), GPU), named("gpu", GPU)]
    assert ended(tools, "file both gpu gpu") == [0, 1, 0, 1]


@pytest.mark.parametrize("lanes", [toolrt.by_claims, toolrt.serial])
def test_two_capacities_are_an_error_that_names_both(lanes: Any) -> None:
    """The later call in call order ends as ERROR; the first one and those that agree with it run."""
    tools = [named("two", GPU), named("three", Claim("gpu", slots=3)), named("self", GPU, Claim("gpu", slots=4))]
    first, second, third, last = ended(tools, "two three self two", lanes=lanes)
    said = "call 0 (two) of batch batch-1 claims write gpu (one of 2); nothing was run"
    assert second.startswith(f"error: two capacities for one resource: this call claims write gpu (one of 3), {said}")
    assert "(one of 4)" in third
    assert (first, last) == ((0, 0) if lanes is toolrt.by_claims else (0, 1))


def test_capacity_is_said_anew_when_no_batch_is_open() -> None:
    """A program may change a capacity between its batches; while a batch is open all of them have to agree."""

    async def main() -> list[str]:
        runtime = Runtime(Registry([named("two", GPU), named("three", Claim("gpu", slots=3))]))
        found = []
        for names in ("two", "three"):
            found += [one.outcome.value for one in (await runtime.run([call(names)])).results]
        async with runtime.open_batch() as batch:
            batch.submit(call("two"))
            await trio.sleep(0.5)  # its lane takes its tickets
            found += [one.outcome.value for one in (await runtime.run([call("three")])).results]
        return found

    assert sim.run(main).value == ["ok", "ok", "error"]


def test_place_of_a_call_that_is_cancelled_goes_to_the_next() -> None:
    """One that waits leaves as if it had not been there, and one that runs gives its place on."""

    async def main() -> list[Any]:
        runtime = Runtime(Registry([named("gpu", Claim("gpu", slots=1))]))
        async with runtime.open_batch() as batch:
            tracked = [batch.submit(call("gpu")) for _ in range(4)]
            batch.seal()
            await trio.sleep(0.5)
            assert [one.waits_for for one in tracked[1:]] == [[0], [0], [0]]
            assert tracked[0].cancel()
            assert tracked[1].cancel()
        return [one.content for one in batch.outcome.results]

    assert sim.run(main).value == [None, None, 0.5, 1.5]


@pytest.mark.parametrize(
    ("held", "begins"), [([GPU], [0, 1, 2]), ([Claim("gpu", WRITE)], [0, 0, 1]), ([toolrt.EVERYTHING], [0, 0, 1])]
)
def test_parent_lends_the_places_that_it_has(held: list[Claim], begins: list[float]) -> None:
    """Inside a call with one place the children take turns; inside one that has all they share them."""

    async def body(ctx: ToolContext) -> list[Any]:
        return [one.content for one in (await ctx.run([call("gpu")] * 3)).results]

    opens = toolrt.tool(name="opens", claims=held)(body)
    assert ended([opens, named("gpu", GPU)], "opens") == [begins]


def test_child_needs_a_place_of_its_parents_capacity() -> None:
    """A parent that has one of three places covers no child that takes one of two."""

    async def body(ctx: ToolContext) -> Any:
        return (await ctx.run([call("gpu")])).results[0].error

    opens = toolrt.tool(name="opens", claims=[Claim("gpu", slots=3)])(body)
    [error] = ended([opens, named("gpu", GPU)], "opens")
    assert "it claims write gpu (one of 2)" in error
    assert "holds write gpu (one of 3)" in error


def test_late_claims_take_places_in_call_order() -> None:
    """A call whose claims are known late takes its place before those behind it."""
    late = named("late", claims=lambda input, state: [Claim("gpu", slots=1)], claims_after=[Claim("x", READ)])
    tools = [named("x", Claim("x", WRITE)), late, named("gpu", Claim("gpu", slots=1))]
    assert ended(tools, "x late gpu") == [0, 1, 2]


def test_approval_that_narrows_keeps_the_place() -> None:
    """Tickets are in call order before the check is asked, so what it leaves out gives no place to later calls."""

    async def main() -> list[Any]:
        tool = named("gpu", Claim("gpu", slots=1), Claim("f", WRITE))
        check = lambda request: toolrt.Allow(within=[Claim("f", WRITE)])  # noqa: E731
        outcome = await Runtime(Registry([tool]), approve=check).run([call("gpu"), call("gpu")])
        return [one.content for one in outcome.results]

    assert sim.run(main).value == [0, 1]


def test_place_on_a_key_of_the_state_keeps_calls_apart() -> None:
    """A key has one value, so calls that take places of it are in lanes of their own, as writers are."""
    key = Claim(("state", "x"), slots=2)
    assert ended([named("key", key)], "key key") == [0, 1]

"""Lanes against their rules: who may share one, and whom a claim on the state keeps out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings

import toolrt
from tests.order._choices import Choices, choices
from toolrt import ToolContext
from toolrt.model import EVERYTHING, READ, WRITE, Claim, Registry, State, Tool, ToolCall
from toolrt.order import LANE_POLICIES, StateKeys, partition

RESOURCES = (("state", "k"), ("state", "j"), ("state",), ("state", "k", "x"), ("file", "k"), ())


def _claims(choices: Choices) -> tuple[Claim, ...]:
    mode = choices.one_of
    return tuple(
        Claim(choices.one_of(RESOURCES), mode((READ, WRITE)), choices.one_in(3)) for _ in range(choices.below(4))
    )


def _of_state(claim: Claim) -> bool:
    return claim.resource[:1] == ("state",) or (claim.resource == () and claim.subtree)


def _writes_everything(claims: tuple[Claim, ...]) -> bool:
    return any(one.conflicts_with(Claim((), READ, subtree=True)) and one.covers(EVERYTHING) for one in claims)


def _keeps_out(mine: tuple[Claim, ...], earlier: list[tuple[Claim, ...]]) -> bool:
    """Rule 3: a claim on the state, or on everything, conflicts with one of an earlier call of the lane.

    Who writes everything shares a lane with no call.
    """
    if earlier and (_writes_everything(mine) or any(map(_writes_everything, earlier))):
        return True
    others = [other for theirs in earlier for other in theirs if _of_state(other)]
    return any(one.conflicts_with(other) for one in mine if _of_state(one) for other in others)


@settings(max_examples=4 * settings.default.max_examples)
@given(choices=choices(120))
def test_claims_on_the_state_keep_calls_apart(choices: Choices) -> None:
    """A call is let in where none of its claims on the state or on everything conflicts; only then they count."""
    apart = not choices.one_in(5)
    keys, earlier = StateKeys(apart), list[tuple[Claim, ...]]()
    while choices.more:
        mine, record = _claims(choices), not choices.one_in(4)
        admitted = keys.admits(mine, not earlier, record)
        assert admitted == (not apart or not _keeps_out(mine, earlier))
        if admitted and record:
            earlier.append(mine)


def _gives(claims: tuple[Claim, ...]) -> Callable[..., tuple[Claim, ...]]:
    return lambda input, state: claims


def _tool(name: str, choices: Choices) -> tuple[Tool, tuple[Claim, ...], tuple[Claim, ...]]:
    """A tool, what it claims, and what these claims look at."""
    said: dict[str, Any] = {"alone": choices.one_in(6)}
    claims: tuple[Claim, ...] = (EVERYTHING,)
    after: tuple[Claim, ...] = ()
    if choices.one_in(2):
        claims = _claims(choices)
        said["claims"] = _gives(claims)
        if choices.one_in(3):
            after = _claims(choices)
            said["claims_after"] = _gives(after)
    elif choices.one_in(2):
        said["safe"], claims = True, ()

    def body(ctx: ToolContext) -> str:
        return ""

    made = toolrt.tool(name=name, schema=None, **said)(body)
    return made, (EVERYTHING,) if said["alone"] else claims, () if said["alone"] else after


def _shares(policy: str, tool: Tool) -> bool:
    if policy in ("parallel", "serial"):
        return policy == "parallel"
    return not tool.alone and (tool.is_safe({}) or (policy == "by_claims" and tool.claims is not None))


@settings(max_examples=2 * settings.default.max_examples)
@given(choices=choices(120))
def test_partition_follows_the_rules(choices: Choices) -> None:
    """A lane is a maximal run of calls that may overlap; a claim on the state that conflicts opens the next one."""
    tools = [_tool(f"tool {number}", choices) for number in range(1 + choices.below(5))]
    policy = choices.one_of(list(LANE_POLICIES))
    chosen = [choices.one_of(tools) for _ in range(choices.below(8))]
    lanes: list[tuple[bool, list[int]]] = []
    earlier: list[tuple[Claim, ...]] = []
    for index, (tool, claims, after) in enumerate(chosen):
        shared = _shares(policy, tool)
        mine = (*claims, *after) if shared else (EVERYTHING,)
        joins = shared and lanes and lanes[-1][0]
        if not joins or (policy != "parallel" and _keeps_out(mine, earlier)):
            lanes.append((shared, []))
            earlier = []
        earlier.append(mine)
        lanes[-1][1].append(index)
    calls = [ToolCall(str(index), tool.name, {}) for index, (tool, _, _) in enumerate(chosen)]
    found = partition(calls, Registry([tool for tool, _, _ in tools]), State(), LANE_POLICIES[policy])
    assert [(lane.safe, [int(call.call_id) for call in lane.calls]) for lane in found] == lanes
    assert [lane.index for lane in found] == list(range(len(lanes)))

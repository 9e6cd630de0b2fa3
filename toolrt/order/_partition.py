"""Computes the lanes of a list of calls without running them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from toolrt.errors import PolicyRefused
from toolrt.model import Registry, State, ToolCall
from toolrt.order._lanes import LANE_POLICIES, StateKeys, by_claims, claims_of, looked_at_by, parallel
from toolrt.order._policies import LaneChoice, LanePlacing, LanePolicy, PolicyCall, checked_lanes, policy_name


@attrs.frozen
class Lane:
    """One lane of a plan."""

    #: Its place among the batch's lanes, from 0.
    index: int
    #: Whether its calls may overlap; False for one exclusive call.
    safe: bool
    #: Its calls, in call order.
    calls: tuple[ToolCall, ...]


def partition(
    calls: Sequence[ToolCall],
    registry: Registry,
    state: State | None = None,
    policy: LanePolicy = by_claims,
) -> list[Lane]:
    """The lanes in which a runtime would run `calls`, without running them.

    Invalid calls belong to no lane.  Claims on state keys are looked up with `state`, as if no earlier lane
    changed it.  A policy of your own is asked twice, which shows one that keeps state between batches.

    Args:
        registry: the tools.
        policy: who shares a lane: `by_claims`, `by_safety`, `parallel`, `serial`, or one of your own.

    Raises:
        DefinitionRefused: `policy` cannot be a lane policy.
        PolicyRefused: a rule of your own failed, or gave other lanes when it was asked again.

    Ordering: lanes come in the order in which they would run, and calls in a lane by call_index.
    """
    state = State() if state is None else state
    if any(policy is own for own in LANE_POLICIES.values()):
        return _planned(calls, registry, state, policy)
    policy = checked_lanes("partition(policy)", policy)
    found = _planned(calls, registry, state, policy)
    again = _planned(calls, registry, state, policy)
    if again == found:
        # One more call in between: a policy that counts is out of step then, whatever it counts to.
        _planned(calls[:1], registry, state, policy)
        again = _planned(calls, registry, state, policy)
    if again != found:
        places = {id(call): str(index) for index, call in enumerate(calls)}
        first, second = (
            " ".join("[" + ", ".join(places[id(call)] for call in lane.calls) + "]" for lane in lanes)
            for lanes in (found, again)
        )
        got = f"calls {first}, and then {second}"
        remedy = "Let it decide from the lane that it is shown, or give it for_batch(), which gives a fresh policy."
        raise PolicyRefused("lane", policy_name(policy), "the same lanes when it is asked twice", got, remedy=remedy)
    return found


def _planned(calls: Sequence[ToolCall], registry: Registry, state: State, policy: LanePolicy) -> list[Lane]:
    lanes: list[tuple[bool, list[ToolCall]]] = []
    apart = policy is not parallel
    keys, placing = StateKeys(apart), LanePlacing(policy)
    for index, call in enumerate(calls):
        tool = registry.get(call.name)
        if tool is None or isinstance(tool.decode(call.input), list):
            continue
        choice = placing.place(PolicyCall(index, call.name, call.input, tool))
        shared = choice is not LaneChoice.ALONE
        claims = (*claims_of(tool, call.input, state, shared), *looked_at_by(tool, call.input, state, shared))
        joins = choice is LaneChoice.JOIN and lanes and lanes[-1][0]
        declared = tool.claims is not None or not claims
        if not (joins and keys.admits(claims, False, declared=declared)):
            lanes.append((shared, []))
            keys = StateKeys(apart)
            keys.admits(claims, True, declared=declared)
        lanes[-1][1].append(call)
    return [Lane(index, shared, tuple(members)) for index, (shared, members) in enumerate(lanes)]

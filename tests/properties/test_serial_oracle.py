"""The serial oracle agrees with the runtime and with the other oracle; two defects that both shared do not pass it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import toolrt
from toolrt import (
    EVERYTHING,
    READ,
    WRITE,
    Claim,
    Outcome,
    Registry,
    Runtime,
    State,
    ToolCall,
    ToolContext,
    ToolOutput,
    sim,
)
from toolrt.invariants import Mix
from toolrt.invariants.serial import SerialEnding, SerialRun, conflict, lies_within
from toolrt.order import StateKeys
from toolrt.testing import tool_mixes

_PATHS = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)
_CLAIMS = st.builds(Claim, _PATHS, st.sampled_from([READ, WRITE]), st.booleans())


@given(one=_CLAIMS, other=_CLAIMS)
def test_two_definitions_of_a_claim_agree(one: Claim, other: Claim) -> None:
    """Of a conflict, and of what a call may touch inside another one."""
    assert conflict(one, other) == one.conflicts_with(other) == conflict(other, one)
    assert lies_within(one, [other]) == other.covers(one)


def _same(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    refused = ("invalid", "denied", "timed_out", "skipped")
    for one, other in zip(mine["results"], theirs["results"], strict=True):
        assert one["outcome"] == other["outcome"], (one, other)
        assert one["outcome"] in refused or (one["content"], one["error"]) == (other["content"], other["error"])
    assert mine["state"] == theirs["state"]
    assert mine["files"] == theirs["files"]


@given(mix=tool_mixes())
@settings(suppress_health_check=list(HealthCheck))
def test_two_oracles_agree_on_lanes_of_one_call(mix: Mix) -> None:
    """Where each call is alone in its lane, the oracle of the plan and the serial oracle say the same."""
    _same(mix._serially(), mix._one_by_one(toolrt.serial))


# What the runtime and its laws once had in common


@toolrt.tool(claims=[EVERYTHING])
async def looks(ctx: ToolContext, key: str) -> Any:
    return ctx.state.get(key)


@toolrt.tool(claims=lambda input, state: [Claim(("state", input["key"]), WRITE)])
async def puts(ctx: ToolContext, key: str, value: int) -> ToolOutput:
    return ToolOutput(value, modifiers=[lambda state: state.set(key, value)])


@toolrt.tool(claims=lambda input, state: [Claim((), READ, subtree=True)])
async def looks_below(ctx: ToolContext, key: str) -> Any:
    return ctx.state.get(key)


@toolrt.tool(claims=[EVERYTHING])
async def inside(ctx: ToolContext, name: str, key: str) -> Any:
    outcome = await ctx.run([ToolCall("child", name, {"key": key})])
    return [(result.outcome.value, result.content) for result in outcome.results]


_REGISTRY = Registry([looks, puts, looks_below, inside])
_KEYS = st.sampled_from("kl")
_LOOKS = st.sampled_from(["looks", "looks_below"])
_CALLS = st.lists(
    st.one_of(
        st.builds(lambda key: ("looks", {"key": key}), _KEYS),
        st.builds(lambda key: ("looks_below", {"key": key}), _KEYS),
        st.builds(lambda key, value: ("puts", {"key": key, "value": value}), _KEYS, st.integers(0, 2)),
        st.builds(lambda name, key: ("inside", {"name": name, "key": key}), _LOOKS, _KEYS),
    ),
    min_size=1,
    max_size=5,
).map(lambda drawn: [ToolCall(f"id{index}", *call) for index, call in enumerate(drawn)])


def _ends_as_serial(calls: list[ToolCall], seed: int = 1) -> None:
    async def by_claims() -> Any:
        return await Runtime(_REGISTRY).run(calls)

    execution = sim.run(by_claims, sim.RandomWalk(seed=seed))
    assert execution.error is None
    done = execution.value
    serial: SerialEnding = sim.run(lambda: SerialRun(_REGISTRY).run(calls, State())).value
    got, expected = ([(one.outcome, one.content) for one in ending.results] for ending in (done, serial))
    assert got == expected
    assert done.state == serial.state


@given(calls=_CALLS, seed=st.integers(0, 1_000))
def test_claims_on_everything_end_as_one_call_after_the_other(calls: list[ToolCall], seed: int) -> None:
    """Also of calls inside them, and where only what is below the root is looked at."""
    _ends_as_serial(calls, seed)


def _admits_root_claims(keys: StateKeys, claims: Any, *args: Any, **options: Any) -> bool:
    """Admit what claims everything as if it touched no state."""
    return _ADMITS(keys, tuple(claim for claim in claims if claim.resource), *args, **options)


_ADMITS = StateKeys.admits


def _found_in_100(holds: Callable[..., None]) -> bool:
    """Whether Hypothesis finds an example that does not hold, with its default number of them."""

    @settings(max_examples=100, database=None, phases=[Phase.generate], deadline=None)
    @given(calls=_CALLS)
    def holds_for(calls: list[ToolCall]) -> None:
        holds(calls)

    try:
        holds_for()
    except AssertionError:
        return True
    return False


@pytest.mark.seldom
def test_root_claim_that_admits_state_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a call that claims everything read the state that its lane had started with."""
    assert not _found_in_100(_ends_as_serial)
    monkeypatch.setattr(StateKeys, "admits", _admits_root_claims)
    assert _found_in_100(_ends_as_serial)


# The rules, one by one


def _serial(calls: list[tuple[str, dict[str, Any]]], *tools: Any, **options: Any) -> SerialEnding:
    named = [ToolCall(f"id{index}", *call) for index, call in enumerate(calls)]
    ending = sim.run(lambda: SerialRun(Registry(tools), **options).run(named, State())).value
    assert isinstance(ending, SerialEnding)
    return ending


@toolrt.tool(stops_batch=True)
async def fails(ctx: ToolContext) -> None:
    raise ValueError("no")


@toolrt.tool(timeout=1)
async def takes_long(ctx: ToolContext) -> None:
    await trio.sleep(2)


def _outcomes(ending: SerialEnding) -> list[Outcome]:
    return [result.outcome for result in ending.results]


def test_failure_of_a_call_that_stops_the_batch_skips_the_rest() -> None:
    """Also calls that are not valid."""
    calls: list[tuple[str, dict[str, Any]]] = [("takes_long", {}), ("fails", {}), ("nothing", {}), ("fails", {})]
    ending = _serial(calls, fails, takes_long)
    assert _outcomes(ending) == [Outcome.TIMED_OUT, Outcome.ERROR, Outcome.SKIPPED, Outcome.SKIPPED]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (True, Outcome.OK),
        ("no", Outcome.DENIED),
        (toolrt.Rewrite({"key": "l", "value": 2}), Outcome.OK),
        (toolrt.Rewrite({"key": 1}), Outcome.DENIED),
        (toolrt.Allow(within=(Claim(("state", "k"), WRITE),)), Outcome.OK),
        (1 / 3, Outcome.DENIED),
    ],
)
def test_approval_is_asked_once_and_what_is_no_clear_yes_denies(answer: Any, outcome: Outcome) -> None:
    """A rewritten input is validated; what it touches, the outermost call may."""
    asked = itertools.count()

    def approve(request: toolrt.ApprovalRequest) -> Any:
        next(asked)
        return answer

    ending = _serial([("puts", {"key": "k", "value": 1})], puts, approve=approve)
    assert _outcomes(ending) == [outcome]
    assert next(asked) == 1


def test_what_an_approval_leaves_a_call_holds_for_the_calls_inside_it() -> None:
    """A child that claims more is invalid, and a rewrite inside may not claim more than the call."""
    narrowed = toolrt.Allow(within=(Claim(("state", "k"), READ),))
    ending = _serial([("inside", {"name": "looks", "key": "k"})], inside, looks, approve=lambda request: narrowed)
    assert ending.results[0].content == [("invalid", None)]


def test_modifier_that_fails_changes_nothing() -> None:
    """The others of its call apply, and it is told which parts of the state are other."""

    @toolrt.tool
    async def both(ctx: ToolContext) -> ToolOutput:
        return ToolOutput("", modifiers=[lambda state: state["nothing"], lambda state: state.set("k", 1)])

    ending = _serial([("both", {})], both)
    assert ending.state.get("k") == 1
    assert len(ending.modifiers) == 1
    assert ending.sets == (frozenset({("value", "k")}),)

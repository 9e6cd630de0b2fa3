"""Hypothesis strategies: what is run, in which order it ends, and under which schedule.

Rules.
    1. What is drawn keeps its promises: a scripted call claims what it touches, and nothing it draws depends on a tie
       between a timeout and the end of a sleep.
    2. The simplest mix is one call that does nothing; the simplest schedule is the empty list.
    3. A mix first draws which features it has, and then only what these allow; see `toolrt.testing._strategies_calls`.
    4. Some mixes change when their calls end: all in one instant, in reversed order, in any order.

Theory.  A list of small numbers is a schedule of every program (`toolrt.sim.Choices`), so shrinking the list
shrinks the schedule: shorter, then fewer and lower choices.  Calls that end in one virtual instant end in the order
that the schedule chooses, whatever their order and duration.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import attrs
from hypothesis import strategies as st

from toolrt.errors import DefinitionRefused
from toolrt.invariants import Mix, script
from toolrt.invariants.script import Scripted
from toolrt.order import LanePolicy, SlotPolicy, checked_lanes, checked_slots
from toolrt.testing._strategies_calls import DOING, FEATURES, IDLE, Palette, call_of, calls_of

__all__ = ["completion_orders", "schedules", "scripted_calls", "tool_mixes"]

#: The lane policies, simplest first.
_POLICIES = ("by_claims", "by_safety", "parallel", "serial")

#: The same, as often as they are drawn: `serial` leaves nothing to a schedule.
_OFTEN_DRAWN = ("by_claims", "by_safety", "parallel", "by_claims", "by_safety", "parallel", "by_claims", "serial")


def schedules(max_size: int = 60, max_choice: int = 4) -> st.SearchStrategy[list[int]]:
    """Lists of small numbers, one for each step: what `simulate` takes as a schedule.

    Args:
        max_size: how many steps are chosen at most; after them every choice is the simplest.
        max_choice: the highest choice; one that is higher than what is enabled means the last.
    """
    choices = st.integers(0, max_choice)
    # Lists are drawn short, and most steps of a mix come after their end; so half of them are drawn long.
    return st.lists(choices, max_size=max_size) | st.lists(choices, min_size=max_size // 2, max_size=max_size)


def completion_orders(mix: Mix) -> st.SearchStrategy[list[int]]:
    """Ranks for the calls of `mix`, equal ranks for a tie: what `simulate` takes as a completion order."""
    count = len(mix.calls)
    return st.lists(st.integers(0, max(0, count - 1)), min_size=count, max_size=count)


#: The features that an argument of `tool_mixes` turns off.
_OF_ARGUMENT: Mapping[str, tuple[str, ...]] = {
    "files": ("files",),
    "state": ("state", "overwrite", "broken"),
    "failures": ("fail", "leave", "protest"),
    "timeouts": ("timeouts",),
    "stops": ("stops",),
    "approvals": ("approvals",),
    "shields": ("shield",),
    "invalid": ("invalid",),
    "sub_batches": ("sub-batches",),
}

#: How many of twenty mixes have each feature of batches.
_OF_BATCHES: Mapping[str, int] = {"crowd": 6, "one name": 6, "many names": 3, "limit": 8, "delays": 8}

# Made once: a strategy made anew for each draw costs more than what it draws.
_LIMIT = st.sampled_from([10, 2, 1, 3, 2, 1])
_DELAY = st.sampled_from([0.0, 1.0, 2.0])
_CANCEL = st.sampled_from([1.0, 0.25, 2.0, 1.25, 1.0, 3.25, 0.0])
_RARELY = st.sampled_from([False, False, False, True])
_ENDS = st.sampled_from([None, None, None, "tied", "reversed", "forward", "any"])
_RANK = st.integers(0, 3)

#: Which subset of the features a mix has.
_SWARM = st.integers(0, 2_000)

#: How many calls a mix has at most that is no crowd.
_FEW = 4


@lru_cache(10_000)
def _swarm(number: int, off: frozenset[str], fails: bool) -> tuple[frozenset[str], Palette]:
    """A subset of the features but those that are `off`: of batches, and what calls are drawn from.

    It is one number, so that a mix shrinks by its calls and not feature by feature; 0 is as few as there can be.
    """
    if number == 0:
        return frozenset(), Palette(frozenset({"cells", "state"} - off), fails=fails)
    chance = random.Random(number)
    has = frozenset(name for name, share in _OF_BATCHES.items() if chance.randrange(20) < share)
    features = {name for name, share in FEATURES.items() if name not in DOING and chance.randrange(20) < share}
    # Few kinds of action in one mix, so that calls meet: a kind's share is its weight (Efraimidis and Spirakis, 2006).
    doing = sorted(DOING, key=lambda name: chance.random() ** (1 / FEATURES[name]), reverse=True)
    features.update([name for name in doing if name not in off][: chance.choice((1, 2, 2, 3, 3, 4))])
    if "stops" in features and chance.random() < 0.5:
        # A stop meets calls that run beside the one that fails only where these do nothing but read.
        features |= {"readers", chance.choice(("cells", "files", "paths"))}
    if "sub-batches" in features and chance.random() < 0.5:
        # The calls of a sub-batch meet each other only where they touch the same things, and they are few.
        features.add(chance.choice(("cells", "files", "paths")))
        has = has - {"many names"} | {"one name"}
    palette = Palette(frozenset(features) - off, max_actions=2 if "crowd" in has else 4, fails=fails, depth=2)
    if "one name" in has:
        palette = attrs.evolve(palette, cells=("a",), files=("f",), keys=("x",))
    elif "many names" in has:
        palette = attrs.evolve(palette, cells=tuple("abcdefgh"), files=tuple("fghijkl"), keys=tuple("xyzuvw"))
    return has, palette


@cache
def _off(**wanted: bool) -> frozenset[str]:
    return frozenset(name for argument, names in _OF_ARGUMENT.items() if not wanted[argument] for name in names)


@cache
def scripted_calls(
    files: bool = True,
    state: bool = True,
    failures: bool = True,
    timeouts: bool = True,
    stops: bool = True,
    approvals: bool = False,
    shields: bool = True,
    invalid: bool = True,
    max_actions: int = 4,
    sub_batches: int = 0,
) -> st.SearchStrategy[Scripted]:
    """One scripted call of at most `max_actions` actions; see `tool_mixes` for the other arguments.

    Args:
        sub_batches: how deep calls open sub-batches; 0: none does.
    """
    off = _off(
        files=files,
        state=state,
        failures=failures,
        timeouts=timeouts,
        stops=stops,
        approvals=approvals,
        shields=shields,
        invalid=invalid,
        sub_batches=sub_batches > 0,
    )
    return call_of(Palette(frozenset(FEATURES) - off, max_actions=max_actions, fails=failures, depth=sub_batches))


@cache
def _one_of(values: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@cache
def _delays(count: int) -> st.SearchStrategy[list[float]]:
    return st.lists(_DELAY, max_size=count)


@cache
def _ranks(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(_RANK, max_size=count)


def _ending(draw: st.DrawFn, calls: list[Scripted]) -> list[Scripted]:
    """The calls, some of them ending at other times than they were drawn."""
    ends = draw(_ENDS)
    if ends is None:
        return calls
    late = draw(_RARELY)
    if ends == "tied":
        seconds = [1] * len(calls)
    elif ends in ("reversed", "forward"):
        seconds = list(range(1, len(calls) + 1))[:: -1 if ends == "reversed" else 1]
    else:
        ranks = draw(_ranks(len(calls)))
        seconds = [rank + 1 for rank in ranks] + [1] * (len(calls) - len(ranks))
    return [_lasting(call, each, late) for call, each in zip(calls, seconds, strict=True)]


def _lasting(call: Scripted, seconds: int, late: bool) -> Scripted:
    if call.sync:
        return call
    if not late:
        return call.lasting(seconds)
    rest = [action for action in call.does if not isinstance(action, script.Sleep)]
    return attrs.evolve(call, does=(*rest, script.Sleep(seconds)))


def _drawn_policies(policies: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if policies == _POLICIES:
        return _one_of(_OFTEN_DRAWN)
    # A rule of a user's own need not be hashable.
    return _one_of(policies) if all(isinstance(one, str) for one in policies) else st.sampled_from(policies)


def _several(argument: str, given: Any) -> tuple[Any, ...]:
    """One policy, or several, as several."""
    found = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    if not found:
        raise DefinitionRefused(f"tool_mixes({argument})", "one policy at least", given)
    return found


@st.composite
def tool_mixes(
    draw: st.DrawFn,
    *,
    min_calls: int = 1,
    max_calls: int = 8,
    lanes: str | LanePolicy | Sequence[str | LanePolicy] = _POLICIES,
    slots: SlotPolicy | Sequence[SlotPolicy | None] | None = None,
    files: bool = True,
    state: bool = True,
    failures: bool = True,
    timeouts: bool = True,
    stops: bool = True,
    approvals: bool = True,
    shields: bool = True,
    invalid: bool = True,
    sub_batches: bool = True,
    limits: bool = True,
    streaming: bool = True,
    cancel: bool = False,
    readers: Sequence[str] = ("eager", "slow", "none"),
) -> Mix:
    """Batches of scripted calls.

    Each mix has a random subset of the features that the arguments leave on, so features meet in all combinations.

    Args:
        min_calls: the fewest calls of a batch.
        max_calls: the most calls of a batch; most have 4 at most.
        lanes: lane policies, by name or of your own: one, or several to draw from.
        slots: slot policies of your own, None for call order: one, or several to draw from.
        files: calls read, write and append to files.
        state: calls see the state and return modifiers, also one that raises, and one that sets an old value.
        failures: calls raise, return an error, or leave a nursery, a scope or a sub-batch open.
        timeouts: calls have timeouts of their own.
        stops: some calls skip what follows when they fail.
        approvals: some batches have an approval check, which allows, denies, rewrites, raises, and takes its time.
        shields: calls ignore a cancel for a while.
        invalid: calls name unknown tools, or their input does not fit.
        sub_batches: some batches have calls that open sub-batches, and so on.
        limits: batches with a limit of 1, 2 or 3.
        streaming: batches whose calls come one after the other.
        cancel: batches that are cancelled, from inside or outside.
        readers: who reads the updates: "eager", "slow", "none".
    """
    policies = _several("lanes", lanes)
    for policy in policies:
        if isinstance(policy, str) and policy not in _POLICIES:
            raise DefinitionRefused("tool_mixes(lanes)", f"names of {', '.join(_POLICIES)}, or policies", policy)
        if not isinstance(policy, str):
            checked_lanes("tool_mixes(lanes)", policy)
    choosers = _several("slots", slots)
    for chooser in choosers:
        checked_slots("tool_mixes(slots)", chooser)
    off = _off(
        files=files,
        state=state,
        failures=failures,
        timeouts=timeouts,
        stops=stops,
        approvals=approvals,
        shields=shields,
        invalid=invalid,
        sub_batches=sub_batches,
    )
    has, palette = _swarm(draw(_SWARM), off, failures)
    few = max(min_calls, min(max_calls, _FEW))
    fewest, most = (min(few + 1, max_calls), max_calls) if "crowd" in has else (max(min_calls, min(2, max_calls)), few)
    if draw(IDLE):
        fewest = min_calls
    drawn = _ending(draw, draw(calls_of(palette, fewest, most)))
    return Mix(
        drawn,
        lanes=draw(_drawn_policies(policies)),
        limit=draw(_LIMIT) if limits and "limit" in has else 10,
        delays=draw(_delays(len(drawn))) if streaming and "delays" in has else (),
        cancel_after=draw(_CANCEL) if cancel else None,
        cancel_outside=draw(_RARELY) if cancel else False,
        reader=draw(_one_of(tuple(readers))),
        files={"f": "start "} if files else {},
        state={"x": "0"} if state else {},
        slots=draw(st.sampled_from(choosers)) if len(choosers) > 1 else choosers[0],
    )

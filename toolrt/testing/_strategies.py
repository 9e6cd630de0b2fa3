"""Hypothesis strategies: what is run, in which order it ends, and under which schedule.

Rules.
    1. What is drawn keeps its promises: a scripted call claims what it touches, and nothing it draws depends on a tie
       between a timeout and the end of a sleep.
    2. The simplest mix is one call that does nothing; the simplest schedule is the empty list.
    3. A mix first draws which features it has, and then only what these allow; see `toolrt.testing._strategies_shapes`.
    4. Some mixes change when their calls end: all in one instant, in reversed order, in any order.

Theory.  A list of small numbers is a schedule of every program (`toolrt.sim.Choices`), so shrinking the list
shrinks the schedule: shorter, then fewer and lower choices.  Calls that end in one virtual instant end in the order
that the schedule chooses, whatever their order and duration.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from toolrt.errors import DefinitionRefused
from toolrt.invariants import Mix
from toolrt.invariants.script import Scripted
from toolrt.order import LanePolicy, SlotPolicy, checked_lanes, checked_slots
from toolrt.testing._strategies_calls import IDLE, calls_of, can_be_beside, lasting, one_of
from toolrt.testing._strategies_meetings import COUNT, meeting
from toolrt.testing._strategies_shapes import CAN_GO, draw_number, swarm

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
    if max_choice > 255:
        return st.lists(st.integers(0, max_choice), max_size=max_size)

    def choices(drawn: bytes) -> list[int]:
        return [byte % (max_choice + 1) for byte in drawn]

    # One draw of bytes costs a fifth of a list's.  Most steps of a mix come late, so half of the lists are drawn long.
    every = st.binary(max_size=max_size) | st.binary(min_size=max_size // 2, max_size=max_size)
    return every.map(choices)


def completion_orders(mix: Mix) -> st.SearchStrategy[list[int]]:
    """Ranks for the calls of `mix`, equal ranks for a tie: what `simulate` takes as a completion order."""
    count = len(mix.calls)
    return st.lists(st.integers(0, max(0, count - 1)), min_size=count, max_size=count)


# Simplest first.
_LIMIT = (10, 2, 1, 3, 2, 1)
_SHARED = (2, 1, 3, 1, 2)
_LOW_LIMIT = (10, 2, 1, 3, 2, 2)
_DELAY = (0.0, 1.0, 2.0)
_CANCEL = (1.0, 0.25, 2.0, 1.25, 1.0, 3.25, 0.0)
_RARELY = (False, False, False, True)
_SELDOM = (False,) * 7 + (True,)
_DEADLINE = (1.25, 0.25, 2.0, 0.5, 3.25, 1.0)
_CRASH = (1.25, 0.0, 0.25, 1.0, 2.25, 0.5, 1.0)

#: How many calls the other batch has at most.
_BESIDE_MOST = 2

#: How many calls a mix has at most that is no crowd.
_FEW = 4

#: The fewest that may meet in a shape, and the most.
_SEVERAL = 3, 5


@cache
def _delays(count: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.sampled_from(_DELAY), max_size=count)


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
    limit: int | None = None,
    without: Collection[str] = (),
    cancel: bool = False,
    crash: bool = False,
    readers: Sequence[str] = ("eager", "slow", "none"),
) -> Mix:
    """Batches of scripted calls.

    Each mix has a random subset of the features below, so features meet in all combinations.

    - "files": calls read, write and append to files; some batches use the tools of a workspace on a twin disk.
    - "state": calls see the state and return modifiers, also one that raises, and one that sets an old value.
    - "failures": calls raise, return an error, or leave a nursery, a scope or a sub-batch open.
    - "timeouts": calls have timeouts of their own.
    - "stops": some calls skip what follows when they fail.
    - "approvals": some batches have an approval check, which allows, denies, rewrites, raises, and takes its time.
    - "shields": calls ignore a cancel for a while.
    - "invalid": calls name unknown tools, or their input does not fit.
    - "sub_batches": some batches have calls that open sub-batches, and so on.
    - "limits": some batches run 1, 2 or 3 calls at once, others 10.
    - "shared": batches with limits that they may share with others, and calls that start at a rate; beside some of them
      runs another batch.
    - "streaming": batches whose calls come one after the other.

    Args:
        min_calls: the fewest calls of a batch.
        max_calls: the most calls of a batch; most have 4 at most.
        lanes: lane policies, by name or of your own: one, or several to draw from.
        slots: slot policies of your own, None for call order: one, or several to draw from.
        limit: how many calls of each batch run at once; None: it is drawn.
        without: names of features that no mix has.
        cancel: batches that are cancelled, from inside or outside, or by their deadline; in some one call alone is.
        crash: in place of that the process of some batches crashes, and another one goes on with them.
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
    has_no = frozenset((without,) if isinstance(without, str) else without)
    if unknown := has_no - CAN_GO.keys():
        raise DefinitionRefused("tool_mixes(without)", f"names of {', '.join(CAN_GO)}", min(unknown, key=repr))
    off = frozenset(name for feature in has_no for name in CAN_GO[feature])
    has, palette = swarm(draw_number(draw), off, "failures" not in has_no)
    few = max(min_calls, min(max_calls, _FEW))
    fewest, most = (min(few + 1, max_calls), max_calls) if "crowd" in has else (max(min_calls, min(2, max_calls)), few)
    if "several" in has:
        fewest, most = (max(min_calls, min(count, max_calls)) for count in _SEVERAL)
    if one_of(draw, IDLE):
        fewest = min_calls
    met: list[Scripted] = []
    if "meeting" in has and few >= COUNT:
        met = meeting(draw, palette)
        fewest, most = max(0, fewest - COUNT), min(2, max_calls - COUNT)
    others = draw(calls_of(palette, min(fewest, most), most))
    drawn = [*met, *lasting(draw, others, palette.uneven)]
    if limit is None:
        is_low = "limit" in has and "limits" not in has_no
        limit = one_of(draw, _LOW_LIMIT if "several" in has else _LIMIT) if is_low else 10
    may_share = "shared" not in has_no
    beside: tuple[Scripted, ...] = ()
    if may_share and "beside" in has:
        beside = tuple(call for call in drawn if can_be_beside(call, drawn))[:_BESIDE_MOST]
    crash_after = deadline = cancel_after = None
    if crash and one_of(draw, _SELDOM) and not any(call.uses is not None or call.thread for call in drawn):
        crash_after, beside = one_of(draw, _CRASH), ()
    elif cancel and one_of(draw, _RARELY):
        deadline = one_of(draw, _DEADLINE)
    elif cancel:
        cancel_after = one_of(draw, _CANCEL)
    alone = cancel_after is not None and drawn and one_of(draw, _RARELY)
    return Mix(
        drawn,
        lanes=one_of(draw, _OFTEN_DRAWN if policies == _POLICIES else policies),
        limit=limit,
        delays=draw(_delays(len(drawn))) if "delays" in has and "streaming" not in has_no else (),
        cancel_after=cancel_after,
        cancel_call=one_of(draw, range(len(drawn))) if alone else None,
        cancel_outside=one_of(draw, _RARELY) if cancel_after is not None else False,
        deadline=deadline,
        crash_after=crash_after,
        reader=one_of(draw, tuple(readers)),
        files={"f": "start "} if "files" not in has_no else {},
        state={"x": "0"} if "state" not in has_no else {},
        slots=one_of(draw, choosers),
        shared=one_of(draw, _SHARED) if may_share and "shared limit" in has else None,
        shared_evens=one_of(draw, _SHARED) if may_share and "limit of evens" in has else None,
        uses_evens=one_of(draw, _SHARED) if may_share and "uses of evens" in has else None,
        beside=beside,
    )

"""Hypothesis strategies: what is run, in which order it ends, and under which schedule.

Rules.  What is drawn keeps its promises: a scripted call claims what it touches, and nothing it draws depends on a
tie between a timeout and the end of a sleep.  The simplest mix is one call that does nothing; the simplest schedule
is the empty list.

Theory.  A list of small numbers is a schedule of every program (`toolrt.sim.Choices`), so shrinking the list
shrinks the schedule: shorter, then fewer and lower choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import attrs
from hypothesis import strategies as st

from toolrt.errors import DefinitionRefused
from toolrt.invariants import Mix, script
from toolrt.invariants.script import Action, Scripted

__all__ = ["completion_orders", "schedules", "scripted_calls", "tool_mixes"]

#: Two of each, so that calls meet often.
_CELLS = ("a", "b")
_FILES = ("f", "g")
_KEYS = ("x", "y")

#: Whole seconds for what a call does, halves for its timeout: never a tie.
_SECONDS = (1.0, 2.0, 3.0)
_TIMEOUTS = (0.5, 1.5, 2.5)

#: The lane policies, simplest first.
_POLICIES = ("by_claims", "by_safety", "parallel", "serial")


def schedules(max_size: int = 60, max_choice: int = 4) -> st.SearchStrategy[list[int]]:
    """Lists of small numbers, one for each step: what `simulate` takes as a schedule.

    Args:
        max_size: how many steps are chosen at most; after them every choice is the simplest.
        max_choice: the highest choice; one that is higher than what is enabled means the last.
    """
    return st.lists(st.integers(0, max_choice), max_size=max_size)


def completion_orders(mix: Mix) -> st.SearchStrategy[list[int]]:
    """Ranks for the calls of `mix`, equal ranks for a tie: what `simulate` takes as a completion order."""
    count = len(mix.calls)
    return st.lists(st.integers(0, max(0, count - 1)), min_size=count, max_size=count)


@cache
def _actions(
    files: bool, state: bool, failures: bool, shields: bool, max_actions: int
) -> st.SearchStrategy[list[Action]]:
    text = st.sampled_from("pqrs")
    cell, key, file = st.sampled_from(_CELLS), st.sampled_from(_KEYS), st.sampled_from(_FILES)
    kinds: list[st.SearchStrategy[Action]] = [
        st.builds(script.Sleep, st.sampled_from(_SECONDS)),
        st.just(script.Pause()),
        st.builds(script.Say, text, st.integers(1, 3)),
        st.builds(script.ReadCell, cell),
        st.builds(script.AddCell, cell, text),
        st.builds(script.FollowCell, cell, text),
    ]
    if files:
        kinds.append(st.builds(script.ReadFile, file))
        kinds.append(st.builds(script.WriteFile, file, text))
        kinds.append(st.builds(script.AppendFile, file, text))
    if state:
        kinds.append(st.builds(script.SeeState, key))
        kinds.append(st.builds(script.ChangeState, key, text))
        kinds.append(st.builds(script.OverwriteState, key, text))
        kinds.append(st.builds(script.OverwriteState, key, text, st.just(True)))
        kinds.append(st.just(script.BreakState()))
    if failures:
        kinds.append(st.builds(script.Fail, text))
        kinds.append(st.builds(script.Refuse, text))
        kinds.append(st.builds(script.LeaveOpen, st.sampled_from(["nursery", "scope"])))
    if shields:
        kinds.append(st.builds(script.Shield, st.sampled_from(_SECONDS)))
    return st.lists(st.one_of(kinds), max_size=max_actions)


# Made once: a strategy made anew for each draw costs more than what it draws.
_RARELY = st.sampled_from([False, False, False, True])
_TOUCHING = st.sampled_from(["claims", "by input", "nothing", "after"])
#: A call whose claims look at what others change keeps its promises if it says so, or runs alone.
_DEPENDENT = st.sampled_from(["after", "after", "nothing"])
_HARMLESS = st.sampled_from(["safe", "claims", "nothing"])
_TIMEOUT = st.sampled_from([None, None, None, *_TIMEOUTS])
_INVALID = st.sampled_from([None, None, None, None, "unknown", "input"])
_APPROVAL = st.sampled_from(["allow", "deny", "rewrite", "raise", "allow"])
_APPROVAL_AFTER = st.sampled_from([None, 0.0, 1.0, 2.0])
_LIMIT = st.sampled_from([10, 1, 2, 3])
_DELAY = st.sampled_from([0.0, 1.0, 2.0])
_CANCEL = st.sampled_from([0.0, 0.25, 1.0, 1.25, 2.0, 3.25])


@st.composite
def _scripted(
    draw: st.DrawFn,
    actions: st.SearchStrategy[list[Action]],
    timeouts: bool,
    stops: bool,
    approvals: bool,
    invalid: bool,
    children: st.SearchStrategy[list[Scripted]] | None,
) -> Scripted:
    does = draw(actions)
    opens = False
    if children is not None and draw(st.booleans()):
        opens = True
        claimed, hands_on, reads = not draw(_RARELY), draw(_RARELY), draw(_RARELY)
        sub_batch = script.SubBatch(draw(children), claimed, hands_on, reads)
        does = [*does, sub_batch] if draw(st.booleans()) else [sub_batch, *does]
    bare = Scripted(does)
    fields: dict[str, Any] = {
        "says": draw(_DEPENDENT if bare.follows else _TOUCHING if bare.claims else _HARMLESS),
        "sync": draw(_RARELY) and not opens and not any(isinstance(action, script.LeaveOpen) for action in does),
        "interrupt": "finish" if draw(_RARELY) else "cancel",
        "timeout": draw(_TIMEOUT) if timeouts else None,
        "stops": draw(_RARELY) if stops else False,
        "invalid": draw(_INVALID) if invalid else None,
        "call_id": "twice" if draw(_RARELY) else None,
    }
    if approvals:
        fields["approval"] = draw(_APPROVAL)
        fields["approval_after"] = draw(_APPROVAL_AFTER)
    return attrs.evolve(bare, **fields)


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
    children = None
    if sub_batches:
        inner = scripted_calls(
            files,
            state,
            failures,
            timeouts,
            stops,
            approvals,
            shields,
            invalid,
            max_actions=min(2, max_actions),
            sub_batches=sub_batches - 1,
        )
        children = st.lists(inner, min_size=1, max_size=3)
    actions = _actions(files, state, failures, shields, max_actions)
    return _scripted(actions, timeouts, stops, approvals, invalid, children)


@cache
def _lists_of_calls(min_calls: int, max_calls: int, **kinds: int) -> st.SearchStrategy[list[Scripted]]:
    return st.lists(scripted_calls(**kinds), min_size=min_calls, max_size=max_calls)


@cache
def _one_of(values: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@cache
def _delays(count: int) -> st.SearchStrategy[list[float]]:
    return st.lists(_DELAY, max_size=count)


@st.composite
def tool_mixes(
    draw: st.DrawFn,
    *,
    min_calls: int = 1,
    max_calls: int = 6,
    lanes: Sequence[str] = _POLICIES,
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

    Args:
        min_calls: the fewest calls of a batch.
        max_calls: the most calls of a batch.
        lanes: names of lane policies.
        files: calls read, write and append to files.
        state: calls see the state and return modifiers, also one that raises, and one that sets an old value.
        failures: calls raise, return an error, or leave a nursery or a scope open.
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
    for name in lanes:
        if name not in _POLICIES:
            raise DefinitionRefused("tool_mixes(lanes)", f"names of {', '.join(_POLICIES)}", name)
    calls = _lists_of_calls(
        min_calls,
        max_calls,
        files=files,
        state=state,
        failures=failures,
        timeouts=timeouts,
        stops=stops,
        approvals=approvals and draw(_RARELY),
        shields=shields,
        invalid=invalid,
        sub_batches=2 if sub_batches and draw(_RARELY) else 0,
    )
    drawn = draw(calls)
    return Mix(
        drawn,
        lanes=draw(_one_of(tuple(lanes))),
        limit=draw(_LIMIT) if limits else 10,
        delays=draw(_delays(len(drawn))) if streaming else (),
        cancel_after=draw(_CANCEL) if cancel else None,
        cancel_outside=draw(_RARELY) if cancel else False,
        reader=draw(_one_of(tuple(readers))),
        files={"f": "start "} if files else {},
        state={"x": "0"} if state else {},
    )

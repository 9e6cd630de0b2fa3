"""Lanes: groups of calls of one batch that may overlap.

Rules.
    1. A lane is a maximal run of calls that may overlap, or one call alone.
    2. Its place in a lane is fixed when a call is submitted, from static facts: what the tool declares and its
       ``safe(input)``.  When the model happens to speak decides nothing, so a lane is closed by a call that
       cannot join it, or by the seal, never by idleness.
    3. What the claims are is known when the lane's start state is.  A call whose claim on a state key conflicts
       with an earlier call of its lane opens a new lane then, and takes along what was behind it: it must see
       the state that the earlier call leaves.  A subtree claim on the root is a claim on every key; one that writes
       has a lane of its own, so what runs inside such a call is alone, too.  Under `parallel` the call stays where it
       is; so does one whose tool declares nothing, where a policy of your own puts it into a lane.

The four policies here are functions ``(tool, input) -> bool``: whether the call may share a lane.  A policy of your
own may also see the lane as it stands: see `toolrt.order.LaneRule`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolrt._plain import at_once
from toolrt.model import EVERYTHING, READ, WRITE, Claim, FieldClaims, Mode, State, Tool
from toolrt.model._claim import claims_in_words

#: The first part of a resource that is a key of the state: ``Claim((STATE_KEY, "total"), WRITE)``.
STATE_KEY = "state"


def by_safety(tool: Tool, input: Mapping[str, Any]) -> bool:
    """Calls whose `tool` says it is safe for this `input` share a lane; all others run alone."""
    return not tool.alone and tool.is_safe(input)


def by_claims(tool: Tool, input: Mapping[str, Any]) -> bool:
    """Calls share a lane whose `tool` declares what they touch, or is safe for this `input`; all others run alone."""
    return not tool.alone and (tool.declares or tool.is_safe(input))


def parallel(tool: Tool, input: Mapping[str, Any]) -> bool:
    """All calls share one lane, whatever `tool` and `input` are; only tickets order anything."""
    return True


def serial(tool: Tool, input: Mapping[str, Any]) -> bool:
    """Every call runs alone, whatever `tool` and `input` are: what everything else is compared with."""
    return False


#: The policies of toolrt's own, by name.
LANE_POLICIES: Mapping[str, Callable[[Tool, Mapping[str, Any]], bool]] = {
    policy.__name__: policy for policy in (by_claims, by_safety, parallel, serial)
}


def shares_a_lane(policy: Any, tool: Tool, input: Mapping[str, Any]) -> bool:
    """Whether `policy`, a function, lets a call of `tool` with this `input` share a lane; False when it fails."""
    try:
        shared = policy(tool, input)
        return shared if type(shared) is bool else bool(at_once(shared))
    except Exception:
        return False


_EXCLUSIVE = (EVERYTHING,)


def claims_of(tool: Tool, input: Mapping[str, Any], state: State, shared: bool) -> tuple[Claim, ...]:
    """What a call of `tool` with this `input` claims in a lane that starts with `state`, and is `shared` or not."""
    if not shared or tool.alone:
        return _EXCLUSIVE
    if tool.claims is not None:
        return tool.claims_for(input, state)
    return () if tool.is_safe(input) else _EXCLUSIVE


def looked_at_by(tool: Tool, input: Mapping[str, Any], state: State, shared: bool) -> tuple[Claim, ...]:
    """What the claims of a call of `tool` with this `input`, `state` and `shared` look at, as the tool declares."""
    return tool.claims_after_for(input, state) if shared and not tool.alone else ()


def may_go_stale(tool: Tool, shared: bool) -> bool:
    """Whether the runtime refuses a call of `tool`, `shared` or not, for claims that it does not hold by now."""
    claims = tool.claims
    if not shared or tool.alone or tool.looks_again or not callable(claims):
        return False
    return not isinstance(claims, FieldClaims)


def stale_claims_text(held: Sequence[Claim], missing: Claim) -> str:
    """The error of a call that holds `held` and is refused because its claims have grown by `missing`."""
    holds, now = claims_in_words(*held), claims_in_words(missing)
    remedy = "nothing was run: send the call again; its tool can say what its claims look at (claims_after)"
    return f"when it was ordered its claims were {holds}; now that it could start it claims {now} too; {remedy}"


def touched_by(tool: Tool, input: Mapping[str, Any], state: State, shared: bool) -> tuple[Claim, ...] | None:
    """What a child with this `input` and `state` touches at most; None: just what it claims among its siblings.

    A tool that says what it touches needs from the parent of a sub-batch no more than this, also where it is not
    `shared`: because it runs alone, or because the lane policy puts it alone.
    """
    if shared and not tool.alone:
        return None
    if tool.claims is not None:
        return tool.claims_for(input, state)
    return () if not tool.alone and tool.is_safe(input) else None


#: What a claim must cover to touch every state key.
_ALL_KEYS = Claim((STATE_KEY,), READ, subtree=True)


class StateKeys:
    """The claims on state keys of one lane's calls so far, and the claims that cover all keys.

    Args:
        apart: whether conflicting calls are kept apart at all; `parallel` never does.
    """

    __slots__ = ("_apart", "_keys", "_subtrees", "alone")

    def __init__(self, apart: bool = True) -> None:
        self._apart = apart
        #: Whether the lane's only call writes everything: no other may join it.
        self.alone = False
        self._keys: dict[tuple[Any, ...], Mode] = {}
        self._subtrees: list[Claim] = []

    def admits(self, claims: Iterable[Claim], first: bool, record: bool = True, declared: bool = True) -> bool:
        """Whether a call with `claims` may join; if so, its claims count from now on, unless `record` is False.

        A subtree claim on the root covers every key, so it is held against the claims on keys like any other.

        Args:
            claims: the call's, of any kind.
            first: whether the lane has no call before it.
            record: whether those behind it are kept apart from it.
            declared: whether its tool says what it touches.  One that does not stays where a lane policy put it.
        """
        if not self._apart:
            return True
        if self.alone and declared:
            return False
        mine = [claim for claim in claims if (claim.resource[0] == STATE_KEY if claim.resource else claim.subtree)]
        if not mine:
            return True
        if declared:
            everything = any(claim.mode is WRITE and not claim.resource for claim in mine)
            if (everything and not first) or any(map(self._conflicts, mine)):
                return False
            self.alone = everything and record
        for claim in mine if record else ():
            if claim.subtree:
                if claim not in self._subtrees:
                    self._subtrees.append(claim)
            elif self._keys.get(claim.resource) is not WRITE:
                # A place of a key keeps calls apart as a change of it does.
                self._keys[claim.resource] = claim.mode if claim.slots is None else WRITE
        return True

    def _conflicts(self, claim: Claim) -> bool:
        if claim.subtree:
            earlier: Iterable[Claim] = (Claim(resource, mode) for resource, mode in self._keys.items())
            if any(claim.conflicts_with(one) for one in earlier):
                return True
        else:
            known = self._keys.get(claim.resource)
            if known is not None and WRITE in (known, claim.mode):
                return True
        return any(claim.conflicts_with(one) for one in self._subtrees)

"""What a call will touch, and how.

A resource is a path of parts, from the widest to the narrowest: ``("counter", "total")``, or
``("file", "home", "me", "notes.txt")``.  A claim names one resource; with ``subtree=True`` it names that
resource and everything below it, so the claim on ``()`` with ``subtree=True`` names all there is.

A claim with ``slots=3`` takes one of three places that the resource has.  Three calls with such a claim may overlap; a
fourth waits until fewer than three of those before it are left.  A claim without slots means all places: it conflicts
with every claim that takes one.
"""

from __future__ import annotations

import enum
import math
import sys
from collections.abc import Iterable
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.model._mismatch import TOLD_MOST, clipped


class Mode(enum.Enum):
    """How a claim touches its resource."""

    #: Looks only; shares the resource with other readers.
    READ = "read"
    #: May change it; excludes every other claim on it.
    WRITE = "write"

    def __repr__(self) -> str:
        return self.name


#: The call only looks: it may overlap other calls that do.
READ = Mode.READ
#: The call may change it: it overlaps no call that claims it.
WRITE = Mode.WRITE


def _parts(resource: object) -> tuple[Any, ...]:
    if type(resource) is tuple:
        for part in resource:
            if type(part) is not str:
                break
        else:
            return resource
    if isinstance(resource, str):
        return (resource,)
    if isinstance(resource, tuple) and all(isinstance(part, str | int) for part in resource):
        return resource
    raise DefinitionRefused("a claim's resource", "a string, or a tuple of strings and integers", resource)


@attrs.frozen
class Claim:
    """One resource that a call will touch.

    Two claims conflict when one of them is `WRITE` and they name a common resource.  Two that take a place (`slots`) of
    one resource do not conflict, they count; one that takes a place conflicts with each claim that takes none, `READ`
    included, because such a claim means all places.

    Raises:
        DefinitionRefused: the resource is neither a string nor a tuple of strings and integers, the mode is neither
            `READ` nor `WRITE`, `slots` is no whole number of 1 or more, or a claim with slots means a subtree.

    Example::

        Claim(("gpu",), slots=3)  # the resource has three places, and the call takes one
    """

    #: The path of the resource; a plain string is a path of one part.
    resource: tuple[Any, ...] = attrs.field(converter=_parts)
    #: `READ` shares with `READ`; `WRITE` shares with nothing.
    mode: Mode = attrs.field(default=WRITE)
    #: Whether everything below the resource is meant too.
    subtree: bool = False
    #: How many places the resource has, 1 or more: the call takes one of them.  None: it takes the resource as such.
    slots: int | None = None

    @mode.validator
    def _check(self, _: object, mode: object) -> None:
        # Of both fields, because a validator costs as much as the rest of a claim.
        if not isinstance(mode, Mode):
            raise DefinitionRefused("a claim's mode", "toolrt.READ or toolrt.WRITE", mode)
        slots = self.slots
        if slots is None:
            return
        if type(slots) is not int or slots < 1:
            raise DefinitionRefused("a claim's slots", "a whole number, 1 or more, or None", slots)
        if self.subtree:
            raise DefinitionRefused("a claim's slots", "None for a subtree: places belong to one resource", slots)

    def conflicts_with(self, other: Claim) -> bool:
        """Whether a call with this claim and a call with the `other` must not overlap."""
        mine, theirs = self.resource, other.resource
        if self.slots is not None or other.slots is not None:
            if self.slots is not None and other.slots is not None:
                return False
        elif self.mode is READ and other.mode is READ:
            return False
        if mine == theirs:
            return True
        if len(mine) < len(theirs):
            return self.subtree and theirs[: len(mine)] == mine
        return other.subtree and mine[: len(theirs)] == theirs

    def covers(self, other: Claim) -> bool:
        """Whether who holds this claim may do all that `other` allows."""
        if self.mode is READ and (other.mode is WRITE or self.slots != other.slots):
            return False
        if self.slots is not None and self.slots != other.slots:
            return False
        if self.resource == other.resource:
            return self.subtree or not other.subtree
        depth = len(self.resource)
        return self.subtree and len(other.resource) > depth and other.resource[:depth] == self.resource

    def __str__(self) -> str:
        if not self.resource:
            return f"{self.mode.value} {'everything' if self.subtree else 'the root'}"
        path = "/".join(str(part) for part in self.resource)
        places = "" if self.slots is None else f" (one of {self.slots:,})"
        return f"{self.mode.value} {path}{'/**' if self.subtree else ''}{places}"


#: Characters of one claim in a list of them: a model may have chosen the name.
_CLAIM_MOST = 300


def claims_in_words(*claims: Claim) -> str:
    """The first of these claims, and how many others there are."""
    told = ", ".join(clipped(str(claim), _CLAIM_MOST) for claim in claims[:TOLD_MOST])
    more = len(claims) - TOLD_MOST
    return f"{told} and {more:,} more" if more > 0 else told or "nothing"


@attrs.frozen(init=False)
class Rate(Claim):
    """How often calls of a kind may start: stands among a tool's claims, and is shared by all that name it.

    ``Rate("api", per_second=5)``: in no second do more than five calls start that claim it; ``per_second=0.5`` is one
    in two seconds.  The time is that of the run's clock.  A call that waits for a rate holds its places in the order
    and no slot.  A rate is no resource: it conflicts with nothing, and a sub-batch needs none of its parent's.

    Args:
        name: what has the rate.
        per_second: how many calls may start in a second; finite and above 0.

    Raises:
        DefinitionRefused: the name is no string, or `per_second` is no finite number above 0.
    """

    #: Starts in a second.
    per_second: float = attrs.field(kw_only=True)

    def __init__(self, name: str, *, per_second: float) -> None:
        if not isinstance(name, str):
            raise DefinitionRefused("a rate's name", "a string", name)
        is_number = isinstance(per_second, int | float) and not isinstance(per_second, bool)
        if not is_number or not 0 < per_second <= sys.float_info.max:
            raise DefinitionRefused("a rate's per_second", "a finite number above 0", per_second)
        self.__attrs_init__(("rate", name), READ, False, max(1, math.floor(per_second)), per_second=per_second)

    @property
    def name(self) -> str:
        """What has the rate."""
        return str(self.resource[1])

    @property
    def window(self) -> float:
        """The seconds in which no more than `slots` calls may start."""
        assert self.slots is not None
        return self.slots / self.per_second

    def conflicts_with(self, other: Claim) -> bool:
        """Whether the `other` must not overlap it: no claim conflicts with a rate."""
        return False

    def __str__(self) -> str:
        return f"rate {self.name} ({self.per_second:g} per second)"


def agree(one: Claim, other: Claim) -> bool:
    """Whether two claims give their common resource the same places, or the same rate."""
    mine, theirs = (claim.per_second if isinstance(claim, Rate) else None for claim in (one, other))
    return one.slots == other.slots and mine == theirs


def two_capacities_text(mine: Claim, other: Claim, who: str) -> str:
    """The error of a call that claims `mine`, where `who` had said with `other` how many places the resource has."""
    remedy = "nothing was run: let all tools give it the same number"
    return (
        f"two capacities for one resource: this call claims {claims_in_words(mine)}, "
        f"{who} claims {claims_in_words(other)}; {remedy}"
    )


#: The claim of a call that may touch anything.
EVERYTHING = Claim((), WRITE, subtree=True)


def covers(held: Iterable[Claim], wanted: Claim) -> bool:
    """Whether some claim of `held` covers `wanted`."""
    return any(claim.covers(wanted) for claim in held)

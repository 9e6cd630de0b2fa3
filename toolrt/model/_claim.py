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


def two_capacities_text(mine: Claim, other: Claim, who: str) -> str:
    """The error of a call that claims `mine`, where `who` had said with `other` how many places the resource has."""
    remedy = "nothing was run: let all tools give the resource the same slots"
    return (
        f"two capacities for one resource: this call claims {claims_in_words(mine)}, "
        f"{who} claims {claims_in_words(other)}; {remedy}"
    )


#: The claim of a call that may touch anything.
EVERYTHING = Claim((), WRITE, subtree=True)


def covers(held: Iterable[Claim], wanted: Claim) -> bool:
    """Whether some claim of `held` covers `wanted`."""
    return any(claim.covers(wanted) for claim in held)

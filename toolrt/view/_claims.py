"""The claims of drawn calls: in words, and which of them keeps a call waiting.

Rules.  A claim is read from its event.  One that is odd, in a trace from elsewhere, is left out: it conflicts with
nothing.  Words and conflicts are those of `toolrt.model.Claim`; this room draws traces alone and does not import it.
"""

from __future__ import annotations

from typing import Any

import attrs

from toolrt.view._calls import DrawnCall
from toolrt.view._short import one_line

#: So many claims of one call are shown and searched.
MOST_CLAIMS = 40


@attrs.frozen
class DrawnClaim:
    """One claim of a call."""

    #: "read" or "write".
    mode: str
    #: The path of the resource.
    parts: tuple[str | int, ...]
    #: Whether everything below the resource is meant too.
    subtree: bool
    #: Of how many places the call takes one; None: it takes the resource as such.
    slots: int | None = None

    def conflicts_with(self, other: DrawnClaim) -> bool:
        """Whether two calls with these claims must not overlap."""
        places = (self.slots is not None) + (other.slots is not None)
        if places == 2 or (places == 0 and self.mode == other.mode == "read"):
            return False
        short, long = sorted((self, other), key=lambda claim: len(claim.parts))
        if short.parts == long.parts:
            return True
        return short.subtree and long.parts[: len(short.parts)] == short.parts

    def __str__(self) -> str:
        if not self.parts:
            return f"{self.mode} {'everything' if self.subtree else 'the root'}"
        places = "" if self.slots is None else f" (one of {self.slots:,})"
        return f"{self.mode} {'/'.join(map(str, self.parts))}{'/**' if self.subtree else ''}{places}"


def claims_of(call: DrawnCall) -> list[DrawnClaim | None]:
    """Give the claims of a call, the first `MOST_CLAIMS`; None in place of one that is odd."""
    return [_claim(claim) for claim in call.claims[:MOST_CLAIMS]]


def claims_told(call: DrawnCall) -> list[str]:
    """Give the claims of a call in words: "write counter/x"."""
    return ["?" if claim is None else one_line(str(claim), 120) for claim in claims_of(call)]


def held_back(mine: list[DrawnClaim | None], theirs: list[DrawnClaim | None]) -> tuple[int, int] | None:
    """Give the places of the first two claims that conflict; None when no two do."""
    for place, one in enumerate(mine):
        for other_place, other in enumerate(theirs):
            if one is not None and other is not None and one.conflicts_with(other):
                return place, other_place
    return None


def _claim(claim: Any) -> DrawnClaim | None:
    match claim:
        case [("read" | "write") as mode, [*parts], bool() as subtree, *rest] if all(
            isinstance(part, str | int) for part in parts
        ):
            match rest:
                case [] | [int()]:
                    return DrawnClaim(mode, tuple(parts), subtree, *rest)
    return None

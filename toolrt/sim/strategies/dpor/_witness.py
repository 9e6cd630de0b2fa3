"""Checks that steps report everything that decides what they touch.

Theory.  A step may touch different things in different schedules, as what it reads says.  One that touches different
things when it knows the same, and nothing that it touches was touched differently before, *withholds* something: labels
of such steps cannot be relied on.  What a step knows is hashed: its task and number, that task's step before, whatever
caused it, and the moments at which nothing could run.  Two that knew the same are compared in what both touched, by the
steps that touched it before.

Limits.  Not every step that withholds is found: what decides is compared where both touch it, and a step that was seen
often with one and the same footprint is compared with others of that footprint no more.
"""

from __future__ import annotations

from collections.abc import Callable

from toolrt.probe import Resource
from toolrt.sim.strategies.dpor._steps import Footprint

#: Of a resource: whether a step wrote it, a hash of its last writer before, and one of its readers since.
Version = tuple[bool, int, int]

Versions = dict[Resource, Version]


class Observation:
    """What steps that knew the same have touched, and which steps had touched that before."""

    __slots__ = ("entries", "only", "stories")

    def __init__(self, footprint: Footprint) -> None:
        #: The footprint of all of them, as long as they have one.
        self.only: Footprint | None = footprint
        self.entries: list[tuple[Footprint, Versions]] = []
        #: A hash of each entry.
        self.stories: set[int] = set()


#: By what a step knew when it began.
Observed = dict[int, Observation]

# So many observations are kept: a step that does not say all is mostly seen early.
_OBSERVATIONS = 100_000


class Witness:
    """Remembers what steps touched, and notices one that withholds.

    Args:
        version: gives a resource's version as it is now, for a step that writes it or does not.
    """

    def __init__(self, version: Callable[[Resource, bool], Version]) -> None:
        self._version = version
        self._observed: Observed = {}
        self._count = 0

    def observe_with(self, observed: Observed) -> None:
        """Compare with what others in this process have observed."""
        self._observed, self._count = observed, len(observed)

    def withholds(self, knew: int, story: int, footprint: Footprint, versions: list[Version]) -> bool:
        """Take in a step; say whether it touched other things than one that knew the same, without a reason.

        Args:
            knew: a hash of what it knew.
            story: one of that, and of what it touched in which versions.
            footprint: what it touched.
            versions: the version of each, in the footprint's order.
        """
        seen = self._observed.get(knew)
        if seen is None:
            if self._count >= _OBSERVATIONS:
                return False
            seen = self._observed[knew] = Observation(footprint)
        elif (seen.only is footprint and story in seen.stories) or self._count >= _OBSERVATIONS:
            return False
        saw = {resource: version for (resource, _), version in zip(footprint.pairs, versions, strict=True)}
        known = False
        for other, before in seen.entries:
            if other is footprint or (other.pairs == footprint.pairs and other.anything is footprint.anything):
                known = known or before == saw
            elif self._is_unexplained(other, before, footprint, saw):
                self._observed.clear()
                return True
        if not known:
            seen.entries.append((footprint, saw))
            seen.stories.add(story)
            self._count += 1
            if seen.only is not footprint:
                seen.only = None
        return False

    def _is_unexplained(self, other: Footprint, seen: Versions, footprint: Footprint, saw: Versions) -> bool:
        """Say whether what a step touched once is untouched this time, as far as it goes, and it does not touch it."""
        if any(resource in saw and _tells(version, saw[resource]) for resource, version in seen.items()):
            return False
        if other.anything is not footprint.anything:
            # Where it says nothing it looked at nothing that is reported; so what it went by it never reports.
            return True
        # What decides may be where a task is parked, which shows in what is touched there and in nothing else.
        missing = [(resource, version) for resource, version in seen.items() if resource not in saw]
        return bool(missing) and not any(
            _tells(version, self._version(resource, version[0])) for resource, version in missing
        )


def _tells(one: tuple[bool, int, int], other: tuple[bool, int, int]) -> bool:
    """Say whether two steps could see a difference in something both touched; only a writer sees the readers."""
    return one[1] != other[1] or (one[0] and other[0] and one[2] != other[2])

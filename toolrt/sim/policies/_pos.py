"""Partial order sampling: a random priority for every step, drawn anew where two steps race.

Paper: Yuan, Yang, Gu, "Partial order aware concurrency sampling" (CAV 2018).  The next step of every enabled task
has a random priority; the highest runs.  Then the steps that could have run in its place and conflict with it
draw again: how they come out against each other is no longer decided by a draw that has been used.  So steps
that do not conflict do not dilute the sample, and a partial order is drawn with a probability that falls far
slower than that of an order of steps.

Differences from the paper.  What a step is going to touch is not known before it runs: Trio's tasks announce
nothing.  A task that waited goes on with what it waited for, which its step before has reported: a lock's next holder
touches the lock.  Taken besides is what the same step (the same task's path, the same number) touched last time in this
sample.  A step with neither conflicts with everything, and so does one that reported no access (which makes
the first execution of a program without locks and the like a random walk).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from toolrt.probe import Resource
from toolrt.sim.policies._policy import RunInfo
from toolrt.sim.policies._seeds import checked_seed, seed_of

__all__ = ["POS"]

_Footprint = tuple[tuple[Resource, bool], ...]

# The kinds of things that tasks park on.
_WAITED_FOR = frozenset(
    ("Event", "Lock", "StrictFIFOLock", "Semaphore", "CapacityLimiter", "Condition", "ParkingLot", "MemoryChannel")
)

# Steps whose footprints are remembered; a program with more of them is remembered in part.
_MOST_FOOTPRINTS = 100_000


class POS:
    """Give each task's next step a random priority, anew where steps race.

    Args:
        seed: an integer; the same seed makes the same choices wherever the same tasks are enabled, the same is
            touched, and the same was seen before.

    Raises:
        DefinitionRefused: the seed is not an integer.
    """

    def __init__(self, seed: int) -> None:
        #: The seed it was made with.
        self.seed = checked_seed("POS(seed)", seed)
        # What the step of this number of this task touched last time.
        self._footprints: dict[tuple[str, int], _Footprint] = {}

    def start(self, info: RunInfo) -> None:
        """Begin the sequence of draws again."""
        self._draw = Random(self.seed).random
        self._steps: Sequence[tuple[object, ...]] = info.steps
        # The priority of each enabled task's next step, and how many steps each task has made.
        self._priorities: dict[str, float] = {}
        self._made: dict[str, int] = {}
        # What each task waits for, or goes on with when it is its turn.
        self._parked: dict[str, _Footprint] = {}
        # What each task's next step probably touches, and whether it writes it, where that was asked for.
        self._next: dict[str, dict[Resource, bool]] = {}

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick the step of the highest priority."""
        priorities = self._priorities
        if step and self._steps:
            self._after(self._steps[-1], enabled)
        best, highest = 0, -1.0
        for index, name in enumerate(enabled):
            priority = priorities.get(name)
            if priority is None:
                priority = priorities[name] = self._draw()
            if priority > highest:
                best, highest = index, priority
        self._chosen = enabled[best]
        return best

    def _after(self, step: tuple[object, ...], enabled: tuple[str, ...]) -> None:
        """Let the steps that conflict with the one just made draw again."""
        touched: _Footprint = step[3]  # type: ignore[assignment]
        name, made, priorities = self._chosen, self._made, self._priorities
        number = made.get(name, 0)
        made[name] = number + 1
        if len(self._footprints) < _MOST_FOOTPRINTS:
            self._footprints[name, number] = touched
        self._next.pop(name, None)
        self._parked.pop(name, None)
        if name not in enabled:
            self._parked[name] = tuple(access for access in touched if access[0][0] in _WAITED_FOR)
        del priorities[name]
        if not touched:
            priorities.clear()
            return
        for other in list(priorities):
            expected = self._next.get(other)
            if expected is None:
                last_time = self._footprints.get((other, made.get(other, 0)), ())
                expected = self._next[other] = {}
                for resource, write in self._parked.get(other, ()) + last_time:
                    expected[resource] = write or expected.get(resource, False)
            for resource, write in touched:
                if resource in expected and (write or expected[resource]):
                    break
            else:
                if expected:
                    continue
            del priorities[other]

    def finish(self, steps: int) -> None:
        """Remember the last footprint; how many steps there were does not matter."""
        if steps and self._steps:
            self._after(self._steps[-1], ())

    def sample(self) -> POS:
        """Give the same with nothing seen yet."""
        return POS(self.seed)

    def derive(self, index: int) -> POS:
        """Give the policy for execution `index` of a sample that starts from this seed; they see together."""
        derived = POS(seed_of(self.seed, index))
        derived._footprints = self._footprints
        return derived

    def __repr__(self) -> str:
        return f"POS(seed={self.seed})"

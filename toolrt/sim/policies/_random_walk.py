"""A policy that picks any enabled task with the same probability at every step.

The baseline that other samplers are compared with.  A bug that needs one particular choice at k steps with n
tasks each is found with probability n**-k: good at shallow bugs, hopeless at deep ones.
"""

from __future__ import annotations

from _random import Random

from toolrt.sim.policies._policy import RunInfo
from toolrt.sim.policies._seeds import checked_seed, seed_of


class RandomWalk:
    """Pick each step among the enabled tasks with equal probability.

    Args:
        seed: an integer; the same seed makes the same choices wherever the same tasks are enabled.

    Raises:
        DefinitionRefused: the seed is not an integer.
    """

    #: What steps touch decides nothing here.
    reads_accesses = False

    def __init__(self, seed: int) -> None:
        #: The seed it was made with.
        self.seed = checked_seed("RandomWalk(seed)", seed)

    def start(self, info: RunInfo) -> None:
        """Begin the sequence of choices again."""
        self._draw = Random(self.seed).random

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick any."""
        count = len(enabled)
        return int(self._draw() * count) if count > 1 else 0

    def pick_any(self, count: int) -> int:
        """Pick any of `count`, 2 or more, as `choose` does."""
        return int(self._draw() * count)

    def derive(self, index: int) -> RandomWalk:
        """Give the walk for execution `index` of a sample that starts from this seed."""
        # Made without looking at the seed again: a sample makes one for each of its executions.
        derived = object.__new__(RandomWalk)
        derived.seed = seed_of(self.seed, index)
        return derived

    def __repr__(self) -> str:
        return f"RandomWalk(seed={self.seed})"

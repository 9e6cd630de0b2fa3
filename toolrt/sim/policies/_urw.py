"""Uniform random walk: every interleaving with about the same probability.

Paper: Zhao, Wolff, Mathur, Roychoudhury, "Selectively uniform concurrency testing" (ASPLOS 2025).  A plain random
walk is far from uniform: of one task with 1 step and one with 25, the last of the 26 orders comes up once in
2**25.  Picking each task in proportion to the steps it has left makes all orders of a fixed set of steps equally
likely.  The steps of tasks that a task has yet to spawn count as its own.

Differences from the paper.  The selective half (uniform over some steps only) is not here.  How many steps a task
takes is not taken from one trial run, which may have deadlocked or returned early and then weighs a task zero or
for certain: the first three executions of a sample are random walks, and the largest number seen so far of a
task's path counts, over those and all later ones.  A task is never weighed less than one step.

Limits.  Uniform as far as the number of steps of each task is the same in every schedule.  A single run of a fresh
policy is a random walk and not uniform; one policy for several runs measures in the first three, as a sample does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from toolrt.sim.policies._kept import Change, RunningSums, choice_of
from toolrt.sim.policies._policy import RunInfo
from toolrt.sim.policies._seeds import checked_seed, seed_of

# So many executions of a sample measure before lengths are used.
_TRIALS = 3


class URW:
    """Pick each task in proportion to the steps it probably has left.

    Args:
        seed: an integer; the same seed makes the same choices wherever the same tasks are enabled and the same
            was measured before.  A single run, where nothing was, is a random walk.

    Raises:
        DefinitionRefused: the seed is not an integer.
    """

    #: What steps touch decides nothing here.
    reads_accesses = False

    def __init__(self, seed: int) -> None:
        #: The seed it was made with.
        self.seed = checked_seed("URW(seed)", seed)
        self._lengths = _Lengths()

    def start(self, info: RunInfo) -> None:
        """Begin the sequence of draws again."""
        self._limit = info.step_limit
        self._draw = Random(self.seed).random
        self._known = self._lengths.trials >= _TRIALS
        # The steps of each task so far; those it and the tasks it has yet to spawn have left; and its weight.
        self._made: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._weights: dict[str, int] = {}
        # The weights beside the scheduler's list, and how much of its log they follow; None: they are not kept now.
        self._sums: RunningSums | None = None
        self._followed = 0

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick in proportion to what is left."""
        weights, self._sums = self._weights, None
        best = 0
        try:
            # One call for all tasks that can run: there may be hundreds.
            sums = list(accumulate(map(weights.__getitem__, enabled)))
        except KeyError:
            self._meet(enabled)
            sums = list(accumulate(map(weights.__getitem__, enabled)))
        if len(enabled) > 1:
            if self._known:
                best = min(bisect_right(sums, self._draw() * sums[-1]), len(sums) - 1)
            else:
                best = int(self._draw() * len(enabled))
        chosen = enabled[best]
        self._made[chosen] += 1
        self._left[chosen] = left = self._left[chosen] - 1
        weights[chosen] = left if left > 1 else 1
        return best

    def _pick_kept(self, names: Sequence[str], place: int, changes: Sequence[Change]) -> int:
        """Pick as `choose` does from the list that the scheduler keeps."""
        sums = self._sums
        if sums is None or self._followed != len(changes):
            sums = self._follow(names, changes)
        at = 0
        if len(names) > 1:
            if self._known:
                at = sums.drawn(self._draw(), place)
            else:
                choice = int(self._draw() * len(names))
                at = choice if choice > place else choice - 1 if choice else place
        chosen = names[at]
        self._made[chosen] += 1
        self._left[chosen] = left = self._left[chosen] - 1
        weight = left if left > 1 else 1
        if less := self._weights[chosen] - weight:
            self._weights[chosen] = weight
            sums.add(at, -less)
        return choice_of(at, place)

    def _follow(self, names: Sequence[str], changes: Sequence[Change]) -> RunningSums:
        """Give the weights beside `names`, after all `changes`."""
        sums, weights, followed = self._sums, self._weights, self._followed
        self._followed = len(changes)
        if sums is not None:
            for at, name in changes[followed:]:
                if name is None:
                    sums.remove(at)
                elif name in weights:
                    sums.insert(at, weights[name])
                else:
                    break
            else:
                return sums
        # The weight of a parent changes with each new child.
        self._meet(names)
        self._sums = sums = RunningSums([weights[name] for name in names])
        return sums

    def _meet(self, enabled: Sequence[str]) -> None:
        """Weigh the tasks that were not seen before."""
        made, left, weights = self._made, self._left, self._weights
        for name in enabled:
            if name not in made:
                made[name] = 0
                left[name] = with_children = self._lengths.with_children(name)
                weights[name] = max(1, with_children)
                parent = name.rpartition(".")[0]
                if parent in left:
                    left[parent] -= with_children
                    weights[parent] = max(1, left[parent])

    def finish(self, steps: int) -> None:
        """Measure the execution: it had so many steps."""
        # One that the step limit ended says how long the limit is.
        if steps < self._limit:
            self._lengths.note(self._made)

    def sample(self) -> URW:
        """Give the same with nothing measured yet."""
        return URW(self.seed)

    def derive(self, index: int) -> URW:
        """Give the policy for execution `index` of a sample that starts from this seed; they measure together."""
        derived = URW(seed_of(self.seed, index))
        derived._lengths = self._lengths
        return derived

    def __repr__(self) -> str:
        return f"URW(seed={self.seed})"


class _Lengths:
    """The largest number of steps seen of each task's path."""

    def __init__(self) -> None:
        self.trials = 0
        self._own: dict[str, int] = {}
        self._with_children: dict[str, int] = {}

    def with_children(self, name: str) -> int:
        """Give the steps of a task and of everything it spawns, or 0 when it was never seen."""
        return self._with_children.get(name, 0)

    def note(self, made: dict[str, int]) -> None:
        """Keep what is larger than before."""
        self.trials += 1
        own, grown = self._own, False
        for name, count in made.items():
            if count > own.get(name, 0):
                own[name] = count
                grown = True
        if not grown:
            return
        totals = dict.fromkeys(own, 0)
        for name, count in own.items():
            while name in totals:
                totals[name] += count
                name = name.rpartition(".")[0]
        self._with_children = totals

"""Probabilistic concurrency testing: random priorities that change at a few random steps.

Paper: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized scheduler with probabilistic guarantees of
finding bugs" (ASPLOS 2010).  Every task gets a random priority when it is first seen, and the enabled task of the
highest priority steps.  At depth - 1 random steps the task that is about to step falls below all others.  A bug
of that depth (so many orders between two steps have to come about) is found by one execution with probability
1/(n * k**(depth - 1)) at least, in a program of at most n tasks and k steps.

Differences from the paper.  n and k are not given but measured: the largest of the executions of the sample so
far that did not reach the step limit.  An execution of a sample before anything is measured has no changes, which is
depth 1.  The bound is quoted with the measured n and k only, and only for the executions that were drawn with them.
A single run, where nothing was measured, takes a horizon in k's place: a power of two drawn from 1 up to the first that
the step limit does not exceed, all with the same probability.  One of these J powers is k, or above it and less than
twice as large, so the probability is 1/(n * J * (2*k)**(depth - 1)) at least (J is 15 at the usual limit of 10,000).
A step is what Trio runs between two checkpoints, not an instruction; a checkpoint is no hint that a task yields
(in Trio each of them would look like one), and a task that comes later draws its priority among all.

Limits.  It is unfair by design: a task that polls at a high priority starves the others up to the step limit,
which then decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from toolrt.errors import DefinitionRefused
from toolrt.sim.policies._kept import Change, PriorityRow, choice_of
from toolrt.sim.policies._policy import RunInfo
from toolrt.sim.policies._seeds import checked_seed, seed_of


class PCT:
    """Let the enabled task of the highest priority step; priorities change at ``depth - 1`` random steps.

    Args:
        depth: how many orders between two steps the bug needs, 1 or more; most need 1 to 3.
        seed: an integer; the same seed makes the same choices wherever the same tasks are enabled, the same was
            measured before, and, in a single run, the step limit has as many binary digits.

    Raises:
        DefinitionRefused: the depth is not a number of 1 or more, or the seed is not an integer.
    """

    #: What steps touch decides nothing here.
    reads_accesses = False

    def __init__(self, depth: int, seed: int) -> None:
        if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
            raise DefinitionRefused("PCT(depth, seed)", "a depth of 1 or more", depth)
        #: The depth it was made with.
        self.depth = depth
        #: The seed it was made with.
        self.seed = checked_seed("PCT(depth, seed)", seed)
        self._measured = _Measured()
        # A sample's first execution only measures: what was recorded of samples holds.
        self._in_sample = False

    def start(self, info: RunInfo) -> None:
        """Draw the steps at which priorities change."""
        self._limit = info.step_limit
        self._random = Random(self.seed)
        self._priorities: dict[str, float] = {}
        # The priorities beside the scheduler's list, with the place of the highest; None: they are not kept now.
        self._row: PriorityRow | None = None
        self._best = 0
        self._steps = info.steps
        steps = self._measured.steps
        if not steps and self.depth > 1 and not self._in_sample:
            steps = 1 << self._random.randrange((self._limit - 1).bit_length() + 1)
        # Below every task's first priority, and in the paper's order: the change drawn last falls least.
        self._changes = {self._random.randrange(steps): rank for rank in range(self.depth - 1)} if steps else {}
        self._measured.drawn += 1

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick the task of the highest priority."""
        if self._row is not None:
            self._priorities, self._row = self._row.known(), None
        priorities = self._priorities
        best, highest = 0, -1.0
        for index, name in enumerate(enabled):
            priority = priorities.get(name)
            if priority is None:
                priority = priorities[name] = self.depth + self._random.random()
            if priority > highest:
                best, highest = index, priority
        rank = self._changes.pop(step, None)
        if rank is None:
            return best
        priorities[enabled[best]] = rank
        return max(range(len(enabled)), key=lambda index: priorities[enabled[index]])

    def _pick_kept(self, names: Sequence[str], place: int, changes: Sequence[Change]) -> int:
        """Pick as `choose` does from the list that the scheduler keeps."""
        row = self._row
        if row is None:
            row = self._row = PriorityRow(self._priorities, names, changes)
        elif not row.follow(changes) and len(self._steps) not in self._changes:
            return choice_of(self._best, place)
        if not row.is_drawn:
            row.draw_missing(place, lambda: self.depth + self._random.random())
        best = row.best(place)
        rank = self._changes.pop(len(self._steps), None)
        if rank is not None:
            row.values[best] = rank
            best = row.best(place)
        self._best = best
        return choice_of(best, place)

    def finish(self, steps: int) -> None:
        """Measure the execution: it had so many steps."""
        if steps < self._limit:
            seen = self._priorities if self._row is None else self._row.known()
            self._measured.note(len(seen), steps)

    def sample(self) -> PCT:
        """Give the same with nothing measured yet."""
        return PCT(self.depth, self.seed)

    def derive(self, index: int) -> PCT:
        """Give the policy for execution `index` of a sample that starts from this seed; they measure together."""
        derived = PCT(self.depth, seed_of(self.seed, index))
        derived._measured = self._measured
        derived._in_sample = True
        return derived

    @property
    def bound(self) -> str:
        """How likely an execution finds a bug of this depth, and how many were drawn so; "" when none was."""
        measured = self._measured
        if not measured.good:
            return ""
        likely = 1 / (measured.tasks * measured.steps ** (self.depth - 1))
        return (
            f"bugs of depth {self.depth} with p>={likely:.2g} in each of {measured.good} "
            f"(tasks={measured.tasks}, steps={measured.steps})"
        )

    def __repr__(self) -> str:
        return f"PCT(depth={self.depth}, seed={self.seed})"


class _Measured:
    """The largest execution so far, and how many were drawn for it."""

    def __init__(self) -> None:
        self.tasks = 0
        self.steps = 0
        # Executions that were begun since the last time either grew.
        self.drawn = 0

    def note(self, tasks: int, steps: int) -> None:
        if tasks > self.tasks or steps > self.steps:
            self.tasks, self.steps = max(tasks, self.tasks), max(steps, self.steps)
            self.drawn = 0

    @property
    def good(self) -> int:
        """How many executions were drawn with what is measured now."""
        return self.drawn if self.steps else 0

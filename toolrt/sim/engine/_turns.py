"""Gives turns to *foreign* tasks beside the program: the harness, system tasks, and Trio's own.

Rules.  Foreign tasks are no choice.  They run straight away, in Trio's loop, in the order they were spawned, together
with the callbacks given to `run_sync_soon`.  Those that never stop take turns with the program: after a while a step of
the program comes first whenever there is one.  Passes in which foreign tasks run and no task of the program steps are
counted, and the step limit ends them too.
"""

from __future__ import annotations

from trio.lowlevel import Task

from toolrt.sim._trio_internals import Seam

__all__ = ["Turns"]

# After so many passes in which foreign tasks ran, those and the program take turns.
_PASSES_BEFORE_TURNS = 1_000

# So many passes without a step of the program are never too many.
_LEAST_PASS_LIMIT = 10_000


class Turns:
    """The turns of one execution.

    Args:
        foreign: the foreign tasks taken from Trio's run queue; emptied as they are handed back.
        seam: the Trio run it happens in.
        step_limit: the number of steps after which the execution is stopped.
        pass_limit: how many foreign passes may follow one another; None is the step limit, at least 10,000.
    """

    def __init__(self, foreign: list[Task], seam: Seam, step_limit: int, pass_limit: int | None) -> None:
        self._foreign = foreign
        self._seam = seam
        self._step_limit = step_limit
        self._pass_limit = pass_limit or max(step_limit, _LEAST_PASS_LIMIT)
        # How many foreign passes there were since the program had made so many steps.
        self._passes = 0
        self._passes_since = 0
        self._patience = _PASSES_BEFORE_TURNS
        # Whether Trio is to step the harness alone next.
        self._harness_is_next = False

    def give_way(self) -> bool:
        """Let the program step next if foreign tasks have had their turn; say whether."""
        if self._passes < self._patience:
            return False
        self._patience = 1
        self._passes = 0
        return True

    def count_pass(self, steps: int) -> bool:
        """Count a pass that begins when the program has made so many steps; say whether that is one too many."""
        if steps != self._passes_since:
            self._passes_since = steps
            self._passes = 0
        self._passes += 1
        # The schedule of an execution that ended this way is replayed with its length for a limit.
        return self._passes > (self._pass_limit if steps < self._step_limit else _LEAST_PASS_LIMIT)

    def hand_over(self, batch: list[Task]) -> None:
        """Have Trio step all foreign tasks."""
        if len(self._foreign) > 1:
            # They may have been woken in the order of a set.
            self._foreign.sort(key=self._seam.age_of)
        batch.extend(self._foreign)
        self._foreign.clear()

    def hand_over_all_but_the_harness(self, batch: list[Task]) -> None:
        """Have Trio step the others, then the harness alone: it ends tasks, which must not be in its own pass."""
        harness = [task for task in self._foreign if self._seam.is_main(task)]
        self._foreign[:] = [task for task in self._foreign if not self._seam.is_main(task)]
        self.hand_over(batch)
        self._foreign.extend(harness)
        self._harness_is_next = True

    def hand_over_the_harness(self, batch: list[Task]) -> bool:
        """Have Trio step the harness alone, if it is next; say whether."""
        if not self._harness_is_next:
            return False
        self._harness_is_next = False
        self.hand_over(batch)
        return True

"""Turns between the program and the tasks that are not the program's: the harness, system tasks, Trio's own.

Rules.  Those *strangers* are no choice.  They run straight away, in Trio's loop, in the order they were spawned;
callbacks given to `run_sync_soon` do so with them.  Those that never stop take turns with the program: after a while a
step of the program comes first whenever there is one.  When they go on and no task of the program steps, their passes
are counted, so that the step limit can end that too.
"""

from __future__ import annotations

from trio.lowlevel import Task

from toolrt.sim._trio_internals import Seam

__all__ = ["Turns"]

# After so many passes in which strangers ran, those and the program take turns.
_PASSES_BEFORE_TURNS = 1_000

# So many passes without a step of the program are never too many.
_LEAST_PASS_LIMIT = 10_000


class Turns:
    """The turns of one execution.

    Args:
        strangers: those that were taken from Trio's run queue; emptied as they are handed back.
        seam: the Trio run it happens in.
        step_limit: the number of steps after which the execution is stopped.
        pass_limit: how many passes in a row strangers may have; the step limit, or 10,000, when None.
    """

    __slots__ = (
        "_harness_is_next",
        "_pass_limit",
        "_passes",
        "_passes_since",
        "_patience",
        "_seam",
        "_step_limit",
        "_strangers",
    )

    def __init__(self, strangers: list[Task], seam: Seam, step_limit: int, pass_limit: int | None) -> None:
        self._strangers = strangers
        self._seam = seam
        self._step_limit = step_limit
        self._pass_limit = pass_limit or max(step_limit, _LEAST_PASS_LIMIT)
        # How many passes strangers have had since the program had made so many steps.
        self._passes = 0
        self._passes_since = 0
        self._patience = _PASSES_BEFORE_TURNS
        # Whether Trio is to step the harness alone next.
        self._harness_is_next = False

    def give_way(self) -> bool:
        """Let the program step next if strangers have had their turn; say whether."""
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
        """Have Trio step all strangers."""
        if len(self._strangers) > 1:
            # Whatever woke them may have done it in the order of a set.
            self._strangers.sort(key=self._seam.age_of)
        batch.extend(self._strangers)
        self._strangers.clear()

    def hand_over_all_but_the_harness(self, batch: list[Task]) -> None:
        """Have Trio step the others, then the harness alone: it ends tasks, none of which may be in its own pass."""
        harness = [task for task in self._strangers if self._seam.is_main(task)]
        self._strangers[:] = [task for task in self._strangers if not self._seam.is_main(task)]
        self.hand_over(batch)
        self._strangers.extend(harness)
        self._harness_is_next = True

    def hand_over_the_harness(self, batch: list[Task]) -> bool:
        """Have Trio step the harness alone, if it is next; say whether."""
        if not self._harness_is_next:
            return False
        self._harness_is_next = False
        self.hand_over(batch)
        return True

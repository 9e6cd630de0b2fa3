"""Gives turns to *foreign* tasks beside the program: the harness, and what no task of the program has begun.

Rules.  Foreign tasks are no choice.  They run straight away, in Trio's loop, in the order they were spawned, together
with the callbacks that a thread or a signal gives to `run_sync_soon`.  Those that never stop take turns with the
program: after a while a step of the program comes first whenever there is one.  Passes in which foreign tasks run and
no task of the program steps are counted, and the step limit ends them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio.lowlevel import Task

from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim.engine._roster import Roster

if TYPE_CHECKING:
    from toolrt.sim.engine._job import Job
    from toolrt.sim.engine._record import ExecutionRecord

# After so many passes in which foreign tasks ran, those and the program take turns.
_PASSES_BEFORE_TURNS = 1_000

# So many passes without a step of the program are never too many.
_LEAST_PASS_LIMIT = 10_000


class Turns:
    """The turns of one execution.

    Args:
        roster: the execution's tasks; its foreign ones are handed back from here.
        seam: the Trio run it happens in.
        record: what is kept of it.
        job: what is executed: its limits count here.
    """

    def __init__(self, roster: Roster, seam: Seam, record: ExecutionRecord, job: Job) -> None:
        self._roster = roster
        self._foreign = roster.foreign
        self._seam = seam
        self._record = record
        self._step_limit = job.step_limit
        self._pass_limit = job.pass_limit or max(job.step_limit, _LEAST_PASS_LIMIT)
        # How many foreign passes there were since the program had made so many steps.
        self._passes = 0
        self._passes_since = 0
        self._patience = _PASSES_BEFORE_TURNS
        # Whether Trio is to step the harness alone next.
        self._harness_is_next = False

    def is_programs(self, ended: bool) -> bool:
        """Say whether the program steps next although foreign tasks can run: these have had their turn."""
        roster = self._roster
        if ended or not (roster.ready or roster.later):
            return False
        if not self._foreign and roster.callbacks is not None:
            # The callbacks that wait are called by a task of the program's.
            return True
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

    def hand_over(self, batch: list[Task], ended: bool) -> None:
        """Have Trio step all foreign tasks; when the execution has ended, the harness alone after the others.

        The harness ends tasks, which must not be in its own pass.
        """
        roster, record, foreign = self._roster, self._record, self._foreign
        if record.beside is None and not ended:
            record.beside = self._seam.foreign_among(foreign)
        # What Trio does before it asks again has no step for a cause.
        roster.origin = -1
        roster.spawner = None
        harness: list[Task] = []
        if ended and len(foreign) > 1:
            harness = [task for task in foreign if self._seam.is_main(task)]
            foreign[:] = [task for task in foreign if not self._seam.is_main(task)]
            self._harness_is_next = True
        self._hand_all_over(batch)
        foreign.extend(harness)

    def hand_over_the_harness(self, batch: list[Task]) -> bool:
        """Have Trio step the harness alone, if it is next; say whether."""
        if not self._harness_is_next:
            return False
        self._harness_is_next = False
        self._hand_all_over(batch)
        return True

    def _hand_all_over(self, batch: list[Task]) -> None:
        if len(self._foreign) > 1:
            # They may have been woken in the order of a set.
            self._foreign.sort(key=self._seam.age_of)
        batch.extend(self._foreign)
        self._foreign.clear()

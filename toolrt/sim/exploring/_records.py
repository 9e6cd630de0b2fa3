"""Decides which executions keep a record: what each step touched, and events.

Rules.  Most checks look at the outcome alone, and a record costs a third of an execution.  The first execution keeps
one.  Where the check reads it, or keeps the execution, all that follow keep theirs.  Else they keep their choices and
the lists of what could run, and the program runs again for a record that the check asks for after all; from then on
each keeps its own.  Executions in which something is real keep theirs: to run again would have effects.  So do those of
rewritten code, once one of its tasks may go round in a circle, or it has a worker thread: whether a task does, and
where a thread hands over, depends on what that code reports.

Limits.  A program that depends on more than its schedule may do something else when it runs again.  The check then has
nothing to judge, and that execution decides nothing.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable
from itertools import zip_longest
from typing import Any

from toolrt.errors import ReplayDiverged
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._host import execute
from toolrt.sim.engine._job import Driver, Job, RecordNeeded
from toolrt.sim.exploring._judge import Judgement, judge
from toolrt.sim.exploring._program import ExploredProgram
from toolrt.sim.exploring._repeats import Repeats, another_outcome
from toolrt.sim.policies import Choices, Policy
from toolrt.sim.policies._choices import NamelessChoices
from toolrt.trace import stable_text


class LazyRecords:
    """The records of the executions of one exploration.

    Args:
        task: what each of them is.
        program: the task's program, with all that can happen to it.
        repeats: hears of a second run that differs from the first.
        is_watched: whether code of the user's sees executions beside the check: it may read anything.
        keeps_first: whether the first execution keeps a record without a check, too: another run is compared with it.
    """

    def __init__(
        self,
        task: ExploredProgram,
        program: Callable[[], Awaitable[Any]],
        repeats: Repeats,
        *,
        is_watched: bool,
        keeps_first: bool,
    ) -> None:
        self._program = program
        self._check = task.check
        self._step_limit = task.step_limit
        self._is_rewritten = task.tracking is not None
        self._repeats = repeats
        self._are_wanted = is_watched
        self._is_first = keeps_first or task.check is not None
        self._diverged: ReplayDiverged | None = None
        #: Whether a reader beside the search sees executions: their enabled lists are then kept.
        self.are_seen = task.check is not None or is_watched

    def execute(self, policy: Policy, index: int, alone: bool, chance: int) -> Driver[tuple[Execution, bool]]:
        """Run the program under `policy`, and give the execution and whether it keeps a record.

        Args:
            policy: picks its choices.
            index: its place among all.
            alone: whether no code of the caller's runs before the next.
            chance: the stream of random numbers.

        What the policy raises is raised as it is.
        """
        is_kept = self._is_first or self._are_wanted or getattr(policy, "reads_accesses", True)
        job = Job(self._program, policy, self._step_limit, index, alone, is_kept, self.are_seen, chance=chance)
        job.looks_for_circles = is_kept or not self._is_rewritten
        try:
            return (yield job), is_kept
        except RecordNeeded:
            self._are_wanted = job.reports = job.looks_for_circles = True
            return (yield job), True

    def repeat(
        self, execution: Execution, policy: Policy, alone: bool, reports: bool, keep: bool = False
    ) -> Driver[Execution]:
        """Make the choices of `execution` again, and give that run, once it was compared.

        It was run under `policy`, and reports or not; `keep`: the second run keeps a record in any case.
        """
        # Where the first run had no names to decide by, the second needs none.
        repeated = (NamelessChoices if hasattr(policy, "pick_any") else Choices)(execution.choices)
        own = alone, reports or keep, self.are_seen
        chance = execution.chance or 0
        again = yield Job(self._program, repeated, self._step_limit, execution.index, *own, chance=chance)
        self._repeats.compare(execution, again, touched=reports)
        return again

    def judge(self, execution: Execution, is_kept: bool) -> Judgement:
        """Judge an execution, which has a record or not, and learn whether the check needs one."""
        self._is_first = False
        if self._check is None or self._are_wanted:
            return judge(execution, self._check)
        if not is_kept:
            execution._make_again = self._again
        held = sys.getrefcount(execution)
        try:
            judgement = judge(execution, self._check)
        except ReplayDiverged as diverged:
            if diverged is not self._diverged:
                raise
            return Judgement(failed=False, undecided=True, why=str(diverged))
        is_used = execution._is_read or sys.getrefcount(execution) > held
        self._are_wanted = is_used or bool(execution.caveats)
        if is_used:
            # Now, while the program is still as it was.
            with contextlib.suppress(ReplayDiverged):
                execution._keep_record()
        return judgement

    def _again(self, execution: Execution) -> Execution:
        """Run the program again for the record of `execution`.

        Raises:
            ReplayDiverged: it does something else this time.
        """
        policy = Choices(execution.choices, execution.chance)
        again = execute(Job(self._program, policy, self._step_limit, execution.index))
        self._repeats.compare(execution, again, touched=False)
        parting = _parting_of(execution, again)
        if parting is None:
            return again
        self._diverged = ReplayDiverged(*parting)
        raise self._diverged


def _parting_of(one: Execution, other: Execution) -> tuple[int, str, str] | None:
    """Give the step before which two executions of the same choices part, and what each has there; None: nowhere."""
    tasks = ([actor.name for actor, *_ in execution._made] for execution in (one, other))
    for step, (before, after) in enumerate(zip_longest(*tasks, fillvalue="its end")):
        if before != after:
            return step, before, after
    if another_outcome(one.outcome, other.outcome) is None:
        return None
    return len(one._made), f"the outcome {stable_text(one.outcome)}", stable_text(other.outcome)

"""Divides an exploration among processes and over several sittings.

Rules.  One whole search lends out parts of what is left; workers do them and give back what is left of them; so at
any moment what is lent, what is left and what was shown are all there is, and that is what a checkpoint has.  Which
worker does what decides nothing: the verdict, the outcomes, the counts and the failures are those of one job.  Only
a budget (`max_executions`, `seconds`, Ctrl-C) leaves out what it happens to leave out.

Failures and outcomes that are not plain values come back as choices and are run again here; so is the first
schedule.  Where the same choices do something else here than there, nothing is decided.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from toolrt.errors import RealTimeout
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._host import bounded, execute, simulate
from toolrt.sim.engine._job import Driver, Job
from toolrt.sim.exploring._checkpoint import Checkpoint, CheckpointState
from toolrt.sim.exploring._conclusion import Evidence
from toolrt.sim.exploring._executors import ExecutorPool, JobsArgument, workers_of
from toolrt.sim.exploring._interrupts import one_interrupt_noted
from toolrt.sim.exploring._judge import judge
from toolrt.sim.exploring._program import ExploredProgram
from toolrt.sim.exploring._progress import PROGRESS_EVERY, Budget, ExplorationProgress
from toolrt.sim.exploring._repeats import Repeats
from toolrt.sim.exploring._tally import ExecutionCounts, ReplayableExecution, Tally
from toolrt.sim.exploring._workers import InProcessWorker, PartAnswer, PartOrder, WorkerPool
from toolrt.sim.policies import Choices
from toolrt.sim.strategies import Shared

# Wall seconds between two looks at the clock, and between two checkpoints.
_LOOK, _SAVE = 0.1, 5.0

# After Ctrl-C or at the end of the time, workers get so many wall seconds to come to the end of an execution.
_LAST_WORDS = 10.0

_NO_BUDGET = 2**62


Workers: TypeAlias = InProcessWorker | WorkerPool | ExecutorPool


class Divided:
    """One divided exploration."""

    def __init__(
        self,
        task: ExploredProgram,
        search: Shared,
        jobs: JobsArgument,
        budget: Budget,
        progress: Callable[[ExplorationProgress], object] | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        self._task = task
        self._program = task.bound()
        #: The whole search.
        self.search = search
        self._jobs = jobs
        self._budget = budget
        self._progress = progress
        self._checkpoint = checkpoint
        self._tally = Tally()
        # The parts that are being done, by worker, with how many executions each may take.
        self._lent: dict[int, tuple[Shared, int]] = {}
        # The parts of workers that have come to an end.
        self._lost: list[Shared] = []
        self._doubt: str | None = None
        self._broke: ReplayableExecution | None = None
        self._interrupted = self._is_all_run = self._ending = False
        # Wall seconds: the beginning, the last call of `progress`, and the last checkpoint.
        self._began = time.perf_counter()
        self._told = self._saved = 0.0
        # The executions of earlier sittings.
        self._before = 0

    def run(self) -> Evidence:
        """Explore until all is run or the budget is."""
        try:
            first = self._begin()
            workers: Workers | None = None
            try:
                with one_interrupt_noted(self._interrupt):
                    if not self._is_over():
                        begin = max((number for number, _ in self._tally.others), default=-1) + 1
                        if self._jobs == 1:
                            workers = InProcessWorker(self._task, begin, self._is_over)
                        else:
                            workers = workers_of(self._jobs, self._task, begin)
                        self._explore(workers)
            finally:
                if workers is not None:
                    workers.close()
        finally:
            # Also when something is raised: hours may have gone into it.
            if self._checkpoint is not None and self._tally.executions:
                self._save()
        if self._broke is not None:
            self._raise_again(self._broke)
        self._tell(always=True)
        with bounded(self._budget.last_second()):
            found = simulate(self._finish(first))
        if self._checkpoint is not None and self._is_all_run:
            self._checkpoint.remove()
        return found

    # ------------------------------------------------------------------ the first execution

    def _begin(self) -> Execution:
        """Run the first schedule here, or run it again."""
        state = None if self._checkpoint is None else self._checkpoint.load()
        if state is None:
            if self._checkpoint is None and self._budget.executions is not None:
                self.search.at_most(self._budget.executions)
            with bounded(self._budget.last_second()):
                first = simulate(self._run_first())
        else:
            first = execute(self._job(ReplayableExecution((), 0, state.choices, state.chance)))
            if (first.choices, first.enabled) != (state.choices, state.enabled):
                assert self._checkpoint is not None
                raise self._checkpoint.changed()
            self.search, self._tally, self._before = state.search, state.tally, state.tally.executions
        self._first = first.choices, first.enabled, first.chance or 0
        self._saved = time.perf_counter()
        return first

    def _run_first(self) -> Driver[Execution]:
        search = self.search
        policy = search.policy()
        assert policy is not None
        first: Execution = yield Job(self._program, policy, self._task.step_limit, 0, chance=search.chance)
        place = search.place(first)
        search.learn(first)
        judgement = judge(first, self._task.check)
        numbers: dict[Any, int] = {}
        self._tally.note(
            first, judgement, place, search.repeats, lambda value: (0, numbers.setdefault(value, len(numbers)))
        )
        return first

    # ------------------------------------------------------------------ the search

    def _explore(self, workers: Workers) -> None:
        while True:
            if not self._is_over():
                self._give(workers)
            if not self._lent:
                self._is_all_run = not (self._lost or self._is_over())
                return
            if self._is_over():
                self._end(workers)
                return
            self._take(workers, _LOOK)
            self._tell()
            if self._checkpoint is not None and time.perf_counter() - self._saved > _SAVE:
                self._save()

    def _give(self, workers: Workers) -> None:
        """Give every idle worker something to do, as far as there is something."""
        left = self._executions_left()
        idle = list(workers.idle)[: max(0, left)]
        parts = self.search.lend(len(idle)) if idle else []
        for place, (worker, part) in enumerate(zip(idle, parts, strict=False)):
            most = left // (len(parts) - place)
            left -= most
            self._lent[worker] = part, most
            workers.give(worker, PartOrder(part, most, self._tally.executions))
        if len(parts) < len(idle):
            workers.hurry([worker for worker, (part, _) in self._lent.items() if part.divisible])

    def _take(self, workers: Workers, seconds: float) -> None:
        for worker, answer in workers.answers(seconds):
            lent = self._lent.pop(worker, None)
            if isinstance(answer, PartAnswer):
                self.search.take_back(answer.part)
                self._tally.add(answer.tally)
                self._broke = self._broke or answer.broke
            elif self._ending and lent is not None:
                self.search.take_back(lent[0])
            else:
                self._doubt = f"a process came to its end ({answer}) and what it was to run was not run"
                if lent is not None:
                    self._lost.append(lent[0])

    def _end(self, workers: Workers) -> None:
        """Let the workers come to an end, and take what they have."""
        self._ending = True
        workers.stop()
        until = time.perf_counter() + _LAST_WORDS
        while self._lent and (left := until - time.perf_counter()) > 0:
            self._take(workers, left)
        # What a worker that does not answer has done does not count.
        for part, _ in self._lent.values():
            self.search.take_back(part)
        self._lent.clear()

    def _executions_left(self) -> int:
        if self._budget.executions is None:
            return _NO_BUDGET
        spent = self._tally.executions - self._before
        return self._budget.executions - spent - sum(most for _, most in self._lent.values())

    def _is_over(self) -> bool:
        if self._interrupted or self._broke is not None or (self._executions_left() <= 0 and not self._lent):
            return True
        seconds = self._budget.seconds
        return seconds is not None and time.perf_counter() - self._began >= seconds

    def _interrupt(self) -> bool:
        """End the exploration at the first Ctrl-C: what was seen is reported."""
        before, self._interrupted = self._interrupted, True
        return before

    # ------------------------------------------------------------------ progress and checkpoint

    def _tell(self, always: bool = False) -> None:
        now = time.perf_counter()
        if self._progress is None or not (always or now - self._told > PROGRESS_EVERY):
            return
        self._told = now
        lent = [*(part for part, _ in self._lent.values()), *self._lost]
        executions, spent = self._tally.executions, now - self._began
        self._progress(
            ExplorationProgress(
                executions,
                self._tally.failed,
                self.search.expected(executions, lent),
                spent,
                (executions - self._before) / max(spent, 1e-9),
                self._before,
            )
        )

    def _save(self) -> None:
        assert self._checkpoint is not None
        lent = [*(part for part, _ in self._lent.values()), *self._lost]
        self._checkpoint.save(CheckpointState(self.search, self._tally, *self._first), lent)
        self._saved = time.perf_counter()

    # ------------------------------------------------------------------ the end

    def _job(self, recorded: ReplayableExecution) -> Job:
        """Give what runs it again."""
        policy = Choices(recorded.choices, recorded.chance)
        return Job(self._program, policy, self._task.step_limit, recorded.index)

    def _raise_again(self, broke: ReplayableExecution) -> None:
        """Let the check raise here what it has raised there."""
        judge(execute(self._job(broke)), self._task.check)
        self._doubt = "the check raised an error in another process, and not here on the same schedule"

    def _finish(self, first: Execution) -> Driver[Evidence]:
        tally, search = self._tally, self.search
        named = list(tally.outcomes.values())
        for count, recorded in tally.others.values():
            execution = yield self._job(recorded)
            named.append((execution.outcome, count, recorded.place))
            self._compare(recorded, execution)
        seen = Evidence(**{field.name: getattr(tally, field.name) for field in attrs.fields(ExecutionCounts)})
        seen.interrupted = self._interrupted
        for outcome, count, _ in sorted(named, key=lambda each: each[2]):
            seen.count(outcome, count)
        for recorded in sorted(tally.failures, key=lambda each: each.place):
            execution = yield self._job(recorded)
            judgement = judge(execution, self._task.check)
            self._compare(recorded, execution)
            if judgement.failed:
                seen.failures.append((execution, judgement))
            else:
                self._doubt = self._doubt or "an execution failed in another process, and not here"
        repeats = Repeats()
        if not isinstance(first.error, RealTimeout):
            again = yield self._job(ReplayableExecution((), 0, first.choices, first.chance or 0))
            repeats.compare(first, again)
            seen.note_left_behind(first, again)
        seen.caveats |= repeats.caveats
        seen.repeated = tally.repeated + repeats.runs
        seen.difference = tally.difference or repeats.difference
        seen.lost = self._doubt
        if not (seen.failed or seen.undecided or seen.difference or seen.lost or search.unfinished()):
            limit = self._task.step_limit
            yield from seen.hold_against_samples(
                self._task, search, lambda policy, index: Job(self._program, policy, limit, index)
            )
        seen.distinct = len(tally.schedules) if search.repeats else seen.executions
        return seen

    def _compare(self, recorded: ReplayableExecution, execution: Execution) -> None:
        if execution.choices != recorded.choices:
            self._doubt = self._doubt or (
                "the same choices led to another schedule in another process: the program depends on something the "
                "simulator does not control"
            )

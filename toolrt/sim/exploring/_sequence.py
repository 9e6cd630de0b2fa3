"""An exploration in one process: one execution after the other, each learned from before the next is picked.

Rules.  The executions that `_repeats` names are run twice, and the first failure is.  When the search has ended, the
first execution is run once more, after all others; then the search may hold what was shown against samples, which are
counted only if one of them fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Any

from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._job import Driver, Job
from toolrt.sim.exploring._conclusion import Doubts, Evidence, concluded
from toolrt.sim.exploring._divided import PROGRESS_EVERY, Budget
from toolrt.sim.exploring._judge import judge
from toolrt.sim.exploring._progress import Progress
from toolrt.sim.exploring._repeats import Repeats, another_outcome
from toolrt.sim.exploring._report import Failure, Report
from toolrt.sim.exploring._tally import FAILURES_KEPT
from toolrt.sim.exploring._workers import Task
from toolrt.sim.policies import Choices
from toolrt.sim.strategies import Redundant, Shared, Strategy
from toolrt.trace import stable_text

__all__ = ["exploration"]


def exploration(
    task: Task,
    strategy: Strategy,
    budget: Budget,
    progress: Callable[[Progress], object] | None,
    arguments: str,
) -> Driver[Report]:
    """Explore, and give the report."""
    program, check, step_limit = task.bound(), task.check, task.step_limit
    search = strategy.begin()
    executions = failed = undecided = 0
    outcomes: dict[Any, int] = {}
    failures: list[Failure] = []
    repeats = Repeats()
    first: Execution | None = None
    beside: str | None = None
    alone = check is None and search.asks_nobody and progress is None
    # When nobody is shown an execution, what its steps touched is for the policy alone.
    shown = check is not None or not search.asks_nobody
    began = time.perf_counter()
    told, end = began, inf if budget.seconds is None else began + budget.seconds

    def tell(now: float) -> None:
        if progress is not None:
            expected = search.expected(executions, ()) if isinstance(search, Shared) else None
            spent = max(now - began, 1e-9)
            progress(Progress(executions, failed, expected, spent, executions / spent))

    def count(execution: Execution) -> Any:
        """Count its outcome; give what it is counted under."""
        key = execution.outcome
        try:
            outcomes[key] = outcomes.get(key, 0) + 1
        except TypeError:
            key = stable_text(key)
            outcomes[key] = outcomes.get(key, 0) + 1
        return key

    while budget.executions is None or executions < budget.executions:
        if executions and (end < inf or progress is not None):
            now = time.perf_counter()
            if now >= end:
                break
            if now - told > PROGRESS_EVERY:
                told = now
                tell(now)
        policy = search.policy()
        if policy is None:
            break
        try:
            # The first is held against another run of it at the end.
            reports = shown or first is None or getattr(policy, "reads_accesses", True)
            execution = yield Job(program, policy, step_limit, executions, alone, reports)
        except Redundant:
            continue
        search.learn(execution)
        first = first or execution
        beside = beside or execution.beside
        choices = execution.choices
        repeats.note(execution, count(execution), choices)
        judgement = judge(execution, check)
        executions += 1
        undecided += judgement.undecided
        failed += judgement.failed
        kept = judgement.failed and len(failures) < FAILURES_KEPT
        if repeats.is_due(executions - 1) or (kept and (not reports or not failures)):
            # What is kept says what its steps touched.
            again = yield Job(program, Choices(choices), step_limit, execution.index, alone, reports or kept)
            repeats.compare(execution, again, touched=reports)
            if kept and again.choices == choices and another_outcome(execution.outcome, again.outcome) is None:
                execution = again
        if kept:
            failures.append(Failure(program, check, step_limit, execution, judgement, arguments))
    now = time.perf_counter()
    tell(now)
    if first is not None:
        # Schedules decide only if what was run first gives the same after all the others.
        again = yield Job(program, Choices(first.choices), step_limit, 0, alone)
        repeats.compare(first, again)
    contradiction: str | None = None
    if not (failed or undecided or repeats.difference or search.unfinished() or now >= end):
        held = search.hold_against_samples(outcomes)
        try:
            policy = next(held)
            while True:
                execution = yield Job(program, policy, step_limit, executions, alone)
                judgement = judge(execution, check)
                if judgement.failed:
                    executions += 1
                    failed += 1
                    repeats.note(execution, count(execution), execution.choices)
                    failures.append(Failure(program, check, step_limit, execution, judgement, arguments))
                policy = held.send(execution)
        except StopIteration as stop:
            contradiction = stop.value
    return concluded(
        task,
        search,
        Evidence(executions, len(repeats.outcomes), outcomes, failed, undecided, failures),
        Doubts(repeats.difference, beside, contradiction),
    )

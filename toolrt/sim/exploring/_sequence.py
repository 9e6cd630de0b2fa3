"""Explores in one process: one execution after the other; the search learns from each before it picks the next.

Rules.  The executions that `_repeats` names are run twice, and so is the first failure.  A search that reduces, where
what steps touch differs from run to run, is ended: it shows nothing, and might have no end.  When the search has ended,
the first execution is run once more, after all others.  Then the search may compare the evidence with samples; a sample
is counted only if it fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from time import perf_counter
from typing import Any

from toolrt.errors import RealTimeout
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._job import Driver, Job
from toolrt.sim.exploring._conclusion import Evidence
from toolrt.sim.exploring._program import ExploredProgram
from toolrt.sim.exploring._progress import PROGRESS_EVERY, Budget, ExplorationProgress
from toolrt.sim.exploring._records import LazyRecords
from toolrt.sim.exploring._repeats import Repeats, another_outcome
from toolrt.sim.exploring._tally import FAILURES_KEPT, outcome_key
from toolrt.sim.policies import Choices
from toolrt.sim.strategies import Redundant, Search, Shared
from toolrt.sim.strategies.dpor._search import DPORSearch

# So many executions of a program that is not controlled are run: some may fail.
_MOST_UNCONTROLLED = 1_000


def exploration(
    task: ExploredProgram,
    program: Callable[[], Awaitable[Any]],
    search: Search,
    budget: Budget,
    progress: Callable[[ExplorationProgress], object] | None,
) -> Driver[Evidence]:
    """Explore `task`, whose `program` has all that can happen to it, and give the evidence."""
    check, step_limit = task.check, task.step_limit
    seen = Evidence()
    repeats = Repeats()
    # The first is compared with another run of it at the end.
    records = LazyRecords(task, program, repeats, is_watched=not search.asks_nobody, keeps_first=True)
    first: Execution | None = None
    alone = check is None and search.asks_nobody and progress is None
    minds_failures = getattr(search, "minds_failures", False)
    began = perf_counter()
    told, end = began, inf if budget.seconds is None else began + budget.seconds

    def tell(now: float) -> None:
        if progress is not None:
            expected = search.expected(seen.executions, ()) if isinstance(search, Shared) else None
            spent = max(now - began, 1e-9)
            progress(ExplorationProgress(seen.executions, seen.failed, expected, spent, seen.executions / spent))

    def compared() -> Driver[bool]:
        """Hold what was seen against other orders of steps; say whether all was clear, and nothing contradicts it."""
        if first is not None and seen.lost is None:
            # Schedules decide only if what was run first gives the same after all the others.
            again = yield Job(program, Choices(first.choices, first.chance), step_limit, 0, alone)
            repeats.compare(first, again)
            seen.note_left_behind(first, again)
        if seen.failed or seen.undecided or repeats.difference or search.unfinished() or perf_counter() >= end:
            return False
        yield from seen.hold_against_samples(
            task, search, lambda policy, index: Job(program, policy, step_limit, index, alone)
        )
        for execution, _ in seen.failures:
            repeats.note(execution, outcome_key(execution.outcome))
        return not seen.failed and seen.contradiction is None

    is_compared = False
    while budget.executions is None or seen.executions < budget.executions:
        if seen.executions and (end < inf or progress is not None):
            now = perf_counter()
            if now >= end:
                break
            if now - told > PROGRESS_EVERY:
                told = now
                tell(now)
        policy = search.policy()
        if policy is None:
            if (yield from compared()) and search.reopens():
                continue
            is_compared = True
            break
        try:
            chance = getattr(search, "chance", 0)
            execution, reports = yield from records.execute(policy, seen.executions, alone, chance)
        except Redundant:
            continue
        search.learn(execution)
        first = first or execution
        choices, chance = execution.choices, execution.chance or 0
        repeats.note(execution, seen.count(execution.outcome))
        judgement = records.judge(execution, reports)
        if minds_failures:
            search.judged(judgement.failed)
        seen.note_one(execution, judgement)
        if seen.executions & (seen.executions - 1) == 0:
            seen.some.append((Choices(choices, chance), execution.index, execution.outcome))
        kept = judgement.failed and len(seen.failures) < FAILURES_KEPT
        if repeats.is_due(seen.executions - 1, len(choices)) or (kept and (not reports or not seen.failures)):
            # A failure that is kept reports what its steps touched.
            again = yield from records.repeat(execution, policy, alone, reports, kept)
            if kept and again.choices == choices and another_outcome(execution.outcome, again.outcome) is None:
                execution = again
            elif kept:
                # Another run has shown something else: what was kept of this one is all that there is.
                execution._make_again = None
        if kept:
            seen.failures.append((execution, judgement))
        if repeats.difference and isinstance(search, DPORSearch) and seen.executions >= _MOST_UNCONTROLLED:
            break
        if isinstance(execution.error, RealTimeout):
            # Each further one would take as long.
            seen.lost = f"an execution could not {judgement.why.removeprefix('it could not ')}"
            break
    tell(perf_counter())
    if not is_compared:
        yield from compared()
    seen.caveats |= repeats.caveats
    seen.distinct, seen.difference, seen.repeated = len(repeats.outcomes), repeats.difference, repeats.runs
    return seen

"""Compares the outcome sets of two programs: what a repair allows, beside what the original allows.

Rules.  Both programs are explored in the same way.  An outcome is *gained* when only the repair makes it, and *lost*
when only the original does.  The *bug* is what the caller names, and every outcome of an execution of the original that
the check complains of.  A repair fails when it still makes the bug, or gains an outcome although every schedule
of the original was run.  It may lose outcomes: a repair that allows less is a repair.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim._schedule import Schedule
from toolrt.sim.engine._execution import Execution
from toolrt.sim.exploring._explore import explore
from toolrt.sim.exploring._judge import Check, Judgement, judge
from toolrt.sim.exploring._outcomes import named_outcomes
from toolrt.sim.exploring._report import Report, Verdict
from toolrt.sim.exploring._tally import outcome_key
from toolrt.sim.strategies import Strategy
from toolrt.trace import stable_text

Program = Callable[[], Awaitable[Any]]


@attrs.frozen(repr=False)
class OutcomeComparison:
    """What two programs allow; `str()` of it is for people.  Outcomes are named as in `Report.outcomes`."""

    #: `Verdict.PASS`, `FAIL` or `INCONCLUSIVE`.
    verdict: Verdict
    #: The report of the original.
    original: Report
    #: The report of the repair.
    repair: Report
    #: The outcomes that only the repair makes, each with a schedule of the repair.
    gained: Mapping[Any, Schedule]
    #: The outcomes that only the original makes, each with a schedule of the original.
    lost: Mapping[Any, Schedule]
    #: The outcomes of the bug that the repair still makes, each with a schedule of the repair.
    still: Mapping[Any, Schedule]
    #: The outcomes of the bug: those that were named, and those that the check complains of in the original.
    bug: tuple[Any, ...]

    def __str__(self) -> str:
        lines = [
            f"{self.verdict.name}: original {self.original.claim}, repair {self.repair.claim}",
            *_rows("gained", self.gained),
            *_rows("lost", self.lost, self.bug),
            *_rows("still there", self.still, self.bug),
        ]
        for name, report in (("original", self.original), ("repair", self.repair)):
            if report.unfinished:
                lines.append(f"Not finished: {name}: {report.unfinished}.")
        if self.verdict is Verdict.INCONCLUSIVE and self.gained and not self.original.complete:
            lines.append("Not every schedule of the original was run: it may make what the repair seems to gain.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<OutcomeComparison {self.verdict.name}: {len(self.gained)} gained, {len(self.lost)} lost>"


def compare(
    original: Program,
    repair: Program,
    strategy: Strategy | None = None,
    check: Check | None = None,
    *,
    bug: Iterable[Any] = (),
    **how: Any,
) -> OutcomeComparison:
    """Compare what two programs allow: the repair shall allow no more than the original, and not the bug.

    Args:
        original: an async function without arguments.
        repair: another one.
        strategy: picks the executions of each, as `toolrt.sim.explore` takes it.
        check: judges each execution, as `toolrt.sim.explore` takes it.
        bug: outcomes that the repair must not have, as ``outcomes=`` of `toolrt.sim.explore` takes them.
        how: further arguments of `toolrt.sim.explore`, for both, but neither `jobs` nor `checkpoint`: the schedules are
            kept in this process.

    Returns:
        The comparison.  FAIL: the repair still makes the bug, fails the check, or makes an outcome that no schedule of
        the original makes.  INCONCLUSIVE: it makes one that a sample of the original did not show, or the exploration
        of the repair showed nothing.

    Raises:
        DefinitionRefused: an argument is not what it must be.

    And what `toolrt.sim.explore` raises.

    Checkpoint: never (it is not async).

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> def deposits(lock):
        ...     async def program():
        ...         cell, guard = sim.Cell(0, name="balance"), lock()
        ...         async def deposit():
        ...             async with guard:
        ...                 seen = cell.get()
        ...                 await trio.lowlevel.checkpoint()
        ...                 cell.set(seen + 1)
        ...         async with trio.open_nursery() as nursery:
        ...             nursery.start_soon(deposit)
        ...             nursery.start_soon(deposit)
        ...         return cell.get()
        ...     return program
        >>> repair = deposits(trio.Lock)
        >>> original = deposits(lambda: trio.Semaphore(2))
        >>> print(sim.compare(original, repair, sim.Exhaustive(), bug={1}).verdict)
        PASS
    """
    if isinstance(bug, str | bytes | Mapping) or not isinstance(bug, Iterable):
        raise DefinitionRefused("compare(bug)", "a set, or a list, of outcomes", bug)
    bug = named_outcomes(bug)
    first = _Outcomes(check)
    before = explore(original, strategy, first, **how)
    known = dict(first.schedules)
    second = _Outcomes(check)
    after = explore(repair, strategy, second, **how)
    made = dict(second.schedules)
    wrong = (*bug, *first.failed)
    gained = {outcome: execution.schedule for outcome, execution in made.items() if outcome not in known}
    still = {outcome: execution.schedule for outcome, execution in made.items() if outcome in wrong}
    if still or after.failed or (gained and before.complete):
        verdict = Verdict.FAIL
    elif gained or after.verdict is Verdict.INCONCLUSIVE:
        verdict = Verdict.INCONCLUSIVE
    else:
        verdict = Verdict.PASS
    return OutcomeComparison(
        verdict,
        before,
        after,
        MappingProxyType(gained),
        MappingProxyType({outcome: execution.schedule for outcome, execution in known.items() if outcome not in made}),
        MappingProxyType(still),
        tuple(dict.fromkeys(wrong)),
    )


class _Outcomes:
    """A check that keeps the first execution of each outcome, and which outcomes another check complains of."""

    def __init__(self, check: Check | None) -> None:
        self._check = check
        self.schedules: dict[Any, Execution] = {}
        self.failed: dict[Any, None] = {}

    def __call__(self, execution: Execution) -> Judgement:
        judgement = judge(execution, self._check)
        key = outcome_key(execution.outcome)
        self.schedules.setdefault(key, execution)
        if judgement.failed:
            self.failed[key] = None
        return judgement


def _rows(what: str, outcomes: Mapping[Any, Schedule], bug: tuple[Any, ...] = ()) -> list[str]:
    return [
        f"  {what} {stable_text(outcome)}{' (the bug)' if outcome in bug else ''}: {schedule.short}"
        for outcome, schedule in outcomes.items()
    ]

"""The verdict and the claim of an exploration, from what was seen and from what casts doubt on it.

Rules.  One failure makes it FAIL.  It is PASS only when the search was finished, no execution was undecided, and
nothing casts doubt on what was seen; else it is INCONCLUSIVE, and `Report.unfinished` says why.  Where the same choices
led to different things, schedules decide nothing: the claim is then how many executions there were.
"""

from __future__ import annotations

from typing import Any

import attrs

from toolrt.sim.exploring._report import Failure, Report, Verdict
from toolrt.sim.exploring._workers import Task
from toolrt.sim.strategies import Search

__all__ = ["Doubts", "Evidence", "concluded"]


@attrs.frozen
class Evidence:
    """What the executions of an exploration have shown."""

    #: How many there were.
    executions: int
    #: How many different schedules were among them.
    distinct: int
    #: How often each outcome came.
    outcomes: dict[Any, int]
    #: How many executions failed.
    failed: int
    #: How many decided nothing.
    undecided: int
    #: The first failures.
    failures: list[Failure]


@attrs.frozen
class Doubts:
    """Why an exploration may not show what it seems to; None of each: it does."""

    #: How two executions differ that must be alike.
    difference: str | None
    #: What ran beside the program's tasks.
    beside: str | None
    #: How a sample contradicts the search's reduction.
    contradiction: str | None
    #: What was not run, or not run again as it was.
    lost: str | None = None

    def because_of(self, own: str | None) -> str | None:
        """Give the reason that counts most; `own` is the search's."""
        if own is not None and "the simulator does not control" in own:
            return own
        beside = self.beside and (
            f"{self.beside} ran beside the program's tasks; when it runs is no choice, so one order was tried of many"
        )
        return self.difference or self.lost or self.contradiction or beside or own


def concluded(task: Task, search: Search, seen: Evidence, doubts: Doubts, interrupted: bool = False) -> Report:
    """Give the report of an exploration that has ended."""
    own = search.unfinished()
    why = doubts.because_of(own)
    complete = search.complete() and why is None
    claim = search.claim(seen.executions, seen.distinct)
    if why is not None and why == doubts.difference and why != own:
        claim = f"uncontrolled(n={seen.executions})"
    elif why is not None and search.complete():
        claim = "incomplete" + claim[claim.find("(") :] if "(" in claim else f"incomplete({claim})"
    if seen.failed:
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.INCONCLUSIVE if seen.undecided or why or not seen.executions else Verdict.PASS
    return Report(
        verdict=verdict,
        claim=claim,
        executions=seen.executions,
        distinct=seen.distinct,
        complete=complete,
        outcomes=seen.outcomes,
        failed=seen.failed,
        undecided=seen.undecided,
        failures=seen.failures,
        unfinished=why,
        interrupted=interrupted,
        checked=task.check is not None,
    )

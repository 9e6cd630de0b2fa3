"""All laws, all batches of a few calls, all traces: what a random sample of schedules can only suggest.

Rules.  A batch is a sequence of calls, each of one of the kinds below.  Every batch of a given length is run once for
each of its Mazurkiewicz traces (`toolrt.sim.DPOR`), and every execution is held against every law.  Nobody vouches for
anything: a step that reported nothing conflicts with every other.

Limits.  One execution stands for all of its trace.  A law that looks at the order of two events which no access and no
cause orders may trip on one of them and not on another; the random executions of `table` look at those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import attrs

from toolrt import sim
from toolrt._plain import stable_text
from toolrt.errors import DefinitionRefused
from toolrt.invariants._check import LAWS, check
from toolrt.invariants._law import Predicate, Violation, laws_by_name
from toolrt.invariants._matrix import FalseAlarm
from toolrt.invariants._mix import Mix, judged
from toolrt.invariants.script import (
    AddCell,
    AppendFile,
    ChangeState,
    Fail,
    ReadCell,
    Say,
    Scripted,
    SeeState,
    Sleep,
)

__all__ = ["KINDS", "Exhausted", "all_batches", "exhaust"]

#: The kinds of call that batches are made of.
KINDS: Mapping[str, Scripted] = {
    "reads a cell": Scripted([ReadCell("a")]),
    "writes the cell": Scripted([AddCell("a", "x")]),
    "writes another cell": Scripted([AddCell("b", "y")]),
    "appends to a file": Scripted([AppendFile("f", "c")]),
    "says something": Scripted([Say("hi")], says="safe"),
    "sees and changes the state": Scripted([SeeState("x"), ChangeState("x", "a")], says="safe"),
    "alone": Scripted([SeeState("x"), ChangeState("x", "d")], says="nothing"),
    "fails and stops": Scripted([Fail("broken")], stops=True),
    "sleeps, then writes the cell": Scripted([Sleep(1), AddCell("a", "z")]),
    "unknown": Scripted(invalid="unknown"),
}


@attrs.frozen
class Exhausted:
    """What came of all batches of a few calls."""

    #: How many batches there were.
    batches: int
    #: How many traces they have together.
    traces: int
    #: The most that one batch has.
    most: int
    #: The first execution of each batch that broke a law.
    alarms: tuple[FalseAlarm, ...]
    #: The batches whose traces were not all run, and why.
    unfinished: tuple[tuple[Mix, str], ...]

    @property
    def ok(self) -> bool:
        """Whether all traces of all batches were run, and no law tripped."""
        return not self.alarms and not self.unfinished

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "batches": self.batches,
            "traces": self.traces,
            "most": self.most,
            "alarms": list(map(str, self.alarms)),
            "unfinished": [f"{why}: {mix!r}" for mix, why in self.unfinished],
            "ok": self.ok,
        }

    def __str__(self) -> str:
        lines = [
            f"{self.batches:,} batches, {self.traces:,} traces, at most {self.most:,} of one batch; each run once",
            f"{len(self.alarms)} batches in which a law tripped",
        ]
        lines += map(str, self.alarms[:3])
        lines += [f"not all traces were run ({why}): {mix!r}" for mix, why in self.unfinished[:3]]
        return "\n".join(lines)


def all_batches(calls: int, kinds: Iterable[Scripted] | None = None) -> Iterator[Mix]:
    """Give every batch of exactly so many calls.

    Raises:
        DefinitionRefused: it is not a number, 1 or more.
    """
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        raise DefinitionRefused("all_batches(calls)", "a whole number, 1 or more", calls)
    chosen = tuple(KINDS.values() if kinds is None else kinds)
    return (Mix(batch, files={"f": "start "}, state={"x": "0"}) for batch in product(chosen, repeat=calls))


def exhaust(batches: Iterable[Mix], laws: Mapping[str, Predicate] | None = None, most: int | None = None) -> Exhausted:
    """Run every trace of every batch and hold it against the laws.

    Args:
        batches: such as ``all_batches(2)``.
        laws: by name; ours when None.
        most: how many traces of one batch are run at most; all when None.

    Raises:
        DefinitionRefused: an argument is not what it must be.
    """
    laws = laws_by_name(laws, LAWS)
    number = traces = highest = 0
    alarms: list[FalseAlarm] = []
    unfinished: list[tuple[Mix, str]] = []
    for mix in batches:

        def broken(execution: sim.Execution, mix: Mix = mix) -> Any:
            return check(judged(mix, execution).trace, laws)

        report = sim.explore(mix.program(), sim.DPOR(), broken, max_executions=most)
        number += 1
        traces += report.executions
        highest = max(highest, report.executions)
        for failure in report.failures[:1]:
            found = (
                failure.violations[0]
                if failure.violations
                else Violation("no law", "An execution ends without an error.", stable_text(failure.error))
            )
            alarms.append(FalseAlarm(mix, failure.execution.choices, found))
        if not report.failures and not report.complete:
            unfinished.append((mix, report.unfinished or "an execution decided nothing"))
    return Exhausted(number, traces, highest, tuple(alarms), tuple(unfinished))

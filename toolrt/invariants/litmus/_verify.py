"""Holds a litmus program to what is said of it.

Rules.
    1. A program that is small enough is run under every schedule.  Its outcomes must be exactly those stated: one
       that is not stated fails, one that is stated and never comes fails too.  Where counts are stated, the
       schedules are counted, and the classes among them.
    2. One that is not small enough but has few classes is run once for each class.
    3. Any other is sampled.  A sample cannot show that an outcome never comes, so the program says by which argument
       its outcomes are all there are; it can show that each does come, and must.
    4. A run that was cut short verifies nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import attrs

from toolrt import sim
from toolrt.errors import DefinitionRefused
from toolrt.invariants.litmus._litmus import Litmus
from toolrt.invariants.litmus._search import EverySchedule, class_of

__all__ = ["MOST", "Verified", "verify"]

#: A program with more schedules than this is not run under every one of them, unless asked for.
MOST = 5_000

Method = Literal["every schedule", "every class", "sampled"]


@attrs.frozen
class Verified:
    """What came of the verification of one program."""

    litmus: Litmus
    #: How it was run.
    method: Method
    #: How many executions that took.
    executions: int
    #: How often each outcome came.
    seen: Mapping[Any, int]
    #: How many classes there were, or None when they were not counted.
    classes: int | None
    #: What is not as it is stated; empty when all is well.
    problems: tuple[str, ...]
    #: The exploration's claim.
    claim: str
    #: The first execution whose outcome is the bug, or is not stated; None when there was none.
    failure: sim.Failure | None = attrs.field(repr=False, eq=False)

    @property
    def ok(self) -> bool:
        """Whether everything is as it is stated."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "name": self.litmus.name,
            "method": self.method,
            "executions": self.executions,
            "classes": self.classes,
            "outcomes": [
                {"outcome": str(outcome), "count": self.seen.get(outcome, 0), "wrong": outcome in self.litmus.wrong}
                for outcome in in_order({*self.seen, *self.litmus.outcomes})
            ],
            "problems": list(self.problems),
            "ok": self.ok,
        }


def in_order(outcomes: Iterable[Any]) -> list[Any]:
    """Outcomes in an order that is the same in every process: numbers by size, all else by its text."""
    return sorted(outcomes, key=lambda found: (found, "") if isinstance(found, int) else (float("inf"), str(found)))


def method_of(litmus: Litmus, most: int = MOST) -> Method:
    """How `verify` runs a program."""
    if litmus.interleavings is None:
        return "sampled" if litmus.proof else "every schedule"
    return "every schedule" if litmus.interleavings.number <= most else "sampled"


def verify(litmus: Litmus, most: int = MOST) -> Verified:
    """Run `litmus` and compare what comes with what is stated.

    Args:
        litmus: the program.
        most: how many executions one program may take, 1 or more; with more schedules it is sampled.

    Raises:
        DefinitionRefused: `most` is no such number.
    """
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise DefinitionRefused("verify(most)", "a whole number, 1 or more", most)
    method = method_of(litmus, most)
    if method == "every schedule":
        return _enumerated(litmus, most)
    return _sampled(litmus)


def _enumerated(litmus: Litmus, most: int) -> Verified:
    classes: set[Hashable] = set()

    def count(execution: sim.Execution) -> None:
        if litmus.classes is not None:
            classes.add(class_of(execution))

    # A program that has more schedules than stated is not run for ever.
    report, seen = _explored(litmus, EverySchedule(), count, 2 * most)
    problems = _differences(litmus, seen)
    stated = litmus.interleavings
    if not report.complete:
        problems.append(f"more than {report.executions:,} schedules")
    elif stated is not None and report.executions != stated.number:
        problems.append(f"{report.executions:,} schedules, expected {stated}")
    if litmus.classes is not None and report.complete and len(classes) != litmus.classes.number:
        problems.append(f"{len(classes):,} classes, expected {litmus.classes}")
    return _verified(litmus, "every schedule", report, seen, len(classes) or None, problems)


def _sampled(litmus: Litmus) -> Verified:
    sample = sim.Random(sim.RandomWalk(seed=0), litmus.sample)
    report, seen = _explored(litmus, sample, lambda execution: None, litmus.sample)
    problems = _differences(litmus, seen)
    if not litmus.proof:
        problems.append("sampled, and nothing is said of how the outcomes are known")
    return _verified(litmus, "sampled", report, seen, None, problems)


def _explored(
    litmus: Litmus, strategy: sim.Strategy, count: Callable[[sim.Execution], None], most: int
) -> tuple[sim.Report, dict[Any, int]]:
    seen: Counter[Any] = Counter()

    def note(execution: sim.Execution) -> bool | list[str]:
        seen[litmus.read(execution)] += 1
        count(execution)
        return litmus.check(execution)

    report = sim.explore(litmus.program, strategy, note, max_executions=most)
    # A copy: the report's failures are judged again when somebody asks for a simpler schedule.
    return report, dict(seen)


def _verified(
    litmus: Litmus,
    method: Method,
    report: sim.Report,
    seen: Mapping[Any, int],
    classes: int | None,
    problems: Sequence[str],
) -> Verified:
    failure = report.failures[0] if report.failures else None
    return Verified(litmus, method, report.executions, seen, classes, tuple(problems), report.claim, failure)


def _differences(litmus: Litmus, seen: Mapping[Any, int]) -> list[str]:
    return [
        *(f"unexpected outcome {outcome!r}" for outcome in in_order(set(seen) - litmus.outcomes)),
        *(f"missing outcome {outcome!r}" for outcome in in_order(litmus.outcomes - set(seen))),
    ]
